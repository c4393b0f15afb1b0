"""Strokes of brush, eraser and contour on one slice, as the voxels that they cover."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.widgets.volume.plane import Box, Index, Plane
from raterscope.widgets.volume.scene import Stroke

UNTOUCHED = -1


class BrushStroke:
    """A disc drawn over one slice, or a ball over several.

    `present`: (slice, row, column) of any voxel of the slice. `radius`: radius in millimetres (pixels if the
    grid is not calibrated). The voxel below the centre is always covered. `puts_in`: False for the eraser.
    `solid`: whether neighbouring slices within the radius are covered too. `paintable`: returns where a slice
    may be painted, as on the screen; None for everywhere.
    """

    def __init__(
        self,
        plane: Plane,
        present: Index,
        radius: float,
        *,
        puts_in: bool,
        solid: bool = False,
        paintable: Callable[[int], NDArray[np.bool_] | None] = lambda _index: None,
    ) -> None:
        self.plane = plane
        self._present, self._solid, self._paintable = present, solid, paintable
        self._allowed = paintable(present[plane.normal])
        self._points: list[tuple[float, float]] = []
        self.index = present[plane.normal]
        self.radius = radius
        self.puts_in = puts_in
        self._covered = np.zeros((plane.shape[plane.down], plane.shape[plane.across]), dtype=np.bool_)
        self._last: tuple[float, float] | None = None
        self._bounds: tuple[int, int, int, int] | None = None

    def to(self, x: float, y: float) -> None:
        """Extend the stroke in a straight line to a point of the plane."""
        begin = self._last if self._last is not None else (x, y)
        self._points.append((x, y))
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
        return plane.evenly(self.covered[top:bottom, left:right], (top, left)), box

    @property
    def covered(self) -> NDArray[np.bool_]:
        """The covered voxels of the slice, as on the screen."""
        return self._covered if self._allowed is None else self._covered & self._allowed

    def finished(self) -> Stroke | None:
        """Return the voxels; None where none was covered."""
        plane, parts = self.plane, {self.index: self.covered, **self._neighbours()}
        indices = sorted(index for index, part in parts.items() if part.any())
        if not indices:
            return None
        union = np.any([parts[index] for index in indices], axis=0)
        rows, columns = np.flatnonzero(union.any(axis=1)), np.flatnonzero(union.any(axis=0))
        top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
        origin = [0, 0, 0]
        origin[plane.normal] = indices[0]
        for axis, first, last in ((plane.down, top, bottom), (plane.across, left, right)):
            origin[axis] = plane.shape[axis] - last if plane.reversed[axis] else first
        nothing = np.zeros_like(union)
        slices = [
            plane.uncut(parts.get(index, nothing)[top:bottom, left:right])
            for index in range(indices[0], indices[-1] + 1)
        ]
        covered = np.concatenate(slices, axis=plane.normal)
        values = np.where(covered, np.int8(self.puts_in), np.int8(UNTOUCHED))
        crop = np.ascontiguousarray(values, dtype=np.int8)
        return Stroke((origin[0], origin[1], origin[2]), crop, plane.name, self.index)

    def _neighbours(self) -> dict[int, NDArray[np.bool_]]:
        """Return the voxels of a ball on the other slices: discs, smaller with distance."""
        if not self._solid:
            return {}
        plane = self.plane
        positions = plane.centres(plane.normal)
        if plane.reversed[plane.normal]:
            positions = positions[::-1]
        parts = {}
        for index, away in enumerate(np.abs(positions - positions[self.index]).tolist()):
            if index == self.index or away >= self.radius:
                continue
            present = list(self._present)
            present[plane.normal] = index
            disc = BrushStroke(
                plane, (present[0], present[1], present[2]), float(np.sqrt(self.radius**2 - away**2)),
                puts_in=self.puts_in, paintable=self._paintable,
            )  # fmt: skip
            for point in self._points:
                disc.to(*point)
            parts[index] = disc.covered
        return parts


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


class ContourStroke(BrushStroke):
    """An area that is drawn around: the voxels whose centres lie inside the closed line.

    Where the line crosses itself, the parts that it encloses twice are outside.
    """

    def __init__(self, plane: Plane, present: Index, radius: float, *, puts_in: bool, **_others: Any) -> None:
        super().__init__(plane, present, radius, puts_in=puts_in)
        self._line: list[tuple[float, float]] = []

    def to(self, x: float, y: float) -> None:
        """Extend the line to a point of the plane."""
        if self._line and self._line[-1] == (x, y):
            return
        self._line.append((x, y))
        across, down = self.plane.centres(self.plane.across), self.plane.centres(self.plane.down)
        self._covered = fill_polygon(np.array(self._line), across, down)
        rows = np.flatnonzero(self._covered.any(axis=1))
        columns = np.flatnonzero(self._covered.any(axis=0))
        self._bounds = None
        if len(rows):
            self._bounds = int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def fill_polygon(
    line: NDArray[np.float64], across: NDArray[np.float64], down: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which points of a raster lie inside a closed line, by the even-odd rule, (rows, columns).

    `line`: (N, 2), corners, x and y. `across`, `down`: (columns,) and (rows,), ascending coordinates of the
    raster.

    Examples
    --------
    >>> corners = np.array([[0.5, 0.5], [2.5, 0.5], [2.5, 1.5], [0.5, 1.5]])
    >>> fill_polygon(corners, np.arange(4.0), np.arange(3.0)).astype(int).tolist()
    [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    """
    x, y = line.T
    next_x, next_y = np.roll(x, -1), np.roll(y, -1)
    low = np.searchsorted(down, np.minimum(y, next_y))
    count = np.searchsorted(down, np.maximum(y, next_y)) - low
    edge = np.repeat(np.arange(len(line)), count)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count) + low[edge]
    share = (down[row] - y[edge]) / (next_y[edge] - y[edge])
    column = np.searchsorted(across, x[edge] + share * (next_x[edge] - x[edge]))
    crossings = np.zeros((len(down), len(across) + 1), dtype=np.int64)
    np.add.at(crossings, (row, column), 1)
    return np.asarray(np.cumsum(crossings, axis=1)[:, :-1] % 2 == 1)
