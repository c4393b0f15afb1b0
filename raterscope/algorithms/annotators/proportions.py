"""Intervals of proportions."""

from __future__ import annotations

import math
from functools import cache


def wilson(hits: float, many: float, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a share; NaN without data.

    References
    ----------
    .. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
       Journal of the American Statistical Association 22 (1927) 209-212,
       doi:10.1080/01621459.1927.10502953.


    Examples
    --------
    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
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
