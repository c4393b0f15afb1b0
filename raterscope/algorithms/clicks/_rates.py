"""Rates of annotators with 95 % intervals."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray

__all__ = ["interval", "precision_of"]


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


def precision_of(hit: FloatArray, marks: IntArray) -> FloatArray:
    """Estimate which share of each annotator's marks lies on structures.

    The estimate is the sum of the posteriors of the clusters that the annotator marked over the number of
    the marks, so a mark outside of all clusters counts as false. Its interval is that of a Beta posterior
    with Jeffreys' prior.

    Parameters
    ----------
    hit : (R,) float64
        Sum of the posteriors.
    marks : (R,) int64
        Marks made, duplicates merged.

    Returns
    -------
    (R, 3) float64
        Estimate, low, high; NaN without marks.
    """
    right = np.clip(hit, 0, marks)
    rate = interval(right, marks - right, 0.5, 0.5)
    rate[:, 0] = np.divide(right, marks, out=np.full(len(marks), np.nan), where=marks > 0)
    rate[:, 1], rate[:, 2] = np.minimum(rate[:, 1], rate[:, 0]), np.maximum(rate[:, 2], rate[:, 0])
    return rate
