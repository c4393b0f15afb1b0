"""Panels for the evaluation of methods: comparison, crowd size, cross-validation, calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPixmap, QShowEvent
from PySide6.QtWidgets import QCheckBox, QPushButton, QScrollArea, QSplitter, QWidget

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.algorithms.labels.vote_budget import CostSettings
from raterscope.algorithms.settings import Settings
from raterscope.figures.courses import CourseLine, course_chart
from raterscope.figures.description import Chart, PlotTable
from raterscope.figures.evaluation import CalibrationLine, Curve
from raterscope.text import percent
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import SavedContent
from raterscope.widgets.figures.chart_figure import ChartPanel
from raterscope.widgets.figures.evaluation_plots import CalibrationPlot, CrowdSizePlot, CurvesPlot
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.layouts import STRETCH, horizontal, scroll_area, stacked, vertical
from raterscope.widgets.painting import paint_rater
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, ElidedLabel, Header, plain_label, plain_tip
from raterscope.widgets.tables.comparison_tables import ComparisonRow, ComparisonTable, Measure
from raterscope.widgets.theme import set_lengths

FORM_WIDTH = 272


class FormBesidePlot(QWidget):
    """Settings form, measure button, and plot.

    `tip`: tooltip of the button. `beside`: widget beside the button.
    """

    def __init__(
        self, settings: type[Settings], plot: QWidget, tip: str, beside: QWidget | None = None
    ) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.form = SettingsForm(settings)
        self.button, self.cancel = QPushButton("Measure"), QPushButton("Cancel")
        self.button.setToolTip(tip)
        self.cancel.hide()
        self.facts = plain_label("", "hint", wrap=True)
        self.facts.hide()
        top = horizontal(spacing=8)
        for widget in (self.button, self.cancel, beside):
            if widget is not None:
                top.addWidget(widget)
        top.addStretch(1)
        inner = QWidget()
        area = scroll_area(inner)
        vertical(top, self.form, self.facts, STRETCH, inside=inner, margins=(12, 8, 8, 8), spacing=8)
        set_lengths(area, width=FORM_WIDTH)
        horizontal(area, (plot, 1), inside=self)
        self.setFocusProxy(self.button)
        self.form.changed.connect(self._on_changed)
        self._busy = False

    def set_busy(self, busy: bool, fraction: float = 0.0) -> None:
        """Show whether a measurement is running, and its progress."""
        self._busy = busy
        self.cancel.setVisible(busy)
        self.button.setText(f"Measuring {percent(fraction)}" if busy else "Measure")
        self._on_changed()

    def set_facts(self, text: str) -> None:
        """Show time and settings of the displayed measurement."""
        self.facts.setText(text)
        self.facts.setVisible(bool(text))

    def _on_changed(self) -> None:
        self.button.setEnabled(not self._busy and not self.form.error())


def scrolled(panel: FormBesidePlot, name: str) -> QScrollArea:
    """Place a page in a scroll area, because it may be wider than the other pages."""
    page = QScrollArea(widgetResizable=True)
    page.setFrameShape(QScrollArea.Shape.NoFrame)
    page.setAccessibleName(name)
    page.setWidget(panel)
    return page


CASE_SCOPES = {
    "one": ("this case", "Only the case on screen"),
    "all": ("all cases", "All cases of the study"),
}
VIEWS = {"plot": ("plot", "Box plots"), "table": ("table", "Medians with quartiles")}
REFERENCES = {
    "truth": ("truth", "Against the ground truth"),
    "raters": ("raters", "Against each rater. Every consensus includes all raters"),
}
NO_COMPARISON = "Tick methods and press Compare to see how they differ on these masks."
METHODS_WIDTH = 222
ICON = QSize(18, 12)


class MethodsPanel(QWidget):
    """Choice of methods to compare, and the results beside it.

    `methods`: title and one-sentence description of each method. `figures`: measures for the comparison.
    `ticked`: initially selected methods.
    """

    requested = Signal(object, str)  # methods, and "one" for the case on screen or "all"
    cancelled = Signal()
    view_changed = Signal()  # another measure or reference was chosen
    outlines_toggled = Signal(bool)  # whether to draw the consensuses of the methods over the image

    def __init__(
        self, methods: Mapping[str, tuple[str, str]], figures: Mapping[str, str], ticked: Sequence[str]
    ) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.ticks = {name: QCheckBox(title) for name, (title, _) in methods.items()}
        self._numbers = {name: number for number, name in enumerate(methods)}
        for name, tick in self.ticks.items():
            tick.setToolTip(plain_tip(methods[name][1]))
            tick.setChecked(name in ticked)
            tick.toggled.connect(self._on_ticked)
        self.scope = ModeSwitch(CASE_SCOPES)
        self.button = QPushButton("Compare")
        self.label = ElidedLabel("", "small")
        self.outlines = QCheckBox("Show outlines")
        self.outlines.setToolTip(
            plain_tip("Draw the consensuses of the ticked methods instead of the raters' outlines")
        )
        self.outlines.setEnabled(False)
        self.plot = ChartPanel("Methods", NO_COMPARISON)
        self.table = ComparisonTable((), NO_COMPARISON, subject="method")
        self.table.header.set_title("Methods")
        self.figure = ChoiceBox("Reference for the comparison", figures, letters=9)
        self.reference, self.view = ModeSwitch(REFERENCES), ModeSwitch(VIEWS)
        self.export = QPushButton("CSV…")
        self.export.setToolTip(plain_tip("Save all values of all methods, cases and raters as a table"))
        theme.set_role(self.export, "link")
        self.export.setEnabled(False)
        self._all: PlotTable | None = None
        self._pages = stacked(self.plot, self.table)
        self._busy = False
        self._lay_out()
        self.setFocusProxy(self.button)
        self.button.clicked.connect(self._on_clicked)
        self.export.clicked.connect(self._on_export)
        self.view.chosen.connect(self._on_view)
        self.figure.currentIndexChanged.connect(self._on_view)
        self.reference.chosen.connect(self._on_view)
        self.outlines.toggled.connect(self._on_outlines)
        theme.notifier().changed.connect(self._show_colours)

    def _lay_out(self) -> None:
        top = horizontal(self.button, (self.label, 1), spacing=6)
        inner = QWidget()
        area = scroll_area(inner)
        vertical(
            top,
            self.scope,
            self.outlines,
            *self.ticks.values(),
            STRETCH,
            inside=inner,
            margins=(12, 8, 8, 8),
            spacing=4,
        )
        set_lengths(area, width=METHODS_WIDTH)
        choices = horizontal(
            (self.figure, 1), self.reference, self.view, self.export, margins=(8, 6, 8, 0), spacing=6
        )
        right = vertical(choices, (self._pages, 1))
        horizontal(area, (right, 1), inside=self)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the selected methods."""
        return tuple(name for name, tick in self.ticks.items() if tick.isChecked())

    def show_boxes(self, chart: Chart | None) -> None:
        """Show the values of the methods, or that there are none."""
        self.plot.header.set_title(chart.title if chart else "Methods")
        self.plot.set_chart(chart)

    @property
    def measure(self) -> str:
        """Name of the measure shown in the plot."""
        return str(self.figure.key)

    def number(self, method: str) -> int:
        """Return the number of a method, which determines its colour."""
        return self._numbers[method]

    def set_busy(self, busy: bool) -> None:
        """Show whether methods are running; the button then cancels."""
        self._busy = busy
        self.button.setText("Cancel" if busy else "Compare")
        self.label.setText("")
        self._on_ticked()

    def set_compared(self, table: PlotTable | None, *, truth: bool) -> None:
        """Show the results: a table of all measures, or None for no results."""
        self._all = table
        self.export.setEnabled(table is not None)
        self.reference.set_available("truth", truth or table is None, "No case has ground truth")
        if table is not None and not truth:
            self.reference.set_mode("raters")
        if table is None:
            self.set_outlines_available(False)

    def set_outlines_available(self, available: bool) -> None:
        """Enable the outlines if the case on screen was compared."""
        self.outlines.setEnabled(available)
        if not available:
            self.outlines.setChecked(False)

    def _on_view(self) -> None:
        self._pages.setCurrentIndex(int(self.view.mode == "table"))
        self.figure.setEnabled(self.view.mode == "plot")
        self.view_changed.emit()

    def _on_ticked(self) -> None:
        self.button.setEnabled(self._busy or bool(self.chosen))
        if self.outlines.isChecked():
            self.outlines_toggled.emit(True)

    def _on_outlines(self, on: bool) -> None:
        self._show_colours()
        self.outlines_toggled.emit(on)

    def _show_colours(self) -> None:
        """Colour the check boxes as a legend while outlines are drawn."""
        for name, tick in self.ticks.items():
            tick.setIconSize(ICON)
            tick.setIcon(_sample(self._numbers[name]) if self.outlines.isChecked() else QIcon())

    def _on_clicked(self) -> None:
        if self._busy:
            self.cancelled.emit()
        else:
            self.requested.emit(self.chosen, self.scope.mode)

    def _on_export(self) -> None:
        if self._all is not None:
            self.plot.menu.leaving.emit(SavedContent("methods", ".csv", self._all))


