"""Where voxels lie in a patient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.errors import RefusedError

__all__ = ["Grid", "GridError"]

_SAME_PLACE = 0.01
"""Of a voxel's smallest side: two grids nearer than that everywhere are one."""


class GridError(RefusedError):
    """A geometry that is none, in a sentence for people."""


@dataclass(frozen=True)
class Grid:
    """A lattice of voxels and its place in the patient.

    Arrays on it are indexed (slice, row, column); an image in two dimensions has one slice.

    Attributes
    ----------
    shape : (slices, rows, columns)
    affine : 12 numbers, three rows of four
        Takes (column, row, slice, 1) of a voxel's centre to millimetres, in the patient's system of DICOM:
        x to the left, y to the back, z to the head.
    calibrated : bool
        False where nothing tells a voxel's size or place: one pixel then counts as one millimetre and
        letters of orientation mean nothing.
    """

    shape: tuple[int, int, int]
    affine: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    calibrated: bool = True

    def __post_init__(self) -> None:
        shape = tuple(int(size) for size in self.shape)
        affine = tuple(float(value) for value in self.affine)
        if len(shape) != 3 or min(shape) < 1:
            raise GridError(f"a grid of {self.shape} voxels; expected slices, rows and columns above 0.")
        if len(affine) != 12 or not all(map(math.isfinite, affine)):
            raise GridError("the geometry is not made of twelve finite numbers.")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "affine", affine)
        axes = self.matrix[:3, :3]
        lengths = np.linalg.norm(axes, axis=0)
        if lengths.min() <= 0 or abs(np.linalg.det(axes / lengths)) < 1e-3:
            raise GridError("the axes of the geometry do not span a volume.")

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
        cls, shape: tuple[int, int, int], matrix: NDArray[np.floating], *, calibrated: bool = True
    ) -> Grid:
        """Make a grid of a (4, 4) or (3, 4) matrix; see `affine`."""
        return cls(shape, tuple(np.asarray(matrix, dtype=float)[:3, :4].ravel().tolist()), calibrated)

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """(4, 4): takes (column, row, slice, 1) to millimetres."""
        return np.vstack([np.array(self.affine).reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])

    @property
    def spacing(self) -> tuple[float, float, float]:
        """Millimetres from one (slice, row, column) to the next."""
        across, along, down = np.linalg.norm(self.matrix[:3, :3], axis=0)
        return float(down), float(along), float(across)

    @property
    def voxel_volume(self) -> float:
        """Cubic millimetres; of one pixel, square millimetres times the slice's spacing."""
        return float(abs(np.linalg.det(self.matrix[:3, :3])))

    @property
    def flat(self) -> bool:
        """True for an image in two dimensions."""
        return self.shape[0] == 1

    def to_patient(self, index: NDArray[np.floating]) -> NDArray[np.float64]:
        """Take (..., 3) places as (slice, row, column) to millimetres (x, y, z)."""
        turned = np.asarray(index, dtype=float)[..., ::-1]
        return np.asarray(turned @ self.matrix[:3, :3].T + self.matrix[:3, 3])

    def to_index(self, place: NDArray[np.floating]) -> NDArray[np.float64]:
        """Take (..., 3) places in millimetres (x, y, z) to (slice, row, column), not rounded."""
        index = (np.asarray(place, dtype=float) - self.matrix[:3, 3]) @ np.linalg.inv(self.matrix[:3, :3]).T
        return np.asarray(index[..., ::-1])

    def same_as(self, other: Grid) -> bool:
        """Tell whether both are the same lattice at the same place, to a hundredth of a voxel.

        Two shapes that are alike and of which one is not calibrated count as the same.
        """
        if self.shape != other.shape:
            return False
        if not (self.calibrated and other.calibrated):
            return True
        ends = np.array(self.shape) - 1.0
        corners = np.stack(np.meshgrid(*([0.0, end] for end in ends), indexing="ij"), axis=-1).reshape(-1, 3)
        away = np.abs(self.to_patient(corners) - other.to_patient(corners)).max()
        return bool(away <= _SAME_PLACE * min(min(self.spacing), min(other.spacing)))

    def part(self, origin: tuple[int, int, int], shape: tuple[int, int, int]) -> Grid:
        """Give the grid of a part that begins at the voxel `origin`."""
        matrix = self.matrix.copy()
        matrix[:3, 3] = self.to_patient(np.array(origin, dtype=float))
        return Grid.from_matrix(shape, matrix, calibrated=self.calibrated)

    def letters(self, axis: int) -> tuple[str, str]:
        """Give the patient's sides at the low and the high end of an axis (0 slice, 1 row, 2 column).

        R right, L left, A front, P back, S head, I feet; empty where the grid is not calibrated.
        """
        if not self.calibrated:
            return "", ""
        direction = self.matrix[:3, 2 - axis]
        nearest = int(np.argmax(np.abs(direction)))
        low, high = ("RL", "AP", "IS")[nearest]
        return (low, high) if direction[nearest] > 0 else (high, low)

    def in_words(self) -> str:
        """Say the shape and spacing: "160 x 500 x 500, 1 x 0.5 x 0.5 mm"."""
        sizes = self.shape[1:] if self.flat else self.shape
        words = " x ".join(str(size) for size in sizes)
        if not self.calibrated:
            return words
        steps = self.spacing[1:] if self.flat else self.spacing
        return f"{words}, {' x '.join(f'{step:.3g}' for step in steps)} mm"
