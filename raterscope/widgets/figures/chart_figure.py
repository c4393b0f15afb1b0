"""Widgets that show a chart: hover, keyboard and zoom; selectable columns over one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QResizeEvent, QWheelEvent

from raterscope.figures.canvas import Pen
from raterscope.figures.colours import colour_of
from raterscope.figures.description import Axis, Chart, Line, PlotTable, Rectangles
from raterscope.figures.drawing import draw_chart
from raterscope.figures.layout import Box, Layout, View, full_view, lay_out
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel, QtCanvas, text_width
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.theme import usual

Part = tuple[int, int]
"""Index of a mark of the chart, and of one of its points."""

REACH = 9.0
"""Maximum distance of the pointer from a point or a line, in pixels."""
RING = 5.5
ZOOM = 0.8
CLOSEST = 1e-4
"""Minimum visible share of an axis."""
NO_CHART = Chart("", Axis(""), Axis(""))


class ChartFigure(Figure[Part]):
    """A chart whose points respond to pointing and arrow keys, and can be selected.

    The wheel and + and - zoom, a drag pans, a double click shows all again. Left and Right move along a
    series, Up and Down to another series; with a single series, to the next higher or lower point.
    """

    point_chosen = Signal(int, int)  # index of a mark, and of its chosen point

    KEY_HELP = KeyHelp(
        "In a plot",
        (
            ("Arrows", "go from point to point"),
            ("Home, End", "go to the first, the last point"),
            ("Return", "choose what is pointed at"),
            ("+, -", "zoom"),
        ),
    )

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.chart = NO_CHART
        self.first: Part | None = None
        """The part at which the arrow keys begin; by default the left end of the first series."""
        self._view: View | None = None
        self._layout: Layout | None = None
        self.rings: tuple[Part, ...] = ()
        """Points with a ring."""
        self._ring_size = 11.0
        self._by_key = False
        self._grabbed: tuple[QPointF, View] | None = None
        self._dragged = False
        self._orders: dict[int, NDArray[np.int64]] = {}
        self._pixels: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def show_chart(self, chart: Chart, *, keep_view: bool = False) -> None:
        """Show a whole chart, or the part shown so far if only its state changed."""
        self.chart = chart
        self._view = self._view if keep_view else None
        self._layout, self._orders, self.rings, self.first = None, {}, (), None
        self.point(None)
        self.setAccessibleName(_name(chart) or self.accessibleName())
        self.redraw()

    def show_all(self) -> None:
        """Undo zoom and pan."""
        self._look_at(None)

    def set_rings(self, parts: tuple[Part, ...], size: float = 11.0) -> None:
        """Draw rings around points, without repainting anything else."""
        self.rings, self._ring_size = parts, size
        self.update()

    @property
    def plan(self) -> Layout:
        """The layout, in the pixels of `room`."""
        if self._layout is None:
            self._pixels = {}
            self._layout = lay_out(self.chart, box_of(self.room), text_width, view=self._view)
        return self._layout

    def position_of(self, part: Part) -> QPointF:
        """Return the position of a point, in pixels of the room."""
        x, y = self._mark_pixels(part[0])
        return QPointF(float(x[part[1]]), float(y[part[1]]))

    def heading(self) -> tuple[str, str]:
        """Return the title of the chart."""
        return (self.chart.title, self.chart.subtitle) if self.chart.title else super().heading()

    def table(self) -> PlotTable:
        """Return the drawn numbers as a table."""
        return self.chart.data()

    def text_of(self, part: Part) -> str:
        """Describe a point."""
        return self.chart.describe(*part)

    def part_at(self, position: QPointF) -> Part | None:
        """Return the nearest point within reach, or the nearest point of a line within reach."""
        layout, best, nearest = self.plan, None, REACH
        px, py = position.x(), position.y()
        if not layout.box.left - REACH <= px <= layout.box.right + REACH:
            return None
        for number in self.chart.navigable:
            x, y = self._mark_pixels(number)
            away = (x - px) ** 2 + (y - py) ** 2
            index = int(np.argmin(np.where(np.isnan(away), np.inf, away)))
            distance = float(np.sqrt(away[index]))
            if isinstance(self.chart.marks[number], Line) and len(x) > 1:
                distance = min(distance, _line_distance(x, y, px, py))
            # Among equally near marks, the first one has priority.
            if np.isfinite(away[index]) and distance < (REACH if best is None else nearest - 0.5):
                nearest, best = distance, (number, index)
        return best

    def _mark_pixels(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the positions of the points of a mark, in pixels of the room."""
        layout = self.plan
        if number not in self._pixels:
            mark = self.chart.marks[number]
            self._pixels[number] = layout.pixels(np.asarray(mark.across), np.asarray(mark.up))
        return self._pixels[number]

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        """Move along a series, and from series to series."""
        navigable = self.chart.navigable
        if not navigable:
            return None
        if part is None:
            order = self._order(navigable[0])
            return self.first or ((navigable[0], int(order[0])) if len(order) else None)
        number, index = part
        if across:
            return number, _neighbour(self._order(number), index, across)
        mark = self.chart.marks[number]
        if len(navigable) == 1:
            if isinstance(mark, Line):
                return part
            return number, _neighbour(np.argsort(mark.up, kind="stable"), index, -down)
        series = min(max(navigable.index(number) + down, 0), len(navigable) - 1)
        if navigable[series] == number:
            return part
        next_mark = self.chart.marks[navigable[series]]
        away = np.abs(np.asarray(next_mark.across, dtype=float) - float(mark.across[index]))
        away[~np.isfinite(np.asarray(next_mark.up, dtype=float))] = np.inf
        return navigable[series], int(np.argmin(away))

    def choose(self, part: Part) -> None:
        """Emit the chosen point."""
        self.point_chosen.emit(*part)

    def _order(self, number: int) -> NDArray[np.int64]:
        """Return the points of a series from left to right."""
        if number not in self._orders:
            mark = self.chart.marks[number]
            known = np.isfinite(np.asarray(mark.across, float)) & np.isfinite(np.asarray(mark.up, float))
            order = np.argsort(mark.across, kind="stable")
            self._orders[number] = order[known[order]]
        return self._orders[number]

    def draw(self, painter: QPainter) -> None:
        """Paint the chart, rings and the part under the pointer."""
        self.paint_still(painter, self._draw_chart)
        palette, canvas = theme.current(), QtCanvas(painter)
        box = self.plan.box
        for part in self.rings:
            position = self.position_of(part)
            if box.contains(position.x(), position.y()):
                canvas.disc((position.x(), position.y()), self._ring_size / 2, "", Pen(palette.text, 1.6))
        if self.pointed is not None:
            self._draw_pointed(painter, self.position_of(self.pointed))

    def _draw_chart(self, painter: QPainter) -> None:
        draw_chart(QtCanvas(painter), self.plan, theme.current())

    def _draw_pointed(self, painter: QPainter, position: QPointF) -> None:
        palette, box = theme.current(), self.plan.box
        painter.setPen(QPen(QColor(palette.accent), 1.6))
        painter.setBrush(QColor(palette.surface))
        painter.drawEllipse(position, RING, RING)
        if not self._by_key or self.pointed is None:
            return
        painter.setFont(theme.font(theme.CAPTION))
        metrics = painter.fontMetrics()
        most = max(box.right - box.left - 16, 60)
        text = metrics.elidedText(self.text_of(self.pointed), Qt.TextElideMode.ElideMiddle, int(most))
        width = metrics.horizontalAdvance(text) + 12
        left = min(max(position.x() - width / 2, box.left), max(box.right - width, 0.0))
        top = position.y() - 28 if position.y() - 28 > box.top else position.y() + 10
        label = QRectF(left, top, width, 18)
        painter.setPen(QPen(QColor(palette.line), 1))
        painter.setBrush(QColor(palette.raised))
        painter.drawRoundedRect(label, 3, 3)
        painter.setPen(QColor(palette.text))
        painter.drawText(label, Qt.AlignmentFlag.AlignCenter, text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out in another size."""
        self._layout = None
        super().resizeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move and select as in every figure; plus and minus zoom around the point."""
        self._by_key = True
        if event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            box = self.plan.box
            middle = QPointF((box.left + box.right) / 2, (box.top + box.bottom) / 2)
            about = middle if self.pointed is None else self.position_of(self.pointed)
            self._zoom(about, 1 / ZOOM if event.key() == Qt.Key.Key_Minus else ZOOM)
            return
        super().keyPressEvent(event)
        if self.pointed is not None:
            self._bring_into_view(self.pointed)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer."""
        delta = event.angleDelta().y()
        if delta:
            self._zoom(usual(event.position()), ZOOM ** (delta / 120))
            event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan while the button is down; otherwise mark the part under the pointer."""
        self._by_key = False
        if self._grabbed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            super().mouseMoveEvent(event)
            return
        start, view = self._grabbed
        moved = usual(event.position()) - start
        if self._dragged or moved.manhattanLength() > 4:
            self._dragged = True
            box = self.plan.box
            across = moved.x() / box.width * (view.right - view.left)
            up = moved.y() / box.height * (view.top - view.bottom)
            self._look_at(View(view.left - across, view.right - across, view.bottom + up, view.top + up))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._by_key = False
            self._grabbed, self._dragged = (usual(event.position()), self.plan.view), False
            self.point(self.part_at(usual(event.position())))
        else:
            super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Select the clicked part, unless the chart was dragged."""
        clicked = self._grabbed is not None and not self._dragged
        self._grabbed = None
        if clicked and event.button() == Qt.MouseButton.LeftButton:
            part = self.part_at(usual(event.position()))
            if part is not None:
                self.choose(part)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show all again."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.show_all()

    def event(self, event: QEvent) -> bool:
        """Handle the zoom keys before any shortcut."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            plain = event.modifiers() & ~(
                Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
            )
            zooms = event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus)
            if zooms and plain == Qt.KeyboardModifier.NoModifier:
                event.accept()
                return True
        return super().event(event)

    def _zoom(self, about: QPointF, factor: float) -> None:
        layout, full = self.plan, full_view(self.chart)
        view, (x, y) = layout.view, layout.units(about.x(), about.y())
        left, right = _scaled(view.left, view.right, x, factor, full.left, full.right)
        bottom, top = _scaled(view.bottom, view.top, y, factor, full.bottom, full.top)
        if self.chart.x.names:
            left, right = full.left, full.right
        self._look_at(View(left, right, bottom, top))

    def _look_at(self, view: View | None) -> None:
        if view is not None:
            full = full_view(self.chart)
            left, right = _within(view.left, view.right, full.left, full.right)
            bottom, top = _within(view.bottom, view.top, full.bottom, full.top)
            view = View(left, right, bottom, top)
            view = None if view == full else view
        if view != self._view:
            self._view, self._layout = view, None
            self.redraw()

    def _bring_into_view(self, part: Part) -> None:
        position, layout = self.position_of(part), self.plan
        if layout.box.contains(position.x(), position.y()):
            return
        x, y = layout.units(position.x(), position.y())
        view = layout.view
        across, up = (view.right - view.left) / 2, (view.top - view.bottom) / 2
        self._look_at(View(x - across, x + across, y - up, y + up))


