"""Preview of an import: interpretation of the files, skipped contents, and names that may be joined."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.labels.tags import ABSENT_PRESENT
from raterscope.app.formats.masks.terminology import tg263_name
from raterscope.app.formats.records import (
    ClickTable,
    LabelFile,
    LabelTable,
    PairTable,
    PointTable,
    TaskContents,
    TrueLabels,
)
from raterscope.app.kinds.clicks.imports import index_names
from raterscope.app.kinds.masks.attribution import AttributedMask
from raterscope.app.kinds.masks.imports import Placement, list_sites, place_masks
from raterscope.app.readings import Readings, TableLayout, explain_skipped
from raterscope.app.study.records import ImageEntry
from raterscope.text import counted, listed

NameKind = Literal["annotator", "structure", "class"]
NAME_KINDS: tuple[NameKind, ...] = ("annotator", "structure", "class")

_TARGET = re.compile(r"(gtv|ctv|ptv)p?", re.IGNORECASE)
Table = TypeVar("Table", ClickTable, LabelTable, PairTable)


@dataclass(frozen=True)
class NameChanges:
    """Names under which an import is stored."""

    # annotator, structure, class_: imported name to new name; several names with one new name become one.
    # A class with an empty new name is no answer
    annotator: Mapping[str, str] = field(default_factory=dict)
    structure: Mapping[str, str] = field(default_factory=dict)
    class_: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: NameKind) -> Mapping[str, str]:
        """Return the changes of names of annotators, structures or classes."""
        return {"annotator": self.annotator, "structure": self.structure, "class": self.class_}[kind]

    def updated(self, others: NameChanges) -> NameChanges:
        """Return these changes combined with others, which take precedence."""
        return NameChanges(
            {**self.annotator, **others.annotator},
            {**self.structure, **others.structure},
            {**self.class_, **others.class_},
        )


def parse_changes(texts: Iterable[str]) -> NameChanges:
    """Parse changes of the form KIND:NAME=NEW; NEW may be empty for a class that is no answer.

    Raises `InputError` for any other text.

    Examples
    --------
    >>> parse_changes(["structure:gtv=GTV"]).structure
    {'gtv': 'GTV'}
    """
    changes: dict[str, dict[str, str]] = {kind: {} for kind in NAME_KINDS}
    for text in texts:
        kind, _, pair = text.partition(":")
        old, _, new = pair.partition("=")
        is_complete = new.strip() or (kind.strip() == "class" and pair.endswith("="))
        if kind.strip() not in changes or not (old.strip() and is_complete):
            raise InputError(
                f"{plain(text)} is not a change of a name; expected annotator:NAME=NEW, structure:NAME=NEW "
                "or class:NAME=NEW"
            )
        changes[kind.strip()][old.strip()] = new.strip()
    return NameChanges(changes["annotator"], changes["structure"], changes["class"])


def change_names(readings: Readings, changes: NameChanges) -> Readings:
    """Return readings with other names.

    Raises `InputError` if a name to change does not occur, or if two masks of a rater on an image would get
    the same structure.
    """
    masks = tuple(
        replace(
            mask,
            annotator=None if mask.annotator is None else _new(mask.annotator, changes.annotator),
            structure=_new(mask.structure, changes.structure),
        )
        for mask in readings.attributed
    )
    if changes.structure or changes.annotator:
        _refuse_doubles(masks)
    return replace(
        readings,
        attributed=masks,
        clicks=tuple(_rename_clicks(table, changes) for table in readings.clicks),
        labels=tuple(_rename_labels(table, changes) for table in readings.labels),
        pairs=tuple(_rename_annotators(table, changes.annotator) for table in readings.pairs),
        programs=frozenset(_new(name, changes.annotator) for name in readings.programs),
    )


def mark_programs(readings: Readings, names: Collection[str], annotators: Collection[str]) -> Readings:
    """Return readings with more annotators that are programs. Raises `InputError` for an unknown name."""
    unknown = next((name for name in names if name not in annotators), None)
    if unknown is not None:
        known = f"expected one of {plain_names(annotators, 8, 30)}" if annotators else "the files name none"
        raise InputError(f"there is no annotator {plain(unknown)}; {known}")
    return replace(readings, programs=readings.programs.union(names))


def refuse_unknown(changes: NameChanges, names: Mapping[NameKind, Collection[str]]) -> None:
    """Refuse changes of names that do not occur."""
    for kind in NAME_KINDS:
        unknown = next((name for name in changes.of(kind) if name not in names[kind]), None)
        if unknown is not None:
            known = ", ".join(plain(name, 30) for name in list(names[kind])[:8]) or "none"
            raise InputError(f"there is no {kind} {plain(unknown)}; expected one of {known}")


def _new(name: str, changes: Mapping[str, str]) -> str:
    return changes.get(name, name)


def _merge(names: Sequence[str], changes: Mapping[str, str]) -> tuple[tuple[str, ...], list[int]]:
    """Return the new names, each once, and the new index of each name, -1 for an empty new name."""
    number: dict[str, int] = {}
    index = [number.setdefault(new, len(number)) if (new := _new(name, changes)) else -1 for name in names]
    return tuple(number), index


def _rename_annotators(table: Table, changes: Mapping[str, str]) -> Table:
    if changes.keys().isdisjoint(table.annotators):
        return table
    names, index = _merge(table.annotators, changes)
    annotator = np.array(index, dtype=table.annotator.dtype)[table.annotator]
    if isinstance(table, ClickTable):
        looked = frozenset((index[row], image) for row, image in table.looked)
        return replace(table, annotators=names, annotator=annotator, looked=looked)
    return replace(table, annotators=names, annotator=annotator)


def _rename_clicks(table: ClickTable, changes: NameChanges) -> ClickTable:
    table = _rename_annotators(table, changes.annotator)
    if table.label is None or changes.class_.keys().isdisjoint(table.classes):
        return table
    classes, index = _merge(table.classes, changes.class_)
    # The last entry is for -1, a click without a class.
    return replace(table, classes=classes, label=np.array([*index, -1], dtype=table.label.dtype)[table.label])


def _rename_labels(table: LabelFile, changes: NameChanges) -> LabelFile:
    if isinstance(table, LabelTable):
        table = _rename_annotators(table, changes.annotator)
        outputs, index = _merge(table.outputs, changes.class_)
        probability = None
        if table.probability is not None:
            if -1 in index:
                raise InputError("has probabilities of a class without a name; give it one", file=table.path)
            probability = np.zeros((len(table), len(outputs)), dtype=np.float32)
            np.add.at(probability.T, index, table.probability.T)
        label = np.array(index, dtype=table.label.dtype)[table.label]
        return _drop_votes(replace(table, outputs=outputs, label=label, probability=probability))
    if isinstance(table, TrueLabels):
        classes, index = _merge(table.classes, changes.class_)
        label = np.array(index, dtype=table.label.dtype)[table.label]
        tasks = tuple(task for task, at in zip(table.tasks, label.tolist(), strict=True) if at >= 0)
        return replace(table, classes=classes, tasks=tasks, label=label[label >= 0])
    return table


def _drop_votes(table: LabelTable) -> LabelTable:
    """Turn votes for classes without a name into rows without a label."""
    kept = table.label >= 0
    if kept.all():
        return table
    if not kept.any():
        raise InputError("has no class with a name; expected one", file=table.path)
    dropped = np.stack([table.annotator[~kept], table.task[~kept]], axis=1)
    return replace(
        table, annotator=table.annotator[kept], task=table.task[kept], label=table.label[kept],
        time=None if table.time is None else table.time[kept], missing=table.missing + len(dropped),
        unlabelled=np.concatenate([table.unlabelled, dropped]),
        notices=(*table.notices, f"{counted(len(dropped), 'vote')} skipped: its class has no name."),
    )  # fmt: skip


def _refuse_doubles(masks: Sequence[AttributedMask]) -> None:
    first: dict[tuple[object, ...], AttributedMask] = {}
    for mask in masks:
        key = (mask.annotator, mask.structure, mask.item or mask.hint or mask.file.parent)
        other = first.setdefault(key, mask)
        if other is not mask and (other.file, other.item) == (mask.file, mask.item):
            raise InputError(
                f"would hold two masks of {plain(mask.structure)} by {plain(mask.annotator or 'the truth')}; "
                "give them different names",
                file=mask.file,
            )


# Suggestions


def suggest_structures(masks: Sequence[AttributedMask]) -> dict[str, str]:
    """Suggest one name for the spellings of a structure: letter case, synonyms, TG-263 names.

    A suggestion joins at least two names; no rater may have drawn two of them on one image. It is the TG-263
    name if that occurs, else the most frequent spelling.
    """
    count = Counter(mask.structure for mask in masks)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in count:
        groups[_concept(name)].append(name)
    suggested: dict[str, str] = {}
    for names in groups.values():
        if len(names) < 2 or _drawn_together(masks, names):
            continue
        standard = next(
            (name for name in names if tg263_name(name) == name or name in ("GTV", "CTV", "PTV")), ""
        )
        best = standard or max(names, key=lambda name: count[name])
        suggested |= {name: best for name in names if name != best}
    return suggested


def suggest_classes(names: Mapping[str, int]) -> dict[str, str]:
    """Suggest the most frequent spelling for classes that differ only in letter case and gaps of words."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_fold(name)].append(name)
    return {
        name: best
        for spellings in groups.values()
        for best in [max(spellings, key=lambda spelling: names[spelling])]
        for name in spellings
        if name != best
    }


