"""How often every annotator chose left, and how often right: a dot each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from raterscope.figures.description import Axis, Chart, Scale, Segments
from raterscope.figures.drawing import draw_chart
from raterscope.figures.layout import Layout, lay_out
from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.behaviours import BEHAVIOUR_WORDS, paint_side_mark
from raterscope.widgets.figures.qt_canvas import QtCanvas, text_width
from raterscope.widgets.figures.scaled_figure import ScaledFigure, ScaledPanel, walked
from raterscope.widgets.text_size import set_lengths, text_size

__all__ = ["SideCounts", "SidesView"]

NOTHING = "Press Fuse (F5) to see how often each annotator chose left and right."
SCALES = {
    "log": ("log", "Counts by their logarithm: few answers are told apart as well as many"),
    "linear": ("linear", "Counts as they are"),
}
RADIUS = 3.6
REACH = 9.0
DIAGONAL = np.array([[-np.inf, np.inf]])
EQUAL = Segments(x=DIAGONAL, y=DIAGONAL, ink="third", dashes=(4.0, 4.0), stretch=False)


@dataclass(frozen=True, eq=False)
class SidesView:
    """The choices of p annotators.

    Attributes
    ----------
    left, right : (p,) int
    behaviour : (p,) int
        Numbers in `BEHAVIOURS`.
    flagged : (p,) bool
    names : tuple of p str
    numbers : (p,) int
        What the signal names them by.
    """

    left: NDArray[np.integer]
    right: NDArray[np.integer]
    behaviour: NDArray[np.integer]
    flagged: NDArray[np.bool_]
    names: tuple[str, ...]
    numbers: NDArray[np.integer]

    def __post_init__(self) -> None:
        lengths = {len(each) for each in (self.left, self.right, self.behaviour, self.flagged, self.numbers)}
        if lengths != {len(self.names)}:
            raise ValueError(f"not as much of everything as there are annotators: {len(self.names)}")


class SideCounts(ScaledPanel):
    """Whoever has no bias lies about the diagonal. A click chooses; arrows walk by counts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self.figure = _Dots()
        super().__init__("Left and right", self.figure, NOTHING, SCALES, parent, brief="Sides")

    def show_sides(self, view: SidesView | None) -> None:
        """Show annotators, or that there are none yet; who is selected stays."""
        self.figure.show_sides(view)
        self.set_filled(view is not None)

    def set_flagged(self, flagged: NDArray[np.bool_], behaviour: NDArray[np.integer]) -> None:
        """Mark others as flagged."""
        self.figure.set_flagged(flagged, behaviour)


