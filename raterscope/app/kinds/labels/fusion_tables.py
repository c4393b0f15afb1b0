"""Tables of a fusion of labels for `fuse labels`, exports and report, and rates over time of the thesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.decision_course import (
    METHODS,
    CourseAccuracy,
    DecisionCourse,
    Decisions,
    follow_decisions,
    measure_course,
)
from raterscope.algorithms.labels.active_learning import next_votes
from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.constancy import constancy
from raterscope.algorithms.labels.copying import copying_of
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.roc_curves import FoldedCurves
from raterscope.algorithms.progress import Background, Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.labels.writing import write_annotators, write_confusion, write_labels
from raterscope.app.formats.output_files import (
    format_number,
    remove_file,
    write_bytes,
    write_record,
    write_table,
)
from raterscope.app.kinds.labels.community_charts import CHART_FILES, GroupedAnswer, write_all
from raterscope.app.kinds.labels.evaluation import ROC_FILES, write_folded
from raterscope.app.kinds.labels.runs import (
    Answer,
    Groups,
    Question,
    digest_once,
    groups_of,
    question_record,
    rates_for,
)
from raterscope.app.outcome import curve_record, record_of
from raterscope.figures.description import Key
from raterscope.figures.drawing import DASHES, LINES, Drawable, PaperChart, line_chart, paper_line, sheet

RATES_FILES = ("rates_over_time.csv", "decisions_over_time.csv", "rates_over_time.svg")

RATES = (
    "step", "method", "annotator", "sensitivity", "sensitivity_low", "sensitivity_high", "specificity",
    "specificity_low", "specificity_high",
)  # fmt: skip
DECISIONS = (
    "step", "method", "prevalence", "wrong", "sensitivity", "precision", "error_sensitivity",
    "error_specificity", "error_prevalence",
)  # fmt: skip

ROWS = {key: row for row, key in enumerate(METHODS)}
"""Number of each method, which determines its colour."""

ERRORS = ("sensitivity", "specificity", "prevalence")
_Z = 1.96
_LEAST = 1e-12  # smallest mean squared error that is drawn


@dataclass(frozen=True, eq=False)
class Series:
    """A method's curve, with its interval if there is one."""

    method: str  # key of `METHODS`
    # across, down: (T,)
    across: FloatArray
    down: FloatArray
    # low, high: (T,)
    low: FloatArray | None = None
    high: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class DecisionRates:
    """Rates over time of one question."""

    course: DecisionCourse
    measured: CourseAccuracy | None  # on tasks of known truth
    name: str  # the class that decisions are for
    annotators: tuple[str, ...]  # (K,)

    @property
    def step(self) -> str:
        """Unit of a step."""
        return "decisions of each annotator" if self.course.repeated else "annotators"


def follow_question(
    question: Question, chosen: str | int | None = None, watch: Watch = silent
) -> DecisionRates:
    """Estimate rates over time for decisions on a class, by default the last.

    Raises `InputError` for an unknown class, and if rates cannot be estimated.
    """
    labels = question.labels
    class_index = len(labels.classes) - 1 if chosen is None else chosen
    if isinstance(class_index, str):
        if class_index not in labels.classes:
            expected = ", ".join(plain(name, 40) for name in labels.classes)
            raise InputError(f"there is no class {plain(class_index)}; expected one of {expected}")
        class_index = labels.classes.index(class_index)
    try:
        course, measured = follow_class_decisions(labels, class_index, question.truth, watch)
    except ClicksError as error:
        raise InputError(str(error).replace("clusters", "tasks")) from error
    return DecisionRates(course, measured, labels.classes[class_index], labels.annotators)


def follow_class_decisions(
    labels: Labels, chosen: int, truth: ClassArray, watch: Watch = silent
) -> tuple[DecisionCourse, CourseAccuracy | None]:
    """Estimate rates over time for decisions on a class, and measure them by known truths.

    Raises `ClicksError` if that is not possible.
    """
    course = follow_decisions(decisions_of(labels, chosen), watch=watch)
    is_positive = np.where(np.asarray(truth) == OPEN, -1, np.asarray(truth) == chosen).astype(np.int8)
    return course, measure_course(course, is_positive)


def decisions_of(labels: Labels, chosen: int) -> Decisions:
    """Convert every vote into a decision on a class, in order of time."""
    meaning = np.arange(len(labels.outputs)) if labels.meaning is None else labels.meaning
    means = meaning[labels.label]
    order = np.arange(len(labels.task))
    if labels.time is not None:
        order = np.argsort(np.nan_to_num(labels.time, nan=np.inf), kind="stable")
    order = order[means[order] != OPEN]
    return Decisions(
        labels.annotator[order], labels.task[order], means[order] == chosen,
        len(labels.annotators), len(labels.tasks),
    )  # fmt: skip


