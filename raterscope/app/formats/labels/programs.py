"""Tables of class probabilities of a program, with one row per task, or per task and class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.programs import Program
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import LabelTable
from raterscope.app.formats.table_files import read_table
from raterscope.app.formats.tables import Table, find_columns, number_or_nan
from raterscope.text import counted, natural

_PREFIX = re.compile(r"^(?:(?:p|prob|probability|score)(?=[\s_:(\[]))?[\s_:(\[]*", re.IGNORECASE)
_TOLERANCE = 0.01
"""Maximum difference of a row's sum from 1 without a notice."""

_LONG = ("task", "label", "score")


def holds_probabilities(table: Table) -> bool:
    """Return whether the first rows of a table hold class probabilities, which add up to 1 for each task.

    Every column except the task is a class, or the columns are task, label and score. Rows without numbers
    (tasks that the program did not answer) do not count. With a column for each class, a few rows may be
    wrong; `program_of` reports them.
    """
    fields = find_columns(table, ("task",))
    if fields is None or find_columns(table, ("annotator",)):
        return False
    long = _long_columns(table)
    if long is None:
        columns = [table.column(name) for name in table.header if name != fields["task"]]
        values = np.array([[number_or_nan(cell) for cell in column] for column in columns]).T
        filled = np.array([any(map(str.strip, cells)) for cells in zip(*columns, strict=True)], dtype=bool)
        return len(columns) > 1 and _add_up_to_one(values[filled])
    tasks, scores = table.column(long["task"]), table.column(long["score"])
    rows = [row for row in zip(tasks, scores, strict=True) if row[1].strip()]
    total: dict[str, float] = {}
    for task, score in rows:
        total[task] = total.get(task, 0.0) + number_or_nan(score)
    if rows:
        del total[rows[-1][0]]  # the first rows may end within a task
    sums = np.array(list(total.values()))
    return len(rows) > len(sums) + 1 > 1 and bool((np.abs(sums - 1) <= _TOLERANCE).all())


def read_probabilities(table: Table, name: str) -> LabelTable:
    """Read the class probabilities of a program as its votes: the most probable class of each task.

    Raises `InputError` as `read_program`.

    `name`: name of the program.
    """
    fields = find_columns(table, ("task",))
    assert fields is not None
    classes = _class_names(table)
    tasks = tuple(dict.fromkeys(cell.strip() for cell in table.column(fields["task"])))
    program, notices = program_of(table, name, tasks, classes)
    rows = np.flatnonzero(np.isfinite(program.probability).all(axis=1))
    probability = program.probability[rows].astype(np.float32)
    wide = _class_columns(table, classes)
    columns = dict.fromkeys(wide.values(), "score") if wide else find_columns(table, _LONG) or {}
    return LabelTable(
        path=table.path, question="", annotators=(name,), tasks=tasks, outputs=classes,
        annotator=np.zeros(len(rows), dtype=np.int32), task=rows.astype(np.int32),
        label=probability.argmax(axis=1).astype(np.int16), notices=tuple(notices), tags=False,
        columns={} if not wide else {fields["task"]: "task", **columns}, probability=probability,
    )  # fmt: skip


def _long_columns(table: Table) -> dict[str, str] | None:
    """Return the columns of a table with one class per row; None for a table with one task per row."""
    return find_columns(table, _LONG) if len(table.header) == len(_LONG) else None


def _class_names(table: Table) -> tuple[str, ...]:
    """Return the classes of a table of class probabilities."""
    long, fields = _long_columns(table), find_columns(table, ("task",))
    if long is not None:
        return tuple(sorted({label.strip() for label in table.column(long["label"])} - {""}, key=natural))
    others = [] if fields is None else [name for name in table.header if name != fields["task"]]
    return tuple(map(_without_prefix, others))


