import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QThreadPool
from PySide6.QtGui import QHelpEvent, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QToolTip

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.dispute_strip import DisputeStrip
from raterscope.widgets.volume.layers import HeatMap, Outline, RegionBox
from raterscope.widgets.volume.volume_view import VolumeView

SHAPE = (20, 60, 80)
GRID = Grid.plain(SHAPE, (2.0, 1.0, 0.75), calibrated=True)
LEFT, MIDDLE, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton


def ball(centre=(10, 30, 40), radius=12.0):
    away = np.indices(SHAPE) - np.array(centre)[:, None, None, None]
    return np.sqrt(sum((a * s) ** 2 for a, s in zip(away, GRID.spacing, strict=True))) < radius


@pytest.fixture
def view(qtbot):
    widget = VolumeView()
    qtbot.addWidget(widget)
    widget.resize(900, 560)
    widget.show()
    widget.set_volume(np.full(SHAPE, 90, dtype=np.int16), GRID, modality="CT", window=(90, 200))
    return widget


def screen(part, index) -> QPoint:
    return QPointF(*part.viewport.to_screen(*part.plane.place_of(index))).toPoint()


def colour(part, index, beside=(0, 0)) -> tuple[int, int, int]:
    picture, place = part.grab().toImage(), screen(part, index) + QPoint(*beside)
    return picture.pixelColor(place).getRgb()[:3]


def colours(part) -> set[str]:
    picture = part.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    words = np.frombuffer(picture.constBits(), dtype=np.uint32) & 0xFFFFFF
    return {f"#{word:06x}" for word in np.unique(words)}


