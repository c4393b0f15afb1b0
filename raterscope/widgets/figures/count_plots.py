"""Plots of counts: expected numbers by image, and their course in a replayed stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.figures.courses import StreamTruth, round_up, step_in_words, stream_charts, stream_table
from raterscope.figures.description import Axis, PlotTable, check_lengths
from raterscope.figures.layout import Box, ticks_of
from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import Column, ColumnFigure
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel, ModeSwitch, row_of, text_width
from raterscope.widgets.painting import paint_text
from raterscope.widgets.theme import pixels, set_lengths, usual

NO_COUNTS = "Press Fuse (F5) to see the expected number of structures on each image."
ROW, HEAD, EDGE = 20, 20, 6
DOT = 3.5
NAME_SHARE = 0.34


@dataclass(frozen=True, eq=False)
class CountsView:
    """The counts of n images, in the order shown."""

    numbers: NDArray[np.integer]  # (n,): numbers that the signal emits
    names: Sequence[str]  # (n,)
    # expected, low, high: (n,): expected number of structures among the spots (sum of posteriors), with its
    # 95 % interval; NaN if an image is not fused
    expected: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    known: NDArray[np.floating]  # (n,): number of true positions; NaN if unknown

    def __post_init__(self) -> None:
        columns = (self.numbers, self.expected, self.low, self.high, self.known)
        check_lengths(len(self.names), "images", *columns)

    def text_of(self, row: int) -> str:
        """Describe a row: "smear 12: 27.3 of its spots expected to be structures, 24 to 31; 29 known"."""
        if not np.isfinite(self.expected[row]):
            text = "not fused yet"
        else:
            ends = f"{self.low[row]:,.0f} to {self.high[row]:,.0f}"
            text = f"{self.expected[row]:.1f} of its spots expected to be structures, {ends}"
        known = f"; {self.known[row]:,.0f} known" if np.isfinite(self.known[row]) else ""
        return f"{self.names[row]}: {text}{known}"


class CountsPlot(FigurePanel):
    """Plot of counts, one row per image: the expected count, its interval, and a tick at the true count."""

    def __init__(self) -> None:
        self.figure = _Rows()
        super().__init__("Counts by image", self.figure, NO_COUNTS, brief="Counts")
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidgetResizable(True)
        self._scroll.setWidget(self.figure)
        for part in (self._scroll.viewport(), self.figure):
            part.setAutoFillBackground(False)
        self._pages.addWidget(self._scroll)
        self.figure.visible_changed.connect(self._on_visible_changed)

    def show_counts(self, view: CountsView | None) -> None:
        """Show images, or that there are none; the selection is kept."""
        filled = view is not None and bool(np.isfinite(view.expected).any())
        self.figure.show_counts(view if filled else None)
        self.header.set_subtitle(_total(view) if view is not None and filled else "")
        self.set_filled(filled)

    def _on_visible_changed(self, top: int, bottom: int) -> None:
        self._scroll.ensureVisible(0, (top + bottom) // 2, 0, bottom - top)


class _Rows(Figure[int]):
    """The rows; a part is a row. Only visible rows are painted."""

    chosen = Signal(int)  # number of the image of the clicked row
    visible_changed = Signal(int, int)

    def __init__(self) -> None:
        super().__init__("Counts by image")
        self._view: CountsView | None = None
        self._selected: int | None = None
        self._most = 1.0
        self._names_width = 0.0

    def show_counts(self, view: CountsView | None) -> None:
        self.point(None)
        before, self._view = self._view, view
        if view is not None:
            ends = np.concatenate([view.high, view.known])
            self._most = round_up(float(np.nanmax(ends, initial=1.0)))
            if before is None or view.names != before.names:
                advance = QFontMetrics(theme.font(theme.CAPTION)).horizontalAdvance
                self._names_width = max(map(advance, view.names), default=0) + 12.0
            set_lengths(self, minimumHeight=HEAD + ROW * len(view.names) + EDGE)
        self.update()

    def select(self, number: int | None) -> None:
        self._selected = number
        row = None if self._view is None else row_of(self._view.numbers, number)
        if row is not None:
            self._show(row)
        self.update()

    def text_of(self, part: int) -> str:
        return "" if self._view is None else self._view.text_of(part)

    def part_at(self, position: QPointF) -> int | None:
        row = int((position.y() - HEAD) // ROW)
        return row if self._view is not None and 0 <= row < len(self._view.names) else None

    def step(self, part: int | None, across: int, down: int) -> int | None:
        view = self._view
        if view is None:
            return None
        start = row_of(view.numbers, self._selected) if part is None else part
        row = min(max((0 if start is None else start) + across + down, 0), len(view.names) - 1)
        self._show(row)
        return row

    def choose(self, part: int) -> None:
        assert self._view is not None
        self.chosen.emit(int(self._view.numbers[part]))

    def table(self) -> PlotTable:
        view = self._view
        assert view is not None
        return PlotTable.of(
            {
                "image": view.names,
                "structures expected among the spots": view.expected,
                "low": view.low,
                "high": view.high,
                "known": view.known,
            }
        )

    def _show(self, row: int) -> None:
        top = HEAD + row * ROW
        self.visible_changed.emit(0 if not row else top, top + ROW)

    def _room(self) -> QRectF:
        """Return the rectangle of the dots: between the names and the numbers."""
        metrics = QFontMetrics(theme.font(theme.CAPTION))
        left = min(self._names_width, NAME_SHARE * self.room.width())
        digits = f"{self._most:,.0f}.0 ({self._most:,.0f}-{self._most:,.0f})"
        right = metrics.horizontalAdvance(digits) + 20.0
        return QRectF(left, HEAD, max(self.room.width() - left - right, 40.0), self.room.height() - HEAD)

    def draw(self, painter: QPainter) -> None:
        view = self._view
        if view is None:
            return
        palette, room = theme.current(), self._room()
        painter.setFont(theme.font(theme.CAPTION))
        self._draw_scale(painter, room)
        visible = self.room
        if not self._picturing:
            part = QRectF(self.visibleRegion().boundingRect())
            visible = QRectF(usual(part.topLeft()), usual(part.bottomRight()))
        first = max(int((visible.top() - HEAD) // ROW), 0)
        last = min(int((visible.bottom() - HEAD) // ROW) + 1, len(view.names))
        selected = row_of(view.numbers, self._selected)
        for row in range(first, last):
            line = QRectF(0, HEAD + row * ROW, self.room.width(), ROW)
            if row in (selected, self.pointed):
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(palette.raised))
                painter.drawRoundedRect(line, 4, 4)
            name = QRectF(4, line.top(), room.left() - 10, ROW)
            tone = palette.text if row == selected else palette.second
            paint_text(painter, name, view.names[row], tone, elide=Qt.TextElideMode.ElideMiddle)
            self._draw_count(painter, room, line, row)

    def _draw_scale(self, painter: QPainter, room: QRectF) -> None:
        palette, letters = theme.current(), theme.CAPTION
        axis = Axis("", integral=True)
        for value, text in ticks_of(
            axis, 0.0, self._most, room.width(), letters, lambda words: text_width(words, letters)
        ):
            x = round(room.left() + value / self._most * room.width()) + 0.5
            painter.setPen(QPen(QColor(palette.line), 1))
            painter.drawLine(QPointF(x, HEAD), QPointF(x, self.room.height()))
            box = QRectF(x - 40, 2, 80, HEAD - 4)
            paint_text(painter, box, text, palette.third, side=Qt.AlignmentFlag.AlignHCenter)

    def _draw_count(self, painter: QPainter, room: QRectF, line: QRectF, row: int) -> None:
        view, palette, y = self._view, theme.current(), line.center().y()
        assert view is not None
        scale = room.width() / self._most
        known = float(view.known[row])
        if np.isfinite(known):
            x = room.left() + known * scale
            painter.setPen(QPen(QColor(palette.text), 1.6))
            painter.drawLine(QPointF(x, y - 6), QPointF(x, y + 6))
        words = QRectF(room.right() + 8, line.top(), self.room.width() - room.right() - 12, ROW)
        if not np.isfinite(view.expected[row]):
            paint_text(painter, words, "not fused", palette.third)
            return
        expected, low, high = (float(part[row]) for part in (view.expected, view.low, view.high))
        painter.setPen(QPen(QColor(palette.accent), 2))
        painter.drawLine(QPointF(room.left() + low * scale, y), QPointF(room.left() + high * scale, y))
        painter.setBrush(QColor(palette.accent))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QPointF(room.left() + expected * scale, y), DOT, DOT)
        paint_text(painter, words, f"{expected:.1f} ({low:,.0f}-{high:,.0f})", palette.second)


def _total(view: CountsView) -> str:
    """Return the total number of expected structures, and the meaning of the ticks."""
    known = np.isfinite(view.expected)
    total = f"{view.expected[known].sum():,.0f} among the spots of {counted(int(known.sum()), 'image')}"
    return f"{total}; tick: known" if np.isfinite(view.known).any() else total


NO_STREAM = "Replay these clicks or watch a growing file to see how the counts settle."
AXES = {
    "annotators": ("annotators", "Over the number of annotators"),
    "clicks": ("clicks", "Over the number of clicks"),
}
OUTLOOKS = {
    "share": ("share", "Expected number of decisions still to change, as a share of the detections"),
    "chance": ("chance", "Probability that any decision still changes"),
}
PLOTS = {
    "found": ("found", "Detections, and the decisions that changed"),
    "quality": ("quality", "Expected sensitivity and precision"),
    "outlook": ("outlook", "What would still change"),
}
SHORTEST = 5.0
"""Minimum end of an axis of annotators or clicks."""

SIDE_BY_SIDE_FROM, TALL_ENOUGH = 230.0, 78.0
"""Minimum width of a plot beside others, and minimum height above others, in pixels."""

NARROW, LOW = 350, 300
"""Width of the panel below which switches have a separate row, and height below which one plot is shown."""


class StreamCurves(FigurePanel):
    """Three plots over one axis; the step under the pointer is marked in all plots, a click goes to it.

    Steps are counted from 1. If only one plot fits, a switch selects it.
    """

    def __init__(self) -> None:
        self.figure = _Curves()
        super().__init__("Replay", self.figure, NO_STREAM)
        self.axis, self.outlook, self.plot = ModeSwitch(AXES), ModeSwitch(OUTLOOKS), ModeSwitch(PLOTS)
        self._below = QHBoxLayout()
        self._narrow = self._single = False
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertLayout(1, self._below)
        self._place_switches()
        self._rule = ""
        self.plot.chosen.connect(self._settle)
        self.axis.chosen.connect(self.figure.set_axis)
        self.outlook.chosen.connect(self.figure.set_expected_changes)
        self.set_history(None)

    def set_history(
        self,
        history: StreamHistory | None,
        stopping: StoppingSettings | None = None,
        truth: StreamTruth | None = None,
    ) -> None:
        """Show the history of a stream, or that there is none.

        `stopping`: stop rule; by default the usual one. `truth`: accuracy by ground truth, if there is any.
        """
        stopping = StoppingSettings() if stopping is None else stopping
        filled = history is not None and len(history) > 0
        self.figure.set_history(history if filled else None, stopping, truth)
        if stopping.rule != self._rule and stopping.rule in OUTLOOKS:
            self.outlook.set_mode(stopping.rule)
        self._rule = stopping.rule
        subtitle = ""
        if history is not None and filled:
            annotators, clicks = int(history.annotators[-1]), int(history.clicks[-1])
            subtitle = f"{counted(annotators, 'annotator')}, {counted(clicks, 'click')}"
        self.header.set_subtitle(subtitle)
        self.set_filled(filled)
        self._settle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the switches, and show one plot or all."""
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
        """Mark the step on screen; 0 is before the first step."""
        self.figure.select(step - 1 if step else None)


