"""Rates and decisions over time by the methods of the thesis (chapters 3 and 5), on given decisions.

Annotators decide for each of M clusters whether it is a structure. In chapter 3 the same R annotators decide
again at every step; in chapter 5 annotators join one after the other and decide once. EM needs only the
number of decisions of each annotator on each cluster, and the number of yes decisions. The cost of a step is
therefore constant. Batch EM, from the start to convergence, and the MAP rule, with known rates, are for
comparison.

The uncorrected published version continues from the last estimates alone and hardly ever corrects an error:
the posteriors are nearly 0 or 1, and newcomers are judged by them. By default each step here also starts from
the share of yes votes, and continues from the state that explains the decisions better. Beta priors keep
rates away from 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy
from numpy.typing import ArrayLike

from raterscope.algorithms.clicks._vote_model import EDGE
from raterscope.algorithms.clicks.data import BoolArray, ClicksError, FloatArray
from raterscope.algorithms.progress import Check, Watch, no_check, silent

METHODS = {
    "recursive": "recursive EM", "newton": "incremental Newton", "batch": "batch EM", "majority": "majority",
    "map": "MAP, rates known",
}  # fmt: skip
"""Methods in the order of the rows of every result; the first three estimate rates."""

LARGEST = 2_000_000
"""Maximum number of annotators times clusters."""

OPENING = 10
"""Number of annotators at the start of a stream that others join, as in section 5.2."""
_STEPS, _FEW_STEPS, _CHEAP = 50, 15, 100_000
"""Maximum number of steps; the same for large crowds, because batch EM restarts at each step; and the number
of annotators times clusters of a large crowd.
"""
_LOW, _HIGH = 0.025, 0.975


@dataclass(frozen=True, eq=False)
class Decisions:
    """V binary decisions of R annotators on M clusters, in order of time."""

    # annotator, cluster: (V,)
    annotator: np.ndarray
    cluster: np.ndarray
    yes: BoolArray  # (V,)
    # annotators, clusters: R and M
    annotators: int
    clusters: int


@dataclass(frozen=True, eq=False)
class DecisionCourse:
    """Estimates of the methods after each of T steps."""

    repeated: bool  # whether a step is one more decision of each annotator; else further annotators join
    at: np.ndarray  # (T,): decisions of each annotator, or annotators, after the step
    # keys of `METHODS` that estimate rates: three, or without Newton if annotators join
    estimated: tuple[str, ...]
    # sensitivity, specificity: (3, T, R): by method; NaN before an annotator's first decision
    sensitivity: FloatArray
    specificity: FloatArray
    # low, high: (2, T, R): 95 % interval of both rates, from the Beta distributions of recursive EM
    low: FloatArray
    high: FloatArray
    prevalence: FloatArray  # (3, T)
    # tuple of T DecisionState: states of recursive EM; their annotators are `order[:len]`
    states: tuple[DecisionState, ...]
    order: np.ndarray  # (R,): the annotators in order of joining
    posterior: FloatArray  # (3, T, M)


@dataclass(frozen=True, eq=False)
class CourseAccuracy:
    """Accuracy of a course on clusters with known truth."""

    # keys of `METHODS`; only those that estimate rates have errors of rates
    methods: tuple[str, ...]
    # wrong, sensitivity, precision: (K, T): share of wrong decisions, sensitivity and precision of the
    # detections
    wrong: FloatArray
    sensitivity: FloatArray
    precision: FloatArray
    # (3, E, T): mean squared errors of the estimated sensitivities, specificities and the prevalence, by the
    # E methods that estimate rates
    error: FloatArray
    score: FloatArray  # (K, n): posterior of the n known clusters after the last step
    truth: BoolArray  # (n,)


def follow_decisions(
    decisions: Decisions, settings: DecisionSettings | None = None, watch: Watch = silent
) -> DecisionCourse:
    """Compute the estimates of recursive EM, incremental Newton and batch EM while decisions arrive.

    Raises `ClicksError` without decisions, or for more annotators times clusters than `LARGEST`.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import decide_again, voting_crowd
    >>> labels = decide_again(voting_crowd(7, 15, seed=1, sensitivity=0.9, specificity=0.5), 20, seed=1)
    >>> _, who, cluster = np.nonzero(np.ones_like(labels))
    >>> course = follow_decisions(Decisions(who, cluster, labels.ravel(), 7, 15))
    >>> course.repeated, int(course.at[-1])
    (True, 20)
    """
    settings = settings or DecisionSettings()
    size = decisions.annotators * decisions.clusters
    if not len(decisions.yes):
        raise ClicksError("there are no decisions; expected at least one.")
    if size > LARGEST:
        raise ClicksError(
            f"{decisions.annotators:,} annotators and {decisions.clusters:,} clusters are too many "
            f"to follow; expected at most {LARGEST:,} pairs of them."
        )
    most = _STEPS if size <= _CHEAP else _FEW_STEPS
    repetition = _repetitions(decisions)
    if repetition.max(initial=0) and (repetition > 0).mean() >= 1 / 3:
        return _follow_repeated(decisions, repetition, most, settings, watch)
    return _follow_joining(decisions, most, settings, watch)


def measure_course(
    course: DecisionCourse,
    truth: np.ndarray,
    rates: tuple[FloatArray, FloatArray, float] | None = None,
) -> CourseAccuracy | None:
    """Measure a course by known clusters; None unless both structures and others are known.

    `truth`: (M,), 1 for a structure, 0 for none, below 0 where it is not known. `rates`: true sensitivities
    (R,), specificities (R,) and prevalence, if known, as in a simulation. By default they are the rates of
    each annotator's own decisions on known clusters; estimates from the same decisions are necessarily close
    to these.
    """
    known = truth >= 0
    true = truth[known] == 1
    if true.all() or not true.any():
        return None
    if rates is None:
        last, rows = course.states[-1], _state_rows(course)
        hits = _share(last.yes[:, known] @ true, last.decided[:, known] @ true)
        alarms = _share(last.yes[:, known] @ ~true, last.decided[:, known] @ ~true)
        rates = hits[rows], 1 - alarms[rows], float(true.mean())
    *by_annotator, prevalence = rates
    methods = (*course.estimated, "majority", "map")
    scores = np.empty((len(methods), len(course.at), known.sum()))
    scores[: len(course.estimated)] = course.posterior[:, :, known]
    for step, state in enumerate(course.states):
        yes, decided = state.yes.sum(axis=0), state.decided.sum(axis=0)
        scores[-2, step] = np.where(decided > 0, yes / np.maximum(decided, 1), 0.5)[known]
        joined = course.order[: len(state.yes)]
        sensitivity, specificity = (np.nan_to_num(rate[joined], nan=0.5) for rate in by_annotator)
        scores[-1, step] = map_rule(state, sensitivity, specificity, prevalence)[known]
    detected = scores >= 0.5
    right = (detected & true).sum(axis=2)
    error = np.empty((3, len(course.estimated), len(course.at)))
    for at, estimate in enumerate((course.sensitivity, course.specificity)):
        error[at] = _mean((estimate - by_annotator[at]) ** 2)
    error[2] = (course.prevalence - prevalence) ** 2
    return CourseAccuracy(
        methods, (detected != true).mean(axis=2), right / true.sum(), _share(right, detected.sum(axis=2)),
        error, scores[:, -1], true,
    )  # fmt: skip


def _repetitions(decisions: Decisions) -> np.ndarray:
    """Count, for each decision, how often its annotator decided on its cluster before."""
    pair = decisions.annotator.astype(np.int64) * decisions.clusters + decisions.cluster
    order = np.argsort(pair, kind="stable")
    ordered = pair[order]
    begins = np.flatnonzero(np.append(True, np.diff(ordered) != 0))
    repetition = np.empty(len(pair), dtype=np.int64)
    repetition[order] = np.arange(len(pair)) - np.repeat(begins, np.diff(np.append(begins, len(pair))))
    return repetition


def _follow_repeated(
    decisions: Decisions, repetition: np.ndarray, most: int, settings: DecisionSettings, watch: Watch
) -> DecisionCourse:
    times = min(int(repetition.max()) + 1, most)
    recursive = newton = initial_state(decisions.annotators, decisions.clusters)
    states = []
    for step in range(times):
        look = partial(watch, step / times, "following decisions")
        look()
        now = repetition == step
        answers = np.full((decisions.annotators, decisions.clusters), np.nan)
        answers[decisions.annotator[now], decisions.cluster[now]] = decisions.yes[now]
        recursive = recursive_em(recursive, answers, settings)
        newton = incremental_newton(newton, answers, settings)
        states.append((recursive, newton, batch_em(recursive, settings, look)))
    order = np.arange(decisions.annotators)
    return _course(True, np.arange(1, times + 1), ("recursive", "newton", "batch"), states, order, settings)


def _follow_joining(
    decisions: Decisions, most: int, settings: DecisionSettings, watch: Watch
) -> DecisionCourse:
    answers = np.full((decisions.annotators, decisions.clusters), np.nan)
    answers[decisions.annotator, decisions.cluster] = decisions.yes  # the last decision on a cluster counts
    active, first = np.unique(decisions.annotator, return_index=True)
    active = active[np.argsort(first)]
    idle = np.setdiff1d(np.arange(decisions.annotators), active)
    order = np.concatenate([active, idle]).astype(np.int64)
    opening = min(OPENING, len(active))
    steps = min(most, len(active) - opening + 1)
    ends = np.unique(np.linspace(opening, len(active), steps).round().astype(int))
    state = initial_state(0, decisions.clusters)
    states = []
    for step, end in enumerate(ends.tolist()):
        look = partial(watch, step / len(ends), "following annotators")
        look()
        state = admit_annotators(state, answers[order[len(state.yes) : end]], settings)
        states.append((state, batch_em(state, settings, look)))
    return _course(False, ends, ("recursive", "batch"), states, order, settings)


def _course(
    repeated: bool,
    at: np.ndarray,
    estimated: tuple[str, ...],
    states: Sequence[tuple[DecisionState, ...]],
    order: np.ndarray,
    settings: DecisionSettings,
) -> DecisionCourse:
    shape = len(estimated), len(states), len(order)
    sensitivity, specificity = np.full(shape, np.nan), np.full(shape, np.nan)
    low, high = np.full((2, *shape[1:]), np.nan), np.full((2, *shape[1:]), np.nan)
    for step, every in enumerate(states):
        joined = order[: len(every[0].yes)]
        active = every[0].decided.sum(axis=1) > 0
        for row, state in enumerate(every):
            sensitivity[row, step, joined[active]] = state.sensitivity[active]
            specificity[row, step, joined[active]] = state.specificity[active]
        for row, ends in enumerate(_intervals(every[0], settings)):
            low[row, step, joined[active]], high[row, step, joined[active]] = ends[:, active]
    return DecisionCourse(
        repeated=repeated,
        at=np.asarray(at, dtype=np.int64),
        estimated=estimated,
        sensitivity=sensitivity,
        specificity=specificity,
        low=low,
        high=high,
        prevalence=np.array([[state.prevalence for state in rows] for rows in zip(*states, strict=True)]),
        states=tuple(every[0] for every in states),
        order=order,
        posterior=np.array([[state.posterior for state in rows] for rows in zip(*states, strict=True)]),
    )


def _intervals(state: DecisionState, settings: DecisionSettings) -> tuple[FloatArray, FloatArray]:
    """Return the ends of both rates' intervals, (2, R) each: Beta distributions, with the prior's votes."""
    votes = 1.0 if settings.as_published else STRENGTH
    right = 0.5 if settings.as_published else STRENGTH * EXPECTED_RATE
    intervals = []
    for weight, answers in ((state.posterior, state.yes), (1 - state.posterior, state.decided - state.yes)):
        hits, total = answers @ weight + right, state.decided @ weight + votes
        complement = np.maximum(total - hits, 1e-9)
        intervals.append(
            np.array(
                [scipy.special.betaincinv(np.maximum(hits, 1e-9), complement, end) for end in (_LOW, _HIGH)]
            )
        )
    return intervals[0], intervals[1]


def _state_rows(course: DecisionCourse) -> np.ndarray:
    """Return the row of each annotator in the states, whose annotators are in order of joining."""
    rows = np.empty(len(course.order), dtype=np.int64)
    rows[course.order] = np.arange(len(course.order))
    return np.minimum(rows, len(course.states[-1].yes) - 1)


def _share(part: np.ndarray, total: np.ndarray) -> FloatArray:
    out = np.full(np.shape(part), np.nan)
    np.divide(part, total, out=out, where=np.asarray(total) > 0)
    return out


def _mean(values: FloatArray) -> FloatArray:
    """Average the finite values over the last axis; NaN without any."""
    known = np.isfinite(values)
    return _share(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1))


EXPECTED_RATE, STRENGTH = 0.7, 5.0
"""Mean of the prior of sensitivities and specificities, and its weight in votes."""
_STEP_EXPONENT = 0.6
"""Newton's step t is t to the power of minus this."""
_CONVERGED = 1e-6
"""Summed change of the parameters below which batch EM has converged."""


