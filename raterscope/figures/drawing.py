"""Drawing of a chart on a canvas (the same for window, pixels and SVG), and charts on paper.

Long lines and many points are reduced to the resolution of the screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.figures.canvas import Canvas, Pen, PixelCanvas, VectorCanvas
from raterscope.figures.colours import ANNOTATOR_COLOURS, LIGHT, Theme, colour_of, contrast_of, tint
from raterscope.figures.description import Axis, Chart, Key, Line, Mark, Points, Rectangles, Segments
from raterscope.figures.evaluation import DIAGONAL
from raterscope.figures.layout import GAP, PAPER, SAMPLE, TURN, Box, Layout, Style, elided, lay_out

Floats = NDArray[np.float64]

BAND = 0.17
DASH, STROKE = 7, 4
"""Period and stroke of the dashes of a dense line, pixels."""
TICK = 4.0
MAX_RECTANGLES = 500
"""Maximum number of rectangles of one colour drawn one by one; more are joined by column of pixels."""


def draw_chart(canvas: Canvas, layout: Layout, palette: Theme, *, titled: bool = False) -> None:
    """Draw a chart with a given layout."""
    draw_axes(canvas, layout, palette)
    box, letters, chart = layout.box, layout.style.letters, layout.chart
    inside = (box.left, box.top - 1), (box.right + 1, box.bottom)
    with canvas.clipped(*inside):
        for mark in chart.marks:
            if isinstance(mark, Line):
                _draw_interval(canvas, layout, mark, palette)
    for mark in chart.marks:
        # Symbols at the edge of the plot are drawn completely.
        with nullcontext() if isinstance(mark, Points) else canvas.clipped(*inside):
            _draw_mark(canvas, layout, mark, palette)
    for note in chart.notes:
        x, y = layout.pixels(np.array([note.x]), np.array([note.y]))
        position = float(x[0]) + note.shift[0], float(y[0]) + note.shift[1]
        canvas.text(position, note.text, colour_of(note.ink, palette), letters, note.anchor)
    if titled:
        middle = layout.room.top + 0.775 * letters + 2
        canvas.text((box.left, middle), chart.title, palette.text, letters, "start")
    for row in layout.legend:
        draw_key(canvas, row.key, row.left, row.middle, letters, palette)


def draw_key(canvas: Canvas, key: Key, left: float, middle: float, letters: float, palette: Theme) -> None:
    """Draw a row of a legend: a piece of the line, and its name."""
    ink, sample = colour_of(key.ink, palette), SAMPLE if key.line else SAMPLE / 2
    if key.line:
        dashes = [1.8 * length for length in key.dashes]
        canvas.line([(left, middle), (left + sample, middle)], Pen(ink, 1.8, dashes))
    if key.symbol is not None:
        centre, size = np.array([(left + sample / 2, middle)]), np.array([7.0 if key.line else 10.0])
        pen = Pen(ink if key.symbol in ("cross", "tick") else "", 1.6)
        canvas.symbols(centre, key.symbol, size, pen, ink)
    if key.text:
        blank = key.symbol is None and not key.line
        canvas.text(
            (left + (0.0 if blank else sample + GAP), middle), key.text, palette.text, letters, "start"
        )


def ink_on(ground: str, palette: Theme) -> str:
    """Return the text colour with the best contrast on a background."""
    return max((palette.text, palette.surface), key=lambda ink: contrast_of(ink, ground))


def draw_axes(canvas: Canvas, layout: Layout, palette: Theme) -> None:
    """Draw both axes with their ticks and labels."""
    box, letters, chart, grid = layout.box, layout.style.letters, layout.chart, layout.style.grid
    pen, low = Pen(palette.line), box.bottom

    def fitting(text: str, room: float) -> str:
        return elided(text, room, lambda part: canvas.width_of(part, letters))

    if grid:
        canvas.segments(np.array([[(x, low), (x, box.top)] for x, _ in layout.across]), pen)
        canvas.segments(np.array([[(box.left, y), (box.right, y)] for y, _ in layout.up]), pen)
    canvas.line([(box.left, box.top), (box.left, low), (box.right, low)], pen)
    for y, text in layout.up:
        if not grid and text:
            canvas.line([(box.left - TICK, y), (box.left, y)], pen)
        canvas.text((box.left - TICK - 3, y), text, palette.second, letters, "end")
    label = "" if chart.x.hidden else chart.x.label
    for x, text in layout.across:
        if not grid:
            canvas.line([(x, low), (x, low + TICK)], pen)
        if layout.turned:
            length = layout.room.bottom - low - (1.45 * letters if label else 0.0) - letters
            room = min(length, x - layout.room.left + 0.2 * letters) / abs(np.sin(np.radians(TURN)))
            text = fitting(text, max(room, 3 * letters))
            canvas.text((x + 3, low + 0.9 * letters), text, palette.second, letters, "end", turn=TURN)
        else:
            half = canvas.width_of(text, letters) / 2
            middle = max(min(x, layout.room.right - half), layout.room.left + half)
            canvas.text((middle, low + TICK + 0.75 * letters), text, palette.second, letters)
    if label and not layout.turned:
        centre = (box.left + box.right) / 2, low + TICK + (2.1 if layout.across else 0.9) * letters
        canvas.text(centre, fitting(label, box.width), palette.second, letters)
    label = "" if chart.y.hidden else fitting(chart.y.label, box.height)
    if label and (label == chart.y.label or " " in chart.y.label):  # half a word says nothing
        centre = layout.room.left + 0.75 * letters, (box.top + low) / 2
        canvas.text(centre, label, palette.second, letters, turn=-90.0)


def _below(mark: Points) -> bool:
    """Check whether all points are at the lower edge."""
    return bool(np.all(mark.y == -np.inf))


def _draw_interval(canvas: Canvas, layout: Layout, mark: Line, palette: Theme) -> None:
    if mark.low is None or mark.high is None:
        return
    known = np.isfinite(mark.low) & np.isfinite(mark.high)
    x, ink = layout.x_pixels(np.asarray(mark.x)[known]), colour_of(mark.ink, palette)
    low, high = (layout.y_pixels(np.asarray(end)[known]) for end in (mark.low, mark.high))
    if mark.interval == "bars":
        canvas.segments(np.stack([np.column_stack([x, low]), np.column_stack([x, high])], axis=1), Pen(ink))
    elif len(x) > 1:
        starts = column_starts(x, layout.box.width)
        x, low, high = x[starts], np.maximum.reduceat(low, starts), np.minimum.reduceat(high, starts)
        outline = np.concatenate([np.column_stack([x, low]), np.column_stack([x, high])[::-1]])
        canvas.area(outline, ink, BAND)


def _draw_mark(canvas: Canvas, layout: Layout, mark: Mark, palette: Theme) -> None:
    if isinstance(mark, Line):
        _draw_line(canvas, layout, mark, palette)
    elif isinstance(mark, Points):
        pen = Pen(colour_of(mark.ink, palette), mark.width, (), mark.opacity)
        x, y = layout.pixels(np.asarray(mark.x), np.asarray(mark.y))
        _draw_symbols(canvas, layout, mark, x, y + TICK * _below(mark), mark.size, pen, filled=mark.filled)
    elif isinstance(mark, Segments):
        x, y = layout.x_pixels(np.asarray(mark.x)), layout.y_pixels(np.asarray(mark.y))
        dashes = [mark.width * length for length in mark.dashes]
        canvas.segments(np.stack([x, y], axis=2), Pen(colour_of(mark.ink, palette), mark.width, dashes))
    elif isinstance(mark, Rectangles):
        _draw_rectangles(canvas, layout, mark, palette)


def _draw_line(canvas: Canvas, layout: Layout, mark: Line, palette: Theme) -> None:
    dashes = [mark.width * length for length in mark.dashes]
    pen = Pen(colour_of(mark.ink, palette), mark.width, dashes, mark.opacity)
    x, y = layout.pixels(np.asarray(mark.x), np.asarray(mark.y))
    for first, last in _runs(np.isfinite(x) & np.isfinite(y)):
        run_x, run_y = x[first:last], y[first:last]
        if last - first == 1:
            centre = float(run_x[0]), float(run_y[0])
            canvas.disc(centre, max(mark.width, 2.0), pen.colour, opacity=mark.opacity)
        elif last - first > DENSE * max(layout.box.width, 1.0) and not (np.diff(run_x) < 0).any():
            _draw_dense_line(canvas, layout, run_x, run_y, pen, stepped=mark.stepped)
        else:
            if mark.stepped:
                run_x, run_y = np.repeat(run_x, 2)[1:], np.repeat(run_y, 2)[:-1]
            canvas.line(np.column_stack([run_x, run_y]), pen)
    if np.any(mark.dot):
        solid = Pen(pen.colour, mark.width, (), mark.opacity)
        _draw_symbols(canvas, layout, mark, x, y, mark.dot, solid, filled=True)


def _draw_dense_line(
    canvas: Canvas, layout: Layout, x: Floats, y: Floats, pen: Pen, *, stepped: bool
) -> None:
    """Fill the range of a line in each column of pixels, which is much faster than drawing its strokes."""
    box = layout.box
    first = max(int(np.searchsorted(x, box.left)) - 1, 0)
    last = min(int(np.searchsorted(x, box.right, side="right")) + 1, len(x))
    x, y = x[first:last] - box.left, y[first:last]
    if not len(x):
        return
    begin, end = max(int(np.floor(x[0])), 0), min(int(np.ceil(x[-1])), int(np.ceil(box.width)))
    spans = column_spans(np.clip(x, 0.0, None), y[:, None], max(end, begin + 1), stepped=stepped)
    low, high = (span[begin:, 0] for span in spans)
    along = np.arange(begin, begin + len(low)) + box.left
    pad = np.full(len(low), max(pen.width, 1.0) / 2)
    if pen.dashes:
        gap = np.arange(len(low)) % DASH >= STROKE
        pad[gap], high[gap] = 0.0, low[gap]
    edges = np.concatenate([np.repeat(along, 2)[1:], [along[-1] + 1.0]])
    lower, upper = np.repeat(low - pad, 2), np.repeat(high + pad, 2)
    outline = np.concatenate([np.column_stack([edges, lower]), np.column_stack([edges, upper])[::-1]])
    canvas.polygon(outline, pen.colour, pen.opacity)


def _draw_symbols(
    canvas: Canvas, layout: Layout, mark: Line | Points, x: Floats, y: Floats,
    size: float | NDArray[np.number], pen: Pen, *, filled: bool,
) -> None:  # fmt: skip
    """Draw the symbols of a mark within the plot."""
    sizes = np.broadcast_to(np.asarray(size, dtype=np.float64), x.shape)
    box, edge = layout.box, 1.0
    low = box.bottom + edge + (TICK if isinstance(mark, Points) and _below(mark) else 0.0)
    with np.errstate(invalid="ignore"):
        inside = (x >= box.left - edge) & (x <= box.right + edge) & (sizes > 0)
        inside &= (y >= box.top - edge) & (y <= low)
    rows = np.flatnonzero(inside)
    rows = rows[thinned_points(x[rows], y[rows])]
    if not len(rows):
        return
    fill = pen.colour if filled else ""
    if filled and mark.symbol not in ("cross", "tick"):
        pen = Pen("", pen.width, (), pen.opacity)
    canvas.symbols(np.column_stack([x, y])[rows], mark.symbol, sizes[rows], pen, fill)


def _draw_rectangles(canvas: Canvas, layout: Layout, mark: Rectangles, palette: Theme) -> None:
    left, right = layout.x_pixels(np.asarray(mark.left)), layout.x_pixels(np.asarray(mark.right))
    bottom, top = layout.y_pixels(np.asarray(mark.bottom)), layout.y_pixels(np.asarray(mark.top))
    boxes = np.column_stack([left, np.minimum(top, bottom), right, np.maximum(top, bottom)])
    inks, letters = np.resize(np.asarray(mark.inks), len(boxes)), layout.style.letters
    for ink in dict.fromkeys(inks.tolist()):
        of_ink, colour = boxes[inks == ink], colour_of(ink, palette)
        if mark.filled:
            canvas.rectangles(_whole_pixels(of_ink, mark.gap), colour, mark.opacity)
        for x0, y0, x1, y1 in of_ink.tolist() if not mark.filled else ():
            canvas.line([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], Pen(colour, mark.width))
    for (x0, y0, x1, y1), ink, words in zip(boxes.tolist(), inks.tolist(), mark.labels, strict=False):
        if y1 - y0 > 1.1 * letters:
            texts = (text for text in words.split("\n") if canvas.width_of(text, letters) + 4 < x1 - x0)
            colour = (
                ink_on(colour_of(ink, palette), palette)
                if mark.filled and mark.opacity == 1
                else palette.text
            )
            canvas.text(((x0 + x1) / 2, (y0 + y1) / 2), next(texts, ""), colour, letters)


def _whole_pixels(boxes: Floats, gap: float) -> Floats:
    """Round edges to whole pixels; for rectangles in one column of pixels, use the outermost edges."""
    boxes = np.round(boxes)
    order = np.argsort(boxes[:, 0], kind="stable")
    boxes = boxes[order]
    if len(boxes) > MAX_RECTANGLES:
        starts = np.flatnonzero(np.diff(boxes[:, 0], prepend=-np.inf))
        ends = [np.minimum.reduceat, np.minimum.reduceat, np.maximum.reduceat, np.maximum.reduceat]
        boxes = np.column_stack([reduce(boxes[:, side], starts) for side, reduce in enumerate(ends)])
    wide = boxes[:, 2] - boxes[:, 0]
    boxes[:, 2] = np.where(wide >= 3, boxes[:, 2] - gap, np.maximum(boxes[:, 2], boxes[:, 0] + 1))
    return boxes


def _runs(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Return the ranges of consecutive known points: first, and one past the last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    yield from list(pairwise(edges.tolist()))[::2]


DENSE = 4.0
"""Number of points per pixel of width above which a line is drawn column by column."""
MAX_POINTS = 4000
"""Maximum number of points drawn one by one; of more, one point per cell of a fine grid is drawn."""
CELL = 1.5


def column_spans(
    x: NDArray[np.floating], values: NDArray[np.floating], columns: int, *, stepped: bool
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the smallest and the largest value of each line in each column of pixels, (columns, p).

    `x`: (T,), positions of the points in ascending order, from 0 to `columns`. `values`: (T, p). `stepped`:
    whether a value holds until the next point; otherwise straight lines join the points.
    """
    edges = np.arange(columns + 1)
    before = np.clip(np.searchsorted(x, edges, side="right") - 1, 0, len(x) - 1)
    ends = values[before]
    if not stepped:
        after = np.minimum(before + 1, len(x) - 1)
        room = x[after] - x[before]
        share = np.clip((edges - x[before]) / np.where(room > 0, room, 1.0), 0.0, 1.0)
        ends += share.astype(values.dtype)[:, None] * (values[after] - ends)
    low, high = np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:])
    column = np.clip(x.astype(np.int64), 0, columns - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    filled = column[starts]
    low[filled] = np.minimum(low[filled], np.minimum.reduceat(values, starts, axis=0))
    high[filled] = np.maximum(high[filled], np.maximum.reduceat(values, starts, axis=0))
    return low, high


def column_starts(x: NDArray[np.float64], width: float) -> NDArray[np.int64]:
    """Return the first point of each column of pixels, or all points if there are few."""
    if len(x) <= max(width, 1.0):
        return np.arange(len(x))
    return np.flatnonzero(np.diff(np.floor(x).astype(np.int64), prepend=np.iinfo(np.int64).min))


def thinned_points(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return which points are drawn, (P,): if there are many, the last one in each cell of a fine grid."""
    if len(x) <= MAX_POINTS:
        return np.arange(len(x))
    columns = (x / CELL).astype(np.int64)
    cells = (y / CELL).astype(np.int64) * (int(columns.max()) + 2) + columns
    _, last = np.unique(cells[::-1], return_index=True)
    return np.sort(len(x) - 1 - last)


LINES = tuple(colour for colour in ANNOTATOR_COLOURS if colour not in ("#f0e442", "#bbbbbb"))
"""Colours of lines that are visible on white."""

DASHES: tuple[tuple[float, ...], ...] = ((), (4, 2), (1.5, 2))
"""Dashes of the first, second and third use of the colours."""

WIDE, HIGH = 560, 420


_CELL, _MIN_CELL = 88, 26


@dataclass(frozen=True, eq=False)
class RateTable:
    """Table of probabilities on a page: cells with numbers, darker for larger values."""

    rates: NDArray[np.float64]  # (J, L)

    @property
    def side(self) -> int:
        """Width and height of a cell."""
        rows, columns = len(self.rates), len(self.rates.T)
        return max(_MIN_CELL, min(_CELL, HIGH // max(rows, 1), WIDE // max(columns, 1)))

    @property
    def width(self) -> int:
        """Pixels."""
        return len(self.rates.T) * self.side + 1

    @property
    def height(self) -> int:
        """Pixels."""
        return len(self.rates) * self.side + 1

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        side = self.side
        canvas.rectangles(np.array([[0.0, 0.0, self.width, self.height]]), LIGHT.line)
        for (row, column), rate in np.ndenumerate(self.rates):
            ground, ink = tint(float(rate))
            left, top = column * side, row * side
            canvas.rectangles(np.array([[left + 1, top + 1, left + side - 0.5, top + side - 0.5]]), ground)
            middle = left + (side + 1) / 2, top + (side + 1) / 2
            canvas.text(middle, f"{rate:.2f}".removeprefix("0"), ink, max(10, side // 3))


@dataclass(frozen=True, eq=False)
class PaperChart:
    """A chart with the size and the font of a page."""

    chart: Chart
    # width, height: pixels
    width: int = WIDE
    height: int = HIGH
    style: Style = PAPER

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""
        room = Box(0.0, 0.0, self.width, self.height)
        draw_chart(canvas, lay_out(self.chart, room, canvas.width_of, self.style), LIGHT)


def paper_line(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    colour: str,
    dots: bool = False,
    low: NDArray[np.floating] | None = None,
    high: NDArray[np.floating] | None = None,
    dashes: Sequence[float] = (),
) -> Line:
    """Describe a line of a chart on paper; unknown points are skipped.

    `x`, `y`: (P,). `colour`: hexadecimal. `dots`: whether its points are marked. `low`, `high`: (P,), ends of
    an interval that is shaded around it. `dashes`: lengths in widths of the line; empty for a solid line.
    """
    known = np.isfinite(x) & np.isfinite(y)
    ends = [None if end is None else end[known] for end in (low, high)]
    return Line(
        x=x[known], y=y[known], ink=colour, width=2.2, dot=8.0 if dots else 0.0, low=ends[0], high=ends[1],
        dashes=tuple(dashes),
    )  # fmt: skip


def line_chart(
    lines: Sequence[Line],
    across: str,
    up: str,
    most: float = 1.0,
    *,
    diagonal: bool = False,
    low: float = 0.0,
    high: float = 1.0,
) -> PaperChart:
    """Describe lines with x from 0 to `most` and y from 0 to 1, or from `low` to `high`.

    `across`, `up`: labels of the axes. `diagonal`: whether to draw it from (0, 0) to (1, 1). `low`, `high`:
    ends of the vertical axis.
    """
    marks: list[Mark] = [DIAGONAL] if diagonal else []
    x, y = Axis(across, 0.0, most, padding=0.0), Axis(up, low, high, padding=0.0)
    return PaperChart(Chart("", x, y, (*marks, *lines)))


_TITLE, _ROW, _GAP = 34, 24, 12
_LETTERS, _SMALL = 18, 15


class Drawable(Protocol):
    """A chart of a known size that draws itself on a canvas."""

    @property
    def width(self) -> int:
        """Pixels."""

    @property
    def height(self) -> int:
        """Pixels."""

    def draw(self, canvas: Canvas) -> None:
        """Draw it at the upper left."""


def image_of(chart: Drawable) -> Image.Image:
    """Draw a chart in pixels."""
    canvas = PixelCanvas(chart.width, chart.height)
    chart.draw(canvas)
    return canvas.pixels()


def sheet(
    charts: Sequence[tuple[str, Drawable]], legend: Sequence[Key] = (), columns: int = 2, note: str = ""
) -> bytes:
    """Draw charts as one SVG file.

    `legend`: keys below all charts. `columns`: number of charts side by side. `note`: last line of text.
    """
    wide = max(chart.width for _, chart in charts) + _GAP
    columns = min(columns, len(charts))
    rows = [charts[first : first + columns] for first in range(0, len(charts), columns)]
    high = [max(chart.height for _, chart in row) + _TITLE for row in rows]
    canvas = VectorCanvas(wide * columns, sum(high) + _ROW * (len(legend) + bool(note)) + _GAP)
    top = 0.0
    for row, height in zip(rows, high, strict=True):
        for column, (title, chart) in enumerate(row):
            middle = column * wide + chart.width / 2
            canvas.text((middle, top + _TITLE / 2), title, LIGHT.text, _LETTERS)
            with canvas.moved(column * wide, top + _TITLE):
                chart.draw(canvas)
        top += height
    for index, key in enumerate(legend):
        draw_key(canvas, key, _GAP, top + _ROW * (index + 0.5), _SMALL, LIGHT)
    if note:
        canvas.text((_GAP, top + _ROW * (len(legend) + 0.5)), note, LIGHT.second, _SMALL, "start")
    return canvas.svg()
