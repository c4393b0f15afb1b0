"""Rows, columns, stacks, scroll areas and wrapping rows of widgets; contents filled when shown."""

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
    """Place parts below each other, in `widget` if given; margins and spacing of None are the style's."""
    layout = QVBoxLayout() if inside is None else QVBoxLayout(inside)
    _fill(layout, parts, margins, spacing)
    return layout


def horizontal(
    *parts: Part, inside: QWidget | None = None, margins: Margins | None = NONE, spacing: int | None = 0
) -> QHBoxLayout:
    """Place parts beside each other, in `widget` if given; margins and spacing of None are the style's."""
    layout = QHBoxLayout() if inside is None else QHBoxLayout(inside)
    _fill(layout, parts, margins, spacing)
    return layout


def stacked(*pages: QWidget) -> QStackedWidget:
    """Stack pages; the first is shown."""
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


class DeferredContent(QObject):
    """Filling of a widget, at once if it is visible, otherwise when shown; only the last request counts.

    For slow contents that change often, in a tab that is mostly hidden.
    """

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._fill: Callable[[], object] | None = None
        widget.installEventFilter(self)

    def request(self, fill: Callable[[], object]) -> None:
        """Call a function that fills the widget; it replaces a waiting one."""
        self._fill = fill
        if self._widget.isVisible():
            self._run()

    def cancel(self) -> None:
        """Drop the waiting function."""
        self._fill = None

    def eventFilter(self, _widget: QObject, event: QEvent) -> bool:
        """Fill the widget before it is first painted."""
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

    Fill the page afterwards, because Qt styles its contents at once, and again when the panel is moved.
    """
    theme.set_role(page, "panel")
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(page)
    return area


class ScrollRegion(QScrollArea):
    """Scroll area that keeps its widget's size at normal text size; only larger text scrolls.

    `always`: whether it also scrolls at normal text size, if it is lower than its widget.
    """

    def __init__(self, inner: QWidget, parent: QWidget | None = None, *, always: bool = False) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._returned: set[tuple[bool, int, int]] = set()
        """Minimum sizes and size hints returned so far, which layouts may have stored."""
        self._held = _Held(inner, self.viewport(), always)
        theme.set_role(self._held, "panel")
        self.setWidget(self._held)
        theme.notifier().changed.connect(self._held.follow)

    def minimumSizeHint(self) -> QSize:
        """Return the widget's minimum size at normal text size."""
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

        Laying out the window after each change of a text would be too slow.
        """
        if event.type() == QEvent.Type.LayoutRequest and watched is self._held:
            self.minimumSizeHint()
            self.sizeHint()
            if len(self._returned) > 2:  # the returned hint has changed
                self._returned.clear()
                self.updateGeometry()
        return super().eventFilter(watched, event)


class _Held(QWidget):
    """Container that fills the available space, and with larger text grows as its widget needs."""

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
        # As in Qt, an explicit size has precedence over that of the parts.
        return QSize(request.width() or hint.width(), request.height() or hint.height())

    def follow(self) -> None:
        """Follow the text size."""
        policy = self.sizePolicy()
        policy.setHeightForWidth(text_size() > 1.0 and self.inner.hasHeightForWidth())
        self.setSizePolicy(policy)
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """Return a minimum size for larger text; with normal text only a height, if any."""
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
    """Tabs that are repainted only when they change, not whenever a layout in a page changes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._laid_out: tuple[QSize, bool, QSize] | None = None
        """Size hint of the tabs, whether they are hidden, and size of the widget at the last layout."""

    def event(self, event: QEvent) -> bool:
        """Lay out tabs and pages only if necessary, because Qt repaints all of them."""
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
    """Two widgets, side by side from a given width, otherwise one below the other.

    `side_by_side_from`: width in pixels at normal text size. It does not depend on the texts, so that nothing
    moves when they change. `across`, `down`: spacing in pixels.
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
    """Place widgets in a row that does not wrap."""
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
        rects = self._rectangles(width)
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
        for item, target in zip(self._shown(), self._rectangles(rect.width()), strict=True):
            item.setGeometry(target.translated(rect.topLeft()))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _rectangles(self, width: int) -> list[QRect]:
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
