"""Evaluation of labels: calibration, changes between runs, and ROC curves of methods by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.data import OPEN, LabelFusion
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.roc_curves import (
    FoldedCurves,
    FoldedMethod,
    FoldedSettings,
    folded_curves,
    judge_folds,
    mean_area,
)
from raterscope.algorithms.labels.vote_budget import Checked, ExpectedErrors, expected_errors
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.algorithms.settings import SettingsError
from raterscope.app.assessment import (
    FEW,
    BoolArray,
    ComparedItem,
    Differences,
    FloatArray,
    Trust,
    comparable_in_words,
    disputed_tasks,
    run_before,
    share_in_words,
    step_in_words,
    trust_from,
)
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import format_number, write_bytes, write_table
from raterscope.app.kinds.labels.runs import (
    Question,
    checked_before,
    errors_in_words,
    read_truths,
    stated_before,
    unseen_truths,
)
from raterscope.app.review import ReviewState, SampledItem
from raterscope.app.study import RunEntry, Study
from raterscope.figures.description import Key
from raterscope.figures.drawing import DASHES, LINES, PaperChart, line_chart, paper_line, sheet
from raterscope.text import counted

_MEASURED = {"pooled": "labels", "ibcc": "labels, ibcc"}
"""By method, kind in the table of comparable crowds."""

_NOT_MEASURED = "This method was not measured on comparable crowds."

_SHARED = (
    "Votes do not reveal mistakes that many annotators share: decide some disputed tasks and fuse again."
)


def trust_in_labels(study: Study, question: int, watch: Watch = silent) -> Trust | None:
    """Compare the probability of each task's consensus with known truths, otherwise with decisions."""
    watch(0.0, "comparing with the ground truth")
    run, result = study.shown.run_and_result(question, "labels", None)
    if run is None or not isinstance(result, LabelResult):
        return None
    fusion = result.fusion
    truth = unseen_truths(result, read_truths(study, study.question(question), fusion))
    errors = errors_in_words(errors_shown(study, question, run, fusion))
    model = assess(fusion.posterior, truth, fusion.classes)
    if model is not None:
        trust = Trust("task", True, model.calibration, errors=errors)
    else:
        trust = replace(trust_from("task", [], [_decided(study, question, run)]), errors=errors)
    if trust.judged >= FEW:
        return trust
    crowd = study.vote_set(question, run.imported)
    per_task = len(crowd.task) / max(int(np.count_nonzero(np.bincount(crowd.task))), 1)
    kind = _MEASURED.get(run.algorithm)
    text = (
        _NOT_MEASURED
        if kind is None
        else comparable_in_words(kind, per_task, ("vote", "task"), len(fusion.classes))
    )
    return replace(trust, comparable=f"{text} {_SHARED}")


def errors_shown(study: Study, question: int, run: RunEntry, fusion: LabelFusion) -> ExpectedErrors:
    """Estimate how many labels of a run are wrong, by truths and by decisions made since."""
    truth = read_truths(study, study.question(question), fusion)
    decided, since = [], []
    decisions, label = study.review_state().tasks(question), fusion.label()
    names = study.vote_set(question, run.imported).tasks[: len(label)] if decisions else ()
    for task, name in enumerate(names):
        decision = decisions.get(name)
        if decision is None:
            continue
        decided.append(task)
        is_new = decision.decision > run.known and fusion.known[task] == OPEN == truth[task]
        if is_new and fusion.votes[task] and decision.label in fusion.classes:  # not a parent
            since.append((fusion.posterior[task].max(), fusion.classes[label[task]] == decision.label))
    checked = Checked.of([p for p, _ in since], [yes for _, yes in since])
    held = checked_before(study, question, run.algorithm, run).held()
    return expected_errors(fusion, truth, checked.joined(held), decided)


