"""Layers over a volume: outlines, areas, maps, the band, disputed regions."""

from collections import Counter

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt, QThreadPool
from PySide6.QtGui import QFontMetrics, QGuiApplication, QHelpEvent, QImage, QPainter
from PySide6.QtWidgets import QApplication, QToolTip

from raterscope.widgets import theme
from raterscope.widgets.volume.overlay import RegionBox, _broken, box_labels, paint_title
from raterscope.widgets.volume.scene import MARGIN, HeatMap, Outline, paint_colour_bar
from tests.widgets.volume.viewing import (
    LEFT,
    RIGHT,
    SHAPE,
    ball,
    colour,
    colours,
    drag,
    outlined,
    screen,
)


def test_an_outline_runs_where_the_mask_ends_and_is_chosen_by_a_click(view, qtbot):
    chosen = []
    view.outline_clicked.connect(chosen.append)
    outlined(view, qtbot)
    axial = view.view("axial")
    # The ball's edge: 12 mm to the right of its middle, 16 voxels of 0.75 mm; the 16th is no longer inside.
    point = QPointF(*axial.viewport.to_screen(*axial.plane.position_of((10, 30, 56)))).toPoint()
    half_voxel = round(0.5 * 0.75 * axial.viewport.scale)
    qtbot.mouseClick(axial, LEFT, pos=point - QPoint(half_voxel, 0))
    qtbot.mouseClick(axial, LEFT, pos=screen(axial, (10, 30, 40)))
    assert chosen == ["r1"]


@pytest.mark.qt_log_ignore("This plugin does not support raise", extend=True)
def test_a_mouse_that_rests_on_an_outline_learns_whose_it_is_as_it_is_written(view, qtbot):
    view.set_outlines([Outline("r1", "<b>rater</b> 1", "#e69f00", ball(), width=1.7)])
    axial = view.view("axial")
    qtbot.waitUntil(lambda: "#e69f00" in colours(axial))
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
            Outline("r1", "rater 1", hues["r1"], ball(), width=1.7),
            Outline("r2", "rater 2", hues["r2"], other, width=1.7),
            Outline("c", "consensus", hues["c"], ball(radius=16.0), width=1.7),
        ]
    )

    def seen(*keys):
        qtbot.waitUntil(lambda: {k for k, hue in hues.items() if hue in colours(axial)} == set(keys))

    seen("r1", "r2", "c")
    view.set_hidden({"r2"})
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
    qtbot.waitUntil(lambda: all("#e69f00" in colours(part) for part in others))
    view.go_to((1, 30, 40))
    qtbot.waitUntil(lambda: "#e69f00" not in colours(view.view("axial")))


def test_a_mask_that_changes_is_outlined_again(view, qtbot):
    outlined(view, qtbot)
    axial = view.view("axial")
    view.set_outlines([Outline("r1", "rater 1", "#e69f00", np.zeros(SHAPE, dtype=bool))])
    qtbot.waitUntil(lambda: "#e69f00" not in colours(axial))


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
    qtbot.waitUntil(lambda: colour(axial, (10, 20, 20)) != before)
    assert colour(axial, (10, 20, 36)) == before
    assert colour(axial, (10, 20, 5)) == before
    view.set_band(None)
    assert colour(axial, (10, 20, 20)) == before


def test_labels_of_regions_that_begin_at_one_height_do_not_overlap(view):
    axial = view.view("axial")
    boxes = [RegionBox(number, (8, 10, 10), (4, 12, 20), f"region {number}") for number in (1, 2, 3)]
    pairs = [(box, axial.plane.box_of(box.origin, box.shape)) for box in boxes]
    rooms = box_labels(axial.viewport, pairs, 2, QRectF(0, 900, 0, 0))
    assert rooms[2].top() < min(rooms[1].top(), rooms[3].top())
    assert not any(rooms[a].intersects(rooms[b]) for a, b in ((1, 2), (1, 3), (2, 3)))


def test_the_label_of_a_region_lies_above_the_scale_bar(view):
    axial = view.view("axial")
    box = RegionBox(1, (8, 10, 0), (4, 50, 80), "region 1 of 1", "1 beyond, 3 short of it")
    pairs = [(box, axial.plane.box_of(box.origin, box.shape))]
    (free,) = box_labels(axial.viewport, pairs, 1, QRectF(0, 900, 0, 0)).values()
    bar = QRectF(0, free.center().y(), 200, 60)
    (label,) = box_labels(axial.viewport, pairs, 1, bar).values()
    assert free.intersects(bar)
    assert not label.intersects(bar)
    assert not box_labels(axial.viewport.panned(0, 10 * axial.height()), pairs, 1, bar)  # out of view


@pytest.mark.parametrize("size", [1.0, 2.0])
def test_the_colour_bar_leaves_the_title_and_the_position_readable(qapp, size):
    try:
        theme.set_text_size(size)
        picture = QImage(620, 420, QImage.Format.Format_RGB32)
        picture.fill(0)
        painter = QPainter(picture)
        words = paint_title(painter, "AXIAL 25 / 48", "oblique 8°", "43, x 44.0, y 12.0, z -31.6 mm")
        heat = HeatMap(np.ones(SHAPE, dtype=np.float32), (0, 0, 0), 0.0, 1.0, "doubt", "doubt of the model")
        bar = paint_colour_bar(painter, 608.0, 12.0, heat, 596.0, words)
        painter.end()
        assert not bar.intersects(words)
        assert bar.top() == 12.0 or size > 1
    finally:
        theme.set_text_size(1.0)


