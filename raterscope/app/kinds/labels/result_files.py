"""What a fusion of labels is written as: tables, and the record of how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.active_learning import next_votes
from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.copying import copies
from raterscope.algorithms.labels.data import FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import constancy
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.roc_curves import FoldedCurves
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.formats.labels.writing import write_annotators, write_confusion, write_labels
from raterscope.app.formats.output_files import shortest, take_away, write_record, write_table
from raterscope.app.kinds.labels.answers import Groups, groups_of
from raterscope.app.kinds.labels.community_files import CHART_FILES, GroupedAnswer, write_all
from raterscope.app.kinds.labels.decision_rates import RATES_FILES, DecisionRates, write_rates_files
from raterscope.app.kinds.labels.folded import ROC_FILES, write_folded
from raterscope.app.kinds.labels.running import Answer, Question, digest_of, question_record, rates_for
from raterscope.app.outcome import record_of

Row = Sequence[object]

COMMUNITIES = ("community", "name", "members", "share_of_votes", "accuracy", "most_central")
"""Then the entries of the prototype, named "true: given"."""

NEXT_VOTES = ("task", "annotator", "gain", "gain_of_new", "label", "probability", "votes")
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
    """All that the folder of one question holds.

    Attributes
    ----------
    question : Question
        What was fused.
    plan : LabelPlan
    result : LabelResult
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
    """Write tables and run.json into a folder that is there; gives the files.

    Each file replaces one that is there, whole or not at all. What an earlier run wrote and this one does not
    have is taken away. run.json comes last, and goes first where there is one: where it is, all that it tells
    of is there.

    Raises
    ------
    InputError
        When something cannot be written.
    """
    labels, fusion = output.question.labels, output.result.fusion
    rates = rates_for(output.question, output.result)
    groups = groups_of(labels, output.result, accuracies(rates)[0])
    take_away(folder / "run.json")
    votes = counted_votes(labels, output.plan)
    written = [
        write_labels(
            folder / "labels.csv", labels.tasks, fusion.classes, fusion.posterior, fusion.label(),
            fusion.entropy(), fusion.votes, part(watch, 0.0, 0.2),
        ),
        write_people(
            folder / "annotators.csv", output.question, output.result, rates, votes, part(watch, 0.2, 0.3)
        ),
    ]  # fmt: skip
    if has_confusion(output):
        confusion = write_confusion(
            folder / "confusion.csv", labels.annotators, fusion.outputs, fusion.classes, rates,
            votes, drift=fusion.drift, steps=output.steps, watch=part(watch, 0.3, 0.7),
        )  # fmt: skip
        written.append(confusion)
    if groups is not None:
        columns = community_columns(fusion)
        written.append(
            write_table(folder / "communities.csv", columns, community_rows(groups, labels.annotators))
        )
    if output.assessments:
        columns = (*EVALUATION, *_class_areas(fusion.classes))
        written.append(write_table(folder / "evaluation.csv", columns, evaluation_rows(output.assessments)))
    asked = next_vote_rows(labels, fusion, part(watch, 0.7, 1.0))
    written.append(write_table(folder / "next_votes.csv", NEXT_VOTES, asked))
    if output.curves is not None:
        written += write_folded(folder, output.curves)
    if output.over_time is not None:
        written += write_rates_files(folder, output.over_time)
    if output.charts:
        written += write_all(folder, GroupedAnswer(labels, fusion, rates, groups, part(watch, 0.7, 0.9)))
    for name in (
        "confusion.csv", "communities.csv", "evaluation.csv", *ROC_FILES, *RATES_FILES, *CHART_FILES
    ):  # fmt: skip
        if folder / name not in written:
            take_away(folder / name)
    return [*written, write_record(folder / "run.json", output.record)]


def has_confusion(output: QuestionOutput) -> bool:
    """Tell whether confusion.csv is of a size that anybody opens: of a thousand labels it soon is not."""
    return output.result.fusion.confusion.alpha.size <= MOST_ENTRIES


def run_record(answer: Answer, name: str, inputs: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Make the contents of run.json: all that a question's results are made from, and how it went."""
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
        "prior": None if labels.prior is None else labels.prior.tolist(),
        "questions": [question_record(outcome, question)],
    }


