"""Edits of a whole mask: holes filled, outline smoothed, a margin, and combinations of two masks."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from raterscope.algorithms.masks.data import BoolArray, FloatArray
from raterscope.algorithms.masks.distance import signed_distance

Combination = Literal["add", "subtract", "intersect", "replace"]
COMBINATIONS: tuple[Combination, ...] = get_args(Combination)


def fill_holes(mask: BoolArray) -> BoolArray:
    """Fill what is enclosed on each slice of a mask, (Z, Y, X).

    Examples
    --------
    >>> import numpy as np
    >>> ring = np.ones((1, 3, 3), dtype=bool)
    >>> ring[0, 1, 1] = False
    >>> bool(fill_holes(ring).all())
    True
    """
    from scipy import ndimage

    return np.array([ndimage.binary_fill_holes(part) for part in mask], dtype=np.bool_).reshape(mask.shape)


def smooth(mask: BoolArray, spacing: tuple[float, float, float]) -> BoolArray:
    """Smooth the outline of a mask by a Gaussian filter whose standard deviation is one pixel of a slice.

    The mask is continued beyond its first and last slice, so that these keep their size, and a mask on one
    slice is smoothed within it. A larger part of the image gives the same mask: beside the array is outside.
    """
    from scipy import ndimage

    width, result = max(spacing[1:]), np.zeros_like(mask)
    blocks, _ = ndimage.label(mask.any(axis=(1, 2)))
    for (block,) in ndimage.find_objects(blocks):
        blurred = ndimage.gaussian_filter(
            mask[block].astype(np.float32), [width / step for step in spacing],
            mode=["nearest", "constant", "constant"], truncate=3.0,
        )  # fmt: skip
        result[block] = blurred > 0.5
    return result


def add_margin(
    mask: BoolArray, spacing: tuple[float, float, float], margin: float, positions: FloatArray | None = None
) -> BoolArray:
    """Grow a mask by a margin in all directions, or shrink it by a negative one.

    `mask`: (Z, Y, X), with enough room around it to grow. `margin`: mm, from the boundary midway between
    voxels. `positions`: (Z,), mm across the slices, if these are uneven.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([[[False, False, True, False, False]]])
    >>> add_margin(line, (1.0, 1.0, 1.0), 1.0).astype(int).tolist()
    [[[0, 1, 1, 1, 0]]]
    """
    inside = signed_distance(mask, spacing, abs(margin) + 2 * max(spacing), positions=positions)
    return np.asarray(inside >= -margin) if margin > 0 else np.asarray(inside > -margin)


def combine(mask: BoolArray, other: BoolArray, combination: Combination) -> BoolArray:
    """Combine two masks of one shape."""
    if combination == "add":
        return mask | other
    if combination == "subtract":
        return mask & ~other
    return mask & other if combination == "intersect" else other.copy()
