"""Agreement of a ranking with the choices, and with a known ranking (Table 5 of the position bias paper).

HodgeRank [jiang2011]_ measures the agreement with the choices. The mean choices of pairs, weighted by their
comparisons, are split into differences of scores, cycles of triangles (curl) and only longer cycles
(harmonic). The three are orthogonal: their sums of squares add up. Agreement with a known ranking is measured
by Kendall's tau [kendall1938]_, and the share of the best items that are found.

References
----------
.. [jiang2011] X. Jiang, L.-H. Lim, Y. Yao and Y. Ye, "Statistical ranking and combinatorial Hodge theory",
   Mathematical Programming 127 (2011) 203-244, doi:10.1007/s10107-010-0419-x.
.. [kendall1938] M. G. Kendall, "A new measure of rank correlation", Biometrika 30 (1938) 81-93,
   doi:10.1093/biomet/30.1-2.81.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import FloatArray, IndexArray, Pairs
from raterscope.algorithms.pairs.ranking import groups_of
from raterscope.algorithms.progress import Watch, silent

_MAX_TRIANGLES = 200_000
_MAX_CELLS = 4_000_000
"""Maximum size of a table of all pairs of items in which comparisons are counted, which is faster than
sorting.
"""

_MAX_ITEMS = 3000
_STEPS = 500
_PRECISE = 1e-7


@dataclass(frozen=True, eq=False)
class Consistency:
    """Shares of the choices' sum of squares; the first three add up to 1, and so do all except `cyclic`."""

    ranking: float  # explained by the scores
    # differences between comparisons of the same two items, by the same or different annotators
    disagreement: float
    cyclic: float  # part of the mean choices that no score explains: a over b over c over a
    # curl, harmonic: parts of the cyclic share in triangles, and only in longer cycles; NaN with too many
    # triangles
    curl: float
    harmonic: float
    component: FloatArray  # (c,): unexplained share in each component of items


def consistency(pairs: Pairs, component: IndexArray, score: FloatArray, watch: Watch = silent) -> Consistency:
    """Split the choices' sum of squares into parts that a ranking does and does not explain.

    `component`: (n,), from `ranking.components`. `score`: (n,), least squares scores, from `ranking.scores`
    without biases.
    """
    watch(0.0, "adding up the answers of every pair")
    spread = float(pairs.choice @ pairs.choice)
    number = int(component.max(initial=-1)) + 1
    if not spread:
        return Consistency(1.0, 0.0, 0.0, 0.0, 0.0, np.zeros(number))
    first, second, count, mean = _flows(pairs)
    residuals = mean - score[first] + score[second]
    residual = pairs.choice - score[pairs.left] + score[pairs.right]
    group = component[pairs.left]
    by_group = np.bincount(group, weights=residual**2, minlength=number)
    total = np.bincount(group, weights=pairs.choice**2, minlength=number)
    within = max(spread - float(count @ mean**2), 0.0) / spread
    cyclic = float(count @ residuals**2) / spread
    watch(0.3, "searching for cycles")
    flow = np.sqrt(count) * residuals
    curl = float("nan")
    if cyclic * spread <= _PRECISE**2 * spread:
        curl = cyclic
    else:
        triangles = _triangles(first, second, len(pairs.items), watch)
        if triangles is not None:
            curl = _round_triangles(flow, count, triangles, watch) / spread
    harmonic = float(np.maximum(cyclic - curl, 0.0))
    share = by_group / np.where(total > 0, total, 1.0)
    return Consistency(max(1.0 - within - cyclic, 0.0), within, cyclic, curl, harmonic, share)


