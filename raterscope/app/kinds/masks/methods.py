"""Comparison of several methods on the same cases of masks: tables, box plots and their files.

The measures are those of `method_comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import FloatArray, Masks, MasksError
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.method_comparison import (
    MEASURES,
    MethodComparison,
    MethodFit,
    compare_methods,
    signed_ranks,
)
from raterscope.algorithms.masks.metrics import RaterAgreement
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import format_number, remove_file, write_bytes, write_table
from raterscope.app.kinds.masks.runs import MARGIN, Case, Inputs
from raterscope.app.outcome import attempt
from raterscope.app.study import Study
from raterscope.app.study.masks import assemble
from raterscope.app.study.records import MaskRecord
from raterscope.figures.drawing import PaperChart, sheet
from raterscope.figures.evaluation import BoxView, box_chart
from raterscope.figures.layout import SCREEN
from raterscope.text import counted

BASELINE = "majority"
"""Baseline of the tests, as in the paper."""

FIGURES = {
    "dice": "Dice",
    "hausdorff_95": "HD95",
    "hausdorff": "Hausdorff distance",
    "mean_surface_distance": "mean surface distance",
    "bound": "lower bound less the highest",
    "seconds": "time",
}
"""Figures of the comparison."""

REFERENCES = {"truth": "against the truth", "raters": "among the raters"}

COLUMNS = (
    "image", "structure", "kind", "name", "reference", "dice", "hausdorff95", "hausdorff",
    "mean_surface_distance", "unit", "volume_ml", "lower_bound", "iterations", "converged", "seconds",
)  # fmt: skip

_TRUTH = "\n"
_MAX_RATERS = 12
"""Maximum number of raters with a separate box; more raters share one box."""


@dataclass(frozen=True, eq=False)
class CaseMethods:
    """The methods on one structure of one case; lengths are in its unit, mm or px."""

    name: str
    unit: str
    compared: MethodComparison


@dataclass(frozen=True, eq=False)
class ComparedMethods:
    """Comparison of methods on several cases."""

    methods: tuple[str, ...]  # the requested methods
    cases: tuple[CaseMethods, ...]
    problems: tuple[str, ...] = ()  # failures, a sentence each
    facts: str = ""  # a sentence: time, number of cases and settings

    @property
    def truth(self) -> bool:
        """Whether any case has ground truth."""
        return any(case.compared.truth for case in self.cases)

    @property
    def unit(self) -> str:
        """Unit of lengths; empty if the cases' units differ."""
        units = {case.unit for case in self.cases}
        return units.pop() if len(units) == 1 else ""


@dataclass(frozen=True, eq=False)
class MethodBox:
    """Values of one method, one rater or all raters together, for one figure."""

    name: str
    rater: bool  # whether the values are of raters
    # (V,): finite: one value per case against the truth; per case and rater against the raters
    values: FloatArray
    left_out: int = 0  # number of infinite values (one of both masks is empty)
    # p value of Wilcoxon's signed-rank test of the cases' means against the baseline's; NaN if not tested
    p_value: float = math.nan


def methods_plans(names: Sequence[str], texts: Mapping[str, str] | None = None) -> list[MaskPlan]:
    """Return a plan of each method, with those shared settings that it has.

    Raises `InputError` for a name that is no algorithm.
    """
    wrong = next((name for name in names if name not in FUSERS), None)
    if wrong is not None:
        raise InputError(f"'{plain(wrong)}' is no algorithm for masks; expected {', '.join(FUSERS)}")
    plans = []
    for name in dict.fromkeys(names):
        fields = FUSERS[name].settings.names()
        plans.append(MaskPlan.make(name, {key: text for key, text in (texts or {}).items() if key in fields}))
    return plans


def compared_title(name: str, rater: bool) -> str:
    """Return the title of a compared method, or the name of a rater."""
    return name if rater else FUSERS[name].title


