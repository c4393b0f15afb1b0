"""History of decisions with undo and redo, and the changes since the previous run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.key_help import KeyButton
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.text_size import pixels

__all__ = [
    "BACK",
    "NEXT",
    "PREVIOUS",
    "ChangeLine",
    "ChangesPanel",
    "HistoryEntry",
    "HistoryPanel",
]


IN_EFFECT = "in effect"
NARROWEST = 240
"""Minimum width, in unscaled pixels."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of the history.

    Attributes
    ----------
    time : datetime
        Shown in local time.
    words : str
        "reject spot 11".
    tone : {"accepted", "rejected", "disputed", "plain"}
    standing : str
        "in effect"; or what happened to it: "undone" is struck through, "superseded" and "no effect" dimmed.
    """

    time: datetime
    words: str
    tone: str = "plain"
    standing: str = IN_EFFECT


class HistoryPanel(QWidget):
    """List of decisions, with Undo and Redo.

    Signals
    -------
    undo_requested, redo_requested
    """

    undo_requested = Signal()
    redo_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        header = Header("History", dispensable=True)
        self.undo = KeyButton("Ctrl+Z", "undo")
        self.redo = KeyButton("Ctrl+Y", "redo")
        self.undo.clicked.connect(self.undo_requested)
        self.redo.clicked.connect(self.redo_requested)
        header.row.addWidget(self.undo)
        header.row.addWidget(self.redo)
        self.view: LineList[HistoryEntry] = LineList(_HistoryKind(), "History")
        self._nothing = plain_label("Your decisions appear here.", "second", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 4, 4)
        column.setSpacing(4)
        column.addWidget(header)
        column.addWidget(self._nothing)
        column.addWidget(self.view, 1)
        self.set_entries(())
        self.set_undoable("", "")

    def minimumSizeHint(self) -> QSize:
        """Leave room for both buttons with their text; the title is shortened first."""
        return QSize(pixels(NARROWEST), super().minimumSizeHint().height())

    def set_entries(self, entries: Sequence[HistoryEntry]) -> None:
        """Show entries, the latest first, and scroll to the top."""
        self.view.set_lines(entries)
        self._nothing.setVisible(not entries)
        self.view.scrollToTop()

    def set_undoable(self, undo: str, redo: str) -> None:
        """Set the texts of the decisions that Undo and Redo affect; empty for none."""
        for key, text, does in (
            (self.undo, undo, "Undo the last decision"),
            (self.redo, redo, "Redo the decision that was undone last"),
        ):
            key.setEnabled(bool(text))
            key.set_tip(f"{does}: {text}" if text else does)


class _HistoryKind(LineKind[HistoryEntry]):
    def words(self, line: HistoryEntry) -> str:
        return line.words if line.standing == IN_EFFECT else f"{line.words} ({line.standing})"

    def tip(self, line: HistoryEntry) -> str:
        return f"{line.time.astimezone():%Y-%m-%d %H:%M:%S}  {self.words(line)}"

    def paint_line(self, painter: QPainter, box: QRectF, line: HistoryEntry) -> None:
        look = theme.current()
        tones = {"accepted": look.accent, "rejected": look.rejected, "disputed": look.disputed}
        painter.setFont(theme.font())
        paint_words(painter, box.adjusted(2, 0, 0, 0), f"{line.time.astimezone():%H:%M}", look.third)
        words = QFont(theme.font())
        words.setStrikeOut(line.standing == "undone")
        painter.setFont(words)
        tone = tones.get(line.tone, look.second) if line.standing == IN_EFFECT else look.third
        paint_words(painter, box.adjusted(50, 0, -4, 0), line.words, tone)


NEXT, PREVIOUS, BACK = "Ctrl+J", "Ctrl+Shift+J", "Ctrl+B"
NOTHING = "Decide, then press Fuse (F5) to list what changed."


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """List entry for one change.

    Attributes
    ----------
    number : int
        Index in the list.
    words : str
    """

    number: int
    words: str


class ChangesPanel(QWidget):
    """Summary and list of changes since the previous run, with a button that shows that run.

    Signals
    -------
    chosen(int)
        Index of the change.
    back_requested
    """

    chosen = Signal(int)
    back_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        header = Header("Changes", dispensable=True)
        self.back = KeyButton(BACK, "previous run")
        self.back.clicked.connect(self.back_requested)
        header.row.addWidget(self.back)
        self.summary = plain_label(NOTHING, "second", wrap=True, selectable=True)
        self.view: LineList[ChangeLine] = LineList(_ChangeKind(), "Changes")
        self.view.clicked.connect(lambda index: self._on_line(index.row()))
        self.view.activated.connect(lambda index: self._on_line(index.row()))
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 4, 4)
        column.setSpacing(4)
        column.addWidget(header)
        column.addWidget(self.summary)
        column.addWidget(self.view, 1)
        self.set_changes("", ())
        self.set_back("", "")

    def set_changes(self, summary: str, lines: Sequence[str]) -> None:
        """Show the changes; without a summary, show the next step."""
        self.summary.setText(summary or NOTHING)
        self.view.set_lines([ChangeLine(number, words) for number, words in enumerate(lines)])
        self.view.scrollToTop()

    def set_back(self, word: str, tip: str) -> None:
        """Set the name of the previous run on its button; empty for none."""
        self.back.setEnabled(bool(word))
        self.back.set_word(word or "previous run", "second", tip or "There is no previous run to show")

    @property
    def current(self) -> int | None:
        """Index of the selected change."""
        index = self.view.currentIndex()
        return index.row() if index.isValid() else None

    def select(self, number: int) -> None:
        """Select a change."""
        self.view.setCurrentIndex(self.view.model().index(number, 0))
        self.chosen.emit(number)

    def _on_line(self, row: int) -> None:
        self.chosen.emit(row)


class _ChangeKind(LineKind[ChangeLine]):
    def words(self, line: ChangeLine) -> str:
        return line.words

    def paint_line(self, painter: QPainter, box: QRectF, line: ChangeLine) -> None:
        painter.setFont(theme.font())
        paint_words(painter, box.adjusted(2, 0, -4, 0), line.words, theme.current().text)
