"""Planes of a volume in radiological orientation, contours of masks, window and level of grey values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.text import with_minus

Index = tuple[int, int, int]
Box = tuple[float, float, float, float]

PLANES = ("axial", "coronal", "sagittal")

_GAP = 1e-6
"""Gap between slices, as a share of their distance, above which slices are missing."""

_FINE, _MAX_FINE = 0.1, 1024
"""Size in mm of a pixel across uneven slices, and maximum number of such pixels."""

_NORMAL = {"axial": 2, "coronal": 1, "sagittal": 0}
"""Viewing direction of each plane, in the patient's system (x to the left, y to the back, z to the head)."""

_ACROSS_DOWN = {"axial": (0, 1), "coronal": (0, 2), "sagittal": (1, 2)}
"""The patient's directions along the screen's axes.

The left of the screen is the patient's right, as seen from the feet or the front; in the sagittal plane it is
the front. The top is the front or the head.
"""


@dataclass(frozen=True)
class Plane:
    """Mapping between array axes and screen for the slices of one orientation.

    Positions on the plane are in millimetres (pixels if voxel sizes are unknown) from the upper left corner
    of the upper left voxel, x to the right and y down.
    """

    name: str  # "axial", "coronal" or "sagittal"
    # normal, down, across: axes of the array (0 slice, 1 row, 2 column): perpendicular to the plane, down the
    # screen, and across it
    normal: int
    down: int
    across: int
    # by axis of the array: whether its voxels are counted from the far end. Along `normal`: whether the order
    # of slices is reversed, to go from head to feet, front to back, or right to left
    reversed: tuple[bool, bool, bool]
    shape: Index  # (slices, rows, columns)
    # (slice, row, column): spacing; the nominal distance for uneven slices
    spacing: tuple[float, float, float]
    letters: tuple[str, str, str, str]  # (left, right, top, bottom): the patient's sides; empty if unknown
    # (begin, position, end) of slices at uneven distances, in mm from the begin of the first; see
    # `Grid.bounds`
    slabs: tuple[tuple[float, float, float], ...] | None = None
    oblique: float = 0.0  # degrees between the slices and the patient's plane of this name

    @property
    def slices(self) -> int:
        """Number of slices along the normal."""
        return self.shape[self.normal]

    @property
    def extent(self) -> Box:
        """Left, top, right, bottom of the plane."""
        return 0.0, 0.0, float(self.edges(self.across)[-1]), float(self.edges(self.down)[-1])

    @cached_property
    def _uneven(self) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]] | None:
        """Edges of the cells along the slice axis on the screen, each slice's cell, and its position.

        Missing slices form separate cells.
        """
        if self.slabs is None:
            return None
        slabs = np.array(self.slabs)
        if self.reversed[0]:
            slabs = (slabs[-1, 2] - slabs)[::-1, ::-1]
        edges, cells = [float(slabs[0, 0])], []
        for begin, _, end in slabs.tolist():
            if begin > edges[-1] + _GAP * self.spacing[0]:
                edges.append(begin)
            cells.append(len(edges) - 1)
            edges.append(end)
        return np.array(edges), np.array(cells, dtype=np.intp), slabs[:, 1]

    def edges(self, axis: int) -> NDArray[np.float64]:
        """Return the edges of the cells along an axis of the screen."""
        if axis == 0 and self._uneven is not None:
            return self._uneven[0]
        return np.arange(self.shape[axis] + 1, dtype=np.float64) * self.spacing[axis]

    def centres(self, axis: int) -> NDArray[np.float64]:
        """Return the true positions of voxels along an axis of the screen."""
        if axis == 0 and self._uneven is not None:
            return self._uneven[2]
        return (np.arange(self.shape[axis], dtype=np.float64) + 0.5) * self.spacing[axis]

    def to_place(self, axis: int, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        """Convert fractional cell numbers along an axis of the screen to positions."""
        if axis == 0 and self._uneven is not None:
            edges = self._uneven[0]
            return np.asarray(np.interp(cells, np.arange(len(edges)), edges))
        return np.asarray(cells * self.spacing[axis])

    def with_gaps(self, part: NDArray[Any], first: tuple[int, int]) -> tuple[NDArray[Any], tuple[int, int]]:
        """Insert empty rows or columns for missing slices into a part of a cut from a given cell on."""
        if self._uneven is None or self.normal == 0 or not part.size:
            return part, first
        axis = 0 if self.down == 0 else 1
        cells = self._uneven[1][first[axis] : first[axis] + part.shape[axis]]
        wide = list(part.shape)
        wide[axis] = int(cells[-1] - cells[0]) + 1
        resampled = np.zeros(wide, dtype=part.dtype)
        resampled[(slice(None),) * axis + (cells - cells[0],)] = part
        begin = [*first]
        begin[axis] = int(cells[0])
        return resampled, (begin[0], begin[1])

    def evenly(self, part: NDArray[Any], first: tuple[int, int] = (0, 0)) -> NDArray[Any]:
        """Resample a part of a cut that begins at a given cell to pixels of equal size, within its box."""
        if self._uneven is None or self.normal == 0 or not part.size:
            return part
        part, first = self.with_gaps(part, first)
        axis = 0 if self.down == 0 else 1
        edges = self._uneven[0][first[axis] : first[axis] + part.shape[axis] + 1]
        count = int(np.clip(np.ceil((edges[-1] - edges[0]) / _FINE), len(edges) - 1, _MAX_FINE))
        values = edges[0] + (np.arange(count) + 0.5) * (edges[-1] - edges[0]) / count
        cells = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(edges) - 2)
        return np.asarray(np.take(part, cells, axis=axis))

    @property
    def next_up(self) -> int:
        """Index step of one slice toward the head, the front or the right."""
        return 1 if self.reversed[self.normal] else -1

    def cut(self, values: NDArray[Any], index: int) -> NDArray[Any]:
        """Return one slice of a (Z, Y, X) or (Z, Y, X, channels) array in screen orientation, as a view."""
        part = values[(slice(None),) * self.normal + (index,)]
        if self.down > self.across:
            part = part.swapaxes(0, 1)
        return part[:: -1 if self.reversed[self.down] else 1, :: -1 if self.reversed[self.across] else 1]

    def uncut(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return a cut as a (Z, Y, X) array with one slice, as a view: the inverse of `cut`."""
        part = part[:: -1 if self.reversed[self.down] else 1, :: -1 if self.reversed[self.across] else 1]
        if self.down > self.across:
            part = part.swapaxes(0, 1)
        return np.expand_dims(part, self.normal)

    def cut_crop(
        self, values: NDArray[Any], origin: Index, index: int
    ) -> tuple[NDArray[Any], tuple[int, int]] | None:
        """Return a slice of a part of the volume, and its first voxel's (row, column) on the screen.

        None if the slice does not intersect the part.
        """
        axis = index - origin[self.normal]
        if not 0 <= axis < values.shape[self.normal] or not values.size:
            return None
        return self.cut(values, axis), self.first_cell(origin, values.shape)

    def first_cell(self, origin: Index, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the (row, column) on the screen, in voxels, of a part's upper left voxel."""
        first = [
            self.shape[axis] - origin[axis] - shape[axis] if self.reversed[axis] else origin[axis]
            for axis in (self.down, self.across)
        ]
        return first[0], first[1]

    def box_of(self, origin: Index, shape: tuple[int, ...]) -> Box:
        """Return left, top, right, bottom of a part of the volume on the plane."""
        row, column = self.first_cell(origin, shape)
        left, right = self._span(self.across, column, shape[self.across])
        top, bottom = self._span(self.down, row, shape[self.down])
        return left, top, right, bottom

    def _span(self, axis: int, first: int, count: int) -> tuple[float, float]:
        if axis == 0 and self._uneven is not None and count:
            edges, cells, _ = self._uneven
            return float(edges[cells[first]]), float(edges[cells[first + count - 1] + 1])
        begin = first * self.spacing[axis]
        return begin, begin + count * self.spacing[axis]

    def position_of(self, index: Index) -> tuple[float, float]:
        """Return the centre of a voxel on the plane."""
        row, column = self.first_cell(index, (1, 1, 1))
        return float(self.centres(self.across)[column]), float(self.centres(self.down)[row])

    def index_at(self, x: float, y: float, present: Index) -> Index:
        """Return the voxel at a position of the plane, limited to the volume, in the slice of `present`."""
        index = list(present)
        for axis, position in ((self.across, x), (self.down, y)):
            last = self.shape[axis] - 1
            if axis == 0 and self._uneven is not None:
                cell = self._nearest_slice(position)
            else:
                cell = min(max(int(np.floor(position / self.spacing[axis])), 0), last)
            index[axis] = last - cell if self.reversed[axis] else cell
        return index[0], index[1], index[2]

    def _nearest_slice(self, position: float) -> int:
        """Return the slice, in the screen's order, that contains a position, or the nearest one."""
        assert self._uneven is not None
        edges, cells, positions = self._uneven
        cell = int(np.searchsorted(edges, position, "right")) - 1
        rows = np.flatnonzero(cells == cell)
        return int(rows[0]) if len(rows) else int(np.argmin(np.abs(positions - position)))


def planes_of(grid: Grid) -> dict[str, Plane]:
    """Return the planes of a grid by name: three, or one for an image in two dimensions.

    Each axis of the array stands for the nearest direction of the patient.
    """
    directions = np.abs(grid.matrix[:3, :3] / np.linalg.norm(grid.matrix[:3, :3], axis=0))
    # The columns of the matrix are column, row, slice. Each direction is assigned to one axis, by the best
    # fit of all.
    best = max(permutations(range(3)), key=lambda order: sum(directions[order[a], 2 - a] for a in range(3)))
    axis_of = {direction: axis for axis, direction in enumerate(best)}
    towards = [float(grid.matrix[best[axis], 2 - axis]) > 0 for axis in range(3)]
    # Along x and y, the screen's directions equal the patient's; along z they are opposite, with the head at
    # the top.
    turned = tuple(towards[axis] if best[axis] == 2 else not towards[axis] for axis in range(3))
    slabs = None
    if grid.uneven:
        bounds = np.column_stack([grid.bounds[:, 0], grid.positions, grid.bounds[:, 1]]) - grid.bounds[0, 0]
        slabs = tuple((begin, axis, end) for begin, axis, end in bounds.tolist())
    planes = {}
    for name in PLANES:
        normal = axis_of[_NORMAL[name]]
        if grid.flat and normal != 0:
            continue
        across, down = (axis_of[direction] for direction in _ACROSS_DOWN[name])
        ends = []
        for axis in (across, down):
            low, high = grid.letters(axis)
            ends += [high, low] if turned[axis] else [low, high]
        across_way, down_way = (grid.matrix[:3, 2 - axis] for axis in (across, down))
        towards_eye = np.cross(across_way, down_way)
        cosine = abs(towards_eye[_NORMAL[name]]) / np.linalg.norm(towards_eye)
        oblique = float(np.degrees(np.arccos(min(cosine, 1.0)))) if grid.calibrated else 0.0
        planes[name] = Plane(
            name, normal, down, across, (turned[0], turned[1], turned[2]), grid.shape, grid.spacing,
            (ends[0], ends[1], ends[2], ends[3]), slabs, oblique,
        )  # fmt: skip
    return planes


FloatArray = NDArray[np.float64]
Part = NDArray[np.bool_] | NDArray[np.float32]

# Sides of a square of four neighbouring voxels: 0 top, 1 right, 2 bottom, 3 left. By the corners inside (1
# upper left, 2 upper right, 4 lower right, 8 lower left): the side where the line enters and the side where
# it leaves. Squares with two opposite corners inside have two lines, which separate the corners: masks that
# touch only at a corner stay separate.
_LINES: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((3, 0),), 2: ((0, 1),), 3: ((3, 1),), 4: ((1, 2),), 5: ((3, 0), (1, 2)), 6: ((0, 2),),
    7: ((3, 2),), 8: ((2, 3),), 9: ((2, 0),), 10: ((0, 1), (2, 3)), 11: ((2, 1),), 12: ((1, 3),),
    13: ((1, 0),), 14: ((0, 3),),
}  # fmt: skip


