"""Plots against ground truth, methods side by side, convergence of a fusion, and rates over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QShowEvent

from raterscope.algorithms.clicks.crowd_size import DETECTORS_PUBLISHED, CrowdSizeCurve
from raterscope.figures.courses import CourseLine, Trace, convergence_chart, course_chart
from raterscope.figures.description import Chart
from raterscope.figures.evaluation import (
    CURVE_NAMES,
    CalibrationLine,
    Curve,
    calibration_chart,
    crowd_size_chart,
    curve_chart,
    reliability_chart,
)
from raterscope.widgets.figures.chart_figure import ChartPanel
from raterscope.widgets.parts import ChoiceBox

NO_CURVES = "Import ground truth to see ROC and precision-recall curves."
NO_CROWDS = "Press Measure to see how methods do with more annotators; it needs ground truth."
DEM, MAJORITY = DETECTORS_PUBLISHED
STAGES = {"after clustering": "clustering", "after DEM": DEM, "after majority": MAJORITY}
"""Stages of methods; methods with their own detector are drawn in both."""
MEASURES = ("sensitivity", "precision")
BIN_RING, DOT_RING = 17.0, 15.0


class CurvesPlot(ChartPanel):
    """ROC or precision-recall curves, one for each run; they differ by colour and dashes.

    If the first curve has thresholds, a click selects the threshold of the nearest point.

    `nothing`: text of the empty plot.
    """

    threshold_chosen = Signal(float)

    def __init__(self, nothing: str = NO_CURVES) -> None:
        super().__init__("Curves", nothing)
        self._all: tuple[Curve, ...] = ()
        self._curves: tuple[Curve, ...] = ()
        """Drawn curves."""
        self._marked: float | None = None
        self.kind = ChoiceBox("Which curve", CURVE_NAMES, letters=8)
        self.of = ChoiceBox("Whose curves", letters=14)
        self.kind.currentIndexChanged.connect(lambda: self.draw())
        self.of.currentIndexChanged.connect(self._on_of)
        self.header.row.insertWidget(1, self.kind)
        self.header.row.insertWidget(2, self.of, 1)
        self.of.hide()
        self.figure.point_chosen.connect(self._on_point)

    def set_curves(self, curves: Sequence[Curve]) -> None:
        """Show the curves of runs."""
        if not curves and not self._all:
            return
        self._all = tuple(curves)
        # The choice is kept while that group of curves exists.
        self.of.offer(dict.fromkeys(curve.of for curve in self._all).keys())
        self.of.setVisible(self.of.count() > 1)
        self._select_curves()
        both_kinds = not curves or any(len(curve.recall) for curve in curves)
        if not both_kinds:
            self.kind.choose("roc")
        self.kind.setVisible(both_kinds)
        self.header.set_title("Curves" if both_kinds else CURVE_NAMES["roc"])
        self.set_filled(bool(curves))
        self.draw()

    def mark(self, posterior: float | None) -> None:
        """Ring the point of the first curve at which a detection with this posterior is first kept."""
        if posterior != self._marked:
            self._marked = posterior
            self.draw_rings()

    def describe(self) -> Chart:
        """Describe the curves of the chosen kind."""
        of = self.of.currentText() if self.of.count() > 1 else ""
        return curve_chart(self._curves, self._kind, of)

    def draw_rings(self) -> None:
        """Ring the marked point of the first curve."""
        rows = []
        if self._curves and len(self._curves[0].threshold) and self._marked is not None:
            rows = np.flatnonzero(self._curves[0].threshold <= self._marked)[:1].tolist()
        self.figure.set_rings(tuple((self._first, index) for index in rows))

    @property
    def _kind(self) -> str:
        return str(self.kind.key)

    @property
    def _first(self) -> int:
        """Index of the first curve's mark, which follows the diagonal of a ROC."""
        return int(self._kind == "roc")

    def _select_curves(self) -> None:
        self._curves = tuple(curve for curve in self._all if curve.of == self.of.currentText())

    def _on_of(self) -> None:
        self._select_curves()
        self.draw()

    def _on_point(self, mark: int, index: int) -> None:
        if mark != self._first or not len(self._curves[0].threshold):
            return
        threshold = self._curves[0].threshold
        finite = np.flatnonzero(np.isfinite(threshold))
        self.threshold_chosen.emit(float(threshold[finite[np.abs(finite - index).argmin()]]))


