"""Raters who leak, added to real ones: each copies a rater and marks a ball at the outline besides."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.masks.data import BoolArray
from raterscope.algorithms.masks.metrics import surface_of

__all__ = ["leaking", "strict"]

_RADIUS = 0.6
"""Of the ball, as a share of that of a ball of the structure's volume."""


def strict(masks: BoolArray) -> BoolArray:
    """Give what more than half of the raters marked: (Z, Y, X) of (P, Z, Y, X)."""
    return np.asarray(2 * masks.sum(axis=0) > len(masks))


def leaking(masks: BoolArray, leakers: int, seed: int) -> BoolArray:
    """Add raters who share a leak.

    Each copies one of the raters, drawn at random, and adds a ball about a random voxel of the surface of the
    strict vote; the ball is the same for all.

    Parameters
    ----------
    masks : (P, Z, Y, X) bool
        The vote must not be empty.
    leakers : int
        From 1 to P.
    seed : int

    Returns
    -------
    (P + leakers, Z, Y, X) bool
    """
    rng = np.random.default_rng(seed)
    reference = strict(masks)
    copied = rng.integers(len(masks), size=1) if leakers == 1 else rng.permutation(len(masks))[:leakers]
    surface = np.argwhere(surface_of(reference))
    centre = surface[rng.integers(len(surface))]
    radius = _RADIUS * np.cbrt(np.count_nonzero(reference) * 0.75 / np.pi)
    axes = np.ogrid[tuple(map(slice, reference.shape))]
    away = sum((axis - at) ** 2 for axis, at in zip(axes, centre, strict=True))
    return np.concatenate([masks, masks[copied] | (away <= radius**2)])
