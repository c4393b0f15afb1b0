"""Rows, columns, stacks, scrolling regions and wrapping rows of widgets; contents made when shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.theme import text_size


@dataclass(frozen=True)
class Stretch:
    """Empty space that grows by a factor."""

    factor: int = 1


STRETCH = Stretch()

Part = (
    QWidget | QLayout | int | Stretch | tuple[QWidget | QLayout, int] | tuple[QWidget, int, Qt.AlignmentFlag]
)
"""A widget or layout, alone or with stretch and alignment; pixels of empty space; or a stretch."""
Margins = tuple[int, int, int, int]
NONE: Margins = (0, 0, 0, 0)


def vertical(
    *parts: Part, inside: QWidget | None = None, margins: Margins | None = NONE, spacing: int | None = 0
) -> QVBoxLayout:
    """Put parts below each other, in a widget if there is one; None for margins or spacing: the style's."""
    layout = QVBoxLayout() if inside is None else QVBoxLayout(inside)
    _fill(layout, parts, margins, spacing)
    return layout


def horizontal(
    *parts: Part, inside: QWidget | None = None, margins: Margins | None = NONE, spacing: int | None = 0
) -> QHBoxLayout:
    """Put parts beside each other, in a widget if there is one; None for margins or spacing: the style's."""
    layout = QHBoxLayout() if inside is None else QHBoxLayout(inside)
    _fill(layout, parts, margins, spacing)
    return layout


def stacked(*pages: QWidget) -> QStackedWidget:
    """Put pages behind each other; the first is shown."""
    stack = QStackedWidget()
    for page in pages:
        stack.addWidget(page)
    return stack


def _fill(layout: QBoxLayout, parts: tuple[Part, ...], margins: Margins | None, spacing: int | None) -> None:
    if margins is not None:
        layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if isinstance(part, Stretch):
            layout.addStretch(part.factor)
        elif isinstance(part, int):
            layout.addSpacing(part)
        elif isinstance(part, QWidget):
            layout.addWidget(part)
        elif isinstance(part, QLayout):
            layout.addLayout(part)
        elif isinstance(part[0], QLayout):
            layout.addLayout(part[0], part[1])
        else:
            layout.addWidget(part[0], *part[1:])


class LateContent(QObject):
    """Fills a widget at once where it is visible, else when it is shown; only the last request counts.

    For contents that take long and change often, in a tab that is mostly hidden.
    """

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._fill: Callable[[], object] | None = None
        widget.installEventFilter(self)

    def request(self, fill: Callable[[], object]) -> None:
        """Call a function that fills the widget, in place of one that waits."""
        self._fill = fill
        if self._widget.isVisible():
            self._run()

    def cancel(self) -> None:
        """Forget the function that waits."""
        self._fill = None

    def eventFilter(self, _widget: QObject, event: QEvent) -> bool:
        """Fill the widget before its first picture."""
        if event.type() == QEvent.Type.Show:
            self._run()
        return False

    def _run(self) -> None:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill()


def rule() -> QFrame:
    """Create a separator line."""
    line = QFrame()
    theme.set_role(line, "rule")
    line.setFixedHeight(1)
    return line


def scroll_area(page: QWidget) -> QScrollArea:
    """Create a panel that scrolls a page down and fits its width.

    Fill the page afterwards: Qt styles at once what is in it, and again wherever the panel is put.
    """
    theme.set_role(page, "panel")
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(page)
    return area


