"""The regularisation path: one line per annotator, from where the bias enters."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QThreadPool, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPaintEngine, QPainter, QResizeEvent

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.figures.canvas import Pen
from raterscope.figures.courses import EVERYWHERE
from raterscope.figures.description import (
    Axis,
    Chart,
    Column,
    Line,
    Mark,
    Note,
    PlotTable,
    Points,
    Scale,
    Segments,
    check_lengths,
)
from raterscope.figures.drawing import column_spans, draw_chart
from raterscope.figures.layout import View
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import NO_CHART, ChartFigure, Part
from raterscope.widgets.figures.figure_panel import FigurePanel, ModeSwitch, QtCanvas, row_of
from raterscope.widgets.figures.position_bias import (
    BAD,
    BEHAVIOUR_DASHES,
    BEHAVIOUR_INKS,
    BEHAVIOUR_KEYS,
    GOOD,
    UGLY,
    UNDECIDABLE,
    behaviour_colour,
)
from raterscope.widgets.painting import paint_text
from raterscope.widgets.theme import set_lengths, text_size

Floats = NDArray[np.float32]
LINE_LEVELS = 32
"""Number of levels of a pixel's coverage for one line over the whole pixel."""

EDGE_STEPS = 1024
"""Steps per pixel to which edges are rounded. Sums of such coverages are exact: lines can be subtracted."""

TALL = 5.0
"""Rise of a line within a column, in pixels, from which it is drawn without dashes and widened."""


