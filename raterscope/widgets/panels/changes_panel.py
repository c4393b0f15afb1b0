"""The list of what changed from the previous run to the present one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import Header, plain_label

__all__ = ["BACK", "NEXT", "PREVIOUS", "ChangeLine", "ChangesPanel"]

NEXT, PREVIOUS, BACK = "Ctrl+J", "Ctrl+Shift+J", "Ctrl+B"
NOTHING = "Decide, then press Fuse (F5) to list what changed."


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line of the list.

    Attributes
    ----------
    number : int
        Its place in the list.
    words : str
    """

    number: int
    words: str


class ChangesPanel(QWidget):
    """What changed in one line, the changes one by one, and the way back to the previous run.

    Signals
    -------
    chosen(int)
        The place of a change in the list.
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
        """Show what changed, or with no summary what to do."""
        self.summary.setText(summary or NOTHING)
        self.view.set_lines([ChangeLine(number, words) for number, words in enumerate(lines)])
        self.view.scrollToTop()

    def set_back(self, word: str, tip: str) -> None:
        """Say which run the key shows; with no word there is none."""
        self.back.setEnabled(bool(word))
        self.back.set_word(word or "previous run", "second", tip or "There is no previous run to show")

    @property
    def current(self) -> int | None:
        """The change that is looked at."""
        index = self.view.currentIndex()
        return index.row() if index.isValid() else None

    def select(self, number: int) -> None:
        """Look at a change."""
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
