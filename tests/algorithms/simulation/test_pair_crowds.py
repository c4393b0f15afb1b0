"""Simulated crowds that compare pairs are what their plan says."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from raterscope.algorithms.pairs.ranking import components
from raterscope.algorithms.simulation.pair_crowds import (
    WAYS,
    PairCrowd,
    draw_item,
    simulate_pairs,
    study_crowd,
)

FIELDS = ("annotator", "left", "right", "choice", "time")


def only(way, **changes):
    shares = tuple(float(name == way) for name in WAYS)
    return PairCrowd(**{"items": 30, "annotators": 150, "fewest": 100, "shares": shares, **changes})


def test_the_study_has_every_pair_by_all_annotators_in_random_order():
    crowd = study_crowd(0.1, 0.4, 3)
    pairs = crowd.pairs
    assert (len(pairs), len(pairs.annotators), len(pairs.items)) == (150 * 120, 150, 16)
    code = np.minimum(pairs.left, pairs.right) * 16 + np.maximum(pairs.left, pairs.right)
    for annotator in (0, 149):
        assert len(np.unique(code[pairs.annotator == annotator])) == 120
    assert (crowd.biased == (np.arange(150) >= 100)).all()
    better_left = (crowd.score[pairs.left] > crowd.score[pairs.right]).mean()
    assert abs(better_left - 0.5) < 4 * 0.5 / np.sqrt(len(pairs))


@pytest.mark.parametrize(("p1", "p2"), [(0.1, 0.4), (0.4, 0.7)])
def test_the_study_has_its_stated_rates_of_errors_and_disturbances(p1, p2):
    wrong, sided, answers = 0, 0, 0
    for run in range(10):
        crowd = study_crowd(p1, p2, run)
        pairs, good = crowd.pairs, ~crowd.biased[crowd.pairs.annotator]
        better = np.sign(crowd.score[pairs.left] - crowd.score[pairs.right])
        wrong += (pairs.choice != better)[good].sum()
        sided += (pairs.choice == crowd.side[pairs.annotator])[~good].sum()
        answers += (~good).sum()
    assert stats.binomtest(int(wrong), 10 * 100 * 120, p1).pvalue > 1e-4
    assert stats.binomtest(int(sided), int(answers), p2 + (1 - p2) / 2).pvalue > 1e-4


def test_the_same_seed_gives_the_same_comparisons_and_another_one_others():
    plan = PairCrowd(20, 30)
    first, second, other = (simulate_pairs(plan, seed).pairs for seed in (5, 5, 6))
    assert (first.annotators, first.items) == (second.annotators, second.items)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert not np.array_equal(first.left, other.left)
    runs = [study_crowd(0.2, 0.5, run).pairs.choice for run in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_careful_answers_follow_the_scores():
    crowd = simulate_pairs(only("careful", noise=0.5), 1)
    pairs = crowd.pairs
    gap = crowd.score[pairs.left] - crowd.score[pairs.right]
    for low in (-2.0, -0.5, 0.2, 1.0):
        here = (low <= gap) & (gap < low + 0.3)
        factors = np.linspace(0.7, 1.4, 50)[:, None] * 0.5
        expected = expit(gap[here] / factors).mean()
        assert abs((pairs.choice[here] > 0).mean() - expected) < 5 * 0.5 / np.sqrt(here.sum())
    assert not crowd.biased.any()


def test_every_behaviour_clicks_its_side_at_the_stated_rate():
    for way, close, far in (("always one side", 0.98, 0.98), ("one side in doubt", 0.9, 0.0)):
        crowd = simulate_pairs(only(way, doubt=0.5, noise=1e-6), 2)
        pairs = crowd.pairs
        gap = crowd.score[pairs.left] - crowd.score[pairs.right]
        side = crowd.side[pairs.annotator]
        other_is_better = side * gap < 0
        for rows, share in ((np.abs(gap) < 0.5, close), (np.abs(gap) >= 0.5, far)):
            rows = rows & other_is_better
            clicked = pairs.choice[rows] == side[rows]
            assert abs(clicked.mean() - share) < 0.02


def test_who_tires_answers_well_at_first_and_by_side_at_last():
    crowd = simulate_pairs(only("tires", noise=1e-6), 3)
    pairs = crowd.pairs
    wrong = pairs.choice != np.sign(crowd.score[pairs.left] - crowd.score[pairs.right])
    for annotator in range(20):
        own = wrong[pairs.annotator == annotator]
        begins = crowd.begins[annotator]
        assert not own[:begins].any()
        assert own[-len(own) // 5 :].mean() > 0.2
    steady = simulate_pairs(only("mostly one side"), 3)
    assert (steady.begins == -1).all()


def test_groups_are_linked_by_bridges_alone():
    plan = PairCrowd(30, 60, groups=3, bridges=2)
    assert components(simulate_pairs(plan, 1).pairs).max() == 0
    apart = components(simulate_pairs(replace(plan, bridges=0), 1).pairs)
    np.testing.assert_array_equal(np.bincount(apart), [10, 10, 10])
    np.testing.assert_array_equal(apart[:10], apart[0])


def test_weak_items_are_compared_three_times():
    crowd = simulate_pairs(PairCrowd(20, 60, weak=4), 1)
    compared = np.bincount(np.concatenate([crowd.pairs.left, crowd.pairs.right]), minlength=20)
    np.testing.assert_array_equal(compared[16:], 3)
    assert compared[:16].min() > 20


def test_lopsided_crowds_show_some_items_on_one_side():
    shares = []
    for lopsided in (0.0, 1.0):
        pairs = simulate_pairs(PairCrowd(20, 200, lopsided=lopsided), 1).pairs
        left, right = np.bincount(pairs.left, minlength=20), np.bincount(pairs.right, minlength=20)
        shares.append(np.ptp(left / (left + right)))
    assert shares[0] < 0.1 < 0.3 < shares[1]


def test_times_rise_and_all_annotators_answers_one_after_the_other():
    pairs = simulate_pairs(PairCrowd(20, 50), 4).pairs
    assert (np.diff(pairs.time) >= 0).all()
    for annotator in range(50):
        gaps = np.diff(pairs.time[pairs.annotator == annotator])
        assert (gaps > 0).all()
        assert gaps.max() < 120


@pytest.mark.parametrize(
    "change",
    [{"items": 1}, {"annotators": 0}, {"shares": (1, 0)}, {"shares": (0,) * 5}, {"noise": 0}, {"fewest": 0},
     {"most": 5}, {"groups": 25}, {"weak": 39}, {"lopsided": 1.5}, {"bridges": -1}],
)  # fmt: skip
def test_plans_that_cannot_be_are_refused(change):
    with pytest.raises(ValueError, match=r"need|expected|must"):
        PairCrowd(**change)


def test_items_have_pictures_that_differ_and_come_again():
    crowd = simulate_pairs(PairCrowd(12, 5), 1)
    pictures = [draw_item(crowd, at) for at in range(12)]
    assert {picture.shape for picture in pictures} == {(80, 80, 3)}
    np.testing.assert_array_equal(pictures[3], draw_item(crowd, 3))
    # Chromatin is stained dark: whole cells darken as the parasite grows.
    dark = np.array([np.percentile(picture, 3) for picture in pictures])
    assert stats.spearmanr(crowd.score, dark).statistic < -0.5
