"""How an annotator's bias changes from answer to answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count, estimate
from raterscope.widgets import theme
from raterscope.widgets.figures.behaviours import GOOD, behaviour_colour
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.figures.scaled_figure import paint_value_scale
from raterscope.widgets.painting import paint_words

__all__ = ["BiasOverTime", "OverTimeView"]

NOTHING = "Too few answers of this annotator to see whether the bias changes."
LEFT, RIGHT, TOP, BOTTOM = 34.0, 6.0, 6.0, 18.0
DOTS_UP_TO = 60


@dataclass(frozen=True, eq=False)
class OverTimeView:
    """An annotator's bias in K windows of answers.

    Attributes
    ----------
    at : (K,) float
        Where each window lies, rising: its middle answer, or its time.
    bias, low, high : (K,) float
        Estimates with 95 % intervals; NaN where a window tells nothing.
    when : tuple of K str
        "answers 1 to 40", "12 March, 10:00 to 11:20".
    answers : int
    behaviour : int
        Number in `BEHAVIOURS`: gives the colour.
    """

    at: NDArray[np.floating]
    bias: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    when: tuple[str, ...]
    answers: int
    behaviour: int = GOOD

    def __post_init__(self) -> None:
        if {len(self.bias), len(self.low), len(self.high), len(self.when)} != {len(self.at)}:
            raise ValueError(f"not as much of everything as there are windows: {len(self.at)}")


class BiasOverTime(FigurePanel):
    """A line with its interval; a click chooses a window of answers.

    Signals
    -------
    chosen : int
        Window.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.figure = _Course()
        super().__init__("Bias over time", self.figure, NOTHING, parent)
        self.figure.chosen.connect(self.chosen)

    def show_course(self, view: OverTimeView | None) -> None:
        """Show an annotator's course, or that there is too little to see."""
        filled = view is not None and len(view.at) > 1
        self.figure.show_course(view if filled else None)
        self.header.set_aside("" if view is None else count(view.answers, "answer"))
        self.set_filled(filled)


class _Course(Figure[int]):
    """A part is a window."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Bias over time")
        self._view: OverTimeView | None = None
        self._chosen: int | None = None

    def show_course(self, view: OverTimeView | None) -> None:
        self.point(None)
        self._view, self._chosen = view, None
        self.update()

    def words(self, part: int) -> str:
        view = self._view
        assert view is not None
        return f"{view.when[part]}: bias " + estimate(
            float(view.bias[part]), float(view.low[part]), float(view.high[part])
        )

    def part_at(self, place: QPointF) -> int | None:
        view, box = self._view, self._box()
        if view is None or not box.adjusted(-4, -TOP, 4, BOTTOM).contains(place):
            return None
        return int(np.abs(self._x(view) - place.x()).argmin())

    def step(self, part: int | None, across: int, down: int) -> int | None:
        if self._view is None:
            return None
        return 0 if part is None else min(max(part + across - down, 0), len(self._view.at) - 1)

    def choose(self, part: int) -> None:
        self._chosen = part
        self.update()
        self.chosen.emit(part)

    def draw(self, painter: QPainter) -> None:
        view = self._view
        if view is None:
            return
        look, box = theme.current(), self._box()
        least, most = self._span(view)
        x, scale = self._x(view), box.height() / (most - least)
        mean, low, high = (box.top() + (most - each) * scale for each in (view.bias, view.low, view.high))
        zero = box.top() + most * scale
        ink = QColor(behaviour_colour(view.behaviour) if view.behaviour else look.accent)
        band = np.isfinite(low) & np.isfinite(high)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(ink.name(), 50))
        edge = [*zip(x[band], high[band], strict=True), *reversed([*zip(x[band], low[band], strict=True)])]
        painter.drawPolygon(QPolygonF([QPointF(*each) for each in edge]))
        pen = QPen(QColor(look.third), 1)
        pen.setDashPattern([4, 4])
        painter.setPen(pen)
        painter.drawLine(QPointF(box.left(), zero), QPointF(box.right(), zero))
        painter.setPen(QPen(ink, 1.8))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        known = np.isfinite(mean)
        points = [QPointF(*each) for each in zip(x[known], mean[known], strict=True)]
        painter.drawPolyline(QPolygonF(points))
        if len(points) <= DOTS_UP_TO:
            painter.setBrush(ink)
            for point in points:
                painter.drawEllipse(point, 1.6, 1.6)
        self._draw_scale(painter, view, least, most, zero)
        for part, colour in ((self._chosen, look.text), (self.pointed, look.second)):
            if part is not None:
                painter.setPen(QPen(QColor(colour), 1))
                painter.drawLine(QPointF(x[part], box.top()), QPointF(x[part], box.bottom()))

    def table(self) -> PlotTable:
        view = self._view
        assert view is not None
        return PlotTable.of(
            {"when": view.when, "at": view.at, "bias": view.bias, "low": view.low, "high": view.high}
        )

    def _box(self) -> QRectF:
        return QRectF(
            LEFT, TOP, max(self.room.width() - LEFT - RIGHT, 8), max(self.room.height() - TOP - BOTTOM, 8)
        )

    def _x(self, view: OverTimeView) -> NDArray[np.floating]:
        box, first, last = self._box(), view.at[0], view.at[-1]
        share = (view.at - first) / (last - first) if last > first else np.linspace(0, 1, len(view.at))
        return np.asarray(box.left() + share * box.width(), dtype=float)

    def _span(self, view: OverTimeView) -> tuple[float, float]:
        """Give the ends of the scale: all of the band, and 0."""
        ends = np.concatenate([view.bias, view.low, view.high, [0.0]])
        ends = ends[np.isfinite(ends)]
        least, most = float(ends.min()), float(ends.max())
        return (least, most) if most > least else (-1.0, 1.0)

    def _draw_scale(
        self, painter: QPainter, view: OverTimeView, least: float, most: float, zero: float
    ) -> None:
        look, box, right = theme.current(), self._box(), Qt.AlignmentFlag.AlignRight
        paint_value_scale(painter, box, least, most, zero, digits=1)
        half = box.width() / 2 - 4
        foot = QRectF(box.left(), box.bottom() + 3, half, 15)
        paint_words(painter, foot, view.when[0], look.third)
        foot.moveRight(box.right())
        paint_words(painter, foot, view.when[-1], look.third, side=right)
