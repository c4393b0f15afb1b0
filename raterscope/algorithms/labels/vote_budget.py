"""Cost of labels: time per vote, accuracy by votes per task, wrong labels, stop rule, gain of further votes.

A task has enough votes once its posterior is above a limit and it has a few votes. The rule is tested by
replaying the votes in their order. On eight real crowds with ground truth, 0 to 14 % of the tasks that stop
at a posterior of 0.95 are wrong, although the posteriors predict 3 to 5 %
(`tests/benchmarks/label_budget.py`). Votes alone do not reveal errors that annotators share, so that the
error is known only on tasks with known truth.

The gain of further votes is extrapolated from the gain of the present votes: half of each task's votes are
fused, and the answers are compared with the posteriors of all votes. A model of independent annotators would
predict it too optimistically. Gains diminish: a further vote gains at most the mean gain of the votes of the
later half, and at least nothing. Between these limits, errors fall as the inverse square root of the number
of votes.

The probabilities of a consensus add up to an expected number of wrong labels. With calibrated probabilities,
this number would only have a sampling error; but in each crowd all of them are too high or too low. As in
[cox1958]_, the logit of the probability that a label is right is a function of the logit l of the consensus,
with three coefficients of the crowd:

    a + exp(s) min(l, h) + exp(s + c) max(l - h, 0)

Each coefficient is normally distributed between crowds. Decided tasks, and tasks with known truth, update the
coefficients. Every task counts by its own stated probability, so that the choice of the tasks does not
matter. Because of the coefficient c, decisions on disputed tasks do not determine the probabilities of clear
tasks.

References
----------
.. [cox1958] D. R. Cox, "Two further applications of a model for binary regression", Biometrika 45
   (1958) 562-565, doi:10.1093/biomet/45.3-4.562.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.array_operations import max_rows
from raterscope.algorithms.labels.active_learning import NextVotes, Terms, next_votes, usual_load
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, IndexArray, LabelFusion, Labels
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.settings import Settings, integer, number

_POOLED = ((0.0, 0.0, 0.0), (0.42, 0.46, 0.64))
_MODELS = ((-0.2, -1.1, 0.25), (0.46, 0.73, 0.77))
_SHARES = ((0.0, 0.0, 0.0), (0.6, 1.0, 0.8))
"""Mean and standard deviation of a, s and c between crowds: for the pooled consensus, models, shares of
votes.

They were estimated from ten real crowds, complete and with fewer votes, and from simulated crowds of nine
kinds; IBCC represents the models. The pooled consensus and shares of votes are assumed to be right on
average.
"""

_BY_METHOD = {
    "pooled": _POOLED, "majority": _SHARES, "weighted-majority": _SHARES, "weighted-sum": _SHARES,
    "mean-score": _SHARES,
}  # fmt: skip

_OVERLAP, _UNKNOWN = 20, 1.0
"""Minimum number of tasks with two votes for estimating accuracies, and standard deviation of a with fewer:
at the same stated probability, a tenth to a half of the labels are wrong in ten real crowds with one vote per
task.
"""

_KNOT = 1.5
_EDGES = np.linspace(-8.0, 8.0, 129)
_MISTAKES = 0.02
"""Assumed share of wrong decisions and truths, so that a single mistake on a clear task has little effect."""

_NODES = np.linspace(-3.5, 3.5, 11)
"""Nodes of the integration, in standard deviations from the mode. With 31 nodes between -4 and 4, no end of
an interval changes by more than 0.5 % of the tasks.
"""

_TURNS = 40
_CHANGE = 1e-6
_LARGEST_STEP = 0.5


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected number of wrong labels."""

    tasks: int  # tasks that count: with votes, of unknown class
    stated: float  # number by the probabilities alone
    expected: float  # number after the update by known tasks; without any, of the pooled consensus, `stated`
    # low, high: ends of the 95 % interval
    low: int
    high: int
    known: int  # tasks whose class was compared


