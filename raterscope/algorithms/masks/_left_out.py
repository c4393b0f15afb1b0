"""Raters left out in turn: their outlines and voxels beside the spread of the others."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from raterscope.algorithms.masks._spread import FEW, LEAST, PRIOR, WIDTH, Places, Smoother, neighbours
from raterscope.algorithms.masks.data import BoolArray, Float32Array, FloatArray
from raterscope.algorithms.progress import Look, Watch

__all__ = ["MIDDLES", "STEPS", "leave_out"]

STEPS = np.linspace(0.0, 1.0, 201)
"""Probabilities of the quantiles that are kept of a case."""

MIDDLES = (np.arange(200) + 0.5) / 200
"""Probabilities at which they stand for the case when several are pooled."""

_SAMPLE = 1000
"""Disputed voxels of a case that are compared at most, for each rater who is left out."""

_CROSSINGS = 1000
"""Crossings of each rater's outline with the lines along one axis that are compared at most."""

_AT_ONCE = 500_000
"""Voxels between two looks whether the work is still wanted."""


def leave_out(
    values: BoolArray, away: Float32Array, clip: float, smooth: Smoother, watch: Watch
) -> tuple[FloatArray | None, Float32Array, BoolArray]:
    """Leave each rater out in turn, and compare them with the mean m and the scale of the others.

    The neighbourhood is smoothed on pairs of voxels.

    Parameters
    ----------
    values : (P, Z, Y, X) bool
        Of three raters or more.
    away : (P, Z, Y, X) float32
        Signed distances, mm.
    clip : float
        Largest distance, mm.
    smooth : Smoother
    watch : Watch

    Returns
    -------
    ratios : (201,) float64 or None
        Quantiles of abs(m) over scale along the outlines of the raters left out; None without any outline.
    tried : (N,) float32
        m over scale in a sample of the voxels that the others dispute.
    marked : (N,) bool
        Whether the rater who was left out includes these.
    """
    people = len(away)
    look = partial(watch, 0.0, "leaving each rater out in turn")
    mean = away.mean(axis=0, dtype=np.float32)
    look()
    coarse = smooth.coarser()
    squares, sums, count = _halved(away, mean, look)
    whole, middle = squares.sum(axis=0), sums.mean(axis=0)
    disputed, votes = _disputed(values, look)
    # A rater's square about the mean of all is, about the mean of the others, so much larger.
    factor = np.float32(people / (people - 1))
    along, tried, marked = [], [], []
    for p in range(people):
        look = partial(watch, p / people, "leaving each rater out in turn")
        look()
        others = (people * middle - sums[p]) / ((people - 1) * count)
        weight = np.exp(-0.5 * (others / np.float32(clip * WIDTH)) ** 2)
        weighted = weight * np.maximum(whole - factor * squares[p], 0) / count
        mean_spread = np.float32(weighted.sum(dtype=np.float64) / max(float(weight.sum()), LEAST))
        near = coarse(weighted, look) + FEW * mean_spread
        near /= (coarse(weight, look) + FEW) * np.float32(people - 2)

        def ratio(at: Places, p: int = p, near: Float32Array = near) -> Float32Array:
            """Give m over scale of the others at some voxels."""
            own, others = away[p][at], mean[at]
            square = -factor * (own - others) ** 2
            for layer in away:
                square += (layer[at] - others) ** 2
            local = near[at[0] // 2, at[1] // 2, at[2] // 2]
            variance = (PRIOR * local + np.maximum(square, 0)) / (PRIOR + people - 2)
            found = (people * others - own) / (people - 1)
            return np.asarray(found / np.sqrt(np.maximum(variance, LEAST) * (1 + 1 / (people - 1))))

        for one, other in neighbours(values[p]):
            look()
            step = -(-len(one[0]) // _CROSSINGS)
            one, other = (tuple(each[::step] for each in at) for at in (one, other))
            along.append(np.abs(ratio(one) + ratio(other)) / 2)
        own = values[p].ravel()[disputed]
        here = (votes > own) & (votes - own < people - 1)
        tried.append(ratio(np.unravel_index(disputed[here], mean.shape)))
        marked.append(own[here])
    every = np.sort(np.concatenate(along)).astype(np.float64) if along else np.empty(0)
    ratios = np.interp(STEPS * (len(every) - 1), np.arange(len(every)), every) if len(every) else None
    return ratios, np.concatenate(tried).astype(np.float32), np.concatenate(marked)


def _disputed(values: BoolArray, look: Look) -> tuple[np.ndarray, np.ndarray]:
    """Sample voxels that some raters mark and some do not, with the number who do."""
    votes = np.zeros(values.shape[1:], dtype=np.uint16)
    for layer in values:
        look()
        votes += layer
    flat = votes.ravel()
    found = np.flatnonzero((flat > 0) & (flat < len(values)))
    found = found[:: max(1, -(-len(found) // _SAMPLE))]
    return found, flat[found].astype(np.int64)


def _halved(
    away: Float32Array, mean: Float32Array, look: Look
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Sum over pairs of voxels along each axis: (away - mean)², `away`, and how many voxels these are."""
    from raterscope.algorithms.masks import _calibration_kernels as kernels

    shape = tuple(-(-size // 2) for size in mean.shape)
    squares, sums = np.empty((2, len(away), *shape), dtype=np.float32)
    lines, step = math.prod(shape[:2]), max(1, _AT_ONCE // (4 * mean.shape[2]))
    for layer, square, total in zip(away, squares, sums, strict=True):
        for begin in range(0, lines, step):
            look()
            kernels.halve(layer, mean, begin, min(begin + step, lines), square, total)
    sizes = [np.minimum(2, size - 2 * np.arange(-(-size // 2))) for size in mean.shape]
    count = np.einsum("i,j,k->ijk", *sizes).astype(np.float32)
    return squares, sums, count
