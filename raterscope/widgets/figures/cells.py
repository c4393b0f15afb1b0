"""The cells of a confusion matrix: their colours, and a small matrix painted whole."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter

from raterscope.figures.colours import Theme
from raterscope.widgets import theme
from raterscope.widgets.figures.colour_bar import colours_of
from raterscope.widgets.figures.communities import ink_on

__all__ = ["cell_gap", "paint_cell", "paint_rates", "rate_table", "short_rate"]

FAINTEST = 0.10
"""How much of the accent stands for a rate of 0: a cell is seen as one on its ground."""


def rate_table() -> NDArray[np.uint8]:
    """Give the colours of rates 0 to 1 in the theme in use, (256, 3): from its surface to its accent."""
    return _ramp(theme.current())


def short_rate(value: float) -> str:
    """Write a rate with two decimals and as few signs as can be: ".83", "1.0"; nothing for NaN."""
    if not np.isfinite(value):
        return ""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text[:3]


def cell_gap(side: float) -> float:
    """Give the gap between cells of a size, in pixels; small ones touch."""
    return 0.0 if side < 5 else 1.0 if side < 14 else 2.0 if side < 40 else 4.0


def paint_cell(painter: QPainter, box: QRectF, ground: QColor) -> None:
    """Paint one cell's ground, its corners round where there is room."""
    if box.width() < 12 or box.height() < 12:
        painter.fillRect(box, ground)
        return
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    painter.drawRoundedRect(box, 3, 3)


def paint_rates(painter: QPainter, room: QRectF, rates: NDArray[np.floating]) -> None:
    """Paint rates (J, L) as large as a box allows, from its upper left, with numbers where they fit.

    Parameters
    ----------
    rates : (J, L) float
        NaN is painted as ground.
    """
    rows, columns = rates.shape
    side = min(room.width() / columns, room.height() / rows)
    gap = cell_gap(side)
    colours = colours_of(rates, 0.0, 1.0, rate_table())
    font = theme.font(theme.CAPTION)
    painter.setFont(font)
    numbers = QFontMetrics(font).horizontalAdvance(".00") + 4 <= side - gap and side >= 18
    for row in range(rows):
        for column in range(columns):
            box = QRectF(room.left() + column * side, room.top() + row * side, side - gap, side - gap)
            known = bool(np.isfinite(rates[row, column]))
            ground = QColor(*map(int, colours[row, column])) if known else QColor(theme.current().line)
            paint_cell(painter, box, ground)
            if numbers:
                painter.setPen(ink_on(ground))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, short_rate(float(rates[row, column])))


@lru_cache(maxsize=4)
def _ramp(look: Theme) -> NDArray[np.uint8]:
    ground, accent = QColor(look.surface), QColor(look.accent)
    ends = np.array([[c.red(), c.green(), c.blue()] for c in (ground, accent)], dtype=float)
    share = np.linspace(FAINTEST, 1.0, 256)[:, None]
    return np.asarray(np.round((1 - share) * ends[0] + share * ends[1]), dtype=np.uint8)
