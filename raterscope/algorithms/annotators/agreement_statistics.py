"""Chance-corrected agreement of votes, and agreement of raters' measurements, with intervals.

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
.. [shrout1979] P. E. Shrout and J. L. Fleiss, "Intraclass correlations: uses in assessing rater reliability",
   Psychological Bulletin 86 (1979) 420-428, doi:10.1037/0033-2909.86.2.420.
.. [mcgraw1996] K. O. McGraw and S. P. Wong, "Forming inferences about some intraclass correlation
   coefficients", Psychological Methods 1 (1996) 30-46, doi:10.1037/1082-989X.1.1.30.
.. [ionan2014] A. C. Ionan, M.-Y. C. Polley, L. M. McShane and K. K. Dobbin, "Comparison of confidence
   interval methods for an intra-class correlation coefficient (ICC)", BMC Medical Research Methodology 14
   (2014) 121, doi:10.1186/1471-2288-14-121.
.. [bland1986] J. M. Bland and D. G. Altman, "Statistical methods for assessing agreement between two methods
   of clinical measurement", The Lancet 327 (1986) 307-310, doi:10.1016/S0140-6736(86)90837-8.
.. [bland1999] J. M. Bland and D. G. Altman, "Measuring agreement in method comparison studies", Statistical
   Methods in Medical Research 8 (1999) 135-160, doi:10.1177/096228029900800204.
.. [lin1989] L. I. Lin, "A concordance correlation coefficient to evaluate reproducibility", Biometrics 45
   (1989) 255-268, doi:10.2307/2532051.
.. [lin2000] L. I. Lin, "A note on the concordance correlation coefficient", Biometrics 56 (2000) 324-325,
   doi:10.1111/j.0006-341X.2000.00324.x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.array_operations import occurrences

FloatArray = NDArray[np.float64]

Scale = Literal["nominal", "ordinal", "linear", "interval"]
"""nominal: answers are equal or not; ordinal: their order counts; linear, interval: the absolute or squared
difference counts (linear or quadratic weights).
"""

BLOCKS = 2000
"""Maximum number of blocks that the bootstrap draws; more tasks are grouped into this many blocks at random.
"""

DRAWS = 2000
PERKS = 1.0
"""Weight that [perks1947]_ adds to a table of counts, spread evenly over its cells."""

_MAX_ADDED = 150
"""Maximum number of distinct tasks that are added to smooth the bootstrap."""

_CELLS = 4_000_000
LEVEL = 0.95

_UPPER = (1 + LEVEL) / 2

_DRAWS = 20_000

REPEATABILITY = NormalDist().inv_cdf(_UPPER) * math.sqrt(2)
"""Ratio of the repeatability coefficient (95 % of differences are smaller) to the within-case standard
deviation.
"""


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
    Intervals are percentiles of a bootstrap over tasks, so they reflect the sampling of tasks, but not of
    annotators. Tasks are drawn from those given and an additional one, whose two votes are spread over all
    pairs of answers ([perks1947]_). Without it the interval is too narrow for few tasks: for 20 tasks with a
    rare answer it held the true alpha in 70 % of simulations.

    `task`, `answer`: (V,), the task and the answer of each vote, from 0; at most one vote per annotator and
    task. `answers`: number of possible answers.
    `scale`: scale of the answers, in their order.
    `values`: values of the answers on a linear or interval scale; by default 0, 1, 2 ...
    `apart`: (J, J), distances of answers, 0 to 1, which replace those of the scale. Alpha uses the distances,
    the other coefficients the weights that follow from them. Raises `ValueError` if the scale is unknown, or
    the numbers of votes or values differ.

    Agreement and expected agreement by Fleiss and Gwet: [gwet2014]_, equations 2.11 to 2.14 (nominal) and 3.5
    to 3.12 (weighted); alpha: [krippendorff2018]_, section 12.3. On an ordinal scale kappa and AC2 use
    Gwet's ordinal weights, and alpha its ordinal metric; on a linear scale all use absolute differences, on
    an interval scale squared ones.
    """
    tasks, given = np.asarray(task), np.asarray(answer)
    if tasks.shape != given.shape or tasks.ndim != 1:
        raise ValueError(f"{tasks.shape} tasks and {given.shape} answers; expected one of each for a vote.")
    if scale not in get_args(Scale):
        raise ValueError(f"{scale!r} is not a scale; expected one of {', '.join(get_args(Scale))}.")
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
    """Return each annotator's agreement with the other votes on the same tasks, with its interval: (K, 3).

    The interval is Wilson's, for the number of votes that gives the observed variance over tasks. Rows are
    NaN for annotators without a task that others answered.

    `task`, `answer`, `annotator`: (V,), those of each vote; at most one vote per annotator and task.
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
    """Return the partial agreement of every two answers, 0 to 1: (J, J)."""
    count = len(points)
    if scale == "nominal" or count < 2:
        return np.eye(count)
    if scale in ("linear", "interval"):
        apart = np.abs(points[:, None] - points[None, :]) ** (1 if scale == "linear" else 2)
        return np.asarray(1 - apart / apart.max()) if apart.max() > 0 else np.ones((count, count))
    # Gwet's ordinal weights: the share of pairs of answers that lie between the two.
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
    """Sum the terms of the coefficients over blocks of tasks.

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
    """Return the sums of the added tasks, and the probabilities of drawing each block and each added task.

    No tasks are added if tasks are grouped into blocks, because then there are many.
    """
    answers = len(alike)
    if tasks > blocks or not tasks:
        return np.empty((0, 4 + 2 * answers)), np.full(blocks, 1 / max(blocks, 1))
    first, second = (index.ravel() for index in np.indices((answers, answers)))
    if len(first) > _MAX_ADDED:
        chosen = np.random.default_rng(seed).choice(len(first), _MAX_ADDED, replace=False)
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
    """Sum an entry of a matrix over all pairs of votes on each task."""
    step = max(1, _CELLS // len(matrix))
    parts = (counts[at : at + step] for at in range(0, counts.shape[0], step))
    sums = [np.asarray(part.multiply(part @ matrix).sum(axis=1)).ravel() for part in parts]
    return np.concatenate([np.empty(0), *sums])


def _coefficients(sums: FloatArray, alike: FloatArray, apart: FloatArray) -> tuple[FloatArray, ...]:
    """Compute percent agreement, Fleiss' kappa, Gwet's AC and alpha for each row of sums."""
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
    """Make a coefficient from its value (first) and the bootstrap's draws (after it)."""
    value, drawn = float(figures[0]), figures[1:][np.isfinite(figures[1:])]
    if not np.isfinite(value) or not len(drawn):
        return Coefficient(value, float("nan"), float("nan"))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Coefficient(value, min(float(low), value), max(float(high), value))


@dataclass(frozen=True)
class IntraclassCorrelation:
    """Intraclass correlations of [shrout1979]_, of one rater and of the mean of all.

    `one_way`, `one_way_mean`: ICC(1,1) and ICC(1,k): each case has different raters.
    `absolute`, `absolute_mean`: ICC(2,1) and ICC(2,k): the raters are a sample, and their offsets count as
        disagreement.
    `consistency`, `consistency_mean`: ICC(3,1) and ICC(3,k): these raters alone, and a constant offset does
        not count.
    """

    one_way: Coefficient
    absolute: Coefficient
    consistency: Coefficient
    one_way_mean: Coefficient
    absolute_mean: Coefficient
    consistency_mean: Coefficient


@dataclass(frozen=True)
class LimitsOfAgreement:
    """Bland-Altman limits of the differences between two raters, with 95 % intervals."""

    # bias, lower, upper: mean difference, and the limits between which 95 % of differences are expected; in
    # the unit of the measurements
    bias: Coefficient
    lower: Coefficient
    upper: Coefficient


def intraclass_correlation(values: ArrayLike) -> IntraclassCorrelation:
    """Compute the intraclass correlations of raters who measured the same cases.

    `values`: (n, k), n >= 2 cases by k >= 2 raters, complete. Raises `ValueError` for fewer cases or raters,
    or values that are not finite.

    Estimates, and intervals of ICC(1,.) and ICC(3,.), are those of [shrout1979]_, pages 423 to 425, equal to
    [mcgraw1996]_, tables 4 and 7. The interval of ICC(2,.) is the generalized one of [ionan2014]_, which held
    the true value in 95 % of simulations; the interval of [shrout1979]_ is too narrow (86 to 95 %).
    """
    table = _checked(values)
    n, k = table.shape
    grand = table.mean()
    of_cases = k * ((table.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    of_raters = n * ((table.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    within = table.var(axis=1, ddof=1).mean()
    error = (within * n * (k - 1) - of_raters * (k - 1)) / ((n - 1) * (k - 1))
    # For identical measurements only rounding errors remain, of either sign.
    rounding = n * (16 * np.finfo(float).eps * float(np.abs(table).max())) ** 2
    of_cases, of_raters, within, error = (
        0.0 if square <= rounding else float(square) for square in (of_cases, of_raters, within, error)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        one_way = _by_ratio(np.float64(of_cases) / within, n - 1, n * (k - 1), k)
        consistency = _by_ratio(np.float64(of_cases) / error, n - 1, (n - 1) * (k - 1), k)
        absolute = _absolute(of_cases, of_raters, error, n, k)
    means = (_of_mean(single, k) for single in (one_way, absolute, consistency))
    return IntraclassCorrelation(one_way, absolute, consistency, *means)


def limits_of_agreement(first: ArrayLike, second: ArrayLike) -> LimitsOfAgreement:
    """Measure bias and limits of agreement of two raters on the same cases.

    `first`, `second`: (n,), n >= 2 cases; differences are first minus second. Raises `ValueError` for fewer
    cases, different lengths, or values that are not finite.

    [bland1986]_; the variance of the limits is s^2 (1 / n + 1.96^2 / (2 (n - 1))), [bland1999]_, section 2.
    """
    table = _checked(np.column_stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)]))
    difference = table[:, 0] - table[:, 1]
    n = len(difference)
    mean, spread = float(difference.mean()), float(difference.std(ddof=1))
    reach = float(scipy.special.ndtri(_UPPER))
    quantile = float(scipy.special.stdtrit(n - 1, _UPPER))
    of_mean = quantile * spread / math.sqrt(n)
    of_limit = spread * limit_error(n)
    bias, lower, upper = (
        Coefficient(value, value - half, value + half)
        for value, half in (
            (mean, of_mean), (mean - reach * spread, of_limit), (mean + reach * spread, of_limit)
        )
    )  # fmt: skip
    return LimitsOfAgreement(bias, lower, upper)


def limit_error(cases: int) -> float:
    """Return half the width of a limit of agreement's interval, in standard deviations of the differences."""
    reach = float(scipy.special.ndtri(_UPPER))
    quantile = float(scipy.special.stdtrit(cases - 1, _UPPER))
    return quantile * math.sqrt(1 / cases + reach**2 / (2 * (cases - 1)))


def within_case_variation(values: ArrayLike) -> tuple[float, float]:
    """Return the within-case standard deviation and coefficient of variation (its share of the mean).

    `values`: (n, k), n cases by k raters.

    The square root of the mean within-case variance, [bland1999]_, section 5.
    """
    table = _checked(values)
    spread = math.sqrt(float(table.var(axis=1, ddof=1).mean()))
    mean = float(table.mean())
    return spread, spread / mean if mean > 0 else math.nan


def concordance_correlation(first: ArrayLike, second: ArrayLike) -> Coefficient:
    """Compute Lin's coefficient: how close two raters' measurements lie to the line of equality.

    `first`, `second`: (n,), n >= 3 cases.
    The result is NaN if a rater's measurements are all equal.
    Raises `ValueError` for fewer cases, different lengths, or values that are not finite.

    [lin1989]_, with variances divided by n; interval by Fisher's z, with the variance of [lin2000]_.
    """
    table = _checked(np.column_stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)]))
    n = len(table)
    if n < 3:
        raise ValueError(f"{n} cases; expected three or more.")
    (left, right), covariance = table.mean(axis=0), np.cov(table.T, ddof=0)
    spreads = float(covariance[0, 0]), float(covariance[1, 1])
    if min(spreads) <= 0:
        return Coefficient(math.nan, math.nan, math.nan)
    shared = float(covariance[0, 1])
    value = 2 * shared / (sum(spreads) + float(left - right) ** 2)
    pearson = shared / math.sqrt(spreads[0] * spreads[1])
    if abs(value) >= 1 - 1e-12 or pearson == 0:
        return Coefficient(value, value, value)
    shift = float(left - right) ** 2 / math.sqrt(spreads[0] * spreads[1])
    variance = (
        (1 - pearson**2) * value**2 / ((1 - value**2) * pearson**2)
        + 2 * value**3 * (1 - value) * shift / (pearson * (1 - value**2) ** 2)
        - value**4 * shift**2 / (2 * pearson**2 * (1 - value**2) ** 2)
    ) / (n - 2)
    half = float(scipy.special.ndtri(_UPPER)) * math.sqrt(max(variance, 0.0))
    centre = math.atanh(value)
    return Coefficient(value, math.tanh(centre - half), math.tanh(centre + half))


