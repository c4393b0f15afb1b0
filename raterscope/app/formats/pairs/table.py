"""Tables of pairs: annotator, left item, right item, choice and perhaps time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.labels.columns import Coded, Columns, Head, read_columns
from raterscope.app.formats.labels.table import (
    find_filled_rows,
    first_values,
    refuse_rows,
    renumber,
    rows_with,
    select_rows,
    time_notices,
)
from raterscope.app.formats.records import PairTable
from raterscope.app.formats.sources import File, open_source
from raterscope.app.formats.tables import Faults, Table, assign_columns, find_columns, read_names

__all__ = [
    "EXPECTED",
    "FIELDS",
    "RankingTable",
    "Reading",
    "ScaleError",
    "choices_of",
    "either",
    "holds_ranking",
    "is_side",
    "pairs_of",
    "read_ranking",
    "tells_table",
]


EXPECTED = "left, right, tie, one of the two items, or a number above 0 for left and below 0 for right"

_WORDS = {
    1.0: "left l leftitem leftone leftside first a itema modela optiona responsea imagea texta",
    -1.0: "right r rightitem rightone rightside second b itemb modelb optionb responseb imageb textb",
    0.0: "tie ties tied equal equals same draw drawn both neither bothbad bothgood tiebothbad tiebothgood "
    "nodifference nopreference undecided cannottell",
}
_NOTHING = {"", "na", "n/a", "null", "none", "<na>", "skip", "skipped", "no answer"}
_SIGNS = {">": 1.0, "<": -1.0, "=": 0.0, "==": 0.0}
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_LARGEST = 1e6
_MOST_STEPS = 10


class ScaleError(ValueError):
    """Numbers of a scale that does not say which end is left, in the end of a sentence."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Choices read, a row each.

    Attributes
    ----------
    value : (N,) float64
        NaN where there is none, or where it is not known.
    missing : (N,) bool
        Nothing was answered.
    unknown : (N,) bool
        Something was that cannot be read.
    notices : tuple of str
    """

    value: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    notices: tuple[str, ...]


def choices_of(
    texts: Sequence[str],
    index: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    items: Sequence[str],
    rows: NDArray[np.bool_],
) -> Reading:
    """Read choices, having looked what the whole column holds.

    It names the preferred items if nearly all of its cells, apart from ties, name one of the two that were
    compared: so items that are called 1 and 2, or A and B, are not taken for sides. Else words for sides
    count, and numbers: above 0 for left and below 0 for right, but 1 and 2 alone are left and right, and so
    are 1 and 0.

    Parameters
    ----------
    texts : sequence of str
        Each answer as it was written, once.
    index : (N,) int32
        Which of them each row has.
    left, right : (N,) int32
        Indices into `items`.
    items : sequence of str
    rows : (N,) bool
        Rows to read.

    Raises
    ------
    ScaleError
        For a scale such as 1 to 5.
    """
    number = {name: at for at, name in enumerate(items)}
    named = np.array([number.get(text, -1) for text in texts], dtype=np.int64)
    nothing = np.array([text.casefold() in _NOTHING and text not in number for text in texts], dtype=bool)
    value = np.array([_value(text) for text in texts], dtype=np.float64)
    side = np.array([_side(text) for text in texts], dtype=np.float64)
    tie = (side == 0) & (named < 0)
    missing = rows & nothing[index]
    said = rows & ~missing
    used = np.zeros(len(texts), dtype=bool)
    used[index[said]] = True
    name = named[index]
    of_left, of_right = said & (name >= 0) & (name == left), said & (name >= 0) & (name == right)
    sided = said & ~tie[index]
    by_name = int((of_left | of_right).sum()) >= _SURELY * max(int(sided.sum()), 1)
    numeric = used & ~tie & np.isfinite(value)
    notices: list[str] = []
    found = np.full(len(index), np.nan)
    if by_name and sided.any():
        found[said & tie[index]] = 0.0
        if numeric[used & ~tie].all():
            notices.append("The choices are names of the items compared: each was read as the preferred one.")
    else:
        if numeric.any() and not (used & np.isin(side, (-1.0, 1.0))).any():
            value, said_of_them = _scale(value, numeric)
            notices += said_of_them
        meant = np.where(np.isnan(side), value, side)
        found[said] = meant[index[said]]
        # A name counts where it is no word for a side.
        bare = np.isnan(found)
        of_left, of_right = of_left & bare, of_right & bare
    found[of_left], found[of_right] = 1.0, -1.0
    return Reading(found, missing, said & np.isnan(found), tuple(notices))


def is_side(text: str) -> bool:
    """Tell whether a text is a word for a side or a tie: not a mere letter, which may mean anything."""
    return len(text) > 1 and bool(np.isfinite(_side(text)))


def _side(text: str) -> float:
    """Read a word for a side or a tie: 1, -1 or 0; NaN for any other."""
    key = re.sub(r"[^a-z0-9]", "", text.casefold())
    return next((value for value, words in _WORDS.items() if key in words.split()), _SIGNS.get(text, np.nan))


def _value(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        return np.nan
    value = float(text.replace(",", "."))
    return value if abs(value) <= _LARGEST else np.nan


def _scale(
    value: NDArray[np.float64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Tell what numbers mean by all that are there."""
    steps = np.unique(value[used])
    if steps.tolist() == [1.0, 2.0]:
        return 3 - 2 * value, ("The choices 1 and 2 were read as left and right.",)
    if steps.tolist() == [0.0, 1.0]:
        return 2 * value - 1, ("The choices 1 and 0 were read as left and right.",)
    if steps[0] < 0 or steps[-1] == 0:
        return value, ()
    whole = bool((steps == np.round(steps)).all())
    if whole and len(steps) > 2 and steps[-1] <= _MOST_STEPS:
        raise ScaleError(
            f"has whole numbers from {steps[0]:.0f} to {steps[-1]:.0f} and none below 0; "
            "expected numbers above 0 for left and below 0 for right"
        )
    return value, ("No choice is below 0: all numbers above 0 were read as left.",)


