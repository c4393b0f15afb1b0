"""The classes of a task with their probabilities as bars, each with the key that decides for it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QWidget

from raterscope.widgets import theme
from raterscope.widgets.key_cap import paint_key
from raterscope.widgets.own_keys import OwnKeys
from raterscope.widgets.painting import paint_bar, paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.text_size import set_lengths

__all__ = ["ClassBar", "ClassBars", "keys_of"]

CAP, FIGURE_ROOM = 26.0, 40.0
HIGH, LOW = 32, 23
"""Of a line: the bar beneath the name, or beside it."""
FEW = 3
"""So many classes have high lines."""
NAME_SHARE = 0.45
"""What a name takes of a low line."""


@dataclass(frozen=True, slots=True)
class ClassBar:
    """One class of a task.

    Attributes
    ----------
    place : int
        Which class, from 0.
    name : str
    share : float
        Its probability; NaN where it is not known or not to be seen.
    tone : {"accent", "disputed", "plain"}
        Of the bar.
    note : str
        "decided", "truth" or nothing.
    digit : str
        The key that decides for it; empty where there is none.
    brief : str
        What tells the name from the others, where there is no room for it.
    """

    place: int
    name: str
    share: float
    tone: str
    note: str = ""
    digit: str = ""
    brief: str = ""


def keys_of(classes: Sequence[str]) -> tuple[str, ...]:
    """Give the digit that decides for each class: its name where all are digits, else 1 to 9 in their order.

    Classes beyond the ninth have none, and are decided for by a click or with Return.
    """
    if all(len(name) == 1 and name in "0123456789" for name in classes):
        return tuple(classes)
    return tuple(str(place) if place < 10 else "" for place in range(1, len(classes) + 1))


class ClassBars(LineList[ClassBar]):
    """A click on a line, or Return, decides for its class.

    Signals
    -------
    decided : int
        Which class.
    """

    decided = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_BarKind(), "Classes, with their decision keys", parent)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.clicked.connect(self._on_clicked)

    def show_bars(self, bars: Sequence[ClassBar], *, low: bool = False) -> None:
        """Show the classes of a task, in low lines also where they are few."""
        self.set_height(HIGH if len(bars) <= FEW and not low else LOW)
        self.set_lines(bars)
        set_lengths(self, minimumHeight=HIGH + 2 * self.frameWidth())

    OWN_KEYS = OwnKeys("In the classes of a task", (("Return", "decide for this class"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Decide for the current class with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._on_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _on_clicked(self, index: QModelIndex) -> None:
        self.decided.emit(self.lines[index.row()].place)


class _BarKind(LineKind[ClassBar]):
    height = HIGH

    def key(self, line: ClassBar) -> Hashable:
        return line.place, line.name

    def words(self, line: ClassBar) -> str:
        share = f"{line.share:.2f}" if math.isfinite(line.share) else ""
        key = f"key {line.digit}" if line.digit else ""
        return ", ".join(part for part in (line.name, share, line.note, key) if part)

    def tip(self, line: ClassBar) -> str:
        key = f" ({line.digit})" if line.digit else ""
        return f"Decide for {line.name}{key}"

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        if state & QStyle.StateFlag.State_MouseOver or (
            state & QStyle.StateFlag.State_Selected and state & QStyle.StateFlag.State_HasFocus
        ):
            painter.fillRect(box, theme.colour(theme.current().raised, 160))

    def paint_line(self, painter: QPainter, box: QRectF, line: ClassBar) -> None:
        look = theme.current()
        low = self.height == LOW
        if line.digit:
            size = min(CAP, box.height() - 3)
            cap = QRectF(box.left() + 2, box.center().y() - size / 2, CAP, size)
            paint_key(painter, cap, line.digit, lit=line.note == "decided")
        left, right = box.left() + CAP + 12, box.right() - 8
        painter.setFont(theme.font())
        known = math.isfinite(line.share)
        room = QRectF(right - FIGURE_ROOM, box.top(), FIGURE_ROOM, box.height())
        figure = f"{line.share:.2f}" if known else "–"
        paint_words(painter, room, figure, look.text if known else look.third,
                    side=Qt.AlignmentFlag.AlignRight)  # fmt: skip
        right -= FIGURE_ROOM + 8
        name = QRectF(left, box.top() + 3, right - left, 17)
        bar = QRectF(left, box.bottom() - 10, right - left, 5)
        if low:
            name = QRectF(left, box.top(), NAME_SHARE * (right - left), box.height())
            bar = QRectF(name.right() + 8, box.center().y() - 2.5, right - name.right() - 8, 5)
        if line.note:
            # Beside the name where there is room for both, else at the end of the bar: the name comes first.
            wanted = painter.fontMetrics().horizontalAdvance(line.name) + 8
            painter.setFont(theme.font(theme.CAPTION))
            width = min(painter.fontMetrics().horizontalAdvance(line.note) + 4.0, bar.width())
            beside = not low and wanted + width <= name.width()
            note = QRectF(right - width, name.top() if beside else bar.center().y() - 7, width, 14)
            if beside:
                note.setHeight(name.height())
                name.setRight(note.left() - 8)
            else:
                bar.setRight(note.left() - 4)
            paint_words(painter, note, line.note, look.accent, side=Qt.AlignmentFlag.AlignRight)
            painter.setFont(theme.font())
        middle = Qt.TextElideMode.ElideMiddle
        paint_words(painter, name, line.name, look.text, elide=middle, brief=line.brief)
        tones = {"accent": look.accent, "disputed": look.disputed, "plain": look.third}
        if bar.width() > bar.height():
            paint_bar(painter, bar, line.share, tones[line.tone])
