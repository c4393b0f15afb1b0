"""Runs of masks side by side, and the run on screen measured against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison
from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Job
from raterscope.app.session import LatestTask
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces import history_lines
from raterscope.app.workspaces.masks.run_measures import (
    FEWEST_CASES,
    Measured,
    Plan,
    Summary,
    compare_runs,
    in_words,
    measure_one,
    signed,
    summarize,
)
from raterscope.app.workspaces.masks.scene import Scene
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPanel
from raterscope.text.numbers import UNKNOWN, count, decimals, estimate
from raterscope.widgets import theme
from raterscope.widgets.parts import ChoiceBox, ElidedLabel
from raterscope.widgets.tables.comparison_table import ComparisonRow, ComparisonTable, Measure

__all__ = ["RunComparison", "p_value_in_words", "stacked"]

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
    """Measures runs over the cases that all of them have, beside the study."""

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._task, self._standing_task = LatestTask(), LatestTask()
        self._plan: Plan | None = None
        self._progress = ""
        self._measured: tuple[Measured, ...] = ()
        self._read_out = True
        self._standing = ""
        self.words = ElidedLabel("", "small")
        self.structure = ChoiceBox()
        self.structure.setAccessibleName("Structure that is measured")
        self.structure.currentIndexChanged.connect(self._summarize)
        self.stop = QPushButton("Stop")
        theme.set_role(self.stop, "link")
        self.stop.clicked.connect(self.forget)
        self.structure.setMinimumContentsLength(8)
        self.table = ComparisonTable((), NOTHING)
        self.table.header.set_title("Compared")
        self.table.header.row.insertWidget(1, self.structure)
        self.table.run_chosen.connect(self.run_chosen)
        row = QHBoxLayout()
        row.setContentsMargins(12, 4, 12, 0)
        row.setSpacing(8)
        row.addWidget(self.words, 1)
        row.addWidget(self.stop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.table, 1)
        column.addStretch()
        core.document.changed.connect(self._on_changed)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._clear_standing)
        self.forget()

    # Runs side by side

    def compare(self, runs: Sequence[int]) -> None:
        """Measure runs over the cases that all of them have."""
        self.forget()
        job = self._document.read_beside(TITLE, partial(compare_runs, tuple(runs)), quiet=True)
        self._task.follow(job, self._on_compared, progressed=self._on_progress, failed=self._on_failed)
        self._say("looking for cases that all runs have")

    def forget(self) -> None:
        """Drop what was compared or is being measured."""
        self._task.cancel()
        self._plan, self._measured = None, ()
        self._offer(())
        self.table.set_rows(())
        self._say("")

    def _on_progress(self, job: Job) -> None:
        self._say(job.words)

    def _on_compared(self, compared: tuple[Plan, tuple[Measured, ...]]) -> None:
        plan, measured = compared
        if not measured:
            self.forget()
            what = "structure in common that could be measured" if plan.images else "case in common"
            remedy = "" if plan.images else "; fuse the same cases with each of them"
            self.refused.emit(f"These runs have no {what}{remedy}.")
            return
        self._plan, self._measured = plan, measured
        self._say("")
        self._offer(tuple(dict.fromkeys(one.structure for one in measured)))
        self._summarize()

    def _summarize(self) -> None:
        if not self._measured or self._progress:
            return
        work = partial(_summarized, self._measured, self.structure.currentData())
        job = self._jobs.start(TITLE, work, quiet=True)
        job.failed.connect(self.refused)
        self._task.follow(job, self._on_summary, failed=self._on_failed)

    def _on_summary(self, summary: Summary) -> None:
        contents, plan = self._document.contents, self._plan
        if contents is None or plan is None:
            return
        named = {line.key: line for line in history_lines.run_lines(contents, "masks", None)}
        rows = []
        for run, figures in zip(plan.runs, summary.figures, strict=True):
            if (line := named.get(run.id)) is not None:
                started = run.started.astimezone().strftime("%H:%M")
                tip = f"{line.title}, {line.words}. {AS_LEFT}"
                rows.append(ComparisonRow(run.id, line.title, f"\n{started}", figures, tip))
        of = f" of {plan.shared:,}" if summary.cases < plan.shared else ""
        cases = f"{summary.cases:,}{of} case{'' if of == '' and summary.cases == 1 else 's'}"
        against = "against truth" if plan.truth else "by majority vote"
        self.table.set_rows(rows, f"{against}, {cases}", _measures(summary))
        self._say("")

    def _on_failed(self, _sentence: str) -> None:
        self.forget()

    def _on_changed(self) -> None:
        """Leave out runs that were deleted."""
        contents, plan = self._document.contents, self._plan
        if contents is None or plan is None:
            return
        there = {run.id for run in contents.runs}
        left = [place for place, run in enumerate(plan.runs) if run.id in there]
        if len(left) == len(plan.runs):
            return
        if self._progress or not left:
            self.forget()
            return
        self._plan = replace(plan, runs=tuple(plan.runs[place] for place in left))
        self._measured = tuple(
            replace(one, compared=tuple(one.compared[place] for place in left)) for one in self._measured
        )
        self._summarize()

    def _offer(self, structures: Sequence[str]) -> None:
        """Offer structures to be measured alone; one alone is not offered."""
        self.structure.blockSignals(True)
        self.structure.clear()
        self.structure.addItem("all structures", None)
        for name in structures:
            self.structure.addItem(name, name)
        self.structure.blockSignals(False)
        self.structure.setVisible(len(structures) > 1)

    def _say(self, progress: str) -> None:
        """Say how far the measuring is; else how the run on screen stands to the truth."""
        self._progress = progress
        vote = VOTE if self._plan is not None and not self._plan.truth else ""
        self.words.setText(progress or self._standing or vote)
        self.words.setVisible(bool(self.words.text()))
        self.stop.setVisible(bool(progress))
        self.table.setVisible(not progress)

    # The run on screen

    def _clear_standing(self) -> None:
        self._standing_task.cancel()
        self._stand("")
        self._read_out = True

    def _on_view(self, scene: Scene) -> None:
        """Take another case, run or structure: how it stands to the truth is said, once this is on screen."""
        self._clear_standing()
        self._read_out = False
        if self.isVisible():
            self._measure_scene(scene)

    def showEvent(self, event: QShowEvent) -> None:
        """Measure what came while this was hidden."""
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
        self._standing_task.follow(job, partial(self._on_standing, grid), failed=self.refused.emit)

    def _on_standing(self, grid: Grid, compared: Comparison) -> None:
        self._stand(f"Against truth: {in_words(compared, grid)}")

    def _stand(self, words: str) -> None:
        self._standing = words
        self._say(self._progress)


def _summarized(measured: tuple[Measured, ...], structure: str | None, watch: Watch) -> Summary:
    watch(0.0, "comparing")
    return summarize(measured, structure)


def _measures(summary: Summary) -> tuple[Measure, ...]:
    def over(place: int) -> str:
        counted, cases = summary.counted[place], summary.cases
        if counted == cases:
            return f"Mean over {count(cases, 'case')}; below, the interval that holds nine of ten cases."
        return f"Mean over {counted:,} of {count(cases, 'case')}, as elsewhere there is nothing to measure."

    length = f", {summary.length}" if summary.length else ""
    volume = f", {summary.volume}" if summary.volume else ""
    test = (
        "Wilcoxon's signed-rank test, two-sided: whether the run's Dice differs from that of the first run "
        f"over the cases; ties are excluded. From {FEWEST_CASES} cases on, not "
        "corrected for the number of runs."
    )
    apart = f"95th percentile of how far the outlines lie apart. {over(1)}"
    more = f"How much larger than the reference, below 0 smaller. {over(4)}"
    return (
        Measure("Dice", f"Overlap: 1 where the masks are the same. {over(0)}", "highest", stacked),
        Measure(f"HD95{length}", apart, "lowest", stacked),
        Measure(f"HD{length}", f"Hausdorff distance of the outlines. {over(2)}", "lowest", stacked),
        Measure(f"surface{length}", f"Mean distance of the outlines. {over(3)}", "lowest", stacked),
        Measure(f"volume{volume}", more, "nearest 0", _difference),
        Measure("p", test, "none", p_value_in_words),
    )


def stacked(value: float, low: float, high: float) -> str:
    """Write a figure with the interval of the cases beneath it."""
    words = estimate(value, low, high)
    return words.replace(" (", "\n").removesuffix(")")


def _difference(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    places = decimals(low, high)
    words = signed(value, places)
    if math.isfinite(low) and math.isfinite(high):
        words += f"\n{signed(low, places)} to {signed(high, places)}"
    return words


def p_value_in_words(value: float, _low: float, _high: float) -> str:
    """Write a p value."""
    if not math.isfinite(value):
        return UNKNOWN
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
