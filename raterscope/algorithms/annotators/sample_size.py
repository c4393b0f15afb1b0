"""Number of cases for an interval of a given width: proportions, kappa, intraclass correlation, limits.

References
----------
.. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22 (1927) 209-212, doi:10.1080/01621459.1927.10502953.
.. [fleiss1969] J. L. Fleiss, J. Cohen and B. S. Everitt, "Large sample standard errors of kappa and weighted
   kappa", Psychological Bulletin 72 (1969) 323-327, doi:10.1037/h0028106.
.. [bonett2002] D. G. Bonett, "Sample size requirements for estimating intraclass correlations with desired
   precision", Statistics in Medicine 21 (2002) 1331-1335, doi:10.1002/sim.1108.
.. [bland1999] J. M. Bland and D. G. Altman, "Measuring agreement in method comparison studies", Statistical
   Methods in Medical Research 8 (1999) 135-160, doi:10.1177/096228029900800204.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy

from raterscope.algorithms.annotators.agreement import kappa_error
from raterscope.algorithms.annotators.measurements import LEVEL, limit_error
from raterscope.algorithms.annotators.statistics import wilson

_MOST = 10_000_000
"""Cases beyond which no number is searched for."""


def cases_for_proportion(share: float, width: float) -> int:
    """Return the number of cases at which a proportion's Wilson interval, [wilson1927]_, is narrow enough.

    `share`: expected, 0 to 1. `width`: width of the whole 95 % interval.

    Examples
    --------
    >>> cases_for_proportion(0.5, 0.2)
    93
    """
    _check("share", share, 0.0, 1.0)
    _check("width", width, 0.0, 1.0, open_ends=True)

    def at(cases: float) -> float:
        low, high = wilson(share * cases, int(cases), LEVEL)
        return high - low

    return _search(at, width)


def cases_for_kappa(kappa: float, width: float, rates: Sequence[float] = (0.5, 0.5)) -> int:
    """Return the number of cases at which the interval of Cohen's kappa of two raters is narrow enough.

    `kappa`: expected, 0 to 1. `width`: width of the whole 95 % interval. `rates`: expected shares of the
    classes, the same for both raters; they add up to 1.

    Notes
    -----
    Large-sample standard error of [fleiss1969]_ at the expected table.

    Examples
    --------
    >>> cases_for_kappa(0.8, 0.2)
    139
    """
    _check("kappa", kappa, 0.0, 1.0)
    _check("width", width, 0.0, 2.0, open_ends=True)
    shares = np.asarray(rates, dtype=np.float64)
    if len(shares) < 2 or (shares <= 0).any() or abs(float(shares.sum()) - 1) > 1e-6:
        raise ValueError(f"rates {list(rates)}; expected two or more above 0 that add up to 1.")
    table = kappa * np.diag(shares) + (1 - kappa) * np.outer(shares, shares)
    error = kappa_error(table)
    reach = _reach()
    return _search(lambda cases: 2 * reach * error / math.sqrt(cases), width)


def cases_for_icc(correlation: float, width: float, raters: int = 2) -> int:
    """Return the number of cases at which an intraclass correlation's interval is narrow enough.

    `correlation`: expected, 0 to 1, of a single rater. `width`: width of the whole 95 % interval. `raters`:
    number of raters, who measure every case.

    Notes
    -----
    [bonett2002]_, with the correction by 5 times the correlation for two raters and 0.7 or more.

    Examples
    --------
    >>> cases_for_icc(0.8, 0.2, raters=3)
    36
    """
    _check("correlation", correlation, 0.0, 1.0)
    _check("width", width, 0.0, 1.0, open_ends=True)
    if raters < 2:
        raise ValueError(f"{raters} raters; expected two or more.")
    spread = (1 - correlation) ** 2 * (1 + (raters - 1) * correlation) ** 2
    cases = 8 * _reach() ** 2 * spread / (raters * (raters - 1) * width**2) + 1
    if raters == 2 and correlation >= 0.7:
        cases += 5 * correlation
    return max(2, math.ceil(cases))


def cases_for_limits(width: float) -> int:
    """Return the number of cases for a narrow enough interval of a limit of agreement, [bland1999]_.

    `width`: width of the whole 95 % interval of one limit, in standard deviations of the differences.

    Examples
    --------
    >>> cases_for_limits(0.68)
    101
    """
    if not 0 < width < math.inf:
        raise ValueError(f"width {width}; expected a number above 0.")
    return _search(lambda cases: 2 * limit_error(int(cases)), width, least=2)


def _check(name: str, value: float, low: float, high: float, *, open_ends: bool = False) -> None:
    inside = low < value < high if open_ends else low <= value <= high
    if not inside:
        between = f"between {low:g} and {high:g}" if open_ends else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} {value:g}; expected {between}.")


def _reach() -> float:
    return float(scipy.special.ndtri((1 + LEVEL) / 2))


def _search(width_at: Callable[[float], float], width: float, least: int = 1) -> int:
    """Return the least number of cases at which a width that falls with the cases is small enough."""
    high = least
    while width_at(high) > width:
        high *= 2
        if high > _MOST:
            raise ValueError(f"width {width:g} takes more than {_MOST:,} cases; expected a larger width.")
    low = max(least, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if width_at(middle) <= width else (middle + 1, high)
    return high
