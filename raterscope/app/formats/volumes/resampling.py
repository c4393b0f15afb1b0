"""Resampling of masks from one grid to another, on request only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.untrusted import MOST_VOXELS

__all__ = ["OtherGrid", "explain_difference", "regular_grid", "resample", "why_not_regular"]

_HALF = 0.5
_ROUNDING = 1e-6
_SQUARE = 3e-5
"""Cosine between two axes that other programs still take for a right angle."""

_TOLD = 1e-4
"""Relative: spacings that differ by less are called the same."""


class OtherGrid(InputError):  # noqa: N818 - a question to the person, rather than an error
    """Masks that were made on another grid than their image has.

    Attributes
    ----------
    resamplable : bool
        Whether both grids have positions, so that the masks can be resampled.
    """

    def __init__(self, masks: Grid, image: Grid, name: str, file: Path) -> None:
        self.resamplable = masks.calibrated and image.calibrated
        difference = explain_difference(masks, image)
        words = f"does not lie on {plain(name)}: {difference[:1].lower()}{difference[1:].rstrip('.')}"
        super().__init__(words, file=file)


def resample(values: NDArray[Any], source: Grid, target: Grid) -> NDArray[Any]:
    """Take values on one grid to another, through the patient's coordinates.

    Parameters
    ----------
    values : (slices, rows, columns)
        On `source`. A mask of bool is interpolated as 0 and 1 and belongs where that reaches one half.
    source, target : Grid

    Returns
    -------
    (slices, rows, columns) of `target`
        Of the type of `values`, interpolated between eight; whole numbers are rounded. 0 (False) outside
        `source`, and where its slices are missing.

    Raises
    ------
    ValueError
        When `values` are not of the shape of `source`, or one grid says where it lies and the other does not.
    """
    if values.shape != source.shape:
        raise ValueError(f"values of {values.shape} on a grid of {source.shape}")
    if source.calibrated != target.calibrated:
        raise ValueError("one of the two grids does not say where it lies in the patient")
    if source.slice_offsets is not None or target.slice_offsets is not None:
        return _converted(_slice_by_slice(values, source, target), values.dtype)
    from scipy import ndimage

    swap = np.eye(4)[[2, 1, 0, 3]]  # (slice, row, column) to (column, row, slice) and back
    to_source = swap @ np.linalg.inv(source.matrix) @ target.matrix @ swap
    # One voxel beyond the edge, values fall to 0: a mask that touches it ends half a voxel outside.
    found = ndimage.affine_transform(
        values.astype(_real(values.dtype), copy=False),
        to_source[:3, :3],
        to_source[:3, 3],
        target.shape,
        order=1,
        mode="grid-constant",
        cval=0,
    )
    return _converted(found, values.dtype)


def _real(kind: np.dtype[Any]) -> np.dtype[Any]:
    return kind if kind.kind == "f" else np.dtype(np.float32)


def _converted(found: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    if kind.kind == "b":
        return np.asarray(found >= _HALF)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        found = np.clip(np.rint(found), ends.min, ends.max)
    return np.asarray(found, dtype=kind)


def _slice_by_slice(values: NDArray[Any], source: Grid, target: Grid) -> NDArray[Any]:
    """Interpolate where slices are at their own positions; gaps of missing slices stay 0."""
    from scipy import ndimage

    real = values.astype(_real(values.dtype), copy=False)
    found = np.zeros(target.shape, dtype=real.dtype)
    rows, columns = np.indices(target.shape[1:], dtype=float)
    for at in range(target.shape[0]):
        places = target.to_patient(np.stack([np.full(rows.shape, float(at)), rows, columns], axis=-1))
        index = np.moveaxis(source.to_index(places), -1, 0)
        # A slice that lies on one of the source's is that, whatever rounding says.
        near = np.rint(index[0])
        index[0] = np.where(np.abs(index[0] - near) < _ROUNDING, near, index[0])
        if source.uneven:
            index[0] = np.clip(index[0], 0, source.shape[0] - 1)
        part = ndimage.map_coordinates(real, index, order=1, mode="grid-constant", cval=0)
        if source.uneven:
            part[_outside(source, source.heights(places))] = 0
        found[at] = part
    return found


def _outside(grid: Grid, heights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which heights lie beyond the slices, or where slices are missing."""
    found = np.asarray((heights < grid.bounds[0, 0]) | (heights > grid.bounds[-1, 1]), dtype=np.bool_)
    for at, _ in grid.gaps:
        low, high = grid.bounds[at, 1], grid.bounds[at + 1, 0]
        found |= (heights > low) & (heights < high)
    return found


