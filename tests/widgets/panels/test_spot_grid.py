import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from raterscope.widgets import theme
from raterscope.widgets.panels.card_panels import SpotGrid
from raterscope.widgets.panels.cards import Card
from tests.reading import visible_words

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def grid(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = SpotGrid()
    qtbot.addWidget(widget)
    widget.resize(660, 500)
    widget.show()
    return widget


class Spots:
    pictures = True

    def __init__(self, numbers):
        self.numbers = np.array(numbers, dtype=np.int64)

    def card(self, position):
        return Card(f"spot {self.numbers[position]}", "5 of 14", "0.45")

    def visible_words(self, position):
        return f"spot {self.numbers[position]}, a.png"


def spots(*numbers) -> Spots:
    return Spots(numbers)


def middle(grid, point) -> QPoint:
    index = grid.view.model().at(point)
    return grid.view.visualRect(index).center()


def click(grid, position, modifiers=Qt.KeyboardModifier.NoModifier):
    QTest.mouseClick(grid.view.viewport(), LEFT, modifiers, middle(grid, position))


def test_click_ctrl_and_shift_choose_several_in_reading_order(grid):
    grid.show_spots(spots(*range(100, 120)), "40 px", reset=True)
    columns = grid.view.model().columns
    assert 3 <= columns <= 6
    click(grid, 1)
    assert grid.selected == [101]
    click(grid, columns + 1, SHIFT)  # over the end of the line, not a rectangle
    assert grid.selected == list(range(101, 102 + columns))
    click(grid, 2, CTRL)
    assert 102 not in grid.selected
    click(grid, 0)
    assert grid.selected == [100]
    assert "1 selected" in visible_words(grid)


def test_the_keyboard_walks_over_the_ends_of_lines_and_chooses_with_shift(grid):
    grid.show_spots(spots(*range(20)), "40 px", reset=True)
    columns = grid.view.model().columns
    click(grid, columns - 1)
    QTest.keyClick(grid.view, Qt.Key.Key_Right)
    assert grid.selected == [columns]
    QTest.keyClick(grid.view, Qt.Key.Key_Left, SHIFT)
    QTest.keyClick(grid.view, Qt.Key.Key_Left, SHIFT)
    assert grid.selected == [columns - 2, columns - 1, columns]
    QTest.keyClick(grid.view, Qt.Key.Key_A, CTRL)
    assert grid.selected == list(range(20))


def test_the_mouse_drawn_over_cards_chooses_them(grid):
    grid.show_spots(spots(*range(20)), "40 px", reset=True)
    columns = grid.view.model().columns
    viewport = grid.view.viewport()
    QTest.mousePress(viewport, LEFT, pos=middle(grid, 0))
    for position in (1, columns + 1):
        QTest.mouseMove(viewport, middle(grid, position), 20)
    QTest.mouseRelease(viewport, LEFT, pos=middle(grid, columns + 1))
    assert grid.selected == [0, 1, columns, columns + 1]


def test_others_take_the_place_of_those_that_are_settled(grid):
    grid.show_spots(spots(*range(100, 120)), "40 px", reset=True)
    click(grid, 3)
    chosen = []
    grid.chosen.connect(chosen.append)
    grid.show_spots(spots(*[spot for spot in range(100, 120) if spot != 103]), "40 px", reset=False)
    assert grid.current == 104
    assert chosen == [104]
    assert "19 spots, each 40 px wide" in visible_words(grid)


def test_an_empty_grid_names_what_is_missing(grid):
    grid.show_spots(spots(), "40 px", reset=True)
    assert "No disputed spots on this image." in visible_words(grid)
    assert "wide" not in visible_words(grid)
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findData("decided"))
    grid.where_choice.setCurrentIndex(1)
    grid.show_spots(spots(), "40 px", reset=True)
    assert "No decisions on any image yet." in visible_words(grid)
    assert not grid.accept.isEnabled()


def test_return_and_a_double_click_go_to_the_image(grid):
    grid.show_spots(spots(7, 8, 9), "40 px", reset=True)
    opened = []
    grid.opened.connect(opened.append)
    click(grid, 1)
    QTest.keyClick(grid.view, Qt.Key.Key_Return)
    click(grid, 2)
    QTest.mouseDClick(grid.view.viewport(), LEFT, pos=middle(grid, 2))
    assert opened == [8, 9]
