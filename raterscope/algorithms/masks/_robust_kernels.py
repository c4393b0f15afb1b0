"""Inner loops of the robust fusion: one pass over the voxels for each iteration, without storing scales."""

from __future__ import annotations

import math

import numpy as np

from raterscope.algorithms.compiling import Array, compiled
from raterscope.algorithms.masks.robust import EDGES

GAUSSIAN, LAPLACE, STUDENT, GDP, FACTORISED = 0, 1, 2, 3, 4

BLOCK = 512
"""Number of columns whose scales fit into the L1 cache."""

BINS, LOWEST_BIN = 1 << 16, (127 - 24) << 10
"""Number of bins of `spectrum`, 64 powers of two from 2^-24 with a thousand bins each, and the first bin."""

FIRST, LAST = EDGES

_MATH = {"contract", "reassoc", "nsz", "arcp"}
_FAR_TAIL = 12.0
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


@compiled()
def _slot_of(parent: int, value: np.uint32, table: Array, parents: Array, values: Array) -> Array:
    """Find the slot of a pair in the table (open addressing)."""
    mask = len(table) - 1
    key = np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(29)) ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
    while table[slot] >= 0 and (parents[table[slot]] != parent or values[table[slot]] != value):
        slot = (slot + 1) & mask
    return slot


@compiled()
def merge(
    bits: Array, row: Array, begin: int, end: int, table: Array, parents: Array, values: Array, used: int
) -> tuple[int, int]:
    """Replace each voxel's `row` by the number of its pair of `row` and `bits`, in order of occurrence.

    `bits`: (N,) uint32, values of the next rater.
    `row`: (N,) int32, numbers of the earlier raters' values.
    `begin`, `end`: range of voxels.
    `table`: (2^k,) int32, numbers of the pairs, -1 where free.
    `parents`, `values`: (2^(k-1),) int32 and uint32, the pairs.
    `used`: number of pairs in the table.
    The results are the new number of pairs, and the voxel reached, before `end` if the table is half full.
    """
    before, number = np.int32(-1), np.int32(-1)
    for n in range(begin, end):
        parent = row[n]
        if n > begin and parent == before and bits[n] == bits[n - 1]:
            row[n] = number
            continue
        slot = _slot_of(parent, bits[n], table, parents, values)
        if table[slot] < 0:
            if used == len(parents):
                return used, n
            table[slot], parents[used], values[used] = used, parent, bits[n]
            used += 1
        before, number = parent, table[slot]
        row[n] = number
    return used, end


@compiled()
def fill_table(used: int, table: Array, parents: Array, values: Array) -> None:
    """Insert the first pairs into an empty table; arguments as in `merge`."""
    for number in range(used):
        table[_slot_of(parents[number], values[number], table, parents, values)] = number


@compiled(error_model="numpy", fastmath=_MATH)
def _distances(data: Array, t: Array, s: Array, b: float, sb: float, sigma: float, out: Array) -> None:
    """Return the expected squared Mahalanobis distance E of one rater at the columns of a block."""
    inverse = 1 / sigma
    for i in range(len(t)):
        rest = np.float64(data[i]) - np.float64(t[i]) - b
        out[i] = (rest * rest + np.float64(s[i]) + sb) * inverse


@compiled(error_model="numpy")
def _tabulated(e: float, table: Array) -> Array:
    """Interpolate a table of `robust.table` by cubics: the bound, and its derivative by log E."""
    step = (LAST - FIRST) / (table.shape[1] - 1)
    point = min(max((math.log(max(e, 1e-300)) - FIRST) / step, 0.0), table.shape[1] - 1.000001)
    i = int(point)
    f = point - i
    g = 1 - f
    low, high, left, right = table[0, i], table[0, i + 1], table[1, i], table[1, i + 1]
    value = g * g * ((1 + 2 * f) * low + f * left) + f * f * ((1 + 2 * g) * high - g * right)
    change = 6 * f * g * (high - low) + g * (1 - 3 * f) * left + f * (1 - 3 * g) * right
    return value, change / step


