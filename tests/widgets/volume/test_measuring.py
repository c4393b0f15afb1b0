"""Lengths, angles and the values of an ellipse, measured on slices."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets.volume.overlay import Measurement, angle, describe, values_in_ellipse
from raterscope.widgets.volume.plane import planes_of
from tests.widgets.volume.viewing import GRID, LEFT, SHAPE

PLANES = planes_of(GRID)


def words(measurement, values=None):
    plane = PLANES[measurement.plane]
    return describe(measurement, plane, values, calibrated=True, value_unit="HU")


def test_lengths_are_in_millimetres_and_the_angle_is_that_at_the_corner():
    ruler = Measurement("axial", 3, "ruler", ((0.0, 0.0), (3.0, 4.0)))
    assert words(ruler) == "5.0 mm"
    assert words(ruler.with_point((3.0, 10.0))) == "5.0 and 6.0 mm, 143.1°"
    assert angle((1, 0), (0, 0), (0, 2)) == pytest.approx(90)
    assert angle((1, 1), (0, 0), (-2, -2)) == pytest.approx(180)


@pytest.mark.parametrize("name", ["axial", "coronal", "sagittal"])
def test_an_ellipse_holds_the_voxels_whose_centres_are_inside(name):
    values = np.random.default_rng(1).integers(-500, 500, SHAPE).astype(np.int16)
    plane = PLANES[name]
    ellipse = ((8.0, 6.0), (30.0, 24.0))
    expected = []
    for index in np.ndindex(SHAPE):
        if index[plane.normal] != 7:
            continue
        x, y = plane.position_of(index)
        if ((x - 19) / 11) ** 2 + ((y - 15) / 9) ** 2 <= 1:
            expected.append(int(values[index]))
    inside = values_in_ellipse(ellipse, plane, plane.cut(values, 7))
    assert sorted(inside.tolist()) == sorted(expected)
    written = words(Measurement(name, 7, "roi", ellipse), values)
    mean = f"{np.mean(expected):.1f}".replace("-", "−")
    assert written.startswith(f"{np.pi * 11 * 9:.1f} mm², mean {mean} HU")
    assert f"SD {np.std(expected, ddof=1):.1f}" in written
    assert written.endswith(f"{len(expected)} voxels")


def test_an_ellipse_without_extent_and_a_volume_without_pixels_are_measured_too():
    assert words(Measurement("axial", 0, "roi", ((5.0, 5.0), (5.0, 9.0))), np.zeros(SHAPE)) == "0.0 mm²"
    assert words(Measurement("axial", 0, "roi", ((5.0, 5.0), (9.0, 9.0)))) == "12.6 mm²"
    assert words(Measurement("axial", 0, "roi", ((5.0, 5.0),))) == ""


def test_a_length_is_drawn_by_mouse_and_goes_with_the_tool(view, qtbot):
    axial, results = view.view("axial"), []
    view.measured.connect(results.append)
    view.set_tool("ruler")
    qtbot.mousePress(axial, LEFT, pos=QPoint(100, 100))
    qtbot.mouseMove(axial, QPoint(160, 180))
    qtbot.mouseRelease(axial, LEFT, pos=QPoint(160, 180))
    assert results[-1] == f"{100 / axial.viewport.scale:.1f} mm"
    qtbot.mouseClick(axial, LEFT, pos=QPoint(100, 260))
    assert results[-1].endswith("°")
    qtbot.keyClick(axial, Qt.Key.Key_Up)
    assert view.crosshair[0] != view._scene.measurement.slice
    view.set_tool("look")
    assert results[-1] == ""