class CalibrationPlot(ChartPanel):
    """Calibration plot: a dot for each bin, larger for more cases; perfect posteriors lie on the diagonal."""

    # lowest and highest posterior of the bin of the chosen dot
    bin_chosen = Signal(float, float)

    def __init__(
        self,
        *,
        axes: tuple[str, str] = ("posterior", "share right"),
        nothing: str = "Import known truths to see whether posteriors are calibrated.",
    ) -> None:
        super().__init__("Calibration", nothing)
        self._axes = axes
        self.lines: tuple[CalibrationLine, ...] = ()
        """The lines shown."""
        self._marked: float | None = None
        self.figure.point_chosen.connect(self._on_point)

    def set_lines(self, lines: Sequence[CalibrationLine]) -> None:
        """Show methods, the most important first."""
        self.lines = tuple(lines)
        self.set_filled(bool(lines))
        self.draw()

    def mark(self, posterior: float | None) -> None:
        """Ring the bin of the first method that a posterior falls into."""
        if posterior != self._marked:
            self._marked = posterior
            self.draw_rings()

    def describe(self) -> Chart:
        """Describe the methods."""
        return calibration_chart(self.lines, self._axes)

    def draw_rings(self) -> None:
        """Ring the bin that is marked."""
        rings: tuple[tuple[int, int], ...] = ()
        if self.lines and self._marked is not None:
            counts = self.lines[0].count
            bin_index = min(int(self._marked * len(counts)), len(counts) - 1)
            rings = ((1, int(np.count_nonzero(counts[:bin_index]))),) if counts[bin_index] else ()
        self.figure.set_rings(rings, BIN_RING)

    def _on_point(self, mark: int, index: int) -> None:
        counts = self.lines[mark - 1].count
        bin_index = int(np.flatnonzero(counts)[index])
        self.bin_chosen.emit(bin_index / len(counts), (bin_index + 1) / len(counts))


class CrowdSizePlot(ChartPanel):
    """Means over random crowds, with bars of one standard error."""

    def __init__(self) -> None:
        super().__init__("Crowd size", NO_CROWDS)
        self._curves: tuple[CrowdSizeCurve, ...] = ()
        self.measure = ChoiceBox("Measure", MEASURES, letters=7)
        self.stage = ChoiceBox("Stage", {name: words for words, name in STAGES.items()}, letters=7)
        for choice in (self.measure, self.stage):
            choice.currentIndexChanged.connect(lambda: self.draw())
        self.header.row.insertWidget(1, self.measure)
        self.header.row.insertWidget(2, self.stage, 1)

    def set_curves(self, curves: Sequence[CrowdSizeCurve]) -> None:
        """Show methods, or none."""
        self._curves = tuple(curves)
        self.set_filled(bool(curves))
        self.draw()

    def describe(self) -> Chart:
        """Describe the lines of the chosen measure and stage."""
        title = f"{self.measure.currentText()} {self.stage.currentText()}"
        named = [(_short(curve.method), curve) for curve in self._visible_curves()]
        return crowd_size_chart(named, str(self.measure.key), title)

    def _visible_curves(self) -> list[CrowdSizeCurve]:
        chosen = str(self.stage.key)
        if chosen == "clustering":
            return [curve for curve in self._curves if curve.stage == chosen]
        after = [curve for curve in self._curves if curve.stage == "detection"]
        (unused,) = {DEM, MAJORITY} - {chosen}
        return [curve for curve in after if not curve.method.endswith(f", {unused}")]


