"""Differences between raters' outlines, on shapes whose differences are known."""

import numpy as np
import pytest

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.metrics import compare
from raterscope.algorithms.masks.observer_variation import observer_variation


def _squares(shift=2, spacing=(3.0, 0.5, 0.5)):
    masks = np.zeros((2, 3, 40, 40), dtype=np.uint8)
    masks[0, :, 10:20, 10:20] = 1
    masks[1, :, 10:20, 10 + shift : 20 + shift] = 1
    return Masks(masks, ("anna", "ben"), spacing)


def test_shifted_squares():
    result = observer_variation(_squares(), tolerance=0.4)
    assert result.annotators == ("anna", "ben")
    assert result.volumes == pytest.approx([300 * 0.75 / 1000] * 2)
    assert result.dice[0] == 0.8
    assert result.centroid_shift[0] == pytest.approx(1.0)
    # Both outlines have 36 pixels a slice, and share the upper and lower sides where they overlap.
    assert result.added_path_length[0] == pytest.approx((36 - 2 * 8) * 3 * 0.5)
    assert result.conformity() == pytest.approx(240 / 360)
    assert observer_variation(_squares(), tolerance=1.0).surface_dice[0] == 1.0
    assert 0 < result.surface_dice[0] < 1


def test_figures_that_others_measure_too_are_theirs():
    masks = _squares(shift=4)
    values = [masks.values[p] > 0 for p in range(2)]
    other = compare(*values, spacing=masks.spacing)
    result = observer_variation(masks)
    assert result.dice[0] == other.dice
    assert result.mean_surface_distance[0] == pytest.approx(other.mean_surface_distance)
    assert result.hausdorff_95[0] == pytest.approx(other.hausdorff_95)


def test_equal_masks_and_empty_ones():
    masks = np.zeros((3, 2, 20, 20), dtype=np.uint8)
    masks[:2, :, 5:9, 5:9] = 1
    result = observer_variation(Masks(masks, ("anna", "ben", "cleo"), (1.0, 1.0, 1.0)))
    assert result.annotators == ("anna", "ben")
    assert (result.dice[0], result.surface_dice[0], result.conformity()) == (1.0, 1.0, 1.0)
    assert (result.hausdorff_95[0], result.added_path_length[0], result.centroid_shift[0]) == (0.0, 0.0, 0.0)


def test_the_conformity_index_of_three_raters():
    masks = np.zeros((3, 1, 10, 10), dtype=np.uint8)
    masks[0, 0, 2:4, 2:4] = masks[1, 0, 2:4, 2:5] = masks[2, 0, 2:5, 2:4] = 1
    result = observer_variation(Masks(masks, ("a", "b", "c"), (1.0, 1.0, 1.0)))
    assert result.conformity() == pytest.approx((4 + 4 + 4) / (6 + 6 + 8))


def test_the_centroid_is_that_of_the_volume_where_slices_are_uneven():
    masks = np.zeros((2, 4, 12, 12), dtype=np.uint8)
    masks[0, :3, 2:6, 2:6] = masks[1, :, 2:6, 2:6] = 1
    positions = np.array([0.0, 1.0, 2.5, 5.0])  # slabs of 1, 1.25, 2 and 2.5 mm
    result = observer_variation(Masks(masks, ("anna", "ben"), (1.0, 0.5, 0.5), slice_positions=positions))
    anna = (1.0 * 1.25 + 2.5 * 2) / 4.25
    ben = (1.0 * 1.25 + 2.5 * 2 + 5.0 * 2.5) / 6.75
    assert result.centroid_shift[0] == pytest.approx(ben - anna)
