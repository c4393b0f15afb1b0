"""Which points lie in a rectangle, without looking at all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

__all__ = ["GridIndex"]

CELLS = 128


class GridIndex:
    """Points sorted into the cells of a grid.

    Parameters
    ----------
    x, y : (N,) float
    """

    def __init__(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        self._x, self._y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if not len(self._x):
            return
        self._left, self._top = float(self._x.min()), float(self._y.min())
        self._across = max(float(np.ptp(self._x)), 1e-9) / CELLS
        self._down = max(float(np.ptp(self._y)), 1e-9) / CELLS
        column = np.minimum((self._x - self._left) / self._across, CELLS - 1).astype(np.uint16)
        row = np.minimum((self._y - self._top) / self._down, CELLS - 1).astype(np.uint16)
        cell = row * CELLS + column  # two bytes, which numpy sorts by their digits
        self._order = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=CELLS * CELLS)
        self._start = np.concatenate([[0], np.cumsum(counts)])
        self._before = np.zeros((CELLS + 1, CELLS + 1), dtype=np.int64)
        self._before[1:, 1:] = counts.reshape(CELLS, CELLS).cumsum(axis=0).cumsum(axis=1)

    def count(self, rect: QRectF) -> int:
        """Give the number of points in the cells that a rectangle touches, so no fewer than are in it."""
        if not len(self._x):
            return 0
        first_column, last_column, first_row, last_row = self._cells(rect)
        last_column, last_row, before = last_column + 1, last_row + 1, self._before
        outside = before[first_row, last_column] + before[last_row, first_column]
        return int(before[last_row, last_column] - outside + before[first_row, first_column])

    def within(self, rect: QRectF) -> NDArray[np.int64]:
        """Give the rows of the points in a rectangle, in their own order."""
        if not len(self._x):
            return np.empty(0, dtype=np.int64)
        first_column, last_column, first_row, last_row = self._cells(rect)
        spans = [
            self._order[self._start[row * CELLS + first_column] : self._start[row * CELLS + last_column + 1]]
            for row in range(first_row, last_row + 1)
        ]
        rows = np.concatenate(spans)
        x, y = self._x[rows], self._y[rows]
        inside = (x >= rect.left()) & (x <= rect.right()) & (y >= rect.top()) & (y <= rect.bottom())
        return np.sort(rows[inside])

    def _cells(self, rect: QRectF) -> tuple[int, int, int, int]:
        """Give the first and last column and row of cells that a rectangle touches."""
        return (
            self._clip((rect.left() - self._left) / self._across),
            self._clip((rect.right() - self._left) / self._across),
            self._clip((rect.top() - self._top) / self._down),
            self._clip((rect.bottom() - self._top) / self._down),
        )

    @staticmethod
    def _clip(cell: float) -> int:
        return int(min(max(cell, 0), CELLS - 1))
