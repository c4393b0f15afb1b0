"""Where a test points in a figure."""

from PySide6.QtCore import QPoint

__all__ = ["centre"]

STEP = 4
"""Pixels from one place that is tried to the next: the smallest part that a test points at is larger."""


def centre(figure, part, top=0) -> QPoint:
    """Give the middle of a part below `top`, as the figure itself tells where that is."""
    found = [
        (x, y)
        for x in range(0, figure.width(), STEP)
        for y in range(top, figure.height(), STEP)
        if figure.part_at(QPoint(x, y)) == part
    ]
    assert found, part
    return QPoint(*(round(sum(at) / len(found)) for at in zip(*found, strict=True)))
