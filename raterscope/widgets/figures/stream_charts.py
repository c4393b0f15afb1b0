"""What the curves of a stream show, and how they are painted: charts, scales, texts, lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPolygonF

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory, changed_of_late
from raterscope.figures.table import Column, PlotTable
from raterscope.text.numbers import count, estimate, figure, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.path_lines import column_spans
from raterscope.widgets.figures.qt_canvas import polygon_of
from raterscope.widgets.painting import paint_words, symbol_path

__all__ = [
    "BARS",
    "DASHES",
    "LINE",
    "TICKS",
    "KeyEntry",
    "StreamChart",
    "StreamLine",
    "StreamTruth",
    "ValueScale",
    "chance_in_words",
    "count_scale",
    "dashed",
    "falling_scale",
    "firm_from",
    "flat",
    "limit_of",
    "outlook_in_words",
    "paint_bars",
    "paint_grid",
    "paint_key",
    "paint_line",
    "paint_mark",
    "paint_ticks",
    "round_up",
    "share_scale",
    "state_in_words",
    "step_in_words",
    "stream_charts",
    "stream_table",
]


ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
HIGHEST_FOOT = -3
"""Power of ten to which a scale of them goes down at the least."""


@dataclass(frozen=True, slots=True)
class ValueScale:
    """From where to where a plot goes, and the values written beside it.

    Attributes
    ----------
    least, most : float
    ticks : tuple of (float, str)
    powers : bool
        Whether equal steps stand for equal factors.

    What is beyond an end lies on it.
    """

    least: float
    most: float
    ticks: tuple[tuple[float, str], ...]
    powers: bool = False

    def share(self, values: NDArray[np.floating] | NDArray[np.integer] | float) -> NDArray[np.floating]:
        """Give how high values lie, 0 to 1."""
        found = np.asarray(values, dtype=float)
        ends = np.array([self.least, self.most])
        if self.powers:
            found, ends = np.log10(np.maximum(found, self.least)), np.log10(ends)
        return np.asarray(np.clip((found - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0))


def round_up(number: float) -> float:
    """Give the next round number, so that an axis does not move at every step: 23 becomes 25."""
    power = 10 ** math.floor(math.log10(max(number, 1)))
    tried = (one * power for one in ROUND)
    return float(next(each for each in tried if each >= number and each == int(each)))


def count_scale(most: int) -> ValueScale:
    """Make a scale of counts from 0."""
    top = round_up(max(most, 2))
    return ValueScale(0.0, top, ((0.0, "0"), (top, f"{top:,.0f}")))


def share_scale() -> ValueScale:
    """Make a scale from 0 to 1."""
    return ValueScale(0.0, 1.0, ((0.0, "0"), (0.5, "0.5"), (1.0, "1")))


def falling_scale(limit: float | None) -> ValueScale:
    """Make a scale of shares by powers of ten, from 100 % down, for what falls towards nothing.

    Parameters
    ----------
    limit : float or None
        What has to be on the scale.
    """
    bottom = HIGHEST_FOOT
    if limit is not None and limit > 0:
        bottom = min(bottom, math.floor(math.log10(limit)))
    ticks = tuple((10.0**power, f"{10.0 ** (power + 2):g} %") for power in range(bottom, 1))
    return ValueScale(10.0**bottom, 1.0, ticks, powers=True)


@dataclass(frozen=True, eq=False)
class StreamTruth:
    """Sensitivity and precision after each of S steps, measured against ground truth; NaN where not known.

    Attributes
    ----------
    sensitivity, precision : (S,) float
    """

    sensitivity: NDArray[np.floating]
    precision: NDArray[np.floating]


def firm_from(history: StreamHistory) -> int | None:
    """Give the row from which an answer stayed firm; None where it is not firm at the end."""
    if not len(history) or not history.firm[-1]:
        return None
    loose = np.flatnonzero(~history.firm)
    return int(loose[-1]) + 1 if len(loose) else 0


def step_in_words(
    history: StreamHistory, row: int, stopping: StoppingSettings, truth: StreamTruth | None = None
) -> str:
    """Say a step with all its figures."""
    said = [
        f"step {row + 1:,}: {count(int(history.annotators[row]), 'annotator')}, "
        f"{count(int(history.clicks[row]), 'click')}, {count(int(history.detections[row]), 'detection')}, "
        f"{count(int(history.changed[row]), 'decision')} changed"
    ]
    for name in ("sensitivity", "precision"):
        values = getattr(history, name)[row]
        true = math.nan if truth is None else float(getattr(truth, name)[row])
        if math.isfinite(values[0]):
            measured = f", in truth {figure(true)}" if math.isfinite(true) else ""
            of = ", of what this crowd would find in the end" if name == "sensitivity" else ""
            said.append(f"expected {name} {estimate(*values.tolist())}{of}{measured}")
    said += [outlook_in_words(history, row, stopping.more, rule) for rule in ("share", "chance")]
    if history.refreshed[row]:
        said.append("all clicks fused again")
    said.append("stop rule met" if history.firm[row] else "stop rule not met")
    return "; ".join(part for part in said if part)


def outlook_in_words(history: StreamHistory, row: int, more: int, rule: str) -> str:
    """Say what so many more annotators would change; nothing where it is not known.

    Parameters
    ----------
    history : StreamHistory
    row : int
    more : int
    rule : {"share", "chance"}
        Whether how many decisions, or the chance that any does.
    """
    with_more = f"with {more:,} more"
    if rule == "chance":
        chance = float(history.chance[row])
        return f"{chance_in_words(chance)} chance of a change {with_more}" if math.isfinite(chance) else ""
    expected = float(history.expected[row])
    if not math.isfinite(expected):
        return ""
    number = "under 0.1" if 0 < expected < 0.1 else f"{expected:.1f}" if expected < 10 else f"{expected:,.0f}"
    share = f" ({chance_in_words(float(history.share[row]))})" if history.detections[row] else ""
    return f"{more:,} more: {number} changes expected{share}"


def state_in_words(history: StreamHistory, row: int, stopping: StoppingSettings) -> tuple[str, str]:
    """Say what an answer is after a step, and what changed of late, as the stop rule counts it."""
    people, found = int(history.annotators[row]), int(history.detections[row])
    if stopping.rule == "share":
        late = changed_of_late(history, stopping.more, row + 1)
        share = f" ({chance_in_words(late / found)})" if 0 < late <= found else ""
        said = f"last {stopping.more:,}: {count(late, 'change')}{share}"
    else:
        changed = history.changed[max(row + 1 - stopping.unchanged, 0) : row + 1]
        over = f"in {len(changed):,} steps" if len(changed) > 1 else "with the last step"
        said = f"{count(int(changed.sum()), 'decision')} changed {over}"
    return f"{count(people, 'annotator')}, {count(found, 'detection')}", said


def chance_in_words(share: float) -> str:
    """Write a chance as a percentage, never as none or certain where it is neither: "12 %", "under 1 %"."""
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return percent(share)


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


@dataclass(frozen=True, eq=False)
class StreamChart:
    """One of the plots: its lines, its scale and the samples of its key."""

    lines: tuple[StreamLine, ...]
    scale: ValueScale
    key: tuple[KeyEntry, ...]


def stream_charts(
    history: StreamHistory, stopping: StoppingSettings, outlook: str, truth: StreamTruth | None
) -> tuple[StreamChart, StreamChart, StreamChart]:
    """Give what was found, how good it is, and what would still change, in the theme's colours.

    Parameters
    ----------
    history : StreamHistory
    stopping : StoppingSettings
        When an answer is firm.
    outlook : {"share", "chance"}
        Of what the last plot is.
    truth : StreamTruth or None
    """
    return _found(history), _quality(history, truth), _outlook(history, stopping, outlook)


def limit_of(stopping: StoppingSettings, outlook: str) -> float | None:
    """Give the limit of an outlook, where the rule is about it."""
    return stopping.limit if stopping.rule == outlook else None


def stream_table(history: StreamHistory, truth: StreamTruth | None) -> PlotTable:
    """Give the numbers of all plots, a row a step."""
    columns: dict[str, Column] = {
        "annotators": history.annotators,
        "clicks": history.clicks,
        "detections": history.detections,
        "decisions changed": history.changed,
        "fused again": history.refreshed,
    }
    for name in ("sensitivity", "precision"):
        estimates = getattr(history, name).T
        ends = zip(("expected", "low", "high"), estimates, strict=True)
        columns.update({f"{name} {end}": values for end, values in ends})
        if truth is not None:
            columns[f"{name} in truth"] = getattr(truth, name)
    columns["decisions to change"] = history.expected
    columns["decisions to change as a share"] = history.share
    columns["chance of a change"] = history.chance
    columns["firm"] = history.firm
    return PlotTable.of(columns)


def _found(history: StreamHistory) -> StreamChart:
    look = theme.current()
    scale = count_scale(int(max(history.detections.max(), history.changed.max())))
    key = [KeyEntry(LINE, look.accent, "detections", "found")]
    if history.changed.any():
        key.append(KeyEntry(BARS, look.disputed, "decisions changed", "changed"))
    if history.refreshed.any():
        key.append(KeyEntry(TICKS, look.second, "fused again", "again"))
    return StreamChart((StreamLine(look.accent, "o", history.detections),), scale, tuple(key))


def _quality(history: StreamHistory, truth: StreamTruth | None) -> StreamChart:
    look = theme.current()
    both = (
        (look.accent, "o", history.sensitivity, None if truth is None else truth.sensitivity),
        (look.rejected, "s", history.precision, None if truth is None else truth.precision),
    )
    lines = tuple(
        StreamLine(colour, symbol, values[:, 0], (values[:, 1], values[:, 2]), true)
        for colour, symbol, values, true in both
    )
    key = [
        KeyEntry("o", look.accent, "expected sensitivity", "sensitivity"),
        KeyEntry("s", look.rejected, "expected precision", "precision"),
    ]
    if truth is not None:
        key.append(KeyEntry(DASHES, look.second, "in truth", "truth"))
    return StreamChart(lines, share_scale(), tuple(key))


def _outlook(history: StreamHistory, stopping: StoppingSettings, outlook: str) -> StreamChart:
    look, chance, limit = theme.current(), outlook == "chance", limit_of(stopping, outlook)
    values = history.chance if chance else history.share
    words, short = ("chance of a change", "chance") if chance else ("decisions to change", "changes")
    more = f"{stopping.more:,} more"
    key = [KeyEntry(LINE, look.accent, f"{words} with {more}", f"{short}, {more}")]
    if limit is not None:
        shown = f"{100 * limit:g} %"
        key.append(KeyEntry(DASHES, look.rejected, f"limit {shown}", shown))
    return StreamChart((StreamLine(look.accent, "o", values),), falling_scale(limit), tuple(key))