def test_the_colour_bar_is_as_wide_as_its_label(qapp):
    metrics = QFontMetrics(theme.font(theme.CAPTION))
    picture = QImage(620, 420, QImage.Format.Format_RGB32)
    labels = [f"probability that the {rater} outline includes it" for rater in ("true", "last", "other", "r")]
    with QPainter(picture) as painter:
        for label in (*labels, "probability that another rater includes it"):
            heat = HeatMap(np.ones(SHAPE, dtype=np.float32), (0, 0, 0), 0.0, 1.0, "doubt", label)
            room = paint_colour_bar(painter, 608.0, 12.0, heat, 596.0, QRectF()).width() - 2 * MARGIN
            assert metrics.elidedText(label, Qt.TextElideMode.ElideMiddle, int(room)) == label


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
    assert "#ffd166" in colours(axial)
    qtbot.mouseClick(axial, LEFT, pos=upper_left + QPoint(0, 20))
    qtbot.mouseClick(axial, LEFT, pos=upper_right + QPoint(30, 10))
    qtbot.mouseClick(axial, LEFT, pos=middle)
    assert chosen == [1, 1]
    view.go_to((15, 5, 5))
    assert "#ffd166" not in colours(axial)


def test_a_view_that_goes_while_lines_are_sought_leaves_nothing(view, qtbot):
    masks = [Outline(str(i), str(i), "#e69f00", ball(radius=5.0 + i)) for i in range(12)]
    view.set_outlines(masks)
    for index in range(20):
        view.go_to((index, 30, 40))
        view.grab()
    view.hide()
    pools = view.findChildren(QThreadPool)
    assert pools
    assert all(pool.activeThreadCount() == 0 for pool in pools)


@pytest.mark.qt_log_ignore(
    "This plugin does not support raise", "This plugin does not support grabbing", extend=True
)
def test_a_right_click_offers_copies_and_a_right_drag_changes_the_window(view, qtbot):
    part = view.view("axial")
    before = view.windows.window
    drag(qtbot, part, QPoint(60, 60), QPoint(40, 10), RIGHT)
    assert not part.menu.menu.isVisible()
    assert view.windows.window != before
    qtbot.mouseClick(part, RIGHT, pos=QPoint(60, 60))
    assert part.menu.menu.isVisible()
    assert [action.text() for action in part.menu.menu.actions()] == ["Copy as image", "Save as PNG…"]
    part.menu.menu.close()


def test_the_copy_is_what_is_in_sight_without_the_frame_of_the_keys(view, qtbot):
    part = view.view("axial")
    view.activateWindow()
    qtbot.waitUntil(view.isActiveWindow)
    part.setFocus()
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(part, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().image()
    shown = part.grab().toImage()
    assert copied.size() == shown.size()
    middle = QPoint(shown.width() // 2 + 30, shown.height() // 2 + 30)
    assert copied.pixelColor(middle) == shown.pixelColor(middle)
    edge = [QPoint(x, shown.height() // 3) for x in range(3)]
    assert theme.DARK.accent in {shown.pixelColor(position).name() for position in edge}
    assert theme.DARK.accent not in {copied.pixelColor(position).name() for position in edge}


class PaintCounter(QObject):
    """Counts how often each view is painted."""

    def __init__(self, views):
        super().__init__()
        self.views, self.counts = views, Counter()
        for shown in views.values():
            shown.installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            self.counts.update(name for name, shown in self.views.items() if shown is watched)
        return False


def _wait_until_painted(counter, qtbot):
    """Wait until no view is painted any more; on a busy machine the first pictures come late."""
    while True:
        counter.counts.clear()
        qtbot.wait(50)
        if not counter.counts:
            return


def test_only_the_views_that_cut_a_changed_part_of_a_mask_are_painted_again(view, qtbot):
    mask = ball()
    view.set_outlines([Outline("r1", "rater 1", "#e69f00", mask, width=1.0)])
    views = {name: view.view(name) for name in ("axial", "coronal", "sagittal")}
    qtbot.waitUntil(lambda: all("#e69f00" in colours(shown) for shown in views.values()))
    counter = PaintCounter(views)
    _wait_until_painted(counter, qtbot)
    changed = mask.copy()
    changed[view.crosshair[0] - 3, view.crosshair[1], view.crosshair[2] - 3] ^= True
    view.set_outlines([Outline("r1", "rater 1", "#e69f00", changed, width=1.0)])
    qtbot.waitUntil(lambda: counter.counts["coronal"] > 0)
    qtbot.wait(50)
    assert set(counter.counts) == {"coronal"}
    view.set_outlines([Outline("r1", "rater 1", "#ffffff", changed, width=1.0)])
    qtbot.waitUntil(lambda: len(counter.counts) == 3)


def test_a_long_caption_is_broken_to_the_width_of_a_view(qtbot):
    image = QImage(240, 200, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        whole = paint_title(painter, "3-D nodule", "half-width of another rater's 95 % band, mm")
        broken = paint_title(
            painter, "3-D nodule", "half-width of another rater's 95 % band, mm", width=whole.width() * 0.6
        )
    assert broken.right() <= whole.width() * 0.6
    assert broken.height() > whole.height()


def test_numbers_of_a_slice_and_a_position_are_not_broken(qapp):
    metrics = QFontMetrics(theme.font(theme.CAPTION, bold=True))
    narrow = metrics.horizontalAdvance("x −21.0, y −49.5,") + 1
    assert _broken("SAGITTAL 214 / 512", metrics, narrow) == ["SAGITTAL", "214 / 512"]
    rows = _broken("−494 HU, x −21.0, y −49.5, z 6.5 mm", metrics, narrow)
    assert rows[-2:] == ["x −21.0, y −49.5,", "z 6.5 mm"]
