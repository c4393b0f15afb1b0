"""How long a length of the image is on the screen."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from raterscope.widgets import theme
from raterscope.widgets.chips import paint_chip_ground
from raterscope.widgets.text_size import enlarge, text_size, usual

__all__ = ["nice_length", "paint_scale_bar"]

LONGEST = 130.0
HEIGHT = 34
MARGINS = 32.0


def nice_length(longest: float) -> float:
    """Give the largest of 1, 2, 5, 10, 20, 50 ... that is not above `longest`."""
    if longest <= 0:
        raise ValueError(f"a length of {longest}; expected one above 0")
    power = 10.0 ** math.floor(math.log10(longest))
    return next(step * power for step in (5.0, 2.0, 1.0) if step * power <= longest * (1 + 1e-9))


def paint_scale_bar(
    painter: QPainter, corner: QPointF, scale: float, pixel_size: float | None, room: float = math.inf
) -> None:
    """Paint the bar with its length at the bottom left.

    Parameters
    ----------
    corner : QPointF
        Lower left corner.
    scale : float
        Screen pixels a unit of the image.
    pixel_size : float or None
        Micrometres a unit of the image, where that is known.
    room : float
        Screen pixels from the corner to the right edge of the view; a bar that is cut off misleads.
    """
    painter.save()
    enlarge(painter, QRectF())
    corner, scale, room = usual(corner), scale / text_size(), room / text_size()
    size = pixel_size or 1.0
    length = nice_length(min(LONGEST / text_size(), max(room - MARGINS, 10.0)) / scale * size)
    width = length / size * scale
    unit = "µm" if pixel_size else "px"
    if pixel_size and length >= 1000:
        length, unit = length / 1000, "mm"
    words = f"{length:g} {unit}"
    painter.setFont(theme.font(theme.CAPTION, bold=True))
    wide = max(width, QFontMetrics(painter.font()).horizontalAdvance(words)) + 20
    box = QRectF(corner.x(), corner.y() - HEIGHT, wide, HEIGHT)
    paint_chip_ground(painter, box)
    painter.setPen(QPen(QColor(theme.DARK.text), 2))
    line = box.top() + 10
    for start, stop in (
        ((0, 0), (width, 0)),
        ((0, -3), (0, 3)),
        ((width, -3), (width, 3)),
    ):
        painter.drawLine(
            QPointF(box.left() + 10 + start[0], line + start[1]),
            QPointF(box.left() + 10 + stop[0], line + stop[1]),
        )
    text = QRectF(box.left() + 10, line + 3, wide - 20, 18)
    painter.drawText(text, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
    painter.restore()