def compare_cases(inputs: Inputs, plans: Sequence[MaskPlan], watch: Watch = silent) -> ComparedMethods:
    """Run methods on every structure of cases; a failing one does not affect the others.

    Nothing is stored. Decided regions are held fixed, as in a fusion. If no case could be compared,
    `problems` of the result states why.
    """
    work = [(name, case, structure) for name, case in inputs.given.items() for structure in case.records]
    results, problems = [], []
    for (name, case, structure), step in steps_of(watch, work):
        step_watch = part(step, 0.0, 1.0, f"{name}: " if len(work) > 1 else "")
        compared, problem, _ = attempt(partial(_compare, case, structure, plans, step_watch))
        if compared is None:
            problems.append(f"{plain(name)}, {plain(structure)}: not compared, {problem}")
            continue
        results.append(CaseMethods(name, case.grid.length_unit, compared))
        problems += [f"{plain(name)}, {method}: {reason}" for method, reason in compared.problems]
    names = tuple(plan.algorithm for plan in plans)
    return ComparedMethods(names, tuple(results), tuple(problems), _facts(plans, len(results)))


def _facts(plans: Sequence[MaskPlan], cases: int) -> str:
    day = datetime.now(UTC).astimezone().date().isoformat()
    settings = "; ".join(f"{FUSERS[plan.algorithm].title}: {plan.settings.in_words()}" for plan in plans)
    return f"Compared {day} on {counted(cases, 'structure')}. Settings: {settings}."


def _compare(case: Case, structure: str, plans: Sequence[MaskPlan], watch: Watch) -> MethodComparison:
    truth = case.truth.get(structure)
    records = dict(case.records[structure])
    if len(records) < 2:
        raise MasksError("there is only one rater: all methods return that mask.")
    if truth is not None:  # the box must include the truth
        records[_TRUTH] = MaskRecord(truth.origin, truth.values > 0.5, None)
    assembled = assemble(
        records, case.grid, structure, margin=MARGIN, regions=case.regions, settled=case.settled,
        check=partial(watch, 0.0, "assembling the masks"),
    )  # fmt: skip
    masks: Masks = assembled if truth is None else assembled.without({_TRUTH})
    return compare_methods(masks, plans, None if truth is None else assembled.values[-1] > 0.5, watch)


def method_boxes(comparison: ComparedMethods, figure: str, reference: str) -> list[MethodBox]:
    """Return the boxes of a plot (Figs. 11, 13, 14 of the robust fusion paper): methods, then raters.

    `figure`: a key of `FIGURES`. `reference`: "truth" or "raters", reference of the masks; time and bound
    have none. Methods without this figure are omitted.
    """
    if figure in ("bound", "seconds"):
        box_list = [MethodBox(name, False, _of_fits(comparison, name, figure)) for name in comparison.methods]
        return [box for box in box_list if len(box.values)]
    if figure not in ("dice", *MEASURES) or (figure != "dice" and not comparison.unit):
        return []
    if reference == "truth":
        return _against_truth(comparison, figure)
    return _among_raters(comparison, figure)


def _against_truth(comparison: ComparedMethods, figure: str) -> list[MethodBox]:
    cases = [case.compared for case in comparison.cases if case.compared.truth]
    if not cases:
        return []
    values: dict[tuple[bool, str], list[float]] = {(False, name): [] for name in comparison.methods}
    several = len({name for case in cases for name in case.annotators}) > _MAX_RATERS
    columns = {name: [math.nan] * len(cases) for name in comparison.methods}
    for index, case in enumerate(cases):
        raters, methods = case.against_truth(figure)
        for fit, value in zip(case.fits, methods.tolist(), strict=True):
            values[False, fit.method].append(value)
            columns[fit.method][index] = value
        for name, value in zip(case.annotators, raters.tolist(), strict=True):
            values.setdefault((True, "raters" if several else name), []).append(value)
    return _make_boxes(values, columns)


def _among_raters(comparison: ComparedMethods, figure: str) -> list[MethodBox]:
    cases = [case.compared for case in comparison.cases]
    values: dict[tuple[bool, str], list[float]] = {(False, name): [] for name in comparison.methods}
    columns = {name: [math.nan] * len(cases) for name in comparison.methods}
    pairs: list[float] = []
    for index, case in enumerate(cases):
        raters, methods = case.among_raters(figure)
        for fit, row in zip(case.fits, methods, strict=True):
            values[False, fit.method] += row.tolist()
            columns[fit.method][index] = float(row.mean())
        pairs += raters[np.triu_indices(len(raters), 0, raters.shape[1])].tolist()
    return _make_boxes(values | {(True, "pairs of raters"): pairs}, columns)


