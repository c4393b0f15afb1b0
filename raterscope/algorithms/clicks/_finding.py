"""Whether clustering finds a structure that was marked, now and later.

A click joins those of others, or it does not: too wide of the mark, or taken by a neighbour. So a structure
with v marks is found with probability 1 - (1 - q)^(v - 1), where the chance q of joining falls with
neighbours close by. Finding is a latent normal variable that exceeds its threshold, and between now and k
annotators later this variable is correlated as a sum of independent terms is, sqrt(R / (R + k)): what hangs
by a hair changes its mind, what is well founded does not.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks._vote_model import EDGE
from raterscope.algorithms.clicks.data import FloatArray

__all__ = ["JOINS", "found", "found_later", "joining", "marks_of", "unseen"]

JOINS = 0.83
"""Chance that a further click on a lonely structure joins the others. Measured, as are the next two, on how
often subsets of 3 to 22 annotators of 24 crowded images find what all of them find; the same for any number
of annotators, and on four of the five kinds of image as on all (0.83 to 0.84, 0.38 to 0.52, 2.5 to 3.1)."""

CROWDED = 0.45
"""Share by which it falls where another structure is at the very same place."""

CROWDING = 3.0
"""Scatters over which that wears off, as a Gaussian."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def joining(mean: FloatArray, scatter: float) -> FloatArray:
    """Give the chance that a further click on each of M structures joins the others, by the nearest one."""
    from scipy.spatial import cKDTree

    if len(mean) < 2 or not scatter > 0:
        return np.full(len(mean), JOINS)
    distance = cKDTree(mean).query(mean, k=2)[0][:, 1] / (CROWDING * scatter)
    chance: FloatArray = JOINS * (1 - CROWDED * np.exp(-0.5 * distance**2))
    return chance


def marks_of(rate: FloatArray) -> FloatArray:
    """Give the chance of every number of marks, exactly: the Poisson binomial distribution.

    Parameters
    ----------
    rate : (R, ...) float64
        Chance that each annotator marks.

    Returns
    -------
    (R + 1, ...) float64
    """
    chance = np.zeros((len(rate) + 1, *rate.shape[1:]))
    chance[0] = 1.0
    for number, one in enumerate(rate):
        chance[1 : number + 2] = chance[1 : number + 2] * (1 - one) + chance[: number + 1] * one
        chance[0] *= 1 - one
    return chance


def found(joins: FloatArray, marks: FloatArray) -> FloatArray:
    """Give the chance that clustering finds a structure with so many marks."""
    chance: FloatArray = 1 - (1 - joins) ** np.maximum(marks - 1, 0)
    return np.clip(chance, EDGE, 1 - EDGE)


def found_later(joins: FloatArray, annotators: int, more: int, crowd: float | None = None) -> FloatArray:
    """Give the chance that a structure is found now and with more annotators.

    Parameters
    ----------
    joins : (Q,) float64
        Chance that a further click joins.
    annotators, more : int
        R and k.
    crowd : float, optional
        How many annotators the R count as; R if left open.

    Returns
    -------
    (Q, R + 1, k + 1) float64
        By marks now and marks of those who come.
    """
    from scipy.special import ndtr, ndtri

    crowd = annotators if crowd is None else crowd
    now = np.arange(annotators + 1.0)
    first = ndtri(found(joins[:, None], now))[:, :, None]
    second = ndtri(found(joins[:, None, None], now[:, None] + np.arange(more + 1.0)))
    # The bivariate normal distribution as an integral over the correlation's angle (Drezner and Wesolowsky).
    whole = np.arcsin(np.sqrt(crowd / (crowd + more)))
    both: FloatArray = ndtr(first) * ndtr(second)
    squares, product = first**2 + second**2, 2 * first * second
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        angle = whole * (node + 1) / 2
        exponent = -(squares - product * np.sin(angle)) / (2 * np.cos(angle) ** 2)
        both = both + weight * whole / (4 * np.pi) * np.exp(exponent)
    return np.clip(both, 0, np.minimum(ndtr(first), ndtr(second)))


def unseen(rate: FloatArray, joins: FloatArray, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the chance that a structure is not found, and that an annotator marks it all the same.

    With the chance of joining q and s = 1 - q, it is not found with probability s^(v - 1) when it has v
    marks, and surely when it has none; so sums over v are values of the marks' generating function. The mark
    of an annotator who counts as part of one is there with that chance.

    Parameters
    ----------
    rate : (R, K) float64
        Chance that each annotator marks a structure at each node.
    joins : (Q,) float64
    worth : (R,) float64
        How much of an annotator each counts as.

    Returns
    -------
    unseen : (Q, K) float64
    marked : (Q, R, K) float64
    """
    stray, there = 1 - joins[:, None], worth[:, None]
    counted = there * rate
    each = 1 - counted + counted * stray[:, :, None]
    every = each.prod(axis=1)
    none = (1 - counted).prod(axis=0)
    marked = rate * every[:, None] / each
    if (worth < 1).any():
        nobody = none / (1 - counted)
        alone = nobody + (every[:, None] / each - nobody) / stray[:, :, None]
        marked = there * marked + (1 - there) * rate * alone
    return none + (every - none) / stray, marked
