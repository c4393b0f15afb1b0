"""Voxels at which all raters' distances are the same, merged: exact where no voxel minds its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import Float32Array
from raterscope.algorithms.progress import Look, Watch, no_look

__all__ = ["Columns", "merged", "single"]

_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class Columns:
    """C different columns of P distances.

    Attributes
    ----------
    data : (P, C) float32
    weight : (C,) float32
        Voxels of each.
    state : (C,) int8
        1 where settled as inside, -1 as outside, 0 where open.
    row : (N,) int32, optional
        Each voxel's column; None where voxels and columns are the same.
    """

    data: Float32Array
    weight: Float32Array
    state: NDArray[np.int8]
    row: NDArray[np.int32] | None

    def spread(self, values: NDArray[Any], look: Look = no_look) -> NDArray[Any]:
        """Take (..., C) values of columns to the (..., N) voxels."""
        if self.row is None:
            return values
        out = np.empty((*values.shape[:-1], len(self.row)), dtype=values.dtype)
        for begin in range(0, len(self.row), _CHUNK):
            row = self.row[begin : begin + _CHUNK]
            for place in np.ndindex(values.shape[:-1]):
                look()
                np.take(values[place], row, out=out[place][begin : begin + _CHUNK], mode="clip")
        return out


def single(data: Float32Array, state: NDArray[np.int8]) -> Columns:
    """Let every voxel of (P, N) `data` be a column of its own."""
    return Columns(data, np.ones(data.shape[1], dtype=np.float32), state, None)


def merged(data: Float32Array, state: NDArray[np.int8], watch: Watch) -> Columns:
    """Merge the equal columns of (P, N) `data` whose `state` is the same."""
    from raterscope.algorithms.masks import _robust_kernels as kernels

    voxels = data.shape[1]
    row = np.empty(voxels, dtype=np.int32)
    bits = data.view(np.uint32)
    room = 1 << 16
    while True:
        table = np.full(2 * room, -1, dtype=np.int32)
        first = np.empty(room, dtype=np.int64)
        count = np.zeros(room, dtype=np.int64)
        used, done, limit = 0, 0, 0
        while done == limit and done < voxels:
            limit = min(voxels, done + max(1, _CHUNK // len(data)))
            used, done = kernels.merge(bits, state, done, limit, table, first, count, row, used)
            watch(done / voxels, "finding voxels that all raters see alike")
        if done == voxels:
            break
        room *= 4
    first = first[:used]
    return Columns(
        np.ascontiguousarray(data[:, first]), count[:used].astype(np.float32), state[first].copy(), row
    )
