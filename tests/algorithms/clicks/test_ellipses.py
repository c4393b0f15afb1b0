"""Ellipses hold the share of clicks that they say."""

import numpy as np
import pytest

from raterscope.algorithms.clicks import ellipses


def test_axes_and_angle_of_a_covariance_that_is_easy():
    long, short, angle = ellipses(np.array([[4.0, 0.0], [0.0, 9.0]]), coverage=1 - np.exp(-0.5))[0]
    assert (long, short) == (pytest.approx(3), pytest.approx(2))
    assert angle == pytest.approx(np.pi / 2)
    assert ellipses(np.array([[5.0, 3.0], [3.0, 5.0]]))[0, 2] == pytest.approx(np.pi / 4)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_the_ellipse_holds_its_share(coverage):
    covariance = np.array([[3.0, -1.2], [-1.2, 1.0]])
    long, short, angle = ellipses(covariance, coverage)[0]
    points = np.random.default_rng(0).multivariate_normal([0, 0], covariance, 100_000)
    along = points @ [np.cos(angle), np.sin(angle)]
    across = points @ [-np.sin(angle), np.cos(angle)]
    assert np.mean((along / long) ** 2 + (across / short) ** 2 <= 1) == pytest.approx(coverage, abs=0.005)


def test_no_components_and_a_coverage_that_is_no_share():
    assert ellipses(np.empty((0, 2, 2))).shape == (0, 3)
    with pytest.raises(ValueError, match="coverage"):
        ellipses(np.eye(2), 1.0)
