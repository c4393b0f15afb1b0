"""Tables for the next program: CSV in UTF-8 that no spreadsheet runs, each file whole or not at all."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.whole_files import whole
from raterscope.app.review import (
    BiasSubject,
    Decision,
    RegionSubject,
    SpotSubject,
    StructureSubject,
    TaskSubject,
    fold,
    one_by_one,
)

__all__ = [
    "DECISIONS", "decision_rows", "distinct", "harmless", "make_folder", "replacing", "safe", "shortest",
    "take_away", "write_record", "write_table",
]  # fmt: skip

DECISIONS = (
    "decision", "at", "who", "kind", "verb", "item", "spot", "x", "y", "from_x", "from_y", "structure",
    "region", "box", "rater", "task", "label", "annotators", "weight", "reason", "run", "about", "undoes",
    "in_effect", "blind", "words", "standing",
)  # fmt: skip

_LONGEST = 80  # bytes; a file's name has up to three such parts, and 255 bytes are the most on most disks
_FIRST = frozenset("'=+-@\t\r")  # of text that may be changed
_RUNS = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE | re.ASCII)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Write a text file that takes its name when it is whole; what was there stays until then.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    with whole(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()  # it flushes, and leaves the file open


def make_folder(folder: Path) -> None:
    """Make a folder for files, where it is not there.

    Raises
    ------
    InputError
        When it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made a folder: {error.strerror}", file=folder) from error


def safe(name: str) -> str:
    """Make a part of a file's name of what somebody or something is called."""
    kept = re.sub(r"[^\w+-]+", "-", plain(name)).strip("-")
    return kept.encode()[:_LONGEST].decode(errors="ignore") or "unnamed"


def distinct(name: str, taken: set[str]) -> str:
    """Make a file's name differ from those taken, upper and lower case being one; it is taken then."""
    found, number = name, 2
    while found.casefold() in taken:
        found, number = f"{name}-{number}", number + 1
    taken.add(found.casefold())
    return found


def take_away(path: Path) -> None:
    """Remove a file, where it is there.

    Raises
    ------
    InputError
        When it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def write_record(path: Path, record: Mapping[str, object]) -> Path:
    """Write what tells how results were made, as JSON that any program reads, whole or not at all.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    with replacing(path) as file:
        json.dump(record, file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")
    return path


def shortest(value: float) -> str:
    """Write a number in the shortest way that loses nothing of worth; nothing for none."""
    return f"{value:.9g}" if math.isfinite(value) else ""


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a CSV table with a header row, whole or not at all.

    Parameters
    ----------
    path : Path
    columns : sequence of str
    rows : iterable of rows
        Numbers are written as they are; None, NaN and infinity are empty; text is made harmless, that of
        the header too.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    with replacing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([harmless(name) for name in columns])
        writer.writerows([_cell(cell) for cell in row] for row in rows)
    return path


def harmless(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run: = + - @ tab CR. Numbers are no such text.

    Text that has apostrophes there already gets one more, so that reading takes away just what was added.
    """
    return f"'{text}" if _RUNS.match(text) and not _NUMBER.fullmatch(text) else text


def decision_rows(
    decisions: Sequence[Decision], items: Mapping[tuple[str, int], str]
) -> Iterator[Sequence[object]]:
    """Give the rows of decisions.csv, all of the journal in order; a decision on several spots has as many.

    Parameters
    ----------
    decisions : sequence of Decision
    items : mapping of an item's kind and number to its name
    """
    state = fold(decisions)
    for one in chain.from_iterable(map(one_by_one, decisions)):
        yield (
            one.id, "" if one.at is None else one.at.isoformat(timespec="milliseconds"), one.who,
            "" if one.subject is None else one.subject.kind, one.verb, _item(one, items),
            *_subject_cells(one), "; ".join(one.annotators), getattr(one.subject, "weight", None), one.reason,
            one.run, one.about, one.undoes, state.in_effect(one.id), getattr(one.subject, "blind", None),
            state.in_words(one), "" if one.verb == "undo" else state.standing(one.id),
        )  # fmt: skip


def _item(decision: Decision, items: Mapping[tuple[str, int], str]) -> str:
    if decision.subject is None or decision.item is None:
        return ""
    return items.get((decision.subject.kind, decision.item), f"number {decision.item}")


def _subject_cells(decision: Decision) -> Sequence[object]:
    """Give the cells from spot to label; a box is its first and last voxels, counted from 0."""
    subject = decision.subject
    if isinstance(subject, SpotSubject):
        spot = (subject.number, subject.x, subject.y, subject.from_x, subject.from_y)
        return (*spot, *[None] * 6)
    if isinstance(subject, RegionSubject):
        sides = zip("zyx", subject.origin, subject.shape, strict=True)
        box = " ".join(f"{name} {first}-{first + count - 1}" for name, first, count in sides)
        return (*[None] * 5, subject.structure, subject.number, box, subject.rater, None, None)
    if isinstance(subject, StructureSubject):
        return (*[None] * 5, subject.structure, *[None] * 5)
    if isinstance(subject, BiasSubject):
        return (*[None] * 8, subject.annotator, None, None)
    if isinstance(subject, TaskSubject):
        return (*[None] * 9, subject.task, subject.label)
    return [None] * 11


def _cell(value: object) -> object:
    if isinstance(value, str):
        return harmless(value) if value[:1] in _FIRST else value
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if value is None or (isinstance(value, (float, np.floating)) and not math.isfinite(value)):
        return ""
    return value
