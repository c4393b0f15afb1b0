"""What every rater says of a disputed region: in or out, beyond the consensus or short of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from raterscope.text.numbers import percent
from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_rater, rater_colour, readable
from raterscope.widgets.painting import paint_bar, paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.text_size import pixels

__all__ = ["RegionVote", "RegionVotes"]

SHARE, SAID = 96, 118
MOST_IN_SIGHT = 9
"""Of a region's raters, those whom the list asks room for."""
LEAST_MM = 0.05


@dataclass(frozen=True, slots=True)
class RegionVote:
    """One rater's word on a region.

    Attributes
    ----------
    number : int
        Gives the colour.
    name : str
    inside : float
        Share of the region's volume that the rater marks, 0 to 1.
    distance_mm : float
        How far the rater draws beyond the consensus (positive) or short of it (negative) where they differ
        most in the region; NaN where not known.
    weight : float
        Local weight in the region, 0 to 1; NaN where not known.
    unit : str
        Of the distance: "px" where nothing tells a pixel's size.
    """

    number: int
    name: str
    inside: float
    distance_mm: float = math.nan
    weight: float = math.nan
    unit: str = "mm"

    def direction(self) -> str:
        """Say the distance: "6.1 mm beyond"."""
        if math.isnan(self.distance_mm):
            return ""
        if abs(self.distance_mm) < LEAST_MM:
            return "as consensus"
        away = abs(self.distance_mm)
        figure = f"{away:.0f}" if away >= 99.95 else f"{away:.1f}"
        return f"{figure} {self.unit} {'beyond' if self.distance_mm > 0 else 'short'}"


class RegionVotes(LineList[RegionVote]):
    """Raters of one region.

    Signals
    -------
    chosen : str
        Name of the rater gone to.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_VoteKind(), "Votes by rater", parent)
        self._quiet = False
        self.selectionModel().currentChanged.connect(self._on_current)

    def select(self, name: str | None) -> None:
        """Mark a rater without a signal; None marks none."""
        self._quiet = True
        self.setCurrentIndex(self.index_of(name))
        self._quiet = False

    def set_lines(self, lines: Sequence[RegionVote]) -> None:
        """Show other raters, and ask for the room that they take."""
        super().set_lines(lines)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Be as high as the raters, to a limit."""
        rows = min(max(len(self.lines), 2), MOST_IN_SIGHT)
        return QSize(pixels(120), rows * pixels(_VoteKind.height) + 2 * self.frameWidth())

    def minimumSizeHint(self) -> QSize:
        """Show two raters at least."""
        return QSize(pixels(120), 2 * pixels(_VoteKind.height))

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            self.chosen.emit(self.lines[index.row()].name)


class _VoteKind(LineKind[RegionVote]):
    height = 24

    def key(self, line: RegionVote) -> Hashable:
        return line.name

    def words(self, line: RegionVote) -> str:
        said = "inside" if line.inside >= 0.5 else "outside"
        parts = [line.name, f"{said}: marks {percent(line.inside)} of the region", line.direction()]
        if math.isfinite(line.weight):
            parts.append(f"local weight {line.weight:.2f}")
        return ", ".join(part for part in parts if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: RegionVote) -> None:
        look, right = theme.current(), box.right() - 10
        painter.setFont(theme.font())
        sample = QRectF(box.left(), box.top(), 18, box.height())
        paint_rater(painter, sample, line.number)
        name = QRectF(box.left() + 26, box.top(), right - SAID - SHARE - box.left() - 34, box.height())
        paint_words(painter, name, line.name, look.text, elide=Qt.TextElideMode.ElideMiddle)
        share = QRectF(right - SAID - SHARE, box.top(), SHARE, box.height())
        inside = line.inside >= 0.5
        tone = look.text if inside else look.third
        paint_words(painter, share, "inside" if inside else "outside", tone)
        hue = readable(rater_colour(line.number)).name()
        paint_bar(painter, QRectF(share.left() + 54, box.center().y() - 3, 32, 6), line.inside, hue)
        said = QRectF(right - SAID, box.top(), SAID, box.height())
        paint_words(painter, said, line.direction(), look.second, side=Qt.AlignmentFlag.AlignRight)
