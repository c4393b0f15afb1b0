"""Classes of a task with their probabilities: sorted, searched by typing, decided by click or key."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QWidget

from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyHelp, paint_key
from raterscope.widgets.layouts import vertical
from raterscope.widgets.names import SearchText
from raterscope.widgets.painting import paint_bar, paint_text
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import FilterField
from raterscope.widgets.theme import set_lengths

CAP, FIGURE_ROOM, VOTES_ROOM = 26.0, 40.0, 56.0
HIGH, LOW_BAR = 32, 23
"""Heights of a line, in pixels: with the bar below the name, and beside it."""
MIN_LINES = 2
"""Number of classes that are always visible."""
FEW = 3
"""Maximum number of classes with high lines."""
NAME_SHARE = 0.45
"""Share of a low line that the name takes."""
MIN_BAR = 40.0
"""Minimum width of a bar, and minimum width of a bar with the number of votes beside it."""
FOLDED, UNFOLDED = "▸", "▾"
MARKS = f"{FOLDED}{UNFOLDED} "
KEYED = 9
"""Maximum number of classes in the original order; more classes are sorted, the most probable first."""


@dataclass(frozen=True, slots=True)
class ClassBar:
    """One class of a task."""

    index: int  # index of the class, from 0
    name: str
    share: float  # its probability; NaN if unknown or hidden
    tone: str  # {"accent", "disputed", "plain"}: of the bar
    note: str = ""  # "decided", "truth" or nothing
    digit: str = ""  # key that decides for it; empty without one
    brief: str = ""  # short form of the name that differs from the others, for narrow places
    votes: int = -1  # number of votes for the class; negative if hidden


def summed_bar(bars: Sequence[ClassBar], index: int, name: str, note: str) -> ClassBar:
    """Return the bar for several classes together."""
    votes = -1 if bars[0].votes < 0 else sum(bar.votes for bar in bars)
    return ClassBar(index, name, float(sum(bar.share for bar in bars)), bars[0].tone, note, votes=votes)


def keys_of(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the digit that selects each class: its name if all names are digits, else 1 to 9 in order.

    Further classes have none; they are selected by a click or with Return.
    """
    if all(len(name) == 1 and name in "0123456789" for name in classes):
        return tuple(classes)
    return tuple(str(index) if index < 10 else "" for index in range(1, len(classes) + 1))


def has_many(classes: Sequence[str]) -> bool:
    """Return whether there are too many classes for digits in the original order."""
    return len(classes) > KEYED and keys_of(classes) != tuple(classes)


def listed_order(
    classes: Sequence[str], posterior: NDArray[np.floating] | None, votes: NDArray[np.integer] | None
) -> list[int]:
    """Return the order of classes in the list: the original one with at most nine classes.

    Otherwise the most probable classes come first, then those with most votes, then the others in the
    original order. `posterior`, `votes`: (J,), probabilities and numbers of votes; None if unknown or hidden.
    """
    number = np.arange(len(classes))
    if not has_many(classes):
        return list(range(len(classes)))
    counted = np.zeros(len(classes)) if votes is None else np.asarray(votes, dtype=float)
    probable = np.zeros(len(classes)) if posterior is None else np.asarray(posterior, dtype=float)
    order: list[int] = np.lexsort((number, -counted, -np.nan_to_num(probable))).tolist()
    return order


