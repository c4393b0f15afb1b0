"""Files brought into the study from the window, off the GUI thread; unknown headers are asked about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.formats import UnknownColumns
from raterscope.app.importing import Readings, read_files, store
from raterscope.app.jobs import Jobs
from raterscope.widgets.dialogs.column_mapping import ColumnMappingDialog, MappingField

__all__ = ["Importing", "new_study_path"]

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
class _Question:
    """Files of which one has a header that only a person can map."""

    paths: tuple[Path, ...]
    mappings: Mapping[Path, Mapping[str, str]]
    file: Path
    unknown: UnknownColumns


class Importing(QObject):
    """Imports files one lot after the other; a lot waits until a study is open.

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
        self._waiting: list[tuple[Path, ...]] = []
        document.replaced.connect(self._on_replaced)
        document.refused.connect(self._on_refused)

    def start(self, paths: Sequence[Path]) -> None:
        """Import files, now or as soon as the study that is being opened is there."""
        if self._document.opening:
            self._waiting.append(tuple(paths))
        else:
            self._read(tuple(paths), {})

    def _on_replaced(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._document.contents is not None:
            for paths in waiting:
                self._read(paths, {})

    def _on_refused(self) -> None:
        if not self._document.opening:
            self._waiting.clear()

    def _read(self, paths: tuple[Path, ...], mappings: Mapping[Path, Mapping[str, str]]) -> None:
        title = f"Reading {paths[0].name}" if len(paths) == 1 else f"Reading {len(paths)} files"
        job = self._jobs.start(title, partial(_read_or_ask, paths, mappings))
        job.finished.connect(self._on_read)
        job.failed.connect(self.refused)

    def _on_read(self, answer: Readings | _Question) -> None:
        if isinstance(answer, _Question):
            self._ask(answer)
        elif self._document.contents is not None:
            job = self._document.ask("Importing", partial(store, answer), quiet=False, changes=True)
            job.finished.connect(self._on_stored)

    def _on_stored(self, sentences: Sequence[str]) -> None:
        self.said.emit(" ".join(sentences))

    def _ask(self, question: _Question) -> None:
        unknown = question.unknown
        dialog = ColumnMappingDialog(
            unknown.header, unknown.rows, unknown.guess, FIELDS, question.file.name, parent=self._window
        )
        dialog.accepted.connect(partial(self._on_mapped, question, dialog))
        dialog.open()

    def _on_mapped(self, question: _Question, dialog: ColumnMappingDialog) -> None:
        mappings = {**question.mappings, question.file: dialog.mapping}
        self._read(question.paths, mappings)


def _read_or_ask(
    paths: tuple[Path, ...], mappings: Mapping[Path, Mapping[str, str]], watch: Watch
) -> Readings | _Question:
    try:
        return read_files(paths, mappings=mappings, watch=watch)
    except UnknownColumns as unknown:
        if unknown.file is None:
            raise
        return _Question(paths, mappings, unknown.file, unknown)
