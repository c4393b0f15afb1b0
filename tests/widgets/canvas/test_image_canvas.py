import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from raterscope.widgets import theme
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.viewport import ClickMarks, DetectionMarks

EXTENT = (0.0, 0.0, 200.0, 150.0)


@pytest.fixture
def canvas(qtbot):
    widget = ImageCanvas()
    qtbot.addWidget(widget)
    widget.resize(824, 624)
    widget.show()
    widget.set_image(np.full((150, 200), 90, dtype=np.uint8), EXTENT)
    widget.layers.set_clicks(ClickMarks(np.array([50.0, 52.0]), np.array([60.0, 61.0]), np.array([0, 1])))
    widget.set_detections(spots())
    return widget


def spots(state=("disputed", "detected")) -> DetectionMarks:
    return DetectionMarks(
        np.array([50.0, 150.0]), np.array([60.0, 100.0]), np.array([[[4.0, 0], [0, 4.0]]] * 2),
        np.array([0.46, 0.99]), state, np.array([14, 3]), np.array([22, 50]), 51,
    )  # fmt: skip


def at(canvas, x, y) -> QPoint:
    return QPointF(*canvas.viewport.to_screen(x, y)).toPoint()


def colours(canvas, x, y, reach=3) -> set[str]:
    picture, position = canvas.grab().toImage(), at(canvas, x, y)
    around = range(-reach, reach + 1)
    return {picture.pixelColor(position.x() + i, position.y() + j).name() for i in around for j in around}


def test_the_whole_image_is_in_sight_at_first_and_after_resizing(canvas):
    for size in ((824, 624), (500, 700)):
        canvas.resize(*size)
        left, top, right, bottom = canvas.viewport.visible
        assert left <= 0
        assert top <= 0
        assert right >= 200
        assert bottom >= 150


def test_clicks_show_their_annotator_s_colour_until_hidden(canvas):
    canvas.set_layer_visible("ellipses", False)
    canvas.set_layer_visible("detections", False)
    assert "#e69f00" in colours(canvas, 50, 60)
    canvas.layers.set_annotators_shown({0}, None)
    assert "#e69f00" not in colours(canvas, 50, 60)
    canvas.layers.set_annotators_shown(set(), None)
    canvas.set_layer_visible("clicks", False)
    assert colours(canvas, 50, 60) == {"#5a5a5a"}


def test_a_click_on_a_spot_chooses_it_and_on_the_ground_nothing(canvas, qtbot):
    chosen = []
    canvas.spot_clicked.connect(chosen.append)
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at(canvas, 150, 101))
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at(canvas, 100, 20))
    assert chosen == [1]


def test_a_double_click_beside_the_spots_gives_its_position(canvas, qtbot):
    positions = []
    canvas.place_double_clicked.connect(lambda x, y: positions.append((x, y)))
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=at(canvas, 100, 20))
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=at(canvas, 50, 60))
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert len(positions) == 1
    assert positions[0] == pytest.approx((100, 20), abs=0.3)


def test_dragging_pans_and_chooses_nothing(canvas, qtbot):
    chosen = []
    canvas.spot_clicked.connect(chosen.append)
    start = at(canvas, 50, 60)
    before = canvas.viewport
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(canvas, start + QPoint(40, 25))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=start + QPoint(40, 25))
    assert (canvas.viewport.across, canvas.viewport.down) == (before.across + 40, before.down + 25)
    assert chosen == []


