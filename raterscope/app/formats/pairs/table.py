"""Tables of pairs, whose choices are sides, names of items, ties or numbers; and ground-truth rankings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.labels.columns import Columns, read_columns
from raterscope.app.formats.labels.table import (
    find_filled_rows,
    first_values,
    refuse_rows,
    renumber,
    rows_with,
    select_rows,
    time_notices,
)
from raterscope.app.formats.pairs.tasks import (
    TaskColumns,
    contents_of_tasks,
    find_task_columns,
    number_tasks,
    take_contents,
)
from raterscope.app.formats.records import PairTable
from raterscope.app.formats.sources import File, open_source
from raterscope.app.formats.table_files import Head
from raterscope.app.formats.tables import (
    Coded,
    Faults,
    Table,
    UnknownColumns,
    assign_columns,
    fields_of,
    find_columns,
    number_or_nan,
    read_names,
    unite,
)
from raterscope.text import counted

EXPECTED = "left, right, tie, one of the two items, or a number above 0 for left and below 0 for right"

_WORDS = {
    1.0: "left l leftitem leftone leftside first a itema modela optiona responsea imagea texta",
    -1.0: "right r rightitem rightone rightside second b itemb modelb optionb responseb imageb textb",
    0.0: "tie ties tied equal equals same draw drawn both neither bothbad bothgood tiebothbad tiebothgood "
    "nodifference nopreference undecided cannottell",
}
_NOTHING = {"", "na", "n/a", "null", "none", "<na>", "skip", "skipped", "no answer"}
_SIGNS = {">": 1.0, "<": -1.0, "=": 0.0, "==": 0.0, "[[C]]": 0.0}
_VERDICT = re.compile(r"\[*(a|b) *(>{1,2}|<{1,2}|=) *(a|b)\]*", re.IGNORECASE)
"""Verdict of a judge such as [[A>>B]]; the sides differ."""

_STRENGTH = re.compile(
    r"(.+?)( is| was)?( much| slightly| significantly| somewhat| clearly| strongly| marginally| far| a bit"
    r"| a little| a lot)?( better| preferred| wins| won)",
    re.IGNORECASE,
)
"""Side with a strength, such as "A is slightly better"."""

_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_LARGEST = 1e6
_MAX_STEPS = 10


class ScaleError(ValueError):
    """Error: numbers of a scale without a defined left end; the message is the end of a sentence."""


@dataclass(frozen=True, eq=False)
class ChoiceReading:
    """Choices of the rows of a table."""

    value: NDArray[np.float64]  # (N,): NaN if missing or unknown
    missing: NDArray[np.bool_]  # (N,): there is no answer
    unknown: NDArray[np.bool_]  # (N,): there is an answer that cannot be read
    notices: tuple[str, ...]


def read_choices(
    texts: Sequence[str],
    index: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    items: Sequence[str],
    rows: NDArray[np.bool_],
) -> ChoiceReading:
    """Read choices, interpreted by the complete column.

    If nearly all cells except ties name one of the two compared items, the column contains the preferred
    items; items called 1 and 2, or A and B, are then not read as sides. Otherwise words for sides count, and
    numbers: above 0 for left and below 0 for right. If only 1 and 2, or 1 and 0, occur, they mean left and
    right; with 0.5 for a tie. Raises `ScaleError` for a scale such as 1 to 5.

    `texts`: each distinct answer, as written.
    `index`: (N,), index of each row's answer.
    `left`, `right`: (N,), indices into `items`.
    `rows`: (N,), rows to read.
    """
    number = {name: at for at, name in enumerate(items)}
    named = np.array([number.get(text, -1) for text in texts], dtype=np.int64)
    is_missing = np.array([text.casefold() in _NOTHING and text not in number for text in texts], dtype=bool)
    value = np.array([_value(text) for text in texts], dtype=np.float64)
    side = np.array([_side(text) for text in texts], dtype=np.float64)
    tie = (side == 0) & (named < 0)
    missing = rows & is_missing[index]
    answered = rows & ~missing
    used = np.zeros(len(texts), dtype=bool)
    used[index[answered]] = True
    name = named[index]
    names_left = answered & (name >= 0) & (name == left)
    names_right = answered & (name >= 0) & (name == right)
    sided = answered & ~tie[index]
    by_name = int((names_left | names_right).sum()) >= _SURELY * max(int(sided.sum()), 1)
    numeric = used & ~tie & np.isfinite(value)
    notices: list[str] = []
    choice = np.full(len(index), np.nan)
    if by_name and sided.any():
        choice[answered & tie[index]] = 0.0
        if numeric[used & ~tie].all():
            notices.append("The choices are names of compared items: each is read as the preferred item.")
    else:
        if numeric.any() and not (used & np.isin(side, (-1.0, 1.0))).any():
            value, scale_notices = _scale(value, numeric)
            notices += scale_notices
        meaning = np.where(np.isnan(side), value, side)
        choice[answered] = meaning[index[answered]]
        # A name counts if it is not a word for a side.
        unread = np.isnan(choice)
        names_left, names_right = names_left & unread, names_right & unread
    choice[names_left], choice[names_right] = 1.0, -1.0
    return ChoiceReading(choice, missing, answered & np.isnan(choice), tuple(notices))


def is_side(text: str) -> bool:
    """Return whether a text is a word for a side or a tie; False for single letters, which are ambiguous."""
    return len(text) > 1 and bool(np.isfinite(_side(text)))


def _side(text: str) -> float:
    """Read a word for a side or a tie: 1, -1 or 0; NaN for any other text."""
    verdict, strength = _VERDICT.fullmatch(text), _STRENGTH.fullmatch(text)
    if verdict and verdict[1].casefold() != verdict[3].casefold():
        return _SIGNS[verdict[2][0]] * _side(verdict[1]) + 0.0
    key = re.sub(r"[^a-z0-9]", "", (strength[1] if strength else text).casefold())
    return next((value for value, words in _WORDS.items() if key in words.split()), _SIGNS.get(text, np.nan))


def _value(text: str) -> float:
    text = text.replace("\N{MINUS SIGN}", "-")
    if not _NUMBER.fullmatch(text):
        return np.nan
    value = float(text.replace(",", "."))
    return value if abs(value) <= _LARGEST else np.nan


def _scale(
    value: NDArray[np.float64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Interpret numbers by all the values that occur."""
    steps = np.unique(value[used])
    if steps.tolist() == [1.0, 2.0]:
        return 3 - 2 * value, ("The choices 1 and 2 are read as left and right.",)
    if steps.tolist() == [0.0, 1.0]:
        return 2 * value - 1, ("The choices 1 and 0 are read as left and right.",)
    if steps.tolist() == [0.0, 0.5, 1.0]:
        return 2 * value - 1, ("The choices 1, 0.5 and 0 are read as left, tie and right.",)
    if steps[0] < 0 or steps[-1] == 0:
        return value, ()
    if steps[0] < 0.5 < steps[-1] <= 1:
        raise ScaleError(
            f"has numbers from {steps[0]:g} to {steps[-1]:g} and none below 0; expected numbers above 0 for "
            "left and below 0 for right: subtract 0.5 from probabilities of left"
        )
    are_integers = bool((steps == np.round(steps)).all())
    if are_integers and len(steps) > 2 and steps[-1] <= _MAX_STEPS:
        raise ScaleError(
            f"has integers from {steps[0]:.0f} to {steps[-1]:.0f} and none below 0; "
            "expected numbers above 0 for left and below 0 for right"
        )
    return value, ("No choice is below 0: all numbers above 0 are read as left.",)


