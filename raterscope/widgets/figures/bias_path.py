"""The regularisation path: how every annotator's bias comes in, a line each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPaintEngine, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from raterscope.figures.table import Column, PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.behaviours import (
    BAD,
    BEHAVIOUR_WORDS,
    DASHED,
    behaviour_colour,
    paint_cross,
    paint_legend,
)
from raterscope.widgets.figures.path_lines import STYLES, PathFrame, PathLines
from raterscope.widgets.figures.scaled_figure import ScaledFigure, ScaledPanel, paint_value_scale, walked
from raterscope.widgets.painting import paint_words
from raterscope.widgets.text_size import set_lengths, text_size

__all__ = ["BiasPath", "PathView"]

NOTHING = "Press Fuse (F5) to see each annotator's bias along the path."
AXES = {
    "log": ("log", "Places on the path by their logarithm"),
    "linear": ("linear", "Places on the path as they are"),
}
MARGINS = (40.0, 34.0, 12.0, 20.0)
REACH = 8.0
PREFERENCE = 2.0
"""So much nearer, in pixels, a biased annotator's line counts: those are looked for."""

MOST_POINTS, MOST_PAINTED = 200_000, 20_000
"""Of all lines together, up to which a drawing, and a picture of pixels, has them one by one; of more it has
an image."""

MOST_CROSSES = 120


@dataclass(frozen=True, eq=False)
class PathView:
    """The path of p annotators over T places.

    Attributes
    ----------
    at : (T,) float
        Places on the path, rising or falling; not below 0.
    bias : (T, p) float
        NaN for those who were not tested: they have no line.
    behaviour : (p,) int
        Numbers in `BEHAVIOURS`.
    names : tuple of p str
    numbers : (p,) int
        What the signal names them by.
    cut : float
        Place of the cut; NaN for none.
    axis : str
        What the places are: "lambda", "time".
    held : bool
        Whether a bias holds until the next place, as on the path of ISS; else it goes straight to the next.
    """

    at: NDArray[np.floating]
    bias: NDArray[np.floating]
    behaviour: NDArray[np.integer]
    names: tuple[str, ...]
    numbers: NDArray[np.integer]
    cut: float = float("nan")
    axis: str = ""
    held: bool = False

    def __post_init__(self) -> None:
        many = len(self.names)
        if self.bias.shape != (len(self.at), many) or not len(self.at):
            raise ValueError(f"a path of shape {self.bias.shape}; expected {len(self.at)} by {many}")
        if {len(self.behaviour), len(self.numbers)} != {many}:
            raise ValueError(f"not as much of everything as there are annotators: {many}")
        way = np.diff(self.at)
        if not ((way >= 0).all() or (way <= 0).all()) or not (np.asarray(self.at) >= 0).all():
            raise ValueError("places on the path that neither rise nor fall, or lie below 0")