def test_the_wheel_zooms_about_the_mouse(canvas):
    point = QPointF(at(canvas, 150, 100))
    event = QWheelEvent(
        point, point, QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    before = canvas.viewport
    QApplication.sendEvent(canvas, event)
    assert canvas.viewport.scale > 1.3 * before.scale
    x, y = before.to_image(point.x(), point.y())
    assert canvas.viewport.to_screen(x, y) == pytest.approx((point.x(), point.y()), abs=0.51)


def test_keys_zoom_pan_and_fit(canvas, qtbot):
    initial = canvas.viewport
    qtbot.keyClick(canvas, Qt.Key.Key_Plus)
    assert canvas.viewport.scale == pytest.approx(1.25 * initial.scale)
    x, _ = canvas.viewport.centre
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert canvas.viewport.centre[0] > x
    qtbot.keyClick(canvas, Qt.Key.Key_0)
    assert canvas.viewport == initial


def test_a_spot_can_be_added_by_keyboard_alone(canvas, qtbot):
    positions, modes = [], []
    canvas.place_chosen.connect(lambda x, y: positions.append((x, y)))
    canvas.mode_changed.connect(modes.append)
    canvas.set_mode("add")
    x, y = canvas.viewport.centre
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    qtbot.keyClick(canvas, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(canvas, Qt.Key.Key_Return)
    scale = canvas.viewport.scale
    assert positions == [pytest.approx((x + 8 / scale, y - 1 / scale))]
    qtbot.keyClick(canvas, Qt.Key.Key_Escape)
    assert modes == ["add", "look"]


def test_the_selected_spot_can_be_moved(canvas, qtbot):
    moved = []
    canvas.spot_moved.connect(lambda *arguments: moved.append(arguments))
    canvas.set_mode("move")
    assert canvas.mode == "look"  # nothing is selected
    canvas.select(1)
    canvas.set_mode("move")
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at(canvas, 160, 90))
    assert len(moved) == 1
    assert moved[0][0] == 1
    assert moved[0][1:] == pytest.approx((160, 90), abs=0.3)
    assert canvas.mode == "look"


def test_no_position_outside_the_image_can_be_chosen(canvas, qtbot):
    positions = []
    canvas.place_chosen.connect(lambda x, y: positions.append((x, y)))
    canvas.set_mode("add")
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert positions == []


def test_a_decision_changes_what_is_drawn_of_that_spot(canvas):
    canvas.set_layer_visible("clicks", False)
    yellow, blue = theme.DARK.disputed, theme.DARK.accent
    radius = 2 * np.sqrt(-2 * np.log(0.05))
    before = colours(canvas, 50 + radius, 60, 4)
    canvas.set_detections(spots(("accepted", "detected")))
    after = colours(canvas, 50 + radius, 60, 4)
    assert yellow in before
    assert blue not in before
    assert blue in after
    assert yellow not in after


class Painted(QObject):
    """The regions in which a widget was painted."""

    def __init__(self, widget):
        super().__init__(widget)
        self.regions = []
        widget.installEventFilter(self)

    def eventFilter(self, _widget, event):
        if event.type() == QEvent.Type.Paint:
            self.regions.append(event.region())
        return False


@pytest.mark.parametrize("zoom", [1.0, 1.37, 1.61])
def test_a_decision_repaints_its_spot_and_the_frames_once_and_all_is_right(canvas, monkeypatch, zoom):
    monkeypatch.setattr("raterscope.widgets.canvas.tiles.BUDGET", np.inf)  # no tile is stretched
    canvas.zoom(zoom)
    canvas.select(0)
    QApplication.processEvents()
    painted = Painted(canvas)
    canvas.set_detections(spots(("accepted", "detected")))
    canvas.select(1)
    QApplication.processEvents()
    (region,) = painted.regions
    assert sum(rect.width() * rect.height() for rect in region) < 0.2 * canvas.width() * canvas.height()
    on_screen = canvas.screen().grabWindow(canvas.winId()).toImage()
    canvas.layers._overlay.clear()
    assert on_screen == canvas.grab().toImage().convertToFormat(on_screen.format())


def test_very_many_changed_spots_are_repainted_together(canvas, monkeypatch):
    count = 500
    x, y = np.random.default_rng(3).uniform((10, 10), (190, 140), (count, 2)).T

    def marks(state):
        return DetectionMarks(
            x, y, np.tile(np.eye(2), (count, 1, 1)), np.full(count, 0.9), (state,) * count,
            np.arange(count), np.full(count, 5), 9,
        )  # fmt: skip

    canvas.set_detections(marks("disputed"))
    QApplication.processEvents()
    rounds = []
    paint = canvas.layers.spots.paint_ellipses
    monkeypatch.setattr(canvas.layers.spots, "paint_ellipses", lambda *a: (rounds.append(a), paint(*a)))
    canvas.set_detections(marks("accepted"))
    QApplication.processEvents()
    assert 0 < len(rounds) <= 9  # tiles, not spots


def test_a_spot_far_off_is_brought_into_sight_at_a_size_to_judge(canvas):
    canvas.zoom(6)
    canvas.look_at(190, 140, 4.9)
    x, y = canvas.viewport.to_screen(190, 140)
    assert 0 < x < canvas.width()
    assert 0 < y < canvas.height()
    assert 14 <= 4.9 * canvas.viewport.scale <= 90


def test_a_spot_that_leaves_the_mouse_is_not_described(canvas, qtbot):
    qtbot.mouseMove(canvas, at(canvas, 50, 60))
    assert canvas.cursor().shape() == Qt.CursorShape.PointingHandCursor
    canvas.zoom(6)
    canvas.look_at(190, 140, 4.9)
    assert canvas.cursor().shape() == Qt.CursorShape.ArrowCursor


def test_a_spot_well_in_sight_is_looked_at_without_a_jump(canvas):
    canvas.zoom(2)
    x, y = canvas.viewport.centre
    before = canvas.viewport
    canvas.look_at(x + 3, y - 3, 4.9)
    assert canvas.viewport == before


def test_a_partial_result_stands_for_the_spots_until_they_come(canvas):
    canvas.set_layer_visible("clicks", False)
    before = colours(canvas, 100, 30, 12)
    canvas.set_partial(np.array([[100.0, 30.0]]), np.array([[[4.0, 0], [0, 4.0]]]))
    assert colours(canvas, 100, 30, 20) != before
    assert theme.DARK.disputed not in colours(canvas, 50, 60, 20)
    canvas.set_detections(spots())
    assert colours(canvas, 100, 30, 12) == before
    assert theme.DARK.disputed in colours(canvas, 50, 60, 20)


def test_without_pixels_the_frame_of_the_extent_is_shown(canvas):
    canvas.layers.set_clicks(ClickMarks.none())
    canvas.set_detections(DetectionMarks.none())
    canvas.set_image(None, EXTENT)
    (inside,), (outside,) = colours(canvas, 100, 75), colours(canvas, -2, 75, 0)
    assert inside != outside
    assert colours(canvas, 0, 75, 1) - {inside, outside}


def test_another_image_of_the_same_size_keeps_what_was_marked_and_where_one_looks(canvas):
    canvas.zoom(3)
    before = canvas.viewport
    canvas.set_image(np.full((150, 200), 30, dtype=np.uint8), EXTENT)
    assert canvas.viewport == before
    assert "#1e1e1e" in colours(canvas, *[round(v) for v in before.centre])
    canvas.fit()
    assert "#e69f00" in colours(canvas, 50, 60)


def test_the_overview_shows_when_not_all_is_in_sight_and_leads_elsewhere(canvas, qtbot):
    overview = canvas._minimap
    assert not overview.isVisible()
    canvas.zoom(4)
    assert overview.isVisible()
    qtbot.mouseClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(9, 9))
    x, y = canvas.viewport.centre
    assert x < 10
    assert y < 10


