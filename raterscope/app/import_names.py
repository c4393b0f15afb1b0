"""Names of annotators, structures and classes in an import: spellings of one name, and changes of names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.terminology import tg263_name
from raterscope.app.formats.records import ClickTable, LabelFile, LabelTable, PairTable, TrueLabels
from raterscope.app.kinds.masks.imports import AttributedMask

if TYPE_CHECKING:
    from raterscope.app.importing import Readings

NameKind = Literal["annotator", "structure", "class"]
NAME_KINDS: tuple[NameKind, ...] = ("annotator", "structure", "class")

_TARGET = re.compile(r"(gtv|ctv|ptv)p?", re.IGNORECASE)
Table = TypeVar("Table", ClickTable, LabelTable, PairTable)


@dataclass(frozen=True)
class NameChanges:
    """Names under which an import is stored."""

    # annotator, structure, class_: by name: several names with one new name become one
    annotator: Mapping[str, str] = field(default_factory=dict)
    structure: Mapping[str, str] = field(default_factory=dict)
    class_: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: NameKind) -> Mapping[str, str]:
        """Return the changes of one kind of name."""
        return {"annotator": self.annotator, "structure": self.structure, "class": self.class_}[kind]

    def updated(self, others: NameChanges) -> NameChanges:
        """Return these changes with others, which take precedence."""
        return NameChanges(
            {**self.annotator, **others.annotator},
            {**self.structure, **others.structure},
            {**self.class_, **others.class_},
        )


def parse_changes(texts: Iterable[str]) -> NameChanges:
    """Parse changes of the form KIND:NAME=NEW.

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
        if kind.strip() not in changes or not (old.strip() and new.strip()):
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
        known = ", ".join(plain(name, 30) for name in list(annotators)[:8]) or "none"
        raise InputError(f"there is no annotator {plain(unknown)}; expected one of {known}")
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
    """Return the new names, each once, and the new index of each name."""
    number: dict[str, int] = {}
    index = [number.setdefault(_new(name, changes), len(number)) for name in names]
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
            probability = np.zeros((len(table), len(outputs)), dtype=np.float32)
            np.add.at(probability.T, index, table.probability.T)
        label = np.array(index, dtype=table.label.dtype)[table.label]
        return replace(table, outputs=outputs, label=label, probability=probability)
    if isinstance(table, TrueLabels):
        classes, index = _merge(table.classes, changes.class_)
        return replace(table, classes=classes, label=np.array(index, dtype=table.label.dtype)[table.label])
    return table


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

    A name is suggested only if it joins at least two names, of which no rater drew two on one image. It is
    the TG-263 name if the structure has one that occurs, else the most frequent spelling.
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
    """Suggest the most frequent spelling for classes that differ in letter case and spaces alone."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_fold(name)].append(name)
    return {
        name: best
        for spellings in groups.values()
        if len(spellings) > 1
        for best in [max(spellings, key=lambda spelling: names[spelling])]
        for name in spellings
        if name != best
    }


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold()) or name


def _concept(name: str) -> str:
    """Return what all spellings of a structure have in common."""
    target = _TARGET.fullmatch(name.strip())
    return _fold(target[1] if target else tg263_name(name) or name)


def _drawn_together(masks: Sequence[AttributedMask], names: Collection[str]) -> bool:
    drawn = Counter(
        (mask.annotator, mask.item or mask.hint or mask.file) for mask in masks if mask.structure in names
    )
    return max(drawn.values(), default=0) > 1
