"""Intervals of proportions, tests of paired figures, and the correction of several tests.

References
----------
.. [wilcoxon1945] F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945)
   80-83, doi:10.2307/3001968.
.. [holm1979] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
   Statistics 6 (1979) 65-70.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class SignedRank:
    """Wilcoxon's test of paired differences."""

    statistic: float  # the smaller of the two sums of ranks
    p_value: float  # two-sided; NaN where no pair differs
    # pairs, zeros: pairs that count, and equal pairs, which are excluded
    pairs: int
    zeros: int
    median_difference: float  # of a - b, over all pairs


def wilcoxon(a: ArrayLike, b: ArrayLike) -> SignedRank:
    """Test whether paired figures of several cases differ: Wilcoxon's signed-rank test, two-sided.

    Equal pairs are excluded, as by Wilcoxon; pairs with a NaN too. The distribution is exact up to 50 pairs
    without ties, else normal with the correction for ties.

    `a`, `b`: (N,), a figure of each method for each case.
    """
    from scipy import stats

    difference = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    difference = difference[~np.isnan(difference)]
    zeros = int(np.count_nonzero(difference == 0))
    median = float(np.median(difference)) if len(difference) else float("nan")
    moved = difference[difference != 0]
    if not len(moved):
        return SignedRank(0.0, float("nan"), 0, zeros, median)
    result = stats.wilcoxon(moved, zero_method="wilcox")
    return SignedRank(float(result.statistic), float(result.pvalue), len(moved), zeros, median)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p values for the family-wise error, [holm1979]_; NaN stays and does not count."""
    values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(len(values), np.nan)
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return adjusted


def wilson(hits: float, many: float, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a share; NaN without data.

    References
    ----------
    .. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
       Journal of the American Statistical Association 22 (1927) 209-212,
       doi:10.1080/01621459.1927.10502953.
    """
    if not many:
        return math.nan, math.nan
    z = _half_width(level)
    share = hits / many
    middle = (share + z * z / (2 * many)) / (1 + z * z / many)
    half = z * math.sqrt(share * (1 - share) / many + z * z / (4 * many * many)) / (1 + z * z / many)
    return max(0.0, middle - half), min(1.0, middle + half)


@cache
def _half_width(level: float) -> float:
    """Return half the width of an interval of the normal distribution, in standard deviations."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))