class BiasPath(ScaledPanel):
    """Pointing at a line names its annotator, a click chooses; arrows walk from the highest to the lowest."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self.figure = _Lines()
        super().__init__("Regularisation path", self.figure, NOTHING, AXES, parent, brief="Path")

    def show_path(self, view: PathView | None, aside: str = "") -> None:
        """Show a path, with a word at the right of its title, or that there is none yet."""
        self.figure.show_path(view)
        self.header.set_aside(aside)
        self.set_filled(view is not None)

    def set_cut(self, cut: float, behaviour: NDArray[np.integer]) -> None:
        """Move the cut and colour the lines anew; who is selected stays."""
        self.figure.set_cut(cut, behaviour)


class _Lines(ScaledFigure):
    """A part is a row of the view. Lines are painted into a picture, some at a time."""

    def __init__(self) -> None:
        super().__init__("Regularisation path", MARGINS)
        set_lengths(self, minimumWidth=200, minimumHeight=120)
        self._view: PathView | None = None
        self._cut = float("nan")
        self._behaviour = np.empty(0, np.int8)
        self._drawn = np.empty(0, bool)
        self._least, self._most = -1.0, 1.0
        self._lines = PathLines(self)
        self._lines.changed.connect(self.update)
        theme.notifier().changed.connect(self._lines.paint)

    def show_path(self, view: PathView | None) -> None:
        self._view = view
        self.set_numbers(None if view is None else view.numbers)
        if view is not None:
            self._cut, self._behaviour = view.cut, np.asarray(view.behaviour)
            self._drawn = np.isfinite(view.bias).all(axis=0)
            ends = view.bias if self._drawn.all() else view.bias[:, self._drawn]
            self._least = min(float(ends.min(initial=0.0)), 0.0)
            self._most = max(float(ends.max(initial=0.0)), 0.0)
            if self._least == self._most:
                self._least, self._most = -1.0, 1.0
        self.lay_out()

    def set_cut(self, cut: float, behaviour: NDArray[np.integer]) -> None:
        if self._view is not None:
            self._cut = cut
            if not np.array_equal(self._behaviour, behaviour):
                self._behaviour = np.asarray(behaviour)
                self._start(recoloured=True)
            self.update()

    def lay_out(self) -> None:
        self._start()

    @property
    def finished(self) -> bool:
        """Whether all lines are in the picture."""
        return self._lines.finished

    def words(self, part: int) -> str:
        view = self._view
        assert view is not None
        side = "prefers left" if view.bias[-1, part] > 0 else "prefers right"
        entered = np.flatnonzero(view.bias[:, part])
        if not len(entered):
            return f"{view.names[part]}, {BEHAVIOUR_WORDS[self._behaviour[part]]}: no bias on this path"
        place = f"{view.axis or 'place'} {_written(float(view.at[entered[0]]))}"
        return f"{view.names[part]}, {BEHAVIOUR_WORDS[self._behaviour[part]]}: {side}, enters at {place}"

    def part_at(self, place: QPointF) -> int | None:
        box, lines = self.box(), self._lines
        column = int((place.x() - box.left()) * self._ratio())
        if self._view is None or not 0 <= column < len(lines.low):
            return None
        low, high = lines.low[column, : lines.done], lines.high[column, : lines.done]
        above, below = self._y(high) - place.y(), place.y() - self._y(low)
        away = np.maximum(np.maximum(above, below), 0.0)
        away[((low == 0) & (high == 0)) | ~self._drawn[: lines.done]] = np.inf
        away -= np.where(self._behaviour[: lines.done] > 0, PREFERENCE, 0.0)
        best = int(away.argmin()) if len(away) else -1
        return best if best >= 0 and away[best] <= REACH else None

    def step(self, part: int | None, across: int, down: int) -> int | None:
        if self._view is None or not self._drawn.any():
            return None
        order = np.flatnonzero(self._drawn)
        order = order[np.argsort(-self._view.bias[-1, order], kind="stable")]
        if part is None:
            return int(order[0]) if self._selected is None else self._selected
        return walked(order, part, across + down)

    def table(self) -> PlotTable:
        view = self._view
        assert view is not None
        drawn = np.flatnonzero(self._drawn)
        names = [view.names[row] for row in drawn.tolist()]
        axes: dict[str, Column] = {"annotator": names, view.axis or "place": view.at}
        flagged = [BEHAVIOUR_WORDS[number] for number in self._behaviour[drawn].tolist()]
        behaviour = np.asarray(flagged, dtype=object)[:, None]
        return PlotTable.of_cells(axes, {"bias": view.bias[:, drawn].T + 0.0, "behaviour": behaviour})

    def draw(self, painter: QPainter) -> None:
        if self._view is None:
            return
        box = self.box()
        self._draw_ground(painter, box)
        drawing = painter.paintEngine().type() == QPaintEngine.Type.SVG
        if self._picturing and self._view.bias.size <= (MOST_POINTS if drawing else MOST_PAINTED):
            self._draw_lines(painter, box, self._view)
        else:
            for image in self._lines.images:
                painter.drawImage(box, image)
        self._draw_crosses(painter)
        self._draw_cut(painter, box)
        look = theme.current()
        for part, ink, width in ((self._selected, look.accent, 2.6), (self.pointed, look.text, 1.8)):
            if part is not None and part < self._lines.done and self._drawn[part]:
                self._draw_one(painter, part, ink, width)

    def _ratio(self) -> float:
        return self.devicePixelRatioF() * text_size()

    def _x(self, at: NDArray[np.floating] | float) -> NDArray[np.floating]:
        """Give how far along the axis places lie, 0 to 1."""
        assert self._view is not None
        ends = np.asarray(self._view.at, dtype=float)
        places = np.asarray(at, dtype=float)
        if self._logarithmic:
            least = ends[ends > 0].min() if (ends > 0).any() else 1.0
            # There is no 0 among logarithms: it lies as far beyond the last place as half of that.
            least = least / 2 if (ends == 0).any() else least
            ends, places = np.log(np.maximum(ends, least)), np.log(np.maximum(places, least))
        room = ends[-1] - ends[0]
        return np.asarray((places - ends[0]) / room if room else places * 0.0)

    def _y(self, bias: NDArray[np.floating] | float) -> NDArray[np.floating]:
        box = self.box()
        return np.asarray(
            box.top() + (self._most - np.asarray(bias)) / (self._most - self._least) * box.height()
        )

    def _start(self, *, recoloured: bool = False) -> None:
        """Begin to work the picture out; recoloured, the lines run as they did."""
        view, box, scale = self._view, self.box(), self._ratio()
        if view is None:
            self._lines.clear()
            return
        size = (box.size() * scale).toSize()
        self._lines.start(
            PathFrame(
                x=self._x(view.at),
                bias=view.bias,
                held=view.held,
                drawn=self._drawn,
                behaviour=self._behaviour,
                least=self._least,
                most=self._most,
                columns=size.width(),
                rows=size.height(),
                height=box.height() * scale,
                scale=scale,
            ),
            recoloured=recoloured,
        )

    def _draw_ground(self, painter: QPainter, box: QRectF) -> None:
        look = theme.current()
        view = self._view
        assert view is not None
        self.draw_axes(painter, box)
        zero = float(self._y(0.0))
        painter.setPen(QPen(QColor(look.second), 1))
        painter.drawLine(QPointF(box.left(), zero), QPointF(box.right(), zero))
        painter.setFont(theme.font(theme.CAPTION))
        paint_value_scale(painter, box, self._least, self._most, zero)
        right = Qt.AlignmentFlag.AlignRight
        middle = Qt.AlignmentFlag.AlignHCenter
        wide = QFontMetrics(painter.font()).horizontalAdvance
        below = QRectF(box.left(), box.bottom() + 3, box.width(), 16)
        first, last = _written(float(view.at[0])), _written(float(view.at[-1]))
        named = f"{view.axis} {first}" if view.axis else first
        above_words, below_words = "above 0: prefers left", "below 0: prefers right"
        # Where there is too little room the legend gives way, then the axis's name, then what lies below.
        paint_legend(painter, box.left(), box.right())
        paint_words(painter, QRectF(box.left(), 17, box.width(), 16), above_words, look.third)
        for begin, words in ((named, below_words), (first, below_words), (first, "")):
            taken = 2 * max(wide(begin), wide(last)) + wide(words) + 16
            if taken < box.width():
                break
        paint_words(painter, below, begin, look.third)
        paint_words(painter, below, last, look.third, side=right)
        paint_words(painter, below, words, look.third, side=middle)

    def _draw_lines(self, painter: QPainter, box: QRectF, view: PathView) -> None:
        """Draw every line by itself, from where its bias comes in."""
        x = box.left() + np.clip(self._x(view.at), 0, 1) * box.width()
        painter.save()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for behaviour, (width, opacity, dash) in enumerate(STYLES):
            pen = QPen(QColor(behaviour_colour(behaviour)), width)
            if dash is not None:
                pen.setDashPattern([each / width for each in dash])
            painter.setPen(pen)
            painter.setOpacity(opacity)
            for row in np.flatnonzero(self._drawn & (self._behaviour == behaviour)).tolist():
                entered = np.flatnonzero(view.bias[:, row])
                if not len(entered):
                    continue
                begin = max(int(entered[0]) - 1, 0)
                along, high = x[begin:], self._y(view.bias[begin:, row])
                if view.held:
                    along, high = np.repeat(along, 2)[1:], np.repeat(high, 2)[:-1]
                points = zip(along.tolist(), high.tolist(), strict=True)
                painter.drawPolyline(QPolygonF([QPointF(*point) for point in points]))
        painter.restore()

    def _draw_crosses(self, painter: QPainter) -> None:
        if not len(self._lines.low):
            return
        bad = np.flatnonzero(self._drawn & (self._behaviour == BAD))[:MOST_CROSSES]
        colour, x = QColor(behaviour_colour(BAD)), self.box().right()
        for y in self._y((self._lines.low[-1, bad] + self._lines.high[-1, bad]) / 2).tolist():
            paint_cross(painter, QPointF(x, y), colour)

    def _draw_cut(self, painter: QPainter, box: QRectF) -> None:
        if not np.isfinite(self._cut):
            return
        x = box.left() + float(np.clip(self._x(self._cut), 0, 1)) * box.width()
        look = theme.current()
        pen = QPen(QColor(look.accent), 1.6)
        pen.setDashPattern([3, 3])
        painter.setPen(pen)
        painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()))
        beyond = x + 36 > box.right()
        self._draw_chip(
            painter, QRectF(x - 36 if beyond else x + 4, box.top() + 2, 32, 16), "cut", look.accent
        )

    def _draw_one(self, painter: QPainter, part: int, ink: str, width: float) -> None:
        assert self._view is not None
        box, low, high = self.box(), self._lines.low[:, part], self._lines.high[:, part]
        entered = np.flatnonzero((low != 0) | (high != 0))
        if not len(entered):
            return
        begin = int(entered[0])
        low, high = low[begin:], high[begin:]
        falls = np.diff(low + high, prepend=low[0] + high[0]) < 0
        first, second = np.where(falls, high, low), np.where(falls, low, high)
        y = self._y(np.stack([first, second], axis=1).ravel())
        x = box.left() + np.repeat(np.arange(begin, len(self._lines.low)), 2) / self._ratio()
        bends = np.flatnonzero(np.abs(np.diff(y, 2)) > 1e-3) + 1
        kept = np.unique(np.concatenate([[0], bends, [len(y) - 1]]))
        pen = QPen(QColor(ink), width)
        if int(self._behaviour[part]) in DASHED:
            pen.setDashPattern(DASHED[int(self._behaviour[part])])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        points = zip(x[kept].tolist(), y[kept].tolist(), strict=True)
        painter.drawPolyline(QPolygonF([QPointF(*point) for point in points]))
        self._draw_name(painter, part, float(y[-1]), ink)

    def _draw_name(self, painter: QPainter, part: int, y: float, ink: str) -> None:
        assert self._view is not None
        box = self.box()
        name = self._view.names[part]
        width = QFontMetrics(theme.font(theme.CAPTION, bold=True)).horizontalAdvance(name) + 10.0
        width = min(width, box.width() / 2)
        top = min(max(y - 20, box.top()), box.bottom() - 16)
        self._draw_chip(painter, QRectF(box.right() - width - 8, top, width, 16), name, ink)

    def _draw_chip(self, painter: QPainter, chip: QRectF, words: str, ink: str) -> None:
        painter.setFont(theme.font(theme.CAPTION, bold=True))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(theme.current().surface, 225))
        painter.drawRoundedRect(chip, 4, 4)
        paint_words(painter, chip.adjusted(5, 0, -4, 0), words, ink, elide=Qt.TextElideMode.ElideMiddle)


def _written(place: float) -> str:
    """Write a place by three digits, thousands told apart."""
    return f"{float(f'{place:.3g}'):,.0f}" if place >= 1000 else f"{place:.3g}"