@compiled(error_model="numpy", fastmath=_MATH)
def _log_density(kind: int, e: Array, weight: Array, nu: float, table: Array) -> float:
    """Return the log density with integrated scales, without its constant."""
    total = 0.0
    if kind == GAUSSIAN:
        for i in range(len(e)):
            total += weight[i] * e[i]
        return -total / 2
    if kind == LAPLACE:
        for i in range(len(e)):
            total += weight[i] * np.sqrt(e[i])
        return -total / 2
    if kind == STUDENT:
        for i in range(len(e)):
            total += weight[i] * math.log1p(e[i] / nu)
        return -total * (nu + 1) / 2
    if kind == FACTORISED:
        for i in range(len(e)):
            total += weight[i] * _tabulated(e[i], table)[0]
        return total
    for i in range(len(e)):
        total += weight[i] * math.log1p(np.sqrt(e[i]) / nu)
    return -total * (nu + 1)


@compiled(error_model="numpy", fastmath=_MATH)
def _precisions(kind: int, e: Array, sigma: float, nu: float, table: Array) -> None:
    """Convert E to E[tau] / Sigma in place."""
    inverse, half, scaled = 1 / sigma, 0.5 / sigma, (nu + 1) / sigma
    if kind == GAUSSIAN:
        for i in range(len(e)):
            e[i] = inverse
    elif kind == LAPLACE:
        for i in range(len(e)):
            e[i] = half / np.sqrt(e[i])
    elif kind == STUDENT:
        for i in range(len(e)):
            e[i] = scaled / (nu + e[i])
    elif kind == FACTORISED:
        for i in range(len(e)):
            square = max(e[i], 1e-12)
            e[i] = -2 * _tabulated(square, table)[1] / square * inverse
    else:
        for i in range(len(e)):
            root = np.sqrt(e[i])
            e[i] = scaled / (root * (nu + root))


@compiled(error_model="numpy")
def _above_zero(mean: float, deviation: float) -> Array:
    """Return mean, variance and entropy of a normal variable truncated to above 0."""
    alpha = -mean / deviation
    if alpha > _FAR_TAIL:
        square = alpha * alpha
        rate = alpha + 1 / alpha - 2 / (alpha * square) + 10 / (alpha * square * square)
        share = (1 - 6 / square + 50 / (square * square)) / square
        log_mass = -square / 2 - math.log(rate) - _HALF_LOG_TAU
    else:
        mass = 0.5 * math.erfc(alpha / math.sqrt(2.0))
        rate = math.exp(-alpha * alpha / 2 - _HALF_LOG_TAU) / mass
        share = 1 + alpha * rate - rate * rate
        log_mass = math.log(mass)
    entropy = _HALF_LOG_TAU + 0.5 + math.log(deviation) + log_mass + alpha * rate / 2
    return mean + deviation * rate, deviation * deviation * share, entropy


@compiled(error_model="numpy", fastmath=_MATH)
def _add_up(kept: Array, data: Array, t: Array, s: Array, weight: Array) -> Array:
    """Sum the precisions, and their products with the residual and with its expected square."""
    zeroth, first, second = 0.0, 0.0, 0.0
    for i in range(len(t)):
        precision = kept[i] * weight[i]
        rest = np.float64(data[i]) - np.float64(t[i])
        zeroth += precision
        first += precision * rest
        second += precision * (rest * rest + np.float64(s[i]))
    return zeroth, first, second


