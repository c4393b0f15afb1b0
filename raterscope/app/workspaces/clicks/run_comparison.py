"""Runs compared with ground truth: table and curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDoubleSpinBox, QStackedWidget

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.evaluation import RADIUS, Curves, curves
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.clicks.evaluation import Accuracy, measure_runs
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.study.state import LARGEST_RADIUS
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPanel
from raterscope.app.workspaces.run_history import run_title
from raterscope.figures.evaluation import Curve
from raterscope.text import counted
from raterscope.widgets.figures.chart_figure import ChartPanel
from raterscope.widgets.figures.evaluation_plots import NO_CURVES, CurvesPlot
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.parts import ElidedLabel
from raterscope.widgets.tables.comparison_table import ComparisonRow, ComparisonTable, Measure
from raterscope.widgets.theme import set_lengths

NAN = float("nan")
NARROW = 290
"""Below this width the radius is hidden, for the words of the switch."""
PAGES = {
    "runs": ("runs", "Several runs on all images with ground truth"),
    "roc": ("ROC", "Sensitivity over the false positive rate of the run and the image on screen"),
    "precision-recall": ("PR", "Precision over sensitivity of the run and the image on screen"),
}
COMPARE = "Tick two or more runs under Fuse and press Compare"
IMPORT = {"runs": f"{COMPARE}; import ground truth to measure them.", "curves": NO_CURVES}
"""Texts of empty pages if no image has ground truth."""


def _whole(value: float, _low: float, _high: float) -> str:
    return counted(int(value))


MEASURES = (
    Measure("detections", "Spots that the run detects", "none", _whole),
    Measure("sensitivity", "Share of the known structures that were found"),
    Measure("precision", "Share of the detections that are known structures"),
    Measure("F0.5", "Sensitivity and precision in one, precision weighing double"),
    Measure("F1", "Sensitivity and precision in one"),
    Measure("F2", "Sensitivity and precision in one, sensitivity weighing double"),
    Measure("ROC area", "Probability that a structure ranks above an artefact"),
)


class RunComparison(ClicksPanel):
    """Comparison of runs with imported truth, within the matching radius of the study."""

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._drawing, self._measuring = LatestTask(), LatestTask()
        self._runs: tuple[int, ...] = ()
        self._has_truth = False
        """Whether any image has ground truth."""
        self.pages = ModeSwitch(PAGES)
        self.radius = QDoubleSpinBox()
        self.radius.setRange(0.1, LARGEST_RADIUS)
        self.radius.setDecimals(1)
        self.radius.setValue(RADIUS)
        self.radius.setSuffix(" px")
        self.radius.setKeyboardTracking(False)
        set_lengths(self.radius, width=76)
        self.radius.setToolTip(
            "A detection matches a true position within this radius, one to one; reports use it too"
        )
        self.radius.setAccessibleName("Matching radius in pixels")
        self.radius.valueChanged.connect(self._on_radius_set)
        self.table = ComparisonTable(MEASURES, IMPORT["runs"])
        self.table.run_chosen.connect(self.run_chosen)
        self.plot = CurvesPlot()
        self._stack = QStackedWidget()
        for page in (self.table, self.plot):
            self._stack.addWidget(page)
        self.plot.header.hide()  # the switch names it; `_summary` shows the rest of its header
        self._summary = ElidedLabel("", "small")
        self._summary.setAlignment(Qt.AlignmentFlag.AlignRight)
        row = horizontal(self.pages, (self._summary, 1), self.radius, margins=(8, 6, 8, 0), spacing=6)
        vertical(row, (self._stack, 1), inside=self)
        self.pages.chosen.connect(self._on_page)
        core.document.changed.connect(self._on_changed)
        core.document.radius_changed.connect(self._on_radius)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._on_scene)

    def _on_scene(self) -> None:
        """Draw the curves of another image or run, or none."""
        self._draw_curves()
        self._show_missing()

    def compare(self, runs: Sequence[int]) -> None:
        """Measure runs on all images with ground truth, and show the table."""
        self.pages.set_mode("runs")
        self._measure(runs)

    def _measure(self, runs: Sequence[int]) -> None:
        self._runs = tuple(runs)
        work = partial(measure_runs, self._runs, self._radius)
        self._measuring.follow(self._document.read_beside("Comparing runs", work), self._on_measured)

    def forget(self) -> None:
        """Drop the comparison: another study is open."""
        self._measuring.cancel()
        self._runs = ()
        self.table.set_rows(())
        self._has_truth = False
        self._show_radius()
        self._show_missing()
        self._look_for_truth()

    def _on_changed(self) -> None:
        """Check again for ground truth after a change of the study."""
        self._show_radius()
        self._look_for_truth()

    def _look_for_truth(self) -> None:
        contents = self._document.contents
        if contents is not None:
            job = self._document.ask("Looking for ground truth", _any_truth)
            job.finished.connect(partial(self._on_truth, contents.path))

    def _on_truth(self, study: Path, has_truth: bool) -> None:
        contents = self._document.contents
        if contents is not None and contents.path == study:
            self._has_truth = has_truth
            self._show_missing()

    def _show_missing(self) -> None:
        """Show on each empty page what is missing."""
        if not self._has_truth:
            words = IMPORT
        else:
            has_truth = self._session.shown and len(self._session.scene.truth) > 0
            words = {
                "runs": f"{COMPARE} to measure them against the ground truth.",
                "curves": "Press Fuse (F5) to see the curves of this image."
                if has_truth
                else "This image has no ground truth. Import some to see its curves.",
            }
        self.table.set_nothing(words["runs"])
        self.plot.set_nothing(words["curves"])

    def _on_page(self, name: str) -> None:
        self._stack.setCurrentWidget(self.table if name == "runs" else self.plot)
        if name != "runs":
            self.plot.set_kind(name)
        self._update_text()

    def _update_text(self) -> None:
        """Show the summary of the plot beside the switch."""
        page = self._stack.currentWidget()
        words = page.header.words()[1] if isinstance(page, ChartPanel) and page.filled else ""
        room = self.pages.sizeHint().width() + self.radius.width() + 90
        self._summary.setText(words if self.width() >= room else words.rpartition(" ")[2])
        self.radius.setVisible(self.width() >= NARROW)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the summary to the room that there is."""
        super().resizeEvent(event)
        self._update_text()

    def _draw_curves(self) -> None:
        self._drawing.cancel()
        scene = self._session.scene if self._session.shown else None
        fusion, run = (None, None) if scene is None else (scene.fusion, scene.run)
        if scene is None or fusion is None or run is None or not len(scene.truth):
            self.plot.set_curves(())
            self._update_text()
            return
        work = partial(_curves, fusion, scene.truth, self._radius)
        job = self._jobs.start("Drawing curves", work, quiet=True)
        self._drawing.follow(job, partial(self._on_curves, run_title(run)), failed=self.refused.emit)

    def _on_curves(self, title: str, drawn: Curves) -> None:
        curve = Curve(
            title=title,
            false_positive_rate=drawn.false_positive_rate,
            true_positive_rate=drawn.sensitivity,
            recall=drawn.sensitivity,
            precision=drawn.precision,
            area=drawn.roc_area,
            threshold=drawn.threshold,
        )
        self.plot.set_curves((curve,))
        self._update_text()

    @property
    def _radius(self) -> float:
        contents = self._document.contents
        return RADIUS if contents is None else contents.matching_radius

    def _show_radius(self) -> None:
        with QSignalBlocker(self.radius):
            self.radius.setValue(self._radius)
        self.radius.setEnabled(self._document.contents is not None)

    def _on_radius_set(self, radius: float) -> None:
        if self._document.contents is not None:
            self._document.set_matching_radius(radius)

    def _on_radius(self) -> None:
        self._show_radius()
        self._draw_curves()
        if self._runs:
            self._measure(self._runs)

    def _on_measured(self, answer: tuple[int, int, tuple[Accuracy, ...]]) -> None:
        positions, images, measured = answer
        if not positions:
            self.refused.emit("There is no ground truth to compare with. Import some first: image, x, y.")
            return
        aside = f"{positions:,} true positions on {images:,} images, within {self._radius:g} px"
        self.table.set_rows(tuple(_row(accuracy) for accuracy in measured), aside)


def _row(accuracy: Accuracy) -> ComparisonRow:
    row = accuracy.row
    values = (
        float(accuracy.detections), row.sensitivity, row.precision, row.f_half, row.f_one, row.f_two,
        accuracy.area,
    )  # fmt: skip
    started = accuracy.run.started.astimezone().strftime("%H:%M")
    return ComparisonRow(
        key=accuracy.run.id,
        title=run_title(accuracy.run),
        words=f"\n{started}, {counted(row.images, 'image')}",
        figures=tuple((value, NAN, NAN) for value in values),
    )


def _curves(fusion: Fusion, truth: FloatArray, radius: float, watch: Watch) -> Curves:
    watch(0.0, "matching")
    return curves(fusion.clustering.mean, fusion.detection.posterior, truth, radius)


def _any_truth(study: Study, watch: Watch) -> bool:
    watch(0.0, "looking for ground truth")
    return study.has_truth()