def counted_votes(labels: Labels, plan: LabelPlan) -> NDArray[np.int64]:
    """Count every annotator's votes, (K,), of repeated ones those that the plan lets count."""
    return labels.settled(getattr(plan.settings, "repeats", "all")).votes_of_annotators()


def accuracies(rates: Rates) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give how often each annotator is right, (K,), with its interval; NaN for who has no votes."""
    mean, low, high = rates.accuracies()
    mute = rates.votes == 0
    return np.where(mute, np.nan, mean), np.where(mute, np.nan, low), np.where(mute, np.nan, high)


def write_people(
    path: Path,
    question: Question,
    result: LabelResult,
    rates: Rates,
    votes: NDArray[np.integer],
    watch: Watch = silent,
) -> Path:
    """Write annotators.csv: the figures that window and report show of each annotator.

    Parameters
    ----------
    path : Path
    question : Question
    result : LabelResult
    rates : Rates
        Of the result, excluded annotators among them.
    votes : (K,) integer
        Votes that count, by annotator.
    watch : Watch

    Raises
    ------
    InputError
        When it cannot be written.
    """
    labels, fusion = question.labels, result.fusion
    accuracy = accuracies(rates)
    people = len(labels.annotators)
    groups = groups_of(labels, result, accuracy[0])
    community = [""] * people if groups is None else [str(at + 1) if at >= 0 else "" for at in groups.of]
    change = np.full(people, np.nan) if fusion.drift is None else constancy(labels, fusion).p
    copying = [""] * people
    for number, members in enumerate(copies(labels, fusion, watch).groups(), 1):
        for member in members:
            copying[member] = str(number)
    excluded = np.zeros(people, dtype=np.int64)
    if question.excluded is not None:
        excluded = question.excluded.votes_of_annotators()
    return write_annotators(path, labels.annotators, votes, accuracy, community, change, copying, excluded)


def community_columns(fusion: LabelFusion) -> tuple[str, ...]:
    """Name the columns of communities.csv."""
    entries = (f"{true}: {given}" for true in fusion.classes for given in fusion.outputs)
    return (*COMMUNITIES, *entries)


def community_rows(groups: Groups, annotators: Sequence[str]) -> Iterator[Row]:
    """Give the rows of communities.csv, the largest first."""
    sizes = groups.found.sizes().tolist()
    for at, name in enumerate(groups.names):
        share, accuracy = shortest(groups.votes[at]), shortest(groups.accuracy[at])
        rates = map(shortest, groups.found.prototype[at].ravel().tolist())
        yield (str(at + 1), name, sizes[at], share, accuracy, annotators[groups.central[at]], *rates)


def next_vote_rows(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Iterator[Row]:
    """Give the rows of next_votes.csv, the most telling vote first; no annotator for somebody new."""
    asked = next_votes(labels, fusion, ASKED, watch=watch)
    found = fusion.label()
    for row in range(len(asked)):
        task, who = int(asked.task[row]), int(asked.annotator[row])
        best = int(found[task])
        yield (
            labels.tasks[task],
            labels.annotators[who] if who >= 0 else "",
            shortest(float(asked.gain[row])),
            shortest(float(asked.gain_of_new[row])),
            fusion.classes[best],
            shortest(float(fusion.posterior[task, best])),
            int(fusion.votes[task]),
        )


def evaluation_rows(assessments: Mapping[str, Assessment]) -> Iterator[Row]:
    """Give the rows of evaluation.csv, a method each."""
    for method, one in assessments.items():
        figures = (
            one.accuracy, one.accuracy_low, one.accuracy_high, one.area, one.log_loss, one.brier,
            one.calibration.error,
        )  # fmt: skip
        areas = [curve.area for curve in one.curves] if len(one.classes) > 2 else []
        yield (method, one.judged, *map(shortest, (*figures, *areas)))


def _class_areas(classes: Sequence[str]) -> list[str]:
    """Name the columns of each class's AUC; of two classes both are the same."""
    return [f"auc: {name}" for name in classes] if len(classes) > 2 else []
