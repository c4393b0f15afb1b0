"""Plots of position bias: choices left and right by annotator, and bias over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.figures.colours import Symbol, colour_of
from raterscope.figures.description import (
    Axis,
    Chart,
    Key,
    Line,
    Mark,
    PlotTable,
    Points,
    Scale,
    Segments,
    check_lengths,
)
from raterscope.figures.description import Column as TableColumn
from raterscope.text import count, estimate
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import ChartPanel, Column, ColumnFigure
from raterscope.widgets.figures.figure_panel import FigurePanel, ModeSwitch, row_of
from raterscope.widgets.theme import set_lengths

GOOD, UGLY, BAD, UNDECIDABLE = range(len(BEHAVIOUR_WORDS))
BEHAVIOUR_INKS = ("third", "disputed", "rejected", "third")
BEHAVIOUR_DASHES: tuple[tuple[float, ...], ...] = ((), (3.0, 2.0), (), (1.0, 2.0))
"""In widths of the line."""
SHORT_WORDS = ("no bias", "leaning", "one-sided", "undecidable")
BEHAVIOUR_KEYS = tuple(
    Key(words, ink, dashes, "cross" if behaviour == BAD else None, short=short)
    for behaviour, (words, ink, dashes, short) in enumerate(
        zip(BEHAVIOUR_WORDS, BEHAVIOUR_INKS, BEHAVIOUR_DASHES, SHORT_WORDS, strict=True)
    )
)
"""Legend; short words are used in a narrow plot."""


def behaviour_colour(behaviour: int) -> str:
    """Return the colour of a behaviour in the theme in use."""
    return colour_of(BEHAVIOUR_INKS[behaviour], theme.current())


NO_SIDES = "Press Fuse (F5) to see how often each annotator chose left and right."
SCALES = {
    "log": ("log", "Logarithm of the counts: small counts are as distinct as large ones"),
    "linear": ("linear", "Counts as they are"),
}
SIZE, RING = 7.2, 15.0
DIAGONAL = np.array([[-np.inf, np.inf]])
EQUAL = Segments(x=DIAGONAL, y=DIAGONAL, ink="third", dashes=(4.0, 4.0), stretch=False)


@dataclass(frozen=True, eq=False)
class SidesView:
    """The choices of p annotators."""

    # left, right: (p,)
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    behaviour: NDArray[np.integer]  # (p,): numbers in `BEHAVIOURS`
    flagged: NDArray[np.bool_]  # (p,)
    names: tuple[str, ...]  # (p,)
    numbers: NDArray[np.integer]  # (p,): their numbers in the signal

    def __post_init__(self) -> None:
        columns = (self.left, self.right, self.behaviour, self.flagged, self.numbers)
        check_lengths(len(self.names), "annotators", *columns)


class SideCounts(ChartPanel):
    """Annotators without bias lie about the diagonal. A click chooses one; arrows walk by counts."""

    chosen = Signal(int)  # number of an annotator

    def __init__(self) -> None:
        super().__init__("Left and right", NO_SIDES, brief="Sides")
        set_lengths(self.figure, minimumWidth=150, minimumHeight=120)
        self.figure.setToolTip("On the dashed line: left as often as right")
        self.scale = ModeSwitch(SCALES)
        self.header.row.addWidget(self.scale)
        self._view: SidesView | None = None
        self._flagged = np.empty(0, bool)
        self._behaviour = np.empty(0, np.int8)
        self._rows = np.empty(0, np.int64)
        self._selected: int | None = None
        self.scale.chosen.connect(lambda: self.draw())
        self.figure.point_chosen.connect(self._on_point)
        self.show_sides(None)

    def show_sides(self, view: SidesView | None) -> None:
        """Show annotators, or that there are none yet; the selection stays."""
        self._view = view
        if view is not None:
            self._take(view.flagged, view.behaviour)
        self.scale.setVisible(view is not None)
        self.set_filled(view is not None)
        self.draw()

    def set_flagged(self, flagged: NDArray[np.bool_], behaviour: NDArray[np.integer]) -> None:
        """Mark others as flagged."""
        unchanged = np.array_equal(self._flagged, flagged) and np.array_equal(self._behaviour, behaviour)
        if self._view is not None and not unchanged:
            self._take(flagged, behaviour)
            self.draw(keep_view=True)

    def _take(self, flagged: NDArray[np.bool_], behaviour: NDArray[np.integer]) -> None:
        self._flagged, self._behaviour = np.asarray(flagged), np.asarray(behaviour)
        # Of symbols above each other, the first that is flagged is pointed at: it is on top.
        self._rows = np.argsort(~self._flagged, kind="stable")

    def select(self, number: int | None) -> None:
        """Select an annotator, or none, without a signal."""
        self._selected = number
        self.draw_rings()

    def draw_rings(self) -> None:
        """Ring the symbol of the selected annotator."""
        numbers = np.empty(0) if self._view is None else self._view.numbers[self._rows]
        row = row_of(numbers, self._selected)
        self.figure.set_rings(() if row is None else ((1, row),), RING)
        self.figure.first = (1, row or 0) if len(numbers) else None

    def describe(self) -> Chart:
        """Describe the symbols; the flagged are drawn last."""
        view = self._view
        scale: Scale = "log1p" if self.scale.mode == "log" else "linear"
        if view is None:
            return Chart("Left and right", Axis("left"), Axis("right"))
        most = float(max(view.left.max(initial=1), view.right.max(initial=1), 1))
        x, y = (Axis(words, 0.0, 1.04 * most, scale, 0.02, integral=True) for words in ("left", "right"))
        rows = self._rows
        walked = Points(x=view.left[rows], y=view.right[rows], size=0.0, words=self._words)
        marks: list[Mark] = [EQUAL, walked]
        kinds = 2 * self._behaviour.astype(np.int64) + self._flagged
        for kind in sorted(np.unique(kinds).tolist(), key=lambda kind: kind % 2):
            ink, symbol = _look(kind // 2, flagged=bool(kind % 2))
            marks.append(
                Points(
                    x=view.left[kinds == kind], y=view.right[kinds == kind], ink=ink, symbol=symbol,
                    size=SIZE, width=1.2, filled=bool(kind % 2), pointable=False,
                )
            )  # fmt: skip
        behaviour = [BEHAVIOUR_WORDS[number] if number >= 0 else "" for number in self._behaviour.tolist()]
        table: dict[str, TableColumn] = {
            "annotator": view.names, "left": view.left, "right": view.right, "behaviour": behaviour,
            "flagged": self._flagged,
        }  # fmt: skip
        return Chart("Left and right", x, y, tuple(marks), table=PlotTable.of(table))

    def _words(self, index: int) -> str:
        view, row = self._view, int(self._rows[index])
        assert view is not None
        words = f"{view.names[row]}: {view.left[row]:,} left, {view.right[row]:,} right"
        if self._behaviour[row] >= 0:
            words += f", {BEHAVIOUR_WORDS[self._behaviour[row]]}"
        return words + (", flagged" if self._flagged[row] else "")

    def _on_point(self, _mark: int, index: int) -> None:
        assert self._view is not None
        self._selected = int(self._view.numbers[self._rows[index]])
        self.draw_rings()
        self.chosen.emit(self._selected)


def _look(behaviour: int, *, flagged: bool) -> tuple[str, Symbol]:
    if flagged:
        return ("disputed", "diamond") if behaviour == UGLY else ("rejected", "square")
    return ("third", "triangle") if behaviour == UNDECIDABLE else ("accent", "disc")


TOO_FEW = "Too few answers of this annotator to see whether the bias changes."
DOTS_UP_TO = 60
ZERO = Segments(
    x=np.array([[-np.inf, np.inf]]), y=np.zeros((1, 2)), ink="third", dashes=(4.0, 4.0), pointable=False
)


@dataclass(frozen=True, eq=False)
class OverTimeView:
    """An annotator's bias in K windows of answers."""

    at: NDArray[np.floating]  # (K,): position of each window, rising: its middle answer, or its time
    # bias, low, high: (K,): estimates with 95 % intervals; NaN where a window has too few answers
    bias: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    when: tuple[str, ...]  # (K,): "answers 1 to 40", "12 March, 10:00 to 11:20"
    answers: int
    behaviour: int = GOOD  # number in `BEHAVIOURS`: gives the colour

    def __post_init__(self) -> None:
        check_lengths(len(self.at), "windows", self.bias, self.low, self.high, self.when)

    def chart(self) -> Chart:
        """Describe the line with its interval."""
        positions = np.asarray(self.at, dtype=float)
        if positions[0] == positions[-1]:
            positions = np.linspace(0.0, 1.0, len(positions))
        ink = BEHAVIOUR_INKS[self.behaviour] if self.behaviour else "accent"
        line = Line(
            x=positions,
            y=self.bias,
            low=self.low,
            high=self.high,
            ink=ink,
            dot=4.0 * (len(positions) <= DOTS_UP_TO),
        )
        ends = ((float(positions[0]), self.when[0]), (float(positions[-1]), self.when[-1]))
        table: dict[str, TableColumn] = {
            "when": self.when,
            "at": self.at,
            "bias": self.bias,
            "low": self.low,
            "high": self.high,
        }
        x = Axis("", float(positions[0]), float(positions[-1]), padding=0.01, ticks=ends)
        return Chart("Bias over time", x, Axis("bias"), (ZERO, line), table=PlotTable.of(table))


