"""Paints one plot of a stream: its key, its grid, its lines with their bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPolygonF

from raterscope.widgets import theme
from raterscope.widgets.figures.line_raster import column_spans
from raterscope.widgets.figures.qt_canvas import polygon_of
from raterscope.widgets.figures.stream_scale import ValueScale
from raterscope.widgets.glyphs import symbol_path
from raterscope.widgets.painting import paint_words

__all__ = [
    "BARS",
    "DASHES",
    "LINE",
    "TICKS",
    "KeyEntry",
    "StreamLine",
    "dashed",
    "flat",
    "paint_bars",
    "paint_grid",
    "paint_key",
    "paint_line",
    "paint_mark",
    "paint_ticks",
]

LINE, BARS, TICKS, DASHES = "line", "bars", "ticks", "dashes"
SAMPLE, APART = 18.0, 12.0
WIDE = 1.6
DASH = 7
FEW = 0.4
"""So many points for every pixel across are joined one by one; more, column by column of pixels."""

NARROWEST, LOWEST = 24.0, 12.0
"""No word is written in less room."""

Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What one colour of a plot is.

    Attributes
    ----------
    how : str
        `LINE`, `BARS`, `TICKS`, `DASHES` or a line's symbol.
    colour, words, short : str
    """

    how: str
    colour: str
    words: str
    short: str


@dataclass(frozen=True, eq=False)
class StreamLine:
    """One line of a plot; values are NaN where they are not known.

    Attributes
    ----------
    colour : str
    symbol : str
        Of its end and of the step that is looked at.
    values : (n,) float
    ends : two of (n,) float, optional
        Between which a band is painted.
    truth : (n,) float, optional
        Painted in dashes.
    """

    colour: str
    symbol: str
    values: Floats | NDArray[np.integer]
    ends: tuple[Floats, Floats] | None = None
    truth: Floats | None = None


def paint_key(painter: QPainter, box: QRectF, key: Sequence[KeyEntry]) -> None:
    """Write what is what above a plot, in fewer words where there is little room."""
    look = theme.current()
    painter.setFont(theme.font(theme.CAPTION))
    metrics, left = QFontMetrics(painter.font()), box.left()

    def widths(words: Sequence[str]) -> list[float]:
        return [SAMPLE + metrics.horizontalAdvance(each) + APART for each in words]

    said = [entry.words for entry in key]
    if sum(widths(said)) - APART > box.width():
        said = [entry.short for entry in key]
    for entry, words, width in zip(key, said, widths(said), strict=True):
        room = min(box.right() - left, width) - SAMPLE
        if room < NARROWEST:
            return
        _paint_sample(painter, QPointF(left, box.center().y()), entry)
        paint_words(painter, QRectF(left + SAMPLE, box.top(), room, box.height()), words, look.second)
        left += width


def paint_grid(painter: QPainter, box: QRectF, scale: ValueScale, end: str) -> None:
    """Paint the values beside a plot and where its axis ends."""
    look, right = theme.current(), Qt.AlignmentFlag.AlignRight
    painter.setFont(theme.font(theme.CAPTION))
    above = math.inf
    for value, words in scale.ticks:
        y = round(box.bottom() - box.height() * float(scale.share(value))) + 0.5
        painter.setPen(QPen(QColor(look.line), 1))
        painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        if above - y >= LOWEST:
            paint_words(painter, QRectF(box.left() - 60, y - 8, 54, 15), words, look.third, side=right)
            above = y
    foot = QRectF(box.left(), box.bottom() + 2, box.width(), 15)
    paint_words(painter, foot, "0", look.third)
    paint_words(painter, foot, end, look.third, side=right)


def paint_line(painter: QPainter, box: QRectF, x: Floats, line: StreamLine, scale: ValueScale) -> None:
    """Paint a line over places across, in pixels from the box's left and never falling."""
    if line.ends is not None:
        ends = np.stack([scale.share(end) for end in line.ends], axis=1)
        known = np.isfinite(ends).all(axis=1)
        _paint_band(painter, box, x[known], ends[known], theme.colour(line.colour, 40))
    if line.truth is not None:
        _paint_way(painter, box, x, scale.share(line.truth), dashed(line.colour))
    _paint_way(painter, box, x, scale.share(line.values), QPen(QColor(line.colour), WIDE))