def _decided(study: Study, question: int, shown_run: RunEntry) -> tuple[FloatArray, BoolArray]:
    """Return each decided task's probability before the decision, and whether the consensus was right."""
    runs, classes = study.runs.all(), study.question(question).scheme.classes
    by_run: dict[int, list[tuple[str, str]]] = {}
    for name, decided_task in study.review_state().tasks(question).items():
        run = run_before(runs, shown_run, question, decided_task.decision)
        if run is not None and decided_task.label in classes:  # not a parent
            by_run.setdefault(run.id, []).append((name, decided_task.label))
    return stated_before(study, question, by_run)


def compare_runs(at: ComparedItem, differences: Differences) -> None:
    """Compare an item's results in two runs and fill in the differences."""
    old_result, new_result = at.then, at.now
    assert isinstance(old_result, LabelResult)
    assert isinstance(new_result, LabelResult)
    old_fusion, new_fusion = old_result.fusion, new_result.fusion
    old_names = at.study.vote_set(at.item, at.earlier.imported).tasks
    new_names = at.study.vote_set(at.item, at.later.imported).tasks
    old_disputed, new_disputed = (disputed_tasks(fusion) for fusion in (old_fusion, new_fusion))
    differences.disputed_before += int(old_disputed.sum())
    differences.disputed_after += int(new_disputed.sum())
    number = {name: task for task, name in enumerate(old_names)}
    was, now_is = old_fusion.label(), new_fusion.label()
    decided = at.state.tasks(at.item)
    for task, name in enumerate(new_names[: len(now_is)]):
        earlier = number.get(name)
        settled = new_fusion.known[task] != OPEN or name in decided
        if settled and earlier is not None and earlier < len(was) and old_disputed[earlier]:
            differences.decided += 1
        if settled or earlier is None or earlier >= len(was):
            continue
        old, new = old_fusion.classes[was[earlier]], new_fusion.classes[now_is[task]]
        shares = (
            float(old_fusion.posterior[earlier, was[earlier]]),
            float(new_fusion.posterior[task, now_is[task]]),
        )
        if old != new:
            classes = f"{plain(old)} \N{RIGHTWARDS ARROW} {plain(new)}"
            text = f"{classes} ({share_in_words(shares[1])}): {plain(name)}"
            differences.changes.append(at.change(text, 1 + shares[1], name=name))
        elif new_disputed[task] and not old_disputed[earlier]:
            differences.newly_disputed += 1
            text = f"{step_in_words(*shares)}, {plain(new)}, disputed now: {plain(name)}"
            differences.changes.append(at.change(text, shares[0] - shares[1], name=name))


def undecided_labels(study: Study, state: ReviewState, watch: Watch = silent) -> list[SampledItem]:
    """List the labels of the runs shown whose tasks have neither a decision nor a known truth."""
    listed = []
    for question, step in steps_of(watch, study.questions()):
        step(0.0, "listing labels")
        run, result = study.shown.run_and_result(question.id, "labels", None)
        if run is None or not isinstance(result, LabelResult):
            continue
        fusion, decided = result.fusion, state.tasks(question.id)
        tasks, labels = study.vote_set(question.id, run.imported).tasks, fusion.label()
        listed += [
            SampledItem(item=question.id, name=tasks[task], answer=fusion.classes[labels[task]], run=run.id)
            for task in np.flatnonzero(fusion.known == OPEN).tolist()
            if tasks[task] not in decided
        ]
    return listed


CURVES = ("method", "class", "curve", "threshold", "false_positive_rate", "sensitivity")
AREAS = ("method", "class", "tasks", "auc", "low", "high", "fold_mean", "fold_low", "fold_high", "seconds")
"""Columns of the table of AUCs; a column for each fold follows."""

ROC_FILES = ("roc_areas.csv", "roc_curves.csv", "roc_curves.svg")

_MAX_CLASSES = 12
_MAX_KEPT = 2_000_000
"""Maximum number of probabilities of stored curves."""

MEAN = "mean of classes"
NO_TRUTH = "no known truths to measure ROC curves against; import true classes (task, label)"


