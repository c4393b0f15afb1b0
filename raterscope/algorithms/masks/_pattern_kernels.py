"""Inner loops over the raters' labels: where any are, and what each voxel's row of labels is."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["count_codes", "mark_rows", "pack"]


@compiled()
def mark_rows(labels: Array, start: int, stop: int, row_any: Array, column_any: Array) -> None:
    """Mark the rows `start` to `stop` and the columns in which any rater's label is above 0.

    Parameters
    ----------
    labels : (P, R, X) uint8
        R rows of all slices, one after the other.
    start, stop : int
    row_any : (R,) uint8
    column_any : (X,) uint8
    """
    raters, width = labels.shape[0], labels.shape[2]
    for r in range(start, stop):
        found = np.uint8(0)
        for p in range(raters):
            for x in range(width):
                found |= labels[p, r, x]
        if found:
            row_any[r] = 1
            for p in range(raters):
                for x in range(width):
                    column_any[x] |= labels[p, r, x]


@compiled()
def pack(labels: Array, base: int, code: Array) -> None:
    """Append each voxel's labels to its code as digits of a number to the given base.

    Parameters
    ----------
    labels : (P, Z, Y, X) uint8
        Digits below `base`.
    base : int
    code : (Z, Y, X) int64
        What the voxels have so far, 0 at first.
    """
    raters, slices, rows, columns = labels.shape
    for z in range(slices):
        for y in range(rows):
            for p in range(raters):
                for x in range(columns):
                    code[z, y, x] = code[z, y, x] * base + labels[p, z, y, x]


@compiled()
def count_codes(code: Array, count: Array) -> None:
    """Count how often each code is there.

    Parameters
    ----------
    code : (Z, Y, X) int64
    count : (codes,) int64
        Added to.
    """
    slices, rows, columns = code.shape
    for z in range(slices):
        for y in range(rows):
            for x in range(columns):
                count[code[z, y, x]] += 1
