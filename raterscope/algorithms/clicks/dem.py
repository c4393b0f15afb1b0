"""DEM: EM detection of structures among clusters, with annotators' rates (OEM-DEM paper, section 5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, Detection, FloatArray, Votes
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice, integer, number

__all__ = ["DEMSettings", "dem"]

EDGE = 1e-6
"""Rates are kept this far from 0 and 1, which no vote could ever leave again."""


@dataclass(frozen=True)
class DEMSettings(Settings):
    """Settings of `dem`. A prior's strength of 25 weighs as 25 clusters whose truth is known."""

    prior: str = choice(
        "beta", "Prior", "What is held of annotators before their votes are seen.",
        {"beta": "Beta priors", "none": "none, as printed"},
    )  # fmt: skip
    sensitivity_mean: float = number(
        0.6, "Expected sensitivity", "Mean of the prior.", minimum=0.01, maximum=0.99, advanced=True
    )
    sensitivity_strength: float = number(
        5.0, "Strength of sensitivity", "Weight of the prior.", unit="votes", minimum=0.0, advanced=True
    )
    specificity_mean: float = number(
        0.98, "Expected specificity", "Mean of the prior.", minimum=0.01, maximum=0.999, advanced=True
    )
    specificity_strength: float = number(
        25.0, "Strength of specificity", "Weight of the prior.", unit="votes", minimum=0.0, advanced=True
    )
    start: str = choice(
        "best", "Start", "Posteriors to begin with.",
        {
            "best": "the best of all three",
            "paper": "the better of share and majority, as the paper takes",
            "share": "share of votes (eq. 32)",
            "majority": "majority vote (eq. 33)",
            "weight": "weight of the cluster (eq. 34)",
        },
        advanced=True,
    )  # fmt: skip
    detection_threshold: float = number(
        0.5, "Detection threshold", "A cluster is detected when its posterior reaches this.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    detection_iterations: int = integer(
        500, "Detection iterations", "Most iterations from each start.", minimum=1, advanced=True
    )
    detection_tolerance: float = number(
        1e-8, "Detection tolerance", "Relative gain beneath which an ascent ends.", minimum=0.0, maximum=0.1,
        advanced=True,
    )  # fmt: skip
    interval_draws: int = integer(
        200, "Draws", "Draws of annotators' rates for the interval of a posterior.",
        minimum=20, maximum=10_000, advanced=True,
    )  # fmt: skip
    detection_seed: int = integer(
        0, "Seed of draws", "Of the draws for the intervals.", minimum=0, maximum=2**31 - 1, advanced=True
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Votes as a sparse matrix, what is known, and the priors as counts of votes."""

    marks: Any  # (R, M), sparse
    marks_by_cluster: Any  # (M, R), sparse
    known: BoolArray
    truth: FloatArray
    hit: float
    miss: float
    quiet: float
    false: float
    even: float


@dataclass(frozen=True, eq=False)
class _Rates:
    prevalence: float
    sensitivity: FloatArray
    specificity: FloatArray


@dataclass(frozen=True, eq=False)
class _Ascent:
    posterior: FloatArray
    rates: _Rates
    objective: FloatArray
    converged: bool


def dem(votes: Votes, settings: DEMSettings | None = None, watch: Watch = silent) -> Detection:
    """Decide by EM which clusters are structures (OEM-DEM paper, Algorithm 2).

    With Beta priors the M step (eqs. 27-29) counts the prior's votes as well; as printed it does not.
    Clusters whose truth is known keep it throughout and teach the annotators' rates. Annotators who marked
    nothing count: they marked no cluster. Where an annotator's rate has nothing to be judged by (0/0), it is
    one half.

    Parameters
    ----------
    votes : Votes
        Of R annotators on M clusters.
    settings : DEMSettings, optional
    watch : Watch

    Returns
    -------
    Detection
        `objective` is the log posterior of the kept ascent (log likelihood as printed), which never falls.
    """
    settings = DEMSettings() if settings is None else settings
    problem = _problem(votes, settings)
    starts = list(_starts(votes, settings.start))
    best: _Ascent | None = None
    for turn, start in enumerate(starts):
        share = part(watch, 0.9 * turn / len(starts), 0.9 * (turn + 1) / len(starts))
        ascent = _climb(problem, start, settings, share)
        if best is None or ascent.objective[-1] > best.objective[-1]:
            best = ascent
    assert best is not None
    low, high = _intervals(problem, best, settings, part(watch, 0.9, 1.0))
    hit, miss, quiet, false = _expected_votes(problem, best.posterior)
    return Detection(
        posterior=best.posterior,
        posterior_low=low,
        posterior_high=high,
        detected=best.posterior >= settings.detection_threshold,
        prevalence=best.rates.prevalence,
        sensitivity=best.rates.sensitivity,
        specificity=best.rates.specificity,
        true_positive=hit,
        false_negative=miss,
        true_negative=quiet,
        false_positive=false,
        objective=best.objective,
        converged=best.converged,
    )


def _problem(votes: Votes, settings: DEMSettings) -> _Problem:
    from scipy.sparse import csr_array

    marks = csr_array(votes.marked.astype(np.float64))
    given = settings.prior == "beta"
    sensitivity, specificity = settings.sensitivity_mean, settings.specificity_mean
    strong, quiet = given * settings.sensitivity_strength, given * settings.specificity_strength
    return _Problem(
        marks=marks,
        marks_by_cluster=marks.T.tocsr(),
        known=votes.verdict >= 0,
        truth=(votes.verdict == 1).astype(np.float64),
        hit=strong * sensitivity,
        miss=strong * (1 - sensitivity),
        quiet=quiet * specificity,
        false=quiet * (1 - specificity),
        even=float(given),
    )


def _starts(votes: Votes, start: str) -> Iterable[FloatArray]:
    count, annotators = votes.marked.sum(axis=0), max(votes.marked.shape[0], 1)
    if start in {"best", "paper", "share"}:
        yield count / annotators
    if start in {"best", "paper", "majority"}:
        yield (2 * count >= annotators).astype(np.float64)
    if start in {"best", "weight"}:
        largest = float(votes.weight.max(initial=0.0))
        yield votes.weight / largest if largest > 0 else np.full(len(votes.weight), 0.5)


def _climb(problem: _Problem, start: FloatArray, settings: DEMSettings, watch: Watch) -> _Ascent:
    posterior = np.where(problem.known, problem.truth, start)
    objective: list[float] = []
    converged = False
    rates = _maximise(problem, posterior)
    for iteration in range(settings.detection_iterations):
        posterior, value = _expect(problem, rates)
        objective.append(value)
        watch((iteration + 1) / settings.detection_iterations, "weighing the votes", objective=value)
        if iteration and value - objective[-2] <= settings.detection_tolerance * abs(value):
            converged = True
            break
        rates = _maximise(problem, posterior)
    return _Ascent(posterior, rates, np.array(objective), converged)


def _expected_votes(
    problem: _Problem, posterior: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Count hits, misses, true negatives and false positives of each annotator, each by its probability."""
    hit, false = problem.marks @ posterior, problem.marks @ (1 - posterior)
    there = float(posterior.sum())
    return hit, np.maximum(there - hit, 0), np.maximum(len(posterior) - there - false, 0), false


def _maximise(problem: _Problem, posterior: FloatArray) -> _Rates:
    """M step (eqs. 27-29) with the prior's votes."""
    hit, miss, quiet, false = _expected_votes(problem, posterior)
    there, clusters = float(posterior.sum()), len(posterior)
    prevalence = (there + problem.even) / (clusters + 2 * problem.even) if clusters + problem.even else 0.5
    return _Rates(
        min(max(prevalence, EDGE), 1 - EDGE),
        _rate(hit + problem.hit, miss + problem.miss),
        _rate(quiet + problem.quiet, false + problem.false),
    )


def _rate(right: FloatArray, wrong: FloatArray) -> FloatArray:
    whole = right + wrong
    rate: FloatArray = np.full(len(whole), 0.5)
    np.divide(right, whole, out=rate, where=whole > 0)
    return np.minimum(np.maximum(rate, EDGE), 1 - EDGE)


def _expect(problem: _Problem, rates: _Rates) -> tuple[FloatArray, float]:
    """E step (eq. 25) and the log posterior of the rates."""
    present, absent = _log_likelihoods(problem, rates.sensitivity[:, None], rates.specificity[:, None])
    present = present[:, 0] + np.log(rates.prevalence)
    absent = absent[:, 0] + np.log1p(-rates.prevalence)
    either = np.logaddexp(present, absent)
    posterior = np.where(problem.known, problem.truth, np.exp(present - either))
    settled = np.where(problem.truth == 1, present, absent)
    likelihood = np.sum(np.where(problem.known, settled, either))
    prior = np.sum(
        problem.hit * np.log(rates.sensitivity)
        + problem.miss * np.log1p(-rates.sensitivity)
        + problem.quiet * np.log(rates.specificity)
        + problem.false * np.log1p(-rates.specificity)
    ) + problem.even * (np.log(rates.prevalence) + np.log1p(-rates.prevalence))
    return posterior, float(likelihood + prior)


def _log_likelihoods(
    problem: _Problem, sensitivity: FloatArray, specificity: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give the log of eqs. 22 and 21, (M, D), for D sets of (R, D) rates."""
    missed, quiet = np.log1p(-sensitivity), np.log(specificity)
    present: FloatArray = problem.marks_by_cluster @ (np.log(sensitivity) - missed) + missed.sum(axis=0)
    absent: FloatArray = problem.marks_by_cluster @ (np.log1p(-specificity) - quiet) + quiet.sum(axis=0)
    return present, absent


def _intervals(
    problem: _Problem, ascent: _Ascent, settings: DEMSettings, watch: Watch
) -> tuple[FloatArray, FloatArray]:
    """Draw annotators' rates from their posteriors and give 95 % of the posteriors that follow."""
    watch(0.0, "weighing what is not known of the annotators")
    generator = np.random.default_rng(settings.detection_seed)
    hit, miss, quiet, false = _expected_votes(problem, ascent.posterior)
    there, least = float(ascent.posterior.sum()), 0.5  # Jeffreys' prior where there is none
    size = (settings.interval_draws, len(hit))
    sensitivity = generator.beta(hit + max(problem.hit, least), miss + max(problem.miss, least), size).T
    specificity = generator.beta(quiet + max(problem.quiet, least), false + max(problem.false, least), size).T
    prevalence = generator.beta(there + 1, len(ascent.posterior) - there + 1, settings.interval_draws)
    present, absent = _log_likelihoods(
        problem, np.clip(sensitivity, EDGE, 1 - EDGE), np.clip(specificity, EDGE, 1 - EDGE)
    )
    odds = present - absent + np.log(prevalence) - np.log1p(-prevalence)
    drawn = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
    low, high = np.quantile(drawn, (0.025, 0.975), axis=1)
    low, high = np.minimum(low, ascent.posterior), np.maximum(high, ascent.posterior)
    watch(1.0, "weighed")
    known = problem.known
    return np.where(known, problem.truth, low), np.where(known, problem.truth, high)
