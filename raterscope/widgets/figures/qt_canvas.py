"""The canvas of the window: a painter of Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPaintEngine, QPainter, QPen, QPolygonF

from raterscope.figures.canvas import Anchor, Canvas, Point, Points
from raterscope.figures.description import Symbol
from raterscope.widgets import theme

__all__ = ["QtCanvas", "polygon_of", "text_width"]

FEW = 150
"""So many discs are drawn as ellipses, with smooth edges; more as round points, which takes less time."""


class QtCanvas(Canvas):
    """A canvas that paints at once.

    Parameters
    ----------
    painter : QPainter
        Open, and with smooth edges.
    """

    def __init__(self, painter: QPainter) -> None:
        self._painter = painter

    def line(
        self,
        points: Points,
        colour: str,
        width: float = 1.0,
        dashes: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through points."""
        self._painter.setPen(_pen(colour, width, dashes, opacity))
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.drawPolyline(polygon_of(points))

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(_colour(fill, opacity))
        self._painter.drawPolygon(polygon_of(points))

    def disc(
        self, at: Point, radius: float, fill: str, edge: str = "", opacity: float = 1.0, width: float = 1.0
    ) -> None:
        """Draw a disc."""
        self._painter.setPen(_pen(edge, width) if edge else QPen(Qt.PenStyle.NoPen))
        self._painter.setBrush(_colour(fill, opacity) if fill else Qt.BrushStyle.NoBrush)
        self._painter.drawEllipse(QPointF(*at), radius, radius)

    def text(
        self,
        at: Point,
        words: str,
        colour: str,
        size: float,
        anchor: Anchor = "middle",
        *,
        turn: float = 0.0,
    ) -> None:
        """Write a line."""
        painter, font = self._painter, theme.font(round(size))
        painter.setFont(font)
        painter.setPen(QColor(colour))
        width = QFontMetricsF(font).horizontalAdvance(words) + 2
        start = {"start": 0.0, "middle": -width / 2, "end": -width}[anchor]
        side = {
            "start": Qt.AlignmentFlag.AlignLeft,
            "middle": Qt.AlignmentFlag.AlignHCenter,
            "end": Qt.AlignmentFlag.AlignRight,
        }[anchor]
        painter.save()
        painter.translate(QPointF(*at))
        painter.rotate(turn)
        box = QRectF(start, -size, width, 2 * size)
        painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()

    def width_of(self, words: str, size: float) -> float:
        """Give the width of a text."""
        return text_width(words, size)

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Paint nothing outside of a box meanwhile."""
        self._painter.save()
        clip = QRectF(QPointF(*upper_left), QPointF(*lower_right))
        self._painter.setClipRect(clip, Qt.ClipOperation.IntersectClip)
        try:
            yield
        finally:
            self._painter.restore()

    def segments(
        self, ends: NDArray[np.floating], colour: str, width: float = 1.0, dashes: Sequence[float] = ()
    ) -> None:
        """Draw straight lines."""
        self._painter.setPen(_pen(colour, width, dashes))
        for (x0, y0), (x1, y1) in ends.tolist():
            self._painter.drawLine(QPointF(x0, y0), QPointF(x1, y1))

    def symbols(
        self,
        places: NDArray[np.floating],
        symbol: Symbol,
        sizes: NDArray[np.floating],
        colour: str,
        width: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Draw one symbol at many places."""
        vector = self._painter.paintEngine().type() == QPaintEngine.Type.SVG
        if symbol != "disc" or len(places) <= FEW or vector or np.ptp(sizes) > 0:
            super().symbols(places, symbol, sizes, colour, width, opacity)
            return
        pen = _pen(colour, float(sizes[0]), (), opacity)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        self._painter.setPen(pen)
        self._painter.drawPoints(polygon_of(places))


def text_width(words: str, size: float) -> float:
    """Give the width of a text in the font of the window, pixels of the usual size."""
    return QFontMetricsF(theme.font(round(size))).horizontalAdvance(words)


def polygon_of(points: Points) -> QPolygonF:
    """Make a polygon of Qt of points, (P, 2)."""
    array = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 2)
    polygon = QPolygonF()
    polygon.resize(len(array))
    if len(array):
        view: Any = shiboken6.VoidPtr  # its stub knows fewer arguments
        np.frombuffer(view(polygon.data(), array.nbytes, True), np.float64).reshape(-1, 2)[:] = array
    return polygon


def _colour(colour: str, opacity: float) -> QColor:
    made = QColor(colour)
    made.setAlphaF(opacity)
    return made


def _pen(colour: str, width: float, dashes: Sequence[float] = (), opacity: float = 1.0) -> QPen:
    pen = QPen(_colour(colour, opacity), width)
    if dashes:
        pen.setDashPattern([length / max(width, 1e-6) for length in dashes])
    return pen
