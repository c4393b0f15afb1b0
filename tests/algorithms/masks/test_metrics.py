"""Overlap and distances beside SimpleITK's, by hand, and where a mask is empty."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import ndimage

from raterscope.algorithms import progress
from raterscope.algorithms.annotators.statistics import wilcoxon
from raterscope.algorithms.masks import _voxel_kernels, metrics
from raterscope.algorithms.masks.metrics import (
    compare,
    compare_all,
    compare_pairwise,
    compare_with_reference,
    distance_at,
    distance_to,
    surface_of,
)
from raterscope.algorithms.masks.voting import majority
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.masks.staple_cases import ball, named

SPACING = (2.5, 0.7, 0.9)
A = ball((14, 30, 32), (6, 14, 15), 8.0, SPACING)
B = ball((14, 30, 32), (7, 16, 19), 7.0, SPACING)


def images(*masks):
    sitk = pytest.importorskip("SimpleITK")
    result = []
    for mask in masks:
        image = sitk.GetImageFromArray(mask.astype(np.uint8))
        image.SetSpacing(SPACING[::-1])
        result.append(image)
    return sitk, result


def test_overlap_is_simpleitks():
    sitk, (a, b) = images(A, B)
    peer = sitk.LabelOverlapMeasuresImageFilter()
    peer.Execute(b, a)
    ours = compare(A, B, SPACING)
    assert ours.dice == pytest.approx(peer.GetDiceCoefficient(1))
    assert ours.jaccard == pytest.approx(peer.GetJaccardCoefficient(1))
    assert ours.sensitivity == pytest.approx((A & B).sum() / B.sum())
    assert ours.specificity == pytest.approx((~A & ~B).sum() / (~B).sum())
    assert ours.volume_difference == pytest.approx((A.sum() - B.sum()) * 2.5 * 0.7 * 0.9 / 1000)


def test_distances_are_simpleitks():
    sitk, (a, b) = images(A, B)
    peer = sitk.HausdorffDistanceImageFilter()
    peer.Execute(a, b)
    ours = compare(A, B, SPACING)
    assert ours.hausdorff == pytest.approx(peer.GetHausdorffDistance(), rel=1e-5)
    assert 0 < ours.mean_surface_distance < ours.hausdorff_95 < ours.hausdorff


@pytest.mark.parametrize("positions", [None, np.cumsum(np.linspace(1.0, 3.0, 9))], ids=["even", "uneven"])
def test_no_more_voxels_than_agreed_are_worked_on_between_two_looks(monkeypatch, positions):
    """So that cancelling is noticed soon however large the mask; and the blocks give what the whole gives."""
    rng = np.random.default_rng(5)
    marked = rng.random((9, 13, 17)) < 0.02
    full = distance_to(marked, SPACING, positions)
    most, work, longest = 250, [0], [0]

    def counted(name):
        real = getattr(_voxel_kernels, name)

        def run(*arguments):
            rows = arguments[-1] - arguments[-2] if name != "squared_distance" else None
            voxels = arguments[0].size if rows is None else 9 * 17 * rows
            work[0] += voxels
            longest[0] = max(longest[0], work[0])
            return real(*arguments)

        return run

    for name in ("squared_distance", "squared_across_slices", "squared_across_uneven_slices"):
        monkeypatch.setattr(_voxel_kernels, name, counted(name))
    monkeypatch.setattr(metrics, "_AT_ONCE", most)
    monkeypatch.setattr(progress, "THREADS", 1)
    blocks = distance_to(marked, SPACING, positions, lambda: work.__setitem__(0, 0))
    np.testing.assert_array_equal(blocks, full)
    assert 0 < longest[0] <= most


@pytest.mark.parametrize("positions", [None, np.cumsum(np.linspace(1.0, 3.0, 9))], ids=["even", "uneven"])
@pytest.mark.parametrize("rows_a_voxel", [1000, 0], ids=["listed", "all"])
def test_distances_at_listed_voxels_are_those_of_the_whole(monkeypatch, positions, rows_a_voxel):
    rng = np.random.default_rng(6)
    marked = rng.random((9, 13, 17)) < 0.01
    voxels = rng.permutation(marked.size)[:500]
    monkeypatch.setattr(metrics, "_ROWS_A_VOXEL", rows_a_voxel)
    expected = distance_to(marked, SPACING, positions).ravel()[voxels]
    np.testing.assert_allclose(distance_at(marked, voxels, SPACING, positions), expected, rtol=1e-6)
    assert np.isinf(distance_at(np.zeros_like(marked), voxels, SPACING, positions)).all()


@pytest.mark.parametrize(
    "work", [compare_pairwise, lambda masks, watch: compare_with_reference(masks, A, watch=watch)]
)
def test_measuring_can_be_cancelled(monkeypatch, work):
    monkeypatch.setattr(metrics, "_AT_ONCE", 1000)
    calls = []

    def watch(*_, **__):
        calls.append(1)
        if len(calls) == stop:
            raise Cancelled

    stop = 0
    work(named(np.stack([A, B])), watch=watch)
    every = len(calls)
    assert every > 8
    for stop in (3, every // 2):
        calls.clear()
        with pytest.raises(Cancelled):
            work(named(np.stack([A, B])), watch=watch)
        assert len(calls) == stop


@pytest.mark.parametrize("shape", [(9, 13, 17), (1, 20, 30), (5, 1, 9)])
def test_the_distance_transform_is_scipys(shape):
    rng = np.random.default_rng(4)
    for share in (0.01, 0.2):
        marked = rng.random(shape) < share
        marked[0, 0, 0] = True
        peer = ndimage.distance_transform_edt(~marked, sampling=SPACING)
        assert distance_to(marked, SPACING) == pytest.approx(peer, rel=1e-5)


def test_masks_end_at_the_border_of_the_image():
    spacing = (2.0, 0.7, 0.9)
    a, b = np.zeros((2, 8, 20, 24), dtype=bool)
    a[0:5, 0:12, 4:15] = b[0:3, 0:9, 6:24] = True
    padded = [np.pad(mask, 1) for mask in (a, b)]
    surfaces = [mask & ~ndimage.binary_erosion(mask) for mask in padded]
    away = [ndimage.distance_transform_edt(~surface, spacing) for surface in surfaces]
    ways = away[1][surfaces[0]], away[0][surfaces[1]]
    ours = compare(a, b, spacing)
    assert ours.hausdorff == pytest.approx(max(way.max() for way in ways))
    assert ours.hausdorff_95 == pytest.approx(max(np.percentile(way, 95) for way in ways))
    assert ours.mean_surface_distance == pytest.approx(np.concatenate(ways).mean())


@pytest.mark.parametrize("shape", [(6, 8, 9), (1, 12, 14)])
def test_the_surface_is_what_an_erosion_by_faces_takes(shape):
    mask = np.random.default_rng(8).random(shape) < 0.8
    cross = ndimage.generate_binary_structure(3, 1)
    if shape[0] == 1:
        cross[[0, 2]] = False
    assert np.array_equal(surface_of(mask), mask & ~ndimage.binary_erosion(mask, cross))


def test_a_square_moved_by_hand():
    """Ten by ten pixels, moved three: a side of ten pixels is 3 away, the sides along the move are less."""
    a, b = np.zeros((2, 1, 20, 20), dtype=bool)
    a[0, 5:15, 3:13] = True
    b[0, 5:15, 6:16] = True
    ours = compare(a, b, (1.0, 1.0, 1.0))
    assert ours.hausdorff == 3.0
    assert ours.hausdorff_95 == 3.0
    assert ours.dice == 0.7
    assert ours.volume_difference == 0.0
    # Of 36 surface pixels each way: 10 at 3; of the rows along the move 1, 2 of each two rows; the far side,
    # inside the other square, has 8 pixels left: at 3 but for the 4 next to a row (1, 2, 2, 1).
    assert ours.mean_surface_distance == pytest.approx((10 * 3 + 2 * (1 + 2) + (4 * 3 + 2 * (1 + 2))) / 36)


def test_empty_masks():
    empty = np.zeros_like(A)
    both, first, other = (compare(a, b, SPACING) for a, b in ((empty, empty), (A, empty), (empty, A)))
    assert math.isnan(both.dice)
    assert both.hausdorff == 0.0
    assert first.dice == 0.0
    assert first.hausdorff_95 == math.inf
    assert math.isnan(first.sensitivity)
    assert other.sensitivity == 0.0
    assert other.specificity == 1.0
    with pytest.raises(ValueError, match="the same shape"):
        compare(A, A[1:], SPACING)


def test_tables_of_raters_equal_single_comparisons():
    values = np.stack([A, B, A & B, A & False])
    masks = named(values, spacing=SPACING, origin=(3, 4, 5), frame=(40, 40, 40))
    table, pairs = compare_with_reference(masks, A), compare_pairwise(masks)
    for p in range(4):
        alone = compare(values[p], A, SPACING)
        for name in type(alone).__slots__:
            assert getattr(table[p], name) == pytest.approx(getattr(alone, name), nan_ok=True)
        for name in ("dice", "hausdorff", "hausdorff_95", "mean_surface_distance"):
            of_pair = getattr(pairs, name)[p, 0]
            assert of_pair == pytest.approx(getattr(alone, name), nan_ok=True)
    assert np.isnan(pairs.dice[3, 3])
    consensus = majority(masks)
    full = np.zeros(masks.shape, dtype=bool)
    at = [a - b for a, b in zip(consensus.origin, masks.origin, strict=True)]
    full[tuple(slice(a, a + n) for a, n in zip(at, consensus.shape, strict=True))] = consensus.mask[0]
    assert [repr(row) for row in compare_with_reference(masks, consensus)] == [
        repr(row) for row in compare_with_reference(masks, full)
    ]


def test_wilcoxon_leaves_out_pairs_that_are_equal():
    """Without zeros and ties, 5 pairs all one way: the exact two-sided value is 2 / 2**5."""
    a = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, np.nan])
    b = np.array([0.9, 1.7, 2.5, 3.2, 4.0, 7.0, 1.0])
    result = wilcoxon(a, b)
    assert result.p_value == pytest.approx(2 / 2**5)
    assert (result.statistic, result.pairs, result.zeros) == (0.0, 5, 1)
    assert math.isnan(wilcoxon([1.0, 2.0], [1.0, 2.0]).p_value)


def test_both_comparisons_at_once_are_those_one_by_one():
    organ = ball((9, 20, 22), (4, 9, 10), 4)
    masks = named(np.stack([organ, organ | ball((9, 20, 22), (4, 9, 14), 3), np.zeros_like(organ)]))
    compared, pairs, *_ = compare_all(masks, organ)
    assert compared == compare_with_reference(masks, organ)
    alone = compare_pairwise(masks)
    for name in ("dice", "hausdorff", "hausdorff_95", "mean_surface_distance"):
        assert np.array_equal(getattr(pairs, name), getattr(alone, name), equal_nan=True)
