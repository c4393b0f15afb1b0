"""The spots that the fusion found and the expert decided: ellipses, marks by state, numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap

from raterscope.algorithms.clicks.ellipses import ellipses
from raterscope.widgets import theme
from raterscope.widgets.canvas.grid_index import GridIndex
from raterscope.widgets.canvas.marks import DetectionMarks
from raterscope.widgets.glyphs import symbol_path
from raterscope.widgets.text_size import pixels

__all__ = ["SpotLayer", "state_style"]

SMALLEST_RADIUS = 5.0
"""Pixels on the screen below which an ellipse does not shrink, so that a spot is never lost."""

MARK_SIDE = 16

LABELS_UP_TO = 40
"""Spots in sight up to which their numbers are written beside them."""


@dataclass(frozen=True, slots=True)
class StateStyle:
    """How a state is drawn: never by colour alone."""

    colour: str
    width: float
    dashes: tuple[float, ...]
    mark: str


@lru_cache(maxsize=16)
def state_style(state: str) -> StateStyle:
    """Give the look of a state; on the canvas the dark tokens hold in both themes."""
    look = theme.DARK
    return {
        "detected": StateStyle(look.accent, 1.6, (), "o"),
        "accepted": StateStyle(look.accent, 2.6, (), "v"),
        "added": StateStyle(look.accent, 2.6, (), "+"),
        "rejected": StateStyle(look.rejected, 1.6, (3.0, 2.0), "x"),
        "turned down": StateStyle(look.rejected, 2.6, (3.0, 1.6), "X"),
        "undecided": StateStyle(look.text, 1.6, (2.0, 1.6), "?"),
        "disputed": StateStyle(look.disputed, 2.0, (2.0, 1.6), "?"),
    }[state]


class SpotLayer:
    """M spots, with what is selected among them left to the canvas."""

    def __init__(self, coverage: float = 0.95) -> None:
        self.coverage = coverage
        self.set_spots(DetectionMarks.none())

    def set_spots(self, spots: DetectionMarks) -> None:
        """Show other spots."""
        self.spots = spots
        shapes = ellipses(spots.covariance, self.coverage)
        self._radii, self._turn = shapes[:, :2], np.degrees(shapes[:, 2])
        self._index = GridIndex(spots.x, spots.y)

    def reach(self, scale: float) -> float:
        """Give how far an ellipse may reach from its centre, in the image's units."""
        largest = float(self._radii.max()) if len(self._radii) else 0.0
        return max(largest, SMALLEST_RADIUS / scale) + 6 / scale

    def radius(self, index: int) -> float:
        """Give the long half axis of a spot, in the image's units."""
        return float(self._radii[index, 0])

    def in_sight(self, rect: QRectF) -> NDArray[np.int64]:
        """Give the spots whose centre lies in a rectangle."""
        return self._index.within(rect)

    def at(self, x: float, y: float, scale: float) -> int | None:
        """Give the nearest of the spots whose ellipse, slightly enlarged, holds a place."""
        if not len(self.spots):
            return None
        reach = self.reach(scale)
        rows = self._index.within(QRectF(x - reach, y - reach, 2 * reach, 2 * reach))
        if not len(rows):
            return None
        dx, dy = self.spots.x[rows] - x, self.spots.y[rows] - y
        turn = np.radians(self._turn[rows])
        along = dx * np.cos(turn) + dy * np.sin(turn)
        aside = dy * np.cos(turn) - dx * np.sin(turn)
        radii = np.maximum(self._radii[rows], SMALLEST_RADIUS / scale) + 3 / scale
        inside = np.hypot(along / radii[:, 0], aside / radii[:, 1]) <= 1
        if not inside.any():
            return None
        distance = np.where(inside, np.hypot(dx, dy), np.inf)
        return int(rows[int(np.argmin(distance))])

    def paint_ellipses(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint the ellipses that reach into `rect`, each on a dark line so that it is seen on any image."""
        reach = self.reach(scale)
        rows = self._index.within(rect.adjusted(-reach, -reach, reach, reach))
        places = np.column_stack([self.spots.x[rows], self.spots.y[rows]]) * scale
        radii = np.maximum(self._radii[rows] * scale, SMALLEST_RADIUS)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        before, centre = painter.transform(), QPointF()
        for row, (x, y), (long, short), turn in zip(
            rows.tolist(), places.tolist(), radii.tolist(), self._turn[rows].tolist(), strict=True
        ):
            ground, line = _pens(self.spots.state[row])
            painter.translate(x, y)
            painter.rotate(turn)
            painter.setPen(ground)
            painter.drawEllipse(centre, long, short)
            painter.setPen(line)
            painter.drawEllipse(centre, long, short)
            painter.setTransform(before)

    def paint_marks(
        self, painter: QPainter, scale: float, rect: QRectF, *, labels: bool, all_marks: bool
    ) -> None:
        """Paint the mark of each state beside its ellipse, and the spot's number where there is room.

        Detected spots have a mark only on demand: where their plain ellipse is seen, it says enough.
        """
        reach = self.reach(scale) + 40 / scale
        for index in self._index.within(rect.adjusted(-reach, -reach, reach, reach)).tolist():
            style = state_style(self.spots.state[index])
            long = max(self.radius(index) * scale, SMALLEST_RADIUS)
            corner = QPointF(
                self.spots.x[index] * scale + 0.71 * long + 6, self.spots.y[index] * scale - 0.71 * long - 6
            )
            marked = all_marks or style.mark != "o"
            if marked:
                _paint_mark(painter, corner, style)
            if labels:
                _paint_number(
                    painter,
                    corner + QPointF(8 if marked else -3, 4),
                    str(self.spots.number[index]),
                    style.colour,
                )


@lru_cache(maxsize=16)
def _pens(state: str) -> tuple[QPen, QPen]:
    style = state_style(state)
    line = QPen(QColor(style.colour), style.width)
    line.setCapStyle(Qt.PenCapStyle.FlatCap)
    if style.dashes:
        line.setDashPattern(style.dashes)
    return QPen(theme.colour(theme.DARK.canvas, 150), style.width + 2.2), line


def _paint_mark(painter: QPainter, centre: QPointF, style: StateStyle) -> None:
    sprite = _mark(style, painter.transform().m11())
    painter.drawPixmap(centre - QPointF(MARK_SIDE / 2, MARK_SIDE / 2), sprite)


@lru_cache(maxsize=32)
def _mark(style: StateStyle, ratio: float) -> QPixmap:
    """Draw a state's mark on a dark disc; there may be hundreds in sight, so that it is kept."""
    pixmap = _blank(MARK_SIDE, MARK_SIDE, ratio)
    with QPainter(pixmap) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(MARK_SIDE / 2, MARK_SIDE / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(theme.DARK.canvas, 190))
        painter.drawEllipse(QPointF(), 6.5, 6.5)
        painter.setPen(QPen(QColor(style.colour), 1.8))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if style.mark == "o":
            painter.setBrush(QColor(style.colour))
            painter.drawEllipse(QPointF(), 2.4, 2.4)
        elif style.mark == "v":
            painter.drawPolyline([QPointF(-3.4, 0), QPointF(-0.8, 2.8), QPointF(3.6, -3)])
        elif style.mark in "xX":
            painter.setPen(QPen(QColor(style.colour), 1.5 if style.mark == "x" else 2.4))
            painter.drawPath(symbol_path("x", 3.6))
        elif style.mark == "+":
            painter.drawLine(QPointF(-3.4, 0), QPointF(3.4, 0))
            painter.drawLine(QPointF(0, -3.4), QPointF(0, 3.4))
        else:
            painter.setFont(theme.font(theme.CAPTION, bold=True))
            painter.drawText(QRectF(-7, -7, 14, 14), Qt.AlignmentFlag.AlignCenter, "?")
    return pixmap


def _paint_number(painter: QPainter, left: QPointF, text: str, hue: str) -> None:
    sprite = _number(text, hue, pixels(theme.CAPTION), painter.transform().m11())
    painter.drawPixmap(left - QPointF(3, sprite.deviceIndependentSize().height() - 6), sprite)


@lru_cache(maxsize=2048)
def _number(text: str, hue: str, size: int, ratio: float) -> QPixmap:
    """Draw a number on a dark line about it; the line is what takes time, so that it is kept."""
    path = QPainterPath()
    path.addText(3, size + 1, theme.font(size, bold=True), text)
    width, height = math.ceil(path.boundingRect().right()) + 4, size + 7
    pixmap = _blank(width, height, ratio)
    ground = QPen(theme.colour(theme.DARK.canvas, 200), 3)
    ground.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    with QPainter(pixmap) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.strokePath(path, ground)
        painter.fillPath(path, QColor(hue))
    return pixmap


def _blank(width: int, height: int, ratio: float) -> QPixmap:
    pixmap = QPixmap(math.ceil(width * ratio), math.ceil(height * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    return pixmap
