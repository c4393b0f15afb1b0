"""Lengths, volumes and fusions on slices at uneven distances."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import Masks, MasksError, volumes_of
from raterscope.algorithms.masks.disputes import dispute_by_slice, disputes
from raterscope.algorithms.masks.distance import domain, interpolate, signed_distance
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, report_on
from raterscope.algorithms.masks.metrics import (
    compare,
    compare_pairwise,
    compare_with_reference,
    distance_to,
)
from raterscope.algorithms.masks.observer_variation import observer_variation
from raterscope.algorithms.masks.robust import GaussianSettings, gaussian

RNG = np.random.default_rng(4)
SPACING = (2.5, 0.8, 0.6)
PLACES = np.array([0.0, 2.5, 4.0, 9.0, 16.0, 17.0, 19.5, 22.0])
SHAPE = (8, 9, 11)
GAP = np.array([0.0, 2.5, 5.0, 15.0, 17.5, 20.0])


def centres(positions=PLACES, shape=SHAPE) -> np.ndarray:
    """Return every voxel's place in mm, (N, 3)."""
    index = np.indices(shape).reshape(3, -1).T.astype(float) * SPACING
    index[:, 0] = np.repeat(positions, shape[1] * shape[2])
    return index


def blob(seed: int = 0) -> np.ndarray:
    mask = np.random.default_rng(seed).random(SHAPE) < 0.05
    mask[2:6, 3:6, 3:8] = True
    return mask


