"""Weights of annotators in the ranking, against weighted least squares by numpy."""

import numpy as np
import pytest

from raterscope.algorithms.pairs.catalogue import PATHS, PairPlan, fuse
from raterscope.algorithms.pairs.ranking import bradley_terry, scores
from raterscope.algorithms.simulation.pair_crowds import study_crowd

PAIRS = study_crowd(p1=0.2, p2=0.6).pairs
SOME = PAIRS.annotators[:30]
HALF = dict.fromkeys(SOME, 0.5)


@pytest.mark.parametrize("path", list(PATHS))
def test_weight_1_changes_nothing_and_0_excludes(path):
    plan = PairPlan.make(path, {"steps": "500"} if path == "lbi" else {})
    assert PATHS[path].weighs
    full, without = fuse(PAIRS, plan), fuse(PAIRS.without(SOME), plan)
    assert (fuse(PAIRS.with_weights(dict.fromkeys(SOME, 1.0)), plan).corrected == full.corrected).all()
    assert (fuse(PAIRS.with_weights(dict.fromkeys(SOME, 0.0)), plan).corrected == without.corrected).all()
    weighed = fuse(PAIRS.with_weights(HALF), plan)
    assert not np.allclose(weighed.corrected, full.corrected, atol=1e-3)
    assert (weighed.flagged == full.flagged).all()
    assert any("side bias uses all of their choices" in notice for notice in weighed.notices)


def test_scores_and_biases_are_those_of_weighted_least_squares():
    pairs = PAIRS.with_weights(HALF)
    biased = np.zeros(len(pairs.annotators), dtype=bool)
    biased[[0, 40]] = True
    design = np.zeros((len(pairs), len(pairs.items) + 2))
    rows = np.arange(len(pairs))
    design[rows, pairs.left], design[rows, pairs.right] = 1, -1
    design[pairs.annotator == 0, -2] = design[pairs.annotator == 40, -1] = 1
    root = np.sqrt(pairs.weights[pairs.annotator])
    expected, *_ = np.linalg.lstsq(design * root[:, None], pairs.choice * root, rcond=None)
    found = scores(pairs, biased)
    assert found.score == pytest.approx(expected[:-2] - expected[:-2].mean(), abs=1e-9)
    assert found.bias[[0, 40]] == pytest.approx(expected[-2:], abs=1e-9)


def test_small_weights_approach_an_exclusion():
    small, without = PAIRS.with_weights(dict.fromkeys(SOME, 1e-9)), PAIRS.without(SOME)
    for name in ("score", "low", "high", "variance"):
        assert getattr(scores(small), name) == pytest.approx(getattr(scores(without), name), abs=1e-6)
    assert bradley_terry(small) == pytest.approx(bradley_terry(without), abs=1e-5)
