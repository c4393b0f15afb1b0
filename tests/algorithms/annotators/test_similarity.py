"""Similarity of two annotators."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.annotators.similarity import (
    SCALE,
    fitting_scale,
    hellinger_similarity,
    roots_of,
)
from tests.algorithms.annotators.crowds import FIVE, diagonal, planted


def test_three_annotators_worked_out_by_an_independent_implementation() -> None:
    """At the scale of equations 32 and 33 as they are printed."""
    mean = np.array(
        [
            [[0.6271891906, 0.3190303156, 0.0537804939], [0.0822428666, 0.3651526006, 0.5526045328]],
            [[0.6351651591, 0.3093639826, 0.0554708583], [0.0813352029, 0.3681425187, 0.5505222785]],
            [[0.6461058515, 0.2988789529, 0.0550151956], [0.0840430098, 0.36146793, 0.5544890602]],
        ]
    )
    expected = [
        [1.0, 0.9999383992, 0.9997515812],
        [0.9999383992, 1.0, 0.9999010799],
        [0.9997515812, 0.9999010799, 1.0],
    ]
    np.testing.assert_allclose(hellinger_similarity(mean, scale=1.0), expected, atol=1e-6)


def test_it_is_the_printed_sum_multiplied_by_the_scale() -> None:
    mean = np.random.default_rng(3).dirichlet(np.ones(4), size=(6, 3))
    result = hellinger_similarity(mean, scale=2.5)
    for m in range(6):
        for n in range(6):
            distance = sum(1 - sum(np.sqrt(mean[m, j] * mean[n, j])) for j in range(3))
            assert result[m, n] == pytest.approx(np.exp(-2.5 * distance), rel=1e-4)
    np.testing.assert_array_equal(result, result.T)
    np.testing.assert_array_equal(np.diag(result), 1.0)


def test_annotators_with_nothing_in_common_are_not_alike_and_zeros_do_no_harm() -> None:
    result = hellinger_similarity([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]], scale=30)
    np.testing.assert_allclose(result, [[1.0, np.exp(-60.0)], [np.exp(-60.0), 1.0]], atol=1e-12)


def test_matrices_that_are_no_probabilities_are_refused() -> None:
    for bad in (np.ones((2, 2, 2)), [[[0.5, np.nan]]], [[[1.5, -0.5]]], np.ones((2, 2)), np.ones((2, 0, 2))):
        with pytest.raises(ValueError, match="expected"):
            hellinger_similarity(bad)
    assert hellinger_similarity(np.empty((0, 2, 3))).shape == (0, 0)


def test_where_chance_sets_like_annotators_apart_the_scale_gives_way() -> None:
    few, many = planted(FIVE, 40, 60, 1)[0], planted(np.array([diagonal(0.6, 8)]), 100, 60, 1)[0]
    assert fitting_scale(roots_of(few), 2) == SCALE
    wide = fitting_scale(roots_of(many), 8)
    near = np.sort(hellinger_similarity(many, wide), axis=1)[:, -11]
    assert wide < SCALE / 2
    assert np.median(near) == pytest.approx(np.exp(-1), abs=0.01)
    assert fitting_scale(roots_of(many[:1]), 8) == SCALE
