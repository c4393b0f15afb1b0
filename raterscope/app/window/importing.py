"""Import from the window, outside the GUI thread: a preview, and dialogs for what files do not say."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.ambiguous_files import TRUTH_WORD, UnknownAnnotators
from raterscope.app.contents import Contents
from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.labels import FIELDS as LABEL_FIELDS
from raterscope.app.formats.labels import TAGS, VOTES
from raterscope.app.formats.masks.naming import (
    RATERS_IN_STRUCTURES,
    parse_path,
    strip_suffixes,
    suggest_structure_naming,
)
from raterscope.app.formats.pairs import FIELDS as PAIR_FIELDS
from raterscope.app.formats.points.tables import FIELDS as CLICK_FIELDS
from raterscope.app.formats.records import LabelTable
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.tables import COLUMN_NAMES, Table, assign_columns
from raterscope.app.formats.volumes.resampling import OtherGrid
from raterscope.app.import_preview import (
    NAME_KINDS,
    ImportPreview,
    NameChanges,
    NameKind,
    change_names,
    preview_readings,
)
from raterscope.app.importing import Readings, TableLayout, read_files, store
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.labels.imports import tasks_of
from raterscope.app.kinds.masks.imports import (
    DEFAULT_MASK_OPTIONS,
    NOTHING,
    MaskOptions,
    StudyImages,
    images_without_file,
)
from raterscope.app.kinds.masks.placement import AttributedMask
from raterscope.app.kinds.pairs.imports import items_of
from raterscope.app.study import Study
from raterscope.app.study.kinds import question_kinds
from raterscope.app.study.new_study import new_study
from raterscope.app.window.bars import ask
from raterscope.widgets.dialogs.import_dialogs import (
    AnnotatorNamesDialog,
    ColumnMappingDialog,
    MappingField,
    TableKind,
)
from raterscope.widgets.dialogs.import_preview import ImportDialog, ImportOffer, NamesOffer, TableOffer

CLICKS = tuple(MappingField(name, words, needed) for name, words, needed in CLICK_FIELDS)
LABELS = tuple(
    MappingField(name, words, needed, name in ("label", "content")) for name, words, needed in LABEL_FIELDS
)
"""Several columns of labels are as many questions."""

TAGGED = tuple(replace(part, name=TAGS, label="tags") if part.name == "label" else part for part in LABELS)
WIDE = (
    MappingField("task", "task"), MappingField(VOTES, "labels of an annotator", repeats=True),
    MappingField("truth", "true label", required=False),
)  # fmt: skip
PAIRS = tuple(MappingField(name, words, needed) for name, words, needed in PAIR_FIELDS)
TRUTHS = (MappingField("task", "task"), MappingField("truth", "true label"))
_TASKS = (MappingField("task", "task"), MappingField("content", "content of the task", repeats=True))
_POINTS = (
    MappingField("image", "image"), MappingField("x", "x, pixels"), MappingField("y", "y, pixels"),
    MappingField("score", "score", required=False),
)  # fmt: skip
_TITLES: Mapping[NameKind, str] = {"annotator": "Annotators", "structure": "Structures", "class": "Classes"}
_MOST_JOINED = 4


def table_kinds(unknown: UnknownColumns) -> tuple[tuple[TableKind, ...], int]:
    """Return the types as which a table with unknown columns can be read, and the likeliest."""
    fields = {*unknown.missing, *unknown.guess.values()}
    chosen = 0 if {"x", "y"} & fields else 4 if {"left", "right"} & fields else 1
    return _kinds(unknown.header, unknown.rows, _file_of(unknown)), chosen


def _kinds(header: Sequence[str], rows: Sequence[Sequence[str]], file: Path) -> tuple[TableKind, ...]:
    named = (
        ("clicks", CLICKS), ("labels", LABELS), ("labels, one column per annotator", WIDE),
        ("true labels", TRUTHS), ("pairs", PAIRS),
    )  # fmt: skip
    kinds = [TableKind(label, fields, _guess(header, rows, file, fields)) for label, fields in named]
    tags = {column: TAGS if name == "label" else name for column, name in kinds[1].guess.items()}
    return (*kinds, TableKind("labels, several tags each", TAGGED, tags))


def _file_of(unknown: UnknownColumns) -> Path:
    assert unknown.file is not None
    return unknown.file


def _guess(
    header: Sequence[str], rows: Sequence[Sequence[str]], file: Path, fields: Sequence[MappingField]
) -> dict[str, str]:
    """Guess what the columns hold if the table is of a given kind."""
    cells = tuple(zip(*rows, strict=True)) or ((),) * len(header)
    table = Table(file, tuple(header), cells, range(len(rows)))
    assigned = assign_columns(table, (), [part.name for part in fields if part.name in COLUMN_NAMES], None)
    return {column: name for name, column in assigned.items()}


def offer_import(readings: Readings, preview: ImportPreview, study: Path | None, target: str) -> ImportOffer:
    """Describe an import for the dialog.

    `study`: proposed file of a new study. `target`: name of the open study.
    """
    masks = readings.attributed
    names = [
        NamesOffer(kind, title, preview.names[kind], preview.suggested.of(kind), programs)
        for kind, title in _TITLES.items()
        for programs in [preview.programs if kind == "annotator" else None]
    ]
    return ImportOffer(
        contents=[f"{words[:1].upper()}{words[1:]}" for words in preview.contents],
        tables=[_table_offer(layout) for layout in preview.layouts],
        names=names,
        joined=_joined_in_words(names),
        listed=_listed(readings),
        notices=preview.notices,
        study=study,
        target=target,
        unsized=len(preview.unsized),
        extent=preview.extent or (1, 1),
        rater_example=_rater_example(readings),
        labelled=any(isinstance(table, LabelTable) for table in readings.labels),
        has_raters=any(mask.structure != mask.mask.structure and _ends_with_rater(mask) for mask in masks),
    )


def _table_offer(layout: TableLayout) -> TableOffer:
    kinds = list(_kinds(layout.header, layout.rows, layout.path))
    used = set(layout.fields.values())
    label = "labels, one column per annotator" if VOTES in used else layout.kind
    label = "labels, several tags each" if TAGS in used else label
    others = {"truth": _POINTS, "scores": _POINTS, "tasks": _TASKS}
    at = next((at for at, kind in enumerate(kinds) if kind.label == label), None)
    if at is None:
        kinds.append(TableKind(label, others.get(label, ()), {}))
        at = len(kinds) - 1
    known = {part.name for part in kinds[at].fields}
    extra = tuple(MappingField(name, name, required=False, repeats=True) for name in sorted(used - known))
    needed = [part for part in kinds[at].fields if part.name in used or not part.required]
    kinds[at] = TableKind(label, (*needed, *extra), layout.fields)
    return TableOffer(plain(layout.path.name), layout.header, layout.rows, kinds, at)


def _joined_in_words(offers: Sequence[NamesOffer]) -> str:
    pairs = [f"{plain(old, 40)} → {plain(new, 40)}" for offer in offers for old, new in offer.new.items()]
    more = f" and {len(pairs) - _MOST_JOINED:,} more" if len(pairs) > _MOST_JOINED else ""
    return f"Spellings that are joined: {', '.join(pairs[:_MOST_JOINED])}{more}" if pairs else ""


def _listed(readings: Readings) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    listed: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {}
    images = [(plain(image.name), f"{image.width:,} × {image.height:,} pixels") for image in readings.images]
    for volume in readings.volumes:
        slices, rows, columns = volume.grid.shape
        images.append((plain(volume.name), f"{columns:,} × {rows:,} × {slices:,} voxels {volume.modality}"))
    if images:
        listed["Images"] = (("Image", "Size"), images)
    masks = [
        (
            plain(mask.file.name),
            "ground truth" if mask.annotator is None else plain(mask.annotator),
            plain(mask.structure),
        )
        for mask in readings.attributed
    ]
    if masks:
        listed["Masks"] = (("File", "Rater", "Structure"), masks)
    return listed


def _rater_example(readings: Readings) -> str:
    """Return an example of a structure's name that ends with the rater; empty if none seem to."""
    names = dict.fromkeys(mask.mask.structure for mask in readings.attributed)
    if not suggest_structure_naming(names):
        return ""
    structure, _, rater = next(iter(names)).rpartition("_")
    return f"{plain(structure, 40)}_{plain(rater, 40)} is {plain(structure, 40)} by {plain(rater, 40)}"