def series_of(
    course: DecisionCourse, measured: CourseAccuracy | None, key: str, annotator: int = -1
) -> Sequence[Series]:
    """Return the curves of one quantity, one for each method.

    `measured`: only for quantities of decisions. `key`: "sensitivity", "specificity" or "prevalence"; for
    decisions "wrong", "found" (their sensitivity), "precision" or "roc"; "error 0" to "error 2" in dB, by
    `ERRORS`. `annotator`: annotator of rates; by default the mean of all.
    """
    at = course.at.astype(np.float64)
    if key in ("sensitivity", "specificity"):
        return _rates(course, key, annotator, at)
    if key == "prevalence":
        return [Series(name, at, course.prevalence[row]) for row, name in enumerate(course.estimated)]
    assert measured is not None
    if key == "roc":
        return [
            _roc(name, score, measured.truth)
            for name, score in zip(measured.methods, measured.score, strict=True)
        ]
    if key.startswith("error "):
        level = 10 * np.log10(np.maximum(measured.error[int(key[-1])], _LEAST))
        return [Series(name, at, level[row]) for row, name in enumerate(course.estimated)]
    values = {"wrong": measured.wrong, "found": measured.sensitivity, "precision": measured.precision}[key]
    return [Series(name, at, values[row]) for row, name in enumerate(measured.methods)]


def rates_charts(rates: DecisionRates) -> list[tuple[str, Drawable]]:
    """Draw rates with intervals; with known truths also errors of rates, decisions and their ROC."""
    charts: list[tuple[str, Drawable]] = [
        (f"{key.capitalize()}, {plain(rates.name, 30)}", _chart(rates, key, key))
        for key in ("sensitivity", "specificity", "prevalence")
    ]
    if rates.measured is not None:
        charts += [
            (f"Error of {name}", _chart(rates, f"error {at}", "mean squared error, dB"))
            for at, name in enumerate(ERRORS)
        ]
        charts.append(("Wrong decisions", _chart(rates, "wrong", "share wrong")))
        charts.append(("ROC at the end", _chart(rates, "roc", "sensitivity")))
    return charts


def rates_keys(rates: DecisionRates) -> list[Key]:
    """Return the legend of `rates_charts`."""
    methods = rates.course.estimated if rates.measured is None else rates.measured.methods
    return [Key(METHODS[name], *_line_style(name)) for name in methods]


def write_rates(path: Path, rates: DecisionRates) -> Path:
    """Write every annotator's rates after each step, by method. A row without name is the mean."""
    return write_table(path, RATES, _rate_rows(rates))


def write_rates_chart(path: Path, rates: DecisionRates) -> Path:
    """Draw `rates_charts` as SVG."""
    return write_bytes(path, sheet(rates_charts(rates), rates_keys(rates)))


def write_rates_files(folder: Path, decision_rates: DecisionRates) -> list[Path]:
    """Write all files into a folder: `RATES_FILES`."""
    rates, decisions, chart = (folder / name for name in RATES_FILES)
    return [
        write_rates(rates, decision_rates),
        write_table(decisions, DECISIONS, _decision_rows(decision_rates)),
        write_rates_chart(chart, decision_rates),
    ]


