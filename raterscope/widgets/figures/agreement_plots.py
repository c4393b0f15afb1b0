"""Plots of agreement between raters: a heat map of pairs, and a dendrogram."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from raterscope.figures.description import Axis, Chart, Key, Line, PlotTable, Segments
from raterscope.figures.layout import Tick, ticks_of
from raterscope.text import estimate, with_minus
from raterscope.widgets import theme
from raterscope.widgets.colour_maps import VIRIDIS
from raterscope.widgets.figures.cells import BAR_HEIGHT, cell_at, cell_beside, colours_of, paint_colour_bar
from raterscope.widgets.figures.chart_figure import ChartChoice
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.painting import paint_rater, paint_text

NO_PAIRS = "Press Fuse (F5) to compare raters two by two: it takes two raters of one case."
LARGEST_CELL = 40
GAP = 1.0
TOUCHING = 5.0
"""Size of a cell, in pixels, below which cells have no gap."""
SAMPLE_EDGE, MIN_BAR = 22, 90
"""Space for colours instead of names, and minimum width of the colour bar, in pixels."""
NAMES_FROM, NARROWEST_NAMES = 18, 60
"""Minimum height of a cell, and width beside the cells, for names; otherwise lines replace names."""


class AgreementMatrix(FigurePanel):
    """Matrix of agreement: a click on a cell selects its two raters; a rater's row can be highlighted.

    `noun`: noun of a row: "rater", "annotator".
    """

    def __init__(
        self, title: str = "Pairwise agreement", *, nothing: str = NO_PAIRS, noun: str = "rater"
    ) -> None:
        self.figure = _Matrix(title, noun)
        super().__init__(title, self.figure, nothing)

    def set_matrix(
        self,
        names: Sequence[str],
        numbers: Sequence[int],
        values: NDArray[np.floating],
        label: str = "Dice",
        words: Callable[[int, int], str] | None = None,
    ) -> None:
        """Show the agreement of raters.

        `numbers`: numbers of the P raters, which determine the colours. `values`: (P, P), 1 for perfect
        agreement, NaN for two raters without a common case. `label`: name of the values: "Dice". `words`:
        describes the cell of a row and a column: "Dice 0.83, on 14 spots".
        """
        values = np.asarray(values, dtype=float)
        if values.shape != (len(names), len(names)) or len(numbers) != len(names):
            raise ValueError(f"values of shape {values.shape} for {len(names)} names, {len(numbers)} numbers")
        self.header.set_title(f"Pairwise {label}")
        self.figure.setAccessibleName(f"Pairwise {label}")
        self.figure.show_matrix(tuple(names), tuple(numbers), values, label, words)
        self.set_filled(len(names) > 1)


class _Matrix(Figure[tuple[int, int]]):
    chosen = Signal(str, str)  # names of the raters of row and column

    def __init__(self, name: str, noun: str) -> None:
        super().__init__(name)
        self._noun = noun
        self.names: tuple[str, ...] = ()
        self._numbers: tuple[int, ...] = ()
        self._values: NDArray[np.floating] = np.empty((0, 0))
        self._label = ""
        self._describe: Callable[[int, int], str] | None = None
        self._low = 0.0

    def show_matrix(
        self,
        names: tuple[str, ...],
        numbers: tuple[int, ...],
        values: NDArray[np.floating],
        label: str,
        describe: Callable[[int, int], str] | None,
    ) -> None:
        self.names, self._numbers, self._values, self._label = names, numbers, values, label
        self._describe = describe
        known = values[~np.eye(len(names), dtype=bool) & np.isfinite(values)]
        # The scale begins at a round number below the least agreement, so that 0.93 does not look like 0.
        self._low = min(0.5, np.floor(10 * known.min()) / 10) if known.size else 0.0
        self.pointed = None
        self.update()

    def text_of(self, part: tuple[int, int]) -> str:
        row, column = part
        first, second = self.names[row], self.names[column]
        if row == column:
            return f"{first} with itself"
        if self._describe is not None:
            return f"{first} and {second}: {self._describe(row, column)}"
        value = self._values[row, column]
        text = f"{self._label} {with_minus(f'{value:.2f}')}" if np.isfinite(value) else "no case in common"
        return f"{first} and {second}: {text}"

    def part_at(self, position: QPointF) -> tuple[int, int] | None:
        return cell_at(position, self._grid()[0], len(self.names), len(self.names))

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int]:
        if part is None:
            return 0, min(1, len(self.names) - 1)
        return cell_beside(part, across, down, len(self.names), len(self.names))

    def choose(self, part: tuple[int, int]) -> None:
        row, column = part
        self.chosen.emit(self.names[row], self.names[column])

    def table(self) -> PlotTable:
        with_others = np.where(np.eye(len(self.names), dtype=bool), np.nan, self._values)
        return PlotTable.of_cells(
            {self._noun: self.names, f"other {self._noun}": self.names}, {self._label: with_others}
        )

    def _edge(self) -> int:
        """Return the width of the names at the left, at most two fifths of the space."""
        longest = _longest(self.names, theme.font(theme.CAPTION, bold=True).key())
        return round(min(longest + 12, 0.4 * self.room.width()))

    def _grid(self) -> tuple[QRectF, float]:
        """Return the rectangle of the cells, and the side of a cell."""
        edge = self._edge() if self._has_names() else SAMPLE_EDGE
        side = self._side_beside(edge)
        number = max(len(self.names), 1)
        return QRectF(edge, 12, side * number, side * number), side

    def _has_names(self) -> bool:
        """Check whether there is space for names; otherwise rows show a colour."""
        least = min(NAMES_FROM, QFontMetrics(theme.font(theme.CAPTION)).height())
        edge, longest = self._edge(), _longest(self.names, theme.font(theme.CAPTION, bold=True).key())
        return edge >= min(longest + 12, NARROWEST_NAMES) and self._side_beside(edge) >= least

    def _side_beside(self, edge: float) -> float:
        """Return the side of a cell beside names of a given width."""
        number = max(len(self.names), 1)
        height = self.room.height() - 12 - BAR_HEIGHT - 8
        return min(LARGEST_CELL, (self.room.width() - edge - 2) / number, height / number)

    def draw(self, painter: QPainter) -> None:
        palette = theme.current()
        grid, side = self._grid()
        colours = colours_of(self._values, self._low, 1.0, VIRIDIS)
        small = theme.font(theme.CAPTION)
        fits = QFontMetrics(small).horizontalAdvance("0.00") + 4 <= side
        painter.setFont(small)
        selected = self.names.index(self._selected) if self._selected in self.names else -1
        inner = side - GAP if side >= TOUCHING else side
        for row in range(len(self.names)):
            for column in range(len(self.names)):
                cell = QRectF(grid.left() + column * side, grid.top() + row * side, inner, inner)
                value = self._values[row, column]
                if row == column or not np.isfinite(value):
                    painter.fillRect(cell, QColor(palette.raised))
                    continue
                dimmed = selected >= 0 and selected not in (row, column)
                red, green, blue = (int(part) for part in colours[row, column])
                painter.fillRect(cell, QColor(red, green, blue, 90 if dimmed else 255))
                if fits:
                    dark = 0.3 * red + 0.59 * green + 0.11 * blue > 125
                    painter.setPen(QColor(palette.second if dimmed else "#0d0f11" if dark else "#ffffff"))
                    painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, with_minus(f"{value:.2f}"))
        self._draw_edges(painter, grid, side, selected)
        if self.pointed is not None:
            row, column = self.pointed
            painter.setPen(QPen(QColor(palette.text), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(
                QRectF(grid.left() + column * side, grid.top() + row * side, side - GAP, side - GAP)
            )
        width = min(max(grid.width(), MIN_BAR), self.room.width())
        left = min(grid.left(), self.room.width() - width)
        bar = QRectF(left, grid.bottom() + 8, width, BAR_HEIGHT)
        paint_colour_bar(painter, bar, VIRIDIS, self._low, 1.0, self._label)

    def _draw_edges(self, painter: QPainter, grid: QRectF, side: float, selected: int) -> None:
        palette = theme.current()
        named = self._has_names()
        for index, (name, number) in enumerate(zip(self.names, self._numbers, strict=True)):
            chosen = index == selected
            top = QRectF(grid.left() + index * side, 1, side - GAP, 10)
            paint_rater(painter, top, number)
            box = QRectF(4, grid.top() + index * side, grid.left() - 10, side - GAP)
            if not named:
                box.setLeft(max(0.0, box.right() - 14))
                paint_rater(painter, box, number)
                continue
            painter.setFont(theme.font(theme.CAPTION, bold=chosen))
            tone = palette.text if chosen else palette.second
            right, middle = Qt.AlignmentFlag.AlignRight, Qt.TextElideMode.ElideMiddle
            paint_text(painter, box, name, tone, side=right, elide=middle)


NEAR = 5.0
LEAF_ROOM = 34
TOP = 8.0


@lru_cache(maxsize=8)
def _longest(names: tuple[str, ...], _font: str) -> int:
    """Return the width of the longest name in bold, cached because each mouse move needs it."""
    metrics = QFontMetrics(theme.font(theme.CAPTION, bold=True))
    return max((metrics.horizontalAdvance(name) for name in names), default=0)


class Dendrogram(FigurePanel):
    """Dendrogram of raters: a click on a branch selects the raters below it, a click on a leaf its rater."""

    def __init__(self) -> None:
        self.figure = _Tree("Raters over cases")
        super().__init__("Raters over cases", self.figure, "Needs three raters who share cases.")

    def set_tree(
        self,
        linkage: NDArray[np.floating],
        names: Sequence[str],
        numbers: Sequence[int],
        label: str = "complete linkage",
        unit: str = "",
    ) -> None:
        """Show a tree.

        `linkage`: (P - 1, 4), as in SciPy: each row joins two raters (0 to P - 1) or earlier rows (numbered
        from P) at a height, in ascending order. Without rows there is no tree. `names`,
        `numbers`: names of the P raters, and the numbers that determine their colours. `label`: linkage of
        the tree. `unit`: unit of the heights.
        """
        linkage = np.asarray(linkage, dtype=float)
        if len(names) < 3 or len(linkage) == 0:
            self.header.set_subtitle("")
            self.set_filled(False)
            return
        if linkage.shape != (len(names) - 1, 4) or len(numbers) != len(names):
            raise ValueError(f"a linkage of shape {linkage.shape} for {len(names)} names")
        self.header.set_subtitle(label)
        self.figure.show_tree(linkage, tuple(names), tuple(numbers), unit)
        self.set_filled(True)

    def set_title(self, title: str) -> None:
        """Set the title: "Raters over 40 cases"."""
        self.header.set_title(title)
        self.figure.setAccessibleName(title)


class _Tree(Figure[int]):
    """The tree; a part is a rater's index, or P and more for a branch."""

    chosen = Signal(object)  # names of the raters

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._names: tuple[str, ...] = ()
        self._numbers: tuple[int, ...] = ()
        self._unit = ""
        self._selected: frozenset[str] = frozenset()
        self._members: list[tuple[int, ...]] = []
        self._halves: list[tuple[int, int]] = []
        self._height = np.empty(0)
        self._across = np.empty(0)

    def show_tree(
        self, linkage: NDArray[np.floating], names: tuple[str, ...], numbers: tuple[int, ...], unit: str
    ) -> None:
        leaves = len(names)
        self._names, self._numbers, self._unit = names, numbers, unit
        self._halves = [(int(first), int(second)) for first, second in linkage[:, :2]]
        self._members = [(leaf,) for leaf in range(leaves)]
        for first, second in self._halves:
            self._members.append(self._members[first] + self._members[second])
        self._height = np.concatenate([np.zeros(leaves), linkage[:, 2]])
        across = np.zeros(2 * leaves - 1)
        across[list(self._members[-1])] = np.arange(leaves)
        for part, (first, second) in enumerate(self._halves, leaves):
            across[part] = (across[first] + across[second]) / 2
        self._across = across
        self.pointed = None
        self.update()

    def select(self, names: Collection[str]) -> None:
        self._selected = frozenset(names)
        self.update()

    def text_of(self, part: int) -> str:
        members = self._member_names(part)
        if part < len(self._names):
            return members
        return f"{members}: joined at {self._height[part]:.3g}{' ' if self._unit else ''}{self._unit}"

    def part_at(self, position: QPointF) -> int | None:
        leaves = len(self._names)
        if position.y() > self._floor():
            step = self._step()
            leaf = round((position.x() - self._left()) / step - 0.5)
            return self._members[-1][leaf] if 0 <= leaf < leaves else None
        nearest, least = None, NEAR
        for part in range(len(self._members)):
            for start, end in self._strokes(part):
                across = max(start.x() - position.x(), 0.0, position.x() - end.x())
                down = max(start.y() - position.y(), 0.0, position.y() - end.y())
                distance = float(np.hypot(across, down))
                if distance < least:
                    nearest, least = part, distance
        return nearest

    def step(self, part: int | None, across: int, down: int) -> int:
        leaves = len(self._names)
        if part is None:
            return len(self._members) - 1
        if down > 0 and part >= leaves:
            return self._halves[part - leaves][0]
        above = next((row + leaves for row, pair in enumerate(self._halves) if part in pair), part)
        if down < 0 or above == part:
            return above if down < 0 else part
        halves = sorted(self._halves[above - leaves], key=self._across.__getitem__)
        return halves[0 if across < 0 else 1] if across else part

    def choose(self, part: int) -> None:
        self.chosen.emit(tuple(self._names[leaf] for leaf in self._members[part]))

    def table(self) -> PlotTable:
        leaves = len(self._names)
        halves = [[self._member_names(half) for half in pair] for pair in self._halves]
        height = f"joined at ({self._unit})" if self._unit else "joined at"
        first, second = zip(*halves, strict=True)
        return PlotTable.of({"one": first, "other": second, height: self._height[leaves:]})

    def _member_names(self, part: int) -> str:
        return ", ".join(self._names[leaf] for leaf in self._members[part])

    def _ticks(self) -> list[Tick]:
        """Return the ticks of the heights; the last label has the unit."""
        high = float(self._height.max(initial=0.0)) or 1.0
        ticks = ticks_of(Axis(""), 0.0, high, self._floor() - TOP, theme.CAPTION)
        unit = f" {self._unit}" if self._unit else ""
        return [*ticks[:-1], *((value, f"{text}{unit}") for value, text in ticks[-1:])]

    def _left(self) -> float:
        advance = QFontMetrics(theme.font(theme.CAPTION)).horizontalAdvance
        return 14.0 + max((advance(text) for _, text in self._ticks()), default=0)

    def _step(self) -> float:
        return (self.room.width() - self._left()) / max(len(self._names), 1)

    def _floor(self) -> float:
        return self.room.height() - LEAF_ROOM

    def _position(self, part: int) -> QPointF:
        top = self._height.max(initial=0.0) or 1.0
        x = self._left() + (self._across[part] + 0.5) * self._step()
        return QPointF(x, self._floor() - (self._floor() - TOP) * self._height[part] / top)

    def _strokes(self, part: int) -> list[tuple[QPointF, QPointF]]:
        """Return a branch's lines, each from its upper left end: horizontal, and down to its two children."""
        leaves = len(self._names)
        if part < leaves:
            return []
        joint = self._position(part)
        ends = sorted((self._position(half) for half in self._halves[part - leaves]), key=QPointF.x)
        corners = [QPointF(end.x(), joint.y()) for end in ends]
        return [(corners[0], corners[1]), *zip(corners, ends, strict=True)]

    def draw(self, painter: QPainter) -> None:
        palette = theme.current()
        leaves = len(self._names)
        painter.setFont(theme.font(theme.CAPTION))
        high = float(self._height.max(initial=0.0)) or 1.0
        left, floor = self._left() - 4, self._floor()
        painter.setPen(QColor(palette.line))
        painter.drawLine(QPointF(left, TOP), QPointF(left, floor))
        for value, text in self._ticks():
            y = floor - (floor - TOP) * value / high
            painter.setPen(QColor(palette.line))
            painter.drawLine(QPointF(left - 4, y), QPointF(left, y))
            room = QRectF(0, y - 8, left - 6, 16)
            paint_text(painter, room, text, palette.third, side=Qt.AlignmentFlag.AlignRight)
        lit = set(self._under(self.pointed)) if self.pointed is not None else set()
        for part in range(leaves, len(self._members)):
            hit = part in lit or self._selected.issuperset(self._names[leaf] for leaf in self._members[part])
            painter.setPen(QPen(QColor(palette.accent if hit else palette.second), 2.4 if hit else 1.6))
            for start, end in self._strokes(part):
                painter.drawLine(start, end)
        for leaf in range(leaves):
            self._draw_leaf(painter, leaf, leaf in lit)

    def _under(self, part: int) -> list[int]:
        """Return a part and all parts below it."""
        leaves, parts = len(self._names), [part]
        for above in parts:
            if above >= leaves:
                parts.extend(self._halves[above - leaves])
        return parts

    def _draw_leaf(self, painter: QPainter, leaf: int, lit: bool) -> None:
        chosen = lit or self._names[leaf] in self._selected
        position, step = self._position(leaf), self._step()
        paint_rater(painter, QRectF(position.x() - 9, position.y() + 3, 18, 8), self._numbers[leaf])
        font = theme.font(theme.CAPTION, bold=chosen)
        painter.setFont(font)
        metrics, name = QFontMetrics(font), self._names[leaf]
        if metrics.horizontalAdvance(name) > step - 4:
            # A number is clearer than a few letters of a name.
            name = str(self._numbers[leaf] + 1)
        painter.setPen(QColor(theme.current().text if chosen else theme.current().second))
        box = QRectF(position.x() - step / 2, position.y() + 12, step, LEAF_ROOM - 14)
        painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, name)


