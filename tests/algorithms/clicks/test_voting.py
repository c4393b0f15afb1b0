"""Majority and share of votes, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from raterscope.algorithms.clicks import Clustering, KnownSpots, Trace
from raterscope.algorithms.clicks.voting import (
    MajoritySettings,
    ShareSettings,
    apply_known_spots,
    assign,
    majority,
    share,
    stray_chance,
    viewed_clusters,
    votes_of,
)
from tests.algorithms.clicks.crowds import made, votes_of_text

VOTES = votes_of_text(["1110", "1100", "1000", "0000"])


def test_half_of_the_annotators_is_enough_unless_ties_do_not_count():
    assert majority(VOTES).detected.tolist() == [True, True, False, False]
    assert majority(VOTES, MajoritySettings(ties_count=False)).detected.tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_a_share_of_votes():
    assert share(VOTES, ShareSettings(share=0.25)).detected.tolist() == [True, True, True, False]
    assert share(VOTES, ShareSettings(share=0.3)).detected.tolist() == [True, True, False, False]


def test_a_fifth_of_fifteen_is_three():
    """0.2 * 15 is a little above 3 to the machine."""
    marked = np.zeros((15, 2), dtype=bool)
    marked[:3, 0] = marked[:2, 1] = True
    votes = type(VOTES)(marked, np.full(2, 0.5), np.full(2, -1, dtype=np.int8))
    assert share(votes).detected.tolist() == [True, False]


def test_the_posterior_is_the_share_with_its_interval():
    result = majority(VOTES)
    assert result.posterior.tolist() == [0.75, 0.5, 0.25, 0.0]
    assert result.posterior_low[1] == pytest.approx(beta(2.5, 2.5).ppf(0.025))
    assert result.posterior_high[1] == pytest.approx(beta(2.5, 2.5).ppf(0.975))
    assert result.posterior_low[3] == 0.0


def test_rates_are_agreement_with_the_vote():
    result = majority(VOTES)
    assert result.sensitivity.tolist() == [1.0, 1.0, 0.5, 0.0]
    assert result.specificity.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert result.false_positive.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_known_truths_overrule_the_vote():
    votes = type(VOTES)(VOTES.marked, VOTES.weight, np.array([0, -1, -1, 1], dtype=np.int8))
    result = majority(votes)
    assert result.detected.tolist() == [False, True, False, True]
    assert result.posterior[[0, 3]].tolist() == [0.0, 1.0]
    assert result.posterior_high[0] == 0.0


def test_without_structures_sensitivity_is_not_defined():
    result = majority(votes_of_text(["10", "00", "00"]))
    assert np.isnan(result.sensitivity).all()
    assert not np.isnan(result.specificity).any()


@pytest.mark.parametrize("detect", [majority, share])
@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 2)])
def test_no_annotators_and_no_items(detect, shape):
    votes = type(VOTES)(np.zeros(shape, bool), np.zeros(shape[1]), np.full(shape[1], -1, dtype=np.int8))
    assert not detect(votes).detected.any()


# Two clusters about (20, 20) and (60, 60); the last click is an outlier near (80, 20).
CLICKS = made(
    [[20, 20], [21, 20], [60, 60], [61, 61], [20, 21], [67, 60], [80, 20]],
    [0, 1, 0, 1, 0, 2, 2],
    annotators=4,
)


def clustering(inlier=(1, 1, 1, 1, 1, 1, 0.1), nearest=(0, 0, 1, 1, 0, 1, 1), scatter=2.0):
    return Clustering(
        np.array([[20.0, 20.0], [60.0, 60.0]]),
        np.tile(np.eye(2) * 4.0, (2, 1, 1)),
        np.array([0.5, 0.5]),
        np.array(inlier, dtype=float),
        np.array(nearest),
        np.array([1.0, 1.0, 0.5, np.nan]),
        scatter,
        Trace.none(),
    )


NOTHING = Clustering(
    np.empty((0, 2)), np.empty((0, 2, 2)), np.empty(0), np.zeros(7), np.full(7, -1), np.zeros(4), np.nan,
    Trace.none(),
)  # fmt: skip


def known(*spots):
    x, y, present = zip(*spots, strict=True) if spots else ((), (), ())
    return KnownSpots(np.array(x, dtype=float), np.array(y, dtype=float), np.array(present, dtype=bool))


def settle(spots, result=None):
    result = clustering() if result is None else result
    return apply_known_spots(CLICKS, result, spots, votes_of(CLICKS, result))


def test_the_rejection_of_a_spot_needs_a_nearer_cluster_than_its_acceptance():
    for away, rejected in ((2.9, [0, -1]), (3.1, [-1, -1])):  # clusters' standard deviations are 2
        assert settle(known((20.0 + away, 20.0, False)))[1].tolist() == rejected
        assert settle(known((20.0 + away, 20.0, True)))[1].tolist() == [1, -1]


def test_viewed_spots_are_those_of_the_nearest_undecided_clusters():
    undecided = np.full(2, -1, dtype=np.int8)
    assert viewed_clusters(CLICKS, clustering(), undecided) is None
    for positions, result in (
        ([[21.0, 20.0]], [True, False]),
        ([[40.0, 40.0]], [False, False]),
        ([], [False] * 2),
    ):
        viewed = replace(CLICKS, viewed=np.array(positions).reshape(-1, 2))
        assert viewed_clusters(viewed, clustering(), undecided).tolist() == result
    viewed = replace(CLICKS, viewed=np.array([[20.0, 20.0], [60.0, 60.0]]))
    decided = np.array([1, -1], dtype=np.int8)
    assert viewed_clusters(viewed, clustering(), decided).tolist() == [False, True]
    assert viewed_clusters(viewed, NOTHING, undecided[:0]).tolist() == []


def test_a_click_marks_its_nearest_cluster_unless_it_is_an_outlier():
    marked = assign(CLICKS, clustering(), votes_of(CLICKS, clustering(), 0.5))
    assert marked.tolist() == [[True, True], [True, True], [False, True], [False, False]]


def test_the_threshold_decides():
    unsure = clustering(inlier=(1, 0.6, 1, 1, 1, 1, 0.1))
    assert assign(CLICKS, unsure, votes_of(CLICKS, unsure, 0.6))[1, 0]
    assert not assign(CLICKS, unsure, votes_of(CLICKS, unsure, 0.61))[1, 0]


def test_with_a_coverage_wide_clicks_are_no_votes():
    assert votes_of(CLICKS, clustering(), 0.5, 1.0)[5]  # 3.5 standard deviations off
    assert not votes_of(CLICKS, clustering(), 0.5, 0.99)[5]
    assert votes_of(CLICKS, clustering(), 0.5, 0.999)[5]


def test_the_coverage_is_the_share_of_a_gaussian_that_votes():
    generator = np.random.default_rng(0)
    covariance = np.array([[9.0, 4.0], [4.0, 5.0]])
    points = generator.multivariate_normal([50, 50], covariance, 20_000)
    clicks = made(points, np.zeros(20_000))
    result = Clustering(
        np.array([[50.0, 50.0]]), covariance[None], np.ones(1), np.ones(20_000), np.zeros(20_000, dtype=int),
        np.ones(1), 3.0, Trace.none(),
    )  # fmt: skip
    for coverage in (0.5, 0.9, 0.975):
        assert votes_of(clicks, result, 0.5, coverage).mean() == pytest.approx(coverage, abs=0.01)


def test_without_clusters_no_annotator_marks_anything():
    assert assign(CLICKS, NOTHING, votes_of(CLICKS, NOTHING)).shape == (4, 0)
    assert stray_chance(CLICKS, NOTHING) == (None, 0.0)


def test_a_known_spot_settles_the_cluster_it_lies_in():
    result, verdict = settle(known((21, 21, True), (60, 57, False)))
    assert verdict.tolist() == [1, 0]
    assert len(result) == 2


def test_of_two_spots_in_one_cluster_the_nearer_settles_it():
    _, verdict = settle(known((23, 20, True), (20.5, 20, False)))
    assert verdict[0] == 0


def test_a_spot_that_is_not_there_and_far_from_all_clusters_settles_nothing():
    result, verdict = settle(known((40, 90, False)))
    assert verdict.tolist() == [-1, -1]
    assert len(result) == 2


def test_a_missed_structure_is_appended_with_the_clicks_about_it():
    result, verdict = settle(known((80, 21, True), (10, 90, True)))
    assert verdict.tolist() == [-1, -1, 1, 1]
    assert result.mean[2:].tolist() == [[80, 21], [10, 90]]
    assert result.covariance[2].tolist() == (4 * np.eye(2)).tolist()
    assert result.nearest[6] == 2
    assert assign(CLICKS, result, votes_of(CLICKS, result))[:, 2].tolist() == [False, False, True, False]
    assert not assign(CLICKS, result, votes_of(CLICKS, result))[:, 3].any()
    assert result.weight.sum() == pytest.approx(1)


def test_a_missed_structure_is_appended_where_nothing_was_found():
    result, verdict = settle(known((80, 20, True)), NOTHING)
    assert verdict.tolist() == [1]
    assert np.isfinite(result.covariance).all()
    assert assign(CLICKS, result, votes_of(CLICKS, result))[2, 0]


def test_known_spots_do_not_change_what_they_were_given():
    before = clustering()
    settle(known((80, 21, True)), before)
    assert before.nearest.tolist() == clustering().nearest.tolist()
    assert before.inlier.tolist() == clustering().inlier.tolist()


@pytest.mark.parametrize(("scatter", "area"), [(5.0, 1000), (0.4, 80)])
def test_stray_clicks_meet_as_often_as_uniform_ones_do(scatter, area):
    generator = np.random.default_rng(1)
    points = np.vstack([np.full((50, 2), 5.0), generator.uniform(0, area, (4000, 2))])
    clicks = made(points, [0] * 50 + [1] * 4000, extent=(0, 0, area, area))
    result = Clustering(
        np.array([[5.0, 5.0]]), np.eye(2)[None] * scatter**2, np.ones(1),
        np.array([1.0] * 50 + [0.0] * 4000), np.zeros(4050, dtype=int), np.array([1.0, 0.0]), scatter,
        Trace.none(),
    )  # fmt: skip
    stray, positions = stray_chance(clicks, result)
    radius = scatter * np.sqrt(-2 * np.log(1 - 0.99))  # within which 99 % of a cluster's clicks lie
    assert positions == pytest.approx(area**2 / (np.pi * radius**2), rel=1e-3)
    centres = generator.uniform(0.1 * area, 0.9 * area, (400, 2))
    distance = np.hypot(*(centres[:, None] - points[50:]).transpose(2, 0, 1))
    assert stray[1] == pytest.approx((distance <= radius).any(axis=1).mean(), abs=0.05)
    assert stray[0] < 0.01
