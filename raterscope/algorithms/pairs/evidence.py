"""Behaviour of annotators, and the evidence for and against one annotator's bias to a side.

Annotators are not flagged, leaning or one-sided. The paper calls them good, ugly and bad (sections 1 and 3.3
of the position bias paper). `index_pairs` sorts all comparisons once, so that the evidence on one annotator
or pair only reads their own comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import BEHAVIOURS, BoolArray, FloatArray, IndexArray, Pairs
from raterscope.algorithms.progress import Watch, silent

BAD_SHARE = 0.95
"""Minimum share of one side for a flagged annotator to be bad; the others are ugly."""

LEAST = 5
"""Minimum number of answers for stating that all are for one side."""

_GOOD, _UGLY, _BAD, _UNDECIDABLE = range(len(BEHAVIOURS))


def side_share(pairs: Pairs) -> FloatArray:
    """Return the share of each annotator's more frequent side, (p,), without ties; NaN without any side."""
    left, right, _ = pairs.counts()
    sided = left + right
    return np.where(sided > 0, np.maximum(left, right) / np.maximum(sided, 1), np.nan)


def behaviours(pairs: Pairs, flagged: BoolArray, decidable: BoolArray | None = None) -> NDArray[np.int8]:
    """Classify annotators by `BEHAVIOURS`, (p,): the flagged are bad or ugly, others good or undecidable.

    Bad annotators always click one side; ugly annotators click one side more often, mainly on close pairs
    (section 1). The paper defines no threshold. Here bad annotators chose one side in `BAD_SHARE` of their
    answers without ties, 19 of 20. In the paper's table 8 these are all 18 annotators who never clicked one
    of the sides, and none of the 18 others, who chose one side in at most 13 of 15 answers. An annotator who
    clicks one side blindly in 7 of 10 cases, as in the simulated study, chooses it in 85 % of answers and is
    ugly.

    `flagged`: (p,). `decidable`: (p,), True for annotators who are good if not flagged; by default all.
    """
    bad = np.nan_to_num(side_share(pairs)) >= BAD_SHARE
    default = _GOOD if decidable is None else np.where(decidable, _GOOD, _UNDECIDABLE)
    return np.where(flagged, np.where(bad, _BAD, _UGLY), default).astype(np.int8)


def one_sided(pairs: Pairs, least: int = LEAST) -> BoolArray:
    """Return whether each annotator, (p,), gave only answers for one side, flagged or not.

    This does not prove a bias, because the better item may have been on that side each time. But in a crowd
    without noise no test can find a bias, and these annotators need a review.
    """
    left, right, ties = pairs.counts()
    same_side = (np.minimum(left, right) == 0) & (ties == 0)
    return np.asarray(same_side & (np.maximum(left, right) >= least))


_BLOCK = 16_384
"""Number of comparisons processed at a time, which stay in the processor's cache."""


_DIGITS = 9
"""Decimals to which differences of scores are rounded: equal scores differ by rounding."""


def match_ratio(pairs: Pairs, score: FloatArray) -> FloatArray:
    """Return each annotator's match ratio, (p,); see `match_ratios`."""
    return match_ratios(pairs, score)[0]


def match_ratios(pairs: Pairs, score: FloatArray) -> tuple[FloatArray, float]:
    """Return the share of answers that agree with the ranking, for each annotator and for all (section 3.3).

    Ties do not count; with equal scores each answer counts half. `score`: (n,). The shares, (p,) and a
    number, are NaN without answers other than ties.
    """
    agreed = np.empty(len(pairs))  # 1 if the answer agrees, -1 if not
    for start in range(0, len(pairs), _BLOCK):
        rows = slice(start, start + _BLOCK)
        gap = score.take(pairs.left[rows], mode="clip")
        gap -= score.take(pairs.right[rows], mode="clip")
        np.round(gap, _DIGITS, out=gap)
        np.sign(gap * np.sign(pairs.choice[rows]), out=agreed[rows])
    count = len(pairs.annotators)
    balance = np.bincount(pairs.annotator, weights=agreed, minlength=count)
    tied = pairs.choice == 0
    total = np.bincount(pairs.annotator[~tied] if tied.any() else pairs.annotator, minlength=count)
    balance, total = np.append(balance, balance.sum()), np.append(total, total.sum())
    ratio = np.where(total > 0, (total + balance) / np.maximum(2.0 * total, 1.0), np.nan)
    return ratio[:-1], float(ratio[-1])


_LEVEL = 0.95
_PARTS = 3
_FEWEST = 10
_MAX_WINDOWS = 24

LongArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairIndex:
    """Comparisons sorted by annotator and by pair of items."""

    pairs: Pairs
    score: FloatArray  # (n,): the corrected ranking, taken as right
    match: float  # share of all answers that agree with it
    # near, far: limits of the difference of scores for close and for distant pairs: a third of the
    # comparisons each
    near: float
    far: float
    # by_annotator, annotator_start: (E,), (p + 1,): comparisons of annotator a:
    # ``by_annotator[annotator_start[a]:annotator_start[a + 1]]``, in the order of time if known, otherwise of
    # the file
    by_annotator: IndexArray
    annotator_start: LongArray
    # by_pair, pair_start: (E,), (m + 1,): the same for the m pairs that were compared, in the order of `key`
    by_pair: IndexArray
    pair_start: LongArray
    key: LongArray  # (m,): number of the lower item times n, and that of the higher one
    pair: IndexArray  # (E,): pair of each comparison
    # lower, higher, tied: (m,): number of preferences for the item of the lower number, of the higher one,
    # and of ties
    lower: IndexArray
    higher: IndexArray
    tied: IndexArray

    def of(self, annotator: int) -> IndexArray:
        """Return the indices of an annotator's c comparisons, (c,), in the order of time."""
        return self.by_annotator[self.annotator_start[annotator] : self.annotator_start[annotator + 1]]

    def between(self, first: int, other: int) -> IndexArray:
        """Return the indices of the c comparisons of two items, (c,)."""
        key = min(first, other) * len(self.pairs.items) + max(first, other)
        at = int(np.searchsorted(self.key, key))
        if at == len(self.key) or self.key[at] != key:
            return self.by_pair[:0]
        return self.by_pair[self.pair_start[at] : self.pair_start[at + 1]]


@dataclass(frozen=True, eq=False)
class Side:
    """Counts of choices of the left side among some comparisons."""

    left: int
    right: int
    share: float  # of left among the answers without ties; NaN without any
    expected: float  # the expected share of left by the ranking in the same comparisons; NaN without any


@dataclass(frozen=True, eq=False)
class OverTime:
    """Bias of one annotator in W windows with equal numbers of comparisons."""

    timed: bool  # True if the order is that of time; else it is that of the file
    at: FloatArray  # (W,): seconds, in the middle of each window; without times, the number of the comparison
    # bias, low, high: (W,): mean choice minus the prediction from scores, with a 95 % interval from the noise
    # within the windows
    bias: FloatArray
    low: FloatArray
    high: FloatArray
    count: IndexArray  # (W,)


@dataclass(frozen=True, eq=False)
class BiasEvidence:
    """k comparisons of one annotator that are evidence on a bias, the strongest first."""

    comparison: IndexArray  # (k,): numbers in the `Pairs`
    # same, otherwise, tied: (k,): number of other annotators' answers on the same two items: for the same
    # item, for the other item, and ties
    same: IndexArray
    otherwise: IndexArray
    tied: IndexArray
    gap: FloatArray  # (k,): difference of the scores against the answer; below 0 if they agree with it

    def __len__(self) -> int:
        return len(self.comparison)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence on one annotator."""

    annotator: int
    # 1 if the left side was chosen more often than by the ranking, -1 for the right side, 0 for neither
    side: int
    # all, doubtful, clear: for all comparisons, close pairs, and distant pairs; see `PairIndex`
    all: Side
    doubtful: Side
    clear: Side
    time: OverTime
    evidence_for: BiasEvidence  # the annotator's side was chosen against the ranking
    evidence_against: BiasEvidence  # the other side was chosen against the ranking
    # comparisons in which the other side was chosen, as in the ranking: evidence against a blind choice
    against_ranking: BiasEvidence


def index_pairs(pairs: Pairs, score: FloatArray, watch: Watch = silent) -> PairIndex:
    """Sort comparisons by annotator and by pair, once for all views.

    `score`: (n,), the corrected ranking.
    """
    watch(0.0, "sorting comparisons by time")
    order = np.arange(len(pairs), dtype=np.int32)
    if pairs.time is not None and bool((np.diff(np.nan_to_num(pairs.time)) < 0).any()):
        order = np.argsort(pairs.time, kind="stable").astype(np.int32)
    watch(0.3, "sorting comparisons by annotator")
    count = len(pairs.items)
    order, start = _sorted_by(pairs.annotator, len(pairs.annotators), order)
    watch(0.4, "sorting comparisons by pair")
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    by_pair, _ = _sorted_by(high, count, np.arange(len(pairs), dtype=np.int32))
    by_pair, _ = _sorted_by(low, count, by_pair)
    watch(0.6, "counting the answers of every pair")
    code = low[by_pair].astype(np.int64) * count + high[by_pair]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    pair = np.empty(len(pairs), dtype=np.int32)
    pair[by_pair] = np.repeat(np.arange(len(first)), np.diff(first, append=len(code)))
    preferred = np.where(pairs.left == low, 1, -1) * np.sign(pairs.choice)
    counts = [
        np.bincount(pair[preferred == value], minlength=len(first)).astype(np.int32) for value in (1, -1, 0)
    ]
    watch(0.9, "counting the answers of every pair")
    gap = np.abs(score[pairs.left] - score[pairs.right])
    cuts = [len(gap) * part // _PARTS for part in (1, _PARTS - 1)]
    near, far = np.partition(gap, cuts)[cuts].tolist() if len(gap) else (0.0, 0.0)
    watch(0.95, "counting answers with the ranking")
    return PairIndex(
        pairs, score, match_ratios(pairs, score)[1], near, far, order, start,
        by_pair, np.append(first, len(code)), code[first], pair, *counts,
    )  # fmt: skip


def _sorted_by(number: IndexArray, many: int, order: IndexArray) -> tuple[IndexArray, LongArray]:
    """Sort comparisons by a number below `many` (stable).

    A counting sort takes a tenth of the time of a comparison sort.
    """
    from scipy.sparse import coo_array

    ones, column = np.ones(len(order), dtype=np.int8), np.arange(len(order), dtype=np.int32)
    table = coo_array((ones, (number[order], column)), shape=(many, max(len(order), 1))).tocsr()
    return order[table.indices], table.indptr.astype(np.int64)


def evidence(crowd: PairIndex, annotator: int) -> Evidence:
    """Gather the evidence for and against one annotator's bias to a side."""
    pairs, score, own = crowd.pairs, crowd.score, crowd.of(annotator)
    choice = np.sign(pairs.choice[own])
    gap = np.round(score[pairs.left[own]] - score[pairs.right[own]], _DIGITS)
    decided = choice != 0
    overall = _side(choice, gap)
    beyond = overall.left - overall.expected * (overall.left + overall.right) if decided.any() else 0.0
    side = int(np.sign(np.round(beyond, _DIGITS)))
    preferred = np.where(pairs.left[own] < pairs.right[own], 1, -1) * choice
    pair = crowd.pair[own]
    # The annotator's own answers on the same two items do not count as answers of others.
    number = np.unique(pair, return_inverse=True)[1]
    votes = [
        counted[pair] - np.bincount(number[preferred == value], minlength=len(own) + 1)[number]
        for value, counted in ((1, crowd.lower), (-1, crowd.higher), (0, crowd.tied))
    ]
    same = np.where(preferred > 0, votes[0], votes[1]).astype(np.int32)
    otherwise = np.where(preferred > 0, votes[1], votes[0]).astype(np.int32)
    tied = votes[2].astype(np.int32)
    against = -choice * gap

    def speaking(rows: NDArray[np.bool_]) -> BiasEvidence:
        at = np.flatnonzero(rows)
        at = at[np.lexsort((same[at] - otherwise[at], -np.abs(against[at])))]
        return BiasEvidence(own[at], same[at], otherwise[at], tied[at], against[at])

    wrong = decided & (against > 0)
    return Evidence(
        annotator, side, overall,
        _side(choice, gap, np.abs(gap) < crowd.near), _side(choice, gap, np.abs(gap) >= crowd.far),
        over_time(crowd, annotator),
        speaking(wrong & (choice == side)), speaking(wrong & (choice == -side)),
        speaking(decided & (against < 0) & (choice == -side)),
    )  # fmt: skip