_GAP = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])|(?<=[^\W\d_])[\s_]+(?=\d)|(?<=\d)[\s_]+(?=[^\W\d_])")
"""Space between two words; not between numbers, nor before or after a sign, as in -1, 1-5 and ER+."""


def _fold(name: str) -> str:
    return _GAP.sub("", name.casefold().strip())


def _concept(name: str) -> str:
    """Return a key that all spellings of a structure share."""
    target = _TARGET.fullmatch(name.strip())
    return _fold(target[1] if target else tg263_name(name) or name)


def _drawn_together(masks: Sequence[AttributedMask], names: Collection[str]) -> bool:
    drawn = Counter(
        (mask.annotator, mask.item or mask.hint or mask.file) for mask in masks if mask.structure in names
    )
    return max(drawn.values(), default=0) > 1


_LISTED = 6

_WithoutImage: TypeAlias = tuple[ClickTable | PointTable, dict[str, int]]
"""A table, and its marks on each image that is neither in the files nor in the study."""


@dataclass(frozen=True)
class ImportPreview:
    """Interpretation of the files of an import."""

    contents: tuple[str, ...]  # contents by kind, a phrase each
    names: Mapping[NameKind, Mapping[str, int]]  # by kind of name
    suggested: NameChanges = field(default_factory=NameChanges)  # spellings that are probably the same name
    layouts: tuple[TableLayout, ...] = ()
    notices: tuple[str, ...] = ()  # sentences on skipped contents and assumptions
    unsized: tuple[str, ...] = ()  # images with clicks whose size is unknown
    # (width, height) or None: smallest size, in whole pixels, that contains all positions
    extent: tuple[int, int] | None = None
    programs: frozenset[str] = frozenset()  # annotators that are programs
    placed: tuple[tuple[AttributedMask, str], ...] = ()  # masks, and the names of their images


