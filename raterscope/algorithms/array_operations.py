"""Operations on arrays that are faster than NumPy's and SciPy's, or let other threads run meanwhile.

NumPy reduces the last axis row by row, which takes 15 to 40 ns for a short row, such as the probabilities of
a task's classes. Combining the columns is 3 to 20 times as fast, and gives the same bits: NumPy also adds
fewer than eight entries in order.

NumPy and SciPy hold the interpreter's lock, and so stop all threads, while they find distinct integers,
factorise by Cholesky or solve triangular systems.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


_SHORT = 8
"""Length of a row from which NumPy adds in another order, and is as fast."""

ROWS_AT_ONCE = 8192
"""Number of rows whose intermediate results stay in the processor's cache."""

_Number = TypeVar("_Number", bound=np.floating)

_Integer = TypeVar("_Integer", bound=np.integer)

_FloatArray = NDArray[np.float64]

_BLOCK = 128
"""Number of rows of a triangle that SciPy solves at once: 1 ms with a thousand right-hand sides."""


def sum_rows(values: NDArray[_Number], *, keepdims: bool = False) -> NDArray[_Number]:
    """Sum over the last axis."""
    return _reduce(np.add, values, keepdims)


def max_rows(values: NDArray[_Number], *, keepdims: bool = False) -> NDArray[_Number]:
    """Return the maxima over the last axis."""
    return _reduce(np.maximum, values, keepdims)


def _reduce(combine: np.ufunc, values: NDArray[_Number], keepdims: bool) -> NDArray[_Number]:
    width = values.shape[-1]
    if not 0 < width < _SHORT:
        return np.asarray(combine.reduce(values, axis=-1, keepdims=keepdims))
    result = values[..., 0].copy()
    for column in range(1, width):
        combine(result, values[..., column], out=result)
    return result[..., None] if keepdims else result


def distinct_values(values: NDArray[_Integer]) -> NDArray[_Integer]:
    """Return the distinct values of a 1-D array, sorted.

    `np.unique` fills a hash table: for millions of distinct values that takes 20 times as long, and it reads
    the table with the interpreter's lock, so that no other thread runs for seconds.

    Examples
    --------
    >>> distinct_values(np.array([3, 1, 3]))
    array([1, 3])
    """
    values = np.sort(values)
    first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def occurrences(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Count, for each entry of a 1-D array of integers from 0, the entries with the same value.

    Examples
    --------
    >>> occurrences(np.array([3, 1, 3]))
    array([2, 1, 2])
    """
    if values.max(initial=0) > 4 * len(values):
        values = np.searchsorted(distinct_values(values), values)
    return np.asarray(np.bincount(values)[values])


def running_count(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the true entries of a 1-D array up to each entry.

    `np.cumsum` of a mask converts each entry while it holds the interpreter's lock, and takes 15 times as
    long.

    Examples
    --------
    >>> running_count(np.array([True, False, True]))
    array([1, 1, 2])
    """
    return np.cumsum(mask.astype(np.int64))


def one_thread() -> AbstractContextManager[object]:
    """Run linear algebra in one thread within the context."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Find the libraries once: the search takes as long as a small ranking, and stops all threads."""
    import scipy.linalg  # noqa: F401 - it loads a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def cholesky(matrix: _FloatArray) -> _FloatArray:
    """Return the lower Cholesky factor; `numpy.linalg.LinAlgError` if the matrix is not positive definite."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def invert_definite(matrix: _FloatArray) -> _FloatArray:
    """Invert a positive definite matrix; raise `numpy.linalg.LinAlgError` for any other."""
    return invert_factored(cholesky(matrix))


def invert_factored(lower: _FloatArray) -> _FloatArray:
    """Invert a matrix, given its lower Cholesky factor."""
    half = solve_lower(lower, np.eye(len(lower)))
    return np.asarray(half.T @ half)


def solve_lower(lower: _FloatArray, right: _FloatArray, *, transposed: bool = False) -> _FloatArray:
    """Solve linear equations whose matrix is a lower triangle, or its transpose.

    SciPy holds the interpreter's lock, so that no other thread runs. It therefore solves only the blocks on
    the diagonal; NumPy's products, which release the lock, do the rest.
    """
    from scipy.linalg import solve_triangular

    solve = partial(solve_triangular, lower=True, trans="T" if transposed else "N", check_finite=False)
    count = len(lower)
    if right.ndim == 1 or count <= _BLOCK:
        return np.asarray(solve(lower, right))
    across, solved = right.T, np.empty(right.shape[::-1])
    starts = range(0, count, _BLOCK)
    for begin in reversed(starts) if transposed else starts:
        rows = slice(begin, begin + _BLOCK)
        if transposed:
            known, links = slice(rows.stop, count), lower[rows.stop :, rows]
        else:
            known, links = slice(begin), lower[rows, :begin].T
        rest = across[:, rows] - solved[:, known] @ links
        solved[:, rows] = solve(lower[rows, rows], rest.T, overwrite_b=True).T
    return solved.T


def solve_factored(lower: _FloatArray, right: _FloatArray) -> _FloatArray:
    """Solve linear equations, given the lower Cholesky factor of their matrix."""
    return solve_lower(lower, solve_lower(lower, right), transposed=True)