class ChartPanel(FigurePanel):
    """A chart with its title above it, or a sentence if there is nothing to draw.

    `set_chart` shows a chart. Subclasses that compute their chart override `describe`; `draw` shows the
    result.

    `title`, `nothing`: title and sentence while there is nothing to draw.
    """

    def __init__(self, title: str, nothing: str, *, brief: str = "") -> None:
        self.figure = ChartFigure(title)
        super().__init__(title, self.figure, nothing, brief=brief)
        self.menu = self.figure.menu
        self._chart = NO_CHART

    def set_chart(self, chart: Chart | None) -> None:
        """Show a chart, or that there is none."""
        self._chart = chart or NO_CHART
        self.set_filled(chart is not None)
        self.draw()

    def describe(self) -> Chart:
        """Return the description of the chart."""
        return self._chart

    def draw(self, *, keep_view: bool = False) -> None:
        """Show the chart by its current description."""
        chart = self.describe()
        self.header.set_subtitle(chart.subtitle)
        self.figure.show_chart(chart, keep_view=keep_view)
        self.draw_rings()

    def draw_rings(self) -> None:
        """Draw rings around the selection."""

    def table(self) -> PlotTable:
        """Return the drawn numbers as a table."""
        return self.figure.table()

    def heading(self) -> tuple[str, str]:
        """Return the title, and the text beside it."""
        return self.figure.heading()