@dataclass(frozen=True)
class DecisionSettings:
    """Settings of EM on streams of decisions."""

    as_published: bool = False  # no priors, and recursion continues from its last estimates alone
    iterations: int = 500  # maximum number of iterations of batch EM


@dataclass(frozen=True, eq=False)
class DecisionState:
    """State of R annotators and M clusters after some steps."""

    step: int  # steps taken
    # sensitivity, specificity: (R,): one half without decisions
    sensitivity: FloatArray
    specificity: FloatArray
    prevalence: float  # share of clusters that are structures
    posterior: FloatArray  # (M,): probability that the cluster is a structure, given all decisions
    # yes, decided: (R, M): number of yes decisions, and of all decisions, of each annotator on each cluster
    yes: FloatArray
    decided: FloatArray


def initial_state(annotators: int, clusters: int) -> DecisionState:
    """Return the state without decisions; chapter 5 begins without annotators."""
    half, none = np.full(annotators, 0.5), np.zeros((annotators, clusters))
    return DecisionState(0, half, half, 0.5, np.full(clusters, 0.5), none, none)


def recursive_em(
    state: DecisionState, decisions: ArrayLike, settings: DecisionSettings | None = None
) -> DecisionState:
    """Add one decision of every annotator on every cluster, by one EM iteration (thesis, Algorithm 4).

    `decisions`: (R, M), 1 for a structure, 0 for none, NaN without a decision. Raises `ClicksError`
    for another shape or other values.
    """
    return _step(_count(state, decisions), settings or DecisionSettings())