@dataclass(frozen=True, eq=False)
class Checked:
    """Tasks with known class, with the probabilities of the consensus before it was known."""

    probability: FloatArray  # (M,): of the label
    right: FloatArray  # (M,): 1 where it was the true class, else 0
    weight: FloatArray  # (M,): what each counts

    @classmethod
    def by_truth(cls, fusion: LabelFusion, truth: ClassArray) -> Checked:
        """Compare the labels of a fusion with truths that it did not use, (N,), `OPEN` elsewhere."""
        known = np.flatnonzero((truth != OPEN) & (fusion.known == OPEN) & (fusion.votes > 0))
        right = fusion.posterior[known].argmax(axis=1) == truth[known]
        return cls.of(fusion.posterior[known].max(axis=1, initial=0.0), right)

    @classmethod
    def of(cls, probability: ArrayLike, right: ArrayLike) -> Checked:
        """Make a set in which every task counts in full."""
        stated, outcome = (np.asarray(values, dtype=np.float64) for values in (probability, right))
        return cls(stated, outcome, np.ones(len(outcome)))

    def held(self) -> Checked:
        """Make a set in which tasks count half, because the fusion held them fixed and used part of them."""
        return Checked(self.probability, (self.right + self.probability) / 2, self.weight / 2)

    def joined(self, other: Checked) -> Checked:
        """Join two sets of tasks."""
        pairs = zip(*((each.probability, each.right, each.weight) for each in (self, other)), strict=True)
        return Checked(*map(np.concatenate, pairs))


NOTHING = Checked.of((), ())


def expected_errors(
    fusion: LabelFusion, truth: ClassArray, checked: Checked = NOTHING, decided: Sequence[int] = ()
) -> ExpectedErrors:
    """Return the expected number of wrong labels among tasks with votes and unknown class.

    `truth`: (N,), known classes, `OPEN` elsewhere; the fusion is compared with them. `checked`: further tasks
    for the comparison. `decided`: tasks that do not count, because their class was decided.
    """
    counts = (fusion.votes > 0) & (fusion.known == OPEN) & (truth == OPEN)
    counts[list(decided)] = False
    checked = Checked.by_truth(fusion, truth).joined(checked)
    return count_errors(fusion.algorithm, max_rows(fusion.posterior)[counts], checked, fusion.votes)


def count_errors(
    algorithm: str, probability: FloatArray, checked: Checked = NOTHING, votes: ArrayLike | None = None
) -> ExpectedErrors:
    """Return the expected number of wrong labels, given their probabilities, (n,).

    `votes`: (N,), numbers of votes on all tasks, by default two or more each.
    """
    logit, number = _binned(probability)
    middle, width = _BY_METHOD.get(algorithm, _MODELS)
    if votes is not None and np.count_nonzero(np.asarray(votes) > 1) < min(_OVERLAP, len(probability)):
        width = (max(_UNKNOWN, width[0]), *width[1:])
    node, weight = _coefficients((middle, width), checked)
    updated, as_stated = _wrong(np.stack([weight @ node, np.zeros(3)]), logit)
    stated = float((1 - probability).sum())
    expected = max(stated + float((updated - as_stated) @ number), 0.0)  # bins are a little off
    wrong = _wrong(node, logit)
    spread = np.sqrt((wrong * (1 - wrong)) @ number)
    low, high = _interval(wrong @ number, spread, weight, len(probability))
    return ExpectedErrors(
        len(probability), stated, expected, min(low, math.floor(expected)), max(high, math.ceil(expected)),
        len(checked.right),
    )  # fmt: skip


def _binned(probability: FloatArray, *weights: FloatArray) -> tuple[FloatArray, ...]:
    """Return mean logits of probabilities in bins, and the sums of the weights, by default the counts."""
    most = np.clip(probability, 1e-9, 1 - 1e-9)
    logit = np.clip(np.log(most / (1 - most)), _EDGES[0], _EDGES[-1])
    at = np.ceil((logit - _EDGES[0]) / (_EDGES[1] - _EDGES[0])).astype(np.int64)  # the edges are even
    columns = np.zeros((2 + len(weights), len(_EDGES)))
    for row, values in enumerate((np.ones(len(at)), logit, *weights)):
        columns[row] = np.bincount(at, values, len(_EDGES))
    number, total, *sums = columns[:, columns[0] > 0]
    return total / number, *(sums or [number])


