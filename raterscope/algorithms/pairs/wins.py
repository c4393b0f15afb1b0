"""Wins, losses and ties of every two items, intervals of ranks, and annotators' preferences.

The model of preferences is choice = s_left - s_right + t_left - t_right + noise, where t, an annotator's
preference of each item, has variance tau and mean 0 in the crowd. Choices of one annotator on the same items
are therefore correlated, and many comparisons by few annotators determine the scores less well than the same
number of comparisons by different annotators. With D_a the comparisons of annotator a and L_a = D_a'D_a their
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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.array_operations import running_count
from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs

_LEVEL = 0.95
_ROWS = 64
"""Number of rows of a table that are processed at a time, which stay in the processor's cache."""
DENSE = 4_000_000
"""Maximum number of cells of an array; larger tables are sparse."""
MAX_COMPARED = 1000
"""Maximum number of items in a table of wins, and in a component for intervals of ranks."""


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
        """Return the share won by the item of the row, with a tie as half; NaN without a comparison."""
        number = self.compared()
        return np.where(number > 0, (self.won + self.ties / 2) / np.maximum(number, 1), np.nan)

    def interval(self, first: int, second: int) -> tuple[float, float]:
        """Return the 95 % interval of a share [wilson1927]_; ties make it wider than necessary.

        Answers of the same annotator count as independent.
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


def rank_intervals(
    score: FloatArray, variance: FloatArray, covariance: Callable[[slice], FloatArray], freedom: int
) -> tuple[IndexArray, IndexArray]:
    """Return both ends of the marginal 95 % interval of each linked item's rank, (m,) [mogstad2024]_.

    An item ranks below items that are significantly better, and above items that are significantly worse.
    Only the sign of a difference can be wrong, in one direction, so that its test is one-sided. Holm's
    step-down correction [holm1979]_ counts only the items that are not yet significant.

    `score`, `variance`: (m,).
    `covariance`: returns rows of the covariance of the scores, (m, m).
    `freedom`: degrees of freedom of the noise.
    """
    from scipy.special import stdtrit

    many = len(score)
    needed = stdtrit(freedom, 1 - (1 - _LEVEL) / np.arange(many - 1, 0, -1))
    better, worse = np.empty(many, dtype=np.int32), np.empty(many, dtype=np.int32)
    for start in range(0, many, _ROWS):
        rows = slice(start, start + _ROWS)
        spread = covariance(rows)
        spread *= -2
        spread += variance[rows, None]
        spread += variance
        np.maximum(spread, 0.0, out=spread)
        gap = score[rows, None] - score
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.divide(gap * gap, spread, out=spread)  # squared, NaN of an item from itself
        # Holm's steps, all significant items at a time: the critical value falls with their number.
        number = np.zeros(len(gap), dtype=np.int64)
        while True:
            certain = distance > needed[np.minimum(number, many - 2), None] ** 2
            before, number = number, _count_true(certain)
            if np.array_equal(before, number):
                break
        above = _count_true(certain & (gap > 0))
        better[rows], worse[rows] = number - above, above
    return 1 + better, many - worse


def _count_true(table: BoolArray) -> NDArray[np.int64]:
    """Count the true values of each row, by the bits of packed bytes."""
    bits = np.bitwise_count(np.packbits(table, axis=1))
    return np.asarray(bits.sum(axis=1, dtype=np.int64), dtype=np.int64)


_CELLS = 20_000_000
_EXACT, _PROBES = 20_000_000, 8
"""Maximum number of items times comparisons for an exact trace, and number of vectors at a time. With more,
random vectors estimate the trace, which is part of a correction that is small if there are many comparisons.
"""

_LEAST = 1e-9
_AT_ONCE = 500_000
"""Number of products of two entries of a table that are summed at a time; other threads wait for
milliseconds.
"""


@dataclass(frozen=True, eq=False)
class Preferences:
    """Terms of the variance by preferences that do not depend on the biases.

    With y_a the choices of annotator a and d_a = D_a'1, the sum of squares of D_a'r_a is a quadratic function
    of scores and biases; its coefficients are kept.
    """

    # crossed, own: expected sums of squares: of D_a'r_a from noise of unit variance (equal to that of all
    # residuals from preferences of unit variance), and of D_a'r_a from preferences of unit variance
    crossed: float
    own: float
    # spread: (n,): variance of each score by preferences of unit variance; 0 for items never compared
    spread: FloatArray
    covariance: tuple[FloatArray | None, ...]  # of each component; None if its ranks have no intervals
    squares: Any  # (n, n): Q, an array or a sparse table
    pull: FloatArray  # (n,): sum of L_a D_a'y_a
    total: float  # sum of squares of D_a'y_a
    # (p, n): d_a'L_a, an array or a sparse table
    shifted: Any
    # shifted_pull, shifted_squares: (p,): d_a'D_a'y_a and d_a'd_a
    shifted_pull: FloatArray
    shifted_squares: FloatArray

    def variances(
        self, residual: float, freedom: int, score: FloatArray, biased: NDArray[np.int64], bias: FloatArray
    ) -> tuple[float, float]:
        """Estimate the variances of the noise and of the preferences.

        `residual`: sum of squares of the residuals of the scores, (n,), and of the annotators' biases, (b,).
        """
        scale = self.own * freedom - self.crossed**2
        if freedom <= 0 or scale <= _LEAST * self.own * freedom:
            return residual / freedom if freedom > 0 else float("nan"), 0.0
        own = self.total + float(score @ (self.squares @ score - 2 * self.pull))
        across = self.shifted_pull[biased] - self.shifted[biased] @ score
        own += float(bias @ (self.shifted_squares[biased] * bias - 2 * across))
        preference = max((max(own, 0.0) * freedom - residual * self.crossed) / scale, 0.0)
        return max(residual - preference * self.crossed, 0.0) / freedom, preference


def estimate_preferences(
    pairs: Pairs, items: Sequence[NDArray[np.int64]], inverses: Sequence[FloatArray], degree: float
) -> Preferences:
    """Prepare the variance by preferences.

    `items`, `inverses`: items of each component, and the pseudo-inverse of its Laplacian. `degree`: trace of
    the Laplacian.
    """
    from scipy.sparse import coo_array, csr_array

    count, comparisons, annotators = len(pairs.items), len(pairs), len(pairs.annotators)
    key = pairs.annotator.astype(np.int64) * count + np.stack([pairs.left, pairs.right])
    if annotators * count <= _CELLS:
        occupied = np.zeros(annotators * count, dtype=bool)
        occupied[key] = True
        cell, names = (running_count(occupied) - 1)[key], np.flatnonzero(occupied)
    else:
        names, cell = np.unique(key, return_inverse=True)
        cell = cell.reshape(key.shape)
    annotator, item = np.divmod(names, max(count, 1))
    (left, right), cells = cell, len(item)
    known = pairs.each_weight()
    weight = np.ones(comparisons) if known is None else known
    value = np.concatenate([weight, weight, -weight, -weight])
    row, column = np.concatenate([left, right, left, right]), np.concatenate([left, right, right, left])
    own = coo_array((value, (row, column)), shape=(cells, cells)).tocsr()
    by_item = csr_array((own.data, item[own.indices], own.indptr), shape=(cells, count))
    squares = _squares(by_item)
    chosen, side = (
        np.bincount(left, values, cells) - np.bincount(right, values, cells)
        for values in (weight * pairs.choice, weight)
    )
    begin = np.searchsorted(annotator, np.arange(annotators + 1))
    shifted = csr_array((side, np.arange(cells), begin), shape=(annotators, cells)) @ by_item
    spread = np.zeros(count)
    first = second = 0.0
    covariance: list[FloatArray | None] = []
    exact = count * comparisons <= _EXACT
    probes = np.eye(count) if exact else _signs(count, _EXACT // comparisons)
    solved = np.zeros_like(probes)
    for rows, inverse in zip(items, inverses, strict=True):
        half = np.asarray((squares[rows][:, rows] @ inverse).T)
        first += float(np.trace(half))
        second += float((half * half.T).sum())
        solved[rows] = inverse @ probes[rows]
        whole = half @ inverse if len(rows) <= MAX_COMPARED else None
        spread[rows] = (half * inverse).sum(axis=1) if whole is None else np.diagonal(whole)
        covariance.append(whole)
    third = 0.0
    for start in range(0, probes.shape[1], _PROBES):
        part = slice(start, start + _PROBES)
        third += float((solved[:, part] * (by_item.T @ (own @ (by_item @ probes[:, part])))).sum())
    third /= 1 if exact else probes.shape[1]
    trace = float(squares.diagonal().sum())
    return Preferences(
        degree - first, trace - 2 * third + second, spread, tuple(covariance), squares, by_item.T @ chosen,
        float(chosen @ chosen), shifted.toarray() if annotators * count <= DENSE else shifted,
        *(np.bincount(annotator, side * sums, annotators).astype(np.float64) for sums in (chosen, side)),
    )  # fmt: skip


def _squares(table: Any) -> Any:
    """Multiply a sparse table's transpose by the table; SciPy takes three times as long for few columns.

    Rows with the same number of entries are multiplied together.
    """
    many = table.shape[1]
    if many > MAX_COMPARED:
        return (table.T @ table).tocsr()
    total, size = np.zeros(many * many), np.diff(table.indptr)
    for entries in np.unique(size[size > 0]).tolist():
        begin = table.indptr[:-1][size == entries].astype(np.int64)
        first, second = np.triu_indices(entries)
        step = max(_AT_ONCE // len(first), 1)
        for start in range(0, len(begin), step):
            at = begin[start : start + step, None] + np.arange(entries)
            column, value = table.indices[at].astype(np.int64), table.data[at]
            cell = column[:, first] * many + column[:, second]
            total += np.bincount(cell.ravel(), (value[:, first] * value[:, second]).ravel(), many * many)
    half = total.reshape(many, many)
    return half + half.T - np.diag(np.diagonal(half))


def _signs(count: int, many: int) -> FloatArray:
    return np.random.default_rng(0).choice([-1.0, 1.0], (count, max(many, _PROBES)))
