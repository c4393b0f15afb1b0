"""Brush and eraser: what a stroke covers on a slice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.widgets.volume.plane import Box, Index, Plane
from raterscope.widgets.volume.scene import Stroke

__all__ = ["BrushStroke"]

UNTOUCHED = -1


class BrushStroke:
    """A disc drawn over one slice.

    Parameters
    ----------
    plane : Plane
    present : (slice, row, column)
        Any voxel of the slice.
    radius : float
        Of the disc, in millimetres (pixels where the grid is not calibrated). The voxel below its middle is
        always covered.
    puts_in : bool
        False for the eraser.
    """

    def __init__(self, plane: Plane, present: Index, radius: float, *, puts_in: bool) -> None:
        self.plane = plane
        self.index = present[plane.normal]
        self.radius = radius
        self.puts_in = puts_in
        self._covered = np.zeros((plane.shape[plane.down], plane.shape[plane.across]), dtype=np.bool_)
        self._last: tuple[float, float] | None = None
        self._bounds: tuple[int, int, int, int] | None = None

    def to(self, x: float, y: float) -> None:
        """Draw the disc on to a place of the plane, in a straight line from the last."""
        begin = self._last if self._last is not None else (x, y)
        self._last = (x, y)
        plane = self.plane
        across, down = plane.centres(plane.across), plane.centres(plane.down)
        first_column, last_column = _reached(across, min(x, begin[0]), max(x, begin[0]), self.radius)
        first_row, last_row = _reached(down, min(y, begin[1]), max(y, begin[1]), self.radius)
        if last_column <= first_column or last_row <= first_row:
            return
        across, down = across[first_column:last_column], down[first_row:last_row, None]
        covered = _near(across, down, begin, (x, y), self.radius)
        left, top, right, bottom = plane.extent
        below = plane.first_cell(plane.index_at(x, y, (self.index,) * 3), (1, 1, 1))
        row, column = below[0] - first_row, below[1] - first_column
        inside = left <= x < right and top <= y < bottom
        if inside and 0 <= row < covered.shape[0] and 0 <= column < covered.shape[1]:
            covered[row, column] = True
        self._covered[first_row:last_row, first_column:last_column] |= covered
        box = first_row, first_column, last_row, last_column
        old = self._bounds or box
        self._bounds = (
            min(old[0], box[0]), min(old[1], box[1]), max(old[2], box[2]), max(old[3], box[3]),
        )  # fmt: skip

    def preview(self) -> tuple[NDArray[np.bool_], Box] | None:
        """Return the covered cells as on the screen, and their position on the plane."""
        if self._bounds is None:
            return None
        top, left, bottom, right = self._bounds
        plane, origin, size = self.plane, [0, 0, 0], [1, 1, 1]
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
            size[axis] = last - first
        box = plane.box_of((origin[0], origin[1], origin[2]), tuple(size))
        return plane.evenly(self._covered[top:bottom, left:right], (top, left)), box

    def finished(self) -> Stroke | None:
        """Return the voxels; None where none was covered."""
        rows = np.flatnonzero(self._covered.any(axis=1))
        columns = np.flatnonzero(self._covered.any(axis=0))
        if not len(rows):
            return None
        top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
        part = self._covered[top:bottom, left:right]
        values = np.where(part, np.int8(self.puts_in), np.int8(UNTOUCHED))
        plane, origin = self.plane, [0, 0, 0]
        origin[plane.normal] = self.index
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
        crop = np.ascontiguousarray(plane.uncut(values), dtype=np.int8)
        return Stroke((origin[0], origin[1], origin[2]), crop, plane.name, self.index)


def _reached(centres: NDArray[np.float64], low: float, high: float, radius: float) -> tuple[int, int]:
    """Return the range of voxels that a stroke may touch, with one more on each side."""
    first = int(np.searchsorted(centres, low - radius)) - 1
    last = int(np.searchsorted(centres, high + radius)) + 1
    return max(0, first), min(len(centres), last)


def _near(
    across: NDArray[np.floating],
    down: NDArray[np.floating],
    begin: tuple[float, float],
    end: tuple[float, float],
    radius: float,
) -> NDArray[np.bool_]:
    """Return which positions are within a radius of a straight line."""
    way_x, way_y = end[0] - begin[0], end[1] - begin[1]
    length = way_x * way_x + way_y * way_y
    x, y = across - begin[0], down - begin[1]
    share = np.clip((x * way_x + y * way_y) / length, 0.0, 1.0) if length > 0 else 0.0
    return np.asarray((x - share * way_x) ** 2 + (y - share * way_y) ** 2 <= radius * radius)
