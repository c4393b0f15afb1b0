"""EBCC: Bayesian combination of annotators whose errors are correlated, by subtypes of the classes.

References
----------
.. [li2019] Y. Li, B. I. P. Rubinstein and T. Cohn, "Exploiting worker correlation for label aggregation in
   crowdsourcing", Proceedings of the 36th International Conference on Machine Learning, PMLR 97 (2019)
   3886-3895.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import max_rows, sum_rows
from raterscope.algorithms.labels.canonical_order import in_canonical_order
from raterscope.algorithms.labels.crowd_votes import (
    TaskVotes,
    class_shares,
    sort_by_task,
    task_spans,
)
from raterscope.algorithms.labels.data import (
    OPEN,
    FloatArray,
    LabelFusion,
    Labels,
    LabelsError,
    LabelSettings,
    LabelTrace,
    default_prior,
)
from raterscope.algorithms.labels.result import convergence_notices, count_confusion, make_fusion
from raterscope.algorithms.progress import Check, Watch, no_check, part, parts_of, run_parts, silent
from raterscope.algorithms.settings import integer, number

_TERMS = 1_000_000
"""Number of votes times classes times subtypes between two progress reports."""

_AT_ONCE = 30_000
"""Number of rates whose expectations are computed at once."""

_MAX_ENTRIES = 100_000_000
"""Maximum number of entries of the annotators' rates by subtype, or of the tasks' joint probabilities: 0.8
GB.
"""

_FEW_SUBTYPES = 3
"""Number of subtypes of each class in the pooled consensus: initially clear, less clear and unclear cases."""

_FEW_ITERATIONS = 30

_FEW_ENTRIES = 10_000_000
"""Maximum number of rates and joint probabilities in the pooled consensus."""

_SUBTYPE_STRENGTH = 0.1
"""Sum of the pseudo-counts of all subtypes of a class."""

_RIGHT, _WRONG = 4.0, 1.0
"""Pseudo-counts of an output that represents the class, and of any other output."""

_CHECKS = (10, 20, 40, 80, 160)
"""Number of iterations after which starts with a bound below the best end."""


_TURNS = 5
"""Number of updates of a known task's probabilities for its prediction from votes alone."""

_HELD = 2_000
"""Number of known tasks that are predicted at a time."""


@dataclass(frozen=True)
class EBCCSettings(LabelSettings):
    """Settings of `ebcc`."""

    subtypes: int = integer(10, "Subtypes", "Subtypes of each class.", minimum=1, maximum=100)
    starts: int = integer(
        10,
        "Starts",
        "Random starts; the result with the greatest lower bound is used.",
        minimum=1,
        maximum=1000,
    )
    iterations: int = integer(
        500, "Iterations", "Maximum number for each start.", minimum=1, maximum=100_000, advanced=True
    )
    tolerance: float = number(
        1e-4, "Tolerance", "A start ends when the tasks' probabilities change by less, averaged over tasks.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip
    seed: int = integer(0, "Seed", "Of the random starts.", minimum=0, maximum=2**31 - 1, advanced=True)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Votes task by task, and the priors."""

    votes: TaskVotes
    annotator: NDArray[np.int32]
    label: NDArray[np.int16]
    shares: FloatArray
    rates: FloatArray
    subtypes: int
    weights: FloatArray | None = None

    def weigh(self, table: FloatArray) -> FloatArray:
        """Multiply the annotators' counts or logarithms, (K, L, J M), by their weights, in place."""
        if self.weights is not None:
            table *= self.weights[:, None, None]
        return table

    @property
    def by_task(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int16]]:
        """Start of the votes on each task, and the annotator and label of each vote."""
        return self.votes.start, self.annotator, self.label


@dataclass(frozen=True, eq=False)
class _Start:
    """Result of one start."""

    joint: FloatArray
    bounds: list[float]
    changes: list[float]
    converged: bool


