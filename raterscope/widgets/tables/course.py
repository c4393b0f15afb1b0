"""How reliable an annotator was on one image after the other, as a small line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF, QTransform

from raterscope.text.numbers import count, figure
from raterscope.widgets import theme

__all__ = ["Course", "paint_course"]

DOTS_FROM = 6.0
"""Pixels from one image to the next: where they lie closer, only the line is drawn."""


@dataclass(frozen=True, eq=False)
class Course:
    """What is said of an annotator on each of K images, in their order.

    Attributes
    ----------
    images : sequence of K str
    clicks : (K,) int
    reliability, sensitivity : (K,) float
        NaN where not known.
    """

    images: Sequence[str]
    clicks: NDArray[np.integer]
    reliability: NDArray[np.floating]
    sensitivity: NDArray[np.floating]

    @cached_property
    def line(self) -> tuple[QPolygonF, ...]:
        """The reliability in the unit square, from its top left, a polygon each time it is not broken."""
        known = np.isfinite(self.reliability)
        across = np.linspace(0.0, 1.0, len(known))
        down = 1.0 - np.clip(np.nan_to_num(self.reliability), 0.0, 1.0)
        points = [QPointF(x, y) for x, y in zip(across.tolist(), down.tolist(), strict=True)]
        breaks = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
        return tuple(QPolygonF(points[begin:end]) for begin, end in breaks.reshape(-1, 2).tolist())

    @property
    def lowest(self) -> float:
        """The reliability on the worst image; NaN where none is known."""
        known = self.reliability[np.isfinite(self.reliability)]
        return float(known.min()) if len(known) else math.nan

    def summary(self) -> str:
        """Say it in a few words: "0.62 to 0.97 on 8 images"."""
        known = self.reliability[np.isfinite(self.reliability)]
        on = f"on {count(len(self.images), 'image')}"
        return f"{figure(known.min())} to {figure(known.max())} {on}" if len(known) else f"unknown {on}"

    def words(self, place: int) -> str:
        """Say one image: "two.png: reliability 0.93 of 14 clicks, sensitivity 0.80"."""
        marks = count(int(self.clicks[place]), "click")
        right, found = float(self.reliability[place]), float(self.sensitivity[place])
        said = f"reliability {figure(right)} of {marks}" if math.isfinite(right) else marks
        return f"{self.images[place]}: {said}" + (
            f", sensitivity {figure(found)}" if math.isfinite(found) else ""
        )

    def place_at(self, share: float) -> int:
        """Give the image nearest to a share of the line's length."""
        return round(min(max(share, 0.0), 1.0) * (len(self.images) - 1))


def paint_course(painter: QPainter, box: QRectF, course: Course) -> None:
    """Paint the reliability from 0 at the bottom of a box to 1 at its top; it is broken where not known."""
    look = theme.current()
    painter.setPen(QPen(QColor(look.line), 1))
    for edge in (box.top(), box.bottom()):
        painter.drawLine(QPointF(box.left(), edge), QPointF(box.right(), edge))
    step = box.width() / max(len(course.images) - 1, 1)
    onto = QTransform(box.width(), 0, 0, box.height(), box.left(), box.top())
    ink = QColor(look.accent)
    painter.setPen(QPen(ink, 1.3))
    for unbroken in course.line:
        points = onto.map(unbroken)
        painter.drawPolyline(points)
        if points.count() == 1 or step >= DOTS_FROM:
            painter.save()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink)
            for point in map(points.at, range(points.count())):
                painter.drawEllipse(point, 1.8, 1.8)
            painter.restore()
