"""Rows of an annotator's confusion matrix over time as lines, and the view that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from raterscope.figures.colours import ANNOTATOR_SYMBOLS
from raterscope.figures.table import Column, PlotTable
from raterscope.text.numbers import estimate
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.figures.qt_canvas import polygon_of
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.painting import paint_words, rater_colour, readable, symbol_path
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.text_size import set_lengths

__all__ = [
    "DriftView",
    "RowLines",
    "label_colour",
    "line_width",
    "marker_radius",
    "paint_label",
]


ROUND = np.array([one * 10**power for power in range(7) for one in (1, 2, 5)])
"""Numbers of votes at which a line carries a marker."""


@dataclass(frozen=True, eq=False)
class DriftView:
    """One annotator's confusion matrix after each of S votes.

    Attributes
    ----------
    classes, outputs : tuple of J and L str
        The true classes, a row each, and what may be said, a column each.
    mean : (S, J, L) float
        Rows add up to 1.
    low, high : (S, J, L) float or None
        Ends of the 95 % interval.
    informed : (S, J) float
        Votes so far on tasks of each class: whole numbers where the classes are known, expected ones where
        they are not. Never falling.
    changes : tuple of (step, class, words)
        Where a row changed, counted from 0, and how: "says 3 less often".
    step : int
        The step that is looked at, from 0.
    summary : str
        What changed and when, in a sentence.
    together : tuple of (step, words)
        Steps at which the rows of all classes are joined, and the votes of all annotators until then.
    """

    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: NDArray[np.floating]
    low: NDArray[np.floating] | None
    high: NDArray[np.floating] | None
    informed: NDArray[np.floating]
    changes: tuple[tuple[int, int, str], ...] = ()
    step: int = 0
    summary: str = ""
    together: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.informed), len(self.classes), len(self.outputs))
        for name in ("mean", "low", "high"):
            values = getattr(self, name)
            if values is not None and values.shape != shape:
                raise ValueError(f"{name} of shape {values.shape}; expected {shape}")
        if self.informed.shape != shape[:2] or not shape[0]:
            raise ValueError(f"informed of shape {self.informed.shape}; expected a row a vote, at least one")
        if any(not (0 <= step < shape[0] and 0 <= at < shape[1]) for step, at, _ in self.changes):
            raise ValueError("a change at a step or of a class that there is not")

    def milestones(self, at: int) -> NDArray[np.int64]:
        """Give the steps at which the votes on tasks of a class reach round numbers: 1, 2, 5, 10, 20 ..."""
        votes = self.informed[:, at]
        reached = ROUND[: np.searchsorted(ROUND, votes[-1] + 1e-9, side="right")]
        return np.unique(np.searchsorted(votes, reached - 1e-9))

    def table(self, classes: Sequence[int]) -> PlotTable:
        """Give the rows of some classes, one for each vote and output."""
        of = list(classes)
        axes: dict[str, Column] = {
            "vote": np.arange(1, len(self.mean) + 1),
            "true": [self.classes[at] for at in of],
            "said": self.outputs,
        }
        parts = (self.mean, self.low, self.high)
        values = {
            name: None if part is None else part[:, of]
            for name, part in zip(("rate", "low", "high"), parts, strict=True)
        }
        return PlotTable.of_cells(axes, {"votes of the class": self.informed[:, of, None], **values})

    def words(self, at: int, step: int) -> str:
        """Say a row after a vote, and what changed there."""
        said = ", ".join(f"{name} {self._figure(at, step, place)}" for place, name in enumerate(self.outputs))
        votes = f"{self.informed[step, at]:,.0f}"
        changes = [words for when, of, words in self.changes if (when, of) == (step, at)]
        row = f"true {self.classes[at]}, vote {step + 1:,} ({votes} of that class): {said}"
        return row + "".join(f"; after vote {step + 1:,}: {words}" for words in changes)

    def _figure(self, at: int, step: int, place: int) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean[step, at, place]:.2f}"
        values = (float(part[step, at, place]) for part in (self.mean, self.low, self.high))
        return estimate(*values)


def label_colour(number: int) -> QColor:
    """Give the colour of a class or an output, as it is seen on the theme's ground."""
    return readable(rater_colour(number))


def line_width(*, smooth: bool) -> float:
    """Give how wide a line is drawn: one that goes to and fro is seen better, and drawn faster, when thin."""
    return 1.8 if smooth else 1.0