def why_not_regular(grid: Grid) -> str:
    """Say why formats of one spacing and axes at right angles cannot hold a grid; empty where they can."""
    if not grid.calibrated:
        return ""
    said = describe_slices(grid) if grid.uneven else ()
    if said:
        return said[0].split(". ")[0].rstrip(".")
    axes = grid.matrix[:3, :3] / np.linalg.norm(grid.matrix[:3, :3], axis=0)
    if np.abs(axes.T @ axes - np.eye(3)).max() <= _SQUARE:
        return ""
    if grid.tilt > 0:
        return f"Slices are tilted by {grid.tilt:.2g} degrees (gantry tilt)"
    return "The axes of the image are not at right angles"


def regular_grid(grid: Grid) -> Grid:
    """Make the grid at even distances and right angles that covers a grid.

    Its slices are at the nominal distance where slices are missing, else at the smallest distance, and reach
    as far as the slabs of the first and the last slice; its rows
    and columns are those of the first slice, with as many more as the slices are shifted.

    Raises
    ------
    InputError
        When it would have more voxels than can be held.
    """
    step = grid.spacing[0]
    if grid.uneven and not grid.gaps:
        step = float(np.diff(grid.positions).min())
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
    if slices * rows * columns > MOST_VOXELS:
        raise InputError(f"a regular grid would have {slices} x {rows} x {columns} voxels, which is too many")
    first = grid.matrix[:3, 3] + axes[:, :2] @ low + axes[:, 2] * begin
    return Grid.from_matrix((slices, rows, columns), np.column_stack([axes, first]))


def explain_difference(a: Grid, b: Grid) -> str:
    """Say in one sentence how two grids differ, both named; empty when they are the same."""
    if a.same_as(b):
        return ""
    if a.shape != b.shape:
        return f"The grids differ in shape: {a.in_words()} and {b.in_words()}."
    if not np.allclose(a.spacing, b.spacing, rtol=_TOLD, atol=0):
        return f"The grids differ in spacing: {a.in_words()} and {b.in_words()}."
    if a.uneven or b.uneven:
        apart = float(np.abs(a.positions - b.positions).max())
        if apart > _TOLD * a.spacing[0]:
            words = f"{a.in_words()} and {b.in_words()}"
            return f"The grids differ in the positions of their slices, by up to {apart:.3g} mm: {words}."
    turns = [grid.matrix[:3, :3] / np.linalg.norm(grid.matrix[:3, :3], axis=0) for grid in (a, b)]
    if np.abs(turns[0] - turns[1]).max() > 1e-3:
        angle = np.degrees(np.arccos(np.clip((turns[0] * turns[1]).sum(axis=0), -1.0, 1.0))).max()
        return f"The grids of {a.in_words()} are turned against each other by {angle:.3g} degrees."
    places = [", ".join(f"{value:.2f}" for value in grid.matrix[:3, 3]) for grid in (a, b)]
    away = float(np.linalg.norm(a.matrix[:3, 3] - b.matrix[:3, 3]))
    return (
        f"The grids of {a.in_words()} begin at different places, ({places[0]}) and ({places[1]}) mm, "
        f"{away:.3g} mm apart."
    )
