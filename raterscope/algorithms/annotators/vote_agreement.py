"""Agreement of votes beyond chance, for any number of annotators and missing votes, with intervals.

References
----------
.. [gwet2014] K. L. Gwet, "Handbook of inter-rater reliability", 4th edition, Advanced Analytics (2014)
   (chapters 2 to 5).
.. [gwet2008] K. L. Gwet, "Computing inter-rater reliability and its variance in the presence of high
   agreement", British Journal of Mathematical and Statistical Psychology 61 (2008) 29-48,
   doi:10.1348/000711006X126600.
.. [krippendorff2018] K. Krippendorff, "Content analysis: an introduction to its methodology", 4th edition,
   Sage (2018) (chapter 12).
.. [perks1947] W. Perks, "Some observations on inverse probability including a new indifference rule", Journal
   of the Institute of Actuaries 73 (1947) 285-334.
.. [fleiss1971] J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin 76
   (1971) 378-382, doi:10.1037/h0031619.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.distinct_values import occurrences

FloatArray = NDArray[np.float64]

Scale = Literal["nominal", "ordinal", "linear", "interval"]
"""nominal: answers are alike or not; ordinal: by their order; linear, interval: by the absolute and by the
squared difference (linear and quadratic weights)."""

BLOCKS = 2000
"""Most blocks of tasks that the bootstrap draws: more tasks are put together at random."""

DRAWS = 2000
PERKS = 1.0
"""Weight that [perks1947]_ adds to a table of counts, spread evenly over its cells."""

_MOST_ADDED = 150
"""Different tasks that are added, at most."""

_CELLS = 4_000_000
LEVEL = 0.95


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement with its 95 % interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class VoteAgreement:
    """Agreement of annotators on tasks."""

    percent: Coefficient  # share of pairs of votes on a task that agree, weighted unless nominal
    # fleiss, gwet, krippendorff: Fleiss' kappa; Gwet's AC1, or AC2 on another scale than nominal;
    # Krippendorff's alpha
    fleiss: Coefficient
    gwet: Coefficient
    krippendorff: Coefficient
    tasks: int  # tasks with two votes or more
    votes: int  # their votes


def vote_agreement(
    task: ArrayLike,
    answer: ArrayLike,
    answers: int,
    *,
    scale: Scale = "nominal",
    values: Sequence[float] | None = None,
    apart: FloatArray | None = None,
    seed: int = 0,
) -> VoteAgreement:
    """Measure the agreement of votes.

    Coefficients are (observed - expected) / (1 - expected) agreement, and differ in what they expect.
    Intervals are percentiles of a bootstrap over tasks, so they include which tasks were drawn, but not
    which annotators. Tasks are drawn from those given and one more, whose two votes are spread over all pairs
    of answers ([perks1947]_): else the interval of few tasks is too narrow (20 tasks with a rare answer: it
    held the true alpha in 70 % of simulations).

    `task`, `answer`: (V,), the task and the answer of each vote, from 0; at most one vote of an annotator on
        a task.
    `answers`: number of possible answers.
    `scale`: scale of the answers, in their order.
    `values`: values of the answers on a linear or interval scale; by default 0, 1, 2 ...
    `apart`: (J, J), distances of answers, 0 to 1, instead of those of a scale. Alpha uses them as they are,
        the other coefficients as weights.
    Raises `ValueError` if the scale is unknown, or the numbers of votes or values differ.

    Agreement and expected agreement by Fleiss and Gwet: [gwet2014]_, equations 2.11 to 2.14 (nominal) and 3.5
    to 3.12 (weighted); alpha: [krippendorff2018]_, section 12.3. On an ordinal scale kappa and AC2 use
    Gwet's ordinal weights, and alpha its ordinal metric; on a linear scale all use absolute differences, on
    an interval scale squared ones.
    """
    tasks, given = np.asarray(task), np.asarray(answer)
    if tasks.shape != given.shape or tasks.ndim != 1:
        raise ValueError(f"{tasks.shape} tasks and {given.shape} answers; expected one of each for a vote.")
    if scale not in get_args(Scale):
        raise ValueError(f"{scale!r} is no scale; expected one of {', '.join(get_args(Scale))}.")
    points = np.arange(answers, dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
    if len(points) != answers:
        raise ValueError(f"{len(points)} values of {answers} answers.")
    counts = _counts(tasks, given, answers)
    totals = np.asarray(counts.sum(axis=1)).ravel()
    several = totals >= 2
    paired = counts[several]
    alike = _weights(scale, points) if apart is None else 1 - apart
    marginal = np.asarray(paired.sum(axis=0)).ravel()
    apart = _distances(scale, points, marginal) if apart is None else apart
    sums = _block_sums(counts, paired, totals, alike, apart, seed)
    more, chances = _added_tasks(len(totals), len(sums), alike, apart, seed)
    drawn = np.random.default_rng(seed).multinomial(len(sums), chances, DRAWS)
    figures = _coefficients(np.vstack([sums.sum(axis=0), drawn @ np.vstack([sums, more])]), alike, apart)
    percent, fleiss, gwet, krippendorff = (_with_interval(figure) for figure in figures)
    return VoteAgreement(percent, fleiss, gwet, krippendorff, int(several.sum()), int(marginal.sum()))


def agreement_by_annotator(
    task: NDArray[np.integer], answer: NDArray[np.integer], annotator: NDArray[np.integer], annotators: int
) -> FloatArray:
    """Return the share of others' votes on the same tasks that agree with each annotator's, (K, 3).

    The interval is Wilson's for as many votes as give the observed variance over tasks. Rows are NaN for
    annotators without a task that others answered.

    `task`, `answer`, `annotator`: (V,), those of each vote; at most one vote of an annotator on a task.
    `annotators`: K.
    """
    agreement = np.full((annotators, 3), np.nan)
    if not len(task):
        return agreement
    cell = task.astype(np.int64) * (int(answer.max()) + 1) + answer
    number = occurrences(task)
    shared = number > 1
    share = (occurrences(cell)[shared] - 1) / (number[shared] - 1)
    voter = annotator[shared]
    count = np.bincount(voter, minlength=annotators)
    mean = np.bincount(voter, share, annotators) / np.maximum(count, 1)
    variance = np.bincount(voter, np.square(share - mean[voter]), annotators) / np.maximum(count, 1)
    effective = np.where(variance > 0, mean * (1 - mean) / np.maximum(variance, 1e-12), 1.0) * count
    for row in np.flatnonzero(count).tolist():
        low, high = wilson(float(mean[row] * effective[row]), float(effective[row]))
        agreement[row] = mean[row], low, high
    return agreement


def _counts(task: NDArray[np.integer], answer: NDArray[np.integer], answers: int) -> scipy.sparse.csr_array:
    """Count the votes for each answer of each task with votes: (N, J)."""
    shape = (int(task.max(initial=-1)) + 1, answers)
    counts = scipy.sparse.csr_array((np.ones(len(task)), (task, answer.astype(task.dtype))), shape=shape)
    return counts[np.diff(counts.indptr) > 0]


def _weights(scale: Scale, points: FloatArray) -> FloatArray:
    """Return how far two answers agree, 0 to 1: (J, J)."""
    count = len(points)
    if scale == "nominal" or count < 2:
        return np.eye(count)
    if scale in ("linear", "interval"):
        apart = np.abs(points[:, None] - points[None, :]) ** (1 if scale == "linear" else 2)
        return np.asarray(1 - apart / apart.max()) if apart.max() > 0 else np.ones((count, count))
    # Gwet's ordinal weights: pairs of answers from one to the other, of all pairs.
    rank = np.argsort(np.argsort(points, kind="stable"))
    between = np.abs(rank[:, None] - rank[None, :]) + 1
    apart = between * (between - 1) / 2
    return np.asarray(1 - apart / apart.max())


def _distances(scale: Scale, points: FloatArray, marginal: FloatArray) -> FloatArray:
    """Return Krippendorff's squared distances between answers: (J, J)."""
    if scale == "nominal":
        return 1 - np.eye(len(points))
    if scale in ("linear", "interval"):
        return np.asarray(np.abs(points[:, None] - points[None, :]) ** (1 if scale == "linear" else 2))
    order = np.argsort(points, kind="stable")
    middle = np.empty(len(points))
    middle[order] = np.cumsum(marginal[order]) - marginal[order] / 2
    return np.asarray((middle[:, None] - middle[None, :]) ** 2)


