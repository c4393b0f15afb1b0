"""Positions of voxels in a patient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import RefusedError

_SAME_PLACE = 0.01
"""Tolerance of equal grids, as a share of a voxel's smallest side."""

_EVEN = 0.01
"""Tolerance of even slices, as a share of the nominal slice distance."""

_WHOLE = 0.05
"""Tolerance of slice distances that are equal or whole multiples, as a share of the smaller distance."""

_TILTED = 0.1
"""Minimum gantry tilt for a notice, degrees."""

_NAMED = 3
"""Maximum number of gaps listed in a notice."""

_MOSTLY = 0.5
"""Minimum shares of nominal and of regular slice distances for counting the others as gaps."""

_IN_A_ROW = 3
"""Number of consecutive other distances that form a region of another slice distance instead of gaps."""

_MUCH_LONGER = 1.5
"""Minimum slice distance that suggests missing slices, as a multiple of every other distance."""


_SMALLEST, _FARTHEST = 1e-9, 1e6
"""Minimum side of a voxel and maximum coordinate, mm; values beyond these are not meaningful."""


class GridError(RefusedError):
    """An invalid geometry; the message says why."""


@dataclass(frozen=True)
class Grid:
    """A lattice of voxels and its position in the patient.

    Arrays on it are indexed (slice, row, column); an image in two dimensions has one slice. Slices are
    parallel; they may be at uneven distances (`slice_offsets`), and sheared against each other (a tilted
    gantry). Distances between slices are along their common normal.

    Attributes
    ----------
    shape : (slices, rows, columns)
    affine : 12 numbers, three rows of four
        Maps (column, row, slice, 1) of a voxel's centre to millimetres, in the patient's system of DICOM: x
        to the left, y to the back, z to the head.
    calibrated : bool
        False if size and position of voxels are unknown: one pixel then counts as one millimetre, and there
        are no orientation letters.
    slice_offsets : tuple of float, optional
        Increasing distances (mm) along the normal from the first slice to each slice, 0 for the first. The
        affine then holds the nominal slice distance. None if the affine gives every slice's position.
    """

    shape: tuple[int, int, int]
    affine: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    calibrated: bool = True
    slice_offsets: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        shape = tuple(int(size) for size in self.shape)
        affine = tuple(float(value) for value in self.affine)
        if len(shape) != 3 or min(shape) < 1:
            raise GridError(f"a grid of {self.shape} voxels; expected slices, rows and columns above 0.")
        if len(affine) != 12 or not all(map(math.isfinite, affine)):
            raise GridError("the geometry does not consist of twelve finite numbers.")
        _refuse_far(affine)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "affine", affine)
        axes = self.matrix[:3, :3]
        lengths = np.linalg.norm(axes, axis=0)
        if lengths.min() < _SMALLEST or abs(np.linalg.det(axes / lengths)) < 1e-3:
            raise GridError("the axes of the geometry do not span a volume.")
        if self.slice_offsets is not None:
            object.__setattr__(self, "slice_offsets", self._checked_offsets(self.slice_offsets))

    def _checked_offsets(self, offsets: tuple[float, ...]) -> tuple[float, ...]:
        offsets = tuple(float(value) for value in offsets)
        if len(offsets) != self.shape[0]:
            raise GridError(f"{len(offsets)} slice positions; expected {self.shape[0]}, one for each slice.")
        rising = all(low < high for low, high in pairwise(offsets))
        if not all(map(math.isfinite, offsets)) or offsets[0] != 0 or not rising:
            raise GridError("the slice positions are not finite numbers that rise from 0.")
        _refuse_far(offsets)
        return offsets

    @classmethod
    def plain(
        cls,
        shape: tuple[int, int, int],
        spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
        *,
        calibrated: bool = False,
    ) -> Grid:
        """Make a grid along the axes with its first voxel at 0; `spacing` (slice, row, column) in mm."""
        down, along, across = spacing
        return cls(shape, (across, 0, 0, 0, 0, along, 0, 0, 0, 0, down, 0), calibrated)

    @classmethod
    def from_matrix(
        cls,
        shape: tuple[int, int, int],
        matrix: NDArray[np.floating],
        *,
        calibrated: bool = True,
        slice_offsets: tuple[float, ...] | None = None,
    ) -> Grid:
        """Make a grid from a (4, 4) or (3, 4) matrix; see `affine` and `slice_offsets`."""
        affine = tuple(np.asarray(matrix, dtype=float)[:3, :4].ravel().tolist())
        return cls(shape, affine, calibrated, slice_offsets)

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """Matrix from (column, row, slice, 1) to mm, (4, 4); exact only for even slice distances."""
        return np.vstack([np.array(self.affine).reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])

    @cached_property
    def normal(self) -> NDArray[np.float64]:
        """Unit vector across the slices, from the first to the last, (3,)."""
        across = np.cross(self.matrix[:3, 0], self.matrix[:3, 1])
        length = np.linalg.norm(across) * np.sign(across @ self.matrix[:3, 2])
        return np.asarray(across / length, dtype=np.float64)

    @cached_property
    def spacing(self) -> tuple[float, float, float]:
        """Distances (mm) between slices, rows and columns; the nominal distance between uneven slices."""
        across, along = np.linalg.norm(self.matrix[:3, :2], axis=0)
        return float(self.normal @ self.matrix[:3, 2]), float(along), float(across)

    @cached_property
    def extent(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest millimetre along each axis of the patient."""
        corners = self.to_patient(np.array(list(product(*((-0.5, size - 0.5) for size in self.shape)))))
        return tuple(zip(corners.min(axis=0).tolist(), corners.max(axis=0).tolist(), strict=True))

    @property
    def voxel_volume(self) -> float:
        """Volume of a voxel at the nominal slice distance, mm³; see `bounds` for uneven slices."""
        return float(abs(np.linalg.det(self.matrix[:3, :3])))

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """Distances (mm) along the normal from the first slice to each slice, (slices,)."""
        if self.slice_offsets is not None:
            return np.array(self.slice_offsets, dtype=np.float64)
        return np.arange(self.shape[0], dtype=np.float64) * self.spacing[0]

    @cached_property
    def uneven(self) -> bool:
        """True if slice distances are uneven."""
        if self.slice_offsets is None:
            return False
        even = np.arange(self.shape[0]) * self.spacing[0]
        return bool(np.abs(self.positions - even).max() > _EVEN * self.spacing[0])

    @property
    def uneven_positions(self) -> NDArray[np.float64] | None:
        """`positions` if the slices are uneven, else None, as in the algorithms."""
        return self.positions if self.uneven else None

    @cached_property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Gaps: (the slice before the gap, number of missing slices).

        Distances are regular if they are nominal (if most are), or if several equal distances are
        consecutive. Slices are missing if most distances are regular and each other distance is an isolated
        sum of the regular distances beside it. Empty if the distances vary otherwise.
        """
        return gaps_between(self.positions, self.spacing[0]) if self.uneven else ()

    @cached_property
    def step_range(self) -> tuple[float, float] | None:
        """Smallest and largest slice distance except gaps, mm; None if these are equal."""
        if not self.uneven:
            return None
        steps = np.delete(np.diff(self.positions), [at for at, _ in self.gaps])
        low, high = float(steps.min()), float(steps.max())
        return (low, high) if not self.gaps or high - low > _WHOLE * low else None

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Begin and end of each slice's slab, mm along the normal, (slices, 2).

        A slab reaches half way to each neighbour, and equally far beyond the first and the last slice. Next
        to missing slices it reaches half of the regular slice distance there, so that a gap belongs to no
        slice.
        """
        return slab_bounds(self.positions, self.spacing[0])

    @property
    def flat(self) -> bool:
        """True for an image in two dimensions."""
        return self.shape[0] == 1

    @property
    def length_unit(self) -> str:
        """Unit of lengths: "mm", or "px" if sizes are unknown."""
        return "mm" if self.calibrated else "px"

    @property
    def size_unit(self) -> str:
        """Unit of sizes: "ml", on an image "mm²"; "voxels" or "px" if sizes are unknown."""
        if self.flat:
            return "mm²" if self.calibrated else "px"
        return "ml" if self.calibrated else "voxels"

    @property
    def tilt(self) -> float:
        """Angle between the slice axis and the normal of the slices, degrees (gantry tilt)."""
        normal = self.matrix[:3, 2] / np.linalg.norm(self.matrix[:3, 2])
        return math.degrees(math.acos(min(1.0, float(normal @ self.normal))))

    def to_patient(self, index: NDArray[np.floating]) -> NDArray[np.float64]:
        """Convert (..., 3) positions (slice, row, column) to millimetres (x, y, z).

        Positions are linear between uneven slices, and follow the nominal distance beyond the first and the
        last.
        """
        turned = np.array(index, dtype=float)[..., ::-1]
        if self.slice_offsets is not None:
            turned[..., 2] = _piecewise(turned[..., 2], self._numbers, self._steps)
        return np.asarray(turned @ self.matrix[:3, :3].T + self.matrix[:3, 3])

    def to_index(self, position: NDArray[np.floating]) -> NDArray[np.float64]:
        """Convert (..., 3) positions in millimetres (x, y, z) to (slice, row, column), not rounded."""
        index = (np.asarray(position, dtype=float) - self.matrix[:3, 3]) @ np.linalg.inv(
            self.matrix[:3, :3]
        ).T
        if self.slice_offsets is not None:
            index[..., 2] = _piecewise(index[..., 2], self._steps, self._numbers)
        return np.asarray(index[..., ::-1])

    @cached_property
    def _steps(self) -> NDArray[np.float64]:
        """Positions of the slices in nominal distances."""
        return self.positions / self.spacing[0]

    @cached_property
    def _numbers(self) -> NDArray[np.float64]:
        return np.arange(self.shape[0], dtype=np.float64)

    def levels(self, position: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the coordinate of (..., 3) positions along the slice axis, mm: z of axial slices."""
        sign = np.sign(self.normal[np.argmax(np.abs(self.normal))])
        return np.asarray(np.asarray(position, dtype=float) @ self.normal * sign)

    def heights(self, position: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the distances (mm) along the normal from the first slice to (..., 3) positions."""
        return np.asarray((np.asarray(position, dtype=float) - self.matrix[:3, 3]) @ self.normal)

    def slice_at(self, height: float) -> int | None:
        """Return the slice nearest to a height (mm along the normal); None if no slab contains it."""
        nearest = int(np.argmin(np.abs(self.positions - height)))
        low, high = self.bounds[nearest]
        room = _EVEN * self.spacing[0]
        return nearest if low - room <= height <= high + room else None

    def on_slice(self, position: NDArray[np.floating], number: int) -> NDArray[np.float64]:
        """Project (N, 3) positions onto a slice along the normal: (N, 2) rows and columns, not rounded."""
        first = self.to_patient(np.array([number, 0.0, 0.0]))
        axes = np.column_stack([self.matrix[:3, 1], self.matrix[:3, 0], self.normal])
        return np.asarray(((np.asarray(position, dtype=float) - first) @ np.linalg.inv(axes).T)[:, :2])

    def same_as(self, other: Grid) -> bool:
        """Return whether both are the same lattice at the same position, to a hundredth of a voxel.

        Grids of equal shape are the same if one of them is not calibrated.
        """
        if self.shape != other.shape:
            return False
        if not (self.calibrated and other.calibrated):
            return True
        rows, columns = ([0.0, size - 1.0] for size in self.shape[1:])
        slices = [0.0, self.shape[0] - 1.0]
        if self.uneven or other.uneven:
            slices = list(range(self.shape[0]))
        corners = np.stack(np.meshgrid(slices, rows, columns, indexing="ij"), axis=-1).reshape(-1, 3)
        away = np.abs(self.to_patient(corners) - other.to_patient(corners)).max()
        return bool(away <= _SAME_PLACE * min(min(self.spacing), min(other.spacing)))

    def same_voxels(self, other: Grid) -> bool:
        """Return whether both have the same voxels, whatever the order and direction of their axes.

        Values can then be transferred without loss, as between RAS and LPS orientation.
        """
        return self.same_as(other) or (sorted(self.shape) == sorted(other.shape) and self.is_part_of(other))

    def is_part_of(self, other: Grid) -> bool:
        """Return whether every voxel is also one of another grid, as of a mask cropped to what it marks."""
        known = self.calibrated and other.calibrated and not (self.uneven or other.uneven)
        if not known:
            return False
        to_other = np.linalg.inv(other.matrix[:3, :3]) @ self.matrix[:3, :3]
        axes = np.rint(to_other)
        if not np.array_equal(np.abs(axes) @ np.abs(axes).T, np.eye(3)):
            return False
        ends = np.array(list(product(*((0.0, size - 1.0) for size in self.shape))))
        index = other.to_index(self.to_patient(ends))
        away = np.abs(index - np.rint(index)).max()
        inside = (np.rint(index) >= 0) & (np.rint(index) < other.shape)
        return bool(away <= _SAME_PLACE and inside.all())

    def extended_to(self, other: Grid) -> Grid | None:
        """Return the smallest grid with these voxels and those of another grid; None if they do not align."""
        if self.uneven or not self.calibrated:
            return None
        ends = np.array(list(product(*((0.0, size - 1.0) for size in other.shape))))
        index = np.rint(self.to_index(other.to_patient(ends)))
        low = np.minimum(index.min(axis=0), 0)
        slices, rows, columns = (np.maximum(index.max(axis=0) + 1, self.shape) - low).astype(int).tolist()
        matrix = self.matrix.copy()
        matrix[:3, 3] = self.to_patient(low)
        extended = Grid.from_matrix((slices, rows, columns), matrix)
        return extended if other.is_part_of(extended) else None

    def same_slices(self, other: Grid) -> bool:
        """Return whether `other` has the slices of this grid, even if their positions are wrong.

        Formats with one slice distance and right angles (ITK, NIfTI) place uneven or tilted slices at the
        mean, the first or the nominal distance along the normal. Such a grid has the rows and columns of the
        first slice, and the same number of slices, but contours on it may be misplaced by centimetres.
        """
        return self.same_voxels(other) or any(even.same_voxels(other) for even in self.simplified)

    @cached_property
    def simplified(self) -> tuple[Grid, ...]:
        """Grids as written with one slice distance and right angles; empty if this grid has that form."""
        if self.flat or not self.calibrated or not (self.uneven or self.tilt > _TILTED):
            return ()
        first, second, last = self.to_patient(np.array([[at, 0.0, 0.0] for at in (0, 1, self.shape[0] - 1)]))
        mean = np.linalg.norm(last - first) / (self.shape[0] - 1)
        steps = [float(mean), float(np.linalg.norm(second - first)), self.spacing[0]]
        rows = self.matrix[:3, :2]
        return tuple(
            Grid.from_matrix(self.shape, np.column_stack([rows, self.normal * step, self.matrix[:3, 3]]))
            for step in dict.fromkeys(steps)
        )

    def letters(self, axis: int) -> tuple[str, str]:
        """Return the patient's sides at the low and the high end of an axis (0 slice, 1 row, 2 column).

        R right, L left, A front, P back, S head, I feet; empty if the grid is not calibrated.
        """
        if not self.calibrated:
            return "", ""
        direction = self.matrix[:3, 2 - axis]
        nearest = int(np.argmax(np.abs(direction)))
        low, high = ("RL", "AP", "IS")[nearest]
        return (low, high) if direction[nearest] > 0 else (high, low)

    def in_words(self) -> str:
        """Describe shape and spacing: "160 x 500 x 500, 1 x 0.5 x 0.5 mm"; of pictures width first, in px."""
        text = " x ".join(map(str, self.shape[:0:-1] if self.flat else self.shape))
        text += " px" if self.flat else ""
        if not self.calibrated:
            return text
        steps = [f"{step:.3g}" for step in (self.spacing[:0:-1] if self.flat else self.spacing)]
        if self.step_range:
            steps[0] = "{:.3g} to {:.3g}".format(*self.step_range)
        missing = sum(count for _, count in self.gaps)
        gap = f", {missing} slice{'s' if missing > 1 else ''} missing" if missing else ""
        return f"{text}, {' x '.join(steps)} mm{gap}"


def _refuse_far(values: tuple[float, ...]) -> None:
    farthest = max(map(abs, values))
    if farthest > _FARTHEST:
        raise GridError(f"its positions or steps are {farthest:.3g} mm; expected {_FARTHEST:,.0f} at most.")


def describe_slices(grid: Grid) -> tuple[str, ...]:
    """Describe missing or uneven slices of a grid, a sentence each; empty for an even grid."""
    sentences = []
    tilted = not grid.flat and grid.tilt > _TILTED
    if grid.gaps:
        missing = sum(count for _, count in grid.gaps)
        positions = []
        for at, count in grid.gaps[:_NAMED]:
            number = f"{count} " if len(grid.gaps) > 1 else ""
            positions.append(f"{number}between {_between(grid, at)}")
        more = len(grid.gaps) - _NAMED
        where = ", ".join(positions) + (f", and more in {more} other places" if more > 0 else "")
        verb = "slice is" if missing == 1 else "slices are"
        colon = ":" if len(grid.gaps) > 1 else ""
        gap = "gap" if len(grid.gaps) == 1 else "gaps"
        sentences.append(
            f"{missing} {verb} missing{colon} {where}. Contours near the {gap} may be misplaced; "
            f"volumes leave the {gap} out."
        )
    if grid.step_range:
        low, high = grid.step_range
        text = f"Slice distance varies from {low:.2f} to {high:.2f} mm"
        if tilted:
            lean = math.cos(math.radians(grid.tilt))
            text += f" ({low / lean:.2f} to {high / lean:.2f} mm along the table)"
        longest = None if grid.gaps else _longest(np.diff(grid.positions))
        if longest is not None:
            text += f"; slices may be missing between {_between(grid, longest)}"
        sentences.append(f"{text}.")
    if tilted:
        text = f"Slices are tilted by {grid.tilt:.1f} degrees (gantry tilt)"
        views = "sagittal and coronal views are sheared"
        sentences.append(f"{text}: {views}, and distances between slices leave the tilt out.")
    return tuple(sentences)


def _between(grid: Grid, at: int) -> str:
    """Describe the positions of a slice and the next: "12.0 and 21.0 mm"."""
    low, high = sorted(grid.levels(grid.to_patient(np.array([[at, 0.0, 0.0], [at + 1, 0.0, 0.0]]))))
    return f"{low:.1f} and {high:.1f} mm"


def _longest(steps: NDArray[np.float64]) -> int | None:
    """Return the single step that is much longer than all others, or None."""
    if len(steps) < _IN_A_ROW:
        return None
    order = np.argsort(steps)
    return int(order[-1]) if steps[order[-1]] >= _MUCH_LONGER * steps[order[-2]] else None


@dataclass(frozen=True, slots=True)
class _Gap:
    at: int  # the slice before
    missing: int  # slices
    # mm: regular slice distances at both ends
    below: float
    above: float


def gaps_between(positions: NDArray[np.float64], nominal: float) -> tuple[tuple[int, int], ...]:
    """Return (the slice before, number of missing slices) for each gap; see `Grid.gaps`."""
    return tuple((gap.at, gap.missing) for gap in _find_gaps(positions, nominal))


def _find_gaps(positions: NDArray[np.float64], nominal: float) -> list[_Gap]:
    steps = np.diff(positions)
    before, after, regular = _regular_steps(steps, nominal)
    if np.count_nonzero(regular) < max(1, _MOSTLY * len(steps)):
        return []
    gaps = []
    for at in np.flatnonzero(~regular).tolist():
        step, pair = float(steps[at]), (float(before[at]), float(after[at]))
        room = _WHOLE * min(pair)
        if step <= max(pair) + room and (max(pair) - min(pair) > room or step >= min(pair) - room):
            continue  # between regions of two slice distances
        counts = _count_steps(step, *pair, room)
        around = regular[at : at + _IN_A_ROW]
        if counts is None or (len(around) == _IN_A_ROW and not around.any()):
            return []
        below, above = (
            own if count else other for own, other, count in zip(pair, pair[::-1], counts, strict=True)
        )
        gaps.append(_Gap(at, sum(counts) - 1, below, above))
    return gaps


def _regular_steps(
    steps: NDArray[np.float64], nominal: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the regular slice distances before and after each step, and whether each step is regular.

    Runs of equal steps are regular, and nominal steps if most steps are nominal.
    """
    near = np.abs(steps / nominal - 1) <= _WHOLE
    if np.count_nonzero(near) < _MOSTLY * len(steps):
        near[:] = False
    values, regular = np.where(near, nominal, steps), near.copy()
    changes = np.flatnonzero(np.abs(np.diff(values)) > _WHOLE * np.minimum(values[:-1], values[1:])) + 1
    for begin, end in pairwise([0, *changes.tolist(), len(values)]):
        if end - begin >= _IN_A_ROW:
            values[begin:end], regular[begin:end] = np.median(values[begin:end]), True
    if not regular.any():
        return values, values, regular
    known, numbers = np.flatnonzero(regular), np.arange(len(steps))
    next_one = np.searchsorted(known, numbers)
    after = known[np.minimum(next_one, len(known) - 1)]
    before = known[np.maximum(np.searchsorted(known, numbers, side="right") - 1, 0)]
    return values[before], values[after], regular


def _count_steps(length: float, before: float, after: float, room: float) -> tuple[int, int] | None:
    """Return the smallest number of steps of two sizes that add up to a length, or None."""
    counts = []
    for number in range(int((length + room) // after) + 1):
        others = round((length - number * after) / before)
        if abs(number * after + others * before - length) <= room and number + others > 1:
            counts.append((others, number))
    return min(counts, key=sum, default=None)


def slab_bounds(positions: NDArray[np.float64], nominal: float) -> NDArray[np.float64]:
    """Return the begin and end of each slice's slab, (slices, 2) mm; see `Grid.bounds`."""
    steps = np.diff(positions) if len(positions) > 1 else np.array([nominal])
    below, above = steps.copy(), steps.copy()
    for gap in _find_gaps(positions, nominal):
        below[gap.at], above[gap.at] = gap.below, gap.above
    starts, ends = np.append(below[0], above) / 2, np.append(below, above[-1]) / 2
    return np.column_stack([positions - starts[: len(positions)], positions + ends[: len(positions)]])


def _piecewise(
    value: NDArray[np.float64], known: NDArray[np.floating], wanted: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Interpolate linearly between pairs of `known` and `wanted`; extrapolate with a slope of 1."""
    inside = np.interp(value, known, wanted)
    return np.asarray(inside + np.minimum(value - known[0], 0) + np.maximum(value - known[-1], 0))


@lru_cache(maxsize=64)
def plane_grid(rows: int, columns: int) -> Grid:
    """Return the grid of a plain image with pixels of unknown size; cached by size."""
    return Grid.plain((1, rows, columns))