def repeatability(values: ArrayLike) -> Coefficient:
    """Compute the repeatability coefficient: 95 % of differences between two reads are smaller.

    `values`: (n, m), n cases by m reads; NaN for a missing read. Cases with one read do not count.
    The result is NaN without a case of two reads.

    1.96 times the square root of 2 times the within-case standard deviation, [bland1999]_, section 5;
    interval by the chi-squared distribution.
    """
    table = np.asarray(values, dtype=np.float64)
    counts = np.isfinite(table).sum(axis=1)
    table, counts = table[counts > 1], counts[counts > 1]
    freedom = int((counts - 1).sum())
    if not freedom:
        return Coefficient(math.nan, math.nan, math.nan)
    squares = float(np.nansum((table - np.nanmean(table, axis=1, keepdims=True)) ** 2))
    divisors = (
        freedom,
        *(2 * float(scipy.special.gammaincinv(freedom / 2, q)) for q in (_UPPER, 1 - _UPPER)),
    )
    return Coefficient(*(REPEATABILITY * math.sqrt(squares / divisor) for divisor in divisors))


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(f"values of shape {table.shape}; expected two cases and two raters or more.")
    if not np.isfinite(table).all():
        raise ValueError("a value is not finite; expected a number for every case and rater.")
    return table


def _by_ratio(ratio: float, above: float, below: float, raters: int) -> Coefficient:
    """Return the correlation that follows from a ratio of mean squares, with its interval."""
    if not np.isfinite(ratio):
        return Coefficient(math.nan if np.isnan(ratio) else 1.0, math.nan, math.nan)
    low = ratio / float(scipy.special.fdtri(above, below, _UPPER))
    high = ratio * float(scipy.special.fdtri(below, above, _UPPER))
    value, low, high = ((quotient - 1) / (quotient + raters - 1) for quotient in (ratio, low, high))
    return Coefficient(float(value), float(low), float(high))


