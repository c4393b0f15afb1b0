"""Course of an annotator's reliability over the images, as a small line in a cell of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF, QTransform

from raterscope.figures.drawing import DENSE, column_spans
from raterscope.text import counted, figure
from raterscope.widgets import theme

DOTS_FROM = 6.0
"""Minimum distance between two images, in pixels, for drawing dots as well as the line."""

COURSE_PEN = 1.3


@dataclass(frozen=True, eq=False)
class Course:
    """Reliability of an annotator on each of K images, in study order."""

    images: Sequence[str]  # (K,)
    clicks: NDArray[np.integer]  # (K,)
    # reliability, sensitivity: (K,): NaN if unknown
    reliability: NDArray[np.floating]
    sensitivity: NDArray[np.floating]

    @cached_property
    def line(self) -> tuple[QPolygonF, ...]:
        """Polygons of the reliability in the unit square, one for each uninterrupted part."""
        known = np.isfinite(self.reliability)
        across = np.linspace(0.0, 1.0, len(known))
        down = 1.0 - np.clip(np.nan_to_num(self.reliability), 0.0, 1.0)
        points = [QPointF(x, y) for x, y in zip(across.tolist(), down.tolist(), strict=True)]
        breaks = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
        return tuple(QPolygonF(points[begin:end]) for begin, end in breaks.reshape(-1, 2).tolist())

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Lowest and highest reliability over all images; NaN if unknown."""
        known = self.reliability[np.isfinite(self.reliability)]
        return (float(known.min()), float(known.max())) if len(known) else (math.nan, math.nan)

    @property
    def lowest(self) -> float:
        """Lowest reliability over all images; NaN if unknown."""
        return self._range[0]

    def summary(self) -> str:
        """Summarise the course: "0.62 to 0.97 on 8 images"."""
        on, (low, high) = f"on {counted(len(self.images), 'image')}", self._range
        return f"{figure(low)} to {figure(high)} {on}" if math.isfinite(low) else f"unknown {on}"

    def words(self, index: int) -> str:
        """Describe one image: "two.png: reliability 0.93 of 14 clicks, sensitivity 0.80"."""
        marks = counted(int(self.clicks[index]), "click")
        reliability, sensitivity = float(self.reliability[index]), float(self.sensitivity[index])
        text = f"reliability {figure(reliability)} of {marks}" if math.isfinite(reliability) else marks
        return f"{self.images[index]}: {text}" + (
            f", sensitivity {figure(sensitivity)}" if math.isfinite(sensitivity) else ""
        )

    def place_at(self, share: float) -> int:
        """Return the index of the image nearest to a share of the line's length."""
        return round(min(max(share, 0.0), 1.0) * (len(self.images) - 1))


def paint_course(painter: QPainter, box: QRectF, course: Course) -> None:
    """Paint the reliability from 0 (bottom) to 1 (top) of a box, interrupted where unknown."""
    palette = theme.current()
    painter.setPen(QPen(QColor(palette.line), 1))
    for edge in (box.top(), box.bottom()):
        painter.drawLine(QPointF(box.left(), edge), QPointF(box.right(), edge))
    step = box.width() / max(len(course.images) - 1, 1)
    onto = QTransform(box.width(), 0, 0, box.height(), box.left(), box.top())
    ink = QColor(palette.accent)
    if step * DENSE < 1:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        for outline in _dense_outlines(course, round(box.width()), COURSE_PEN / box.height()):
            painter.drawPolygon(onto.map(outline))
        return
    painter.setPen(QPen(ink, COURSE_PEN))
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


@lru_cache(maxsize=256)
def _dense_outlines(course: Course, columns: int, pen: float) -> tuple[QPolygonF, ...]:
    """Outline what a line of many images covers in each column of pixels, in the unit square.

    Its strokes would take as long to draw as the rest of the window.
    """
    known = np.flatnonzero(np.isfinite(course.reliability))
    if not len(known):
        return ()
    x = known * (columns / max(len(course.images) - 1, 1))
    y = 1.0 - np.clip(course.reliability[known], 0.0, 1.0)
    low, high = (span[:, 0] for span in column_spans(x, y[:, None], columns, stepped=False))
    run = np.cumsum(np.diff(known, prepend=known[0]) > 1)
    after = np.searchsorted(x, np.arange(columns) + 0.5)
    covered = run[np.maximum(after - 1, 0)] == run[np.minimum(after, len(x) - 1)]
    covered &= (after > 0) & (after < len(x))
    covered[np.clip(x.astype(np.int64), 0, columns - 1)] = True
    edges = np.flatnonzero(np.diff(covered, prepend=False, append=False)).reshape(-1, 2).tolist()
    outlines = []
    for begin, end in edges:
        across = np.repeat(np.arange(begin, end + 1), 2)[1:-1] / columns
        top, bottom = np.repeat(low[begin:end] - pen / 2, 2), np.repeat(high[begin:end] + pen / 2, 2)
        corners = np.concatenate([np.column_stack([across, top]), np.column_stack([across, bottom])[::-1]])
        outlines.append(QPolygonF([QPointF(*corner) for corner in corners.tolist()]))
    return tuple(outlines)
