"""Tables of class probabilities of a program: a task a row, a column for each class; or a class a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.programs import Program
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.tables import Table, find_columns, number_or_nan, read_table

_PREFIX = re.compile(r"^(?:(?:p|prob|probability|score)(?=[\s_:(\[]))?[\s_:(\[]*", re.IGNORECASE)
_TOLERANCE = 0.01
"""Largest difference of a row's sum from 1 without a notice."""


def read_program(path: Path, tasks: Sequence[str], classes: Sequence[str]) -> tuple[Program, list[str]]:
    """Read the class probabilities of a program, named after its file, for the tasks of a question.

    Raises `InputError` for a table without them, for a value that is no probability, and for a table without
    any of the tasks.
    """
    return program_of(read_table(path), path.stem, tasks, classes)


def program_of(
    table: Table, name: str, tasks: Sequence[str], classes: Sequence[str]
) -> tuple[Program, list[str]]:
    """Take the class probabilities from a table; see `read_program`."""
    wide = _class_columns(table, classes)
    fields = find_columns(table, ("task",) if wide else ("task", "label", "score"))
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
                f'"{plain(cell, 40)}" is no probability; expected a number from 0 to 1',
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
    """Yield the number of the class, -1 for another, the number of the row, and the cell."""
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
    """Return the class that a column's name has: "ring" for p(ring), prob_ring and Ring."""
    return (_PREFIX.sub("", name.strip()).rstrip(" )]") or name).casefold()
