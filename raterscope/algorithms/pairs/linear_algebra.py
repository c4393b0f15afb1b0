"""Linear algebra that lets other threads work: Cholesky's factors of SciPy stop them all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from raterscope.algorithms.pairs.data import FloatArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


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
    from scipy.linalg import solve_triangular

    half = solve_triangular(lower, np.eye(len(lower)), lower=True, overwrite_b=True, check_finite=False)
    return np.asarray(half.T @ half)


def solve_factored(lower: FloatArray, right: FloatArray) -> FloatArray:
    """Solve linear equations, given the lower factor of Cholesky of their matrix."""
    from scipy.linalg import solve_triangular

    half = solve_triangular(lower, right, lower=True, check_finite=False)
    return np.asarray(solve_triangular(lower, half, lower=True, trans="T", check_finite=False))