@compiled(error_model="numpy", fastmath=_MATH)
def sweep(
    kind: int, data: Array, weight: Array, state: Array, rater: Array, prior: Array, prior_precision: float,
    t: Array, s: Array, begin: int, end: int, sums: Array, totals: Array, table: Array,
    weights: Array | None,
) -> None:  # fmt: skip
    """Update q(T) at the columns `begin` to `end` (eqs. 17, 18), and the sums for the raters' updates.

    `data`, `weight`: (P, C) and (C,) float32. `t`, `s`: (C,). `state`: (C,) int8, 1 or -1 for settled voxels.
    `rater`: (4, P), bias, its variance, Sigma, nu. `prior`: (C,) or empty. `sums`: (4, P), sums of the
    precisions, of their products with the residual and with its expected square, and the log density before
    the update.
    `totals`: (1,), entropy of q(T). `table`: (2, n), as from `robust.table`, or empty. `weights`: (P,) or
    None, weights of the raters, only for q(T).
    """
    raters = len(data)
    kept = np.empty((raters, BLOCK))
    shown, precision = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(begin, end, BLOCK):
        stop = min(end, start + BLOCK)
        size = stop - start
        block = weight[start:stop]
        if prior_precision > 0:
            for i in range(size):
                precision[i] = prior_precision
                shown[i] = prior_precision * prior[start + i]
        else:
            precision[:size] = 0
            shown[:size] = 0
        for p in range(raters):
            e = kept[p, :size]
            _distances(
                data[p, start:stop], t[start:stop], s[start:stop], rater[0, p], rater[1, p], rater[2, p], e
            )
            if kind == LAPLACE:  # the root, which takes longest, once
                half, total = 0.5 / rater[2, p], 0.0
                for i in range(size):
                    root = np.sqrt(e[i])
                    total += block[i] * root
                    e[i] = half / root
                sums[3, p] -= total / 2
            else:
                sums[3, p] += _log_density(kind, e, block, rater[3, p], table)
                _precisions(kind, e, rater[2, p], rater[3, p], table)
            bias = rater[0, p]
            for i in range(size):
                if weights is None:
                    precision[i] += e[i]
                    shown[i] += e[i] * (data[p, start + i] - bias)
                else:
                    precision[i] += weights[p] * e[i]
                    shown[i] += weights[p] * e[i] * (data[p, start + i] - bias)
        logs = 0.0
        for i in range(size):
            s[start + i] = 1 / precision[i]
            t[start + i] = shown[i] / precision[i]
            if state[start + i] == 0:
                logs -= block[i] * math.log(precision[i])
            else:
                side = state[start + i]
                mean, variance, entropy = _above_zero(
                    side * shown[i] / precision[i], math.sqrt(1 / precision[i])
                )
                t[start + i] = side * mean
                s[start + i] = variance
                logs += block[i] * (2 * entropy - 2 * _HALF_LOG_TAU - 1)
        totals[0] += logs / 2
        for p in range(raters):
            zeroth, first, second = _add_up(
                kept[p, :size], data[p, start:stop], t[start:stop], s[start:stop], block
            )
            sums[0, p] += zeroth
            sums[1, p] += first
            sums[2, p] += second


@compiled(error_model="numpy")
def spectrum(
    kind: int, data: Array, weight: Array, rater: Array, t: Array, s: Array, begin: int, end: int,
    count: Array, total: Array,
) -> None:  # fmt: skip
    """Count E (for the double Pareto, its root) in (P, BINS) bins by the leading bits of its float32."""
    kept, short = np.empty(BLOCK), np.empty(BLOCK, np.float32)
    bits = short.view(np.int32)
    for start in range(begin, end, BLOCK):
        stop = min(end, start + BLOCK)
        for p in range(len(data)):
            e = kept[: stop - start]
            _distances(
                data[p, start:stop], t[start:stop], s[start:stop], rater[0, p], rater[1, p], rater[2, p], e
            )
            for i in range(stop - start):
                if kind == GDP:
                    e[i] = np.sqrt(e[i])
                short[i] = e[i]
                bin = min(max((bits[i] >> 13) - LOWEST_BIN, 0), BINS - 1)
                count[p, bin] += weight[start + i]
                total[p, bin] += np.float64(weight[start + i]) * e[i]


@compiled(error_model="numpy")
def shares(
    kind: int, data: Array, rater: Array, t: Array, s: Array, begin: int, end: int, out: Array, tau: Array,
    table: Array, weights: Array | None,
) -> None:  # fmt: skip
    """Write each rater's share of the precision, (P, C) uint8, at some columns; the sum at a column is 255.

    `tau`: (P, end - begin) float32, overwritten with E[tau]; or empty.
    """
    raters = len(data)
    kept = np.empty((raters, BLOCK))
    for start in range(begin, end, BLOCK):
        stop = min(end, start + BLOCK)
        size = stop - start
        for p in range(raters):
            e = kept[p, :size]
            _distances(
                data[p, start:stop], t[start:stop], s[start:stop], rater[0, p], rater[1, p], rater[2, p], e
            )
            _precisions(kind, e, rater[2, p], rater[3, p], table)
            if len(tau):
                for i in range(size):
                    tau[p, start - begin + i] = e[i] * rater[2, p]
            if weights is not None:
                for i in range(size):
                    e[i] *= weights[p]
        for i in range(size):
            total = 0.0
            for p in range(raters):
                total += kept[p, i]
            before, shared = 0.0, 0
            for p in range(raters):
                before += kept[p, i]
                upto = 255 if p == raters - 1 else int(255 * before / total + 0.5)
                out[p, start + i] = upto - shared
                shared = upto
