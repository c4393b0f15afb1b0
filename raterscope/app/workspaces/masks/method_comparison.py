"""Comparison of several methods on the masks of one case, or of all cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import Signal

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.method_comparison import MethodComparison
from raterscope.app.jobs import Job
from raterscope.app.kinds.masks.methods import (
    BASELINE,
    COLUMNS,
    FIGURES,
    REFERENCES,
    ComparedMethods,
    MethodBox,
    compare_cases,
    compared_title,
    load_methods,
    method_boxes,
    method_rows,
    methods_plans,
    store_methods,
)
from raterscope.app.kinds.masks.runs import Inputs, gather, plan_of
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.masks.run_comparison import p_value_in_words, stacked
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPart
from raterscope.figures.description import PlotTable
from raterscope.figures.evaluation import BoxView, box_chart
from raterscope.text import UNKNOWN, counted, duration, with_minus
from raterscope.widgets.painting import rater_colour
from raterscope.widgets.tables.comparison_tables import NOT_KNOWN, ComparisonRow, Figures, Measure
from raterscope.widgets.volume.scene import Outline

TITLE = "Comparing methods"
WIDTH = 1.8


class MethodComparer(MasksPart):
    """Comparison of methods, on request; the study stores the figures, not the masks."""

    refused = Signal(str)
    message = Signal(str)
    outlines_changed = Signal()  # other outlines must be drawn: see `outlines`

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._panel = core.screen.methods
        self._methods: ComparedMethods | None = None
        self._reading, self._task = LatestTask(), LatestTask()
        self._read = False
        panel = self._panel
        panel.requested.connect(self._on_requested)
        panel.cancelled.connect(self._stop)
        panel.view_changed.connect(self._show)
        panel.outlines_toggled.connect(self.outlines_changed)
        core.document.replaced.connect(self.forget)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._offer_outlines)

    def forget(self) -> None:
        """Drop the comparison, and cancel the current one."""
        self._stop()
        self._methods, self._read = None, False
        self._panel.set_compared(None, truth=True)
        self._show()

    def _on_view(self) -> None:
        """Show another case or structure."""
        if not self._read and not self._session.covered:
            self._read = True
            job = self._document.ask("Reading compared methods", load_methods)
            self._reading.follow(job, self._on_kept)
        self._offer_outlines()

    def _offer_outlines(self) -> None:
        self._panel.set_outlines_available(self._comparison_on_screen() is not None)

    def outlines(self) -> list[Outline] | None:
        """Return the outlines of the selected methods on the case on screen; None while they are hidden."""
        comparison = self._comparison_on_screen()
        if comparison is None or not self._panel.outlines.isChecked():
            return None
        chosen = self._panel.chosen
        return [
            Outline(
                f"\n{fit.method}", FUSERS[fit.method].title, rater_colour(self._panel.number(fit.method)),
                fit.mask, fit.origin, WIDTH,
            )
            for fit in comparison.fits if fit.method in chosen and fit.mask is not None and fit.mask.any()
        ]  # fmt: skip

    def _comparison_on_screen(self) -> MethodComparison | None:
        session = self._session
        if self._methods is None or not session.shown or session.covered:
            return None
        name, structure = session.scene.image.name, session.part
        comparisons = (comparison.compared for comparison in self._methods.cases if comparison.name == name)
        matching = (
            comparison
            for comparison in comparisons
            if comparison.structure == structure and comparison.fits[0].mask is not None
        )
        return next(matching, None)

    def _on_requested(self, methods: Sequence[str], scope: str) -> None:
        if not self._session.shown or self._session.covered:
            self.refused.emit("Open a study of masks first.")
            return
        on_screen = self._session.scene.image.id
        images = [on_screen] if scope == "one" else [item.id for item in self._document.items("masks")]
        plans = [self._plan_of_run(plan) for plan in methods_plans(methods)]
        self._reading.cancel()
        self._panel.set_busy(True)
        self._panel.label.setText("reading the masks")
        job = self._document.ask("Reading masks", partial(gather, images))
        self._task.follow(job, partial(self._on_read, plans), stopped=partial(self._panel.set_busy, False))

    def _plan_of_run(self, plan: MaskPlan) -> MaskPlan:
        """Return the run's plan for the algorithm of the run on screen, else the default plan."""
        run = self._session.scene.run
        if run is None or run.algorithm != plan.algorithm:
            return plan
        return plan_of(run) or plan

    def _on_read(self, plans: Sequence[MaskPlan], inputs: Inputs) -> None:
        job = self._jobs.start(TITLE, partial(compare_cases, inputs, plans), costly=True)
        self._task.follow(
            job, self._on_compared, progressed=self._on_progress, failed=self.refused.emit,
            stopped=partial(self._panel.set_busy, False),
        )  # fmt: skip

    def _stop(self) -> None:
        self._reading.cancel()
        self._task.cancel()
        self._panel.set_busy(False)

    def _on_progress(self, job: Job) -> None:
        self._panel.label.setText(job.text)

    def _on_compared(self, methods: ComparedMethods) -> None:
        self._panel.set_busy(False)
        if not methods.cases:
            self.refused.emit(methods.problems[0])
            return
        self._take(methods)
        self._document.ask("Keeping compared methods", partial(store_methods, methods))
        if methods.problems:
            more_text = f" ({len(methods.problems) - 1} more like it)" if len(methods.problems) > 1 else ""
            self.message.emit(f"{methods.problems[0]}{more_text}")

    def _on_kept(self, methods: ComparedMethods | None) -> None:
        if methods is not None and self._methods is None:
            self._take(methods)

    def _take(self, methods: ComparedMethods) -> None:
        self._methods = methods
        self._panel.set_compared(PlotTable(COLUMNS, partial(method_rows, methods)), truth=methods.truth)
        self._offer_outlines()
        self._show()
        self.outlines_changed.emit()

    def _show(self) -> None:
        methods, panel = self._methods, self._panel
        if methods is None:
            panel.show_boxes(None)
            panel.table.set_rows(())
            return
        figure, reference = panel.measure, panel.reference.mode
        alone = figure in ("bound", "seconds")
        box_list = method_boxes(methods, figure, reference)
        views = [
            BoxView(
                compared_title(box.name, box.rater), box.values, faint=box.rater, starred=box.p_value < 0.05
            )
            for box in box_list
        ]
        title = FIGURES[figure] if alone else f"{FIGURES[figure]} {REFERENCES[reference]}"
        unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, methods.unit)
        star = f", * p < 0.05 against {BASELINE}" if any(view.starred for view in views) else ""
        cases = f"{counted(len(methods.cases), 'case')}{star}"
        panel.show_boxes(box_chart(views, title, unit, cases, logarithmic=figure == "seconds"))
        panel.table.set_rows(
            _rows(methods, reference), f"{REFERENCES[reference]}, {cases}", _measures(methods)
        )


