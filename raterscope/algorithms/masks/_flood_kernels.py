"""Inner loops over a list of voxels: sorting, peaks in depth, watershed, and nearest core.

A list of voxels is (N,) int64 `voxels`, flat indices of a (Z, Y, X) box. `index`, of the shape of the box,
holds one more than a voxel's number in that list, and 0 for other voxels. Neighbours share a face, an edge or
a corner. Every loop takes a part of the list at a time.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

DIGITS = 16
"""Number of bits of a key in one pass of the sort."""

_ROUNDING = 1e-6
"""Relative difference of depths below which peaks count as equally deep."""


def _offsets() -> Array:
    """Return the 26 neighbours, the nearest first; (26, 3)."""
    every = np.argwhere(np.ones((3, 3, 3))) - 1
    steps = (every**2).sum(axis=1)
    order = np.argsort(steps, kind="stable")
    return every[order[1:]]


_NEIGHBOURS = _offsets()


@compiled()
def count_digits(keys: Array, shift: int, begin: int, end: int, count: Array) -> None:
    """Count the digits of (N,) uint32 `keys` from `begin` to `end` in (65536,) `count`."""
    for i in range(begin, end):
        count[(keys[i] >> np.uint32(shift)) & np.uint32(0xFFFF)] += 1


@compiled()
def place_digits(
    keys: Array, order: Array, shift: int, begin: int, end: int, start: Array, out: Array
) -> None:
    """Sort the indices in `order` by the digits of their keys; `start` is updated."""
    for i in range(begin, end):
        digit = (keys[order[i]] >> np.uint32(shift)) & np.uint32(0xFFFF)
        out[start[digit]] = order[i]
        start[digit] += 1


@compiled()
def _root(parent: Array, i: int | np.int64) -> int | np.int64:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled()
def join(
    order: Array, begin: int, end: int, voxels: Array, depth: Array, index: Array, height: float,
    parent: Array, top: Array, state: Array, failed: Array,
) -> None:  # fmt: skip
    """Add voxels, the deepest first, to the components of their earlier neighbours.

    The peak of a component is its deepest voxel. Where two components meet, the lower peak is rejected unless
    it is higher by `height` than the meeting point. Peaks of equal depth have a common result.

    `order`: (N,) int32, numbers of the voxels; those from `begin` to `end` are added.
    `voxels`: (N,) int64.
    `depth`: (N,) float32.
    `index`: (Z, Y, X) int32.
    `parent`: (N,) int32, trees of the components; -1 for voxels that are not added yet.
    `top`: (N,) int32, the peak of the component with this root.
    `state`: (N,) int32, trees of peaks with a common result.
    `failed`: (N,) bool, result of each root.
    """
    slices, rows, columns = index.shape
    for k in range(begin, end):
        v = np.int64(order[k])
        parent[v], top[v], state[v] = v, v, v
        z, rest = divmod(voxels[v], rows * columns)
        y, x = divmod(rest, columns)
        for n in range(len(_NEIGHBOURS)):
            c, b, a = z + _NEIGHBOURS[n, 0], y + _NEIGHBOURS[n, 1], x + _NEIGHBOURS[n, 2]
            if c < 0 or b < 0 or a < 0 or c >= slices or b >= rows or a >= columns:
                continue
            w = index[c, b, a] - 1
            if w < 0 or parent[w] < 0:
                continue
            root, other_root = _root(parent, v), _root(parent, w)
            if root == other_root:
                continue
            high, low = top[other_root], top[root]
            if depth[low] > depth[high]:
                high, low = low, high
            above, below = _root(state, np.int64(high)), _root(state, np.int64(low))
            if depth[high] - depth[low] <= _ROUNDING * depth[high]:
                state[below] = above
            elif depth[low] - depth[v] < height:
                failed[below] = True
            parent[root] = other_root
            top[other_root] = high


@compiled()
def settle_roots(parent: Array, begin: int, end: int, out: Array) -> None:
    """Return the root of each voxel from `begin` to `end`, -1 for voxels in no tree."""
    for i in range(begin, end):
        out[i] = -1 if parent[i] < 0 else _root(parent, i)


@compiled()
def add_to_heap(keys: Array, items: Array, size: int, key: int, item: int) -> None:
    """Add an item to a binary heap of `size` items, the smallest key first."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if keys[above] <= key:
            break
        keys[at], items[at] = keys[above], items[above]
        at = above
    keys[at], items[at] = key, item


@compiled()
def _take_from_heap(keys: Array, items: Array, size: int) -> Array:
    """Remove the first item of a heap of `size` items."""
    first = items[0]
    last_key, last_item = keys[size - 1], items[size - 1]
    at, child = 0, 1
    while child < size - 1:
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if last_key <= keys[child]:
            break
        keys[at], items[at] = keys[child], items[child]
        at, child = child, 2 * child + 1
    keys[at], items[at] = last_key, last_item
    return first


