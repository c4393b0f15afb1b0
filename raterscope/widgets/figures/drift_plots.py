"""Plots of one annotator's confusion matrix over time: lines, or a path in a triangle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.colours import ANNOTATOR_SYMBOLS, colour_of
from raterscope.figures.courses import corners_in, draw_triangle, pixels_of
from raterscope.figures.description import Axis, Chart, Key, Line, Mark, PlotTable, Points, Segments
from raterscope.figures.description import Column as TableColumn
from raterscope.figures.layout import Box
from raterscope.text import estimate
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import Column, ColumnFigure
from raterscope.widgets.figures.figure_panel import Figure, ModeSwitch, QtCanvas, polygon_of
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.painting import paint_text, symbol_path
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.theme import set_lengths

ROUND = np.array([step * 10**power for power in range(7) for step in (1, 2, 5)])
"""Numbers of votes at which a line has a marker: 1, 2, 5, 10, 20 ..."""


@dataclass(frozen=True, eq=False)
class DriftView:
    """One annotator's confusion matrix after each of S votes."""

    # classes, outputs: names of the J true classes (rows) and the L possible answers (columns)
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: NDArray[np.floating]  # (S, J, L): rows add up to 1
    # low, high: (S, J, L) or None: bounds of the 95 % interval
    low: NDArray[np.floating] | None
    high: NDArray[np.floating] | None
    # (S, J): number of votes so far on tasks of each class (expected number if classes are unknown),
    # ascending
    informed: NDArray[np.floating]
    # (step, class, words) of each change of a row, counted from 0: "gives 3 less often"
    changes: tuple[tuple[int, int, str], ...] = ()
    step: int = 0  # the current step, from 0
    summary: str = ""  # description of the change and its time, in a sentence
    # (step, words): steps at which lines join the rows of all classes, and the number of all votes until then
    together: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.informed), len(self.classes), len(self.outputs))
        for name in ("mean", "low", "high"):
            values = getattr(self, name)
            if values is not None and values.shape != shape:
                raise ValueError(f"{name} of shape {values.shape}; expected {shape}")
        if self.informed.shape != shape[:2] or not shape[0]:
            raise ValueError(f"informed of shape {self.informed.shape}; expected a row a vote, at least one")
        if any(not (0 <= step < shape[0] and 0 <= row < shape[1]) for step, row, _ in self.changes):
            raise ValueError("a change at a step or of a class that does not exist")

    def positions(self, row: int, *, aligned: bool) -> NDArray[np.float64]:
        """Return the position of each vote: its number, or the number of votes on a class until then."""
        votes = self.informed[:, row] if aligned else np.arange(1, len(self.mean) + 1)
        return np.asarray(votes, dtype=np.float64)

    def milestones(self, row: int) -> NDArray[np.int64]:
        """Return the steps at which the votes on tasks of a class reach round numbers: 1, 2, 5, 10, 20 ..."""
        votes = self.informed[:, row]
        reached = ROUND[: np.searchsorted(ROUND, votes[-1] + 1e-9, side="right")]
        return np.unique(np.searchsorted(votes, reached - 1e-9))

    def table(self, classes: Sequence[int]) -> PlotTable:
        """Return the rows of some classes, one for each vote and output."""
        of = list(classes)
        axes: dict[str, TableColumn] = {
            "vote": np.arange(1, len(self.mean) + 1),
            "true": [self.classes[row] for row in of],
            "given": self.outputs,
        }
        parts = (self.mean, self.low, self.high)
        values = {
            name: None if part is None else part[:, of]
            for name, part in zip(("rate", "low", "high"), parts, strict=True)
        }
        return PlotTable.of_cells(axes, {"votes of the class": self.informed[:, of, None], **values})

    def text_of(self, true_row: int, step: int) -> str:
        """Describe a row after a vote, and its change at this vote."""
        rates = ", ".join(
            f"{name} {self._rate(true_row, step, output)}" for output, name in enumerate(self.outputs)
        )
        votes = f"{self.informed[step, true_row]:,.0f}"
        changes = [text for when, of, text in self.changes if (when, of) == (step, true_row)]
        row = f"true {self.classes[true_row]}, vote {step + 1:,} ({votes} of that class): {rates}"
        return row + "".join(f"; after vote {step + 1:,}: {text}" for text in changes)

    def _rate(self, row: int, step: int, output: int) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean[step, row, output]:.2f}"
        values = (float(part[step, row, output]) for part in (self.mean, self.low, self.high))
        return estimate(*values)


