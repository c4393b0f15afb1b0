"""Reading of files for the import of the window, and its preview; the functions run in threads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.ambiguous_files import UnknownAnnotators, list_names
from raterscope.app.contents import Contents
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.labels import FIELDS as LABEL_FIELDS
from raterscope.app.formats.labels import TAGS, VOTES
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.masks.naming import (
    RATERS_IN_STRUCTURES,
    parse_path,
    strip_suffixes,
    suggest_structure_naming,
)
from raterscope.app.formats.pairs import FIELDS as PAIR_FIELDS
from raterscope.app.formats.points.positions import PERCENT
from raterscope.app.formats.points.tables import FIELDS as CLICK_FIELDS
from raterscope.app.formats.records import LabelTable
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.tables import COLUMN_NAMES, Table, assign_columns
from raterscope.app.formats.volumes.resampling import OtherGrid
from raterscope.app.import_preview import ImportPreview, NameChanges, NameKind, change_names, preview_readings
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.labels.imports import tasks_of
from raterscope.app.kinds.masks.attribution import DEFAULT_MASK_OPTIONS, AttributedMask, MaskOptions
from raterscope.app.kinds.masks.imports import NOTHING, StudyImages, images_without_file
from raterscope.app.kinds.pairs.imports import items_of
from raterscope.app.readings import Readings, TableLayout
from raterscope.app.study import Study
from raterscope.app.study.new_study import new_study
from raterscope.widgets.dialogs.import_dialogs import MappingField, TableKind
from raterscope.widgets.dialogs.import_preview import ImportOffer, NamesOffer, TableOffer

CLICKS = tuple(MappingField(name, words, needed) for name, words, needed in CLICK_FIELDS)
IN_PERCENT = tuple(
    replace(part, name=f"{part.name}{PERCENT}", label=f"{part.name}, percent")
    if part.name in ("x", "y")
    else part
    for part in CLICKS
)
LABELS = tuple(
    MappingField(name, words, needed, name in ("label", "content")) for name, words, needed in LABEL_FIELDS
)
"""Key of a table with several columns of labels: each is a question."""

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
_MAX_JOINED = 4


def table_kinds(unknown: UnknownColumns) -> tuple[tuple[TableKind, ...], int]:
    """Return the possible types of a table with unknown columns, and the likeliest type."""
    fields = {*unknown.missing, *unknown.guess.values()}
    likeliest = ((VOTES, 2), ("x", 0), ("y", 0), ("left", 4), ("right", 4))
    chosen = next((at for field, at in likeliest if field in fields), 1)
    assert unknown.file is not None
    return _kinds(unknown.header, unknown.rows, unknown.file), chosen


def _kinds(header: Sequence[str], rows: Sequence[Sequence[str]], file: Path) -> tuple[TableKind, ...]:
    named = (
        ("clicks", CLICKS), ("labels", LABELS), ("labels, one column per annotator", WIDE),
        ("true labels", TRUTHS), ("pairs", PAIRS),
    )  # fmt: skip
    kinds = [TableKind(label, fields, _guess(header, rows, file, fields)) for label, fields in named]
    kinds[2] = replace(kinds[2], guess=_guess_wide(header, kinds[2].guess))
    tags = {column: TAGS if name == "label" else name for column, name in kinds[1].guess.items()}
    percent = {
        column: f"{name}{PERCENT}" if name in ("x", "y") else name for column, name in kinds[0].guess.items()
    }
    return (
        *kinds,
        TableKind("labels, several tags each", TAGGED, tags),
        TableKind("clicks in percent", IN_PERCENT, percent),
    )


def _guess_wide(header: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Guess the column of the task, usually the first; the other columns are annotators."""
    others = [name for name in header if name not in known]
    if "task" in known.values() or not others:
        return {**known, **dict.fromkeys(others, VOTES)}
    return {**known, others[0]: "task", **dict.fromkeys(others[1:], VOTES)}


