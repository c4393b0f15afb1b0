"""How sure the confusion matrices are, how often annotators are right, and how they differ from the crowd."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import ClassArray, Confusion, FloatArray

__all__ = ["accuracy_of", "beta_quantile", "credible", "crowd", "difference_from_crowd"]

_MANY = 1e5
"""With both parameters of a Beta distribution above it, an expansion about the normal is right to 1e-7."""


def credible(confusion: Confusion, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Give the credible interval of every entry of every confusion matrix.

    One entry of a row that is Dirichlet distributed has a Beta distribution with parameters alpha_jl and
    sum_m alpha_jm - alpha_jl; the interval leaves out as much below as above.

    Parameters
    ----------
    confusion : Confusion
    level : float
        Share of the probability within, between 0 and 1.

    Returns
    -------
    low, high : (K, J, L) float64
        With a single output both are one.
    """
    alpha = confusion.alpha
    rest = alpha.sum(axis=2, keepdims=True) - alpha
    return _beta_interval(alpha, rest, level)


def accuracy_of(
    confusion: Confusion, shares: FloatArray, meaning: ClassArray, level: float = 0.95
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the share of right votes to expect of every annotator, on tasks with the classes' own shares.

    It is sum_j share_j p_j, p_j being the probability in row j of the outputs that stand for class j. Rows
    are independent and each p_j is Beta distributed, so that mean and variance of the sum are exact; the
    interval is that of the Beta distribution with the same mean and variance. All annotators are measured on
    the same mixture of classes, whatever tasks came their way. A class that no output stands for is never
    right.

    Parameters
    ----------
    confusion : Confusion
    shares : (J,) float64
        Adding up to one.
    meaning : (L,) int16
        The class that each output stands for.
    level : float

    Returns
    -------
    mean, low, high : (K,) float64
    """
    stands = np.asarray(meaning)[None, :] == np.arange(len(shares))[:, None]
    alpha = confusion.alpha
    right = (alpha * stands).sum(axis=2)
    whole = alpha.sum(axis=2)
    share = right / whole
    mean = share @ shares
    variance = (share * (1.0 - share) / (whole + 1.0)) @ np.square(shares)
    sure = (variance <= 0.0) | (mean <= 0.0) | (mean >= 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = mean * (1.0 - mean) / variance - 1.0
    first = np.where(sure, 1.0, mean * strength)
    second = np.where(sure, 1.0, (1.0 - mean) * strength)
    low, high = _beta_interval(first, second, level)
    return mean, np.where(sure, mean, low), np.where(sure, mean, high)


def crowd(confusion: Confusion) -> FloatArray:
    """Give the confusion matrix of the crowd: everybody's expected counts together with one prior, (J, L)."""
    pooled = confusion.counts().sum(axis=0) + confusion.prior
    return np.asarray(pooled / pooled.sum(axis=1, keepdims=True))


def difference_from_crowd(confusion: Confusion, votes: NDArray[np.int64]) -> FloatArray:
    """Give every annotator's expected probabilities minus the crowd's, (K, J, L).

    Parameters
    ----------
    confusion : Confusion
    votes : (K,) int64
        Votes of every annotator. Those without any have the prior's matrix, whose difference says nothing:
        they are NaN.
    """
    difference = confusion.mean() - crowd(confusion)
    difference[np.asarray(votes) == 0] = np.nan
    return difference


def beta_quantile(first: FloatArray, second: FloatArray, at: float) -> FloatArray:
    """Give a quantile of Beta distributions; where the second parameter is 0, the share is one."""
    from scipy.special import betaincinv

    certain = second <= 0.0
    many = np.minimum(first, second) > _MANY
    few = ~(certain | many)
    end = np.ones(first.shape)
    end[few] = betaincinv(first[few], second[few], at)
    end[many] = _near_normal(first[many], second[many], at)
    return end


def _beta_interval(first: FloatArray, second: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Give the ends, which leave out as much below as above."""
    tail = (1.0 - level) / 2.0
    return beta_quantile(first, second, tail), beta_quantile(first, second, 1.0 - tail)


def _near_normal(first: FloatArray, second: FloatArray, at: float) -> FloatArray:
    """Give a quantile by the expansion of Cornish and Fisher to the skewness."""
    from scipy.special import ndtri

    whole = first + second
    deviation = np.sqrt(first * second / (whole + 1.0)) / whole
    skewness = 2.0 * (second - first) * np.sqrt(whole + 1.0) / ((whole + 2.0) * np.sqrt(first * second))
    z = ndtri(at)
    return np.asarray(first / whole + deviation * (z + skewness * (z * z - 1.0) / 6.0))
