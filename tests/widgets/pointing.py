"""Where a test points in a figure."""

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt

from raterscope.widgets.theme import text_size

__all__ = ["centre", "click_on_value", "ringed"]

STEP = 4
"""Pixels from one place that is tried to the next: the smallest part that a test points at is larger."""


def centre(figure, part, top=0) -> QPoint:
    """Return the middle of a part below `top`, as the figure itself tells where that is."""
    results = [
        (x, y)
        for x in range(0, figure.width(), STEP)
        for y in range(top, figure.height(), STEP)
        if figure.part_at(QPoint(x, y)) == part
    ]
    assert results, part
    return QPoint(*(round(sum(at) / len(results)) for at in zip(*results, strict=True)))


def click_on_value(qtbot, figure, x: float, y: float) -> None:
    """Click at values of the axes of a chart."""
    (across,), (down,) = figure.plan.pixels(np.array([x]), np.array([y]))
    point = QPointF(across, down) * text_size()
    qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=point.toPoint())


def ringed(figure) -> list[tuple[float, float]]:
    """Return the values of the points of a chart that are ringed."""
    marks = figure.chart.marks
    return [(float(marks[mark].across[at]), float(marks[mark].up[at])) for mark, at in figure.rings]
