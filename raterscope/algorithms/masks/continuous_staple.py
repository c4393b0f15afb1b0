"""Continuous STAPLE: each rater's bias and variance, and the true signed distance, by EM.

References
----------
.. [warfield2008] S. K. Warfield, K. H. Zou and W. M. Wells, "Validation of image segmentation by estimating
   rater bias and variance", Philosophical Transactions of the Royal Society A 366 (2008) 2361-2375,
   doi:10.1098/rsta.2008.0040.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
    make_fusion,
)
from raterscope.algorithms.masks.distance import domain, logit_distance, signed_distance
from raterscope.algorithms.masks.staple import DOMAINS, MARGIN, background_in_words
from raterscope.algorithms.progress import Check, Watch, no_check, part, silent, steps_of
from raterscope.algorithms.settings import Settings, choice, integer, number

_FLOOR = 1e-4
"""Minimum variance, relative to the square of a voxel's smallest side, for raters who agree everywhere."""

_AT_ONCE = 500_000
"""Voxels between two calls of the check."""

_ALONE = 0.95
"""Share of one rater in the consensus above which a notice is given."""


@dataclass(frozen=True)
class ContinuousSTAPLESettings(Settings):
    """Settings of `continuous_staple`."""

    clip: float = number(
        MARGIN, "Clip", "Maximum distance from the outline that counts; also the margin around all masks.",
        unit="mm", minimum=0.1, maximum=1000.0,
    )  # fmt: skip
    slope: float = number(
        5.0, "Slope of probabilities", "Slope of the sigmoid that mapped distances to the given "
        "probabilities; not used for masks.", unit="/mm", minimum=0.01, maximum=100.0, advanced=True,
    )  # fmt: skip
    domain: str = choice(
        "masks",
        "Voxels that count",
        "With more agreed background, every rater seems more accurate.",
        DOMAINS,
    )
    iterations: int = integer(
        1000, "Iterations", "Maximum number of iterations.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-10, "Tolerance", "Convergence: relative change of every variance.", minimum=0.0,
        maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of all voxels, for the estimation."""

    count: float  # N
    mean: FloatArray  # (P,): mm
    covariance: FloatArray  # (P, P): mm², with N below


def continuous_staple(
    masks: Masks, settings: ContinuousSTAPLESettings | None = None, watch: Watch = silent
) -> MaskFusion:
    """Estimate the true signed distance with a bias and a variance for each rater.

    A rater's signed distance (mm) is the true distance plus the rater's bias and Gaussian noise of the
    rater's variance; the prior of the true distance is flat. The start has no bias, and the variance from the
    mean of all raters. As the truth enters linearly, means and covariances over all voxels suffice for the
    iterations. Only differences between biases are identified; their level depends on the start. Structures
    are fused separately. Settled voxels are held fixed and excluded from the estimation.

    `masks`: probabilities become distances by their logit over `slope`. `probability` of the result is that
    of a true distance above 0; `weight` is the same everywhere.
    """
    settings = ContinuousSTAPLESettings() if settings is None else settings
    cut = domain(masks, settings.clip, partial(watch, 0.0, "finding marked voxels"))
    frame = masks.frame or masks.shape
    voxels = math.prod(frame) if settings.domain == "frame" else math.prod(cut.shape)
    floor = _FLOOR * min(masks.spacing[1:]) ** 2
    count = len(masks.structures)
    distance = np.empty((count, *cut.shape), dtype=np.float32)
    deviation, probability = np.empty_like(distance), np.empty_like(distance)
    variances, biases, traces, weights = [], [], [], []
    for s, check in steps_of(watch, range(count)):
        known = np.zeros(cut.shape, dtype=np.bool_) if cut.known is None else cut.known != OPEN
        distances = _distances(cut, s, settings, part(check, 0.0, 0.8))
        rest = partial(check, 0.8, "adding up the voxels")
        sums = moments(distances, ~known, voxels - math.prod(cut.shape), settings.clip, rest)
        bias, variance, trace = estimate(sums, floor, settings, part(check, 0.8, 1.0))
        share = 1.0 / variance / (1.0 / variance).sum()
        deviation[s] = (1.0 / variance).sum() ** -0.5
        away, chance = distance[s].ravel(), probability[s].ravel()
        for begin in range(0, len(away), _AT_ONCE):
            check(1.0, "computing the consensus")
            block = slice(begin, begin + _AT_ONCE)
            away[block] = -float(share @ bias)
            for weight, values in zip(share, distances, strict=True):
                away[block] += np.float32(weight) * values.ravel()[block]
            chance[block] = _above_zero(away[block] / deviation[s].ravel()[block])
        variances.append(variance)
        biases.append(bias)
        traces.append(trace)
        weights.append(np.round(255 * share).astype(np.uint8))
    mask = distance > 0
    if cut.known is not None:
        _hold_settled(cut, mask, probability, distance, deviation)
    z, y, x = (at - start for at, start in zip(cut.origin, masks.origin, strict=True))
    notices = [background_in_words(masks, voxels, settings.domain)]
    for name, weight in zip(masks.structures, weights, strict=True):
        if len(weight) > 1 and weight.max() > _ALONE * 255:
            leader = masks.annotators[int(weight.argmax())]
            notices.append(f"The consensus on {name} rests almost only on {leader}.")
    if count > 1:
        notices.append("Structures were fused separately and may overlap.")
    if not all(trace.converged for trace in traces):
        notices.append(
            f"Did not converge in {settings.iterations:,} iterations: the variances still changed."
        )
    return make_fusion(
        masks,
        "continuous_staple",
        (z, y, x),
        mask,
        probability,
        tuple(traces),
        notices,
        distance=distance,
        deviation=deviation,
        weight=np.broadcast_to(
            np.stack(weights)[:, :, None, None, None], (count, len(masks.annotators), *cut.shape)
        ),
        bias=np.stack(biases),
        variance=np.stack(variances),
        sigma=np.stack(variances),
    )


def moments(
    distances: Float32Array, counts: BoolArray, beyond: int, clip: float, check: Check = no_check
) -> Moments:
    """Sum over the voxels that count, and over additional voxels at -`clip` for every rater.

    `distances`: (P, Z, Y, X), mm.
    `counts`: (Z, Y, X).
    `clip`: mm.
    `check`: called regularly; it may raise an exception to stop.
    """
    raters = len(distances)
    total, square, count = np.zeros(raters), np.zeros((raters, raters)), 0
    every, counted = distances.reshape(raters, -1), counts.ravel()
    for begin in range(0, len(counted), _AT_ONCE):  # above -clip, where most voxels are 0
        check()
        block = slice(begin, begin + _AT_ONCE)
        above = every[:, block][:, counted[block]].astype(np.float64) + clip
        total += above.sum(axis=1)
        square += above @ above.T
        count += above.shape[1]
    voxels = max(count + beyond, 1)
    mean = total / voxels
    return Moments(float(voxels), mean - clip, square / voxels - np.outer(mean, mean))


def estimate(
    data: Moments, floor: float, settings: ContinuousSTAPLESettings, watch: Watch = silent
) -> tuple[FloatArray, FloatArray, MaskTrace]:
    """Iterate E and M steps on means and covariances; return biases, (P,) mm, variances, and the trace.

    `floor`: minimum variance, mm². Variances, (P,), are in mm².
    """
    raters = len(data.mean)
    if raters == 1:
        return np.zeros(1), np.full(1, floor), MaskTrace(name="log likelihood")
    bias = np.zeros(raters)
    offset = np.eye(raters) - 1.0 / raters
    level = data.mean - data.mean.mean()
    variance = np.maximum(np.diag(offset @ data.covariance @ offset.T) + level**2, floor)
    objective, converged = [], False
    for turn in range(settings.iterations):
        precision = 1.0 / variance
        spread = 1.0 / precision.sum()
        share = precision * spread
        truth = float(share @ (data.mean - bias))
        offset = np.eye(raters) - share
        scatter = np.diag(offset @ data.covariance @ offset.T)
        misfit = scatter + (data.mean - bias - truth) ** 2
        objective.append(
            0.5 * data.count * float(np.log(spread) - np.log(variance).sum() - precision @ misfit)
            - 0.5 * data.count * (raters - 1) * math.log(2 * math.pi)
        )
        bias = data.mean - truth
        updated = np.maximum(scatter + spread, floor)
        change = float(np.max(np.abs(updated - variance) / variance))
        variance = updated
        watch(
            turn / settings.iterations,
            f"estimating biases and variances, iteration {turn + 1}",
            objective=objective[-1],
        )
        if change < settings.tolerance:
            converged = True
            break
    return bias, variance, MaskTrace(np.array(objective), converged, "log likelihood")


def _distances(
    masks: Masks, structure: int, settings: ContinuousSTAPLESettings, watch: Watch
) -> Float32Array:
    out = np.empty((len(masks.values), *masks.shape), dtype=np.float32)
    for p, values in enumerate(masks.values):
        check = partial(watch, p / len(out), f"measuring distances of {masks.annotators[p]}")
        check()
        if masks.values.dtype == np.float32:
            mask_values = values if values.ndim == 3 else values[structure]
            out[p] = logit_distance(
                np.asarray(mask_values, dtype=np.float32), settings.clip, settings.slope, check
            )
        else:
            mask = values == structure + 1
            out[p] = signed_distance(mask, masks.spacing, settings.clip, check, masks.positions)
    return out


def _above_zero(score: Float32Array) -> Float32Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(score), dtype=np.float32)


def _hold_settled(
    masks: Masks, mask: BoolArray, probability: Float32Array, distance: Float32Array, deviation: Float32Array
) -> None:
    """Set settled voxels; the distance stays on its side of the outline by at least half a voxel."""
    assert masks.known is not None
    settled = masks.known != OPEN
    half = np.float32(0.5 * min(masks.spacing[1:]))
    for s in range(len(mask)):
        inside = masks.known[settled] == s + 1
        mask[s][settled] = inside
        probability[s][settled] = inside
        distance[s][settled] = np.where(
            inside, np.maximum(distance[s][settled], half), np.minimum(distance[s][settled], -half)
        )
        deviation[s][settled] = 0.0
