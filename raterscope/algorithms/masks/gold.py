"""Offset and correlation of a crowd's errors against the truth, from cases whose true outline is known.

Each gold case gives the offset that makes its true outline most likely. Between cases these offsets vary, in
many crowds by more than their mean is away from 0. The mean of a few cases then does harm on other cases. It
is shrunk towards 0 by the variance of its own error (the positive-part estimator of James and Stein), with a
factor that leaves nothing of it below about 2.4 standard errors. A single gold case says nothing of this
variance and moves nothing. The correlation is moved by the same rule: to the value whose mean gain in log
likelihood over the assumed one, less 2.4 of its standard errors, is largest, if that is above 0.

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

__all__ = ["judge_gold", "near_outline", "with_gold"]

_SHIFTS = np.linspace(-2.0, 2.0, 33)
"""Offsets tried, in median scales near the outline."""

_VARIANCE, _VARIANCE_CASES = 0.3, 3.0
"""Variance of the offset between cases, in squared scales, and cases that this assumption counts as."""

_SHRINK = 6.0
"""Squared standard errors below which a mean offset counts as none."""

_CORRELATIONS = np.linspace(0.0, 1.0, 11)
"""Correlations tried."""

_GAIN = 0.08
"""Standard deviation of the gain between cases that is assumed, as of `_VARIANCE_CASES` cases."""

_NEAR, _SAMPLE = 2.5, 1000
"""Ratio up to which a voxel is near the outline, and how many of them are taken of a case."""

Near = tuple[Float32Array, Float32Array, BoolArray]


def with_gold(found: Sequence[Calibration], truths: Sequence[BoolArray | None]) -> list[Calibration]:
    """Estimate the raters' common offset and correlation from cases whose true outline is known.

    Parameters
    ----------
    found : sequence of Calibration
        Of one crowd.
    truths : sequence of (Z, Y, X) bool or None
        On the part of each of `found`.
    """
    gold, typical, losses = _losses(found, truths)
    if not gold:
        return list(found)
    offset, correlation = _estimate(losses)
    return [replace(one, correlation=correlation, offset=offset * typical, gold=len(gold)) for one in found]


def judge_gold(
    found: Sequence[Calibration], truths: Sequence[BoolArray | None]
) -> list[tuple[Float32Array, BoolArray]]:
    """Give, for voxels near the outline of each gold case, the probability of the true outline and the truth.

    Offset and correlation are those that the other gold cases give.

    Parameters
    ----------
    found, truths
        See `with_gold`.

    Returns
    -------
    list of ((N,) float32, (N,) bool)
    """
    gold, typical, losses = _losses(found, truths)
    judged = []
    for place, (one, (ratio, scale, right)) in enumerate(gold):
        rest = np.delete(losses, place, axis=0)
        offset, correlation = _estimate(rest) if len(rest) else (0.0, CORRELATION)
        share = one.error_share(correlation)
        judged.append((student((ratio + offset * typical / scale) / math.sqrt(share), one.dof), right))
    return judged


def _losses(
    found: Sequence[Calibration], truths: Sequence[BoolArray | None]
) -> tuple[list[tuple[Calibration, Near]], float, FloatArray]:
    """Give the gold cases, the median scale near their outlines, and losses, (G, offsets, correlations)."""
    gold = [(one, _sample(one, truth)) for one, truth in zip(found, truths, strict=True) if truth is not None]
    gold = [(one, near) for one, near in gold if len(near[0])]
    typical = float(np.median([np.median(scale) for _, (_, scale, _) in gold])) if gold else 1.0
    losses = np.empty((len(gold), len(_SHIFTS), len(_CORRELATIONS)))
    for table, (one, (ratio, scale, right)) in zip(losses, gold, strict=True):
        for row, shift in enumerate(_SHIFTS):
            moved = ratio + shift * typical / scale
            for column, correlation in enumerate(_CORRELATIONS):
                chance = student(moved / math.sqrt(one.error_share(correlation)), one.dof)
                table[row, column] = log_loss(chance, right, 1 / len(right))
    return gold, typical, losses


def _estimate(losses: FloatArray) -> tuple[float, float]:
    """Give the offset, in median scales, and the correlation."""
    cases = len(losses)
    if cases < 2:
        return 0.0, CORRELATION
    own = _SHIFTS[losses.min(axis=2).argmin(axis=1)]
    mean = float(own.mean())
    kept = max(0.0, 1 - _SHRINK * _error(own, _VARIANCE) / mean**2) if mean else 0.0
    row = int(np.abs(_SHIFTS - kept * mean).argmin())
    assumed = int(np.abs(_CORRELATIONS - CORRELATION).argmin())
    gain = losses[:, row, assumed, None] - losses[:, row]
    sure = gain.mean(axis=0) - np.sqrt([_SHRINK * _error(one, _GAIN**2) for one in gain.T])
    best = int(sure.argmax())
    correlation = float(_CORRELATIONS[best]) if sure[best] > 0 and best != assumed else CORRELATION
    return float(_SHIFTS[row]), correlation


def _error(values: FloatArray, assumed: float) -> float:
    """Give the squared standard error of the mean of G values whose variance is assumed to begin with."""
    cases = len(values)
    variance = float(values.var(ddof=1)) * (cases - 1) + assumed * _VARIANCE_CASES
    return variance / (cases - 1 + _VARIANCE_CASES) / cases


def near_outline(found: Calibration, truth: BoolArray) -> tuple[Calibration, BoolArray]:
    """Keep of a gold case what `judge_gold` looks at: a sample of the voxels near the outline."""
    ratio, scale, right = _sample(found, truth)
    return replace(found, ratio=ratio[None, None], scale=scale[None, None], settled=None), right[None, None]


def _sample(found: Calibration, truth: BoolArray) -> Near:
    at = np.flatnonzero(np.abs(found.ratio) < _NEAR)
    at = at[:: max(1, len(at) // _SAMPLE)]
    return found.ratio.ravel()[at], found.scale.ravel()[at], truth.ravel()[at]