class _Curves(ColumnFigure):
    """The plots; a column is a step, counted from 0."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Steps of the stream")
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

    def set_expected_changes(self, name: str) -> None:
        self._outlook = name
        self._show()

    def _show(self) -> None:
        history = self._history
        if history is None:
            self.show_charts((), ())
            return
        x = np.asarray(history.annotators if self._axis == "annotators" else history.clicks, dtype=float)
        axis = Axis(self._axis, 0.0, max(round_up(int(x[-1])), SHORTEST), padding=0.0, integral=True)
        charts = stream_charts(history, self._stopping, self._outlook, self._truth, x, axis)
        visible = charts if self._only is None else charts[self._only : self._only + 1]
        self.show_charts(visible, [x] * len(visible))

    def rooms(self) -> list[Box]:
        """Place the plots side by side if they are wide enough, otherwise one below the other."""
        width, height = self.room.width(), self.room.height()
        if len(self.charts) == 1 or (width / 3 < SIDE_BY_SIDE_FROM and height / 3 >= TALL_ENOUGH):
            return super().rooms()
        edges = np.linspace(0.0, width, len(self.charts) + 1).round().tolist()
        return [Box(left, 0.0, right, height) for left, right in pairwise(edges)]

    def text_of(self, part: Column) -> str:
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
