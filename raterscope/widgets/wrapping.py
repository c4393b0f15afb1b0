"""Widgets side by side where there is room, and beneath each other where there is not."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QLayoutItem, QWidget

__all__ = ["Pair", "WrappingRow", "beside"]


class WrappingRow(QWidget):
    """Widgets from left to right, line after line.

    Parameters
    ----------
    widgets : sequence of QWidget
    across, down : int
        Room between them, and between lines, in pixels.
    last_right : bool
        Whether the last one stands at the right edge of its line.
    """

    def __init__(
        self,
        widgets: Sequence[QWidget],
        across: int,
        down: int,
        *,
        last_right: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        row = _Lines(self, across, down, last_right=last_right)
        for widget in widgets:
            row.addWidget(widget)


class Pair(QWidget):
    """Two widgets side by side from a width on, the second as wide as it can be; else the second beneath.

    Parameters
    ----------
    first, second : QWidget
    side_by_side_from : int
        Width in pixels; whether they would fit does not count, so that nothing jumps as their words change.
    across, down : int
        Room between them, in pixels.
    """

    def __init__(
        self,
        first: QWidget,
        second: QWidget,
        side_by_side_from: int,
        across: int,
        down: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._from, self._across, self._down = side_by_side_from, across, down
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(down)
        self._box.addWidget(first)
        self._box.addWidget(second, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose again how they stand."""
        super().resizeEvent(event)
        wide = self.width() >= self._from
        way = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        if way != self._box.direction():
            self._box.setDirection(way)
            self._box.setSpacing(self._across if wide else self._down)
            self.updateGeometry()


def beside(*widgets: QWidget) -> QWidget:
    """Put widgets into one that is not broken."""
    block = QWidget()
    row = QHBoxLayout(block)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(8)
    for widget in widgets:
        row.addWidget(widget)
    return block


class _Lines(QLayout):
    def __init__(self, parent: QWidget, across: int, down: int, *, last_right: bool) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._across, self._down, self._last_right = across, down, last_right
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        return max((place.bottom() + 1 for place in places), default=0)

    def sizeHint(self) -> QSize:
        shown = self._shown()
        width = sum(item.sizeHint().width() for item in shown) + self._across * max(len(shown) - 1, 0)
        return QSize(width, self.heightForWidth(width))

    def minimumSize(self) -> QSize:
        shown = [item.minimumSize() for item in self._shown()]
        return QSize(
            max((size.width() for size in shown), default=0),
            max((size.height() for size in shown), default=0),
        )

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._shown(), self._places(rect.width()), strict=True):
            item.setGeometry(place.translated(rect.topLeft()))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _places(self, width: int) -> list[QRect]:
        places: list[QRect] = []
        at, tall = QPoint(0, 0), 0
        for item in self._shown():
            wide = min(item.sizeHint().width(), width)
            high = item.heightForWidth(wide) if item.hasHeightForWidth() else item.sizeHint().height()
            if at.x() and at.x() + wide > width:
                at, tall = QPoint(0, at.y() + tall + self._down), 0
            places.append(QRect(at, QSize(wide, high)))
            at.setX(at.x() + wide + self._across)
            tall = max(tall, high)
        if places and self._last_right:
            places[-1].moveRight(max(width - 1, places[-1].right()))
        return places