def _logits(coefficients: FloatArray, logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logits of being right for stated logits, (C, B), and their part above the knot."""
    shift, slope, clear = (column[:, None] for column in coefficients.T)
    above = np.exp(slope + clear) * np.maximum(logit - _KNOT, 0.0)
    return shift + np.exp(slope) * np.minimum(logit, _KNOT) + above, above


def _wrong(coefficients: FloatArray, logit: FloatArray) -> FloatArray:
    """Return the probabilities that labels of stated logits are wrong, (C, B)."""
    from scipy.special import expit

    return np.asarray(expit(-_logits(coefficients, logit)[0]))


def _coefficients(
    spread: tuple[tuple[float, ...], tuple[float, ...]], checked: Checked
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients of crowds, (C, 3), and their probabilities, (C,).

    They form a grid around the mode, along the axes of the information at the mode.
    """
    middle, width = (np.array(values) for values in spread)
    logit, number, right = _binned(checked.probability, checked.weight, checked.weight * checked.right)

    def log_density(coefficients: FloatArray) -> FloatArray:
        chance = _MISTAKES + (1 - 2 * _MISTAKES) * (1 - _wrong(coefficients, logit))
        prior = np.square((coefficients - middle) / width).sum(axis=1) / 2
        return np.asarray(np.log(chance) @ right + np.log1p(-chance) @ (number - right) - prior)

    mode = middle[None].copy()
    for _ in range(_TURNS):
        (total,), (above,) = _logits(mode, logit)
        share = 1 - _wrong(mode, logit)[0]
        chance = _MISTAKES + (1 - 2 * _MISTAKES) * share
        slope = (1 - 2 * _MISTAKES) * share * (1 - share)
        design = np.stack([np.ones(len(logit)), total - mode[0, 0], above])
        gradient = design @ (slope * (right - number * chance) / (chance * (1 - chance)))
        gradient -= (mode[0] - middle) / width**2
        information = (design * number * slope**2 / (chance * (1 - chance))) @ design.T + np.diag(width**-2)
        step = np.clip(np.linalg.solve(information, gradient), -_LARGEST_STEP, _LARGEST_STEP)
        while log_density(mode + step)[0] < log_density(mode)[0] and np.abs(step).max() > _CHANGE:
            step /= 2
        mode = mode + step
        if np.abs(step).max() <= _CHANGE:
            break
    axes = np.linalg.cholesky(np.linalg.inv(information))
    node = mode + np.stack(np.meshgrid(*[_NODES] * 3, indexing="ij"), axis=-1).reshape(-1, 3) @ axes.T
    density = log_density(node)
    weight = np.exp(density - density.max())
    return node, weight / weight.sum()


def _interval(mean: FloatArray, spread: FloatArray, weight: FloatArray, most: int) -> tuple[int, int]:
    """Return the 95 % interval of a count from a mixture of normal distributions."""
    from scipy.special import ndtr

    ends = []
    for share in (0.025, 0.975):
        low, high = -1.0, most + 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            below = float(ndtr((middle - mean) / np.maximum(spread, 1e-9)) @ weight)
            low, high = (middle, high) if below < share else (low, middle)
        ends.append(low)
    return max(0, math.ceil(ends[0] - 0.5)), min(most, math.floor(ends[1] + 0.5))


Run = Callable[[Labels, Watch], LabelFusion]
"""A fusion with its settings."""

ENOUGH = 0.95
FEWEST = 3
"""Minimum votes of a task that has enough: after one or two, the posterior is mostly prior."""
LIMITS = (0.8, 0.9, 0.95, 0.99)
_SIZES, _ROUNDS = 8, 40
MIN_CURVE = 3
"""Minimum votes per task for predicting the gain of further votes: one or two votes have no majority."""


@dataclass(frozen=True)
class BudgetSettings(Settings):
    """A budget of votes, and how it is distributed over annotators."""

    votes: int = integer(100, "Votes", "Maximum number of votes to request.", minimum=1, maximum=1_000_000)
    each: int | None = integer(
        None, "Per annotator", "Maximum number of votes to request from one annotator. Empty: twice the "
        "equal share, or their share so far, but at most a tenth.", minimum=1, left_open="two shares",
    )  # fmt: skip
    per_task: int = integer(
        1, "Per task", "Votes to request on one task before the next fusion.", minimum=1, maximum=100
    )
    enough: float = number(
        ENOUGH, "Enough from", "Tasks with three votes and this posterior or more get no more votes.",
        minimum=0.5, maximum=1.0,
    )  # fmt: skip
    spend: float | None = number(
        None, "Spend at most", "Cost of all votes, in the unit of the costs of the annotators. "
        "Empty: no limit.", minimum=0.0, left_open="no limit",
    )  # fmt: skip
    hours: float | None = number(
        None, "Hours each", "Time of each annotator, by their median time per vote if times are known. "
        "Empty: no limit.", minimum=0.0, left_open="no limit", unit="h",
    )  # fmt: skip


@dataclass(frozen=True)
class CostSettings(Settings):
    """Settings of `measure_vote_curve`."""

    draws: int = integer(
        3, "Draws", "Number of random subsets of the votes for each size.", minimum=1, maximum=1000
    )  # fmt: skip


@dataclass(frozen=True)
class Price:
    """Cost of an annotator's vote, and maximum number of votes; None without a limit."""

    cost: float = 1.0
    most: int | None = None


def has_enough(fusion: LabelFusion, limit: float = ENOUGH) -> NDArray[np.bool_]:
    """Return the tasks that need no further votes, (N,): posterior above a limit, or known class."""
    sure = (fusion.posterior.max(axis=1, initial=0.0) >= limit) & (fusion.votes >= FEWEST)
    return np.asarray(sure | (fusion.known != OPEN))


def assign_votes(
    labels: Labels,
    fusion: LabelFusion,
    budget: BudgetSettings | None = None,
    prices: Mapping[str, Price] | None = None,
    watch: Watch = silent,
) -> NextVotes:
    """Distribute a budget of votes over tasks and annotators; see `next_votes`.

    `prices`: prices of annotators; by default 1.
    """
    budget, prices = budget or BudgetSettings(), prices or {}
    voted = labels.votes_of_annotators() > 0
    most = usual_load(budget.votes, labels.votes_of_annotators(), int(voted.sum()))
    if budget.each is not None:
        most[:] = budget.each
    cost = np.ones(len(labels.annotators))
    for at, name in enumerate(labels.annotators):
        price = prices.get(name)
        if price is not None:
            cost[at] = max(price.cost, 1e-9)
            most[at] = most[at] if price.most is None else min(most[at], price.most)
    if budget.hours is not None:
        seconds = seconds_per_vote(labels)[:, 0]
        known = np.isfinite(seconds) & (seconds > 0)
        most[known] = np.minimum(most[known], budget.hours * 3600 // seconds[known])
    terms = Terms(
        cost=cost, most=most, tasks=~has_enough(fusion, budget.enough), per_task=budget.per_task,
        spend=math.inf if budget.spend is None else budget.spend,
    )  # fmt: skip
    return next_votes(labels, fusion, budget.votes, watch=watch, terms=terms)


def vote_ranks(labels: Labels, order: NDArray[np.integer]) -> IndexArray:
    """Return the rank of each vote among the votes on its task, (V,) from 0, given an order of all votes."""
    task = labels.task[order]
    by_task = np.argsort(task, kind="stable")
    number = labels.votes_of_tasks()
    start = np.cumsum(number) - number
    ranks = np.empty(len(task), dtype=np.int32)
    ranks[order[by_task]] = np.arange(len(task)) - start[task[by_task]]
    return ranks


@dataclass(frozen=True)
class VoteGain:
    """Gain of accuracy from more votes on each task, with a 95 % interval."""

    more: float  # further votes per task
    gain: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class VoteCurve:
    """Accuracy with S numbers of votes per task."""

    most: NDArray[np.int64]  # (S,): maximum number of votes of each task
    votes: FloatArray  # (S,): votes per task, mean
    # (S, 3): expected accuracy by the model, mean over draws, with its 95 % interval; see `expected_errors`
    expected: FloatArray
    # (S, 3): on gold tasks, mean over draws, with Wilson's interval; NaN without gold tasks
    accuracy: FloatArray
    judged: int  # number of gold tasks
    draws: int
    # gain of one more vote per task, and of twice the votes; empty with fewer than `MIN_CURVE` votes per
    # task
    gains: tuple[VoteGain, ...] = ()


def measure_vote_curve(
    labels: Labels, truth: ClassArray, run: Run, settings: CostSettings | None = None, watch: Watch = silent
) -> VoteCurve:
    """Fuse random votes of each task, up to several numbers of them, and measure the accuracy.

    `truth`: (N,), classes of gold tasks, `OPEN` elsewhere; tasks held fixed are not measured. `run`: makes
    the fusion with its settings.
    """
    draws = (settings or CostSettings()).draws
    judged = np.flatnonzero(_unseen(labels, truth) != OPEN)
    number = labels.votes_of_tasks()
    voted = number > 0
    every = run(labels, part(watch, 0.0, 0.1))
    most = np.unique(np.geomspace(1, int(number.max(initial=1)), _SIZES).round().astype(np.int64))
    votes, right = np.zeros((len(most), draws)), np.zeros((len(most), draws))
    expected = np.ones((len(most), draws, 3))
    pairs = [(size, draw) for draw in range(draws) for size in range(len(most))]
    ranks = [
        vote_ranks(labels, np.random.default_rng(draw).permutation(len(labels))) for draw in range(draws)
    ]
    for (size, draw), step in steps_of(part(watch, 0.1, 0.8), pairs):
        fewer = labels.subset(ranks[draw] < most[size])
        fusion = every if len(fewer) == len(labels) else run(fewer, step)
        votes[size, draw] = len(fewer) / max(int(voted.sum()), 1)
        checked = Checked.by_truth(fusion, _unseen(labels, truth))
        stated = fusion.posterior[voted].max(axis=1, initial=0.0)
        errors = count_errors(fusion.algorithm, stated, checked, fusion.votes)
        wrong = np.array([errors.expected, errors.high, errors.low])
        expected[size, draw] = 1 - wrong / max(errors.tasks, 1)
        right[size, draw] = (fusion.label()[judged] == truth[judged]).mean() if len(judged) else math.nan
    gains = extrapolate_gain(labels, every, run, draws, part(watch, 0.8, 1.0))
    accuracy = right.mean(axis=1)
    ends = [wilson(share * len(judged), len(judged)) for share in accuracy.tolist()]
    return VoteCurve(
        most, votes.mean(axis=1), expected.mean(axis=1),
        np.column_stack([accuracy, np.array(ends)]), len(judged), draws, gains,
    )  # fmt: skip


def extrapolate_gain(
    labels: Labels, every: LabelFusion, run: Run, draws: int, watch: Watch = silent
) -> tuple[VoteGain, ...]:
    """Predict the gain of one more vote per task, and of twice the votes, from the loss with half of them.

    `every`: fusion of all votes; its posteriors are the reference for the answers of each half. `run`: makes
    the fusion with its settings. `draws`: number of random halves.
    """
    number = labels.votes_of_tasks()
    voted = number > 0
    if not voted.any() or np.median(number[voted]) < MIN_CURVE:
        return ()
    kept = (number + 1) // 2
    rows = np.arange(len(number))
    lost, changed = np.zeros(draws), np.zeros(draws)
    for draw, step in steps_of(watch, range(draws)):
        order = np.random.default_rng(draw).permutation(len(labels))
        label = run(labels.subset(vote_ranks(labels, order) < kept[labels.task]), step).label()
        lost[draw] = (every.posterior.max(axis=1) - every.posterior[rows, label])[voted].mean()
        changed[draw] = (label != every.label())[voted].mean()
    now, half = float(number[voted].mean()), float(kept[voted].mean())
    gains = []
    for more in (1.0, now):
        falls = (now**-0.5 - (now + more) ** -0.5) / (half**-0.5 - now**-0.5)
        # Log odds walk at random: answers change as the square root of the number of further votes.
        share = min(1.0, float(changed.mean()) * math.sqrt(more / (now - half)))
        chance = 1.96 * math.sqrt(share / int(voted.sum()))
        gain = float(lost.mean())
        gains.append(VoteGain(more, gain * falls, -chance, gain * more / (now - half) + chance))
    return tuple(gains)


@dataclass(frozen=True)
class StopReplay:
    """Result of stopping each task once it has enough votes."""

    limit: float  # of the posterior
    # stopped, tasks: tasks that stopped, and tasks with votes
    stopped: int
    tasks: int
    # used, votes: votes until the tasks stop, and all votes
    used: int
    votes: int
    # error, low, high: error measured on stopped gold tasks, with Wilson's interval; NaN without such tasks
    error: float
    low: float
    high: float
    judged: int  # number of these gold tasks


def replay_stopping(
    labels: Labels,
    truth: ClassArray,
    run: Run,
    limit: float = ENOUGH,
    watch: Watch = silent,
) -> StopReplay:
    """Replay the votes in their order, round by round, and stop each task once it has enough.

    In each round all tasks that continue get their next vote, and all votes so far are fused. With more than
    40 votes on a task a round has several votes.
    """
    ranks, number = vote_ranks(labels, labels.in_time()), labels.votes_of_tasks()
    largest = int(number.max(initial=0))
    size = max(1, -(-largest // _ROUNDS))
    used = np.minimum(number, size)
    stopped = np.zeros(len(number), dtype=bool)
    label = np.full(len(number), OPEN, dtype=np.int16)
    rounds = range(0, largest, size)
    for begin in rounds:
        step = part(watch, begin / largest, min(1.0, (begin + size) / largest))
        fusion = run(labels.subset(ranks < used[labels.task]), step)
        new = ~stopped & (number > 0) & has_enough(fusion, limit)
        label[new] = fusion.label()[new]
        stopped |= new
        goes_on = ~stopped & (used < number)
        if not goes_on.any():
            break
        used = np.where(goes_on, np.minimum(used + size, number), used)
    gold = stopped & (_unseen(labels, truth) != OPEN)
    wrong, judged = int((label[gold] != truth[gold]).sum()), int(gold.sum())
    low, high = wilson(wrong, judged)
    return StopReplay(
        limit, int(stopped.sum()), int((number > 0).sum()), int(used.sum()), len(labels),
        wrong / judged if judged else math.nan, low, high, judged,
    )  # fmt: skip


def replay_limits(
    labels: Labels, truth: ClassArray, run: Run, watch: Watch = silent, limits: Sequence[float] = LIMITS
) -> tuple[StopReplay, ...]:
    """Replay the votes with several limits; see `replay_stopping`."""
    return tuple(replay_stopping(labels, truth, run, limit, step) for limit, step in steps_of(watch, limits))


def _unseen(labels: Labels, truth: ClassArray) -> ClassArray:
    return truth if labels.known is None else np.where(labels.known == OPEN, truth, OPEN).astype(np.int16)


PAUSE = 1800.0
"""Minimum seconds between two votes that count as a pause."""
_FEWEST = 6
"""Minimum number of values for a 95 % interval of the median between two order statistics."""


def seconds_per_vote(labels: Labels) -> FloatArray:
    """Return the median time between each annotator's consecutive votes, (K, 3), with its 95 % interval.

    The interval lies between two order statistics, by the normal approximation of the binomial distribution.
    Gaps of half an hour or more are pauses. NaN where no times are known.

    Examples
    --------
    >>> import numpy as np
    >>> labels = Labels(
    ...     np.arange(9), np.zeros(9, int), np.zeros(9, int), tuple("abcdefghi"), ("kim",), ("no",), ("no",),
    ...     time=np.array([0, 10, 20, 32, 40, 5000, 5010, 5030, 5038.0]),
    ... )
    >>> seconds_per_vote(labels).tolist()
    [[10.0, 8.0, 20.0]]
    """
    median = np.full((len(labels.annotators), 3), np.nan)
    if labels.time is None:
        return median
    order = np.lexsort((labels.time, labels.annotator))
    gap = np.diff(labels.time[order])
    annotator = labels.annotator[order]
    same = (annotator[1:] == annotator[:-1]) & np.isfinite(gap) & (gap < PAUSE)
    gap, annotator = gap[same], annotator[1:][same]
    order = np.lexsort((gap, annotator))
    gap, number = gap[order], np.bincount(annotator, minlength=len(median))
    start = np.cumsum(number) - number
    some, several = number > 0, number >= _FEWEST
    middle = (gap[start[some] + (number[some] - 1) // 2] + gap[start[some] + number[some] // 2]) / 2
    median[some, 0] = middle
    half = 0.98 * np.sqrt(number)
    low = np.maximum(np.floor(number / 2 - half), 0).astype(np.int64)
    median[several, 1] = gap[(start + low)[several]]
    median[several, 2] = gap[(start + number - 1 - low)[several]]
    return median
