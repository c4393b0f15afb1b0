"""Preview of an import: what was understood of the files, what is skipped, and which names may be joined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from raterscope.app.errors import counted, plain
from raterscope.app.formats.labels.tag_sets import ABSENT_PRESENT
from raterscope.app.formats.records import (
    ClickTable,
    ImageFile,
    LabelTable,
    PairTable,
    PointTable,
    TaskContents,
    TrueLabels,
)
from raterscope.app.import_names import NameChanges, NameKind, suggest_classes, suggest_structures
from raterscope.app.importing import Readings, TableLayout, explain_skipped
from raterscope.app.kinds.clicks.imports import index_names
from raterscope.app.kinds.masks.imports import Placement, list_sites, place_masks
from raterscope.app.study.records import ImageEntry

_LISTED = 6


@dataclass(frozen=True)
class ImportPreview:
    """Interpretation of the files of an import."""

    contents: tuple[str, ...]  # contents by kind, a phrase each
    names: Mapping[NameKind, Mapping[str, int]]  # by kind of name
    suggested: NameChanges = field(default_factory=NameChanges)  # spellings that are probably the same name
    layouts: tuple[TableLayout, ...] = ()
    notices: tuple[str, ...] = ()  # what is skipped or assumed, and why, a sentence each
    unsized: tuple[str, ...] = ()  # images with clicks whose size is unknown
    # (width, height) or None: smallest size, in whole pixels, that holds all positions on them
    extent: tuple[int, int] | None = None
    programs: frozenset[str] = frozenset()  # annotators that are programs


def preview_readings(
    readings: Readings,
    entries: Sequence[ImageEntry] = (),
    *,
    may_resample: bool = False,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> ImportPreview:
    """Describe what `store` would store.

    Raises `OtherGrid` and `InputError` as `store`, for masks that fit no image.

    `entries`: images of the study; `renamed`: present names of its structures by those in files.
    """
    sites = list_sites(entries, readings.images, readings.volumes)
    placement = place_masks(readings.attributed, sites, may_resample=may_resample)
    masks = placement.masks
    structures = Counter(mask.structure for mask in masks)
    classes = _count_classes(readings)
    unsized, extent, skipped = _unsized(
        readings, [(entry.name, (entry.width, entry.height)) for entry in entries]
    )
    return ImportPreview(
        contents=tuple(_contents(readings, placement)),
        names={"annotator": _count_annotators(readings, masks), "structure": structures, "class": classes},
        suggested=NameChanges(structure=suggest_structures(masks), class_=suggest_classes(classes)),
        layouts=readings.layouts,
        notices=tuple(
            dict.fromkeys(
                [*skipped, *explain_skipped(readings, placement), *_explain_merged(structures, renamed)]
            )
        ),
        unsized=unsized,
        extent=extent,
        programs=readings.programs,
    )


def describe(preview: ImportPreview) -> list[str]:
    """Describe a preview as lines of text."""
    lines = list(preview.contents)
    for layout in preview.layouts:
        columns = ", ".join(f"{plain(column, 40)}: {name}" for column, name in layout.fields.items())
        ignored = [plain(name, 40) for name in layout.header if name not in layout.fields]
        more = f"; ignored: {', '.join(ignored)}" if ignored else ""
        lines.append(f"{plain(layout.path.name)} ({layout.kind}): {columns}{more}")
    for kind, names in preview.names.items():
        if names:
            lines.append(f"{_plural(kind)}: {_listed(names)}")
        if kind == "annotator" and preview.programs:
            lines.append(f"programs: {', '.join(plain(name, 40) for name in sorted(preview.programs))}")
        for old, new in preview.suggested.of(kind).items():
            lines.append(
                f"{plain(old)} is probably {plain(new)}: --rename {kind}:{plain(old)}={plain(new)} joins them"
            )
    if preview.unsized and preview.extent is not None:
        width, height = preview.extent
        lines.append(
            f"The size of {counted(len(preview.unsized), 'image')} is unknown; give --extent W H, at least "
            f"{width} {height}"
        )
    return [*lines, *preview.notices]


def _explain_merged(structures: Iterable[str], renamed: Mapping[str, str]) -> Iterable[str]:
    """Name structures that are the same as others of the study, whose masks they replace."""
    for present in dict.fromkeys(renamed.get(name, name) for name in structures):
        names = [present, *(name for name, new in renamed.items() if new == present)]
        if len(names) > 1:
            listed = " and ".join(plain(name, 40) for name in names)
            yield (
                f"{listed} are one structure in the study: a mask of it replaces the rater's earlier one on "
                "the same image."
            )


def _plural(kind: str) -> str:
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _listed(names: Mapping[str, int]) -> str:
    words = ", ".join(f"{plain(name, 40)} ({count:,})" for name, count in list(names.items())[:_LISTED])
    return words + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")


def _contents(readings: Readings, placement: Placement) -> Iterable[str]:
    if readings.images:
        yield counted(len(readings.images), "image")
    if readings.volumes:
        yield counted(len(readings.volumes), "volume")
    clicks = [table for table in readings.clicks if len(table) or table.looked]
    if clicks:
        yield (
            f"{counted(sum(map(len, clicks)), 'click')} by {_distinct(clicks, 'annotators', 'annotator')} "
            f"on {_distinct(clicks, 'images', 'image')}"
        )
    elif readings.clicks:
        yield f"sizes of {_distinct(readings.clicks, 'images', 'image')}"
    for noun, scored in (("true position", False), ("scored detection", True)):
        points = [table for table in readings.truths if (table.score is not None) == scored]
        if points:
            yield f"{counted(sum(map(len, points)), noun)} on {_distinct(points, 'images', 'image')}"
    if placement.masks:
        yield _masks_in_words(placement)
    yield from _labels_in_words(readings)
    if readings.pairs:
        pairs = readings.pairs
        yield (
            f"{counted(sum(map(len, pairs)), 'comparison')} of {_distinct(pairs, 'items', 'item')} "
            f"by {_distinct(pairs, 'annotators', 'annotator')}"
        )
    for ranking in readings.rankings:
        yield f"true ranking of {counted(len(ranking.items), 'item')}"
    yield from readings.others


def _masks_in_words(placement: Placement) -> str:
    masks = placement.masks
    raters = {mask.annotator for mask in masks} - {None}
    truths = sum(mask.annotator is None for mask in masks)
    structures = {mask.structure for mask in masks}
    return (
        f"{counted(len(masks), 'mask')} of {counted(len(structures), 'structure')} by "
        f"{counted(len(raters), 'rater')} on {counted(len(set(placement.where)), 'image')}"
        + (f", {truths:,} of them ground truth" if truths else "")
    )


def _labels_in_words(readings: Readings) -> Iterable[str]:
    tables = [table for table in readings.labels if isinstance(table, LabelTable)]
    scored = [table for table in tables if table.probability is not None]
    votes = [table for table in tables if table.probability is None]
    if scored:
        yield (
            f"class probabilities of {_distinct(scored, 'tasks', 'task')} by "
            f"{_distinct(scored, 'annotators', 'program')}"
        )
    if votes:
        questions = dict.fromkeys(table.question for table in votes if table.question)
        more = f", {counted(len(questions), 'question')}" if len(questions) > 1 else ""
        yield (
            f"{counted(sum(map(len, votes)), 'label')} by {_distinct(votes, 'annotators', 'annotator')} on "
            f"{_distinct(votes, 'tasks', 'task')}{more}"
        )
    truths = [table for table in readings.labels if isinstance(table, TrueLabels)]
    if truths:
        yield f"true labels of {_distinct(truths, 'tasks', 'task')}"
    contents = [table for table in readings.labels if isinstance(table, TaskContents)]
    if contents:
        fields = dict.fromkeys(name for table in contents for name in table.fields)
        yield f"contents of {_distinct(contents, 'tasks', 'task')}: {', '.join(map(plain, fields))}"


def _distinct(tables: Sequence[Any], attribute: str, noun: str) -> str:
    return counted(len({name for table in tables for name in getattr(table, attribute)}), noun)


def _count_annotators(readings: Readings, masks: Sequence[Any]) -> dict[str, int]:
    count: Counter[str] = Counter()
    votes = [table for table in readings.labels if isinstance(table, LabelTable)]
    tables: list[ClickTable | LabelTable | PairTable] = [*readings.clicks, *votes, *readings.pairs]
    for table in tables:
        uses = np.bincount(table.annotator, minlength=len(table.annotators)).tolist()
        for name, number in zip(table.annotators, uses, strict=True):
            count[name] += number
    for mask in masks:
        if mask.annotator is not None:
            count[mask.annotator] += 1
    return dict(count)


def _count_classes(readings: Readings) -> dict[str, int]:
    count: Counter[str] = Counter()
    for clicks in readings.clicks:
        if clicks.label is not None:
            uses = np.bincount(clicks.label[clicks.label >= 0], minlength=len(clicks.classes)).tolist()
            count.update(dict(zip(clicks.classes, uses, strict=True)))
    for table in readings.labels:
        if isinstance(table, LabelTable):
            if table.outputs == ABSENT_PRESENT:
                continue
            uses = np.bincount(table.label, minlength=len(table.outputs)).tolist()
            for name, number in zip(table.outputs, uses, strict=True):
                count[name] += number
        elif isinstance(table, TrueLabels):
            for name in table.classes:
                count[name] += 0
    return dict(count)


def _unsized(
    readings: Readings, known: Iterable[tuple[str, tuple[float, float]]]
) -> tuple[tuple[str, ...], tuple[int, int] | None, list[str]]:
    """Return clicked images of unknown size, the extent of their clicks, and notices on skipped images.

    If some images of a table are known, the others are skipped.
    """
    marked: list[ClickTable | PointTable] = [*readings.clicks, *readings.truths]
    sizes = [*known, *((image.name, _size(image)) for image in readings.images)]
    sizes += [(volume.name, (1.0, 1.0)) for volume in readings.volumes]
    sizes += [(table.images[at], size) for table in marked for at, size in table.extents.items()]
    names = index_names(sizes)
    unsized: dict[str, None] = {}
    skipped: list[str] = []
    width = height = 1.0
    for table in marked:
        lost = [at for at, name in enumerate(table.images) if names.find(name) is None]
        rows = np.isin(table.image, lost)
        if lost and len(lost) < len(table.images):
            marks = np.bincount(table.image, minlength=len(table.images))
            without_image = _listed({table.images[at]: int(marks[at]) for at in lost})
            skipped.append(f"{plain(table.path.name)}: marks without an image are skipped: {without_image}.")
        if not lost or len(lost) < len(table.images):
            continue
        unsized |= dict.fromkeys(table.images[at] for at in lost)
        if rows.any():
            width, height = max(width, float(table.x[rows].max())), max(height, float(table.y[rows].max()))
    extent = (math.floor(width) + 1, math.floor(height) + 1) if unsized else None
    return tuple(unsized), extent, skipped


def _size(image: ImageFile) -> tuple[float, float]:
    return float(image.width), float(image.height)