def _sample(number: int) -> QIcon:
    picture = QPixmap(ICON * 2)
    picture.fill(Qt.GlobalColor.transparent)
    with QPainter(picture) as painter:
        painter.scale(2, 2)
        paint_rater(painter, QRectF(0, 0, ICON.width(), ICON.height()), number)
    return QIcon(picture)


IMAGE_SCOPES = {
    "one": ("this image", "Only the image on screen"),
    "all": ("all images", "All images with ground truth"),
}
CROWD_TIP = "Measure each method on random subsets of annotators, against the ground truth"


class CrowdSizePanel(FormBesidePlot):
    """Settings for the crowd-size evaluation, and its curves."""

    requested = Signal(object, str)  # settings, and "one" for the image on screen or "all"

    def __init__(self) -> None:
        self.scope, self.plot = ModeSwitch(IMAGE_SCOPES), CrowdSizePlot()
        super().__init__(CrowdSizeSettings, self.plot, CROWD_TIP, self.scope)
        self.button.clicked.connect(self._on_requested)

    def set_curves(self, curves: Sequence[CrowdSizeCurve], facts: str = "") -> None:
        """Show the measured curves, with a sentence on time and settings of the measurement."""
        self.plot.set_curves(curves)
        self.set_facts(facts)

    def _on_requested(self) -> None:
        self.requested.emit(self.form.settings(), self.scope.mode)


