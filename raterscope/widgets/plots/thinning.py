"""Long lines as few points: of the steps that lie in one column of pixels, the least and the largest."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPolygonF

__all__ = ["column_starts", "reduced", "to_and_fro", "way"]


def column_starts(x: NDArray[np.floating]) -> NDArray[np.int64]:
    """Give the first step in each column of pixels that has one, for (S,) places across, never falling."""
    return np.flatnonzero(np.diff(x.astype(np.int64), prepend=-1))


def reduced(
    extreme: np.ufunc, values: NDArray[np.floating], starts: NDArray[np.int64]
) -> NDArray[np.floating]:
    """Give the least or the largest of (S, L) values from each start to the next, (L, starts)."""
    lines = np.ascontiguousarray(values.T)
    return lines if len(starts) == len(values) else np.asarray(extreme.reduceat(lines, starts, axis=1))


def to_and_fro(
    x: NDArray[np.floating], least: NDArray[np.floating], most: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Lead a line up and down within every column, so that it shows how far it went there."""
    return np.repeat(x, 2), np.stack([least, most], axis=1).ravel()


def way(x: NDArray[np.floating], share: NDArray[np.floating], box: QRectF) -> QPolygonF:
    """Make the points of a line from places across, in pixels, and shares of the box's height."""
    y = box.bottom() - box.height() * np.asarray(share, dtype=float)
    made: QPolygonF = pg.functions.arrayToQPolygonF(np.ascontiguousarray(x), np.ascontiguousarray(y))
    return made
