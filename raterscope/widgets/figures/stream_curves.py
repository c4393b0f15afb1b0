"""How the answer settles as annotators come: detections, how good they are, what would still change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.figures.stream_charts import (
    StreamChart,
    StreamTruth,
    dashed,
    firm_from,
    flat,
    limit_of,
    paint_bars,
    paint_grid,
    paint_key,
    paint_line,
    paint_mark,
    paint_ticks,
    round_up,
    step_in_words,
    stream_charts,
    stream_table,
)
from raterscope.widgets.painting import paint_words
from raterscope.widgets.text_size import pixels, set_lengths

__all__ = ["StreamCurves", "StreamTruth"]

NOTHING = "Replay these clicks or watch a growing file to see how the counts settle."
AXES = {
    "annotators": ("annotators", "Over the number of annotators"),
    "clicks": ("clicks", "Over the number of clicks"),
}
OUTLOOKS = {
    "share": ("share", "Decisions that are expected to change yet, as a share of the detections"),
    "chance": ("chance", "The chance that any decision changes yet"),
}
PLOTS = {
    "found": ("found", "Detections, and the decisions that changed"),
    "quality": ("quality", "Expected sensitivity and precision"),
    "outlook": ("outlook", "What would still change"),
}
LEFT, RIGHT, KEY, FOOT, GAP = 44, 10, 18, 16, 12
SHORTEST = 5.0
"""Annotators or clicks that an axis goes to at the least."""

SIDE_BY_SIDE_FROM, TALL_ENOUGH = 230.0, 78.0
"""A plot's least width beside others, and its least height above others, in pixels."""

NARROW, LOW = 350, 300
"""A panel that is narrower has its switches in a row of their own; one that is lower too, a single plot."""

Floats = NDArray[np.floating]