class ReliabilityPlot(ChartPanel):
    """Reliability by number of clicks, one dot per annotator."""

    annotator_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Reliability / clicks", "Press Fuse (F5) to see each annotator's reliability.")
        self._clicks: NDArray[np.integer] = np.empty(0, np.int64)
        self._reliability: NDArray[np.floating] = np.empty(0)
        self._names: tuple[str, ...] = ()
        self._annotators: NDArray[np.integer] = np.empty(0, np.int64)
        self._excluded = np.empty(0, dtype=bool)
        self._selected: int | None = None
        self.figure.point_chosen.connect(self._on_point)

    def set_annotators(
        self,
        clicks: NDArray[np.integer],
        reliability: NDArray[np.floating],
        names: Sequence[str] = (),
        annotators: NDArray[np.integer] | None = None,
        excluded: set[int] | None = None,
    ) -> None:
        """Show the reliability of R annotators over their number of clicks.

        `reliability`: NaN where unknown; these have no dot. `annotators`: (R,), their indices; by default 0
        to R - 1. `excluded`: indices drawn as crosses.
        """
        known = np.isfinite(reliability)
        indices = np.arange(len(clicks)) if annotators is None else np.asarray(annotators)
        self._clicks, self._reliability = np.asarray(clicks)[known], np.asarray(reliability)[known]
        self._annotators = indices[known]
        every = list(names) if len(names) else [str(number) for number in indices.tolist()]
        self._names = tuple(name for name, is_known in zip(every, known, strict=True) if is_known)
        self._excluded = np.isin(self._annotators, list(excluded or ()))
        self.set_filled(len(self._clicks) > 0)
        self.draw()

    def select(self, annotator: int | None) -> None:
        """Ring an annotator's dot, without a signal."""
        self._selected = annotator
        self.draw_rings()

    def describe(self) -> Chart:
        """Describe the dots."""
        return reliability_chart(self._clicks, self._reliability, self._names, self._excluded)

    def draw_rings(self) -> None:
        """Ring the selected annotator."""
        rings = []
        for mark in (0, 1):
            rows = np.flatnonzero(self._annotators[self._excluded == mark] == self._chosen)
            rings += [(mark, int(row)) for row in rows]
        self.figure.set_rings(tuple(rings), DOT_RING)

    @property
    def _chosen(self) -> int:
        return -1 if self._selected is None else self._selected

    def _on_point(self, mark: int, index: int) -> None:
        self.annotator_chosen.emit(int(self._annotators[self._excluded == mark][index]))


def _short(method: str) -> str:
    """Drop the detector from a method's name, because the choice box shows it."""
    return method.removesuffix(f", {DEM}").removesuffix(f", {MAJORITY}")


NOTHING = "Open this page to see how the annotators' rates are estimated as their labels come."
ALL_ANNOTATORS = "all annotators"


CONVERGENCE = "Convergence"
NO_TRACE = "Press Fuse (F5) to see the convergence of the clustering."


class ConvergencePlot(ChartPanel):
    """Objective of a fusion by iteration, and the fate of its components.

    `objective`: name of the objective: "bound". `nothing`: text of the empty plot.
    """

    def __init__(self, objective: str = "objective", nothing: str = NO_TRACE) -> None:
        super().__init__(CONVERGENCE, nothing)
        self._label = objective
        self._trace = Trace(np.empty(0))

    def set_objective(self, objective: str) -> None:
        """Set the label of the axis: the name of the objective, with its scale if it has one."""
        self._label = objective
        self.draw()

    def set_trace(
        self,
        objective: NDArray[np.floating],
        components: NDArray[np.integer] | None = None,
        removed: NDArray[np.bool_] | None = None,
        best: int = -1,
        converged: bool | None = None,
    ) -> None:
        """Show the course of an iteration; see `Trace`."""
        self._trace = Trace(np.asarray(objective, dtype=float), components, removed, best, converged)
        self.set_filled(len(self._trace.objective) > 0)
        self.draw()

    def describe(self) -> Chart:
        """Describe the line and its marks."""
        return convergence_chart(self._trace, CONVERGENCE, self._label)


