"""The image itself, in halves and quarters of its size so that it is smooth and quick at any scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from raterscope.widgets import theme
from raterscope.widgets.canvas.pictures import draw_part, to_picture
from raterscope.widgets.canvas.viewport import Rect

__all__ = ["ImageLayer"]

SMALLEST_LEVEL = 256
SQUARE_PIXELS_FROM = 8.0
"""Above this enlargement a pixel is shown as the square it is."""


class ImageLayer:
    """One image on its extent, or the frame of the extent where there is no image."""

    def __init__(self) -> None:
        self._levels: list[QImage] = []
        self.extent: Rect = (0.0, 0.0, 1.0, 1.0)

    def set_image(self, array: NDArray[np.uint8] | None, extent: Rect) -> None:
        """Show another image."""
        self._levels = [] if array is None else [to_picture(array)]
        self.extent = extent

    def thumbnail(self, width: int, height: int) -> QImage | None:
        """Give the whole image, small."""
        if not self._levels:
            return None
        smooth = Qt.TransformationMode.SmoothTransformation
        level = self._level(min(width / self._levels[0].width(), 1.0))
        return self._levels[level].scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)

    def paint(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint what lies in `rect`."""
        left, top, right, bottom = self.extent
        whole = QRectF(left * scale, top * scale, (right - left) * scale, (bottom - top) * scale)
        if not self._levels:
            painter.fillRect(whole, QColor("#16191d"))
            painter.setPen(QPen(QColor(theme.DARK.line), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(whole)
            return
        enlarged = whole.width() / self._levels[0].width()
        level = self._level(enlarged * painter.transform().m11())
        smooth = enlarged < SQUARE_PIXELS_FROM
        draw_part(painter, self._levels[level], self.extent, scale, rect, smooth=smooth)

    def _level(self, enlarged: float) -> int:
        wanted = max(0, math.floor(math.log2(1 / enlarged) + 0.01)) if enlarged < 1 else 0
        while len(self._levels) <= wanted and min(self._levels[-1].width(), self._levels[-1].height()) > (
            SMALLEST_LEVEL
        ):
            last = self._levels[-1]
            self._levels.append(
                last.scaled(
                    max(1, last.width() // 2),
                    max(1, last.height() // 2),
                    Qt.AspectRatioMode.IgnoreAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
            )
        return min(wanted, len(self._levels) - 1)