def _rows(methods: ComparedMethods, reference: str) -> list[ComparisonRow]:
    tables = [
        {(box.name, box.rater): box for box in method_boxes(methods, figure, reference)} for figure in FIGURES
    ]
    names = dict.fromkeys(key for table in tables for key in table)
    lines = []
    for name, rater in names:
        figures = [_figures(table.get((name, rater))) for table in tables]
        p_value = tables[0][name, rater].p_value if (name, rater) in tables[0] else math.nan
        lines.append(
            ComparisonRow(name, compared_title(name, rater), "", (*figures, (p_value, math.nan, math.nan)))
        )
    return lines


def _figures(box: MethodBox | None) -> Figures:
    if box is None:
        return NOT_KNOWN
    low, middle, high = np.percentile(box.values, (25, 50, 75)).tolist()
    return (middle, low, high) if len(box.values) > 1 else (middle, math.nan, math.nan)


def _measures(methods: ComparedMethods) -> tuple[Measure, ...]:
    unit = f", {methods.unit}" if methods.unit else ""
    quartiles = "Median; quartiles below."
    return (
        Measure("Dice", f"Overlap: 1 where the masks are the same. {quartiles}", "highest", stacked),
        Measure(f"HD95{unit}", f"95th percentile of their distance. {quartiles}", "lowest", stacked),
        Measure(f"HD{unit}", f"Hausdorff distance of the outlines. {quartiles}", "lowest", stacked),
        Measure(f"surface{unit}", f"Mean distance of the outlines. {quartiles}", "lowest", stacked),
        Measure("bound", "Lower bound less the highest, nats; of the robust models alone, whose bounds are "
                f"comparable. {quartiles}", "highest", _integer),
        Measure("time", f"Seconds of the fusion alone. {quartiles}", "lowest", _seconds),
        Measure("p", f"Wilcoxon's signed-rank test of Dice against {BASELINE}, two-sided, from 6 cases on; "
                "not corrected for the number of methods.", "none", p_value_in_words),
    )  # fmt: skip


def _integer(value: float, _low: float, _high: float) -> str:
    return with_minus(f"{value:,.0f}") if math.isfinite(value) else UNKNOWN


def _seconds(value: float, _low: float, _high: float) -> str:
    return duration(value) if math.isfinite(value) else UNKNOWN
