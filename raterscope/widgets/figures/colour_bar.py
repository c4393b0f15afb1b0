"""A colour map with the numbers at its ends, beside or under what it explains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from raterscope.widgets import theme

__all__ = ["BAR_HEIGHT", "colours_of", "paint_colour_bar"]

BAR_HEIGHT = 24
THICKNESS = 6


def colours_of(
    values: NDArray[np.floating], low: float, high: float, table: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Colour values by a table.

    Parameters
    ----------
    values : (...) float
        NaN takes the colour of the low end.
    low, high : float
        What the first and the last colour stand for.
    table : (256, 3) uint8

    Returns
    -------
    colours : (..., 3) uint8
    """
    share = (np.asarray(values, dtype=float) - low) / ((high - low) or 1.0)
    return table[np.round(255 * np.clip(np.nan_to_num(share), 0, 1)).astype(np.uint8)]


def paint_colour_bar(
    painter: QPainter, box: QRectF, table: NDArray[np.uint8], low: float, high: float, words: str
) -> None:
    """Paint the bar along the top of a box, under it what its ends and the colours stand for.

    Parameters
    ----------
    box : QRectF
        `BAR_HEIGHT` high.
    table : (256, 3) uint8
    low, high : float
    words : str
        The quantity, with its unit.
    """
    look = theme.current()
    colours = np.ascontiguousarray(table)
    bar = QImage(colours.data, len(colours), 1, 3 * len(colours), QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(box.left(), box.top(), box.width(), THICKNESS), bar)
    painter.setFont(theme.font(theme.CAPTION))
    painter.setPen(QColor(look.second))
    under = box.adjusted(0, THICKNESS + 2, 0, 0)
    sides = (
        (Qt.AlignmentFlag.AlignLeft, _end(low)),
        (Qt.AlignmentFlag.AlignHCenter, words),
        (Qt.AlignmentFlag.AlignRight, _end(high)),
    )
    for side, text in sides:
        painter.drawText(under, side | Qt.AlignmentFlag.AlignTop, text)


def _end(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
