"""Triangles whose points are three shares, and the path of an annotator with three answers in one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.colours import colour_of
from raterscope.figures.layout import Box
from raterscope.figures.table import PlotTable
from raterscope.figures.ternary import corners_in, draw_triangle, pixels_of
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.figures.qt_canvas import QtCanvas, polygon_of
from raterscope.widgets.figures.row_lines import (
    DriftView,
    label_ink,
    marker_radius,
    paint_label,
)
from raterscope.widgets.painting import paint_words, symbol_path
from raterscope.widgets.text_size import set_lengths

__all__ = ["TernaryPlot"]

NAME = 84.0
TOP, BOTTOM, SIDE = 20.0, 22.0, 10.0
REACH = 10.0
MOST_POINTS = 1200
"""Of all paths together, which are drawn in every frame."""

FAINT = 80
STAR, APART = 4.5, 40.0
"""Size of the markers that join classes, and how far apart those with a number are at least."""
COARSEST = 24.0
SMOOTH = 640
"""Paths of no more points together have little to and fro."""

Part = tuple[int, int]


class TernaryPlot(Figure[Part]):
    """Each corner is an answer always given; a point is a row of the confusion matrix after a vote.

    The way that was gone up to the present step is drawn in full, what comes after it faintly. Markers stand
    where the votes on tasks of the class reach 1, 2, 5, 10 ..., and grow with them; rings stand where a row
    changed. A click on any of them goes to that step.

    Signals
    -------
    step_chosen : int
        The step of the marker clicked.
    """

    step_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Drift in a triangle", parent)
        set_lengths(self, minimumWidth=180, minimumHeight=88)
        self._view: DriftView | None = None
        self._step = 0
        self._corners = np.zeros((3, 2))
        self._paths: list[tuple[NDArray[np.int64], NDArray[np.floating]]] = []
        self._marks: list[NDArray[np.int64]] = []

    def show_drift(self, view: DriftView | None) -> None:
        """Show an annotator, or nobody; it takes three outputs."""
        if view is not None and len(view.outputs) != 3:
            raise ValueError(f"{len(view.outputs)} outputs; a triangle has three corners")
        self._view = view
        self._step = 0 if view is None else view.step
        self._marks = [] if view is None else [self._marked(row) for row in range(len(view.classes))]
        self.point(None)
        self._lay_out()
        self.update()

    def set_step(self, step: int) -> None:
        """Go to another step."""
        self._step = step
        self.update()

    def words(self, part: Part) -> str:
        """Describe a row after a vote."""
        return "" if self._view is None else self._view.words(*part)

    def part_at(self, position: QPointF) -> Part | None:
        """Return the nearest marker within reach: (class, step)."""
        best, nearest = None, REACH
        for row, marks in enumerate(self._marks):
            steps = np.append(marks, self._step)
            x, y = self._pixels(row, steps).T
            away = np.hypot(x - position.x(), y - position.y())
            if away.min() < nearest:
                nearest, best = float(away.min()), (row, int(steps[away.argmin()]))
        return best

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        """Lead from marker to marker along a path, and from class to class."""
        if not self._marks:
            return None
        if part is None:
            return 0, self._step
        path, step = part
        if down:
            return min(max(path + down, 0), len(self._marks) - 1), self._step
        steps = np.union1d(self._marks[path], [self._step])
        row = int(np.searchsorted(steps, step)) + across
        return path, int(steps[min(max(row, 0), len(steps) - 1)])

    def choose(self, part: Part) -> None:
        """Go to the step of a marker."""
        self.step_chosen.emit(part[1])

    def table(self) -> PlotTable:
        """Return every class's row after every vote."""
        assert self._view is not None
        return self._view.table(range(len(self._view.classes)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the paths."""
        super().resizeEvent(event)
        self._lay_out()

    def draw(self, painter: QPainter) -> None:
        """Paint triangle, paths and markers."""
        if self._view is None:
            return
        self._draw_frame(painter)
        for row in range(len(self._paths)):
            self._draw_path(painter, row)
        self._draw_together(painter)
        for row in range(len(self._paths)):
            self._draw_marks(painter, row)
        if self.pointed is not None:
            row, step = self.pointed
            painter.setPen(QPen(QColor(theme.current().text), 1.6))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(self._pixel(row, step), REACH, REACH)

    def _marked(self, row: int) -> NDArray[np.int64]:
        assert self._view is not None
        changed = [step for step, of, _ in self._view.changes if of == row]
        return np.union1d(self._view.milestones(row), changed).astype(np.int64)

    def _lay_out(self) -> None:
        width, height = self.room.width() - 2 * SIDE, self.room.height() - TOP - BOTTOM
        self._corners = corners_in(Box(SIDE, TOP, SIDE + width, TOP + height))
        self._paths = []
        if self._view is None:
            return
        for row in range(len(self._view.classes)):
            most = max(MOST_POINTS // len(self._view.classes), 8)
            # Far more points than can be drawn are not even looked at.
            steps = np.arange(0, len(self._view.mean), max(1, len(self._view.mean) // (4 * most)))
            places = self._pixels(row, steps)
            thinned = _thinned(places, most)
            self._paths.append((steps[thinned], places[thinned]))

    def _pixels(self, row: int, steps: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return the positions of a class's row after steps, (S, 2) pixels."""
        assert self._view is not None
        return pixels_of(self._corners, self._view.mean[steps, row])

    def _pixel(self, row: int, step: int) -> QPointF:
        ((x, y),) = self._pixels(row, np.array([step]))
        return QPointF(x, y)

    def _draw_frame(self, painter: QPainter) -> None:
        assert self._view is not None
        look = theme.current()
        draw_triangle(QtCanvas(painter), self._corners, self._view.outputs, look, theme.CAPTION)
        painter.setFont(theme.font(theme.CAPTION))
        self._draw_legend(painter)

    def _draw_legend(self, painter: QPainter) -> None:
        assert self._view is not None
        look, room = theme.current(), int(max(self.room.height() / 2 - TOP, 17) // 17)
        names = self._view.classes[:room]
        for row, name in enumerate(names):
            middle = TOP / 2 + 17 * row
            # The triangle grows wider below: a name ends where its side begins.
            share = (middle + 9 - self._corners[1, 1]) / max(self._corners[0, 1] - self._corners[1, 1], 1.0)
            end = self._corners[1, 0] + share * (self._corners[0, 0] - self._corners[1, 0])
            end = min(end, self._corners[1, 0] - NAME / 2)
            paint_label(painter, QPointF(8, middle), row, 4)
            left_out = len(self._view.classes) - room
            words = name if row < room - 1 or left_out <= 0 else f"and {left_out + 1} more"
            paint_words(painter, QRectF(18, middle - 8, end - 22, 16), words, look.second)

    def _draw_path(self, painter: QPainter, row: int) -> None:
        steps, places = self._paths[row]
        gone = int(np.searchsorted(steps, self._step, side="right"))
        present = self._pixels(row, np.array([self._step]))
        colour = QColor(colour_of(label_ink(row), theme.current()))
        faint = QColor(colour)
        faint.setAlpha(FAINT)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        width = 1.8 if sum(len(path) for path, _ in self._paths) <= SMOOTH else 1.0
        for ink, route in ((faint, (present, places[gone:])), (colour, (places[:gone], present))):
            x, y = np.concatenate(route).T
            painter.setPen(QPen(ink, width))
            painter.drawPolyline(polygon_of(np.column_stack([x, y])))

    def _draw_together(self, painter: QPainter) -> None:
        """Join the rows of all classes at some moments, each with its number."""
        assert self._view is not None
        look, named = theme.current(), QPointF(-NAME, -NAME)
        painter.setFont(theme.font(theme.CAPTION))
        for step, words in self._view.together:
            places = [self._pixel(row, step) for row in range(len(self._view.classes))]
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour(look.accent, 255 if step <= self._step else FAINT), 1.2))
            painter.drawPolyline(places)
            painter.save()
            painter.setBrush(QColor(look.accent))
            for position in places:
                painter.translate(position)
                painter.drawPath(symbol_path("star", STAR))
                painter.translate(-position)
            painter.restore()
            if (places[0] - named).manhattanLength() > APART:
                named = places[0]
                box = QRectF(named.x() + 6, named.y() - 17, NAME, 14)
                paint_words(painter, box, words, look.second)

    def _draw_marks(self, painter: QPainter, row: int) -> None:
        assert self._view is not None
        look = theme.current()
        changed = {step for step, of, _ in self._view.changes if of == row}
        for step in self._marks[row].tolist():
            position = self._pixel(row, step)
            if step in changed:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(look.text if step <= self._step else look.third), 1.6))
                painter.drawEllipse(position, 8, 8)
            else:
                radius = marker_radius(float(self._view.informed[step, row]))
                paint_label(painter, position, row, radius, filled=step <= self._step)
        radius = marker_radius(float(self._view.informed[self._step, row])) + 3
        paint_label(painter, self._pixel(row, self._step), row, radius, edge=look.text)


def _thinned(places: NDArray[np.floating], most: int) -> NDArray[np.int64]:
    """Return the indices of the points, (S, 2), that show the course of a path on the screen."""
    cell, indices = 0.5, np.arange(len(places))
    while True:
        cells = np.floor(places[indices] / cell)
        moved = np.ones(len(indices), dtype=bool)
        moved[1:-1] = (cells[1:-1] != cells[:-2]).any(axis=1)
        indices = indices[moved]
        if len(indices) <= most:
            return indices
        if cell > COARSEST:
            return indices[:: -(-len(indices) // most)]
        cell *= 1.5
