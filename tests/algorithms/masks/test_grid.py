"""Positions of voxels, compared with SimpleITK, and equality of grids."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from raterscope.algorithms.masks.grid import Grid, GridError, describe_slices

SHAPE, SPACING, ORIGIN = (5, 7, 9), (2.5, 0.8, 0.6), (-40.0, 12.0, 300.0)
TURN = Rotation.from_euler("xyz", (12, -15, 30), degrees=True).as_matrix()


def turned(shift=(0.0, 0.0, 0.0)) -> Grid:
    """A lattice that lies askew, moved by so many millimetres."""
    matrix = np.eye(4)
    matrix[:3, :3] = TURN * SPACING[::-1]
    matrix[:3, 3] = np.add(ORIGIN, shift)
    return Grid.from_matrix(SHAPE, matrix)


def test_voxels_lie_where_another_program_has_them():
    sitk = pytest.importorskip("SimpleITK")
    image = sitk.Image(*SHAPE[::-1], sitk.sitkUInt8)
    image.SetSpacing(SPACING[::-1])
    image.SetOrigin(ORIGIN)
    image.SetDirection(TURN.ravel().tolist())
    grid, index = turned(), (3, 1, 6)
    position = image.TransformContinuousIndexToPhysicalPoint([float(item) for item in reversed(index)])
    assert grid.to_patient(np.array(index)) == pytest.approx(position)
    assert grid.to_index(np.array(position)) == pytest.approx(index)
    assert grid.spacing == pytest.approx(SPACING)
    assert grid.voxel_volume == pytest.approx(np.prod(SPACING))


@pytest.mark.parametrize(("voxels", "same"), [(0.0, True), (0.005, True), (0.02, False), (1.0, False)])
def test_lattices_a_hundredth_of_a_voxel_apart_are_one(voxels, same):
    assert turned().same_as(turned((0.0, voxels * min(SPACING), 0.0))) == same


def test_a_lattice_of_other_spacing_at_the_same_corner_is_another():
    assert not Grid.plain(SHAPE, (2.5, 0.8, 0.6), calibrated=True).same_as(
        Grid.plain(SHAPE, (2.5, 0.8, 0.61), calibrated=True)
    )
    assert not turned().same_as(replace(turned(), shape=(5, 7, 8)))


def test_what_is_not_calibrated_lies_wherever_the_other_does():
    assert Grid.plain(SHAPE).same_as(turned())
    assert Grid.plain(SHAPE).letters(0) == ("", "")


def test_sides_of_the_patient_are_those_of_the_nearest_axis():
    assert [turned().letters(axis) for axis in range(3)] == [("I", "S"), ("A", "P"), ("R", "L")]
    flipped = Grid.from_matrix(SHAPE, np.diag([-1.0, -1.0, 2.0, 1.0]))
    assert [flipped.letters(axis) for axis in range(3)] == [("I", "S"), ("P", "A"), ("L", "R")]


@pytest.mark.parametrize(
    ("shape", "affine"),
    [
        ((0, 3, 3), np.eye(3, 4)),
        ((3, 3, 3), np.full((3, 4), np.nan)),
        ((3, 3, 3), np.diag([1.0, 0.0, 1.0])),
        ((3, 3, 3), np.array([[1.0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])),
    ],
)
def test_what_is_no_lattice_is_refused(shape, affine):
    with pytest.raises(GridError):
        Grid(shape, tuple(np.asarray(affine).ravel()))


HEIGHTS = (0.0, 2.5, 6.0, 7.0, 12.0)


def uneven(offsets=HEIGHTS, shear=0.0, step=2.5) -> Grid:
    """An askew lattice whose slices are at uneven distances, sheared along the columns."""
    matrix = turned().matrix.copy()
    matrix[:3, 2] *= step / 2.5
    matrix[:3, 2] += shear * matrix[:3, 1]
    return Grid.from_matrix((len(offsets), *SHAPE[1:]), matrix, slice_offsets=tuple(offsets))


@pytest.mark.parametrize("shear", [0.0, 1.3])
def test_uneven_slices_lie_at_their_own_positions(shear):
    grid = uneven(shear=shear)
    way = (TURN[:, 2] * 2.5 + shear * TURN[:, 1] * 0.8) / 2.5
    for at, height in enumerate(HEIGHTS):
        expected = np.array(ORIGIN) + height * way + TURN[:, 1] * 0.8 * 2
        assert grid.to_patient(np.array([at, 2, 0])) == pytest.approx(expected)
        assert grid.to_index(expected) == pytest.approx([at, 2, 0], abs=1e-9)
        assert grid.heights(expected) == pytest.approx(height, abs=1e-9)
        assert grid.on_slice(expected[None], at)[0] == pytest.approx([2, 0], abs=1e-9)
    anywhere = np.random.default_rng(1).uniform(-3, 9, (50, 3))
    assert grid.to_index(grid.to_patient(anywhere)) == pytest.approx(anywhere)
    assert grid.to_patient(np.array([1.5, 0, 0])) == pytest.approx(np.array(ORIGIN) + 4.25 * way)
    assert grid.spacing == pytest.approx(SPACING)


def test_even_and_uneven_slices_of_one_shape_are_two_lattices():
    moved = (0.0, 2.5, 5.0, 7.4, 10.0)
    assert not uneven(moved).same_as(turned())
    assert uneven(moved).same_as(uneven(moved))
    assert uneven((0.0, 2.5, 5.0, 7.499, 10.0)).same_as(turned())
    assert not uneven((0.0, 2.5, 5.0, 7.499, 10.0)).uneven
    assert uneven(moved).uneven


def test_a_slab_reaches_half_way_to_its_neighbours():
    assert np.ptp(uneven().bounds, axis=1) == pytest.approx([2.5, 3.0, 2.25, 3.0, 5.0])
    assert np.ptp(turned().bounds, axis=1) == pytest.approx([2.5] * 5)
    assert Grid.plain((1, 4, 4), (3.0, 1.0, 1.0)).bounds.tolist() == [[-1.5, 1.5]]


def test_missing_slices_belong_to_no_slab():
    grid = uneven((0.0, 2.5, 5.0, 12.5, 15.0))
    assert grid.gaps == ((2, 2),)
    assert np.ptp(grid.bounds, axis=1) == pytest.approx([2.5] * 5)
    assert [grid.slice_at(height) for height in (-1.0, 4.0, 6.2, 7.5, 10.0, 11.5, 16.0, 16.5)] == [
        0, 2, 2, None, None, 3, 4, None,
    ]  # fmt: skip
    assert describe_slices(grid)[0].startswith("2 slices are missing between ")
    assert grid.in_words() == "5 x 7 x 9, 2.5 x 0.8 x 0.6 mm, 2 slices missing"


def test_a_picture_is_described_by_width_and_height_in_pixels():
    assert replace(Grid((1, 811, 1024)), calibrated=False).in_words() == "1024 x 811 px"
    assert Grid((1, 811, 1024), (0.25, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 1.0, 0)).in_words() == (
        "1024 x 811 px, 0.25 x 0.5 mm"
    )


def test_a_region_of_thicker_slices_is_uneven_and_not_missing():
    grid = uneven(np.cumsum([0.0] + [2.5] * 6 + [5.0] * 5))
    assert grid.gaps == ()
    assert describe_slices(grid) == ("Slice distance varies from 2.50 to 5.00 mm.",)
    assert grid.in_words() == "12 x 7 x 9, 2.5 to 5 x 0.8 x 0.6 mm"


def test_one_much_longer_slice_distance_is_named():
    words = "may be missing between"
    assert words in describe_slices(uneven(np.cumsum([0.0] + [3] * 4 + [5] * 3 + [9] + [5] * 2), step=5))[0]
    assert words not in describe_slices(uneven(np.cumsum([0.0] + [3] * 4 + [5] * 5), step=5))[0]


@pytest.mark.parametrize(
    ("steps", "gaps", "thickness"),
    [
        ([3] * 4 + [9] + [3] * 2 + [5] * 4, ((4, 2),), [3] * 7 + [4] + [5] * 4),
        ([3] * 4 + [5] * 3 + [10] + [5] * 2, ((7, 1),), [3] * 4 + [4] + [5] * 6),
        ([3] * 4 + [8] + [5] * 4, ((4, 1),), [3] * 5 + [5] * 5),
        ([3] * 4 + [6, 1] + [5] * 4, ((4, 1),), [3] * 5 + [2, 3] + [5] * 4),
        ([3] * 4 + [1] + [5] * 4, (), [3] * 4 + [2, 3] + [5] * 4),
        ([3] * 4 + [4] + [5] * 4, (), [3] * 4 + [3.5, 4.5] + [5] * 4),
        ([2.5] * 5 + [7.5], ((5, 2),), [2.5] * 7),
    ],
)
def test_missing_slices_of_a_series_with_two_slice_distances(steps, gaps, thickness):
    grid = uneven(np.cumsum([0.0, *steps]), step=float(np.median(steps)))
    assert grid.gaps == gaps
    assert np.ptp(grid.bounds, axis=1) == pytest.approx(thickness)
    sentences = " ".join(describe_slices(grid))
    assert ("missing" in sentences) == bool(gaps)
    assert (f"varies from {min(steps):.2f} to 5.00 mm" in sentences) == (3 in steps)


def test_a_tilt_is_reported_and_does_not_lengthen_the_slice_distance():
    grid = uneven((0.0, 2.5, 5.0, 7.5, 10.0), shear=2.5 / 0.8)
    assert grid.tilt == pytest.approx(45.0)
    assert grid.spacing == pytest.approx(SPACING)
    assert grid.voxel_volume == pytest.approx(np.prod(SPACING))
    assert "tilted by 45.0 degrees" in describe_slices(grid)[0]


@pytest.mark.parametrize(
    "offsets",
    [(0.0, 1.0), (0.0, 1.0, 1.0, 2.0, 3.0), (1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 1.0, 2.0, 3.0, np.nan)],
)
def test_slice_positions_that_cannot_be(offsets):
    with pytest.raises(GridError, match="slice positions"):
        Grid(SHAPE, turned().affine, True, offsets)


def test_the_same_voxels_with_other_axes():
    grid = Grid.plain((4, 5, 6), (2.5, 0.8, 0.6), calibrated=True)
    matrix = grid.matrix.copy()
    matrix[:3, 3] += 5 * matrix[:3, 0]  # begins at the last column and goes back
    matrix[:3, 0] *= -1
    flipped = Grid.from_matrix(grid.shape, matrix)
    swapped = Grid.from_matrix((6, 5, 4), grid.matrix[:, [2, 1, 0, 3]])
    for other in (flipped, swapped):
        assert not grid.same_as(other)
        assert grid.same_voxels(other)
        assert other.same_voxels(grid)
    matrix[:3, 3] += matrix[:3, 0]
    assert not grid.same_voxels(Grid.from_matrix(grid.shape, matrix))
    assert not grid.same_voxels(Grid.plain(grid.shape, (2.5, 0.8, 0.7), calibrated=True))
    assert not grid.same_voxels(Grid.from_matrix((4, 5, 3), grid.matrix @ np.diag([2.0, 1, 1, 1])))


def test_a_part_of_the_voxels():
    grid = Grid.plain((4, 5, 6), (2.5, 0.8, 0.6), calibrated=True)
    swapped = Grid.from_matrix((6, 5, 4), grid.matrix[:, [2, 1, 0, 3]])
    matrix = grid.matrix.copy()
    matrix[:3, 3] = grid.to_patient(np.array([1.0, 2.0, 3.0]))
    part = Grid.from_matrix((3, 3, 3), matrix)
    for whole in (grid, swapped):
        assert part.is_part_of(whole)
        assert not whole.is_part_of(part)
    assert not Grid.from_matrix((3, 3, 4), matrix).is_part_of(grid)  # a column beyond it
    matrix[0, 3] += 0.3
    assert not Grid.from_matrix((3, 3, 3), matrix).is_part_of(grid)  # half a column beside it


def test_a_grid_is_extended_to_another_that_is_cropped_and_turned():
    grid = Grid.plain((4, 5, 6), (2.5, 1.0, 0.8), calibrated=True)
    matrix = grid.matrix[:, [1, 0, 2, 3]] * [1, 1, -1, 1]  # rows and columns exchanged, slices downwards
    matrix[:3, 3] = grid.to_patient(np.array([1.0, -2.0, 3.0]))
    other = Grid.from_matrix((5, 2, 3), matrix)
    extended = grid.extended_to(other)
    assert extended.shape == (7, 7, 6)
    assert grid.is_part_of(extended)
    assert other.is_part_of(extended)
    matrix[:3, 3] += 0.4
    assert grid.extended_to(Grid.from_matrix((5, 2, 3), matrix)) is None
