"""Looks whether the work is still wanted: how much is done between two of them, and that it ends at any.

Time is not measured: the loops over voxels are counted instead, with small blocks on a small volume.
"""

from __future__ import annotations

import importlib
import threading
from functools import partial

import numpy as np
import pytest

from raterscope.algorithms import progress
from raterscope.algorithms.masks.calibration import calibrate
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.disputes import disputes
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, report_on
from raterscope.algorithms.masks.metrics import compare_pairwise, compare_with_reference
from raterscope.algorithms.masks.voting import majority
from raterscope.algorithms.progress import Cancelled, silent
from tests.algorithms.masks.staple_cases import ball, named

SHAPE = (24, 40, 44)
PLANE = SHAPE[1] * SHAPE[2]
BLOCK = 4000
"""Voxels that the modules take at a time here."""

ORGAN = ball(SHAPE, (12, 20, 18), 10)
MASKS = named(np.stack([ORGAN, ORGAN | ball(SHAPE, (12, 20, 31), 7), ORGAN & ~ball(SHAPE, (12, 8, 18), 6)]))
LABELS = named(
    np.stack([mask + (mask & (np.arange(SHAPE[2]) > 24)) for mask in MASKS.values]).astype(np.uint8),
    structures=("organ", "part"),
)
IMAGE = named(
    np.stack([ball((1, 160, 210), (0, 80, 90), 50), ball((1, 160, 210), (0, 80, 120), 55)] * 2).astype(bool)
)
"""One slice of many blocks."""

FLAT = ("laplace", "mixture", "pstaple", "continuous-staple")

BLOCKS = (
    ("_cores", "_AT_ONCE"),
    ("_grouping", "_AT_ONCE"),
    ("_robust_fit", "_CHUNK"),
    ("_robust_fit", "_CHUNK_OF_BUMPS"),
    ("continuous_staple", "_AT_ONCE"),
    ("distance", "_AT_ONCE"),
    ("leave_one_out", "_AT_ONCE"),
    ("metrics", "_AT_ONCE"),
    ("multiclass", "_AT_ONCE"),
    ("voting", "_AT_ONCE"),
    ("staple", "_AT_ONCE"),
    ("staple", "_SLAB"),
)


def of_rows(values, *others):
    """Count voxels of the rows from the third but last argument on; see `squared_across_slices`."""
    begin, end = (each for each in others if isinstance(each, int))
    return values.size // values.shape[1] * (end - begin)


VOXELS = {
    "_voxel_kernels.halve": lambda layer, _m, begin, end, *_: 4 * (end - begin) * layer.shape[2],
    "_voxel_kernels.across_rows": lambda line, _s, _f, begin, end, *_: (end - begin) * line.shape[1],
    "_flood_kernels.join": lambda _order, begin, end, *_: 26 * (end - begin),
    "_flood_kernels.flood": lambda *every: 26 * every[-1],
    "_flood_kernels.nearest_across_slices": lambda *every: every[6] - every[5],
    "_flood_kernels.nearest_in_plane": lambda _c, _s, _f, begin, end, square: square[begin:end].size,
    "_voxel_kernels.count_codes": lambda code, _: code.size,
    "_voxel_kernels.pack": lambda _l, _b, code: code.size,
    "_robust_kernels.merge": lambda _bits, _row, begin, end, *_: end - begin,
    "_robust_kernels.shares": lambda _k, data, *rest: len(data) * (rest[-5] - rest[-6]),
    "_staple_kernels.field_totals": lambda row, _e, _s, begin, end, *_: (end - begin) * row.shape[2],
    "_staple_kernels.sweep": lambda row, *rest: (rest[-2] - rest[-3]) * row.shape[2],
    "_voxel_kernels.squared_across_slices": of_rows,
    "_voxel_kernels.boundary": lambda mask, begin, end, _: mask[begin:end].size,
    "_voxel_kernels.squared_distance": lambda marked, *_: marked.size,
    "_voxel_kernels.row_gaps": lambda marked, begin, end, _: marked[begin:end].size,
    "_voxel_kernels.squared_across_slices_at": lambda squared, *rest: len(squared) * (rest[-2] - rest[-3]),
    "_voxel_kernels.squared_distance_at": lambda *every: every[-2] - every[-3],
}
"""The loops whose work is counted."""


def fusion(name, masks, watch):
    return fuse(masks, MaskPlan.make(name), watch)


WORK = {
    **{name: partial(fusion, name, MASKS) for name in FUSERS},
    **{f"{name}, an image": partial(fusion, name, IMAGE) for name in FLAT},
    "several structures": partial(fusion, "laplace", LABELS),
    "calibration": lambda watch: calibrate(MASKS, watch),
    "calibration, an image": lambda watch: calibrate(IMAGE, watch),
    "disputes": lambda watch: disputes(majority(MASKS), MASKS, watch=watch),
    "pairwise": lambda watch: compare_pairwise(MASKS, watch),
    "against": lambda watch: compare_with_reference(MASKS, ORGAN, watch),
    "report": lambda watch: report_on(majority(MASKS), MASKS, watch),
}


@pytest.fixture
def small_blocks(monkeypatch):
    for name, block in BLOCKS:
        module = importlib.import_module(f"raterscope.algorithms.masks.{name}")
        monkeypatch.setattr(module, block, BLOCK)
    monkeypatch.setattr(progress, "THREADS", 1)  # threads go on while one looks


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", WORK)
def test_little_is_done_between_two_looks(monkeypatch, name):
    done: list[tuple[str, int]] = []
    longest: list[tuple[int, list[str]]] = []
    started = []

    def count(kernel, title, *arguments):
        if started:  # not the fusion that the report is on
            done.append((title, VOXELS[title](*arguments)))
        return kernel(*arguments)

    def check(fraction, words, **more):
        started.append(fraction)
        longest.append((sum(size for _, size in done), [title for title, _ in done]))
        done.clear()

    WORK[name](silent)  # a kernel that calls another one cannot be compiled once that is replaced
    for title in VOXELS:
        module, kernel = title.split(".")
        owner = importlib.import_module(f"raterscope.algorithms.masks.{module}")
        monkeypatch.setattr(owner, kernel, partial(count, getattr(owner, kernel), title))
    WORK[name](check)
    longest.append((sum(size for _, size in done), [title for title, _ in done]))
    most, kernels = max(longest)
    assert sum(len(titles) for _, titles in longest) > 5
    assert most <= 2 * (BLOCK + PLANE), kernels
    assert started == sorted(started)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", WORK)
def test_cancelling_at_any_look_ends_the_work(name):
    calls = 0
    stop = 0

    def watch(fraction, words, **more):
        nonlocal calls
        calls += 1
        if calls == stop:
            raise Cancelled

    WORK[name](watch)
    total, threads = calls, threading.active_count()
    assert total > 20
    for at in {1, 2, total // 4, total // 2, total - total // 4, total - 1, total}:
        calls, stop = 0, at
        with pytest.raises(Cancelled):
            WORK[name](watch)
        assert calls == at
        assert threading.active_count() <= threads


def test_a_partial_result_looks_too():
    """It is drawn by the thread that fuses, so that Cancel waits for it."""
    inside: list[str] = []

    def watch(fraction, words, *, partial=None, **more):
        if partial is not None and not inside:
            inside.append(words)
            partial()
            raise Cancelled
        if inside:
            inside.append(words)

    with pytest.raises(Cancelled):
        fuse(MASKS, MaskPlan.make("laplace"), watch)
    assert len(inside) > 5
