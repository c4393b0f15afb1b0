"""Tab Runs: a table of runs compared over cases, and the run on screen against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPushButton

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.method_comparison import MIN_CASES
from raterscope.algorithms.masks.metrics import Comparison
from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Job
from raterscope.app.kinds.masks.run_comparison import (
    Measured,
    Plan,
    Summary,
    compare_runs,
    in_words,
    measure_one,
    signed,
    summarize,
)
from raterscope.app.session import LatestTask
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces import run_history
from raterscope.app.workspaces.masks.scene import Scene
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPanel
from raterscope.text import UNKNOWN, counted, decimals, estimate
from raterscope.widgets import theme
from raterscope.widgets.layouts import Stretch, horizontal, vertical
from raterscope.widgets.parts import ChoiceBox, ElidedLabel
from raterscope.widgets.tables.comparison_tables import (
    ComparisonRow,
    ComparisonTable,
    Measure,
)

NOTHING = (
    "Tick two or more runs under Fuse and press Compare: they are measured against the truth, or against the "
    "raters' majority vote where none is imported."
)
AS_LEFT = (
    "Measured on the run's own result: decisions made before it were held fixed, later decisions are not "
    "included."
)
VOTE = "No truth is imported: measured against the raters' majority vote, which flatters voting."
TITLE = "Comparing runs"


class RunComparison(MasksPanel):
    """Comparison of runs over the cases that all of them include."""

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._task, self._measures_task = LatestTask(), LatestTask()
        self._plan: Plan | None = None
        self._progress = ""
        self._measured: tuple[Measured, ...] = ()
        self._read_out = True
        self._measures_text = ""
        self.label = ElidedLabel("", "small")
        self.structure = ChoiceBox("Structure that is measured", letters=8)
        self.structure.currentIndexChanged.connect(self._summarize)
        self.stop = QPushButton("Stop")
        theme.set_role(self.stop, "link")
        self.stop.clicked.connect(self.forget)
        self.table = ComparisonTable((), NOTHING)
        self.table.header.set_title("Compared")
        self.table.header.row.insertWidget(1, self.structure)
        self.table.run_chosen.connect(self.run_chosen)
        row = horizontal((self.label, 1), self.stop, margins=(12, 4, 12, 0), spacing=8)
        vertical(row, (self.table, 1), Stretch(0), inside=self)
        core.document.changed.connect(self._on_changed)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._clear_measures)
        self.forget()

    # Runs side by side

    def compare(self, runs: Sequence[int]) -> None:
        """Measure runs over the cases that all of them include."""
        self.forget()
        job = self._document.read_beside(TITLE, partial(compare_runs, tuple(runs)), quiet=True)
        self._task.follow(job, self._on_compared, progressed=self._on_progress, failed=self._on_failed)
        self._update_text("looking for cases that all runs have")

    def forget(self) -> None:
        """Drop the comparison, and cancel the current one."""
        self._task.cancel()
        self._plan, self._measured = None, ()
        self._offer(())
        self.table.set_rows(())
        self._update_text("")

    def _on_progress(self, job: Job) -> None:
        self._update_text(job.text)

    def _on_compared(self, compared: tuple[Plan, tuple[Measured, ...]]) -> None:
        plan, measured = compared
        if not measured:
            self.forget()
            problem = "structure in common that could be measured" if plan.images else "case in common"
            remedy = "" if plan.images else "; fuse the same cases with each of them"
            self.refused.emit(f"These runs have no {problem}{remedy}.")
            return
        self._plan, self._measured = plan, measured
        self._update_text("")
        self._offer(tuple(dict.fromkeys(case.structure for case in measured)))
        self._summarize()

    def _summarize(self) -> None:
        if not self._measured or self._progress:
            return
        work = partial(_summarized, self._measured, self.structure.key)
        job = self._jobs.start(TITLE, work, quiet=True)
        job.failed.connect(self.refused)
        self._task.follow(job, self._on_summary, failed=self._on_failed)

    def _on_summary(self, summary: Summary) -> None:
        contents, plan = self._document.contents, self._plan
        if contents is None or plan is None:
            return
        lines_by_run = {line.key: line for line in run_history.run_lines(contents, "masks", None)}
        rows = []
        for run, figures in zip(plan.runs, summary.figures, strict=True):
            if (line := lines_by_run.get(run.id)) is not None:
                started = run.started.astimezone().strftime("%H:%M")
                tip = f"{line.title}, {line.text}. {AS_LEFT}"
                rows.append(ComparisonRow(run.id, line.title, f"\n{started}", figures, tip))
        of_shared = f" of {plan.shared:,}" if summary.cases < plan.shared else ""
        cases = f"{summary.cases:,}{of_shared} case{'' if of_shared == '' and summary.cases == 1 else 's'}"
        against = "against truth" if plan.truth else "by majority vote"
        self.table.set_rows(rows, f"{against}, {cases}", _measures(summary))
        self._update_text("")

    def _on_failed(self, _sentence: str) -> None:
        self.forget()

    def _on_changed(self) -> None:
        """Remove deleted runs from the comparison."""
        contents, plan = self._document.contents, self._plan
        if contents is None or plan is None:
            return
        existing = {run.id for run in contents.runs}
        kept = [index for index, run in enumerate(plan.runs) if run.id in existing]
        if len(kept) == len(plan.runs):
            return
        if self._progress or not kept:
            self.forget()
            return
        self._plan = replace(plan, runs=tuple(plan.runs[index] for index in kept))
        self._measured = tuple(
            replace(case, compared=tuple(case.compared[index] for index in kept)) for case in self._measured
        )
        self._summarize()

    def _offer(self, structures: Sequence[str]) -> None:
        """Offer the choice of a structure, if there are several."""
        with QSignalBlocker(self.structure):
            self.structure.clear()
            self.structure.addItem("all structures", None)
            for name in structures:
                self.structure.addItem(name, name)
        self.structure.setVisible(len(structures) > 1)

    def _update_text(self, progress: str) -> None:
        """Show the progress of the comparison, else the measures of the run on screen."""
        self._progress = progress
        vote = VOTE if self._plan is not None and not self._plan.truth else ""
        self.label.setText(progress or self._measures_text or vote)
        self.label.setVisible(bool(self.label.text()))
        self.stop.setVisible(bool(progress))
        self.table.setVisible(not progress)

    # The run on screen

    def _clear_measures(self) -> None:
        self._measures_task.cancel()
        self._show_measures("")
        self._read_out = True

    def _on_view(self, scene: Scene) -> None:
        """Measure another case, run or structure against the truth, once the panel is visible."""
        self._clear_measures()
        self._read_out = False
        if self.isVisible():
            self._measure_scene(scene)

    def showEvent(self, event: QShowEvent) -> None:
        """Measure the run on screen, if it changed while the panel was hidden."""
        super().showEvent(event)
        if not self._read_out:
            self._measure_scene(self._session.scene)

    def _measure_scene(self, scene: Scene) -> None:
        self._read_out = True
        structure = self._session.part
        fusion = None if self._session.covered else scene.fusion(structure)
        if fusion is None or structure not in scene.truth:
            return
        mask = MaskRecord(fusion.origin, fusion.mask[0], None)
        grid = scene.image.lattice
        work = partial(measure_one, mask, scene.truth[structure], grid, structure)
        job = self._jobs.start("Measuring against truth", work, quiet=True)
        self._measures_task.follow(job, partial(self._on_measured, grid), failed=self.refused.emit)

    def _on_measured(self, grid: Grid, compared: Comparison) -> None:
        self._show_measures(f"Against truth: {in_words(compared, grid)}")

    def _show_measures(self, text: str) -> None:
        self._measures_text = text
        self._update_text(self._progress)


def _summarized(measured: tuple[Measured, ...], structure: str | None, watch: Watch) -> Summary:
    watch(0.0, "comparing")
    return summarize(measured, structure)


def _measures(summary: Summary) -> tuple[Measure, ...]:
    def over(index: int) -> str:
        measured, cases = summary.counted[index], summary.cases
        if measured == cases:
            return f"Mean over {counted(cases, 'case')}; below, the interval that contains nine of ten cases."
        return f"Mean over {measured:,} of {counted(cases, 'case')}; the others have nothing to measure."

    length = f", {summary.length}" if summary.length else ""
    volume = f", {summary.volume}" if summary.volume else ""
    test = (
        "Wilcoxon's signed-rank test, two-sided: whether the run's Dice differs from that of the first run "
        f"over the cases; ties are excluded. From {MIN_CASES} cases on, not "
        "corrected for the number of runs."
    )
    apart = f"95th percentile of how far the outlines lie apart. {over(1)}"
    volume_help = f"How much larger than the reference, below 0 smaller. {over(4)}"
    return (
        Measure("Dice", f"Overlap: 1 where the masks are the same. {over(0)}", "highest", stacked),
        Measure(f"HD95{length}", apart, "lowest", stacked),
        Measure(f"HD{length}", f"Hausdorff distance of the outlines. {over(2)}", "lowest", stacked),
        Measure(f"surface{length}", f"Mean distance of the outlines. {over(3)}", "lowest", stacked),
        Measure(f"volume{volume}", volume_help, "nearest 0", _difference),
        Measure("p", test, "none", p_value_in_words),
    )


def stacked(value: float, low: float, high: float) -> str:
    """Format a figure with the interval of the cases below it."""
    text = estimate(value, low, high)
    return text.replace(" (", "\n").removesuffix(")")


def _difference(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    digits = decimals(low, high)
    text = signed(value, digits)
    if math.isfinite(low) and math.isfinite(high):
        text += f"\n{signed(low, digits)} to {signed(high, digits)}"
    return text


def p_value_in_words(value: float, _low: float, _high: float) -> str:
    """Format a p value."""
    if not math.isfinite(value):
        return UNKNOWN
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
