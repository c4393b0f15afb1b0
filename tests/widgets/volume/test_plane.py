from itertools import permutations, product

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.plane import (
    Levels,
    automatic_window,
    contours,
    in_words,
    looks_like_ct,
    planes_of,
)

SHAPE = (4, 5, 6)
SPACING = (3.0, 0.5, 0.8)


def grids():
    """Every way in which three axes of an array may lie along a patient's, each a little oblique."""
    for order, signs in product(permutations(range(3)), product((1, -1), repeat=3)):
        matrix = np.zeros((4, 4))
        for column, (direction, sign) in enumerate(zip(order, signs, strict=True)):
            matrix[:3, column] = 0.05
            matrix[direction, column] = sign
            matrix[:3, column] *= SPACING[2 - column] / np.linalg.norm(matrix[:3, column])
        matrix[3, 3] = 1
        yield Grid.from_matrix(SHAPE, matrix)


def test_the_patient_is_seen_as_radiologists_see_them_however_the_array_lies():
    for grid in grids():
        planes = planes_of(grid)
        assert planes["axial"].letters == ("R", "L", "A", "P"), grid
        assert planes["coronal"].letters == ("R", "L", "S", "I"), grid
        assert planes["sagittal"].letters == ("A", "P", "S", "I"), grid
        # x grows to the patient's left, y to the back, z to the head.
        positions = grid.to_patient(np.stack(np.indices(SHAPE), axis=-1).astype(float))
        for name, (across, down, way_down) in {
            "axial": (0, 1, 1), "coronal": (0, 2, -1), "sagittal": (1, 2, -1),
        }.items():  # fmt: skip
            visible = planes[name].cut(positions, 1)
            assert np.all(np.diff(visible[..., across], axis=1) > 0), grid
            assert np.all(way_down * np.diff(visible[..., down], axis=0) > 0), grid


