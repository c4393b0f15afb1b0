"""Quantiles of Beta distributions by interpolation, against those of SciPy."""

import numpy as np
import pytest
from scipy.special import betaincinv

from raterscope.algorithms.annotators.statistics import beta_quantile


@pytest.mark.parametrize("at", [0.025, 0.975, 0.95])
def test_interpolated_quantiles_agree_with_scipy_to_the_digits_that_are_written(at):
    generator = np.random.default_rng(1)
    first, second = np.exp(generator.uniform(np.log(0.005), np.log(5e4), (2, 20_000)))
    interpolated = beta_quantile(first, second, at, interpolated=True)
    exact = betaincinv(first, second, at)
    assert np.abs(interpolated - exact).max() < 2e-7
    seen = exact > 1e-12
    assert np.abs(interpolated[seen] / exact[seen] - 1).max() < 5e-7


def test_interpolated_quantiles_at_the_ends_are_the_exact_ones():
    first, second = np.array([3.0, 1e-4, 2e5, 1e7]), np.array([0.0, 5.0, 7.0, 2e7])
    exact = beta_quantile(first, second, 0.975)
    assert (beta_quantile(first, second, 0.975, interpolated=True) == exact).all()
    assert exact[0] == 1.0
