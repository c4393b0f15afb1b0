"""Going about a volume: slices, zoom, layout, window."""

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets import theme
from raterscope.widgets.hints import Chip
from raterscope.widgets.volume.volume_controls import DisputeStrip
from raterscope.widgets.volume.volume_view import VolumeView
from tests.widgets.volume.viewing import (
    GRID,
    LEFT,
    MIDDLE,
    RIGHT,
    SHAPE,
    colour,
    colours,
    drag,
    outlined,
    screen,
    turn,
)


def test_a_click_in_one_view_moves_the_others_to_that_voxel(view, qtbot):
    moved = []
    view.crosshair_moved.connect(moved.append)
    axial, coronal, sagittal = (view.view(name) for name in ("axial", "coronal", "sagittal"))
    qtbot.mouseClick(axial, LEFT, pos=screen(axial, (10, 12, 70)))
    assert view.crosshair == (10, 12, 70)
    qtbot.mouseClick(sagittal, LEFT, pos=screen(sagittal, (3, 50, 70)))
    assert view.crosshair == (3, 50, 70)
    assert moved == [(10, 12, 70), (3, 50, 70)]
    assert (axial.title(), coronal.title()) == ("AXIAL 4 / 20", "CORONAL 51 / 60")


def test_dragging_takes_the_cross_hair_along_and_holds_it_to_the_volume(view, qtbot):
    axial = view.view("axial")
    drag(qtbot, axial, screen(axial, (10, 20, 20)), QPoint(-4000, 0))
    assert view.crosshair == (10, 20, 0)


def test_the_wheel_and_the_arrows_go_through_the_slices_towards_the_head(view, qtbot):
    axial = view.view("axial")
    turn(axial, 1)
    assert view.crosshair == (11, 30, 40)
    turn(axial, -3)
    qtbot.keyClick(axial, Qt.Key.Key_Up)
    assert view.crosshair == (9, 30, 40)
    turn(view.view("coronal"), -2)
    assert view.crosshair == (9, 32, 40)
    turn(axial, 99)
    assert view.crosshair == (19, 32, 40)


def test_half_a_notch_of_a_fine_wheel_is_kept_for_the_next(view):
    axial = view.view("axial")
    turn(axial, 0.5)
    assert view.crosshair[0] == 10
    turn(axial, 0.5)
    assert view.crosshair[0] == 11