def _make_boxes(
    values: Mapping[tuple[bool, str], list[float]], columns: Mapping[str, list[float]]
) -> list[MethodBox]:
    baseline = np.array(columns.get(BASELINE, ()))
    boxes_made = []
    for (rater, name), numbers in values.items():
        all_values = np.array(numbers)
        tested = not rater and name != BASELINE and len(baseline) > 0
        p_value = signed_ranks(np.array(columns[name]), baseline) if tested else math.nan
        finite = np.isfinite(all_values)
        if finite.any():
            boxes_made.append(MethodBox(name, rater, all_values[finite], int((~finite).sum()), p_value))
    return boxes_made


def _of_fits(comparison: ComparedMethods, method: str, figure: str) -> FloatArray:
    values = []
    for case in comparison.cases:
        fits = {fit.method: fit for fit in case.compared.fits}
        if method not in fits:
            continue
        highest = max((fit.bound for fit in fits.values() if math.isfinite(fit.bound)), default=math.nan)
        values.append(fits[method].seconds if figure == "seconds" else fits[method].bound - highest)
    all_values = np.array(values)
    return np.asarray(all_values[np.isfinite(all_values)])


def method_rows(comparison: ComparedMethods) -> Iterator[tuple[object, ...]]:
    """Return the rows of methods.csv: every method and rater with the truth and with each other rater.

    Lengths are in the unit that the row names. Bound, iterations and seconds are those of the method.
    """
    for case in comparison.cases:
        compared = case.compared
        tables = [compared.table(measure) for measure in MEASURES]
        raters = [(f"rater {name}", at) for at, name in enumerate(compared.annotators)]
        truth = [("truth", len(raters) + len(compared.fits))] if compared.truth else []
        rows: list[tuple[int, tuple[object, ...], tuple[object, ...]]] = []
        for at, fit in enumerate(compared.fits, start=len(raters)):
            of_fit = (
                format_number(fit.volume_ml) if case.unit == "mm" else "", format_number(fit.bound),
                fit.iterations or "", ("yes" if fit.converged else "no") if fit.iterations else "",
                f"{fit.seconds:.4g}",
            )  # fmt: skip
            rows.append((at, ("method", fit.method), of_fit))
        rows += [(at, ("rater", name), ("",) * 5) for at, name in enumerate(compared.annotators)]
        for at, name, cells in rows:
            for other, column in truth + [rater for rater in raters if rater[1] != at]:
                figures = (format_number(float(table[at, column])) for table in tables)
                yield (case.name, compared.structure, *name, other, *figures, case.unit, *cells)


def write_methods(folder: Path, comparison: ComparedMethods) -> list[Path]:
    """Write methods.csv and methods.svg into a folder; without cases, remove existing ones."""
    if not comparison.cases:
        remove_file(folder / "methods.csv")
        remove_file(folder / "methods.svg")
        return []
    return [
        write_table(folder / "methods.csv", COLUMNS, method_rows(comparison)),
        write_plots(folder / "methods.svg", comparison),
    ]


def methods_in_words(comparison: ComparedMethods) -> Iterator[str]:
    """Summarise each method in one line: median Dice and HD95, median time."""
    reference = "truth" if comparison.truth else "raters"
    dice, away, times = (
        {box.name: box for box in method_boxes(comparison, figure, reference) if not box.rater}
        for figure in ("dice", "hausdorff_95", "seconds")
    )
    for name in comparison.methods:
        if name not in dice:
            continue
        text = f"{name}: median Dice {np.median(dice[name].values):.3f}"
        if name in away:
            text += f", HD95 {np.median(away[name].values):.2f} {comparison.unit}"
        if math.isfinite(dice[name].p_value):
            text += f", p {dice[name].p_value:.2g} against {BASELINE}"
        yield f"{text}, {np.median(times[name].values):.3g} s, {REFERENCES[reference]}"


