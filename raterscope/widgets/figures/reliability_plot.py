"""Reliability against the number of clicks: a dot an annotator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.plot import Plot, pen
from raterscope.widgets.parts import plain_tip

__all__ = ["ReliabilityPlot"]


class ReliabilityPlot(Plot):
    """A click on a dot selects the annotator; on the ground, nobody.

    Signals
    -------
    annotator_chosen : int
    """

    annotator_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Reliability / clicks", "clicks", "reliability",
            "Press Fuse (F5) to see each annotator's reliability.", parent,
        )  # fmt: skip
        self._clicks = np.empty(0)
        self._reliability = np.empty(0)
        self._names: tuple[str, ...] = ()
        self._annotators = np.empty(0, dtype=np.int64)
        self._excluded: frozenset[int] = frozenset()
        self._selected: int | None = None
        self._dots = pg.ScatterPlotItem(size=7)
        self._dots.sigClicked.connect(self._on_clicked)
        self._ring = pg.ScatterPlotItem(size=15)
        self.item.addItem(self._dots)
        self.item.addItem(self._ring)
        self.item.setLimits(yMin=-0.1, yMax=1.1)

    def set_annotators(
        self,
        clicks: NDArray[np.integer],
        reliability: NDArray[np.floating],
        names: Sequence[str] = (),
        annotators: NDArray[np.integer] | None = None,
        excluded: set[int] | None = None,
    ) -> None:
        """Show annotators.

        Parameters
        ----------
        clicks : (R,) int
        reliability : (R,) float
            NaN where not known: no dot.
        names : sequence of str
        annotators : (R,) int, optional
            Their indices; 0 to R - 1 without.
        excluded : set of int, optional
            Indices drawn as crosses.
        """
        known = np.isfinite(reliability)
        indices = np.arange(len(clicks)) if annotators is None else np.asarray(annotators)
        self._clicks, self._reliability = np.asarray(clicks)[known], np.asarray(reliability)[known]
        self._annotators = indices[known]
        self._names = tuple(np.asarray(names, dtype=object)[known]) if len(names) else ()
        self._excluded = frozenset(excluded or ())
        self.header.set_aside(count(len(self._clicks), "annotator") if len(self._clicks) else "")
        self.set_filled(len(self._clicks) > 0)
        self.draw()
        self.show_all()

    def select(self, annotator: int | None) -> None:
        """Ring an annotator's dot, without a signal."""
        self._selected = annotator
        self._draw_ring()

    def show_all(self) -> None:
        """Show every dot, and the whole of the scale."""
        if len(self._clicks):
            self.item.setXRange(0, float(self._clicks.max()), padding=0.05)
        self.item.setYRange(0, 1, padding=0.08)

    def table(self) -> PlotTable:
        """Give a row a dot."""
        out = np.isin(self._annotators, list(self._excluded))
        names = self._names or [str(number) for number in self._annotators.tolist()]
        return PlotTable.of(
            {"annotator": names, "clicks": self._clicks, "reliability": self._reliability, "excluded": out}
        )

    def draw(self) -> None:
        """Draw the dots."""
        if not hasattr(self, "_dots"):
            return
        look = theme.current()
        out = np.isin(self._annotators, list(self._excluded))
        dot, cross = pg.mkBrush(theme.colour(look.accent, 190)), pg.mkBrush(None)
        nothing, orange = pg.mkPen(None), pen(look.rejected, 1.6)
        self._dots.setData(
            x=self._clicks, y=self._reliability, data=self._annotators,
            symbol=np.where(out, "x", "o").tolist(),
            brush=[cross if gone else dot for gone in out], pen=[orange if gone else nothing for gone in out],
            tip=partial(_tip, self._name_of()), hoverable=bool(self._names),
        )  # fmt: skip
        self._draw_ring()

    def _draw_ring(self) -> None:
        rows = np.flatnonzero(self._annotators == (-1 if self._selected is None else self._selected))
        ring = pen(theme.current().text, 1.6)
        self._ring.setData(
            x=self._clicks[rows] if len(rows) else [], y=self._reliability[rows] if len(rows) else [],
            pen=ring, brush=None,
        )  # fmt: skip

    def _name_of(self) -> dict[int, str]:
        return {int(index): str(name) for index, name in zip(self._annotators, self._names, strict=False)}

    def _on_clicked(self, _dots: object, points: NDArray[np.object_], event: object) -> None:
        button = getattr(event, "button", None)
        if len(points) and (button is None or button() == Qt.MouseButton.LeftButton):
            self.annotator_chosen.emit(int(points[-1].data()))


def _tip(names: Mapping[int, str], x: float, y: float, data: int) -> str:
    """Say who a dot is. No method: pyqtgraph would keep the plot alive by it."""
    return plain_tip(f"{names.get(int(data), '')}: {count(int(x), 'click')}, reliability {y:.2f}")