class ScrollRegion(QScrollArea):
    """Scroll area that keeps its widget's size at the default text size; only larger text scrolls.

    `always`: whether it also scrolls at the default text size, where it is lower than its widget.
    """

    def __init__(self, inner: QWidget, parent: QWidget | None = None, *, always: bool = False) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._returned: set[tuple[bool, int, int]] = set()
        """Minimum sizes and size hints that layouts may have stored."""
        self._held = _Held(inner, self.viewport(), always)
        theme.set_role(self._held, "panel")
        self.setWidget(self._held)
        theme.notifier().changed.connect(self._held.follow)

    def minimumSizeHint(self) -> QSize:
        """Return the widget's minimum at the default text size."""
        hint, larger = self._held.least(), text_size()
        if larger > 1.0:
            hint = QSize(round(hint.width() / larger), round(hint.height() / larger))
        self._returned.add((False, hint.width(), hint.height()))
        return hint

    def sizeHint(self) -> QSize:
        """Return the widget's size hint."""
        hint = self._held.inner.sizeHint()
        self._returned.add((True, hint.width(), hint.height()))
        return hint

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the geometry when the widget's layout changes its size hints.

        To lay out the window after each change of a text would take longer than all else.
        """
        if event.type() == QEvent.Type.LayoutRequest and watched is self._held:
            self.minimumSizeHint()
            self.sizeHint()
            if len(self._returned) > 2:  # another hint than now was returned before
                self._returned.clear()
                self.updateGeometry()
        return super().eventFilter(watched, event)


class _Held(QWidget):
    """Container as large as the space, and with larger text as large as its widget needs."""

    def __init__(self, inner: QWidget, parent: QWidget, always: bool) -> None:
        super().__init__(parent)
        self.inner, self._always = inner, always
        inner.setParent(self)
        self.follow()

    def least(self) -> QSize:
        """Return the widget's minimum size."""
        request, hint = self.inner.minimumSize(), self.inner.minimumSizeHint()
        if request.isNull():
            return hint
        # As in Qt, an explicit size takes precedence over that of the parts.
        return QSize(request.width() or hint.width(), request.height() or hint.height())

    def follow(self) -> None:
        """Follow the text size."""
        policy = self.sizePolicy()
        policy.setHeightForWidth(text_size() > 1.0 and self.inner.hasHeightForWidth())
        self.setSizePolicy(policy)
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """Return a minimum for larger text; with usual text at most a height."""
        if text_size() > 1.0:
            return self.least()
        return QSize(0, self.least().height() if self._always else 0)

    def sizeHint(self) -> QSize:
        """Return the widget's size hint."""
        return self.inner.sizeHint()

    def heightForWidth(self, width: int) -> int:
        """Return the widget's height for a width."""
        return self.inner.heightForWidth(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the widget the whole space."""
        super().resizeEvent(event)
        self.inner.setGeometry(self.rect())

    def event(self, event: QEvent) -> bool:
        """Update the geometry when the widget's layout changes."""
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().event(event)


class TabPages(QTabWidget):
    """Tabs that are painted again only when they change, not whenever a layout in a page does."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._laid_out: tuple[QSize, bool, QSize] | None = None
        """Size hint of the tabs, whether they are hidden, and size of the whole when it was laid out."""

    def event(self, event: QEvent) -> bool:
        """Lay out tabs and pages if need be: Qt paints all of them for it."""
        if event.type() == QEvent.Type.LayoutRequest:
            bar = self.tabBar()
            needed = bar.sizeHint(), bar.isHidden(), self.size()
            if needed == self._laid_out:
                self.updateGeometry()
                return QWidget.event(self, event)
            self._laid_out = needed
        return super().event(event)


class WrappingRow(QWidget):
    """Layout row that wraps its widgets.

    `across`, `down`: spacing within and between lines, in pixels. `last_right`: whether the last widget is
    right-aligned.
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
    """Two widgets, side by side from a certain width on, else stacked.

    `side_by_side_from`: width in pixels for text of normal size. It does not depend on the texts, so that
    nothing jumps when they change. `across`, `down`: spacing in pixels.
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
        theme.notifier().changed.connect(self._arrange)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose the arrangement for the width."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        wide = self.width() >= self._from * text_size()
        direction = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        if direction != self._box.direction():
            self._box.setDirection(direction)
            self._box.setSpacing(self._across if wide else self._down)
            self.updateGeometry()


def beside(*widgets: QWidget) -> QWidget:
    """Put widgets into a row that does not wrap."""
    block = QWidget()
    horizontal(*widgets, inside=block, spacing=8)
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
        rects = self._places(width)
        return max((rect.bottom() + 1 for rect in rects), default=0)

    def sizeHint(self) -> QSize:
        visible = self._shown()
        width = sum(item.sizeHint().width() for item in visible) + self._across * max(len(visible) - 1, 0)
        return QSize(width, self.heightForWidth(width))

    def minimumSize(self) -> QSize:
        visible = [item.minimumSize() for item in self._shown()]
        return QSize(
            max((size.width() for size in visible), default=0),
            max((size.height() for size in visible), default=0),
        )

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, target in zip(self._shown(), self._places(rect.width()), strict=True):
            item.setGeometry(target.translated(rect.topLeft()))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _places(self, width: int) -> list[QRect]:
        rects: list[QRect] = []
        corner, tall = QPoint(0, 0), 0
        for item in self._shown():
            wide = min(item.sizeHint().width(), width)
            high = item.heightForWidth(wide) if item.hasHeightForWidth() else item.sizeHint().height()
            if corner.x() and corner.x() + wide > width:
                corner, tall = QPoint(0, corner.y() + tall + self._down), 0
            rects.append(QRect(corner, QSize(wide, high)))
            corner.setX(corner.x() + wide + self._across)
            tall = max(tall, high)
        if rects and self._last_right:
            rects[-1].moveRight(max(width - 1, rects[-1].right()))
        return rects
