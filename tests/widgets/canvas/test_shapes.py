"""Shapes on the canvas, chosen and changed as a person does."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from raterscope.algorithms.geometry import area_of, length_of
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.shape_marks import ShapeMark, grips_of, pulled
from raterscope.widgets.canvas.shapes import Shapes
from raterscope.widgets.canvas.viewport import DetectionMarks
from tests.widgets.canvas.pointing import LEFT, at, click, drag

SHIFT = Qt.KeyboardModifier.ShiftModifier
LINE = ShapeMark("line", np.array([(50.0, 100.0), (250.0, 100.0)]), False, "1  200 px")
SQUARE = ShapeMark("square", np.array([(100.0, 20), (160, 20), (160, 80), (100, 80)]), True, "2  3,600 px²")
CIRCLE = np.stack(
    [np.cos(np.linspace(0, 2 * np.pi, 300)[:-1]), np.sin(np.linspace(0, 2 * np.pi, 300)[:-1])], 1
)


@pytest.fixture
def canvas(qtbot):
    canvas = ImageCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(640, 440)
    canvas.show()
    canvas.setFocus()
    canvas.set_image(np.full((200, 300), 120, dtype=np.uint8), (0, 0, 300, 200))
    return canvas


@pytest.fixture
def shapes(canvas):
    shapes = Shapes(canvas, lambda mark, points: f"{mark.key} {length_of(points):.0f}")
    shapes.set_shapes([LINE, SQUARE])
    return shapes


@pytest.fixture
def changes(shapes):
    got = []
    shapes.changed.connect(lambda key, verb, points: got.append((key, verb, points)))
    return got


def test_a_click_on_a_line_chooses_it_and_one_beside_it_none(canvas, shapes, changes):
    chosen = []
    shapes.chosen.connect(chosen.append)
    click(canvas, 180, 100)
    assert shapes.selected == "line"
    click(canvas, 100, 60)
    assert shapes.selected == "square"
    click(canvas, 130, 50)
    assert shapes.selected is None
    assert chosen == ["line", "square", None]
    assert changes == []


def test_a_drag_of_an_end_moves_that_end_alone(canvas, shapes, changes):
    view = canvas.viewport
    click(canvas, 180, 100)
    drag(canvas, (250, 100), (200, 120), (150, 150))
    ((key, verb, points),) = changes
    assert (key, verb) == ("line", "reshape")
    np.testing.assert_allclose(points, [(50, 100), (150, 150)], atol=1)
    assert canvas.viewport == view


def test_a_drag_of_the_line_moves_the_whole_and_never_off_the_image(canvas, shapes, changes):
    drag(canvas, (200, 100), (200, 120), (220, 190))
    ((_, verb, points),) = changes
    assert verb == "move"
    np.testing.assert_allclose(points, LINE.points + np.array((20, 90)), atol=1)
    drag(canvas, (220, 190), (220, 100), (299, 10))
    assert changes[-1][2][:, 0].max() == 300
    assert length_of(changes[-1][2]) == pytest.approx(200)


def test_a_corner_moves_and_its_neighbours_stay(canvas, shapes, changes):
    click(canvas, 100, 60)
    drag(canvas, (160, 80), (170, 85), (190, 95))
    points = changes[0][2]
    np.testing.assert_allclose(np.delete(points, 2, axis=0), np.delete(SQUARE.points, 2, axis=0))
    np.testing.assert_allclose(points[2], (190, 95), atol=1)


def test_escape_puts_back_what_is_dragged_and_then_lets_go(canvas, shapes, changes):
    before = canvas.grab().toImage()
    click(canvas, 180, 100)
    chosen = canvas.grab().toImage()
    drag(canvas, (180, 100), (180, 130), (180, 160), release=False)
    assert canvas.grab().toImage() != chosen
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    QTest.mouseRelease(canvas, LEFT, pos=at(canvas, 180, 160))
    assert changes == []
    assert shapes.selected == "line"
    assert canvas.grab().toImage() == chosen
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert shapes.selected is None
    assert canvas.grab().toImage() == before


def test_arrows_move_by_a_pixel_of_the_image_the_whole_or_the_point_taken(canvas, shapes, changes):
    view = canvas.viewport
    shapes.select("line")
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    np.testing.assert_allclose(changes[-1][2], LINE.points + np.array((0, 1)))
    QTest.keyClick(canvas, Qt.Key.Key_Left, SHIFT)
    np.testing.assert_allclose(changes[-1][2], LINE.points + np.array((-10, 1)))
    QTest.keyClick(canvas, Qt.Key.Key_Period)
    QTest.keyClick(canvas, Qt.Key.Key_Up)
    np.testing.assert_allclose(changes[-1][2], [(40, 100), (240, 101)])
    assert [verb for _, verb, _ in changes] == ["move", "move", "reshape"]
    assert canvas.viewport == view
    shapes.select(None)
    QTest.keyClick(canvas, Qt.Key.Key_Up)
    assert canvas.viewport != view
    assert len(changes) == 3


def test_a_key_held_is_one_change(canvas, shapes, changes):
    shapes.select("line")
    for _ in range(5):
        QTest.keyPress(canvas, Qt.Key.Key_Down)
    assert changes == []
    QTest.keyRelease(canvas, Qt.Key.Key_Down)
    ((_, _, points),) = changes
    np.testing.assert_allclose(points, LINE.points + np.array((0, 5)))


def test_delete_asks_for_the_shape_chosen(canvas, shapes):
    requests = []
    shapes.delete_requested.connect(requests.append)
    QTest.keyClick(canvas, Qt.Key.Key_Delete)
    click(canvas, 100, 60)
    QTest.keyClick(canvas, Qt.Key.Key_Delete)
    assert requests == ["square"]


def test_a_spot_under_the_line_is_still_chosen_by_a_click(canvas, shapes):
    item, number = np.eye(2)[None] * 9, np.array([1])
    canvas.set_detections(
        DetectionMarks(np.array([180.0]), np.array([100.0]), item, np.array([0.9]), ("detected",), number)
    )
    spots = []
    canvas.spot_clicked.connect(spots.append)
    click(canvas, 180, 100)
    assert (spots, shapes.selected) == ([0], None)
    click(canvas, 80, 100)
    assert shapes.selected == "line"


def test_a_change_stays_in_sight_until_it_is_kept_or_taken_back(canvas, shapes, changes):
    click(canvas, 180, 100)
    drag(canvas, (180, 100), (180, 130), (180, 160))
    moved = canvas.grab().toImage()
    shapes.set_shapes([LINE, SQUARE])
    assert canvas.grab().toImage() == moved
    shapes.set_shapes([ShapeMark("line", changes[0][2], False, "line 200"), SQUARE])
    assert canvas.grab().toImage() == moved
    shapes.set_shapes([LINE, SQUARE])
    assert canvas.grab().toImage() != moved


def test_what_was_drawn_is_seen_where_it_was_drawn(canvas, shapes):
    def row():
        image = canvas.grab().toImage()
        y, left, right = at(canvas, 0, 100).y(), at(canvas, 60, 0).x(), at(canvas, 240, 0).x()
        return [image.pixelColor(x, y).lightness() for x in range(left, right)]

    with_line = row()
    shapes.set_shapes([])
    assert np.mean(np.array(row()) != np.array(with_line)) > 0.9


def test_grips_of_a_dense_outline_lie_apart_and_the_points_between_them_follow():
    points = CIRCLE * 100
    grips = grips_of(points, closed=True)
    positions = points[grips]
    assert np.hypot(*(positions - np.roll(positions, 1, axis=0)).T).min() > 12
    assert 20 < len(grips) < 45
    index = grips[5]
    after = pulled(points, grips, index, np.array([10.0, 0.0]), closed=True)
    np.testing.assert_allclose(after[index], points[index] + (10, 0))
    still = np.ones(len(points), dtype=bool)
    still[grips[4] + 1 : grips[6]] = False
    np.testing.assert_array_equal(after[still], points[still])
    steps = np.diff(after[grips[4] : grips[6] + 1, 0] - points[grips[4] : grips[6] + 1, 0])
    assert np.abs(steps).max() < 2.5
    first = pulled(points, grips, grips[0], np.array([0.0, 10.0]), closed=True)
    moved = np.flatnonzero(np.any(first != points, axis=1))
    assert set(moved) == {*range(grips[1]), *range(grips[-1] + 1, len(points))}


def test_a_line_shows_both_its_ends_however_short_it_is_on_the_screen():
    points = np.array([(0.0, 0.0), (3.0, 0.0), (5.0, 0.0)])
    assert grips_of(points, closed=False) == [0, 2]
    after = pulled(points, [0, 2], 2, np.array([4.0, 0.0]), closed=False)
    assert after[0, 0] == 0
    assert after[2, 0] == 9
    assert 3 < after[1, 0] < 9
    assert (
        area_of(pulled(CIRCLE * 5, grips_of(CIRCLE * 5, closed=True), 0, np.array([5.0, 0.0]), closed=True))
        > 0
    )
