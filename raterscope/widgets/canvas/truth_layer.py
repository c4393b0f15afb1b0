"""Known places: white cross-hairs with an open middle, which no state of a spot looks like."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from raterscope.widgets import theme
from raterscope.widgets.canvas.grid_index import GridIndex

__all__ = ["TruthLayer"]

RADIUS = 6.0


class TruthLayer:
    """Imported truth."""

    def __init__(self) -> None:
        self.set_points(np.empty(0), np.empty(0))

    def set_points(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        """Show other places."""
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self._index = GridIndex(self.x, self.y)

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the places in `rect` and those that reach into it."""
        reach = 2 * RADIUS / scale
        painter.setBrush(Qt.BrushStyle.NoBrush)
        dark, white = QPen(theme.colour(theme.DARK.canvas, 190), 3), QPen(QColor("#ffffff"), 1.2)
        for row in self._index.within(rect.adjusted(-reach, -reach, reach, reach)).tolist():
            # In the middle of a pixel, so that thin lines stay sharp.
            centre = QPointF(math.floor(self.x[row] * scale) + 0.5, math.floor(self.y[row] * scale) + 0.5)
            for pen in (dark, white):
                painter.setPen(pen)
                for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    outer = centre + QPointF(across * RADIUS, down * RADIUS)
                    painter.drawLine(centre + QPointF(across * 2.5, down * 2.5), outer)