@dataclass(frozen=True)
class DecisionKind:
    """Quantity that can be plotted."""

    key: str
    title: str
    # across, down: labels of the axes
    across: str
    down: str
    each: bool = False  # whether it can be drawn for one annotator
    unit: bool = True  # whether it lies between 0 and 1


@dataclass(frozen=True, eq=False)
class DecisionView:
    """The lines of one question and class."""

    classes: tuple[str, ...]  # one of them counts as the structure
    chosen: int  # index of that class
    kinds: tuple[DecisionKind, ...]
    annotators: tuple[str, ...]
    # ``lines(key, annotator)`` returns the lines of a quantity; of all annotators for -1
    lines: Callable[[str, int], Sequence[CourseLine]]
    text: str  # unit of a step


class DecisionPlot(ChartPanel):
    """Rates over time; boxes choose the quantity, the class that counts as a structure, and the annotator."""

    became_visible = Signal()
    class_chosen = Signal(int)  # another class shall count as the structure

    def __init__(self) -> None:
        super().__init__("Decisions", NOTHING)
        self._view: DecisionView | None = None
        self._lines: tuple[CourseLine, ...] = ()
        self.kind = ChoiceBox("What is drawn", letters=14)
        self.of = ChoiceBox("Class", letters=8)
        self.annotator_box = ChoiceBox("Whose rates", letters=10)
        for index, box in enumerate((self.kind, self.of, self.annotator_box), start=1):
            box.setToolTip(box.accessibleName())
            box.hide()
            self.header.row.insertWidget(index, box)
        self.kind.currentIndexChanged.connect(self._on_choice)
        self.annotator_box.currentIndexChanged.connect(self._on_choice)
        self.of.currentIndexChanged.connect(self._on_class)

    def showEvent(self, event: QShowEvent) -> None:
        """Emit that the plot is visible."""
        super().showEvent(event)
        self.became_visible.emit()

    def set_view(self, view: DecisionView | None, nothing: str = NOTHING) -> None:
        """Show other lines; None for none, with the reason."""
        self._view = view
        self.set_nothing(nothing)
        for box in (self.kind, self.annotator_box, self.of):
            box.setVisible(view is not None)
        self.kind.offer({} if view is None else {kind.key: kind.title for kind in view.kinds})
        self.annotator_box.offer(() if view is None else (ALL_ANNOTATORS, *view.annotators))
        self.of.offer(() if view is None else (f"of {name}" for name in view.classes))
        if view is not None:
            with QSignalBlocker(self.of):
                self.of.setCurrentIndex(view.chosen)
        self.figure.setToolTip("" if view is None else view.text)
        self.set_filled(view is not None)
        self._on_choice()

    def describe(self) -> Chart:
        """Describe the lines of the chosen quantity."""
        kind = self._kind()
        if kind is None:
            return course_chart((), "Decisions", "step", "value", unit=True)
        return course_chart(self._lines, "Decisions", kind.across, kind.down, unit=kind.unit)

    def _kind(self) -> DecisionKind | None:
        key = self.kind.key
        return (
            None if self._view is None else next((kind for kind in self._view.kinds if kind.key == key), None)
        )

    def _on_choice(self) -> None:
        kind = self._kind()
        if kind is None or self._view is None:
            self._lines = ()
            return
        self.annotator_box.setVisible(kind.each)
        annotator = self.annotator_box.currentIndex() - 1 if kind.each else -1
        self._lines = tuple(self._view.lines(kind.key, annotator))
        self.draw()

    def _on_class(self, index: int) -> None:
        if self._view is not None and index >= 0:
            self.class_chosen.emit(index)
