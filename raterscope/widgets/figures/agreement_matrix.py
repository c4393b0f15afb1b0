"""Agreement of every two raters, as a heat map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import (
    BAR_HEIGHT,
    cell_at,
    cell_beside,
    colours_of,
    paint_colour_bar,
)
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.painting import VIRIDIS, paint_rater, paint_words

__all__ = ["AgreementMatrix"]

NOTHING = "Press Fuse (F5) to compare raters two by two: it takes two raters of one case."
LARGEST_CELL = 40
GAP = 1.0
TOUCHING = 5.0
"""Cells smaller than this touch."""
SAMPLE_EDGE, LEAST_BAR = 22, 90
"""Room for colours in place of names, and least width of the colour bar, pixels."""
NAMES_FROM = 18
"""A cell that is lower has no room for a name at its edge: a piece of the rater's line stands there."""


class AgreementMatrix(FigurePanel):
    """A click on a cell chooses its two raters; one rater's row and column can be set off.

    Parameters
    ----------
    title, nothing : str
    noun : str
        What one of them is called in its table: "rater", "annotator".

    Signals
    -------
    pair_chosen : str, str
        Names of the raters of row and column.
    """

    pair_chosen = Signal(str, str)

    def __init__(
        self,
        title: str = "Pairwise agreement",
        parent: QWidget | None = None,
        *,
        nothing: str = NOTHING,
        noun: str = "rater",
    ) -> None:
        self.figure = _Matrix(title, noun)
        super().__init__(title, self.figure, nothing, parent)
        self.figure.chosen.connect(self.pair_chosen)
        self.set_filled(False)

    def set_matrix(
        self,
        names: Sequence[str],
        numbers: Sequence[int],
        values: NDArray[np.floating],
        label: str = "Dice",
        words: Callable[[int, int], str] | None = None,
    ) -> None:
        """Show the agreement of raters.

        Parameters
        ----------
        names : sequence of str, P
        numbers : sequence of int, P
            Their numbers, which give the colours.
        values : (P, P) float
            1 for perfect agreement, NaN where two have no case in common.
        label : str
            What the values are: "Dice".
        words : callable, optional
            ``words(row, column)`` says what stands in a cell, "Dice 0.83, on 14 spots".
        """
        values = np.asarray(values, dtype=float)
        if values.shape != (len(names), len(names)) or len(numbers) != len(names):
            raise ValueError(f"values of shape {values.shape} for {len(names)} names, {len(numbers)} numbers")
        self.header.set_title(f"Pairwise {label}")
        self.figure.setAccessibleName(f"Pairwise {label}")
        self.figure.show_matrix(tuple(names), tuple(numbers), values, label, words)
        self.set_filled(len(names) > 1)

    def select(self, name: str | None) -> None:
        """Set off a rater's row and column, without a signal."""
        self.figure.select(name)