def over_time(crowd: PairIndex, annotator: int, windows: int | None = None) -> OverTime:
    """Compute an annotator's bias over time.

    `windows`: number of windows with equal numbers of comparisons; by default one for every 10, at most 24.
    Comparisons without a time are excluded if others have one.
    """
    from scipy.special import stdtrit

    pairs, own = crowd.pairs, crowd.of(annotator)
    timed = pairs.time is not None and bool(np.isfinite(pairs.time[own]).any())
    if timed:
        assert pairs.time is not None
        own = own[np.isfinite(pairs.time[own])]
        moment = pairs.time[own]
    else:
        moment = np.arange(1, len(own) + 1, dtype=np.float64)
    residual = pairs.choice[own] - crowd.score[pairs.left[own]] + crowd.score[pairs.right[own]]
    total = min(_MAX_WINDOWS, len(own) // _FEWEST) if windows is None else min(windows, len(own))
    total = max(total, min(1, len(own)))
    edge = np.arange(total + 1) * len(own) // max(total, 1)
    number = np.repeat(np.arange(total), np.diff(edge))
    count = np.bincount(number, minlength=total)
    bias = np.bincount(number, weights=residual, minlength=total) / np.maximum(count, 1)
    at = np.array([np.median(moment[low:high]) for low, high in pairwise(edge.tolist())])
    within, freedom = float(((residual - bias[number]) ** 2).sum()), len(own) - total
    if freedom > 0:
        wide = float(stdtrit(freedom, 0.5 + _LEVEL / 2)) * np.sqrt(within / freedom / np.maximum(count, 1))
    else:
        wide = np.full(total, np.nan)
    return OverTime(timed, at, bias, bias - wide, bias + wide, count.astype(np.int32))


def _side(choice: FloatArray, gap: FloatArray, rows: NDArray[np.bool_] | None = None) -> Side:
    if rows is not None:
        choice, gap = choice[rows], gap[rows]
    left, right = int((choice > 0).sum()), int((choice < 0).sum())
    if not left + right:
        return Side(left, right, float("nan"), float("nan"))
    return Side(left, right, left / (left + right), float((1 + np.sign(gap[choice != 0])).mean() / 2))
