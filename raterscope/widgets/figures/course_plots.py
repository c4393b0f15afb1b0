"""Plots of what changes step by step: convergence of a fusion, and rates over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from raterscope.figures.courses import CourseLine, Trace, convergence_chart, course_chart
from raterscope.figures.description import Chart
from raterscope.widgets.figures.chart_figure import ChartPanel
from raterscope.widgets.parts import ChoiceBox

__all__ = ["ConvergencePlot", "DecisionKind", "DecisionPlot", "DecisionView"]

NOTHING = "Open this page to see how the annotators' rates are estimated as their labels come."
EVERYBODY = "all annotators"


class ConvergencePlot(ChartPanel):
    """The objective of a fusion by iteration, with what became of its components.

    Parameters
    ----------
    objective : str
        Its name: "bound".
    nothing : str
        What belongs here.
    """

    def __init__(
        self,
        objective: str = "objective",
        nothing: str = "Press Fuse (F5) to see the convergence of the clustering.",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(_title(objective), nothing, parent)
        self._title, self._label = _title(objective), objective
        self._trace = Trace(np.empty(0))

    def set_objective(self, objective: str, axis: str = "") -> None:
        """Rename the objective, on its axis perhaps with a shorter name or the scale."""
        self._title, self._label = _title(objective), axis or objective
        self.header.set_title(self._title)
        self.draw()

    def set_trace(
        self,
        objective: NDArray[np.floating],
        components: NDArray[np.integer] | None = None,
        removed: NDArray[np.bool_] | None = None,
        best: int = -1,
        converged: bool | None = None,
    ) -> None:
        """Show what an iteration did; see `Trace`."""
        self._trace = Trace(np.asarray(objective, dtype=float), components, removed, best, converged)
        self.set_filled(len(self._trace.objective) > 0)
        self.draw()

    def describe(self) -> Chart:
        """Describe the line and its marks."""
        return convergence_chart(self._trace, self._title, self._label)


@dataclass(frozen=True)
class DecisionKind:
    """Something that can be drawn.

    Attributes
    ----------
    key, title : str
    across, down : str
        Names of the axes.
    each : bool
        Whether it can be drawn of one annotator.
    unit : bool
        Whether it lies between 0 and 1.
    """

    key: str
    title: str
    across: str
    down: str
    each: bool = False
    unit: bool = True


@dataclass(frozen=True, eq=False)
class DecisionView:
    """The lines of one question and class.

    Attributes
    ----------
    classes : tuple of str
        Of which one is the structure.
    chosen : int
        Its place.
    kinds : tuple of DecisionKind
    annotators : tuple of str
    lines : callable
        ``lines(key, annotator)`` gives the lines of a kind; of all annotators for -1.
    words : str
        What a step is.
    """

    classes: tuple[str, ...]
    chosen: int
    kinds: tuple[DecisionKind, ...]
    annotators: tuple[str, ...]
    lines: Callable[[str, int], Sequence[CourseLine]]
    words: str


class DecisionPlot(ChartPanel):
    """Lines over time; boxes choose the quantity, the class that counts as a structure, and the annotator.

    Signals
    -------
    came_in_sight
    class_chosen(int)
        Another class is to count as the structure.
    """

    came_in_sight = Signal()
    class_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Decisions", NOTHING, parent)
        self._view: DecisionView | None = None
        self._lines: tuple[CourseLine, ...] = ()
        self.kind, self.who, self.of = ChoiceBox(), ChoiceBox(), ChoiceBox()
        for box, words, letters in (
            (self.kind, "What is drawn", 14), (self.who, "Whose rates", 10), (self.of, "Class", 8),
        ):  # fmt: skip
            box.setAccessibleName(words)
            box.setToolTip(words)
            box.setMinimumContentsLength(letters)
            box.hide()
        for index, box in enumerate((self.kind, self.of, self.who), start=1):
            self.header.row.insertWidget(index, box)
        self.kind.currentIndexChanged.connect(self._on_choice)
        self.who.currentIndexChanged.connect(self._on_choice)
        self.of.currentIndexChanged.connect(self._on_class)

    def showEvent(self, event: QShowEvent) -> None:
        """Emit that the plot is visible."""
        super().showEvent(event)
        self.came_in_sight.emit()

    def set_view(self, view: DecisionView | None, nothing: str = NOTHING) -> None:
        """Show another course; None for none, and why."""
        self._view = view
        self.set_nothing(nothing)
        kind, annotator = self.kind.currentData(), self.who.currentText()
        for box in (self.kind, self.who, self.of):
            box.blockSignals(True)
            box.clear()
            box.setVisible(view is not None)
        if view is not None:
            for item in view.kinds:
                self.kind.addItem(item.title, item.key)
            self.who.addItems([EVERYBODY, *view.annotators])
            self.of.addItems([f"of {name}" for name in view.classes])
            self.kind.setCurrentIndex(max(self.kind.findData(kind), 0))
            self.who.setCurrentIndex(max(self.who.findText(annotator), 0))
            self.of.setCurrentIndex(view.chosen)
        for box in (self.kind, self.who, self.of):
            box.blockSignals(False)
        self.figure.setToolTip("" if view is None else view.words)
        self.set_filled(view is not None)
        self._on_choice()

    def describe(self) -> Chart:
        """Describe the lines of the kind chosen."""
        kind = self._kind()
        if kind is None:
            return course_chart((), "Decisions", "step", "value", unit=True)
        return course_chart(self._lines, "Decisions", kind.across, kind.down, unit=kind.unit)

    def _kind(self) -> DecisionKind | None:
        key = self.kind.currentData()
        return (
            None if self._view is None else next((kind for kind in self._view.kinds if kind.key == key), None)
        )

    def _on_choice(self) -> None:
        kind = self._kind()
        if kind is None or self._view is None:
            self._lines = ()
            return
        self.who.setVisible(kind.each)
        annotator = self.who.currentIndex() - 1 if kind.each else -1
        self._lines = tuple(self._view.lines(kind.key, annotator))
        self.draw()

    def _on_class(self, index: int) -> None:
        if self._view is not None and index >= 0:
            self.class_chosen.emit(index)


def _title(objective: str) -> str:
    return f"{objective.capitalize()} by iteration"