def admit_annotators(
    state: DecisionState, decisions: ArrayLike, settings: DecisionSettings | None = None
) -> DecisionState:
    """Add annotators with their decisions, by one EM iteration (thesis, Algorithm 5).

    The newcomers' rates start from their decisions and the last posteriors; the rates of the first annotators
    start from the share of yes decisions.

    `state`: state of R annotators and M clusters.
    `decisions`: (K, M), decisions of the newcomers: 1 for a structure, 0 for none, NaN without
        a decision.
    The new state has R + K annotators, the newcomers last.
    Raises `ClicksError` for another number of clusters or other values.
    """
    settings = settings or DecisionSettings()
    newcomers = np.shape(decisions)[0] if np.ndim(decisions) == 2 else 0
    arrived = _count(initial_state(newcomers, len(state.posterior)), decisions)
    sensitivity, specificity, _ = _maximise(arrived.yes, arrived.decided, state.posterior, settings)
    return _step(
        replace(
            state,
            step=state.step + 1,
            sensitivity=np.append(state.sensitivity, sensitivity),
            specificity=np.append(state.specificity, specificity),
            yes=np.concatenate([state.yes, arrived.yes]),
            decided=np.concatenate([state.decided, arrived.decided]),
        ),
        settings,
    )


def incremental_newton(
    state: DecisionState, decisions: ArrayLike, settings: DecisionSettings | None = None
) -> DecisionState:
    """Add one decision of every annotator on every cluster, by a Newton step (thesis, eqs. 3.17-3.20).

    The first decisions make one EM iteration instead. Newton's steps use the expected information, which
    makes them too large for few decisions: a full first step would move rates to their bounds, from which
    they hardly return.

    `decisions`: (R, M), 1 for a structure, 0 for none, NaN without a decision. Raises `ClicksError`
    for another shape or other values.
    """
    settings = settings or DecisionSettings()
    state = _count(state, decisions)
    if state.step == 1:
        return _step(state, settings)
    rate = state.step**-_STEP_EXPONENT
    mu = _off_edges(state.prevalence)
    present = _posterior(state)
    right, votes = _prior(settings)
    count = state.decided.sum(axis=1)
    estimates = []
    for probability, answers, old, share in (
        (present, state.yes, state.sensitivity, mu),
        (1 - present, state.decided - state.yes, state.specificity, 1 - mu),
    ):
        slope = answers @ probability + right - old * (state.decided @ probability + votes)
        weight = share * count + votes
        estimates.append(
            _off_edges(old + rate * np.divide(slope, weight, out=np.zeros_like(old), where=weight > 0))
        )
    kinds = 0.0 if settings.as_published else 1.0
    clusters = len(present)
    change = present.sum() + kinds - mu * (clusters + 2 * kinds)
    moved = _off_edges(mu + rate * change / max(clusters + 2 * kinds, 1.0))
    return replace(
        state, sensitivity=estimates[0], specificity=estimates[1], prevalence=float(moved), posterior=present
    )