def contours(part: Part, level: float = 0.5) -> list[FloatArray]:
    """Find the lines where a slice crosses a level (marching squares), closed at the slice's edge.

    `part`: (H, W); everything beyond its edge is outside. The corners of a line, (n, 2), are column and row
    in voxels, integers at the centres of voxels. Corners within a straight run are omitted, and the first
    corner is not repeated at the end.
    """
    inside = part > level if part.dtype != np.bool_ else part
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows):
        return []
    # Only the inside and a margin of one voxel matter.
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
    # Edges between neighbours are numbered: first those along the rows, then those along the columns.
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
    """Divide a permutation into its cycles."""
    visited = bytearray(len(follows))
    loops = []
    for begin in range(len(follows)):
        if visited[begin]:
            continue
        loop, index = [], begin
        while not visited[index]:
            visited[index] = 1
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


Window = tuple[float, float]

_SAMPLES = 60_000
_SMALLEST_WIDTH = 1e-6

_AIR, _AIR_SHARE = -500.0, 0.02
"""Hounsfield units below which voxels are air or lung, and the minimum share of such voxels in a CT."""


@dataclass(frozen=True)
class Preset:
    """Usual grey-value window of a tissue in CT."""

    name: str
    text: str
    # centre, width: in Hounsfield units
    centre: float
    width: float


