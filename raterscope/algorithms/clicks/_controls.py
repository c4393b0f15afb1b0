"""Prior knowledge of a run: the expected share of structures, control images.

Votes do not tell a run of artefacts alone from one with structures. Images that are known to hold no
structure show how many artefacts of an image look like structures. Those of other images are taken to be
about as many: the logarithm of their number is normal about that of the controls, with the variance of what
was counted and of the images' differences (`DIFFER`). Images that are known to hold structures exclude a run
of artefacts alone: the probability that none of their clusters is one is exp(-sum of the posteriors).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.clicks._vote_model import Prior, Problem
from raterscope.algorithms.clicks.data import FloatArray

__all__ = ["known_shares"]

CASES = 20.0
"""Clusters that the expected share of structures weighs where its uncertainty is not set."""

MOST_CASES = 1e4
"""Clusters that it weighs at most."""

DIFFER = 0.2
"""Variance of the log number of artefacts that look like structures, from image to image."""

COUNTED = 0.5
"""Added to the numbers of such artefacts, as by Jeffreys' prior of a Poisson rate."""

TINY = 1e-12


def known_shares(
    problems: Sequence[Problem], looks: Sequence[FloatArray], chances: Sequence[FloatArray]
) -> FloatArray:
    """Give the log probability (A, B) of what is known of the run, by level and slope.

    Parameters
    ----------
    problems : sequence of Problem
        Of the images.
    looks : sequence of (M,) float64
        Probability that each cluster looks like a structure, had nothing been decided.
    chances : sequence of (A, B, M) float64
        Chance that a cluster that looks like a structure is one.
    """
    structures = [chance @ look for chance, look in zip(chances, looks, strict=True)]
    zero = np.zeros(chances[0].shape[:2]) if chances else np.zeros((1, 1))
    return _expected(problems, structures, zero) + _controls(problems, looks, structures, zero)


def _expected(problems: Sequence[Problem], structures: Sequence[FloatArray], zero: FloatArray) -> FloatArray:
    prior = next((one.prior for one in problems if one.prior.expected is not None), None)
    total = sum(len(problem.count) for problem in problems)
    if prior is None or prior.expected is None or not total:
        return zero
    mean = np.clip(sum(structures, zero) / total, TINY, 1 - TINY)
    share = prior.expected
    return np.asarray(_cases(prior) * (share * np.log(mean) + (1 - share) * np.log1p(-mean)))


def _cases(prior: Prior) -> float:
    """Give the clusters that the expected share weighs: as a Beta distribution as wide as is set."""
    if prior.expected is None or prior.expected_error is None:
        return CASES
    variance = (prior.expected_error / 1.96) ** 2
    return float(np.clip(prior.expected * (1 - prior.expected) / variance - 1, 1.0, MOST_CASES))


def _controls(
    problems: Sequence[Problem],
    looks: Sequence[FloatArray],
    structures: Sequence[FloatArray],
    zero: FloatArray,
) -> FloatArray:
    negative = [float(look.sum()) for one, look in zip(problems, looks, strict=True) if one.control is False]
    value = zero
    for one, present in zip(problems, structures, strict=True):
        if one.control:
            value = value + np.log(-np.expm1(-np.maximum(present, TINY)))
    others = [
        float(look.sum()) - present
        for one, look, present in zip(problems, looks, structures, strict=True)
        if one.control is not False
    ]
    if not negative or not others:
        return value
    usual, seen = np.mean(negative) + COUNTED, sum(negative) + COUNTED
    artefacts = np.maximum(sum(others, zero), 0) / len(others) + COUNTED
    variance = 1 / seen + DIFFER / len(negative) + DIFFER / len(others)
    return np.asarray(value - 0.5 * np.log(artefacts / usual) ** 2 / variance)
