"""Arrays as Qt's pictures, and the part of one that is in sight."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from raterscope.widgets.canvas.viewport import Rect

__all__ = ["draw_part", "level_for", "to_picture"]


def to_picture(array: NDArray[np.uint8]) -> QImage:
    """Make Qt's picture of a grey (H, W) or RGB (H, W, 3) array of bytes."""
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise ValueError(f"an image of {array.dtype} and shape {array.shape}; expected bytes, grey or RGB")
    array = np.ascontiguousarray(array)
    height, width = array.shape[:2]
    kind = QImage.Format.Format_Grayscale8 if array.ndim == 2 else QImage.Format.Format_RGB888
    # The conversion copies, so that the array may go.
    return QImage(array.data, width, height, array.strides[0], kind).convertToFormat(
        QImage.Format.Format_RGB32
    )


def level_for(enlarged: float) -> int:
    """Tell how often to halve a picture before it is drawn at a scale, which shrinks it by less than half."""
    return max(0, math.floor(math.log2(1 / enlarged) + 0.01)) if enlarged < 1 else 0


def draw_part(
    painter: QPainter, picture: QImage, box: Rect, scale: float, rect: QRectF, *, smooth: bool
) -> None:
    """Draw what lies in `rect` of a picture that covers `box`, both in the image's units.

    Only the part in sight is handed to Qt: its painting goes wrong beyond 32,767 pixels.
    """
    left, top, right, bottom = box
    across, down = picture.width() / (right - left), picture.height() / (bottom - top)
    # Two pixels more on each side, so that neighbouring tiles interpolate the same.
    first_x = max(0, math.floor((rect.left() - left) * across) - 2)
    first_y = max(0, math.floor((rect.top() - top) * down) - 2)
    last_x = min(picture.width(), math.ceil((rect.right() - left) * across) + 2)
    last_y = min(picture.height(), math.ceil((rect.bottom() - top) * down) + 2)
    if last_x <= first_x or last_y <= first_y:
        return
    source = QRectF(first_x, first_y, last_x - first_x, last_y - first_y)
    target = QRectF(
        (left + first_x / across) * scale,
        (top + first_y / down) * scale,
        source.width() / across * scale,
        source.height() / down * scale,
    )
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.drawImage(target, picture, source)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
