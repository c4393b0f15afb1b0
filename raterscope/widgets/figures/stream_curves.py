"""Plots of a replayed stream: detections, their quality, and what would still change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.figures.description import Axis
from raterscope.figures.layout import Box
from raterscope.figures.streams import StreamTruth, round_up, step_in_words, stream_charts, stream_table
from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets.figures.column_figure import Column, ColumnFigure
from raterscope.widgets.figures.figure_panel import FigurePanel
from raterscope.widgets.figures.mode_switch import ModeSwitch
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
SHORTEST = 5.0
"""Annotators or clicks that an axis goes to at the least."""

SIDE_BY_SIDE_FROM, TALL_ENOUGH = 230.0, 78.0
"""A plot's least width beside others, and its least height above others, in pixels."""

NARROW, LOW = 350, 300
"""A panel that is narrower has its switches in a row of their own; one that is lower too, a single plot."""


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
            annotators, clicks = int(history.annotators[-1]), int(history.clicks[-1])
            aside = f"{count(annotators, 'annotator')}, {count(clicks, 'click')}"
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
        for index, switch in enumerate((self.axis, self.outlook)):
            if self._narrow:
                self._below.insertWidget(index, switch)
            else:
                self.header.row.insertWidget(1 + index, switch)
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
        self.figure.select(step - 1 if step else None)


class _Curves(ColumnFigure):
    """A column is a step, counted from 0."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Course of the stream")
        set_lengths(self, minimumWidth=240, minimumHeight=88)
        self._history: StreamHistory | None = None
        self._stopping = StoppingSettings()
        self._truth: StreamTruth | None = None
        self._axis, self._outlook = "annotators", "share"
        self._only: int | None = None

    def set_history(
        self, history: StreamHistory | None, stopping: StoppingSettings, truth: StreamTruth | None
    ) -> None:
        steps = 0 if history is None else len(history)
        if truth is not None and {len(truth.sensitivity), len(truth.precision)} != {steps}:
            raise ValueError(f"the truth has another number of values than there are steps: {steps}")
        self._history, self._stopping, self._truth = history, stopping, truth
        self._show()

    def set_only(self, plot: int | None) -> None:
        """Draw one of the plots, None for all."""
        if plot != self._only:
            self._only = plot
            self._show()

    def set_axis(self, name: str) -> None:
        self._axis = name
        self._show()

    def set_outlook(self, name: str) -> None:
        self._outlook = name
        self._show()

    def _show(self) -> None:
        history = self._history
        if history is None:
            self.show_charts((), ())
            return
        x = np.asarray(history.annotators if self._axis == "annotators" else history.clicks, dtype=float)
        axis = Axis(self._axis, 0.0, max(round_up(int(x[-1])), SHORTEST), padding=0.0, whole=True)
        charts = stream_charts(history, self._stopping, self._outlook, self._truth, x, axis)
        visible = charts if self._only is None else charts[self._only : self._only + 1]
        self.show_charts(visible, [x] * len(visible))

    def rooms(self) -> list[Box]:
        """Put the plots side by side where that leaves them wide, else one below the other."""
        width, height = self.room.width(), self.room.height()
        if len(self.charts) == 1 or (width / 3 < SIDE_BY_SIDE_FROM and height / 3 >= TALL_ENOUGH):
            return super().rooms()
        edges = np.linspace(0.0, width, len(self.charts) + 1).round().tolist()
        return [Box(left, 0.0, right, height) for left, right in pairwise(edges)]

    def words(self, part: Column) -> str:
        if self._history is None:
            return ""
        return step_in_words(self._history, part[1], self._stopping, self._truth)

    def step(self, part: Column | None, across: int, down: int) -> Column | None:
        steps = 0 if self._history is None else len(self._history)
        if part is None and self.selected is None and steps:
            return 0, steps - 1
        return super().step(part, across - down * max(1, steps // 20), 0)

    def choose(self, part: Column) -> None:
        self.chosen.emit(part[1] + 1)

    def table(self) -> PlotTable:
        assert self._history is not None
        return stream_table(self._history, self._truth)