PRESETS = (
    Preset("lung", "lung", -600.0, 1500.0),
    Preset("soft", "soft tissue", 40.0, 400.0),
    Preset("liver", "liver", 60.0, 160.0),
    Preset("bone", "bone", 300.0, 1500.0),
    Preset("brain", "brain", 40.0, 80.0),
    Preset("stroke", "stroke", 35.0, 40.0),
)


class Levels:
    """Conversion of slices to bytes by a grey-value window.

    Integers of 16 bits are converted by a table of all 65,536 values, which is faster than arithmetic on each
    voxel. `centre`, `width`: values up to centre - width / 2 are black, values from centre + width / 2 are
    white.
    """

    def __init__(self, centre: float, width: float) -> None:
        self.centre = float(centre)
        self.width = max(float(width), _SMALLEST_WIDTH)
        self._tables: dict[np.dtype, NDArray[np.uint8]] = {}

    def to_bytes(self, part: NDArray[np.generic]) -> NDArray[np.uint8]:
        """Convert a slice to bytes of the same shape; colours (H, W, 3) stay unchanged."""
        if part.ndim == 3:
            return np.ascontiguousarray(part, dtype=np.uint8)
        if part.dtype in (np.int16, np.uint16):
            return np.take(self._table(part.dtype), np.ascontiguousarray(part).view(np.uint16))
        if part.dtype == np.uint8:
            return np.take(self._table(part.dtype), part.view(np.uint8))
        return self._windowed(np.asarray(part, dtype=np.float32))

    def _table(self, kind: np.dtype) -> NDArray[np.uint8]:
        if kind not in self._tables:
            count = 256 if kind == np.uint8 else 65_536
            # Negative int16 values are stored at the index of the same bits as uint16.
            every = np.arange(count, dtype=np.uint8 if kind == np.uint8 else np.uint16).view(kind)
            self._tables[kind] = self._windowed(every.astype(np.float32))
        return self._tables[kind]

    def _windowed(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        share = (values - np.float32(self.centre - self.width / 2)) * np.float32(255.0 / self.width)
        np.nan_to_num(share, copy=False, nan=0.0)
        return np.clip(share + 0.5, 0, 255, out=share).astype(np.uint8)


def automatic_window(values: NDArray[np.generic]) -> Window:
    """Return (centre, width) from the 1st to the 99.5th percentile of the values above the lowest.

    The lowest value is ignored, because air around a patient, or padding around a scan, is often most of the
    volume. About 60,000 voxels are used.
    """
    some = _sample(values)
    inside = some[some > some.min()] if len(some) else some
    if not len(inside):
        return (float(some[0]) if len(some) else 0.0), 1.0
    low, high = np.percentile(inside, (1.0, 99.5))
    return float((low + high) / 2), float(max(high - low, abs(high) * 1e-3, _SMALLEST_WIDTH))


def looks_like_ct(values: NDArray[np.generic]) -> bool:
    """Check whether values of unknown modality may be Hounsfield units: air is at -1000."""
    some = _sample(values)
    return len(some) > 0 and bool(np.count_nonzero(some < _AIR) >= _AIR_SHARE * len(some))


def _sample(values: NDArray[np.generic]) -> NDArray[np.float64]:
    every = max(1, round((values.size / _SAMPLES) ** (1 / values.ndim)))
    some = np.asarray(values[(slice(None, None, every),) * values.ndim], dtype=np.float64).ravel()
    return some[np.isfinite(some)]


def in_words(centre: float, width: float) -> str:
    """Format a window: "W 400 L 40", with the digits that its width needs."""
    digits = max(0, min(4, 1 - int(np.floor(np.log10(max(width, 1e-9))))))
    return f"W {width:.{digits}f} L {with_minus(f'{centre:.{digits}f}')}"