def _ends_with_rater(mask: AttributedMask) -> bool:
    return mask.annotator is not None and mask.mask.structure.endswith(f"_{mask.annotator}")


def structure_naming(has_raters: bool) -> str:
    """Return the pattern of structure names for the answer of the dialog."""
    return RATERS_IN_STRUCTURES if has_raters else ""


STUDIES = "Raterscope studies (*.rscope)"

_CONTENTS = re.compile(
    r"(images?|imgs?|pictures?|photos?|slides?|masks?|segmentations?|labels?|clicks|annotations?|data|files)",
    re.IGNORECASE,
)
"""Names of folders that state what is in them, not of which study."""


def new_study_path(file: Path, series: Collection[Path] = ()) -> Path | None:
    """Name a new study beside a file and outside of the folders of DICOM series.

    A folder named after its contents, as `images` is, gives neither the place nor the name: the folder above
    does. None if the study's folder cannot be written.
    """
    folder = file if file.is_dir() else file.parent
    stem = file.name if file.is_dir() else strip_suffixes(file)
    while folder in series:
        folder, stem = folder.parent, folder.name
    if stem == folder.name and _CONTENTS.fullmatch(stem) and os.access(folder.parent, os.W_OK):
        folder, stem = folder.parent, folder.parent.name or stem
    if not os.access(folder, os.W_OK):
        return None
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
    reading: MaskOptions = DEFAULT_MASK_OPTIONS
    may_resample: bool = False
    sources: Sources = field(default_factory=partial(Sources, is_lasting=True))