def store_methods(comparison: ComparedMethods, study: Study, watch: Watch = silent) -> None:
    """Store the figures in a study, without the masks; they replace the previous ones."""
    watch(0.0, "keeping compared methods")
    study.settings.compared_methods = {
        "methods": comparison.methods,
        "problems": comparison.problems,
        "facts": comparison.facts,
        "cases": [
            {
                "name": case.name,
                "unit": case.unit,
                "structure": case.compared.structure,
                "annotators": case.compared.annotators,
                "truth": case.compared.truth,
                "fits": [
                    {name: _plain(getattr(fit, name)) for name in _OF_FIT} for fit in case.compared.fits
                ],
                "figures": {
                    name: [[_plain(value) for value in row] for row in table.tolist()]
                    for name in MEASURES
                    for table in (getattr(case.compared.agreement, name),)
                },
            }
            for case in comparison.cases
        ],
    }


def load_methods(study: Study, watch: Watch = silent) -> ComparedMethods | None:
    """Load the stored comparison; None without a readable one."""
    watch(0.0, "reading compared methods")
    record = study.settings.compared_methods
    if record is None:
        return None
    try:
        cases = tuple(_case_of(case_record) for case_record in record["cases"])
        methods, problems = (tuple(map(str, record[name])) for name in ("methods", "problems"))
        all_known = all(name in FUSERS for name in methods)
        return (
            ComparedMethods(methods, cases, problems, str(record["facts"])) if cases and all_known else None
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _case_of(record: Mapping[str, Any]) -> CaseMethods:
    annotators = tuple(map(str, record["annotators"]))
    fits = tuple(
        MethodFit(**{name: _number(fit_record[name]) for name in _OF_FIT}) for fit_record in record["fits"]
    )
    size = len(annotators) + len(fits) + bool(record["truth"])
    tables = {
        name: np.array([[_number(value) for value in row] for row in record["figures"][name]], dtype=float)
        for name in MEASURES
    }
    if (
        not fits
        or record["unit"] not in ("mm", "px")
        or any(t.shape != (size, size) for t in tables.values())
    ):
        raise ValueError("figures of another number of masks")
    if any(fit.method not in FUSERS for fit in fits):
        raise ValueError("an unknown method")
    agreement = RaterAgreement(tuple(map(str, range(size))), **tables)
    compared = MethodComparison(str(record["structure"]), annotators, fits, agreement, bool(record["truth"]))
    return CaseMethods(str(record["name"]), record["unit"], compared)


_OF_FIT = ("method", "seconds", "bound", "iterations", "converged", "volume_ml")


def _plain(value: Any) -> Any:
    """Convert a figure for JSON, which has no infinite or undefined numbers."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value


_WIDE, _HIGH = 460, 310


def write_plots(path: Path, comparison: ComparedMethods) -> Path:
    """Write all box plots into one file, whole or not at all."""
    return write_bytes(path, draw_plots(comparison))


def draw_plots(comparison: ComparedMethods) -> bytes:
    """Draw all box plots as SVG; a star marks methods that differ from the baseline (p < 0.05)."""
    reference = "truth" if comparison.truth else "raters"
    panels = []
    starred = False
    for figure, text in FIGURES.items():
        figure_boxes = method_boxes(comparison, figure, reference)
        if not figure_boxes:
            continue
        title = text if figure in ("bound", "seconds") else f"{text}, {REFERENCES[reference]}"
        unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, comparison.unit)
        views = [BoxView(box.name, box.values, box.rater, bool(box.p_value < 0.05)) for box in figure_boxes]
        starred = starred or any(view.starred for view in views)
        chart = box_chart(views, text, unit, logarithmic=figure == "seconds")
        panels.append((f"{title}, {unit}" if unit else title, PaperChart(chart, _WIDE, _HIGH, SCREEN)))
    note = f"* differs from {BASELINE}: Wilcoxon signed-rank test, p < 0.05" if starred else ""
    return sheet(panels, note=note)
