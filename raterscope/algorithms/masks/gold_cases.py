"""Offset and correlation of the raters' errors from gold cases, whose true outline is known.

Each gold case gives the offset that makes its true outline most likely. In many crowds these offsets vary
between cases by more than their mean. On other cases, the mean of a few cases is then worse than 0. The mean
is therefore shrunk towards 0 by the variance of its error (the positive-part estimator of James and Stein);
below about 2.4 standard errors it becomes 0. A single gold case gives no variance and has no effect. The
correlation follows the same rule: it is the value with the largest mean gain in log likelihood over the
assumed value, minus 2.4 standard errors, if this difference is above 0.

If programs moved the mean of the raters, gold cases show how much nearer the truth is to the moved mean: the
variance about it is the one with the highest posterior density.

References
----------
.. [james1961] W. James and C. Stein, "Estimation with quadratic loss", Proceedings of the Fourth Berkeley
   Symposium on Mathematical Statistics and Probability 1 (1961) 361-379.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.masks.calibration import CORRELATION, Calibration, log_loss, student
from raterscope.algorithms.masks.data import BoolArray, Float32Array, FloatArray

_GOLD_SHIFTS = np.linspace(-2.0, 2.0, 33)
"""Grid of offsets, in median scales near the outline."""

_VARIANCE, _VARIANCE_CASES = 0.3, 3.0
"""Assumed variance of the offset between cases, in squared scales, and its weight in cases."""

_GOLD_SHRINK = 6.0
"""Minimum square of a mean offset, in squared standard errors, for a non-zero offset."""

_CORRELATIONS = np.linspace(0.0, 1.0, 11)
"""Grid of correlations."""

_GAIN = 0.08
"""Assumed standard deviation of the gain between cases, with a weight of `_VARIANCE_CASES` cases."""

_NARROWINGS = np.exp(np.linspace(-4.0, 0.0, 33))
_NARROWING_VARIANCE, _CLOSE = 4.0, 0.7
"""Prior variance of the logarithm of the variance about the outline that programs moved, and maximum ratio of
a voxel that counts: far from the outline, few raters err, but by much.
"""

_CASE_VOXELS = 20.0
"""Weight of a case, in independent voxels."""

_NEAR, _SAMPLE = 2.5, 1000
"""Maximum ratio of a voxel near the outline, and maximum number of such voxels of a case."""

Near = tuple[Float32Array, Float32Array, BoolArray]


def calibrate_with_truth(
    calibrations: Sequence[Calibration], truths: Sequence[BoolArray | None]
) -> list[Calibration]:
    """Estimate the raters' common offset and correlation from gold cases.

    `calibrations`: calibrations of one crowd. `truths`: (Z, Y, X) or None for each calibration, on its part
    of the grid.
    """
    gold, typical, losses = _losses(calibrations, truths)
    if not gold:
        return list(calibrations)
    offset, correlation = _estimate(losses)
    estimated = [
        replace(calibration, correlation=correlation, offset=offset * typical, gold=len(gold))
        for calibration in calibrations
    ]
    narrowing = _narrowing(
        [
            (calibration, _sample(calibration, truth))
            for calibration, truth in zip(estimated, truths, strict=True)
            if calibration.moved is not None and truth is not None
        ]
    )
    return [c if c.moved is None else replace(c, narrowing=narrowing) for c in estimated]


def _narrowing(gold: Sequence[tuple[Calibration, Near]]) -> float:
    """Estimate `Calibration.narrowing` from gold cases with programs."""
    if len(gold) < 2:
        return 1.0
    loss = 0.5 * np.log(_NARROWINGS) ** 2 / _NARROWING_VARIANCE
    for calibration, (centre, scale, right) in gold:
        close = np.abs(centre) < _CLOSE
        weight = _CASE_VOXELS / max(1, int(np.count_nonzero(close)))
        shifted = (centre + calibration.offset / scale)[close]
        for row, narrowing in enumerate(_NARROWINGS):
            share = narrowing * calibration.error_share(calibration.correlation)
            chance = student(shifted / math.sqrt(share), calibration.dof)
            loss[row] += log_loss(chance, right[close], weight)
    return float(_NARROWINGS[loss.argmin()])


def judge_with_truth(
    calibrations: Sequence[Calibration], truths: Sequence[BoolArray | None]
) -> list[tuple[Float32Array, BoolArray]]:
    """Return probability of the true outline, and truth, at N voxels near the outline of each gold case.

    Offset and correlation are estimated from the other gold cases.

    `calibrations`, `truths`: see `calibrate_with_truth`.
    """
    gold, typical, losses = _losses(calibrations, truths)
    judged = []
    for index, (calibration, (ratio, scale, right)) in enumerate(gold):
        rest = np.delete(losses, index, axis=0)
        offset, correlation = _estimate(rest) if len(rest) else (0.0, CORRELATION)
        share = calibration.error_share(correlation)
        judged.append(
            (student((ratio + offset * typical / scale) / math.sqrt(share), calibration.dof), right)
        )
    return judged


def _losses(
    calibrations: Sequence[Calibration], truths: Sequence[BoolArray | None]
) -> tuple[list[tuple[Calibration, Near]], float, FloatArray]:
    """Return the gold cases, the median scale near their outlines, and losses, (G, offsets, correlations)."""
    gold = [
        (calibration, _sample(calibration, truth))
        for calibration, truth in zip(calibrations, truths, strict=True)
        if truth is not None
    ]
    gold = [(calibration, near) for calibration, near in gold if len(near[0])]
    typical = float(np.median([np.median(scale) for _, (_, scale, _) in gold])) if gold else 1.0
    losses = np.empty((len(gold), len(_GOLD_SHIFTS), len(_CORRELATIONS)))
    for table, (calibration, (ratio, scale, right)) in zip(losses, gold, strict=True):
        for row, shift in enumerate(_GOLD_SHIFTS):
            moved = ratio + shift * typical / scale
            for column, correlation in enumerate(_CORRELATIONS):
                chance = student(moved / math.sqrt(calibration.error_share(correlation)), calibration.dof)
                table[row, column] = log_loss(chance, right, 1 / len(right))
    return gold, typical, losses


def _estimate(losses: FloatArray) -> tuple[float, float]:
    """Return the offset, in median scales, and the correlation."""
    cases = len(losses)
    if cases < 2:
        return 0.0, CORRELATION
    own = _GOLD_SHIFTS[losses.min(axis=2).argmin(axis=1)]
    mean = float(own.mean())
    kept = max(0.0, 1 - _GOLD_SHRINK * _error(own, _VARIANCE) / mean**2) if mean else 0.0
    row = int(np.abs(_GOLD_SHIFTS - kept * mean).argmin())
    assumed = int(np.abs(_CORRELATIONS - CORRELATION).argmin())
    gain = losses[:, row, assumed, None] - losses[:, row]
    sure = gain.mean(axis=0) - np.sqrt([_GOLD_SHRINK * _error(gains, _GAIN**2) for gains in gain.T])
    best = int(sure.argmax())
    correlation = float(_CORRELATIONS[best]) if sure[best] > 0 and best != assumed else CORRELATION
    return float(_GOLD_SHIFTS[row]), correlation


def _error(values: FloatArray, assumed: float) -> float:
    """Return the squared standard error of the mean of G values, with a prior variance."""
    cases = len(values)
    variance = float(values.var(ddof=1)) * (cases - 1) + assumed * _VARIANCE_CASES
    return variance / (cases - 1 + _VARIANCE_CASES) / cases


def near_outline(calibration: Calibration, truth: BoolArray) -> tuple[Calibration, BoolArray]:
    """Reduce a gold case to the input of `judge_with_truth`: a sample of the voxels near the outline."""
    ratio, scale, right = _sample(calibration, truth)
    sampled = replace(calibration, ratio=ratio[None, None], scale=scale[None, None], settled=None, moved=None)
    return sampled, right[None, None]


def _sample(calibration: Calibration, truth: BoolArray) -> Near:
    at = np.flatnonzero(np.abs(calibration.centre) < _NEAR)
    at = at[:: max(1, len(at) // _SAMPLE)]
    return calibration.centre.ravel()[at], calibration.scale.ravel()[at], truth.ravel()[at]
