"""Comparison of runs case by case, and of the run on screen, with the truth or the raters' majority vote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPushButton

from raterscope.algorithms.annotators.statistics import wilcoxon
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, compare_with_reference
from raterscope.algorithms.masks.voting import majority
from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.jobs import Job
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces import run_history
from raterscope.app.workspaces.masks.scene import Scene, length_unit, unit_of
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPanel
from raterscope.text import UNKNOWN, counted, decimals, estimate, figure
from raterscope.widgets import theme
from raterscope.widgets.layouts import Stretch, horizontal, vertical
from raterscope.widgets.parts import ChoiceBox, ElidedLabel
from raterscope.widgets.tables.comparison_tables import (
    NOT_KNOWN,
    ComparisonRow,
    ComparisonTable,
    Figures,
    Measure,
)

MIN_CASES = 6
"""Minimum number of cases for a two-sided signed-rank test: with fewer, p cannot be below 0.05."""

_LOW, _HIGH = 5, 95
"""Percentiles of the cases at the bounds of a figure's interval."""

_REFERENCE = "\n"
"""Key of the reference among the runs, whose keys are numbers."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """Plan of a comparison."""

    runs: tuple[RunEntry, ...]
    images: tuple[int, ...]  # cases that all runs include and that have a reference
    shared: int  # number of cases that all runs include
    truth: bool  # whether the reference is the truth, else the raters' vote
    excluded: frozenset[str]  # raters without a vote: excluded ones and programs


@dataclass(frozen=True, eq=False)
class Case:
    """Input of the comparison for one case: masks of the runs by structure, and the reference."""

    image: int
    grid: Grid
    runs: tuple[Mapping[str, MaskRecord], ...]  # by structure
    # by structure: the truth, or the masks of all raters in the majority vote
    reference: Mapping[str, Mapping[str, MaskRecord]]
    truth: bool


@dataclass(frozen=True, eq=False)
class Measured:
    """One structure of one case: every run against the reference."""

    image: int
    structure: str
    grid: Grid
    compared: tuple[Comparison, ...]


@dataclass(frozen=True, eq=False)
class Summary:
    """Figures over cases."""

    cases: int
    # length, volume: units: "mm" and "ml"; empty if cases differ
    length: str
    volume: str
    # for each run (value, low, high) of Dice, HD95, Hausdorff distance, mean surface distance and volume
    # difference: the mean over the cases with the 5th and 95th percentiles; then the p value of its Dice
    # against that of the first run. A case in which a figure is not finite for some run is omitted for all.
    figures: tuple[tuple[Figures, ...], ...]
    counted: tuple[int, ...]  # number of cases of each of the first five figures


def compare_runs(runs: Sequence[int], study: Study, watch: Watch) -> tuple[Plan, tuple[Measured, ...]]:
    """Measure runs over the cases that all of them include, one case after the other to save memory."""
    plan = make_plan(runs, study, watch)
    measured: list[Measured] = []
    cases = len(plan.images)
    for done, image in enumerate(plan.images):
        step = _with_case_name(watch, done, cases)
        measured += measure(read_case(image, plan, study, part(step, 0.0, 0.5)), part(step, 0.5, 1.0))
    return plan, tuple(measured)


def _with_case_name(watch: Watch, done: int, cases: int) -> Watch:
    """Return a watch that reports progress with the number of the case."""
    step = part(watch, done / cases, (done + 1) / cases)

    def report(fraction: float, text: str, **more: Any) -> None:  # noqa: ARG001 - as of every watch
        step(fraction, f"measuring case {done + 1} of {cases}", **more)

    return report


def make_plan(runs: Sequence[int], study: Study, watch: Watch) -> Plan:
    """Find the cases that all runs include: those with truth, or all if none has truth."""
    watch(0.0, "looking for cases that all runs have")
    entries = tuple(study.runs.get(number) for number in runs)
    common = set.intersection(*(set(run.items) for run in entries)) if entries else set()
    excluded = frozenset(study.review_state().apart)
    marked, true = set(), set()
    for mask in mask_entries(study):
        if mask.annotator is None:
            true.add((mask.image, mask.structure))
        elif mask.annotator not in excluded:
            marked.add((mask.image, mask.structure))
    drawn = {(image, structure) for image, structure in marked if image in common}
    with_truth = drawn & true
    images = {image for image, _ in with_truth or drawn}
    ordered = tuple(entry.id for entry in study.images() if entry.id in images)
    return Plan(entries, ordered, len(common), bool(with_truth), excluded)


def read_case(image: int, plan: Plan, study: Study, watch: Watch) -> Case:
    """Read the masks of a case; the results of the runs are read one by one to save memory."""
    runs = []
    for done, run in enumerate(plan.runs):
        watch(done / (len(plan.runs) + 1), "reading results")
        result = study.runs.result(run.id, image)
        fusions = () if result is None else result.fusions
        runs.append(
            {fusion.structures[0]: MaskRecord(fusion.origin, fusion.mask[0], None) for fusion in fusions}
        )
    reference = {}
    for structure in set.intersection(*(set(run_masks) for run_masks in runs)):
        masks = read_masks(study, image, structure, truth=plan.truth)
        reference_masks = {
            name: mask for name, mask in masks.items() if plan.truth or name not in plan.excluded
        }
        if reference_masks:
            reference[structure] = reference_masks
    return Case(image, study.image(image).lattice, tuple(runs), reference, plan.truth)


def measure(case: Case, watch: Watch) -> tuple[Measured, ...]:
    """Measure every run on every structure that all of them include."""
    measured = []
    for (structure, masks), step in steps_of(watch, sorted(case.reference.items())):
        reference = next(iter(masks.values())) if case.truth else _vote(masks, case.grid, structure)
        records = [run[structure] for run in case.runs]
        compared = _against(records, reference, case.grid, structure, step)
        measured.append(Measured(case.image, structure, case.grid, compared))
    return tuple(measured)


def measure_one(mask: MaskRecord, truth: MaskRecord, grid: Grid, structure: str, watch: Watch) -> Comparison:
    """Measure one mask against the truth."""
    return _against([mask], truth, grid, structure, watch)[0]


def in_words(compared: Comparison, grid: Grid) -> str:
    """Describe a comparison: "Dice 0.98, HD95 1.2 mm, +0.3 ml"."""
    if not math.isfinite(compared.dice):
        return "both are empty"
    unit = unit_of(grid)
    away = f"HD95 {compared.hausdorff_95:.1f} {length_unit(grid)}"
    if not math.isfinite(compared.hausdorff_95):
        away = "one of the two is empty"
    difference = _amount(compared.volume_difference, unit)
    digits = 0 if abs(difference) >= 100 else 1 if abs(difference) >= 0.1 else 3
    return f"Dice {figure(compared.dice)}, {away}, {signed(difference, digits)} {unit}"


def summarize(measured: Sequence[Measured], structure: str | None = None) -> Summary:
    """Average the figures of cases.

    `measured`: one or more, all of the same runs. `structure`: by default all; the figure of a case is then
    the mean over its structures.
    """
    selected = [case for case in measured if structure in (None, case.structure)]
    lengths = {length_unit(case.grid) for case in selected}
    volumes = {unit_of(case.grid) for case in selected}
    cases: dict[int, list[Values]] = {}
    for case in selected:
        unit = unit_of(case.grid)
        table = [
            (c.dice, c.hausdorff_95, c.hausdorff, c.mean_surface_distance, _amount(c.volume_difference, unit))
            for c in case.compared
        ]
        cases.setdefault(case.image, []).append(np.array(table))
    values = np.stack([np.mean(tables, axis=0) for tables in cases.values()])  # (cases, runs, measures)
    if len(lengths) > 1:
        values[:, :, 1:4] = np.nan
    if len(volumes) > 1:
        values[:, :, 4] = np.nan
    finite = np.isfinite(values).all(axis=1)
    figures = []
    for run in range(values.shape[1]):
        row = [_over_cases(values[finite[:, column], run, column]) for column in range(5)]
        dice = values[finite[:, 0], :, 0]
        tested = run > 0 and len(dice) >= MIN_CASES
        p_value = wilcoxon(dice[:, run], dice[:, 0]).p_value if tested else math.nan
        figures.append((*row, (p_value, math.nan, math.nan)))
    return Summary(
        cases=len(cases),
        length=lengths.pop() if len(lengths) == 1 else "",
        volume=volumes.pop() if len(volumes) == 1 else "",
        figures=tuple(figures),
        counted=tuple(finite.sum(axis=0).tolist()),
    )


def signed(value: float, digits: int) -> str:
    """Format a difference with its sign; 0 has none."""
    text = f"{value:+,.{digits}f}"
    return text if text.strip("+-0.,") else text[1:]


def _against(
    records: Sequence[MaskRecord], reference: MaskRecord, grid: Grid, structure: str, watch: Watch
) -> tuple[Comparison, ...]:
    by_number = {str(number): record for number, record in enumerate(records)}
    masks = assemble(by_number | {_REFERENCE: reference}, grid, structure, margin=0.0)
    return compare_with_reference(masks.without({_REFERENCE}), masks.values[-1] > 0.5, watch=watch)


def _vote(masks: Mapping[str, MaskRecord], grid: Grid, structure: str) -> MaskRecord:
    vote = majority(assemble(masks, grid, structure, margin=0.0))
    return MaskRecord(vote.origin, vote.mask[0], None)


def _over_cases(values: Values) -> Figures:
    if not len(values):
        return NOT_KNOWN
    if len(values) == 1:
        return float(values[0]), math.nan, math.nan
    low, high = np.percentile(values, (_LOW, _HIGH))
    return float(values.mean()), float(low), float(high)


def _amount(volume_ml: float, unit: str) -> float:
    return volume_ml if unit == "ml" else 1000 * volume_ml


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