FIELDS = (
    ("annotator", "annotator", True), ("left", "left item", True), ("right", "right item", True),
    ("choice", "choice", True), ("time", "time", False), ("question", "question", False),
    ("left_picture", "picture of the left item", False),
    ("right_picture", "picture of the right item", False), ("read", "number of the read", False),
)  # fmt: skip
"""Fields of a column: name, label on screen, and whether it is required."""

_NEEDED = ("annotator", "left", "right", "choice")
_TASK = "task"
_NO_SIDES = (
    "The table names winner and loser, but not their sides: sides were drawn at random, so a bias to a side "
    "cannot show."
)
_WANTED = ("time", "question", "left_picture", "right_picture", "read")
_ALL_ANNOTATORS = "all annotators"
_NO_ANNOTATORS = f'No column names the annotators: all comparisons are by "{_ALL_ANNOTATORS}".'
_SUBJECT = re.compile(r"subj(ect)?[ _-]?(id|no|number|name)?", re.IGNORECASE)
"""Name of a column of annotators only if there is no other; elsewhere a subject is what is annotated."""

_WON = re.compile(
    r"(?:winner|won|wins)[ _-]?(?:model|item|option|response)?[ _-]?"
    r"(?:(?P<left>a|left|1)|(?P<right>b|right|2)|(?P<tie>tie))",
    re.IGNORECASE,
)