def _add_up_to_one(values: NDArray[np.float64]) -> bool:
    """Return whether rows are uncertain probabilities; one in ten, or one of few, may be wrong."""
    right = ((values >= 0) & (values <= 1)).all(axis=1) & (np.abs(values.sum(axis=1) - 1) <= _TOLERANCE)
    wrong = int((~right).sum())
    fractions = bool(((values > 0) & (values < 1))[right].any())
    return fractions and wrong < right.sum() and wrong <= max(1, len(right) // 10)


def read_program(path: Path, tasks: Sequence[str], classes: Sequence[str]) -> tuple[Program, list[str]]:
    """Read the class probabilities of a program, named after its file, for the tasks of a question.

    Raises `InputError` for a table without them, for a value that is not a probability, and for a table that
    contains none of the tasks.
    """
    return program_of(read_table(path), path.stem, tasks, classes)


def program_of(
    table: Table, name: str, tasks: Sequence[str], classes: Sequence[str]
) -> tuple[Program, list[str]]:
    """Read the class probabilities of a table; see `read_program`."""
    wide = _class_columns(table, classes)
    fields = find_columns(table, ("task",) if wide else _LONG)
    if fields is None:
        expected = ", ".join(map(plain, classes[:9]))
        raise InputError(
            f"has no class probabilities; expected the columns task and {expected}, or task, label and score",
            file=table.path,
        )
    number = {task: row for row, task in enumerate(tasks)}
    row_of = [number.get(cell.strip(), -1) for cell in table.column(fields["task"])]
    values = np.full((len(tasks), len(classes)), np.nan)
    for index, line, cell in _cells(table, fields, wide, classes):
        if row_of[line] < 0 or index < 0:
            continue
        value = number_or_nan(cell)
        if cell.strip() and not 0 <= value <= 1:
            raise InputError(
                f'"{plain(cell, 40)}" is not a probability; expected a number from 0 to 1',
                file=table.path, line=table.lines[line],
                field=wide[classes[index]] if wide else fields["score"],
            )  # fmt: skip
        values[row_of[line], index] = value
    judged = np.isfinite(values).any(axis=1)
    if not judged.any():
        raise InputError("has none of the tasks with votes", file=table.path, field=fields["task"])
    total = np.nansum(values, axis=1)
    probability = np.where(judged[:, None], np.nan_to_num(values), np.nan)
    probability[judged & (total <= 0)] = np.nan
    probability /= np.where(total > 0, total, 1.0)[:, None]
    notices = []
    uneven = int((judged & (np.abs(total - 1) > _TOLERANCE)).sum())
    if uneven:
        notices.append(f"Probabilities of {counted(uneven, 'task')} do not add up to 1, and were scaled.")
    missing = int((~judged).sum())
    if missing:
        notices.append(f"It has no probabilities for {counted(missing, 'task')}.")
    return Program(name, probability), notices


def _cells(
    table: Table, fields: Mapping[str, str], wide: Mapping[str, str], classes: Sequence[str]
) -> Iterator[tuple[int, int, str]]:
    """Yield the index of the class (-1 for another column), the index of the row, and the cell."""
    if wide:
        for index, name in enumerate(classes):
            for line, cell in enumerate(table.column(wide[name])):
                yield index, line, cell
        return
    number = {name: index for index, name in enumerate(classes)}
    cells = zip(table.column(fields["label"]), table.column(fields["score"]), strict=True)
    for line, (label, cell) in enumerate(cells):
        yield number.get(label.strip(), -1), line, cell


def _class_columns(table: Table, classes: Sequence[str]) -> Mapping[str, str]:
    """Find a column for each class by its name, also as p(class); empty unless all have one."""
    exact = {name.strip(): name for name in table.header}
    bare = {_bare(name): name for name in table.header}
    columns = {name: exact.get(name) or bare.get(_bare(name)) for name in classes}
    return {name: column for name, column in columns.items() if column} if all(columns.values()) else {}


def _bare(name: str) -> str:
    """Return the class in a column's name: "ring" for p(ring), prob_ring and Ring."""
    return _without_prefix(name).casefold()


def _without_prefix(name: str) -> str:
    return _PREFIX.sub("", name.strip()).rstrip(" )]") or name.strip()
