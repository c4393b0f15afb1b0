"""Plots of annotator communities: participation bars, and triangles of answer rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Signal
from PySide6.QtGui import QPainter, QResizeEvent

from raterscope.figures.canvas import Pen
from raterscope.figures.colours import ANNOTATOR_SYMBOLS
from raterscope.figures.courses import (
    TernaryChart,
    TernaryPoint,
    corners_in,
    pixels_of,
    share_area,
    share_bars,
)
from raterscope.figures.description import PlotTable, Rectangles
from raterscope.figures.layout import Box, elided
from raterscope.text import counted, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import ChartFigure, Part
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel, QtCanvas, text_width
from raterscope.widgets.theme import set_lengths

NO_ANNOTATORS = "Select annotators to see how far they belong to each community."
MAX_BARS = 12


class ParticipationBars(FigurePanel):
    """Participation of annotators in communities; a click on a part selects its community."""

    def __init__(self) -> None:
        self.figure = _Bars("Participation")
        super().__init__("Participation", self.figure, NO_ANNOTATORS)

    def show_participation(
        self, shares: NDArray[np.floating], names: Sequence[str], communities: Sequence[str]
    ) -> None:
        """Show the participation of annotators in communities.

        `shares`: (m, C), rows that add up to 1, or NaN for an annotator with unknown shares. `names`,
        `communities`: names of the m annotators and C communities.
        """
        shares = np.asarray(shares, dtype=float)
        if shares.shape != (len(names), len(communities)):
            raise ValueError(
                f"shares of shape {shares.shape} for {len(names)} annotators, {len(communities)} communities"
            )
        known = np.isfinite(shares).all(axis=1)
        known_names = list(compress(names, known.tolist()))
        self.figure.show_shares(shares[known], known_names, tuple(communities))
        self.header.set_subtitle(f"share, {counted(len(known_names), 'annotator')}" if known_names else "")
        self.set_filled(bool(known_names) and bool(communities))


class _Bars(ChartFigure):
    """The bars; a point (community, row) is a part of a bar, or of a column of the area."""

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
        if len(names) > MAX_BARS:
            # Annotators of one community side by side, those with the largest participation first.
            main = shares.argmax(axis=1) if shares.size else np.zeros(0, int)
            order = np.lexsort((-shares.max(axis=1, initial=0.0), main))
            shares, names = shares[order], [names[row] for row in order.tolist()]
        self._shares, self._names, self._communities = shares, names, communities
        self._show()

    def select(self, community: int | None) -> None:
        self._selected = community
        self._show()

    @property
    def _dense(self) -> bool:
        return len(self._names) > MAX_BARS

    def _show(self) -> None:
        """Describe the bars; with more annotators than pixels, neighbours are averaged."""
        self._rows, self._row_names = self._shares, self._names
        number = len(self._names)
        if self._dense and number > self.room.width():
            starts = np.linspace(0, number, max(1, int(self.room.width() // 2)), endpoint=False).astype(int)
            sizes = np.diff(np.append(starts, number))
            self._rows = np.add.reduceat(self._shares, starts, axis=0) / sizes[:, None]
            self._row_names = [
                self._names[start]
                if size == 1
                else f"{counted(int(size), 'annotator')} from {self._names[start]}"
                for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
            ]
        describe = share_area if self._dense else share_bars
        self.show_chart(describe(self._rows, self._row_names, self._communities, self._selected))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show()

    def text_of(self, part: Part) -> str:
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


NO_COMMUNITIES = "Find communities to see how they label, each as a point of a triangle."
HEAD, LINE, SIDE, CORNER = 18.0, 16.0, 12.0, 18.0
SMALLEST, LARGEST = 4.0, 9.0
REACH = 12.0
FADED = 0.25

TrianglePart = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class TrianglesView:
    """Communities at T moments, in a triangle for each of J true classes."""

    moments: tuple[str, ...]  # (T,): names of the moments; empty for a single one
    classes: tuple[str, ...]  # (J,)
    # for each of J classes, three outputs: at the lower left, top and lower right corner
    corners: tuple[tuple[str, str, str], ...]
    shares: tuple[NDArray[np.floating], ...]  # T arrays, (C_t, J, 3): adding up to 1 over the corners
    sizes: tuple[NDArray[np.integer], ...]  # T arrays, (C_t,): members
    numbers: tuple[NDArray[np.integer], ...]  # T arrays, (C_t,): persistent number of each community, from 0
    names: tuple[str, ...]  # by lasting number


class CommunityTriangles(FigurePanel):
    """Communities as points in triangles; a click on a symbol selects its community."""

    def __init__(self) -> None:
        self.figure = _Triangles("Communities in triangles")
        super().__init__("Communities in triangles", self.figure, NO_COMMUNITIES)

    def show_triangles(self, view: TrianglesView | None) -> None:
        """Show communities; None shows none."""
        self.figure.show_view(view)
        moments = 0 if view is None else len(view.moments)
        self.header.set_subtitle(counted(moments, "moment") if moments > 1 else "")
        self.set_filled(view is not None)


class _Triangles(Figure[TrianglePart]):
    """The triangles; a part is a moment, a class, and a community at the moment."""

    chosen = Signal(int)  # persistent number of a community

    def __init__(self, name: str) -> None:
        super().__init__(name)
        set_lengths(self, minimumWidth=240, minimumHeight=140)
        self._view: TrianglesView | None = None

    def show_view(self, view: TrianglesView | None) -> None:
        self._view = view
        self.point(None)
        self.redraw()

    def text_of(self, part: TrianglePart) -> str:
        view = self._view
        assert view is not None
        moment, true, community = part
        number = int(view.numbers[moment][community])
        plain, name = f"community {number + 1}", view.names[number]
        shares = view.shares[moment][community, true]
        rates = ", ".join(
            f"{corner} {share:.2f}" for corner, share in zip(view.corners[true], shares.tolist(), strict=True)
        )
        when = f"{view.moments[moment]}: " if view.moments[moment] else ""
        called = plain if name == plain else f"{plain}, {name}"
        members = counted(int(view.sizes[moment][community]), "annotator")
        return f"{when}{called}, {members}; true {view.classes[true]}: {rates}"

    def part_at(self, position: QPointF) -> TrianglePart | None:
        best, nearest = None, REACH
        for part, centre in self._symbols():
            away = math.hypot(position.x() - centre.x(), position.y() - centre.y())
            if away < nearest:
                best, nearest = part, away
        return best

    def step(self, part: TrianglePart | None, across: int, down: int) -> TrianglePart | None:
        view = self._view
        if view is None:
            return None
        if part is None:
            return (0, 0, 0) if len(view.numbers[0]) else None
        moment, true, community = part
        if down:
            return moment, min(max(true + down, 0), len(view.classes) - 1), community
        every = [(t, c) for t, numbers in enumerate(view.numbers) for c in range(len(numbers))]
        index = min(max(every.index((moment, community)) + across, 0), len(every) - 1)
        return every[index][0], true, every[index][1]

    def choose(self, part: TrianglePart) -> None:
        assert self._view is not None
        self.chosen.emit(int(self._view.numbers[part[0]][part[2]]))

    def table(self) -> PlotTable:
        view = self._view
        assert view is not None
        rows = [
            (moment, true, community, corner)
            for moment, numbers in enumerate(view.numbers)
            for community in range(len(numbers))
            for true in range(len(view.classes))
            for corner in range(3)
        ]
        return PlotTable.of(
            {
                "moment": [view.moments[moment] for moment, *_ in rows],
                "community": [int(view.numbers[moment][index]) + 1 for moment, _, index, _ in rows],
                "name": [view.names[int(view.numbers[moment][index])] for moment, _, index, _ in rows],
                "true": [view.classes[true] for _, true, _, _ in rows],
                "given": [view.corners[true][corner] for _, true, _, corner in rows],
                "rate": [
                    float(view.shares[moment][index, true, corner]) for moment, true, index, corner in rows
                ],
                "annotators": [int(view.sizes[moment][index]) for moment, _, index, _ in rows],
            }
        )

    def draw(self, painter: QPainter) -> None:
        if self._view is None:
            return
        self.paint_still(painter, self._draw_all)
        if self.pointed is not None:
            centre = next(centre for part, centre in self._symbols() if part == self.pointed)
            QtCanvas(painter).disc((centre.x(), centre.y()), REACH, "", Pen(theme.current().text, 1.5))

    def _box(self, moment: int, true: int) -> Box:
        """Return the box of a triangle, without titles and names of corners."""
        view = self._view
        assert view is not None
        wide = self.room.width() / len(view.moments)
        high = max(self.room.height() - HEAD, 1.0) / len(view.classes)
        left, top = wide * moment, HEAD + high * true
        return Box(left + SIDE, top + LINE + CORNER, left + wide - SIDE, top + high - CORNER)

    def _symbols(self) -> list[tuple[TrianglePart, QPointF]]:
        view = self._view
        return [
            ((moment, true, community), QPointF(x, y))
            for moment, shares in enumerate(() if view is None else view.shares)
            for true in range(shares.shape[1])
            for community, (x, y) in enumerate(
                pixels_of(corners_in(self._box(moment, true)), shares[:, true]).tolist()
            )
        ]

    def _draw_all(self, painter: QPainter) -> None:
        view, palette, canvas = self._view, theme.current(), QtCanvas(painter)
        assert view is not None
        for moment, title in enumerate(view.moments):
            box = self._box(moment, 0)
            canvas.text(((box.left + box.right) / 2, HEAD / 2 - 2), title, palette.second, theme.CAPTION)
            for true in range(len(view.classes)):
                chart = self._chart(view, moment, true)
                chart.draw_in(canvas, self._box(moment, true), palette, theme.CAPTION, theme.CAPTION)
        for true, name in enumerate(view.classes):
            middle = self._box(0, true).top - CORNER - LINE / 2
            text = elided(f"true: {name}", self.room.width(), lambda part: text_width(part, theme.CAPTION))
            canvas.text((0.0, middle), text, palette.text, theme.CAPTION, "start")

    def _chart(self, view: TrianglesView, moment: int, true: int) -> TernaryChart:
        most = max((int(sizes.max(initial=1)) for sizes in view.sizes), default=1)
        points = []
        for shares, number, size in zip(
            view.shares[moment][:, true],
            view.numbers[moment].tolist(),
            view.sizes[moment].tolist(),
            strict=True,
        ):
            radius = SMALLEST + (LARGEST - SMALLEST) * math.sqrt(size / most)
            symbol = ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)]
            lit = self._selected is None or self._selected == number
            opacity = 1.0 if lit else FADED
            points.append(
                TernaryPoint(shares, f"community {number}", radius, str(number + 1), symbol, opacity)
            )
        return TernaryChart(view.corners[true], points)
