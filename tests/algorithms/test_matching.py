"""Matching against a search through all choices and the dense assignment."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from raterscope.algorithms.evaluation import match, true_detections


def best_by_search(positions, truth, radius):
    """Try all one-to-one choices: most pairs, then least distance."""
    best = (0, 0.0)
    spots = [*range(len(truth)), *[-1] * len(positions)]
    for choice in set(itertools.permutations(spots, len(positions))):
        distances = [np.hypot(*(positions[i] - truth[j])) for i, j in enumerate(choice) if j >= 0]
        if all(distance <= radius for distance in distances):
            best = max(best, (len(distances), -sum(distances)))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_matching_is_the_best_of_all_choices(seed):
    generator = np.random.default_rng(seed)
    result, truth = generator.uniform(0, 6, (4, 2)), generator.uniform(0, 6, (3, 2))
    matching = match(result, truth, 2.5)
    pairs, distance = best_by_search(result, truth, 2.5)
    assert len(matching) == pairs
    assert matching.distance.sum() == pytest.approx(-distance)
    assert len(set(matching.found)) == len(set(matching.truth)) == pairs


def test_many_points_match_as_the_dense_assignment_does():
    generator = np.random.default_rng(3)
    result, truth = generator.uniform(0, 100, (400, 2)), generator.uniform(0, 100, (500, 2))
    radius = 4.0
    distance = np.hypot(*(result[:, None] - truth).transpose(2, 0, 1))
    dense = np.where(distance <= radius, distance, 1e6)
    rows, columns = linear_sum_assignment(dense)
    kept = dense[rows, columns] < 1e6
    matching = match(result, truth, radius)
    assert len(matching) == kept.sum()
    assert matching.distance.sum() == pytest.approx(dense[rows, columns][kept].sum())
    assert (matching.distance <= radius).all()


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_a_radius_that_will_not_do(radius):
    with pytest.raises(ValueError, match="matching radius"):
        match(np.zeros((1, 2)), np.zeros((1, 2)), radius)


def test_the_surer_of_two_detections_is_the_true_one():
    result, truth = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 0.0]])
    assert true_detections(result, np.array([0.2, 0.9]), truth, 3.0).tolist() == [False, True]
