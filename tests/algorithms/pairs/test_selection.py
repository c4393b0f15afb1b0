"""Tests of single annotators beside SciPy's."""

import numpy as np
import pytest
from scipy.special import ndtr

from raterscope.algorithms.pairs.paths import gram_matrices, least_squares, scale_grams
from raterscope.algorithms.pairs.selection import (
    benjamini_hochberg,
    bias_probabilities,
    binomial_test,
    intervals,
    t_test,
)
from tests.algorithms.pairs.test_grams import full, read, scattered


def test_t_tests_are_those_of_the_full_regression():
    from scipy import stats

    pairs = scattered(6, groups=3)
    design = np.hstack(full(pairs))
    fitted, *_ = np.linalg.lstsq(design, pairs.choice)
    freedom = len(pairs) - np.linalg.matrix_rank(design)
    variance = ((pairs.choice - design @ fitted) ** 2).sum() / freedom
    error = np.sqrt(variance * np.diagonal(np.linalg.pinv(design.T @ design)))[9:]
    small = gram_matrices(pairs)
    problem, _ = scale_grams(small)
    result = least_squares(small, problem)
    expected = 2 * stats.t.sf(np.abs(fitted[9:]) / error, freedom)
    assert t_test(result) == pytest.approx(expected, rel=1e-8)
    bias, low, high = intervals(result, problem)
    assert bias == pytest.approx(fitted[9:])
    assert high - bias == pytest.approx(stats.t.ppf(0.975, freedom) * error)
    assert bias - low == pytest.approx(high - bias)


def test_binomial_tests_are_scipys():
    from scipy import stats

    left, right = np.array([0, 5, 17, 3, 40, 253]), np.array([0, 0, 6, 3, 2, 324])
    expected = [1.0] + [
        stats.binomtest(int(a), int(a + b)).pvalue for a, b in zip(left[1:], right[1:], strict=True)
    ]
    assert binomial_test(left, right) == pytest.approx(expected, rel=1e-9)


def test_benjamini_and_hochberg_select_as_scipy_adjusts():
    from scipy import stats

    generator = np.random.default_rng(4)
    probability = np.where(np.arange(50) < 20, generator.random(50) * 0.02, generator.random(50))
    for rate in (0.01, 0.05, 0.1, 0.2):
        expected = stats.false_discovery_control(probability) <= rate
        assert (benjamini_hochberg(probability, rate) == expected).all()
        apart = np.insert(probability, 3, np.nan)
        assert (benjamini_hochberg(apart, rate) == np.insert(expected, 3, False)).all()
    assert not benjamini_hochberg(np.full(5, np.nan), 0.1).any()


@pytest.mark.parametrize(
    ("name", "by_t", "by_counts"),
    [("worldcollege", 26, 22), ("lf_quality", 18, 17), ("music_sigir2010", 8, 4)],
)
def test_as_many_of_real_crowds_are_selected_as_is_known(real_data, name, by_t, by_counts):
    pairs = read(real_data, name)
    small = gram_matrices(pairs)
    problem, _ = scale_grams(small)
    assert benjamini_hochberg(t_test(least_squares(small, problem)), 0.1).sum() == by_t
    left, right, _ = pairs.counts()
    assert benjamini_hochberg(binomial_test(left, right), 0.1).sum() == by_counts


def test_probabilities_of_a_bias_are_right_on_average():
    rng = np.random.default_rng(3)
    claimed, true = [], []
    for biased in (0, 8, 40):
        for _ in range(20):
            z = rng.normal(size=200)
            z[:biased] += rng.choice([-3.0, 3.0], biased)
            result = bias_probabilities(np.append(2 * ndtr(-np.abs(z)), np.nan))
            assert np.isnan(result[-1])
            claimed.append(result[:-1].mean())
            true.append(biased / 200)
    assert np.mean(claimed) == pytest.approx(np.mean(true), abs=0.02)
    assert np.isnan(bias_probabilities(np.array([np.nan]))).all()
