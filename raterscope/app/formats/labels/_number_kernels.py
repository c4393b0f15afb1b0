"""Compiled inner loop of tables: rows of a text and some numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import compiled

_HALF = np.int64(10**6)
_POINT, _MINUS, _ZERO, _EXPONENT, _PLUS, _COMMA, _NEWLINE = 46, 45, 48, 101, 43, 44, 10
"""Characters."""

_SMALLEST, _LARGEST = -6, 10
"""Powers of ten of the smallest number written without an exponent, and of the smallest with one above."""


@compiled(error_model="numpy")
def write_rows(
    head_ends: NDArray[np.int32],
    heads: NDArray[np.uint8],
    values: NDArray[np.float64],
    digits: NDArray[np.int64],
    powers: NDArray[np.float64],
    text: NDArray[np.uint8],
) -> int:
    """Write rows of a head and some numbers, as Arrow writes the rounded ones; empty if not finite.

    `head_ends`: (N + 1,), begin of each row's head in `heads` and end of the last one.
    `values`: (N, C).
    `digits`: (C,), significant digits of each column, up to 12.
    `powers`: (P,), powers of ten that are exact in double precision.
    `text`: overwritten. The heads, and 20 bytes for each number, are enough.
    The result is the number of bytes, -1 if a number needs a power of ten that is not exact.
    """
    figures = np.empty(12, dtype=np.uint8)
    exact = len(powers) - 1
    end = 0
    for n in range(len(values)):
        for at in range(head_ends[n], head_ends[n + 1]):
            text[end] = heads[at]
            end += 1
        for c in range(len(digits)):
            text[end] = _COMMA
            end += 1
            value = values[n, c]
            if not np.isfinite(value):
                continue
            if np.signbit(value):
                text[end] = _MINUS
                end += 1
                value = -value
            if value == 0.0:
                text[end] = _ZERO
                end += 1
                continue
            exponent = 0
            if value >= 1.0:
                while exponent < exact and value >= powers[exponent + 1]:
                    exponent += 1
            else:
                exponent = -1
                while exponent > -exact and value * powers[-exponent] < 1.0:
                    exponent -= 1
            shift = digits[c] - 1 - exponent
            if abs(shift) > exact:
                return -1
            whole = np.int64(np.rint(value * powers[shift] if shift >= 0 else value / powers[-shift]))
            if whole >= np.int64(powers[digits[c]]):
                whole //= 10
                exponent += 1
            for _ in range(digits[c], 12):
                whole *= 10
            high, low = np.uint32(whole // _HALF), np.uint32(whole % _HALF)
            count = 12 if low > 0 else 6
            for at in range(6):
                figures[5 - at] = _ZERO + high % np.uint32(10)
                figures[11 - at] = _ZERO + low % np.uint32(10)
                high //= np.uint32(10)
                low //= np.uint32(10)
            while count > 1 and figures[count - 1] == _ZERO:
                count -= 1
            before = exponent + 1  # digits before the point
            if exponent < _SMALLEST or exponent >= _LARGEST:
                before = 1
            elif before <= 0:
                text[end] = _ZERO
                text[end + 1] = _POINT
                end += 2
                for _ in range(-before):
                    text[end] = _ZERO
                    end += 1
                before = 12
            for at in range(min(before, count)):
                text[end] = figures[at]
                end += 1
            for _ in range(count, before if before < 12 else count):
                text[end] = _ZERO
                end += 1
            if count > before:
                text[end] = _POINT
                end += 1
                for at in range(before, count):
                    text[end] = figures[at]
                    end += 1
            if _SMALLEST <= exponent < _LARGEST:
                continue
            text[end] = _EXPONENT
            text[end + 1] = _PLUS if exponent > 0 else _MINUS
            end += 2
            exponent = abs(exponent)
            if exponent >= 10:
                text[end] = _ZERO + exponent // 10
                end += 1
            text[end] = _ZERO + exponent % 10
            end += 1
        text[end] = _NEWLINE
        end += 1
    return end