def batch_em(
    state: DecisionState, settings: DecisionSettings | None = None, check: Check = no_check
) -> DecisionState:
    """Run EM on all decisions of a state until it converges (thesis, Algorithm 3).

    It starts from the share of yes decisions on a cluster.

    `state`: only its decisions count.
    `check`: called at every iteration; it may raise an exception to stop.
    The step of the state does not change.
    """
    settings = settings or DecisionSettings()
    state = _restart(state, settings)
    for _ in range(settings.iterations):
        check()
        old = state
        state = _iterate(state, settings)
        change = abs(state.prevalence - old.prevalence) + sum(
            np.abs(now - then).sum()
            for now, then in ((state.sensitivity, old.sensitivity), (state.specificity, old.specificity))
        )
        if change < _CONVERGED:
            break
    return state


def map_rule(
    state: DecisionState, sensitivity: FloatArray, specificity: FloatArray, prevalence: float
) -> FloatArray:
    """Return the (M,) posteriors under known rates, with the least error (thesis, eq. 3.12).

    `state`: only its decisions count. `sensitivity`, `specificity`: (R,).
    """
    return _posterior(_with_rates(state, (sensitivity, specificity, prevalence)))


def log_posterior(state: DecisionState, settings: DecisionSettings | None = None) -> float:
    """Return the log posterior of the parameters; as published, the log likelihood (thesis, eq. 3.9)."""
    settings = settings or DecisionSettings()
    present, absent = _logs(state)
    sensitivity, specificity, mu = (
        _off_edges(rate) for rate in (state.sensitivity, state.specificity, state.prevalence)
    )
    right, votes = _prior(settings)
    value = np.logaddexp(present, absent).sum()
    for rate in (sensitivity, specificity):
        value += (right * np.log(rate) + (votes - right) * np.log1p(-rate)).sum()
    return float(value + (0.0 if settings.as_published else np.log(mu) + np.log1p(-mu)))


