"""Charts over one axis whose columns are pointed at: votes, steps, windows of answers, bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.canvas import Pen
from raterscope.figures.colours import colour_of
from raterscope.figures.description import Chart, Line, Rectangles
from raterscope.figures.drawing import draw_chart
from raterscope.figures.layout import Box, Layout, lay_out
from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.figures.qt_canvas import QtCanvas, text_width

__all__ = ["Column", "ColumnFigure"]

Column = tuple[int, int]
"""Number of a chart, and of a column of it."""

MARGIN = 14.0
MARK = 7.0
FOOT = 32.0
"""Height of the axis that the last of several charts has for all of them, pixels."""


class ColumnFigure(Figure[Column]):
    """Charts side by side or one below the other, each with columns along its horizontal axis.

    A column is pointed at over the whole height of its chart. The arrow keys lead along the columns,
    Up and Down to another chart; where there is one chart, all of them lead along the columns.
    Subclasses describe charts and columns, and say in words what a column is.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.charts: tuple[Chart, ...] = ()
        self.columns: tuple[NDArray[np.floating], ...] = ()
        self.selected: int | None = None
        self._plans: list[Layout] = []

    def show_charts(self, charts: Sequence[Chart], columns: Sequence[NDArray[np.floating]]) -> None:
        """Show charts with the values of their columns on the horizontal axis, which never fall."""
        self.charts, self.columns = tuple(charts), tuple(columns)
        if self.pointed is not None and not self._exists(self.pointed):
            self.point(None)
        self.redraw()

    def select(self, column: int | None) -> None:
        """Select a column in all charts."""
        self.selected = column
        self.update()

    @property
    def pace(self) -> int:
        """Columns that an arrow key passes."""
        return 1

    def rooms(self) -> list[Box]:
        """Divide the room among the charts: by default one below the other, equally high."""
        room, number = self.room, len(self.charts)
        foot = FOOT if any(chart.x.hidden for chart in self.charts) else 0.0
        edges = np.linspace(room.top(), room.bottom() - foot, number + 1).tolist()
        edges[-1] += foot
        return [Box(0.0, edges[row], room.width(), edges[row + 1]) for row in range(number)]

    @property
    def plans(self) -> list[Layout]:
        """The layouts of the charts, with their axes one below the other."""
        if not self._plans and self.charts:
            boxes = self.rooms()
            titled = [len(self.charts) > 1 and bool(chart.title) for chart in self.charts]
            parts = list(zip(self.charts, boxes, titled, strict=True))
            plans = [lay_out(chart, box, text_width, titled=title) for chart, box, title in parts]
            if len({box.left for box in boxes}) == 1:
                left = max(plan.box.left for plan in plans) - boxes[0].left
                plans = [
                    lay_out(chart, box, text_width, titled=title, least_left=left)
                    for chart, box, title in parts
                ]
            self._plans = plans
        return self._plans

    def redraw(self) -> None:
        """Lay out and paint everything again."""
        self._plans = []
        super().redraw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out in another size."""
        self._plans = []
        super().resizeEvent(event)

    def part_at(self, position: QPointF) -> Column | None:
        """Return the column under a position."""
        for number, plan in enumerate(self.plans):
            x, box, room = position.x(), plan.box, plan.room
            if room.top <= position.y() <= room.bottom and -MARGIN <= x - box.left <= box.width + MARGIN:
                return self._nearest(number, x)
        return None

    def _nearest(self, number: int, x: float) -> Column | None:
        pixels = self.plans[number].x_pixels(self.columns[number])
        if not len(pixels):
            return None
        after = min(int(np.searchsorted(pixels, x)), len(pixels) - 1)
        if after and x - pixels[after - 1] <= pixels[after] - x:
            after -= 1
        return number, int(np.searchsorted(pixels, pixels[after], side="right")) - 1

    def _exists(self, part: Column) -> bool:
        return part[0] < len(self.columns) and part[1] < len(self.columns[part[0]])

    def step(self, part: Column | None, across: int, down: int) -> Column | None:
        """Lead along the columns, and from chart to chart."""
        if not self.columns or not len(self.columns[0]):
            return None
        last = len(self.columns[0]) - 1
        if part is None:
            return 0, min(self.selected or 0, last)
        number, column = part
        if len(self.charts) == 1:
            across, down = across - down, 0
        number = min(max(number + down, 0), len(self.charts) - 1)
        return number, min(max(column + across * self.pace, 0), last)

    def table(self) -> PlotTable:
        """Return the numbers that are drawn."""
        return self.charts[0].data()

    def draw(self, painter: QPainter) -> None:
        """Paint the charts, the column that is selected and the one that is pointed at."""
        self.paint_still(painter, self._draw_charts)
        look = theme.current()
        pointed = None if self.pointed is None else self.pointed[1]
        for column, ink in ((self.selected, self.cursor_ink), (pointed, look.third)):
            for number, plan in enumerate(self.plans):
                if column is not None and column < len(self.columns[number]):
                    self._draw_cursor(QtCanvas(painter), plan, number, column, ink)

    @property
    def cursor_ink(self) -> str:
        """Colour of the cursor at the selected column."""
        return theme.current().text

    def _draw_charts(self, painter: QPainter) -> None:
        for plan, chart in zip(self.plans, self.charts, strict=True):
            titled = len(self.charts) > 1 and bool(chart.title)
            draw_chart(QtCanvas(painter), plan, theme.current(), titled=titled)

    def _draw_cursor(self, canvas: QtCanvas, plan: Layout, number: int, column: int, ink: str) -> None:
        box, marks = plan.box, plan.chart.marks
        bars = next((mark for mark in marks if isinstance(mark, Rectangles) and mark.pointable), None)
        if bars is not None:
            left, right = (
                float(plan.x_pixels(np.asarray(side)[[column]])[0]) for side in (bars.left, bars.right)
            )
            left, right = left - 1, max(right, left + 2)
            corners = [(left, box.top), (right, box.top), (right, box.bottom), (left, box.bottom)]
            canvas.line([*corners, corners[0]], Pen(ink))
            return
        x = float(plan.x_pixels(self.columns[number][[column]])[0])
        canvas.line([(x, box.top), (x, box.bottom)], Pen(ink))
        for mark in marks:
            if isinstance(mark, Line) and mark.pointable and column < len(mark.y):
                y = plan.y_pixels(np.asarray(mark.y, dtype=float)[[column]])
                if np.isfinite(y[0]):
                    fill = colour_of(mark.ink, theme.current())
                    canvas.symbols(
                        np.column_stack([[x], y]), mark.symbol, np.array([MARK]), Pen(ink, 1.4), fill
                    )
