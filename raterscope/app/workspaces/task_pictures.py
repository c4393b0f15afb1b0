"""Pictures of tasks, read in the background at reduced size; large view of a task, and its links."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QImage
from PySide6.QtWidgets import QMessageBox, QTabWidget, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import InputError, plain
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.study.records import ImageEntry
from raterscope.app.study.references import has_changed
from raterscope.widgets.painting import ThumbnailCache
from raterscope.widgets.panels.task_content import TaskContentView

SIDE = 256
KEPT = 1000
AT_ONCE = 24


class TaskPictures(QObject):
    """Cache of the pictures of tasks; they are read in the background."""

    ready = Signal(int, object)  # a task's picture; None without a file, a null image for a damaged one

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._entries: Mapping[int, ImageEntry] = {}
        self._cache: OrderedDict[int, QImage] = OrderedDict()
        self._requested: list[int] = []
        self._missing: set[int] = set()
        self._task = LatestTask()

    def forget(self) -> None:
        """Drop everything, because another study is open."""
        self.set_tasks({})

    def set_tasks(self, entries: Mapping[int, ImageEntry]) -> None:
        """Set the tasks, or set them again after missing files were found."""
        changed = entries.keys() != self._entries.keys()
        self._entries = entries
        self._missing.clear()
        if changed:
            self._task.cancel()
            self._cache.clear()
            self._requested.clear()

    def lacks(self, task: int) -> bool:
        """Return whether a task is known to have no picture."""
        return task not in self._entries or task in self._missing

    def get(self, task: int) -> QImage | None:
        """Return a task's picture; if it is not cached, return None and start to read it."""
        if task in self._cache:
            self._cache.move_to_end(task)
            return self._cache[task]
        if task in self._entries and task not in self._missing and task not in self._requested:
            self._requested.append(task)
            self._read_on()
        return None

    def serve(self, cache: ThumbnailCache) -> None:
        """Provide a widget's cache with the pictures that it requests."""
        cache.picture_requested.connect(partial(self._on_requested, cache))
        self.ready.connect(cache.keep)

    def _on_requested(self, cache: ThumbnailCache, task: int) -> None:
        picture = self.get(task)
        if picture is not None or self.lacks(task):
            cache.keep(task, picture)

    def _read_on(self) -> None:
        if self._task.busy or not self._requested:
            return
        # The latest requests come first, because they are on screen now.
        batch, self._requested = self._requested[-AT_ONCE:], self._requested[:-AT_ONCE]
        entries = {task: self._entries[task] for task in batch}
        job = self._document.ask("Looking for pictures", partial(_locate, entries))
        self._task.follow(job, self._on_located, stopped=self._read_on)

    def _on_located(self, paths: Mapping[int, Path | None]) -> None:
        job = self._jobs.start("Reading pictures", partial(_read, paths), quiet=True)
        self._task.follow(job, self._on_pictures, stopped=self._read_on)

    def _on_pictures(self, read: Mapping[int, NDArray[np.uint8] | None]) -> None:
        for task, pixels in read.items():
            if pixels is None:
                self._missing.add(task)
                self.ready.emit(task, None)
                continue
            height, width = pixels.shape[:2]
            image = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
            self._cache[task] = image
            while len(self._cache) > KEPT:
                self._cache.popitem(last=False)
            self.ready.emit(task, image)
        self._read_on()


_CHANGED = Path()
"""In place of a file that is not the imported one."""


def _locate(entries: Mapping[int, ImageEntry], study: Study, watch: Watch) -> dict[int, Path | None]:
    watch(0.0, "looking")
    return {
        task: study.locate(entry) or (_CHANGED if has_changed(entry, study.path) else None)
        for task, entry in entries.items()
    }


def _read(paths: Mapping[int, Path | None], watch: Watch) -> dict[int, NDArray[np.uint8] | None]:
    pictures: dict[int, NDArray[np.uint8] | None] = {}
    for done, (task, path) in enumerate(paths.items()):
        watch(done / len(paths), "reading pictures")
        pictures[task] = None if path is None else _small(path)
    return pictures


def _small(path: Path) -> NDArray[np.uint8]:
    """Read a picture as RGB at the size shown; without a pixel if it is damaged."""
    from PIL import Image

    from raterscope.app.formats.image_heads import load_overview

    try:
        pixels = load_overview(path, SIDE)
    except InputError:
        return np.empty((0, 0, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).convert("RGB")
    image.thumbnail((SIDE, SIDE))
    return np.ascontiguousarray(image, dtype=np.uint8)


class ContentTab:
    """Tab in the centre that shows the content of a task; the same action opens and leaves it."""

    def __init__(self, tabs: QTabWidget, view: TaskContentView) -> None:
        self._tabs, self._view = tabs, view
        self._before = 0
        view.back.clicked.connect(self.toggle)
        view.texts.link_chosen.connect(partial(ask_to_open, view))

    @property
    def open(self) -> bool:
        """Whether the tab is current."""
        return self._tabs.currentWidget() is self._view

    def toggle(self) -> None:
        """Show the content, or the tab that was current before."""
        if self.open:
            self._tabs.setCurrentIndex(self._before)
        else:
            self._before = self._tabs.currentIndex()
            self._tabs.setCurrentWidget(self._view)


LONGEST_SIDE = 4096
"""Maximum pixels of the longer side of a picture on screen; larger pictures are reduced."""


def ask_to_open(parent: QWidget, address: str) -> None:
    """Ask whether to open a link in the web browser."""
    box = QMessageBox(
        QMessageBox.Icon.Question, "Open a link", f"Open {plain(address, 200)} in the web browser?",
        QMessageBox.StandardButton.Open | QMessageBox.StandardButton.Cancel, parent,
    )  # fmt: skip
    box.setTextFormat(Qt.TextFormat.PlainText)  # the address is of an untrusted file
    box.accepted.connect(lambda: QDesktopServices.openUrl(QUrl(address)))
    box.open()


def load_picture(path: Path, watch: Watch) -> NDArray[np.uint8] | None:
    """Read a picture as grey or RGB; None if it cannot be read."""
    from raterscope.app.formats.image_heads import load_overview

    watch(0.0, "reading a picture")
    try:
        return np.ascontiguousarray(load_overview(path, LONGEST_SIDE))
    except InputError:
        return None
