"""Comparison of runs over cases: against the truth, or without truth against the raters' majority vote."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilcoxon
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.method_comparison import MIN_CASES
from raterscope.algorithms.masks.metrics import Comparison, compare_with_reference
from raterscope.algorithms.masks.voting import majority
from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks
from raterscope.app.study.records import MaskRecord
from raterscope.text import figure, with_minus

_LOW, _HIGH = 5, 95
"""Percentiles of the cases at the bounds of a figure's interval."""

_REFERENCE = "\n"
"""Key of the reference among the runs, whose keys are numbers."""

Figures = tuple[float, float, float]
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
    unit = grid.size_unit
    away = f"HD95 {compared.hausdorff_95:.1f} {grid.length_unit}"
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
    lengths = {case.grid.length_unit for case in selected}
    volumes = {case.grid.size_unit for case in selected}
    cases: dict[int, list[Values]] = {}
    for case in selected:
        unit = case.grid.size_unit
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
    return with_minus(text) if text.strip("+-0.,") else text[1:]


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
        return math.nan, math.nan, math.nan
    if len(values) == 1:
        return float(values[0]), math.nan, math.nan
    low, high = np.percentile(values, (_LOW, _HIGH))
    return float(values.mean()), float(low), float(high)


def _amount(volume_ml: float, unit: str) -> float:
    return volume_ml if unit == "ml" else 1000 * volume_ml
