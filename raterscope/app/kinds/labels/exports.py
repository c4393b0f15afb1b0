"""Exports of labels: the files of a result folder, and the tables of a study with the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.active_learning import next_votes
from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.copying import find_copies
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import constancy
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.roc_curves import FoldedCurves, FoldedSettings
from raterscope.algorithms.labels.vote_budget import ENOUGH, FEWEST, has_enough
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.label_studio import write_label_studio
from raterscope.app.formats.labels.tag_sets import ABSENT_PRESENT
from raterscope.app.formats.labels.writing import (
    DecidedLabel,
    write_annotators,
    write_confusion,
    write_crowdkit_confusion,
    write_crowdkit_probabilities,
    write_crowdkit_truth,
    write_crowdkit_votes,
    write_decisions,
    write_labels,
    write_votes,
)
from raterscope.app.formats.output_files import format_number, remove_file, write_record, write_table
from raterscope.app.kinds.labels.agreement import AGREEMENT, agreement_rows
from raterscope.app.kinds.labels.assignments import ASSIGNMENTS, Budget, assign, assignment_rows, read_budget
from raterscope.app.kinds.labels.community_charts import CHART_FILES, GroupedAnswer, write_all
from raterscope.app.kinds.labels.cost import COST, cost_rows, measure_cost
from raterscope.app.kinds.labels.cross_validation import (
    ROC_FILES,
    cross_validate,
    write_charts,
    write_curves,
    write_folded,
)
from raterscope.app.kinds.labels.decision_rates import (
    RATES_FILES,
    DecisionRates,
    follow_question,
    write_rates,
    write_rates_chart,
    write_rates_files,
)
from raterscope.app.kinds.labels.runs import (
    Answer,
    Answered,
    Groups,
    Question,
    digest_of,
    groups_of,
    plan_of,
    question_record,
    rates_for,
    read_answer,
)
from raterscope.app.kinds.labels.tag_sets import (
    TagSet,
    find_tag_sets,
    tag_columns,
    tag_rows,
    write_tag_agreement,
)
from raterscope.app.kinds.labels.variability import label_statistics, measure_labels
from raterscope.app.outcome import record_of
from raterscope.app.page.variability import COLUMNS, statistic_rows
from raterscope.app.review import ReviewState, fold, standing_names
from raterscope.app.study import Study
from raterscope.app.study.groups import split_groups
from raterscope.app.study.labels import known_truth, labels_of, pictures_of
from raterscope.app.study.records import QuestionEntry

Row = Sequence[object]

COMMUNITIES = ("community", "name", "members", "share_of_votes", "accuracy", "most_central")
"""Then the entries of the prototype, named "true: given"."""

NEXT_VOTES = ("task", "annotator", "gain", "gain_of_new", "label", "probability", "votes")
RETIREMENT = ("subject", "task", "reason", "label", "probability", "votes")
_TRAINING = ("task", "picture", "split", "group", "label", "decided")
EVALUATION = (
    "method", "tasks", "accuracy", "accuracy_low", "accuracy_high", "auc", "log_loss", "brier",
    "calibration_error",
)  # fmt: skip
ASKED = 100
"""Rows of next_votes.csv, at most."""

MOST_ENTRIES = 20_000_000
"""Entries of all annotators' matrices at one step up to which confusion.csv is written."""


@dataclass(frozen=True, eq=False)
class QuestionOutput:
    """Contents of the folder of one question.

    Attributes
    ----------
    question : Question
        Input of the fusion.
    record : dict
        For run.json.
    assessments : mapping of method to Assessment
        On the tasks whose truth is known and was kept from the methods.
    steps : int, optional
        Of every annotator's history in confusion.csv; None for all.
    curves : FoldedCurves, optional
        ROC curves of all methods by cross-validation.
    over_time : DecisionRates, optional
        Rates over time.
    charts : bool
        Whether communities and traces are drawn, see `CHART_FILES`.
    """

    question: Question
    plan: LabelPlan
    result: LabelResult
    record: Mapping[str, Any]
    assessments: Mapping[str, Assessment] = field(default_factory=dict)
    steps: int | None = 1
    curves: FoldedCurves | None = None
    over_time: DecisionRates | None = None
    charts: bool = False