def cross_validate(
    question: Question, settings: FoldedSettings, plan: LabelPlan | None = None, watch: Watch = silent
) -> FoldedCurves:
    """Measure the methods on a question, its own algorithm with its settings.

    The consensus of every method is combined with the question's programs. Raises `InputError` if no truth is
    known.
    """
    if not (question.truth != OPEN).any():
        raise InputError(NO_TRUTH)
    plans: Mapping[str, LabelPlan] = {} if plan is None else {plan.algorithm: plan}
    return folded_curves(question.labels, question.truth, settings, plans, watch, question.programs)


@dataclass(frozen=True, eq=False)
class StoredFolds:
    """The stored curves of a question."""

    curves: FoldedCurves
    facts: str  # a sentence: time and settings


def store_folds(
    question: int, folded: FoldedCurves, study: Study, watch: Watch = silent
) -> StoredFolds | None:
    """Store curves in the study, replacing the previous ones; None if they are too large."""
    watch(0.0, "storing the measurements")
    day = datetime.now(UTC).astimezone().date().isoformat()
    facts = f"Measured {day}: {folded.settings.in_words()}."
    if sum(method.posterior.size for method in folded.methods) > _MAX_KEPT:
        return None
    record = {
        "facts": facts,
        "settings": folded.settings.as_dict(),
        "classes": list(folded.classes),
        "counts": [folded.tasks, folded.annotators, folded.votes],
        "truth": folded.truth.tolist(),
        "fold": folded.fold.tolist(),
        "failed": list(folded.failed),
        "methods": [
            {"name": method.name, "seconds": method.seconds, "posterior": method.posterior.ravel().tolist()}
            for method in folded.methods
        ],
    }
    study.settings.keep_folds(question, record)
    return StoredFolds(folded, facts)


def load_folds(question: int, study: Study, watch: Watch = silent) -> StoredFolds | None:
    """Load the stored curves of a question; None without readable ones."""
    watch(0.0, "reading the stored measurements")
    record = study.settings.folds(question)
    if record is None:
        return None
    try:
        classes = tuple(map(str, record["classes"]))
        truth, fold = (np.array(record[name], dtype=np.int16) for name in ("truth", "fold"))
        methods = tuple(
            judge_folds(
                str(method["name"]),
                np.array(method["posterior"], dtype=np.float64).reshape(len(truth), len(classes)),
                truth, fold, classes, float(method["seconds"]),
            )
            for method in record["methods"]
        )  # fmt: skip
        tasks, annotators, votes = map(int, record["counts"])
        folded = FoldedCurves(
            FoldedSettings.from_dict(record["settings"]), classes, tasks, annotators, votes, truth, fold,
            methods, tuple(map(str, record["failed"])),
        )  # fmt: skip
        return StoredFolds(folded, str(record["facts"]))
    except (KeyError, TypeError, ValueError, SettingsError):
        return None


def area_in_words(values: tuple[float, float, float]) -> str:
    """Return an AUC with its interval: "0.953 (0.889 to 0.981)"."""
    mean, low, high = values
    if not np.isfinite(mean):
        return "not known"
    return f"{mean:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def curves_in_words(folded: FoldedCurves) -> Iterator[str]:
    """Summarise each method in one line, the best first."""
    yield (
        f"ROC by {folded.folds}-fold cross-validation of {counted(folded.truths, 'known task')}, "
        f"{counted(folded.votes, 'vote')} by {counted(folded.annotators, 'annotator')}:"
    )
    for method in folded.ranked():
        yield (
            f"{labeller_title(method.name)}: AUC {area_in_words(method.area())}, mean of folds "
            f"{area_in_words(mean_area(method.areas()))}"
        )


def write_areas(path: Path, folded: FoldedCurves) -> Path:
    """Write the AUC of each method: pooled with its interval, the mean of the folds, and each fold."""
    columns = (*AREAS, *(f"fold {number + 1}" for number in range(folded.folds)))
    return write_table(path, columns, _area_rows(folded))


def write_curves(path: Path, folded: FoldedCurves) -> Path:
    """Write the points of the ROC curves: pooled, the average of the folds, and each fold."""
    return write_table(path, CURVES, _curve_rows(folded))


