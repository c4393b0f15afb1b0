"""Linear algebra that lets other threads work: SciPy's factors of Cholesky and triangles stop them all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from raterscope.algorithms.pairs.data import FloatArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_AT_ONCE = 250_000_000
"""Multiplications, of some milliseconds, between two chances for other threads."""

_FEWEST_COLUMNS = 32


def one_thread() -> AbstractContextManager[object]:
    """Run linear algebra in one thread within the context."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Find the libraries once: it takes as long as a small ranking, and stops all threads."""
    import scipy.linalg  # noqa: F401 - it loads a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def cholesky(matrix: FloatArray) -> FloatArray:
    """Return the lower factor of Cholesky; `numpy.linalg.LinAlgError` if the matrix is not definite."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def invert_definite(matrix: FloatArray) -> FloatArray:
    """Invert a positive definite matrix; `numpy.linalg.LinAlgError` if it is none."""
    return invert_factored(cholesky(matrix))


def invert_factored(lower: FloatArray) -> FloatArray:
    """Invert a matrix, given its lower factor of Cholesky."""
    half = solve_lower(lower, np.eye(len(lower)))
    return np.asarray(half.T @ half)


def solve_lower(lower: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Solve linear equations whose matrix is a lower triangle, or its transpose.

    SciPy holds the interpreter's lock meanwhile, so that no other thread runs: a few columns are solved at
    a time.
    """
    from scipy.linalg import solve_triangular

    solve = partial(solve_triangular, lower, lower=True, trans="T" if transposed else "N", check_finite=False)
    width = max(_FEWEST_COLUMNS, _AT_ONCE // max(len(lower), 1) ** 2)
    if right.ndim == 1 or right.shape[1] <= width:
        return np.asarray(solve(right))
    solved = np.empty(right.shape, order="F")
    for begin in range(0, right.shape[1], width):
        solved[:, begin : begin + width] = solve(right[:, begin : begin + width])
    return solved


def solve_factored(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Solve linear equations, given the lower factor of Cholesky of their matrix."""
    return solve_lower(lower, solve_lower(lower, right), transposed=True)
