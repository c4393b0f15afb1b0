"""Tables of labels: task, annotator, label and perhaps time; and tables of true labels: task, label."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import dialects
from raterscope.app.formats.labels.collector import VoteCollector, outputs_of
from raterscope.app.formats.labels.columns import Coded, Columns, Head, read_columns
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.formats.tables import (
    COLUMN_NAMES,
    LONGEST_NAME,
    Faults,
    Table,
    UnknownColumns,
    assign,
    assigned,
    names,
)

__all__ = [
    "FIELDS",
    "VOTES",
    "annotators_of",
    "cells_are",
    "filled_rows",
    "first_values",
    "labels_of",
    "refuse_rows",
    "renumbered",
    "tells_table",
    "time_notices",
    "truth_of",
    "values_of",
    "votes_of",
]


def filled_rows(
    columns: Columns, column: Mapping[str, str], fields: Sequence[str], needed: Sequence[str]
) -> NDArray[np.bool_]:
    """Find the rows that hold something, refusing those without a name, or with an endless one.

    Parameters
    ----------
    columns : Columns
    column : mapping of field to column
    fields : sequence of str
        A row in which all of them are empty is none.
    needed : sequence of str
        Those of them that every row must have.

    Raises
    ------
    InputError
        For the first bad row.
    """
    empty = {name: cells_are(columns.coded[name], "") for name in fields}
    filled = ~np.logical_and.reduce(list(empty.values()))
    if not len(filled):
        raise InputError("has a header but no rows", file=columns.head.table.path)
    for name, coded in columns.coded.items():
        if name in needed:
            refuse_rows(columns, column[name], empty[name] & filled, "is empty; expected a name")
        if max(map(len, coded.names), default=0) > LONGEST_NAME:
            endless = [at for at, text in enumerate(coded.names) if len(text) > LONGEST_NAME]
            what = f"is longer than {LONGEST_NAME} letters; expected a name"
            refuse_rows(columns, column[name], np.isin(coded.index, endless), what)
    return np.asarray(filled)


def cells_are(coded: Coded, name: str) -> NDArray[np.bool_]:
    """Tell in which rows a column holds a name."""
    if name not in coded.names:
        return np.zeros(len(coded.index), dtype=np.bool_)
    return np.asarray(coded.index == coded.names.index(name))


def refuse_rows(columns: Columns, field: str, bad: NDArray[np.bool_], what: str) -> None:
    """Refuse a table in which some rows are bad: the first is told, the others are counted.

    Raises
    ------
    InputError
    """
    rows = np.flatnonzero(bad)
    if len(rows):
        raise InputError(
            f"{what}{dialects.others(len(rows) - 1)}; nothing was imported",
            file=columns.head.table.path, line=columns.line(int(rows[0])), field=field,
        )  # fmt: skip


def values_of(values: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[Any]:
    """Give the values of some rows; the same array if these are all."""
    return values if rows.all() else values[rows]


def renumbered(coded: Coded, rows: NDArray[np.bool_]) -> Coded:
    """Give names new numbers where some rows, and so perhaps some names, are left out."""
    if rows.all():
        return coded
    seen, first = np.unique(coded.index[rows], return_index=True)
    seen = seen[np.argsort(first)]
    place = np.zeros(len(coded.names), dtype=np.int32)
    place[seen] = np.arange(len(seen), dtype=np.int32)
    return Coded([coded.names[at] for at in seen.tolist()], place[coded.index])


def first_values(values: NDArray[Any], coded: Coded, rows: NDArray[np.bool_]) -> NDArray[Any]:
    """Give each name's first value among some rows, -1 where there is none."""
    found = np.full(len(coded.names), -1, dtype=values.dtype)
    found[coded.index[rows][::-1]] = values[rows][::-1]
    return found


def time_notices(columns: Columns, column: Mapping[str, str]) -> list[str]:
    """Say that the times were left out, if a cell is none."""
    if columns.no_time is None:
        return []
    row, cell = columns.no_time
    return [
        f"The times in {plain(column['time'], 40)} were left out: line {columns.line(row)} has"
        f' "{plain(cell, 40)}", which is no time.'
    ]


FIELDS = (
    ("annotator", "annotator", True), ("task", "task", True), ("label", "label", True),
    ("time", "time", False), ("truth", "true label", False), ("question", "question", False),
    ("picture", "picture of the task", False),
)  # fmt: skip
"""What a column may hold: the word, the label for people, and whether it must be there."""

