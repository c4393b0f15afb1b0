"""Positions in a figure for tests to point at."""

from functools import cache

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt

from raterscope.widgets.theme import text_size

__all__ = ["centre", "click_on_value", "ringed"]

STEP = 4
"""Pixels from one position that is tried to the next: the smallest part that a test points at is larger."""


def centre(figure, part, top=0) -> QPoint:
    """Return the middle of a part below `top`, as the figure itself locates it."""

    @cache
    def inside(x: int, y: int) -> bool:
        within = 0 <= x < figure.width() and top <= y < figure.height()
        return within and figure.part_at(QPoint(x, y)) == part

    grids = (
        (x, y)
        for step in (16 * STEP, 4 * STEP, STEP)
        for x in range(0, figure.width(), step)
        for y in range(top, figure.height(), step)
    )
    open_positions = [next((at for at in grids if inside(*at)), None)]
    assert open_positions[0], part
    results = set()
    while open_positions:
        x, y = at = open_positions.pop()
        if at not in results and inside(x, y):
            results.add(at)
            open_positions += [(x + STEP, y), (x - STEP, y), (x, y + STEP), (x, y - STEP)]
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
