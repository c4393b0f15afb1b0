"""Inner loops of formats: filters of PNG, halves of images, numbers in text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import compiled


@compiled()
def unfilter(rows: NDArray[np.uint8], above: NDArray[np.uint8], step: int) -> bool:
    """Reverse the filters (PNG specification, chapter 9) in place; return False if a filter is unknown.

    `rows`: (R, 1 + bytes) uint8, each preceded by the number of its filter.
    `above`: (bytes,) uint8, the previous row without filter; zeros before the first row. Afterwards it is the
    last row.
    `step`: number of bytes of a pixel.
    """
    count = rows.shape[1] - 1
    for number in range(rows.shape[0]):
        kind = rows[number, 0]
        row = rows[number, 1:]
        if kind > 4:
            return False
        if kind == 1:
            for i in range(step, count):
                row[i] += row[i - step]
        elif kind == 2:
            for i in range(count):
                row[i] += above[i]
        elif kind == 3:
            for i in range(count):
                left = np.int32(row[i - step]) if i >= step else np.int32(0)
                row[i] += np.uint8((left + np.int32(above[i])) // 2)
        elif kind == 4:
            for i in range(count):
                left = np.int32(row[i - step]) if i >= step else np.int32(0)
                corner = np.int32(above[i - step]) if i >= step else np.int32(0)
                up = np.int32(above[i])
                to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                if to_left <= to_up and to_left <= to_corner:
                    row[i] += np.uint8(left)
                elif to_up <= to_corner:
                    row[i] += np.uint8(up)
                else:
                    row[i] += np.uint8(corner)
        above[:] = row
    return True


@compiled()
def halve(pixels: NDArray[np.uint8], kept: float) -> NDArray[np.uint8]:
    """Halve an image, (height, width, channels); the channel sum decides which pixel differs most."""
    height, width, channels = pixels.shape
    half = np.empty(((height + 1) // 2, (width + 1) // 2, channels), dtype=np.uint8)
    mean_part = np.float32((1.0 - kept) / 4.0)
    far_part = np.float32(kept)
    for row in range(half.shape[0]):
        above = 2 * row
        below = min(above + 1, height - 1)
        for column in range(half.shape[1]):
            left = 2 * column
            right = min(left + 1, width - 1)
            a, b, c, d = 0, 0, 0, 0
            for k in range(channels):
                a += pixels[above, left, k]
                b += pixels[above, right, k]
                c += pixels[below, left, k]
                d += pixels[below, right, k]
            total = a + b + c + d
            y, x, most = above, left, abs(4 * a - total)
            if abs(4 * b - total) > most:
                y, x, most = above, right, abs(4 * b - total)
            if abs(4 * c - total) > most:
                y, x, most = below, left, abs(4 * c - total)
            if abs(4 * d - total) > most:
                y, x = below, right
            for k in range(channels):
                four = (
                    np.int32(pixels[above, left, k])
                    + np.int32(pixels[above, right, k])
                    + np.int32(pixels[below, left, k])
                    + np.int32(pixels[below, right, k])
                )
                half[row, column, k] = np.uint8(
                    mean_part * np.float32(four) + far_part * np.float32(pixels[y, x, k]) + np.float32(0.5)
                )
    return half


_HALF = np.int64(10**6)
_POINT, _MINUS, _ZERO, _EXPONENT, _PLUS, _COMMA, _NEWLINE = 46, 45, 48, 101, 43, 44, 10
"""Characters."""

_SMALLEST, _LARGEST = -6, 10
"""Numbers from 10^_SMALLEST to below 10^_LARGEST are written without an exponent."""


@compiled(error_model="numpy")
def write_rows(
    head_ends: NDArray[np.int32],
    heads: NDArray[np.uint8],
    values: NDArray[np.float64],
    digits: NDArray[np.int64],
    powers: NDArray[np.float64],
    text: NDArray[np.uint8],
) -> int:
    """Write rows of a text (head) and some numbers in the format of Arrow; empty if not finite.

    `head_ends`: (N + 1,), begin of each row's head in `heads`, and end of the last head.
    `values`: (N, C).
    `digits`: (C,), significant digits of each column, up to 12.
    `powers`: (P,), powers of ten that are exact in double precision.
    `text`: overwritten. It needs room for the heads, and 20 bytes for each number. The result is the number
    of bytes, -1 if a number needs a power of ten that is not exact.
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
