"""Inner loops that write millions of numbers as text, to the same digits as Python's format."""

from __future__ import annotations

import math

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

_NEAR_TIE = 1e-3
"""Distance from half a unit of the last digit below which rounding of the product could decide."""


@compiled()
def write_cells(values: Array, digits_of: Array, powers: Array, cells: Array, lengths: Array) -> None:
    """Write each number as "%.{digits}g" does, into a cell of its own.

    Parameters
    ----------
    values : (M,) float64
    digits_of : (C,) int64
        Significant digits of the numbers of each column, at most 12; numbers are given row after row.
    powers : (23,) float64
        Powers of ten, exact.
    cells : (M, digits + 8) uint8
        For the most digits. Overwritten with ASCII characters.
    lengths : (M,) int16
        Overwritten: the characters of each cell; 0 if a number is not finite, -1 if Python must format it.
    """
    decimals = np.zeros(digits_of.max(), dtype=np.uint8)
    for m in range(len(values)):
        digits = digits_of[m % len(digits_of)]
        value = abs(values[m])
        if not math.isfinite(value):
            lengths[m] = 0
            continue
        lengths[m] = -1
        cell = cells[m]
        end = 0
        if values[m] < 0.0:
            cell[0] = 45
            end = 1
        if value == 0.0:
            if math.copysign(1.0, values[m]) > 0.0:
                cell[0] = 48
                lengths[m] = 1
            continue
        if not 1e-20 < value < 1e20:
            continue
        exponent = math.floor(math.log10(value))
        shift = digits - 1 - exponent
        if not 0 < shift < 22:
            continue
        scaled = value * powers[shift]
        if scaled < powers[digits - 1]:
            exponent -= 1
            scaled = value * powers[shift + 1]
        elif scaled >= powers[digits]:
            exponent += 1
            scaled = value * powers[shift - 1]
        whole = math.floor(scaled)
        rest = scaled - whole
        if abs(rest - 0.5) < _NEAR_TIE:
            continue
        mantissa = np.int64(whole) + (1 if rest > 0.5 else 0)
        if mantissa >= np.int64(powers[digits]):
            mantissa //= 10
            exponent += 1
        last = 0
        for n in range(digits - 1, -1, -1):
            decimals[n] = mantissa % 10
            mantissa //= 10
            if decimals[n] != 0 and n > last:
                last = n
        if -4 <= exponent < digits:
            if exponent < 0:
                cell[end] = 48
                cell[end + 1] = 46
                end += 2
                for _ in range(-exponent - 1):
                    cell[end] = 48
                    end += 1
            for n in range(max(last, exponent) + 1):
                if n == exponent + 1 and exponent >= 0:
                    cell[end] = 46
                    end += 1
                cell[end] = 48 + decimals[n]
                end += 1
        else:
            cell[end] = 48 + decimals[0]
            end += 1
            if last > 0:
                cell[end] = 46
                end += 1
            for n in range(1, last + 1):
                cell[end] = 48 + decimals[n]
                end += 1
            cell[end] = 101
            cell[end + 1] = 45 if exponent < 0 else 43
            cell[end + 2] = 48 + abs(exponent) // 10
            cell[end + 3] = 48 + abs(exponent) % 10
            end += 4
        lengths[m] = end


@compiled()
def join_cells(cells: Array, lengths: Array, columns: int, text: Array) -> int:
    """Join cells to lines, with commas between the cells of a line.

    Parameters
    ----------
    cells, lengths : as in `write_cells`
        Row after row.
    columns : int
        Cells of a row.
    text : uint8
        Overwritten; room for all cells and a character after each.

    Returns
    -------
    int
        Characters written. Each line ends with a line feed.
    """
    end = 0
    for m in range(len(lengths)):
        for n in range(lengths[m]):
            text[end] = cells[m, n]
            end += 1
        text[end] = 10 if m % columns == columns - 1 else 44
        end += 1
    return end


@compiled()
def join_lines(
    first: Array,
    first_ends: Array,
    first_of: Array,
    second: Array,
    second_ends: Array,
    second_of: Array,
    cells: Array,
    lengths: Array,
    columns: int,
    text: Array,
) -> int:
    """Join two texts and cells to each line, with commas between.

    Parameters
    ----------
    first, second : uint8
        Characters of texts, one after the other.
    first_ends, second_ends : (T + 1,) int64
        Text t is from `ends[t]` to `ends[t + 1]`.
    first_of, second_of : (M,) int64
        The texts of each line.
    cells, lengths : as in `write_cells`
        Row after row.
    columns : int
        Cells of a row.
    text : uint8
        Overwritten; room for all texts and cells and a character after each.

    Returns
    -------
    int
        Characters written. Each line ends with a line feed.
    """
    end = 0
    for m in range(len(first_of)):
        for at in range(first_ends[first_of[m]], first_ends[first_of[m] + 1]):
            text[end] = first[at]
            end += 1
        text[end] = 44
        end += 1
        for at in range(second_ends[second_of[m]], second_ends[second_of[m] + 1]):
            text[end] = second[at]
            end += 1
        for cell in range(m * columns, (m + 1) * columns):
            text[end] = 44
            end += 1
            for at in range(lengths[cell]):
                text[end] = cells[cell, at]
                end += 1
        text[end] = 10
        end += 1
    return end
