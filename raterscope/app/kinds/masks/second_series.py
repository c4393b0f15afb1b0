"""A second series of a case: registration from the voxels as they are in the files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.registration import FEWEST, Registration, register
from raterscope.algorithms.progress import RefusedError, Watch, part
from raterscope.app.errors import InputError
from raterscope.app.formats.volumes.resampling import explain_irregularity, regular_grid, resample

MISSING = (
    "Registration needs SimpleITK, which is not installed; `pip install 'raterscope[registration]'` installs "
    "it. Without it you can type a shift and a rotation."
)

WORKING_VOXELS = 1_500_000
"""Size above which volumes are averaged over blocks before they are registered."""

_ENDS = (0.5, 99.8)
"""Percentiles between which values are registered."""


def check_installed() -> None:
    """Raise `InputError` if SimpleITK is not installed."""
    try:
        import SimpleITK  # noqa: F401
    except ImportError as error:
        raise InputError(MISSING) from error


def register_series(
    case: NDArray[Any], case_grid: Grid, series: NDArray[Any], series_grid: Grid, watch: Watch
) -> Registration:
    """Register a series with a case, each in its own geometry; see `registration.register`.

    Large volumes are averaged over blocks, and uneven or tilted slices are resampled, so that memory and
    time are limited. Raises `RefusedError` for volumes that cannot be registered.
    """
    for grid, noun in ((case_grid, "case"), (series_grid, "series")):
        if min(grid.shape) < FEWEST:
            sizes = " x ".join(map(str, grid.shape))
            raise RefusedError(f"The {noun} has {sizes} voxels; expected {FEWEST} or more along each axis.")
        if not grid.calibrated:
            raise RefusedError(f"The size and position of the {noun}'s voxels are unknown.")
    watch(0.0, "preparing the case")
    fixed, fixed_grid = prepare(case, case_grid)
    watch(0.1, "preparing the series")
    moving, moving_grid = prepare(series, series_grid)
    return register(fixed, fixed_grid, moving, moving_grid, part(watch, 0.2, 1.0))


def prepare(values: NDArray[Any], grid: Grid) -> tuple[NDArray[np.float32], Grid]:
    """Average over blocks, limit values to their percentiles from 0 on, and resample to right angles."""
    factors = _block(grid)
    values, grid = _shrink(values, grid, factors)
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    low, high = np.percentile(values, _ENDS).tolist()
    if low == high:  # a few bright voxels in a constant background
        low, high = float(values.min()), float(values.max())
    values = np.clip(values, low, high) - np.float32(low)
    if explain_irregularity(grid):
        regular = regular_grid(grid)
        return resample(values, grid, regular), regular
    return values, Grid.from_matrix(grid.shape, grid.matrix)


def _block(grid: Grid) -> tuple[int, int, int]:
    """Return how many voxels (slice, row, column) make one; slices at uneven distances are kept."""
    fixed = grid.slice_offsets is not None
    target = min(grid.spacing)
    while True:
        factors = [max(1, round(target / step)) for step in grid.spacing]
        sizes = zip(grid.shape, factors, strict=True)
        down, along, across = (min(factor, max(1, size // FEWEST)) for size, factor in sizes)
        block = (1 if fixed else down, along, across)
        voxels = math.prod(size // factor for size, factor in zip(grid.shape, block, strict=True))
        if voxels <= WORKING_VOXELS or target > sum(grid.spacing) * max(grid.shape):
            return block
        target *= 1.1


def _shrink(
    values: NDArray[Any], grid: Grid, block: tuple[int, int, int]
) -> tuple[NDArray[np.float32], Grid]:
    """Average over blocks, slab by slab, so that only the result is added to memory."""
    down, along, across = block
    shape = tuple(size // factor for size, factor in zip(grid.shape, block, strict=True))
    smaller = np.empty(shape, dtype=np.float32)
    for number in range(shape[0]):
        slab = values[number * down : (number + 1) * down, : shape[1] * along, : shape[2] * across]
        slab = slab.astype(np.float32)
        if slab.ndim == 4:
            slab = slab.mean(axis=-1)
        blocks = slab.reshape(down, shape[1], along, shape[2], across)
        smaller[number] = blocks.mean(axis=(0, 2, 4))
    middle = (np.array(block, dtype=float) - 1) / 2
    matrix = grid.matrix @ np.diag([across, along, down, 1.0])
    matrix[:3, 3] = grid.to_patient(middle)
    return smaller, Grid.from_matrix(
        (shape[0], shape[1], shape[2]), matrix, calibrated=grid.calibrated, slice_offsets=grid.slice_offsets
    )
