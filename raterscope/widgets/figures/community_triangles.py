"""Communities in triangles: a row a true class, a column a moment, a symbol a community."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from raterscope.figures.canvas import Pen
from raterscope.figures.colours import ANNOTATOR_SYMBOLS
from raterscope.figures.layout import Box, elided
from raterscope.figures.table import PlotTable
from raterscope.figures.ternary import TernaryChart, TernaryPoint, corners_in, pixels_of
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.figures.qt_canvas import QtCanvas, text_width
from raterscope.widgets.text_size import set_lengths

__all__ = ["CommunityTriangles", "TrianglesView"]

NOTHING = "Find communities to see how they label, each as a point of a triangle."
HEAD, LINE, SIDE, CORNER = 18.0, 16.0, 12.0, 18.0
SMALLEST, LARGEST = 4.0, 9.0
REACH = 12.0
FADED = 0.25

Part = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class TrianglesView:
    """Communities at T moments, in a triangle for each of J true classes.

    Attributes
    ----------
    moments : tuple of T str
        Empty words for the only moment.
    classes : tuple of J str
    corners : tuple of J tuples of three str
        What lower left, top and lower right stand for.
    shares : tuple of T arrays, (C_t, J, 3) float
        Adding up to 1 over the corners.
    sizes : tuple of T arrays, (C_t,) int
        Members.
    numbers : tuple of T arrays, (C_t,) int
        The lasting number of each community, from 0.
    names : tuple of str
        By lasting number.
    """

    moments: tuple[str, ...]
    classes: tuple[str, ...]
    corners: tuple[tuple[str, str, str], ...]
    shares: tuple[NDArray[np.floating], ...]
    sizes: tuple[NDArray[np.integer], ...]
    numbers: tuple[NDArray[np.integer], ...]
    names: tuple[str, ...]


class CommunityTriangles(FigurePanel):
    """A click on a symbol chooses its community.

    Signals
    -------
    community_chosen : int
        Its lasting number.
    """

    community_chosen = Signal(int)

    def __init__(self, title: str = "Communities in triangles", parent: QWidget | None = None) -> None:
        self.figure = _Triangles(title)
        super().__init__(title, self.figure, NOTHING, parent)
        self.figure.chosen.connect(self.community_chosen)

    def show_triangles(self, view: TrianglesView | None) -> None:
        """Show communities; None shows none."""
        self.figure.show_view(view)
        moments = 0 if view is None else len(view.moments)
        self.header.set_aside(count(moments, "moment") if moments > 1 else "")
        self.set_filled(view is not None)

    def select_community(self, number: int | None) -> None:
        """Set off a community by its lasting number, without a signal."""
        self.figure.select(number)


class _Triangles(Figure[Part]):
    """A part is a moment, a class and a community of the moment."""

    chosen = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        set_lengths(self, minimumWidth=240, minimumHeight=140)
        self._view: TrianglesView | None = None
        self._selected: int | None = None

    def show_view(self, view: TrianglesView | None) -> None:
        self._view = view
        self.point(None)
        self.redraw()

    def select(self, number: int | None) -> None:
        self._selected = number
        self.redraw()

    def words(self, part: Part) -> str:
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
        members = count(int(view.sizes[moment][community]), "annotator")
        return f"{when}{called}, {members}; true {view.classes[true]}: {rates}"

    def part_at(self, position: QPointF) -> Part | None:
        best, nearest = None, REACH
        for part, centre in self._symbols():
            away = math.hypot(position.x() - centre.x(), position.y() - centre.y())
            if away < nearest:
                best, nearest = part, away
        return best

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
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

    def choose(self, part: Part) -> None:
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
                "said": [view.corners[true][corner] for _, true, _, corner in rows],
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
        """Return the room of a triangle, without titles and names of corners."""
        view = self._view
        assert view is not None
        wide = self.room.width() / len(view.moments)
        high = max(self.room.height() - HEAD, 1.0) / len(view.classes)
        left, top = wide * moment, HEAD + high * true
        return Box(left + SIDE, top + LINE + CORNER, left + wide - SIDE, top + high - CORNER)

    def _symbols(self) -> list[tuple[Part, QPointF]]:
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
        view, look, canvas = self._view, theme.current(), QtCanvas(painter)
        assert view is not None
        for moment, title in enumerate(view.moments):
            box = self._box(moment, 0)
            canvas.text(((box.left + box.right) / 2, HEAD / 2 - 2), title, look.second, theme.CAPTION)
            for true in range(len(view.classes)):
                chart = self._chart(view, moment, true)
                chart.draw_in(canvas, self._box(moment, true), look, theme.CAPTION, theme.CAPTION)
        for true, name in enumerate(view.classes):
            middle = self._box(0, true).top - CORNER - LINE / 2
            text = elided(f"true: {name}", self.room.width(), lambda part: text_width(part, theme.CAPTION))
            canvas.text((0.0, middle), text, look.text, theme.CAPTION, "start")

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