class ChartChoice(ChartPanel):
    """One of several charts, chosen by its title in the header.

    `title`, `nothing`: as in `ChartPanel`. `choice`: accessible name of the box of titles.
    """

    def __init__(self, title: str, nothing: str, choice: str) -> None:
        super().__init__(title, nothing)
        self.choice = ChoiceBox(choice)
        self.choice.hide()
        self.header.row.addWidget(self.choice)
        self._charts: Sequence[Chart] = ()
        self.choice.currentIndexChanged.connect(self._show)

    def show_charts(self, charts: Sequence[Chart], titles: Sequence[str], reason: str = "") -> None:
        """Show charts, or the reason why there are none; the chosen title is kept if possible."""
        self._charts = charts
        self.choice.offer(titles)
        self.choice.setVisible(len(titles) > 1)
        self.set_nothing(reason)
        self._show()

    def _show(self) -> None:
        at = self.choice.currentIndex()
        self.set_chart(self._charts[at] if 0 <= at < len(self._charts) else None)


def box_of(room: QRectF) -> Box:
    """Convert a rectangle of Qt to a box."""
    return Box(room.left(), room.top(), room.right(), room.bottom())


def _name(chart: Chart) -> str:
    axes = f"{chart.y.label} against {chart.x.label}" if chart.x.label and chart.y.label else ""
    return ": ".join(filter(None, (chart.title, axes)))