def nearest(positions: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Measure the distance to the nearest marked voxel by looking at all of them."""
    there = positions[marked.ravel()]
    return np.sqrt(((positions[:, None] - there) ** 2).sum(axis=2)).min(axis=1).reshape(marked.shape)


def test_the_distance_to_a_surface_is_by_true_positions() -> None:
    mask = blob()
    expected = nearest(centres(), mask)
    np.testing.assert_allclose(distance_to(mask, SPACING, PLACES), expected, rtol=1e-5)
    empty = np.zeros_like(mask)
    assert np.isinf(distance_to(empty, SPACING, PLACES)).all()


def test_even_positions_give_the_same_as_none() -> None:
    mask, even = blob(), np.arange(8) * 2.5
    np.testing.assert_allclose(distance_to(mask, SPACING, even), distance_to(mask, SPACING), rtol=1e-5)
    np.testing.assert_allclose(
        signed_distance(mask, SPACING, 8.0, positions=even), signed_distance(mask, SPACING, 8.0), atol=1e-5
    )


def test_signed_distances_are_by_true_positions() -> None:
    mask, clip = blob(), 6.0
    half = 0.5 * 0.6
    away = np.where(mask, nearest(centres(), ~mask), -nearest(centres(), mask))
    expected = np.clip(np.sign(away) * (np.abs(away) - half), -clip, clip)
    np.testing.assert_allclose(signed_distance(mask, SPACING, clip, positions=PLACES), expected, atol=1e-4)


def test_each_slice_counts_with_its_own_slab() -> None:
    mask = np.zeros(SHAPE, dtype=bool)
    mask[3, 0, :2] = True
    mask[5, 0, :1] = True
    area = 0.8 * 0.6
    assert volumes_of(mask, SPACING, PLACES) == pytest.approx(area * (2 * 6.0 + 1 * 1.75))
    assert volumes_of(mask, SPACING, None) == pytest.approx(3 * area * 2.5)
    assert volumes_of(mask[3:], SPACING, PLACES, 3) == volumes_of(mask, SPACING, PLACES)


def test_a_slab_beside_missing_slices_is_at_most_the_nominal_distance() -> None:
    mask = np.ones((6, 1, 1), dtype=bool)
    assert volumes_of(mask, (2.5, 1.0, 1.0), GAP) == pytest.approx(6 * 2.5)


def test_hausdorff_and_volume_across_a_gap() -> None:
    present, other = np.zeros((2, 6, 5, 5), dtype=bool)
    present[1:3, 2, 2] = True
    other[1:4, 2, 2] = True
    result = compare(other, present, SPACING, GAP)
    assert result.hausdorff == pytest.approx(10.0)
    assert result.volume_difference == pytest.approx(2.5 * 0.8 * 0.6 / 1000)
    masks = Masks(np.stack([present, other]), ("a", "b"), SPACING, slice_positions=GAP)
    assert compare_pairwise(masks).hausdorff[0, 1] == pytest.approx(10.0)
    assert compare_with_reference(masks, present)[1].hausdorff == pytest.approx(10.0)
    assert compare_with_reference(masks, present)[1].volume_difference == pytest.approx(
        result.volume_difference
    )


def test_a_margin_reaches_by_true_positions() -> None:
    values = np.zeros((1, *SHAPE), dtype=bool)
    values[0, 3, 4, 5] = True
    masks = Masks(values, ("a",), SPACING, slice_positions=PLACES)
    assert domain(masks, 5.0).origin[0] == 2
    assert domain(masks, 5.1).origin[0] == 1
    assert domain(masks, 5.0).shape[0] == 3
    assert domain(masks, 7.5).shape[0] == 6


def three(positions=PLACES) -> Masks:
    values = np.zeros((3, 8, 30, 30), dtype=bool)
    values[:, 1:6, 8:22, 8:22] = True
    values[2, 6, 8:22, 8:22] = True
    values[2, 5:7, 8:22, 8:28] = True
    return Masks(values, ("a", "b", "c"), (2.5, 0.8, 0.8), slice_positions=positions)


@pytest.mark.parametrize("name", FUSERS)
def test_every_algorithm_fuses_and_measures_uneven_slices(name: str) -> None:
    masks = three()
    fusion = fuse(masks, MaskPlan.make(name, {}))
    assert fusion.slice_positions is PLACES
    report = report_on(fusion, masks)
    volume = volumes_of(fusion.mask[0], masks.spacing, PLACES, fusion.origin[0])
    assert report.volume_ml == pytest.approx(float(volume) / 1000)


def test_evenly_placed_slices_are_fused_as_before() -> None:
    masks = three(np.arange(8) * 2.5)
    plain = replace(masks, slice_positions=None)
    result, expected = (gaussian(item, GaussianSettings()) for item in (masks, plain))
    np.testing.assert_allclose(result.probability, expected.probability, atol=1e-4)
    np.testing.assert_allclose(result.distance, expected.distance, atol=1e-3)
    ours, theirs = (disputes(f, m) for f, m in ((result, masks), (expected, plain)))
    assert [item.volume_ml for item in ours] == pytest.approx([item.volume_ml for item in theirs])
    assert [item.reach for item in ours] == pytest.approx([item.reach for item in theirs])
    assert dispute_by_slice(result) == pytest.approx(dispute_by_slice(expected), rel=1e-3)


def test_a_disputed_region_has_its_true_size() -> None:
    masks = three()
    fusion = fuse(masks, MaskPlan.make("majority", {}))
    regions = disputes(fusion, masks)
    assert regions
    for region in regions:
        expected = volumes_of(region.voxels(), masks.spacing, PLACES, region.origin[0])
        assert region.volume_ml == pytest.approx(float(expected) / 1000)
    assert max(region.reach for region in regions) == pytest.approx(np.hypot(6 * 0.8, 2.5))


def test_interpolation_is_by_true_positions() -> None:
    small, large = np.zeros((2, 60, 60), dtype=bool)
    small[25:35, 25:35] = True
    large[10:50, 10:50] = True
    near = interpolate({0: small, 2: large}, (1.0, 1.0, 1.0), np.array([0.0, 1.0, 10.0]))[1].sum()
    middle = interpolate({0: small, 2: large}, (1.0, 1.0, 1.0))[1].sum()
    assert small.sum() <= near < middle < large.sum()


def test_positions_of_another_number_of_slices_are_refused() -> None:
    with pytest.raises(MasksError, match="slice positions"):
        Masks(np.ones((1, 4, 3, 3), dtype=bool), ("a",), slice_positions=PLACES)


def test_overlaps_are_of_volumes_not_of_voxels() -> None:
    """A mask on uneven slices agrees as the same mask on the even slices that the uneven ones stand for."""
    rng = np.random.default_rng(3)
    positions = np.cumsum([0.0, 1, 1, 3, 3, 3, 3, 1, 1])
    thick = np.array([1, 1, 2, 3, 3, 3, 2, 1, 1])  # slabs that end midway between slices
    masks = rng.random((3, len(thick), 12, 12)) < 0.4
    names = ("a", "b", "c")
    uneven = Masks(masks, names, (1.0, 1.0, 1.0), slice_positions=positions)
    repeated = Masks(np.repeat(masks, thick, axis=1), names, (1.0, 1.0, 1.0))
    np.testing.assert_allclose(compare_pairwise(uneven).dice, compare_pairwise(repeated).dice)
    np.testing.assert_allclose(observer_variation(uneven).dice, observer_variation(repeated).dice)
    assert observer_variation(uneven).conformity() == pytest.approx(observer_variation(repeated).conformity())
    whole = ((masks, positions), (repeated.values, None))
    first = [compare(values[0], values[1], (1.0, 1.0, 1.0), at) for values, at in whole]
    second = [compare_with_reference(m, m.values[1])[0] for m in (uneven, repeated)]
    for figure in ("dice", "jaccard", "volume_difference", "sensitivity", "specificity"):
        for thin, full in (first, second):
            assert getattr(thin, figure) == pytest.approx(getattr(full, figure)), figure