def _line_style(method: str) -> tuple[str, tuple[float, ...]]:
    row = ROWS[method]
    return LINES[row % len(LINES)], DASHES[row // len(LINES) % len(DASHES)]


def _chart(rates: DecisionRates, key: str, up: str) -> PaperChart:
    series = series_of(rates.course, rates.measured, key)
    roc = key == "roc"
    lines = [paper_line(line.across, line.down, *_ends(line)) for line in series]
    end = 1.0 if roc else float(rates.course.at[-1])
    low, high = 0.0, 1.0
    if key.startswith("error "):
        values = np.concatenate([line.down for line in series])
        values = values[np.isfinite(values)]
        low = 5 * np.floor(values.min() / 5) if len(values) else -5.0
        high = max(5 * np.ceil(values.max() / 5) if len(values) else 0.0, low + 5)
    across = "false positive rate" if roc else rates.step
    return line_chart(lines, across, up, end, diagonal=roc, low=float(low), high=float(high))


def _ends(line: Series) -> tuple[str, bool, FloatArray | None, FloatArray | None, tuple[float, ...]]:
    colour, dashes = _line_style(line.method)
    return colour, False, line.low, line.high, dashes


def _rates(course: DecisionCourse, key: str, annotator: int, at: FloatArray) -> list[Series]:
    rates = course.sensitivity if key == "sensitivity" else course.specificity
    side = 0 if key == "sensitivity" else 1
    low, high = course.low[side], course.high[side]
    if annotator >= 0:
        values, ends = rates[:, :, annotator], (low[:, annotator], high[:, annotator])
    else:
        values, ends = _mean_rates(rates, low, high)
    lines = [Series(name, at, values[row]) for row, name in enumerate(course.estimated)]
    first = lines[0]
    return [Series(first.method, at, first.down, *ends), *lines[1:]]


def _mean_rates(
    rates: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Average rates (M, T, R) over annotators, with the interval of the first method's mean."""
    finite = np.isfinite(rates)
    values = np.where(finite, rates, 0).sum(axis=2) / np.maximum(finite.sum(axis=2), 1)
    spread = np.where(np.isfinite(low), (high - low) / (2 * _Z), 0.0)
    half = _Z * np.sqrt((spread**2).sum(axis=1)) / np.maximum(finite[0].sum(axis=1), 1)
    return values, (np.clip(values[0] - half, 0, 1), np.clip(values[0] + half, 0, 1))


def _roc(key: str, score: FloatArray, truth: NDArray[np.bool_]) -> Series:
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)
    hits, alarms = np.cumsum(truth[order])[last], np.cumsum(~truth[order])[last]
    return Series(key, np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1]))


def _rate_rows(decision_rates: DecisionRates) -> Iterator[tuple[object, ...]]:
    course = decision_rates.course
    means = [series_of(course, None, key) for key in ("sensitivity", "specificity")]
    for step, at in enumerate(course.at.tolist()):
        for row, method in enumerate(course.estimated):
            curves = [curve for side in means for curve in (side[row].down, side[row].low, side[row].high)]
            mean = (np.nan if curve is None else float(curve[step]) for curve in curves)
            yield (at, method, "", *map(format_number, mean))
            for annotator in np.flatnonzero(np.isfinite(course.sensitivity[row, step])).tolist():
                figures: list[float] = []
                for side, rates in enumerate((course.sensitivity, course.specificity)):
                    ends = (bound[side, step, annotator] for bound in (course.low, course.high))
                    figures += [rates[row, step, annotator], *(ends if row == 0 else (np.nan, np.nan))]
                yield (at, method, decision_rates.annotators[annotator], *map(format_number, figures))


def _decision_rows(rates: DecisionRates) -> Iterator[tuple[object, ...]]:
    course, measured = rates.course, rates.measured
    methods = course.estimated if measured is None else measured.methods
    for step, at in enumerate(course.at.tolist()):
        for row, method in enumerate(methods):
            estimates = row < len(course.estimated)
            figures = [course.prevalence[row, step] if estimates else np.nan]
            if measured is None:
                figures += [np.nan] * 6
            else:
                shares = measured.wrong, measured.sensitivity, measured.precision
                figures += [share[row, step] for share in shares]
                figures += measured.error[:, row, step].tolist() if estimates else [np.nan] * 3
            yield (at, method, *map(format_number, figures))


Row = Sequence[object]

COMMUNITIES = ("community", "name", "members", "share_of_votes", "accuracy", "most_central")
"""First columns of communities.csv; the entries of the prototype follow, named "true: given"."""

NEXT_VOTES = ("task", "annotator", "gain", "gain_of_new", "label", "probability", "votes")
EVALUATION = (
    "method", "tasks", "accuracy", "accuracy_low", "accuracy_high", "auc", "log_loss", "brier",
    "calibration_error",
)  # fmt: skip
PROPOSED = 100
"""Maximum number of rows of next_votes.csv."""

MAX_ENTRIES = 20_000_000
"""Maximum number of entries of all annotators' matrices, at one step, to write confusion.csv."""


@dataclass(frozen=True, eq=False)
class QuestionOutput:
    """Contents of the folder of one question."""

    question: Question  # input of the fusion
    plan: LabelPlan
    result: LabelResult
    record: Callable[[], Mapping[str, Any]]  # makes run.json, in another thread
    # by method: assessment on tasks with a known truth that was not held fixed
    assessments: Mapping[str, Assessment] = field(default_factory=dict)
    steps: int | None = 1  # of every annotator's history in confusion.csv; None for all
    curves: FoldedCurves | None = None  # ROC curves of all methods by cross-validation
    over_time: DecisionRates | None = None  # rates over time
    charts: bool = False  # whether communities and traces are drawn, see `CHART_FILES`