@compiled()
def flood(
    rank: Array, voxels: Array, index: Array, marker: Array, keys: Array, items: Array, size: int, age: int,
    most: int,
) -> tuple[int, int]:  # fmt: skip
    """Flood unmarked neighbours of markers, deepest first (a watershed); return `size` and `age`.

    `rank`: (N,) int64, ranks of the voxels' depths, 0 the deepest; equal depths have one rank.
    `voxels`: (N,) int64.
    `index`: (Z, Y, X) int32.
    `marker`: (N,) int32, 0 where unmarked; below 0 for voxels that are not flooded.
    `keys`, `items`: (N,) int64 and int32, a heap of the voxels to spread from: rank, then age.
    `size`, `age`: number of voxels in the heap, and age of the youngest.
    `most`: number of voxels to spread from in this call.
    """
    slices, rows, columns = index.shape
    for _ in range(most):
        if size == 0:
            break
        v = _take_from_heap(keys, items, size)
        size -= 1
        z, rest = divmod(voxels[v], rows * columns)
        y, x = divmod(rest, columns)
        for n in range(len(_NEIGHBOURS)):
            c, b, a = z + _NEIGHBOURS[n, 0], y + _NEIGHBOURS[n, 1], x + _NEIGHBOURS[n, 2]
            if c < 0 or b < 0 or a < 0 or c >= slices or b >= rows or a >= columns:
                continue
            w = index[c, b, a] - 1
            if w < 0 or marker[w] != 0:
                continue
            marker[w] = marker[v]
            age += 1
            add_to_heap(keys, items, size, (rank[w] << 32) | age, w)
            size += 1
    return size, age


@compiled()
def _scan_row(core: Array, step: float, far: float, square: Array) -> None:
    """Write the nearest core of a row and its squared distance, inf where it is beyond `far`."""
    width = len(core)
    nearest, away = np.int32(0), 0.0
    for x in range(width):
        if core[x]:
            nearest, away = core[x], 0.0
            square[x] = 0.0
        else:
            away += step
            square[x] = away * away if nearest else np.inf
            core[x] = -nearest
    nearest, away = np.int32(0), 0.0
    for x in range(width - 1, -1, -1):
        if core[x] > 0:
            nearest, away = core[x], 0.0
            continue
        away += step
        core[x] = -core[x]
        if nearest:
            other = np.float32(away * away)
            if other < square[x] or (other == square[x] and nearest < core[x]):
                square[x], core[x] = other, nearest
        if square[x] > far:
            square[x], core[x] = np.inf, 0


@compiled()
def nearest_in_plane(cores: Array, steps: Array, far: float, begin: int, end: int, square: Array) -> None:
    """Write each voxel's nearest core of its slice; in a tie, the lower number.

    `cores`: (Z, Y, X) int32, numbers of the cores, 0 for none; overwritten with those of the nearest cores.
    `steps`: (2,) float64, mm from row to row and from column to column.
    `far`: squared distance, mm², beyond which a core does not count.
    `begin`, `end`: slices to fill in.
    `square`: (Z, Y, X) float32, filled with the squared distances; inf where there is no core.
    """
    _, rows, columns = cores.shape
    first, last = np.empty(rows, np.int64), np.empty(rows, np.int64)
    own, near = np.empty((rows, columns), np.float32), np.empty((rows, columns), np.int32)
    for z in range(begin, end):
        for y in range(rows):
            _scan_row(cores[z, y], steps[1], far, square[z, y])
            first[y], last[y] = columns, 0
            for x in range(columns):
                # Voxel by voxel, because the assignment of whole planes takes four seconds to compile.
                own[y, x], near[y, x] = square[z, y, x], cores[z, y, x]
                if cores[z, y, x]:
                    first[y] = min(first[y], x)
                    last[y] = x + 1
        for y in range(rows):
            best, number = square[z, y], cores[z, y]
            away = 1
            while (away * steps[0]) ** 2 <= far and away < rows:
                added = np.float32((away * steps[0]) ** 2)
                for side in range(-1, 2, 2):
                    other = y + side * away
                    if 0 <= other < rows:
                        _lower(own[other], near[other], added, first[other], last[other], best, number)
                away += 1
            for x in range(columns):
                if best[x] > far:
                    best[x], number[x] = np.inf, 0


@compiled()
def _lower(
    square: Array, core: Array, added: Array, begin: int, end: int, best: Array, number: Array
) -> None:
    """Replace squared distances of a row, and cores, by those of another row, `added` away, where smaller."""
    for x in range(begin, end):
        value = square[x] + added
        nearer = value < best[x] or (value == best[x] and core[x] < number[x])
        if nearer and value < np.inf:
            best[x] = value
            number[x] = core[x]


@compiled()
def nearest_across_slices(
    square: Array, cores: Array, slices_at: Array, far: float, voxels: Array, begin: int, end: int,
    out: Array,
) -> None:  # fmt: skip
    """Write the nearest core of each listed voxel across all slices, 0 if none is within `far` (squared).

    `square`, `cores`: (Z, Y, X), results of `nearest_in_plane`.
    `slices_at`: (Z,) float64, mm across the slices, in order.
    `voxels`: (N,) int64.
    `begin`, `end`: range of voxels of the list.
    `out`: (N,) int32.
    """
    slices, rows, columns = cores.shape
    for i in range(begin, end):
        z, rest = divmod(voxels[i], rows * columns)
        y, x = divmod(rest, columns)
        best, number = square[z, y, x], cores[z, y, x]
        for side in range(-1, 2, 2):
            other = z + side
            while 0 <= other < slices:
                added = (slices_at[other] - slices_at[z]) ** 2
                if added > far or added > best:
                    break
                value = np.float32(square[other, y, x] + added)
                if value <= far and (value < best or (value == best and cores[other, y, x] < number)):
                    best, number = value, cores[other, y, x]
                other += side
        out[i] = number
