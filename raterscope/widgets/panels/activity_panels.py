"""Panels of activity: comment field, decisions with undo and redo, changes since the last run, jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFont, QGuiApplication, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from raterscope.text import time_left
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.painting import paint_text
from raterscope.widgets.panels.lists import LineKind, LineList, LongList
from raterscope.widgets.parts import ElidedLabel, Header, keeps_key, plain_label
from raterscope.widgets.theme import pixels, set_lengths

IN_EFFECT = "in effect"
NARROWEST = 240
"""Minimum width, in unscaled pixels."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of the history."""

    time: datetime  # shown in local time
    text: str  # "reject spot 11"
    tone: str = "plain"  # {"accepted", "rejected", "disputed", "plain"}
    # "in effect"; "undone" is struck through, "superseded" and "no effect" are dimmed
    status: str = IN_EFFECT


class HistoryPanel(QWidget):
    """List of decisions, with Undo and Redo."""

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        header = Header("History")
        self.undo = KeyButton("Ctrl+Z", "undo")
        self.redo = KeyButton("Ctrl+Y", "redo")
        header.row.addWidget(self.undo)
        header.row.addWidget(self.redo)
        self.view: LongList[HistoryEntry] = LongList(_HistoryKind(), "History")
        self._nothing = plain_label("Your decisions appear here.", "second", wrap=True)
        vertical(header, self._nothing, (self.view, 1), inside=self, margins=(12, 8, 4, 4), spacing=4)
        self.set_entries(())
        self.set_undoable("", "")

    def minimumSizeHint(self) -> QSize:
        """Reserve space for both buttons with their text; the title is shortened first."""
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
    def text_of(self, line: HistoryEntry) -> str:
        return line.text if line.status == IN_EFFECT else f"{line.text} ({line.status})"

    def tip(self, line: HistoryEntry) -> str:
        return f"{line.time.astimezone():%Y-%m-%d %H:%M:%S}  {self.text_of(line)}"

    def paint_line(self, painter: QPainter, box: QRectF, line: HistoryEntry) -> None:
        palette = theme.current()
        tones = {"accepted": palette.accent, "rejected": palette.rejected, "disputed": palette.disputed}
        painter.setFont(theme.font())
        paint_text(painter, box.adjusted(2, 0, 0, 0), f"{line.time.astimezone():%H:%M}", palette.third)
        words = QFont(theme.font())
        words.setStrikeOut(line.status == "undone")
        painter.setFont(words)
        tone = tones.get(line.tone, palette.second) if line.status == IN_EFFECT else palette.third
        paint_text(painter, box.adjusted(50, 0, -4, 0), line.text, tone)


NEXT, PREVIOUS, BACK = "Ctrl+J", "Ctrl+Shift+J", "Ctrl+B"
NOTHING = "Decide, then press Fuse (F5) to list what changed."


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """List entry for one change."""

    number: int  # index in the list
    text: str


class ChangesPanel(QWidget):
    """Summary and list of changes since the previous run, with a button that shows that run."""

    chosen = Signal(int)  # index of the change

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        header = Header("Changes")
        self.back = KeyButton(BACK, "previous run")
        header.row.addWidget(self.back)
        self.summary = plain_label(NOTHING, "second", wrap=True, selectable=True)
        self.view: LineList[ChangeLine] = LineList(_ChangeKind(), "Changes")
        self.view.setToolTip(f"{NEXT} steps through the list")
        self.view.clicked.connect(lambda index: self._on_line(index.row()))
        self.view.activated.connect(lambda index: self._on_line(index.row()))
        vertical(header, self.summary, (self.view, 1), inside=self, margins=(12, 8, 4, 4), spacing=4)
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
    def text_of(self, line: ChangeLine) -> str:
        return line.text

    def paint_line(self, painter: QPainter, box: QRectF, line: ChangeLine) -> None:
        painter.setFont(theme.font())
        paint_text(painter, box.adjusted(2, 0, -4, 0), line.text, theme.current().text)


RUNNING, CANCELLING = "running", "cancelling"
KEPT = 20
STEPS = 1000


@dataclass(frozen=True, slots=True)
class JobLine:
    """Displayed state of one job."""

    key: object  # identifies the job
    # title, words: "Fusing smear_077", "removing the weakest component"
    title: str
    text: str = ""
    fraction: float = 0.0  # share done, 0 to 1
    seconds_left: float | None = None
    state: str = RUNNING  # {"running", "cancelling", "done", "failed", "cancelled"}
    # error, details: error message of a failed job, and its technical details
    error: str = ""
    details: str = ""


class JobsPanel(QWidget):
    """All jobs, running ones first."""

    cancel_requested = Signal(object)  # key of the job

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._header = Header("Jobs")
        self.clear = QPushButton("Clear")
        theme.set_role(self.clear, "link")
        self.clear.setToolTip("Remove finished jobs")
        self.clear.clicked.connect(self.clear_ended)
        self._header.row.addWidget(self.clear)
        self._nothing = plain_label("No jobs running", "second")
        self._lines: dict[object, _JobWidget] = {}
        inner = QWidget()
        theme.set_role(inner, "panel")
        self._column = QVBoxLayout(inner)
        self._column.setContentsMargins(0, 0, 8, 0)
        self._column.setSpacing(12)
        self._column.addStretch(1)
        area = QScrollArea()
        area.setAccessibleName("Jobs")
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        vertical(self._header, self._nothing, (area, 1), inside=self, margins=(12, 8, 4, 4), spacing=8)
        self._settle()

    def set_job(self, line: JobLine) -> None:
        """Show a job in its current state."""
        widget = self._lines.get(line.key)
        if widget is None:
            widget = _JobWidget(line.key, self)
            widget.cancel_requested.connect(self.cancel_requested)
            self._lines[line.key] = widget
            self._column.insertWidget(0, widget)
            self._drop_oldest()
        widget.set_line(line)
        self._settle()

    def remove_job(self, key: object) -> None:
        """Remove a job."""
        widget = self._lines.pop(key, None)
        if widget is not None:
            self._column.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._settle()

    def clear_ended(self) -> None:
        """Remove all finished jobs."""
        for key in [key for key, widget in self._lines.items() if not widget.runs]:
            self.remove_job(key)

    def _drop_oldest(self) -> None:
        ended = [key for key, widget in self._lines.items() if not widget.runs]
        for key in ended[: max(0, len(self._lines) - KEPT)]:
            self.remove_job(key)

    def _settle(self) -> None:
        running = sum(widget.runs for widget in self._lines.values())
        self._header.set_subtitle(f"{running} running" if running else "")
        self._nothing.setVisible(not self._lines)
        self.clear.setVisible(len(self._lines) > running)


