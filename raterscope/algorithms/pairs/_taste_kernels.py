"""Inner loop of the annotators' tastes."""

from __future__ import annotations

from raterscope.algorithms.compiling import Array, compiled, small_code


@compiled()
def add_squares(begin: Array, column: Array, value: Array, total: Array) -> None:
    """Add the product of a sparse table's transpose and the table, for few columns.

    `begin`: (R + 1,) int64, the entries of row r are `begin[r]` to `begin[r + 1]`.
    `column`, `value`: (V,) int64 and float64, the entries.
    `total`: (C, C) float64, added to.
    """
    small_code()
    for r in range(len(begin) - 1):
        for first in range(begin[r], begin[r + 1]):
            for second in range(begin[r], begin[r + 1]):
                total[column[first], column[second]] += value[first] * value[second]
