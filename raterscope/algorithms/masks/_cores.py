"""Cores of disputed regions: the deepest voxels, separated by a watershed, and the voxels nearest to each.

All functions work on lists of voxels of a box; see `_flood_kernels`. `check` is called at least once for each
million voxels; it may raise an exception to stop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import Box, Float32Array, FloatArray
from raterscope.algorithms.progress import Check, parts_of, run_parts

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]

_AT_ONCE = 1_000_000
"""Number of steps between two calls of the check."""

_NEIGHBOURS = 26

_ROUNDING = 1e-6
"""Relative rounding error of a prominence or a squared distance."""


def sort_order(keys: NDArray[np.uint32], check: Check) -> Int64Array:
    """Return the indices that sort (N,) keys, by a stable radix sort."""
    from raterscope.algorithms.masks import _flood_kernels as kernels

    order = np.arange(len(keys))
    for shift in (0, kernels.DIGITS):
        count = np.zeros(1 << kernels.DIGITS, dtype=np.int64)
        for begin, end in parts_of(len(keys), _AT_ONCE):
            check()
            kernels.count_digits(keys, shift, begin, end, count)
        start, out = np.cumsum(count) - count, np.empty_like(order)
        for begin, end in parts_of(len(keys), _AT_ONCE):
            check()
            kernels.place_digits(keys, order, shift, begin, end, start, out)
        order = out
    return order


def cores_of(
    voxels: Int64Array, depth: Float32Array, shape: Box, tolerance: float, height: float, radius: float,
    points: Callable[[Int64Array], FloatArray], check: Check,
) -> tuple[Int32Array, int]:  # fmt: skip
    """Return the number of each voxel's core, (N,), and the number of cores.

    Cores are numbered from 1; voxels not deeper than the tolerance have 0. A core consists of one peak in
    depth within the radius, and its slopes. A peak is higher by `height` than the saddles to deeper peaks.

    `voxels`: (N,) int64, flat indices of the voxels in a box of `shape`.
    `depth`: (N,) float32.
    `shape`: (slices, rows, columns).
    `tolerance`, `height`, `radius`: mm; `height` is at most `tolerance`.
    `points`: returns the positions, (n, 3) mm, of voxels.
    """
    from raterscope.algorithms.masks import _flood_kernels as kernels

    cores = np.zeros(len(voxels), dtype=np.int32)
    steep = np.flatnonzero(depth > tolerance - height)
    voxels, depth = voxels[steep], depth[steep]
    deeper = int(np.count_nonzero(depth > tolerance))
    if not deeper:
        return cores, 0
    order = sort_order(~depth.view(np.uint32), check)
    index = np.zeros(shape, dtype=np.int32)
    index.ravel()[voxels] = np.arange(1, len(voxels) + 1, dtype=np.int32)
    parent = np.full(len(voxels), -1, dtype=np.int32)
    top, state, owner = (np.zeros(len(voxels), dtype=np.int32) for _ in range(3))
    failed = np.zeros(len(voxels), dtype=np.bool_)
    step = _AT_ONCE // _NEIGHBOURS
    prominent = height * (1 - _ROUNDING)
    for part in ((0, deeper), (deeper, len(voxels))):
        for begin, end in parts_of(part[1] - part[0], step):
            check()
            kernels.join(
                order, part[0] + begin, part[0] + end, voxels, depth, index, prominent, parent, top, state,
                failed,
            )  # fmt: skip
        if part[0] == 0:  # what is connected so far are the cores before they are parted
            for begin, end in parts_of(len(voxels), _AT_ONCE):
                check()
                kernels.settle_roots(parent, begin, end, owner)
    for begin, end in parts_of(len(voxels), _AT_ONCE):
        check()
        kernels.settle_roots(state, begin, end, top)
    peaks = order[:deeper]
    peaks = peaks[~failed[top[peaks]]]
    markers, count = _markers(peaks, owner, voxels, radius, points, check)
    check()
    sizes = np.bincount(owner[np.flatnonzero(markers)], minlength=len(voxels))
    only = np.zeros(len(voxels), dtype=np.int32)
    only[owner[markers > 0]] = markers[markers > 0]
    inside = owner >= 0
    alone = inside & (sizes[owner] == 1)
    check()
    marker = np.where(alone, only[owner], np.where(inside, markers, np.int32(-1)))
    _flood(marker, order, voxels, depth, index, np.flatnonzero((markers > 0) & ~alone), check)
    cores[steep] = np.maximum(marker, 0)
    return cores, count


def _markers(
    peaks: Int64Array, owner: Int32Array, voxels: Int64Array, radius: float,
    points: Callable[[Int64Array], FloatArray], check: Check,
) -> tuple[Int32Array, int]:  # fmt: skip
    """Keep the deepest peak of a component within the radius, and number it.

    `peaks` are in order of depth.
    """
    peaks = peaks[sort_order(owner[peaks].view(np.uint32), check)]
    markers = np.zeros(len(voxels), dtype=np.int32)
    bounds = np.flatnonzero(np.diff(owner[peaks], prepend=-1, append=-1))
    count = 0
    for begin, end in itertools.pairwise(bounds.tolist()):
        peak_part = peaks[begin:end]
        point = points(voxels[peak_part])
        while len(peak_part):
            check()
            count += 1
            markers[peak_part[0]] = count
            apart = ((point - point[0]) ** 2).sum(axis=1) > radius**2
            apart[0] = False
            peak_part, point = peak_part[apart], point[apart]
    return markers, count


def _flood(
    marker: Int32Array, order: Int64Array, voxels: Int64Array, depth: Float32Array, index: Int32Array,
    seeds: Int64Array, check: Check,
) -> None:  # fmt: skip
    """Flood unmarked voxels from the seeds; `marker` is filled."""
    from raterscope.algorithms.masks import _flood_kernels as kernels

    rank = np.empty(len(voxels), dtype=np.int64)
    rank[order] = np.cumsum(np.diff(depth[order], prepend=depth[order[0]]) != 0)
    room = int(np.count_nonzero(marker == 0)) + len(seeds)
    keys, items = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int32)
    size = age = 0
    for seed in seeds:
        kernels.add_to_heap(keys, items, size, rank[seed] << 32, seed)
        size += 1
    while size:
        check()
        size, age = kernels.flood(
            rank, voxels, index, marker, keys, items, size, age, _AT_ONCE // _NEIGHBOURS
        )


def nearest_cores(
    voxels: Int64Array, cores: Int32Array, shape: Box, steps: tuple[float, float], slices_at: FloatArray,
    reach: float, check: Check,
) -> Int32Array:  # fmt: skip
    """Return the number of each voxel's nearest core, the lower one in a tie; 0 beyond `reach`.

    `voxels`: (N,) int64.
    `cores`: (N,) int32, 0 for a voxel of no core.
    `shape`: (slices, rows, columns).
    `steps`: (row, column), mm.
    `slices_at`: (slices,) float64, mm.
    `reach`: mm.
    """
    from raterscope.algorithms.masks import _flood_kernels as kernels

    slices, rows, columns = shape
    core_map = np.zeros(shape, dtype=np.int32)
    core_map.ravel()[voxels] = cores
    square = np.empty(shape, dtype=np.float32)
    far = reach**2 * (1 + _ROUNDING)
    around = 2 * int(reach / steps[0]) + 1
    run_parts(
        lambda begin, end: kernels.nearest_in_plane(core_map, np.array(steps), far, begin, end, square),
        parts_of(slices, 8 * _AT_ONCE // (rows * columns * around)), check,
    )  # fmt: skip
    nearest = np.empty(len(voxels), dtype=np.int32)
    run_parts(
        lambda begin, end: kernels.nearest_across_slices(
            square, core_map, slices_at, far, voxels, begin, end, nearest
        ),
        parts_of(len(voxels), _AT_ONCE // 8), check,
    )  # fmt: skip
    return nearest
