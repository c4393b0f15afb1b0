"""What becomes too large for its room with larger text is scrolled."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.text_size import text_size

__all__ = ["Scrolled"]


class Scrolled(QScrollArea):
    """Holds a region of the window: it asks for the room that its widget needs with text of the usual size.

    With such text nothing is scrolled: in a small window the widget makes do with what there is.

    Parameters
    ----------
    inner : QWidget
    """

    def __init__(self, inner: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._inner = inner
        self._holder = QWidget()
        column = QVBoxLayout(self._holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(inner)
        self.setWidget(self._holder)
        theme.notifier().changed.connect(self._on_look)
        self._on_look()

    def minimumSizeHint(self) -> QSize:
        """Ask for what the widget needs with text of the usual size."""
        inner, hint = self._inner, self._inner.minimumSizeHint()
        # As for Qt, what was asked for holds rather than what the parts add up to.
        wide, high = inner.minimumWidth() or hint.width(), inner.minimumHeight() or hint.height()
        larger = max(text_size(), 1.0)
        return QSize(round(wide / larger), round(high / larger))

    def sizeHint(self) -> QSize:
        """Be as large as the widget would."""
        return self._inner.sizeHint()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ask for other room when the widget does."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._holder:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def _on_look(self) -> None:
        larger = text_size() > 1.0
        least = 0 if larger else 1  # a least size of 0 is for Qt what the parts add up to
        self._holder.setMinimumSize(least, least)
        bars = Qt.ScrollBarPolicy.ScrollBarAsNeeded if larger else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setHorizontalScrollBarPolicy(bars)
        self.setVerticalScrollBarPolicy(bars)