@in_canonical_order
def ebcc(labels: Labels, settings: EBCCSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes with annotators whose errors are correlated on subtypes of a class.

    Each class has M subtypes, and each annotator a row of rates for every subtype, so that tasks of one
    subtype receive correlated votes. The joint posterior of class and subtype, the rates and the shares are
    estimated by mean-field variational Bayes. Starts whose lower bound is behind the best end early. Known
    tasks are held fixed.

    `labels`: its `prior` is not used. The trace of the result is that of the best start; `confusion` has
    expected counts plus the default prior. Raises `LabelsError` if rates or joint probabilities would not fit
    into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = ebcc(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.89
    """
    settings = EBCCSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    problem = _problem(labels, settings, part(watch, 0.0, 0.05))
    votes, classes = problem.votes, len(labels.classes)
    weight, weights = class_shares(labels, default_prior(labels)), labels.vote_weights()
    share = np.empty((len(labels.tasks), classes))
    for j in range(classes):
        vote = weight[labels.label, j] if weights is None else weight[labels.label, j] * weights
        share[:, j] = np.bincount(labels.task, vote, minlength=len(share)) + 1e-6
    share /= share.sum(axis=1, keepdims=True)
    fixed = np.flatnonzero(votes.known > OPEN)
    share[fixed] = np.eye(classes)[votes.known[fixed]]
    labels.keep_to_sets(share)
    generator = np.random.default_rng(settings.seed)
    best: _Start | None = None
    for number_of in range(settings.starts):
        split = generator.dirichlet(np.ones(settings.subtypes), (len(share), classes))
        joint = (share[:, :, None] * split).reshape(len(share), classes * settings.subtypes)
        step = part(
            watch, 0.05 + 0.9 * number_of / settings.starts, 0.05 + 0.9 * (number_of + 1) / settings.starts
        )
        text = f"start {number_of + 1} of {settings.starts}"
        result = _run(problem, joint, settings, best, step, text)
        if best is None or result.bounds[-1] > best.bounds[-1]:
            best = result
    assert best is not None
    watch(0.95, "counting votes")
    posterior = best.joint.reshape(len(share), classes, settings.subtypes).sum(axis=2)
    trace = LabelTrace(np.array(best.bounds), np.array(best.changes), best.converged, "lower bound")
    confusion = count_confusion(labels, posterior, default_prior(labels))
    return make_fusion(labels, "ebcc", posterior, confusion, trace, convergence_notices(trace))


def has_few_rates(labels: Labels) -> bool:
    """Return whether `tempered_subtypes` is practicable."""
    rows = max(len(labels.annotators) * len(labels.outputs), len(labels.tasks))
    return rows * len(labels.classes) * _FEW_SUBTYPES <= _FEW_ENTRIES


def tempered_subtypes(
    labels: Labels,
    share: FloatArray,
    correlation: float,
    numbers: FloatArray,
    iterations: int,
    tolerance: float,
    watch: Watch,
) -> FloatArray:
    """Fit three subtypes of each class from one start, tempered.

    Initially a task is distributed over the subtypes of a class by a binomial distribution in the class's
    share of the votes. The result is deterministic, and does not depend on the order of tasks.

    `labels`: repeated votes resolved.
    `share`: (N, J), the smoothed vote, known tasks held fixed.
    `correlation`: the logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation.
    `numbers`: (N,), effective number n of votes on each task. `tolerance`: average change of the tasks'
    probabilities at which to stop. The result has shape (N, J); known tasks are predicted without their own
    class.
    """
    from raterscope.algorithms.labels._pooled_kernels import add_counts, temper_subtypes

    iterations = min(iterations, _FEW_ITERATIONS)
    settings = EBCCSettings(subtypes=_FEW_SUBTYPES, starts=1, iterations=iterations, tolerance=tolerance)
    columns = share.shape[1] * _FEW_SUBTYPES
    problem = _problem(labels, settings, part(watch, 0.0, 0.05))
    clear = share[:, :, None]
    split = np.concatenate([clear**2, 2 * clear * (1 - clear), (1 - clear) ** 2], axis=2)
    joint = (clear * split).reshape(len(share), columns)
    result = _run(problem, joint, settings, None, part(watch, 0.05, 0.9), "fitting subtypes of the classes")
    votes = problem.votes
    counts = np.zeros((votes.annotators, votes.outputs, columns))
    spans = task_spans(votes.start, _TERMS // columns)
    for first, last in spans:
        watch(0.9, "fitting subtypes of the classes")
        add_counts(first, last, problem.by_task, result.joint, counts)
    problem.weigh(counts)
    voted = np.diff(votes.start) > 0
    logs, rates, _ = _expected(problem, _sum_over(voted, result.joint), counts, no_check)
    answer = share.copy()

    def weigh(first: int, last: int) -> None:
        for low, high, prior in votes.split(first, last, logs):
            temper_subtypes(
                low, high, problem.by_task, _FEW_SUBTYPES, prior, rates, correlation, answer, numbers
            )  # fmt: skip

    run_parts(weigh, spans, partial(watch, 0.95, "weighting correlated votes"))
    fixed = np.flatnonzero((votes.known > OPEN) & voted)
    for first in range(0, len(fixed), _HELD):
        watch(0.95, "weighting correlated votes")
        batch = fixed[first : first + _HELD]
        effect = 1.0 + np.maximum(numbers[batch] - 1.0, 0.0) * correlation
        answer[batch] = _predict_known(problem, result.joint, counts, logs, effect[:, None], batch)
    return answer


def _predict_known(
    problem: _Problem,
    joint: FloatArray,
    counts: FloatArray,
    logs: FloatArray,
    effect: FloatArray,
    tasks: NDArray[np.int64],
) -> FloatArray:
    """Predict the classes of known tasks from their votes, each without its own class."""
    from scipy.special import digamma

    start = problem.votes.start
    many = np.diff(start)[tasks]
    row = np.repeat(np.arange(len(tasks)), many)
    vote = np.arange(many.sum()) + np.repeat(start[tasks] - np.cumsum(many) + many, many)
    annotator, label = problem.annotator[vote], problem.label[vote]
    alpha = problem.rates + counts
    weight = np.ones(1) if problem.weights is None else problem.weights[annotator, None]
    held = weight * joint[tasks][row]
    own, total = alpha[annotator, label] - held, alpha.sum(axis=1)[annotator] - held
    guess = np.zeros((len(tasks), len(logs)))
    first = np.cumsum(many) - many
    for turn in range(_TURNS):
        more = weight * guess[row]
        terms = np.add.reduceat(weight * (digamma(own + more) - digamma(total + more)), first, axis=0)
        terms = terms / (effect if turn == _TURNS - 1 else 1.0) + logs
        guess = np.exp(terms - max_rows(terms, keepdims=True))
        guess /= sum_rows(guess, keepdims=True)
    return np.asarray(guess.reshape(len(tasks), -1, problem.subtypes).sum(axis=2))


def _problem(labels: Labels, settings: EBCCSettings, watch: Watch) -> _Problem:
    """Sort the votes, and compute the priors."""
    assert labels.meaning is not None
    columns = len(labels.classes) * settings.subtypes
    for many, unit in (
        (len(labels.annotators) * len(labels.outputs) * columns, "The annotators' rates"),
        (len(labels.tasks) * columns, "The tasks' probabilities"),
    ):
        if many > _MAX_ENTRIES:
            raise LabelsError(
                f"{unit} of {columns:,} subtypes do not fit into memory; expected at most {_MAX_ENTRIES:,}"
                f" numbers, not {many:,}. Use fewer subtypes, or the pooled consensus."
            )
    votes = sort_by_task(labels, watch)
    weight = class_shares(labels, default_prior(labels))
    used = np.bincount(labels.label, labels.vote_weights(), minlength=len(labels.outputs))
    shares = np.maximum(used @ weight, 1.0)
    means_class = labels.meaning[:, None] == np.arange(len(labels.classes))
    rates = np.repeat(np.where(means_class, _RIGHT, _WRONG), settings.subtypes, axis=1)
    return _Problem(votes, *votes.unpack(), shares, rates, settings.subtypes, labels.weights)


def _run(
    problem: _Problem,
    joint: FloatArray,
    settings: EBCCSettings,
    best: _Start | None,
    watch: Watch,
    text: str,
) -> _Start:
    """Iterate from one start until it converges, or its bound is behind; `joint` is overwritten."""
    from raterscope.algorithms.labels._pooled_kernels import add_counts, expect_subtypes

    votes = problem.votes
    counts = np.zeros((votes.annotators, votes.outputs, joint.shape[1]))
    voted = np.diff(votes.start) > 0
    active = max(1, int(voted.sum()))
    spans = task_spans(votes.start, _TERMS // joint.shape[1])

    def update(logs: FloatArray, rates: FloatArray, first: int, last: int) -> list[tuple[float, float]]:
        return [
            expect_subtypes(
                low, high, problem.by_task, votes.known, problem.subtypes, prior, rates, joint
            )
            for low, high, prior in votes.split(first, last, logs)
        ]  # fmt: skip

    state = _Start(joint, [], [], converged=False)
    for turn in range(1, settings.iterations + 1):
        done = (turn - 1) / settings.iterations
        counts[:] = 0.0
        for first, last in spans:
            watch(done, text)
            add_counts(first, last, problem.by_task, joint, counts)
        problem.weigh(counts)
        watch(done, text)
        report = partial(watch, done, text)
        logs, rates, bound = _expected(problem, _sum_over(voted, joint), counts, report)
        parts = run_parts(partial(update, logs, rates), spans, report)
        updated = list(chain.from_iterable(parts))
        bound += sum(evidence for evidence, _ in updated)
        change = sum(moved for _, moved in updated)
        state.bounds.append(bound)
        state.changes.append(change / active)
        if change / active < settings.tolerance:
            return _Start(joint, state.bounds, state.changes, converged=True)
        behind = best is not None and turn in _CHECKS and bound < best.bounds[min(turn, len(best.bounds)) - 1]
        if behind:
            return state
    return state


def _sum_over(tasks: NDArray[np.bool_], joint: FloatArray) -> FloatArray:
    """Sum the probabilities of some tasks, without a copy if these are all."""
    return np.asarray((joint if tasks.all() else joint[tasks]).sum(axis=0))


def _expected(
    problem: _Problem, total: FloatArray, counts: FloatArray, check: Check
) -> tuple[FloatArray, FloatArray, float]:
    """Return the expected logarithms of shares and rates, and their contribution to the lower bound."""
    by_class = total.reshape(-1, problem.subtypes)
    share, bound = _dirichlet(problem.shares, by_class.sum(axis=1), axis=0)
    prior = np.full(by_class.shape, _SUBTYPE_STRENGTH / problem.subtypes)
    subtype, part_of = _dirichlet(prior, by_class, axis=1)
    rates, rest = _expected_rates(problem.rates, counts, check)
    return (share[:, None] + subtype).ravel(), problem.weigh(rates), bound + part_of + rest


def _expected_rates(prior: FloatArray, counts: FloatArray, check: Check) -> tuple[FloatArray, float]:
    """Apply `_dirichlet` along the outputs, (K, L, J M), to some annotators at a time."""
    from scipy.special import digamma, gammaln

    logs, terms = np.empty(counts.shape), np.empty(counts.shape)
    rest = np.empty((len(counts), counts.shape[2]))
    gamma, gamma_of_sum = gammaln(prior), gammaln(prior.sum(axis=0))

    def fill(first: int, last: int) -> None:
        seen, some, bound = counts[first:last], logs[first:last], terms[first:last]
        alpha = prior + seen
        total = alpha.sum(axis=1)
        np.subtract(digamma(alpha), digamma(total)[:, None], out=some)
        np.subtract(gammaln(alpha), gamma, out=bound)
        bound -= seen * some
        np.subtract(gammaln(total), gamma_of_sum, out=rest[first:last])

    run_parts(fill, parts_of(len(counts), _AT_ONCE // prior.size), check)
    return logs, float(terms.sum() - rest.sum())


def _dirichlet(prior: FloatArray, counts: FloatArray, axis: int) -> tuple[FloatArray, float]:
    """Return the expected logarithms of Dirichlet distributed shares, and minus their divergence."""
    from scipy.special import digamma, gammaln

    alpha = prior + counts
    logs = digamma(alpha) - digamma(alpha.sum(axis=axis, keepdims=True))
    bound = (gammaln(alpha) - gammaln(prior) - counts * logs).sum()
    bound -= (gammaln(alpha.sum(axis=axis)) - gammaln(prior.sum(axis=axis))).sum()
    return np.asarray(logs), float(bound)
