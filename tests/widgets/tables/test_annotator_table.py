"""The small line of an annotator's reliability over images, in the table."""

import math

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

from raterscope.widgets import theme
from raterscope.widgets.tables.annotator_table import (
    COLUMNS,
    AnnotatorRow,
    AnnotatorTable,
    Course,
    course_box,
)

KNOWN = (0.5, 0.4, 0.6)
COLUMN = COLUMNS.index("by image")


def course(*reliability) -> Course:
    count = len(reliability)
    return Course(
        [f"{index}.png" for index in range(count)], np.arange(1, count + 1), np.array(reliability),
        np.full(count, 0.8),
    )  # fmt: skip


def row(index, course=None) -> AnnotatorRow:
    return AnnotatorRow(index, f"w{index}", 10 - index, KNOWN, KNOWN, KNOWN, course=course)


@pytest.fixture
def table(qtbot):
    theme.apply_theme(QApplication.instance(), theme.DARK)
    widget = AnnotatorTable()
    qtbot.addWidget(widget)
    widget.resize(900, 300)
    widget.show()
    widget.set_rows([row(0, course(0.9, 0.2, math.nan, 0.6, 1.0)), row(1, course(0.5, 0.7)), row(2)])
    return widget


def tip_at(table, point: QPoint, monkeypatch) -> str:
    shown = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, words, _view: shown.append(words))
    port = table.view.viewport()
    event = QHelpEvent(QEvent.Type.ToolTip, point, port.mapToGlobal(point))
    QApplication.sendEvent(port, event)
    return shown[0]


def test_the_column_is_there_only_where_several_images_are_fused(table):
    assert not table.view.isColumnHidden(COLUMN)
    table.set_rows([row(0), row(1)])
    assert table.view.isColumnHidden(COLUMN)


def test_a_tooltip_names_the_image_pointed_at_and_its_figures(table, monkeypatch):
    box = course_box(table.view.visualRect(table.model.index(0, COLUMN)))
    across = [round(box.left() + share * box.width()) for share in (0.0, 0.27, 0.5, 1.0)]
    tips = [tip_at(table, QPoint(x, round(box.center().y())), monkeypatch) for x in across]
    assert "w0, 0.png: reliability 0.90 of 1 click, sensitivity 0.80" in tips[0]
    assert "1.png: reliability 0.20 of 2 clicks" in tips[1]
    assert "2.png: 3 clicks, sensitivity" in tips[2]
    assert "4.png: reliability 1.00 of 5 clicks" in tips[3]


def test_it_sorts_by_the_worst_image_and_who_has_none_comes_last(table):
    table.view.sortByColumn(COLUMN, Qt.SortOrder.AscendingOrder)
    assert [table.model.at(index).index for index in range(3)] == [0, 1, 2]
    table.view.sortByColumn(COLUMN, Qt.SortOrder.DescendingOrder)
    assert [table.model.at(index).index for index in range(3)] == [1, 0, 2]
    assert table.model.index(0, COLUMN).data() == "0.50 to 0.70 on 2 images"


def test_the_line_lies_where_the_reliability_does_and_breaks_where_it_is_not_known(table):
    picture = table.view.viewport().grab().toImage()
    box = course_box(table.view.visualRect(table.model.index(0, COLUMN)))
    accent = QColor(theme.current().accent)

    def is_inked(share: float, value: float) -> bool:
        x, y = box.left() + share * box.width(), box.bottom() - value * box.height()
        near = [picture.pixelColor(round(x) + dx, round(y) + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
        return any(
            abs(item.red() - accent.red()) + abs(item.blue() - accent.blue()) < 90
            and item.blue() > item.red() + 60
            for item in near
        )

    assert is_inked(0.0, 0.9)
    assert is_inked(0.25, 0.2)
    assert is_inked(0.75, 0.6)
    assert not is_inked(0.5, 0.4)
    assert not is_inked(0.25, 0.7)


def test_a_course_of_many_images_covers_the_same_as_its_line(table):
    rng = np.random.default_rng(2)
    reliability = np.clip(0.6 + 0.2 * np.sin(np.linspace(0, 9, 4000)) + rng.normal(0, 0.05, 4000), 0, 1)
    reliability[1000:2000] = math.nan
    table.set_rows([row(0, course(*reliability)), row(1, course(0.5, 0.7))])
    box = course_box(table.view.visualRect(table.model.index(0, COLUMN)))
    picture = table.view.viewport().grab().toImage()
    ground = picture.pixelColor(round(box.left() + 0.375 * box.width()), round(box.center().y()))
    for x in range(round(box.left()) + 2, round(box.right()) - 2):
        begin, end = ((x + side - box.left()) / box.width() * 4000 for side in (0, 1))
        there = reliability[int(begin) : int(end)]
        inked = [
            y for y in range(round(box.top()) + 1, round(box.bottom()) - 1)
            if picture.pixelColor(x, y) != ground
        ]  # fmt: skip
        if not np.isfinite(there).any():
            assert not inked
        elif np.isfinite(there).all():
            top, bottom = (box.bottom() - value * box.height() for value in (there.max(), there.min()))
            assert abs(inked[0] - top) < 3
            assert abs(inked[-1] - bottom) < 3
