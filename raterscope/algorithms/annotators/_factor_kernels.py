"""Inner loop of the factorisation of a sparse network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import compiled


@compiled()
def modelled(
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Write (left @ right.T)[i, j] into `out` for the entries i, j of a sparse matrix by rows."""
    for i in range(len(starts) - 1):
        for at in range(starts[i], starts[i + 1]):
            total = np.float32(0)
            other = columns[at]
            for c in range(left.shape[1]):
                total += left[i, c] * right[other, c]
            out[at] = total