class StreamCurves(FigurePanel):
    """Three plots over one axis; what is pointed at in one is marked in all, a click goes to the step there.

    Steps are counted from 1. Where there is room for one plot only, a switch says for which.

    Signals
    -------
    step_chosen : int
    """

    step_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.figure = _Curves()
        super().__init__("Replay", self.figure, NOTHING, parent)
        self.axis, self.outlook, self.plot = ModeSwitch(AXES), ModeSwitch(OUTLOOKS), ModeSwitch(PLOTS)
        self._below = QHBoxLayout()
        self._narrow = self._single = False
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertLayout(1, self._below)
        self._place_switches()
        self._rule = ""
        self.plot.chosen.connect(self._settle)
        self.figure.chosen.connect(self.step_chosen)
        self.axis.chosen.connect(self.figure.set_axis)
        self.outlook.chosen.connect(self.figure.set_outlook)
        self.set_history(None)

    def set_history(
        self,
        history: StreamHistory | None,
        stopping: StoppingSettings | None = None,
        truth: StreamTruth | None = None,
    ) -> None:
        """Show what a stream came to, or that there is none.

        Parameters
        ----------
        history : StreamHistory or None
        stopping : StoppingSettings, optional
            When an answer is firm; the usual without.
        truth : StreamTruth, optional
            Where there is ground truth.
        """
        stopping = StoppingSettings() if stopping is None else stopping
        filled = history is not None and len(history) > 0
        self.figure.set_history(history if filled else None, stopping, truth)
        if stopping.rule != self._rule and stopping.rule in OUTLOOKS:
            self.outlook.set_mode(stopping.rule)
        self._rule = stopping.rule
        aside = ""
        if history is not None and filled:
            people, clicks = int(history.annotators[-1]), int(history.clicks[-1])
            aside = f"{count(people, 'annotator')}, {count(clicks, 'click')}"
        self.header.set_aside(aside)
        self.set_filled(filled)
        self._settle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Find another place for the switches, and show one plot or all."""
        super().resizeEvent(event)
        narrow = self.width() < pixels(NARROW)
        self._single = narrow and self.height() < pixels(LOW)
        if narrow != self._narrow:
            self._narrow = narrow
            self._place_switches()
        self._settle()

    def _place_switches(self) -> None:
        self.header.row.insertWidget(1, self.plot)
        for place, switch in enumerate((self.axis, self.outlook)):
            if self._narrow:
                self._below.insertWidget(place, switch)
            else:
                self.header.row.insertWidget(1 + place, switch)
        if self._narrow:
            self._below.addStretch(1)
        else:
            self._below.takeAt(0)  # the stretch

    def _settle(self) -> None:
        self.figure.set_only(list(PLOTS).index(self.plot.mode) if self._single else None)
        self.axis.setVisible(self.filled)
        self.outlook.setVisible(self.filled and (not self._single or self.plot.mode == "outlook"))
        self.plot.setVisible(self.filled and self._single)

    def set_position(self, step: int) -> None:
        """Mark the step that is on screen; 0 is before the first."""
        self.figure.set_position(step)


class _Curves(Figure[int]):
    """A part is a step, counted from 1."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Course of the stream")
        set_lengths(self, minimumWidth=240, minimumHeight=88)
        self._history: StreamHistory | None = None
        self._stopping = StoppingSettings()
        self._truth: StreamTruth | None = None
        self._position = 0
        self._axis, self._outlook = "annotators", "share"
        self._only: int | None = None
        self._charts: tuple[StreamChart, ...] = ()

    def set_history(
        self, history: StreamHistory | None, stopping: StoppingSettings, truth: StreamTruth | None
    ) -> None:
        steps = 0 if history is None else len(history)
        if truth is not None and {len(truth.sensitivity), len(truth.precision)} != {steps}:
            raise ValueError(f"not as much truth as there are steps: {steps}")
        self._history, self._stopping, self._truth = history, stopping, truth
        if self.pointed is not None and self.pointed > steps:
            self.point(None)
        self.redraw()

    def set_position(self, step: int) -> None:
        self._position = step
        self.update()

    def set_only(self, plot: int | None) -> None:
        """Draw one of the plots, None for all."""
        if plot != self._only:
            self._only = plot
            self.redraw()

    def set_axis(self, name: str) -> None:
        self._axis = name
        self.redraw()

    def set_outlook(self, name: str) -> None:
        self._outlook = name
        self.redraw()

    def words(self, part: int) -> str:
        if self._history is None:
            return ""
        return step_in_words(self._history, part - 1, self._stopping, self._truth)

    def part_at(self, place: QPointF) -> int | None:
        if self._history is None:
            return None
        for box in self._boxes():
            if box.adjusted(-4, -KEY, 4, FOOT).contains(place):
                return self._step_at((place.x() - box.left()) / box.width() * self._end())
        return None

    def step(self, part: int | None, across: int, down: int) -> int | None:
        if self._history is None:
            return None
        last = len(self._history)
        if part is None:
            return min(self._position or last, last)
        return min(max(part + across - down * max(1, last // 20), 1), last)

    def choose(self, part: int) -> None:
        self.chosen.emit(part)

    def table(self) -> PlotTable:
        assert self._history is not None
        return stream_table(self._history, self._truth)

    def draw(self, painter: QPainter) -> None:
        if self._history is None:
            return
        self.paint_still(painter, self._draw_still)
        look = theme.current()
        for step, ink in ((self._position, look.text), (self.pointed, look.third)):
            if step is not None and 1 <= step <= len(self._history):
                self._draw_cursor(painter, step, ink)

    def _boxes(self) -> list[QRectF]:
        """Give where the plots stand: side by side where that leaves them wide, else above each other."""
        width, height = float(self.room.width()), float(self.room.height())
        beside = (width - 2 * GAP) / 3
        if self._only is not None:
            places = [(0.0, 0.0, width, height)]
        elif beside >= SIDE_BY_SIDE_FROM or height / 3 < TALL_ENOUGH:
            places = [(place * (beside + GAP) // 1, 0.0, beside, height) for place in range(3)]
        else:
            places = [(0.0, place * height // 3, width, height / 3) for place in range(3)]
        return [
            QRectF(
                left + LEFT,
                top + KEY + 4,
                max(int(wide - LEFT - RIGHT), 8),
                max(int(tall - KEY - FOOT - 6), 8),
            )
            for left, top, wide, tall in places
        ]

    def _across(self) -> NDArray[np.integer]:
        assert self._history is not None
        return self._history.annotators if self._axis == "annotators" else self._history.clicks

    def _end(self) -> float:
        return max(round_up(int(self._across()[-1])), SHORTEST)

    def _step_at(self, value: float) -> int:
        """Give the step nearest to a place on the axis; of several there, the last."""
        across = self._across()
        after = min(int(np.searchsorted(across, value)), len(across) - 1)
        near = across[after]
        if after and value - across[after - 1] <= near - value:
            near = across[after - 1]
        return int(np.searchsorted(across, near, side="right"))

    def _draw_still(self, painter: QPainter) -> None:
        history = self._history
        assert history is not None
        charts = stream_charts(history, self._stopping, self._outlook, self._truth)
        self._charts = charts if self._only is None else (charts[self._only],)
        boxes, end = self._boxes(), self._end()
        x = self._across() * (boxes[0].width() / end)
        for box, chart in zip(boxes, self._charts, strict=True):
            key = QRectF(box.left() - LEFT + 6, box.top() - KEY - 2, box.width() + LEFT, KEY)
            paint_key(painter, key, chart.key)
            paint_grid(painter, box, chart.scale, f"{end:,.0f} {self._axis}")
        look = theme.current()
        if self._only in (None, 0):
            paint_bars(painter, boxes[0], x, self._charts[0].scale.share(history.changed), look.disputed)
            paint_ticks(painter, boxes[0], x[history.refreshed], look.second)
        if self._only in (None, 2):
            self._draw_firm(painter, boxes[-1], x, history)
        for box, chart in zip(boxes, self._charts, strict=True):
            for line in chart.lines:
                paint_line(painter, box, x, line, chart.scale)

    def _draw_firm(self, painter: QPainter, box: QRectF, x: Floats, history: StreamHistory) -> None:
        """Mark the limit, where the answer was firm, and from where it stayed so."""
        look = theme.current()
        limit = limit_of(self._stopping, self._outlook)
        if limit is not None:
            y = round(box.bottom() - box.height() * float(self._charts[-1].scale.share(limit))) + 0.5
            painter.setPen(dashed(look.rejected))
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        edges = np.flatnonzero(np.diff(history.firm, prepend=False, append=False))
        painter.setPen(flat(look.accent, 3))
        for begin, past in edges.reshape(-1, 2).tolist():
            left, right = x[begin], x[min(past, len(x) - 1)]
            painter.drawLine(
                QPointF(box.left() + left, box.top()), QPointF(box.left() + max(right, left + 2), box.top())
            )
        row = firm_from(history)
        if row is None:
            return
        at = round(box.left() + x[row]) + 0.5
        painter.setPen(QPen(QColor(look.accent), 1))
        painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()))
        words = f"enough from {int(self._across()[row]):,}"
        painter.setFont(theme.font(theme.CAPTION))
        width = QFontMetrics(painter.font()).horizontalAdvance(words) + 2
        place = QRectF(at + 5, box.top() + 4, width, 15)
        if place.right() > box.right():  # the line falls: there is room beneath it
            place.moveBottomRight(QPointF(at - 5, box.bottom() - 2))
        paint_words(painter, place, words, look.accent)

    def _draw_cursor(self, painter: QPainter, step: int, ink: str) -> None:
        end = self._end()
        for box, chart in zip(self._boxes(), self._charts, strict=True):
            x = round(box.left() + float(self._across()[step - 1]) * box.width() / end) + 0.5
            painter.setPen(QPen(QColor(ink), 1))
            painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()))
            for line in chart.lines:
                share = float(chart.scale.share(line.values[step - 1]))
                if np.isfinite(share):
                    paint_mark(
                        painter,
                        QPointF(x, box.bottom() - box.height() * share),
                        line.symbol,
                        line.colour,
                        ink,
                    )