def label_ink(number: int) -> str:
    """Return the ink of a class or an output."""
    return f"palette {number}"


def marker_radius(votes: float) -> float:
    """Return the radius of a marker in pixels; it grows slowly with the number of votes."""
    return 2.0 + 1.1 * float(np.log10(max(votes, 1.0)))


def paint_label(
    painter: QPainter, centre: QPointF, number: int, radius: float, *, filled: bool = True, edge: str = ""
) -> None:
    """Paint the symbol of a class or an output: colour and shape; hollow after the current step."""
    colour = QColor(colour_of(label_ink(number), theme.current()))
    painter.save()
    painter.translate(centre)
    painter.setPen(QPen(QColor(edge) if edge else colour, 1.4 if edge else 1))
    painter.setBrush(colour if filled else QColor(theme.current().surface))
    painter.drawPath(symbol_path(ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)], radius))
    painter.restore()


MAX_OVERLAID = 6
"""Maximum number of classes drawn one above the other; with more classes, one is drawn at a time."""

MAX_BANDS = 4

EVERY = -1
AXES = {
    "votes": ("vote", "Over all votes of the annotator"),
    "aligned": ("vote of class", "Over the votes on tasks of that class: classes can be compared"),
}


class RowLines(QWidget):
    """Rows of one true class, or of all one above the other; a click goes to the step at its position."""

    step_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.figure = _Lines()
        self.choice = ChoiceBox("True class", letters=6)
        self.axis = ModeSwitch(AXES)
        self._classes: tuple[str, ...] = ()
        self.setFocusProxy(self.figure)
        row = horizontal((self.choice, 1), self.axis, spacing=8)
        vertical(row, (self.figure, 1), inside=self, spacing=4)
        self.choice.currentIndexChanged.connect(self._on_choice)
        self.axis.chosen.connect(self._on_axis)
        self.figure.chosen.connect(self.step_chosen)

    def show_drift(self, view: DriftView | None) -> None:
        """Show an annotator, or none; the selected class is kept if possible."""
        classes = () if view is None else view.classes
        if classes != self._classes:
            self._classes = classes
            self._offer(classes)
        self.figure.show_drift(view)
        self._on_choice()

    def _offer(self, classes: tuple[str, ...]) -> None:
        with QSignalBlocker(self.choice):
            self.choice.clear()
            if len(classes) <= MAX_OVERLAID:
                self.choice.addItem("every true class", EVERY)
            for row, name in enumerate(classes):
                self.choice.addItem(f"true {name}", row)

    def _on_choice(self) -> None:
        row = self.choice.key
        if row is not None:
            self.figure.set_classes(tuple(range(len(self._classes))) if row == EVERY else (row,))

    def _on_axis(self, name: str) -> None:
        self.figure.set_aligned(name == "aligned")