NO_FOLDS = (
    "Press Measure to compare all methods on the tasks with known truth: the truths of four fifths are given "
    "to a method, which predicts the others."
)
FOLDS_TIP = "Fuse with every method, once per fold. Takes seconds to minutes"


def _area(value: float, low: float, high: float) -> str:
    interval = f" ({low:.3f} to {high:.3f})" if math.isfinite(low) else ""
    return f"{value:.3f}{interval}"


def _ends(_value: float, low: float, high: float) -> str:
    return f"{low:.3f} to {high:.3f}"


MEASURES = (
    Measure("AUC, all folds", "Predictions of all folds pooled, with DeLong's 95 % interval",
            write=_area),
    Measure("mean of folds", "Mean of the folds' AUC, with Student's 95 % interval", write=_area),
    Measure("folds", "Folds with the lowest and the highest AUC", "none", _ends),
)  # fmt: skip


def _above(plot: QWidget, table: ComparisonTable) -> QSplitter:
    """Place a plot above its table, which is hidden until it has rows."""
    table.hide()
    column = QSplitter(Qt.Orientation.Vertical, handleWidth=1)
    column.addWidget(plot)
    column.addWidget(table)
    column.setSizes([360, 240])
    return column


class FoldsPanel(FormBesidePlot):
    """Cross-validation: form, curves, and a table of methods."""

    def __init__(self) -> None:
        self.curves = CurvesPlot(NO_FOLDS)
        self.table = ComparisonTable(MEASURES, "")
        self.table.header.set_title("Areas under the ROC curves")
        super().__init__(FoldedSettings, _above(self.curves, self.table), FOLDS_TIP)
        self.setAccessibleName("Cross-validation")

    def show_curves(self, curves: Sequence[Curve], rows: Sequence[ComparisonRow], text: str = "") -> None:
        """Show the measured curves."""
        self.curves.set_curves(curves)
        self.table.set_rows(tuple(rows), text)
        self.table.setVisible(bool(rows))