NAMED, LETTERS = 8, 100
"""Maximum number of named points on the axis, and maximum characters of all their names."""
NOTHING = "Select an annotator to plot their values over images, cases or votes."
ALONE = "Only one image, case or block of votes: no plot over time."


@dataclass(frozen=True, eq=False)
class AnnotatorCourse:
    """Values of one annotator at P points: value, low and high, (P, 3)."""

    name: str
    number: int
    points: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CourseView:
    """One quantity over points."""

    title: str  # "labels: right votes"
    label: str  # of the vertical axis, with the unit
    across: str  # "image", "block of votes"
    ideal: float | None  # value of a perfect annotator, drawn as a line
    is_share: bool  # whether the axis goes from 0 to 1
    lines: tuple[AnnotatorCourse, ...]


class CoursePlot(ChartChoice):
    """Plot of a course, chosen in its header."""

    def __init__(self) -> None:
        super().__init__("Over time", NOTHING, "Value to plot")

    def show_courses(self, views: Sequence[CourseView]) -> None:
        """Show courses; the choice of the quantity is kept if possible."""
        long = [view for view in views if any(len(line.points) > 1 for line in view.lines)]
        self.show_charts(
            [_course_chart(view) for view in long], [view.title for view in long], ALONE if views else ""
        )


def _course_chart(view: CourseView) -> Chart:
    longest = max((line.points for line in view.lines), key=len)
    short = len(longest) <= NAMED and sum(map(len, longest)) <= LETTERS
    names = longest if short and not view.across.startswith("block") else ()
    ends = (0.0, 1.0) if view.is_share else (None, None)
    x = Axis(view.across, names=names) if names else Axis(view.across, integral=True)
    marks: list[Segments | Line] = []
    if view.ideal is not None:
        at_ideal = np.array([[view.ideal, view.ideal]])
        marks.append(Segments(x=np.array([[-math.inf, math.inf]]), y=at_ideal, dashes=(4, 3), stretch=False))
    keys = []
    for line in view.lines:
        ink, symbol = theme.annotator_style(line.number)
        ink = ink if len(view.lines) > 1 else "accent"
        known = np.isfinite(line.values[:, 1:]).all(axis=1)
        low, high = (np.where(known, line.values[:, end], line.values[:, 0]) for end in (1, 2))
        positions = np.arange(len(line.points), dtype=np.float64) + (0 if names else 1)
        marks.append(
            Line(
                x=positions, y=line.values[:, 0], low=low, high=high, interval="bars", ink=ink, dot=7.0,
                symbol=symbol, title=line.name, text_of=partial(_text, view, line),
            )
        )  # fmt: skip
        keys.append(Key(line.name, ink, symbol=symbol, line=True))
    y = Axis(view.label, *ends)
    return Chart(view.title, x, y, tuple(marks), tuple(keys), subtitle="", legend_at="above")


def _text(view: CourseView, line: AnnotatorCourse, index: int) -> str:
    value, low, high = line.values[index].tolist()
    name = f"{line.name}, " if len(view.lines) > 1 else ""
    return f"{name}{line.points[index]}: {view.title} {estimate(value, low, high)}"
