"""Painted text: larger with the text size, and the pointer finds it where it is seen."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.panels.lists import LineKind, LineList, LongList
from raterscope.widgets.panels.queue_items import QueueKind
from raterscope.widgets.theme import pixels, set_lengths, set_text_size, text_size


@pytest.fixture
def resized(qapp):
    theme.apply_theme(qapp, theme.DARK)

    def resize(size):
        set_text_size(size)
        theme.apply_theme(qapp, theme.DARK)

    yield resize
    resize(1.0)


class _Dot(Figure[str]):
    """A square of 20 pixels at (40, 30), and nothing else."""

    BOX = QRectF(40, 30, 20, 20)

    def part_at(self, position):
        return "dot" if self.BOX.contains(position) else None

    def text_of(self, part):
        return part

    def step(self, part, across, down):
        return "dot"

    def choose(self, part):
        self.chosen = part

    def draw(self, painter):
        self.paint_still(painter, self._square)

    def _square(self, painter):
        painter.fillRect(self.BOX, QColor("white"))


def _white(figure):
    """Return the box of what is white: left, top, right, bottom."""
    image = figure.grab().toImage()
    rows = [
        [image.pixelColor(x, y).lightness() > 200 for x in range(image.width())]
        for y in range(image.height())
    ]
    down, across = np.nonzero(rows)
    return across.min(), down.min(), across.max() + 1, down.max() + 1


@pytest.mark.parametrize("size", [0.8, 1.0, 1.5, 2.0])
def test_a_figure_is_drawn_as_much_larger_and_pointed_at_where_it_is_seen(resized, qtbot, size):
    figure = _Dot("Dots")
    qtbot.addWidget(figure)
    figure.resize(240, 160)
    figure.show()
    resized(size)
    assert _white(figure) == pytest.approx([40 * size, 30 * size, 60 * size, 50 * size], abs=1)
    qtbot.mouseMove(figure, (QPointF(50, 40) * size).toPoint())
    qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=(QPointF(58, 48) * size).toPoint())
    assert figure.chosen == "dot"
    assert figure.minimumWidth() == pixels(96)
    assert figure.picture_size().width() == pytest.approx(240 / size, abs=1)


class _Kind(LineKind[str]):
    height = 30

    def __init__(self):
        super().__init__()
        self.boxes = []

    def text_of(self, line):
        return line

    def paint_line(self, painter, box, line):
        self.boxes.append(box)


def test_a_line_is_painted_in_pixels_of_the_usual_size_whatever_the_text(resized, qtbot):
    kind = _Kind()
    lines = LineList(kind, "Lines")
    qtbot.addWidget(lines)
    lines.resize(400, 300)
    lines.set_lines(["a", "b"])
    lines.show()
    resized(2.0)
    kind.boxes.clear()
    lines.grab()
    assert lines.sizeHintForRow(0) == 60
    assert [box.height() for box in kind.boxes] == [30, 30]
    assert kind.boxes[1].top() == 30


def test_lengths_follow_and_a_key_is_not_cut(resized, qtbot):
    widget, key = QWidget(), KeyButton("A", "accept")
    qtbot.addWidget(widget)
    qtbot.addWidget(key)
    set_lengths(widget, minimumWidth=100, height=20)
    usual = key.sizeHint()
    resized(1.5)
    assert text_size() == 1.5
    assert (widget.minimumWidth(), widget.minimumHeight(), widget.maximumHeight()) == (150, 30, 30)
    assert key.sizeHint().height() == pytest.approx(1.5 * usual.height(), abs=1)
    assert key.sizeHint().width() == pytest.approx(1.5 * usual.width(), abs=2)


def test_a_list_that_grew_with_the_text_shrinks_with_it(qtbot, resized):
    view = LongList(QueueKind(), "Tasks")
    qtbot.addWidget(view)
    rows = view.verticalHeader()
    usual = rows.defaultSectionSize()
    for size, height in ((2.0, 2 * usual), (1.5, 1.5 * usual), (1.0, usual)):
        resized(size)
        assert rows.defaultSectionSize() == height
