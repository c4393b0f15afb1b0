"""Thousands of lines along a path, counted pixel by pixel instead of drawn one by one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, QThreadPool, Signal
from PySide6.QtGui import QColor, QImage

from raterscope.figures.drawing import column_spans
from raterscope.widgets.figures.position_bias import behaviour_colour

Floats = NDArray[np.float32]
LINE_LEVELS = 32
"""So many steps of a pixel's cover stand for one line over all of it."""

TALL = 5.0
"""A piece of a line that rises more within a column of pixels is drawn whole, dash or not."""


def cover(
    low: Floats,
    high: Floats,
    height: int,
    width: float,
    dash: tuple[float, float] | None = None,
    hidden: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Count how many lines cover each pixel, by shares where a line covers part of one.

    `low`, `high`: (C, p), from where to where each line reaches in every column, in pixels from the top.
    `width`: of the lines, in pixels. `dash`: (on, period), in pixels along a line. `hidden`: (C, p), where a
    line is not drawn. Returns (C, height + 2): differences down each column: their running sum is the cover,
    so that several are simply added.
    """
    columns = len(low)
    for _ in range(round(width) - 1):
        low, high = _widen_jumps(low, high)
    top = np.clip(low - width / 2, 0, height)
    bottom = np.clip(high + width / 2, 0, height)
    if hidden is not None:
        bottom[hidden] = top[hidden]
    if dash is not None:
        rise = high - low
        # Lines side by side do not begin a dash together: their dashes would read as stripes.
        along = np.cumsum(rise + 1, axis=0) + np.arange(low.shape[1]) * 0.3 * dash[1]
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
    """Carry each leap one column on: it is else thinner than the line that leads to it."""
    tall = (high[:-1] - low[:-1]) >= TALL
    wider = low.copy(), high.copy()
    for new, old, farther in ((wider[0], low, np.minimum), (wider[1], high, np.maximum)):
        np.copyto(new[1:], farther(old[1:], old[:-1]), where=tall)
    return wider


def coverage_levels(cover_sums: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return how densely lines cover each pixel, in steps of `LINE_LEVELS` a line.

    `cover_sums`: (C, height + 2), sums of what `cover` gives. Returns (height, C).
    """
    levels = np.minimum(np.cumsum(cover_sums, axis=1)[:, :-2].T * LINE_LEVELS, 255)
    return np.ascontiguousarray(np.maximum(levels, 0), dtype=np.uint8)


def coverage_image(levels: NDArray[np.uint8], colour: str, opacity: float) -> QImage:
    """Make a picture of what lines cover, in one colour.

    `levels`: (height, C), see `coverage_levels`. `opacity`: of one line; where several lie above each other
    they add up.
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
"""So many lines are computed before looking whether they are still wanted."""


@dataclass(frozen=True, eq=False)
class PathFrame:
    """The course of the lines of p annotators over T places."""

    x: NDArray[np.floating]  # (T,): positions along the axis, 0 to 1
    bias: NDArray[np.floating]  # (T, p)
    stepped: bool  # whether a bias holds until the next place
    drawn: NDArray[np.bool_]  # (p,): annotators that have a line
    behaviour: NDArray[np.integer]  # (p,): numbers in `BEHAVIOURS`
    # least, most: the biases at the lower and the upper edge
    least: float
    most: float
    # columns, rows: of the picture's own pixels
    columns: int
    rows: int
    height: float  # part of each row's height that the biases fill
    scale: float  # its pixels to one of the screen's, by which pens are wider


@dataclass(frozen=True, eq=False)
class _Picture:
    """Spans of lines and, for each behaviour, how densely its lines cover the pixels."""

    low: Floats
    high: Floats
    levels: list[NDArray[np.uint8]]


class PathLines(QObject):
    """Computes lines in a thread, so that thousands of them never block the window.

    Attributes
    ----------
    low, high : (columns, p) float32
        The least and the largest bias of each line in every column of the picture; 0 where none has come in.
    """

    changed = Signal()  # there is more to be drawn
    _computed = Signal(int, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.low = self.high = np.empty((0, 0), np.float32)
        self.done = 0  # so many lines are known
        self.images: list[QImage] = []  # one a behaviour, once all lines are in them
        self._levels: list[NDArray[np.uint8]] = []
        self._order, self._finished = 0, True
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._computed.connect(self._on_computed, Qt.ConnectionType.QueuedConnection)

    @property
    def finished(self) -> bool:
        """True if all lines are in the picture."""
        return self._finished

    def clear(self) -> None:
        """Show no line."""
        self._order += 1
        self._pool.clear()
        self._finished, self.images, self._levels = True, [], []

    def start(self, frame: PathFrame, *, recoloured: bool = False) -> None:
        """Begin to compute the picture; recoloured, the lines run as they did."""
        spans = (self.low, self.high) if recoloured and self.done == frame.bias.shape[1] else None
        if spans is None:
            self.low = self.high = np.zeros((frame.columns, 0), np.float32)
            self.done = 0
        self._order += 1
        self._finished = False
        self._pool.clear()
        self._pool.start(partial(self._compute, frame, spans, self._order))

    def paint(self) -> None:
        """Paint the images in the colours of the theme."""
        if self._finished:
            self.images = [
                coverage_image(levels, behaviour_colour(behaviour), STYLES[behaviour][1])
                for behaviour, levels in enumerate(self._levels)
            ]
        self.changed.emit()

    def _compute(self, frame: PathFrame, spans: tuple[Floats, Floats] | None, order: int) -> None:
        """Compute all lines, in the pool's thread, unless others are wanted meanwhile."""
        number = frame.bias.shape[1]
        shape = frame.columns, number
        low, high = spans or (np.zeros(shape, np.float32), np.zeros(shape, np.float32))
        covers = [np.zeros((frame.columns, frame.rows + 2)) for _ in STYLES]
        for begin in range(0, number, TOGETHER):
            if self._order != order:
                return
            some = slice(begin, begin + TOGETHER)
            if spans is None:
                bias = np.nan_to_num(np.asarray(frame.bias[:, some], dtype=np.float32))
                x = np.maximum.accumulate(np.clip(frame.x, 0, 1)) * frame.columns
                low[:, some], high[:, some] = column_spans(x, bias, frame.columns, stepped=frame.stepped)
            _add_covers(covers, frame, some, low[:, some], high[:, some])
        picture = _Picture(low, high, [coverage_levels(cover_sums) for cover_sums in covers])
        with suppress(RuntimeError):  # the program is at its end, and this object with it
            self._computed.emit(order, picture)

    def _on_computed(self, order: int, picture: _Picture) -> None:
        if order == self._order:
            self.low, self.high, self._levels = picture.low, picture.high, picture.levels
            self.done, self._finished = self.low.shape[1], True
            self.paint()


def _add_covers(
    covers: list[NDArray[np.float64]], frame: PathFrame, some: slice, least: Floats, largest: Floats
) -> None:
    """Add what some lines cover to the sums of their behaviours."""
    per_bias = frame.height / (frame.most - frame.least)
    top = np.asarray((frame.most - largest) * per_bias, dtype=np.float32)
    bottom = np.asarray((frame.most - least) * per_bias, dtype=np.float32)
    # Before an annotator's bias comes in, its line would lie on everybody's.
    hidden = (least == 0) & (largest == 0)
    for behaviour, (width, _, dash) in enumerate(STYLES):
        of = frame.drawn[some] & (frame.behaviour[some] == behaviour)
        if of.any():
            dashes = None if dash is None else (dash[0] * frame.scale, dash[1] * frame.scale)
            covers[behaviour] += cover(
                top[:, of], bottom[:, of], frame.rows, width * frame.scale, dashes, hidden[:, of]
            )
