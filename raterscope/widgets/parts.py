"""Common parts of panels and dialogs: labels, choices, headers, menus."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PySide6.QtCore import QEvent, QLocale, QObject, QSignalBlocker, QSize, Qt, Signal
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
    QAbstractButton,
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QTabWidget,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from raterscope.text import MINUS, unbroken
from raterscope.widgets import theme

ARROWS = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
"""Steps of the arrow keys: to the right, and down."""


def plain_label(text: str = "", role: str = "", *, wrap: bool = False, selectable: bool = False) -> QLabel:
    """Create a label that shows its text unformatted, because it may be untrusted."""
    label = WrappedLabel(text) if wrap else QLabel(textFormat=Qt.TextFormat.PlainText, text=text)
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


class WrappedLabel(QLabel):
    """Plain text on several lines; numbers stay with their units."""

    def __init__(self, text: str = "") -> None:
        super().__init__(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Set the text."""
        super().setText(unbroken(text))

    def text(self) -> str:
        """Return the text without its no-break spaces."""
        return super().text().replace("\N{NO-BREAK SPACE}", " ")


class Placeholder(WrappedLabel):
    """Text of an empty view, at its top; or the state, while its contents are read."""

    def __init__(self, text: str = "") -> None:
        self._text, self._state = text, ""
        super().__init__(text)
        theme.set_role(self, "second")
        self.setAlignment(Qt.AlignmentFlag.AlignTop)

    def setText(self, text: str) -> None:
        """Set the text; an empty one also hides the state."""
        self._text = text
        super().setText(text and (self._state or text))

    def show_state(self, state: str) -> None:
        """Show a state instead of the text; an empty state restores the text."""
        self._state = state
        self.setText(self._text)


def plain_tip(text: str) -> str:
    """Escape a tooltip, because Qt would interpret markup in it."""
    return f"<qt>{html.escape(text)}</qt>" if text else ""


class ElidedLabel(QLabel):
    """Line of plain text that is elided, with the full text as tooltip."""

    def __init__(
        self,
        text: str = "",
        role: str = "",
        *,
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        may_shrink: bool = True,
    ) -> None:
        """Create a label; unless `gives_way`, it is narrower than its text only if necessary."""
        super().__init__()
        self._elide, self._may_shrink = elide, may_shrink
        self.setTextFormat(Qt.TextFormat.PlainText)
        if may_shrink:
            self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if role:
            theme.set_role(self, role)
        self.setText(text)

    def minimumSizeHint(self) -> QSize:
        """Return a minimum width: any, or that of the text."""
        return QSize(0, super().minimumSizeHint().height()) if self._may_shrink else self.sizeHint()

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


class ScrolledText(QScrollArea):
    """Paragraphs of plain text in full height; with less space, they scroll."""

    def __init__(self, name: str, role: str = "") -> None:
        super().__init__(widgetResizable=True)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)
        self.max_lines = 99
        self._label = plain_label("", role, wrap=True)
        self._label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._page = QWidget()
        theme.set_role(self._page, "panel")
        layout = QVBoxLayout(self._page)
        layout.setContentsMargins(0, 0, 12, 0)
        layout.addWidget(self._label)
        self.setWidget(self._page)

    def text(self) -> str:
        """Return the text."""
        return self._label.text()

    def set_text(self, text: str) -> None:
        """Set the text, from its beginning."""
        self._label.setText(text)
        self.setAccessibleDescription(text)
        self.verticalScrollBar().setValue(0)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return the height of all paragraphs at the current width, at most that of `max_lines`."""
        most = self.max_lines * self._label.fontMetrics().lineSpacing()
        return QSize(0, min(self._page.heightForWidth(self.width()), most))

    def minimumSizeHint(self) -> QSize:
        """Return the height of two lines."""
        return QSize(0, min(2 * self._label.fontMetrics().lineSpacing(), self.sizeHint().height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Request a new height for a new width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()


class PaintedButton(QAbstractButton):
    """Button that paints itself; subclasses implement `_paint`."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the button."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        raise NotImplementedError


class FilterField(QLineEdit):
    """Filter field above a list; the signal `left` requests to move the focus to the list."""

    left = Signal()

    def event(self, event: QEvent) -> bool:
        """Handle Esc before the shortcuts of the window."""
        return keeps_key(event, Qt.Key.Key_Escape) or super().event(event)


def leave_keys_to(panel: QWidget, part: QWidget | None) -> None:
    """Pass the panel's focus to a part, or keep it while the part is hidden.

    Hidden widgets cannot have the focus: keys would be lost.
    """
    had = panel.hasFocus()
    panel.setFocusProxy(part)  # type: ignore[arg-type]  # None takes it away
    if had:
        panel.setFocus()


def let_wheel_pass(editor: QWidget) -> None:
    """Ignore the wheel on a choice or number without focus, so that scrolling over it does not change it."""
    editor.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    editor.installEventFilter(_Passing(editor))


