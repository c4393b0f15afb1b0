"""Comparison of a ranking with a known one: Kendall's tau, and the best items found (Table 5 of the paper).

References
----------
.. [kendall1938] M. G. Kendall, "A new measure of rank correlation", Biometrika 30 (1938) 81-93,
   doi:10.1093/biomet/30.1-2.81.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.pairs._links import groups_of
from raterscope.algorithms.pairs.data import FloatArray, IndexArray

__all__ = ["BEST", "RankingAgreement", "TrueRanking", "compare_rankings"]

BEST = (1, 3, 5, 10)
"""Numbers of best items of which the share that is found is given."""


@dataclass(frozen=True, eq=False)
class TrueRanking:
    """What is known of the order of n items.

    Attributes
    ----------
    place : (n,) float64
        Rank of each item, the best first: 1, 2, and so on, equal ranks for a tie; NaN where unknown.
    group : (n,) int32
        Items of one group are ordered by their ranks, those of different groups are not; one group for a
        complete ranking.
    """

    place: FloatArray
    group: IndexArray


@dataclass(frozen=True)
class RankingAgreement:
    """How far a ranking agrees with a known one.

    Attributes
    ----------
    items : int
        Items with a score and a known place.
    agreeing, opposed : int
        Pairs of items that both rankings order, in the same way or the other way round.
    tau : float
        Kendall's tau-b, -1 to 1, over the pairs whose order is known; NaN without any.
    best : tuple of (k, share)
        Of the k items that are best in truth, the share among the k that rank best here, for each k of `BEST`
        below the number of items; empty unless one group and one component hold all items.
    """

    items: int
    agreeing: int
    opposed: int
    tau: float
    best: tuple[tuple[int, float], ...]


def compare_rankings(score: FloatArray, component: IndexArray, truth: TrueRanking) -> RankingAgreement:
    """Compare scores with a known ranking.

    Pairs count where the truth orders their items and comparisons link them.

    Parameters
    ----------
    score : (n,) float64
        The higher the better; NaN for an item without a score.
    component : (n,) int32
        Items that comparisons link; -1 for none.
    truth : TrueRanking
        Of the same n items.

    Examples
    --------
    >>> truth = TrueRanking(np.array([1.0, 2.0, 3.0]), np.zeros(3, np.int32))
    >>> found = compare_rankings(np.array([0.9, 0.1, 0.4]), np.zeros(3, np.int32), truth)
    >>> found.agreeing, found.opposed, round(found.tau, 3), found.best
    (2, 1, 0.333, ((1, 1.0),))
    """
    known = np.isfinite(score) & np.isfinite(truth.place) & (component >= 0) & (truth.group >= 0)
    whole = int(truth.group.max(initial=0)) + 1
    cell = np.where(known, component.astype(np.int64) * whole + truth.group, -1)
    _, number = np.unique(cell, return_inverse=True)
    groups = groups_of(np.where(known, number, -1).astype(np.int32))
    agreeing = opposed = only_truth = only_score = 0
    for items in groups:
        place, value = -truth.place[items], score[items]
        for at in range(len(items) - 1):
            true, found = np.sign(place[at + 1 :] - place[at]), np.sign(value[at + 1 :] - value[at])
            same = true * found
            agreeing += int((same > 0).sum())
            opposed += int((same < 0).sum())
            only_truth += int(((true != 0) & (found == 0)).sum())
            only_score += int(((true == 0) & (found != 0)).sum())
    both = agreeing + opposed
    size = math.sqrt((both + only_truth) * (both + only_score))
    tau = (agreeing - opposed) / size if size else math.nan
    linked = len([items for items in groups if len(items)]) == 1
    best = _best(score[known], truth.place[known]) if linked else ()
    return RankingAgreement(int(known.sum()), agreeing, opposed, tau, best)


def _best(score: FloatArray, place: FloatArray) -> tuple[tuple[int, float], ...]:
    by_truth, by_score = np.argsort(place, kind="stable"), np.argsort(-score, kind="stable")
    return tuple((k, len(np.intersect1d(by_truth[:k], by_score[:k])) / k) for k in BEST if k < len(score))
