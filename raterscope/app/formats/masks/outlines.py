"""Outlines of a mask along the edges of its pixels, which made into a mask again give the same pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["outlines"]

_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""East, south, west, north, in columns and rows."""


def outlines(mask: NDArray[np.bool_]) -> list[NDArray[np.float64]]:
    """Walk around every part of a mask and every hole in it.

    Parameters
    ----------
    mask : (rows, columns) bool

    Returns
    -------
    list of (N, 2) arrays
        The corners of each outline, column and row, where the centre of the first pixel is at (0, 0). Pixels
        that touch at a corner alone have outlines of their own. A pixel is in the mask when it lies within an
        odd number of the outlines.
    """
    padded = np.pad(mask, 1)
    inside, up, left = padded[1:-1, 1:-1], padded[:-2, 1:-1], padded[1:-1, :-2]
    down, right = padded[2:, 1:-1], padded[1:-1, 2:]
    rows, columns = mask.shape
    # Which ways an edge leaves from each corner of a pixel: one bit each, the inside always to the right.
    leaving = np.zeros((rows + 1, columns + 1), dtype=np.uint8)
    leaving[:-1, :-1] |= (inside & ~up).view(np.uint8)
    leaving[:-1, 1:] |= (inside & ~right).view(np.uint8) << 1
    leaving[1:, 1:] |= (inside & ~down).view(np.uint8) << 2
    leaving[1:, :-1] |= (inside & ~left).view(np.uint8) << 3
    starts = np.argwhere(leaving).tolist()
    ways = {(column, row): int(leaving[row, column]) for row, column in starts}
    found = []
    for row, column in starts:
        while ways[column, row]:
            found.append(_walk(ways, (column, row)))
    return found


def _walk(ways: dict[tuple[int, int], int], start: tuple[int, int]) -> NDArray[np.float64]:
    """Follow edges from a corner back to it, taking them away."""
    first = heading = (ways[start] & -ways[start]).bit_length() - 1
    at, corners = start, []
    while True:
        at = (at[0] + _STEPS[heading][0], at[1] + _STEPS[heading][1])
        # To the right before straight on, so that the walk stays with its own pixel where two touch.
        turn = next(way % 4 for way in (heading + 1, heading, heading + 3) if ways[at] & (1 << way % 4))
        ways[at] &= ~(1 << turn)
        if turn != heading:
            corners.append(at)
        heading = turn
        if at == start and turn == first:
            break
    return np.array(corners, dtype=float) - 0.5