def preview_readings(
    readings: Readings,
    entries: Sequence[ImageEntry] = (),
    *,
    may_resample: bool = False,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> ImportPreview:
    """Describe what `store` would store.

    Raises `OtherGrid` and `InputError` as `store`, for masks that fit no image.

    `entries`: images of the study.
    `renamed`: names of structures in files to their present names.
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
        contents=tuple(_contents(readings, placement, skipped)),
        names={"annotator": _count_annotators(readings, masks), "structure": structures, "class": classes},
        suggested=NameChanges(structure=suggest_structures(masks), class_=suggest_classes(classes)),
        layouts=readings.layouts,
        notices=tuple(
            dict.fromkeys(
                [
                    *map(_explain_without_image, skipped),
                    *explain_skipped(readings, placement),
                    *_explain_merged(structures, renamed),
                ]
            )
        ),
        unsized=unsized,
        extent=extent,
        programs=readings.programs,
        placed=tuple(
            (mask, placement.sites[at].name) for mask, at in zip(masks, placement.where, strict=True)
        ),
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
    """Report structures that are the same as others of the study, whose masks they replace."""
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
    return listed([f"{plain(name, 40)} ({count:,})" for name, count in names.items()], _LISTED)


def _contents(readings: Readings, placement: Placement, skipped: Sequence[_WithoutImage]) -> Iterable[str]:
    if readings.images:
        yield counted(len(readings.images), "image")
    if readings.volumes:
        yield counted(len(readings.volumes), "volume")
    clicks = [table for table in readings.clicks if len(table) or table.looked]
    if clicks:
        yield (
            f"{counted(sum(map(len, clicks)), 'click')} by {_distinct(clicks, 'annotators', 'annotator')} "
            f"on {_distinct(clicks, 'images', 'image')}{_skipped_in_words(clicks, skipped)}"
        )
    elif readings.clicks:
        yield f"sizes of {_distinct(readings.clicks, 'images', 'image')}"
    for noun, scored in (("true position", False), ("scored detection", True)):
        points = [table for table in readings.truths if (table.score is not None) == scored]
        if points:
            yield (
                f"{counted(sum(map(len, points)), noun)} on {_distinct(points, 'images', 'image')}"
                f"{_skipped_in_words(points, skipped)}"
            )
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


def _skipped_in_words(tables: Sequence[Any], skipped: Sequence[_WithoutImage]) -> str:
    count = sum(sum(marks.values()) for table, marks in skipped if any(table is other for other in tables))
    return f" ({count:,} without an image will be skipped)" if count else ""


def _explain_without_image(skipped: _WithoutImage) -> str:
    table, marks = skipped
    return f"{plain(table.path.name)}: marks without an image are skipped: {_listed(marks)}."


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
) -> tuple[tuple[str, ...], tuple[int, int] | None, list[_WithoutImage]]:
    """Return clicked images of unknown size, the extent of their clicks, and the marks that are skipped.

    If some images of a table are known, the others are skipped.
    """
    marked: list[ClickTable | PointTable] = [*readings.clicks, *readings.truths]
    sizes = [*known, *((image.name, (float(image.width), float(image.height))) for image in readings.images)]
    sizes += [(volume.name, (1.0, 1.0)) for volume in readings.volumes]
    sizes += [(table.images[at], size) for table in marked for at, size in table.extents.items()]
    names = index_names(sizes)
    unsized: dict[str, None] = {}
    skipped: list[_WithoutImage] = []
    width = height = 1.0
    for table in marked:
        lost = [at for at, name in enumerate(table.images) if names.find(name) is None]
        rows = np.isin(table.image, lost)
        if lost and len(lost) < len(table.images):
            marks = np.bincount(table.image, minlength=len(table.images))
            skipped.append((table, {table.images[at]: int(marks[at]) for at in lost}))
        if not lost or len(lost) < len(table.images):
            continue
        unsized |= dict.fromkeys(table.images[at] for at in lost)
        if rows.any():
            width, height = max(width, float(table.x[rows].max())), max(height, float(table.y[rows].max()))
    extent = (math.floor(width) + 1, math.floor(height) + 1) if unsized else None
    return tuple(unsized), extent, skipped