COST_TIP = "Fuse fewer votes per task, and replay the votes with the stop rule. Takes seconds to minutes"


def _count(value: float, _low: float, _high: float) -> str:
    return f"{value:.1f}"


def _percent(value: float, _low: float, _high: float) -> str:
    return percent(value)


STOPS = (
    Measure("votes", "Votes per task until it stopped, mean over all tasks", "none", _count),
    Measure("saved", "Share of the votes that stopping would have saved", "none", _percent),
    Measure("stopped", "Share of the tasks that stopped", "none", _percent),
    Measure(
        "error",
        "Error of the stopped gold tasks, with Wilson's 95 % interval; not known without gold "
        "tasks: votes do not reveal mistakes that annotators share",
        "none",
    ),
)


NO_COST = (
    "Press Measure to see how accurate fewer votes per task would have been, and what stopping tasks with "
    "enough votes would have saved."
)


class CostPanel(FormBesidePlot):
    """Accuracy by votes per task, and the votes that the stop rule would have saved."""

    def __init__(self) -> None:
        self.curve = ChartPanel("Accuracy against votes", NO_COST)
        self.table = ComparisonTable(STOPS, "", subject="stop at")
        self.table.header.set_title("Stopping tasks with enough votes", "error on gold tasks")
        super().__init__(CostSettings, _above(self.curve, self.table), COST_TIP)
        self.setAccessibleName("Cost")

    def show_cost(self, lines: Sequence[CourseLine], rows: Sequence[ComparisonRow]) -> None:
        """Show the measurements, or none."""
        down = f"accuracy, {lines[0].title}" if len(lines) == 1 else "accuracy"  # one line has no legend
        chart = course_chart(lines, "Accuracy against votes", "votes per task, mean", down, unit=False)
        self.curve.set_chart(chart if lines else None)
        self.table.set_rows(tuple(rows), "")
        self.table.setVisible(bool(rows))


class TrustPanel(QWidget):
    """Calibration plot beside scrollable sentences.

    `axes`: titles of the horizontal and the vertical axis. `nothing`: message for the empty state.
    """

    seen = Signal()  # the panel became visible

    def __init__(self, axes: tuple[str, str], nothing: str) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.plot = CalibrationPlot(axes=axes, nothing=nothing)
        self._label = plain_label("", "second", wrap=True, selectable=True)
        self._label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._label.setContentsMargins(0, 2, 10, 4)
        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._scroll.setAccessibleName("How far to trust this")
        self._scroll.setWidget(self._label)
        self._beside = QWidget()
        vertical(
            Header("How far to trust this"),
            (self._scroll, 1),
            inside=self._beside,
            margins=(4, 8, 4, 4),
            spacing=2,
        )
        self._beside.hide()
        horizontal((self.plot, 5), (self._beside, 4), inside=self)

    @property
    def text(self) -> str:
        """The sentences shown."""
        return self._label.text()

    def show_trust(self, lines: Sequence[CalibrationLine], text: str) -> None:
        """Show calibrations and their summary; without either, the text of the empty state."""
        self.plot.set_lines(lines)
        self.plot.setVisible(bool(lines) or not text)
        self._label.setText(text)
        self._beside.setVisible(bool(text))

    def showEvent(self, event: QShowEvent) -> None:
        """Emit that the panel became visible."""
        super().showEvent(event)
        self.seen.emit()
