"""What stands beside a spot: its neighbours, or what other runs say of it, a line each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import plain_label

__all__ = ["TONES", "WORDS", "EvidenceLine", "EvidenceLines"]

TONES = {
    "detected": "accent",
    "accepted": "accent",
    "added": "accent",
    "rejected": "rejected",
    "turned down": "rejected",
    "disputed": "disputed",
    "undecided": "second",
}
"""The colour of each state's word."""

WORDS = {"turned down": "rejected by you", "accepted": "accepted by you", "added": "added by you"}
"""How the states are called that are not called by their names."""


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One line.

    Attributes
    ----------
    key : hashable
        What is gone to.
    title, detail : str
        "spot 12", "14 px away"; the run, "5 of 14 votes".
    figure : str
        Its posterior; empty where there is none.
    state : str
        A key of `TONES`; empty where there is no spot.
    tip : str
        The line in full.
    """

    key: Hashable
    title: str
    detail: str
    figure: str
    state: str
    tip: str


class EvidenceLines(QWidget):
    """A list of lines, or a sentence in its place.

    Parameters
    ----------
    name : str
        What the list is, for those who hear it.

    Signals
    -------
    chosen : object
        Key of the line that was clicked, or gone to with Return.
    """

    chosen = Signal(object)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view: LineList[EvidenceLine] = LineList(_Kind(), name)
        self.view.clicked.connect(self._on_chosen)
        self.view.activated.connect(self._on_chosen)
        self._nothing = plain_label("", "second", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(4, 4, 0, 0)
        column.addWidget(self._nothing, 0, Qt.AlignmentFlag.AlignTop)
        column.addWidget(self.view, 1)
        self.setFocusProxy(self.view)

    def show_lines(self, lines: Sequence[EvidenceLine], nothing: str = "") -> None:
        """Show lines; without any, say why."""
        self.view.set_lines(lines)
        self.view.setVisible(bool(lines))
        self._nothing.setText(nothing)
        self._nothing.setVisible(not lines)

    def _on_chosen(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.view.lines[index.row()].key)


class _Kind(LineKind[EvidenceLine]):
    height = 24

    def key(self, line: EvidenceLine) -> Hashable:
        return line.key

    def words(self, line: EvidenceLine) -> str:
        return line.tip

    def paint_line(self, painter: QPainter, box: QRectF, line: EvidenceLine) -> None:
        look = theme.current()
        painter.setFont(theme.font())
        metrics = QFontMetrics(painter.font())
        inner = box.adjusted(4, 0, -8, 0)
        word = WORDS.get(line.state, line.state)
        state = metrics.horizontalAdvance(word) + 4 if word else 0
        figure = metrics.horizontalAdvance("0.000") + 8 if line.figure else 0
        right = Qt.AlignmentFlag.AlignRight
        paint_words(painter, inner, word, getattr(look, TONES.get(line.state, "third")), side=right)
        inner.setRight(inner.right() - state)
        paint_words(painter, inner.adjusted(0, 0, -6, 0), line.figure, look.text, side=right)
        inner.setRight(inner.right() - figure)
        detail = metrics.horizontalAdvance(line.detail) + 8
        paint_words(painter, inner, line.detail, look.second, side=right)
        inner.setRight(inner.right() - detail)
        paint_words(painter, inner, line.title, look.text, elide=Qt.TextElideMode.ElideMiddle)
