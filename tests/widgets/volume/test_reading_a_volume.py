"""Values, positions, windows, crosshair, projections, cine and line width of a volume."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.overlay import describe_voxel
from raterscope.widgets.volume.plane import planes_of
from raterscope.widgets.volume.slice_painter import slab_of
from tests.widgets.volume.viewing import GRID, SHAPE, screen, turn


def ct(values=None):
    return np.full(SHAPE, 90, dtype=np.int16) if values is None else values


def test_value_and_position_under_the_pointer_are_those_of_the_voxel(view, qtbot):
    values = np.random.default_rng(1).integers(-900, 900, SHAPE).astype(np.int16)
    view.set_volume(values, GRID, modality="CT")
    axial = view.view("axial")
    index = (view.crosshair[0], 21, 33)
    x, y = axial.viewport.to_screen(*axial.plane.position_of(index))
    qtbot.mouseMove(axial, QPoint(round(x), round(y)))
    left, back, head = GRID.to_patient(np.array(index, dtype=float))
    expected = f"{values[index]} HU, x {left:.1f}, y {back:.1f}, z {head:.1f} mm".replace("-", "−")
    qtbot.waitUntil(lambda: view._scene.readout == expected)
    axial.hovered.emit(None)
    assert view._scene.readout.startswith(f"{values[view.crosshair]} HU".replace("-", "−"))
    assert view._scene.readout in view.accessibleDescription()


def test_the_wheel_shows_the_value_under_the_mouse_on_the_new_slice(view):
    values = np.random.default_rng(1).integers(-900, 900, SHAPE).astype(np.int16)
    view.set_volume(values, GRID, modality="CT")
    axial = view.view("axial")
    place = screen(axial, (0, 21, 33))
    turn(axial, 1, at=(place.x(), place.y()))
    assert view.crosshair == (11, 30, 40)
    assert view._scene.readout.startswith(f"{values[11, 21, 33]} HU".replace("-", "−"))


def test_the_origin_of_the_patient_is_no_negative_zero():
    grid = Grid((1, 1, 1), (1.0, 0, 0, -0.02, 0, 1.0, 0, -0.0, 0, 0, 1.0, 0.04))
    assert describe_voxel(None, grid, (0, 0, 0), "CT") == "x 0.0, y 0.0, z 0.0 mm"


def test_a_window_of_ct_stays_for_the_next_case_as_its_numbers(view):
    view.windows.set(100, 250)
    view.set_volume(ct(), GRID, modality="CT", window=(90, 200))
    assert view.windows.window == (100, 250)
    view.windows.show_preset("lung")
    view.set_volume(ct(), GRID, modality="CT")
    assert view.windows.window == (-600, 1500)


def test_a_window_of_mr_stays_relative_to_the_values(view):
    ramp = np.broadcast_to(np.arange(80, dtype=np.float32), SHAPE)
    view.set_volume(ramp, GRID, modality="MR")
    centre, width = view.windows.window
    view.windows.set(centre + width / 4, width / 2)
    view.set_volume(ramp * 10, GRID, modality="MR")
    assert view.windows.window == pytest.approx((10 * (centre + width / 4), 10 * width / 2), rel=1e-5)


def test_a_window_is_typed(view, qtbot):
    view.type_window()
    entry = view.windows.entry
    entry.width_box.setValue(300)
    entry.level_box.setValue(-20)
    assert view.windows.window == (-20, 300)
    qtbot.keyClick(entry, Qt.Key.Key_Return)
    assert not entry.isVisible()


def test_the_projection_is_the_maximum_over_the_slab(view, qtbot):
    values = np.random.default_rng(2).integers(0, 200, SHAPE).astype(np.int16)
    view.set_volume(values, GRID, modality="MR")
    view.next_slab()
    axial = view.view("axial")
    assert axial.remark() == "MIP 10 mm"
    plane, index = axial.plane, view.crosshair[0]
    positions = GRID.positions
    inside = np.abs(positions - positions[index]) <= 5 + 1e-6
    expected = plane.cut(values[inside].max(axis=0)[None], 0)
    found = []

    def ready():
        cut = view._projector.get(plane, values, index, 10.0)
        found.append(cut)
        return cut is not None

    qtbot.waitUntil(ready)
    np.testing.assert_array_equal(found[-1], expected)
    first, last = slab_of(plane, index, float("inf"))
    assert (first, last) == (0, plane.slices)


def test_oblique_slices_are_named_by_their_angle(view):
    angle = np.radians(12)
    turned = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    matrix = np.column_stack([turned, np.zeros(3)])
    grid = Grid.from_matrix(SHAPE, matrix)
    assert planes_of(grid)["axial"].oblique == pytest.approx(12)
    assert planes_of(grid)["sagittal"].oblique == pytest.approx(0, abs=1e-6)
    view.set_volume(ct(), grid)
    assert view.view("axial").remark() == "oblique 12°"
    assert view.view("sagittal").remark() == ""


def test_crosshair_line_width_layout_and_cine(view, qtbot):
    view.toggle_cross_hair()
    assert not view._scene.cross_hair
    for _ in range(20):
        view.step_line_width(1)
    assert view._scene.line_width == 3.0
    layouts = []
    for _ in range(4):
        view.next_layout()
        layouts.append(view.layout_name)
    assert layouts == ["axial", "coronal", "sagittal", "three"]
    before = view.crosshair
    view.set_cine(True)
    qtbot.waitUntil(lambda: view.crosshair != before)
    view.clear()
    assert not view.cine


@pytest.mark.parametrize("upward", [True, False])
def test_a_slab_of_uneven_slices_has_those_within_its_thickness(upward):
    offsets = (0.0, 2.0, 4.0, 11.0, 13.0, 20.0)
    matrix = np.diag([1.0, 1.0, 2.0, 1.0]) if upward else np.diag([1.0, -1.0, -2.0, 1.0])
    grid = Grid.from_matrix((6, 8, 9), matrix, slice_offsets=offsets)
    plane = planes_of(grid)["axial"]
    for index, position in enumerate(offsets):
        inside = [number for number, other in enumerate(offsets) if abs(other - position) <= 5]
        assert slab_of(plane, index, 10.0) == (inside[0], inside[-1] + 1)
