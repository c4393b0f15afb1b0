"""Heat maps over a slice, and their colour bar."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter

from raterscope.widgets import theme
from raterscope.widgets.chips import paint_chip_ground
from raterscope.widgets.colour_maps import CIVIDIS, INFERNO, PUOR, VIRIDIS
from raterscope.widgets.text_size import enlarge, text_size
from raterscope.widgets.volume.layers import HeatMap
from raterscope.widgets.volume.plane import Box, Plane

__all__ = ["BAR_HEIGHT", "heat_picture", "mask_picture", "paint_colour_bar"]

_TABLES = {"doubt": INFERNO, "weight": CIVIDIS, "probability": VIRIDIS, "difference": PUOR}
_RISE = 5.0
"""How fast a map that means nothing at its low end (a difference: in its middle) ceases to be see-through."""

BAR_HEIGHT = 52
MARGIN = 10


def heat_picture(heat: HeatMap, plane: Plane, index: int) -> tuple[QImage, Box] | None:
    """Make the picture of a heat map on one slice, and its place on the plane; None where it has no part."""
    cut = plane.cut_crop(heat.values, heat.origin, index)
    if cut is None:
        return None
    shown = plane.evenly(*cut)
    span = (heat.high - heat.low) or 1.0
    share = shown.astype(np.float32)
    share *= np.float32(heat.scale * 255.0 / span)
    share -= np.float32(heat.low * 255.0 / span)
    np.nan_to_num(share, copy=False, nan=0.0)
    places = np.clip(share + 0.5, 0, 255, out=share).astype(np.uint8)
    return _picture(np.take(_colours(heat.colours), places)), plane.box_of(heat.origin, heat.values.shape)


def mask_picture(mask: NDArray[np.bool_], colour: QColor) -> QImage:
    """Make a picture of one colour, see-through where the mask is not."""
    table = np.array([0, _premultiplied(np.array([colour.getRgb()], dtype=float) / 255)[0]], dtype=np.uint32)
    return _picture(np.take(table, mask.astype(np.uint8)))


def paint_colour_bar(painter: QPainter, right: float, top: float, heat: HeatMap) -> None:
    """Paint the colours of a heat map with the numbers at their ends, its upper right corner at a place."""
    painter.save()
    enlarge(painter, QRectF())
    right, top = right / text_size(), top / text_size()
    painter.setFont(theme.font(theme.CAPTION))
    metrics = QFontMetrics(painter.font())
    ends = f"{heat.low:.3g}", f"{heat.high:.3g}"
    width = max(150, metrics.horizontalAdvance(heat.label)) + 2 * MARGIN
    box = QRectF(right - width, top, width, BAR_HEIGHT)
    paint_chip_ground(painter, box)
    line = QRectF(box.left() + MARGIN, box.top() + 4, width - 2 * MARGIN, 16)
    painter.setPen(QColor(theme.DARK.second))
    middle = Qt.AlignmentFlag.AlignVCenter
    painter.drawText(line, Qt.AlignmentFlag.AlignLeft | middle, heat.label)
    colours = np.ascontiguousarray(_TABLES[heat.colours])
    bar = QImage(colours.data, 256, 1, 768, QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(line.left(), box.top() + 22, line.width(), 8), bar)
    painter.setPen(QColor(theme.DARK.text))
    under = line.translated(0, 28)
    painter.drawText(under, Qt.AlignmentFlag.AlignLeft | middle, ends[0])
    painter.drawText(under, Qt.AlignmentFlag.AlignRight | middle, ends[1])
    if heat.low < 0 < heat.high and abs(heat.low + heat.high) < 1e-6 * heat.high:
        painter.drawText(under, Qt.AlignmentFlag.AlignHCenter | middle, "0")
    painter.restore()


@lru_cache(maxsize=8)
def _colours(name: str) -> NDArray[np.uint32]:
    share = np.linspace(0.0, 1.0, 256)
    if name == "weight":
        alpha = np.ones(256)
    else:
        from_nothing = np.abs(2.0 * share - 1.0) if name == "difference" else share
        alpha = np.minimum(1.0, _RISE * from_nothing)
    return _premultiplied(np.column_stack([_TABLES[name] / 255.0, alpha]))


def _premultiplied(colours: NDArray[np.float64]) -> NDArray[np.uint32]:
    alpha = colours[:, 3]
    red, green, blue = (np.round(255 * colours[:, channel] * alpha).astype(np.uint32) for channel in range(3))
    whole = np.round(255 * alpha).astype(np.uint32)
    return np.asarray((whole << 24) | (red << 16) | (green << 8) | blue, dtype=np.uint32)


def _picture(pixels: NDArray[np.uint32]) -> QImage:
    height, width = pixels.shape
    # The copy is Qt's own, so that the array may go.
    return QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied).copy()
