"""Parts that panels share: labels, choices, headers, scrolling regions, wrapping rows, menus."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSignalBlocker, QSize, Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLayoutItem,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QTabWidget,
    QToolTip,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.theme import text_size

if TYPE_CHECKING:
    from raterscope.widgets.hints import KeyHelp


def plain_label(text: str = "", role: str = "", *, wrap: bool = False, selectable: bool = False) -> QLabel:
    """Create a label that shows its text unformatted, because it may be untrusted."""
    label = QLabel(textFormat=Qt.TextFormat.PlainText, text=text, wordWrap=wrap)
    if role:
        theme.set_role(label, role)
    if selectable:
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def announce(widget: QWidget, text: str, *, urgent: bool = False) -> None:
    """Let a screen reader speak a change that does not move the keyboard's focus.

    `urgent`: whether to interrupt current speech.
    """
    if text and QAccessible.isActive() and widget.isVisible():
        event = QAccessibleAnnouncementEvent(widget, text)
        if urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)


def placeholder(text: str = "") -> QLabel:
    """Create the text of an empty view, at its top."""
    label = plain_label(text, "second", wrap=True)
    label.setAlignment(Qt.AlignmentFlag.AlignTop)
    return label


def plain_tip(text: str) -> str:
    """Escape a tooltip: Qt would interpret markup in it."""
    return f"<qt>{html.escape(text)}</qt>" if text else ""


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


class ElidedLabel(QLabel):
    """Line of plain text that is elided, with the full text as tooltip."""

    def __init__(
        self,
        text: str = "",
        role: str = "",
        *,
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        gives_way: bool = True,
    ) -> None:
        """Create a label; one that does not give way is narrower than its text only where it must be."""
        super().__init__()
        self._elide, self._gives_way = elide, gives_way
        self.setTextFormat(Qt.TextFormat.PlainText)
        if gives_way:
            self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if role:
            theme.set_role(self, role)
        self.setText(text)

    def minimumSizeHint(self) -> QSize:
        """Allow any width if the label gives way."""
        return QSize(0, super().minimumSizeHint().height()) if self._gives_way else self.sizeHint()

    def setText(self, text: str) -> None:
        """Set the text."""
        super().setText(text)
        self._tip()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Set the tooltip if the text does not fit."""
        super().resizeEvent(event)
        self._tip()

    def _tip(self) -> None:
        text = self.text()
        fits = not text or self.fontMetrics().horizontalAdvance(text) <= self.width()
        tip = "" if fits else plain_tip(text)
        if self.toolTip() != tip:
            self.setToolTip(tip)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the elided text."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        painter.setPen(self.palette().color(self.foregroundRole()))
        metrics = QFontMetrics(self.font())
        text = metrics.elidedText(self.text().replace("\n", " "), self._elide, self.width())
        painter.drawText(self.rect(), int(self.alignment() | Qt.AlignmentFlag.AlignVCenter), text)


def leave_keys_to(panel: QWidget, part: QWidget | None) -> None:
    """Give a part the panel's focus, or the panel itself while the part is hidden.

    Hidden widgets cannot have the focus: keys would be lost.
    """
    had = panel.hasFocus()
    panel.setFocusProxy(part)  # type: ignore[arg-type]  # None takes it away
    if had:
        panel.setFocus()


def let_wheel_pass(editor: QWidget) -> None:
    """Ignore the wheel on a choice or number without focus, so that scrolling past does not change it."""
    editor.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    editor.installEventFilter(_Passing(editor))


