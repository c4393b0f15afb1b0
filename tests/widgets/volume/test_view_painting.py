"""Masks mended in a view, by brush and eraser."""

import pytest
from PySide6.QtCore import Qt

from tests.widgets.volume.viewing import GRID, LEFT, ball, colour, screen, turn


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
    messages, axial = [], view.view("axial")
    view.brush_radius_changed.connect(messages.append)
    qtbot.keyClick(axial, Qt.Key.Key_BracketRight)
    assert messages == [pytest.approx(3.6)]
    for _ in range(40):
        qtbot.keyClick(axial, Qt.Key.Key_BracketLeft)
    assert messages[-1] == 0.5


def test_the_mask_being_mended_is_shown(view, qtbot):
    axial = view.view("axial")
    before = colour(axial, (10, 34, 36))
    view.set_edit(ball())
    qtbot.waitUntil(lambda: colour(axial, (10, 34, 36)) != before)
    view.set_edit(None)
    assert colour(axial, (10, 34, 36)) == before
