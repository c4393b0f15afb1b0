"""Chip that shows the grey-value window, with a menu of presets."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from raterscope.widgets import theme
from raterscope.widgets.notes import HEIGHT, paint_chip_ground
from raterscope.widgets.parts import Menu
from raterscope.widgets.text_size import enlarge, pixels

__all__ = ["WindowChip"]


class WindowChip(QAbstractButton):
    """The window in words; pressed, it offers the presets.

    Signals
    -------
    preset_chosen : str
        Its name.
    """

    preset_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Window of the grey values")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(
            "Window: width and level of the grey values. Drag with the right button to change them"
        )
        self._menu = Menu(self)
        self._menu.triggered.connect(self._on_triggered)
        self.clicked.connect(self._on_clicked)

    def set_presets(self, presets: list[tuple[str, str]]) -> None:
        """Offer presets of ``(name, words)``."""
        self._menu.clear()
        for name, words in presets:
            self._menu.addAction(words).setData(name)

    def set_words(self, words: str) -> None:
        """Set the window."""
        self.setText(words)
        self.setAccessibleName(f"Window {words}")
        self.adjustSize()
        self.update()

    @property
    def menu(self) -> QMenu:
        """Menu of presets."""
        return self._menu

    def sizeHint(self) -> QSize:
        """Return the size of the text."""
        words = QFontMetrics(theme.font()).horizontalAdvance(self.text())
        return QSize(pixels(words + 34), pixels(HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the words, and a sign that there is more."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        look, box = theme.DARK, enlarge(painter, self.rect())
        paint_chip_ground(painter, box)
        painter.setPen(QColor(look.text))
        painter.setFont(theme.font())
        room = box.adjusted(10, 0, -10, 0)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        painter.setPen(QPen(QColor(look.second), 1.4))
        x, y = box.width() - 14.0, box.height() / 2 + 1.5
        painter.drawPolyline([QPointF(x - 4, y - 4), QPointF(x, y), QPointF(x + 4, y - 4)])
        if self.hasFocus():
            painter.setPen(QPen(QColor(look.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1.5, 1.5, -1.5, -1.5), 4, 4)

    def _on_clicked(self) -> None:
        self._menu.popup(self.mapToGlobal(self.rect().topLeft()) - QPoint(0, self._menu.sizeHint().height()))

    def _on_triggered(self, action: QAction) -> None:
        self.preset_chosen.emit(action.data())
