import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from raterscope.widgets.volume.plane import contours


def area(line) -> float:
    x, y = line[:, 0], line[:, 1]
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("binary", [True, False])
def test_the_same_areas_are_enclosed_as_scikit_image_finds(seed, binary):
    from skimage.measure import find_contours

    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(50, 70)), 2)
    values = (noise / noise.max()).astype(np.float32)
    part, level = (values > 0.3, 0.5) if binary else (values, 0.3)
    ours = sorted(area(line) for line in contours(part, level))
    padded = np.pad(part.astype(float), 1)
    theirs = sorted(-area(line[:-1, ::-1]) for line in find_contours(padded, level, fully_connected="low"))
    assert len(ours) >= 3
    assert np.abs(ours) == pytest.approx(np.abs(theirs), rel=1e-4, abs=1e-4)


def test_a_line_lies_between_the_voxels_of_a_mask_and_a_hole_has_its_own():
    mask = np.zeros((20, 30), dtype=bool)
    mask[4:14, 6:26] = True
    mask[8, 10] = False
    outer, hole = sorted(contours(mask), key=lambda line: -abs(area(line)))
    assert (outer.min(axis=0).tolist(), outer.max(axis=0).tolist()) == ([5.5, 3.5], [25.5, 13.5])
    assert hole.mean(axis=0) == pytest.approx([10, 8])
    assert area(outer) * area(hole) < 0


def test_masks_at_the_edge_are_closed_and_those_that_touch_at_a_corner_are_two():
    assert -area(contours(np.ones((3, 4), dtype=bool))[0]) == pytest.approx(3 * 4 - 0.5)
    assert len(contours(np.eye(2, dtype=bool))) == 2
    assert contours(np.zeros((5, 5), dtype=bool)) == []


def test_a_probability_s_line_is_finer_than_its_voxels():
    row, column = np.indices((60, 60))
    slope = (np.hypot(row - 30.3, column - 29.6) - 15.25) / 4
    (line,) = contours(np.clip(0.5 - slope, 0, 1).astype(np.float32))
    assert np.hypot(line[:, 1] - 30.3, line[:, 0] - 29.6) == pytest.approx(15.25, abs=0.02)