@pytest.mark.parametrize("grid", list(grids())[::7])
def test_positions_voxels_and_parts_agree_with_what_is_cut(grid):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1000, SHAPE)
    origin, stop = (1, 2, 1), (3, 5, 4)
    part = values[tuple(slice(a, b) for a, b in zip(origin, stop, strict=True))]
    for plane in planes_of(grid).values():
        wide, high = plane.spacing[plane.across], plane.spacing[plane.down]
        for index in product(*map(range, SHAPE)):
            x, y = plane.position_of(index)
            cut = plane.cut(values, index[plane.normal])
            assert cut[int(y // high), int(x // wide)] == values[index]
            assert plane.index_at(x, y, index) == index
        for at in range(plane.slices):
            full = plane.cut(values, at)
            assert np.array_equal(np.take(values, [at], axis=plane.normal), plane.uncut(full))
            result = plane.cut_crop(part, origin, at)
            if result is None:
                assert not origin[plane.normal] <= at < stop[plane.normal]
                continue
            crop, (row, column) = result
            assert np.array_equal(full[row : row + crop.shape[0], column : column + crop.shape[1]], crop)
            left, top, _, _ = plane.box_of(origin, part.shape)
            assert (left, top) == pytest.approx((column * wide, row * high))


def test_a_step_up_goes_to_the_head():
    plane = planes_of(Grid.plain(SHAPE, SPACING, calibrated=True))["axial"]
    assert plane.next_up == 1
    feet_first = np.diag([1.0, 1.0, -1.0, 1.0])
    assert planes_of(Grid.from_matrix(SHAPE, feet_first))["axial"].next_up == -1


def test_an_image_has_one_plane_and_where_nothing_shows_the_sides_no_letters():
    (plane,) = planes_of(Grid.plain((1, 40, 60))).values()
    assert plane.extent == (0, 0, 60, 40)
    assert plane.letters == ("", "", "", "")
    pixels = np.arange(2400).reshape(1, 40, 60)
    assert np.array_equal(plane.cut(pixels, 0), pixels[0])


def test_a_position_beyond_the_edge_is_held_to_the_volume():
    plane = planes_of(Grid.plain(SHAPE, SPACING, calibrated=True))["axial"]
    assert plane.index_at(-50, 1000, (2, 0, 0)) == (2, 4, 0)


POSITIONS = (0.0, 3.0, 6.0, 21.0, 24.0, 27.0)
UNEVEN = (0.0, 3.0, 4.0, 11.0, 14.0, 17.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("positions", [POSITIONS, UNEVEN], ids=["missing", "uneven"])
def test_slices_are_seen_at_their_true_positions(positions, sign):
    """The head is at the top of the screen, whichever way the slices are counted."""
    matrix = np.diag([0.8, 0.5, 3.0 * sign, 1.0])
    grid = Grid.from_matrix((6, 5, 6), matrix, slice_offsets=positions)
    plane = planes_of(grid)["coronal"]
    total = grid.bounds[-1, 1] - grid.bounds[0, 0]
    assert plane.extent == pytest.approx((0.0, 0.0, 6 * 0.8, total))
    for at, position in enumerate(positions):
        from_first = position - grid.bounds[0, 0]
        y = total - from_first if sign > 0 else from_first
        x, down = plane.position_of((at, 2, 3))
        assert (x, down) == pytest.approx((3.5 * 0.8, y))
        assert plane.index_at(x, down, (0, 2, 0)) == (at, 2, 3)
        _, top, _, bottom = plane.box_of((at, 2, 0), (1, 1, 6))
        assert bottom - top == pytest.approx(np.ptp(grid.bounds[at]))
        assert top < y < bottom


def test_a_gap_is_empty_on_the_screen_and_goes_to_the_nearest_slice():
    grid = Grid.from_matrix((6, 5, 6), np.diag([0.8, 0.5, -3.0, 1.0]), slice_offsets=POSITIONS)
    plane = planes_of(grid)["coronal"]
    cut = plane.cut(np.ones((6, 5, 6), dtype=np.uint8), 2)
    shown = plane.evenly(cut)
    step = plane.extent[3] / len(shown)
    filled = (np.arange(len(shown)) + 0.5) * step
    assert np.array_equal(shown[:, 0] == 0, (filled > 9.0) & (filled < 21.0))
    assert plane.index_at(1.0, 10.0, (0, 2, 0))[0] == 2
    assert plane.index_at(1.0, 20.0, (0, 2, 0))[0] == 3
    axial = planes_of(grid)["axial"]
    assert axial.extent == pytest.approx((0.0, 0.0, 4.8, 2.5))
    assert axial.evenly(np.ones((5, 6))).shape == (5, 6)


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.uint8, np.float32])
def test_black_to_white_runs_over_the_width_whatever_the_numbers_are(kind):
    values = np.array([[0, 20, 40, 60, 80, 100, 255]], dtype=kind)
    assert Levels(60, 80).to_bytes(values).tolist() == [[0, 0, 64, 128, 191, 255, 255]]


def test_air_is_black_and_metal_is_white_in_a_ct():
    values = np.array([[-32768, -1024, -160, 40, 240, 3071, 32767]], dtype=np.int16)
    assert Levels(40, 400).to_bytes(values).tolist() == [[0, 0, 0, 128, 255, 255, 255]]


def test_slices_that_are_views_are_read_in_their_own_order():
    volume = np.arange(-30, 30, dtype=np.int16).reshape(3, 4, 5)
    view = volume[:, :, 2][::-1, ::-1]
    assert np.array_equal(Levels(0, 60).to_bytes(view), Levels(0, 60).to_bytes(view.copy()))


def test_a_gap_in_the_numbers_is_black_and_colours_pass():
    assert Levels(0.5, 1).to_bytes(np.array([[np.nan, 1.0]], dtype=np.float32)).tolist() == [[0, 255]]
    colours = np.random.default_rng(0).integers(0, 255, (4, 5, 3), dtype=np.uint8)
    assert np.array_equal(Levels(0, 1).to_bytes(colours), colours)


def test_the_automatic_window_spans_the_tissue_not_the_padding_nor_a_bright_vessel():
    rng = np.random.default_rng(2)
    volume = np.zeros((40, 60, 60), dtype=np.int16)
    volume[10:30, 15:45, 15:45] = rng.normal(500, 60, (20, 30, 30))
    volume[20, 30, 30:33] = 30_000
    volume[volume == 0] = -3024
    centre, width = automatic_window(volume)
    assert 300 < centre - width / 2 < 400
    assert 600 < centre + width / 2 < 720


def test_values_with_air_may_be_a_ct_and_those_about_nought_may_not():
    rng = np.random.default_rng(4)
    scan = rng.normal(40, 20, (20, 40, 40))
    assert not looks_like_ct(scan)
    scan[:, :10] = -1000
    assert looks_like_ct(scan)


@pytest.mark.parametrize("volume", [np.full((3, 4, 5), 7.0), np.full((2, 2, 2), np.nan)])
def test_a_volume_of_one_value_has_a_window_too(volume):
    _, width = automatic_window(volume)
    assert width > 0


def test_a_window_is_stated_with_the_digits_its_width_has_a_use_for():
    assert in_words(40, 400) == "W 400 L 40"
    assert in_words(0.5, 1.0) == "W 1.0 L 0.5"


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
