"""Drawing of a chart on a canvas: the same for the window, for pixels of a report and for SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.canvas import Canvas
from raterscope.figures.colours import Theme, colour_of
from raterscope.figures.description import Key, Line, Mark, Points, Rectangles, Segments
from raterscope.figures.layout import GAP, SAMPLE, TURN, Layout, elided

__all__ = ["draw_chart", "draw_key", "thinned_line", "thinned_points"]

Floats = NDArray[np.float64]

FAR = 4.0
"""A line of more points than this times the pixels of the plot's width is thinned."""
MANY = 4000
"""So many points are drawn one by one; of more, those that fall into one cell of a fine grid once."""
CELL = 1.5
BAND = 0.17


def draw_chart(canvas: Canvas, layout: Layout, look: Theme) -> None:
    """Draw a chart as it is laid out."""
    _draw_axes(canvas, layout, look)
    box = layout.box
    with canvas.clipped((box.left, box.top - 1), (box.right + 1, box.bottom)):
        for mark in layout.chart.marks:
            if isinstance(mark, Line):
                _draw_interval(canvas, layout, mark, look)
        for mark in layout.chart.marks:
            _draw_mark(canvas, layout, mark, look)
    for note in layout.chart.notes:
        x, y = layout.places(np.array([note.x]), np.array([note.y]))
        place = float(x[0]), float(y[0])
        canvas.text(place, note.words, colour_of(note.ink, look), layout.style.letters, note.anchor)
    _draw_legend(canvas, layout, look)


def draw_key(canvas: Canvas, key: Key, left: float, middle: float, letters: float, look: Theme) -> None:
    """Draw a row of a legend: a piece of the line, and what it stands for."""
    ink = colour_of(key.ink, look)
    if key.disc:
        canvas.disc((left + SAMPLE / 2, middle), 5, ink)
    else:
        dashes = [1.8 * length for length in key.dashes]
        canvas.line([(left, middle), (left + SAMPLE, middle)], ink, 1.8, dashes)
    if key.dotted:
        canvas.disc((left + SAMPLE / 2, middle), 3, ink)
    canvas.text((left + SAMPLE + GAP, middle), key.words, look.text, letters, "start")


def _draw_axes(canvas: Canvas, layout: Layout, look: Theme) -> None:
    box, letters = layout.box, layout.style.letters
    small = 4.0
    if layout.style.grid:
        for x, _ in layout.across:
            canvas.line([(x, box.bottom), (x, box.top)], look.line)
        for y, _ in layout.up:
            canvas.line([(box.left, y), (box.right, y)], look.line)
    canvas.line([(box.left, box.top), (box.left, box.bottom), (box.right, box.bottom)], look.line)
    for y, words in layout.up:
        if not layout.style.grid:
            canvas.line([(box.left - small, y), (box.left, y)], look.line)
        canvas.text((box.left - small - 3, y), words, look.second, letters, "end")
    for x, words in layout.across:
        if not layout.style.grid:
            canvas.line([(x, box.bottom), (x, box.bottom + small)], look.line)
        if layout.turned:
            labelled = 1.45 * letters if layout.chart.x.label else 0.0
            length = layout.legend.bottom - box.bottom
            room = min(length - labelled - letters, x + 0.2 * letters) / abs(np.sin(np.radians(TURN)))
            short = elided(words, max(room, 3 * letters), lambda part: canvas.width_of(part, letters))
            canvas.text((x + 3, box.bottom + 0.9 * letters), short, look.second, letters, "end", turn=TURN)
        else:
            canvas.text((x, box.bottom + small + 0.75 * letters), words, look.second, letters)
    middle = (box.left + box.right) / 2, box.bottom
    if layout.chart.x.label and not layout.turned:
        place = middle[0], box.bottom + small + 2.1 * letters
        canvas.text(place, layout.chart.x.label, look.second, letters)
    if layout.chart.y.label:
        label = elided(layout.chart.y.label, box.height, lambda part: canvas.width_of(part, letters))
        place = 0.75 * letters, (box.top + box.bottom) / 2
        canvas.text(place, label, look.second, letters, turn=-90.0)


def _draw_legend(canvas: Canvas, layout: Layout, look: Theme) -> None:
    row = 1.55 * layout.style.letters
    left, top = layout.legend.left + GAP, layout.legend.top
    for at, key in enumerate(layout.keys):
        draw_key(canvas, key, left, top + (at + 0.5) * row, layout.style.letters, look)
    if layout.more:
        place = left, top + (len(layout.keys) + 0.5) * row
        canvas.text(place, f"and {layout.more} more", look.second, layout.style.letters, "start")


def _draw_interval(canvas: Canvas, layout: Layout, mark: Line, look: Theme) -> None:
    if mark.low is None or mark.high is None:
        return
    known = np.isfinite(mark.low) & np.isfinite(mark.high)
    x, ink = layout.x_places(np.asarray(mark.x)[known]), colour_of(mark.ink, look)
    low, high = (layout.y_places(np.asarray(end)[known]) for end in (mark.low, mark.high))
    if mark.interval == "bars":
        ends = np.stack([np.column_stack([x, low]), np.column_stack([x, high])], axis=1)
        canvas.segments(ends, ink, 1.0)
    elif len(x) > 1:
        kept = _columns(x, layout.box.width)
        x, low, high = x[kept], np.maximum.reduceat(low, kept), np.minimum.reduceat(high, kept)
        outline = np.concatenate([np.column_stack([x, low]), np.column_stack([x, high])[::-1]])
        canvas.polygon(outline, ink, BAND)


