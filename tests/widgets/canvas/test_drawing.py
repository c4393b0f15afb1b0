"""Drawing on the canvas, as a person does."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from raterscope.algorithms.geometry import area_of, length_of
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.shape_marks import Drawing
from tests.widgets.canvas.pointing import LEFT, at, click, drag


@pytest.fixture
def canvas(qtbot):
    canvas = ImageCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(500, 400)
    canvas.show()
    canvas.set_image(np.full((200, 300), 120, dtype=np.uint8), (0, 0, 300, 200))
    return canvas


@pytest.fixture
def drawing(canvas):
    return Drawing(canvas, lambda mode, points: f"{mode} {length_of(points):.0f}")


@pytest.fixture
def drawn(drawing):
    got = []
    drawing.drawn.connect(lambda mode, points: got.append((mode, points)))
    return got


def test_a_dragged_line_has_its_two_ends_and_the_image_stays(canvas, drawing, drawn):
    view = canvas.viewport
    drawing.set_mode("scale")
    drag(canvas, (50, 60), (120, 90), (250, 60))
    ((mode, points),) = drawn
    assert mode == "scale"
    assert len(points) == 2
    assert length_of(points) == pytest.approx(200, abs=2)
    assert canvas.viewport == view
    assert drawing.mode == ""


def test_two_clicks_make_a_line_too(canvas, drawing, drawn):
    drawing.set_mode("scale")
    click(canvas, 50, 60)
    assert drawn == []
    click(canvas, 50, 160)
    assert length_of(drawn[0][1]) == pytest.approx(100, abs=2)


def test_a_line_goes_point_by_point_until_a_double_click(canvas, drawing, drawn):
    drawing.set_mode("length")
    click(canvas, 20, 20)
    click(canvas, 20, 120)
    click(canvas, 140, 120)
    QTest.mouseDClick(canvas, LEFT, pos=at(canvas, 140, 120))
    assert length_of(drawn[0][1]) == pytest.approx(220, abs=3)


def test_an_outline_is_closed_by_a_click_on_its_first_corner(canvas, drawing, drawn):
    drawing.set_mode("area")
    for corner in ((40, 40), (140, 40), (140, 90), (40, 90)):
        click(canvas, *corner)
    click(canvas, 41, 41)
    ((mode, points),) = drawn
    assert (mode, len(points)) == ("area", 4)
    assert area_of(points) == pytest.approx(5_000, rel=0.03)


def test_an_outline_drawn_freehand_has_the_area_that_was_drawn_with_few_points(canvas, drawing, drawn):
    drawing.set_mode("area")
    angle = np.linspace(0, 2 * np.pi, 160)
    drag(canvas, *zip(150 + 60 * np.cos(angle), 100 + 60 * np.sin(angle), strict=True))
    ((_, points),) = drawn
    assert area_of(points) == pytest.approx(np.pi * 3600, rel=0.03)
    assert len(points) < 80


def test_keys_alone_draw(canvas, drawing, drawn):
    drawing.set_mode("length")
    scale = canvas.viewport.scale
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    for _ in range(10):
        QTest.keyClick(canvas, Qt.Key.Key_Right)
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    QTest.keyClick(canvas, Qt.Key.Key_Backspace)
    for _ in range(5):
        QTest.keyClick(canvas, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    ((_, points),) = drawn
    np.testing.assert_allclose(np.ptp(points, axis=0) * scale, (80, 3), atol=1e-6)


def test_escape_leaves_and_adding_a_spot_leaves_too(canvas, drawing, drawn):
    drawing.set_mode("area")
    click(canvas, 40, 40)
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert drawing.mode == ""
    drawing.set_mode("length")
    canvas.set_mode("add")
    assert drawing.mode == ""
    drawing.set_mode("length")
    assert canvas.mode == "look"
    assert drawn == []
