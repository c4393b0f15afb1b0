"""Rows of columns: which hold something, which are refused, and their names numbered anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError, plain
from raterscope.app.formats import dialects
from raterscope.app.formats.labels.columns import Coded, Columns
from raterscope.app.formats.tables import LONGEST_NAME

__all__ = [
    "cells_are",
    "filled_rows",
    "first_values",
    "refuse_rows",
    "renumbered",
    "time_notices",
    "values_of",
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
        endless = [at for at, text in enumerate(coded.names) if len(text) > LONGEST_NAME]
        if endless:
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
