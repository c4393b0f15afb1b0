"""Wins, losses and ties of every two items, and intervals of ranks.

References
----------
.. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22 (1927) 209-212, doi:10.1080/01621459.1927.10502953.
.. [holm1979] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
   Statistics 6 (1979) 65-70.
.. [mogstad2024] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, "Inference for ranks with applications
   to mobility across neighbourhoods and academic achievement across countries", The Review of Economic
   Studies 91 (2024) 476-518, doi:10.1093/restud/rdad006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.pairs.data import FloatArray, IndexArray, Pairs

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
    """Count wins and ties of all items.

    Examples
    --------
    >>> pairs = Pairs([0, 0, 1], [0, 1, 0], [1, 0, 1], [1.0, -1.0, 0.0], ("kim", "lee"), ("a", "b"))
    >>> wins = count_wins(pairs)
    >>> wins.won.tolist(), wins.ties.tolist()
    ([[0, 2], [0, 0]], [[0, 1], [1, 0]])
    """
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
        number = np.zeros(len(distance), dtype=np.int64)
        while True:
            least = needed[np.minimum(number, many - 2), None]
            above = (distance > least).sum(axis=1)
            below = (distance < -least).sum(axis=1)
            if np.array_equal(above + below, number):
                break
            number = above + below
        better[rows], worse[rows] = below, above
    return 1 + better, many - worse