class BiasOverTime(FigurePanel):
    """A line with its interval; a click chooses a window of answers."""

    chosen = Signal(int)  # window

    def __init__(self) -> None:
        self.figure = _Windows("Bias over time")
        super().__init__("Bias over time", self.figure, TOO_FEW)
        self.figure.chosen.connect(self.chosen)

    def show_course(self, view: OverTimeView | None) -> None:
        """Show an annotator, or that there are too few answers."""
        filled = view is not None and len(view.at) > 1
        self.figure.show_view(view if filled else None)
        self.header.set_aside("" if view is None else count(view.answers, "answer"))
        self.set_filled(filled)


class _Windows(ColumnFigure):
    chosen = Signal(int)
    _view: OverTimeView | None = None

    def show_view(self, view: OverTimeView | None) -> None:
        self._view = view
        self.select(None)
        charts = () if view is None else (view.chart(),)
        self.show_charts(charts, [np.asarray(chart.marks[1].across, dtype=float) for chart in charts])

    def words(self, part: Column) -> str:
        view, window = self._view, part[1]
        assert view is not None
        values = (float(part[window]) for part in (view.bias, view.low, view.high))
        return f"{view.when[window]}: bias {estimate(*values)}"

    def choose(self, part: Column) -> None:
        self.select(part[1])
        self.chosen.emit(part[1])
