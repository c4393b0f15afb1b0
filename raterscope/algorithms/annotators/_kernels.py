"""Inner loops of statistics of annotators: factorisation of a sparse network, Beta quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.compiling import Array, compiled


@compiled()
def modelled(
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Write (left @ right.T)[i, j] into `out` for the entries i, j of a sparse matrix (CSR)."""
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

    Ties go to the smaller label. Passes over all nodes end when one gains `least` or less.

    `labels`: (M,), each node's community below M, changed in place. `starts`, `columns`, `links`: sparse
        matrix (CSR) with the sum 1. `loops`: (M,), its diagonal. `leaving`, `arriving`: (M,), sums of rows
        and columns.
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


@compiled(error_model="numpy")
def interpolate(
    first: Array,
    second: Array,
    table: Array,
    least: float,
    most: float,
    step: float,
    weights: Array,
    end: Array,
) -> None:
    """Interpolate the logit of a quantile between six by six nodes (Lagrange polynomials).

    `first`, `second`: (M,) float64, parameters of Beta distributions.
    `table`: (T, T) float64, logits of the quantile at exp(log(least) + i * step).
    `least`, `most`: range of the parameters; the quantile is NaN for distributions outside.
    `weights`: (2, 6) float64, overwritten.
    `end`: (M,) float64, overwritten with the quantiles.
    """
    origin = math.log(least)
    for m in range(len(first)):
        if not (least <= first[m] <= most and least <= second[m] <= most):
            end[m] = math.nan
            continue
        row = _weigh((math.log(first[m]) - origin) / step, len(table), weights[0])
        column = _weigh((math.log(second[m]) - origin) / step, len(table), weights[1])
        logit = 0.0
        for i in range(6):
            part = 0.0
            for j in range(6):
                part += weights[1, j] * table[row + i, column + j]
            logit += weights[0, i] * part
        end[m] = 1.0 / (1.0 + math.exp(-logit))


@compiled(error_model="numpy")
def _weigh(at: float, nodes: int, weights: Array) -> int:
    """Compute the weights of six nodes around a position; return the first node."""
    first = min(max(int(at) - 2, 0), nodes - 6)
    t = at - first
    a, b, c, d, e, f = t, t - 1.0, t - 2.0, t - 3.0, t - 4.0, t - 5.0
    weights[0] = b * c * d * e * f / -120.0
    weights[1] = a * c * d * e * f / 24.0
    weights[2] = a * b * d * e * f / -12.0
    weights[3] = a * b * c * e * f / 12.0
    weights[4] = a * b * c * d * f / -24.0
    weights[5] = a * b * c * d * e / 120.0
    return first