def test_the_cross_hair_moves_by_a_voxel_with_keys(view, qtbot):
    coronal = view.view("coronal")
    qtbot.keyClick(coronal, Qt.Key.Key_Right)
    qtbot.keyClick(coronal, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert view.crosshair == (11, 30, 41)


def test_zoom_pan_and_fit(view, qtbot):
    axial = view.view("axial")
    initial = axial.viewport
    turn(axial, 2, Qt.KeyboardModifier.ControlModifier)
    assert axial.viewport.scale > 1.3 * initial.scale
    assert view.crosshair == (10, 30, 40)
    before = axial.viewport
    drag(qtbot, axial, QPoint(200, 200), QPoint(12, -7), MIDDLE)
    assert (axial.viewport.across, axial.viewport.down) == (before.across + 12, before.down - 7)
    qtbot.keyPress(axial, Qt.Key.Key_Space)
    drag(qtbot, axial, QPoint(200, 200), QPoint(-12, 7))
    qtbot.keyRelease(axial, Qt.Key.Key_Space)
    assert axial.viewport == before
    assert view.crosshair == (10, 30, 40)
    qtbot.keyClick(axial, Qt.Key.Key_0)
    assert axial.viewport == initial


def test_a_voxel_is_as_high_and_wide_as_in_the_patient(view):
    for part in (view.view(name) for name in ("axial", "coronal", "sagittal")):
        plane = part.plane
        far = [0, 0, 0]
        far[plane.across], far[plane.down] = 10, 10
        a, b = (part.viewport.to_screen(*plane.position_of(at)) for at in ((0, 0, 0), tuple(far)))
        ratio = abs(b[0] - a[0]) / abs(b[1] - a[1])
        assert ratio == pytest.approx(plane.spacing[plane.across] / plane.spacing[plane.down])


def test_what_is_looked_at_is_in_the_middle_and_large_enough(view):
    view.look_at((4, 10, 12), (2, 6, 6))
    assert view.crosshair == (5, 13, 15)
    for name in ("axial", "coronal", "sagittal"):
        part = view.view(name)
        left, top, right, bottom = part.plane.box_of((4, 10, 12), (2, 6, 6))
        visible = part.viewport.visible
        assert visible[0] <= left < right <= visible[2]
        assert visible[1] <= top < bottom <= visible[3]
        assert (right - left) * part.viewport.scale > 30


class Painted(QObject):
    """Names of the views in the order in which they are painted."""

    def __init__(self, view):
        super().__init__()
        self.order = []
        for name in view.planes:
            view.view(name).installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            self.order.append(watched.plane.name)
        return False


def test_the_large_view_answers_before_the_others_which_follow_without_an_event(view, qtbot):
    painted = Painted(view)
    view.paint_large_first()
    view.look_at((4, 10, 12), (2, 6, 6))
    QApplication.sendPostedEvents()
    assert painted.order == ["axial"]
    qtbot.waitUntil(lambda: len(painted.order) == 3)
    assert set(painted.order) == set(view.planes)


# Arrangement ---------------------------------------------------------------------------------------


def test_a_double_click_makes_a_view_large_and_three_again(view, qtbot):
    messages = []
    view.layout_changed.connect(messages.append)
    coronal = view.view("coronal")
    qtbot.mouseDClick(coronal, LEFT, pos=QPoint(60, 60))
    assert view.view("axial").isHidden()
    assert coronal.width() == view.width()
    qtbot.keyClick(coronal, Qt.Key.Key_Return)
    assert not view.view("axial").isHidden()
    assert messages == ["coronal", "three"]


def test_an_image_is_one_view_without_strip_or_cross_hair(view):
    pixels = np.random.default_rng(0).integers(0, 255, (1, 10, 14, 3), dtype=np.uint8)
    pixels = pixels.repeat(5, axis=1).repeat(5, axis=2)
    view.set_volume(pixels, Grid.plain((1, 50, 70)))
    view.set_dispute(np.array([3.0]))
    assert view.view("axial").width() == view.width()
    assert view.view("coronal").isHidden()
    assert view.findChild(DisputeStrip).isHidden()
    assert view.view("axial").title() == "IMAGE"
    assert np.abs(np.array(colour(view.view("axial"), (0, 27, 37))) - pixels[0, 27, 37]).max() <= 2


def test_the_slices_of_a_sagittal_series_lie_in_the_large_view(view):
    matrix = np.zeros((4, 4))
    matrix[1, 0], matrix[2, 1], matrix[0, 2], matrix[3, 3] = 1, -1, 1, 1
    view.set_volume(np.zeros(SHAPE, dtype=np.int16), Grid.from_matrix(SHAPE, matrix))
    large = max((view.view(name) for name in ("axial", "coronal", "sagittal")), key=lambda v: v.width())
    assert large.title() == "SAGITTAL 11 / 20"


# Grey values ---------------------------------------------------------------------------------------


def test_the_file_s_window_is_used_and_a_drag_changes_it(view, qtbot):
    axial, changed = view.view("axial"), []
    assert view.windows.window == (90, 200)
    assert colour(axial, (10, 20, 20))[0] == pytest.approx(128, abs=1)
    view.windows.changed.connect(lambda centre, width: changed.append((centre, width)))
    drag(qtbot, axial, QPoint(200, 200), QPoint(60, 0), RIGHT)
    assert changed[-1][0] == pytest.approx(90)
    assert changed[-1][1] > 220
    drag(qtbot, axial, QPoint(200, 200), QPoint(0, -60), RIGHT)
    assert changed[-1][0] > 110
    assert colour(axial, (10, 20, 20))[0] < 120
    view.windows.show_preset("file")
    assert view.windows.window == (90, 200)


def test_presets_are_those_of_ct_and_else_automatic(view):
    view.windows.show_preset("lung")
    assert view.windows.window == (-600, 1500)
    assert colour(view.view("axial"), (10, 20, 20))[0] == pytest.approx(244, abs=1)
    ramp = np.broadcast_to(np.arange(80, dtype=np.uint16), SHAPE)
    view.set_volume(ramp, GRID, modality="MR")
    centre, width = view.windows.window
    assert (centre, width) == pytest.approx((39.5, 79), abs=2)
    view.windows.show_preset("lung")
    assert view.windows.window == (centre, width)


def test_without_pixels_the_masks_are_shown_alone_and_pixels_may_come_later(view, qtbot):
    view.set_volume(None, GRID)
    outlined(view, qtbot)
    view.go_to((9, 31, 41))
    ground = colour(view.view("axial"), (9, 5, 5))
    view.set_pixels(np.full(SHAPE, 90, dtype=np.int16), window=(90, 200))
    assert view.crosshair == (9, 31, 41)
    assert colour(view.view("axial"), (9, 5, 5)) != ground
    qtbot.waitUntil(lambda: "#e69f00" in colours(view.view("axial")))


def test_voxels_that_do_not_fit_the_grid_are_refused(view):
    with pytest.raises(ValueError, match="grid"):
        view.set_volume(np.zeros((3, 4, 5)), GRID)


def test_without_a_volume_nothing_is_made_up(qtbot, view):
    before = VolumeView()
    qtbot.addWidget(before)
    before.resize(400, 300)
    view.clear()
    for part in (before.view("axial"), view.view("axial"), view.view("coronal")):
        assert colours(part) <= {theme.DARK.canvas, theme.DARK.accent}  # and the frame of what has the keys
    view.set_volume(None, GRID)
    assert len(colours(view.view("axial"))) > 1


@pytest.mark.parametrize(("size", "width", "height"), [(1.0, 900, 560), (1.0, 420, 360), (2.0, 560, 480)])
def test_chips_cover_no_view_whatever_the_size_of_text_and_window(view, qtbot, size, width, height):
    theme.set_text_size(size)
    view.resize(width, height)
    view.set_tool("brush")
    shown = [view.view(name).geometry() for name in view.planes if view.view(name).isVisible()]
    assert shown
    qtbot.wait(1)
    for chip in (*view.findChildren(Chip), view.windows.chip):
        place = QRect(chip.mapTo(view, QPoint()), chip.size())
        assert view.rect().contains(place), chip.text()
        assert not any(place.intersects(other) for other in shown), chip.text()


def test_a_narrow_window_shows_one_plane_alone_and_a_wide_one_all_three(view):
    def shown():
        return [name for name in view.planes if view.view(name).isVisible()]

    assert len(shown()) == 3
    view.resize(280, 560)
    assert shown() == ["axial"]
    view.set_layout("coronal")
    assert shown() == ["coronal"]
    view.set_layout("three")
    view.resize(900, 560)
    assert len(shown()) == 3
