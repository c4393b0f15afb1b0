"""Whether a posterior of p is right in a share p of cases: a line a method beside the diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.curves_plot import DASHES
from raterscope.widgets.figures.legend import LineSample
from raterscope.widgets.figures.plot import Plot, pen

__all__ = ["CalibrationLine", "CalibrationPlot"]


@dataclass(frozen=True, eq=False)
class CalibrationLine:
    """One method's posteriors in bins.

    Attributes
    ----------
    title : str
    posterior, share : (B,) float
        Mean posterior of each bin and the share of it that is right; NaN where it is empty.
    count : (B,) int
    error : float
        Expected calibration error.
    low, high : (B,) float, optional
        Ends of the interval of `share`.
    """

    title: str
    posterior: NDArray[np.floating]
    share: NDArray[np.floating]
    count: NDArray[np.integer]
    error: float
    low: NDArray[np.floating] | None = None
    high: NDArray[np.floating] | None = None


class CalibrationPlot(Plot):
    """A dot a bin, larger for more cases; the diagonal is what perfect posteriors give.

    Signals
    -------
    bin_chosen : float, float
        From which posterior on and up to which the bin goes whose dot is clicked.
    """

    bin_chosen = Signal(float, float)

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        axes: tuple[str, str] = ("posterior", "share right"),
        nothing: str = "Import known truths to see whether posteriors can be taken at their word.",
    ) -> None:
        self._axis_names = axes
        super().__init__("Calibration", *axes, nothing, parent)
        self._lines: tuple[CalibrationLine, ...] = ()
        self._marked: float | None = None
        self._ring = pg.ScatterPlotItem(size=17)
        self.show_all()
        self.draw()

    @property
    def lines(self) -> tuple[CalibrationLine, ...]:
        """The lines shown."""
        return self._lines

    def set_lines(self, lines: Sequence[CalibrationLine]) -> None:
        """Show methods, the one that matters first."""
        self._lines = tuple(lines)
        self.set_filled(bool(lines))
        self.draw()

    def mark(self, posterior: float | None) -> None:
        """Ring the bin of the first method that a posterior falls into."""
        if posterior != self._marked:
            self._marked = posterior
            self._draw_ring()

    def show_all(self) -> None:
        """Show the unit square."""
        self.item.setXRange(0, 1, padding=0.02)
        self.item.setYRange(0, 1, padding=0.06)

    def table(self) -> PlotTable:
        """Give a row a dot."""
        there = [np.flatnonzero(line.count > 0) for line in self._lines]
        shown = list(zip(self._lines, there, strict=True))
        columns: dict[str, Any] = {
            "method": [line.title for line, bins in shown for _ in bins],
            self._axis_names[0]: np.concatenate([line.posterior[bins] for line, bins in shown]),
            self._axis_names[1]: np.concatenate([line.share[bins] for line, bins in shown]),
            "cases": np.concatenate([line.count[bins] for line, bins in shown]),
        }
        if any(line.low is not None for line in self._lines):
            for name in ("low", "high"):
                ends = [getattr(line, name) for line in self._lines]
                columns[f"95 % {name}"] = np.concatenate(
                    [
                        np.full(len(bins), np.nan) if end is None else end[bins]
                        for end, (_, bins) in zip(ends, shown, strict=True)
                    ]
                )
        return PlotTable.of(columns)

    def draw(self) -> None:
        """Draw the methods."""
        if not hasattr(self, "_ring"):
            return
        look = theme.current()
        self.item.clear()
        self.item.plot([0, 1], [0, 1], pen=pen(look.line, 1.0, (4, 4)))
        samples: list[LineSample] = []
        for place, line in enumerate(self._lines):
            there = line.count > 0
            colour, dashes = (look.accent, look.second)[place % 2], DASHES[place % len(DASHES)]
            samples.append(LineSample(line.title, colour, dashes, dotted=True))
            if line.low is not None and line.high is not None:
                x, low, high = line.posterior[there], line.low[there], line.high[there]
                ends = np.column_stack([low, high]).ravel()
                self.item.plot(np.repeat(x, 2), ends, pen=pen(colour, 1.0), connect="pairs")
            size = 4 + 8 * np.sqrt(line.count[there] / max(int(line.count.max(initial=0)), 1))
            drawn = self.item.plot(
                line.posterior[there], line.share[there], pen=pen(colour, 1.8, dashes), symbol="o",
                symbolSize=size, symbolBrush=colour, symbolPen=None, data=np.flatnonzero(there),
            )  # fmt: skip
            drawn.sigPointsClicked.connect(self._on_points)
        self.item.addItem(self._ring)
        self._draw_ring()
        self.legend.set_lines(samples)
        self.header.set_aside(f"error {self._lines[0].error:.2f}" if self._lines else "")

    def _draw_ring(self) -> None:
        at = []
        if self._lines and self._marked is not None:
            line = self._lines[0]
            place = min(int(self._marked * len(line.count)), len(line.count) - 1)
            at = [place] if line.count[place] else []
        across, down = ([], []) if not at else (self._lines[0].posterior[at], self._lines[0].share[at])
        self._ring.setData(x=across, y=down, pen=pen(theme.current().text, 1.6), brush=None)

    def _on_points(self, _drawn: object, points: NDArray[np.object_], _event: object = None) -> None:
        if len(points) and self._lines:
            bins = len(self._lines[0].count)
            place = int(points[-1].data())
            self.bin_chosen.emit(place / bins, (place + 1) / bins)
