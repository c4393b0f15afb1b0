"""What leaves the study from the window: the Export menu of each kind, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.document import Document
from raterscope.app.exports import EXPORTS, FORMATS, Export, Request, write_export
from raterscope.app.formats.export import safe
from raterscope.app.formats.masks.export import REGULAR
from raterscope.app.formats.masks.naming import bare
from raterscope.app.formats.volumes.resampling import why_not_regular
from raterscope.app.study import Study
from raterscope.app.window.asking import ask

__all__ = ["Exporting", "entries_of"]


def entries_of(kind: str) -> Iterator[tuple[str, Export, bool]]:
    """List the entries of a kind's menu: words, what, and whether it is de-identified."""
    for export in EXPORTS:
        if kind in export.kinds:
            yield f"{export.title}…", export, False
            if export.deidentifies and any(FORMATS[name].suffix == ".dcm" for name in export.formats):
                yield f"{export.title}, de-identified…", export, True


class Exporting(QObject):
    """Asks where something of the study goes, and writes it in the study's thread.

    Signals
    -------
    said(str)
        What is written.
    """

    said = Signal(str)

    def __init__(self, document: Document, item: Callable[[], int | None], window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._item = item
        self._window = window

    def start(self, export: Export, deidentify: bool = False) -> None:
        """Ask for a file and a format, or for a folder where several files come, and write."""
        contents = self._document.contents
        if contents is None:
            return
        if export.by_question and len(contents.of(export.kinds[0])) > 1:
            self._start_folder(contents, export)
            return
        item = self._item() if export.by_case else None
        formats = [name for name in export.formats if not deidentify or FORMATS[name].suffix == ".dcm"]
        filters = {FORMATS[name].words: name for name in formats}
        proposed = _proposed(contents, export, item, FORMATS[formats[0]].suffix)
        name, chosen = QFileDialog.getSaveFileName(
            self._window, f"Export {export.title.lower()}", str(proposed), ";;".join(filters)
        )
        if not name:
            return
        format_name = filters.get(chosen, formats[0])
        path = _ended(Path(name), format_name, formats)
        items = () if item is None else (item,)
        request = Request(export.what, format_name, path, items, deidentify)
        entries = contents.images if item is None else [contents.image(item)]
        reasons = [why_not_regular(entry.lattice) for entry in entries if entry is not None]
        reason = next(filter(None, reasons), "")
        if format_name not in REGULAR or not reason:
            self._write(export, request)
            return
        ask(
            self._window,
            f"Export {export.title.lower()}",
            "Resample to a regular grid?",
            f"{reason}. This format holds regular grids alone: edges may shift by half a voxel. "
            "DICOM SEG and RTSTRUCT keep every slice where it is.",
            "Resample",
            "Cancel",
            partial(self._write, export, replace(request, resample=True)),
        )

    def _start_folder(self, contents: Contents, export: Export) -> None:
        """Ask for the folder of a file for each question, and for their format where there are several."""
        title = f"Export {export.title.lower()}"
        formats = {FORMATS[name].words: name for name in export.formats}
        chosen, sure = next(iter(formats)), True
        if len(formats) > 1:
            chosen, sure = QInputDialog.getItem(self._window, title, "Written as", list(formats), 0, False)
        many = len(contents.of(export.kinds[0]))
        words = f"{title}: a folder for the files of {many:,} questions"
        folder = sure and QFileDialog.getExistingDirectory(self._window, words, str(contents.path.parent))
        if folder:
            self._write(export, Request(export.what, formats[chosen], Path(folder)))

    def _write(self, export: Export, request: Request) -> None:
        title = f"Exporting {export.title.lower()}"
        job = self._document.read_beside(title, partial(_write, export, request), lasting=True)
        job.finished.connect(self._on_written)

    def _on_written(self, words: str) -> None:
        self.said.emit(words)


def _proposed(contents: Contents, export: Export, item: int | None, suffix: str) -> Path:
    image = None if item is None else contents.image(item)
    stem = contents.path.stem if image is None else safe(bare(Path(image.name)))
    return contents.path.with_name(f"{stem}-{export.what}{suffix}")


def _ended(path: Path, format_name: str, formats: list[str]) -> Path:
    """Give the name the ending of the format, in place of another format's."""
    name = path.name
    for other in formats:
        name = name.removesuffix(FORMATS[other].suffix)
    foreign = name == path.name and path.suffix  # what a person wrote so is meant so
    return path if foreign else path.with_name(name + FORMATS[format_name].suffix)


def _write(export: Export, request: Request, study: Study, watch: Watch) -> str:
    written = write_export(export, study, request, watch)
    if len(written) == 1:
        return f"{written[0]} is written."
    return f"{written[0]} and {len(written) - 1:,} more are written."
