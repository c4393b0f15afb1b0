"""Runs that may hold no structure at all, as far as the numbers of votes on their clusters tell.

Votes tell a run of artefacts alone from one with structures only by how the clusters' votes are distributed.
Where artefacts alone draw clicks, shares follow a Beta distribution that falls. The prior probability of such
a run is multiplied by the likelihood ratio of the votes' histogram under that distribution, to a power (see
`_vote_model`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.clicks._vote_model import BELIEVED, Problem
from raterscope.algorithms.clicks.data import FloatArray

__all__ = ["absent_probability", "log_ratio"]

ABSENT = 0.05
"""Prior probability that a run holds no structure, where votes fit artefacts alone."""

BELIEVED_VOTES = 0.5
"""Power of the likelihood ratio of the votes' histogram."""

ARTEFACTS = ((1.0, 3.0), (1.0, 5.0), (1.0, 9.0), (2.0, 6.0), (4.0, 12.0))
"""Beta distributions that the share of annotators may have that artefacts draw."""

FOUND = 3
"""Votes from which on nearly every artefact is a cluster; those of the lowest class never count."""

BINS = 10
"""Classes of the share of votes in the histogram."""

TINY = 1e-12


def absent_probability(problems: Sequence[Problem]) -> float:
    """Give the prior probability that a run holds no structure, from how its votes are distributed."""
    ratio = log_ratio([one.count for one in problems], [one.crowd for one in problems])
    odds = ABSENT / (1 - ABSENT) * np.exp(min(BELIEVED_VOTES * ratio, 0.0))
    return float(odds / (1 + odds))


def log_ratio(counts: Sequence[FloatArray], crowds: Sequence[float]) -> float:
    """Compare artefacts alone with the histogram itself as an explanation of a run's numbers of votes.

    The histogram has a parameter for each class; half of one is taken off its log likelihood for each. The
    votes of a larger crowd count as those of `BELIEVED` annotators.

    Parameters
    ----------
    counts : sequence of (M,) float64
        Annotators who marked each cluster of each image.
    crowds : sequence of float
        All annotators of each.
    """
    seen, expected = np.zeros(BINS), np.zeros((len(ARTEFACTS), BINS))
    for count, crowd in zip(counts, crowds, strict=True):
        whole = int(min(max(round(crowd), 1), BELIEVED))
        votes = np.clip(np.rint(count * whole / max(crowd, 1.0)), 0, whole).astype(np.int64)
        fewest = min(max(FOUND, -(-whole // BINS)), whole)
        votes = votes[votes >= fewest]
        if len(votes):
            number = np.arange(fewest, whole + 1)
            classes = np.minimum(number * BINS // whole, BINS - 1)
            seen += np.bincount(np.minimum(votes * BINS // whole, BINS - 1), minlength=BINS)
            for row, shape in enumerate(ARTEFACTS):
                chance = _chance(number, whole, shape)
                expected[row] += len(votes) * np.bincount(classes, chance, minlength=BINS)
    filled = seen > 0
    if not filled.any():
        return 0.0
    fit = np.log(np.maximum(expected[:, filled], TINY)) @ seen[filled]
    return float(fit.max() - seen[filled] @ np.log(seen[filled])) + (np.count_nonzero(filled) - 1) / 2


def _chance(number: np.ndarray, whole: int, shape: tuple[float, float]) -> FloatArray:
    """Give the probability of each of some numbers of votes on an artefact, which sum to one."""
    from scipy.special import betaln, gammaln

    log = betaln(shape[0] + number, shape[1] + whole - number)
    log += gammaln(whole + 1) - gammaln(number + 1) - gammaln(whole - number + 1)
    chance = np.exp(log - log.max())
    return np.asarray(chance / chance.sum())