def test_a_chip_shows_a_layer_and_emits_the_change(canvas, qtbot):
    messages = []
    canvas.layer_toggled.connect(lambda *arguments: messages.append(arguments))
    chip = canvas._chips._chips["truth"]
    qtbot.keyClick(chip, Qt.Key.Key_Space)
    assert messages == [("truth", True)]
    assert chip.isChecked()
    canvas.set_layer_visible("truth", False)
    assert not chip.isChecked()
    assert messages == [("truth", True)]


def test_an_extent_without_area_is_refused(canvas):
    with pytest.raises(ValueError, match="expected a width and height above 0"):
        canvas.set_image(None, (0, 0, 0, 10))


def test_known_positions_are_shown_only_when_requested(canvas):
    canvas.layers.set_truth(np.array([100.0]), np.array([30.0]))
    assert colours(canvas, 100, 30, 8) == {"#5a5a5a"}
    canvas.set_layer_visible("truth", True)
    assert max(QColor(name).lightness() for name in colours(canvas, 100, 30, 8)) > 200


def test_space_held_shows_the_image_alone(canvas, qtbot):
    marked = colours(canvas, 50, 60, 12)
    qtbot.keyPress(canvas, Qt.Key.Key_Space)
    assert colours(canvas, 50, 60, 12) == {"#5a5a5a"}
    qtbot.keyRelease(canvas, Qt.Key.Key_Space)
    assert colours(canvas, 50, 60, 12) == marked


def many(x, y):
    """Clicks on one place, more than are sorted at once, of which one alone lies elsewhere."""
    count = 25_000
    positions = np.full((2, count), 300.0)
    positions[:, 0] = x, y
    return ClickMarks(*positions, np.repeat([0, 1], [1, count - 1]))


def test_very_many_clicks_are_prepared_aside_and_then_shown_hidden_and_replaced(canvas, qtbot):
    canvas.set_detections(DetectionMarks.none())
    canvas.layers.set_clicks(many(50, 60))
    assert "#e69f00" not in colours(canvas, 50, 60)
    qtbot.waitUntil(lambda: "#e69f00" in colours(canvas, 50, 60))
    canvas.layers.set_annotators_shown({0}, None)
    qtbot.waitUntil(lambda: "#e69f00" not in colours(canvas, 50, 60))
    canvas.layers.set_annotators_shown(set(), None)
    canvas.layers.set_clicks(many(80, 90))
    canvas.layers.set_clicks(many(150, 40))
    qtbot.waitUntil(lambda: "#e69f00" in colours(canvas, 150, 40))
    qtbot.wait(50)
    assert "#e69f00" not in colours(canvas, 80, 90)
    assert "#e69f00" not in colours(canvas, 50, 60)


def test_nothing_is_drawn_without_an_image(qtbot):
    canvas = ImageCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(400, 300)
    canvas._chips.hide()

    def colours():
        picture = canvas.grab().toImage()
        return {picture.pixel(x, y) for x in range(0, 400, 3) for y in range(0, 300, 3)}

    assert len(colours()) == 1
    canvas.set_image(None, (0, 0, 100, 80))
    assert len(colours()) > 1
    canvas.clear_image()
    assert len(colours()) == 1