def _count(state: DecisionState, decisions: ArrayLike) -> DecisionState:
    """Count a step's decisions."""
    answers = np.asarray(decisions, dtype=np.float64)
    if answers.shape != state.yes.shape:
        raise ClicksError(
            f"decisions have the shape {answers.shape}; expected annotators by clusters, {state.yes.shape}."
        )
    decided = state.decided + ~np.isnan(answers)
    if not (np.isnan(answers) | np.isin(answers, (0.0, 1.0))).all():
        raise ClicksError("a decision is neither 0 nor 1; expected one of them, or NaN without a decision.")
    return replace(state, step=state.step + 1, yes=state.yes + (answers == 1), decided=decided)


def _step(state: DecisionState, settings: DecisionSettings) -> DecisionState:
    """Run one EM iteration; unless as published, from the state that explains the decisions better."""
    if state.step == 1:
        state = _restart(state, settings)
    elif not settings.as_published:
        restarted = _iterate(_restart(state, settings), settings)
        state = max(state, restarted, key=lambda candidate: log_posterior(candidate, settings))
    return _iterate(state, settings)


def _iterate(state: DecisionState, settings: DecisionSettings) -> DecisionState:
    present = _posterior(state)
    return replace(
        _with_rates(state, _maximise(state.yes, state.decided, present, settings)), posterior=present
    )