def _neighbour(order: NDArray[np.int64], index: int, by: int) -> int:
    rows = np.flatnonzero(order == index)
    row = (int(rows[0]) if len(rows) else 0) + by
    return int(order[min(max(row, 0), len(order) - 1)])


def _line_distance(x: NDArray[np.float64], y: NDArray[np.float64], px: float, py: float) -> float:
    """Return the distance of a position from a line through points."""
    near = np.flatnonzero(
        (np.minimum(x[:-1], x[1:]) <= px + REACH) & (np.maximum(x[:-1], x[1:]) >= px - REACH)
    )
    if not len(near):
        return np.inf
    start_x, start_y = x[near], y[near]
    step_x, step_y = x[near + 1] - start_x, y[near + 1] - start_y
    square = step_x**2 + step_y**2
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(((px - start_x) * step_x + (py - start_y) * step_y) / square, 0, 1)
    share = np.nan_to_num(share)
    away = np.hypot(start_x + share * step_x - px, start_y + share * step_y - py)
    known = away[np.isfinite(away)]
    return float(known.min()) if len(known) else np.inf


def _scaled(
    low: float, high: float, about: float, factor: float, least: float, most: float
) -> tuple[float, float]:
    factor = max(factor, CLOSEST * (most - least) / (high - low))
    return about - (about - low) * factor, about + (high - about) * factor


def _within(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """Move an interval into another one; return the latter if the first is not shorter."""
    if high - low >= (most - least) * (1 - 1e-9):
        return least, most
    moved = max(least - low, 0.0) - max(high - most, 0.0)
    return low + moved, high + moved


Column = tuple[int, int]
"""Index of a chart, and of one of its columns."""

MARGIN = 14.0
MARK = 7.0
FOOT = 32.0
"""Height of the common axis below the last of several charts, in pixels."""


class ColumnFigure(Figure[Column]):
    """Charts side by side or one below the other, each with columns along its horizontal axis.

    A column responds to pointing over the whole height of its chart. Left and Right move along the columns,
    Up and Down to another chart; with a single chart, all arrow keys move along the columns. Subclasses
    describe charts and columns.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.charts: tuple[Chart, ...] = ()
        self.columns: tuple[NDArray[np.floating], ...] = ()
        self.selected: int | None = None
        self._plans: list[Layout] = []

    def show_charts(self, charts: Sequence[Chart], columns: Sequence[NDArray[np.floating]]) -> None:
        """Show charts with the ascending values of their columns on the horizontal axis."""
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
        """Number of columns that an arrow key moves."""
        return 1

    def rooms(self) -> list[Box]:
        """Divide the space among the charts: by default one below the other, with equal heights."""
        room, number = self.room, len(self.charts)
        footer = FOOT if any(chart.x.hidden for chart in self.charts) else 0.0
        edges = np.linspace(room.top(), room.bottom() - footer, number + 1).tolist()
        edges[-1] += footer
        return [Box(0.0, edges[row], room.width(), edges[row + 1]) for row in range(number)]

    @property
    def plans(self) -> list[Layout]:
        """The layouts of the charts, with aligned axes."""
        if not self._plans and self.charts:
            boxes = self.rooms()
            titled = [len(self.charts) > 1 and bool(chart.title) for chart in self.charts]
            parts = list(zip(self.charts, boxes, titled, strict=True))
            plans = [lay_out(chart, box, text_width, titled=title) for chart, box, title in parts]
            if len({box.left for box in boxes}) == 1:
                left = max(plan.box.left for plan in plans) - boxes[0].left
                plans = [
                    lay_out(chart, box, text_width, titled=title, min_left=left)
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
        """Move along the columns, and from chart to chart."""
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
        """Return the drawn numbers as a table."""
        return self.charts[0].data()

    def draw(self, painter: QPainter) -> None:
        """Paint the charts, the selected column and the column under the pointer."""
        self.paint_still(painter, self._draw_charts)
        palette = theme.current()
        pointed = None if self.pointed is None else self.pointed[1]
        for column, ink in ((self.selected, self.cursor_colour), (pointed, palette.third)):
            for number, plan in enumerate(self.plans):
                if column is not None and column < len(self.columns[number]):
                    self._draw_cursor(QtCanvas(painter), plan, number, column, ink)

    @property
    def cursor_colour(self) -> str:
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
