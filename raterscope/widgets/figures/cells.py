"""Parts that several figures paint: cells of rates, colour bars, marks of communities."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter

from raterscope.figures.colours import (
    ANNOTATOR_SYMBOLS,
    Theme,
    community_colour,
    community_colour_on,
    contrast_of,
)
from raterscope.widgets import theme
from raterscope.widgets.painting import symbol_path

__all__ = [
    "BAR_HEIGHT",
    "cell_at",
    "cell_beside",
    "cell_gap",
    "colours_of",
    "community_colour",
    "community_ink",
    "community_word",
    "contrast",
    "ink_on",
    "mixed",
    "paint_cell",
    "paint_colour_bar",
    "paint_community",
    "paint_rates",
    "rate_table",
    "short_rate",
]


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


def community_ink(number: int) -> QColor:
    """Return a community's colour for text: moved towards the text's until it is readable."""
    return QColor(community_colour_on(theme.current(), number))


def community_word(number: int) -> str:
    """Name a community, counted from 1; a negative number is none."""
    return f"community {number + 1}" if number >= 0 else "no community"


def paint_community(painter: QPainter, centre: QPointF, number: int, radius: float) -> None:
    """Paint a community's shape in its colour."""
    painter.save()
    painter.translate(centre)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(community_ink(number))
    painter.drawPath(symbol_path(ANNOTATOR_SYMBOLS[max(number, 0) % len(ANNOTATOR_SYMBOLS)], radius))
    painter.restore()


def contrast(first: QColor, second: QColor) -> float:
    """Return the contrast of two colours, 1 to 21, as the accessibility guidelines (WCAG 2.1) define it."""
    return contrast_of(first.name(), second.name())


def mixed(first: QColor, second: QColor, share: float) -> QColor:
    """Mix two colours, the second's share being 0 to 1."""
    return QColor.fromRgbF(
        (1 - share) * first.redF() + share * second.redF(),
        (1 - share) * first.greenF() + share * second.greenF(),
        (1 - share) * first.blueF() + share * second.blueF(),
    )


def ink_on(ground: QColor) -> QColor:
    """Return black or white, whichever has more contrast with a ground."""
    black, white = QColor(theme.DARK.canvas), QColor("#ffffff")
    return black if contrast(black, ground) >= contrast(white, ground) else white


FAINTEST = 0.10
"""Share of the accent in the colour of rate 0, so that a cell stands out from its ground."""


def rate_table() -> NDArray[np.uint8]:
    """Return the colours of rates 0 to 1 in the theme in use, (256, 3): from its surface to its accent."""
    return _ramp(theme.current())


def short_rate(value: float) -> str:
    """Write a rate with two decimals and as few signs as can be: ".83", "1.0"; nothing for NaN."""
    if not np.isfinite(value):
        return ""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text[:3]


def cell_gap(side: float) -> float:
    """Return the gap between cells of a size, in pixels; small ones touch."""
    return 0.0 if side < 5 else 1.0 if side < 14 else 2.0 if side < 40 else 4.0


Cell = tuple[int, int]
"""Row and column of a matrix."""


def cell_at(position: QPointF, grid: QRectF, rows: int, columns: int) -> Cell | None:
    """Return the cell of a matrix under a position; None outside its rectangle."""
    if not rows or not columns or not grid.contains(position):
        return None
    row = int((position.y() - grid.top()) / max(grid.height(), 1e-9) * rows)
    column = int((position.x() - grid.left()) / max(grid.width(), 1e-9) * columns)
    return min(row, rows - 1), min(column, columns - 1)


def cell_beside(cell: Cell, across: int, down: int, rows: int, columns: int) -> Cell:
    """Return the cell that an arrow key leads to."""
    return min(max(cell[0] + down, 0), rows - 1), min(max(cell[1] + across, 0), columns - 1)


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
