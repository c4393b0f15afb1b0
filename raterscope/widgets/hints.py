"""Help on keys, switches over an image, empty states, notes, highlight of dragged files, and the tour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, Margins, Stretch, WrappingRow, horizontal, stacked, vertical
from raterscope.widgets.parts import Header, Menu, PaintedButton, Placeholder, plain_label, plain_tip
from raterscope.widgets.theme import enlarge, pixels, set_lengths

HEIGHT = 28
"""Height of a chip, in unscaled pixels."""


def paint_chip_ground(painter: QPainter, box: QRectF) -> None:
    """Paint the background of a chip: dark in both themes, like the image's background."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour(theme.DARK.surface, 225))
    painter.drawRoundedRect(box, 5, 5)


class Chip(PaintedButton):
    """Switch with a dot that is lit while it is on."""

    def __init__(self, word: str, tip: str) -> None:
        super().__init__()
        self.setText(word)
        self.setCheckable(True)
        self.setToolTip(tip)
        self.setAccessibleName(f"Show {word}")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        """Return the size of dot and text."""
        words = QFontMetrics(theme.font()).horizontalAdvance(self.text())
        return QSize(pixels(words + 32), pixels(HEIGHT))

    def _paint(self, painter: QPainter) -> None:
        palette, box = theme.DARK, enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QPointF(14, box.height() / 2)
        if self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(palette.accent))
        else:
            painter.setPen(QPen(QColor(palette.third), 1.2))
        painter.drawEllipse(centre, 4, 4)
        painter.setPen(QColor(palette.text if self.isChecked() else palette.second))
        painter.setFont(theme.font())
        room = box.adjusted(24, 0, 0, 0)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        if self.hasFocus():
            painter.setPen(QPen(QColor(palette.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(2.5, 2.5, -2.5, -2.5), 4, 4)


class ChipRow(WrappingRow):
    """Row of switches on one background."""

    toggled = Signal(str, bool)

    def __init__(self, chips: dict[str, tuple[str, str]], parent: QWidget | None = None) -> None:
        """Create a switch for every ``name: (word, tooltip)``."""
        self._chips = {name: Chip(word, tip) for name, (word, tip) in chips.items()}
        super().__init__(tuple(self._chips.values()), 0, 0, parent=parent)
        for name, chip in self._chips.items():
            chip.setObjectName(name)
            chip.toggled.connect(self._on_toggled)

    def fit(self, room: int) -> None:
        """Fit into a width, with more lines if needed."""
        width = min(self.sizeHint().width(), room)
        self.resize(width, self.heightForWidth(width))

    def set_on(self, name: str, on: bool) -> None:
        """Set one switch without a signal."""
        chip = self._chips[name]
        blocked = chip.blockSignals(True)
        chip.setChecked(on)
        chip.blockSignals(blocked)
        chip.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the background."""
        with QPainter(self) as painter:
            paint_chip_ground(painter, QRectF(self.rect()))

    def _on_toggled(self, on: bool) -> None:
        self.toggled.emit(self.sender().objectName(), on)


class MenuChip(PaintedButton):
    """Chip that shows a choice; a press opens the alternatives.

    `noun`: noun of the choice, for screen readers. `above`: open the choices above the chip.
    """

    chosen = Signal(str)  # name of the choice

    def __init__(self, noun: str, tip: str, parent: QWidget | None = None, *, above: bool = False) -> None:
        super().__init__(parent)
        self._noun, self._above = noun, above
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(noun)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(plain_tip(tip))
        self.menu = Menu(self)
        self.menu.triggered.connect(self._on_triggered)
        self.clicked.connect(self._on_clicked)

    def set_choices(self, choices: Sequence[tuple[str, str]]) -> None:
        """Offer choices of ``(name, words)``."""
        self.menu.clear()
        for name, text in choices:
            self.menu.addAction(text.replace("&", "&&")).setData(name)
        self.update()

    def set_text(self, text: str) -> None:
        """Show the choice."""
        self.setText(text)
        self.setAccessibleName(f"{self._noun} {text}")
        self.adjustSize()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of the text."""
        words = QFontMetrics(theme.font()).horizontalAdvance(self.text())
        return QSize(pixels(words + 34), pixels(HEIGHT))

    def _paint(self, painter: QPainter) -> None:
        palette, box = theme.DARK, enlarge(painter, self.rect())
        paint_chip_ground(painter, box)
        painter.setPen(QColor(palette.text))
        painter.setFont(theme.font())
        room = box.adjusted(10, 0, -22, 0)
        metrics, middle = QFontMetrics(painter.font()), Qt.TextElideMode.ElideMiddle
        text = metrics.elidedText(self.text(), middle, round(room.width()) + 1)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        if not self.menu.isEmpty():
            painter.setPen(QPen(QColor(palette.second), 1.4))
            x, y = box.width() - 14.0, box.height() / 2 + 1.5
            painter.drawPolyline([QPointF(x - 4, y - 4), QPointF(x, y), QPointF(x + 4, y - 4)])
        if self.hasFocus():
            painter.setPen(QPen(QColor(palette.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1.5, 1.5, -1.5, -1.5), 4, 4)

    def _on_clicked(self) -> None:
        if self.menu.isEmpty():
            return
        corner = self.rect().topLeft() if self._above else self.rect().bottomLeft()
        raised = QPoint(0, self.menu.sizeHint().height()) if self._above else QPoint()
        self.menu.popup(self.mapToGlobal(corner) - raised)

    def _on_triggered(self, action: QAction) -> None:
        self.chosen.emit(action.data())


WIDTH = 460


class TitledPage(QWidget):
    """A view with its title above it; a sentence replaces it while there is nothing to show."""

    def __init__(
        self,
        header: Header,
        view: QWidget,
        nothing: str,
        *,
        margins: Margins = (12, 8, 12, 8),
        spacing: int = 4,
    ) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.header = header
        self._belongs = nothing
        self._nothing = Placeholder(nothing)
        self._pages = stacked(self._nothing, view)
        vertical(header, (self._pages, 1), inside=self, margins=margins, spacing=spacing)

    def set_filled(self, filled: bool) -> None:
        """Show the view, or the sentence of the empty page."""
        self._pages.setCurrentIndex(int(filled))

    def set_nothing(self, reason: str = "") -> None:
        """Set the reason why nothing is shown; by default the sentence of the empty page."""
        self._nothing.setText(reason or self._belongs)

    @property
    def filled(self) -> bool:
        """True if the view is shown."""
        return self._pages.currentIndex() == 1


class EmptyState(QWidget):
    """Empty state: a title, a sentence, and buttons, the primary one first.

    `actions`: button texts and their callbacks.
    """

    def __init__(
        self, title: str, sentence: str, actions: Sequence[tuple[str, Callable[[], object]]] = ()
    ) -> None:
        super().__init__()
        self.setAccessibleName(title)
        heading = plain_label(title, "title")
        words = plain_label(sentence, "second", wrap=True)
        for label in (heading, words):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        buttons = horizontal(STRETCH, spacing=8)
        self.buttons: list[QPushButton] = []
        for word, action in actions:
            button = QPushButton(word, autoDefault=True)  # Return presses it, as in a dialog
            button.clicked.connect(action)
            if not self.buttons:
                theme.set_role(button, "primary")
            self.buttons.append(button)
            buttons.addWidget(button)
        if self.buttons:
            self.setFocusProxy(self.buttons[0])
        buttons.addStretch(1)
        block = QWidget()
        set_lengths(block, maximumWidth=WIDTH)
        vertical(Stretch(2), heading, words, 4, buttons, Stretch(3), inside=block, margins=None, spacing=12)
        horizontal(STRETCH, (block, 100), STRETCH, inside=self, margins=None, spacing=None)


class WorkspaceNotes(QWidget):
    """Notes above a workspace: a short tag and a sentence each. They cannot be dismissed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("workspaceNotes")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 4, 12, 4)
        self._column.setSpacing(4)
        self._lines: dict[str, tuple[QWidget, QLabel]] = {}
        self.hide()

    def set_note(self, tag: str, text: str) -> None:
        """Set the note of a tag; an empty text removes it."""
        if tag not in self._lines:
            if not text:
                return
            self._lines[tag] = self._line(tag)
        line, label = self._lines[tag]
        label.setText(text)
        line.setVisible(bool(text))
        line.setAccessibleName(f"{tag}: {text}" if text else "")
        self.setVisible(bool(self.notes()))

    def notes(self) -> dict[str, str]:
        """Return the notes by tag."""
        return {tag: label.text() for tag, (_, label) in self._lines.items() if label.text()}

    def _line(self, tag: str) -> tuple[QWidget, QLabel]:
        line = QWidget()
        name, words = plain_label(tag), plain_label("", wrap=True, selectable=True)
        name.setObjectName("workspaceTag")
        horizontal((name, 0, Qt.AlignmentFlag.AlignTop), (words, 1), inside=line, spacing=8)
        self._column.addWidget(line)
        return line, words


@dataclass(frozen=True, slots=True)
class KeyHelp:
    """Keys of one widget or menu, given by its class attribute ``KEY_HELP``."""

    where: str  # scope: "On the image"
    keys: tuple[tuple[str, str], ...]  # key caps and their actions


def key_help_in(parent: QWidget) -> tuple[KeyHelp, ...]:
    """List the key help of all widgets and menus in a parent, each class once, in layout order."""
    key_helps = dict.fromkeys(
        key_help
        for part in (parent, *parent.findChildren(QObject))
        if isinstance(key_help := getattr(part, "KEY_HELP", None), KeyHelp)
    )
    return tuple(key_helps)


GAP = 8
MIN_CHARACTERS = 6  # a shorter rest of a word is not informative


def paint_key(painter: QPainter, box: QRectF, key: str, *, enabled: bool = True, lit: bool = False) -> None:
    """Paint one key cap."""
    palette = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(palette.accent if lit else palette.line), 1))
    painter.setBrush(QColor(palette.raised))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
    painter.setPen(QColor(palette.text if enabled else palette.third))
    painter.setFont(_key_font(key))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, key)


def cap_width(key: str) -> int:
    """Return the width of a key cap, in unscaled pixels."""
    return max(26, QFontMetrics(_key_font(key)).horizontalAdvance(key) + 14)


class KeyButton(PaintedButton):
    """Button with a key cap and a word.

    The key is only drawn; the window binds it, so that it works wherever the focus is. While the button is
    checked, key and word are highlighted.

    `key`: key cap: "A", "Ctrl+Z". `word`: action: "accept". `tone`: colour of the word: "accent", "rejected"
    or "second". `tip`: effect, in a sentence.
    """

    def __init__(
        self, key: str, word: str, tone: str = "second", tip: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._key, self._word, self._tone, self._tip = key, word, tone, tip
        self.usual_key = key
        """Default key."""
        self.setText(word)
        self.setAccessibleName(f"{word} ({key})")
        self.set_tip(tip)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def set_tip(self, tip: str) -> None:
        """Set the tooltip, as plain text."""
        self._tip = tip
        self.setToolTip(plain_tip(f"{tip} ({self._key})" if tip else ""))

    def set_key(self, key: str) -> None:
        """Show another key on the button."""
        if key != self._key:
            self._key = key
            self.set_word(self._word, self._tone, self._tip)

    def set_word(self, word: str, tone: str, tip: str) -> None:
        """Set the word of the action."""
        self._word, self._tone = word, tone
        self.setText(word)
        self.setAccessibleName(f"{word} ({self._key})")
        self.set_tip(tip)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of key and word."""
        words = QFontMetrics(theme.font()).horizontalAdvance(self._word)
        return QSize(pixels(cap_width(self._key) + GAP + words + 4), pixels(28))

    def minimumSizeHint(self) -> QSize:
        """Return the full size, so that the button is never cut off."""
        return self.sizeHint()

    def changeEvent(self, event: QEvent) -> None:
        """Repaint when enabled or disabled."""
        super().changeEvent(event)
        self.update()

    def _paint(self, painter: QPainter) -> None:
        width, box = cap_width(self._key), enlarge(painter, self.rect())
        lit = self.hasFocus() or self.underMouse() or self.isDown() or self.isChecked()
        paint_key(painter, QRectF(0, (box.height() - 26) / 2, width, 26), self._key,
                  enabled=self.isEnabled(), lit=lit and self.isEnabled())  # fmt: skip
        palette = theme.current()
        tones = {"accent": palette.accent, "rejected": palette.rejected, "second": palette.second}
        tone = palette.accent if self.isChecked() else tones[self._tone]
        painter.setPen(QColor(tone if self.isEnabled() else palette.third))
        painter.setFont(theme.font())
        room = box.adjusted(width + GAP, 0, 0, 0)
        short = QFontMetrics(theme.font()).elidedText(
            self._word, Qt.TextElideMode.ElideRight, int(room.width())
        )
        if short == self._word or len(short) >= MIN_CHARACTERS:
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, short)


def key_grid(*keys: tuple[KeyButton, Any]) -> QGridLayout:
    """Arrange buttons in rows of three, and connect each with its signal or slot."""
    grid = QGridLayout()
    grid.setContentsMargins(12, 8, 8, 12)
    grid.setSpacing(4)
    for index, (button, slot) in enumerate(keys):
        button.clicked.connect(slot)
        grid.addWidget(button, index // 3, index % 3, Qt.AlignmentFlag.AlignLeft)
    for column in range(3):
        grid.setColumnStretch(column, 1)
    return grid


def _key_font(key: str) -> QFont:
    return theme.font(theme.BODY if len(key) == 1 else theme.CAPTION, bold=True)


class DropOverlay(QWidget):
    """Overlay of a window with a border and a sentence; it ignores events."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._text = ""
        self.hide()

    def show_text(self, text: str) -> None:
        """Show the overlay with a sentence."""
        self._text = text
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint border and sentence."""
        with QPainter(self) as painter:
            palette, box = theme.current(), enlarge(painter, self.rect())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(box, theme.colour(palette.window, 150))
            painter.setPen(QPen(QColor(palette.accent), 3))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(5, 5, -5, -5), 6, 6)
            painter.setFont(theme.font(theme.FIGURE, bold=True))
            width = painter.fontMetrics().horizontalAdvance(self._text) + 48
            words = QRectF(box.center().x() - width / 2, box.center().y() - 24, width, 48)
            painter.setBrush(QColor(palette.surface))
            painter.setPen(QPen(QColor(palette.accent), 1))
            painter.drawRoundedRect(words, 6, 6)
            painter.setPen(QColor(palette.text))
            painter.drawText(words, Qt.AlignmentFlag.AlignCenter, self._text)


_WIDTH, _GAP = 340, 12


_WORDS = (
    (
        "The queue",
        "What to review next, the most disputed first. Tab goes on to the next; what is decided sinks.",
    ),
    ("The annotations", "All annotations, as large as the window allows. The wheel zooms, a click selects."),
    (
        "The evidence",
        "The selected result with its probability and its votes, and the keys that decide. Ctrl+Z undoes.",
    ),
    ("History", "Every decision is saved as it is made. History lists all of them."),
    (
        "Fuse",
        "Press Fuse (F5) to combine all annotations again. Your decisions are kept. F1 explains the view, "
        "Ctrl+K finds every command.",
    ),
)


class Step(NamedTuple):
    """Step of the tour: a region and its purpose."""

    region: QWidget
    title: str
    text: str


class Tour(QWidget):
    """Overlay that darkens the window except one region; Enter continues, Esc leaves."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._steps: list[Step] = []
        self._at = 0
        self.box = QWidget(self)
        theme.set_role(self.box, "popover")
        self.box.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.title = plain_label("", "title")
        self.label = plain_label("", wrap=True)
        self.count = plain_label("", "second")
        self.leave_button, self.next_button = QPushButton("Leave"), QPushButton("Next")
        theme.set_role(self.next_button, "primary")
        self.leave_button.clicked.connect(self.leave)
        self.next_button.clicked.connect(self.go_on)
        buttons = horizontal(self.count, STRETCH, self.next_button, self.leave_button, spacing=8)
        vertical(self.title, self.label, buttons, inside=self.box, margins=(16, 12, 16, 12), spacing=8)
        self.hide()
        window.installEventFilter(self)

    def start(self, workspace: Any, bar: QWidget) -> None:
        """Begin with the queue of a workspace."""
        regions = (workspace.queue, workspace.canvas, workspace.evidence, workspace.left_tabs, bar)
        steps = [Step(region, *words) for region, words in zip(regions, _WORDS, strict=True)]
        self._steps = [step for step in steps if step.region.isVisible()]
        self._at = 0
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self._show_step()

    def go_on(self) -> None:
        """Show the next region, or leave after the last."""
        self._at += 1
        if self._at < len(self._steps):
            self._show_step()
        else:
            self.leave()

    def leave(self) -> None:
        """End the tour."""
        self.hide()
        if self._steps:
            self._steps[0].region.setFocus()
        self._steps = []

    def eventFilter(self, _window: QObject, event: QEvent) -> bool:
        """Follow the size of the window."""
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self.setGeometry(self._window.rect())
            self._place_box()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Continue with Enter, Space and Right; leave with Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Right, Qt.Key.Key_Space):
            self.go_on()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Darken everything except the region."""
        if not self._steps:
            return
        with QPainter(self) as painter:
            palette, hole = theme.current(), QRectF(self._region())
            outside = QPainterPath()
            outside.addRect(QRectF(self.rect()))
            outside.addRect(hole)
            painter.fillPath(outside, theme.colour(theme.DARK.window, 150))
            painter.setPen(QPen(QColor(palette.accent), 2))
            painter.drawRect(hole.adjusted(1, 1, -1, -1))

    def _region(self) -> QRect:
        region = self._steps[self._at].region
        return QRect(region.mapTo(self._window, QPoint(0, 0)), region.size()).intersected(self.rect())

    def _show_step(self) -> None:
        step = self._steps[self._at]
        self.title.setText(step.title)
        self.label.setText(step.text)
        self.count.setText(f"{self._at + 1} of {len(self._steps)}")
        self.next_button.setText("Next" if self._at + 1 < len(self._steps) else "Done")
        self.setAccessibleName(f"{step.title}. {step.text}")
        self._place_box()
        self.setFocus()
        self.update()

    def _place_box(self) -> None:
        """Place the text beside the region: to its right, left, below or above, or within it."""
        width = min(pixels(_WIDTH), self.width())
        self.box.setFixedWidth(width)
        self.box.adjustSize()
        height, hole, gap = self.box.height(), self._region(), pixels(_GAP)
        corners = (
            (hole.right() + gap, hole.center().y() - height // 2),
            (hole.left() - gap - width, hole.center().y() - height // 2),
            (hole.center().x() - width // 2, hole.bottom() + gap),
            (hole.center().x() - width // 2, hole.top() - gap - height),
        )
        fits = next(
            (
                (x, y)
                for x, y in corners
                if x >= 0 and y >= 0 and x + width <= self.width() and y + height <= self.height()
            ),
            (hole.center().x() - width // 2, hole.center().y() - height // 2),
        )
        self.box.move(*fits)
