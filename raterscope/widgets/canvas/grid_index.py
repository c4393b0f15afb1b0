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
        column = np.minimum((self._x - self._left) // self._across, CELLS - 1).astype(np.int64)
        row = np.minimum((self._y - self._top) // self._down, CELLS - 1).astype(np.int64)
        cell = row * CELLS + column
        self._order = np.argsort(cell, kind="stable")
        self._start = np.searchsorted(cell[self._order], np.arange(CELLS * CELLS + 1))

    def within(self, rect: QRectF) -> NDArray[np.int64]:
        """Give the rows of the points in a rectangle, in their own order."""
        if not len(self._x):
            return np.empty(0, dtype=np.int64)
        first_column = self._clip((rect.left() - self._left) / self._across)
        last_column = self._clip((rect.right() - self._left) / self._across)
        first_row = self._clip((rect.top() - self._top) / self._down)
        last_row = self._clip((rect.bottom() - self._top) / self._down)
        spans = [
            self._order[self._start[row * CELLS + first_column] : self._start[row * CELLS + last_column + 1]]
            for row in range(first_row, last_row + 1)
        ]
        rows = np.concatenate(spans)
        x, y = self._x[rows], self._y[rows]
        inside = (x >= rect.left()) & (x <= rect.right()) & (y >= rect.top()) & (y <= rect.bottom())
        return np.sort(rows[inside])

    @staticmethod
    def _clip(cell: float) -> int:
        return int(min(max(cell, 0), CELLS - 1))
