"""Labels of a study for the next program: what the run shown says, the expert's word on top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray
from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.label_studio import write_label_studio
from raterscope.app.formats.labels.writing import (
    DecidedLabel,
    write_confusion,
    write_crowdkit_confusion,
    write_crowdkit_probabilities,
    write_crowdkit_truth,
    write_crowdkit_votes,
    write_decided,
    write_labels,
    write_votes,
)
from raterscope.app.formats.output_files import write_table
from raterscope.app.kinds.labels.answers import Answered, groups_of, plan_of, read_answer
from raterscope.app.kinds.labels.community_files import GroupedAnswer
from raterscope.app.kinds.labels.decision_rates import follow_question, write_rates, write_rates_chart
from raterscope.app.kinds.labels.folded import fold_question, write_charts, write_curves
from raterscope.app.kinds.labels.result_files import (
    NEXT_VOTES,
    accuracies,
    community_columns,
    community_rows,
    counted_votes,
    next_vote_rows,
    write_people,
)
from raterscope.app.kinds.labels.running import Question
from raterscope.app.review import ReviewState, fold
from raterscope.app.study import Study
from raterscope.app.study.labels import labels_of, pictures_of
from raterscope.app.study.records import QuestionEntry

OF_COMMUNITIES = ("communities", "communities-over-time", "participation")

_Write = Callable[[Study, QuestionEntry, str, Path, Watch], list[Path]]


def export_labels(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write something of labels, a file or two for each question; several go into a folder.

    See `exports.Writer`.

    Raises
    ------
    InputError
        When there are no labels, nothing was fused or decided yet, or a file cannot be written.
    """
    write = _WRITERS[request.what]
    every = [entry for entry in study.questions() if not request.items or entry.id in request.items]
    if not every:
        raise InputError("holds no labels; `raterscope import` reads them", file=study.path)
    entries = [entry for entry in every if _ready(study, entry, request.what)]
    if not entries or (request.items and len(entries) < len(every)):
        raise InputError(_missing(request.what), file=study.path)
    written: list[Path] = []
    for entry, path, here in files_for(request, [(entry, entry.name) for entry in entries], watch):
        written += write(study, entry, request.format, path, here)
    return written


@dataclass(frozen=True, eq=False)
class Settled:
    """What is to be said of every task: the answer, and the expert's decisions since.

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


def settled(study: Study, answered: Answered) -> Settled:
    """Lay what the expert decided over an answer."""
    tasks, fusion = answered.question.labels.tasks, answered.result.fusion
    place = {name: at for at, name in enumerate(tasks)}
    decided = {place[one.task]: one for one in decided_labels(study, answered.entry) if one.task in place}
    said = dict.fromkeys(one.label for one in decided.values())
    classes = (*fusion.classes, *(name for name in said if name not in fusion.classes))
    posterior = np.zeros((len(tasks), len(classes)))
    posterior[:, : len(fusion.classes)] = fusion.posterior
    label, entropy = fusion.label(), fusion.entropy()
    for at, one in decided.items():
        label[at] = classes.index(one.label)
        posterior[at] = 0.0
        posterior[at, label[at]] = 1.0
        entropy[at] = 0.0
    return Settled(classes, posterior, label, entropy, decided)


def decided_labels(study: Study, entry: QuestionEntry) -> list[DecidedLabel]:
    """List what the expert decided of a question's tasks and stands, with who, when and why."""
    state: ReviewState = fold(study.decisions())
    found = []
    for task, one in state.tasks(entry.id).items():
        by = state.decision(one.decision)
        who, when, why = ("", None, "") if by is None else (by.who, by.at, by.reason)
        found.append(DecidedLabel(task, one.label, who, when, why))
    return found


def _ready(study: Study, entry: QuestionEntry, what: str) -> bool:
    if what in ("votes", "rates-over-time"):
        return bool(len(study.vote_set(entry.id).task))
    if what == "decided":
        return bool(decided_labels(study, entry))
    answered = read_answer(study, entry)
    if what == "roc-curves" and not (study.vote_set(entry.id).truth != OPEN).any():
        return False
    return answered is not None and (what not in OF_COMMUNITIES or answered.result.communities is not None)


def _missing(what: str) -> str:
    if what == "decided":
        return "holds no decision on a task yet"
    if what == "roc-curves":
        return "holds no known truths with a run of labels; `raterscope import --kind true-labels` reads them"
    if what in OF_COMMUNITIES:
        return "holds no communities yet; `raterscope run` finds them, with --set communities=behaviour"
    return "holds no run of labels yet; `raterscope run` makes one"


