"""How a run's figure is painted that has its interval beneath it."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from raterscope.widgets import theme

__all__ = ["ComparisonDelegate"]

_SIDE, _ABOVE = 6, 3


class ComparisonDelegate(QStyledItemDelegate):
    """Cells of two lines have the second smaller and fainter; others are painted as everywhere."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Ask for room for both lines."""
        first, second = _lines(index)
        if not second:
            return super().sizeHint(option, index)
        upper, lower = (QFontMetrics(font) for font in _fonts(index))
        width = max(upper.horizontalAdvance(first), lower.horizontalAdvance(second))
        return QSize(width + 2 * _SIDE, upper.height() + lower.height() + 2 * _ABOVE)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint a cell."""
        first, second = _lines(index)
        if not second:
            super().paint(painter, option, index)
            return
        look = theme.current()
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        upper, lower = _fonts(index)
        painter.save()
        if chosen:
            painter.fillRect(option.rect, option.palette.highlight())
        inner = option.rect.adjusted(_SIDE, _ABOVE, -_SIDE, -_ABOVE)
        left = Qt.AlignmentFlag.AlignLeft
        painter.setFont(upper)
        painter.setPen(option.palette.highlightedText().color() if chosen else QColor(look.text))
        painter.drawText(inner, left | Qt.AlignmentFlag.AlignTop, first)
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