def _flows(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:
    """Return the compared pairs, the lower index first, with counts and the mean choice of the first."""
    count = len(pairs.items)
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    signed = np.where(pairs.left < pairs.right, pairs.choice, -pairs.choice)
    cell = low.astype(np.int64) * count + high
    if count**2 > _MAX_CELLS:
        compared, cell = np.unique(cell, return_inverse=True)
        number = np.bincount(cell)
    else:
        number = np.bincount(cell, minlength=count**2)
        compared = np.flatnonzero(number)
    counts = number[number > 0].astype(np.float64)
    first, second = np.divmod(compared, count)
    return first, second, counts, np.bincount(cell, signed, len(number))[number > 0] / counts


def _triangles(
    first: NDArray[np.int64], second: NDArray[np.int64], many: int, watch: Watch
) -> tuple[NDArray[np.int64], ...] | None:
    """List the triangles by the indices of their three pairs; None if there are too many."""
    if many > _MAX_ITEMS:
        return None
    edge = np.full((many, many), -1, dtype=np.int32)
    edge[first, second] = np.arange(len(first), dtype=np.int32)
    start = np.searchsorted(first, np.arange(many + 1))
    result: list[tuple[NDArray[np.int64], ...]] = []
    count = 0
    for item in range(many):
        if item % 64 == 0:
            watch(0.3, "searching for cycles")
        ends = second[start[item] : start[item + 1]]
        opposite = edge[np.ix_(ends, ends)]
        a, b = np.nonzero(opposite >= 0)
        count += len(a)
        if count > _MAX_TRIANGLES:
            return None
        if len(a):
            result.append((start[item] + a, start[item] + b, opposite[a, b].astype(np.int64)))
    if not result:
        return tuple(np.empty(0, dtype=np.int64) for _ in range(3))
    return tuple(np.concatenate(parts) for parts in zip(*result, strict=True))


def _round_triangles(
    flow: FloatArray, count: FloatArray, triangles: tuple[NDArray[np.int64], ...], watch: Watch
) -> float:
    """Return the sum of squares of the part in triangles, by conjugate gradients."""
    near, far, opposite = triangles
    if not len(near):
        return 0.0
    shape = (len(flow), len(near))
    around = _incidence((near, 1.0), (opposite, 1.0), (far, -1.0), shape=shape)
    around = (around.multiply(1 / np.sqrt(count)[:, None])).tocsr()
    back = around.T.tocsr()
    rest, goal = flow.copy(), float(flow @ flow)
    gradient = back @ rest
    direction, size = gradient.copy(), float(gradient @ gradient)
    begin = size
    for step in range(_STEPS):
        if size <= _PRECISE**2 * begin or begin == 0:
            break
        if step % 16 == 0:
            watch(0.4 + 0.6 * step / _STEPS, "searching for cycles")
        moved = around @ direction
        rest -= size / float(moved @ moved) * moved
        gradient = back @ rest
        size, before = float(gradient @ gradient), size
        direction = gradient + size / before * direction
    return max(goal - float(rest @ rest), 0.0)


def _incidence(*sides: tuple[NDArray[np.int64], float], shape: tuple[int, int]) -> Any:
    from scipy.sparse import coo_array

    column = np.tile(np.arange(shape[1]), len(sides))
    row = np.concatenate([side for side, _ in sides])
    value = np.repeat([sign for _, sign in sides], shape[1])
    return coo_array((value, (row, column)), shape=shape)


BEST = (1, 3, 5, 10)
"""Numbers k for the share of the truly best items among the k best."""


@dataclass(frozen=True, eq=False)
class TrueRanking:
    """Known ranking of n items."""

    # (n,): rank of each item, 1 for the best, equal ranks for a tie; NaN if unknown
    place: FloatArray
    # (n,): items of one group are ordered by their ranks, items of different groups are not; a complete
    # ranking has one group
    group: IndexArray


@dataclass(frozen=True)
class RankingAgreement:
    """Agreement of a ranking with a known ranking."""

    items: int  # items with a score and a known rank
    # agreeing, opposed: number of pairs of items that both rankings order in the same way, and in opposite
    # ways
    agreeing: int
    opposed: int
    tau: float  # Kendall's tau-b, -1 to 1, over the pairs whose order is known; NaN without any
    # tuple of (k, share): share of the k truly best items among the k best here, for each k of `BEST` below
    # the number of items; empty unless one group and one component hold all items
    best: tuple[tuple[int, float], ...]


def compare_rankings(score: FloatArray, component: IndexArray, truth: TrueRanking) -> RankingAgreement:
    """Compare scores with a known ranking.

    Pairs count if the truth orders their items and comparisons link them.

    `score`: (n,), the higher the better; NaN for an item without a score. `component`: (n,), items that
    comparisons link; -1 for none. `truth`: ranking of the same n items.
    """
    known = np.isfinite(score) & np.isfinite(truth.place) & (component >= 0) & (truth.group >= 0)
    clusters = int(truth.group.max(initial=0)) + 1
    cell = np.where(known, component.astype(np.int64) * clusters + truth.group, -1)
    _, number = np.unique(cell, return_inverse=True)
    groups = groups_of(np.where(known, number, -1).astype(np.int32))
    agreeing = opposed = only_truth = only_score = 0
    for items in groups:
        rank, value = -truth.place[items], score[items]
        for at in range(len(items) - 1):
            true, result = np.sign(rank[at + 1 :] - rank[at]), np.sign(value[at + 1 :] - value[at])
            same = true * result
            agreeing += int((same > 0).sum())
            opposed += int((same < 0).sum())
            only_truth += int(((true != 0) & (result == 0)).sum())
            only_score += int(((true == 0) & (result != 0)).sum())
    both = agreeing + opposed
    size = math.sqrt((both + only_truth) * (both + only_score))
    tau = (agreeing - opposed) / size if size else math.nan
    linked = len([items for items in groups if len(items)]) == 1
    best = _best(score[known], truth.place[known]) if linked else ()
    return RankingAgreement(int(known.sum()), agreeing, opposed, tau, best)


def _best(score: FloatArray, rank: FloatArray) -> tuple[tuple[int, float], ...]:
    by_truth, by_score = np.argsort(rank, kind="stable"), np.argsort(-score, kind="stable")
    return tuple((k, len(np.intersect1d(by_truth[:k], by_score[:k])) / k) for k in BEST if k < len(score))
