"""The numbers beside a plot whose axis has a 0: at the 0, and at either end that lies apart from it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words

__all__ = ["paint_value_scale"]

APART = 14.0
HEIGHT = 16.0


def paint_value_scale(
    painter: QPainter, box: QRectF, least: float, most: float, zero: float, digits: int = 2
) -> None:
    """Write the numbers left of a plot.

    Parameters
    ----------
    painter : QPainter
    box : QRectF
        The plot; there is room for a number between the widget's edge and its left side.
    least, most : float
        What its lower and its upper edge stand for.
    zero : float
        How high 0 lies, in pixels from the top of the widget.
    digits : int
        That count.
    """
    look, right = theme.current(), Qt.AlignmentFlag.AlignRight
    painter.setFont(theme.font(theme.CAPTION))
    ends = [(most, box.top() + HEIGHT / 2 - 3), (least, box.bottom() - HEIGHT / 2 + 3)]
    for value, y in [(0.0, zero), *((value, y) for value, y in ends if abs(y - zero) > APART)]:
        room = QRectF(0, y - HEIGHT / 2, box.left() - 6, HEIGHT)
        paint_words(painter, room, f"{value:.{digits}g}".replace("-", "−"), look.third, side=right)
