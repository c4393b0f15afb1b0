"""Shares of a vote for the classes."""

import numpy as np
import pytest

from raterscope.algorithms.labels.crowd_votes import class_shares
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
