"""Boxes of voxels in an image: origin and shape, each of slices, rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from raterscope.algorithms.masks.data import Box

Slices = tuple[slice, slice, slice]


def box_around(boxes: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[Box, Box]:
    """Return origin and shape of the smallest box around one box or more.

    Examples
    --------
    >>> box_around([((0, 1, 2), (1, 4, 4)), ((0, 3, 0), (2, 3, 3))])
    ((0, 1, 0), (2, 5, 6))
    """
    ends = [(origin, np.add(origin, shape)) for origin, shape in boxes]
    z, y, x = np.min([first for first, _ in ends], axis=0).tolist()
    past = np.max([past for _, past in ends], axis=0).tolist()
    return (z, y, x), (past[0] - z, past[1] - y, past[2] - x)


def slices_of(origin: Sequence[int], shape: Sequence[int], base: Sequence[int] = (0, 0, 0)) -> Slices:
    """Return a box as slices of an array whose first voxel is `base`."""
    z, y, x = (slice(at - first, at - first + n) for at, n, first in zip(origin, shape, base, strict=True))
    return z, y, x


def overlap(
    origin: Sequence[int], shape: Sequence[int], other: Sequence[int], other_shape: Sequence[int]
) -> tuple[Slices, Slices]:
    """Return the common part of two boxes, as slices of the first and of the other; empty without any.

    Examples
    --------
    >>> own, others = overlap((0, 1, 2), (1, 4, 4), (0, 3, 0), (2, 3, 3))
    >>> own[1], others[1]
    (slice(2, 4, None), slice(0, 2, None))
    """
    low = np.maximum(origin, other)
    past = np.minimum(np.add(origin, shape), np.add(other, other_shape))
    common = np.maximum(past - low, 0).tolist()
    return slices_of(low.tolist(), common, origin), slices_of(low.tolist(), common, other)