_NEEDED = ("annotator", "task", "label")
_WANTED = ("time", "truth", "question", "picture")
_TRUE = ("task", "truth")
_TRUE_FROM_LABEL = ("task", "label")


def tells_table(table: Table) -> Literal["labels", "truth"] | None:
    """Tell by the header whether a table holds labels, or true labels, or neither."""
    if {"x", "y"} <= {name.casefold().strip() for name in table.header}:
        return None
    if assigned(table, ("x", "y")) or assigned(table, ("image", "width", "height")):
        return None
    if assigned(table, _NEEDED):
        return "labels"
    return "truth" if assigned(table, _TRUE) or assigned(table, _TRUE_FROM_LABEL) else None


def labels_of(
    head: Head, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read a table of labels, with the true ones where a column has them.

    A column "question" makes a table of each question. Rows without a label are counted and left out.

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
        For the first bad line; nothing is read by halves.
    """
    column = assign(head.table, _NEEDED, _WANTED, mapping)
    columns = read_columns(head, column, part(watch, 0.0, 0.9))
    coded = columns.coded
    filled = filled_rows(columns, column, ("task", "annotator", "label"), ("task", "annotator"))
    watch(0.92, "sorting labels")
    tables: list[LabelTable | TrueLabels] = []
    asked = _asked(columns, filled)
    for at, (words, rows) in enumerate(asked):
        watch(0.92 + 0.08 * at / len(asked), "sorting labels")
        if rows.any():
            tables += _tables(columns, column, words, rows, whole="question" not in coded)
    if not any(len(table) for table in tables):
        raise InputError("has no labels; expected some", file=head.table.path, field=column["label"])
    tables[0] = replace(tables[0], notices=(*tables[0].notices, *_lost(columns, column, filled)))
    return tuple(tables)


def truth_of(
    head: Head, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[TrueLabels, ...]:
    """Read a table of true labels, apart for each question that a column "question" names.

    Raises
    ------
    UnknownColumns
        When the header does not tell which column is which.
    InputError
        For the first bad line, and for a task with two different true labels.
    """
    by_hand = {name: "truth" if field == "label" else field for name, field in (mapping or {}).items()}
    try:
        column = assign(head.table, _TRUE, ("question",), by_hand)
    except UnknownColumns:
        column = assign(head.table, _TRUE_FROM_LABEL, ("question",), mapping)
        column = {"truth" if field == "label" else field: name for field, name in column.items()}
    columns = read_columns(head, column, part(watch, 0.0, 0.9))
    filled = filled_rows(columns, column, ("task", "truth"), ("task",))
    truths: list[TrueLabels] = []
    for words, rows in _asked(columns, filled):
        truth = _truth(columns, column, rows, columns.coded["task"], words)
        truths += [] if truth is None else [truth]
    if not truths:
        raise InputError("has no labels; expected some", file=head.table.path, field=column["truth"])
    truths[0] = replace(truths[0], notices=(*truths[0].notices, *_lost(columns, column, filled)))
    return tuple(truths)


def _asked(columns: Columns, filled: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Give the questions that a table tells apart, and the rows of each; of one that does not, all rows."""
    question = columns.coded.get("question")
    if question is None:
        return [("", filled)]
    return [(name, filled & (question.index == at)) for at, name in enumerate(question.names) if name] or [
        ("", filled)
    ]


def _lost(columns: Columns, column: Mapping[str, str], filled: NDArray[np.bool_]) -> tuple[str, ...]:
    """Say how many rows are of no question, where others are of one."""
    question = columns.coded.get("question")
    lost = 0 if question is None or question.names == [""] else int((filled & cells_are(question, "")).sum())
    if not lost:
        return ()
    rows_were = "1 row was" if lost == 1 else f"{lost:,} rows were"
    return (f"{rows_were} left out, without a question in {plain(column['question'], 40)}.",)


def _tables(
    columns: Columns, column: Mapping[str, str], question: str, rows: NDArray[np.bool_], *, whole: bool
) -> list[LabelTable | TrueLabels]:
    path, coded = columns.head.table.path, columns.coded
    written = coded["label"]
    used = np.unique(written.index[rows]) if not whole else np.arange(len(written.names))
    outputs, place, notices = outputs_of([written.names[at] for at in used], path, column["label"])
    number = np.full(len(written.names), -1, dtype=np.int16)
    number[used] = place
    label = number[written.index]
    voted = rows & (label >= 0)
    missing = int(rows.sum() - voted.sum())
    said = list(notices)
    if missing:
        said.append(f"{missing:,} {'rows were' if missing > 1 else 'row was'} left out, without a label.")
    task, annotator = (renumbered(coded[name], rows) for name in ("task", "annotator"))
    time = None if columns.time is None else values_of(columns.time, voted)
    said += time_notices(columns, column)
    found: list[LabelTable | TrueLabels] = []
    truth = _truth(columns, column, rows, task, question) if "truth" in coded else None
    if truth is not None and not set(truth.classes) & set(outputs):
        said.append(f"The column {plain(column['truth'], 40)} was left out: it holds none of the labels.")
        truth = None
    if len(outputs):
        found.append(
            LabelTable(
                path=path, question=question, annotators=tuple(annotator.names), tasks=tuple(task.names),
                outputs=outputs, annotator=values_of(annotator.index, voted),
                task=values_of(task.index, voted),
                label=values_of(label, voted), time=time,
                pictures=_pictures(coded.get("picture"), task, rows),
                missing=missing, notices=tuple(said),
            )
        )  # fmt: skip
    return found if truth is None else [*found, truth]


def _pictures(picture: Coded | None, task: Coded, rows: NDArray[np.bool_]) -> dict[int, str]:
    if picture is None:
        return {}
    first = first_values(picture.index, task, rows & ~cells_are(picture, ""))
    return {at: picture.names[first[at]] for at in np.flatnonzero(first >= 0).tolist()}


def _truth(
    columns: Columns, column: Mapping[str, str], rows: NDArray[np.bool_], task: Coded, question: str
) -> TrueLabels | None:
    path, truth = columns.head.table.path, columns.coded["truth"]
    used = np.unique(truth.index[rows])
    classes, place, notices = outputs_of([truth.names[at] for at in used], path, column["truth"])
    if not classes:
        return None
    number = np.full(len(truth.names), -1, dtype=np.int16)
    number[used] = place
    label = number[truth.index]
    known = rows & (label >= 0)
    first = first_values(label, task, known)
    what = "gives the task another true label than the lines before"
    refuse_rows(columns, column["truth"], known & (first[task.index] != label), what)
    where = np.flatnonzero(first >= 0)
    names = tuple(task.names[at] for at in where.tolist())
    return TrueLabels(path, question, names, classes, first[where], notices)


VOTES = "votes"
"""What a column holds, when told by hand, that has one annotator's label of every task."""

_ANNOTATOR = re.compile(rf"({'|'.join(COLUMN_NAMES['annotator'].split())})[ _-]?(\d+|[a-z])", re.IGNORECASE)


def annotators_of(table: Table, mapping: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Give the columns that are annotators: those told by hand, or several such as "rater 1", "worker_b".

    Every column that is neither the task nor the truth must be of that kind; else there are none.
    """
    by_hand = tuple(name for name, field in (mapping or {}).items() if field == VOTES)
    if by_hand or mapping:
        return by_hand
    found = tuple(name for name in table.header if _ANNOTATOR.fullmatch(name.strip()))
    try:
        column = assign(table, ("task",), ("truth",), None)
    except UnknownColumns:
        return ()
    rest = set(table.header) - set(column.values()) - set(found)
    return found if len(found) > 1 and not rest else ()


def votes_of(
    table: Table, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read a wide table; an empty cell is no vote.

    Raises
    ------
    UnknownColumns
        When no column is known as the task.
    InputError
        For the first row without a task, and for columns that are not there.
    """
    people = annotators_of(table, mapping)
    by_hand = {name: "ignore" if field == VOTES else field for name, field in (mapping or {}).items()}
    column = assign(table, ("task",), ("truth", "picture"), by_hand)
    faults = Faults(table)
    tasks = names(table, column["task"], faults)
    faults.refuse()
    if len(set(tasks)) < len(tasks):
        raise InputError("names a task twice; expected one row a task", file=table.path, field=column["task"])
    pictures = table.column(column["picture"]) if "picture" in column else ("",) * len(tasks)
    gathering = VoteCollector(table.path)
    for at, person in enumerate(people):
        watch(0.8 + 0.2 * at / len(people), "reading labels")
        for task, answer, picture in zip(tasks, table.column(person), pictures, strict=True):
            gathering.add("", person.strip(), task, answer, picture=picture.strip())
    if "truth" in column:
        for task, answer in zip(tasks, table.column(column["truth"]), strict=True):
            if answer.strip():
                gathering.add_truth("", task, answer.strip())
    return gathering.tables()
