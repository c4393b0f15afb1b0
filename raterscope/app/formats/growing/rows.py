"""Rows of cells into clicks; rows that cannot be read are left out, each with what is wrong in it."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.app.errors import plain
from raterscope.app.formats.clicks import scale_of, seconds_of
from raterscope.app.formats.growing.lines import mended
from raterscope.app.formats.records import ClickTable, first_seen
from raterscope.app.formats.tables import Faults, Table, names, numbers

__all__ = ["Refusals", "Rows", "joined", "mended_table", "read_rows", "table_of"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Clicks, N of them, and looks of people who marked nothing, whose x and y are NaN.

    Attributes
    ----------
    people, images : sequence of N names
    x, y : (N,) float64
        Pixels.
    time : (N,) float64
        Seconds; NaN where it is not known.
    width, height : (N,) float64
        Of the image, pixels; NaN where they are not known.
    line : (N,) int64
    """

    people: Sequence[str]
    images: Sequence[str]
    x: FloatArray
    y: FloatArray
    time: FloatArray
    width: FloatArray
    height: FloatArray
    line: IntArray

    def __len__(self) -> int:
        return len(self.x)

    def kept(self, mask: np.ndarray) -> Rows:
        """Give some of the rows."""
        if mask.all():
            return self
        chosen = np.flatnonzero(mask)
        people, images = ([column[row] for row in chosen.tolist()] for column in (self.people, self.images))
        numbers = (getattr(self, one.name)[chosen] for one in fields(self)[2:])
        return Rows(people, images, *numbers)


class Refusals(Faults):
    """What is wrong in rows of a table that are left out: the first thing in each."""

    def __init__(self, table: Table, found: Mapping[int, tuple[str, str]] | None = None) -> None:
        super().__init__(table)
        self.found = dict(found or {})

    def add(self, rows: Iterable[int], field: str, what: str) -> None:
        """Note rows whose field is wrong; `what` may name the cell as {cell}."""
        for row in rows:
            if row not in self.found:
                cell = self._table.column(field)[row] if field in self._table.header else ""
                self.found[row] = (field, what.replace("{cell}", plain(cell, 40)))


def read_rows(
    table: Table, column: Mapping[str, str], pointed: bool
) -> tuple[Rows, Refusals, list[tuple[int, str]], bool]:
    """Read the rows of a table.

    Parameters
    ----------
    table : Table
    column : mapping of field to column
    pointed : bool
        Whether a number in the file had a decimal point, after which a comma is none.

    Returns
    -------
    rows : Rows
        Those that can be read.
    refused : Refusals
    untimed : list of (line, cell)
        Where the time is none; the row is there without it.
    pointed : bool
    """
    table, wrong = mended_table(table, set(column.values()))
    table, pointed = _with_points(table, (column["x"], column["y"]), pointed)
    refused = Refusals(table, wrong)
    people = names(table, column["annotator"], refused)
    images = names(table, column["image"], refused)
    x, y = (numbers(table, column[field], refused, empty=True, comma=False) for field in ("x", "y"))
    for one, other, field in ((x, y, "x"), (y, x, "y")):
        alone = np.flatnonzero(np.isnan(one) & ~np.isnan(other)).tolist()
        refused.add(alone, column[field], "is empty; expected a place in pixels")
    width, height = (_sizes(table, column.get(field), refused) for field in ("width", "height"))
    time, untimed = _times(table, column.get("time"))
    good = np.ones(len(table), dtype=bool)
    good[list(refused.found)] = False
    line = np.array(table.lines, dtype=np.int64)
    rows = Rows(people, images, x, y, time, width, height, line).kept(good)
    return rows, refused, untimed, pointed


def joined(parts: Sequence[Rows]) -> Rows:
    """Put rows after one another."""
    if len(parts) == 1:
        return parts[0]
    people, images = ([name for part in parts for name in getattr(part, one)] for one in ("people", "images"))
    numbers = (np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Rows)[2:])
    return Rows(people, images, *numbers)


