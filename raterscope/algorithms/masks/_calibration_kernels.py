"""Inner loop of the raters left out in turn: distances and their squares, summed over pairs of voxels."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["halve"]


@compiled(error_model="numpy")
def halve(layer: Array, mean: Array, begin: int, end: int, squares: Array, sums: Array) -> None:
    """Sum (layer - mean)², and the layer, over pairs of voxels along each axis, for lines `begin` to `end`.

    Parameters
    ----------
    layer, mean : (Z, Y, X) float32
    begin, end : int
        Lines along the columns of the sums, counted from slice to slice.
    squares, sums : (ceil(Z / 2), ceil(Y / 2), ceil(X / 2)) float32
        Overwritten.
    """
    slices, rows, columns = layer.shape
    for line in range(begin, end):
        z, y = line // sums.shape[1], line % sums.shape[1]
        square, total = squares[z, y], sums[z, y]
        square[:] = np.float32(0)
        total[:] = np.float32(0)
        for a in range(2 * z, min(2 * z + 2, slices)):
            for b in range(2 * y, min(2 * y + 2, rows)):
                one, middle = layer[a, b], mean[a, b]
                for x in range(columns):
                    apart = one[x] - middle[x]
                    square[x // 2] += apart * apart
                    total[x // 2] += one[x]
