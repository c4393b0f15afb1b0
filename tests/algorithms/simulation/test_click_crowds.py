"""The synthetic crowds are what the papers say of them."""

import numpy as np
import pytest

from raterscope.algorithms.simulation.click_crowds import overlapping_crowd, separated_crowd, voting_crowd


def test_overlapping_crowd_is_the_set_up_of_the_paper():
    crowd = overlapping_crowd(51, seed=4)
    clicks = crowd.clicks
    assert clicks.extent == (1, 0, 4, 5)
    assert not clicks.outside.any()
    assert clicks.counts().min() >= 16
    assert clicks.counts().max() <= 24
    assert len(crowd.mean) == 10
    shares = [np.mean(crowd.reliability == value) for value in (0.95, 0.75, 0.25)]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=1 / 51)
    areas = sorted(np.linalg.det(crowd.covariance))
    assert areas == pytest.approx([0.04 * 0.05] * 5 + [0.08 * 0.1] * 4 + [0.12 * 0.15])


def test_separated_crowd_is_the_set_up_of_the_thesis():
    crowd = separated_crowd(50, seed=2)
    distance = np.hypot(*(crowd.mean[:, None] - crowd.mean).transpose(2, 0, 1))
    assert distance[np.triu_indices(15, 1)].min() >= 100
    assert set(crowd.clicks.counts()) <= set(range(13, 18))
    of_first = crowd.clicks.points[crowd.component == 0]
    assert np.hypot(*(of_first - crowd.mean[0]).T).max() < 5 * 15


def test_clicks_come_from_their_component_as_often_as_the_annotator_is_reliable():
    crowds = [separated_crowd(50, seed) for seed in range(10)]
    for reliability in (0.95, 0.75, 0.25):
        inlier = np.concatenate(
            [
                crowd.component[crowd.reliability[crowd.clicks.annotator] == reliability] >= 0
                for crowd in crowds
            ]
        )
        assert inlier.mean() == pytest.approx(reliability, abs=4 * 0.5 / np.sqrt(len(inlier)))


def test_centres_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        separated_crowd(2, seed=0, components=20, side=100.0)


@pytest.mark.parametrize(
    "draw", [lambda seed: overlapping_crowd(11, seed), lambda seed: separated_crowd(20, seed)]
)
def test_a_seed_gives_the_same_crowd_and_another_seed_another(draw):
    assert np.array_equal(draw(5).clicks.points, draw(5).clicks.points)
    assert not np.array_equal(draw(5).mean, draw(6).mean)


def test_votes_follow_the_two_coins():
    crowd = voting_crowd(40, 5000, seed=1, sensitivity=0.8, specificity=0.9, prevalence=0.3)
    marked = crowd.votes.marked
    assert crowd.present.mean() == pytest.approx(0.3, abs=0.03)
    assert marked[:, crowd.present].mean(axis=1) == pytest.approx(crowd.sensitivity, abs=0.06)
    assert 1 - marked[:, ~crowd.present].mean(axis=1) == pytest.approx(crowd.specificity, abs=0.06)
    assert crowd.votes.weight.sum() == pytest.approx(1)


def test_rates_of_votes_have_the_mean_requested():
    crowds = [voting_crowd(11, 2, seed, sensitivity=0.6) for seed in range(400)]
    assert np.mean([crowd.sensitivity for crowd in crowds]) == pytest.approx(0.6, abs=0.02)
    assert np.mean([crowd.specificity for crowd in crowds]) == pytest.approx(0.75, abs=0.02)
