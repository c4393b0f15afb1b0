"""The objective by iteration, with what became of the components where there are any."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import Column, PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.plot import Plot, pen

__all__ = ["ObjectivePlot"]


class ObjectivePlot(Plot):
    """A line of the objective, with what became of the components.

    Ticks stand where some died out, crosses where the weakest was removed, a ring at the iteration kept.

    Parameters
    ----------
    objective : str
        Its name: "bound".
    nothing : str
        What belongs here.
    """

    def __init__(
        self,
        objective: str = "objective",
        nothing: str = "Press Fuse (F5) to see the convergence of the clustering.",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(_title(objective), "iteration", objective, nothing, parent)
        self.item.getAxis("bottom").whole = True
        self._objective = np.empty(0)
        self._components: NDArray[np.integer] = np.empty(0, dtype=np.int64)
        self._removed = np.empty(0, dtype=bool)
        self._best = -1
        # Kept, since they cost more to make than to move: this is drawn with every image gone to.
        self._line = self.item.plot()
        self._fewer, self._forced, self._ring = (pg.ScatterPlotItem() for _ in range(3))
        for marks in (self._fewer, self._forced, self._ring):
            self.item.addItem(marks)

    def set_objective(self, objective: str, axis: str = "") -> None:
        """Call what is drawn by another name, on its axis by one that may be shorter, or tell the scale."""
        self.header.set_title(_title(objective))
        self._axes["left"] = axis or objective
        self._on_theme()

    def set_trace(
        self,
        objective: NDArray[np.floating],
        components: NDArray[np.integer] | None = None,
        removed: NDArray[np.bool_] | None = None,
        best: int = -1,
        converged: bool | None = None,
    ) -> None:
        """Show what an iteration did.

        Parameters
        ----------
        objective : (T,) float
        components : (T,) int, optional
            Alive after each iteration.
        removed : (T,) bool, optional
            Where the weakest was removed by force.
        best : int
            Iteration whose parameters were kept; -1 for none.
        converged : bool, optional
        """
        self._objective = np.asarray(objective, dtype=float)
        self._components = np.empty(0, dtype=np.int64) if components is None else components
        self._removed = np.empty(0, dtype=bool) if removed is None else np.asarray(removed, dtype=bool)
        self._best = best
        ended = {None: "", True: "converged", False: "iterations ran out"}[converged]
        kept = f"{self._components[best]} components" if 0 <= best < len(self._components) else ""
        filled = len(self._objective) > 0
        self.header.set_aside(", ".join(word for word in (kept, ended) if word) if filled else "")
        self.set_filled(filled)
        self.draw()

    def show_all(self) -> None:
        """Show all iterations."""
        self.item.setXRange(1, max(2, len(self._objective)), padding=0.02)
        self.item.enableAutoRange("y")

    def table(self) -> PlotTable:
        """Give a row an iteration."""
        many = len(self._objective)
        columns: dict[str, Column] = {
            "iteration": np.arange(1, many + 1),
            self._axes["left"]: self._objective,
        }
        if len(self._components) == many:
            columns["components"] = self._components
        if len(self._removed) == many:
            columns["weakest removed"] = self._removed
        if 0 <= self._best < many:
            columns["kept"] = np.arange(many) == self._best
        return PlotTable.of(columns)

    def draw(self) -> None:
        """Draw the line and its marks."""
        if not hasattr(self, "_ring"):
            return
        look, objective = theme.current(), self._objective
        at = np.arange(1, len(objective) + 1)
        forced = self._removed if len(self._removed) == len(at) else np.zeros(len(at), dtype=bool)
        fewer, kept = self._annihilated() & ~forced, at == self._best + 1
        self._line.setData(at, objective, pen=pen(look.accent, 1.6))
        ticks, crosses, ring = pen(look.rejected), pen(look.rejected, 1.6), pen(look.text, 1.6)
        self._fewer.setData(at[fewer], objective[fewer], symbol="|", size=7, pen=ticks)
        self._forced.setData(at[forced], objective[forced], symbol="x", size=8, pen=crosses, brush=None)
        self._ring.setData(at[kept], objective[kept], symbol="o", size=11, pen=ring, brush=None)
        if len(at):
            self.show_all()

    def _annihilated(self) -> NDArray[np.bool_]:
        """Give where components went."""
        fewer = np.zeros(len(self._objective), dtype=bool)
        if len(self._components) == len(fewer):
            fewer[1:] = np.diff(self._components) < 0
        return fewer


def _title(objective: str) -> str:
    return f"{objective.capitalize()} by iteration"
