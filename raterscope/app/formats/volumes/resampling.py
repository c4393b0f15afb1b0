"""Resampling of masks from one grid to another, only on request."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.untrusted import MAX_VOXELS

_HALF = 0.5
_ROUNDING = 1e-6
_ASIDE = 1e-3
"""Shift, in voxels, by which masks are sampled beside centres. A centre halfway between voxels, as on a grid
of twice the spacing, is then inside at one of two opposite edges, not at both.
"""

_SQUARE = 3e-5
"""Maximum cosine between two axes that other programs accept as a right angle."""

_SAME = 1e-4
"""Relative difference below which spacings count as equal."""


class OtherGrid(InputError):  # noqa: N818 - a question to the user, rather than an error
    """Error: masks on another grid than their image."""

    def __init__(self, masks: Grid, image: Grid, name: str, file: Path) -> None:
        # whether both grids have positions, so that the masks can be resampled
        self.resamplable = masks.calibrated and image.calibrated
        difference = explain_difference(masks, image)
        text = f"does not lie on {plain(name)}: {difference[:1].lower()}{difference[1:].rstrip('.')}"
        if not self.resamplable:
            text += "; masks without positions in mm must have the size of their image"
        super().__init__(text, file=file)


def resample(values: NDArray[Any], source: Grid, target: Grid) -> NDArray[Any]:
    """Resample values from one grid to another, in the patient's coordinates.

    Raises `ValueError` if `values` do not have the shape of `source`, or only one of the grids has positions.

    `values`: (slices, rows, columns), on `source`. A bool mask is interpolated as 0 and 1, and True above one
    half; of voxels halfway between True and False, those on one side of a region are True. The result is on
    `target` and has the type of `values`. It is interpolated between eight values; integers are rounded. It
    is 0 (False) outside `source`, and at its missing slices.
    """
    if values.shape != source.shape:
        raise ValueError(f"values of {values.shape} on a grid of {source.shape}")
    if source.calibrated != target.calibrated:
        raise ValueError("one of the two grids has no position in the patient")
    resampled = np.zeros(target.shape, dtype=values.dtype)
    begin, end = _reached_box(values, source, target)
    if (begin >= end).any():
        return resampled
    box = tuple(slice(*ends) for ends in zip(begin.tolist(), end.tolist(), strict=True))
    if source.slice_offsets is not None or target.slice_offsets is not None:
        resampled[box] = _convert(_slice_by_slice(values, source, target, box), values.dtype)
        return resampled
    from scipy import ndimage

    swap = np.eye(4)[[2, 1, 0, 3]]  # (slice, row, column) to (column, row, slice) and back
    to_source = swap @ np.linalg.inv(source.matrix) @ target.matrix @ swap
    # Values are 0 one voxel beyond the edge, so that a mask at the edge ends half a voxel outside.
    part = ndimage.affine_transform(
        values.astype(_real(values.dtype), copy=False),
        to_source[:3, :3],
        to_source[:3, :3] @ begin + to_source[:3, 3] + _aside(values.dtype),
        tuple((end - begin).tolist()),
        order=1,
        mode="grid-constant",
        cval=0,
    )
    resampled[box] = _convert(part, values.dtype)
    return resampled


_BEYOND = 2
"""Margin, in voxels, around non-zero voxels within which values are interpolated."""


def _reached_box(
    values: NDArray[Any], source: Grid, target: Grid
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first voxel of `target` that values other than 0 can reach, and the voxel after the last."""
    layers = [np.flatnonzero(values.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    if not len(layers[0]):
        return np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    ends = [(float(layer[0]) - _BEYOND, float(layer[-1]) + _BEYOND) for layer in layers]
    corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 3)
    index = target.to_index(source.to_patient(corners))
    begin = np.maximum(np.floor(index.min(axis=0)), 0)
    end = np.minimum(np.ceil(index.max(axis=0)) + 1, target.shape)
    return begin.astype(np.int64), end.astype(np.int64)


def _aside(kind: np.dtype[Any]) -> float:
    return _ASIDE if kind.kind == "b" else 0.0


def _real(kind: np.dtype[Any]) -> np.dtype[Any]:
    return kind if kind.kind == "f" else np.dtype(np.float32)


def _convert(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    if kind.kind == "b":
        return np.asarray(values >= _HALF)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        values = np.clip(np.rint(values), ends.min, ends.max)
    return np.asarray(values, dtype=kind)


def _slice_by_slice(values: NDArray[Any], source: Grid, target: Grid, box: tuple[slice, ...]) -> NDArray[Any]:
    """Interpolate in a box between unevenly spaced slices; gaps of missing slices are 0."""
    from scipy import ndimage

    real = values.astype(_real(values.dtype), copy=False)
    slices, *plane = (np.arange(part.start, part.stop, dtype=float) for part in box)
    rows, columns = np.meshgrid(*plane, indexing="ij")
    resampled = np.zeros((len(slices), *rows.shape), dtype=real.dtype)
    for number, at in enumerate(slices.tolist()):
        positions = target.to_patient(np.stack([np.full(rows.shape, at), rows, columns], axis=-1))
        index = np.moveaxis(source.to_index(positions), -1, 0)
        # A slice at the position of a source slice equals that slice exactly, despite rounding errors.
        nearest = np.rint(index[0])
        index[0] = np.where(np.abs(index[0] - nearest) < _ROUNDING, nearest, index[0])
        index += _aside(values.dtype)
        if source.uneven:
            index[0] = np.clip(index[0], 0, source.shape[0] - 1)
        part = ndimage.map_coordinates(real, index, order=1, mode="grid-constant", cval=0)
        if source.uneven:
            part[_outside(source, source.heights(positions))] = 0
        resampled[number] = part
    return resampled


def _outside(grid: Grid, heights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each height is beyond the slices, or at missing slices."""
    outside = np.asarray((heights < grid.bounds[0, 0]) | (heights > grid.bounds[-1, 1]), dtype=np.bool_)
    for at, _ in grid.gaps:
        low, high = grid.bounds[at, 1], grid.bounds[at + 1, 0]
        outside |= (heights > low) & (heights < high)
    return outside


def explain_irregularity(grid: Grid) -> str:
    """Explain why formats with one spacing and orthogonal axes cannot represent a grid; empty if they can."""
    if not grid.calibrated:
        return ""
    sentences = describe_slices(grid) if grid.uneven else ()
    if sentences:
        return sentences[0].split(". ")[0].rstrip(".")
    axes = grid.matrix[:3, :3] / np.linalg.norm(grid.matrix[:3, :3], axis=0)
    if np.abs(axes.T @ axes - np.eye(3)).max() <= _SQUARE:
        return ""
    if grid.tilt > 0:
        return f"Slices are tilted by {grid.tilt:.2g} degrees (gantry tilt)"
    return "The axes of the image are not at right angles"


def regular_grid(grid: Grid) -> Grid:
    """Compute the grid with even distances and right angles that covers a grid.

    Its slice distance is the smallest distance, or the nominal distance if distances vary only by missing
    slices. Its slices cover the slabs of the first and the last slice. Its rows and columns are those of the
    first slice, extended by the shift of the slices. Raises `InputError` if it would have too many voxels.
    """
    step = grid.step_range[0] if grid.step_range else grid.spacing[0]
    begin = math.ceil(float(grid.bounds[0, 0]) / step + _ROUNDING)
    slices = math.floor(float(grid.bounds[-1, 1]) / step - _ROUNDING) - begin + 1
    across = grid.matrix[:3, 0] / grid.spacing[2]
    along = np.cross(grid.normal, across)
    along *= np.sign(along @ grid.matrix[:3, 1])
    axes = np.column_stack([across * grid.spacing[2], along * grid.spacing[1], grid.normal * step])
    ends = [[0.0, size - 1.0] for size in grid.shape]
    corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 3)
    index = (grid.to_patient(corners) - grid.matrix[:3, 3]) @ np.linalg.inv(axes).T
    low = np.floor(index[:, :2].min(axis=0) + _ROUNDING)
    high = np.ceil(index[:, :2].max(axis=0) - _ROUNDING)
    columns, rows = (high - low + 1).astype(int).tolist()
    if slices * rows * columns > MAX_VOXELS:
        raise InputError(f"a regular grid would have {slices} x {rows} x {columns} voxels, which is too many")
    first = grid.matrix[:3, 3] + axes[:, :2] @ low + axes[:, 2] * begin
    return Grid.from_matrix((slices, rows, columns), np.column_stack([axes, first]))


def explain_difference(a: Grid, b: Grid) -> str:
    """Describe in a sentence how two grids differ; empty if they are equal."""
    if a.same_as(b):
        return ""
    if a.shape != b.shape:
        return f"The grids differ in shape: {a.in_words()} and {b.in_words()}."
    if not np.allclose(a.spacing, b.spacing, rtol=_SAME, atol=0):
        return f"The grids differ in spacing: {a.in_words()} and {b.in_words()}."
    if a.uneven or b.uneven:
        distance = float(np.abs(a.positions - b.positions).max())
        if distance > _SAME * a.spacing[0]:
            text = f"{a.in_words()} and {b.in_words()}"
            return f"The grids differ in the positions of their slices, by up to {distance:.3g} mm: {text}."
    turns = [grid.matrix[:3, :3] / np.linalg.norm(grid.matrix[:3, :3], axis=0) for grid in (a, b)]
    if np.abs(turns[0] - turns[1]).max() > 1e-3:
        angle = np.degrees(np.arccos(np.clip((turns[0] * turns[1]).sum(axis=0), -1.0, 1.0))).max()
        return f"The grids of {a.in_words()} are rotated against each other by {angle:.3g} degrees."
    origins = [", ".join(f"{value:.2f}" for value in grid.matrix[:3, 3]) for grid in (a, b)]
    distance = float(np.linalg.norm(a.matrix[:3, 3] - b.matrix[:3, 3]))
    return (
        f"The grids of {a.in_words()} begin at different positions, ({origins[0]}) and ({origins[1]}) mm, "
        f"{distance:.3g} mm apart."
    )