def _draw_mark(canvas: Canvas, layout: Layout, mark: Mark, look: Theme) -> None:
    if isinstance(mark, Line):
        _draw_line(canvas, layout, mark, look)
    elif isinstance(mark, Points):
        _draw_points(canvas, layout, mark, look)
    elif isinstance(mark, Segments):
        x, y = layout.x_places(np.asarray(mark.x)), layout.y_places(np.asarray(mark.y))
        dashes = [mark.width * length for length in mark.dashes]
        canvas.segments(np.stack([x, y], axis=2), colour_of(mark.ink, look), mark.width, dashes)
    elif isinstance(mark, Rectangles):
        _draw_rectangles(canvas, layout, mark, look)


def _draw_line(canvas: Canvas, layout: Layout, mark: Line, look: Theme) -> None:
    ink = colour_of(mark.ink, look)
    x, y = layout.places(np.asarray(mark.x), np.asarray(mark.y))
    dashes = [mark.width * length for length in mark.dashes]
    for first, last in _runs(np.isfinite(x) & np.isfinite(y)):
        part_x, part_y = x[first:last], y[first:last]
        if last - first == 1:
            canvas.disc((float(part_x[0]), float(part_y[0])), max(mark.width, 2.0), ink, opacity=mark.opacity)
            continue
        if mark.held:
            part_x, part_y = np.repeat(part_x, 2)[1:], np.repeat(part_y, 2)[:-1]
        kept = thinned_line(part_x, part_y, layout.box.left, layout.box.right)
        places = np.column_stack([part_x[kept], part_y[kept]])
        canvas.line(places, ink, mark.width, dashes, mark.opacity)
    sizes = np.broadcast_to(np.asarray(mark.dot, dtype=np.float64), x.shape)
    if sizes.any():
        there = np.flatnonzero(_inside(layout, x, y) & (sizes > 0))
        there = there[thinned_points(x[there], y[there])]
        canvas.symbols(np.column_stack([x, y])[there], "disc", sizes[there], ink, 1.0, mark.opacity)


def _draw_points(canvas: Canvas, layout: Layout, mark: Points, look: Theme) -> None:
    x, y = layout.places(np.asarray(mark.x), np.asarray(mark.y))
    there = np.flatnonzero(_inside(layout, x, y))
    there = there[thinned_points(x[there], y[there])]
    sizes = np.broadcast_to(np.asarray(mark.size, dtype=np.float64), x.shape)[there]
    places, ink = np.column_stack([x, y])[there], colour_of(mark.ink, look)
    canvas.symbols(places, mark.symbol, sizes, ink, mark.width, mark.opacity)


def _draw_rectangles(canvas: Canvas, layout: Layout, mark: Rectangles, look: Theme) -> None:
    left, right = layout.x_places(np.asarray(mark.left)), layout.x_places(np.asarray(mark.right))
    bottom, top = layout.y_places(np.asarray(mark.bottom)), layout.y_places(np.asarray(mark.top))
    inks, letters = mark.inks, layout.style.letters
    for at, (x0, x1, y0, y1) in enumerate(np.column_stack([left, right, bottom, top]).tolist()):
        ink = colour_of(inks[at % len(inks)], look)
        corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        if mark.filled:
            canvas.polygon(corners, ink, mark.opacity)
        else:
            canvas.line([*corners, corners[0]], ink, mark.width)
        words = mark.labels[at] if at < len(mark.labels) else ""
        if words and canvas.width_of(words, letters) + 4 < x1 - x0 and abs(y1 - y0) > 1.1 * letters:
            canvas.text(((x0 + x1) / 2, (y0 + y1) / 2), words, look.text, letters)


def thinned_line(x: Floats, y: Floats, left: float, right: float) -> NDArray[np.int64]:
    """Give the points (P,) of a line that show its whole course on the screen, as few as are needed.

    Of all points within a column of pixels the first, the lowest, the highest and the last are kept; of those
    outside of the plot the nearest.
    """
    if len(x) <= FAR * max(right - left, 1.0) or (np.diff(x) < 0).any():
        return np.arange(len(x))
    first = max(int(np.searchsorted(x, left)) - 1, 0)
    last = min(int(np.searchsorted(x, right, side="right")) + 1, len(x))
    starts = _columns(x[first:last], right - left)
    ends = np.append(starts[1:], last - first) - 1
    columns = np.repeat(np.arange(len(starts)), ends - starts + 1)
    order = np.lexsort((y[first:last], columns))
    kept = np.concatenate([starts, order[starts], order[ends], ends])
    return np.unique(kept) + first


def thinned_points(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Give the points (P,) that are drawn: if they are many, the last of those in one cell of a fine grid."""
    if len(x) <= MANY:
        return np.arange(len(x))
    columns = (x / CELL).astype(np.int64)
    cells = (y / CELL).astype(np.int64) * (int(columns.max()) + 2) + columns
    _, last = np.unique(cells[::-1], return_index=True)
    return np.sort(len(x) - 1 - last)


def _columns(x: Floats, width: float) -> NDArray[np.int64]:
    """Give the first point of each column of pixels; all points where they are few."""
    if len(x) <= FAR * max(width, 1.0):
        return np.arange(len(x))
    return np.flatnonzero(np.diff(np.floor(x).astype(np.int64), prepend=np.iinfo(np.int64).min))


def _inside(layout: Layout, x: Floats, y: Floats) -> NDArray[np.bool_]:
    box, edge = layout.box, 1.0
    with np.errstate(invalid="ignore"):
        across = (x >= box.left - edge) & (x <= box.right + edge)
        return np.asarray(across & (y >= box.top - edge) & (y <= box.bottom + edge))


def _runs(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Give where points are known one after the other: from, up to."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    ends: Sequence[int] = edges.tolist()
    yield from list(pairwise(ends))[::2]
