"""Clicks sorted into the cells of a grid, so that what is near a place is found at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray

__all__ = ["Cells", "sort_into_cells"]

MAXIMUM_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Cells:
    """N clicks about their centre, sorted by cell and, within a cell, by place.

    Attributes
    ----------
    x, y : (N,) float64
        Place less `centre`.
    annotator : (N,) int64
        Place of the annotator among their sorted names.
    rank : (R,) int64
        That place, for the annotators as they were given.
    weights : (R,) float64
        How much of an annotator each of them counts as, in the order of their names; empty where all count
        fully.
    order : (N,) int64
        Row among the clicks that were given.
    centre : (x, y)
    start : (cells + 1,) int64
        First click of each cell, row by row.
    grid : (5,) float64
        Left, top, side, columns, rows.
    """

    x: FloatArray
    y: FloatArray
    annotator: IntArray
    rank: IntArray
    weights: FloatArray
    order: IntArray
    centre: FloatArray
    start: IntArray
    grid: FloatArray

    def __len__(self) -> int:
        return len(self.x)

    @property
    def worth(self) -> FloatArray:
        """(R,) the weights, or ones."""
        return self.weights if len(self.weights) else np.ones(len(self.rank))


def sort_into_cells(clicks: Clicks, side: float, tick: Callable[[], None] = lambda: None) -> Cells:
    """Sort clicks into cells of about the given side, pixels.

    The clicks are centred first: squares of coordinates near 1e7 would cancel. Annotators are numbered by
    name and clicks at one place are sorted by it, so that the order of neither makes a difference. `tick`
    is called between the steps.
    """
    centre = np.array([np.median(clicks.x), np.median(clicks.y)])
    x, y = clicks.x - centre[0], clicks.y - centre[1]
    left, top, width, height = float(x.min()), float(y.min()), float(np.ptp(x)), float(np.ptp(y))
    most = min(MAXIMUM_CELLS, 4 * len(x) + 16)
    side = max(side, np.sqrt(width * height / most), width / most, height / most, 1e-300)
    columns, rows = int(width / side) + 1, int(height / side) + 1
    cell = np.minimum((y - top) / side, rows - 1).astype(np.int64) * columns
    cell += np.minimum((x - left) / side, columns - 1).astype(np.int64)
    rank = np.empty(len(clicks.annotators), dtype=np.int64)
    rank[sorted(range(len(rank)), key=clicks.annotators.__getitem__)] = np.arange(len(rank))
    annotator = rank[clicks.annotator]
    key = _key(cell, (x - left) / side, (y - top) / side, annotator)
    tick()
    order = np.argsort(key)
    tick()
    start = np.zeros(columns * rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell, minlength=columns * rows), out=start[1:])
    grid = np.array([left, top, side, columns, rows], dtype=np.float64)
    weights = np.empty(0) if clicks.weights is None else clicks.weights[np.argsort(rank)]
    return Cells(
        x[order], y[order], annotator[order], rank, weights, order.astype(np.int64), centre, start, grid
    )


def _key(cell: IntArray, x: FloatArray, y: FloatArray, annotator: IntArray) -> NDArray[np.uint64]:
    """Pack cell, place within it and annotator into one number: it sorts four times as fast as four."""
    key = cell.astype(np.uint64) << np.uint64(42)
    for value, shift in ((x, 28), (y, 14)):
        key |= ((value % 1.0) * 2**14).astype(np.uint64) << np.uint64(shift)
    return np.asarray(key | (annotator % 2**14).astype(np.uint64))
