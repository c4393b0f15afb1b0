"""From one grid to another, when a person asks for it; never behind their back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid

__all__ = ["explain_difference", "resample"]

_HALF = 0.5
_TOLD = 1e-4
"""Relative: spacings that differ by less are called the same."""


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
        `source`.

    Raises
    ------
    ValueError
        When `values` are not of the shape of `source`, or one grid says where it lies and the other does not.
    """
    if values.shape != source.shape:
        raise ValueError(f"values of {values.shape} on a grid of {source.shape}")
    if source.calibrated != target.calibrated:
        raise ValueError("one of the two grids does not say where it lies in the patient")
    from scipy import ndimage

    swap = np.eye(4)[[2, 1, 0, 3]]  # (slice, row, column) to (column, row, slice) and back
    to_source = swap @ np.linalg.inv(source.matrix) @ target.matrix @ swap
    mask = values.dtype == bool
    kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.float32)
    # One voxel beyond the edge, values fall to 0: a mask that touches it ends half a voxel outside.
    found = ndimage.affine_transform(
        values.astype(kind, copy=False),
        to_source[:3, :3],
        to_source[:3, 3],
        target.shape,
        order=1,
        mode="grid-constant",
        cval=0,
    )
    if mask:
        return np.asarray(found >= _HALF)
    if values.dtype.kind in "iu":
        ends = np.iinfo(values.dtype)
        found = np.clip(np.rint(found), ends.min, ends.max)
    return np.asarray(found, dtype=values.dtype)


def explain_difference(a: Grid, b: Grid) -> str:
    """Say in one sentence how two grids differ, both named; empty when they are the same."""
    if a.same_as(b):
        return ""
    if a.shape != b.shape:
        return f"The grids differ in shape: {a.in_words()} and {b.in_words()}."
    if not np.allclose(a.spacing, b.spacing, rtol=_TOLD, atol=0):
        return f"The grids differ in spacing: {a.in_words()} and {b.in_words()}."
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
