"""Edits of masks: against SimpleITK, and by properties."""

import numpy as np
import pytest

from raterscope.algorithms.masks.distance import add_margin, combine, fill_holes, smooth

SPACING = (3.0, 1.0, 1.0)


def ball(radius, shape=(15, 41, 41), centre=(7, 20, 20)):
    axes = np.indices(shape)
    squares = [((axis - at) * step) ** 2 for axis, at, step in zip(axes, centre, SPACING, strict=True)]
    return np.sqrt(sum(squares)) <= radius


def test_a_margin_is_the_euclidean_one_of_simpleitk():
    sitk = pytest.importorskip("SimpleITK")
    mask = ball(8.0)
    image = sitk.GetImageFromArray(mask.astype(np.uint8))
    image.SetSpacing(SPACING[::-1])
    away = sitk.GetArrayFromImage(
        sitk.SignedMaurerDistanceMap(image, squaredDistance=False, useImageSpacing=True)
    )
    grown = add_margin(mask, SPACING, 5.0)
    assert grown[away < 5.4].all()
    assert not grown[away > 5.6].any()
    shrunk = add_margin(grown, SPACING, -5.0)
    assert shrunk.sum() == pytest.approx(mask.sum(), rel=0.1)
    assert not (add_margin(mask, SPACING, -3.0) & ~mask).any()


def test_a_margin_reaches_to_slices_at_uneven_distances():
    mask = np.zeros((5, 3, 3), dtype=bool)
    mask[2] = True
    positions = np.array([0.0, 4.0, 6.0, 7.0, 20.0])
    grown = add_margin(mask, (1.0, 1.0, 1.0), 2.0, positions)
    assert grown.all(axis=(1, 2)).tolist() == [False, True, True, True, False]


def test_holes_are_filled_slice_by_slice_and_bays_stay_open():
    mask = np.zeros((2, 7, 7), dtype=bool)
    mask[:, 1:6, 1:6] = True
    mask[0, 3, 3] = mask[1, 3, 3:6] = False
    mask[1, 3, 6] = False
    filled = fill_holes(mask)
    assert filled[0, 3, 3]
    assert not filled[1, 3, 3:6].any()


def test_smoothing_removes_single_pixels_and_keeps_the_volume():
    mask = ball(12.0)
    rough = mask.copy()
    rough[7, 20, 34] = True
    rough[7, 20, 10] = False
    smoothed = smooth(rough, SPACING)
    assert not smoothed[7, 20, 34]
    assert smoothed[7, 20, 10]
    assert smoothed.sum() == pytest.approx(mask.sum(), rel=0.03)


@pytest.mark.parametrize("slices", [[4], [4, 5, 6], [2, 3, 8]])
def test_smoothing_keeps_slices_that_are_drawn_alone_and_those_at_the_ends(slices):
    disc = np.hypot(*np.mgrid[-20:21, -20:21]) < 12
    mask = np.zeros((12, 41, 41), dtype=bool)
    mask[slices] = disc
    smoothed = smooth(mask, (1.0, 1.0, 1.0))
    assert np.flatnonzero(smoothed.any(axis=(1, 2))).tolist() == slices
    for at in slices:
        assert smoothed[at].sum() == pytest.approx(disc.sum(), rel=0.05)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("add", [1, 1, 1, 0]),
        ("subtract", [0, 1, 0, 0]),
        ("intersect", [1, 0, 0, 0]),
        ("replace", [1, 0, 1, 0]),
    ],
)
def test_combinations(how, expected):
    mask, other = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    assert combine(mask, other, how).astype(int).tolist() == expected