def _block_sums(
    counts: scipy.sparse.csr_array, paired: scipy.sparse.csr_array, totals: FloatArray, alike: FloatArray,
    apart: FloatArray, seed: int,
) -> FloatArray:  # fmt: skip
    """Sum what the coefficients need over blocks of tasks.

    The columns of the result, (B, 4 + 2 J), are: tasks with votes; tasks with two votes or more, their shares
    of agreeing pairs and distances of pairs; shares of answers over all tasks; numbers of answers over tasks
    with two votes or more.
    """
    several = totals >= 2
    answers = counts.shape[1]
    rows = np.zeros((len(totals), 4))
    rows[:, 0], rows[:, 1] = 1, several
    number = totals[several]
    agreeing = _pair_sums(paired, alike) - number
    distance = _pair_sums(paired, apart)
    rows[several, 2] = agreeing / (number * (number - 1))
    rows[several, 3] = distance / (number - 1)
    blocks = min(BLOCKS, len(totals))
    block = np.random.default_rng(seed).permutation(np.arange(len(totals)) % max(blocks, 1))
    ones, all_rows = np.ones(len(totals)), np.arange(len(totals))
    gather = scipy.sparse.csr_array((ones, (block, all_rows)), shape=(blocks, len(totals)))
    shares = counts.multiply(1 / np.maximum(totals, 1)[:, None])
    sums = np.zeros((blocks, 4 + 2 * answers))
    sums[:, :4] = gather @ rows
    sums[:, 4 : 4 + answers] = (gather @ scipy.sparse.csr_array(shares)).toarray()
    sums[:, 4 + answers :] = (gather[:, several] @ paired).toarray()
    return sums


