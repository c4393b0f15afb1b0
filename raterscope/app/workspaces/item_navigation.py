"""Navigation between items: the item on screen, its scene and pixels, and the item that follows."""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.formats.pyramids import is_large
from raterscope.app.jobs import Job, Jobs
from raterscope.app.session import LatestTask, TaskGroup
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.references import has_changed
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.app.workspaces.runs import Runs

__all__ = [
    "ItemNavigation",
    "Pixels",
    "SceneLoader",
    "apart",
    "why_missing",
]


PIXELS_KEPT = 256 * 1024**2
"""Some seventy smears: a review goes on and seldom far back, and what is read again is there in 40 ms."""


class Pixels(Protocol):
    """What is kept of an image's pixels."""

    @property
    def nbytes(self) -> int:
        """How much memory they take."""


class Scene(Protocol):
    """What is shown of one image."""

    @property
    def image(self) -> ImageEntry:
        """The image."""

    @property
    def path(self) -> Path | None:
        """Its file or folder; None where that is missing."""


class SceneLoader(QObject):
    """Reads scenes and pixels; keeps the pixels of the last images, as many as fit.

    Parameters
    ----------
    document : Document
    jobs : Jobs
    read : callable
        ``read(image, run, study, watch)`` gives the scene, in the study's thread.
    load : callable
        ``load(entry, path, watch)`` gives the pixels, in a thread of its own.

    Signals
    -------
    loaded(scene)
    pixels(image, pixels)
    loading(str)
        What is being done to the pixels of the image wanted, where it takes its time.
    refused(str)
    """

    loaded = Signal(object)
    pixels = Signal(int, object)
    loading = Signal(str)
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        read: Callable[[int, int | None, Study, Watch], Scene],
        load: Callable[[ImageEntry, Path, Watch], Pixels],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._read = read
        self._load_pixels = load
        self._wanted: int | None = None
        self._reading, self._loads = LatestTask(), TaskGroup()
        self._pixels: OrderedDict[int, Pixels] = OrderedDict()
        self._loading: set[int] = set()
        self._scene: Scene | None = None
        self._again: set[int] = set()

    def forget(self) -> None:
        """Drop everything: another study is open."""
        self._reading.cancel()
        self._loads.cancel()  # images of another study bear the same numbers
        self._wanted = self._scene = None
        self._again.clear()
        self._pixels.clear()
        self._loading.clear()

    def show(self, image: int, run: int | None = None) -> None:
        """Ask for an image's scene with the fusion of a run, or of the latest one that has it."""
        self._wanted = image
        job = self._document.ask("Reading an image", partial(self._read, image, run))
        self._reading.follow(job, self._on_scene)

    def load_again(self) -> None:
        """Load the pixels of the image shown anew, once: what was kept of them turned out damaged."""
        scene = self._scene
        if scene is not None and scene.image.id == self._wanted and self._wanted not in self._again:
            self._again.add(scene.image.id)
            self._pixels.pop(scene.image.id, None)
            self._load(scene.image, scene.path)

    def prefetch(self, entry: ImageEntry) -> None:
        """Load the pixels of an image that is likely to be next."""
        if entry.id not in self._pixels and entry.id not in self._loading:
            job = self._document.ask("Looking for an image", partial(_locate, entry))
            self._loads.follow(job, partial(self._load, entry))

    def _on_scene(self, scene: Scene) -> None:
        self._scene = scene
        self.loaded.emit(scene)
        if scene.image.id in self._pixels:
            self._pixels.move_to_end(scene.image.id)
            self.pixels.emit(scene.image.id, self._pixels[scene.image.id])
        else:
            self._load(scene.image, scene.path)

    def _load(self, entry: ImageEntry, path: Path | None) -> None:
        image = entry.id
        if path is None or image in self._loading:
            return
        self._loading.add(image)
        quiet = not is_large(entry.width, entry.height)  # else it takes seconds, and may be cancelled
        job = self._jobs.start(f"Loading {path.name}", partial(self._load_pixels, entry, path), quiet=quiet)
        self._loads.follow(
            job,
            partial(self._on_pixels, image),
            progressed=None if quiet else partial(self._on_progress, image),
            failed=partial(self._on_no_pixels, image),
            stopped=partial(self._on_load_ended, image),
        )

    def _on_pixels(self, image: int, array: Pixels) -> None:
        self._pixels[image] = array
        while len(self._pixels) > 1 and sum(kept.nbytes for kept in self._pixels.values()) > PIXELS_KEPT:
            self._pixels.popitem(last=False)
        if image == self._wanted:
            self.pixels.emit(image, array)
        self._on_load_ended(image)

    def _on_no_pixels(self, image: int, sentence: str) -> None:
        if image == self._wanted:
            self.refused.emit(sentence)

    def _on_progress(self, image: int, job: Job) -> None:
        if image == self._wanted:
            self.loading.emit(f"{job.words}: {job.fraction:.0%}")

    def _on_load_ended(self, image: int) -> None:
        self._loading.discard(image)
        if image == self._wanted:
            self.loading.emit("")


