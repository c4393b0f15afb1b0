"""Import from the window, outside the GUI thread, with dialogs for unknown columns, annotators and grids."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.ambiguous_files import TRUTH_WORD, UnknownAnnotators
from raterscope.app.contents import Contents
from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.labels import FIELDS as LABEL_FIELDS
from raterscope.app.formats.labels import VOTES
from raterscope.app.formats.masks.naming import parse_path, strip_suffixes
from raterscope.app.formats.pairs import FIELDS as PAIR_FIELDS
from raterscope.app.formats.points.tables import FIELDS as CLICK_FIELDS
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.tables import COLUMN_NAMES, Table, assign_columns
from raterscope.app.formats.volumes.resampling import OtherGrid
from raterscope.app.importing import Readings, read_files, store
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.labels.imports import tasks_of
from raterscope.app.kinds.masks.imports import (
    NOTHING,
    TELLING,
    MaskOptions,
    StudyImages,
    images_without_file,
    list_sites,
    place_masks,
)
from raterscope.app.kinds.pairs.imports import items_of
from raterscope.app.study import Study
from raterscope.app.study.kinds import question_kinds
from raterscope.app.window.bars import ask
from raterscope.widgets.dialogs.import_dialogs import (
    ColumnMappingDialog,
    MappingField,
    TableKind,
    WhoMarkedDialog,
)

STUDIES = "Raterscope studies (*.rscope)"

CLICKS = tuple(MappingField(name, words, needed) for name, words, needed in CLICK_FIELDS)
LABELS = tuple(MappingField(name, words, needed, name == "label") for name, words, needed in LABEL_FIELDS)
"""Several columns of labels are as many questions."""

WIDE = (
    MappingField("task", "task"), MappingField(VOTES, "labels of an annotator", repeats=True),
    MappingField("truth", "true label", required=False),
)  # fmt: skip
PAIRS = tuple(MappingField(name, words, needed) for name, words, needed in PAIR_FIELDS)
TRUTHS = (MappingField("task", "task"), MappingField("truth", "true label"))


def new_study_path(file: Path) -> Path | None:
    """Name a new study beside a file; None if its folder cannot be written."""
    folder = file if file.is_dir() else file.parent
    if not os.access(folder, os.W_OK):
        return None
    stem = file.name if file.is_dir() else strip_suffixes(file)
    for number in range(1, 1000):
        path = folder / (f"{stem}.rscope" if number == 1 else f"{stem}-{number}.rscope")
        if not path.exists():
            return path
    return None


@dataclass(frozen=True)
class _Batch:
    """Files that are imported together, the study they belong to, and the answers of the user.

    `sources` keeps what was read until all questions are answered.
    """

    paths: tuple[Path, ...]
    study: Path | None
    mappings: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)
    reading: MaskOptions = TELLING
    may_resample: bool = False
    sources: Sources = field(default_factory=partial(Sources, is_lasting=True))


_Question = UnknownColumns | UnknownAnnotators | OtherGrid
"""A question to the user."""


class Importer(QObject):
    """Imports files. Without an open study, one is created as soon as the files have been read.

    Signals
    -------
    message(str), refused(str)
        Imported annotations, and errors.
    """

    message = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._jobs = jobs
        self._window = window
        self._waiting: list[tuple[_Batch, Readings]] = []
        document.replaced.connect(self._on_replaced)
        document.refused.connect(self._on_refused)

    def start(self, paths: Sequence[Path]) -> None:
        """Read files, and import them as soon as they are read and a study is open."""
        self._read(_Batch(tuple(paths), self._study()))

    def _study(self) -> Path | None:
        contents = self._document.contents
        return None if contents is None or self._document.opening else contents.path

    def _on_replaced(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._document.contents is not None:
            for batch, readings in waiting:
                self._store(batch, readings)

    def _on_refused(self) -> None:
        """Ask for another file if the new study could not be created. What was read is kept."""
        if self._document.opening:
            return
        waiting, self._waiting = self._waiting, []
        if waiting and self._document.contents is None:
            QTimer.singleShot(0, self, partial(self._ask_place, waiting))  # after the error is shown

    def _read(self, batch: _Batch) -> None:
        contents = self._document.contents
        if contents is None or not any(contents.of(kind) for kind in question_kinds()):
            self._read_beside(_at_hand(contents), batch)
        else:  # images may show tasks or items that only the study knows
            job = self._document.ask("Looking for tasks", _tasks)
            job.finished.connect(partial(self._on_tasks, _at_hand(contents), batch))

    def _on_tasks(self, at_hand: StudyImages, batch: _Batch, tasks: tuple[str, ...]) -> None:
        self._read_beside(replace(at_hand, tasks=tasks), batch)

    def _read_beside(self, at_hand: StudyImages, batch: _Batch) -> None:
        work = partial(_read_or_ask, batch, at_hand)
        job = self._jobs.start(f"Reading {_of(batch.paths)}", work, costly=True)
        job.finished.connect(partial(self._on_read, batch))
        job.failed.connect(partial(self._on_failed, batch))

    def _on_failed(self, batch: _Batch, reason: str) -> None:
        batch.sources.close()
        self.refused.emit(reason)

    def _on_read(self, batch: _Batch, answer: Readings | _Question) -> None:
        if isinstance(answer, Readings):
            batch.sources.close()
        if isinstance(answer, UnknownColumns):
            self._ask_columns(batch, answer)
        elif isinstance(answer, UnknownAnnotators):
            self._ask_annotators(batch, answer)
        elif isinstance(answer, OtherGrid):
            self._ask_resampling(batch, answer)
        elif batch.study is not None and batch.study != self._study():
            self.message.emit(f"Nothing was imported: {batch.study.name} was closed.")
        elif self._document.opening:
            self._waiting.append((batch, answer))
        elif self._document.contents is not None:
            self._store(batch, answer)
        else:
            self._make_study(batch, answer)

    def _make_study(self, batch: _Batch, readings: Readings) -> None:
        path = new_study_path(batch.paths[0])
        if path is None:
            self._ask_place([(batch, readings)])
        else:
            self._waiting.append((batch, readings))
            self._document.open(path, create=True)

    def _ask_place(self, waiting: Sequence[tuple[_Batch, Readings]]) -> None:
        name, _ = QFileDialog.getSaveFileName(self._window, "Save the new study as", "", STUDIES)
        if name:
            self._waiting += waiting
            self._document.open(Path(name).with_suffix(".rscope"), create=True)
        else:
            self._on_unanswered("no file was chosen for the new study")

    def _store(self, batch: _Batch, readings: Readings) -> None:
        contents = self._document.contents
        assert contents is not None
        work = partial(_store, readings, batch.may_resample)
        title = f"the import of {_of(batch.paths)}"
        unsaved = Unsaved(contents.path, "Importing", title, work, self._on_stored)
        self._document.keep(unsaved, quiet=False, costly=True)

    def _on_stored(self, sentences: Sequence[str]) -> None:
        self.message.emit(" ".join(sentences))

    def _ask_columns(self, batch: _Batch, unknown: UnknownColumns) -> None:
        file = _file_of(unknown)
        kinds = (
            TableKind("clicks", CLICKS, _guess(unknown, CLICKS)),
            TableKind("labels", LABELS, _guess(unknown, LABELS)),
            TableKind("labels, one column per annotator", WIDE, _guess(unknown, WIDE)),
            TableKind("true labels", TRUTHS, _guess(unknown, TRUTHS)),
            TableKind("pairs", PAIRS, _guess(unknown, PAIRS)),
        )
        fields = {*unknown.missing, *unknown.guess.values()}
        chosen = 0 if {"x", "y"} & fields else 4 if {"left", "right"} & fields else 1
        dialog = ColumnMappingDialog(
            unknown.header, unknown.rows, kinds, chosen, file.name, parent=self._window
        )
        dialog.accepted.connect(partial(self._on_mapped, batch, file, dialog))
        dialog.rejected.connect(
            partial(self._on_unanswered, f"the columns of {file.name} were not assigned", batch)
        )
        dialog.open()

    def _on_mapped(self, batch: _Batch, file: Path, dialog: ColumnMappingDialog) -> None:
        mapping = dict.fromkeys(dialog.header, "ignore") | dialog.mapping
        self._read(replace(batch, mappings={**batch.mappings, file: mapping}))

    def _ask_annotators(self, batch: _Batch, unknown: UnknownAnnotators) -> None:
        names = [plain(file.name, 200) for file in unknown.files]
        guess = [unknown.guess[file] for file in unknown.files]
        left_here = [file in unknown.detections for file in unknown.files]
        dialog = WhoMarkedDialog(
            names, guess, partial(_by_pattern, unknown.files), detections=left_here, parent=self._window
        )
        dialog.accepted.connect(partial(self._on_named, batch, unknown, dialog))
        problem = f"no annotator was named for {plain(unknown.files[0].name)}"
        dialog.rejected.connect(partial(self._on_unanswered, problem, batch))
        dialog.open()

    def _on_named(self, batch: _Batch, unknown: UnknownAnnotators, dialog: WhoMarkedDialog) -> None:
        pairs = zip(unknown.files, dialog.names, strict=True)
        names = {file: TRUTH_WORD if name is None else name for file, name in pairs}
        by_hand = {**batch.reading.by_hand, **names}
        reading = replace(batch.reading, naming=dialog.pattern or batch.reading.naming, by_hand=by_hand)
        self._read(replace(batch, reading=reading))

    def _ask_resampling(self, batch: _Batch, other: OtherGrid) -> None:
        if not other.resamplable:
            batch.sources.close()
            self.refused.emit(str(other))
            return
        ask(
            self._window,
            "Masks on another grid",
            str(other),
            "Masks can be resampled to the grid of their image. Edges may shift slightly.",
            "Resample",
            "Cancel",
            partial(self._read, replace(batch, may_resample=True)),
            partial(self._on_unanswered, "the masks were drawn on another grid", batch),
        )

    def _on_unanswered(self, problem: str, batch: _Batch | None = None) -> None:
        if batch is not None:
            batch.sources.close()
        self.message.emit(f"Nothing was imported: {problem}.")


def _of(paths: Sequence[Path]) -> str:
    return plain(paths[0].name) if len(paths) == 1 else f"{len(paths):,} files"


def _at_hand(contents: Contents | None) -> StudyImages:
    if contents is None:
        return NOTHING
    return StudyImages(contents.images, contents.path, clicked=images_without_file(contents.items))


def _file_of(unknown: UnknownColumns) -> Path:
    assert unknown.file is not None
    return unknown.file


def _guess(unknown: UnknownColumns, fields: Sequence[MappingField]) -> dict[str, str]:
    """Guess what the columns hold if the table is of a given kind."""
    cells = tuple(zip(*unknown.rows, strict=True)) or ((),) * len(unknown.header)
    table = Table(_file_of(unknown), unknown.header, cells, range(len(unknown.rows)))
    assigned = assign_columns(table, (), [field.name for field in fields if field.name in COLUMN_NAMES], None)
    return {column: name for name, column in assigned.items()}


def _tasks(study: Study, _watch: Watch) -> tuple[str, ...]:
    return (*tasks_of(study), *items_of(study))


def _by_pattern(files: Sequence[Path], number: int, pattern: str) -> str | None:
    try:
        match = parse_path(files[number], pattern)
    except InputError as error:
        raise ValueError(str(error)) from error
    return None if match is None else match.annotator


def _read_or_ask(batch: _Batch, at_hand: StudyImages, watch: Watch) -> Readings | _Question:
    try:
        readings = read_files(
            batch.paths, mappings=batch.mappings, reading=batch.reading, at_hand=at_hand, asks=True,
            sources=batch.sources, watch=watch,
        )  # fmt: skip
        # Before a study is created: ask about masks that do not fit their image.
        sites = list_sites(at_hand.entries, readings.images, readings.volumes)
        place_masks(readings.attributed, sites, may_resample=batch.may_resample)
    except (UnknownAnnotators, OtherGrid) as question:
        return question
    except UnknownColumns as unknown:
        if unknown.file is None:
            raise
        return unknown
    return readings


def _store(readings: Readings, may_resample: bool, study: Study, watch: Watch) -> list[str]:
    return store(readings, study, watch, may_resample=may_resample)