@dataclass(frozen=True)
class _Understood:
    """What was read of a batch, its preview, and the proposed file of a new study."""

    readings: Readings
    preview: ImportPreview
    study: Path


_Question = UnknownColumns | UnknownAnnotators | OtherGrid
"""A question to the user."""


class Importer(QObject):
    """Import of files: reads them, shows a preview, and stores them once it is confirmed.

    Without an open study, a new one is created with all files or not at all.
    """

    # message, refused: imported annotations, and errors
    message = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._jobs = jobs
        self._window = window
        self._waiting: list[tuple[_Batch, _Understood]] = []
        self._created: tuple[Path, str] | None = None
        """A new study that is being opened, and what was imported into it."""
        document.replaced.connect(self._on_replaced)

    def start(self, paths: Sequence[Path]) -> None:
        """Read files, and ask whether to import them."""
        self._read(_Batch(tuple(paths), self._study()))

    def _study(self) -> Path | None:
        contents = self._document.contents
        return None if contents is None or self._document.opening else contents.path

    def _on_replaced(self) -> None:
        contents = self._document.contents
        created, self._created = self._created, None
        if created is not None and contents is not None and contents.path == created[0]:
            self.message.emit(created[1])
        waiting, self._waiting = self._waiting, []
        for batch, understood in waiting:
            self._confirm(batch, understood)

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

    def _on_read(self, batch: _Batch, answer: _Understood | _Question) -> None:
        if isinstance(answer, UnknownColumns):
            self._ask_columns(batch, answer)
        elif isinstance(answer, UnknownAnnotators):
            self._ask_annotators(batch, answer)
        elif isinstance(answer, OtherGrid):
            self._ask_resampling(batch, answer)
        elif batch.study is not None and batch.study != self._study():
            self._on_unanswered(f"{batch.study.name} was closed", batch)
        elif self._document.opening:
            self._waiting.append((batch, answer))
        else:
            self._confirm(batch, answer)

    def _confirm(self, batch: _Batch, understood: _Understood) -> None:
        """Show what was understood, and ask whether to import it."""
        contents = self._document.contents
        study, target = (understood.study, "") if contents is None else (None, contents.path.name)
        offer = offer_import(understood.readings, understood.preview, study, target)
        dialog = ImportDialog(offer, self._window)
        dialog.accepted.connect(partial(self._on_confirmed, batch, understood, dialog))
        dialog.rejected.connect(partial(self._on_unanswered, "", batch))
        dialog.open()

    def _on_confirmed(self, batch: _Batch, understood: _Understood, dialog: ImportDialog) -> None:
        understood = replace(understood, study=dialog.study or understood.study)
        if dialog.needs_reading:
            files = [layout.path for layout in understood.preview.layouts]
            mappings = {files[at]: mapping for at, mapping in dialog.mappings.items()}
            naming = structure_naming(dialog.raters.isChecked()) if dialog.offers_raters else None
            reading = replace(batch.reading, structure_naming=naming)
            self._read(replace(batch, mappings={**batch.mappings, **mappings}, reading=reading))
            return
        changes = NameChanges(*map(dialog.new_names, NAME_KINDS))
        title = f"Importing {_of(batch.paths)}"
        readings = replace(understood.readings, programs=frozenset(dialog.programs))
        work = partial(_store, readings, changes, batch.may_resample, dialog.extent, dialog.class_order)
        contents = self._document.contents
        if contents is None:
            creating = partial(_create, understood.study, work)
            job = self._jobs.start(title, creating, costly=True)
            job.finished.connect(partial(self._on_created, batch, understood.study))
            job.failed.connect(partial(self._on_not_created, batch, understood))
        else:
            batch.sources.close()
            words = f"the import of {_of(batch.paths)}"
            self._document.keep(
                Unsaved(contents.path, title, words, work, self._on_stored), quiet=False, costly=True
            )

    def _on_created(self, batch: _Batch, study: Path, sentences: Sequence[str]) -> None:
        batch.sources.close()
        self._created = study.absolute(), " ".join(sentences)
        self._document.open(study)

    def _on_not_created(self, batch: _Batch, understood: _Understood, reason: str) -> None:
        """Show the dialog again, so that another file or other names can be chosen."""
        self.refused.emit(reason)
        QTimer.singleShot(0, self, partial(self._confirm, batch, understood))

    def _on_stored(self, sentences: Sequence[str]) -> None:
        self.message.emit(" ".join(sentences))

    def _ask_columns(self, batch: _Batch, unknown: UnknownColumns) -> None:
        file = unknown.file
        assert file is not None
        kinds, chosen = table_kinds(unknown)
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
        dialog = AnnotatorNamesDialog(
            names, guess, partial(_by_pattern, unknown.files), detections=left_here, parent=self._window
        )
        dialog.accepted.connect(partial(self._on_named, batch, unknown, dialog))
        problem = f"no annotator was named for {plain(unknown.files[0].name)}"
        dialog.rejected.connect(partial(self._on_unanswered, problem, batch))
        dialog.open()

    def _on_named(self, batch: _Batch, unknown: UnknownAnnotators, dialog: AnnotatorNamesDialog) -> None:
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
        self.message.emit(f"Nothing was imported: {problem}." if problem else "Nothing was imported.")


