"""Tables of class probabilities of a program: a task a row, a column for each class; or a class a row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.programs import Program
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.tables import Table, find_columns, number_or_nan, read_table

_DECORATION = re.compile(r"^(?:p|prob|probability|score)?[\s_:(\[]*(.*?)[\s)\]]*$", re.IGNORECASE)
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
    columns = wide or dict.fromkeys(classes, fields["score"])
    given = np.full((len(tasks), len(classes)), np.nan)
    label = None if wide else [cell.strip() for cell in table.column(fields["label"])]
    for index, plain_class in enumerate(classes):
        for line, cell in enumerate(table.column(columns[plain_class])):
            if row_of[line] < 0 or (label is not None and label[line] != plain_class):
                continue
            value = number_or_nan(cell)
            if cell.strip() and not 0 <= value <= 1:
                raise InputError(
                    f'"{plain(cell, 40)}" is no probability; expected a number from 0 to 1',
                    file=table.path, line=table.lines[line], field=columns[plain_class],
                )  # fmt: skip
            given[row_of[line], index] = value
    judged = np.isfinite(given).any(axis=1)
    if not judged.any():
        raise InputError("has none of the tasks with votes", file=table.path, field=fields["task"])
    total = np.nansum(given, axis=1)
    probability = np.where(judged[:, None], np.nan_to_num(given), np.nan)
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


def _class_columns(table: Table, classes: Sequence[str]) -> Mapping[str, str]:
    """Find a column for each class by its name, also as p(class); empty unless all have one."""
    exact = {name.strip(): name for name in table.header}
    bare = {_bare(name): name for name in table.header}
    found = {name: exact.get(name) or bare.get(_bare(name)) for name in classes}
    return {name: column for name, column in found.items() if column} if all(found.values()) else {}


def _bare(name: str) -> str:
    match = _DECORATION.match(name.strip())
    return (match[1] if match and match[1] else name).casefold()
