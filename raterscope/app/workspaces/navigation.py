"""Navigation between the items of a workspace: reads the scene of the current item, preloads pixels."""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.formats.pyramids import is_large
from raterscope.app.jobs import Job, Jobs
from raterscope.app.session import LatestTask
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.records import Item
from raterscope.app.study.references import has_changed
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.app.workspaces.runs import RunControl
from raterscope.text import percent
from raterscope.widgets.parts import ChoiceBox

PIXEL_CACHE_BYTES = 256 * 1024**2
"""Maximum bytes of cached pixels, about seventy smears. Reading a smear again takes 40 ms."""

COMPILING = "Once after installation this takes up to half a minute, because algorithms are compiled."


class Scene(Protocol):
    """One item as read from the study."""

    @property
    def item(self) -> Item:
        """The image, case or question."""

    @property
    def run(self) -> RunEntry | None:
        """The run that is shown; None without one."""


class Navigation(QObject):
    """Navigation that reads the current item's scene in the study's thread and analyses it in another.

    `noun`: name of an item in the job list: "image". `read`: returns the scene of an item and a run.
    `analyse`: returns the analysis of a scene.
    """

    arrived = Signal(object, object)  # scene, analysis: the scene to show; None twice without an item
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        runs: RunControl,
        noun: str,
        read: Callable[[int, int | None, Study, Watch], Scene],
        analyse: Callable[[Any, Watch], object] | None = None,
    ) -> None:
        super().__init__(runs)
        self._document, self._jobs, self._runs = document, jobs, runs
        self._noun, self._read, self._analyse = noun, read, analyse
        self._kind = runs.kind
        self._task = LatestTask()
        self._then: Callable[[], object] | None = None
        """Function to call once the current item is on screen."""
        self.on_screen: int | None = None
        """The item of the scene that arrived last."""
        runs.session.run_chosen.connect(self.read_again)

    @property
    def current(self) -> int | None:
        """The current item, whose scene may still be read."""
        raise NotImplementedError

    def _select(self, item: int) -> None:
        """Mark an item in the list of items."""
        raise NotImplementedError

    def step(self, by: int) -> None:
        """Go to the next or previous item."""
        raise NotImplementedError

    def reset(self) -> None:
        """Drop everything, because another study is open."""
        self.on_screen = self._then = None
        self.read_again()

    def refresh(self) -> None:
        """Update the list of items, and read the current item again."""
        raise NotImplementedError

    def show(self, item: int) -> None:
        """Read the scene of an item."""
        self._then = None
        self._select(item)
        self.read_again()

    def go_to(self, item: int) -> None:
        """Show an item, unless it is on screen."""
        if item != self.on_screen or item != self.current:
            self.show(item)

    def visit(self, item: int, on_done: Callable[[], object]) -> None:
        """Show an item, and call `on_done` once it is on screen, unless another item is chosen meanwhile."""
        self.show(item)
        self._then = on_done

    def read_again(self) -> None:
        """Read the scene of the current item with the chosen run."""
        self._task.cancel()
        if self.current is None:
            self._end_state()
            self.arrived.emit(None, None)
            return
        self._show_state("Reading")
        read = partial(self._read, self.current, self._runs.run_of(self.current))
        job = self._document.ask(f"Reading {self._noun}", read)
        self._task.follow(job, self._on_scene, stopped=self._end_state)

    def _on_scene(self, scene: Scene) -> None:
        if self._analyse is None:
            self._arrive(scene, None)
            return
        from raterscope.app.compiled import is_prepared

        self._show_state("Analysing", "" if is_prepared() else COMPILING)
        job = self._jobs.start(f"Analysing {self._noun}", partial(self._analyse, scene), quiet=True)
        arrive = partial(self._arrive, scene)
        self._task.follow(job, arrive, failed=self.refused.emit, stopped=self._end_state)

    def _show_state(self, verb: str, hint: str = "") -> None:
        """Show why the screen is empty."""
        if self.on_screen is None:
            self._runs.show_state(f"{verb} {self._noun}…", hint)

    def _end_state(self) -> None:
        if self.on_screen is None:
            self._runs.show_state("")

    def _arrive(self, scene: Any, analysis: object) -> None:
        self._end_state()
        self.on_screen = scene.item.id
        on_done, self._then = self._then, None
        self.arrived.emit(scene, analysis)
        self._runs.list_runs(scene.item, scene.run)
        if on_done is not None:
            on_done()

    def _items(self) -> list[int]:
        return [entry.id for entry in self._document.items(self._kind)]