def _of(paths: Sequence[Path]) -> str:
    return plain(paths[0].name) if len(paths) == 1 else f"{len(paths):,} files"


def _at_hand(contents: Contents | None) -> StudyImages:
    if contents is None:
        return NOTHING
    return StudyImages(
        contents.images, contents.path, clicked=images_without_file(contents.items),
        renamed=contents.review.names_of("masks"),
    )  # fmt: skip


def _tasks(study: Study, _watch: Watch) -> tuple[str, ...]:
    return (*tasks_of(study), *items_of(study))


def _by_pattern(files: Sequence[Path], number: int, pattern: str) -> str | None:
    try:
        match = parse_path(files[number], pattern)
    except InputError as error:
        raise ValueError(str(error)) from error
    return None if match is None else match.annotator


def _read_or_ask(batch: _Batch, at_hand: StudyImages, watch: Watch) -> _Understood | _Question:
    try:
        readings = read_files(
            batch.paths, mappings=batch.mappings, reading=batch.reading, at_hand=at_hand, asks=True,
            sources=batch.sources, watch=watch,
        )  # fmt: skip
        preview = preview_readings(
            readings, at_hand.entries, may_resample=batch.may_resample, renamed=at_hand.renamed
        )
    except (UnknownAnnotators, OtherGrid) as question:
        return question
    except UnknownColumns as unknown:
        if unknown.file is None:
            raise
        return unknown
    first = batch.paths[0]
    series = {path.parent for volume in readings.volumes if volume.identifier for path in volume.files}
    study = new_study_path(first, series) or new_study_path(Path.home() / first.name)
    return _Understood(readings, preview, study or Path.home() / f"{strip_suffixes(first)}.rscope")


def _store(
    readings: Readings,
    changes: NameChanges,
    may_resample: bool,
    extent: tuple[float, float] | None,
    class_order: Sequence[str],
    study: Study,
    watch: Watch,
) -> list[str]:
    if changes != NameChanges():
        readings = change_names(readings, changes)
    return store(
        readings, study, watch, extent=extent, may_resample=may_resample, class_order=class_order
    )  # fmt: skip


def _create(path: Path, work: Callable[[Study, Watch], list[str]], watch: Watch) -> list[str]:
    """Create a study with an import, or none if that fails."""
    with new_study(path) as study:
        return work(study, watch)
