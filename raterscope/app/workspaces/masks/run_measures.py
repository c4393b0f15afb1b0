"""Measures of runs case by case against the truth, or against the raters' majority vote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, against, wilcoxon
from raterscope.algorithms.masks.voting import majority
from raterscope.algorithms.progress import Watch, part
from raterscope.app.review import fold
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces.masks.regions import length_unit, unit_of
from raterscope.text.numbers import figure
from raterscope.widgets.tables.comparison_table import NOT_KNOWN, Figures

__all__ = [
    "FEWEST_CASES",
    "Measured",
    "Plan",
    "Summary",
    "compare_runs",
    "in_words",
    "measure_one",
    "signed",
    "summarize",
]

FEWEST_CASES = 6
"""For a test of signed ranks: two-sided, fewer cannot fall below 0.05 however they come out."""

_LOW, _HIGH = 5, 95
"""Percentiles of the cases between which the interval of a figure lies."""

_REFERENCE = "\n"
"""In the place of a run's name; no number is one."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """What is to be measured.

    Attributes
    ----------
    runs : tuple of RunEntry
    images : tuple of int
        The cases that all runs have and that there is something to measure by.
    shared : int
        How many cases all runs have.
    truth : bool
        Whether by the truth; else by the raters' vote.
    excluded : frozenset of str
        Raters without a vote.
    """

    runs: tuple[RunEntry, ...]
    images: tuple[int, ...]
    shared: int
    truth: bool
    excluded: frozenset[str]


@dataclass(frozen=True, eq=False)
class Case:
    """What a case is measured from: for each run the masks of its structures, and who they are held against.

    Attributes
    ----------
    image : int
    grid : Grid
    runs : tuple of mapping of structure to MaskRecord
    reference : mapping of structure to masks by name
        The truth alone, or those of all raters who have a vote.
    truth : bool
    """

    image: int
    grid: Grid
    runs: tuple[Mapping[str, MaskRecord], ...]
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
    """Figures over cases.

    Attributes
    ----------
    cases : int
    length, volume : str
        Units: "mm" and "ml"; empty where the cases' differ.
    figures : tuple of tuple of (value, low, high)
        For each run Dice, HD95, Hausdorff distance, mean surface distance, difference of volumes: the mean
        over the cases with the 5th and 95th percentile of these; then the p value of its Dice against that of
        the first run. A case in which a figure is not finite for some run counts for none.
    counted : tuple of int
        Cases that counted for each of the first five.
    """

    cases: int
    length: str
    volume: str
    figures: tuple[tuple[Figures, ...], ...]
    counted: tuple[int, ...]


def compare_runs(runs: Sequence[int], study: Study, watch: Watch) -> tuple[Plan, tuple[Measured, ...]]:
    """Measure runs over the cases that all of them have, one after the other; nothing else is kept."""
    plan = make_plan(runs, study, watch)
    measured: list[Measured] = []
    cases = len(plan.images)
    for done, image in enumerate(plan.images):
        step = _telling(watch, done, cases)
        measured += measure(read_case(image, plan, study, part(step, 0.0, 0.5)), part(step, 0.5, 1.0))
    return plan, tuple(measured)


def _telling(watch: Watch, done: int, cases: int) -> Watch:
    """Tell which case it is, whatever is being done with it."""
    step = part(watch, done / cases, (done + 1) / cases)

    def tell(
        fraction: float,
        words: str,  # noqa: ARG001 - as every watch takes it
        *,
        objective: float | None = None,
        partial: Callable[[], object] | None = None,
    ) -> None:
        step(fraction, f"measuring case {done + 1} of {cases}", objective=objective, partial=partial)

    return tell


def make_plan(runs: Sequence[int], study: Study, watch: Watch) -> Plan:
    """Find the cases that all runs have, of these those with truth, or all where none has."""
    watch(0.0, "looking for cases that all runs have")
    entries = tuple(study.runs.get(number) for number in runs)
    common = set.intersection(*(set(run.items) for run in entries)) if entries else set()
    excluded = frozenset(fold(study.decisions()).excluded)
    marked, true = set(), set()
    for mask in mask_entries(study):
        if mask.annotator is None:
            true.add((mask.image, mask.structure))
        elif mask.annotator not in excluded:
            marked.add((mask.image, mask.structure))
    drawn = {(image, structure) for image, structure in marked if image in common}
    known = drawn & true
    images = {image for image, _ in known or drawn}
    ordered = tuple(entry.id for entry in study.images() if entry.id in images)
    return Plan(entries, ordered, len(common), bool(known), excluded)


def read_case(image: int, plan: Plan, study: Study, watch: Watch) -> Case:
    """Read a case's masks; of the runs' results, read one by one, nothing else is kept."""
    runs = []
    for done, run in enumerate(plan.runs):
        watch(done / (len(plan.runs) + 1), "reading results")
        result = study.runs.result(run.id, image)
        fusions = () if result is None else result.fusions
        runs.append({one.structures[0]: MaskRecord(one.origin, one.mask[0], None) for one in fusions})
    reference = {}
    for structure in set.intersection(*(set(one) for one in runs)):
        found = read_masks(study, image, structure, truth=plan.truth)
        kept = {name: one for name, one in found.items() if plan.truth or name not in plan.excluded}
        if kept:
            reference[structure] = kept
    return Case(image, study.image(image).lattice, tuple(runs), reference, plan.truth)


def measure(case: Case, watch: Watch) -> tuple[Measured, ...]:
    """Measure every run on every structure that all of them have."""
    measured = []
    for done, (structure, masks) in enumerate(sorted(case.reference.items())):
        step = part(watch, done / len(case.reference), (done + 1) / len(case.reference))
        reference = next(iter(masks.values())) if case.truth else _vote(masks, case.grid, structure)
        records = [run[structure] for run in case.runs]
        compared = _against(records, reference, case.grid, structure, step)
        measured.append(Measured(case.image, structure, case.grid, compared))
    return tuple(measured)


def measure_one(mask: MaskRecord, truth: MaskRecord, grid: Grid, structure: str, watch: Watch) -> Comparison:
    """Measure one mask against the truth."""
    return _against([mask], truth, grid, structure, watch)[0]


def in_words(compared: Comparison, grid: Grid) -> str:
    """Say how a mask stands to the truth: "Dice 0.98, HD95 1.2 mm, +0.3 ml"."""
    if not math.isfinite(compared.dice):
        return "both are empty"
    unit = unit_of(grid)
    away = f"HD95 {compared.hausdorff_95:.1f} {length_unit(grid)}"
    if not math.isfinite(compared.hausdorff_95):
        away = "one of both is empty"
    more = _amount(compared.volume_difference, unit)
    places = 0 if abs(more) >= 100 else 1 if abs(more) >= 0.1 else 3
    return f"Dice {figure(compared.dice)}, {away}, {signed(more, places)} {unit}"


def summarize(measured: Sequence[Measured], structure: str | None = None) -> Summary:
    """Put figures of cases together.

    Parameters
    ----------
    measured : sequence of Measured
        At least one, all of the same runs.
    structure : str, optional
        By default all: a case's figure is then the mean over its structures.
    """
    chosen = [one for one in measured if structure in (None, one.structure)]
    lengths, volumes = {length_unit(one.grid) for one in chosen}, {unit_of(one.grid) for one in chosen}
    cases: dict[int, list[Values]] = {}
    for one in chosen:
        unit = unit_of(one.grid)
        table = [
            (
                c.dice,
                c.hausdorff_95,
                c.hausdorff,
                c.mean_surface_distance,
                _amount(c.volume_difference, unit),
            )
            for c in one.compared
        ]
        cases.setdefault(one.image, []).append(np.array(table))
    values = np.stack([np.mean(tables, axis=0) for tables in cases.values()])  # (cases, runs, measures)
    if len(lengths) > 1:
        values[:, :, 1:4] = np.nan
    if len(volumes) > 1:
        values[:, :, 4] = np.nan
    finite = np.isfinite(values).all(axis=1)
    figures = []
    for run in range(values.shape[1]):
        row = [_over_cases(values[finite[:, place], run, place]) for place in range(5)]
        dice = values[finite[:, 0], :, 0]
        tested = run > 0 and len(dice) >= FEWEST_CASES
        p_value = wilcoxon(dice[:, run], dice[:, 0]).p_value if tested else math.nan
        figures.append((*row, (p_value, math.nan, math.nan)))
    return Summary(
        cases=len(cases),
        length=lengths.pop() if len(lengths) == 1 else "",
        volume=volumes.pop() if len(volumes) == 1 else "",
        figures=tuple(figures),
        counted=tuple(finite.sum(axis=0).tolist()),
    )


def signed(value: float, places: int) -> str:
    """Write a difference with its sign; 0 has none."""
    text = f"{value:+,.{places}f}"
    return text if text.strip("+-0.,") else text[1:]


def _against(
    records: Sequence[MaskRecord], reference: MaskRecord, grid: Grid, structure: str, watch: Watch
) -> tuple[Comparison, ...]:
    named = {str(place): record for place, record in enumerate(records)}
    masks = assemble(named | {_REFERENCE: reference}, grid, structure, margin=0.0)
    return against(masks.without({_REFERENCE}), masks.values[-1] > 0.5, watch=watch)


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
