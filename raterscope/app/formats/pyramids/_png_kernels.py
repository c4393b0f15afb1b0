"""The filters of PNG, undone row by row, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import compiled

__all__ = ["unfilter"]


@compiled()
def unfilter(rows: NDArray[np.uint8], above: NDArray[np.uint8], step: int) -> bool:
    """Undo the filters (PNG specification, chapter 9) in place.

    Parameters
    ----------
    rows : (R, 1 + bytes) uint8
        Each with its filter's number before it.
    above : (bytes,) uint8
        The row before, undone; zeros before the first. Holds the last one afterwards.
    step : int
        Bytes from a pixel to its neighbour.

    Returns
    -------
    bool
        False where a filter is unknown.
    """
    count = rows.shape[1] - 1
    for number in range(rows.shape[0]):
        kind = rows[number, 0]
        row = rows[number, 1:]
        if kind > 4:
            return False
        if kind == 1:
            for i in range(step, count):
                row[i] += row[i - step]
        elif kind == 2:
            for i in range(count):
                row[i] += above[i]
        elif kind == 3:
            for i in range(count):
                left = np.int32(row[i - step]) if i >= step else np.int32(0)
                row[i] += np.uint8((left + np.int32(above[i])) // 2)
        elif kind == 4:
            for i in range(count):
                left = np.int32(row[i - step]) if i >= step else np.int32(0)
                corner = np.int32(above[i - step]) if i >= step else np.int32(0)
                up = np.int32(above[i])
                to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                if to_left <= to_up and to_left <= to_corner:
                    row[i] += np.uint8(left)
                elif to_up <= to_corner:
                    row[i] += np.uint8(up)
                else:
                    row[i] += np.uint8(corner)
        above[:] = row
    return True
