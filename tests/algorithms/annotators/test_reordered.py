"""Results with their annotators in another order equal those of annotators given in that order."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.fusion import LabelPlan, fuse
from raterscope.algorithms.pairs import catalogue as pairs
from raterscope.algorithms.simulation.label_crowds import scoring_crowd, simulate_labels
from raterscope.algorithms.simulation.pair_crowds import study_crowd


def renumbered(data, order):
    """The same annotations with the annotators in another order."""
    number = np.argsort(order).astype(data.annotator.dtype)
    names = tuple(data.annotators[at] for at in order)
    return replace(data, annotator=number[data.annotator], annotators=names)


@pytest.mark.parametrize("algorithm", ["dynibcc", "dawid-skene"])
def test_labels(algorithm):
    labels = simulate_labels(scoring_crowd(120, 15), seed=3).labels
    order = np.random.default_rng(1).permutation(len(labels.annotators))
    plan = LabelPlan.make(algorithm, {"communities": "behaviour"})
    given, first = fuse(renumbered(labels, order), plan), fuse(labels, plan)
    moved = first.reordered(order)
    np.testing.assert_allclose(moved.fusion.posterior, given.fusion.posterior, atol=1e-6)
    np.testing.assert_allclose(moved.fusion.confusion.alpha, given.fusion.confusion.alpha, atol=1e-3)
    if given.fusion.drift is not None:
        np.testing.assert_array_equal(moved.fusion.drift.start, given.fusion.drift.start)
        np.testing.assert_array_equal(moved.fusion.drift.vote, given.fusion.drift.vote)
        np.testing.assert_allclose(moved.fusion.drift.alpha, given.fusion.drift.alpha, atol=1e-3)
    np.testing.assert_array_equal(moved.communities.members, given.communities.members)
    assert moved.communities.count > 0
    back = moved.reordered(np.argsort(order))
    np.testing.assert_array_equal(back.communities.community, first.communities.community)


def test_pairs():
    crowd = study_crowd(p1=0.2, p2=0.6).pairs
    order = np.random.default_rng(1).permutation(len(crowd.annotators))
    given, moved = pairs.fuse(renumbered(crowd, order)), pairs.fuse(crowd).reordered(order)
    np.testing.assert_array_equal(moved.flagged, given.flagged)
    np.testing.assert_array_equal(moved.left, given.left)
    np.testing.assert_allclose(moved.bias, given.bias, atol=1e-9)
    np.testing.assert_allclose(moved.q_value, given.q_value, atol=1e-9)
    np.testing.assert_allclose(moved.path, given.path, atol=1e-4)
    np.testing.assert_allclose(moved.statistic, given.statistic, atol=1e-4)
