"""The scales beside the plots of a stream: counts, shares, and what falls by powers of ten."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ValueScale", "count_scale", "falling_scale", "round_up", "share_scale"]

ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
HIGHEST_FOOT = -3
"""Power of ten to which a scale of them goes down at the least."""


@dataclass(frozen=True, slots=True)
class ValueScale:
    """From where to where a plot goes, and the values written beside it.

    Attributes
    ----------
    least, most : float
    ticks : tuple of (float, str)
    powers : bool
        Whether equal steps stand for equal factors.

    What is beyond an end lies on it.
    """

    least: float
    most: float
    ticks: tuple[tuple[float, str], ...]
    powers: bool = False

    def share(self, values: NDArray[np.floating] | NDArray[np.integer] | float) -> NDArray[np.floating]:
        """Give how high values lie, 0 to 1."""
        found = np.asarray(values, dtype=float)
        ends = np.array([self.least, self.most])
        if self.powers:
            found, ends = np.log10(np.maximum(found, self.least)), np.log10(ends)
        return np.asarray(np.clip((found - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0))


def round_up(number: float) -> float:
    """Give the next round number, so that an axis does not move at every step: 23 becomes 25."""
    power = 10 ** math.floor(math.log10(max(number, 1)))
    tried = (one * power for one in ROUND)
    return float(next(each for each in tried if each >= number and each == int(each)))


def count_scale(most: int) -> ValueScale:
    """Make a scale of counts from 0."""
    top = round_up(max(most, 2))
    return ValueScale(0.0, top, ((0.0, "0"), (top, f"{top:,.0f}")))


def share_scale() -> ValueScale:
    """Make a scale from 0 to 1."""
    return ValueScale(0.0, 1.0, ((0.0, "0"), (0.5, "0.5"), (1.0, "1")))


def falling_scale(limit: float | None) -> ValueScale:
    """Make a scale of shares by powers of ten, from 100 % down, for what falls towards nothing.

    Parameters
    ----------
    limit : float or None
        What has to be on the scale.
    """
    bottom = HIGHEST_FOOT
    if limit is not None and limit > 0:
        bottom = min(bottom, math.floor(math.log10(limit)))
    ticks = tuple((10.0**power, f"{10.0 ** (power + 2):g} %") for power in range(bottom, 1))
    return ValueScale(10.0**bottom, 1.0, ticks, powers=True)
