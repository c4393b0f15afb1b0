"""Reliability across kinds: log likelihood of held-out votes with the correlation between kinds, and without.

Annotators answer questions of two kinds with a probability whose log odds are normal in the crowd and
correlated between kinds. The gain is the difference of the expected log likelihood of a further vote.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, roots_hermitenorm

from raterscope.algorithms.annotators.reliability import FloatArray, Z, annotator_reliability
from tests.benchmarks.calibration import Row

KINDS = ("few votes", "other kind")
CORRELATIONS = (0.0, 0.4, 0.8)
CROWDS = ((20, (4, 4)), (20, (4, 40)), (60, (4, 4)), (60, (4, 40)), (200, (4, 40)), (60, (20, 20)))
REPEATS = 60


def gain(correlation: float, people: int, votes: tuple[int, int], seed: int) -> FloatArray:
    """Return the gain of each kind in nats a held-out vote."""
    rng = np.random.default_rng(seed)
    truth = rng.multivariate_normal([1.0, 1.0], [[1.0, correlation], [correlation, 1.0]], people)
    chance = expit(truth)
    right = rng.binomial(votes, chance)
    counts = [_log_odds(hits, count) for hits, count in zip(right.T, votes, strict=True)]
    estimate, error = np.array(counts).transpose(1, 2, 0)
    together = _likelihood(estimate, error, KINDS, chance)
    alone = [
        _likelihood(estimate[:, [kind]], error[:, [kind]], (name,), chance[:, [kind]])
        for kind, name in enumerate(KINDS)
    ]
    return together - np.concatenate(alone)


def _log_odds(right: FloatArray, total: int) -> tuple[FloatArray, FloatArray]:
    """Convert counts of right answers to log odds and their standard errors, linearised at the crowd's mean.

    With few answers the error of an annotator's own log odds depends on the estimate, which hides differences
    between annotators; the error at the crowd's mean does not.
    """
    mean = float((right.sum() + 0.5) / (len(right) * total + 1.0))
    slope = mean * (1.0 - mean)
    value = np.log(mean / (1.0 - mean)) + (right / total - mean) / slope
    return value, np.full(len(right), 1.0 / np.sqrt(total * slope))


def _likelihood(
    estimate: FloatArray, error: FloatArray, kinds: tuple[str, ...], chance: FloatArray
) -> FloatArray:
    """Return the expected log likelihood of a held-out vote, by kind."""
    result = annotator_reliability(estimate, error, kinds)
    predicted = _predicted(result.value, (result.value_high - result.value_low) / (2 * Z))
    return np.asarray((chance * np.log(predicted) + (1 - chance) * np.log1p(-predicted)).mean(axis=0))


def _predicted(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the probability of a right answer, integrated over the uncertain log odds."""
    nodes, weights = roots_hermitenorm(21)
    odds = mean[..., None] + deviation[..., None] * nodes
    return np.asarray(np.clip((expit(odds) * weights).sum(axis=-1) / weights.sum(), 1e-9, 1 - 1e-9))


def rows() -> list[Row]:
    """Measure the gain on crowds of several sizes, correlations and numbers of votes."""
    results = []
    for people, votes in CROWDS:
        for correlation in CORRELATIONS:
            gains = np.array([gain(correlation, people, votes, seed) for seed in range(REPEATS)])[:, 0]
            data = f"{people} annotators, {votes[0]} and {votes[1]} votes, r = {correlation:g}"
            number = "gain of log likelihood a held-out vote, milli-nats"
            results.append(
                Row("reliability", number, data, math.nan, 1000 * float(gains.mean()), REPEATS,
                    1000 * float(gains.std() / math.sqrt(REPEATS)))
            )  # fmt: skip
    return results
