"""A triangle whose points are three shares: where it lies, and how its frame is painted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words

__all__ = ["corners_in", "paint_triangle", "places_in"]

NAME = 84.0


def corners_in(box: QRectF) -> NDArray[np.float64]:
    """Give the largest triangle in a room: lower left, top and lower right, (3, 2) pixels."""
    side = max(min(box.width(), box.height() * 2 / math.sqrt(3)), 1.0)
    left = box.left() + (box.width() - side) / 2
    low = box.top() + (box.height() + side * math.sqrt(3) / 2) / 2
    return np.array([(left, low), (left + side / 2, low - side * math.sqrt(3) / 2), (left + side, low)])


def places_in(corners: NDArray[np.float64], shares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Give where shares, (..., 3), lie in a triangle, (..., 2) pixels."""
    values = np.asarray(shares, dtype=np.float64)
    return np.asarray((values / values.sum(axis=-1, keepdims=True)) @ corners)


def paint_triangle(painter: QPainter, corners: NDArray[np.float64], names: Sequence[str]) -> None:
    """Paint its frame, a grid of quarters, and what the corners stand for."""
    look = theme.current()
    points = [QPointF(*corner) for corner in corners]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.colour(look.line, 110), 1))
    for share in (0.25, 0.5, 0.75):
        for first, second, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            start = points[first] + (points[second] - points[first]) * share
            painter.drawLine(start, points[third] + (points[second] - points[third]) * share)
    painter.setPen(QPen(QColor(look.line), 1.4))
    painter.drawPolygon(QPolygonF(points))
    painter.setFont(theme.font(theme.CAPTION))
    most = max(min(NAME, (points[2].x() - points[0].x()) / 2), 12.0)
    for corner, name, above in zip(points, names, (False, True, False), strict=True):
        width = min(painter.fontMetrics().horizontalAdvance(name) + 2.0, most)
        left = max(corner.x() - width / 2, 0.0)
        box = QRectF(left, corner.y() - 19 if above else corner.y() + 3, width, 15)
        paint_words(painter, box, name, look.second, elide=Qt.TextElideMode.ElideMiddle)
