"""What a task's votes are: who said what, when, and what it weighs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QModelIndex, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_annotator
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList

__all__ = ["TaskVote", "TaskVotes"]

NOBODY = -1
WEIGHT, TIME = 44.0, 104.0
TIME_FROM = 360.0
"""A list that is narrower says the time in the tooltip alone."""


@dataclass(frozen=True, slots=True)
class TaskVote:
    """One vote.

    Attributes
    ----------
    annotator : int
        Index that gives colour and symbol; negative for grey.
    name, said : str
        Who, and the output given.
    agrees : bool
        Whether the output stands for the class that the model finds most probable.
    weight : float
        What the vote weighs for that class, as a natural logarithm of odds: below 0 it speaks against it. NaN
        where not known.
    time : str
        Local time, empty where not known.
    brief : str
        What tells `said` from other outputs, where there is no room for it.
    """

    annotator: int
    name: str
    said: str
    agrees: bool
    weight: float = math.nan
    time: str = ""
    brief: str = ""


class TaskVotes(LineList[TaskVote]):
    """Votes on one task, those that disagree with the model first.

    Signals
    -------
    chosen : int
        Index of the annotator gone to; never while names are hidden.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_VoteKind(), "Votes", parent)
        self._quiet = False
        self.selectionModel().currentChanged.connect(self._on_current)

    def show_votes(self, votes: Sequence[TaskVote], *, blind: bool = False) -> None:
        """Show votes; blind, nothing tells who gave them."""
        ordered = sorted(votes, key=_order)
        if blind:
            ordered = [replace(vote, annotator=NOBODY, name=f"annotator {place}")
                       for place, vote in enumerate(ordered, start=1)]  # fmt: skip
        self._quiet = True
        self.set_lines(ordered)
        self.setCurrentIndex(QModelIndex())
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            annotator = self.lines[index.row()].annotator
            if annotator != NOBODY:
                self.chosen.emit(annotator)


def _order(vote: TaskVote) -> tuple[bool, float]:
    """Put those who disagree first, and of either the weightiest."""
    return vote.agrees, -abs(vote.weight) if math.isfinite(vote.weight) else 0.0


class _VoteKind(LineKind[TaskVote]):
    height = 24

    def key(self, line: TaskVote) -> Hashable:
        return line

    def words(self, line: TaskVote) -> str:
        parts = [line.name, f"answered {line.said}", "" if line.agrees else "against the model"]
        if math.isfinite(line.weight):
            parts.append(f"weight {line.weight:+.1f} (log-odds)")
        return ", ".join(part for part in (*parts, line.time) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: TaskVote) -> None:
        look, right = theme.current(), box.right() - 10
        paint_annotator(painter, QPointF(box.left() + 8, box.center().y()), line.annotator, 4)
        figure = f"{line.weight:+.1f}".replace("-", "−") if math.isfinite(line.weight) else "–"
        painter.setFont(theme.font())
        room = QRectF(right - WEIGHT, box.top(), WEIGHT, box.height())
        paint_words(painter, room, figure, look.text, side=Qt.AlignmentFlag.AlignRight)
        right -= WEIGHT + 8
        if box.width() >= TIME_FROM and line.time:
            painter.setFont(theme.font(theme.CAPTION))
            room = QRectF(right - TIME, box.top(), TIME, box.height())
            paint_words(painter, room, line.time, look.third, side=Qt.AlignmentFlag.AlignRight)
            painter.setFont(theme.font())
            right -= TIME + 8
        left = box.left() + 20
        # An answer against the model is marked by its sign too, not by its colour alone.
        sign = "" if line.agrees else "✗ "
        said, brief = sign + line.said, sign + line.brief if line.brief else ""
        width = min(QFontMetrics(painter.font()).horizontalAdvance(said) + 2, (right - left) / 2)
        room = QRectF(right - width, box.top(), width, box.height())
        paint_words(painter, room, said, look.text if line.agrees else look.rejected,
                    elide=Qt.TextElideMode.ElideMiddle, brief=brief)  # fmt: skip
        name = QRectF(left, box.top(), right - width - left - 8, box.height())
        paint_words(painter, name, line.name, look.second, elide=Qt.TextElideMode.ElideMiddle)