def read_pair_table(
    head: Head, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[PairTable, ...]:
    """Read a table of comparisons.

    With a column "question", each question becomes a table. Rows without an answer are counted and skipped.
    Rows that compare an item with itself, or with an unreadable choice, are skipped with a notice that names
    the first, unless no row remains. Raises `UnknownColumns` if the header does not name the columns. Raises
    `InputError` for a row without a name, and for a table without a readable row.

    `mapping`: fields of columns, named by hand: see `FIELDS`; and ignore.
    """
    outcome = {} if mapping else find_outcomes(head.table)
    won = find_won_columns(head.table)
    if mapping and {name for name, field in mapping.items() if field == "choice"} != set(won.values()):
        won = {}
    needed = _NEEDED[:3] if outcome or won else _NEEDED
    by_hand = {**(mapping or outcome), **dict.fromkeys(won.values(), "ignore")}
    column, shown = _assign(head.table, needed, by_hand), TaskColumns()
    if not outcome:
        column, shown = _with_task_columns(head.table, column, by_hand)
    to_read = column | shown.to_read() | {f"won by {side}": name for side, name in won.items()}
    columns = read_columns(head, to_read, part(watch, 0.0, 0.8))
    texts = take_contents(columns, shown)
    coded = columns.coded
    fields = fields_of(column) | dict.fromkeys(shown.to_read().values(), "content")
    if won:
        coded["choice"] = _choices_of({side: coded.pop(f"won by {side}") for side in won})
        fields |= dict.fromkeys(won.values(), "choice")
        column["choice"] = won["left"]
    filled = find_filled_rows(columns, column, [name for name in needed if name in column], _NEEDED[:3])
    if "annotator" not in column:
        coded["annotator"] = Coded([_ALL_ANNOTATORS], np.zeros(len(filled), dtype=np.int32))
    watch(0.82, "sorting comparisons")
    if outcome:
        _draw_sides(columns)
        fields |= {column["left"]: "winner", column["right"]: "loser"}
        column["choice"] = column["left"]
    left, right, items = _unify_items(coded.pop("left"), coded.pop("right"))
    if texts:
        coded[_TASK] = number_tasks(texts, shown)
    question = coded.pop("question", None)
    questions = [("", filled)]
    if question is not None:
        questions = [
            (name, filled & (question.numbers == at)) for at, name in enumerate(question.names) if name
        ] or questions
    tables = []
    for (words, rows), step in steps_of(part(watch, 0.85, 1.0), questions):
        if rows.any():
            contents = None
            if texts:
                contents = contents_of_tasks(columns, texts, shown, coded[_TASK], (left, right), items, rows)
            of_question = _tables(columns, column, words, rows, (left, right, items), step)
            tables += [replace(table, columns=fields, contents=contents) for table in of_question]
    if not tables:
        problem = f"has no answers; expected {EXPECTED}"
        raise InputError(problem, file=head.table.path, field=column["choice"])
    notices = [_NO_SIDES] * bool(outcome) + [_NO_ANNOTATORS] * ("annotator" not in column)
    notices += columns.header_notices()
    tables[0] = replace(tables[0], notices=(*tables[0].notices, *notices))
    return tuple(tables)


def _assign(table: Table, needed: Sequence[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Assign columns to fields; that of the annotators may be missing."""
    try:
        return assign_columns(table, needed, _WANTED, mapping)
    except UnknownColumns as error:
        if error.missing != ("annotator",):
            raise
    subject = [name for name in table.header if name not in mapping and _SUBJECT.fullmatch(name.strip())]
    return assign_columns(
        table,
        [field for field in needed if field != "annotator"],
        ("annotator", *_WANTED),
        {**mapping, **dict.fromkeys(subject[:1], "annotator")},
    )


def _with_task_columns(
    table: Table, column: dict[str, str], mapping: Mapping[str, str]
) -> tuple[dict[str, str], TaskColumns]:
    """Find the columns of prompts and answers, to which "question" may belong."""
    fields = {field: name for field, name in column.items() if field != "question" or name in mapping}
    ignored = [name for name, field in mapping.items() if field == "ignore"]
    shown = find_task_columns(table, [*fields.values(), *ignored])
    if shown is None:
        return column, TaskColumns()
    if column.get("question") not in (*shown.prompts, shown.identifier):
        fields = column
    return fields, shown


def find_outcomes(table: Table) -> dict[str, str]:
    """Return the columns of the winner and the loser as left and right; empty if the table has none."""
    if find_columns(table, _COMPARED):
        return {}
    column = find_columns(table, ("winner", "loser"))
    return {} if column is None else {column["winner"]: "left", column["loser"]: "right"}


def find_won_columns(table: Table) -> dict[str, str]:
    """Return the columns of 0 and 1 that state whether left, right or neither won; empty if none do."""
    if find_columns(table, ("choice",)) or not find_columns(table, ("left", "right")):
        return {}
    won = {
        str(match.lastgroup): name
        for name in table.header
        if (match := _WON.fullmatch(name.strip())) and set(table.column(name)) <= {"0", "1", ""}
    }
    return won if {"left", "right"} <= won.keys() else {}


def _choices_of(won: Mapping[str, Coded]) -> Coded:
    """Return the choice of each row: the side whose column alone is 1; empty if there is none."""
    is_won = np.array([rows_with(column, "1") for column in won.values()])
    index = np.where(is_won.sum(axis=0) == 1, is_won.argmax(axis=0), len(won))
    return Coded([*won, ""], index.astype(np.int32))


def _draw_sides(columns: Columns) -> None:
    """Place winners and losers on random sides, because their sides are unknown; the seed is fixed."""
    coded = columns.coded
    names, (won, lost) = unite(coded["left"], coded["right"])
    swapped = np.random.default_rng(0).random(len(won)) < 0.5
    coded["left"] = Coded(names, np.where(swapped, lost, won))
    coded["right"] = Coded(names, np.where(swapped, won, lost))
    coded["choice"] = Coded(["left", "right"], swapped.astype(np.int32))


def _unify_items(left: Coded, right: Coded) -> tuple[NDArray[np.int32], NDArray[np.int32], list[str]]:
    """Index the items of both sides together, in the order of first appearance."""
    names, (_, other) = unite(left, right)
    row = np.arange(len(left.numbers), dtype=np.int64)[::-1]
    first = np.full(len(names), 2 * len(row), dtype=np.int64)
    first[other[::-1]] = 2 * row + 1
    earlier = np.full_like(first, 2 * len(row))
    earlier[left.numbers[::-1]] = 2 * row
    order = np.argsort(np.minimum(first, earlier), kind="stable")
    number = np.empty(len(names), dtype=np.int32)
    number[order] = np.arange(len(names), dtype=np.int32)
    return number[left.numbers], number[other], [names[at] for at in order.tolist()]


def _tables(
    columns: Columns,
    column: Mapping[str, str],
    question: str,
    rows: NDArray[np.bool_],
    sides: tuple[NDArray[np.int32], NDArray[np.int32], list[str]],
    watch: Watch,
) -> Iterator[PairTable]:
    """Yield the table of one question; nothing if there is no answer."""
    path, coded = columns.head.table.path, columns.coded
    left, right, items = sides
    watch(0.0, "reading choices")
    itself = rows & (left == right)
    if (itself == rows).all():
        problem = "compares an item with itself; expected two items"
        refuse_rows(columns, column["right"], itself, problem)
    chosen = coded["choice"]
    try:
        reading = read_choices(chosen.names, chosen.numbers, left, right, items, rows & ~itself)
    except ScaleError as error:
        raise InputError(str(error), file=path, field=column["choice"]) from None
    answered = rows & ~itself & ~reading.missing
    if not answered.any():
        return
    if (reading.unknown == answered).all():
        cell = plain(chosen.names[chosen.numbers[np.flatnonzero(answered)[0]]], 40)
        problem = f'"{cell}" is not a choice; expected {EXPECTED}'
        refuse_rows(columns, column["choice"], answered, problem)
    kept = answered & ~reading.unknown
    messages = list(reading.notices)
    missing = int(reading.missing.sum())
    if missing:
        messages.append(f"{counted(missing, 'row')} without an answer skipped.")
    for bad, problem in ((itself, "compares an item with itself"), (reading.unknown, "")):
        count = int(bad.sum())
        if count:
            row = int(np.flatnonzero(bad)[0])
            cell = plain(chosen.names[chosen.numbers[row]], 40)
            problem = problem or f'has the choice "{cell}"; expected {EXPECTED}'
            messages.append(f"{counted(count, 'row')} skipped: line {columns.line(row)} {problem}.")
    messages += time_notices(columns, column)
    watch(0.5, "sorting comparisons")
    annotator = renumber(coded["annotator"], rows)
    item = _select_items(left, right, items, rows)
    time = None if columns.time is None else select_rows(columns.time, kept)
    task = renumber(coded[_TASK], kept) if _TASK in coded else None
    yield PairTable(
        path=path, question=question, annotators=tuple(annotator.names), items=tuple(item.names),
        annotator=select_rows(annotator.numbers, kept), left=item.numbers[select_rows(left, kept)],
        right=item.numbers[select_rows(right, kept)], choice=select_rows(reading.value, kept) + 0.0,
        time=None if time is None or np.isnan(time).all() else time,
        pictures=_pictures(coded, item, (left, right), rows), missing=missing, notices=tuple(messages),
        tasks=() if task is None else tuple(task.names),
        task=None if task is None else _without_empty(task, select_rows(task.numbers, kept)),
    )  # fmt: skip


def _without_empty(task: Coded, index: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the task of each row, -1 where the cell is empty."""
    if "" not in task.names:
        return index
    return np.where(index == task.names.index(""), -1, index).astype(np.int32)


def _select_items(
    left: NDArray[np.int32], right: NDArray[np.int32], items: list[str], rows: NDArray[np.bool_]
) -> Coded:
    """Renumber the items of some rows: return their names, and the new index of each item."""
    used = np.zeros(len(items), dtype=bool)
    used[left[rows]] = used[right[rows]] = True
    number = (np.cumsum(used) - 1).astype(np.int32)
    return Coded([name for name, is_used in zip(items, used.tolist(), strict=True) if is_used], number)


def _pictures(
    coded: Mapping[str, Coded],
    item: Coded,
    sides: tuple[NDArray[np.int32], NDArray[np.int32]],
    rows: NDArray[np.bool_],
) -> dict[int, str]:
    pictures: dict[int, str] = {}
    for field, side in zip(("right_picture", "left_picture"), sides[::-1], strict=True):
        picture = coded.get(field)
        if picture is not None:
            shown = Coded(item.names, item.numbers[side])
            first = first_values(picture.numbers, shown, rows & ~rows_with(picture, ""))
            pictures |= {at: picture.names[first[at]] for at in np.flatnonzero(first >= 0).tolist()}
    return pictures


_COMPARED = ("left", "right", "choice")
_LABELLED = ("annotator", "task", "label")
_CHOSEN = {"choice", "winner", "preferred", "preference", "chosen", "selected"}
"""Names of columns that contain choices, and certainly not labels."""

_SURELY = 0.9
_SHARED = 0.5


def holds_pairs(table: Table) -> bool:
    """Return whether a table contains comparisons, with or without annotators, but no x and y.

    The header decides, unless it also fits labels; then the content of the columns decides.
    """
    column = find_columns(table, _COMPARED)
    if find_outcomes(table) or find_won_columns(table):
        return True
    if column is None or {"x", "y"} <= {name.casefold().strip() for name in table.header}:
        return False
    return find_columns(table, _LABELLED) is None or _chooses_sides(table, column)


def find_ambiguous_columns(table: Table) -> dict[str, str] | None:
    """Return the columns left, right and choice if the header also fits labels, otherwise None."""
    column = find_columns(table, _COMPARED)
    return None if column is None or find_columns(table, _LABELLED) is None else column


def _chooses_sides(table: Table, column: dict[str, str]) -> bool:
    """Return whether the column of choices chooses between left and right, judged by the first rows.

    It does if it contains names of the two items, or words for sides. Numbers and single letters may be
    labels; then the same names must occur on both sides, but not as ends of intervals, or the column must be
    named as a choice.
    """
    left, right, answers = ([cell.strip() for cell in table.column(column[field])] for field in _COMPARED)
    names, index = np.unique([*left, *right], return_inverse=True)
    texts, answer_index = np.unique(answers, return_inverse=True)
    left_index, right_index = (side.astype(np.int32) for side in np.split(index, 2))
    different = left_index != right_index
    if not len(answers) or different.mean() < _SURELY:
        return False
    fewest = min(len(np.unique(left_index)), len(np.unique(right_index)))
    shared = len(np.intersect1d(left_index, right_index)) >= _SHARED * fewest
    likely = column["choice"].casefold().strip() in _CHOSEN or (shared and not _are_ends(left, right))
    items, words = names.tolist(), texts.tolist()
    try:
        reading = read_choices(
            words, answer_index.astype(np.int32), left_index, right_index, items, different
        )
    except ScaleError:
        return likely
    answered = different & ~reading.missing
    if reading.unknown.sum() > (1 - _SURELY) * answered.sum():
        return False
    if likely:
        return True
    named = np.array([answer in pair for answer, *pair in zip(answers, left, right, strict=True)], dtype=bool)
    decisive = named | np.array([is_side(word) for word in words], dtype=bool)[answer_index]
    return bool(answered.any() and decisive[answered].mean() >= _SURELY)


def _are_ends(left: list[str], right: list[str]) -> bool:
    """Return whether the left of two numbers is always the smaller."""
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
    """Ground-truth ranking from one file."""

    path: Path
    items: tuple[str, ...]
    place: NDArray[np.float64]  # (n,): ranks, the best first
    group: NDArray[np.int32]  # (n,): items of different groups are not ordered; all 0 without such a column


def holds_ranking(file: File) -> bool:
    """Return whether a table holds a ranking, by its header: items and ranks, and no annotator."""
    try:
        table = open_source(file).head().table
    except InputError:
        return False
    columns = _columns(table)
    return {"item", "rank"} <= columns.keys() and _OTHERS.isdisjoint(name.casefold() for name in table.header)


def read_ranking(file: File) -> RankingTable:
    """Read a ground-truth ranking.

    Raises `InputError` if a column is missing, a rank is not a number, or an item occurs twice.
    """
    table = open_source(file).table()
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
    ranks = [number_or_nan(cell, comma=True) for cell in table.column(columns["rank"])]
    faults.add(
        (row for row, rank in enumerate(ranks) if not math.isfinite(rank)), columns["rank"],
        '"{cell}" is not a rank; expected a number, the best item with the lowest',
    )  # fmt: skip
    faults.add(
        _repeated(items), columns["item"],
        "{cell} is ranked twice; expected each item once",
    )  # fmt: skip
    group = read_names(table, columns["group"], faults) if "group" in columns else [""] * len(items)
    faults.refuse()
    number = {name: at for at, name in enumerate(dict.fromkeys(group))}
    return RankingTable(
        path, tuple(items), np.asarray(ranks, dtype=np.float64),
        np.array([number[name] for name in group], dtype=np.int32),
    )  # fmt: skip


def _repeated(items: Sequence[str]) -> list[int]:
    first: dict[str, int] = {}
    return [row for row, name in enumerate(items) if first.setdefault(name, row) != row]


def _columns(table: Table) -> Mapping[str, str]:
    columns = {}
    for field, words in (("item", _ITEM), ("rank", _RANK), ("group", _GROUP)):
        matching = [name for name in table.header if name.casefold().replace(" ", "_") in words]
        if matching:
            columns[field] = matching[0]
    return columns