class _Passing(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        past = event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus()
        if past:
            event.ignore()
        return past


BESIDE_WORDS = 40
"""Margins and scroll bar of an open choice."""


class ChoiceBox(QComboBox):
    """Choice no wider than its place; elided texts are shown in full as tooltip and in the open list.

    `name`: text for screen readers. `entries`: texts by key, or texts that are their own keys. `letters`:
    least number of letters that there is room for.
    """

    def __init__(
        self, name: str = "", entries: Mapping[Any, str] | Iterable[str] = (), *, letters: int = 12
    ) -> None:
        super().__init__(minimumContentsLength=letters)
        self.setAccessibleName(name)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        let_wheel_pass(self)
        self.add(entries)

    @property
    def key(self) -> Any:
        """Key of the chosen entry; None without entries."""
        return self.currentData()

    def add(self, entries: Mapping[Any, str] | Iterable[str]) -> None:
        """Add entries at the end."""
        texts = entries if isinstance(entries, Mapping) else {words: words for words in entries}
        for key, words in texts.items():
            self.addItem(words, key)

    def choose(self, key: Any) -> None:
        """Choose an entry; the first one if none has this key."""
        keys = [self.itemData(index) for index in range(self.count())]
        self.setCurrentIndex(keys.index(key) if key in keys else 0)

    def offer(self, *entries: Mapping[Any, str] | Iterable[str]) -> None:
        """Replace the entries without a signal; the chosen one stays chosen if its key is among them."""
        chosen = self.key
        with QSignalBlocker(self):
            self.clear()
            for some in entries:
                self.add(some)
            self.choose(chosen)

    def event(self, event: QEvent) -> bool:
        """Show elided text as tooltip, unless there is one."""
        if event.type() == QEvent.Type.ToolTip and not self.toolTip():
            assert isinstance(event, QHelpEvent)
            cut = self.fontMetrics().horizontalAdvance(self.currentText()) > self._room()
            QToolTip.showText(event.globalPos(), plain_tip(self.currentText()) if cut else "", self)
            return True
        return super().event(event)

    def showPopup(self) -> None:
        """Open the list, as wide as its texts or the screen."""
        room = self.screen().availableGeometry().width() * 2 // 3
        metrics = self.view().fontMetrics()
        widest = max(
            (metrics.horizontalAdvance(self.itemText(index)) for index in range(self.count())), default=0
        )
        self.view().setMinimumWidth(min(widest + BESIDE_WORDS, room))
        super().showPopup()

    def _room(self) -> int:
        """Return the width available for text."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        return self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self).width() - 4

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the choice, elided."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        end = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(option.currentText, end, self._room())
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()


WIDEST = (1 << 24) - 1
"""Qt's value for an unlimited width."""


NAME_SHARE = 0.6
"""Share of a header's width up to which its name is shown whole before anything else."""


class Header(QWidget):
    """Header of a panel: title in capitals, name, and a text at the right.

    In narrow panels the text at the right is dropped first, then the title is shortened or dropped, then the
    name is elided. A name that takes more than `NAME_SHARE` of the width is elided before all of these. A
    title that repeats that of its tab is hidden, and so is a header without anything else.
    """

    def __init__(
        self, title: str, aside: str = "", parent: QWidget | None = None, *, brief: str = ""
    ) -> None:
        super().__init__(parent)
        self._titles = title, brief or title
        self._asides = aside, aside
        self._title = ElidedLabel(title.upper(), "caption", gives_way=False)
        self._name = ElidedLabel("", "caption", elide=Qt.TextElideMode.ElideMiddle)
        self._aside = ElidedLabel(aside, "small")
        self._aside.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        self.row.setSpacing(8)
        self.row.addWidget(self._title)
        self.row.addWidget(self._name, 1)
        self.row.addWidget(self._aside)

    def set_title(self, title: str, name: str = "", *, brief: str = "") -> None:
        """Set title (shown in capitals) and name (shown as written).

        `brief`: short form of the title for narrow panels.
        """
        if (title, brief or title) == self._titles and name == self._name.text():
            return
        self._titles = title, brief or title
        self._name.setText(name)
        self._settle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten texts to the width."""
        super().resizeEvent(event)
        self._settle()

    def event(self, event: QEvent) -> bool:
        """Shorten texts when another widget of the row appears or disappears."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._settle()
        return super().event(event)

    def _settle(self) -> None:
        own = (self._name, self._title)
        beside = {
            widget: widget.minimumSizeHint().width() + self.row.spacing()
            for widget in self.children()
            if isinstance(widget, QWidget) and widget not in own and not widget.isHidden()
        }
        whole = QFontMetrics(self._name.font()).horizontalAdvance(self._name.text())
        name = min(whole, int(NAME_SHARE * self.width())) + self.row.spacing()
        metrics, left = QFontMetrics(self._title.font()), self.width() - sum(beside.values()) - name
        wide = {title: metrics.horizontalAdvance(title.upper()) for title in self._titles}
        fitting = [title for title in self._titles if wide[title] <= left]
        full, brief = self._titles
        if brief != full:
            self._title.setMinimumWidth(wide[brief])
        title = fitting[0] if fitting else brief
        self._title.setText(title.upper())
        repeats = self._repeats_tab()
        titled = not repeats and (bool(fitting) or not self._name.text())
        self._title.setVisible(titled)
        bare = repeats and not (self._name.text() or self._aside.text()) and beside.keys() <= {self._aside}
        self.setMaximumHeight(0 if bare else WIDEST)
        # Else the layout shares what is missing out among the two.
        room = left + beside.get(self._aside, 0) - (wide[title] + self.row.spacing() if titled else 0)
        self._aside.setMaximumWidth(max(room, 0) if self._name.text() else WIDEST)
        full, brief = self._asides
        cut = self._name.text() and QFontMetrics(self._aside.font()).horizontalAdvance(full) > room
        if self._aside.text() != (aside := brief if cut else full):
            self._aside.setText(aside)

    def _repeats_tab(self) -> bool:
        """Return whether the tab that contains the header has the same title."""
        page = self.parentWidget()
        while page is not None:
            stack = page.parentWidget()
            tabs = None if stack is None else stack.parentWidget()
            if isinstance(tabs, QTabWidget):
                return tabs.tabText(tabs.indexOf(page)).casefold() == self._titles[0].casefold()
            page = stack
        return False

    def words(self) -> tuple[str, str]:
        """Return the title with the name, and the text at the right."""
        return " ".join(filter(None, (self._titles[0], self._name.text()))), self._asides[0]

    def set_aside(self, text: str, role: str = "small", *, brief: str = "") -> None:
        """Set the text at the right.

        `brief`: short form of the text for narrow panels.
        """
        if (text, brief or text) == self._asides and self._aside.property("role") == role:
            return
        self._asides = text, brief or text
        self._aside.setText(text)
        theme.set_role(self._aside, role)
        self._settle()


class ScrollRegion(QScrollArea):
    """Scroll area that keeps its widget's size at the default text size; only larger text scrolls."""

    def __init__(self, inner: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._returned: set[tuple[bool, int, int]] = set()
        """Minimum sizes and size hints that layouts may have stored."""
        self._held = _Held(inner, self.viewport())
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

    def __init__(self, inner: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.inner = inner
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
        """Return a minimum only for larger text."""
        return self.least() if text_size() > 1.0 else QSize(0, 0)

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


class Menu(QMenu):
    """Menu whose letters and digits choose entries, before any shortcut of the focus widget.

    The focus widget keeps the keyboard while a menu is open, so its shortcuts would answer first: A would
    accept the current spot, and no entry could be chosen by its digit.
    """

    KEY_HELP: KeyHelp | None = None
    """Keys that open the menu or replace it."""

    def branch(self, title: str) -> Menu:
        """Add a submenu."""
        menu = Menu(title, self)
        self.addMenu(menu)
        return menu

    def event(self, event: QEvent) -> bool:
        """Handle every key as a menu key."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)


def keeps_key(event: QEvent, *keys: Qt.Key) -> bool:
    """Keep keys for the focus widget that may be shortcuts of the window; return whether it is one."""
    kept = (
        event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and event.key() in keys
    )
    if kept:
        event.accept()
    return kept


def without_checked(slot: Callable[[], object]) -> Callable[[bool], object]:
    """Adapt a slot without parameters to an action's ``triggered(checked)``."""

    def call(_checked: bool) -> object:
        return slot()

    return call