class _Dots(ScaledFigure):
    """A part is a row of the view."""

    def __init__(self) -> None:
        super().__init__("Left and right choices", (0.0, 0.0, 0.0, 0.0))
        set_lengths(self, minimumWidth=150, minimumHeight=120)
        self.setToolTip("On the dashed line: left as often as right")
        self._view: SidesView | None = None
        self._flagged = np.empty(0, bool)
        self._behaviour = np.empty(0, np.int8)
        self._places = np.empty((0, 2))

    def show_sides(self, view: SidesView | None) -> None:
        self._view = view
        self.set_numbers(None if view is None else view.numbers)
        if view is not None:
            self._flagged, self._behaviour = np.asarray(view.flagged), np.asarray(view.behaviour)
        self.lay_out()

    def set_flagged(self, flagged: NDArray[np.bool_], behaviour: NDArray[np.integer]) -> None:
        same = np.array_equal(self._flagged, flagged) and np.array_equal(self._behaviour, behaviour)
        if self._view is not None and not same:
            self._flagged, self._behaviour = np.asarray(flagged), np.asarray(behaviour)
            self.redraw()

    def place_of(self, part: int) -> QPointF:
        """Give where an annotator's dot lies."""
        return QPointF(*self._places[part])

    def words(self, part: int) -> str:
        view = self._view
        assert view is not None
        said = f"{view.names[part]}: {view.left[part]:,} left, {view.right[part]:,} right"
        behaviour = int(self._behaviour[part])
        if behaviour >= 0:
            said += f", {BEHAVIOUR_WORDS[behaviour]}"
        return said + (", flagged" if self._flagged[part] else "")

    def part_at(self, place: QPointF) -> int | None:
        if self._view is None or not len(self._places):
            return None
        away = np.hypot(self._places[:, 0] - place.x(), self._places[:, 1] - place.y())
        # Of dots above each other the flagged one is on top.
        away -= self._flagged * 0.5
        best = int(away.argmin())
        return best if away[best] <= REACH else None

    def step(self, part: int | None, across: int, down: int) -> int | None:
        view = self._view
        if view is None or not len(view.names):
            return None
        if part is None:
            return self._selected if self._selected is not None else int(np.argmax(self._flagged))
        order = np.argsort(view.left if across else -np.asarray(view.right), kind="stable")
        return walked(order, part, across + down)

    def table(self) -> PlotTable:
        view = self._view
        assert view is not None
        return PlotTable.of(
            {
                "annotator": view.names,
                "left": view.left,
                "right": view.right,
                "behaviour": [
                    BEHAVIOUR_WORDS[number] if number >= 0 else "" for number in self._behaviour.tolist()
                ],
                "flagged": self._flagged,
            }
        )

    def draw(self, painter: QPainter) -> None:
        if self._view is None:
            return
        self.paint_still(painter, self._draw_still)
        look = theme.current()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for part, ink in ((self._selected, look.text), (self.pointed, look.second)):
            if part is not None:
                painter.setPen(QPen(QColor(ink), 1.6))
                painter.drawEllipse(self.place_of(part), RADIUS + 4, RADIUS + 4)

    def box(self) -> QRectF:
        """Give the room between the axes."""
        box = self._plan().box
        return QRectF(box.left, box.top, box.width, box.height)

    def _plan(self) -> Layout:
        """Lay the axes out, which have one scale."""
        view = self._view
        most = 1.0 if view is None else float(max(view.left.max(initial=1), view.right.max(initial=1), 1))
        scale: Scale = "log1p" if self._logarithmic else "linear"
        left, right = (Axis(words, 0.0, 1.04 * most, scale, 0.0, whole=True) for words in ("left", "right"))
        chart = Chart("", left, right, (EQUAL,))
        return lay_out(chart, self.room.width(), self.room.height(), text_width)

    def lay_out(self) -> None:
        if self._view is not None:
            self._places = np.column_stack(self._plan().places(self._view.left, self._view.right))
        self.redraw()

    def _draw_still(self, painter: QPainter) -> None:
        draw_chart(QtCanvas(painter), self._plan(), theme.current())
        self._draw_dots(painter)

    def _draw_dots(self, painter: QPainter) -> None:
        """Stamp the dots, those of one kind after the other, the flagged on top; in a picture, paint each."""
        half, ratio = RADIUS + 3, self.devicePixelRatioF() * text_size()
        kinds = 2 * self._behaviour.astype(np.int64) + self._flagged
        for kind in sorted(np.unique(kinds).tolist(), key=lambda kind: kind % 2):
            behaviour, flagged = kind // 2, bool(kind % 2)
            if self._picturing:
                for x, y in self._places[kinds == kind].tolist():
                    paint_side_mark(painter, QPointF(x, y), behaviour, flagged=flagged, radius=RADIUS)
                continue
            stamp = QPixmap(round(2 * half * ratio), round(2 * half * ratio))
            stamp.setDevicePixelRatio(ratio)
            stamp.fill(Qt.GlobalColor.transparent)
            with QPainter(stamp) as one:
                one.setRenderHint(QPainter.RenderHint.Antialiasing)
                paint_side_mark(one, QPointF(half, half), behaviour, flagged=flagged, radius=RADIUS)
            for x, y in (self._places[kinds == kind] - half).tolist():
                painter.drawPixmap(QPointF(x, y), stamp)