class _Matrix(Figure[tuple[int, int]]):
    chosen = Signal(str, str)

    def __init__(self, name: str, noun: str) -> None:
        super().__init__(name)
        self._who = noun
        self._names: tuple[str, ...] = ()
        self._numbers: tuple[int, ...] = ()
        self._values: NDArray[np.floating] = np.empty((0, 0))
        self._label = ""
        self._describe: Callable[[int, int], str] | None = None
        self._selected: str | None = None
        self._low = 0.0

    def show_matrix(
        self,
        names: tuple[str, ...],
        numbers: tuple[int, ...],
        values: NDArray[np.floating],
        label: str,
        said: Callable[[int, int], str] | None,
    ) -> None:
        self._names, self._numbers, self._values, self._label = names, numbers, values, label
        self._describe = said
        known = values[~np.eye(len(names), dtype=bool) & np.isfinite(values)]
        # The scale begins at a round number below the least agreement, never at its own least: 0.93 is no 0.
        self._low = min(0.5, np.floor(10 * known.min()) / 10) if known.size else 0.0
        self.pointed = None
        self.update()

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def select(self, name: str | None) -> None:
        self._selected = name
        self.update()

    def words(self, part: tuple[int, int]) -> str:
        row, column = part
        first, second = self._names[row], self._names[column]
        if row == column:
            return f"{first} with itself"
        if self._describe is not None:
            return f"{first} and {second}: {self._describe(row, column)}"
        value = self._values[row, column]
        text = f"{self._label} {value:.2f}" if np.isfinite(value) else "no case in common"
        return f"{first} and {second}: {text}"

    def part_at(self, position: QPointF) -> tuple[int, int] | None:
        return cell_at(position, self._grid()[0], len(self._names), len(self._names))

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int]:
        if part is None:
            return 0, min(1, len(self._names) - 1)
        return cell_beside(part, across, down, len(self._names), len(self._names))

    def choose(self, part: tuple[int, int]) -> None:
        row, column = part
        self.chosen.emit(self._names[row], self._names[column])

    def table(self) -> PlotTable:
        with_others = np.where(np.eye(len(self._names), dtype=bool), np.nan, self._values)
        return PlotTable.of_cells(
            {self._who: self._names, f"other {self._who}": self._names}, {self._label: with_others}
        )

    def _edge(self) -> int:
        """Return the width of the names at the left, at most a third of the room."""
        metrics = QFontMetrics(theme.font(theme.CAPTION, bold=True))  # as a chosen name is
        longest = max((metrics.horizontalAdvance(name) for name in self._names), default=0)
        return round(min(longest + 12, self.room.width() / 3))

    def _grid(self) -> tuple[QRectF, float]:
        """Return the rectangle of the cells, and the side of one."""
        edge = self._edge() if self._has_names() else SAMPLE_EDGE
        side = self._side_beside(edge)
        number = max(len(self._names), 1)
        return QRectF(edge, 12, side * number, side * number), side

    def _has_names(self) -> bool:
        """Tell whether rows are high enough for names; else they have a colour."""
        least = min(NAMES_FROM, QFontMetrics(theme.font(theme.CAPTION)).height())
        return self._side_beside(self._edge()) >= least

    def _side_beside(self, edge: float) -> float:
        """Return the side of a cell beside names of a width."""
        number = max(len(self._names), 1)
        height = self.room.height() - 12 - BAR_HEIGHT - 8
        return min(LARGEST_CELL, (self.room.width() - edge - 2) / number, height / number)

    def draw(self, painter: QPainter) -> None:
        look = theme.current()
        grid, side = self._grid()
        colours = colours_of(self._values, self._low, 1.0, VIRIDIS)
        small = theme.font(theme.CAPTION)
        fits = QFontMetrics(small).horizontalAdvance("0.00") + 4 <= side
        painter.setFont(small)
        selected = self._names.index(self._selected) if self._selected in self._names else -1
        inner = side - GAP if side >= TOUCHING else side
        for row in range(len(self._names)):
            for column in range(len(self._names)):
                cell = QRectF(grid.left() + column * side, grid.top() + row * side, inner, inner)
                value = self._values[row, column]
                if row == column or not np.isfinite(value):
                    painter.fillRect(cell, QColor(look.raised))
                    continue
                dimmed = selected >= 0 and selected not in (row, column)
                red, green, blue = (int(part) for part in colours[row, column])
                painter.fillRect(cell, QColor(red, green, blue, 90 if dimmed else 255))
                if fits:
                    dark = 0.3 * red + 0.59 * green + 0.11 * blue > 125
                    painter.setPen(QColor(look.second if dimmed else "#0d0f11" if dark else "#ffffff"))
                    painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, f"{value:.2f}")
        self._draw_edges(painter, grid, side, selected)
        if self.pointed is not None:
            row, column = self.pointed
            painter.setPen(QPen(QColor(look.text), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(
                QRectF(grid.left() + column * side, grid.top() + row * side, side - GAP, side - GAP)
            )
        width = min(max(grid.width(), LEAST_BAR), self.room.width())
        left = min(grid.left(), self.room.width() - width)
        bar = QRectF(left, grid.bottom() + 8, width, BAR_HEIGHT)
        paint_colour_bar(painter, bar, VIRIDIS, self._low, 1.0, self._label)

    def _draw_edges(self, painter: QPainter, grid: QRectF, side: float, selected: int) -> None:
        look = theme.current()
        named = self._has_names()
        for index, (name, number) in enumerate(zip(self._names, self._numbers, strict=True)):
            chosen = index == selected
            top = QRectF(grid.left() + index * side, 1, side - GAP, 10)
            paint_rater(painter, top, number)
            box = QRectF(4, grid.top() + index * side, grid.left() - 10, side - GAP)
            if not named:
                box.setLeft(max(0.0, box.right() - 14))
                paint_rater(painter, box, number)
                continue
            painter.setFont(theme.font(theme.CAPTION, bold=chosen))
            tone = look.text if chosen else look.second
            right, middle = Qt.AlignmentFlag.AlignRight, Qt.TextElideMode.ElideMiddle
            paint_words(painter, box, name, tone, side=right, elide=middle)
