"""Words and bars as the lists and tables paint them."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter

from raterscope.widgets import theme

__all__ = ["in_lines", "in_two_lines", "paint_bar", "paint_words"]


def paint_words(
    painter: QPainter,
    box: QRectF,
    text: str,
    colour: str,
    *,
    side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    brief: str = "",
) -> None:
    """Write one line of text in the painter's font, where it has no room its brief form, shortened."""
    painter.setPen(QColor(colour))
    metrics = QFontMetrics(painter.font())
    text = text.replace("\n", " ")  # a file's name may have an end of line
    if brief and metrics.horizontalAdvance(text) > box.width():
        text = brief
    short = metrics.elidedText(text, elide, int(box.width()))
    painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, short)


def in_two_lines(text: str, metrics: QFontMetrics, room: float) -> list[str]:
    """Part words after those that fit into a line; what is left, the second line, may be too long for it."""
    words = text.split(" ")
    first = len(words)
    while first > 1 and metrics.horizontalAdvance(" ".join(words[:first])) > room:
        first -= 1
    return [" ".join(part) for part in (words[:first], words[first:]) if part]


def in_lines(text: str, metrics: QFontMetrics, room: float, most: int) -> list[str]:
    """Break text between words into at most so many lines; what is too long for one loses its middle.

    The start of a name and its end are what differs from other names.
    """
    first, *rest = in_two_lines(text, metrics, room)
    middle = Qt.TextElideMode.ElideMiddle
    if not rest or most == 1:
        return [metrics.elidedText(text if most == 1 else first, middle, int(room))]
    first = metrics.elidedText(first, middle, int(room))
    return [first, *in_lines(rest[0], metrics, room, most - 1)]


def paint_bar(painter: QPainter, box: QRectF, share: float, colour: str) -> None:
    """Paint a bar with round ends, filled from the left; NaN leaves it empty."""
    painter.setPen(Qt.PenStyle.NoPen)
    filled = min(max(share, 0.0), 1.0) if share == share else 0.0
    radius = box.height() / 2
    for width, ground in ((box.width(), theme.current().line), (box.width() * filled, colour)):
        if width > 0:
            painter.setBrush(QColor(ground))
            painter.drawRoundedRect(QRectF(box.left(), box.top(), width, box.height()), radius, radius)