class QuestionNavigation(Navigation):
    """Navigation between questions, with a box to choose one if there are several."""

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        runs: RunControl,
        noun: str,
        read: Callable[[int, int | None, Study, Watch], Scene],
        analyse: Callable[[Any, Watch], object],
        box: ChoiceBox,
    ) -> None:
        super().__init__(document, jobs, runs, noun, read, analyse)
        self._box = box
        self._current: int | None = None
        box.activated.connect(self._on_activated)

    @property
    def current(self) -> int | None:
        """The current question."""
        return self._current

    def reset(self) -> None:
        """Drop everything, because another study is open."""
        self._current = None
        super().reset()

    def refresh(self) -> None:
        """List the questions, and read the current one again, or the first one if it no longer exists."""
        questions = self._document.items(self._kind)
        self._box.clear()
        for question in questions:
            self._box.addItem(question.name, question.id)
        self._box.setVisible(len(questions) > 1)
        numbers = self._items()
        if self._current not in numbers:
            self._current = numbers[0] if numbers else None
        if self._current is not None:
            self._box.setCurrentIndex(numbers.index(self._current))
        self.read_again()

    def step(self, by: int) -> None:
        """Go to the next or previous question."""
        index = self._box.currentIndex() + by
        if 0 <= index < self._box.count():
            self._on_activated(index)

    def _select(self, item: int) -> None:
        index = self._box.findData(item)
        if index >= 0:
            self._box.setCurrentIndex(index)
            self._current = item

    def _on_activated(self, index: int) -> None:
        self.show(self._box.itemData(index))


_MODIFIERS = (Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_AltGr, Qt.Key.Key_Meta)
_USER_EVENTS = (QEvent.Type.Wheel, QEvent.Type.MouseButtonPress, QEvent.Type.KeyPress)