def write_charts(path: Path, folded: FoldedCurves) -> Path:
    """Draw the pooled ROC curves of every class as SVG, methods with the largest mean AUC first.

    Raises `InputError` when no class has a curve, or the file cannot be written.
    """
    if not folded.shown:
        raise InputError("truths of two classes are needed for a ROC curve")
    order = [method.name for method in folded.ranked()]
    charts = [
        (
            f"{folded.folds}-fold cross-validation, class {plain(folded.classes[true], 30)}",
            curve_chart(folded, true, order),
        )
        for true in folded.shown[:_MAX_CLASSES]
    ]
    several = len(folded.shown) > 1
    return write_bytes(path, sheet(charts, curve_keys(folded, None if several else folded.shown[0], order)))


def write_folded(folder: Path, folded: FoldedCurves) -> list[Path]:
    """Write all files into a folder: `ROC_FILES`, without the drawing if no class has a curve."""
    areas, curves, chart = (folder / name for name in ROC_FILES)
    files = [write_areas(areas, folded), write_curves(curves, folded)]
    return [*files, write_charts(chart, folded)] if folded.shown else files


def curve_chart(folded: FoldedCurves, true: int, order: Sequence[str] = ()) -> PaperChart:
    """Draw the pooled ROC curves of a class. By default, the best method comes first."""
    lines = []
    for key, method in zip(curve_keys(folded, true, order), _rank_methods(folded, true, order), strict=True):
        curve = method.pooled.curves[true]
        points = curve.false_positive_rate, curve.sensitivity
        lines.append(paper_line(*points, key.ink, dots=len(curve.threshold) < 4, dashes=key.dashes))
    return line_chart(lines, "false positive rate", "sensitivity", diagonal=True)


def curve_keys(folded: FoldedCurves, true: int | None, order: Sequence[str] = ()) -> list[Key]:
    """Return the legend of `curve_chart`, with the pooled AUC of a class, or the mean of the classes."""
    return [
        Key(
            f"{labeller_title(method.name)}, AUC {area_in_words(method.area(true))}",
            LINES[at % len(LINES)],
            DASHES[at // len(LINES) % len(DASHES)],
        )
        for at, method in enumerate(_rank_methods(folded, true, order))
    ]


def _rank_methods(folded: FoldedCurves, true: int | None, order: Sequence[str]) -> list[FoldedMethod]:
    if order:
        methods = {method.name: method for method in folded.methods}
        return [methods[name] for name in order]
    return sorted(folded.methods, key=lambda method: -np.nan_to_num(method.area(true)[0], nan=-1.0))


def _area_rows(folded: FoldedCurves) -> Iterator[tuple[object, ...]]:
    several = len(folded.shown) > 1
    for method in folded.ranked():
        for true in ((None,) if several else ()) + folded.shown:
            folds = method.areas(true)
            tasks = folded.truths if true is None else method.pooled.curves[true].count
            figures = (*method.area(true), *mean_area(folds), method.seconds, *folds.tolist())
            name = MEAN if true is None else folded.classes[true]
            yield (method.name, name, tasks, *map(format_number, figures))


def _curve_rows(folded: FoldedCurves) -> Iterator[tuple[object, ...]]:
    for method in folded.ranked():
        for true in folded.shown:
            head = method.name, folded.classes[true]
            judged = [
                ("pooled", method.pooled),
                *((f"fold {at + 1}", o) for at, o in enumerate(method.by_fold)),
            ]
            for name, assessment in judged:
                if assessment is None or not np.isfinite(assessment.curves[true].area):
                    continue
                curve = assessment.curves[true]
                points = zip(curve.threshold, curve.false_positive_rate, curve.sensitivity, strict=True)
                for point in points:
                    yield (*head, name, *map(format_number, point))
            for across, up in zip(*method.average(true), strict=True):
                yield (*head, "mean of folds", "", format_number(across), format_number(up))
