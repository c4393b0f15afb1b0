"""Streams of binary decisions on fixed clusters (thesis, chapters 3 and 5).

Annotators decide for each of M clusters whether it is a structure. In chapter 3 the same R annotators decide
again at every step; in chapter 5 annotators join one after the other and decide once. EM needs only how often
each annotator decided on each cluster, and how often the answer was yes. A step therefore costs the same
after any number of steps. Batch EM, from the start to convergence, and the MAP rule, with known rates, are
for comparison.

The uncorrected published version continues from the last estimates alone and hardly ever corrects an error:
the posteriors are nearly 0 or 1, and newcomers are judged by them. By default each step here also starts from
the share of yes votes, and continues from the state that explains the decisions better. Beta priors keep
rates away from 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from raterscope.algorithms.clicks._vote_model import EDGE
from raterscope.algorithms.clicks.data import ClicksError, FloatArray
from raterscope.algorithms.progress import Check, no_check

EXPECTED_RATE, STRENGTH = 0.7, 5.0
"""Mean of the prior of sensitivities and specificities, and its weight in votes."""
_STEP_EXPONENT = 0.6
"""Newton's step t is t to the power of minus this."""
_CONVERGED = 1e-6
"""Summed change of the parameters from which on batch EM has converged."""


@dataclass(frozen=True)
class DecisionSettings:
    """Settings of EM on streams of decisions."""

    as_printed: bool = False  # no priors, and recursion continues from its last estimates alone
    iterations: int = 500  # most iterations of batch EM


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
    """Return the state without decisions; chapter 5 begins with no annotators."""
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

    The newcomers' rates start from their decisions and the last posteriors; those of the first annotators
    from the share of yes decisions.

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

    The first decisions make one EM iteration instead. Newton's steps are scaled by the expected information,
    which is too large for few decisions: a full first step would move rates to their bounds, from where they
    hardly return.

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
    kinds = 0.0 if settings.as_printed else 1.0
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
    return float(value + (0.0 if settings.as_printed else np.log(mu) + np.log1p(-mu)))


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
    elif not settings.as_printed:
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
    """Return the prior's right votes, and all its votes."""
    votes = 0.0 if settings.as_printed else STRENGTH
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
    kinds = 0.0 if settings.as_printed else 1.0
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
