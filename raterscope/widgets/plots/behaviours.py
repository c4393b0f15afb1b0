"""How the behaviours of annotators look: a colour, and a dash or a symbol beside it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from raterscope.algorithms.pairs.data import BEHAVIOURS
from raterscope.widgets import theme
from raterscope.widgets.glyphs import symbol_path
from raterscope.widgets.painting import paint_words

__all__ = [
    "BAD", "BEHAVIOURS", "GOOD", "UGLY", "UNDECIDABLE", "behaviour_colour", "paint_cross", "paint_legend",
    "paint_side_mark",
]  # fmt: skip

GOOD, UGLY, BAD, UNDECIDABLE = range(len(BEHAVIOURS))


def behaviour_colour(behaviour: int) -> str:
    """Give the colour of a behaviour in the theme in use."""
    look = theme.current()
    return (look.third, look.disputed, look.rejected, look.third)[behaviour]


def _paint_line_sample(painter: QPainter, box: QRectF, behaviour: int) -> None:
    """Paint a short piece of a line as `BiasPath` draws it: plain, dashed, or ending in a cross."""
    colour, middle = QColor(behaviour_colour(behaviour)), box.center().y()
    pen = QPen(colour, (1.2, 1.8, 2.2, 1.2)[behaviour])
    if behaviour == UGLY:
        pen.setDashPattern([3, 2])
    painter.setPen(pen)
    painter.drawLine(QPointF(box.left(), middle), QPointF(box.right(), middle))
    if behaviour == BAD:
        paint_cross(painter, QPointF(box.right(), middle), colour)


def paint_legend(painter: QPainter, left: float, right: float) -> None:
    """Name the behaviours beside their lines, in a row that ends at `right`; not without room from `left`."""
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    widths = [metrics.horizontalAdvance(word) + 2.0 for word in BEHAVIOURS]
    if left + sum(widths) + 40 * len(widths) > right:
        return
    for behaviour, (word, width) in enumerate(zip(BEHAVIOURS, widths, strict=True)):
        paint_words(painter, QRectF(right - width, 0, width, 16), word, behaviour_colour(behaviour))
        _paint_line_sample(painter, QRectF(right - width - 26, 1, 18, 14), behaviour)
        right -= width + 40


def paint_cross(painter: QPainter, centre: QPointF, colour: QColor) -> None:
    """Paint the cross at the end of a bad annotator's line."""
    painter.save()
    painter.translate(centre)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, 1.6))
    painter.drawPath(symbol_path("x", 4.0))
    painter.restore()


def paint_side_mark(
    painter: QPainter, centre: QPointF, behaviour: int, *, flagged: bool, radius: float
) -> None:
    """Paint an annotator's dot: a ring, or where flagged a filled square, a diamond for an ugly one."""
    painter.save()
    painter.translate(centre)
    if flagged:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(behaviour_colour(UGLY if behaviour == UGLY else BAD)))
        painter.drawPath(symbol_path("d" if behaviour == UGLY else "s", radius + 0.8))
    else:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.current().accent), 1.2))
        painter.drawPath(symbol_path("o", radius))
    painter.restore()