def _restart(state: DecisionState, settings: DecisionSettings) -> DecisionState:
    """Estimate the rates from the share of yes decisions; one half without decisions."""
    yes, decided = state.yes.sum(axis=0), state.decided.sum(axis=0)
    share = np.divide(yes, decided, out=np.full(len(decided), 0.5), where=decided > 0)
    return _with_rates(state, _maximise(state.yes, state.decided, share, settings))


def _with_rates(state: DecisionState, rates: tuple[FloatArray, FloatArray, float]) -> DecisionState:
    return replace(state, sensitivity=rates[0], specificity=rates[1], prevalence=rates[2])


def _prior(settings: DecisionSettings) -> tuple[float, float]:
    """Return the number of correct votes in the prior, and of all its votes."""
    votes = 0.0 if settings.as_published else STRENGTH
    return votes * EXPECTED_RATE, votes


def _maximise(
    yes: FloatArray, decided: FloatArray, present: FloatArray, settings: DecisionSettings
) -> tuple[FloatArray, FloatArray, float]:
    """Run an M step (thesis, eqs. 3.14-3.16) with the prior's votes; one half for 0/0."""
    right, votes = _prior(settings)
    rates = []
    for weight, answers in ((present, yes), (1 - present, decided - yes)):
        total = decided @ weight + votes
        rates.append(
            np.divide(answers @ weight + right, total, out=np.full(len(total), 0.5), where=total > 0)
        )
    kinds = 0.0 if settings.as_published else 1.0
    clusters = len(present) + 2 * kinds
    return rates[0], rates[1], float((present.sum() + kinds) / clusters) if clusters else 0.5


def _posterior(state: DecisionState) -> FloatArray:
    """Run an E step (thesis, eq. 3.12)."""
    present, absent = _logs(state)
    return 1 / (1 + np.exp(np.clip(absent - present, -700, 700)))


def _logs(state: DecisionState) -> tuple[FloatArray, FloatArray]:
    """Return (M,) log probabilities of all decisions together with a structure, and with none."""
    sensitivity, specificity, mu = (
        _off_edges(rate) for rate in (state.sensitivity, state.specificity, state.prevalence)
    )
    no = state.decided - state.yes
    present = np.log(mu) + np.log(sensitivity) @ state.yes + np.log1p(-sensitivity) @ no
    absent = np.log1p(-mu) + np.log1p(-specificity) @ state.yes + np.log(specificity) @ no
    return present, absent


def _off_edges(rate: FloatArray | float) -> FloatArray:
    return np.clip(rate, EDGE, 1 - EDGE)
