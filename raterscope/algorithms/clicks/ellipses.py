"""Ellipses of covariances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray

__all__ = ["ellipses"]


def ellipses(covariance: NDArray[np.floating[Any]], coverage: float = 0.95) -> FloatArray:
    """Give the ellipse about each centre that holds a share of a component's clicks.

    Parameters
    ----------
    covariance : (M, 2, 2) float64
    coverage : float
        Share of a Gaussian's probability within, above 0 and below 1.

    Returns
    -------
    (M, 3) float64
        Longer and shorter half axis in pixels, and the angle of the longer one in radians from the x axis
        towards the y axis, above -pi/2 and up to pi/2.

    Raises
    ------
    ValueError
        For a coverage that is no share.

    Examples
    --------
    >>> import numpy as np
    >>> ellipses(np.array([[[4.0, 0.0], [0.0, 1.0]]])).round(2)
    array([[4.9 , 2.45, 0.  ]])
    """
    if not 0 < coverage < 1:
        raise ValueError(f"the coverage is {coverage:g}; expected a share between 0 and 1.")
    given = np.asarray(covariance, dtype=np.float64).reshape(-1, 2, 2)
    xx, xy, yy = given[:, 0, 0], given[:, 0, 1], given[:, 1, 1]
    middle, spread = (xx + yy) / 2, np.hypot((xx - yy) / 2, xy)
    factor = np.sqrt(-2 * np.log1p(-coverage))  # the distance squared is exponential in the plane
    long, short = np.sqrt(middle + spread), np.sqrt(np.maximum(middle - spread, 0))
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    return np.column_stack([factor * long, factor * short, angle])
