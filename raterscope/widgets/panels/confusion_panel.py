"""The confusion matrix, with a list of its worst confusions where there are many classes."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QResizeEvent

from raterscope.text import count, decimals
from raterscope.widgets import theme
from raterscope.widgets.figures.confusion_matrix import MANY, ConfusionMatrix, MatrixView
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import ChoiceList, LineKind
from raterscope.widgets.parts import leave_keys_to, placeholder
from raterscope.widgets.theme import text_size

ONE_LINE_FROM = 480.0
"""Width from which names and figures are in one line."""
LOW, HIGH = 24, 38
FIGURES = 190.0
ARROW = " → "
LISTED = 200
WORST = {"worst": ("worst", "The worst confusions as a list: those that are surely frequent first")}
PARENTS = {"parents": ("parents", "The rates of the parents of the classes: bird for bird/owl and bird/crow")}
RIGHT_SIDE = Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class Confusion:
    """An answer that names another class than the true one."""

    cell: tuple[int, int]  # indices of class and answer
    # true, given: their names
    true: str
    given: str
    # rate, low, high: how often the answer is given where the class is true, and the 95 % interval
    rate: float
    low: float
    high: float
    votes: float  # the expected number of votes behind it

    def figures(self) -> str:
        """Return rate, interval and number of votes."""
        digits = 2 if not math.isfinite(self.low + self.high) else decimals(self.low, self.high)
        digits = min(2, digits)
        ends = f" ({self.low:.{digits}f} to {self.high:.{digits}f})" if math.isfinite(self.low) else ""
        return f"{self.rate:.{digits}f}{ends}, {count(round(self.votes), 'vote')}"


class WorstConfusions(ChoiceList[Confusion]):
    """Confusions, the highest lower end of the interval first; a selected one is chosen as a cell is."""

    def __init__(self) -> None:
        self._kind = _ConfusionKind()
        super().__init__(self._kind, "Worst confusions")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Write figures below the names where the list is narrow."""
        super().resizeEvent(event)
        height = LOW if self.viewport().width() / text_size() >= ONE_LINE_FROM else HIGH
        if height != self._kind.height:
            self.set_height(height)


class _ConfusionKind(LineKind[Confusion]):
    height = HIGH

    def key(self, line: Confusion) -> Hashable:
        return line.cell

    def words(self, line: Confusion) -> str:
        return f"true {line.true}, answer {line.given}: {line.figures()}"

    def paint_line(self, painter: QPainter, box: QRectF, line: Confusion) -> None:
        palette = theme.current()
        box = box.adjusted(4, 0, -8, 0)
        if self.height == LOW:
            painter.setFont(theme.font())
            room = QRectF(box.right() - FIGURES, box.top(), FIGURES, box.height())
            paint_words(painter, room, line.figures(), palette.text, side=RIGHT_SIDE)
            names = box.adjusted(0, 0, -FIGURES - 8, 0)
        else:
            names = QRectF(box.left(), box.top() + 2, box.width(), 17)
            painter.setFont(theme.font(theme.CAPTION))
            room = QRectF(box.left(), box.top() + 19, box.width(), 16)
            paint_words(painter, room, line.figures(), palette.second)
        painter.setFont(theme.font())
        metrics = QFontMetrics(painter.font())
        arrow = metrics.horizontalAdvance(ARROW) + 2.0
        true, given = (metrics.horizontalAdvance(name) + 2.0 for name in (line.true, line.given))
        free = names.width() - arrow
        first = min(true, max(free / 2, free - given))
        middle = Qt.TextElideMode.ElideMiddle
        room = QRectF(names.left(), names.top(), first, names.height())
        paint_words(painter, room, line.true, palette.text, elide=middle)
        room = QRectF(room.right(), names.top(), arrow, names.height())
        paint_words(painter, room, ARROW, palette.third)
        room = QRectF(room.right(), names.top(), free - first, names.height())
        paint_words(painter, room, line.given, palette.rejected, elide=middle)


def worst_confusions(view: MatrixView, most: int = LISTED) -> list[Confusion]:
    """Return the confusions with at least half a vote, the highest lower ends of the rates first."""
    if view.meaning is None:
        return []
    wrong = (view.meaning >= 0) & (view.meaning != np.arange(len(view.classes))[:, None])
    cells = np.argwhere(wrong & (view.counts >= 0.5) & np.isfinite(view.mean))
    at = tuple(cells.T)
    order = np.lexsort((-view.mean[at], -np.nan_to_num(view.low[at])))
    return [
        Confusion((true, output), view.classes[true], view.outputs[output], float(view.mean[true, output]),
                  float(view.low[true, output]), float(view.high[true, output]),
                  float(view.counts[true, output]))
        for true, output in cells[order[:most]].tolist()
    ]  # fmt: skip


class ConfusionPanel(ConfusionMatrix):
    """Confusion matrix that begins with the list of the worst confusions where classes are many."""

    def __init__(self) -> None:
        worst = WorstConfusions()
        nothing = placeholder("No other class was answered in half a vote or more.")
        super().__init__(WORST | PARENTS, (worst, nothing))
        self.worst = worst
        self._view: MatrixView | None = None
        self._classes: tuple[str, ...] = ()
        self.modes.chosen.connect(self._show_part)
        self.worst.chosen.connect(self._on_confusion)

    def show_matrix(self, view: MatrixView) -> None:
        """Show a matrix; the mode stays for the same classes."""
        super().show_matrix(view)
        self._view = view
        many = view.meaning is not None and len(view.classes) > MANY
        self.modes.buttons["worst"].setVisible(many)  # the cells of fewer classes can be read
        self.modes.buttons["parents"].setVisible(view.folded is not None)
        if view.classes != self._classes:
            self._classes = view.classes
            if many or self.modes.mode in ("worst", "parents"):
                self.modes.set_mode("rates" if not many else "worst" if view.folded is None else "parents")
        self._show_part()

    def _show_part(self, _mode: str = "") -> None:
        """Show the matrix, or the list in its place."""
        listed = self.modes.mode == "worst"
        if self._view is not None:
            parents = self._view.folded if self.modes.mode == "parents" else None
            self.figure.show_view(parents or self._view)
        if listed and self._view is not None:
            self.worst.set_lines(worst_confusions(self._view))
        part = 0 if not listed else 1 if self.worst.lines else 2
        self.parts.setCurrentIndex(part)
        leave_keys_to(self, (self.figure, self.worst, None)[part])

    def _on_cell(self, true: int, output: int) -> None:
        """Choose a cell; one of parents stands for several, and has no list of votes."""
        if self.modes.mode != "parents":
            super()._on_cell(true, output)

    def select_cell(self, true: int | None, output: int | None = None) -> None:
        """Outline a cell, or the whole row of a class; not among parents."""
        if self.modes.mode != "parents":
            super().select_cell(true, output)

    def _on_confusion(self, cell: tuple[int, int]) -> None:
        self.cell_chosen.emit(*cell)
