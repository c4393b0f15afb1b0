"""Sums and maxima of short rows have the bits of NumPy; triangles are solved a few columns at a time."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms import array_operations
from raterscope.algorithms.array_operations import max_rows, sum_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 8, 9, 30])
def test_reductions_have_the_bits_of_numpy(width: int, dtype: type[np.floating]) -> None:
    generator = np.random.default_rng(width)
    values = (generator.random((40, 300, width)) * 10.0 ** generator.integers(-9, 9, width)).astype(dtype)
    for rows in (values, values[0], values[0, ::2], values[0, :1]):
        np.testing.assert_array_equal(sum_rows(rows), rows.sum(axis=-1), strict=True)
        np.testing.assert_array_equal(max_rows(rows), rows.max(axis=-1), strict=True)
        np.testing.assert_array_equal(
            sum_rows(rows, keepdims=True), rows.sum(axis=-1, keepdims=True), strict=True
        )


def test_rows_are_not_changed_and_no_rows_have_no_sums() -> None:
    values = np.array([[0.25, np.nan], [0.5, 0.5]])
    before = values.copy()
    assert np.isnan(max_rows(values)[0])
    assert sum_rows(values)[1] == 1.0
    np.testing.assert_array_equal(values, before)
    assert sum_rows(np.empty((0, 3))).shape == (0,)
    assert sum_rows(np.empty((4, 0))).tolist() == [0.0] * 4


@pytest.mark.parametrize("columns", [None, 1, 70])
def test_triangles_are_solved_in_blocks(monkeypatch, columns):
    monkeypatch.setattr(array_operations, "_BLOCK", 16)
    generator = np.random.default_rng(0)
    lower = np.tril(generator.normal(size=(40, 40))) + 10 * np.eye(40)
    right = generator.normal(size=40 if columns is None else (40, columns))
    solved = array_operations.solve_lower(lower, right)
    np.testing.assert_allclose(lower @ solved, right, atol=1e-12)
    np.testing.assert_allclose(
        lower.T @ array_operations.solve_lower(lower, right, transposed=True), right, atol=1e-12
    )
    np.testing.assert_allclose(
        lower @ (lower.T @ array_operations.solve_factored(lower, right)), right, atol=1e-12
    )