def apart(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Put pixels in memory of their own, which the system has back when they go.

    The C library keeps a heap for each few threads; among what else is in those, large arrays that come and
    go in threads of their own leave gaps that no other thread fills.
    """
    found = np.frombuffer(mmap.mmap(-1, pixels.nbytes), dtype=np.uint8).reshape(pixels.shape)
    np.copyto(found, pixels)
    return found


def why_missing(entry: ImageEntry, study: Study) -> str:
    """Say why there is no file to show, where there should be one; empty else."""
    if entry.path is None or study.locate(entry) is not None:
        return ""
    if has_changed(entry, study.path):
        return (
            f"{entry.name} is no longer the image that was added: its file was changed; put the old one back."
        )
    return (
        f"{entry.name} is not where it was, nor beside the study; "
        "the menu's “Find missing images…” looks in another folder."
    )


def _locate(entry: ImageEntry, study: Study, watch: Watch) -> Path | None:
    watch(0.0, "looking")
    return study.locate(entry)


_MODIFIERS = (Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_AltGr, Qt.Key.Key_Meta)
_LOOKING = (QEvent.Type.Wheel, QEvent.Type.MouseButtonPress, QEvent.Type.KeyPress)


class ItemNavigation(QObject):
    """Joins queue, runs and loader: asks for the scene of the image that is wanted, and for what follows.

    Before anything is fused the first image is on screen. Once it is known which is the most disputed, that
    one takes its place, unless somebody has begun to look at the first.

    Parameters
    ----------
    document : Document
    queueing : Queueing
    loader : SceneLoader
    runs : Runs
    kind : str
        Of annotation.
    canvas : QWidget
        Whoever uses wheel, mouse or keys on it looks at what is there.

    Signals
    -------
    arrived(scene)
        The scene to be shown.
    """

    arrived = Signal(object)

    def __init__(
        self,
        document: Document,
        queueing: ReviewQueue,
        loader: SceneLoader,
        runs: Runs,
        kind: str,
        canvas: QWidget,
    ) -> None:
        super().__init__(runs)
        self._document = document
        self._queueing = queueing
        self._loader = loader
        self._runs = runs
        self._kind = kind
        self._on_screen: int | None = None
        self._then: Callable[[], object] | None = None
        """What is to be done once the image that is wanted is on screen."""
        self._for_now = False
        """Whether the image on screen is there for want of a better one."""
        self._canvas = canvas
        queueing.ordered.connect(self._on_queue_ordered)
        loader.loaded.connect(self._on_loaded)
        runs.chosen.connect(self.again)
        runs.chosen.connect(self._on_results)
        runs.changed.connect(self._on_results)

    def reset(self) -> None:
        """Begin anew: another study."""
        self._loader.forget()
        self._on_screen = None
        self._then = None
        self._keep()
        self._queueing.reset()

    def refresh(self) -> None:
        """Read what has come since, and show the image on screen anew; without any run yet, the first."""
        self._queueing.reread(())
        images = self._images()
        if self._queueing.current in images:
            self.again()
        elif images and not self._has_runs():
            self.show(images[0])
            if not self._for_now:
                self._for_now = True
                for place in (self._canvas, *self._canvas.findChildren(QWidget)):
                    place.installEventFilter(self)

    def eventFilter(self, _place: QObject, event: QEvent) -> bool:
        """Notice that somebody looks at the image on screen."""
        if event.type() in _LOOKING and not (isinstance(event, QKeyEvent) and event.key() in _MODIFIERS):
            self._keep()
        return False

    def _keep(self) -> None:
        """Leave the image on screen there, whatever comes."""
        if self._for_now:
            self._for_now = False
            for place in (self._canvas, *self._canvas.findChildren(QWidget)):
                place.removeEventFilter(self)

    def show(self, image: int | None) -> None:
        """Ask for an image's scene."""
        self._then = None
        if image is not None:
            self._queueing.select(image)
            self._loader.show(image, self._runs.run_of(image))

    def again(self) -> None:
        """Ask for the scene of the present image once more."""
        self.show(self._queueing.current)

    def choose(self, image: int) -> None:
        """Go to an image of the queue, unless it is on screen."""
        self._keep()
        if image != self._on_screen:
            self.show(image)

    def visit(self, image: int, then: Callable[[], object]) -> None:
        """Go to an image, and do something there unless another one is wanted meanwhile."""
        self._keep()
        self.show(image)
        self._then = then

    def _images(self) -> list[int]:
        contents = self._document.contents
        return [entry.id for entry in contents.of(self._kind)] if contents else []

    def _has_runs(self) -> bool:
        contents = self._document.contents
        return contents is not None and bool(contents.runs_of(self._kind))

    def _on_queue_ordered(self) -> None:
        """Begin with the most disputed image, now that it is known."""
        images, disputed = self._images(), self._queueing.most_disputed()
        if images and self._queueing.current is None:
            self.show(disputed or images[0])
        elif self._for_now and disputed is not None and self._has_runs():
            self._keep()
            self.show(disputed)

    def _on_loaded(self, scene: Any) -> None:
        self._on_screen = scene.image.id
        then, self._then = self._then, None
        self.arrived.emit(scene)
        self._runs.list_runs(scene.image, scene.run)
        contents, following = self._document.contents, self._queueing.after(scene.image.id)
        entry = contents.image(following) if contents and following is not None else None
        if entry is not None:
            self._loader.prefetch(entry)
        if then is not None:
            then()

    def _on_results(self) -> None:
        self._queueing.reread(self._images())