def cover(
    low: Floats,
    high: Floats,
    height: int,
    width: float,
    dash: tuple[float, float] | None = None,
    hidden: NDArray[np.bool_] | None = None,
    numbers: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """Count how many lines cover each pixel, with fractions for partial coverage.

    `low`, `high`: (C, p), range of each line in every column, in pixels from the top. `width`: width of the
    lines, in pixels. `dash`: (on, period), in pixels along a line. `hidden`: (C, p), where a line is not
    drawn. `numbers`: (p,), numbers of the lines, which determine where their dashes begin. The result, (C,
    height + 2), holds differences down each column. Their running sum is the coverage, so that results can be
    added and subtracted.
    """
    columns = len(low)
    for _ in range(round(width) - 1):
        low, high = _widen_jumps(low, high)
    top = np.rint(np.clip(low - width / 2, 0, height) * EDGE_STEPS) / EDGE_STEPS
    bottom = np.rint(np.clip(high + width / 2, 0, height) * EDGE_STEPS) / EDGE_STEPS
    if hidden is not None:
        bottom[hidden] = top[hidden]
    if dash is not None:
        rise = high - low
        # Neighbouring lines begin their dashes at different places; otherwise the dashes would form stripes.
        begins = np.arange(low.shape[1]) if numbers is None else numbers
        along = np.cumsum(rise + 1, axis=0) + begins * 0.3 * dash[1]
        off = (along % dash[1] >= dash[0]) & (rise < TALL)
        bottom[off] = top[off]
    deep = height + 2
    start = np.repeat(np.arange(columns, dtype=np.int64) * deep, low.shape[1])
    cover_sums = np.zeros(columns * deep)
    for edge, sign in ((top.ravel(), 1), (bottom.ravel(), -1)):
        cell = edge.astype(np.int64)
        part = np.bincount(cell + start, edge - cell, minlength=len(cover_sums))
        cover_sums += sign * (np.bincount(cell + start, minlength=len(cover_sums)) - part)
        cover_sums[1:] += sign * part[:-1]
    return cover_sums.reshape(columns, deep)


def _widen_jumps(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Extend each jump by one column; otherwise it is thinner than the line before it."""
    tall = (high[:-1] - low[:-1]) >= TALL
    wider = low.copy(), high.copy()
    for new, old, farther in ((wider[0], low, np.minimum), (wider[1], high, np.maximum)):
        np.copyto(new[1:], farther(old[1:], old[:-1]), where=tall)
    return wider


def coverage_levels(cover_sums: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the coverage of each pixel by lines, (height, C), with `LINE_LEVELS` levels per line.

    `cover_sums`: (C, height + 2), sums of results of `cover`.
    """
    levels = np.minimum(np.cumsum(cover_sums, axis=1)[:, :-2].T * LINE_LEVELS, 255)
    return np.ascontiguousarray(np.maximum(levels, 0), dtype=np.uint8)


def coverage_image(levels: NDArray[np.uint8], colour: str, opacity: float) -> QImage:
    """Make a picture of the pixels that lines cover, in one colour.

    `levels`: (height, C), see `coverage_levels`. `opacity`: opacity of one line; it adds up where lines
    overlap.
    """
    height, width = levels.shape
    image = QImage(levels.data, width, height, width, QImage.Format.Format_Indexed8)
    ink = QColor(colour)
    table = []
    for level in range(256):
        ink.setAlphaF(1 - (1 - opacity) ** (level / LINE_LEVELS))
        table.append(ink.rgba())
    image.setColorTable(table)
    return image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)


STYLES = ((1.1, 0.55, None), (1.7, 0.95, (10.0, 15.0)), (2.2, 0.95, None), (1.1, 0.55, (2.0, 6.0)))
"""Width, opacity and dash of the lines of each behaviour."""

TOGETHER = 64
"""Number of lines to compute between two checks for cancellation."""


@dataclass(frozen=True, eq=False)
class PathFrame:
    """The course of the lines of p annotators over T positions."""

    x: NDArray[np.floating]  # (T,): positions along the axis, 0 to 1
    bias: NDArray[np.floating]  # (T, p)
    stepped: bool  # whether a bias is constant up to the next position
    drawn: NDArray[np.bool_]  # (p,): annotators that have a line
    behaviour: NDArray[np.integer]  # (p,): numbers in `BEHAVIOURS`
    # least, most: bias at the lower and the upper edge
    least: float
    most: float
    # columns, rows: numbers of pixels of the picture
    columns: int
    rows: int
    height: float  # share of each row's height for the biases
    scale: float  # picture pixels per screen pixel, by which pens are wider


@dataclass(frozen=True, eq=False)
class _Picture:
    """Ranges of lines by column, and for each behaviour the coverage of pixels by its lines."""

    # low, high: (columns, p), minimum and maximum bias of each line in every column; 0 before it enters
    low: Floats
    high: Floats
    behaviour: NDArray[np.integer]  # (p,)
    covers: list[NDArray[np.float64]]  # see `cover`
    levels: list[NDArray[np.uint8]]


_NO_PICTURE = _Picture(
    np.empty((0, 0), np.float32), np.empty((0, 0), np.float32), np.empty(0, np.int8), [], []
)


class PathLines(QObject):
    """Computation of lines in a thread, so that thousands of lines never block the window."""

    changed = Signal()  # more lines are ready to be drawn
    _computed = Signal(int, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.picture = _NO_PICTURE
        self.images: list[QImage] = []  # one per behaviour, complete
        self._order, self.finished = 0, True
        self._pool = QThreadPool(self, maxThreadCount=1)
        self._computed.connect(self._on_computed, Qt.ConnectionType.QueuedConnection)

    def clear(self) -> None:
        """Show no line."""
        self._order += 1
        self._pool.clear()
        self.finished, self.images, self.picture = True, [], _NO_PICTURE

    def start(self, frame: PathFrame, *, recoloured: bool = False) -> None:
        """Start to compute the picture; `recoloured`: only colours have changed."""
        if not recoloured:
            self.picture = _NO_PICTURE
        self._order += 1
        self.finished = False
        self._pool.clear()
        self._pool.start(partial(self._compute, frame, self.picture, self._order))

    def paint(self) -> None:
        """Paint the images in the colours of the theme."""
        if self.finished:
            self.images = [
                coverage_image(levels, behaviour_colour(behaviour), STYLES[behaviour][1])
                for behaviour, levels in enumerate(self.picture.levels)
            ]
        self.changed.emit()

    def _compute(self, frame: PathFrame, before: _Picture, order: int) -> None:
        """Compute all lines, in the pool's thread, until other lines are requested.

        If only colours change, only the lines with a changed behaviour are computed.
        """
        number, behaviour = frame.bias.shape[1], frame.behaviour
        if before is _NO_PICTURE:
            shape = frame.columns, number
            low, high = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
            covers = [np.zeros((frame.columns, frame.rows + 2)) for _ in STYLES]
            rows = np.arange(number)
        else:
            low, high, covers = before.low, before.high, list(before.covers)
            rows = np.flatnonzero(before.behaviour != behaviour)
        for begin in range(0, len(rows), TOGETHER):
            if self._order != order:
                return
            some = rows[begin : begin + TOGETHER]
            if before is _NO_PICTURE:
                bias = np.nan_to_num(np.asarray(frame.bias[:, some], dtype=np.float32))
                x = np.maximum.accumulate(np.clip(frame.x, 0, 1)) * frame.columns
                low[:, some], high[:, some] = column_spans(x, bias, frame.columns, stepped=frame.stepped)
            else:
                _add_covers(covers, frame, some, before.behaviour, low, high, -1)
            _add_covers(covers, frame, some, behaviour, low, high, 1)
        levels = [
            before.levels[style] if before.covers and sums is before.covers[style] else coverage_levels(sums)
            for style, sums in enumerate(covers)
        ]
        with suppress(RuntimeError):  # the program is at its end, and this object with it
            self._computed.emit(order, _Picture(low, high, behaviour, covers, levels))

    def _on_computed(self, order: int, picture: _Picture) -> None:
        if order == self._order:
            self.picture, self.finished = picture, True
            self.paint()


def _add_covers(
    covers: list[NDArray[np.float64]], frame: PathFrame, rows: NDArray[np.int64],
    behaviours: NDArray[np.integer], low: Floats, high: Floats, sign: int,
) -> None:  # fmt: skip
    """Add lines to the sums of their behaviours, or subtract them."""
    per_bias = frame.height / (frame.most - frame.least)
    for behaviour, (width, _, dash) in enumerate(STYLES):
        of = rows[frame.drawn[rows] & (behaviours[rows] == behaviour)]
        if len(of):
            least, largest = low[:, of], high[:, of]
            dashes = None if dash is None else (dash[0] * frame.scale, dash[1] * frame.scale)
            covers[behaviour] = covers[behaviour] + sign * cover(
                np.asarray((frame.most - largest) * per_bias, dtype=np.float32),
                np.asarray((frame.most - least) * per_bias, dtype=np.float32),
                frame.rows, width * frame.scale, dashes,
                # Lines of annotators coincide before their biases enter.
                (least == 0) & (largest == 0), of,
            )  # fmt: skip


NOTHING = "Press Fuse (F5) to see each annotator's bias along the path."
SCALES = {"log": ("log", "Logarithmic scale of the path"), "linear": ("linear", "Linear scale of the path")}
LEGEND = tuple(BEHAVIOUR_KEYS[behaviour] for behaviour in (BAD, UGLY, GOOD, UNDECIDABLE))
BIAS_AXIS = "bias (above 0: left)"
REACH = 8.0
PREFERENCE = 2.0
"""Preference for lines of biased annotators when pointing, in pixels."""

MAX_POINTS, MAX_PAINTED = 200_000, 20_000
"""Maximum number of points to draw separate lines, in a file and on screen; otherwise an image is drawn."""

MAX_CROSSES = 120


@dataclass(frozen=True, eq=False)
class PathView:
    """The path of p annotators over T positions."""

    at: NDArray[np.floating]  # (T,): positions on the path, ascending or descending, not negative
    bias: NDArray[np.floating]  # (T, p): NaN for untested annotators, who have no line
    behaviour: NDArray[np.integer]  # (p,): numbers in `BEHAVIOURS`
    names: tuple[str, ...]  # (p,)
    numbers: NDArray[np.integer]  # (p,): numbers that the signal emits
    cut: float = float("nan")  # position of the cut; NaN for none
    axis: str = ""  # name of the axis: "lambda", "time"
    # whether a bias is constant up to the next position, as on the path of ISS; otherwise it is linear
    stepped: bool = False

    def __post_init__(self) -> None:
        number = len(self.names)
        if self.bias.shape != (len(self.at), number) or not len(self.at):
            raise ValueError(f"a path of shape {self.bias.shape}; expected {len(self.at)} by {number}")
        check_lengths(number, "annotators", self.behaviour, self.numbers)
        steps = np.diff(self.at)
        if not ((steps >= 0).all() or (steps <= 0).all()) or not (np.asarray(self.at) >= 0).all():
            raise ValueError("positions on the path that neither rise nor fall, or lie below 0")


class BiasPath(FigurePanel):
    """Plot of the path; hovering names a line's annotator, a click selects; arrows move through the lines."""

    chosen = Signal(int)  # number of an annotator

    def __init__(self) -> None:
        self.figure = _Lines()
        super().__init__("Regularisation path", self.figure, NOTHING, brief="Path")
        self.scale = ModeSwitch(SCALES)
        self.header.row.addWidget(self.scale)
        self.scale.hide()
        self.scale.chosen.connect(lambda mode: self.figure.set_logarithmic(mode == "log"))
        self.figure.chosen.connect(self.chosen)

    def show_path(self, view: PathView | None) -> None:
        """Show a path, or that there is none yet."""
        self.figure.show_path(view)
        self.scale.setVisible(view is not None)
        self.set_filled(view is not None)


class _Lines(ChartFigure):
    """The lines; a point (0, row) stands for the line of a row. A thread paints lines into a picture."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Regularisation path")
        set_lengths(self, minimumWidth=126, minimumHeight=120)
        self._path: PathView | None = None
        self._cut = float("nan")
        self._behaviour = np.empty(0, np.int8)
        self._tested = np.empty(0, bool)
        self._number: int | None = None
        self._logarithmic = True
        self._lines = PathLines(self)
        self._lines.changed.connect(self.redraw)
        theme.notifier().changed.connect(self._lines.paint)

    def show_path(self, path: PathView | None) -> None:
        self.point(None)
        self._path = path
        if path is not None:
            self._cut, self._behaviour = path.cut, np.asarray(path.behaviour)
            self._tested = np.isfinite(path.bias).all(axis=0)
        self._show()
        self._start()

    def set_cut(self, cut: float, behaviour: NDArray[np.integer]) -> None:
        if self._path is not None:
            recoloured = not np.array_equal(self._behaviour, behaviour)
            if cut == self._cut and not recoloured:
                return
            self._cut, self._behaviour = cut, np.asarray(behaviour)
            self._show()
            if recoloured:
                self._start(recoloured=True)

    def set_logarithmic(self, logarithmic: bool) -> None:
        self._logarithmic = logarithmic
        self._show()
        self._start()

    def select(self, number: int | None) -> None:
        self._number = number
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._start()

    def text_of(self, part: Part) -> str:
        path, row = self._path, part[1]
        assert path is not None
        text = f"{path.names[row]}, {BEHAVIOUR_WORDS[self._behaviour[row]]}"
        entered = np.flatnonzero(path.bias[:, row])
        if not len(entered):
            return f"{text}: no bias on this path"
        side = "prefers left" if path.bias[-1, row] > 0 else "prefers right"
        return f"{text}: {side}, enters at {path.axis or 'place'} {_rounded(float(path.at[entered[0]]))}"

    def part_at(self, position: QPointF) -> Part | None:
        lines = self._lines
        column = int((position.x() - self.plan.box.left) * self._ratio)
        if self._path is None or not 0 <= column < len(lines.picture.low):
            return None
        low, high = lines.picture.low[column], lines.picture.high[column]
        above = self.plan.y_pixels(high) - position.y()
        below = position.y() - self.plan.y_pixels(low)
        away = np.maximum(np.maximum(above, below), 0.0)
        away[((low == 0) & (high == 0)) | ~self._tested] = np.inf
        away -= np.where(self._behaviour > 0, PREFERENCE, 0.0)
        row = int(away.argmin())
        return (0, row) if away[row] <= REACH else None

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        if self._path is None or not self._tested.any():
            return None
        order = np.flatnonzero(self._tested)
        order = order[np.argsort(-self._path.bias[-1, order], kind="stable")]
        if part is None:
            row = row_of(self._path.numbers, self._number)
            return 0, int(order[0]) if row is None else row
        index = int(np.flatnonzero(order == part[1])[0]) + across + down
        return 0, int(order[min(max(index, 0), len(order) - 1)])

    def choose(self, part: Part) -> None:
        assert self._path is not None
        self.select(int(self._path.numbers[part[1]]))
        self.chosen.emit(self._number)

    def table(self) -> PlotTable:
        path = self._path
        assert path is not None
        rows = np.flatnonzero(self._tested)
        names = [path.names[row] for row in rows.tolist()]
        axes: dict[str, Column] = {"annotator": names, path.axis or "place": path.at}
        behaviour = [BEHAVIOUR_WORDS[number] for number in self._behaviour[rows].tolist()]
        values = {"bias": path.bias[:, rows].T + 0.0, "behaviour": np.asarray(behaviour, object)[:, None]}
        return PlotTable.of_cells(axes, values)

    def position_of(self, part: Part) -> QPointF:
        """Return the right end of a line."""
        assert self._path is not None
        y = self.plan.y_pixels(self._path.bias[-1:, part[1]])
        return QPointF(self.plan.box.right, float(y[0]))

    def _look_at(self, view: View | None) -> None:
        """Show everything, because the picture of the lines cannot be enlarged in part."""

    def _positions(self, path: PathView) -> NDArray[np.float64]:
        """Return the positions on the path; on a logarithmic scale, 0 becomes half of the next one."""
        x = np.asarray(path.at, dtype=float)
        if self._logarithmic:
            least = x[x > 0].min() if (x > 0).any() else 1.0
            x = np.where(x > 0, x, least / 2)
        return x

    def _show(self) -> None:
        """Describe axes, cut and crosses, and the extent of the lines, which are painted separately."""
        path = self._path
        if path is None:
            self.show_chart(NO_CHART)
            return
        positions, bias = self._positions(path), path.bias[:, self._tested]
        ends = np.array([min(float(bias.min(initial=0.0)), 0.0), max(float(bias.max(initial=0.0)), 0.0)])
        ends = np.array([-1.0, 1.0]) if ends[0] == ends[1] else ends
        bad = np.flatnonzero(self._tested & (self._behaviour == BAD))[:MAX_CROSSES]
        marks: list[Mark] = [
            Points(x=positions[[0, -1]], y=ends, size=0.0, pointable=False),
            Segments(x=EVERYWHERE, y=np.zeros((1, 2)), ink="second"),
            Points(
                x=np.full(len(bad), np.inf), y=path.bias[-1, bad], symbol="cross", size=8.0, ink="rejected",
                pointable=False,
            ),
        ]  # fmt: skip
        notes: list[Note] = []
        if np.isfinite(self._cut):
            cut = float(np.clip(self._cut, positions.min(), positions.max()))
            x = np.full((1, 2), cut)
            marks.append(Segments(x=x, y=EVERYWHERE, ink="accent", width=1.6, dashes=(3.0, 3.0)))
            late = cut == positions[-1]
            notes.append(
                Note(cut, np.inf, "cut", "accent", "end" if late else "start", (-5.0 if late else 5.0, 22.0))
            )
        scale: Scale = "log" if self._logarithmic else "linear"
        axis = Axis(path.axis, scale=scale, padding=0.0, falling=bool(positions[0] > positions[-1]))
        self.show_chart(
            Chart("", axis, Axis(BIAS_AXIS), tuple(marks), LEGEND, tuple(notes), legend_at="above")
        )

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF() * text_size()

    def _start(self, *, recoloured: bool = False) -> None:
        """Start to compute the picture; `recoloured`: only colours have changed."""
        path = self._path
        if path is None:
            self._lines.clear()
            return
        plan, scale = self.plan, self._ratio
        height = plan.box.height * scale
        self._lines.start(
            PathFrame(
                x=(plan.x_pixels(self._positions(path)) - plan.box.left) / plan.box.width,
                bias=path.bias,
                stepped=path.stepped,
                drawn=self._tested,
                behaviour=self._behaviour,
                least=plan.view.bottom,
                most=plan.view.top,
                columns=max(round(plan.box.width * scale), 1),
                rows=max(round(height), 1),
                height=height,
                scale=scale,
            ),
            recoloured=recoloured,
        )

    def draw(self, painter: QPainter) -> None:
        if self._path is None:
            return
        self.paint_still(painter, self._draw_chart)
        palette, selected = theme.current(), row_of(self._path.numbers, self._number)
        pointed = None if self.pointed is None else self.pointed[1]
        for row, ink, width in ((selected, palette.accent, 2.6), (pointed, palette.text, 1.8)):
            if row is not None and row < self._lines.picture.low.shape[1] and self._tested[row]:
                self._draw_line(painter, row, ink, width)

    def _draw_chart(self, painter: QPainter) -> None:
        """Draw every line if there are few; otherwise their image."""
        path, plan = self._path, self.plan
        assert path is not None
        drawing = painter.paintEngine().type() == QPaintEngine.Type.SVG
        if self._picturing and path.bias.size <= (MAX_POINTS if drawing else MAX_PAINTED):
            chart = replace(self.chart, marks=(*self._line_marks(path), *self.chart.marks))
            plan = replace(plan, chart=chart)
        else:
            box = plan.box
            for image in self._lines.images:
                painter.drawImage(QRectF(box.left, box.top, box.width, box.height), image)
        draw_chart(QtCanvas(painter), plan, theme.current())

    def _line_marks(self, path: PathView) -> list[Line]:
        """Describe every line separately, from where its bias enters."""
        x, marks = self._positions(path), []
        for behaviour, (width, opacity, dash) in enumerate(STYLES):
            dashes = () if dash is None else (dash[0] / width, dash[1] / width - dash[0] / width)
            for row in np.flatnonzero(self._tested & (self._behaviour == behaviour)).tolist():
                entered = np.flatnonzero(path.bias[:, row])
                if len(entered):
                    begin = max(int(entered[0]) - 1, 0)
                    marks.append(
                        Line(
                            title=path.names[row], x=x[begin:], y=path.bias[begin:, row], width=width,
                            ink=BEHAVIOUR_INKS[behaviour], dashes=dashes, opacity=opacity,
                            stepped=path.stepped,
                        )
                    )  # fmt: skip
        return marks

    def _draw_line(self, painter: QPainter, row: int, ink: str, width: float) -> None:
        """Draw one line and its name on top of all others."""
        assert self._path is not None
        low, high = self._lines.picture.low[:, row], self._lines.picture.high[:, row]
        entered = np.flatnonzero((low != 0) | (high != 0))
        if not len(entered):
            return
        box, begin = self.plan.box, int(entered[0])
        low, high = low[begin:], high[begin:]
        falls = np.diff(low + high, prepend=low[0] + high[0]) < 0
        first, second = np.where(falls, high, low), np.where(falls, low, high)
        y = self.plan.y_pixels(np.stack([first, second], axis=1).ravel())
        x = box.left + np.repeat(np.arange(begin, len(self._lines.picture.low)), 2) / self._ratio
        bends = np.flatnonzero(np.abs(np.diff(y, 2)) > 1e-3) + 1
        corners = np.unique(np.concatenate([[0], bends, [len(y) - 1]]))
        dashes = [width * length for length in BEHAVIOUR_DASHES[self._behaviour[row]]]
        QtCanvas(painter).line(np.column_stack([x, y])[corners], Pen(ink, width, dashes))
        font = theme.font(theme.CAPTION, bold=True)
        name = self._path.names[row]
        room = min(QFontMetrics(font).horizontalAdvance(name) + 10.0, box.width / 2)
        top = min(max(float(y[-1]) - 20, box.top), box.bottom - 16)
        chip = QRectF(box.right - room - 8, top, room, 16)
        painter.setFont(font)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(theme.current().surface, 225))
        painter.drawRoundedRect(chip, 4, 4)
        paint_text(painter, chip.adjusted(5, 0, -4, 0), name, ink, elide=Qt.TextElideMode.ElideMiddle)


def _rounded(value: float) -> str:
    """Format a position with three digits and thousands separators."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.3g}"
