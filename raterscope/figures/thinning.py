"""Reduction of long lines and many points to what the pixels of a screen can show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["DENSE", "column_spans", "column_starts", "thinned_points"]

Floats = NDArray[np.float64]

DENSE = 4.0
"""A line of more points than this times the pixels of the plot's width is drawn column by column."""
MOST_POINTS = 4000
"""This many points are drawn one by one; of more, those that fall into one cell of a fine grid once."""
CELL = 1.5


def column_spans(
    x: NDArray[np.floating], values: NDArray[np.floating], columns: int, *, held: bool
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Find from where to where lines reach in every column of pixels.

    Parameters
    ----------
    x : (T,) float
        Positions of the points, never falling, from 0 to `columns`.
    values : (T, p) float
    columns : int
    held : bool
        Whether a value holds until the next point; else lines lead straight from point to point.

    Returns
    -------
    low, high : (columns, p) float
        The least and the largest value of each line in each column.
    """
    edges = np.arange(columns + 1)
    before = np.clip(np.searchsorted(x, edges, side="right") - 1, 0, len(x) - 1)
    ends = values[before]
    if not held:
        after = np.minimum(before + 1, len(x) - 1)
        room = x[after] - x[before]
        share = np.clip((edges - x[before]) / np.where(room > 0, room, 1.0), 0.0, 1.0)
        ends += share.astype(values.dtype)[:, None] * (values[after] - ends)
    low, high = np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:])
    column = np.clip(x.astype(np.int64), 0, columns - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    filled = column[starts]
    low[filled] = np.minimum(low[filled], np.minimum.reduceat(values, starts, axis=0))
    high[filled] = np.maximum(high[filled], np.maximum.reduceat(values, starts, axis=0))
    return low, high


def column_starts(x: Floats, width: float, dense: float = DENSE) -> NDArray[np.int64]:
    """Return the first point of each column of pixels; all points where they are few."""
    if len(x) <= dense * max(width, 1.0):
        return np.arange(len(x))
    return np.flatnonzero(np.diff(np.floor(x).astype(np.int64), prepend=np.iinfo(np.int64).min))


def thinned_points(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Return the points that are drawn, (P,): of many, the last one in each cell of a fine grid."""
    if len(x) <= MOST_POINTS:
        return np.arange(len(x))
    columns = (x / CELL).astype(np.int64)
    cells = (y / CELL).astype(np.int64) * (int(columns.max()) + 2) + columns
    _, last = np.unique(cells[::-1], return_index=True)
    return np.sort(len(x) - 1 - last)