class _Passing(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        past = event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus()
        if past:
            event.ignore()
        return past


BESIDE_WORDS = 40
"""Width of margins and scroll bar of an open choice, in pixels."""


class NumberBox(QDoubleSpinBox):
    """Field for a number with a decimal point, as the window writes numbers; a decimal comma means the same.

    In the system's locale, the other of the two would be a separator of thousands: 0.65 would become 65.
    """

    def __init__(self, **properties: Any) -> None:
        super().__init__(**properties)
        self.setLocale(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))

    def validate(self, text: str, position: int) -> object:
        """Validate what is typed; a comma may still become a separator of thousands."""
        state: object
        state, _, position = super().validate(self._with_point(text), position)  # type: ignore[misc]
        return state, text, position

    def valueFromText(self, text: str) -> float:
        """Return the number."""
        return super().valueFromText(self._with_point(text))

    def _with_point(self, text: str) -> str:
        text = text.replace(MINUS, "-")
        if "." in text or text.count(",") != 1 or (self.isGroupSeparatorShown() and _THOUSANDS.search(text)):
            return text
        return text.replace(",", ".")


_THOUSANDS = re.compile(r",\d{3}(?!\d)")


class ChoiceBox(QComboBox):
    """Choice that adapts to the available width; tooltip and open list show elided texts in full.

    `name`: text for screen readers. `entries`: texts by key, or texts that are also keys. `letters`: minimum
    number of visible letters.
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
        """Choose an entry; the first one for an unknown key."""
        keys = [self.itemData(index) for index in range(self.count())]
        self.setCurrentIndex(keys.index(key) if key in keys else 0)

    def offer(self, *entries: Mapping[Any, str] | Iterable[str]) -> None:
        """Replace the entries without a signal; the choice is kept if its key still exists."""
        chosen = self.key
        with QSignalBlocker(self):
            self.clear()
            for some in entries:
                self.add(some)
            self.choose(chosen)

    def event(self, event: QEvent) -> bool:
        """Show elided text as tooltip, unless another tooltip is set."""
        if event.type() == QEvent.Type.ToolTip and not self.toolTip():
            assert isinstance(event, QHelpEvent)
            cut = self.fontMetrics().horizontalAdvance(self.currentText()) > self._room()
            QToolTip.showText(event.globalPos(), plain_tip(self.currentText()) if cut else "", self)
            return True
        return super().event(event)

    def showPopup(self) -> None:
        """Open the list, as wide as its texts, at most as the screen."""
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
"""Maximum share of a header's width for which its name has priority over everything else."""


class Header(QWidget):
    """Header of a panel: title in capitals, name, and a text at the right.

    In narrow panels the text at the right is dropped first, then the title is shortened or dropped, then the
    name is elided. A name wider than `NAME_SHARE` of the width is elided before all of these. A title that
    repeats that of its tab is hidden, and so is a header with nothing else.
    """

    def __init__(
        self, title: str, subtitle: str = "", parent: QWidget | None = None, *, brief: str = ""
    ) -> None:
        super().__init__(parent)
        self._titles = title, brief or title
        self._subtitles = subtitle, subtitle
        self._title = ElidedLabel(title.upper(), "caption", may_shrink=False)
        self._name = ElidedLabel("", "caption", elide=Qt.TextElideMode.ElideMiddle)
        self._subtitle = ElidedLabel(subtitle, "small")
        self._subtitle.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(0, 0, 0, 0)
        self.row.setSpacing(8)
        self.row.addWidget(self._title)
        self.row.addWidget(self._name, 1)
        self.row.addWidget(self._subtitle)

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
        bare = (
            repeats and not (self._name.text() or self._subtitle.text()) and beside.keys() <= {self._subtitle}
        )
        self.setMaximumHeight(0 if bare else WIDEST)
        # Otherwise the layout would shrink both.
        room = left + beside.get(self._subtitle, 0) - (wide[title] + self.row.spacing() if titled else 0)
        self._subtitle.setMaximumWidth(max(room, 0) if self._name.text() else WIDEST)
        full, brief = self._subtitles
        cut = self._name.text() and QFontMetrics(self._subtitle.font()).horizontalAdvance(full) > room
        if self._subtitle.text() != (subtitle := brief if cut else full):
            self._subtitle.setText(subtitle)

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

    def text(self) -> tuple[str, str]:
        """Return the title with the name, and the text at the right."""
        return " ".join(filter(None, (self._titles[0], self._name.text()))), self._subtitles[0]

    def set_subtitle(self, text: str, role: str = "small", *, brief: str = "") -> None:
        """Set the text at the right.

        `brief`: short form of the text for narrow panels.
        """
        if (text, brief or text) == self._subtitles and self._subtitle.property("role") == role:
            return
        self._subtitles = text, brief or text
        self._subtitle.setText(text)
        theme.set_role(self._subtitle, role)
        self._settle()


class Menu(QMenu):
    """Menu in which letters and digits select entries, before any shortcut of the focus widget.

    The focus widget keeps the keyboard while a menu is open, and its shortcuts would come first: A would
    accept the current spot.
    """

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
    """Keep a key for the focus widget if it may be a shortcut of the window; return whether it was kept."""
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
