"""Where voxels lie: against SimpleITK, and what makes two lattices one."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from raterscope.algorithms.masks.grid import Grid, GridError

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
    place = image.TransformContinuousIndexToPhysicalPoint([float(one) for one in reversed(index)])
    assert grid.to_patient(np.array(index)) == pytest.approx(place)
    assert grid.to_index(np.array(place)) == pytest.approx(index)
    assert grid.spacing == pytest.approx(SPACING)
    assert grid.voxel_volume == pytest.approx(np.prod(SPACING))
    assert grid.part(index, (1, 2, 3)).to_patient(np.zeros(3)) == pytest.approx(place)


@pytest.mark.parametrize(("voxels", "same"), [(0.0, True), (0.005, True), (0.02, False), (1.0, False)])
def test_lattices_a_hundredth_of_a_voxel_apart_are_one(voxels, same):
    assert turned().same_as(turned((0.0, voxels * min(SPACING), 0.0))) == same


def test_a_lattice_of_other_spacing_at_the_same_corner_is_another():
    assert not Grid.plain(SHAPE, (2.5, 0.8, 0.6), calibrated=True).same_as(
        Grid.plain(SHAPE, (2.5, 0.8, 0.61), calibrated=True)
    )
    assert not turned().same_as(turned().part((0, 0, 0), (5, 7, 8)))


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