FIELDS = (
    ("annotator", "annotator", True), ("left", "left item", True), ("right", "right item", True),
    ("choice", "choice", True), ("time", "time", False), ("question", "question", False),
    ("left_picture", "picture of the left item", False),
    ("right_picture", "picture of the right item", False),
)  # fmt: skip
"""What a column may hold: the word, the label for people, and whether it must be there."""

_NEEDED = ("annotator", "left", "right", "choice")
_WANTED = ("time", "question", "left_picture", "right_picture")


def pairs_of(
    head: Head, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[PairTable, ...]:
    """Read a table of comparisons.

    A column "question" makes a table of each question. Rows without an answer are counted and left out; so
    are those of an item against itself, and those whose choice is not known, with a notice that names the
    first, unless no row is left.

    Parameters
    ----------
    head : Head
    mapping : mapping of column to field, optional
        Fields: see `FIELDS`; and ignore.
    watch : Watch

    Raises
    ------
    UnknownColumns
        When the header does not tell which column is which.
    InputError
        For a row without a name, and for a table of which no row can be read.
    """
    column = assign_columns(head.table, _NEEDED, _WANTED, mapping)
    columns = read_columns(head, column, part(watch, 0.0, 0.8))
    filled = find_filled_rows(columns, column, _NEEDED, _NEEDED[:3])
    watch(0.82, "sorting comparisons")
    coded = columns.coded
    left, right, items = _united(coded.pop("left"), coded.pop("right"))
    question = coded.pop("question", None)
    asked = [("", filled)]
    if question is not None:
        asked = [
            (name, filled & (question.index == at)) for at, name in enumerate(question.names) if name
        ] or asked
    tables = []
    for at, (words, rows) in enumerate(asked):
        step = part(watch, 0.85 + 0.15 * at / len(asked), 0.85 + 0.15 * (at + 1) / len(asked))
        if rows.any():
            tables += [*_tables(columns, column, words, rows, (left, right, items), step)]
    if not tables:
        what = f"has no answers; expected {EXPECTED}"
        raise InputError(what, file=head.table.path, field=column["choice"])
    return tuple(tables)


def _united(left: Coded, right: Coded) -> tuple[NDArray[np.int32], NDArray[np.int32], list[str]]:
    """Give the items of both sides one list of numbers, in the order of first appearance."""
    names = {name: at for at, name in enumerate(left.names)}
    place = np.array([names.setdefault(name, len(names)) for name in right.names], dtype=np.int32)
    other = place[right.index] if len(place) else right.index
    row = np.arange(len(left.index), dtype=np.int64)[::-1]
    first = np.full(len(names), 2 * len(row), dtype=np.int64)
    first[other[::-1]] = 2 * row + 1
    earlier = np.full_like(first, 2 * len(row))
    earlier[left.index[::-1]] = 2 * row
    order = np.argsort(np.minimum(first, earlier), kind="stable")
    number = np.empty(len(names), dtype=np.int32)
    number[order] = np.arange(len(names), dtype=np.int32)
    known = list(names)
    return number[left.index], number[other], [known[at] for at in order.tolist()]


def _tables(
    columns: Columns,
    column: Mapping[str, str],
    question: str,
    rows: NDArray[np.bool_],
    sides: tuple[NDArray[np.int32], NDArray[np.int32], list[str]],
    watch: Watch,
) -> Iterator[PairTable]:
    """Make the table of one question; none if nobody answered it."""
    path, coded = columns.head.table.path, columns.coded
    left, right, items = sides
    watch(0.0, "reading choices")
    itself = rows & (left == right)
    if (itself == rows).all():
        what = "compares an item with itself; expected two items"
        refuse_rows(columns, column["right"], itself, what)
    chosen = coded["choice"]
    try:
        reading = choices_of(chosen.names, chosen.index, left, right, items, rows & ~itself)
    except ScaleError as error:
        raise InputError(str(error), file=path, field=column["choice"]) from None
    answered = rows & ~itself & ~reading.missing
    if not answered.any():
        return
    if (reading.unknown == answered).all():
        cell = plain(chosen.names[chosen.index[np.flatnonzero(answered)[0]]], 40)
        what = f'"{cell}" is no choice; expected {EXPECTED}'
        refuse_rows(columns, column["choice"], answered, what)
    kept = answered & ~reading.unknown
    said = list(reading.notices)
    missing = int(reading.missing.sum())
    if missing:
        said.append(f"{counted(missing, 'row')} without an answer {_were(missing)} left out.")
    for bad, what in ((itself, "compares an item with itself"), (reading.unknown, "")):
        many = int(bad.sum())
        if many:
            row = int(np.flatnonzero(bad)[0])
            cell = plain(chosen.names[chosen.index[row]], 40)
            what = what or f'has the choice "{cell}"; expected {EXPECTED}'
            said.append(f"{counted(many, 'row')} {_were(many)} left out: line {columns.line(row)} {what}.")
    said += time_notices(columns, column)
    watch(0.5, "sorting comparisons")
    annotator = renumber(coded["annotator"], rows)
    item = _of_question(left, right, items, rows)
    time = None if columns.time is None else select_rows(columns.time, kept)
    yield PairTable(
        path=path, question=question, annotators=tuple(annotator.names), items=tuple(item.names),
        annotator=select_rows(annotator.index, kept), left=item.index[select_rows(left, kept)],
        right=item.index[select_rows(right, kept)], choice=select_rows(reading.value, kept) + 0.0,
        time=None if time is None or np.isnan(time).all() else time,
        pictures=_pictures(coded, item, (left, right), rows), missing=missing, notices=tuple(said),
    )  # fmt: skip


def _were(many: int) -> str:
    return "was" if many == 1 else "were"


def _of_question(
    left: NDArray[np.int32], right: NDArray[np.int32], items: list[str], rows: NDArray[np.bool_]
) -> Coded:
    """Give the items of some rows new numbers: their names, and what number each of all items gets."""
    used = np.zeros(len(items), dtype=bool)
    used[left[rows]] = used[right[rows]] = True
    number = (np.cumsum(used) - 1).astype(np.int32)
    return Coded([name for name, there in zip(items, used.tolist(), strict=True) if there], number)


def _pictures(
    coded: Mapping[str, Coded],
    item: Coded,
    sides: tuple[NDArray[np.int32], NDArray[np.int32]],
    rows: NDArray[np.bool_],
) -> dict[int, str]:
    found: dict[int, str] = {}
    for field, side in zip(("right_picture", "left_picture"), sides[::-1], strict=True):
        picture = coded.get(field)
        if picture is not None:
            shown = Coded(item.names, item.index[side])
            first = first_values(picture.index, shown, rows & ~rows_with(picture, ""))
            found |= {at: picture.names[first[at]] for at in np.flatnonzero(first >= 0).tolist()}
    return found


_COMPARED = ("left", "right", "choice")
_LABELLED = ("annotator", "task", "label")
_CHOSEN = {"choice", "winner", "preferred", "preference", "chosen", "selected"}
"""Names of a column that choose, where others may as well label."""

_SURELY = 0.9
_SHARED = 0.5


def tells_table(table: Table) -> bool:
    """Tell whether a table holds comparisons, whoever made them; with places it has clicks.

    The header tells it, unless it is one of labels too: then what the columns hold.
    """
    column = find_columns(table, _COMPARED)
    if column is None or {"x", "y"} <= {name.casefold().strip() for name in table.header}:
        return False
    return find_columns(table, _LABELLED) is None or _compares(table, column)


def either(table: Table) -> dict[str, str] | None:
    """Give which columns are left, right and choice, where these may be labels as well; None elsewhere."""
    column = find_columns(table, _COMPARED)
    return None if column is None or find_columns(table, _LABELLED) is None else column


def _compares(table: Table, column: dict[str, str]) -> bool:
    """Tell by the first rows whether what stands as the choice chooses between left and right.

    Names of one of the two and words for sides tell it. Numbers and single letters may be labels: for them
    the same names must stand on both sides, and not as the ends of intervals, or the column be named as a
    choice is.
    """
    left, right, said = ([cell.strip() for cell in table.column(column[field])] for field in _COMPARED)
    names, index = np.unique([*left, *right], return_inverse=True)
    texts, told = np.unique(said, return_inverse=True)
    one, other = (side.astype(np.int32) for side in np.split(index, 2))
    apart = one != other
    if not len(said) or apart.mean() < _SURELY:
        return False
    shared = len(np.intersect1d(one, other)) >= _SHARED * min(len(np.unique(one)), len(np.unique(other)))
    likely = column["choice"].casefold().strip() in _CHOSEN or (shared and not _are_ends(left, right))
    items, words = names.tolist(), texts.tolist()
    try:
        reading = choices_of(words, told.astype(np.int32), one, other, items, apart)
    except ScaleError:
        return likely
    answered = apart & ~reading.missing
    if reading.unknown.sum() > (1 - _SURELY) * answered.sum():
        return False
    if likely:
        return True
    named = np.array([what in pair for what, *pair in zip(said, left, right, strict=True)], dtype=bool)
    tells = named | np.array([is_side(word) for word in words], dtype=bool)[told]
    return bool(answered.any() and tells[answered].mean() >= _SURELY)


def _are_ends(left: list[str], right: list[str]) -> bool:
    """Tell whether the left of two numbers is always the smaller one."""
    try:
        return bool((np.array(left, dtype=np.float64) < np.array(right, dtype=np.float64)).all())
    except ValueError:
        return False


_ITEM = ("item", "object", "image", "option", "model", "name", "id")
_RANK = ("rank", "truerank", "true_rank", "groundtruthrank", "ground_truth_rank")
_GROUP = ("group",)
_OTHERS = {
    "annotator", "worker", "rater", "user", "judge", "left", "right", "label", "choice", "x", "y",
    "rank_corrected",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class RankingTable:
    """A ground-truth ranking from one file.

    Attributes
    ----------
    path : Path
    items : tuple of n names
    place : (n,) float64
        Ranks, the best first.
    group : (n,) int32
        Items of different groups are not ordered; all 0 without such a column.
    """

    path: Path
    items: tuple[str, ...]
    place: NDArray[np.float64]
    group: NDArray[np.int32]


def holds_ranking(file: File) -> bool:
    """Find out by its header whether a table holds a ranking: items and ranks, and no annotator.

    Parameters
    ----------
    file : Path or Source
    """
    try:
        table = open_source(file).head().table
    except InputError:
        return False
    columns = _columns(table)
    return {"item", "rank"} <= columns.keys() and _OTHERS.isdisjoint(one.casefold() for one in table.header)


def read_ranking(file: File, watch: Watch = silent) -> RankingTable:
    """Read a ranking.

    Raises
    ------
    InputError
        Where a column is missing, a rank is no number, or an item stands twice.
    """
    table = open_source(file).table(watch)
    path = table.path
    columns = _columns(table)
    for needed in ("item", "rank"):
        if needed not in columns:
            raise InputError(
                f"has no column {needed}; expected item, rank and perhaps group, the best item with the "
                "lowest rank", file=path,
            )  # fmt: skip
    faults = Faults(table)
    items = read_names(table, columns["item"], faults)
    place = [_rank(cell) for cell in table.column(columns["rank"])]
    faults.add(
        (row for row, rank in enumerate(place) if not math.isfinite(rank)), columns["rank"],
        '"{cell}" is no rank; expected a number, the best item with the lowest',
    )  # fmt: skip
    faults.add(
        _repeated(items), columns["item"],
        "{cell} is ranked twice; expected each item once",
    )  # fmt: skip
    group = read_names(table, columns["group"], faults) if "group" in columns else [""] * len(items)
    faults.refuse()
    number = {name: at for at, name in enumerate(dict.fromkeys(group))}
    return RankingTable(
        path, tuple(items), np.asarray(place, dtype=np.float64),
        np.array([number[name] for name in group], dtype=np.int32),
    )  # fmt: skip


def _repeated(items: list[str]) -> list[int]:
    first: dict[str, int] = {}
    return [row for row, name in enumerate(items) if first.setdefault(name, row) != row]


def _rank(cell: str) -> float:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return math.nan


def _columns(table: Table) -> Mapping[str, str]:
    found = {}
    for field, words in (("item", _ITEM), ("rank", _RANK), ("group", _GROUP)):
        there = [one for one in table.header if one.casefold().replace(" ", "_") in words]
        if there:
            found[field] = there[0]
    return found
