"""How a community of annotators is told from the others: by its number, a colour and a shape."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter

from raterscope.figures.colours import ANNOTATOR_SYMBOLS, community_colour, community_colour_on, contrast_of
from raterscope.widgets import theme
from raterscope.widgets.glyphs import symbol_path

__all__ = [
    "community_colour",
    "community_ink",
    "community_word",
    "contrast",
    "ink_on",
    "mixed",
    "paint_community",
]


def community_ink(number: int) -> QColor:
    """Give a community's colour as words are written in it: moved towards the text's until it is readable."""
    return QColor(community_colour_on(theme.current(), number))


def community_word(number: int) -> str:
    """Say which community: counted from 1; a negative number is none."""
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
    """Give the contrast of two colours, 1 to 21, as the accessibility guidelines (WCAG 2.1) define it."""
    return contrast_of(first.name(), second.name())


def mixed(first: QColor, second: QColor, share: float) -> QColor:
    """Mix two colours, the second's share being 0 to 1."""
    return QColor.fromRgbF(
        (1 - share) * first.redF() + share * second.redF(),
        (1 - share) * first.greenF() + share * second.greenF(),
        (1 - share) * first.blueF() + share * second.blueF(),
    )


def ink_on(ground: QColor) -> QColor:
    """Give black or white, whichever is read better on a ground."""
    black, white = QColor(theme.DARK.canvas), QColor("#ffffff")
    return black if contrast(black, ground) >= contrast(white, ground) else white