def _answer(study: Study, entry: QuestionEntry) -> Answered:
    answered = read_answer(study, entry)
    if answered is None:
        raise InputError(_missing("labels"), file=study.path)
    return answered


def _write_labels(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    tasks, now = answered.question.labels.tasks, settled(study, answered)
    if form == "crowd-kit":
        return [write_crowdkit_truth(path, tasks, now.classes, now.label, watch)]
    if form == "label-studio":
        fusion = answered.result.fusion
        wide = np.zeros((len(tasks), len(now.classes)))
        wide[:, : len(fusion.classes)] = fusion.posterior
        return write_label_studio(
            path, tasks, now.classes, wide, fusion.label(), model=_model(answered), decided=now.decided,
            pictures=_pictures(study, entry), watch=watch,
        )  # fmt: skip
    votes = answered.result.fusion.votes
    return [write_labels(path, tasks, now.classes, now.posterior, now.label, now.entropy, votes, watch)]


def _write_probability(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    now = settled(study, answered)
    tasks = answered.question.labels.tasks
    return [write_crowdkit_probabilities(path, tasks, now.classes, now.posterior, watch)]


def _write_annotators(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    answered = _answer(study, entry)
    votes = _votes(answered)
    return [write_people(path, answered.question, answered.result, answered.rates, votes, watch)]


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
    what: str, study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch
) -> list[Path]:
    """Write communities over time, participation or traces, see `GroupedAnswer`."""
    answered = _answer(study, entry)
    labels, fusion, rates = answered.question.labels, answered.result.fusion, answered.rates
    groups = groups_of(labels, answered.result, accuracies(rates)[0])
    return [GroupedAnswer(labels, fusion, rates, groups, watch).write(what, path, form)]


def _write_roc(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    """Write the ROC curves of all methods, which are measured here, with default settings."""
    answered = _answer(study, entry)
    found = fold_question(answered.question, FoldedSettings(), plan_of(answered.run), watch)
    return [(write_charts if form == "svg" else write_curves)(path, found)]


def _write_rates(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    """Write rates over time for decisions on the last class."""
    question = Question(labels_of(study, entry.id), study.vote_set(entry.id).truth)
    found = follow_question(question, watch=watch)
    return [(write_rates_chart if form == "svg" else write_rates)(path, found)]


def _write_next(study: Study, entry: QuestionEntry, _: str, path: Path, watch: Watch) -> list[Path]:
    """Write which votes to ask for, not of tasks that the expert has decided."""
    answered = _answer(study, entry)
    fusion = answered.result.fusion
    certain = settled(study, answered).posterior[:, : len(fusion.classes)]
    rows = next_vote_rows(answered.question.labels, replace(fusion, posterior=certain), watch)
    return [write_table(path, NEXT_VOTES, rows)]


def _write_votes(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    labels = labels_of(study, entry.id)
    return [(write_crowdkit_votes if form == "crowd-kit" else write_votes)(path, labels, watch)]


def _write_decided(study: Study, entry: QuestionEntry, form: str, path: Path, watch: Watch) -> list[Path]:
    decided = decided_labels(study, entry)
    if form != "crowd-kit":
        return [write_decided(path, decided)]
    classes = tuple(dict.fromkeys(one.label for one in decided))
    label = np.array([classes.index(one.label) for one in decided], dtype=np.int16)
    return [write_crowdkit_truth(path, [one.task for one in decided], classes, label, watch)]


def _votes(answered: Answered) -> NDArray[np.int64]:
    """Count every annotator's votes as the run did."""
    labels, plan = answered.question.labels, plan_of(answered.run)
    return labels.votes_of_annotators() if plan is None else counted_votes(labels, plan)


def _model(answered: Answered) -> str:
    return f"raterscope {answered.run.algorithm}, run {answered.run.id}"


def _pictures(study: Study, entry: QuestionEntry) -> Mapping[int, str]:
    """Name the picture of each task: as its votes do, else the image that shows it."""
    crowd = study.vote_set(entry.id)
    named = {at: name for at, name in enumerate(crowd.pictures) if name}
    if named:
        return named
    names = {one.id: one.path or one.name for one in study.images()}
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
    "next-votes": _write_next,
    "decided": _write_decided,
}
