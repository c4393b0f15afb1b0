"""ROC curves of methods by cross-validation, as tables and as a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.roc_curves import (
    FoldedCurves,
    FoldedMethod,
    FoldedSettings,
    folded_curves,
    judge_folds,
    mean_area,
)
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.output_files import shortest, write_table, write_whole
from raterscope.app.kinds.labels.runs import Question
from raterscope.app.study import Study
from raterscope.figures.description import Key
from raterscope.figures.paper import DASHES, LINES, PaperChart, line_chart, paper_line
from raterscope.figures.sheet import sheet

CURVES = ("method", "class", "curve", "threshold", "false_positive_rate", "sensitivity")
AREAS = ("method", "class", "tasks", "auc", "low", "high", "fold_mean", "fold_low", "fold_high", "seconds")
"""Then a column for each fold."""

ROC_FILES = ("roc_areas.csv", "roc_curves.csv", "roc_curves.svg")

_MOST_CLASSES = 12
_MOST_KEPT = 2_000_000
"""Probabilities that a study keeps at most."""

MEAN = "mean of classes"
NO_TRUTH = "no known truths to measure ROC curves against; import true classes (task, label)"


def fold_question(
    question: Question, settings: FoldedSettings, plan: LabelPlan | None = None, watch: Watch = silent
) -> FoldedCurves:
    """Measure the methods on a question; its own plan is taken for its algorithm.

    Raises
    ------
    InputError
        Where no truth is known.
    """
    if not (question.truth != OPEN).any():
        raise InputError(NO_TRUTH)
    plans: Mapping[str, LabelPlan] = {} if plan is None else {plan.algorithm: plan}
    return folded_curves(question.labels, question.truth, settings, plans, watch)


@dataclass(frozen=True, eq=False)
class KeptFolds:
    """Curves of a question as they were measured last.

    Attributes
    ----------
    curves : FoldedCurves
    facts : str
        When, and with which settings: a sentence.
    """

    curves: FoldedCurves
    facts: str


def keep_folds(question: int, found: FoldedCurves, study: Study, watch: Watch = silent) -> KeptFolds | None:
    """Keep curves in the study, in place of those before; None where they are too large for that."""
    watch(0.0, "keeping what was measured")
    day = datetime.now(UTC).astimezone().date().isoformat()
    facts = f"Measured {day}: {found.settings.in_words()}."
    if sum(one.posterior.size for one in found.methods) > _MOST_KEPT:
        return None
    record = {
        "facts": facts,
        "settings": found.settings.as_dict(),
        "classes": list(found.classes),
        "counts": [found.tasks, found.annotators, found.votes],
        "truth": found.truth.tolist(),
        "fold": found.fold.tolist(),
        "failed": list(found.failed),
        "methods": [
            {"name": one.name, "seconds": one.seconds, "posterior": one.posterior.ravel().tolist()}
            for one in found.methods
        ],
    }
    study.settings.keep_folds(question, record)
    return KeptFolds(found, facts)


def kept_folds(question: int, study: Study, watch: Watch = silent) -> KeptFolds | None:
    """Give the curves that a study keeps of a question; None where there are none that can be read."""
    watch(0.0, "reading what was measured")
    record = study.settings.folds(question)
    if record is None:
        return None
    try:
        classes = tuple(map(str, record["classes"]))
        truth, fold = (np.array(record[name], dtype=np.int16) for name in ("truth", "fold"))
        methods = tuple(
            judge_folds(
                str(one["name"]),
                np.array(one["posterior"], dtype=np.float64).reshape(len(truth), len(classes)),
                truth, fold, classes, float(one["seconds"]),
            )
            for one in record["methods"]
        )  # fmt: skip
        tasks, annotators, votes = map(int, record["counts"])
        found = FoldedCurves(
            FoldedSettings.from_dict(record["settings"]), classes, tasks, annotators, votes, truth, fold,
            methods, tuple(map(str, record["failed"])),
        )  # fmt: skip
        return KeptFolds(found, str(record["facts"]))
    except (KeyError, TypeError, ValueError, SettingsError):
        return None


def area_in_words(values: tuple[float, float, float]) -> str:
    """Say an AUC with its interval: "0.953 (0.889 to 0.981)"."""
    mean, low, high = values
    if not np.isfinite(mean):
        return "not known"
    return f"{mean:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def in_words(found: FoldedCurves) -> Iterator[str]:
    """Say how each method does, a line each, the best first."""
    yield (
        f"ROC by {found.folds}-fold cross-validation of {counted(found.truths, 'known task')}, "
        f"{counted(found.votes, 'vote')} by {counted(found.annotators, 'annotator')}:"
    )
    for one in found.ranked():
        yield (
            f"{labeller_title(one.name)}: AUC {area_in_words(one.area())}, mean of folds "
            f"{area_in_words(mean_area(one.areas()))}"
        )


def write_areas(path: Path, found: FoldedCurves) -> Path:
    """Write the AUC of each method: pooled with its interval, the mean of the folds, and each fold."""
    columns = (*AREAS, *(f"fold {number + 1}" for number in range(found.folds)))
    return write_table(path, columns, _area_rows(found))


def write_curves(path: Path, found: FoldedCurves) -> Path:
    """Write the points of the ROC curves: pooled, the average of the folds, and each fold."""
    return write_table(path, CURVES, _curve_rows(found))


def write_charts(path: Path, found: FoldedCurves) -> Path:
    """Draw the pooled ROC curves of every class as SVG, methods with the largest mean AUC first.

    Raises
    ------
    InputError
        When no class has a curve, or the file cannot be written.
    """
    if not found.shown:
        raise InputError("truths of two classes are needed for a ROC curve")
    order = [one.name for one in found.ranked()]
    charts = [
        (
            f"{found.folds}-fold cross-validation, class {plain(found.classes[true], 30)}",
            curve_chart(found, true, order),
        )
        for true in found.shown[:_MOST_CLASSES]
    ]
    several = len(found.shown) > 1
    return write_whole(path, sheet(charts, curve_keys(found, None if several else found.shown[0], order)))


def write_folded(folder: Path, found: FoldedCurves) -> list[Path]:
    """Write all of it into a folder: `ROC_FILES`, without the drawing where no class has a curve."""
    areas, curves, chart = (folder / name for name in ROC_FILES)
    written = [write_areas(areas, found), write_curves(curves, found)]
    return [*written, write_charts(chart, found)] if found.shown else written


def curve_chart(found: FoldedCurves, true: int, order: Sequence[str] = ()) -> PaperChart:
    """Draw the pooled ROC curves of a class: methods in an order, by default the best first."""
    lines = []
    for key, one in zip(curve_keys(found, true, order), _ranked(found, true, order), strict=True):
        curve = one.pooled.curves[true]
        points = curve.false_positive_rate, curve.sensitivity
        lines.append(paper_line(*points, key.ink, dots=len(curve.threshold) < 4, dashes=key.dashes))
    return line_chart(lines, "false positive rate", "sensitivity", diagonal=True)


def curve_keys(found: FoldedCurves, true: int | None, order: Sequence[str] = ()) -> list[Key]:
    """Name the methods of `curve_chart`, with their pooled AUC of a class, or the mean of the classes."""
    return [
        Key(
            f"{labeller_title(one.name)}, AUC {area_in_words(one.area(true))}",
            LINES[at % len(LINES)],
            DASHES[at // len(LINES) % len(DASHES)],
        )
        for at, one in enumerate(_ranked(found, true, order))
    ]


def _ranked(found: FoldedCurves, true: int | None, order: Sequence[str] = ()) -> list[FoldedMethod]:
    if order:
        methods = {one.name: one for one in found.methods}
        return [methods[name] for name in order]
    return sorted(found.methods, key=lambda one: -np.nan_to_num(one.area(true)[0], nan=-1.0))


def _area_rows(found: FoldedCurves) -> Iterator[tuple[object, ...]]:
    several = len(found.shown) > 1
    for one in found.ranked():
        for true in ((None,) if several else ()) + found.shown:
            folds = one.areas(true)
            tasks = found.truths if true is None else one.pooled.curves[true].count
            figures = (*one.area(true), *mean_area(folds), one.seconds, *folds.tolist())
            name = MEAN if true is None else found.classes[true]
            yield (one.name, name, tasks, *map(shortest, figures))


def _curve_rows(found: FoldedCurves) -> Iterator[tuple[object, ...]]:
    for one in found.ranked():
        for true in found.shown:
            head = one.name, found.classes[true]
            judged = [("pooled", one.pooled), *((f"fold {at + 1}", o) for at, o in enumerate(one.by_fold))]
            for name, assessment in judged:
                if assessment is None or not np.isfinite(assessment.curves[true].area):
                    continue
                curve = assessment.curves[true]
                points = zip(curve.threshold, curve.false_positive_rate, curve.sensitivity, strict=True)
                for point in points:
                    yield (*head, name, *map(shortest, point))
            for across, up in zip(*one.average(true), strict=True):
                yield (*head, "mean of folds", "", shortest(across), shortest(up))
