"""Contents of the import dialogs: types of tables with their fields, and the preview of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from raterscope.app.errors import plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.labels import FIELDS as LABEL_FIELDS
from raterscope.app.formats.labels import TAGS, VOTES
from raterscope.app.formats.masks.naming import RATERS_IN_STRUCTURES, suggest_structure_naming
from raterscope.app.formats.pairs import FIELDS as PAIR_FIELDS
from raterscope.app.formats.points.tables import FIELDS as CLICK_FIELDS
from raterscope.app.formats.records import LabelTable
from raterscope.app.formats.tables import COLUMN_NAMES, Table, assign_columns
from raterscope.app.import_names import NameKind
from raterscope.app.import_preview import ImportPreview
from raterscope.app.importing import Readings, TableLayout
from raterscope.app.kinds.masks.imports import AttributedMask
from raterscope.widgets.dialogs.import_dialogs import MappingField, TableKind
from raterscope.widgets.dialogs.import_preview import ImportOffer, NamesOffer, TableOffer

CLICKS = tuple(MappingField(name, words, needed) for name, words, needed in CLICK_FIELDS)
LABELS = tuple(
    MappingField(name, words, needed, name in ("label", "content")) for name, words, needed in LABEL_FIELDS
)
"""Several columns of labels are as many questions."""

TAGGED = tuple(
    replace(field, name=TAGS, label="tags") if field.name == "label" else field for field in LABELS
)
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
    assigned = assign_columns(table, (), [field.name for field in fields if field.name in COLUMN_NAMES], None)
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
    known = {field.name for field in kinds[at].fields}
    extra = tuple(MappingField(name, name, required=False, repeats=True) for name in sorted(used - known))
    needed = [field for field in kinds[at].fields if field.name in used or not field.required]
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
