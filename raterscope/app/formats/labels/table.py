"""Tables of labels: task, annotator, label and perhaps time; and tables of true labels: task, label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.labels.columns import Coded, Columns, Head, read_columns
from raterscope.app.formats.labels.outputs import outputs_of
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.labels.rows import (
    cells_are,
    filled_rows,
    first_values,
    refuse_rows,
    renumbered,
    time_notices,
    values_of,
)
from raterscope.app.formats.tables import Table, UnknownColumns, assign, assigned

__all__ = ["FIELDS", "labels_of", "tells_table", "truth_of"]

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
