"""Effect of decisions on the ranking and on undecided annotators."""

import numpy as np
import pytest

from raterscope.algorithms.pairs.catalogue import fuse
from tests.benchmarks.calibration.pairs import Crowd, decide, ranking_error


@pytest.fixture(scope="module")
def fused():
    crowds = [Crowd(60, 80, 20, 700 + run) for run in range(6)]
    return [(crowd, fuse(crowd.pairs)) for crowd in crowds]


@pytest.mark.parametrize("count", [1, 3, 10, 30, 80])
def test_correct_decisions_leave_the_others_as_they_are_and_do_not_blur_the_ranking(fused, count):
    change = []
    for crowd, fusion in fused:
        flagged, decided = decide(crowd, fusion, count)
        np.testing.assert_array_equal(flagged[~decided], fusion.flagged[~decided])
        change.append(ranking_error(crowd, flagged) / ranking_error(crowd, fusion.flagged))
    assert np.mean(change) < 1.01  # the flags are nearly right before: 30 crowds gave 0.993 to 0.998


@pytest.mark.parametrize("count", [1, 10, 80])
def test_one_decision_in_five_wrong_does_bounded_harm(fused, count):
    change = [
        ranking_error(crowd, decide(crowd, fusion, count, 0.2, run)[0]) / ranking_error(crowd, fusion.flagged)
        for run, (crowd, fusion) in enumerate(fused)
    ]
    assert np.mean(change) < 1.03