def _guess(
    header: Sequence[str], rows: Sequence[Sequence[str]], file: Path, fields: Sequence[MappingField]
) -> dict[str, str]:
    """Guess the fields of the columns of a table of a given kind."""
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
        contents=[
            *(f"{words[:1].upper()}{words[1:]}" for words in preview.contents),
            *_skipped_in_words(readings.skipped),
        ],
        tables=[_table_offer(layout) for layout in preview.layouts],
        names=names,
        joined=_joined_in_words(names),
        listed=_listed(readings, preview),
        are_masks=[(plain(path.name), is_mask) for path, is_mask in masks_and_images(readings)],
        notices=preview.notices,
        study=study,
        target=target,
        unsized=len(preview.unsized),
        extent=preview.extent or (1, 1),
        rater_example=_rater_example(readings),
        labelled=any(isinstance(table, LabelTable) for table in readings.labels),
        has_raters=any(mask.structure != mask.mask.structure and _ends_with_rater(mask) for mask in masks),
    )


def _skipped_in_words(errors: Sequence[InputError]) -> list[str]:
    names = list_names([error.file for error in errors if error.file is not None])
    return [f"Skipped, because they cannot be read: {names} (see Notices)"] if errors else []


def _table_offer(layout: TableLayout) -> TableOffer:
    kinds = list(_kinds(layout.header, layout.rows, layout.path))
    used = set(layout.fields.values())
    label = "labels, one column per annotator" if VOTES in used else layout.kind
    label = "labels, several tags each" if TAGS in used else label
    label = "clicks in percent" if f"x{PERCENT}" in used else label
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
    more = f" and {len(pairs) - _MAX_JOINED:,} more" if len(pairs) > _MAX_JOINED else ""
    return f"Spellings that are joined: {', '.join(pairs[:_MAX_JOINED])}{more}" if pairs else ""


def _listed(
    readings: Readings, preview: ImportPreview
) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    listed: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {}
    images = [(plain(image.name), f"{image.width:g} x {image.height:g} px") for image in readings.images]
    for volume in readings.volumes:
        size = ", ".join(filter(None, (volume.grid.in_words(), volume.modality)))
        images.append((plain(volume.name), size))
    if images:
        listed["Images"] = (("Image", "Size"), images)
    masks = [
        (
            plain(mask.file.name),
            "ground truth" if mask.annotator is None else plain(mask.annotator),
            plain(mask.structure),
            plain(image),
        )
        for mask, image in preview.placed
    ]
    if masks:
        listed["Masks"] = (("File", "Rater", "Structure", "Image"), masks)
    return listed


def masks_and_images(readings: Readings) -> list[tuple[Path, bool]]:
    """List the files that may be a mask or an image, and whether they were read as a mask."""
    masks = dict.fromkeys(mask.file for mask in readings.attributed)
    volumes = [volume.files[0] for volume in readings.volumes if len(volume.files) == 1]
    images = [*(image.path for image in readings.images), *volumes]
    listed = [*((path, True) for path in masks), *((path, False) for path in images)]
    return [(path, is_mask) for path, is_mask in listed if is_plain_image(path) or is_voxel_file(path)]


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
    """Return the pattern of structure names for an answer in the dialog."""
    return RATERS_IN_STRUCTURES if has_raters else ""


_CONTENTS = re.compile(
    r"(images?|imgs?|pictures?|photos?|slides?|masks?|segmentations?|labels?|clicks|annotations?|data|files)",
    re.IGNORECASE,
)
"""Names of folders that describe their contents, not the study."""


