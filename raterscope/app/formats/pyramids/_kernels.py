"""Compiled inner loops: undoing the filters of PNG, and halving an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import compiled


@compiled()
def unfilter(rows: NDArray[np.uint8], above: NDArray[np.uint8], step: int) -> bool:
    """Undo the filters (PNG specification, chapter 9) in place; return False if a filter is unknown.

    `rows`: (R, 1 + bytes) uint8, each preceded by the number of its filter.
    `above`: (bytes,) uint8, the previous row, undone; zeros before the first row. It holds the last row
        afterwards.
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
    """Halve (height, width, channels); the sum of the channels determines the pixel that differs most."""
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