def _added_tasks(
    tasks: int, blocks: int, alike: FloatArray, apart: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the sums of possible tasks with two votes, and the chances of each block and of these tasks.

    There are none if tasks are put together in blocks: then they are many.
    """
    answers = len(alike)
    if tasks > blocks or not tasks:
        return np.empty((0, 4 + 2 * answers)), np.full(blocks, 1 / max(blocks, 1))
    first, second = (index.ravel() for index in np.indices((answers, answers)))
    if len(first) > _MOST_ADDED:
        chosen = np.random.default_rng(seed).choice(len(first), _MOST_ADDED, replace=False)
        first, second = first[chosen], second[chosen]
    rows = np.zeros((len(first), 4 + 2 * answers))
    rows[:, :2] = 1
    rows[:, 2], rows[:, 3] = alike[first, second], 2 * apart[first, second]
    for index in (first, second):
        rows[np.arange(len(first)), 4 + index] += 0.5
        rows[np.arange(len(first)), 4 + answers + index] += 1
    chances = np.concatenate([np.ones(tasks), np.full(len(first), PERKS / len(first))])
    return rows, chances / chances.sum()


def _pair_sums(counts: scipy.sparse.csr_array, matrix: FloatArray) -> FloatArray:
    """Sum an entry of a matrix over all pairs of votes on each task, a part of the tasks at a time."""
    step = max(1, _CELLS // len(matrix))
    parts = (counts[at : at + step] for at in range(0, counts.shape[0], step))
    sums = [np.asarray(part.multiply(part @ matrix).sum(axis=1)).ravel() for part in parts]
    return np.concatenate([np.empty(0), *sums])


def _coefficients(sums: FloatArray, alike: FloatArray, apart: FloatArray) -> tuple[FloatArray, ...]:
    """Compute percent agreement, Fleiss' kappa, Gwet's AC and alpha of each row of sums."""
    answers = len(alike)
    with np.errstate(invalid="ignore", divide="ignore"):
        percent = sums[:, 2] / sums[:, 1]
        share = sums[:, 4 : 4 + answers] / sums[:, :1]
        fleiss = _beyond(percent, ((share @ alike) * share).sum(axis=1))
        spread = (share * (1 - share)).sum(axis=1)
        gwet = _beyond(percent, alike.sum() / (answers * (answers - 1)) * spread)
        numbers = sums[:, 4 + answers :]
        total = numbers.sum(axis=1)
        observed = sums[:, 3] / total
        expected = ((numbers @ apart) * numbers).sum(axis=1) / (total * (total - 1))
        krippendorff = np.where(expected > 0, 1 - observed / expected, np.nan)
    return percent, fleiss, gwet, krippendorff


def _beyond(observed: FloatArray, expected: FloatArray) -> FloatArray:
    return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


def _with_interval(figures: FloatArray) -> Coefficient:
    """Make a coefficient of its value and the bootstrap's draws, which follow it."""
    value, drawn = float(figures[0]), figures[1:][np.isfinite(figures[1:])]
    if not np.isfinite(value) or not len(drawn):
        return Coefficient(value, float("nan"), float("nan"))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Coefficient(value, min(float(low), value), max(float(high), value))
