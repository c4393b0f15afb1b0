"""What becomes too large for its room with larger text is scrolled."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

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
        self._held = _Held(inner, self.viewport())
        self.setWidget(self._held)
        theme.notifier().changed.connect(self._held.follow)

    def minimumSizeHint(self) -> QSize:
        """Ask for what the widget needs with text of the usual size."""
        least, larger = self._held.least(), max(text_size(), 1.0)
        return QSize(round(least.width() / larger), round(least.height() / larger))

    def sizeHint(self) -> QSize:
        """Be as large as the widget would."""
        return self._held.inner.sizeHint()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ask for other room when the widget does."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._held:
            self.updateGeometry()
        return super().eventFilter(watched, event)


class _Held(QWidget):
    """A widget that is as large as there is room; with larger text, as large as it has to be."""

    def __init__(self, inner: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.inner = inner
        inner.setParent(self)
        self.follow()

    def least(self) -> QSize:
        """Give what the widget needs."""
        asked, hint = self.inner.minimumSize(), self.inner.minimumSizeHint()
        # As for Qt, what was asked for holds rather than what the parts add up to.
        return QSize(asked.width() or hint.width(), asked.height() or hint.height())

    def follow(self) -> None:
        """Follow the size of the text."""
        policy = self.sizePolicy()
        policy.setHeightForWidth(text_size() > 1.0 and self.inner.hasHeightForWidth())
        self.setSizePolicy(policy)
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """Need no room but with larger text."""
        return self.least() if text_size() > 1.0 else QSize(0, 0)

    def sizeHint(self) -> QSize:
        """Be as large as the widget would."""
        return self.inner.sizeHint()

    def heightForWidth(self, width: int) -> int:
        """Be as high as the widget has to be."""
        return self.inner.heightForWidth(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give all the room to the widget."""
        super().resizeEvent(event)
        self.inner.setGeometry(self.rect())

    def event(self, event: QEvent) -> bool:
        """Ask anew for room when the widget does."""
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().event(event)
