"""Intervals of confusion matrices against draws from their distributions."""

import numpy as np
import pytest

from raterscope.algorithms.labels.data import Confusion
from raterscope.algorithms.labels.rates import credible, crowd_confusion


def drawn(annotators: int, classes: int, outputs: int, scale: float, seed: int) -> Confusion:
    rng = np.random.default_rng(seed)
    prior = 1 + np.eye(classes, outputs)
    return Confusion(prior + rng.gamma(0.7, scale, (annotators, classes, outputs)), prior)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_cover_entries_as_often_as_claimed(level: float) -> None:
    confusion = drawn(2, 2, 3, 20.0, 0)
    low, high = credible(confusion, level)
    rng = np.random.default_rng(1)
    for k, j in np.ndindex(2, 2):
        rates = rng.dirichlet(confusion.alpha[k, j], 100_000)
        assert (rates < low[k, j]).mean(axis=0) == pytest.approx((1 - level) / 2, abs=0.005)
        assert (rates > high[k, j]).mean(axis=0) == pytest.approx((1 - level) / 2, abs=0.005)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e8])
def test_many_votes_have_the_same_interval_by_either_way(scale: float) -> None:
    from scipy.stats import beta

    alpha = np.array([[[0.3, 0.7], [0.02, 0.98]]]) * 2e5 * scale
    low, high = credible(Confusion(alpha, np.ones((2, 2))))
    expected = beta.ppf(0.025, alpha, alpha[..., ::-1])
    assert low == pytest.approx(expected, rel=1e-7)
    assert (low < high).all()


def test_one_output_is_certain() -> None:
    low, high = credible(Confusion(np.full((2, 3, 1), 4.0), np.ones((3, 1))))
    assert low.tolist() == high.tolist() == np.ones((2, 3, 1)).tolist()


def test_rare_votes_stay_between_0_and_1() -> None:
    low, high = credible(Confusion(np.full((1, 2, 3), 1e-6), np.full((2, 3), 1e-6)))
    assert ((low >= 0) & (high <= 1) & (low <= high)).all()


def test_the_crowd_weighs_annotators_by_their_votes() -> None:
    prior = np.ones((1, 2))
    confusion = Confusion(prior + np.array([[[90.0, 8.0]], [[0.0, 0.0]], [[0.0, 0.0]]]), prior)
    assert crowd_confusion(confusion) == pytest.approx(np.array([[0.91, 0.09]]))
    assert crowd_confusion(Confusion(np.empty((0, 1, 2)), prior)) == pytest.approx(np.array([[0.5, 0.5]]))
