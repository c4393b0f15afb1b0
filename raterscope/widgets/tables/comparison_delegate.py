"""How a run's figure is painted, which may have its interval beneath it."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from raterscope.widgets import theme

__all__ = ["ComparisonDelegate"]

_SIDE, _ABOVE = 8, 3
"""Beside a cell's words as beside those of its column's head."""


class ComparisonDelegate(QStyledItemDelegate):
    """Cells of two lines have the second smaller and fainter."""

    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Ask for room for all that is in the cell."""
        lines = list(zip(_lines(index), map(QFontMetrics, _fonts(index)), strict=True))
        width = max(metrics.horizontalAdvance(words) for words, metrics in lines)
        height = sum(metrics.height() for words, metrics in lines if words)
        return QSize(width + 2 * _SIDE, height + 2 * _ABOVE)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint a cell."""
        first, second = _lines(index)
        look = theme.current()
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        upper, lower = _fonts(index)
        painter.save()
        if chosen:
            painter.fillRect(option.rect, option.palette.highlight())
        inner = option.rect.adjusted(_SIDE, _ABOVE, -_SIDE, -_ABOVE)
        left, top, middle = (
            Qt.AlignmentFlag.AlignLeft,
            Qt.AlignmentFlag.AlignTop,
            Qt.AlignmentFlag.AlignVCenter,
        )
        painter.setFont(upper)
        painter.setPen(option.palette.highlightedText().color() if chosen else QColor(look.text))
        painter.drawText(inner, left | (top if second else middle), first)
        painter.setFont(lower)
        if not chosen:
            painter.setPen(QColor(look.second))
        painter.drawText(inner, left | Qt.AlignmentFlag.AlignBottom, second)
        painter.restore()


def _lines(index: QModelIndex | QPersistentModelIndex) -> tuple[str, str]:
    first, _, second = str(index.data()).partition("\n")
    return first, second


def _fonts(index: QModelIndex | QPersistentModelIndex) -> tuple[QFont, QFont]:
    return QFont(index.data(Qt.ItemDataRole.FontRole)), theme.widget_font(theme.CAPTION)
