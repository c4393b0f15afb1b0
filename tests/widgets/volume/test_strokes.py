import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainterPath, QPolygonF

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.plane import planes_of
from raterscope.widgets.volume.slice_painter import BrushStroke, ContourStroke, fill_polygon

SHAPE = (12, 30, 40)
GRIDS = [
    Grid.plain(SHAPE, (2.5, 1.0, 0.5), calibrated=True),
    Grid.from_matrix(SHAPE, np.diag([-0.5, -1.0, -2.5, 1.0])),
]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", ["axial", "coronal", "sagittal"])
def test_a_stroke_covers_the_voxels_within_the_radius_in_millimetres(grid, name):
    plane, centre, radius = planes_of(grid)[name], (6, 15, 20), 4.2
    stroke = BrushStroke(plane, centre, radius, puts_in=True)
    stroke.to(*plane.position_of(centre))
    done = stroke.finished()
    touched = np.full(SHAPE, -1)
    touched[tuple(slice(a, a + n) for a, n in zip(done.origin, done.values.shape, strict=True))] = done.values
    away = np.indices(SHAPE) - np.array(centre)[:, None, None, None]
    near = np.sqrt(sum((a * s) ** 2 for a, s in zip(away, grid.spacing, strict=True))) <= radius
    near &= away[plane.normal] == 0
    assert np.array_equal(touched == 1, near)
    assert set(np.unique(touched)) == {-1, 1}
    assert (done.plane, done.slice) == (name, centre[plane.normal])


def test_a_fast_stroke_has_no_gaps_and_what_leaves_the_slice_is_cut_off():
    plane = planes_of(GRIDS[0])["axial"]
    stroke = BrushStroke(plane, (3, 0, 0), 1.1, puts_in=False)
    stroke.to(2.0, 15.2)
    stroke.to(60.0, 15.2)
    done = stroke.finished()
    assert done.values.shape == (1, 2, 40 - 2)
    assert np.all(done.values == 0)


def test_the_finest_brush_still_covers_the_voxel_under_it():
    plane = planes_of(GRIDS[0])["axial"]
    stroke = BrushStroke(plane, (3, 0, 0), 0.01, puts_in=True)
    stroke.to(*plane.position_of((3, 7, 9)))
    done = stroke.finished()
    assert (done.origin, done.values.tolist()) == ((3, 7, 9), [[[1]]])


def test_a_stroke_beside_the_volume_is_none():
    stroke = BrushStroke(planes_of(GRIDS[0])["axial"], (3, 0, 0), 1.0, puts_in=True)
    stroke.to(-40.0, -40.0)
    stroke.to(-30.0, -40.0)
    assert stroke.finished() is None


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", ["axial", "coronal", "sagittal"])
def test_a_contour_covers_the_voxels_whose_centres_it_encloses(grid, name):
    plane, centre = planes_of(grid)[name], (6, 15, 20)
    x, y = plane.position_of(centre)
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    stroke = ContourStroke(plane, centre, 1.0, puts_in=True)
    for angle in angles:
        stroke.to(x + 5.3 * np.cos(angle), y + 5.3 * np.sin(angle))
    done = stroke.finished()
    touched = np.full(SHAPE, -1)
    touched[tuple(slice(a, a + n) for a, n in zip(done.origin, done.values.shape, strict=True))] = done.values
    away = np.indices(SHAPE) - np.array(centre)[:, None, None, None]
    distance = np.sqrt(sum((a * s) ** 2 for a, s in zip(away, grid.spacing, strict=True)))
    on_slice = away[plane.normal] == 0
    assert np.all(touched[on_slice & (distance < 5.2)] == 1)
    assert np.all(touched[~on_slice | (distance > 5.3)] == -1)


def test_a_contour_that_crosses_itself_is_filled_as_qt_fills_it():
    corners = np.random.default_rng(4).uniform(0, 30, (12, 2))
    path = QPainterPath()  # fills by the even-odd rule
    path.addPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))
    path.closeSubpath()
    expected = [[path.contains(QPointF(x, y)) for x in range(30)] for y in range(25)]
    assert np.array_equal(fill_polygon(corners, np.arange(30.0), np.arange(25.0)), expected)
