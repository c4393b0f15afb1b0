"""Ten thousand annotators as a thousand cells of like ones, each with its weight."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.similarity import Float32Array
from raterscope.algorithms.progress import Watch, silent

__all__ = ["Cells", "cells_of"]

_ROUNDS = 4
"""Of moving rows to the nearest centre: more moves few."""

_CHUNK = 2000
"""Rows that are compared with all cells between two reports."""


@dataclass(frozen=True, eq=False)
class Cells:
    """M rows in B cells.

    Attributes
    ----------
    cell : (M,) int64
    centre : (B, D) float32
        The mean of a cell's rows.
    weight : (B,) float32
        How many rows there are in it, at least one.
    """

    cell: NDArray[np.int64]
    centre: Float32Array
    weight: Float32Array


def cells_of(rows: Float32Array, most: int, watch: Watch = silent) -> Cells:
    """Put rows (M, D) into at most so many cells of like ones.

    The cell of the largest spread is cut in two at its mean along its widest column, until there are enough;
    a few rounds of k-means follow. Nothing is random. Where there are no more rows than cells, each different
    row has its own.
    """
    if len(rows) <= most:
        centre, cell, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        return Cells(cell.ravel(), centre, count.astype(np.float32))
    cell = _cut(rows, most, watch)
    for at in range(_ROUNDS):
        watch(0.2 + 0.8 * at / _ROUNDS, "gathering annotators who are alike")
        centre = _centres(rows, cell)[0]
        half = (centre * centre).sum(axis=1) / np.float32(2)
        for first in range(0, len(rows), _CHUNK):
            watch(0.2 + 0.8 * at / _ROUNDS, "gathering annotators who are alike")
            some = slice(first, first + _CHUNK)
            cell[some] = (half - rows[some] @ centre.T).argmin(axis=1)
        cell = np.unique(cell, return_inverse=True)[1].ravel()
    centre, weight = _centres(rows, cell)
    return Cells(cell, centre, weight)


def _cut(rows: Float32Array, most: int, watch: Watch) -> NDArray[np.int64]:
    heap: list[tuple[float, int, NDArray[np.int64], int]] = []
    number = 0

    def push(some: NDArray[np.int64]) -> None:
        nonlocal number
        spread = rows[some].var(axis=0, dtype=np.float64)
        heapq.heappush(heap, (-float(spread.sum()) * len(some), number, some, int(spread.argmax())))
        number += 1

    push(np.arange(len(rows)))
    while len(heap) < most and -heap[0][0] > 1e-9:
        if len(heap) % 50 == 0:
            watch(0.2 * len(heap) / most, "gathering annotators who are alike")
        _, _, some, widest = heapq.heappop(heap)
        values = rows[some, widest]
        low = values < values.mean(dtype=np.float64)
        push(some[low])
        push(some[~low])
    cell = np.empty(len(rows), dtype=np.int64)
    for at, (_, _, some, _) in enumerate(heap):
        cell[some] = at
    return cell


def _centres(rows: Float32Array, cell: NDArray[np.int64]) -> tuple[Float32Array, Float32Array]:
    count = np.bincount(cell)
    sums = np.stack([np.bincount(cell, column) for column in rows.T], axis=1)
    return (sums / count[:, None]).astype(np.float32), count.astype(np.float32)