class ClassBars(LineList[ClassBar]):
    """Class probabilities as bars. A click on a line, or Return, decides for its class, or folds a node."""

    decided = Signal(int)  # index of the class
    folded = Signal(int)  # index of a node, below 0

    def __init__(self) -> None:
        self._kind = _BarKind()
        super().__init__(self._kind, "Classes, with their decision keys")
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.clicked.connect(self._on_clicked)

    def show_bars(self, bars: Sequence[ClassBar], *, low: bool = False, highlights: bool = False) -> None:
        """Show the classes of a task, optionally always in low lines, or with the current line marked."""
        self._kind.highlights = highlights
        metrics = QFontMetrics(theme.font())
        many = len(bars) > KEYED
        self._kind.longest = max((metrics.horizontalAdvance(bar.name) + 2.0 for bar in bars), default=0.0)
        self._kind.longest *= many
        self.set_height(HIGH if len(bars) <= FEW and not low else LOW_BAR)
        self.set_lines(bars)
        lines = min(max(len(bars), 1), MIN_LINES)
        set_lengths(self, minimumHeight=lines * self._kind.height + 2 * self.frameWidth())

    KEY_HELP = KeyHelp("In the classes of a task", (("Return", "decide for this class"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Decide for the current class with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._on_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _on_clicked(self, index: QModelIndex) -> None:
        line = self.lines[index.row()]
        (self.decided if line.index >= 0 else self.folded).emit(line.index)


class _BarKind(LineKind[ClassBar]):
    height = HIGH
    highlights = False
    """Whether the current line is marked even without the focus."""
    longest = 0.0
    """Width of the longest name, for which bars of many classes reserve space."""

    def key(self, line: ClassBar) -> Hashable:
        return line.index, line.name

    def text_of(self, line: ClassBar) -> str:
        share = f"{line.share:.2f}" if math.isfinite(line.share) else ""
        key = f"key {line.digit}" if line.digit else ""
        votes = counted(line.votes, "vote") if line.votes >= 0 else ""
        return ", ".join(part for part in (line.name, share, votes, line.note, key) if part)

    def tip(self, line: ClassBar) -> str:
        key = f" ({line.digit})" if line.digit else ""
        votes = f": {counted(line.votes, 'vote')}" if line.votes >= 0 else ""
        if line.index < 0:
            return f"Fold or unfold {line.name.strip(MARKS)}{votes}"
        return f"Decide for {line.name}{votes}{key}"

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        if state & QStyle.StateFlag.State_MouseOver or (
            state & QStyle.StateFlag.State_Selected
            and (state & QStyle.StateFlag.State_HasFocus or self.highlights)
        ):
            painter.fillRect(box, theme.colour(theme.current().raised, 160))

    def paint_line(self, painter: QPainter, box: QRectF, line: ClassBar) -> None:
        palette = theme.current()
        low = self.height == LOW_BAR
        if line.digit:
            size = min(CAP, box.height() - 3)
            cap = QRectF(box.left() + 2, box.center().y() - size / 2, CAP, size)
            paint_key(painter, cap, line.digit, lit=line.note == "decided")
        left, right = box.left() + CAP + 12, box.right() - 8
        painter.setFont(theme.font())
        known = math.isfinite(line.share)
        room = QRectF(right - FIGURE_ROOM, box.top(), FIGURE_ROOM, box.height())
        figure = f"{line.share:.2f}" if known else "–"
        paint_text(painter, room, figure, palette.text if known else palette.third,
                    side=Qt.AlignmentFlag.AlignRight)  # fmt: skip
        right -= FIGURE_ROOM + 8
        name = QRectF(left, box.top() + 3, right - left, 17)
        bar = QRectF(left, box.bottom() - 10, right - left, 5)
        if low:
            share = NAME_SHARE * (right - left)
            if line.votes > 0 and right - left - max(share, self.longest) - VOTES_ROOM >= MIN_BAR:
                painter.setFont(theme.font(theme.CAPTION))
                room = QRectF(right - VOTES_ROOM, box.top(), VOTES_ROOM, box.height())
                text = counted(line.votes, "vote")
                paint_text(painter, room, text, palette.second, side=Qt.AlignmentFlag.AlignRight)
                painter.setFont(theme.font())
                right -= VOTES_ROOM + 4
            share = max(NAME_SHARE * (right - left), min(self.longest, right - left - MIN_BAR))
            name = QRectF(left, box.top(), share, box.height())
            bar = QRectF(name.right() + 8, box.center().y() - 2.5, right - name.right() - 8, 5)
        if line.note:
            # Beside the name if both fit, otherwise at the end of the bar, because the name has priority.
            needed = painter.fontMetrics().horizontalAdvance(line.name) + 8
            painter.setFont(theme.font(theme.CAPTION))
            width = min(painter.fontMetrics().horizontalAdvance(line.note) + 4.0, bar.width())
            beside = not low and needed + width <= name.width()
            note = QRectF(right - width, name.top() if beside else bar.center().y() - 7, width, 14)
            if beside:
                note.setHeight(name.height())
                name.setRight(note.left() - 8)
            else:
                bar.setRight(note.left() - 4)
            paint_text(painter, note, line.note, palette.accent, side=Qt.AlignmentFlag.AlignRight)
            painter.setFont(theme.font())
        middle = Qt.TextElideMode.ElideMiddle
        paint_text(painter, name, line.name, palette.text, elide=middle, brief=line.brief)
        tones = {"accent": palette.accent, "disputed": palette.disputed, "plain": palette.third}
        if bar.width() > bar.height():
            paint_bar(painter, bar, line.share, tones[line.tone])


class ClassFinder(QWidget):
    """The classes of a task, with a field that filters them by typed text.

    Digits select the first nine lines; while the field is open, they are text.
    """

    decided = Signal(int)  # index of the class
    left = Signal()  # the field was closed

    def __init__(self) -> None:
        super().__init__()
        self.bars = ClassBars()
        self.field = _FindField()
        self.field.setPlaceholderText("Class name; Return decides for the first match")
        self.field.setAccessibleName("Find a class")
        self.field.hide()
        self._bars: tuple[ClassBar, ...] = ()
        self._lines: tuple[ClassBar, ...] = ()
        self._findable: tuple[ClassBar, ...] = ()
        """Classes and their parents."""
        self._folded: list[str] = []
        self._low = False
        vertical(self.field, (self.bars, 1), inside=self, spacing=4)
        self.setFocusProxy(self.bars)
        self.bars.decided.connect(self._on_decided)
        self.field.textChanged.connect(self._show)
        self.field.entered.connect(self._on_entered)
        self.field.moved.connect(self._on_moved)
        self.field.left.connect(self.close_field)

    @property
    def finding(self) -> bool:
        """Whether the field is open."""
        return not self.field.isHidden()

    def show_bars(
        self,
        bars: Sequence[ClassBar],
        *,
        low: bool = False,
        lines: Sequence[ClassBar] = (),
        parents: Sequence[ClassBar] = (),
    ) -> None:
        """Show the classes in this order, or those that match the open field; for a tree, show its lines.

        `parents`: parent classes, listed after the classes only while the field is open.
        """
        self._bars, self._low, self._lines = tuple(bars), low, tuple(lines)
        self._findable = (*bars, *parents)
        self._folded = [bar.name.casefold() for bar in self._findable]
        self._show()

    def class_of(self, digit: str) -> int | None:
        """Return the index of the class that a digit selects; None if there is none."""
        return next((bar.index for bar in self._lines or self._bars if bar.digit == digit), None)

    def open_field(self) -> None:
        """Open the field, to type a part of a class's name."""
        self.field.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._show()

    def close_field(self) -> None:
        """Show all classes again."""
        if not self.finding:
            return
        had_focus = self.field.hasFocus()
        self.field.hide()
        self.field.clear()
        self._show()
        if had_focus:
            self.left.emit()

    def _show(self) -> None:
        bars = self._lines or self._bars
        if self.finding:
            bars = tuple(replace(self._findable[row], digit="") for row in self._matches())
        self.bars.show_bars(bars, low=self._low or self.finding, highlights=self.finding)
        if self.finding:
            self.bars.setCurrentIndex(self.bars.index_of_row(0))

    def _matches(self) -> list[int]:
        """Return the matching rows: exact names first, then by kind of match, then as listed."""
        text = self.field.text().strip().casefold()
        typed = SearchText(text)
        matches = []
        for row, name in enumerate(self._folded):
            fit = typed.fit(name)
            if fit is not None:
                matches.append((name != text, fit[0], row))
        return [row for _, _, row in sorted(matches)] if text else list(range(len(self._folded)))

    def _on_moved(self, step: int) -> None:
        row = min(max(self.bars.currentIndex().row() + step, 0), len(self.bars.lines) - 1)
        self.bars.setCurrentIndex(self.bars.index_of_row(row))

    def _on_entered(self) -> None:
        row = self.bars.currentIndex().row()
        if self.field.text().strip() and 0 <= row < len(self.bars.lines):
            self._on_decided(self.bars.lines[row].index)

    def _on_decided(self, index: int) -> None:
        self.close_field()
        self.decided.emit(index)


class _FindField(FilterField):
    """Field that passes Return, Esc, Up and Down to the list below it."""

    entered = Signal()
    moved = Signal(int)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif key == Qt.Key.Key_Escape:
            self.left.emit()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.moved.emit(1 if key == Qt.Key.Key_Down else -1)
        else:
            super().keyPressEvent(event)