def marker_radius(votes: float) -> float:
    """Give the size that tells a number of votes, in pixels: every ten times as many, a little larger."""
    return 2.0 + 1.1 * float(np.log10(max(votes, 1.0)))


def paint_label(
    painter: QPainter, centre: QPointF, number: int, radius: float, *, filled: bool = True, edge: str = ""
) -> None:
    """Paint the mark of a class or an output: colour and shape; hollow for what has not come yet."""
    colour = label_colour(number)
    painter.save()
    painter.translate(centre)
    painter.setPen(QPen(QColor(edge) if edge else colour, 1.4 if edge else 1))
    painter.setBrush(colour if filled else QColor(theme.current().surface))
    painter.drawPath(symbol_path(ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)], radius))
    painter.restore()


LEFT, RIGHT, TITLE, AXIS = 30.0, 76.0, 17.0, 18.0
NAME_HEIGHT = 14.0
MOST_TOGETHER = 6
"""So many classes are drawn one above the other; of more, one at a time."""

MOST_BANDS = 4

SMOOTH = 5.0
"""A line that goes less up and down within every column of pixels is drawn through the middle."""

EVERY = -1
AXES = {
    "votes": ("vote", "Over all votes of the annotator"),
    "aligned": ("vote of class", "Over the votes on tasks of that class: classes can be compared"),
}
Part = tuple[int, int]


class RowLines(QWidget):
    """One true class, or all of them one above the other; a click goes to the step under it.

    Signals
    -------
    step_chosen : int
    """

    step_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.figure = _Lines()
        self.choice = ChoiceBox()
        self.choice.setMinimumContentsLength(6)
        self.choice.setAccessibleName("True class")
        self.axis = ModeSwitch(AXES)
        self._classes: tuple[str, ...] = ()
        self.setFocusProxy(self.figure)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.choice, 1)
        row.addWidget(self.axis)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.figure, 1)
        self.choice.currentIndexChanged.connect(self._on_choice)
        self.axis.chosen.connect(self._on_axis)
        self.figure.chosen.connect(self.step_chosen)

    def show_drift(self, view: DriftView | None) -> None:
        """Show an annotator, or nobody; the class chosen stays where it can."""
        classes = () if view is None else view.classes
        if classes != self._classes:
            self._classes = classes
            self._offer(classes)
        self.figure.show_drift(view)
        self._on_choice()

    def set_step(self, step: int) -> None:
        """Go to another step."""
        self.figure.set_step(step)

    def _offer(self, classes: tuple[str, ...]) -> None:
        self.choice.blockSignals(True)
        self.choice.clear()
        if len(classes) <= MOST_TOGETHER:
            self.choice.addItem("every true class", EVERY)
        for at, name in enumerate(classes):
            self.choice.addItem(f"true {name}", at)
        self.choice.blockSignals(False)

    def _on_choice(self) -> None:
        at = self.choice.currentData()
        if at is not None:
            self.figure.set_classes(tuple(range(len(self._classes))) if at == EVERY else (at,))

    def _on_axis(self, name: str) -> None:
        self.figure.set_aligned(name == "aligned")


@dataclass(frozen=True, eq=False)
class _Line:
    """What is drawn of one output in one class."""

    way: QPolygonF
    width: float
    band: QPolygonF | None