def paint_bars(painter: QPainter, box: QRectF, x: Floats, heights: Floats, colour: str) -> None:
    """Paint a bar wherever a height, as a share, is not 0; of those in one column of pixels, the largest."""
    tall = np.zeros(int(box.width()) + 1)
    np.maximum.at(tall, x.astype(np.int64), heights)
    apart = box.width() / max(len(x), 1)
    wide = min(max(apart - 2, 1.0), 4.0)
    painter.setPen(flat(colour, wide))
    foot, left = box.bottom(), box.left()
    painter.drawLines(
        [
            QLineF(left + at, foot, left + at, foot - max(box.height() * high, 2))
            for at, high in zip(np.flatnonzero(tall).tolist(), tall[tall > 0].tolist(), strict=True)
        ]
    )


def paint_ticks(painter: QPainter, box: QRectF, x: Floats, colour: str) -> None:
    """Paint a short tick under the foot at every place."""
    painter.setPen(QPen(QColor(colour), 1))
    foot = box.bottom()
    columns = np.unique(x.astype(np.int64)).tolist()
    painter.drawLines([QLineF(box.left() + at, foot + 1, box.left() + at, foot + 5) for at in columns])


def paint_mark(painter: QPainter, centre: QPointF, symbol: str, colour: str, edge: str = "") -> None:
    """Paint a line's symbol."""
    painter.save()
    painter.translate(centre)
    painter.setPen(QPen(QColor(edge), 1.4) if edge else Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    painter.drawPath(symbol_path(symbol, 3.5))
    painter.restore()


def _paint_band(painter: QPainter, box: QRectF, x: Floats, ends: Floats, colour: QColor) -> None:
    if not len(x):
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    _fill(painter, box, *_reach(x, ends, box), colour)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _paint_way(painter: QPainter, box: QRectF, x: Floats, share: Floats, pen: QPen) -> None:
    known = np.isfinite(share)
    x, share = x[known], share[known]
    if not len(x):
        return
    if _few(x, box):
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        points = _points(box, x, share)
        painter.drawPolyline(points)
        if len(x) == 1:
            painter.drawEllipse(points.first(), 1.5, 1.5)
        return
    # So many pieces are filled in a tenth of the time that they would be stroked in.
    along, low, high = _reach(x, share[:, None], box)
    pad = np.full(len(along), pen.widthF() / 2 / box.height())
    if pen.style() != Qt.PenStyle.SolidLine:
        off = along // 1 % DASH >= DASH * 0.6
        pad[off], high[off] = 0.0, low[off]
    _fill(painter, box, along, low - pad, high + pad, pen.color())


def _few(x: Floats, box: QRectF) -> bool:
    return len(x) <= box.width() * FEW


def _reach(x: Floats, values: Floats, box: QRectF) -> tuple[Floats, Floats, Floats]:
    """Give from where the first of (n, p) values reach to where the last do; of many, column by column."""
    if _few(x, box):
        return x, values[:, 0], values[:, -1]
    first, past = int(x[0]), max(int(np.ceil(x[-1])), int(x[0]) + 1)
    low, high = column_spans(x, values.astype(np.float32), past, held=False)
    edges = np.repeat(np.arange(first, past + 1.0), 2)[1:-1]
    return edges, np.repeat(low[first:, 0], 2), np.repeat(high[first:, -1], 2)


def _fill(painter: QPainter, box: QRectF, x: Floats, low: Floats, high: Floats, colour: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    edge = np.concatenate([low, high[::-1]])
    painter.drawPolygon(_points(box, np.concatenate([x, x[::-1]]), edge))


def _points(box: QRectF, x: Floats, share: Floats) -> QPolygonF:
    return polygon_of(np.column_stack([box.left() + x, box.bottom() - box.height() * share]))


def _paint_sample(painter: QPainter, left: QPointF, entry: KeyEntry) -> None:
    how, colour = entry.how, entry.colour
    ink = QColor(colour)
    if how == BARS:
        painter.setPen(flat(colour, 3))
        painter.drawLines(
            [QLineF(left.x() + at, left.y() + 4, left.x() + at, left.y() - up) for at, up in ((4, 4), (9, 1))]
        )
    elif how == TICKS:
        painter.setPen(QPen(ink, 1))
        painter.drawLine(QLineF(left.x() + 6, left.y() - 2, left.x() + 6, left.y() + 2))
    elif how == DASHES:
        painter.setPen(dashed(colour))
        painter.drawLine(left, left + QPointF(13, 0))
    else:
        painter.setPen(QPen(ink, WIDE))
        painter.drawLine(left, left + QPointF(13, 0))
        if how != LINE:
            paint_mark(painter, left + QPointF(6.5, 0), how, colour)


def flat(colour: str, width: float) -> QPen:
    """Make a pen that ends where its line ends."""
    pen = QPen(QColor(colour), width)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


def dashed(colour: str) -> QPen:
    """Make a pen of dashes."""
    pen = QPen(QColor(colour), 1.2)
    pen.setDashPattern([4, 3])
    return pen
