"""Triangles that are solved a few columns at a time."""

import numpy as np
import pytest

from raterscope.algorithms.pairs import linear_algebra


@pytest.mark.parametrize("columns", [None, 1, 70])
def test_triangles_are_solved_in_blocks_of_columns(monkeypatch, columns):
    monkeypatch.setattr(linear_algebra, "_AT_ONCE", 1)
    generator = np.random.default_rng(0)
    lower = np.tril(generator.normal(size=(40, 40))) + 10 * np.eye(40)
    right = generator.normal(size=40 if columns is None else (40, columns))
    solved = linear_algebra.solve_lower(lower, right)
    np.testing.assert_allclose(lower @ solved, right, atol=1e-12)
    np.testing.assert_allclose(
        lower.T @ linear_algebra.solve_lower(lower, right, transposed=True), right, atol=1e-12
    )
    np.testing.assert_allclose(
        lower @ (lower.T @ linear_algebra.solve_factored(lower, right)), right, atol=1e-12
    )