def table_of(rows: Rows, path: Path, *, has_lines: bool) -> ClickTable:
    """Make a table of clicks."""
    annotators, annotator = first_seen(list(rows.people))
    images, image = first_seen(list(rows.images))
    empty = np.isnan(rows.x)
    kept = ~empty
    sized = np.flatnonzero(~np.isnan(rows.width) & ~np.isnan(rows.height))
    extents: dict[int, tuple[float, float]] = {}
    for number, width, height in zip(
        image[sized].tolist(), rows.width[sized].tolist(), rows.height[sized].tolist(), strict=True
    ):
        extents.setdefault(number, (width, height))
    _, first = np.unique(image, return_index=True)
    return ClickTable(
        path=path, annotators=annotators, images=images, annotator=annotator[kept], image=image[kept],
        x=rows.x[kept], y=rows.y[kept],
        time=rows.time[kept] if np.isfinite(rows.time).any() else None,
        looked=frozenset(zip(annotator[empty].tolist(), image[empty].tolist(), strict=True)),
        extents=extents, lines=tuple(rows.line[first].tolist()) if has_lines else (),
    )  # fmt: skip


def mended_table(table: Table, used: Container[str]) -> tuple[Table, dict[int, tuple[str, str]]]:
    """Read cells that are no UTF-8 in the older encoding; tell the rows that are no text at all."""
    columns: list[Sequence[str]] = []
    wrong: dict[int, tuple[str, str]] = {}
    for name, cells in zip(table.header, table.columns, strict=True):
        if name in used and not (all(map(str.isascii, cells)) and "\x00" not in "".join(cells)):
            good = list(cells)
            for row, cell in enumerate(cells):
                try:
                    good[row] = mended(cell)
                except ValueError:
                    good[row] = ""
                    wrong.setdefault(row, (name, "is no text"))
            cells = good
        columns.append(cells)
    return Table(table.path, table.header, tuple(columns), table.lines), wrong


def _with_points(table: Table, places: Sequence[str], pointed: bool) -> tuple[Table, bool]:
    """Turn decimal commas into points, in the rows before the file's first number that has a point.

    A whole table tells by all its numbers whether a comma is a decimal one or groups thousands. A table that
    grows must tell by the numbers so far.
    """
    columns = [table.column(name) for name in places]
    if not pointed:
        pairs = list(zip(*columns, strict=True))
        first = next((row for row, cells in enumerate(pairs) if any("." in cell for cell in cells)), None)
        pointed, until = first is not None, len(pairs) if first is None else first
        if any("," in cell for cells in pairs[:until] for cell in cells):
            columns = [
                [
                    cell.replace(",", ".") if row < until and cell.count(",") == 1 else cell
                    for row, cell in enumerate(column)
                ]
                for column in columns
            ]
    replaced = dict(zip(places, columns, strict=True))
    every = tuple(replaced.get(name, cells) for name, cells in zip(table.header, table.columns, strict=True))
    return Table(table.path, table.header, every, table.lines), pointed


def _sizes(table: Table, column: str | None, refused: Refusals) -> FloatArray:
    """Read the widths or the heights of images; NaN where there is none."""
    if column is None:
        return np.full(len(table), math.nan)
    sizes = numbers(table, column, refused, empty=True, comma=False)
    wrong = np.flatnonzero(sizes <= 0).tolist()
    refused.add(wrong, column, "{cell} is no size; expected pixels above 0")
    return sizes


def _times(table: Table, column: str | None) -> tuple[FloatArray, list[tuple[int, str]]]:
    """Read numbers or dates as seconds, a row at a time."""
    seconds = np.full(len(table), math.nan)
    wrong: list[tuple[int, str]] = []
    if column is None:
        return seconds, wrong
    cells, scale = table.column(column), scale_of(column)
    try:
        values = np.array(cells, dtype=np.float64)
        if np.isfinite(values).all():
            return values * scale, wrong
    except ValueError:
        pass
    for row, cell in enumerate(cells):
        try:
            if cell.strip():
                seconds[row] = _moment(cell, scale)
        except (ValueError, OverflowError):
            wrong.append((table.lines[row], cell))
    return seconds, wrong


def _moment(cell: str, scale: float) -> float:
    try:
        value = float(cell) * scale
    except ValueError:
        return seconds_of(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value
