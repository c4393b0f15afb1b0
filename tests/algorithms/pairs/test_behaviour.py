"""Good, ugly and bad: in crowds whose ways are known, and in the paper's table."""

import numpy as np
import pytest

from raterscope.algorithms.pairs.data import BEHAVIOURS
from raterscope.algorithms.pairs.evidence import (
    behaviours,
    match_ratio,
    match_ratios,
    one_sided,
    side_share,
)
from raterscope.algorithms.pairs.ranking import scores
from raterscope.algorithms.simulation.pair_crowds import WAYS, PairCrowd, simulate_pairs, study_crowd
from tests.algorithms.pairs.test_ranking import BOTH_SIDES, ONE_SIDE, TABLE_8, compared, real

GOOD, UGLY, BAD = range(3)


def test_the_behaviours_are_called_as_in_the_paper():
    assert BEHAVIOURS[:3] == ("good", "ugly", "bad")


def test_no_annotator_who_was_not_flagged_is_accused():
    pairs = compared([(0, 0, 1, 1)] * 30 + [(1, 0, 1, 1)] * 30 + [(2, 1, 0, -1)])
    np.testing.assert_array_equal(behaviours(pairs, np.array([True, False, False])), [BAD, GOOD, GOOD])


def test_ties_show_no_side_and_who_only_ties_has_none():
    pairs = compared([(0, 0, 1, 1)] * 3 + [(0, 1, 2, 0)] * 5 + [(1, 0, 1, 0)])
    np.testing.assert_array_equal(side_share(pairs), [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(behaviours(pairs, np.array([True, True, False])), [BAD, UGLY, GOOD])


@pytest.mark.parametrize("p2", [0.4, 0.7])
def test_the_simulated_study_has_ugly_annotators_alone(p2):
    crowd = study_crowd(0.1, p2)
    result = behaviours(crowd.pairs, crowd.biased)
    assert (result[crowd.biased] == UGLY).all()
    assert (result[~crowd.biased] == GOOD).all()


def test_annotators_are_bad_if_always_one_sided_and_ugly_if_only_when_unsure():
    informed = np.zeros((len(WAYS), 3))
    for seed in range(5):
        crowd = simulate_pairs(PairCrowd(fewest=40), seed)
        result = behaviours(crowd.pairs, crowd.biased)
        np.add.at(informed, (crowd.way, result), 1)
    share = informed / informed.sum(axis=1, keepdims=True)
    assert share[WAYS.index("careful"), GOOD] == 1
    assert share[WAYS.index("always one side"), BAD] > 0.9
    for way in ("mostly one side", "one side in doubt", "tires"):
        assert share[WAYS.index(way), UGLY] > 0.95


def test_one_side_alone_is_listed_from_five_answers_on():
    rows = [(0, 0, 1, 1)] * 5 + [(1, 0, 1, -1)] * 4 + [(2, 1, 0, -1)] * 6 + [(2, 0, 1, 0)]
    np.testing.assert_array_equal(one_sided(compared(rows)), [True, False, False])
    np.testing.assert_array_equal(one_sided(compared(rows), least=4), [True, True, False])


def test_the_match_ratio_is_the_share_of_answers_with_the_ranking():
    score = np.array([1.0, 0.5, 0.5, np.nan])
    rows = [(0, 0, 1, 1), (0, 1, 0, -2.5), (0, 2, 0, 1), (0, 0, 2, 0)]
    pairs = compared([*rows, (1, 1, 2, 1), (1, 0, 2, 1), (2, 0, 1, 0)])
    np.testing.assert_allclose(match_ratio(pairs, score), [2 / 3, 0.75, np.nan])
    assert match_ratios(pairs, score)[1] == pytest.approx(3.5 / 5)
    assert np.isnan(match_ratios(compared([]), score)[1])


def test_table_8_falls_into_those_who_click_one_side_alone_and_the_others(real_data):
    pairs = real(real_data, "worldcollege")
    flagged = np.array([name in TABLE_8 for name in pairs.annotators])
    result = behaviours(pairs, flagged)
    for name, behaviour in zip(pairs.annotators, result, strict=True):
        expected = BAD if int(name) in ONE_SIDE else UGLY if int(name) in BOTH_SIDES else GOOD
        assert behaviour == expected
    ratio = match_ratio(pairs, scores(pairs, flagged).score)
    assert np.nanmean(ratio[flagged]) < np.nanmean(ratio[~flagged]) - 0.2
