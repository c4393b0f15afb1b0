"""Compiled inner loop of large tables: numbers as text."""

from __future__ import annotations

import math

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

LEAST, MOST = 1e-290, 1e9
"""Range of the numbers that `write_rows` can write, beside zero."""

_EXACT = 22
"""Largest power of ten that is exact in double precision."""

_FIXED = -6
"""Least exponent of a number that is written without it."""

_COMMA, _END, _MINUS, _POINT, _ZERO, _E = 44, 10, 45, 46, 48, 101


@compiled(error_model="numpy")
def write_rows(heads: Array, values: Array, digits: Array, powers: Array, out: Array) -> int:
    """Write rows of texts and numbers with commas; return the bytes written, -1 if a number is out of range.

    `heads`: two columns of texts, each a tuple: bytes (uint8) of all texts, their ends (int32, from 0), and
        the text of each row, (N,) int64.
    `values`: (N, M) float64, empty if not finite.
    `digits`: (M,) int64, significant digits of each column, at most 15.
    `powers`: (23,) float64, powers of ten.
    `out`: (B,) uint8, filled. It must have space for `digits` and 9 more bytes a number, and for the texts.
    """
    at = 0
    for n in range(len(values)):
        for text, ends, index in heads:
            for letter in range(ends[index[n]], ends[index[n] + 1]):
                out[at] = text[letter]
                at += 1
            out[at] = _COMMA
            at += 1
        for m in range(values.shape[1]):
            value = values[n, m]
            if value < 0.0:
                out[at] = _MINUS
                at += 1
                value = -value
            if value == 0.0:
                out[at] = _ZERO
                at += 1
            elif LEAST <= value < MOST:
                at = _write(value, digits[m], powers, out, at)
            elif math.isfinite(value):
                return -1
            out[at] = _COMMA
            at += 1
        out[at - 1] = _END
    return at


@compiled(error_model="numpy")
def _write(value: float, digits: int, powers: Array, out: Array, at: int) -> int:
    """Write a number above 0 with at most some significant digits; return the next byte's index."""
    above = 0  # digits before the point; of a number below 0.1, minus the zeros after it
    if 1e-6 <= value < 1.0:
        while value * powers[1 - above] < 1.0:
            above -= 1
    else:
        above = math.floor(math.log10(value)) + 1
    shift = digits - above
    if shift < 0:
        value /= powers[-shift]
    left = shift
    while left > _EXACT:
        value *= powers[_EXACT]
        left -= _EXACT
    if left > 0:
        value *= powers[left]
    number = np.uint64(np.rint(value))
    count = digits + 1
    while count > 1 and number < powers[count - 1]:
        count -= 1
    exponent = count - 1 - shift
    whole = max(exponent + 1, 0)  # digits before the point
    if exponent < _FIXED:
        whole = 1
    elif exponent < 0:
        out[at], out[at + 1] = _ZERO, _POINT
        at += 2
        for _ in range(-exponent - 1):
            out[at] = _ZERO
            at += 1
    for _ in range(whole - count):
        out[at + count] = _ZERO
        count += 1
        number *= np.uint64(10)
    begin, end = at, at + count
    if 0 < whole < count:
        for place in range(end, at + whole, -1):
            out[place] = _ZERO + number % np.uint64(10)
            number //= np.uint64(10)
        out[at + whole] = _POINT
        at, end = at + 1, at + whole
    for place in range(end - 1, begin - 1, -1):
        out[place] = _ZERO + number % np.uint64(10)
        number //= np.uint64(10)
    at += count
    if whole < count:
        while out[at - 1] == _ZERO:
            at -= 1
        at -= out[at - 1] == _POINT
    if exponent >= _FIXED:
        return at
    out[at], out[at + 1] = _E, _MINUS
    at += 2
    for unit in (100, 10, 1):
        if exponent <= -unit:
            out[at] = _ZERO + -exponent // unit % 10
            at += 1
    return at
