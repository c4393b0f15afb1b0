"""Exports of labels: the tables of a study, with the decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import max_rows
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray
from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.algorithms.labels.vote_budget import ENOUGH, FEWEST, has_enough
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, description_of, files_for
from raterscope.app.formats.cvat import CvatImage, CvatShape, write_cvat_file
from raterscope.app.formats.label_studio import write_label_studio
from raterscope.app.formats.labels.tags import ABSENT_PRESENT
from raterscope.app.formats.labels.writing import (
    DecidedLabel,
    write_confusion,
    write_crowdkit_confusion,
    write_crowdkit_probabilities,
    write_crowdkit_truth,
    write_crowdkit_votes,
    write_decisions,
    write_labels,
    write_votes,
)
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.formats.points.writing import write_reductions
from raterscope.app.kinds.labels.community_charts import GroupedAnswer
from raterscope.app.kinds.labels.evaluation import cross_validate, write_charts, write_curves
from raterscope.app.kinds.labels.fusion_tables import (
    NEXT_VOTES,
    accuracies,
    community_columns,
    community_rows,
    counted_votes,
    follow_question,
    next_vote_rows,
    write_annotators_table,
    write_rates,
    write_rates_chart,
)
from raterscope.app.kinds.labels.runs import Answered, Question, groups_of, plan_of, read_answer
from raterscope.app.kinds.labels.variability import (
    AGREEMENT,
    TagSet,
    agreement_rows,
    find_tag_sets,
    label_statistics,
    measure_labels,
    tag_columns,
    tag_rows,
    write_tag_agreement,
)
from raterscope.app.kinds.labels.vote_budget import (
    ASSIGNMENTS,
    COST,
    Budget,
    assign,
    assignment_rows,
    cost_rows,
    measure_cost,
    read_budget,
)
from raterscope.app.page.variability import COLUMNS, statistic_rows
from raterscope.app.review import ReviewState
from raterscope.app.study import Study
from raterscope.app.study.image_groups import split_groups
from raterscope.app.study.labels import known_truth, labels_of, labels_of_voters, pictures_of
from raterscope.app.study.records import QuestionEntry

RETIREMENT = ("subject", "task", "reason", "label", "probability", "votes")
_TRAINING = ("task", "picture", "split", "group", "label", "decided")
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
        raise InputError("contains no labels; `raterscope import` reads them", file=study.path)
    entries = [entry for entry in requested if _is_ready(study, entry, request.what)]
    if not entries or (request.items and len(entries) < len(requested)):
        raise InputError(_why_missing(request.what), file=study.path)
    items: list[tuple[QuestionEntry | TagSet, str]] = []
    if request.what != "tags":
        items += [(entry, entry.name) for entry in entries]
    if request.what in ("tags", "agreement"):
        items += [(tags, tags.name) for tags in find_tag_sets(entries)]
    if not items:
        raise InputError("contains no votes with several tags", file=study.path)
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
    """An answer with the expert's decisions applied."""

    classes: tuple[str, ...]  # (J,): classes of the answer, then further classes of decisions
    posterior: FloatArray  # (N, J): 0 and 1 where the expert decided
    label: ClassArray  # (N,)
    entropy: FloatArray  # (N,)
    decided: dict[int, DecidedLabel]  # by task

    @property
    def doubt(self) -> FloatArray:
        """(N,): the probability that the label is wrong."""
        return 1.0 - max_rows(self.posterior)


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
    """List the expert's decisions in effect on a question's tasks, with expert, time and reason."""
    state: ReviewState = study.review_state()
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
        return "contains no decision on a task yet"
    if export == "roc-curves":
        return "contains no known truths of fused labels; `raterscope import --kind true-labels` reads them"
    if export in OF_COMMUNITIES:
        return "contains no communities yet; `raterscope run` finds them, with --set communities=behaviour"
    return "contains no run of labels yet; `raterscope run` makes one"


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
    if form == "panoptes":
        subjects, names = study.settings.subjects, [name.replace(".", "_") for name in answer.classes]
        reductions: dict[str, dict[str, object]] = {}
        for at, task in enumerate(tasks):
            if answer.label[at] >= 0 and task in subjects:
                data = dict(zip(names, map(format_number, answer.posterior[at].tolist()), strict=True))
                reductions[subjects[task]] = {"choice": answer.classes[answer.label[at]], **data}
        return [write_reductions(path, "raterscope_question", reductions)]
    if form == "cvat":
        pictures = _pictures(study, entry)
        tags = [
            CvatImage(
                pictures.get(at, task),
                None,
                [
                    CvatShape(
                        "tag", answer.classes[answer.label[at]], at in answer.decided,
                        attributes={"posterior": float(answer.posterior[at].max())},
                    )
                ]
                if answer.label[at] >= 0
                else [],
            )
            for at, task in enumerate(tasks)
        ]  # fmt: skip
        title = description_of(answered.run)
        return [write_cvat_file(path, tags, dict.fromkeys(answer.classes, "tag"), title, ["posterior"])]
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

    A task without a group forms its own. A group is either in train or in val.
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
    labels = labels_of(study, entry.id).without(study.review_state().programs)
    question = Question(labels, known_truth(study, entry.id))
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
    """Measure and write the accuracy by votes per task, and the votes that a stop rule would have saved."""
    answered = _answer(study, entry)
    cost = measure_cost(answered.question, plan_of(answered.run), watch=watch)
    return [write_table(path, COST, cost_rows(cost))]


def _write_retirement(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write the tasks that need no more votes: those with enough votes, and those decided by the expert."""
    watch(0.0, "writing the retirement list")
    answered = _answer(study, entry)
    tasks, answer, fusion = (
        answered.question.labels.tasks, apply_decisions(study, answered), answered.result.fusion
    )  # fmt: skip
    subjects, enough = study.settings.subjects, has_enough(fusion)
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
    labels = labels_of_voters(study, entry.id, study.review_state())
    statistics = label_statistics(measure_labels(entry.name, labels, watch))
    return [write_table(path, COLUMNS, statistic_rows(statistics))]


def _write_agreement(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write the agreement of annotators who are not excluded."""
    labels = labels_of_voters(study, entry.id, study.review_state())
    return [write_table(path, AGREEMENT, agreement_rows(labels, watch))]


def _write_tag_agreement(study: Study, tags: TagSet, path: Path, watch: Watch) -> Path:
    """Write the agreement over whole sets of annotators who are not excluded."""
    watch(0.0, "measuring agreement")
    state = study.review_state()
    votes = [labels_of_voters(study, entry.id, state) for entry in tags.questions]
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
    """Return the name of each task's picture: from its votes, otherwise the linked image."""
    crowd = study.vote_set(entry.id)
    if crowd.pictures:
        return crowd.pictures
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
