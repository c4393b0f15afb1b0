"""Statistics: intervals of proportions, quantiles of Beta distributions, tests of paired values.

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
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SignedRank:
    """Wilcoxon's test of paired differences."""

    statistic: float  # the smaller of the two sums of ranks
    p_value: float  # two-sided; NaN where no pair differs
    # pairs, zeros: number of pairs that count, and of equal pairs, which are excluded
    pairs: int
    zeros: int
    median_difference: float  # of a - b, over all pairs


def wilcoxon(a: ArrayLike, b: ArrayLike) -> SignedRank:
    """Test whether paired values of several cases differ: Wilcoxon's signed-rank test, two-sided.

    Equal pairs are excluded, as in Wilcoxon's paper, and pairs with a NaN. The distribution is exact up to 50
    pairs without ties, else normal with the correction for ties.

    `a`, `b`: (N,), a value of each method for each case.
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
    """Adjust p values for the family-wise error [holm1979]_; NaN are kept and do not count."""
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


_MANY = 1e5
"""Parameters of a Beta distribution above which an expansion about the normal is accurate to 1e-7."""

_COMPUTING = Lock()

_SMALLEST, _LARGEST, _STEP = 0.02, 2e4, 0.08
"""Range of the parameters in the table, and step of their logarithms."""


def beta_quantile(
    first: FloatArray, second: FloatArray, at: float, *, interpolated: bool = False
) -> FloatArray:
    """Return a quantile of Beta distributions; it is 1 where the second parameter is 0.

    `first`, `second`: parameters, of the same shape. `interpolated`: interpolate in a table. Up to 0.05 and
    from 0.95, the error is below 2e-7, and below 5e-7 of the quantile where it is above 1e-12. Interpolation
    takes a tenth of the time, but the first call computes the table, which takes as long as 60,000 quantiles.
    """
    from scipy.special import betaincinv

    certain = second <= 0.0
    many = np.minimum(first, second) > _MANY
    few = ~(certain | many)
    end = np.ones(first.shape)
    if interpolated:
        end[few] = _interpolate(first[few], second[few], at)
        few = np.isnan(end)
    end[few] = betaincinv(first[few], second[few], at)
    end[many] = _near_normal(first[many], second[many], at)
    return end


def _interpolate(first: FloatArray, second: FloatArray, at: float) -> FloatArray:
    """Return quantiles from the table; NaN outside its range."""
    from raterscope.algorithms.annotators._kernels import interpolate

    end = np.empty(len(first))
    with _COMPUTING:  # once, not in each thread
        table = _table(at)
    interpolate(first, second, table, _SMALLEST, _LARGEST, _STEP, np.empty((2, 6)), end)
    return end


@cache
def _table(at: float) -> FloatArray:
    """Return the logits of a quantile on a grid of logarithms of both parameters."""
    from scipy.special import betaincinv

    if at > 0.5:  # 1 - x has the parameters exchanged
        return np.ascontiguousarray(-_table(1.0 - at).T)
    nodes = np.exp(np.arange(np.log(_SMALLEST), np.log(_LARGEST) + _STEP, _STEP))
    first, second = nodes[:, None], nodes[None, :]
    # Computed separately, since 1 - x loses digits near one.
    return np.asarray(np.log(betaincinv(first, second, at)) - np.log(betaincinv(second, first, 1.0 - at)))


def _near_normal(first: FloatArray, second: FloatArray, at: float) -> FloatArray:
    """Return a quantile by the Cornish-Fisher expansion, up to the skewness."""
    from scipy.special import ndtri

    total = first + second
    deviation = np.sqrt(first * second / (total + 1.0)) / total
    skewness = 2.0 * (second - first) * np.sqrt(total + 1.0) / ((total + 2.0) * np.sqrt(first * second))
    z = ndtri(at)
    return np.asarray(first / total + deviation * (z + skewness * (z * z - 1.0) / 6.0))


def beta_interval(first: FloatArray, second: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the equal-tailed interval."""
    tail = (1.0 - level) / 2.0
    return beta_quantile(first, second, tail), beta_quantile(first, second, 1.0 - tail)
