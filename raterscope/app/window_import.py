"""Files brought into the study from the window, off the GUI thread; unknown headers are asked about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.formats import UnknownColumns
from raterscope.app.importing import Readings, read_files, store
from raterscope.app.jobs import Jobs
from raterscope.widgets.dialogs.column_mapping import ColumnMappingDialog, MappingField

__all__ = ["STUDIES", "Importing", "new_study_path"]

STUDIES = "Raterscope studies (*.rscope)"

FIELDS = (
    MappingField("annotator", "annotator"),
    MappingField("image", "image"),
    MappingField("x", "x, pixels"),
    MappingField("y", "y, pixels"),
    MappingField("time", "time", required=False),
)


def new_study_path(file: Path) -> Path | None:
    """Choose where a study for a file is made: beside it, under its name; None where it may not be."""
    folder = file if file.is_dir() else file.parent
    if not os.access(folder, os.W_OK):
        return None
    stem = file.name if file.is_dir() else file.stem
    for number in range(1, 1000):
        path = folder / (f"{stem}.rscope" if number == 1 else f"{stem}-{number}.rscope")
        if not path.exists():
            return path
    return None


@dataclass(frozen=True)
class _Lot:
    """Files that come in together, what is known of their columns, and the study they were brought to."""

    paths: tuple[Path, ...]
    study: Path | None
    mappings: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Question:
    """A file with a header that only a person can map."""

    file: Path
    unknown: UnknownColumns


class Importing(QObject):
    """Imports files one lot after the other. Without a study, one is made once the files could be read.

    Signals
    -------
    said(str), refused(str)
        What came in, and what could not.
    """

    said = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._jobs = jobs
        self._window = window
        self._waiting: list[Readings] = []
        document.replaced.connect(self._on_replaced)
        document.refused.connect(self._on_refused)

    def start(self, paths: Sequence[Path]) -> None:
        """Read files, and take them up as soon as that is done and a study is open."""
        self._read(_Lot(tuple(paths), self._study()))

    def _study(self) -> Path | None:
        contents = self._document.contents
        return None if contents is None or self._document.opening else contents.path

    def _on_replaced(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._document.contents is not None:
            for readings in waiting:
                self._store(readings)

    def _on_refused(self) -> None:
        if not self._document.opening:
            self._waiting.clear()

    def _read(self, lot: _Lot) -> None:
        first, *others = lot.paths
        title = f"Reading {len(lot.paths)} files" if others else f"Reading {first.name}"
        job = self._jobs.start(title, partial(_read_or_ask, lot))
        job.finished.connect(partial(self._on_read, lot))
        job.failed.connect(self.refused)

    def _on_read(self, lot: _Lot, answer: Readings | _Question) -> None:
        if isinstance(answer, _Question):
            self._ask(lot, answer)
        elif lot.study is not None and lot.study != self._study():
            self.said.emit(f"{lot.study.name} was closed meanwhile: nothing was imported.")
        elif self._document.opening:
            self._waiting.append(answer)
        elif self._document.contents is not None:
            self._store(answer)
        else:
            self._make_study(lot, answer)

    def _make_study(self, lot: _Lot, readings: Readings) -> None:
        path = new_study_path(lot.paths[0])
        if path is None:
            name, _ = QFileDialog.getSaveFileName(self._window, "Where is the new study to be?", "", STUDIES)
            if not name:
                return
            path = Path(name).with_suffix(".rscope")
        self._waiting.append(readings)
        self._document.open(path, create=True)

    def _store(self, readings: Readings) -> None:
        job = self._document.ask("Importing", partial(store, readings), quiet=False, changes=True)
        job.finished.connect(self._on_stored)

    def _on_stored(self, sentences: Sequence[str]) -> None:
        self.said.emit(" ".join(sentences))

    def _ask(self, lot: _Lot, question: _Question) -> None:
        unknown = question.unknown
        dialog = ColumnMappingDialog(
            unknown.header, unknown.rows, unknown.guess, FIELDS, question.file.name, parent=self._window
        )
        dialog.accepted.connect(partial(self._on_mapped, lot, question, dialog))
        dialog.rejected.connect(partial(self._on_not_mapped, question))
        dialog.open()

    def _on_mapped(self, lot: _Lot, question: _Question, dialog: ColumnMappingDialog) -> None:
        self._read(replace(lot, mappings={**lot.mappings, question.file: dialog.mapping}))

    def _on_not_mapped(self, question: _Question) -> None:
        self.said.emit(f"Nothing was imported: the columns of {question.file.name} are not known.")


def _read_or_ask(lot: _Lot, watch: Watch) -> Readings | _Question:
    try:
        return read_files(lot.paths, mappings=lot.mappings, watch=watch)
    except UnknownColumns as unknown:
        if unknown.file is None:
            raise
        return _Question(unknown.file, unknown)