class _Lines(Figure[Part]):
    """Plots above each other over one axis. A part is (class, step)."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Drift as lines")
        set_lengths(self, minimumWidth=180, minimumHeight=88)
        self._view: DriftView | None = None
        self._step = 0
        self._classes: tuple[int, ...] = ()
        self._aligned = False

    def show_drift(self, view: DriftView | None) -> None:
        self._view = view
        self._step = 0 if view is None else view.step
        self._classes = ()
        self.point(None)
        self.redraw()

    def set_step(self, step: int) -> None:
        self._step = step
        self.update()

    def set_classes(self, classes: tuple[int, ...]) -> None:
        self._classes = classes
        self.point(None)
        self.redraw()

    def set_aligned(self, aligned: bool) -> None:
        self._aligned = aligned
        self.redraw()

    def words(self, part: Part) -> str:
        return "" if self._view is None else self._view.words(*part)

    def part_at(self, place: QPointF) -> Part | None:
        if self._view is None:
            return None
        for at in self._classes:
            box = self._box(at)
            if box.contains(place):
                return at, self._step_at(at, (place.x() - box.left()) / box.width())
        return None

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        if self._view is None or not self._classes:
            return None
        if part is None:
            return self._classes[0], self._step
        at, step = part
        row = self._classes.index(at) + down
        at = self._classes[min(max(row, 0), len(self._classes) - 1)]
        pace = max(1, len(self._view.mean) // 100)
        return at, min(max(step + across * pace, 0), len(self._view.mean) - 1)

    def choose(self, part: Part) -> None:
        self.chosen.emit(part[1])

    def table(self) -> PlotTable:
        assert self._view is not None
        return self._view.table(self._classes)

    def draw(self, painter: QPainter) -> None:
        if self._view is None or not self._classes:
            return
        self.paint_still(painter, self._draw_still)
        look = theme.current()
        for at in self._classes:
            box = self._box(at)
            self._draw_cursor(painter, box, at, self._step, look.text)
            if self.pointed is not None:
                self._draw_cursor(painter, box, at, self.pointed[1], look.third)

    def _box(self, at: int) -> QRectF:
        each = (self.room.height() - AXIS) / len(self._classes)
        top = self._classes.index(at) * each
        width = max(self.room.width() - LEFT - RIGHT, 1.0)
        return QRectF(LEFT, top + TITLE, width, max(each - TITLE - 6, 1.0))

    def _end(self) -> float:
        """Give where the axis ends: the last step, or the votes of the class that has most of them."""
        assert self._view is not None
        return max(float(self._view.informed[-1].max()) if self._aligned else len(self._view.mean) - 1.0, 1.0)

    def _across(self, at: int) -> NDArray[np.floating]:
        """Give where each step lies on the axis."""
        assert self._view is not None
        return self._view.informed[:, at] if self._aligned else np.arange(len(self._view.mean), dtype=float)

    def _step_at(self, at: int, share: float) -> int:
        assert self._view is not None
        across = self._across(at)
        return min(int(np.searchsorted(across, share * self._end())), len(across) - 1)

    def _x(self, box: QRectF, at: int, step: int) -> float:
        assert self._view is not None
        end = self._end()
        across = float(self._view.informed[step, at]) if self._aligned else step
        return box.left() + box.width() * across / end

    def _draw_cursor(self, painter: QPainter, box: QRectF, at: int, step: int, ink: str) -> None:
        assert self._view is not None
        x = self._x(box, at, step)
        painter.setPen(QPen(QColor(ink), 1))
        painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()))
        for place in range(len(self._view.outputs)):
            y = box.bottom() - box.height() * float(self._view.mean[step, at, place])
            paint_label(painter, QPointF(x, y), place, 4, edge=ink)

    def _draw_still(self, painter: QPainter) -> None:
        assert self._view is not None
        look, small = theme.current(), theme.font(theme.CAPTION)
        for at in self._classes:
            box = self._box(at)
            painter.setFont(small)
            title = QRectF(box.left(), box.top() - TITLE, box.width(), TITLE - 2)
            paint_words(painter, title, f"true {self._view.classes[at]}", look.text)
            painter.setPen(QPen(QColor(look.line), 1))
            for share in (0.0, 0.5, 1.0):
                y = round(box.bottom() - box.height() * share) + 0.5
                painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
            for share, word in ((0.0, "0"), (1.0, "1")):
                y = box.bottom() - box.height() * share
                edge = QRectF(0, y - 7, LEFT - 6, 14)
                paint_words(painter, edge, word, look.third, side=Qt.AlignmentFlag.AlignRight)
            self._draw_lines(painter, box, at)
        self._draw_axis(painter)

    def _draw_axis(self, painter: QPainter) -> None:
        assert self._view is not None
        look, end = theme.current(), self._end()
        first, last = (
            ("0", f"{end:,.0f} votes of the class") if self._aligned else ("1", f"vote {end + 1:,.0f}")
        )
        box = QRectF(LEFT, self.room.height() - AXIS, self.room.width() - LEFT - RIGHT, AXIS)
        paint_words(painter, box, first, look.third)
        paint_words(painter, box, last, look.third, side=Qt.AlignmentFlag.AlignRight)

    def _draw_lines(self, painter: QPainter, box: QRectF, at: int) -> None:
        assert self._view is not None
        lines = self._lines(box, at)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        # The intervals of many outputs lie upon each other: those that are said most have theirs.
        banded = np.argsort(-self._view.mean[:, at].max(axis=0), kind="stable")[:MOST_BANDS]
        for place, line in enumerate(lines):
            if line.band is not None and place in banded:
                light = label_colour(place)
                light.setAlpha(45)
                painter.setBrush(light)
                painter.drawPolygon(line.band)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        dashes = QPen(QColor(theme.current().second), 1.2)
        dashes.setDashPattern([4, 3])
        painter.setPen(dashes)
        for step, of, _ in self._view.changes:
            if of == at:
                x = self._x(box, at, step)
                painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()))
        for place, line in enumerate(lines):
            painter.setPen(QPen(label_colour(place), line.width))
            painter.drawPolyline(line.way)
        for step in self._view.milestones(at).tolist():
            x, radius = self._x(box, at, step), 0.8 * marker_radius(float(self._view.informed[step, at]))
            for place in range(len(lines)):
                y = box.bottom() - box.height() * float(self._view.mean[step, at, place])
                paint_label(painter, QPointF(x, y), place, radius)
        self._draw_names(painter, box, at)

    def _lines(self, box: QRectF, at: int) -> list[_Line]:
        """Make what is drawn: of several steps in one column of pixels, the least and the largest."""
        assert self._view is not None
        view = self._view
        across, end = self._across(at), self._end()
        columns = (across * (box.width() / end)).astype(np.int64)
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        x = box.left() + np.asarray(across)[starts] * (box.width() / end)
        least = _reduced(np.minimum, view.mean[:, at], starts)
        most = _reduced(np.maximum, view.mean[:, at], starts)
        ends = None
        if view.low is not None and view.high is not None:
            low, high = view.low[:, at], view.high[:, at]
            ends = _reduced(np.minimum, low, starts), _reduced(np.maximum, high, starts)
        lines = []
        for place in range(len(view.outputs)):
            smooth = float((most[place] - least[place]).max()) * box.height() < SMOOTH
            if smooth:
                way, along = (least[place] + most[place]) / 2, x
            else:
                # Up and down within a column, so that the line shows how far it went there.
                way, along = np.stack([least[place], most[place]], axis=1).ravel(), np.repeat(x, 2)
            band = None
            if ends is not None:
                edge = np.concatenate([ends[0][place], ends[1][place, ::-1]])
                band = _polygon(np.concatenate([x, x[::-1]]), edge, box)
            lines.append(_Line(_polygon(along, way, box), line_width(smooth=smooth), band))
        return lines

    def _draw_names(self, painter: QPainter, box: QRectF, at: int) -> None:
        """Write the outputs' names at the ends of their lines, moved apart, as many as there is room for."""
        assert self._view is not None
        look, last = theme.current(), self._view.mean[-1, at]
        room = max(int(box.height() // NAME_HEIGHT), 1)
        named = np.sort(np.argsort(-last, kind="stable")[:room])
        named = named[np.argsort(-last[named], kind="stable")]
        wanted = box.bottom() - box.height() * last[named]
        y = np.empty(len(named))
        for place, height in enumerate(wanted):
            y[place] = max(height, y[place - 1] + NAME_HEIGHT if place else box.top())
        lowest = box.bottom()
        for place in reversed(range(len(y))):
            y[place] = lowest = min(y[place], lowest)
            lowest -= NAME_HEIGHT
        painter.setFont(theme.font(theme.CAPTION))
        brief = distinguishing_labels(self._view.outputs)
        for output, height in zip(named.tolist(), y, strict=True):
            paint_label(painter, QPointF(box.right() + 10, height), output, 3.5)
            name = QRectF(box.right() + 18, height - 7, RIGHT - 20, 14)
            said, middle = self._view.outputs[output], Qt.TextElideMode.ElideMiddle
            paint_words(painter, name, said, look.second, elide=middle, brief=brief[said])


def _reduced(
    extreme: np.ufunc, values: NDArray[np.floating], starts: NDArray[np.int64]
) -> NDArray[np.floating]:
    """Give the least or the largest of (S, L) values from each start to the next, (L, starts)."""
    lines = np.ascontiguousarray(values.T)
    return lines if len(starts) == len(values) else np.asarray(extreme.reduceat(lines, starts, axis=1))


def _polygon(x: NDArray[np.floating], share: NDArray[np.floating], box: QRectF) -> QPolygonF:
    y = box.bottom() - box.height() * np.asarray(share, dtype=float)
    return polygon_of(np.column_stack([x, y]))
