"""Export of figures: choose a file, name the run on screen, write in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, Signal
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import safe, write_table, write_whole
from raterscope.app.jobs import Jobs
from raterscope.app.study import RunEntry
from raterscope.app.study.runs import run_name
from raterscope.figures.table import PlotTable
from raterscope.widgets.figure_menu import Leaving, PictureMenu

__all__ = ["Figures"]

WORDS = {".svg": "Drawings (*.svg)", ".png": "Pictures (*.png)", ".csv": "Tables (*.csv)"}
AT_ONCE = 10_000
"""Rows between two looks whether to go on."""


class Figures(QObject):
    """Listens to the menus of figures.

    Parameters
    ----------
    document : Document
    jobs : Jobs
    item : callable
        Gives the number of the image on screen.
    run : callable
        Gives the run on screen; None where nothing was fused.
    window : QWidget

    Signals
    -------
    said, refused : str
        What was done, and what could not be.
    """

    message = Signal(str)
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        item: Callable[[], int | None],
        run: Callable[[], RunEntry | None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document, self._jobs, self._window = document, jobs, window
        self._item, self._run = item, run
        self._folder: Path | None = None

    def listen_to(self, place: QWidget) -> None:
        """Write from now on what leaves the figures of a part of the window."""
        for menu in place.findChildren(PictureMenu):
            menu.caption = self._caption
            menu.leaving.connect(self.save)
            menu.said.connect(self.message)

    def save(self, leaving: Leaving) -> None:
        """Ask for a file, and write."""
        title = f"Save {leaving.title}"
        words = WORDS[leaving.suffix]
        name, _ = QFileDialog.getSaveFileName(self._window, title, str(self._proposed(leaving)), words)
        if not name:
            return
        path = Path(name)
        if path.suffix.casefold() != leaving.suffix:
            path = path.with_name(path.name + leaving.suffix)
        self._folder = path.parent
        job = self._jobs.start(title, partial(_write, leaving, path, self._caption()))
        job.finished.connect(self._on_written)
        job.failed.connect(self.refused)

    def _caption(self) -> str:
        """Name the run on screen."""
        run = self._run()
        return "" if run is None else run_name(run)

    def _on_written(self, words: str) -> None:
        self.message.emit(words)

    def _proposed(self, leaving: Leaving) -> Path:
        contents = self._document.contents
        folder, stem = (Path.home(), "") if contents is None else (contents.path.parent, contents.path.stem)
        item = self._item() if leaving.of_image else None
        image = None if contents is None or item is None else contents.image(item)
        of = stem if image is None else safe(Path(image.name).stem)
        run = self._run()
        which = "" if run is None else f"run-{run.id}"
        words = "-".join(filter(None, (of, safe(leaving.title.casefold()), which)))
        return (self._folder or folder) / f"{words}{leaving.suffix}"


def _write(leaving: Leaving, path: Path, run: str, watch: Watch) -> str:
    content = leaving.content
    if isinstance(content, PlotTable):
        write_table(path, content.columns, _watched(content, watch))
    else:
        write_whole(path, _encoded(content, path) if isinstance(content, QImage) else content)
    return f"Saved {leaving.title}{f' of {run}' if run else ''} to {path}."


def _watched(table: PlotTable, watch: Watch) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(table.rows()):
        if not number % AT_ONCE:
            watch(0.0, f"{number:,} rows saved")
        yield row


def _encoded(image: QImage, path: Path) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not QImageWriter(buffer, QByteArray(b"png")).write(image):
        raise InputError("is too large for an image file", file=path)
    return bytes(buffer.data().data())
