"""How many structures an image has, as its posteriors say it.

A crowd's spots are real or not, each by its posterior (OEM-DEM paper, eq. 25), so that their number has the
Poisson binomial distribution. The posteriors themselves are known within intervals only, since the annotators
are; the same annotators are behind all of them, so what is not known is taken to move all posteriors of an
image the same way, on the scale of their logits. That is the cautious choice: errors that were independent
would not widen the number's distribution at all.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks._finding import marks_of
from raterscope.algorithms.clicks.data import FloatArray

__all__ = ["count_distribution", "expected_count"]

SURE = 1e-12
AT_ONCE = 256
"""Spots up to which adding one after the other is quicker."""

HALF_WIDTH = 1.959964
"""Standard deviations from the middle of a 95 % interval to its ends."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


def expected_count(posterior: FloatArray, low: FloatArray, high: FloatArray) -> tuple[float, float, float]:
    """Give the expected number of structures among M spots, and a 95 % interval of their number.

    Parameters
    ----------
    posterior : (M,) float64
        Probability that each spot is a structure; 0 or 1 where that is known.
    low, high : (M,) float64
        Ends of the posterior's 95 % interval; NaN where there is none.

    Returns
    -------
    estimate, low, high : float
        The sum of the posteriors, and whole numbers that hold the number in at least 95 % of cases.

    Examples
    --------
    >>> import numpy as np
    >>> posterior = np.array([0.95, 0.9, 0.4, 0.05])
    >>> count, low, high = expected_count(posterior, posterior, posterior)
    >>> round(count, 2), low, high
    (2.3, 1.0, 3.0)
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    below = np.cumsum(count_distribution(posterior, low, high))
    least, most = np.searchsorted(below, (0.025, 0.975))
    return float(posterior.sum()), float(least), float(min(most, len(posterior)))


def count_distribution(posterior: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Give the chance of every number of structures among M spots.

    Parameters
    ----------
    posterior, low, high : (M,) float64
        As of `expected_count`.

    Returns
    -------
    (M + 1,) float64

    Examples
    --------
    >>> import numpy as np
    >>> posterior = np.array([0.5, 0.5])
    >>> count_distribution(posterior, posterior, posterior).round(2)
    array([0.25, 0.5 , 0.25])
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    middle = _logit(posterior)
    ends = [np.where(np.isfinite(end), end, posterior) for end in (low, high)]
    down, up = (np.abs(_logit(end) - middle)[:, None] / HALF_WIDTH for end in ends)
    moved = middle[:, None] + np.where(_NODES < 0, down, up) * _NODES
    chance: FloatArray = _number_of(1 / (1 + np.exp(-moved))) @ (_WEIGHTS / _WEIGHTS.sum())
    return chance


def _number_of(chance: FloatArray) -> FloatArray:
    """Give the distribution of the number: of many spots that of the sum of its halves' numbers."""
    if len(chance) <= AT_ONCE:
        return marks_of(chance)
    from scipy.signal import fftconvolve

    half = len(chance) // 2
    together = fftconvolve(_number_of(chance[:half]), _number_of(chance[half:]), axes=0)
    return np.asarray(np.maximum(together, 0.0))


def _logit(share: FloatArray) -> FloatArray:
    inside = np.clip(share, SURE, 1 - SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))