def _absolute(cases: float, raters: float, error: float, n: int, k: int) -> Coefficient:
    """Return ICC(2,1) from the mean squares of cases, raters and error, with a generalized interval."""
    total = cases + (k - 1) * error + k * (raters - error) / n
    if total <= 0 or error < 0:
        return Coefficient(math.nan, math.nan, math.nan)
    rng = np.random.default_rng(0)
    drawn_cases, drawn_raters, drawn_error = (
        freedom * square / rng.chisquare(freedom, _DRAWS)
        for square, freedom in ((cases, n - 1), (raters, k - 1), (error, (n - 1) * (k - 1)))
    )
    drawn = (drawn_cases - drawn_error) / (
        drawn_cases + (k - 1) * drawn_error + k * (drawn_raters - drawn_error) / n
    )
    low, high = np.quantile(drawn, [1 - _UPPER, _UPPER])
    return Coefficient((cases - error) / total, float(low), float(high))


def _of_mean(single: Coefficient, raters: int) -> Coefficient:
    """Return the correlation of the mean of all raters, by the Spearman-Brown formula."""
    value, low, high = (
        share * raters / (1 + share * (raters - 1)) if share > -1 / (raters - 1) else math.nan
        for share in (single.value, single.low, single.high)
    )
    return Coefficient(value, low, high)
