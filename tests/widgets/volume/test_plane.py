from itertools import permutations, product

import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.plane import planes_of

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


@pytest.mark.parametrize("grid", list(grids()))
def test_the_patient_is_seen_as_radiologists_see_them_however_the_array_lies(grid):
    planes = planes_of(grid)
    assert planes["axial"].letters == ("R", "L", "A", "P")
    assert planes["coronal"].letters == ("R", "L", "S", "I")
    assert planes["sagittal"].letters == ("A", "P", "S", "I")
    # x grows to the patient's left, y to the back, z to the head.
    places = grid.to_patient(np.stack(np.indices(SHAPE), axis=-1).astype(float))
    for name, (across, down, way_down) in {
        "axial": (0, 1, 1), "coronal": (0, 2, -1), "sagittal": (1, 2, -1),
    }.items():  # fmt: skip
        seen = planes[name].cut(places, 1)
        assert np.all(np.diff(seen[..., across], axis=1) > 0)
        assert np.all(way_down * np.diff(seen[..., down], axis=0) > 0)


@pytest.mark.parametrize("grid", list(grids())[::7])
def test_places_voxels_and_parts_agree_with_what_is_cut(grid):
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
            whole = plane.cut(values, at)
            assert np.array_equal(np.take(values, [at], axis=plane.normal), plane.uncut(whole))
            found = plane.cut_crop(part, origin, at)
            if found is None:
                assert not origin[plane.normal] <= at < stop[plane.normal]
                continue
            crop, (row, column) = found
            assert np.array_equal(whole[row : row + crop.shape[0], column : column + crop.shape[1]], crop)
            left, top, _, _ = plane.box_of(origin, part.shape)
            assert (left, top) == pytest.approx((column * wide, row * high))


def test_a_step_up_goes_to_the_head():
    plane = planes_of(Grid.plain(SHAPE, SPACING, calibrated=True))["axial"]
    assert plane.next_up == 1
    feet_first = np.diag([1.0, 1.0, -1.0, 1.0])
    assert planes_of(Grid.from_matrix(SHAPE, feet_first))["axial"].next_up == -1


def test_an_image_has_one_plane_and_where_nothing_tells_the_sides_no_letters():
    (plane,) = planes_of(Grid.plain((1, 40, 60))).values()
    assert plane.extent == (0, 0, 60, 40)
    assert plane.letters == ("", "", "", "")
    pixels = np.arange(2400).reshape(1, 40, 60)
    assert np.array_equal(plane.cut(pixels, 0), pixels[0])


def test_a_place_beyond_the_edge_is_held_to_the_volume():
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
        assert bottom - top == pytest.approx(grid.thicknesses[at])
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
