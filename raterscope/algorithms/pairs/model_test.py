"""Test of every annotator's choices against the choice model: sharper than signs if the model is right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs._links import totals
from raterscope.algorithms.pairs.data import FloatArray

__all__ = ["choice_probability"]

_STEPS = 40
_FARTHEST = 60.0
_LEAST = 1e-12


def choice_probability(mean: FloatArray, start: NDArray[np.int64], statistic: FloatArray) -> FloatArray:
    """Approximate the two-sided probability of a sum of residuals of choices ([lugannani1980]_).

    Parameters
    ----------
    mean : (E,) float64
        The mean of each choice, which is -1 or 1; sorted by annotator.
    start : (p + 1,) int64
        The choices of annotator i are ``start[i]:start[i + 1]``.
    statistic : (p,) float64
        Sums of choices less their means.

    Returns
    -------
    (p,) float64
        Twice the probability of the tail on the side of the statistic, at most 1; 1 without choices.

    References
    ----------
    .. [lugannani1980] R. Lugannani and S. Rice, "Saddle point approximation for the distribution of the sum
       of independent random variables", Advances in Applied Probability 12 (1980) 475-490,
       doi:10.2307/1426607.
    """
    from scipy.special import ndtr

    count = np.diff(start)
    towards = np.where(statistic < 0, -1.0, 1.0)
    m = np.repeat(towards, count) * mean
    chance = np.clip((1 + m) / 2, _LEAST, 1 - _LEAST)  # of a choice on the side of the statistic
    aim, farthest = np.abs(statistic), totals(start, 1 - m)
    variance = totals(start, 1 - m * m)
    extreme = aim >= farthest * (1 - 1e-9)
    live = (variance > 0) & ~extreme & (aim > 1e-6 * np.sqrt(variance))
    low, high = np.zeros(len(aim)), np.full(len(aim), _FARTHEST)
    t = np.where(live, np.minimum(aim / np.where(variance > 0, variance, 1.0), 1.0), 0.0)
    for _ in range(_STEPS):
        tilted = chance / (chance + (1 - chance) * np.exp(-2 * np.repeat(t, count)))
        first = totals(start, 2 * tilted - 1 - m)
        second = totals(start, 4 * tilted * (1 - tilted))
        low, high = np.where(first < aim, t, low), np.where(first < aim, high, t)
        further = t + (aim - first) / np.where(second > _LEAST, second, 1.0)
        further = np.where((further > low) & (further < high), further, (low + high) / 2)
        done = ~live | (np.abs(further - t) <= 1e-7 * np.maximum(t, 1e-3))
        t = np.where(live, further, 0.0)
        if done.all():
            break
    each = np.repeat(t, count)
    cumulant = totals(start, np.log(chance + (1 - chance) * np.exp(-2 * each)) + each * (1 - m))
    tilted = chance / (chance + (1 - chance) * np.exp(-2 * each))
    second = totals(start, 4 * tilted * (1 - tilted))
    w = np.sqrt(np.maximum(2 * (t * aim - cumulant), 0.0))
    u = t * np.sqrt(second)
    close = (w < 1e-3) | (u < 1e-3)
    correction = np.where(close, 0.0, 1 / np.where(close, 1.0, u) - 1 / np.where(close, 1.0, w))
    tail = ndtr(-w) + np.exp(-w * w / 2) / np.sqrt(2 * np.pi) * correction
    all_that_way = np.exp(totals(start, np.log(chance)))
    tail = np.where(extreme & (count > 0), all_that_way, np.maximum(tail, all_that_way))
    return np.asarray(np.where(live | (extreme & (count > 0)), np.clip(2 * tail, 0.0, 1.0), 1.0))
