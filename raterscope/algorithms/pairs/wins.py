"""Wins, losses and ties of every two items, intervals of ranks, and tastes of annotators.

The model of tastes is choice = s_left - s_right + t_left - t_right + noise, where t, an annotator's taste of
each item, has variance tau and mean 0 in the crowd. Choices of one annotator on the same items are therefore
correlated, and n annotators with many comparisons each determine the scores less well than as many
comparisons by different annotators. With D_a the comparisons of annotator a and L_a = D_a'D_a their
Laplacian, the scores L+ D'y have the covariance sigma^2 L+ + tau L+ Q L+ where Q is the sum of the L_a^2.

The variances follow from two sums of squares, of all residuals r and of D_a'r_a, which are set equal to their
expectations (the method of moments, [henderson1953]_).

References
----------
.. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22 (1927) 209-212, doi:10.1080/01621459.1927.10502953.
.. [holm1979] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
   Statistics 6 (1979) 65-70.
.. [mogstad2024] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference for ranks with applications
   to mobility across neighbourhoods and academic achievement across countries", The Review of Economic
   Studies 91 (2024) 476-518, doi:10.1093/restud/rdad006.
.. [henderson1953] C. R. Henderson, "Estimation of variance and covariance components", Biometrics 9 (1953)
   226-252, doi:10.2307/3001853.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.array_operations import running_count
from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs

_LEVEL = 0.95
_ROWS = 64
"""Rows of a table worked on at a time: they stay in the processor's cache."""
MOST_COMPARED = 1000
"""Largest number of items of a table of wins, and of a component whose ranks get intervals."""


@dataclass(frozen=True, eq=False)
class Wins:
    """Number of times that each of n items, by row, was preferred to each other item, by column."""

    # (n, n): comparisons in which the item of the row was preferred; the losses are its transpose
    won: NDArray[np.int64]
    ties: NDArray[np.int64]  # (n, n)

    def compared(self) -> NDArray[np.int64]:
        """Return the number of comparisons of every two items."""
        return self.won + self.won.T + self.ties

    def share(self) -> FloatArray:
        """Return the share that the item of the row won, a tie as half; NaN without a comparison."""
        number = self.compared()
        return np.where(number > 0, (self.won + self.ties / 2) / np.maximum(number, 1), np.nan)

    def interval(self, first: int, second: int) -> tuple[float, float]:
        """Return the 95 % interval of a share, [wilson1927]_; ties make it wider than necessary.

        Answers of the same annotator are counted as independent.
        """
        number = int(self.compared()[first, second])
        return wilson(float(self.won[first, second] + self.ties[first, second] / 2), number)


Totals = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Wins, losses and ties of each item, (n,) each."""


def count_totals(pairs: Pairs) -> Totals:
    """Count each item's wins, losses and ties."""
    count = len(pairs.items)
    both = np.concatenate([pairs.left, pairs.right])
    choice = np.concatenate([pairs.choice, -pairs.choice])
    won, lost, tied = (
        np.bincount(both[rows], minlength=count) for rows in (choice > 0, choice < 0, choice == 0)
    )
    return won, lost, tied


def count_wins(pairs: Pairs) -> Wins:
    """Count wins and ties of all items."""
    count = len(pairs.items)
    left_wins = pairs.choice > 0
    winner, loser = np.where(left_wins, (pairs.left, pairs.right), (pairs.right, pairs.left))
    cell, is_tie = winner.astype(np.int64) * count + loser, pairs.choice == 0
    won, tied = (
        np.bincount(cell[rows], minlength=count * count).reshape(count, count) for rows in (~is_tie, is_tie)
    )
    return Wins(won, tied + tied.T)


def rank_intervals(score: FloatArray, covariance: FloatArray, freedom: int) -> tuple[IndexArray, IndexArray]:
    """Return both ends of the 95 % interval of each linked item's rank by itself, (m,), [mogstad2024]_.

    An item ranks below those that are better with certainty, and above those that are worse. Only the sign of
    a difference can be wrong, in one direction, so that its test is one-sided. Holm's step-down correction
    [holm1979]_ counts only the items that are not yet certain.

    `score`: (m,).
    `covariance`: (m, m), covariance of the scores.
    `freedom`: degrees of freedom of the noise.
    """
    from scipy.special import stdtrit

    many, own = len(score), np.diagonal(covariance)
    needed = stdtrit(freedom, 1 - (1 - _LEVEL) / np.arange(many - 1, 0, -1))
    better, worse = np.empty(many, dtype=np.int32), np.empty(many, dtype=np.int32)
    for start in range(0, many, _ROWS):
        rows = slice(start, start + _ROWS)
        spread = own[rows, None] + own[None, :]
        spread -= 2 * covariance[rows]
        np.sqrt(np.maximum(spread, 0.0, out=spread), out=spread)
        gap = score[rows, None] - score[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.divide(gap, spread, out=gap)
        distance[np.isnan(distance)] = 0.0
        # Holm's steps, as many at a time as are certain: the critical value falls with the number of them.
        away, number = np.abs(distance, out=spread), np.zeros(len(distance), dtype=np.int64)
        while True:
            least = needed[np.minimum(number, many - 2), None]
            certain = _count_true(away > least)
            if np.array_equal(certain, number):
                break
            number = certain
        above = _count_true(distance > least)
        better[rows], worse[rows] = number - above, above
    return 1 + better, many - worse


def _count_true(table: BoolArray) -> NDArray[np.int64]:
    """Count the true values of each row, by the bits of packed bytes."""
    bits = np.bitwise_count(np.packbits(table, axis=1))
    return np.asarray(bits.sum(axis=1, dtype=np.int64), dtype=np.int64)


_CELLS = 20_000_000
_EXACT, _PROBES = 20_000_000, 8
"""Items times comparisons up to which a trace is exact, and vectors at a time. With more, random vectors
estimate it: the trace is part of a correction that is small if there are many comparisons."""

_LEAST = 1e-9
_MANY_ENTRIES = 500_000
"""Entries of a table from which compiled code multiplies it; for fewer, loading it takes longer."""


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
        cell = (running_count(occupied) - 1)[key]
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
    squares = _squares(by_item)
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


def _squares(table: Any) -> Any:
    """Multiply a sparse table's transpose by the table; SciPy takes ten times longer for few columns."""
    if table.nnz < _MANY_ENTRIES or table.shape[1] > MOST_COMPARED:
        return (table.T @ table).tocsr()
    from scipy.sparse import csr_array

    from raterscope.algorithms.pairs._kernels import add_squares

    total = np.zeros((table.shape[1], table.shape[1]))
    begin, column = (index.astype(np.int64, copy=False) for index in (table.indptr, table.indices))
    add_squares(begin, column, table.data, total)
    return csr_array(total)


def _signs(count: int, many: int) -> FloatArray:
    return np.random.default_rng(0).choice([-1.0, 1.0], (count, max(many, _PROBES)))