class _JobWidget(QWidget):
    cancel_requested = Signal(object)

    def __init__(self, key: object, parent: QWidget) -> None:
        super().__init__(parent)
        self._key = key
        self._line = JobLine(key, "")
        self._title = ElidedLabel()
        self._label = ElidedLabel("", "small")
        self._error = plain_label("", "rejected", wrap=True, selectable=True)
        self._bar = QProgressBar(minimum=0, maximum=STEPS, textVisible=False)
        self.cancel = QPushButton("Cancel")
        self.cancel.clicked.connect(self._on_cancel)
        self.more = QPushButton("Details")
        theme.set_role(self.more, "link")
        self.more.setCheckable(True)
        self.copy = QPushButton("Copy")
        theme.set_role(self.copy, "link")
        self.copy.setToolTip("Copy the message and its details")
        self.copy.clicked.connect(self._on_copy)
        self._details = QPlainTextEdit()
        self.more.toggled.connect(self._details.setVisible)
        self._details.setReadOnly(True)
        self._details.setTabChangesFocus(True)
        set_lengths(self._details, height=110)
        self._details.setAccessibleName("Details of the failure")
        texts = vertical(self._title, self._label, self._bar, self._error, spacing=3)
        row = horizontal((texts, 1), (self.cancel, 0, Qt.AlignmentFlag.AlignVCenter), spacing=12)
        links = horizontal(self.more, self.copy, STRETCH, spacing=None)
        vertical(row, links, self._details, inside=self, spacing=4)
        self._details.hide()

    @property
    def runs(self) -> bool:
        return self._line.state in (RUNNING, CANCELLING)

    def set_line(self, line: JobLine) -> None:
        if self._line.state == CANCELLING and line.state == RUNNING:
            # A job that is being cancelled keeps this text while it still reports progress.
            line = JobLine(line.key, line.title, self._line.text, line.fraction, None, CANCELLING)
        self._line = line
        self._title.setText(line.title)
        failed = line.state == "failed"
        self._label.setText(_in_words(line))
        self._label.setVisible(not failed)
        self._error.setText(line.error)
        self._error.setVisible(failed)
        self._bar.setVisible(self.runs)
        self._bar.setValue(round(STEPS * min(max(line.fraction, 0.0), 1.0)))
        self._bar.setAccessibleName(f"{line.title}: {self._label.text()}")
        self.cancel.setVisible(self.runs)
        self.cancel.setEnabled(line.state == RUNNING)
        self.cancel.setAccessibleName(f"Cancel {line.title}")
        self.more.setVisible(failed and bool(line.details))
        self.copy.setVisible(failed)
        self._details.setPlainText(line.details)
        self._details.setVisible(failed and self.more.isChecked())

    def _on_cancel(self) -> None:
        line = self._line
        self.set_line(JobLine(line.key, line.title, "cancelling", line.fraction, None, CANCELLING))
        self.cancel_requested.emit(self._key)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(f"{self._line.error}\n\n{self._line.details}".strip())


def _in_words(line: JobLine) -> str:
    if line.state in (RUNNING, CANCELLING):
        left = time_left(line.seconds_left) if line.state == RUNNING else ""
        return ", ".join(part for part in (line.text, left) if part)
    return {"done": line.text or "done", "cancelled": "cancelled"}.get(line.state, line.text)


LONGEST = 1000


class CommentField(QLineEdit):
    """Field that shows and edits a comment; hidden while there is none.

    Return, or leaving the field, stores the text; Esc restores the comment.
    """

    stored = Signal(str)  # the changed text; empty to remove the comment
    left = Signal()  # the user left the field by a key

    def __init__(self) -> None:
        super().__init__()
        self.setMaxLength(LONGEST)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setPlaceholderText("Comment (Return saves, Esc cancels)")
        self.setAccessibleName("Comment")
        self._comment = ""
        self.hide()

    def set_comment(self, text: str) -> None:
        """Show a comment; without one, hide the field."""
        self._comment = text
        self.setText(text)
        self.setCursorPosition(0)
        self.setToolTip(text)
        self.setVisible(bool(text))

    def begin(self) -> None:
        """Edit the comment."""
        self.show()
        self.setFocus()
        self.selectAll()

    def event(self, event: QEvent) -> bool:
        """Handle Esc before the workspace."""
        return keeps_key(event, Qt.Key.Key_Escape) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Store the text or restore the comment."""
        if event.key() == Qt.Key.Key_Escape:
            self.setText(self._comment)
        elif event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
            return
        self.left.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Store a changed text."""
        super().focusOutEvent(event)
        text = self.text().strip()
        if text != self._comment:
            self._comment = text
            self.stored.emit(text)
        self.setVisible(bool(text))
