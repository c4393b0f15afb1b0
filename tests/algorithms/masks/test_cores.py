"""Cores of disputed regions against the same steps on the whole box by SciPy and scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from skimage.morphology import reconstruction
from skimage.segmentation import watershed

from raterscope.algorithms.masks._cores import cores_of, nearest_cores, sort_order

TOUCHING = np.ones((3, 3, 3))
STEPS = (1.37, 0.71, 0.83)


def hills(seed: int, shape: tuple[int, int, int]):
    """Smooth depths of which no two are equal, 0 on half of the voxels; (Z, Y, X) float32."""
    rng = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(rng.normal(size=shape), [1.5 if size > 1 else 0 for size in shape])
    depth = np.maximum(6 * noise / noise.std(), 0).astype(np.float32)
    ranks = np.unique(depth[depth > 0])
    assert len(ranks) == np.count_nonzero(depth)
    return depth


def points(shape, slices_at):
    def give(positions):
        z, y, x = np.unravel_index(positions, shape)
        return np.stack([slices_at[z], y * STEPS[1], x * STEPS[2]], axis=1)

    return give


def cores_on_the_box(depth, tolerance, height, radius, give):
    """Label, reconstruct, keep peaks apart and flood, all on the whole box."""
    full, _ = ndimage.label(depth > tolerance, structure=TOUCHING)
    beneath = reconstruction(np.maximum(depth - height, 0), depth, footprint=TOUCHING)
    peaks = np.flatnonzero((full > 0) & (depth - beneath >= height * (1 - 1e-5)))
    peaks = peaks[np.argsort(-depth.ravel()[peaks], kind="stable")]
    markers = np.zeros(depth.shape, dtype=np.int32)
    owner, position = full.ravel()[peaks], give(peaks)
    left = np.ones(len(peaks), dtype=bool)
    while left.any():
        first = int(left.argmax())
        markers.ravel()[peaks[first]] = markers.max() + 1
        left &= (owner != owner[first]) | (((position - position[first]) ** 2).sum(axis=1) > radius**2)
        left[first] = False
    return watershed(-depth, markers, connectivity=TOUCHING, mask=full > 0)


def assert_same_up_to_numbering(labels, expected):
    assert np.array_equal(labels > 0, expected > 0)
    pairs = np.unique(np.stack([labels[labels > 0], expected[labels > 0]]), axis=1)
    assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(9, 25, 31), (1, 60, 70)])
def test_cores_are_those_of_a_reconstruction_and_a_watershed_of_the_whole_box(seed, shape):
    depth = hills(seed, shape)
    give = points(shape, np.arange(shape[0]) * STEPS[0])
    positions = np.flatnonzero(depth)
    looks = []
    cores, count = cores_of(
        positions, depth.ravel()[positions], shape, 3.0, 1.5, 4.0, give, lambda: looks.append(1)
    )
    labels = np.zeros(shape, dtype=np.int32)
    labels.ravel()[positions] = cores
    expected = cores_on_the_box(depth, 3.0, 1.5, 4.0, give)
    assert count == expected.max() > 5
    assert_same_up_to_numbering(labels, expected)
    assert len(looks) > 10


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("shape", [(9, 25, 31), (1, 60, 70)])
def test_the_nearest_core_is_the_nearest_in_space(shape, uneven):
    rng = np.random.default_rng(5)
    slices_at = (
        np.cumsum(rng.choice([0.5, 1.0, 6.0], size=shape[0])) if uneven else np.arange(shape[0]) * 1.37
    )
    positions = np.flatnonzero(rng.random(shape) < 0.5)
    cores = np.where(rng.random(len(positions)) < 0.02, rng.integers(1, 9, len(positions)), 0).astype(
        np.int32
    )
    result = nearest_cores(positions, cores, shape, STEPS[1:], slices_at, 5.0, lambda: None)
    at = points(shape, slices_at)(positions)
    away = np.sqrt(((at[:, None] - at[cores > 0][None]) ** 2).sum(axis=2))
    nearest = away.min(axis=1)
    assert np.array_equal(result > 0, nearest <= 5.0)
    numbers = cores[cores > 0]
    for i in np.flatnonzero(result):
        assert away[i, numbers == result[i]].min() == pytest.approx(nearest[i], rel=1e-6)


def test_of_two_cores_as_near_it_is_the_lower_number():
    positions = np.arange(5)
    cores = np.array([2, 0, 0, 0, 1], dtype=np.int32)
    result = nearest_cores(positions, cores, (1, 1, 5), (1.0, 1.0), np.zeros(1), 9.0, lambda: None)
    assert result.tolist() == [2, 2, 1, 1, 1]
    upright = nearest_cores(positions, cores, (1, 5, 1), (1.0, 1.0), np.zeros(1), 9.0, lambda: None)
    across = nearest_cores(positions, cores, (5, 1, 1), (1.0, 1.0), np.arange(5.0), 9.0, lambda: None)
    assert upright.tolist() == across.tolist() == result.tolist()


def test_peaks_of_one_plateau_are_kept_apart():
    """A long bar of one depth has a core wherever the radius allows another."""
    shape = (1, 1, 40)
    positions = np.arange(40)
    depth = np.full(40, 5.0, dtype=np.float32)
    cores, count = cores_of(
        positions,
        depth,
        shape,
        3.0,
        1.5,
        10.0,
        lambda at: at[:, None] * np.array([0.0, 0.0, 1.0]),
        lambda: None,
    )
    assert count == 4
    assert np.all(np.diff(cores) >= 0)
    assert set(cores) == {1, 2, 3, 4}


def test_sorting_keeps_equal_keys_in_order():
    keys = np.random.default_rng(0).integers(0, 2**32, 5000, dtype=np.uint64).astype(np.uint32)
    keys[::3] = keys[7]
    assert np.array_equal(sort_order(keys, lambda: None), np.argsort(keys, kind="stable"))
