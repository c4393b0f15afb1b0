"""Edges of masks on a slice, as closed lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["contours"]

FloatArray = NDArray[np.float64]
Part = NDArray[np.bool_] | NDArray[np.float32]

# Sides of a square of four neighbouring voxels: 0 top, 1 right, 2 bottom, 3 left. By which of its corners
# are inside (1 upper left, 2 upper right, 4 lower right, 8 lower left), the side where the line comes in and
# that where it goes out. The two squares with opposite corners inside have two lines, which part the corners:
# masks that touch at a corner alone are two.
_LINES: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((3, 0),), 2: ((0, 1),), 3: ((3, 1),), 4: ((1, 2),), 5: ((3, 0), (1, 2)), 6: ((0, 2),),
    7: ((3, 2),), 8: ((2, 3),), 9: ((2, 0),), 10: ((0, 1), (2, 3)), 11: ((2, 1),), 12: ((1, 3),),
    13: ((1, 0),), 14: ((0, 3),),
}  # fmt: skip


def contours(part: Part, level: float = 0.5) -> list[FloatArray]:
    """Find where a slice crosses a level (marching squares), each line closed also at the slice's edge.

    Parameters
    ----------
    part : (H, W) bool or float32
        Beyond its edge counts as outside.
    level : float

    Returns
    -------
    list of (n, 2)
        (column, row) of the lines' corners in voxels, whole numbers at the voxels' middles; corners in the
        middle of a straight run are left out. The first corner is not repeated at the end.
    """
    inside = part > level if part.dtype != np.bool_ else part
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return []
    # Only what is inside and one voxel about it matters.
    top, left = int(rows[0]) - 1, int(columns[0]) - 1
    shape = int(rows[-1]) - top + 2, int(columns[-1]) - left + 2
    values = np.zeros(shape, dtype=np.float32) if part.dtype != np.bool_ else np.zeros(shape, dtype=np.bool_)
    first_row, first_column = max(top, 0), max(left, 0)
    cropped = part[first_row : top + shape[0], first_column : left + shape[1]]
    below, beside = first_row - top, first_column - left
    values[below : below + cropped.shape[0], beside : beside + cropped.shape[1]] = cropped
    return [line + np.array([left, top]) for line in _lines(values, level)]


def _lines(values: Part, level: float) -> list[FloatArray]:
    inside = values if values.dtype == np.bool_ else values > level
    bits = inside.astype(np.uint8)
    kind = bits[:-1, :-1] | (bits[:-1, 1:] << 1) | (bits[1:, 1:] << 2) | (bits[1:, :-1] << 3)
    height, width = values.shape
    flat = np.flatnonzero((kind > 0) & (kind < 15))
    row, column = np.divmod(flat, width - 1)
    kinds = kind.ravel()[flat]
    # An edge between neighbours has a number: those along the rows first, then those down the columns.
    down = height * width
    sides = np.stack(
        [
            row * width + column,
            down + row * width + column + 1,
            (row + 1) * width + column,
            down + row * width + column,
        ]
    )
    starts, ends = [], []
    for cases, lines in _LINES.items():
        cells = np.flatnonzero(kinds == cases)
        for come, go in lines if len(cells) else ():
            starts.append(sides[come, cells])
            ends.append(sides[go, cells])
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start)
    start, end = start[order], end[order]
    follows = np.searchsorted(start, end).tolist()
    corners = _crossings(values, start, level)
    return [_without_straight(corners[loop]) for loop in _loops(follows)]


def _loops(follows: list[int]) -> list[list[int]]:
    """Part a permutation into its cycles."""
    seen = bytearray(len(follows))
    loops = []
    for begin in range(len(follows)):
        if seen[begin]:
            continue
        loop, index = [], begin
        while not seen[index]:
            seen[index] = 1
            loop.append(index)
            index = follows[index]
        loops.append(loop)
    return loops


def _crossings(values: Part, edges: NDArray[np.intp], level: float) -> FloatArray:
    height, width = values.shape
    downward = edges >= height * width
    row, column = np.divmod(edges - downward * (height * width), width)
    if values.dtype == np.bool_:
        share: FloatArray | float = 0.5
    else:
        near = values[row, column].astype(np.float64)
        far = values[row + downward, column + ~downward].astype(np.float64)
        share = (level - near) / (far - near)
    return np.stack([column + np.where(downward, 0.0, share), row + np.where(downward, share, 0.0)], axis=1)


def _without_straight(line: FloatArray) -> FloatArray:
    way_in, way_out = line - np.roll(line, 1, axis=0), np.roll(line, -1, axis=0) - line
    bends = np.abs(way_in[:, 0] * way_out[:, 1] - way_in[:, 1] * way_out[:, 0]) > 1e-9
    return line[bends] if np.count_nonzero(bends) >= 3 else line
