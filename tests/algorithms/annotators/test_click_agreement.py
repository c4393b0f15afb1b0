"""Agreement of annotators of clicks against scikit-learn, pair by pair."""

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

from raterscope.algorithms.annotators.agreement import click_agreement

NAMES = ("ann", "ben", "cid", "dee", "eve")


def crowd():
    """Three images that some annotators viewed, in various orders."""
    rng = np.random.default_rng(4)
    annotators = [("ann", "ben", "cid"), ("cid", "ben", "dee", "ann"), ("dee", "cid")]
    marked = [rng.random((len(here), size)) < 0.6 for here, size in zip(annotators, (12, 7, 9), strict=True)]
    return marked, annotators


def votes_of(marked, annotators, first, second):
    """Answers of two annotators on the clusters that both viewed."""
    pairs = [
        np.stack([votes[here.index(first)], votes[here.index(second)]])
        for votes, here in zip(marked, annotators, strict=True)
        if first in here and second in here
    ]
    return np.concatenate(pairs, axis=1) if pairs else np.empty((2, 0), dtype=bool)


def test_agreement_of_every_pair_equals_an_independent_implementation():
    marked, annotators = crowd()
    result = click_agreement(marked, annotators)
    assert result.names == ("ann", "ben", "cid", "dee")
    for i, name in enumerate(result.names):
        for j, other in enumerate(result.names):
            first, second = votes_of(marked, annotators, name, other)
            assert result.clusters[i, j] == len(first)
            assert result.kappa[i, j] == pytest.approx(cohen_kappa_score(first, second))
            assert result.dice[i, j] == pytest.approx(f1_score(first, second))
    assert result.images[0, 1] == 2
    assert result.images[0, 3] == 1


def test_kappa_is_not_defined_where_both_mark_all_and_nothing_is_without_a_common_image():
    everything, empty = np.ones((1, 4), dtype=bool), np.zeros((1, 4), dtype=bool)
    together = np.concatenate([everything, everything, empty, empty])
    alone = np.ones((1, 3), dtype=bool)
    result = click_agreement([together, alone], [NAMES[:4], ("eve",)])
    assert result.dice[0, 1] == 1.0
    assert math.isnan(result.kappa[0, 1])
    assert math.isnan(result.dice[2, 3])
    assert math.isnan(result.kappa[2, 3])
    assert result.dice[0, 2] == result.kappa[0, 2] == 0.0
    assert result.clusters[0, 4] == result.images[0, 4] == 0
    assert math.isnan(result.dice[0, 4])
    assert math.isnan(result.kappa[0, 4])


def test_who_agrees_with_no_annotator_stands_last_by_the_weight_of_what_is_in_common():
    rng = np.random.default_rng(2)
    truth = rng.random(60) < 0.5
    crowd = np.array([truth ^ (rng.random(60) < wrong) for wrong in (0.05, 0.1, 0.05, 0.5)])
    result = click_agreement([crowd, np.ones((1, 2), dtype=bool)], [NAMES[:4], ("eve",)])
    for measure in (result.dice, result.kappa):
        mean = result.mean_agreement(measure)
        assert np.nanargmin(mean) == 3
        assert math.isnan(mean[4])


def test_a_thousand_annotators_are_compared_pairwise():
    rng = np.random.default_rng(0)
    votes = rng.random((1000, 200)) < rng.random(200)
    result = click_agreement([votes], [[f"a{annotator}" for annotator in range(1000)]])
    for item, other in ((0, 999), (17, 512)):
        assert result.kappa[item, other] == pytest.approx(cohen_kappa_score(votes[item], votes[other]))


def test_nothing_fused_is_no_annotator():
    result = click_agreement([], [])
    assert result.names == ()
    assert result.dice.shape == (0, 0)
