"""How an annotator's cells are painted: mark and name, figures with their bar and interval."""

from __future__ import annotations

import math

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QHelpEvent, QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QToolTip

from raterscope.text.numbers import figure
from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_annotator
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.tables.annotator_model import COLUMNS, AnnotatorModel, AnnotatorRow
from raterscope.widgets.tables.course import paint_course
from raterscope.widgets.tables.rows import ROW, ROW_HEIGHT
from raterscope.widgets.text_size import enlarge, pixels, usual

__all__ = ["AnnotatorDelegate", "course_box"]


class AnnotatorDelegate(QStyledItemDelegate):
    """Cells of the table of annotators."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Give every row the same height."""
        return QSize(pixels(60), pixels(ROW_HEIGHT))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint a cell."""
        row: AnnotatorRow = index.data(ROW)
        model = index.model()
        assert isinstance(model, AnnotatorModel)
        look, column = theme.current(), COLUMNS[index.column()]
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(look.raised))
        words = str(index.data())
        shown = model.shown(row.index)
        font = QFont(theme.font())
        font.setStrikeOut(row.excluded and column == "annotator")
        painter.setFont(font)
        painter.setPen(QColor(look.text if shown and not row.excluded else look.third))
        inner = box.adjusted(8, 0, -8, 0)
        if column == "annotator":
            paint_annotator(painter, QPointF(inner.left() + 6, box.center().y()), row.index, 4.5, shown=shown)
            _text(painter, inner.adjusted(20, 0, 0, 0), words)
        elif column == "clicks":
            _text(painter, inner, words, Qt.AlignmentFlag.AlignRight)
        elif column == "by image":
            if row.course is not None:
                paint_course(painter, course_box(box), row.course)
        elif column == "weight":
            if row.part:
                _paint_weight(painter, inner, row)
        else:
            if QFontMetrics(font).horizontalAdvance(words) > inner.width():
                # The bar shows the interval, and the tooltip says it.
                words = figure(*row.figures(column))
            _text(painter, inner.adjusted(0, 0, 0, -5), words)
            _paint_interval(painter, inner, row.figures(column))
        painter.restore()

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        """Say the image of a course that is pointed at."""
        row = index.data(ROW) if index.isValid() else None
        if row is None or row.course is None or COLUMNS[index.column()] != "by image":
            return super().helpEvent(event, view, option, index)
        cell = QRectF(option.rect)
        box = course_box(QRectF(usual(cell.topLeft()), usual(cell.bottomRight())))
        place = row.course.place_at((usual(QPointF(event.pos())).x() - box.left()) / box.width())
        QToolTip.showText(event.globalPos(), plain_tip(f"{row.name}, {row.course.words(place)}"), view)
        return True


def course_box(cell: QRect | QRectF) -> QRectF:
    """Give where in its cell the course is drawn, in pixels of the usual size."""
    return QRectF(cell).adjusted(10, 6, -10, -6)


def _paint_weight(painter: QPainter, box: QRectF, row: AnnotatorRow) -> None:
    """Paint how much one counts as a chip, and the reason as far as there is room."""
    look = theme.current()
    tone = QColor(look.rejected if row.excluded else look.second)
    chip = QRectF(0, 0, QFontMetrics(painter.font()).horizontalAdvance(row.part) + 10, 17)
    chip.moveTo(box.left(), box.center().y() - chip.height() / 2)
    painter.setPen(QPen(tone, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(chip, 4, 4)
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, row.part)
    painter.setPen(QColor(look.second))
    _text(painter, box.adjusted(chip.width() + 6, 0, 0, 0), row.why)


def _text(
    painter: QPainter, box: QRectF, words: str, side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft
) -> None:
    short = QFontMetrics(painter.font()).elidedText(words, Qt.TextElideMode.ElideRight, int(box.width()))
    painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, short)


def _paint_interval(painter: QPainter, box: QRectF, figures: tuple[float, float, float]) -> None:
    """Paint the bar of 0 to 1: ground, interval, and a tick at the value."""
    value, low, high = figures
    if not math.isfinite(value):
        return
    look = theme.current()
    bar = QRectF(box.left(), box.bottom() - 5, box.width(), 2)
    painter.fillRect(bar, QColor(look.line))
    if math.isfinite(low) and math.isfinite(high):
        left = bar.left() + bar.width() * min(max(low, 0.0), 1.0)
        right = bar.left() + bar.width() * min(max(high, 0.0), 1.0)
        painter.fillRect(QRectF(left, bar.top(), max(right - left, 1.0), 2), theme.colour(look.accent, 150))
    x = bar.left() + bar.width() * min(max(value, 0.0), 1.0)
    painter.setPen(QPen(QColor(look.accent), 2))
    painter.drawLine(QPointF(x, bar.top() - 2), QPointF(x, bar.bottom() + 1))
