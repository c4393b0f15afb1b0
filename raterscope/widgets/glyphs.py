"""Shapes that mean something: annotators' marks, spot states."""

from __future__ import annotations

import math
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from raterscope.figures.colours import ANNOTATOR_COLOURS
from raterscope.widgets import theme

__all__ = ["paint_annotator", "paint_rater", "rater_colour", "readable", "symbol_path"]


@lru_cache(maxsize=128)
def symbol_path(symbol: str, radius: float) -> QPainterPath:
    """Draw a symbol about the origin, all of them with the weight of a disc of this radius.

    Parameters
    ----------
    symbol : {"o", "s", "t1", "d", "star", "x"}
        Disc, square, triangle, diamond, star and cross.
    radius : float
        In pixels.
    """
    path = QPainterPath()
    if symbol == "s":
        half = 0.88 * radius
        path.addRect(QRectF(-half, -half, 2 * half, 2 * half))
    elif symbol == "t1":
        path.addPolygon(_ring(3, 1.3 * radius))
        path.closeSubpath()
    elif symbol == "d":
        path.addPolygon(_ring(4, 1.2 * radius))
        path.closeSubpath()
    elif symbol == "star":
        path.addPolygon(_star(1.4 * radius, 0.6 * radius))
        path.closeSubpath()
    elif symbol == "x":
        half = 0.8 * radius
        path.moveTo(-half, -half)
        path.lineTo(half, half)
        path.moveTo(-half, half)
        path.lineTo(half, -half)
    else:
        path.addEllipse(QPointF(), radius, radius)
    return path


def paint_annotator(
    painter: QPainter, centre: QPointF, index: int, radius: float, *, shown: bool = True
) -> None:
    """Paint an annotator's mark: filled, or hollow while the annotator is hidden."""
    hue, symbol = theme.annotator_style(index)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(centre)
    if shown:
        edge = QColor(hue) if theme.current().dark else QColor(hue).darker(150)
        painter.setPen(QPen(edge, 1))
        painter.setBrush(QColor(hue))
    else:
        painter.setPen(QPen(QColor(hue), 1.2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(symbol_path(symbol, radius))
    painter.restore()


def _ring(corners: int, radius: float) -> QPolygonF:
    turns = [2 * math.pi * i / corners for i in range(corners)]
    return QPolygonF([QPointF(radius * math.sin(a), -radius * math.cos(a)) for a in turns])


def _star(outer: float, inner: float) -> QPolygonF:
    points = []
    for i in range(10):
        turn, radius = math.pi * i / 5, inner if i % 2 else outer
        points.append(QPointF(radius * math.sin(turn), -radius * math.cos(turn)))
    return QPolygonF(points)


def rater_colour(index: int) -> str:
    """Give the colour of an annotator's line, which has no symbol to tell it by.

    Beyond the palette it begins anew: the few who outlined one case mostly came one after the other.
    """
    return ANNOTATOR_COLOURS[index % len(ANNOTATOR_COLOURS)]


def paint_rater(painter: QPainter, box: QRectF, index: int) -> None:
    """Paint a short piece of an annotator's line along the middle of a box."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(readable(rater_colour(index)), 3))
    painter.drawLine(QPointF(box.left() + 2, box.center().y()), QPointF(box.right() - 2, box.center().y()))
    painter.restore()


def readable(hue: str) -> QColor:
    """Give a colour of the palette as it is seen on the theme's ground: darker on a light one."""
    return QColor(hue) if theme.current().dark else QColor(hue).darker(125)