def turn(part, notches, keys=Qt.KeyboardModifier.NoModifier, at=(100, 100)):
    place = QPointF(*at)
    event = QWheelEvent(
        place, place, QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton, keys,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(part, event)


def drag(qtbot, part, start, way, button=LEFT):
    qtbot.mousePress(part, button, pos=start)
    qtbot.mouseMove(part, start + way / 2)
    qtbot.mouseMove(part, start + way)
    qtbot.mouseRelease(part, button, pos=start + way)


def outlined(view, qtbot, **more):
    view.set_outlines([Outline("r1", "rater 1", "#e69f00", ball(), width=1.0, **more)])
    axial = view.view("axial")
    qtbot.waitUntil(lambda: "#e69f00" in colours(axial), timeout=3000)


# Going about ---------------------------------------------------------------------------------------


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
    whole = axial.viewport
    turn(axial, 2, Qt.KeyboardModifier.ControlModifier)
    assert axial.viewport.scale > 1.3 * whole.scale
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
    assert axial.viewport == whole


def test_a_voxel_is_as_high_and_wide_as_in_the_patient(view):
    for part in (view.view(name) for name in ("axial", "coronal", "sagittal")):
        plane = part.plane
        far = [0, 0, 0]
        far[plane.across], far[plane.down] = 10, 10
        a, b = (part.viewport.to_screen(*plane.place_of(at)) for at in ((0, 0, 0), tuple(far)))
        ratio = abs(b[0] - a[0]) / abs(b[1] - a[1])
        assert ratio == pytest.approx(plane.spacing[plane.across] / plane.spacing[plane.down])


def test_what_is_looked_at_is_in_the_middle_and_large_enough(view):
    view.look_at((4, 10, 12), (2, 6, 6))
    assert view.crosshair == (5, 13, 15)
    for name in ("axial", "coronal", "sagittal"):
        part = view.view(name)
        left, top, right, bottom = part.plane.box_of((4, 10, 12), (2, 6, 6))
        seen = part.viewport.visible
        assert seen[0] <= left < right <= seen[2]
        assert seen[1] <= top < bottom <= seen[3]
        assert (right - left) * part.viewport.scale > 30


# Arrangement ---------------------------------------------------------------------------------------


def test_a_double_click_makes_a_view_large_and_three_again(view, qtbot):
    told = []
    view.layout_changed.connect(told.append)
    coronal = view.view("coronal")
    qtbot.mouseDClick(coronal, LEFT, pos=QPoint(60, 60))
    assert view.view("axial").isHidden()
    assert coronal.width() == view.width()
    qtbot.keyClick(coronal, Qt.Key.Key_Return)
    assert not view.view("axial").isHidden()
    assert told == ["coronal", "three"]


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
    assert view.window_levels == (90, 200)
    assert colour(axial, (10, 20, 20))[0] == pytest.approx(128, abs=1)
    view.window_changed.connect(lambda centre, width: changed.append((centre, width)))
    drag(qtbot, axial, QPoint(200, 200), QPoint(60, 0), RIGHT)
    assert changed[-1][0] == pytest.approx(90)
    assert changed[-1][1] > 220
    drag(qtbot, axial, QPoint(200, 200), QPoint(0, -60), RIGHT)
    assert changed[-1][0] > 110
    assert colour(axial, (10, 20, 20))[0] < 120
    view.show_preset("file")
    assert view.window_levels == (90, 200)


def test_presets_are_those_of_ct_and_else_automatic(view):
    view.show_preset("lung")
    assert view.window_levels == (-600, 1500)
    assert colour(view.view("axial"), (10, 20, 20))[0] == pytest.approx(244, abs=1)
    ramp = np.broadcast_to(np.arange(80, dtype=np.uint16), SHAPE)
    view.set_volume(ramp, GRID, modality="MR")
    centre, width = view.window_levels
    assert (centre, width) == pytest.approx((39.5, 79), abs=2)
    view.show_preset("lung")
    assert view.window_levels == (centre, width)


def test_without_pixels_the_masks_are_shown_alone_and_pixels_may_come_later(view, qtbot):
    view.set_volume(None, GRID)
    outlined(view, qtbot)
    view.go_to((9, 31, 41))
    ground = colour(view.view("axial"), (9, 5, 5))
    view.set_pixels(np.full(SHAPE, 90, dtype=np.int16), window=(90, 200))
    assert view.crosshair == (9, 31, 41)
    assert colour(view.view("axial"), (9, 5, 5)) != ground
    qtbot.waitUntil(lambda: "#e69f00" in colours(view.view("axial")), timeout=3000)


def test_voxels_that_do_not_fit_the_grid_are_refused(view):
    with pytest.raises(ValueError, match="grid"):
        view.set_volume(np.zeros((3, 4, 5)), GRID)


# What lies over ------------------------------------------------------------------------------------


def test_an_outline_runs_where_the_mask_ends_and_is_chosen_by_a_click(view, qtbot):
    chosen = []
    view.outline_clicked.connect(chosen.append)
    outlined(view, qtbot)
    axial = view.view("axial")
    # The ball's edge: 12 mm to the right of its middle, 16 voxels of 0.75 mm; the 16th is no longer inside.
    place = QPointF(*axial.viewport.to_screen(*axial.plane.place_of((10, 30, 56)))).toPoint()
    half_voxel = round(0.5 * 0.75 * axial.viewport.scale)
    qtbot.mouseClick(axial, LEFT, pos=place - QPoint(half_voxel, 0))
    qtbot.mouseClick(axial, LEFT, pos=screen(axial, (10, 30, 40)))
    assert chosen == ["r1"]


@pytest.mark.qt_log_ignore("This plugin does not support raise", extend=True)
def test_a_mouse_that_rests_on_an_outline_learns_whose_it_is_as_it_is_written(view, qtbot):
    view.set_outlines([Outline("r1", "<b>rater</b> 1", "#e69f00", ball(), width=1.0)])
    axial = view.view("axial")
    qtbot.waitUntil(lambda: "#e69f00" in colours(axial), timeout=3000)
    edge = screen(axial, (10, 30, 56)) - QPoint(round(0.375 * axial.viewport.scale), 0)
    QApplication.sendEvent(axial, QHelpEvent(QEvent.Type.ToolTip, edge, axial.mapToGlobal(edge)))
    assert "&lt;b&gt;rater&lt;/b&gt; 1" in QToolTip.text()
    QToolTip.hideText()


def test_outlines_are_hidden_shown_and_seen_alone(view, qtbot):
    other = ball((10, 30, 40), 20.0)
    outlined(view, qtbot)
    axial = view.view("axial")
    hues = {"r1": "#e69f00", "r2": "#56b4e9", "c": "#ff00ff"}
    view.set_outlines(
        [
            Outline("r1", "rater 1", hues["r1"], ball(), width=1.0),
            Outline("r2", "rater 2", hues["r2"], other, width=1.0),
            Outline("c", "consensus", hues["c"], ball(radius=16.0), width=1.0),
        ]
    )

    def seen(*keys):
        qtbot.waitUntil(lambda: {k for k, hue in hues.items() if hue in colours(axial)} == set(keys))

    seen("r1", "r2", "c")
    view.set_shown({"r1", "c"})
    seen("r1", "c")
    view.set_solo("r2")
    seen("r2")
    view.set_solo("r2", beside=["c"])
    seen("r2", "c")
    view.set_solo(None)
    seen("r1", "c")


def test_an_outline_is_seen_on_every_plane_and_only_where_its_mask_is(view, qtbot):
    outlined(view, qtbot)
    others = [view.view("coronal"), view.view("sagittal")]
    qtbot.waitUntil(lambda: all("#e69f00" in colours(part) for part in others), timeout=3000)
    view.go_to((1, 30, 40))
    qtbot.wait(100)
    assert "#e69f00" not in colours(view.view("axial"))


def test_a_mask_that_changes_is_outlined_anew(view, qtbot):
    outlined(view, qtbot)
    axial = view.view("axial")
    view.set_outlines([Outline("r1", "rater 1", "#e69f00", np.zeros(SHAPE, dtype=bool))])
    qtbot.waitUntil(lambda: "#e69f00" not in colours(axial), timeout=3000)


def test_areas_cover_what_lines_enclose(view, qtbot):
    outlined(view, qtbot)
    axial, inside = view.view("axial"), (10, 34, 36)
    before = colour(axial, inside)
    view.set_style("fill")
    red, _, blue = colour(axial, inside)
    assert red > before[0] > blue
    view.set_style("contour")
    assert colour(axial, inside) == before


def test_a_heat_map_covers_its_part_in_its_colours(view):
    values = np.zeros((3, 10, 10), dtype=np.float32)
    values[:, :, 5:] = 1.0
    view.set_opacity(1.0)
    view.set_heat_map(HeatMap(values, (9, 10, 10), 0.0, 1.0, "doubt", "doubt"))
    axial = view.view("axial")
    before = colour(axial, (10, 40, 60))
    assert np.abs(np.array(colour(axial, (10, 15, 18))) - (252, 255, 164)).max() <= 3
    assert colour(axial, (10, 15, 11)) == before
    view.go_to((13, 30, 40))
    assert colour(axial, (13, 15, 18)) == before


def test_shares_kept_as_bytes_have_the_colours_of_what_they_mean(view):
    view.set_opacity(1.0)
    values = np.full((20, 60, 80), 255, dtype=np.uint8)
    view.set_heat_map(HeatMap(values, (0, 0, 0), 0.0, 1.0, "weight", "weight", 1 / 255))
    assert np.abs(np.array(colour(view.view("axial"), (10, 20, 20))) - (255, 234, 70)).max() <= 3


def test_no_difference_is_not_covered(view):
    axial = view.view("axial")
    before = colour(axial, (10, 20, 20))
    values = np.zeros(SHAPE, dtype=np.float32)
    values[:, :, 50:] = -1.0
    view.set_heat_map(HeatMap(values, (0, 0, 0), -1.0, 1.0, "difference", "rater 2 minus rater 1"))
    assert np.abs(np.array(colour(axial, (10, 20, 20))) - before).max() <= 2
    assert colour(axial, (10, 20, 60)) != before


def test_the_band_lies_between_its_levels(view, qtbot):
    away = np.abs(np.indices(SHAPE)[2] - 40.0)
    probability = np.clip(1.0 - away / 40, 0, 1).astype(np.float32)
    axial = view.view("axial")
    before = colour(axial, (10, 20, 20))
    view.set_band(probability, 0.25, 0.75)
    qtbot.waitUntil(lambda: colour(axial, (10, 20, 20)) != before, timeout=3000)
    assert colour(axial, (10, 20, 36)) == before
    assert colour(axial, (10, 20, 5)) == before
    view.set_band(None)
    assert colour(axial, (10, 20, 20)) == before


def test_a_disputed_region_is_chosen_by_its_edge_or_its_words(view, qtbot):
    chosen = []
    view.box_clicked.connect(chosen.append)
    boxes = [RegionBox(1, (8, 10, 10), (4, 12, 20), "region 1 of 2", "rater 4 alone, 0.8 ml")]
    view.set_boxes([*boxes, RegionBox(2, (2, 30, 30), (2, 9, 9), "region 2 of 2")], 1)
    axial = view.view("axial")
    left, top, right, bottom = axial.plane.box_of(boxes[0].origin, boxes[0].shape)
    upper_left = QPointF(*axial.viewport.to_screen(left, top)).toPoint()
    upper_right = QPointF(*axial.viewport.to_screen(right, top)).toPoint()
    middle = QPointF(*axial.viewport.to_screen((left + right) / 2, (top + bottom) / 2)).toPoint()
    qtbot.mouseClick(axial, LEFT, pos=upper_left + QPoint(0, 20))
    qtbot.mouseClick(axial, LEFT, pos=upper_right + QPoint(30, 10))
    qtbot.mouseClick(axial, LEFT, pos=middle)
    assert chosen == [1, 1]
    assert "#ffd166" in colours(axial)
    view.go_to((15, 5, 5))
    assert "#ffd166" not in colours(axial)


# Mending -------------------------------------------------------------------------------------------


def test_a_drag_with_the_brush_gives_a_stroke_at_its_end_and_leaves_the_cross_hair(view, qtbot):
    strokes, axial = [], view.view("axial")
    view.painted.connect(strokes.append)
    view.set_tool("brush")
    view.set_brush_radius(3.0)
    start = screen(axial, (10, 20, 20))
    qtbot.mousePress(axial, LEFT, pos=start)
    qtbot.mouseMove(axial, screen(axial, (10, 20, 40)))
    assert strokes == []
    assert colour(axial, (10, 20, 30)) != colour(axial, (10, 50, 30))
    turn(axial, 3)
    qtbot.mouseRelease(axial, LEFT, pos=screen(axial, (10, 20, 40)))
    (stroke,) = strokes
    assert (stroke.plane, stroke.slice, view.crosshair) == ("axial", 10, (10, 30, 40))
    assert stroke.values.shape[0] == 1
    for column in (18, 30, 42):
        assert stroke.values[0, 20 - stroke.origin[1], column - stroke.origin[2]] == 1
    view.set_tool("look")
    qtbot.mouseClick(axial, LEFT, pos=start)
    assert view.crosshair == (10, 20, 20)


def test_the_eraser_takes_out_and_shift_turns_the_brush_into_it(view, qtbot):
    strokes, axial = [], view.view("axial")
    view.painted.connect(strokes.append)
    view.set_tool("eraser")
    qtbot.mouseClick(axial, LEFT, pos=screen(axial, (10, 20, 20)))
    view.set_tool("brush")
    qtbot.mouseClick(axial, LEFT, Qt.KeyboardModifier.ShiftModifier, screen(axial, (10, 20, 20)))
    qtbot.keyClick(axial, Qt.Key.Key_Return)
    assert [int(stroke.values.max()) for stroke in strokes] == [0, 0, 1]
    last = strokes[-1]
    assert last.values[0, 30 - last.origin[1], 40 - last.origin[2]] == 1


def test_escape_gives_up_a_stroke(view, qtbot):
    strokes, axial = [], view.view("axial")
    view.painted.connect(strokes.append)
    view.set_tool("brush")
    qtbot.mousePress(axial, LEFT, pos=screen(axial, (10, 20, 20)))
    qtbot.keyClick(axial, Qt.Key.Key_Escape)
    qtbot.mouseRelease(axial, LEFT, pos=screen(axial, (10, 20, 20)))
    assert strokes == []


def test_a_stroke_is_given_up_with_its_tool_and_with_its_volume(view, qtbot):
    strokes, axial = [], view.view("axial")
    view.painted.connect(strokes.append)
    for give_up in (lambda: view.set_tool("look"), lambda: view.set_volume(None, GRID)):
        view.set_tool("brush")
        qtbot.mousePress(axial, LEFT, pos=screen(axial, (10, 20, 20)))
        give_up()
        qtbot.mouseRelease(axial, LEFT, pos=screen(axial, (10, 20, 20)))
    assert strokes == []


def test_brackets_change_the_brush_within_bounds(view, qtbot):
    told, axial = [], view.view("axial")
    view.brush_radius_changed.connect(told.append)
    qtbot.keyClick(axial, Qt.Key.Key_BracketRight)
    assert view.brush_radius == pytest.approx(3.6)
    for _ in range(40):
        qtbot.keyClick(axial, Qt.Key.Key_BracketLeft)
    assert view.brush_radius == 0.5
    assert told[0] == pytest.approx(3.6)


def test_the_mask_being_mended_is_shown(view, qtbot):
    axial = view.view("axial")
    before = colour(axial, (10, 34, 36))
    view.set_edit(ball())
    qtbot.waitUntil(lambda: colour(axial, (10, 34, 36)) != before, timeout=3000)
    view.set_edit(None)
    assert colour(axial, (10, 34, 36)) == before


# Dispute -------------------------------------------------------------------------------------------


def test_the_strip_goes_to_the_slice_that_is_clicked_with_the_head_at_the_top(view, qtbot):
    dispute = np.zeros(20)
    dispute[4] = 2.5
    view.set_dispute(dispute)
    strip = view.findChild(DisputeStrip)
    qtbot.mouseClick(strip, LEFT, pos=QPoint(20, 14))
    assert view.crosshair[0] == 19
    qtbot.mouseClick(strip, LEFT, pos=QPoint(20, strip.height() - 14))
    assert view.crosshair[0] == 0
    qtbot.keyClick(strip, Qt.Key.Key_Return)
    assert view.crosshair[0] == 4
    qtbot.keyClick(strip, Qt.Key.Key_Up)
    assert view.crosshair[0] == 5
    assert "slice 6 of 20" in strip.accessibleDescription()


def test_a_volume_of_more_slices_follows_one_with_a_dispute(view):
    view.set_dispute(np.arange(20.0))
    view.set_volume(None, Grid.plain((48, 30, 30)))
    assert view.crosshair[0] == 24
    view.set_dispute(np.arange(48.0))
    assert "slice 25 of 48" in view.findChild(DisputeStrip).accessibleDescription()


def test_a_dispute_of_other_slices_is_refused(view):
    with pytest.raises(ValueError, match="slices"):
        view.set_dispute(np.zeros(7))


def test_a_view_that_goes_while_lines_are_sought_leaves_nothing(view, qtbot):
    masks = [Outline(str(i), str(i), "#e69f00", ball(radius=5.0 + i)) for i in range(12)]
    view.set_outlines(masks)
    for index in range(20):
        view.go_to((index, 30, 40))
        view.grab()
    view.hide()
    assert all(pool.activeThreadCount() == 0 for pool in view.findChildren(QThreadPool))