def new_study_path(file: Path, series: Collection[Path] = ()) -> Path | None:
    """Return a path for a new study beside a file, outside of the folders of DICOM series.

    Folders named after their contents, such as `images`, are skipped: the folder above gives location and
    name. None if the study's folder cannot be written.
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
class Batch:
    """Files that are imported together, the target study, and the answers of the user.

    `sources` keeps the parsed files until all questions are answered.
    """

    paths: tuple[Path, ...]
    study: Path | None
    mappings: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)
    reading: MaskOptions = DEFAULT_MASK_OPTIONS
    may_resample: bool = False
    excluded: frozenset[Path] = frozenset()  # files of the folders that are not read
    are_masks: Mapping[Path, bool] = field(
        default_factory=dict
    )  # by file that the user declared a mask or not
    sources: Sources = field(default_factory=partial(Sources, is_lasting=True))


@dataclass(frozen=True)
class PreparedImport:
    """Readings of a batch, their preview, and the proposed file of a new study."""

    readings: Readings
    preview: ImportPreview
    study: Path


Question = UnknownColumns | UnknownAnnotators | OtherGrid
"""A question to the user."""


def images_at_hand(contents: Contents | None) -> StudyImages:
    """Return the images of the open study that files may belong to."""
    if contents is None:
        return NOTHING
    return StudyImages(
        tuple(replace(image, pixel_size=contents.pixel_size(image)) for image in contents.images),
        contents.path, clicked=images_without_file(contents.items),
        renamed=contents.review.names_of("masks"),
    )  # fmt: skip


def read_tasks(study: Study, _watch: Watch) -> tuple[str, ...]:
    """Read the names of the study's tasks and items, for pictures of them."""
    return (*tasks_of(study), *items_of(study))


def annotator_by_pattern(files: Sequence[Path], number: int, pattern: str) -> str | None:
    """Return the annotator that a pattern finds in the name of a file; None if the pattern does not match."""
    try:
        match = parse_path(files[number], pattern)
    except InputError as error:
        raise ValueError(str(error)) from error
    return None if match is None else match.annotator


def read_or_ask(batch: Batch, at_hand: StudyImages, watch: Watch) -> PreparedImport | Question:
    """Read the files and make the preview, or return the next question to the user."""
    paths = _convert_zarr(batch, watch)
    try:
        readings = read_files(
            paths, mappings=batch.mappings, reading=batch.reading, at_hand=at_hand, asks=True,
            skip_unreadable=True, excluded=batch.excluded, are_masks=batch.are_masks,
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
    unreadable = {error.file for error in readings.skipped}
    first = next((path for path in paths if path not in unreadable), paths[0])
    if first not in batch.paths:  # a converted file
        first = batch.paths[0].with_name(first.name)
    pictures = {image.path for image in readings.images}
    pictures.update(path for volume in readings.volumes for path in volume.files)
    if first in pictures and len(readings.images) + len(readings.volumes) > 1:
        first = first.parent
    series = {path.parent for volume in readings.volumes if volume.identifier for path in volume.files}
    study = new_study_path(first, series) or new_study_path(Path.home() / first.name)
    return PreparedImport(readings, preview, study or Path.home() / f"{strip_suffixes(first)}.rscope")


def _convert_zarr(batch: Batch, watch: Watch) -> tuple[Path, ...]:
    """Replace OME-Zarr images by NIfTI files, in a folder beside the study or, for a new one, the image."""
    from raterscope.app.formats.remote import fetch, is_zarr

    paths: list[Path] = []
    for path in batch.paths:
        if not is_zarr(path):
            paths.append(path)
            continue
        beside = batch.study or path
        folder = beside.parent if os.access(beside.parent, os.W_OK) else Path.home()
        paths += fetch(str(path), folder / f"{beside.name.partition('.')[0]}-files", watch)
    return tuple(paths)


def store_readings(
    readings: Readings,
    changes: NameChanges,
    may_resample: bool,
    extent: tuple[float, float] | None,
    class_order: Sequence[str],
    study: Study,
    watch: Watch,
) -> list[str]:
    """Store the readings with the chosen names; return sentences about the imported contents."""
    if changes != NameChanges():
        readings = change_names(readings, changes)
    return store(
        readings, study, watch, extent=extent, may_resample=may_resample, class_order=class_order
    )  # fmt: skip


def create_study(path: Path, work: Callable[[Study, Watch], list[str]], watch: Watch) -> list[str]:
    """Create a study with an import, or none if that fails."""
    with new_study(path) as study:
        return work(study, watch)
