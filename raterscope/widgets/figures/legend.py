"""Which line of a plot is which, told beside the plot, where it covers nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QGraphicsWidget, QStyleOptionGraphicsItem, QWidget

from raterscope.widgets import theme
from raterscope.widgets.text_size import pixels

__all__ = ["Legend", "LineSample"]

SAMPLE, GAP, ROW = 26, 6, 17
"""A piece of the line, what stands between it and the words, and the height of a row, in usual pixels."""
WIDEST = 132
"""Words that are wider end in dots."""
DOT = 6


@dataclass(frozen=True, slots=True)
class LineSample:
    """A line of a plot.

    Attributes
    ----------
    words : str
        As they are, whoever wrote them.
    colour : str
    dashes : tuple of float
        In widths of the line; empty for a full one.
    dotted : bool
        Whether there are dots on it.
    """

    words: str
    colour: str
    dashes: tuple[float, ...] = ()
    dotted: bool = False


class Legend(QGraphicsWidget):
    """A row a line; with one line or none there is nothing to tell apart, and no room is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[LineSample, ...] = ()

    @property
    def lines(self) -> tuple[LineSample, ...]:
        """The lines told, in the order in which they stand."""
        return self._lines

    def set_lines(self, lines: Sequence[LineSample]) -> None:
        """Tell other lines."""
        self._lines = tuple(lines) if len(lines) > 1 else ()
        metrics = QFontMetricsF(theme.widget_font(theme.CAPTION))
        widest = max((metrics.horizontalAdvance(line.words) for line in self._lines), default=0.0)
        words = min(widest + 1, pixels(WIDEST))
        width = words + pixels(SAMPLE + 2 * GAP) if self._lines else 0.0
        self.setMinimumWidth(width)
        self.setMaximumWidth(width)
        self.updateGeometry()
        self.update()

    def sizeHint(self, which: Qt.SizeHint, _constraint: QSizeF | QSize | None = None) -> QSizeF:
        """Ask for no height, and take that of the plot beside it."""
        return QSizeF(0, float(1 << 20) if which == Qt.SizeHint.MaximumSize else 0.0)

    def paint(
        self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None
    ) -> None:
        """Paint the rows that there is room for; of others it says how many they are."""
        look, row = theme.current(), pixels(ROW)
        font = theme.widget_font(theme.CAPTION)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        fit = max(int(self.size().height() // row), 1)
        shown = self._lines if len(self._lines) <= fit else self._lines[: fit - 1]
        left = pixels(GAP)
        room = self.size().width() - left - pixels(SAMPLE + GAP)
        for place, line in enumerate(shown):
            middle = (place + 0.5) * row
            _paint_sample(painter, left, middle, line)
            painter.setPen(QColor(look.text))
            box = QRectF(left + pixels(SAMPLE + GAP), place * row, room, row)
            words = metrics.elidedText(line.words, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)
        if len(shown) < len(self._lines):
            painter.setPen(QColor(look.second))
            box = QRectF(left, len(shown) * row, self.size().width() - left, row)
            words = f"and {len(self._lines) - len(shown)} more"
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)


def _paint_sample(painter: QPainter, left: float, middle: float, line: LineSample) -> None:
    pen = QPen(QColor(line.colour), 1.8)
    if line.dashes:
        pen.setDashPattern(line.dashes)
    painter.setPen(pen)
    painter.drawLine(QPointF(left, middle), QPointF(left + pixels(SAMPLE), middle))
    if line.dotted:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(line.colour))
        painter.drawEllipse(QPointF(left + pixels(SAMPLE) / 2, middle), DOT / 2, DOT / 2)