def write_question(folder: Path, output: QuestionOutput, watch: Watch = silent) -> list[Path]:
    """Write tables and run.json into an existing folder; return the files.

    Each file replaces an existing one completely or not at all. Files of an earlier run that this one does
    not write are removed. run.json is removed first and written last: if it exists, all files that it
    describes exist. Raises `InputError` if something cannot be written.
    """
    labels, fusion = output.question.labels, output.result.fusion
    rates = rates_for(output.question, output.result)
    groups = groups_of(labels, output.result, accuracies(rates)[0])
    remove_file(folder / "run.json")
    votes = counted_votes(labels, output.plan)
    with Background() as beside:
        record = beside.start(output.record)
        proposals = beside.start(lambda: list(next_vote_rows(labels, fusion, beside.watch)))
        files = _write_tables(folder, output, rates, votes, groups, part(watch, 0.0, 0.7))
        rows = proposals(partial(watch, 0.7, "selecting votes to ask for"))
        files.append(write_table(folder / "next_votes.csv", NEXT_VOTES, rows))
        finished = record(partial(watch, 0.7, "checking the results"))
    if output.curves is not None:
        files += write_folded(folder, output.curves)
    if output.over_time is not None:
        files += write_rates_files(folder, output.over_time)
    if output.charts:
        files += write_all(folder, GroupedAnswer(labels, fusion, rates, groups, part(watch, 0.7, 0.9)))
    for name in (
        "confusion.csv", "communities.csv", "evaluation.csv", *ROC_FILES, *RATES_FILES, *CHART_FILES
    ):  # fmt: skip
        if folder / name not in files:
            remove_file(folder / name)
    return [*files, write_record(folder / "run.json", finished)]


def _write_tables(
    folder: Path,
    output: QuestionOutput,
    rates: Rates,
    votes: NDArray[np.integer],
    groups: Groups | None,
    watch: Watch,
) -> list[Path]:
    """Write the tables of tasks, annotators, confusions, communities and assessments; return the files."""
    labels, fusion = output.question.labels, output.result.fusion
    files = [
        write_labels(
            folder / "labels.csv", labels.tasks, fusion.classes, fusion.posterior, fusion.label(),
            fusion.entropy(), fusion.votes, part(watch, 0.0, 0.3), ordered=labels.ordered,
        ),
        write_annotators_table(
            folder / "annotators.csv", output.question, output.result, rates, votes, part(watch, 0.3, 0.4)
        ),
    ]  # fmt: skip
    if has_confusion(output):
        confusion = write_confusion(
            folder / "confusion.csv", labels.annotators, fusion.outputs, fusion.classes, rates,
            votes, drift=fusion.drift, steps=output.steps, watch=part(watch, 0.4, 1.0),
        )  # fmt: skip
        files.append(confusion)
    if groups is not None:
        columns = community_columns(fusion)
        files.append(
            write_table(folder / "communities.csv", columns, community_rows(groups, labels.annotators))
        )
    if output.assessments:
        columns = (*EVALUATION, *_class_areas(fusion.classes))
        files.append(write_table(folder / "evaluation.csv", columns, evaluation_rows(output.assessments)))
    return files


def has_confusion(output: QuestionOutput) -> bool:
    """Return whether confusion.csv has a practicable size; with a thousand labels it has not."""
    return output.result.fusion.confusion.alpha.size <= MAX_ENTRIES


