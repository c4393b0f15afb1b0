"""Inner loops of the communities of a sparse network: factorisation and Louvain's method."""

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


@compiled()
def move_nodes(
    labels: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    links: NDArray[np.float32],
    loops: NDArray[np.float32],
    leaving: NDArray[np.float32],
    arriving: NDArray[np.float32],
    least: np.float32,
) -> float:
    """Move each node to the neighbouring community that increases the modularity most; return the increase.

    Ties go to the smaller label. Passes over all nodes end with one that gains `least` or less.

    `labels`: (M,), each node's community below M, changed in place. `starts`, `columns`, `links`: sparse
        matrix by rows, its sum 1. `loops`: (M,), its diagonal. `leaving`, `arriving`: (M,), sums of rows and
        columns.
    """
    count = len(labels)
    leaving_of, arriving_of = leaving.copy(), arriving.copy()
    linked = np.zeros(count, dtype=np.float32)
    visited = np.zeros(count, dtype=np.bool_)
    near = np.empty(count, dtype=np.int64)
    two = np.float32(2)
    increase = np.float32(0)
    while True:
        gained = np.float32(0)
        for node in range(count):
            own = labels[node]
            visited[own] = True
            found = 0
            for at in range(starts[node], starts[node + 1]):
                label = labels[columns[at]]
                linked[label] += links[at]
                if not visited[label]:
                    visited[label] = True
                    near[found] = label
                    found += 1
            out, into = leaving[node], arriving[node]
            stay = two * (linked[own] - loops[node])
            stay -= out * (arriving_of[own] - into)
            stay -= into * (leaving_of[own] - out)
            best, most = own, np.float32(0)
            for label in near[:found]:
                gain = two * linked[label] - out * arriving_of[label] - into * leaving_of[label] - stay
                if gain > most or (gain == most and most > 0 and label < best):
                    best, most = label, gain
                linked[label] = 0
                visited[label] = False
            linked[own] = 0
            visited[own] = False
            if best != own:
                gained += most
                labels[node] = best
                leaving_of[own] -= out
                arriving_of[own] -= into
                leaving_of[best] += out
                arriving_of[best] += into
        increase += gained
        if gained <= least:
            return float(increase)
