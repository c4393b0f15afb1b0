"""Who clicked and who did not, with how far each is to be trusted."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QWidget

from raterscope.text.numbers import part_of_one
from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_annotator
from raterscope.widgets.painting import paint_bar, paint_words
from raterscope.widgets.panels.lists import LineKind, LineList

__all__ = ["VoterLine", "VoterList"]

BAR = 96


@dataclass(frozen=True, slots=True)
class VoterLine:
    """One annotator's word on a spot.

    Attributes
    ----------
    annotator : int
        Index that gives colour and symbol.
    name : str
    clicked : bool
    reliability : float
        0 to 1, NaN where not known.
    weight : float
        As how much of an annotator the word counts.
    """

    annotator: int
    name: str
    clicked: bool
    reliability: float
    weight: float = 1.0

    @property
    def who(self) -> str:
        """The name, with the weight where it is not full."""
        return self.name if self.weight == 1 else f"{self.name}  × {part_of_one(self.weight)}"


class VoterList(LineList[VoterLine]):
    """Annotators of one spot.

    Signals
    -------
    chosen : int
        Index of the annotator gone to.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_VoterKind(), "Who clicked", parent)
        self._quiet = False
        self.selectionModel().currentChanged.connect(self._on_current)

    def choose(self, annotator: int | None) -> None:
        """Mark an annotator's line without a signal, and bring it in sight; None marks nobody's."""
        self._quiet = True
        self.setCurrentIndex(self.index_of(annotator))
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            self.chosen.emit(self.lines[index.row()].annotator)


class _VoterKind(LineKind[VoterLine]):
    height = 24

    def key(self, line: VoterLine) -> Hashable:
        return line.annotator

    def words(self, line: VoterLine) -> str:
        said = "clicked" if line.clicked else "did not click"
        known = f"reliability {line.reliability:.2f}" if math.isfinite(line.reliability) else ""
        return ", ".join(part for part in (line.who, said, known) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: VoterLine) -> None:
        look = theme.current()
        paint_annotator(painter, QPointF(box.left() + 8, box.center().y()), line.annotator, 4)
        left, right = box.left() + 20, box.right() - 8
        bar_left = right - 36 - BAR
        painter.setFont(theme.font())
        said_left = bar_left - QFontMetrics(painter.font()).horizontalAdvance("clicked") - 12
        name = QRectF(left, box.top(), said_left - left - 8, box.height())
        paint_words(painter, name, line.who, look.text, elide=Qt.TextElideMode.ElideMiddle)
        said = QRectF(said_left, box.top(), 80, box.height())
        clicked = line.clicked
        paint_words(painter, said, "clicked" if clicked else "did not", look.text if clicked else look.third)
        known = math.isfinite(line.reliability)
        bar = QRectF(bar_left, box.center().y() - 3, BAR, 6)
        paint_bar(painter, bar, line.reliability, theme.annotator_style(line.annotator)[0])
        figure = f"{line.reliability:.2f}" if known else "–"
        room = QRectF(right - 34, box.top(), 34, box.height())
        paint_words(
            painter, room, figure, look.text if known else look.third, side=Qt.AlignmentFlag.AlignRight
        )
