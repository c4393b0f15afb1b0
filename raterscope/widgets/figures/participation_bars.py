"""Annotators' participation in communities: a bar each, or of many one area."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Signal
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.canvas import Pen
from raterscope.figures.description import Rectangles
from raterscope.figures.shares import share_area, share_bars
from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import ChartFigure, Part
from raterscope.widgets.figures.figure_panel import FigurePanel
from raterscope.widgets.figures.qt_canvas import QtCanvas

__all__ = ["ParticipationBars"]

NOTHING = "Select annotators to see how far they belong to each community."
MOST_BARS = 12


class ParticipationBars(FigurePanel):
    """A click on a part chooses its community.

    Signals
    -------
    community_chosen : int
    """

    community_chosen = Signal(int)

    def __init__(self, title: str = "Participation", parent: QWidget | None = None) -> None:
        self.figure = _Bars(title)
        super().__init__(title, self.figure, NOTHING, parent)
        self.figure.chosen.connect(self.community_chosen)
        self.set_filled(False)

    def show_participation(
        self, shares: NDArray[np.floating], names: Sequence[str], communities: Sequence[str]
    ) -> None:
        """Show how far annotators belong to communities.

        Parameters
        ----------
        shares : (m, C) float
            Rows that add up to 1, or of NaN for an annotator of whom nothing is known.
        names : sequence of m str
            The annotators.
        communities : sequence of C str
        """
        shares = np.asarray(shares, dtype=float)
        if shares.shape != (len(names), len(communities)):
            raise ValueError(
                f"shares of shape {shares.shape} for {len(names)} annotators, {len(communities)} communities"
            )
        known = np.isfinite(shares).all(axis=1)
        known_names = [name for name, is_known in zip(names, known, strict=True) if is_known]
        self.figure.show_shares(shares[known], known_names, tuple(communities))
        self.header.set_aside(f"share, {count(len(known_names), 'annotator')}" if known_names else "")
        self.set_filled(bool(known_names) and bool(communities))

    def select_community(self, number: int | None) -> None:
        """Set off a community, without a signal."""
        self.figure.select(number)


class _Bars(ChartFigure):
    """A point (community, row) is a part of a bar, or of a column of the area."""

    chosen = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._shares: NDArray[np.floating] = np.empty((0, 0))
        self._names: list[str] = []
        self._communities: tuple[str, ...] = ()
        self._rows: NDArray[np.floating] = self._shares
        self._row_names: list[str] = []
        self._selected: int | None = None

    def show_shares(
        self, shares: NDArray[np.floating], names: list[str], communities: tuple[str, ...]
    ) -> None:
        if len(names) > MOST_BARS:
            # Annotators of one community side by side, those who belong to it most first.
            main = shares.argmax(axis=1) if shares.size else np.zeros(0, int)
            order = np.lexsort((-shares.max(axis=1, initial=0.0), main))
            shares, names = shares[order], [names[row] for row in order]
        self._shares, self._names, self._communities = shares, names, communities
        self._show()

    def select(self, community: int | None) -> None:
        self._selected = community
        self._show()

    @property
    def _dense(self) -> bool:
        return len(self._names) > MOST_BARS

    def _show(self) -> None:
        """Describe the bars; more annotators than pixels across are joined with their neighbours."""
        self._rows, self._row_names = self._shares, self._names
        number = len(self._names)
        if self._dense and number > self.room.width():
            starts = np.linspace(0, number, max(1, int(self.room.width() // 2)), endpoint=False).astype(int)
            sizes = np.diff(np.append(starts, number))
            self._rows = np.add.reduceat(self._shares, starts, axis=0) / sizes[:, None]
            self._row_names = [
                self._names[start]
                if size == 1
                else f"{count(int(size), 'annotator')} from {self._names[start]}"
                for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
            ]
        describe = share_area if self._dense else share_bars
        self.show_chart(describe(self._rows, self._row_names, self._communities, self._selected))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show()

    def words(self, part: Part) -> str:
        community, row = part
        return f"{self._row_names[row]}: {percent(float(self._rows[row, community]))} {self._name(community)}"

    def _name(self, community: int) -> str:
        name = self._communities[community]
        return name if name == f"community {community + 1}" else f"{name} (community {community + 1})"

    def choose(self, part: Part) -> None:
        self.chosen.emit(part[0])

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        if not len(self._rows) or not self._communities:
            return None
        if part is None:
            return int(self._rows[0].argmax()), 0
        row, community = (across, down) if self._dense else (down, across)
        return (
            min(max(part[0] + community, 0), len(self._communities) - 1),
            min(max(part[1] + row, 0), len(self._rows) - 1),
        )

    def table(self) -> PlotTable:
        axes = {"annotator": self._names, "community": list(map(self._name, range(len(self._communities))))}
        return PlotTable.of_cells(axes, {"share": self._shares})

    def part_at(self, position: QPointF) -> Part | None:
        """Return the part of a bar at a position, or the community in the legend."""
        x, y, plan = position.x(), position.y(), self.plan
        if y < plan.box.top and len(self._rows):
            return next(
                ((number, 0) for number, key in reversed([*enumerate(plan.legend)]) if x >= key.left), None
            )
        if not len(self._rows) or not plan.box.contains(x, y):
            return None
        left, top = plan.units(x, y)
        row = int(np.floor(left)) if self._dense else round(-top)
        if not 0 <= row < len(self._rows):
            return None
        share = -top if self._dense else left
        community = int(np.searchsorted(np.cumsum(self._rows[row]), share, side="right"))
        return min(community, len(self._communities) - 1), row

    def _draw_pointed(self, painter: QPainter, _position: QPointF) -> None:
        if self.pointed is None:
            return
        mark, row = self.chart.marks[self.pointed[0]], self.pointed[1]
        assert isinstance(mark, Rectangles)
        x = self.plan.x_pixels(np.array([mark.left[row], mark.right[row]])).tolist()
        y = self.plan.y_pixels(np.array([mark.bottom[row], mark.top[row]])).tolist()
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]), (x[0], y[0])]
        QtCanvas(painter).line(corners, Pen(theme.current().text, 2.0))
