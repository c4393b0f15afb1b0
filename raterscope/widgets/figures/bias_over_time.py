"""An annotator's bias from answer to answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from raterscope.figures.description import Axis, Chart, Line, Segments
from raterscope.figures.table import Column as TableColumn
from raterscope.figures.table import PlotTable, check_lengths
from raterscope.text.numbers import count, estimate
from raterscope.widgets.figures.behaviours import BEHAVIOUR_INKS, GOOD
from raterscope.widgets.figures.column_figure import Column, ColumnFigure
from raterscope.widgets.figures.figure_panel import FigurePanel

__all__ = ["BiasOverTime", "OverTimeView"]

NOTHING = "Too few answers of this annotator to see whether the bias changes."
DOTS_UP_TO = 60
ZERO = Segments(
    x=np.array([[-np.inf, np.inf]]), y=np.zeros((1, 2)), ink="third", dashes=(4.0, 4.0), pointable=False
)


@dataclass(frozen=True, eq=False)
class OverTimeView:
    """An annotator's bias in K windows of answers.

    Attributes
    ----------
    at : (K,) float
        Position of each window, rising: its middle answer, or its time.
    bias, low, high : (K,) float
        Estimates with 95 % intervals; NaN where a window has too few answers.
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
    """A line with its interval; a click chooses a window of answers.

    Signals
    -------
    chosen : int
        Window.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.figure = _Windows("Bias over time")
        super().__init__("Bias over time", self.figure, NOTHING, parent)
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
