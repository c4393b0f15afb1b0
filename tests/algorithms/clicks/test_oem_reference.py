"""The corrected path of OEM against its equations written out densely, and against what EM promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raterscope.algorithms.clicks._crowd import sort_into_cells
from raterscope.algorithms.clicks._path import Path, walk
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.oem import count_by_distance, learn_habits, oem
from raterscope.algorithms.progress import silent
from raterscope.algorithms.simulation.click_crowds import overlapping_crowd, separated_crowd


def densely(points, annotator, uniform, mean, sigma, path, iterations):
    """Run Algorithm 1 as `densely_from`, from components of one size and weight."""
    count = len(mean)
    covariance = np.tile(np.eye(2) * sigma**2, (count, 1, 1))
    reliability = np.full(annotator.max() + 1, path.initial_reliability)
    start = mean, covariance, np.full(count, 1 / count), reliability
    mean, _, weight, *others = densely_from(points, annotator, uniform, start, path, iterations)
    return mean, weight, *others


def densely_from(points, annotator, uniform, start, path, iterations):
    """Run eqs. 8, 9 and 12 to 16 of the OEM-DEM paper over all pairs, with no removal by force."""
    mean, covariance, weight, reliability = start
    scores = []

    def densities():
        away = points[:, None] - mean[None]
        inverse = np.linalg.inv(covariance)
        square = np.einsum("nmi,mij,nmj->nm", away, inverse, away)
        return weight * np.exp(-square / 2) / (2 * np.pi * np.sqrt(np.linalg.det(covariance))), square

    for _ in range(iterations):
        each, _ = densities()
        inside = reliability[annotator] * each.sum(axis=1)
        alpha = inside / (inside + (1 - reliability[annotator]) * uniform)
        share = alpha[:, None] * each / each.sum(axis=1, keepdims=True)
        support = share.sum(axis=0)
        mean = share.T @ points / support[:, None]
        away = points[:, None] - mean[None]
        covariance = np.einsum("nm,nmi,nmj->mij", share, away, away) / support[:, None, None]
        values, vectors = np.linalg.eigh(covariance)
        covariance = np.einsum("mij,mj,mkj->mik", vectors, np.maximum(values, path.floor), vectors)
        reliability = np.clip(np.bincount(annotator, weights=alpha) / np.bincount(annotator), 1e-6, 1 - 1e-6)
        left = np.maximum(support - path.penalty, 0)
        keep = left > 0
        mean, covariance, weight = mean[keep], covariance[keep], left[keep] / left.sum()

        each, square = densities()
        mixed = reliability[annotator] * each.sum(axis=1) + (1 - reliability[annotator]) * uniform
        alpha = reliability[annotator] * each.sum(axis=1) / mixed
        share = alpha[:, None] * each / each.sum(axis=1, keepdims=True)
        if path.criterion == "observed":
            fit = np.log(mixed).sum()
        else:
            log = np.log(weight) - math.log(2 * math.pi) - np.linalg.slogdet(covariance)[1] / 2 - square / 2
            fit = (share * (log + np.log(reliability[annotator])[:, None])).sum()
            fit += ((1 - alpha) * np.log((1 - reliability[annotator]) * uniform)).sum()
        free = len(weight) * 6 + len(reliability)
        scores.append(fit - path.penalty * np.log(weight).sum() - free / 2 * math.log(alpha.sum()))
    return mean, covariance, weight, reliability, alpha, np.array(scores)


def begin(seed: int, criterion, penalty: float, iterations: int):
    """Choose a beginning in which the weakest component is not removed by force before `iterations`."""
    clicks = overlapping_crowd(21, seed).clicks
    sigma = 0.25
    generator = np.random.default_rng(seed)
    mean = clicks.points[generator.choice(len(clicks), 14, replace=False)]
    path = Path(
        criterion,
        penalty,
        0.3 * sigma**2,
        math.inf,
        0,
        iterations,
        1e-15,
        0.9,
        form="corrected",
        outliers=True,
    )
    return clicks, sigma, mean, path


@pytest.mark.parametrize("criterion", ["observed", "expected"])
@pytest.mark.parametrize("penalty", [0.0, 1.25])
@pytest.mark.parametrize("seed", [1, 2])
def test_near_pairs_give_the_result_of_all_pairs(criterion, penalty, seed):
    """Where no component is annihilated: its clicks are its neighbours' at once, not with the next step."""
    clicks, sigma, mean, path = begin(seed, criterion, penalty, 25)
    reference = densely(clicks.points, clicks.annotator, 1 / clicks.area, mean, sigma, path, 25)
    cells = sort_into_cells(clicks, 3 * sigma)
    start = np.array([sigma**2, 0.0, sigma**2])
    result = walk(cells, np.full(21, 0.9), 1 / clicks.area, mean - cells.centre, start, path, sigma, silent)
    np.testing.assert_allclose(result.trace.objective, reference[4], rtol=1e-7)
    best = result.trace.best
    second = densely(clicks.points, clicks.annotator, 1 / clicks.area, mean, sigma, path, best + 1)
    np.testing.assert_allclose(result.mean, second[0], atol=1e-6)
    np.testing.assert_allclose(result.weight, second[1], atol=1e-7)
    np.testing.assert_allclose(result.inlier, second[3], atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_observed_likelihood_never_falls_between_removals(seed):
    """EM promises it for the observed likelihood with the prior of eq. 11, so without prior for eq. 4 itself.

    The criterion "observed" subtracts a term in the expected number of clicks that are no outliers: it is
    added again here.
    """
    likelihoods = []
    for iterations in (2, 5, 10, 20, 40, 80):
        clicks, sigma, mean, path = begin(seed, "observed", 0.0, iterations)
        cells = sort_into_cells(clicks, 3 * sigma)
        start = np.array([sigma**2, 0.0, sigma**2])
        result = walk(
            cells, np.full(21, 0.9), 1 / clicks.area, mean - cells.centre, start, path, sigma, silent
        )
        if result.trace.best == iterations - 1:
            correction = (6 * 14 + 21) / 2 * math.log(result.inlier.sum())
            likelihoods.append(result.trace.objective[-1] + correction)
    assert len(likelihoods) >= 4
    assert (np.diff(likelihoods) > 0).all()


@pytest.mark.parametrize("annotators", [20, 50])
def test_the_scatter_is_learned(annotators):
    for seed in range(3):
        truth = separated_crowd(annotators, seed)
        habits = learn_habits(truth.clicks)
        assert 0.75 * 15 < habits.scatter < 1.25 * 15
        assert habits.repeats > 0.5


def test_marks_made_once_are_recognised():
    generator = np.random.default_rng(0)
    objects = generator.uniform(0, 400, (60, 2))
    positions = [objects[generator.random(60) < 0.7] for _ in range(20)]
    points = np.concatenate([position + generator.normal(0, 2.5, position.shape) for position in positions])
    annotator = np.repeat(np.arange(20), [len(position) for position in positions])
    clicks = Clicks(*points.T, annotator, tuple(f"a{number}" for number in range(20)), (0, 0, 400, 400))
    habits = learn_habits(clicks)
    assert habits.repeats < 0.3
    assert 2 < habits.scatter < 3


def test_a_large_crowd_of_sparse_clickers_scatters_as_a_small_one() -> None:
    """The clicks that are sampled of each must not be those at the edges of the image."""
    rng = np.random.default_rng(0)
    objects = rng.uniform(20, 980, (100, 2))
    x, y, annotators = [], [], []
    for annotator in range(800):
        visible = objects[rng.random(100) < 0.2]
        own = np.concatenate([rng.normal(visible, 3.0), rng.uniform(0, 1000, (1, 2))])
        x.append(own[:, 0])
        y.append(own[:, 1])
        annotators.append(np.full(len(own), annotator))
    names = tuple(f"W{index}" for index in range(800))
    clicks = Clicks(
        np.concatenate(x), np.concatenate(y), np.concatenate(annotators), names, (0, 0, 1000, 1000)
    )
    assert learn_habits(clicks).scatter == pytest.approx(3.0, rel=0.3)
    assert len(oem(clicks)) == pytest.approx(100, abs=2)


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_clicks_are_counted_as_numpy_does_it(weighted):
    generator = np.random.default_rng(5)
    x, y = generator.integers(0, 40, (2, 150)).astype(np.float64)  # some in the same pixel
    annotator, worth = generator.integers(0, 6, 150), generator.random(6)
    edges = np.exp(np.linspace(-3.0, 7.5, 60))  # the farthest pairs are beyond, the nearest below
    same, other = count_by_distance(x, y, annotator, worth if weighted else None, edges)
    first, second = np.triu_indices(150, 1)
    square = (x[first] - x[second]) ** 2 + (y[first] - y[second]) ** 2
    weight = worth[annotator[first]] * worth[annotator[second]] if weighted else np.ones(len(first))
    own = annotator[first] == annotator[second]
    for counted, kind in ((same, own), (other, ~own)):
        square_of_kind = np.maximum(square[kind], edges[0])
        expected, _ = np.histogram(square_of_kind, edges, weights=weight[kind])
        assert counted == pytest.approx(expected)