def run_record(answer: Answer, name: str, inputs: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Return the contents of run.json: all that is needed to reproduce the results, and the fusion's log."""
    outcome, question = answer.outcomes[name], answer.inputs.given[name]
    labels = question.labels
    assert labels.meaning is not None
    classes = [labels.classes[at] if at >= 0 else None for at in labels.meaning.tolist()]
    record = record_of(
        answer.plan, seed=answer.plan.settings.as_dict().get("seed"), digest=digest_once(name, question),
        inputs=inputs, started=answer.started, seconds=outcome.seconds,
    )  # fmt: skip
    trace = None if outcome.fusion is None else outcome.fusion.fusion.trace
    curves = {"objective": trace.objective, "change": trace.change} if trace else {}
    by_iteration = {f"{name}_by_iteration": curve_record(values) for name, values in curves.items()}
    return record | {
        "outputs": list(labels.outputs),
        "classes": list(labels.classes),
        "stands_for": dict(zip(labels.outputs, classes, strict=True)),
        "ordered": labels.ordered,
        "prior": None if labels.prior is None else labels.prior.tolist(),
        "weights": dict(answer.inputs.weights),
        "questions": [question_record(outcome, question, answer.plan) | by_iteration],
    }


def counted_votes(labels: Labels, plan: LabelPlan) -> NDArray[np.int64]:
    """Count every annotator's votes, (K,); of repeated votes only those that the plan uses."""
    return labels.settled(getattr(plan.settings, "repeats", "all")).votes_of_annotators()


def accuracies(rates: Rates) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each annotator's accuracy, (K,), with its interval; NaN without votes."""
    mean, low, high = rates.accuracies()
    mute = rates.votes == 0
    return np.where(mute, np.nan, mean), np.where(mute, np.nan, low), np.where(mute, np.nan, high)


def write_annotators_table(
    path: Path,
    question: Question,
    result: LabelResult,
    rates: Rates,
    votes: NDArray[np.integer],
    watch: Watch = silent,
) -> Path:
    """Write annotators.csv: the values of each annotator in window and report.

    Raises `InputError` if it cannot be written.

    `rates`: rates of the result, including excluded annotators. `votes`: (K,) integer, number of votes that
    count, by annotator.
    """
    figures = annotator_figures(question, result, rates, watch)
    return write_annotators(path, question.labels.annotators, votes, *figures)


def annotator_figures(
    question: Question, result: LabelResult, rates: Rates, watch: Watch = silent
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], list[str], FloatArray, list[str], NDArray[np.integer]]:
    """Return the columns of annotators.csv from the accuracy on, as arguments of `write_annotators`."""
    labels, fusion = question.labels, result.fusion
    accuracy = accuracies(rates)
    annotators = len(labels.annotators)
    groups = groups_of(labels, result, accuracy[0])
    community = [""] * annotators if groups is None else [str(at + 1) if at >= 0 else "" for at in groups.of]
    change = np.full(annotators, np.nan) if fusion.drift is None else constancy(labels, fusion).p
    copying = [""] * annotators
    for number, members in enumerate(copying_of(labels, result, watch).groups(), 1):
        for member in members:
            copying[member] = str(number)
    excluded = np.zeros(annotators, dtype=np.int64)
    if question.excluded is not None:
        excluded = question.excluded.votes_of_annotators()
    return accuracy, community, change, copying, excluded


def community_columns(fusion: LabelFusion) -> tuple[str, ...]:
    """Name the columns of communities.csv."""
    entries = (f"{true}: {output}" for true in fusion.classes for output in fusion.outputs)
    return (*COMMUNITIES, *entries)


def community_rows(groups: Groups, annotators: Sequence[str]) -> Iterator[Row]:
    """Return the rows of communities.csv, the largest first."""
    sizes = groups.communities.sizes().tolist()
    for at, name in enumerate(groups.names):
        share, accuracy = format_number(groups.votes[at]), format_number(groups.accuracy[at])
        rates = map(format_number, groups.communities.prototype[at].ravel().tolist())
        yield (str(at + 1), name, sizes[at], share, accuracy, annotators[groups.central[at]], *rates)


def next_vote_rows(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Iterator[Row]:
    """Return the rows of next_votes.csv, by information gain; a new annotator has no name."""
    proposals = next_votes(labels, fusion, PROPOSED, watch=watch)
    labels_found = fusion.label()
    for row in range(len(proposals)):
        task, annotator = int(proposals.task[row]), int(proposals.annotator[row])
        best = int(labels_found[task])
        yield (
            labels.tasks[task],
            labels.annotators[annotator] if annotator >= 0 else "",
            format_number(float(proposals.gain[row])),
            format_number(float(proposals.gain_of_new[row])),
            fusion.classes[best],
            format_number(float(fusion.posterior[task, best])),
            int(fusion.votes[task]),
        )


def evaluation_rows(assessments: Mapping[str, Assessment]) -> Iterator[Row]:
    """Return the rows of evaluation.csv, one per method."""
    for method, assessment in assessments.items():
        figures = (
            assessment.accuracy, assessment.accuracy_low, assessment.accuracy_high, assessment.area,
            assessment.log_loss, assessment.brier, assessment.calibration.error,
        )  # fmt: skip
        areas = [curve.area for curve in assessment.curves] if len(assessment.classes) > 2 else []
        yield (method, assessment.judged, *map(format_number, (*figures, *areas)))


def _class_areas(classes: Sequence[str]) -> list[str]:
    """Name the columns of each class's AUC; two classes have the same AUC."""
    return [f"auc: {name}" for name in classes] if len(classes) > 2 else []
