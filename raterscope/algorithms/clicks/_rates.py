"""Rates of annotators with 95 % intervals."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray

__all__ = ["interval", "precision_of"]


LEVELS = 2.5
"""Standard deviation of the level between runs, over that of its prior (see `_honesty`): the levels of seven
crowds, by empirical Bayes, differ by 2 to 2.5. The prior is narrower so that a few decisions move the
posteriors of a good crowd little; what is said of annotators before any decision is unknown by that much."""


def interval(right: FloatArray, wrong: FloatArray, prior: float, other: float) -> FloatArray:
    """Give mean, 2.5 and 97.5 percent of a Beta posterior; NaN where nothing was seen.

    Parameters
    ----------
    right, wrong : (R,) float64
        Expected counts.
    prior, other : float
        Counts of the prior.

    Returns
    -------
    (R, 3) float64
    """
    from scipy.special import betaincinv

    right, wrong = np.maximum(right, 0), np.maximum(wrong, 0)
    seen = right + wrong > 1e-9
    first, second = right + prior, wrong + other
    three = np.column_stack(
        [
            first / (first + second),
            betaincinv(first, second, 0.025),
            betaincinv(first, second, 0.975),
        ]
    )
    return np.where(seen[:, None], three, np.nan)


def precision_of(hit: FloatArray, marks: IntArray, spread: FloatArray) -> FloatArray:
    """Estimate which share of each annotator's marks lies on structures.

    The estimate is the sum of the posteriors of the clusters that the annotator marked over the number of
    the marks, so a mark outside of all clusters counts as false. The interval is that of the Beta
    distribution with the variance of a Beta posterior under Jeffreys' prior and, added to it, what is not
    known of the posteriors. Errors of the posteriors are taken as fully correlated: the level of a run is
    common to all its clusters. They are taken as `LEVELS` times as large as their intervals say. What is
    estimated is a share of the marks made, so the interval reaches to the next whole mark: of annotators
    whose marks are all right it holds 1, which the Beta distribution never does.

    Parameters
    ----------
    hit : (R,) float64
        Sum of the posteriors.
    marks : (R,) int64
        Marks made, duplicates merged.
    spread : (R,) float64
        Sum of the standard deviations of the posteriors.

    Returns
    -------
    (R, 3) float64
        Estimate, low, high; NaN without marks.
    """
    from scipy.special import betaincinv

    right, whole = np.clip(hit, 0, marks), np.maximum(marks, 1)
    mean = (right + 0.5) / (whole + 1)
    most = mean * (1 - mean)
    size = np.maximum(most / (most / (whole + 2) + (LEVELS * spread / whole) ** 2) - 1, 0.1)
    estimate = right / whole
    low, high = (betaincinv(size * mean, size * (1 - mean), level) for level in (0.025, 0.975))
    low, high = np.floor(low * whole) / whole, np.minimum(np.ceil(high * whole), whole) / whole
    rate = np.column_stack([estimate, np.minimum(low, estimate), np.maximum(high, estimate)])
    return np.where((marks > 0)[:, None], rate, np.nan)
