"""Communities in triangles: a row a true class, a column a moment, a symbol a community."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import paint_community
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.figures.ternary_plot import corners_in, paint_triangle, places_in
from raterscope.widgets.painting import paint_words
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
        said = ", ".join(
            f"{corner} {share:.2f}" for corner, share in zip(view.corners[true], shares.tolist(), strict=True)
        )
        when = f"{view.moments[moment]}: " if view.moments[moment] else ""
        called = plain if name == plain else f"{plain}, {name}"
        many = count(int(view.sizes[moment][community]), "annotator")
        return f"{when}{called}, {many}; true {view.classes[true]}: {said}"

    def part_at(self, place: QPointF) -> Part | None:
        best, nearest = None, REACH
        for part, centre in self._symbols():
            away = math.hypot(place.x() - centre.x(), place.y() - centre.y())
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
        at = min(max(every.index((moment, community)) + across, 0), len(every) - 1)
        return every[at][0], true, every[at][1]

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
                "community": [int(view.numbers[moment][one]) + 1 for moment, _, one, _ in rows],
                "name": [view.names[int(view.numbers[moment][one])] for moment, _, one, _ in rows],
                "true": [view.classes[true] for _, true, _, _ in rows],
                "said": [view.corners[true][corner] for _, true, _, corner in rows],
                "rate": [float(view.shares[moment][one, true, corner]) for moment, true, one, corner in rows],
                "annotators": [int(view.sizes[moment][one]) for moment, _, one, _ in rows],
            }
        )

    def draw(self, painter: QPainter) -> None:
        if self._view is None:
            return
        self.paint_still(painter, self._draw_all)
        if self.pointed is not None:
            centre = next(place for part, place in self._symbols() if part == self.pointed)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.current().text), 1.5))
            painter.drawEllipse(centre, REACH, REACH)

    def _box(self, moment: int, true: int) -> QRectF:
        """Give the room of a triangle."""
        view = self._view
        assert view is not None
        wide = self.room.width() / len(view.moments)
        high = max(self.room.height() - HEAD, 1.0) / len(view.classes)
        whole = QRectF(wide * moment, HEAD + high * true, wide, high)
        return whole.adjusted(SIDE, LINE + CORNER, -SIDE, -CORNER)

    def _symbols(self) -> list[tuple[Part, QPointF]]:
        view = self._view
        if view is None:
            return []
        found = []
        for moment, shares in enumerate(view.shares):
            for true in range(len(view.classes)):
                places = places_in(corners_in(self._box(moment, true)), shares[:, true])
                found += [((moment, true, at), QPointF(*place)) for at, place in enumerate(places.tolist())]
        return found

    def _draw_all(self, painter: QPainter) -> None:
        view, look = self._view, theme.current()
        assert view is not None
        painter.setFont(theme.font(theme.CAPTION))
        for moment, title in enumerate(view.moments):
            box = self._box(moment, 0)
            head = QRectF(box.left() - SIDE, 0, box.width() + 2 * SIDE, HEAD - 4)
            paint_words(painter, head, title, look.second, side=Qt.AlignmentFlag.AlignHCenter)
            for true, corners in enumerate(view.corners):
                paint_triangle(painter, corners_in(self._box(moment, true)), corners)
        for true, name in enumerate(view.classes):
            line = QRectF(0, self._box(0, true).top() - CORNER - LINE, self.room.width(), LINE)
            paint_words(painter, line, f"true: {name}", look.text)
        most = max((int(sizes.max(initial=1)) for sizes in view.sizes), default=1)
        for (moment, _true, community), centre in self._symbols():
            number = int(view.numbers[moment][community])
            lit = self._selected is None or self._selected == number
            painter.setOpacity(1.0 if lit else FADED)
            share = float(view.sizes[moment][community]) / most
            radius = SMALLEST + (LARGEST - SMALLEST) * math.sqrt(share)
            paint_community(painter, centre, number, radius)
            words = QRectF(centre.x() + radius + 2, centre.y() - 7, 24, 14)
            paint_words(painter, words, str(number + 1), look.second)
        painter.setOpacity(1.0)
