"""The inner loop of halving, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import compiled

__all__ = ["halve"]


@compiled()
def halve(pixels: NDArray[np.uint8], kept: float) -> NDArray[np.uint8]:
    """Halve (height, width, channels); the pixel that differs most is found by the sum of its channels."""
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