class ItemNavigation(Navigation):
    """Navigation between the images or cases of the review queue, with their pixels.

    Before the first fusion, the first image is on screen. The most disputed image replaces it once that is
    known, unless the expert has begun to examine the first one. `canvas`: its wheel, mouse and key events
    show that the expert examines the image.
    """

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        runs: RunControl,
        noun: str,
        read: Callable[[int, int | None, Study, Watch], Scene],
        queue: ReviewQueue,
        pixels: PixelLoader,
        canvas: QWidget,
    ) -> None:
        super().__init__(document, jobs, runs, noun, read)
        self._queue, self._pixels, self._canvas = queue, pixels, canvas
        self._provisional = False
        """Whether the image on screen may be replaced by the most disputed one."""
        queue.ordered.connect(self._on_queue_ordered)
        queue.panel.item_chosen.connect(self._on_item_chosen)
        runs.session.run_chosen.connect(self._on_results)
        runs.changed.connect(self._on_results)

    @property
    def current(self) -> int | None:
        """The current image."""
        return self._queue.current

    def reset(self) -> None:
        """Drop everything, because another study is open."""
        self._pixels.forget()
        self._set_provisional(False)
        self._queue.reset()
        super().reset()

    def refresh(self) -> None:
        """Read new results, and the image on screen again; without any run, show the first image."""
        self._queue.reread_unfused()
        images = self._items()
        if self._queue.current in images:
            self.read_again()
        elif images and not self._has_runs():
            self.show(images[0])
            self._set_provisional(True)

    def step(self, by: int) -> None:
        """Go to the next or previous image of the queue."""
        self._queue.step(by)

    def go_to(self, item: int) -> None:
        """Show an image, unless it is on screen."""
        self._set_provisional(False)
        super().go_to(item)

    def visit(self, item: int, on_done: Callable[[], object]) -> None:
        """Show an image, and call `on_done` once it is on screen, unless another is chosen meanwhile."""
        self._set_provisional(False)
        super().visit(item, on_done)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Keep the image on screen once the expert examines it."""
        if event.type() in _USER_EVENTS and not (isinstance(event, QKeyEvent) and event.key() in _MODIFIERS):
            self._set_provisional(False)
        return False

    def _set_provisional(self, provisional: bool) -> None:
        if provisional == self._provisional:
            return
        self._provisional = provisional
        for widget in (self._canvas, *self._canvas.findChildren(QWidget)):
            if provisional:
                widget.installEventFilter(self)
            else:
                widget.removeEventFilter(self)

    def _select(self, item: int) -> None:
        self._queue.select(item)
        self._pixels.want(item)

    def _has_runs(self) -> bool:
        return bool(self._document.runs_of(self._kind))

    def _on_queue_ordered(self) -> None:
        """Start with the most disputed image once it is known."""
        images, disputed = self._items(), self._queue.most_disputed()
        if images and self._queue.current is None:
            self.show(disputed or images[0])
        elif self._provisional and disputed is not None and self._has_runs():
            self._set_provisional(False)
            self.show(disputed)

    def _arrive(self, scene: Any, analysis: object) -> None:
        super()._arrive(scene, analysis)
        self._pixels.load(scene.image, scene.path)
        contents, following = self._document.contents, self._queue.after(scene.image.id)
        entry = contents.image(following) if contents and following is not None else None
        if entry is not None:
            self._pixels.prefetch(entry)

    def read_all_again(self) -> None:
        """Read the results of all items and the scene of the current one again."""
        self._on_results()
        self.read_again()

    def _on_item_chosen(self, image: int) -> None:
        self.go_to(image)
        self._canvas.setFocus()

    def _on_results(self) -> None:
        self._queue.reread(self._items())


class Pixels(Protocol):
    """Loaded pixels of an image."""

    @property
    def nbytes(self) -> int:
        """Size of the pixels in memory."""


class PixelLoader(QObject):
    """Loader of the pixels of images in the background, with a cache of the latest images.

    `load`: returns the pixels of an image.
    """

    pixels = Signal(int, object)  # image, pixels: pixels of the current image
    loading = Signal(str)  # progress of a slow load of the current image; empty at its end
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        load: Callable[[ImageEntry, Path, Watch], Pixels],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._jobs, self._load_pixels = document, jobs, load
        self._tasks = LatestTask()
        self._cache: OrderedDict[int, Pixels] = OrderedDict()
        self._loading: set[int] = set()
        self._current: int | None = None
        self._last: tuple[ImageEntry, Path | None] | None = None
        self._reloaded: set[int] = set()

    def forget(self) -> None:
        """Drop everything, because another study is open."""
        self._tasks.cancel()  # images of another study have the same numbers
        self._current = self._last = None
        for memory in (self._reloaded, self._cache, self._loading):
            memory.clear()

    def want(self, image: int) -> None:
        """Report only the pixels of this image from now on."""
        self._current = image

    def load(self, entry: ImageEntry, path: Path | None) -> None:
        """Report the pixels of the current image, from the cache or from its file."""
        self._current, self._last = entry.id, (entry, path)
        if entry.id in self._cache:
            self._cache.move_to_end(entry.id)
            self.pixels.emit(entry.id, self._cache[entry.id])
        else:
            self._start(entry, path)

    def load_again(self) -> None:
        """Load the pixels of the image on screen again, because the cached ones are damaged."""
        if self._last is None:
            return
        entry, path = self._last
        if entry.id == self._current and entry.id not in self._reloaded:
            self._reloaded.add(entry.id)
            self._cache.pop(entry.id, None)
            self._start(entry, path)

    def prefetch(self, entry: ImageEntry) -> None:
        """Load the pixels of an image that is likely to be next."""
        if entry.id not in self._cache and entry.id not in self._loading:
            job = self._document.ask("Looking for an image", partial(locate_image, entry))
            self._tasks.follow(job, partial(self._start, entry), beside=True)

    def _start(self, entry: ImageEntry, path: Path | None) -> None:
        image = entry.id
        if path is None or image in self._loading:
            return
        self._loading.add(image)
        quiet = not is_large(entry.width, entry.height)  # large images take seconds, and may be cancelled
        job = self._jobs.start(f"Loading {path.name}", partial(self._load_pixels, entry, path), quiet=quiet)
        self._tasks.follow(
            job,
            partial(self._on_pixels, image),
            progressed=None if quiet else partial(self._on_progress, image),
            failed=partial(self._on_failed, image),
            stopped=partial(self._on_ended, image),
            beside=True,
        )

    def _on_pixels(self, image: int, pixels: Pixels) -> None:
        self._cache[image] = pixels
        while len(self._cache) > 1 and sum(each.nbytes for each in self._cache.values()) > PIXEL_CACHE_BYTES:
            self._cache.popitem(last=False)
        if image == self._current:
            self.pixels.emit(image, pixels)
        self._on_ended(image)

    def _on_failed(self, image: int, message: str) -> None:
        self._on_ended(image)  # before `refused`, after which the canvas states that there are no pixels
        if image == self._current:
            self.refused.emit(message)

    def _on_progress(self, image: int, job: Job) -> None:
        if image == self._current:
            self.loading.emit(f"{job.text}: {percent(job.fraction)}")

    def _on_ended(self, image: int) -> None:
        if image in self._loading:
            self._loading.remove(image)
            if image == self._current:
                self.loading.emit("")


def own_memory(pixels: NDArray[Any]) -> NDArray[Any]:
    """Copy pixels into a memory mapping, whose memory returns to the system with the last reference.

    On the C library's heaps, large arrays of short-lived threads leave gaps that no other thread uses.
    """
    copied = np.frombuffer(mmap.mmap(-1, pixels.nbytes), dtype=pixels.dtype).reshape(pixels.shape)
    np.copyto(copied, pixels)
    return copied


class FileProblem(NamedTuple):
    """Reason why an image cannot be shown. `label` replaces the image; `sentence` is the error message."""

    label: str
    sentence: str


UNREADABLE = "Image file cannot be read: restore it, then choose the image again"


def find_file_problem(entry: ImageEntry, study: Study) -> FileProblem | None:
    """Return why the file of an image cannot be shown; None if it can, or if the image has no file."""
    if entry.path is None or study.locate(entry) is not None:
        return None
    if has_changed(entry, study.path):
        return FileProblem(
            "Image file has changed: restore the original file",
            f"{entry.name} is no longer the image that was added: its file has changed. Restore the "
            "original file.",
        )
    return FileProblem(
        "Image file missing: choose “Find missing images…” in the menu",
        f"{entry.name} was not found in {(study.path.parent / entry.path).parent} or beside the study. "
        "Choose “Find missing images…” in the menu to search a folder.",
    )


def locate_image(entry: ImageEntry, study: Study, watch: Watch) -> Path | None:
    """Return the path of an image's file; None if it is missing."""
    watch(0.0, "looking")
    return study.locate(entry)
