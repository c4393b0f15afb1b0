"""Inner loop of the raters left out in turn: weighted squares, summed over pairs of voxels."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["halved_squares"]


@compiled(error_model="numpy")
def halved_squares(layer: Array, mean: Array, weight: Array, begin: int, end: int, out: Array) -> None:
    """Sum weight times (layer - mean)² over pairs of voxels along each axis, for lines `begin` to `end`.

    Parameters
    ----------
    layer, mean, weight : (Z, Y, X) float32
    begin, end : int
        Lines along the columns of `out`, counted from slice to slice.
    out : (ceil(Z / 2), ceil(Y / 2), ceil(X / 2)) float32
        Overwritten.
    """
    slices, rows, columns = layer.shape
    for line in range(begin, end):
        z, y = line // out.shape[1], line % out.shape[1]
        sums = out[z, y]
        sums[:] = np.float32(0)
        for a in range(2 * z, min(2 * z + 2, slices)):
            for b in range(2 * y, min(2 * y + 2, rows)):
                one, middle, share = layer[a, b], mean[a, b], weight[a, b]
                for x in range(columns):
                    apart = one[x] - middle[x]
                    sums[x // 2] += share[x] * apart * apart
