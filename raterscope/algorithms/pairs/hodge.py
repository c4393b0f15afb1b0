"""Why a ranking does not explain all choices: annotators disagree, or items go round in circles.

HodgeRank [jiang2011]_: the mean choices of pairs, weighted by their comparisons, are split into
the differences of scores, what goes round triangles (curl), and what goes round longer circles alone
(harmonic). The three are at right angles, so their sums of squares add up.

References
----------
.. [jiang2011] X. Jiang, L.-H. Lim, Y. Yao and Y. Ye, "Statistical ranking and combinatorial Hodge theory",
   Mathematical Programming 127 (2011) 203-244, doi:10.1007/s10107-010-0419-x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import FloatArray, IndexArray, Pairs
from raterscope.algorithms.progress import Watch, silent

__all__ = ["Consistency", "consistency"]

_MOST_TRIANGLES = 200_000
_MOST_ITEMS = 3000
_STEPS = 500
_PRECISE = 1e-7


@dataclass(frozen=True, eq=False)
class Consistency:
    """Shares of the choices' sum of squares; the first three add up to 1, and so do all without `cyclic`.

    Attributes
    ----------
    ranking : float
        Explained by the scores.
    disagreement : float
        Between comparisons of the same two items, by whomever: no flow from item to item explains it.
    cyclic : float
        Of the mean choices, what no score explains: a over b over c over a.
    curl, harmonic : float
        Of the cyclic share, what goes round triangles, and what goes round longer circles alone; NaN where
        there are too many triangles to tell.
    component : (c,) float64
        Share that no ranking explains in each component of items.
    """

    ranking: float
    disagreement: float
    cyclic: float
    curl: float
    harmonic: float
    component: FloatArray


def consistency(pairs: Pairs, component: IndexArray, score: FloatArray, watch: Watch = silent) -> Consistency:
    """Split the choices' sum of squares.

    Parameters
    ----------
    pairs : Pairs
    component : (n,) int32
        From `ranking.components`.
    score : (n,) float64
        Least squares scores, from `ranking.scores` without biases.
    watch : Watch
    """
    watch(0.0, "adding up the answers of every pair")
    whole = float(pairs.choice @ pairs.choice)
    many = int(component.max(initial=-1)) + 1
    if not whole:
        return Consistency(1.0, 0.0, 0.0, 0.0, 0.0, np.zeros(many))
    first, second, count, mean = _flows(pairs)
    rest = mean - score[first] + score[second]
    left = pairs.choice - score[pairs.left] + score[pairs.right]
    group = component[pairs.left]
    by_group = np.bincount(group, weights=left**2, minlength=many)
    total = np.bincount(group, weights=pairs.choice**2, minlength=many)
    within = max(whole - float(count @ mean**2), 0.0) / whole
    cyclic = float(count @ rest**2) / whole
    watch(0.3, "looking for circles")
    flow = np.sqrt(count) * rest
    curl = float("nan")
    if cyclic * whole <= _PRECISE**2 * whole:
        curl = cyclic
    else:
        triangles = _triangles(first, second, len(pairs.items), watch)
        if triangles is not None:
            curl = _round_triangles(flow, count, triangles, watch) / whole
    harmonic = float(np.maximum(cyclic - curl, 0.0))
    share = by_group / np.where(total > 0, total, 1.0)
    return Consistency(max(1.0 - within - cyclic, 0.0), within, cyclic, curl, harmonic, share)


def _flows(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:
    """Give the pairs that were compared, the lower number first, how often, and the mean choice of it."""
    from scipy.sparse import coo_array

    many = len(pairs.items)
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    signed = np.where(pairs.left < pairs.right, pairs.choice, -pairs.choice)
    tables = []
    for value in (np.ones(len(pairs)), signed):
        table = coo_array((value, (low, high)), shape=(many, many)).tocsr()
        table.sum_duplicates()
        tables.append(table)
    counts, sums = tables
    first = np.repeat(np.arange(many), np.diff(counts.indptr))
    return first, counts.indices.astype(np.int64), counts.data, sums.data / counts.data


def _triangles(
    first: NDArray[np.int64], second: NDArray[np.int64], many: int, watch: Watch
) -> tuple[NDArray[np.int64], ...] | None:
    """List the triangles, by the numbers of their three pairs; None if there are too many."""
    if many > _MOST_ITEMS:
        return None
    edge = np.full((many, many), -1, dtype=np.int32)
    edge[first, second] = np.arange(len(first), dtype=np.int32)
    start = np.searchsorted(first, np.arange(many + 1))
    found: list[tuple[NDArray[np.int64], ...]] = []
    count = 0
    for item in range(many):
        if item % 64 == 0:
            watch(0.3, "looking for circles")
        ends = second[start[item] : start[item + 1]]
        opposite = edge[np.ix_(ends, ends)]
        a, b = np.nonzero(opposite >= 0)
        count += len(a)
        if count > _MOST_TRIANGLES:
            return None
        if len(a):
            found.append((start[item] + a, start[item] + b, opposite[a, b].astype(np.int64)))
    if not found:
        return tuple(np.empty(0, dtype=np.int64) for _ in range(3))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _round_triangles(
    flow: FloatArray, count: FloatArray, triangles: tuple[NDArray[np.int64], ...], watch: Watch
) -> float:
    """Give the sum of squares of the part that goes round triangles, by conjugate gradients."""
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
            watch(0.4 + 0.6 * step / _STEPS, "looking for circles")
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
