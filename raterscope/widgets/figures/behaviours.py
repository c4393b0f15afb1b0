"""How the behaviours of annotators look: a colour, and a dash or a symbol beside it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.figures.colours import colour_of
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words, symbol_path

__all__ = [
    "BAD", "BEHAVIOUR_INKS", "BEHAVIOUR_WORDS", "DASHED", "GOOD", "UGLY", "UNDECIDABLE", "behaviour_colour",
    "paint_cross", "paint_legend",
]  # fmt: skip

GOOD, UGLY, BAD, UNDECIDABLE = range(len(BEHAVIOUR_WORDS))

DASHED = {UGLY: [3.0, 2.0], UNDECIDABLE: [1.0, 2.0]}
"""Dashes of lines in widths of the pen; those of the others are solid."""

GAP = 38
"""Pixels between two words of the legend, in which there is a sample of the line."""


BEHAVIOUR_INKS = ("third", "disputed", "rejected", "third")


def behaviour_colour(behaviour: int) -> str:
    """Return the colour of a behaviour in the theme in use."""
    return colour_of(BEHAVIOUR_INKS[behaviour], theme.current())


def _paint_line_sample(painter: QPainter, box: QRectF, behaviour: int) -> None:
    """Paint a short piece of a line as `BiasPath` draws it: plain, dashed, dotted, or with a cross."""
    colour, middle = QColor(behaviour_colour(behaviour)), box.center().y()
    pen = QPen(colour, (1.2, 1.8, 2.2, 1.2)[behaviour])
    if behaviour in DASHED:
        pen.setDashPattern(DASHED[behaviour])
    painter.setPen(pen)
    painter.drawLine(QPointF(box.left(), middle), QPointF(box.right(), middle))
    if behaviour == BAD:
        paint_cross(painter, QPointF(box.right(), middle), colour)


def paint_legend(painter: QPainter, left: float, right: float) -> None:
    """Name the behaviours beside their lines, in a row that ends at `right`; not without room from `left`."""
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    widths = [metrics.horizontalAdvance(word) + 2.0 for word in BEHAVIOUR_WORDS]
    if left + sum(widths) + GAP * len(widths) - (GAP - 26) > right:
        return
    for behaviour, (word, width) in enumerate(zip(BEHAVIOUR_WORDS, widths, strict=True)):
        paint_words(painter, QRectF(right - width, 0, width, 16), word, behaviour_colour(behaviour))
        _paint_line_sample(painter, QRectF(right - width - 26, 1, 18, 14), behaviour)
        right -= width + GAP


def paint_cross(painter: QPainter, centre: QPointF, colour: QColor) -> None:
    """Paint the cross at the end of a one-sided annotator's line."""
    painter.save()
    painter.translate(centre)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, 1.6))
    painter.drawPath(symbol_path("cross", 4.0))
    painter.restore()
