"""The canvas of the window: a painter of Qt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPaintEngine, QPainter, QPen, QPixmap, QPolygonF

from raterscope.figures.canvas import Anchor, Canvas, Pen, Point, Points
from raterscope.figures.symbols import Symbol
from raterscope.widgets import theme

__all__ = ["QtCanvas", "polygon_of", "text_width"]

FEW_DISCS, FEW = 150, 12
"""This many discs, or other symbols, are drawn one by one; of more, one is drawn and copied."""
_SIDES = {
    "start": (0.0, Qt.AlignmentFlag.AlignLeft),
    "middle": (0.5, Qt.AlignmentFlag.AlignHCenter),
    "end": (1.0, Qt.AlignmentFlag.AlignRight),
}


class QtCanvas(Canvas):
    """A canvas on an open painter with smooth edges."""

    def __init__(self, painter: QPainter) -> None:
        self._painter = painter

    def line(self, points: Points, pen: Pen) -> None:
        """Draw a line through points."""
        self._painter.setPen(_pen(pen))
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.drawPolyline(polygon_of(points))

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(_colour(fill, opacity))
        self._painter.drawPolygon(polygon_of(points))

    def area(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a large polygon without smooth edges, which takes less time."""
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self.polygon(points, fill, opacity)
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def disc(
        self, centre: Point, radius: float, fill: str, edge: Pen | None = None, opacity: float = 1.0
    ) -> None:
        """Draw a disc."""
        self._painter.setPen(_pen(edge) if edge else QPen(Qt.PenStyle.NoPen))
        self._painter.setBrush(_colour(fill, opacity) if fill else Qt.BrushStyle.NoBrush)
        self._painter.drawEllipse(QPointF(*centre), radius, radius)

    def text(
        self, position: Point, text: str, colour: str, size: float, anchor: Anchor = "middle",
        *, turn: float = 0.0,
    ) -> None:  # fmt: skip
        """Write a line of text."""
        painter, font = self._painter, theme.font(round(size))
        width = QFontMetricsF(font).horizontalAdvance(text) + 2
        share, side = _SIDES[anchor]
        painter.save()
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.translate(QPointF(*position))
        painter.rotate(turn)
        box = QRectF(-share * width, -size, width, 2 * size)
        painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()

    def width_of(self, text: str, size: float) -> float:
        """Return the width of a text."""
        return text_width(text, size)

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Paint nothing outside a rectangle within the context."""
        self._painter.save()
        clip = QRectF(QPointF(*upper_left), QPointF(*lower_right))
        self._painter.setClipRect(clip, Qt.ClipOperation.IntersectClip)
        try:
            yield
        finally:
            self._painter.restore()

    def segments(self, ends: NDArray[np.floating], pen: Pen) -> None:
        """Draw straight lines."""
        self._painter.setPen(_pen(pen))
        for (x0, y0), (x1, y1) in ends.tolist():
            self._painter.drawLine(QPointF(x0, y0), QPointF(x1, y1))

    def rectangles(self, boxes: NDArray[np.floating], fill: str, opacity: float = 1.0) -> None:
        """Fill rectangles, without smooth edges, so that neighbours touch."""
        painter, smooth = self._painter, QPainter.RenderHint.Antialiasing
        painter.setRenderHint(smooth, False)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_colour(fill, opacity))
        sides = np.asarray(boxes, dtype=np.float64)
        sizes = np.column_stack([sides[:, :2], sides[:, 2:] - sides[:, :2]])
        painter.drawRects([QRectF(*size) for size in sizes.tolist()])
        painter.setRenderHint(smooth)

    def symbols(
        self, centres: NDArray[np.floating], symbol: Symbol, sizes: NDArray[np.floating], pen: Pen, fill: str
    ) -> None:
        """Draw one symbol at many centres."""
        painter = self._painter
        few = FEW_DISCS if symbol == "disc" else FEW
        if len(centres) <= few or np.ptp(sizes) > 0 or painter.paintEngine().type() == QPaintEngine.Type.SVG:
            super().symbols(centres, symbol, sizes, pen, fill)
        elif symbol == "disc" and fill and not pen.colour:
            round_pen = _pen(Pen(fill, float(sizes[0]), (), pen.opacity))
            round_pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(round_pen)
            painter.drawPoints(polygon_of(centres))
        else:
            half = 0.75 * float(sizes[0]) + pen.width
            ratio = painter.device().devicePixelRatioF() * painter.worldTransform().m11()
            stamp = QPixmap(round(2 * half * ratio), round(2 * half * ratio))
            stamp.setDevicePixelRatio(ratio)
            stamp.fill(Qt.GlobalColor.transparent)
            with QPainter(stamp) as stamper:
                stamper.setRenderHint(QPainter.RenderHint.Antialiasing)
                QtCanvas(stamper).symbols(np.array([(half, half)]), symbol, sizes[:1], pen, fill)
            for x, y in (centres - half).tolist():
                painter.drawPixmap(QPointF(x, y), stamp)


def text_width(text: str, size: float) -> float:
    """Return the width of a text in the font of the window, pixels of the usual size."""
    return QFontMetricsF(theme.font(round(size))).horizontalAdvance(text)


def polygon_of(points: Points) -> QPolygonF:
    """Convert points, (P, 2), to a polygon of Qt."""
    array = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 2)
    polygon = QPolygonF()
    polygon.resize(len(array))
    if len(array):
        view: Any = shiboken6.VoidPtr  # its stub knows fewer arguments
        np.frombuffer(view(polygon.data(), array.nbytes, True), np.float64).reshape(-1, 2)[:] = array
    return polygon


def _colour(colour: str, opacity: float) -> QColor:
    ink = QColor(colour)
    ink.setAlphaF(opacity)
    return ink


def _pen(pen: Pen) -> QPen:
    made = QPen(_colour(pen.colour, pen.opacity), pen.width)
    if pen.dashes:
        made.setDashPattern([length / max(pen.width, 1e-6) for length in pen.dashes])
    return made
