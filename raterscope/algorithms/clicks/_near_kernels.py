"""Inner loops over what is near a place: clicks sorted into the cells of a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["SEVERAL", "Marks", "by_worth", "choose", "crowding", "gather"]

FEW = 2048
"""Clicks of a row of cells that are looked at: crowds of thousands on one object would cost their square."""

SEVERAL = 1.5 - 1e-9
"""Annotators, by how much they count, who are nearer to two than to one."""


class Marks(NamedTuple):
    """N clicks sorted by cell.

    x, y, annotator (N,), start (cells + 1,), grid (left, top, side, columns, rows).
    """

    x: Array
    y: Array
    annotator: Array
    start: Array
    grid: Array


@compiled(error_model="numpy")
def by_worth(value: float, worth: Array, annotator: int) -> float:
    """Multiply by how much an annotator counts, (R,); empty where all count fully."""
    return value * worth[annotator] if len(worth) else value


@compiled(error_model="numpy")
def _span(grid: Array, x: float, y: float, reach: float) -> Array:
    columns, rows = int(grid[3]), int(grid[4])
    return (
        max(0, int(np.floor((x - reach - grid[0]) / grid[2]))),
        min(columns - 1, int(np.floor((x + reach - grid[0]) / grid[2]))),
        max(0, int(np.floor((y - reach - grid[1]) / grid[2]))),
        min(rows - 1, int(np.floor((y + reach - grid[1]) / grid[2]))),
        columns,
    )


@compiled(error_model="numpy")
def crowding(marks: Marks, worth: Array, reach: float, others: bool, rows: Array, count: Array) -> None:
    """Count the clicks about each of some clicks, near ones more; of other annotators only, if `others`.

    A click counts as `by_worth` says; where all near ones, itself included, count less than `SEVERAL`
    annotators' clicks, there are none about it. Where there are very many, some stand for all.
    """
    for i in rows:
        left, right, top, bottom, columns = _span(marks.grid, marks.x[i], marks.y[i], reach)
        found, heard = 0.0, by_worth(1.0, worth, marks.annotator[i])
        for row in range(top, bottom + 1):
            first, last = marks.start[row * columns + left], marks.start[row * columns + right + 1]
            step = 1 + (last - first) // FEW
            for n in range(first, last, step):
                away = ((marks.x[n] - marks.x[i]) ** 2 + (marks.y[n] - marks.y[i]) ** 2) / (reach * reach)
                if away < 1.0 and n != i and not (others and marks.annotator[n] == marks.annotator[i]):
                    found += by_worth(step * (1.0 - away), worth, marks.annotator[n])
                    if len(worth):
                        heard += step * worth[marks.annotator[n]]
        count[i] = 0.0 if len(worth) and heard < SEVERAL else found


@compiled(error_model="numpy")
def choose(marks: Marks, order: Array, spacing: float, most: int) -> Array:
    """Choose clicks in order, none within `spacing` of one chosen before."""
    shaded = np.zeros(len(marks.x), dtype=np.bool_)
    chosen = np.empty(min(most, len(order)), dtype=np.int64)
    found = 0
    for i in order:
        if shaded[i]:
            continue
        if found == len(chosen):
            break
        chosen[found] = i
        found += 1
        left, right, top, bottom, columns = _span(marks.grid, marks.x[i], marks.y[i], spacing)
        for row in range(top, bottom + 1):
            for n in range(marks.start[row * columns + left], marks.start[row * columns + right + 1]):
                if (marks.x[n] - marks.x[i]) ** 2 + (marks.y[n] - marks.y[i]) ** 2 < spacing * spacing:
                    shaded[n] = True
    return chosen[:found]


@compiled(error_model="numpy")
def gather(
    begin: int, end: int, found: int, marks: Marks, mean: Array, alive: Array, reach: float, first: Array,
    last: Array, click: Array,
) -> int:  # fmt: skip
    """List the clicks near components after those found; give how many there are, listed or not."""
    for m in range(begin, end):
        first[m] = found
        if alive[m]:
            x, y = mean[m, 0], mean[m, 1]
            left, right, top, bottom, columns = _span(marks.grid, x, y, reach)
            for row in range(top, bottom + 1):
                for n in range(marks.start[row * columns + left], marks.start[row * columns + right + 1]):
                    if (marks.x[n] - x) ** 2 + (marks.y[n] - y) ** 2 <= reach * reach:
                        if found < len(click):
                            click[found] = n
                        found += 1
        last[m] = found
    return found
