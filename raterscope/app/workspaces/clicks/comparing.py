"""Runs against known places: one table, and the curves of the run on screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDoubleSpinBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from raterscope.algorithms.clicks.data import FloatArray, Fusion
from raterscope.algorithms.evaluation import Comparison, Curves, compare, curves, evaluate
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Job, Jobs
from raterscope.app.study import RunEntry, Study
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.widgets import theme
from raterscope.widgets.figures import count
from raterscope.widgets.plots.curves_plot import Curve, CurvesPlot
from raterscope.widgets.tables.comparison_table import ComparisonRow, ComparisonTable, Measure

__all__ = ["Comparing"]

RADIUS = 10.0
NAN = float("nan")
NOTHING = "Tick two or more runs under Fuse and press Compare; import known places to measure them by."


def _whole(value: float, _low: float, _high: float) -> str:
    return count(int(value))


MEASURES = (
    Measure("detections", "Spots that the run takes for real", "none", _whole),
    Measure("sensitivity", "Share of the known structures that were found"),
    Measure("precision", "Share of the detections that are known structures"),
    Measure("F0.5", "Sensitivity and precision in one, precision weighing double"),
    Measure("F1", "Sensitivity and precision in one"),
    Measure("F2", "Sensitivity and precision in one, sensitivity weighing double"),
    Measure("ROC area", "Probability that a structure ranks above an artefact"),
)


@dataclass(frozen=True)
class _Measured:
    run: RunEntry
    row: Comparison
    detections: int
    area: float


class Comparing(QWidget):
    """Measures runs against imported truth, within a radius that the expert sets.

    Attributes
    ----------
    plot : CurvesPlot
        The curves of the run on screen, for whoever gives it a place.
    """

    refused = Signal(str)
    run_chosen = Signal(object)

    def __init__(self, document: Document, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._document = document
        self._jobs = jobs
        self._scene: Scene | None = None
        self._generation = 0
        self._job: Job | None = None
        self._runs: tuple[int, ...] = ()
        self.radius = QDoubleSpinBox()
        self.radius.setRange(0.1, 10_000)
        self.radius.setDecimals(1)
        self.radius.setValue(RADIUS)
        self.radius.setSuffix(" px")
        self.radius.setButtonSymbols(QDoubleSpinBox.ButtonSymbols.NoButtons)
        self.radius.setKeyboardTracking(False)
        self.radius.setToolTip("A detection matches a known place within this radius, one to one")
        self.radius.setAccessibleName("Matching radius in pixels")
        self.radius.valueChanged.connect(self._on_radius)
        self.table = ComparisonTable(MEASURES, NOTHING)
        self.table.run_chosen.connect(self.run_chosen)
        self.plot = CurvesPlot()
        words = QLabel("Match within")
        words.setTextFormat(Qt.TextFormat.PlainText)
        row = QHBoxLayout()
        row.setContentsMargins(12, 8, 12, 0)
        row.setSpacing(8)
        row.addWidget(words)
        row.addWidget(self.radius)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.table, 1)

    def show_scene(self, scene: Scene | None) -> None:
        """Take another image or run: its curves are drawn."""
        self._scene = scene
        self._draw_curves()

    def compare(self, runs: Sequence[int]) -> None:
        """Measure runs on all images that have truth."""
        self._runs = tuple(runs)
        if self._job is not None:
            self._job.cancel()
        job = self._document.ask(
            "Comparing runs", partial(_measure, self._runs, self.radius.value()), quiet=False
        )
        self._job = job
        job.finished.connect(self._on_measured)
        job.ended.connect(partial(self._on_ended, job))

    def forget(self) -> None:
        """Drop what was compared: another study."""
        self._runs = ()
        self.table.set_rows(())

    def _draw_curves(self) -> None:
        self._generation += 1
        scene = self._scene
        if scene is None or scene.fusion is None or scene.run is None or not len(scene.truth):
            self.plot.set_curves(())
            return
        work = partial(_curves, scene.fusion, scene.truth, self.radius.value())
        job = self._jobs.start("Drawing curves", work, quiet=True)
        job.finished.connect(partial(self._on_curves, self._generation, scene.run.algorithm.upper()))
        job.failed.connect(self.refused)

    def _on_curves(self, generation: int, title: str, drawn: Curves) -> None:
        if generation == self._generation:
            self.plot.set_curves(
                (
                    Curve(
                        title=title,
                        false_positive_rate=drawn.false_positive_rate,
                        true_positive_rate=drawn.sensitivity,
                        recall=drawn.sensitivity,
                        precision=drawn.precision,
                        area=drawn.roc_area,
                    ),
                )
            )

    def _on_radius(self) -> None:
        self._draw_curves()
        if self._runs:
            self.compare(self._runs)

    def _on_measured(self, answer: tuple[int, int, tuple[_Measured, ...]]) -> None:
        places, images, measured = answer
        if not places:
            self.refused.emit("There is nothing to compare with: import known places (image, x, y) first.")
            return
        aside = f"{places:,} known places on {images:,} images, within {self.radius.value():g} px"
        self.table.set_rows(tuple(_row(one) for one in measured), aside)

    def _on_ended(self, job: Job) -> None:
        if job is self._job:
            self._job = None


def _row(one: _Measured) -> ComparisonRow:
    row = one.row
    values = (
        float(one.detections), row.sensitivity, row.precision, row.f_half, row.f_one, row.f_two, one.area
    )  # fmt: skip
    started = one.run.started.astimezone().strftime("%H:%M")
    return ComparisonRow(
        key=one.run.id,
        title=one.run.algorithm.upper(),
        words=f"{started}, {count(row.images, 'image')}",
        figures=tuple((value, NAN, NAN) for value in values),
    )


def _curves(fusion: Fusion, truth: FloatArray, radius: float, watch: Watch) -> Curves:
    watch(0.0, "matching")
    return curves(fusion.clustering.mean, fusion.detection.posterior, truth, radius)


def _measure(
    runs: Sequence[int], radius: float, study: Study, watch: Watch
) -> tuple[int, int, tuple[_Measured, ...]]:
    truths = {}
    for entry in study.images():
        points = study.truth(entry.id)
        if len(points):
            truths[entry.id] = np.column_stack([points.x, points.y])
    measured = []
    for done, number in enumerate(runs):
        run = study.run(number)
        evaluations, areas = [], []
        for image in run.items:
            watch(done / len(runs), f"comparing run {done + 1} of {len(runs)}")
            fusion = study.result(number, image) if image in truths else None
            if fusion is None:
                continue
            found = fusion.clustering.mean[fusion.detection.detected]
            evaluations.append(evaluate(found, truths[image], radius))
            areas.append(
                curves(fusion.clustering.mean, fusion.detection.posterior, truths[image], radius).roc_area
            )
        if evaluations:
            (row,) = compare({str(number): evaluations})
            known = np.array(areas)[np.isfinite(areas)]
            area = float(known.mean()) if len(known) else NAN
            measured.append(_Measured(run, row, row.true_positive + row.false_positive, area))
    return sum(map(len, truths.values())), len(truths), tuple(measured)