class _Lines(ColumnFigure):
    """The plots; a column is a vote, counted from 0."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Drift as lines")
        set_lengths(self, minimumWidth=180, minimumHeight=88)
        self._view: DriftView | None = None
        self._classes: tuple[int, ...] = ()
        self._aligned = False

    def show_drift(self, view: DriftView | None) -> None:
        self._view = view
        self.select(None if view is None else view.step)
        self.set_classes(())

    def set_classes(self, classes: tuple[int, ...]) -> None:
        self._classes = classes
        self.point(None)
        self._show()

    def set_aligned(self, aligned: bool) -> None:
        self._aligned = aligned
        self._show()

    def _show(self) -> None:
        if self._view is None or not self._classes:
            self.show_charts((), ())
            return
        charts = [
            row_chart(self._view, row, aligned=self._aligned, last=row == self._classes[-1])
            for row in self._classes
        ]
        self.show_charts(charts, [self._view.positions(row, aligned=self._aligned) for row in self._classes])

    @property
    def pace(self) -> int:
        return 1 if self._view is None else max(1, len(self._view.mean) // 100)

    def text_of(self, part: Column) -> str:
        return "" if self._view is None else self._view.text_of(self._classes[part[0]], part[1])

    def choose(self, part: Column) -> None:
        self.chosen.emit(part[1])

    def table(self) -> PlotTable:
        assert self._view is not None
        return self._view.table(self._classes)


def row_chart(view: DriftView, row: int, *, aligned: bool, last: bool) -> Chart:
    """Describe one row of a confusion matrix over the votes; the last chart has the common axis.

    `row`: the true class. `aligned`: whether the axis counts the votes of that class, or all votes.
    """
    x, mean = view.positions(row, aligned=aligned), view.mean[:, row]
    # The intervals of many outputs overlap: only those of the most frequent outputs are drawn.
    banded = set(np.argsort(-mean.max(axis=0), kind="stable")[:MAX_BANDS].tolist())
    changes = np.array([x[step] for step, of, _ in view.changes if of == row], dtype=float)
    marks: list[Mark] = [
        Segments(
            x=np.repeat(changes[:, None], 2, axis=1), y=np.tile([-np.inf, np.inf], (len(changes), 1)),
            ink="second", width=1.2, dashes=(4.0, 3.0),
        )
    ]  # fmt: skip
    steps = view.milestones(row)
    sizes = [1.6 * marker_radius(votes) for votes in view.informed[steps, row].tolist()]
    keys, brief = [], distinguishing_labels(view.outputs)
    for output, name in enumerate(view.outputs):
        low, high = (
            None if end is None or output not in banded else end[:, row, output]
            for end in (view.low, view.high)
        )
        ink, symbol = label_ink(output), ANNOTATOR_SYMBOLS[output % len(ANNOTATOR_SYMBOLS)]
        marks.append(
            Line(title=name, x=x, y=mean[:, output], low=low, high=high, ink=ink, symbol=symbol, width=1.4)
        )
        marks.append(
            Points(
                x=x[steps], y=mean[steps, output], ink=ink, symbol=symbol, size=np.array(sizes),
                pointable=False,
            )
        )  # fmt: skip
        keys.append(
            Key(name, ink, symbol=symbol, line=False, short=brief[name], value=float(mean[-1, output]))
        )
    end = max(float(view.informed[-1].max()), 1.0) if aligned else max(len(mean), 2.0)
    label = "votes of the class" if aligned else "votes"
    axis = Axis(label, 0.0 if aligned else 1.0, end, padding=0.0, integral=True, hidden=not last)
    y = Axis("", 0.0, 1.0, padding=0.02, ticks=((0.0, "0"), (1.0, "1")))
    title = f"true {view.classes[row]}"
    return Chart(title, axis, y, tuple(marks), tuple(keys), legend_at="ends")


NAME = 84.0
TOP, BOTTOM, SIDE = 20.0, 22.0, 10.0
REACH = 10.0
MAX_POINTS = 1200
"""Maximum number of points of all paths together, because they are drawn in every frame."""

FAINT = 80
STAR, APART = 4.5, 40.0
"""Size of the markers that join classes, and minimum distance of markers with a number, in pixels."""
COARSEST = 24.0
SMOOTH = 640
"""Maximum number of points of all paths that are drawn with thick lines."""

Part = tuple[int, int]


class TernaryPlot(Figure[Part]):
    """Ternary plot: corners are answers; a point is a row of the confusion matrix after a vote.

    The path up to the current step is drawn solid, the rest faint. Markers stand where the number of votes on
    tasks of the class reaches 1, 2, 5, 10 ..., and grow with it; rings mark changes of a row. A click on a
    marker goes to its step.
    """

    step_chosen = Signal(int)  # step of the clicked marker

    def __init__(self) -> None:
        super().__init__("Drift in a triangle")
        set_lengths(self, minimumWidth=180, minimumHeight=88)
        self._view: DriftView | None = None
        self._step = 0
        self._corners = np.zeros((3, 2))
        self._paths: list[tuple[NDArray[np.int64], NDArray[np.floating]]] = []
        self._marks: list[NDArray[np.int64]] = []

    def show_drift(self, view: DriftView | None) -> None:
        """Show an annotator, or none; there must be three outputs."""
        if view is not None and len(view.outputs) != 3:
            raise ValueError(f"{len(view.outputs)} outputs; a triangle has three corners")
        self._view = view
        self._step = 0 if view is None else view.step
        self._marks = [] if view is None else [self._marked(row) for row in range(len(view.classes))]
        self.point(None)
        self._lay_out()
        self.update()

    def set_step(self, step: int) -> None:
        """Show another step."""
        self._step = step
        self.update()

    def text_of(self, part: Part) -> str:
        """Describe a row after a vote."""
        return "" if self._view is None else self._view.text_of(*part)

    def part_at(self, position: QPointF) -> Part | None:
        """Return the nearest marker within reach: (class, step)."""
        best, nearest = None, REACH
        for row, marks in enumerate(self._marks):
            steps = np.append(marks, self._step)
            x, y = self._pixels(row, steps).T
            away = np.hypot(x - position.x(), y - position.y())
            if away.min() < nearest:
                nearest, best = float(away.min()), (row, int(steps[away.argmin()]))
        return best

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        """Move from marker to marker along a path, and from class to class."""
        if not self._marks:
            return None
        if part is None:
            return 0, self._step
        path, step = part
        if down:
            return min(max(path + down, 0), len(self._marks) - 1), self._step
        steps = np.union1d(self._marks[path], [self._step])
        row = int(np.searchsorted(steps, step)) + across
        return path, int(steps[min(max(row, 0), len(steps) - 1)])

    def choose(self, part: Part) -> None:
        """Go to the step of a marker."""
        self.step_chosen.emit(part[1])

    def table(self) -> PlotTable:
        """Return every class's row after every vote."""
        assert self._view is not None
        return self._view.table(range(len(self._view.classes)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the paths."""
        super().resizeEvent(event)
        self._lay_out()

    def draw(self, painter: QPainter) -> None:
        """Paint triangle, paths and markers."""
        if self._view is None:
            return
        palette = theme.current()
        draw_triangle(QtCanvas(painter), self._corners, self._view.outputs, palette, theme.CAPTION)
        painter.setFont(theme.font(theme.CAPTION))
        self._draw_legend(painter)
        for row in range(len(self._paths)):
            self._draw_path(painter, row)
        self._draw_together(painter)
        for row in range(len(self._paths)):
            self._draw_marks(painter, row)
        if self.pointed is not None:
            row, step = self.pointed
            painter.setPen(QPen(QColor(theme.current().text), 1.6))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(self._pixel(row, step), REACH, REACH)

    def _marked(self, row: int) -> NDArray[np.int64]:
        assert self._view is not None
        changed = [step for step, of, _ in self._view.changes if of == row]
        return np.union1d(self._view.milestones(row), changed).astype(np.int64)

    def _lay_out(self) -> None:
        width, height = self.room.width() - 2 * SIDE, self.room.height() - TOP - BOTTOM
        self._corners = corners_in(Box(SIDE, TOP, SIDE + width, TOP + height))
        self._paths = []
        if self._view is None:
            return
        for row in range(len(self._view.classes)):
            most = max(MAX_POINTS // len(self._view.classes), 8)
            # Skip most points if there are far more than can be drawn.
            steps = np.arange(0, len(self._view.mean), max(1, len(self._view.mean) // (4 * most)))
            points = self._pixels(row, steps)
            thinned = _thinned(points, most)
            self._paths.append((steps[thinned], points[thinned]))

    def _pixels(self, row: int, steps: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return the positions of a class's row after steps, (S, 2) pixels."""
        assert self._view is not None
        return pixels_of(self._corners, self._view.mean[steps, row])

    def _pixel(self, row: int, step: int) -> QPointF:
        ((x, y),) = self._pixels(row, np.array([step]))
        return QPointF(x, y)

    def _draw_legend(self, painter: QPainter) -> None:
        assert self._view is not None
        palette, room = theme.current(), int(max(self.room.height() / 2 - TOP, 17) // 17)
        names = self._view.classes[:room]
        for row, name in enumerate(names):
            middle = TOP / 2 + 17 * row
            # The triangle is wider below: a name ends where its side begins.
            share = (middle + 9 - self._corners[1, 1]) / max(self._corners[0, 1] - self._corners[1, 1], 1.0)
            end = self._corners[1, 0] + share * (self._corners[0, 0] - self._corners[1, 0])
            end = min(end, self._corners[1, 0] - NAME / 2)
            paint_label(painter, QPointF(8, middle), row, 4)
            left_out = len(self._view.classes) - room
            text = name if row < room - 1 or left_out <= 0 else f"and {left_out + 1} more"
            paint_text(painter, QRectF(18, middle - 8, end - 22, 16), text, palette.second)

    def _draw_path(self, painter: QPainter, row: int) -> None:
        steps, points = self._paths[row]
        passed = int(np.searchsorted(steps, self._step, side="right"))
        present = self._pixels(row, np.array([self._step]))
        colour = QColor(colour_of(label_ink(row), theme.current()))
        faint = QColor(colour)
        faint.setAlpha(FAINT)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        width = 1.8 if sum(len(path) for path, _ in self._paths) <= SMOOTH else 1.0
        for ink, route in ((faint, (present, points[passed:])), (colour, (points[:passed], present))):
            x, y = np.concatenate(route).T
            painter.setPen(QPen(ink, width))
            painter.drawPolyline(polygon_of(np.column_stack([x, y])))

    def _draw_together(self, painter: QPainter) -> None:
        """Join the rows of all classes at some steps, each with its number."""
        assert self._view is not None
        palette, named = theme.current(), QPointF(-NAME, -NAME)
        painter.setFont(theme.font(theme.CAPTION))
        for step, words in self._view.together:
            points = [self._pixel(row, step) for row in range(len(self._view.classes))]
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour(palette.accent, 255 if step <= self._step else FAINT), 1.2))
            painter.drawPolyline(points)
            painter.save()
            painter.setBrush(QColor(palette.accent))
            for position in points:
                painter.translate(position)
                painter.drawPath(symbol_path("star", STAR))
                painter.translate(-position)
            painter.restore()
            if (points[0] - named).manhattanLength() > APART:
                named = points[0]
                box = QRectF(named.x() + 6, named.y() - 17, NAME, 14)
                paint_text(painter, box, words, palette.second)

    def _draw_marks(self, painter: QPainter, row: int) -> None:
        assert self._view is not None
        palette = theme.current()
        changed = {step for step, of, _ in self._view.changes if of == row}
        for step in self._marks[row].tolist():
            position = self._pixel(row, step)
            if step in changed:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(palette.text if step <= self._step else palette.third), 1.6))
                painter.drawEllipse(position, 8, 8)
            else:
                radius = marker_radius(float(self._view.informed[step, row]))
                paint_label(painter, position, row, radius, filled=step <= self._step)
        radius = marker_radius(float(self._view.informed[self._step, row])) + 3
        paint_label(painter, self._pixel(row, self._step), row, radius, edge=palette.text)


def _thinned(points: NDArray[np.floating], most: int) -> NDArray[np.int64]:
    """Return the indices of the points, (S, 2), needed to show the course of a path on the screen."""
    cell, indices = 0.5, np.arange(len(points))
    while True:
        cells = np.floor(points[indices] / cell)
        moved = np.ones(len(indices), dtype=bool)
        moved[1:-1] = (cells[1:-1] != cells[:-2]).any(axis=1)
        indices = indices[moved]
        if len(indices) <= most:
            return indices
        if cell > COARSEST:
            return indices[:: -(-len(indices) // most)]
        cell *= 1.5
