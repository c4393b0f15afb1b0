"""Tastes of annotators: the variance of scores because another crowd would prefer other items.

The model is choice = s_left - s_right + t_left - t_right + noise, where t, an annotator's taste of each item,
has variance tau and mean 0 in the crowd. Choices of one annotator on the same items are therefore correlated,
and n annotators with many comparisons each determine the scores less well than as many comparisons by
different annotators. With D_a the comparisons of annotator a and L_a = D_a'D_a their Laplacian, the scores
L+ D'y have the covariance sigma^2 L+ + tau L+ Q L+ where Q is the sum of the L_a^2.

The variances follow from two sums of squares, of all residuals r and of D_a'r_a, which are set equal to their
expectations (the method of moments, [henderson1953]_).

References
----------
.. [henderson1953] C. R. Henderson, "Estimation of variance and covariance components", Biometrics 9 (1953)
   226-252, doi:10.2307/3001853.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import FloatArray, Pairs
from raterscope.algorithms.pairs.wins import MOST_COMPARED

_CELLS = 20_000_000
_EXACT, _PROBES = 20_000_000, 8
"""Items times comparisons up to which a trace is exact, and vectors at a time. With more, random vectors
estimate it: the trace is part of a correction that is small if there are many comparisons."""

_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Tastes:
    """Part of the variance by tastes that does not depend on the choices.

    An annotator and an item that they compared form one of U cells.
    """

    left: NDArray[np.int64]  # (E,): cell of each comparison's left item
    right: NDArray[np.int64]  # (E,)
    cells: int
    # crossed, own: expected sums of squares: of D_a'r_a by noise of unit variance, which is also that of all
    # residuals by tastes of unit variance; and of D_a'r_a by these tastes
    crossed: float
    own: float
    spread: FloatArray  # (n,): variance of each score by tastes of unit variance; 0 for items never compared
    covariance: tuple[FloatArray | None, ...]  # of each component; None if its ranks have no intervals

    def variances(self, pairs: Pairs, residual: FloatArray, freedom: int) -> tuple[float, float]:
        """Estimate the variances of the noise and of the tastes from the residuals, (E,), of the scores."""
        weight = pairs.each_weight()
        weighed = residual if weight is None else weight * residual
        of_all = float(residual @ weighed)
        own = np.bincount(self.left, weighed, self.cells) - np.bincount(self.right, weighed, self.cells)
        scale = self.own * freedom - self.crossed**2
        if freedom <= 0 or scale <= _LEAST * self.own * freedom:
            return of_all / freedom if freedom > 0 else float("nan"), 0.0
        taste = max((float(own @ own) * freedom - of_all * self.crossed) / scale, 0.0)
        return max(of_all - taste * self.crossed, 0.0) / freedom, taste


def tastes_of(
    pairs: Pairs, items: Sequence[NDArray[np.int64]], inverses: Sequence[FloatArray], degree: float
) -> Tastes:
    """Prepare the variance by tastes.

    `items`, `inverses`: items of each component, and the pseudo-inverse of its Laplacian. `degree`: trace of
    the Laplacian.
    """
    from scipy.sparse import coo_array, csr_array

    count, comparisons = len(pairs.items), len(pairs)
    key = pairs.annotator.astype(np.int64) * count + np.stack([pairs.left, pairs.right])
    if len(pairs.annotators) * count <= _CELLS:
        occupied = np.zeros(len(pairs.annotators) * count, dtype=bool)
        occupied[key] = True
        cell = (np.cumsum(occupied) - 1)[key]
        item = np.flatnonzero(occupied) % max(count, 1)
    else:
        names, cell = np.unique(key, return_inverse=True)
        cell, item = cell.reshape(key.shape), names % count
    left, right, cells = cell[0], cell[1], len(item)
    weight = pairs.each_weight()
    weight = np.ones(comparisons) if weight is None else weight
    value = np.concatenate([weight, weight, -weight, -weight])
    row, column = np.concatenate([left, right, left, right]), np.concatenate([left, right, right, left])
    own = coo_array((value, (row, column)), shape=(cells, cells)).tocsr()
    by_item = csr_array((own.data, item[own.indices], own.indptr), shape=(cells, count))
    squares = (by_item.T @ by_item).tocsr()
    spread = np.zeros(count)
    first = second = 0.0
    covariance: list[FloatArray | None] = []
    exact = count * comparisons <= _EXACT
    probes = np.eye(count) if exact else _signs(count, _EXACT // comparisons)
    solved = np.zeros_like(probes)
    for rows, inverse in zip(items, inverses, strict=True):
        half = np.asarray((squares[rows][:, rows].T @ inverse).T)
        first += float(np.trace(half))
        second += float((half * half.T).sum())
        solved[rows] = inverse @ probes[rows]
        whole = half @ inverse if len(rows) <= MOST_COMPARED else None
        spread[rows] = (half * inverse).sum(axis=1) if whole is None else np.diagonal(whole)
        covariance.append(whole)
    third = 0.0
    for start in range(0, probes.shape[1], _PROBES):
        part = slice(start, start + _PROBES)
        third += float((solved[:, part] * (by_item.T @ (own @ (by_item @ probes[:, part])))).sum())
    third /= 1 if exact else probes.shape[1]
    total = float(squares.diagonal().sum())
    return Tastes(
        left, right, cells, degree - first, total - 2 * third + second, spread, tuple(covariance)
    )  # fmt: skip


def _signs(count: int, many: int) -> FloatArray:
    return np.random.default_rng(0).choice([-1.0, 1.0], (count, max(many, _PROBES)))
