"""An image in memory, in halves and quarters of its size so that it is smooth and quick at any scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter

from raterscope.widgets.canvas.pictures import draw_part, level_for, to_picture
from raterscope.widgets.canvas.viewport import Rect

__all__ = ["WholePicture"]

SMALLEST_LEVEL = 256


class WholePicture:
    """A picture all of which is there.

    Parameters
    ----------
    array : (H, W) or (H, W, 3) uint8
    extent : (left, top, right, bottom)
        What it covers, in the units in which all places here are.
    """

    def __init__(self, array: NDArray[np.uint8], extent: Rect) -> None:
        self._levels = [to_picture(array)]
        self._extent = extent

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self._levels[0].width()

    def thumbnail(self, width: int, height: int) -> QImage:
        """Give the whole image, small."""
        smooth = Qt.TransformationMode.SmoothTransformation
        level = self._level(min(width / self.width, 1.0))
        return self._levels[level].scaled(width, height, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)

    def paint(self, painter: QPainter, scale: float, rect: QRectF, enlarged: float, *, smooth: bool) -> None:
        """Paint what lies in `rect`, `scale` units of the painter for one of the image's."""
        draw_part(painter, self._levels[self._level(enlarged)], self._extent, scale, rect, smooth=smooth)

    def _level(self, enlarged: float) -> int:
        wanted = level_for(enlarged)
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
