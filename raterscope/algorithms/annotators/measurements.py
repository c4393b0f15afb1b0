"""Agreement of raters who measure the same cases: intraclass correlation and limits of agreement.

References
----------
.. [shrout1979] P. E. Shrout and J. L. Fleiss, "Intraclass correlations: uses in assessing rater reliability",
   Psychological Bulletin 86 (1979) 420-428, doi:10.1037/0033-2909.86.2.420.
.. [mcgraw1996] K. O. McGraw and S. P. Wong, "Forming inferences about some intraclass correlation
   coefficients", Psychological Methods 1 (1996) 30-46, doi:10.1037/1082-989X.1.1.30.
.. [bland1986] J. M. Bland and D. G. Altman, "Statistical methods for assessing agreement between two methods
   of clinical measurement", The Lancet 327 (1986) 307-310, doi:10.1016/S0140-6736(86)90837-8.
.. [bland1999] J. M. Bland and D. G. Altman, "Measuring agreement in method comparison studies", Statistical
   Methods in Medical Research 8 (1999) 135-160, doi:10.1177/096228029900800204.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from raterscope.algorithms.annotators.vote_agreement import Coefficient

LEVEL = 0.95
_UPPER = (1 + LEVEL) / 2


@dataclass(frozen=True)
class IntraclassCorrelation:
    """Intraclass correlations of [shrout1979]_, of one rater and of the mean of all.

    Attributes
    ----------
    one_way, one_way_mean : Coefficient
        ICC(1,1) and ICC(1,k): each case has raters of its own.
    absolute, absolute_mean : Coefficient
        ICC(2,1) and ICC(2,k): the raters are a sample, and their offsets count as disagreement.
    consistency, consistency_mean : Coefficient
        ICC(3,1) and ICC(3,k): these raters alone, and a constant offset does not count.
    """

    one_way: Coefficient
    absolute: Coefficient
    consistency: Coefficient
    one_way_mean: Coefficient
    absolute_mean: Coefficient
    consistency_mean: Coefficient


@dataclass(frozen=True)
class LimitsOfAgreement:
    """Bland-Altman limits of the differences between two raters, with 95 % intervals.

    Attributes
    ----------
    bias, lower, upper : Coefficient
        Mean difference, and the limits between which 95 % of differences are expected; in the unit of the
        measurements.
    """

    bias: Coefficient
    lower: Coefficient
    upper: Coefficient


def intraclass_correlation(values: ArrayLike) -> IntraclassCorrelation:
    """Measure how alike raters measure the same cases.

    Parameters
    ----------
    values : (n, k) float
        Of n >= 2 cases by k >= 2 raters, complete.

    Raises
    ------
    ValueError
        For fewer cases or raters, or values that are not finite.

    Notes
    -----
    Estimates and intervals: [shrout1979]_, pages 423 to 425; equal to [mcgraw1996]_, tables 4 and 7.

    Examples
    --------
    The example of [shrout1979]_, table 2:

    >>> icc = intraclass_correlation([
    ...     [9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]
    ... ])
    >>> round(icc.one_way.value, 2), round(icc.absolute.value, 2), round(icc.consistency.value, 2)
    (0.17, 0.29, 0.71)
    """
    table = _checked(values)
    n, k = table.shape
    grand = table.mean()
    of_cases = k * ((table.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    of_raters = n * ((table.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    within = table.var(axis=1, ddof=1).mean()
    error = (within * n * (k - 1) - of_raters * (k - 1)) / ((n - 1) * (k - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        one_way = _by_ratio(of_cases / within, n - 1, n * (k - 1), k)
        consistency = _by_ratio(of_cases / error, n - 1, (n - 1) * (k - 1), k)
        absolute = _absolute(float(of_cases), float(of_raters), float(error), n, k)
    means = (_of_mean(single, k) for single in (one_way, absolute, consistency))
    return IntraclassCorrelation(one_way, absolute, consistency, *means)


def limits_of_agreement(first: ArrayLike, second: ArrayLike) -> LimitsOfAgreement:
    """Measure bias and limits of agreement of two raters on the same cases.

    Parameters
    ----------
    first, second : (n,) float
        Of n >= 2 cases; differences are first minus second.

    Raises
    ------
    ValueError
        For fewer cases, other lengths, or values that are not finite.

    Notes
    -----
    [bland1986]_; the variance of the limits is s^2 (1 / n + 1.96^2 / (2 (n - 1))), [bland1999]_, section 2.
    """
    table = _checked(np.column_stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)]))
    difference = table[:, 0] - table[:, 1]
    n = len(difference)
    mean, spread = float(difference.mean()), float(difference.std(ddof=1))
    reach = float(special.ndtri(_UPPER))
    quantile = float(special.stdtrit(n - 1, _UPPER))
    of_mean = quantile * spread / math.sqrt(n)
    of_limit = quantile * spread * math.sqrt(1 / n + reach**2 / (2 * (n - 1)))
    bias, lower, upper = (
        Coefficient(value, value - half, value + half)
        for value, half in (
            (mean, of_mean), (mean - reach * spread, of_limit), (mean + reach * spread, of_limit)
        )
    )  # fmt: skip
    return LimitsOfAgreement(bias, lower, upper)


def within_case_variation(values: ArrayLike) -> tuple[float, float]:
    """Return the within-case standard deviation, and it as a share of the mean (coefficient of variation).

    Parameters
    ----------
    values : (n, k) float
        Of n cases by k raters.

    Notes
    -----
    The square root of the mean within-case variance, [bland1999]_, section 5.
    """
    table = _checked(values)
    spread = math.sqrt(float(table.var(axis=1, ddof=1).mean()))
    mean = float(table.mean())
    return spread, spread / mean if mean > 0 else math.nan


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(f"values of shape {table.shape}; expected two cases and two raters or more.")
    if not np.isfinite(table).all():
        raise ValueError("a value is not finite; expected one for every case and rater.")
    return table


def _by_ratio(ratio: float, above: float, below: float, raters: int) -> Coefficient:
    """Return a correlation of a ratio of mean squares, with its degrees of freedom."""
    if not np.isfinite(ratio):
        return Coefficient(math.nan, math.nan, math.nan)
    low = ratio / float(special.fdtri(above, below, _UPPER))
    high = ratio * float(special.fdtri(below, above, _UPPER))
    value, low, high = ((quotient - 1) / (quotient + raters - 1) for quotient in (ratio, low, high))
    return Coefficient(float(value), float(low), float(high))


def _absolute(cases: float, raters: float, error: float, n: int, k: int) -> Coefficient:
    """Return ICC(2,1) of the mean squares of cases, raters and error, with Satterthwaite's approximation."""
    total = cases + (k - 1) * error + k * (raters - error) / n
    if total <= 0 or error <= 0:
        return Coefficient(math.nan, math.nan, math.nan)
    value = (cases - error) / total
    ratio, spread = raters / error, n * (1 + (k - 1) * value) - k * value
    freedom = (k - 1) * (n - 1) * (k * value * ratio + spread) ** 2
    freedom /= (n - 1) * (k * value * ratio) ** 2 + spread**2
    rest = k * raters + (k * n - k - n) * error
    above, below = float(special.fdtri(n - 1, freedom, _UPPER)), float(special.fdtri(freedom, n - 1, _UPPER))
    low = n * (cases - above * error) / (above * rest + n * cases)
    high = n * (below * cases - error) / (rest + n * below * cases)
    return Coefficient(value, low, high)


def _of_mean(single: Coefficient, raters: int) -> Coefficient:
    """Return the correlation of the mean of all raters, by the Spearman-Brown formula."""
    value, low, high = (
        share * raters / (1 + share * (raters - 1)) if share > -1 / (raters - 1) else math.nan
        for share in (single.value, single.low, single.high)
    )
    return Coefficient(value, low, high)
