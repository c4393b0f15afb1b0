"""Gibbs sampling against the exact posterior, by going through all classes that the tasks could have."""

import itertools
from math import lgamma
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.data import OPEN, Labels, default_prior
from raterscope.algorithms.labels.ibcc import GibbsSettings, gibbs, ibcc
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.labels.test_voting import crowd, names, read

TINY = crowd([(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 0), (2, 0, 1), (2, 1, 1), (2, 2, 0)], 3, ("0", "1"))


def log_beta(weights: np.ndarray) -> float:
    return sum(lgamma(weight) for weight in weights) - lgamma(float(weights.sum()))


def exact(labels: Labels) -> tuple[np.ndarray, float]:
    """Return the posterior and the log evidence, eq. 1 integrated over rates and shares."""
    prior = default_prior(labels)
    tasks, classes = len(labels.tasks), len(labels.classes)
    joint, states = [], list(itertools.product(range(classes), repeat=tasks))
    for state in map(np.array, states):
        counts = np.zeros((len(labels.annotators), classes, len(labels.outputs)))
        np.add.at(counts, (labels.annotator, state[labels.task], labels.label), 1)
        value = log_beta(1 + np.bincount(state, minlength=classes)) - log_beta(np.ones(classes))
        for k, j in np.ndindex(counts.shape[:2]):
            value += log_beta(prior[j] + counts[k, j]) - log_beta(prior[j])
        known = labels.known
        contradicted = known is not None and ((known != OPEN) & (known != state)).any()
        joint.append(-np.inf if contradicted else value)
    top = max(joint)
    weight = np.exp(np.array(joint) - top)
    posterior = np.zeros((tasks, classes))
    for state, share in zip(states, weight / weight.sum(), strict=True):
        posterior[np.arange(tasks), state] += share
    return posterior, float(top + np.log(weight.sum()))


def random_crowd(seed: int) -> Labels:
    """Repeated votes, four outputs for three classes, a known task and one without votes."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, (6, 3, 4), (30, 3))
    return Labels(
        *votes.T,
        names("t", 7),
        names("a", 4),
        ("0", "1", "2", "?"),
        ("0", "1", "2"),
        meaning=np.array([0, 1, 2, OPEN]),
        known=np.array([1, *[OPEN] * 6]),
    )


def test_the_exact_posterior_is_reached() -> None:
    expected, evidence = exact(TINY)
    assert evidence == pytest.approx(-5.385703, abs=1e-6)  # published for this problem
    settings = GibbsSettings(samples=40_000, tolerance=0)
    assert gibbs(TINY, settings).posterior == pytest.approx(expected, abs=0.005)


def test_so_it_is_with_repeats_unsure_outputs_and_known_tasks() -> None:
    labels = random_crowd(0)
    fusion = gibbs(labels, GibbsSettings(samples=60_000, tolerance=0, seed=0))
    expected, _ = exact(labels)
    assert fusion.posterior == pytest.approx(expected, abs=0.01)
    assert fusion.posterior[0].tolist() == [0, 1, 0]
    assert fusion.confusion.alpha.sum() == pytest.approx(30 + 4 * default_prior(labels).sum())


def test_a_task_that_repeats_thousands_of_times_stays_finite() -> None:
    votes = [(0, k % 50, 0) for k in range(5000)] + [(1, k, 1) for k in range(50)]
    fusion = gibbs(crowd(votes, 2, ("a", "b")), GibbsSettings(samples=20))
    assert fusion.posterior == pytest.approx(np.eye(2), abs=1e-6)


@pytest.mark.parametrize("strength", [1e-5, 1e8])
def test_extreme_priors_stay_finite(strength: float) -> None:
    fusion = gibbs(random_crowd(3), GibbsSettings(samples=50, prior_strength=strength, prior_accuracy=0.7))
    assert np.isfinite(fusion.posterior).all()
    assert np.isfinite(fusion.trace.objective).all()


def test_a_seed_gives_the_same_bits_and_another_does_not() -> None:
    labels = random_crowd(2)
    first, second, other = (
        gibbs(labels, GibbsSettings(samples=50, seed=seed)).posterior for seed in (4, 4, 5)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_it_ends_when_the_mean_is_calm() -> None:
    votes = [(task, annotator, task % 2) for task in range(40) for annotator in range(9)]
    fusion = gibbs(crowd(votes, 40, ("a", "b")))
    assert fusion.trace.converged
    assert len(fusion.trace.objective) < 300
    restless = gibbs(random_crowd(1), GibbsSettings(samples=30, tolerance=1e-9))
    assert not restless.trace.converged
    assert any("After 30 samples" in notice for notice in restless.notices)


@pytest.mark.parametrize("name", ["bluebirds", "rte", "sp_amt"])
def test_it_agrees_with_variational_bayes_on_real_crowds(real_data: Path, name: str) -> None:
    labels, truth = read(real_data, name)
    sampled, bound = (assess(method(labels).posterior, truth, labels.classes) for method in (gibbs, ibcc))
    assert sampled is not None
    assert bound is not None
    assert sampled.accuracy == pytest.approx(bound.accuracy, abs=0.01)
    assert sampled.area == pytest.approx(bound.area, abs=0.005)


@pytest.mark.parametrize(
    "labels",
    [
        crowd([], 0, ("a", "b")),
        crowd([], 2, ("a", "b")),
        crowd([(0, 0, 0), (1, 1, 0)], 2, ("only",)),
        crowd([(0, 0, 1)], 1, ("a", "b", "never")),
        crowd([(0, 0, 1), (0, 1, 0)], 1, ("a", "b"), known=np.array([1])),
        crowd([(0, 0, 1), (1, 5, 1)], 2, ("x", "y"), classes=("a", "b", "c"), meaning=np.array([2, OPEN])),
    ],
    ids=["nothing", "no votes", "one output", "one vote", "all known", "more classes than outputs"],
)
def test_odd_crowds_have_probabilities_all_the_same(labels: Labels) -> None:
    fusion = gibbs(labels, GibbsSettings(samples=5, burn_in=2))
    assert fusion.posterior.sum(axis=1) == pytest.approx(np.ones(len(labels.tasks)))


def test_it_shows_the_mean_so_far_and_can_be_cancelled() -> None:
    calls = []

    def stop(fraction: float, words: str, *, objective: object = None, partial: object = None) -> None:
        if partial is not None:
            calls.append(partial())  # type: ignore[operator]
        if len(calls) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        gibbs(random_crowd(0), watch=stop)
    assert calls[-1].posterior.sum(axis=1) == pytest.approx(np.ones(7))
