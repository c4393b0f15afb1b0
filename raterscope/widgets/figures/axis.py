"""The figures along an axis, written as everywhere else, and names below an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter

__all__ = ["NameAxis", "WrittenAxis"]


class WrittenAxis(pg.AxisItem):  # type: ignore[misc]
    """Tells thousands apart and has a true minus; of what is counted it names whole numbers alone.

    Attributes
    ----------
    whole : bool
        Whether there is nothing between 1 and 2, as with iterations.
    """

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.whole = False

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Write the figures."""
        if self.logMode:
            return list(super().tickStrings(values, scale, spacing))
        step = f"{spacing * scale:.0e}"
        places = max(-int(step.partition("e")[2]), 0)
        return [f"{value * scale:,.{places}f}".replace("-", "−") for value in values]

    def tickSpacing(self, least: float, most: float, size: float) -> list[tuple[float, float]]:
        """Say how far apart figures may stand."""
        found = list(super().tickSpacing(least, most, size))
        return [one for one in found if one[0] >= 1] or [(1, 0)] if self.whole else found


class NameAxis(pg.AxisItem):  # type: ignore[misc]
    """Names below what they stand for, turned so that long ones have room."""

    ANGLE = -32.0

    def drawPicture(
        self, p: QPainter, axisSpec: object, tickSpecs: Sequence[Any], textSpecs: Sequence[tuple[Any, ...]]
    ) -> None:
        """Paint the axis, then each name so that it ends below its tick."""
        super().drawPicture(p, axisSpec, tickSpecs, ())
        p.setFont(self.style["tickFont"] or self.font())
        p.setPen(self.textPen())
        for box, _, name in textSpecs:
            p.save()
            p.translate(QPointF(box.center().x() + 4, box.top() + 2))
            p.rotate(self.ANGLE)
            right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
            p.drawText(QRectF(-200, 0, 200, 2 * box.height() + 8), right, name)
            p.restore()
