"""Whether annotators err independently of each other: a crowd against simulated ones.

Where votes on a task share causes (a hard picture, a misleading text), they predict each other best if the
likelihood is tempered; where they are independent, best if it is not. How much either gains also depends on
the numbers of votes, annotators and classes. So two models are fitted to the crowd, one with independent
votes and one in which every task is a mixture of classes, crowds of the same design are simulated from both
and fitted again, and the crowd's gain is compared with theirs.

References
----------
.. [cox1961] D. R. Cox, "Tests of separate families of hypotheses", Proceedings of the Fourth Berkeley
   Symposium on Mathematical Statistics and Probability 1 (1961) 105-123.
.. [mclachlan1987] G. J. McLachlan, "On bootstrapping the likelihood ratio test statistic for the number of
   components in a normal mixture", Applied Statistics 36 (1987) 318-324, doi:10.2307/2347790 (the
   comparison by simulation).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._hierarchical import (
    Fit,
    dawid_skene,
    predictive_scores,
    smoothed_vote,
    sort_votes,
)
from raterscope.algorithms.labels._membership import mixed_membership
from raterscope.algorithms.labels.data import FloatArray, Labels
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["independence"]

PRIOR = 0.2
"""Probability of independent annotators before the votes: of ten public crowds none had them for certain."""

_SIMULATED = 8
"""Crowds of each kind."""

_FREEDOM = _SIMULATED - 1.0

_TERMS = 100_000
"""Votes times classes from which some of the tasks are taken."""

_LEAST_TERMS = 20
"""Votes on tasks with several, below which nothing is compared."""

_ERROR = 0.1
"""Relative error of a simulated gain beside its scatter; the models are estimates."""

_DEGREES = np.arange(20) / 20
"""Degrees of dependence between the mixture model's (0) and none (1), equally probable."""


def independence(
    labels: Labels,
    correlation: float,
    mixture: float,
    iterations: int,
    tolerance: float,
    watch: Watch = silent,
) -> float:
    """Estimate the probability that annotators err independently.

    Known classes are not used, so that the answer does not depend on what was decided.

    Parameters
    ----------
    labels : Labels
        Repeated votes settled.
    correlation : float
        Of the tempered likelihood that is compared with the full one.
    mixture : float
        Prior strength of a task's mixture in the alternative.
    iterations : int
    tolerance : float
        Of the fits; see `dawid_skene`.
    watch : Watch

    Returns
    -------
    float
        `PRIOR` where the votes say nothing.
    """
    labels = _thinned(replace(labels, known=None))
    if not len(labels):
        return PRIOR
    steps = 2 + 2 * _SIMULATED

    def step(number: int) -> Watch:
        return part(watch, number / steps, (number + 1) / steps, "simulated crowds: ")

    def gain(votes: Labels, watch: Watch) -> tuple[float, Fit, FloatArray]:
        crowd = sort_votes(votes, part(watch, 0.0, 0.05))
        posterior = smoothed_vote(votes, crowd, part(watch, 0.05, 0.1))
        fit, _ = dawid_skene(crowd, posterior, True, iterations, tolerance, part(watch, 0.1, 0.8))
        compared = np.array([0.0, correlation])
        scores = predictive_scores(crowd, fit, posterior, compared, part(watch, 0.8, 1.0))
        return float(scores[0] - scores[1]), fit, posterior

    found, fit, posterior = gain(labels, step(0))
    _, mixed = mixed_membership(sort_votes(labels, silent), posterior, mixture, step(1))
    generator = np.random.default_rng(0)
    independent, dependent = (
        np.array([
            gain(_drawn(labels, model, strength, generator), step(2 + kind * _SIMULATED + at))[0]
            for at in range(_SIMULATED)
        ])
        for kind, (model, strength) in enumerate(((fit, 0.0), (mixed, mixture)))
    )  # fmt: skip
    return _probability(found, independent, dependent)


def _thinned(labels: Labels) -> Labels:
    """Keep tasks with several votes, of very many every second, third ...; and the annotators of these."""
    votes = labels.votes_of_tasks()
    tasks = np.flatnonzero(votes >= 2)
    terms = int(votes[tasks].sum()) * len(labels.classes)
    tasks = tasks[:: max(1, -(-terms // _TERMS))]
    if votes[tasks].sum() < _LEAST_TERMS:
        return labels.subset(np.zeros(len(labels), dtype=bool))
    place = np.full(len(votes), -1)
    place[tasks] = np.arange(len(tasks))
    kept = place[labels.task] >= 0
    given, annotator = np.unique(labels.annotator[kept], return_inverse=True)
    return replace(
        labels,
        task=place[labels.task[kept]].astype(np.int32),
        annotator=annotator.astype(np.int32),
        label=labels.label[kept],
        time=None,
        tasks=tuple(labels.tasks[task] for task in tasks.tolist()),
        annotators=tuple(labels.annotators[one] for one in given.tolist()),
    )


def _drawn(labels: Labels, fit: Fit, mixture: float, generator: np.random.Generator) -> Labels:
    """Draw other labels for the same votes; without a mixture all votes on a task are of one class."""
    tasks, classes = len(labels.tasks), len(fit.shares)
    if mixture > 0:
        weight = generator.gamma(mixture * fit.shares, size=(tasks, classes)) + 1e-300
        weight /= weight.sum(axis=1, keepdims=True)
        apparent = _categories(weight[labels.task], generator)
    else:
        drawn = generator.choice(classes, tasks, p=fit.shares)
        apparent = drawn.astype(np.int16)[labels.task]
    rates = fit.rates()[labels.annotator, :, apparent]
    return replace(labels, label=_categories(rates, generator))


def _categories(probability: FloatArray, generator: np.random.Generator) -> NDArray[np.int16]:
    """Draw a category for each row of probabilities."""
    above = generator.random(len(probability))[:, None] > probability.cumsum(axis=1)
    return np.asarray(np.minimum(above.sum(axis=1), probability.shape[1] - 1), dtype=np.int16)


def _probability(found: float, independent: FloatArray, dependent: FloatArray) -> float:
    """Give the probability of independence, given the crowd's gain and those of simulated crowds.

    Gains of a kind are t distributed. A dependent crowd's mean gain lies anywhere between those of the
    mixture model and of independent annotators.
    """
    means = np.array([independent.mean(), dependent.mean()])
    scatter = np.array([independent.var(ddof=1), dependent.var(ddof=1)])
    spread = np.sqrt(scatter + np.square(_ERROR * means) + 1.0)
    none = float(_density(found, means[:1], spread[:1])[0])
    centres = means[1] + _DEGREES * (means[0] - means[1])
    spreads = spread[1] + _DEGREES * (spread[0] - spread[1])
    some = float(_density(found, centres, spreads).mean())
    return PRIOR * none / (PRIOR * none + (1.0 - PRIOR) * some)


def _density(value: float, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Give Student's t density up to a constant."""
    place = (value - centre) / spread
    return np.asarray((1.0 + place * place / _FREEDOM) ** (-(_FREEDOM + 1.0) / 2.0) / spread)