def write_question(folder: Path, output: QuestionOutput, watch: Watch = silent) -> list[Path]:
    """Write tables and run.json into an existing folder. Returns the files.

    Each file replaces an existing one completely or not at all. Files of an earlier run that this one does
    not write are removed. run.json is removed first and written last: if it exists, all files that it
    describes exist. Raises `InputError` when something cannot be written.
    """
    labels, fusion = output.question.labels, output.result.fusion
    rates = rates_for(output.question, output.result)
    groups = groups_of(labels, output.result, accuracies(rates)[0])
    remove_file(folder / "run.json")
    votes = counted_votes(labels, output.plan)
    files = [
        write_labels(
            folder / "labels.csv", labels.tasks, fusion.classes, fusion.posterior, fusion.label(),
            fusion.entropy(), fusion.votes, part(watch, 0.0, 0.2), ordered=labels.ordered,
        ),
        write_annotators_table(
            folder / "annotators.csv", output.question, output.result, rates, votes, part(watch, 0.2, 0.3)
        ),
    ]  # fmt: skip
    if has_confusion(output):
        confusion = write_confusion(
            folder / "confusion.csv", labels.annotators, fusion.outputs, fusion.classes, rates,
            votes, drift=fusion.drift, steps=output.steps, watch=part(watch, 0.3, 0.7),
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
    proposals = next_vote_rows(labels, fusion, part(watch, 0.7, 1.0))
    files.append(write_table(folder / "next_votes.csv", NEXT_VOTES, proposals))
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
    return [*files, write_record(folder / "run.json", output.record)]


def has_confusion(output: QuestionOutput) -> bool:
    """Return whether confusion.csv has a practicable size, which it has not with a thousand labels."""
    return output.result.fusion.confusion.alpha.size <= MOST_ENTRIES


def run_record(answer: Answer, name: str, inputs: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Make the contents of run.json: everything needed to reproduce the results, and how the fusion went."""
    outcome, question = answer.outcomes[name], answer.inputs.given[name]
    labels = question.labels
    assert labels.meaning is not None
    stands = [labels.classes[at] if at >= 0 else None for at in labels.meaning.tolist()]
    record = record_of(
        answer.plan, seed=answer.plan.settings.as_dict().get("seed"), digest=digest_of({name: question}),
        inputs=inputs, started=answer.started, seconds=outcome.seconds,
    )  # fmt: skip
    return record | {
        "outputs": list(labels.outputs),
        "classes": list(labels.classes),
        "stands_for": dict(zip(labels.outputs, stands, strict=True)),
        "ordered": labels.ordered,
        "prior": None if labels.prior is None else labels.prior.tolist(),
        "questions": [question_record(outcome, question)],
    }


def counted_votes(labels: Labels, plan: LabelPlan) -> NDArray[np.int64]:
    """Count every annotator's votes, (K,). Of repeated votes the ones that the plan uses count."""
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
    """Write annotators.csv: the figures of each annotator in window and report.

    Raises `InputError` when it cannot be written.

    Parameters
    ----------
    rates : Rates
        Of the result, excluded annotators among them.
    votes : (K,) integer
        Votes that count, by annotator.
    """
    figures = annotator_figures(question, result, rates, watch)
    return write_annotators(path, question.labels.annotators, votes, *figures)


def annotator_figures(
    question: Question, result: LabelResult, rates: Rates, watch: Watch = silent
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], list[str], FloatArray, list[str], NDArray[np.integer]]:
    """Return the figures of annotators.csv as `write_annotators` takes them, from the accuracy on."""
    labels, fusion = question.labels, result.fusion
    accuracy = accuracies(rates)
    people = len(labels.annotators)
    groups = groups_of(labels, result, accuracy[0])
    community = [""] * people if groups is None else [str(at + 1) if at >= 0 else "" for at in groups.of]
    change = np.full(people, np.nan) if fusion.drift is None else constancy(labels, fusion).p
    copying = [""] * people
    for number, members in enumerate(find_copies(labels, fusion, watch).groups(), 1):
        for member in members:
            copying[member] = str(number)
    excluded = np.zeros(people, dtype=np.int64)
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
    proposals = next_votes(labels, fusion, ASKED, watch=watch)
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
    """Return the rows of evaluation.csv, a method each."""
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


OF_COMMUNITIES = ("communities", "communities-over-time", "participation")

_Write = Callable[[Study, QuestionEntry, str, Path, Watch], list[Path]]


def export_labels(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write an export of labels, a file or two per question, in a folder if there are several.

    See `exports.Writer`. Raises `InputError` when there are no labels, nothing was fused or decided yet, or a
    file cannot be written.
    """
    budget = None
    if request.what == "assignments":
        budget = read_budget(study, request.settings, request.costs)
    requested = [entry for entry in study.questions() if not request.items or entry.id in request.items]
    if not requested:
        raise InputError("holds no labels; `raterscope import` reads them", file=study.path)
    entries = [entry for entry in requested if _is_ready(study, entry, request.what)]
    if not entries or (request.items and len(entries) < len(requested)):
        raise InputError(_why_missing(request.what), file=study.path)
    items: list[tuple[QuestionEntry | TagSet, str]] = []
    if request.what != "tags":
        items += [(entry, entry.name) for entry in entries]
    if request.what in ("tags", "agreement"):
        items += [(tags, tags.name) for tags in find_tag_sets(entries)]
    if not items:
        raise InputError("holds no votes with several tags", file=study.path)
    files: list[Path] = []
    for entry, path, step in files_for(request, items, watch):
        if isinstance(entry, TagSet):
            write = _write_tags if request.what == "tags" else _write_tag_agreement
            files.append(write(study, entry, path, step))
        elif request.what == "training":
            files += _write_training(request, study, entry, path, step)
        elif budget is not None:
            files += _write_assignments(budget, request.say, study, entry, path, step)
        else:
            files += _WRITERS[request.what](study, entry, request.format, path, step)
    return files


@dataclass(frozen=True, eq=False)
class DecidedAnswer:
    """An answer with the expert's decisions applied.

    Attributes
    ----------
    classes : tuple of J names
        The answer's, then those that only the expert named.
    posterior : (N, J) float64
        0 and 1 where the expert decided.
    label : (N,) int16
    entropy : (N,) float64
    decided : dict of task to DecidedLabel
    """

    classes: tuple[str, ...]
    posterior: FloatArray
    label: ClassArray
    entropy: FloatArray
    decided: dict[int, DecidedLabel]


def apply_decisions(study: Study, answered: Answered) -> DecidedAnswer:
    """Apply the expert's decisions to an answer."""
    tasks, fusion = answered.question.labels.tasks, answered.result.fusion
    index_of = {name: at for at, name in enumerate(tasks)}
    decided = {
        index_of[decision.task]: decision
        for decision in decided_labels(study, answered.entry)
        if decision.task in index_of
    }
    decided_names = dict.fromkeys(decision.label for decision in decided.values())
    classes = (*fusion.classes, *(name for name in decided_names if name not in fusion.classes))
    posterior = np.zeros((len(tasks), len(classes)))
    posterior[:, : len(fusion.classes)] = fusion.posterior
    label, entropy = fusion.label(), fusion.entropy()
    for at, decision in decided.items():
        label[at] = classes.index(decision.label)
        posterior[at] = 0.0
        posterior[at, label[at]] = 1.0
        entropy[at] = 0.0
    return DecidedAnswer(classes, posterior, label, entropy, decided)


def decided_labels(study: Study, entry: QuestionEntry) -> list[DecidedLabel]:
    """List the expert's decisions on a question's tasks that are in effect, with who, when and why."""
    state: ReviewState = fold(study.decisions())
    labels = []
    for task, decision in state.tasks(entry.id).items():
        by = state.decision(decision.decision)
        expert, when, reason = ("", None, "") if by is None else (by.who, by.at, by.reason)
        labels.append(DecidedLabel(task, decision.label, expert, when, reason))
    return labels


def _is_ready(study: Study, entry: QuestionEntry, export: str) -> bool:
    if export in ("votes", "agreement", "variability", "rates-over-time"):
        return bool(len(study.vote_set(entry.id).task))
    if export == "decided":
        return bool(decided_labels(study, entry))
    answered = read_answer(study, entry)
    if export == "roc-curves" and not (known_truth(study, entry.id) != OPEN).any():
        return False
    return answered is not None and (export not in OF_COMMUNITIES or answered.result.communities is not None)


def _why_missing(export: str) -> str:
    if export == "decided":
        return "holds no decision on a task yet"
    if export == "roc-curves":
        return "holds no known truths with a run of labels; `raterscope import --kind true-labels` reads them"
    if export in OF_COMMUNITIES:
        return "holds no communities yet; `raterscope run` finds them, with --set communities=behaviour"
    return "holds no run of labels yet; `raterscope run` makes one"


def _answer(study: Study, entry: QuestionEntry) -> Answered:
    answered = read_answer(study, entry)
    if answered is None:
        raise InputError(_why_missing("labels"), file=study.path)
    return answered


def _write_labels(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    tasks, answer = answered.question.labels.tasks, apply_decisions(study, answered)
    if form == "crowd-kit":
        return [write_crowdkit_truth(path, tasks, answer.classes, answer.label, watch)]
    if form == "label-studio":
        fusion = answered.result.fusion
        wide = np.zeros((len(tasks), len(answer.classes)))
        wide[:, : len(fusion.classes)] = fusion.posterior
        model = f"raterscope {answered.run.algorithm}, run {answered.run.id}"
        return write_label_studio(
            path, tasks, answer.classes, wide, fusion.label(), model=model, decided=answer.decided,
            pictures=_pictures(study, entry), watch=watch,
        )  # fmt: skip
    votes = answered.result.fusion.votes
    ordered = answered.question.labels.ordered
    columns = answer.classes, answer.posterior, answer.label, answer.entropy
    return [write_labels(path, tasks, *columns, votes, watch, ordered=ordered)]


def _write_probability(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    answer = apply_decisions(study, answered)
    tasks = answered.question.labels.tasks
    return [write_crowdkit_probabilities(path, tasks, answer.classes, answer.posterior, watch)]


def _write_training(
    request: Request, study: Study, entry: QuestionEntry, path: Path, watch: Watch
) -> list[Path]:
    """Write a row for each task with votes: picture, split by group, label, soft labels, entropy.

    A task without a group is one by itself. Groups are all in train or all in val.
    """
    watch(0.0, f"writing {request.what}")
    answered = _answer(study, entry)
    tasks, answer = answered.question.labels.tasks, apply_decisions(study, answered)
    pictures, votes = _pictures(study, entry), answered.result.fusion.votes
    group_of = request.task_groups
    used = [at for at in range(len(tasks)) if votes[at] or at in answer.decided]
    if group_of and not any(tasks[at] in group_of for at in used):
        raise InputError("the groups contain none of the question's tasks", file=study.path)
    groups = {at: group_of.get(tasks[at], tasks[at]) for at in used}
    validation = next(iter(split_groups(groups.values())), frozenset())
    rows = (
        (
            tasks[at], pictures.get(at, ""), "val" if groups[at] in validation else "train", groups[at],
            answer.classes[answer.label[at]] if answer.label[at] >= 0 else "", int(at in answer.decided),
            *(format_number(value) for value in answer.posterior[at].tolist()),
            format_number(float(answer.entropy[at])), int(votes[at]),
        )
        for at in used
    )  # fmt: skip
    shares = (f"p({name})" for name in answer.classes)
    return [write_table(path, (*_TRAINING, *shares, "entropy", "votes"), rows)]


def _write_annotators(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    votes = _votes(answered)
    return [write_annotators_table(path, answered.question, answered.result, answered.rates, votes, watch)]


def _write_confusion(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    labels, fusion = answered.question.labels, answered.result.fusion
    rates = answered.rates
    if form == "crowd-kit":
        return [
            write_crowdkit_confusion(
                path, labels.annotators, fusion.outputs, fusion.classes, rates.mean, watch
            )
        ]
    return [
        write_confusion(
            path, labels.annotators, fusion.outputs, fusion.classes, rates, _votes(answered),
            drift=fusion.drift, watch=watch,
        )
    ]  # fmt: skip


def _write_communities(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    if form == "svg":
        return _write_grouped("communities", study, entry, form, path, watch)
    answered = _answer(study, entry)
    labels, fusion = answered.question.labels, answered.result.fusion
    watch(0.5, "writing communities")
    groups = groups_of(labels, answered.result, accuracies(answered.rates)[0])
    rows = () if groups is None else community_rows(groups, labels.annotators)
    return [write_table(path, community_columns(fusion), rows)]


def _write_grouped(
    export: str, study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch
) -> list[Path]:
    """Write communities over time, participation or traces, see `GroupedAnswer`."""
    answered = _answer(study, entry)
    labels, fusion, rates = answered.question.labels, answered.result.fusion, answered.rates
    groups = groups_of(labels, answered.result, accuracies(rates)[0])
    return [GroupedAnswer(labels, fusion, rates, groups, watch).write(export, path, form)]


def _write_roc(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    """Measure and write the ROC curves of all methods with default settings."""
    answered = _answer(study, entry)
    folded = cross_validate(answered.question, FoldedSettings(), plan_of(answered.run), watch)
    return [(write_charts if form == "svg" else write_curves)(path, folded)]


def _write_rates(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    """Write rates over time for decisions on the last class."""
    question = Question(labels_of(study, entry.id), known_truth(study, entry.id))
    rates = follow_question(question, watch=watch)
    return [(write_rates_chart if form == "svg" else write_rates)(path, rates)]


def _write_next(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write the most informative next votes, except on tasks that the expert decided."""
    answered = _answer(study, entry)
    fusion = answered.result.fusion
    certain = apply_decisions(study, answered).posterior[:, : len(fusion.classes)]
    rows = next_vote_rows(answered.question.labels, replace(fusion, posterior=certain), watch)
    return [write_table(path, NEXT_VOTES, rows)]


def _write_assignments(
    budget: Budget, say: Callable[[str], object], study: Study, entry: QuestionEntry, path: Path, watch: Watch
) -> list[Path]:
    """Write the tasks of each annotator within a budget."""
    answered = _answer(study, entry)
    labels, fusion = answered.question.labels, answered.result.fusion
    decided = np.full(len(labels.tasks), OPEN, dtype=np.int16)
    for at, decision in apply_decisions(study, answered).decided.items():
        decided[at] = fusion.classes.index(decision.label) if decision.label in fusion.classes else 0
    assigned = assign(labels, fusion, budget, decided, watch)
    say(assigned.in_words())
    return [write_table(path, ASSIGNMENTS, assignment_rows(labels, fusion, assigned, budget))]


def _write_cost(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Measure and write the accuracy against votes per task, and what stopping would have saved."""
    answered = _answer(study, entry)
    cost = measure_cost(answered.question, plan_of(answered.run), watch=watch)
    return [write_table(path, COST, cost_rows(cost))]


def _write_retirement(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write the tasks that need no more votes: those with enough votes, and those that the expert decided."""
    watch(0.0, "writing the retirement list")
    answered = _answer(study, entry)
    tasks, answer, fusion = (
        answered.question.labels.tasks, apply_decisions(study, answered), answered.result.fusion
    )  # fmt: skip
    subjects, enough = study.settings.subjects(), has_enough(fusion)
    rule = f"{FEWEST} votes and posterior >= {ENOUGH:g}"
    rows = [
        (
            subjects.get(task, ""), task,
            "decided by the expert" if at in answer.decided
            else "held fixed as known" if fusion.known[at] != OPEN else rule,
            answer.classes[answer.label[at]], format_number(float(answer.posterior[at].max())),
            int(fusion.votes[at]),
        )
        for at, task in enumerate(tasks)
        if answer.label[at] >= 0 and (enough[at] or at in answer.decided)
    ]  # fmt: skip
    return [write_table(path, RETIREMENT, rows)]


def _write_votes(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    labels = labels_of(study, entry.id)
    return [(write_crowdkit_votes if form == "crowd-kit" else write_votes)(path, labels, watch)]


def _write_variability(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write the observer variability of annotators who are not excluded."""
    labels, state = labels_of(study, entry.id), fold(study.decisions())
    labels = labels.joined(standing_names(labels.annotators, state.aliases)).without(set(state.excluded))
    statistics = label_statistics(measure_labels(entry.name, labels, watch))
    return [write_table(path, COLUMNS, statistic_rows(statistics))]


def _write_agreement(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write the agreement of annotators who are not excluded."""
    labels = labels_of(study, entry.id).without(set(fold(study.decisions()).excluded))
    return [write_table(path, AGREEMENT, agreement_rows(labels, watch))]


def _write_tag_agreement(study: Study, tags: TagSet, path: Path, watch: Watch) -> Path:
    """Write the agreement over whole sets of annotators who are not excluded."""
    watch(0.0, "measuring agreement")
    excluded = set(fold(study.decisions()).excluded)
    votes = [labels_of(study, entry.id).without(excluded) for entry in tags.questions]
    return write_tag_agreement(path, votes)


def _write_tags(study: Study, tags: TagSet, path: Path, watch: Watch) -> Path:
    """Write the tags of each task, after decisions, with the probability of each tag."""
    answers = []
    for entry, step in steps_of(watch, tags.questions):
        step(0.0, f"reading {plain(entry.name)}")
        answered = _answer(study, entry)
        decided = apply_decisions(study, answered)
        present = decided.posterior[:, decided.classes.index(ABSENT_PRESENT[1])]
        answers.append((answered.question.labels.tasks, present))
    return write_table(path, tag_columns(tags.tags), tag_rows(tags.tags, answers))


def _write_decided(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    decided = decided_labels(study, entry)
    if form != "crowd-kit":
        return [write_decisions(path, decided)]
    classes = tuple(dict.fromkeys(label.label for label in decided))
    label = np.array([classes.index(label.label) for label in decided], dtype=np.int16)
    return [write_crowdkit_truth(path, [label.task for label in decided], classes, label, watch)]


def _votes(answered: Answered) -> NDArray[np.int64]:
    """Count every annotator's votes as the run did."""
    labels, plan = answered.question.labels, plan_of(answered.run)
    return labels.votes_of_annotators() if plan is None else counted_votes(labels, plan)


def _pictures(study: Study, entry: QuestionEntry) -> Mapping[int, str]:
    """Name the picture of each task: by its votes, or else the linked image."""
    crowd = study.vote_set(entry.id)
    named = {at: name for at, name in enumerate(crowd.pictures) if name}
    if named:
        return named
    names = {image.id: image.path or image.name for image in study.images()}
    return {task: names[image] for task, image in pictures_of(study, entry.id).items() if image in names}


_WRITERS: Mapping[str, _Write] = {
    "labels": _write_labels,
    "probability": _write_probability,
    "annotators": _write_annotators,
    "confusion": _write_confusion,
    "communities": _write_communities,
    "communities-over-time": partial(_write_grouped, "communities-over-time"),
    "participation": partial(_write_grouped, "participation"),
    "traces": partial(_write_grouped, "traces"),
    "roc-curves": _write_roc,
    "rates-over-time": _write_rates,
    "votes": _write_votes,
    "agreement": _write_agreement,
    "variability": _write_variability,
    "next-votes": _write_next,
    "cost": _write_cost,
    "retirement": _write_retirement,
    "decided": _write_decided,
}
