"""Highlight of a window while files are dragged over it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.theme import enlarge


class DropOverlay(QWidget):
    """Border and a sentence above a window; it takes no events."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._words = ""
        self.hide()

    def show_words(self, words: str) -> None:
        """Cover the window with a sentence."""
        self._words = words
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint border and sentence."""
        with QPainter(self) as painter:
            look, box = theme.current(), enlarge(painter, self.rect())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(box, theme.colour(look.window, 150))
            painter.setPen(QPen(QColor(look.accent), 3))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(5, 5, -5, -5), 6, 6)
            painter.setFont(theme.font(theme.FIGURE, bold=True))
            width = painter.fontMetrics().horizontalAdvance(self._words) + 48
            words = QRectF(box.center().x() - width / 2, box.center().y() - 24, width, 48)
            painter.setBrush(QColor(look.surface))
            painter.setPen(QPen(QColor(look.accent), 1))
            painter.drawRoundedRect(words, 6, 6)
            painter.setPen(QColor(look.text))
            painter.drawText(words, Qt.AlignmentFlag.AlignCenter, self._words)
