"""Who compared what, counted in tables; and the items that belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import FloatArray, IndexArray

__all__ = ["groups_of", "starts_of", "sums", "table", "totals"]

_DENSE = 4_000_000


def table(
    row: NDArray[np.integer],
    column: NDArray[np.integer],
    shape: tuple[int, int],
    value: FloatArray | None = None,
) -> Any:
    """Add values, or ones, up where rows and columns meet.

    Small tables are added up in a dense one, which takes a fifth of the time that sorting does.

    Returns
    -------
    scipy.sparse.csr_array of float64
    """
    from scipy.sparse import coo_array, csr_array

    if shape[0] * shape[1] <= _DENSE:
        place = np.asarray(row, dtype=np.int64) * shape[1] + column
        dense = np.bincount(place, weights=value, minlength=shape[0] * shape[1])
        return csr_array(dense.astype(np.float64, copy=False).reshape(shape))
    return coo_array((np.ones(len(row)) if value is None else value, (row, column)), shape=shape).tocsr()


def sums(owner: NDArray[np.integer], value: NDArray[Any], many: int) -> FloatArray:
    """Add up the values of each of so many owners; (many,)."""
    return np.asarray(np.bincount(owner, weights=value, minlength=many), dtype=np.float64)


def starts_of(owner: NDArray[np.integer], many: int) -> NDArray[np.int64]:
    """Give where the values of each of so many owners begin, (many + 1,), of values sorted by owner."""
    return np.searchsorted(owner, np.arange(many + 1)).astype(np.int64)


def totals(start: NDArray[np.int64], value: NDArray[Any]) -> FloatArray:
    """Add up values sorted by owner, whose places are ``start[i]:start[i + 1]``; (many,).

    It takes a tenth of the time of `sums`.
    """
    found = np.zeros(len(start) - 1)
    some = np.flatnonzero(np.diff(start))
    if len(some):
        found[some] = np.add.reduceat(value, start[some], dtype=np.float64)
    return found


def groups_of(component: IndexArray) -> list[NDArray[np.int64]]:
    """Give the items of each component; those below 0 are of none."""
    order = np.argsort(component, kind="stable")
    order = order[component[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if len(order) else []
