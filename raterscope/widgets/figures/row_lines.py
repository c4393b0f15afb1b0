"""Rows of an annotator's confusion matrix over time as lines, and the view that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from raterscope.figures.colours import ANNOTATOR_SYMBOLS, colour_of
from raterscope.figures.description import Axis, Chart, Key, Line, Mark, Points, Segments
from raterscope.figures.table import Column as TableColumn
from raterscope.figures.table import PlotTable
from raterscope.text.numbers import estimate
from raterscope.widgets import theme
from raterscope.widgets.figures.column_figure import Column, ColumnFigure
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.painting import symbol_path
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.text_size import set_lengths

__all__ = [
    "DriftView",
    "RowLines",
    "label_ink",
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
        if any(not (0 <= step < shape[0] and 0 <= row < shape[1]) for step, row, _ in self.changes):
            raise ValueError("a change at a step or of a class that there is not")

    def positions(self, row: int, *, aligned: bool) -> NDArray[np.float64]:
        """Return the position of each vote: its number, or that of the votes of a class until then."""
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
            "said": self.outputs,
        }
        parts = (self.mean, self.low, self.high)
        values = {
            name: None if part is None else part[:, of]
            for name, part in zip(("rate", "low", "high"), parts, strict=True)
        }
        return PlotTable.of_cells(axes, {"votes of the class": self.informed[:, of, None], **values})

    def words(self, true_row: int, step: int) -> str:
        """Describe a row after a vote, and what changed there."""
        rates = ", ".join(
            f"{name} {self._rate(true_row, step, output)}" for output, name in enumerate(self.outputs)
        )
        votes = f"{self.informed[step, true_row]:,.0f}"
        changes = [words for when, of, words in self.changes if (when, of) == (step, true_row)]
        row = f"true {self.classes[true_row]}, vote {step + 1:,} ({votes} of that class): {rates}"
        return row + "".join(f"; after vote {step + 1:,}: {words}" for words in changes)

    def _rate(self, row: int, step: int, output: int) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean[step, row, output]:.2f}"
        values = (float(part[step, row, output]) for part in (self.mean, self.low, self.high))
        return estimate(*values)


def label_ink(number: int) -> str:
    """Return the ink of a class or an output."""
    return f"palette {number}"


def marker_radius(votes: float) -> float:
    """Return the radius for a number of votes, pixels: a little larger for ten times as many."""
    return 2.0 + 1.1 * float(np.log10(max(votes, 1.0)))


def paint_label(
    painter: QPainter, centre: QPointF, number: int, radius: float, *, filled: bool = True, edge: str = ""
) -> None:
    """Paint the mark of a class or an output: colour and shape; hollow for what has not come yet."""
    colour = QColor(colour_of(label_ink(number), theme.current()))
    painter.save()
    painter.translate(centre)
    painter.setPen(QPen(QColor(edge) if edge else colour, 1.4 if edge else 1))
    painter.setBrush(colour if filled else QColor(theme.current().surface))
    painter.drawPath(symbol_path(ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)], radius))
    painter.restore()


MOST_TOGETHER = 6
"""So many classes are drawn one above the other; of more, one at a time."""

MOST_BANDS = 4

EVERY = -1
AXES = {
    "votes": ("vote", "Over all votes of the annotator"),
    "aligned": ("vote of class", "Over the votes on tasks of that class: classes can be compared"),
}


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
        self.figure.select(step)

    def _offer(self, classes: tuple[str, ...]) -> None:
        self.choice.blockSignals(True)
        self.choice.clear()
        if len(classes) <= MOST_TOGETHER:
            self.choice.addItem("every true class", EVERY)
        for row, name in enumerate(classes):
            self.choice.addItem(f"true {name}", row)
        self.choice.blockSignals(False)

    def _on_choice(self) -> None:
        row = self.choice.currentData()
        if row is not None:
            self.figure.set_classes(tuple(range(len(self._classes))) if row == EVERY else (row,))

    def _on_axis(self, name: str) -> None:
        self.figure.set_aligned(name == "aligned")


class _Lines(ColumnFigure):
    """A column is a vote, counted from 0."""

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

    def words(self, part: Column) -> str:
        return "" if self._view is None else self._view.words(self._classes[part[0]], part[1])

    def choose(self, part: Column) -> None:
        self.chosen.emit(part[1])

    def table(self) -> PlotTable:
        assert self._view is not None
        return self._view.table(self._classes)


def row_chart(view: DriftView, row: int, *, aligned: bool, last: bool) -> Chart:
    """Describe one row of a confusion matrix over the votes; the last chart has the axis of all.

    Parameters
    ----------
    view : DriftView
    row : int
        The true class.
    aligned : bool
        Whether over the votes of that class, else over all votes.
    last : bool
    """
    x, mean = view.positions(row, aligned=aligned), view.mean[:, row]
    # The intervals of many outputs lie upon each other: those of the most frequent outputs are drawn.
    banded = set(np.argsort(-mean.max(axis=0), kind="stable")[:MOST_BANDS].tolist())
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
    axis = Axis(label, 0.0 if aligned else 1.0, end, padding=0.0, whole=True, hidden=not last)
    y = Axis("", 0.0, 1.0, padding=0.02, ticks=((0.0, "0"), (1.0, "1")))
    title = f"true {view.classes[row]}"
    return Chart(title, axis, y, tuple(marks), tuple(keys), legend_at="ends")
