"""Tables of a fusion of labels: what `raterscope fuse labels` and the exports of a study write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.active_learning import next_votes
from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.copying import copying_of
from raterscope.algorithms.labels.data import FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import constancy
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.roc_curves import FoldedCurves
from raterscope.algorithms.progress import Background, Watch, part, silent
from raterscope.app.formats.labels.writing import write_annotators, write_confusion, write_labels
from raterscope.app.formats.output_files import format_number, remove_file, write_record, write_table
from raterscope.app.kinds.labels.community_charts import CHART_FILES, GroupedAnswer, write_all
from raterscope.app.kinds.labels.decision_rates import RATES_FILES, DecisionRates, write_rates_files
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
from raterscope.app.outcome import record_of

Row = Sequence[object]

COMMUNITIES = ("community", "name", "members", "share_of_votes", "accuracy", "most_central")
"""Columns; the entries of the prototype follow, named "true: given"."""

NEXT_VOTES = ("task", "annotator", "gain", "gain_of_new", "label", "probability", "votes")
EVALUATION = (
    "method", "tasks", "accuracy", "accuracy_low", "accuracy_high", "auc", "log_loss", "brier",
    "calibration_error",
)  # fmt: skip
PROPOSED = 100
"""Rows of next_votes.csv, at most."""

MOST_ENTRIES = 20_000_000
"""Entries of all annotators' matrices at one step up to which confusion.csv is written."""


@dataclass(frozen=True, eq=False)
class QuestionOutput:
    """Contents of the folder of one question."""

    question: Question  # input of the fusion
    plan: LabelPlan
    result: LabelResult
    record: Callable[[], Mapping[str, Any]]  # makes run.json, in another thread
    # by method: on the tasks whose truth is known and was kept from the methods
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
    """Return whether confusion.csv has a practicable size, which it has not with a thousand labels."""
    return output.result.fusion.confusion.alpha.size <= MOST_ENTRIES


def run_record(answer: Answer, name: str, inputs: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Make the contents of run.json: everything needed to reproduce the results, and how the fusion went."""
    outcome, question = answer.outcomes[name], answer.inputs.given[name]
    labels = question.labels
    assert labels.meaning is not None
    stands = [labels.classes[at] if at >= 0 else None for at in labels.meaning.tolist()]
    record = record_of(
        answer.plan, seed=answer.plan.settings.as_dict().get("seed"), digest=digest_once(name, question),
        inputs=inputs, started=answer.started, seconds=outcome.seconds,
    )  # fmt: skip
    return record | {
        "outputs": list(labels.outputs),
        "classes": list(labels.classes),
        "stands_for": dict(zip(labels.outputs, stands, strict=True)),
        "ordered": labels.ordered,
        "prior": None if labels.prior is None else labels.prior.tolist(),
        "weights": dict(answer.inputs.weights),
        "questions": [question_record(outcome, question, answer.plan)],
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

    Raises `InputError` if it cannot be written.

    `rates`: rates of the result, including excluded annotators. `votes`: (K,) integer, number of votes that
    count, by annotator.
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
    for number, members in enumerate(copying_of(labels, result, watch).groups(), 1):
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
