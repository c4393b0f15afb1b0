"""Shares of a vote for the classes, and sums over votes."""

import numpy as np
import pytest

from raterscope.algorithms.labels import crowd_votes
from raterscope.algorithms.labels.crowd_votes import class_shares, weighted_counts
from raterscope.algorithms.labels.data import OPEN, Labels


def test_an_output_counts_for_its_class_or_in_equal_parts_for_the_most_probable_ones():
    first = np.zeros(1, dtype=np.int32)
    labels = Labels(
        first, first, first, ("task",), ("annotator",), tuple("abcde"), ("x", "y", "z"),
        np.array([0, 1, 2, OPEN, OPEN]),
    )  # fmt: skip
    prior = np.array([[4.0, 1, 1, 2, 1], [1, 4, 1, 2, 1], [1, 1, 5, 1, 1]])
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0, 0]]
    assert class_shares(labels, prior) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("annotators", [3, 200])
def test_many_votes_are_summed_as_few(monkeypatch, annotators):
    generator = np.random.default_rng(0)
    task, annotator, label = (generator.integers(0, n, 1000, dtype=np.int32) for n in (50, annotators, 4))
    labels = Labels(
        task, annotator, label, tuple(map(str, range(50))), tuple(map(str, range(annotators))),
        tuple("abcd"), tuple("abcd"),
    )  # fmt: skip
    weight = generator.random((50, 4))
    few = weighted_counts(labels, weight)
    monkeypatch.setattr(crowd_votes, "_MANY_TERMS", 0)
    assert weighted_counts(labels, weight) == pytest.approx(few)
