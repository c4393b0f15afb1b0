"""Agreement of the annotators of a question, of all answers and of each, and over sets of tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement import tag_agreement
from raterscope.algorithms.annotators.vote_agreement import Coefficient, Scale, VoteAgreement, vote_agreement
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.ordinal import is_ordinal
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.formats.labels.tag_sets import ABSENT_PRESENT, set_of_tag
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.page.contents import Table
from raterscope.app.page.variability import first_reads, write
from raterscope.app.study.records import QuestionEntry
from raterscope.text import count

AGREEMENT = ("answer", "scale", "coefficient", "value", "low", "high", "tasks", "votes")
_MOST_ANSWERS = 100
"""Answers of which each is measured by itself."""

_NAMES = {
    "percent": "agreement",
    "fleiss": "Fleiss' kappa",
    "gwet": "Gwet's AC1",
    "krippendorff": "Krippendorff's alpha",
}


def coefficients(agreement: VoteAgreement, scale: str) -> dict[str, Coefficient]:
    """Name the coefficients of an agreement."""
    names = dict(_NAMES, gwet="Gwet's AC1" if scale == "nominal" else "Gwet's AC2")
    return {name: getattr(agreement, field) for field, name in names.items()}


def scales_of(labels: Labels) -> dict[Scale, tuple[float, ...] | None]:
    """Return the scales that fit the answers: all for more than two grades or numbers, else nominal.

    Grades that are no numbers have the distance 1 to the next.
    """
    try:
        values = tuple(float(name) for name in labels.outputs)
    except ValueError:
        values = tuple(map(float, range(len(labels.outputs)))) if is_ordinal(labels) else ()
    if len(values) < 3 or not np.isfinite(values).all():
        return {"nominal": None}
    return {"nominal": None, "ordinal": values, "linear": values, "interval": values}


def measure_agreement(labels: Labels) -> dict[Scale, VoteAgreement]:
    """Measure the agreement of all votes on each scale that fits the answers."""
    task, answer, _ = last_votes(labels)
    return {
        scale: vote_agreement(task, answer, len(labels.outputs), scale=scale, values=values)
        for scale, values in scales_of(labels).items()
    }


def agreement_rows(labels: Labels, watch: Watch = silent) -> Iterator[tuple[object, ...]]:
    """Yield the rows of `AGREEMENT`: all answers on each scale, then each answer against all others."""
    watch(0.0, "measuring agreement")
    for scale, agreement in measure_agreement(labels).items():
        yield from rows_of_agreement("", scale, agreement)
    if len(labels.outputs) < 3:
        return
    task, answer, _ = last_votes(labels)
    numbers = np.bincount(answer, minlength=len(labels.outputs))
    often = sorted(np.argsort(-numbers, kind="stable")[:_MOST_ANSWERS].tolist())
    for done, number in enumerate(often, start=1):
        watch(done / (len(often) + 1), "measuring agreement")
        yield from rows_of_agreement(
            labels.outputs[number], "nominal", vote_agreement(task, answer == number, 2)
        )


def agreement_table(labels: Labels) -> Table:
    """Show the agreement of all votes on each scale that fits the answers."""
    agreements = measure_agreement(labels)
    rows = [
        (scale, *map(write, coefficients(agreement, scale).values()))
        for scale, agreement in agreements.items()
    ]
    nominal = agreements["nominal"]
    votes = f"{count(nominal.votes, 'vote')} on {count(nominal.tasks, 'task')}"
    note = (
        f"Of {votes} with two votes or more, with 95 % intervals by a bootstrap over tasks. "
        "Agreement: share of pairs of votes on a task that agree. The others subtract what chance explains, "
        "and estimate that differently: Fleiss' kappa and alpha are low where one answer is much more "
        "frequent than the others, Gwet's AC is not."
    )
    if len(agreements) > 1:
        note += (
            " On the other scales near grades agree in part: by their order, with linear weights, or with "
            "quadratic weights (interval)."
        )
    heads = ("Scale", "Agreement", "Fleiss' kappa", "Gwet's AC", "Krippendorff's alpha")
    return Table("Agreement of the annotators", heads, rows, note)


def rows_of_agreement(answer: str, scale: str, agreement: VoteAgreement) -> Iterator[tuple[object, ...]]:
    """Yield a row of `AGREEMENT` for each coefficient."""
    for name, coefficient in coefficients(agreement, scale).items():
        yield (
            answer,
            scale,
            name,
            *map(format_number, (coefficient.value, coefficient.low, coefficient.high)),
            agreement.tasks,
            agreement.votes,
        )


def last_votes(labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return task, answer and annotator of every person's last vote on each task in their first read."""
    kept = set(first_reads(dict.fromkeys(labels.annotators)))
    is_first = np.array([name in kept for name in labels.annotators], dtype=bool)[labels.annotator]
    rows = np.flatnonzero(is_first)
    key = labels.task[rows].astype(np.int64) * len(labels.annotators) + labels.annotator[rows]
    _, first_from_end = np.unique(key[::-1], return_index=True)
    last = rows[len(key) - 1 - first_from_end]
    task, answer, annotator = (
        values[last].astype(np.int64) for values in (labels.task, labels.label, labels.annotator)
    )
    return task, answer, annotator


_SCALE = "sets of tags (MASI)"


@dataclass(frozen=True)
class TagSet:
    """The questions of a set of tags, in the order of `tags`."""

    name: str
    tags: tuple[str, ...]
    questions: tuple[QuestionEntry, ...]


def find_tag_sets(questions: Sequence[QuestionEntry]) -> list[TagSet]:
    """Find the sets with two tags or more; a tag's question has the answers absent and present."""
    sets: dict[str, dict[str, QuestionEntry]] = {}
    for question in questions:
        named = set_of_tag(question.name)
        if named is not None and tuple(question.scheme.outputs) == ABSENT_PRESENT:
            sets.setdefault(named[0], {})[named[1]] = question
    return [TagSet(name, tuple(of), tuple(of.values())) for name, of in sets.items() if len(of) > 1]


def measure_tag_agreement(votes: Sequence[Labels]) -> VoteAgreement:
    """Measure the agreement over whole sets, from the votes on each tag."""
    names = dict.fromkeys(name for labels in votes for name in labels.tasks)
    annotators = dict.fromkeys(name for labels in votes for name in labels.annotators)
    task_index = {name: at for at, name in enumerate(names)}
    annotator_index = {name: at for at, name in enumerate(annotators)}
    pairs: list[NDArray[np.int64]] = []
    present: list[NDArray[np.bool_]] = []
    for labels in votes:
        task, answer, annotator = last_votes(labels)
        of_task = np.array([task_index[name] for name in labels.tasks], dtype=np.int64)
        of_annotator = np.array([annotator_index[name] for name in labels.annotators], dtype=np.int64)
        pairs.append(of_task[task] * len(annotators) + of_annotator[annotator])
        present.append(answer == 1)
    together = np.unique(np.concatenate(pairs))
    sets = np.zeros((len(together), len(votes)), dtype=np.bool_)
    for number, (pair, has) in enumerate(zip(pairs, present, strict=True)):
        sets[np.searchsorted(together, pair), number] = has
    return tag_agreement(together // max(len(annotators), 1), sets)


def write_tag_agreement(path: Path, votes: Sequence[Labels]) -> Path:
    """Write the agreement over whole sets, with the columns of other answers."""
    return write_table(path, AGREEMENT, rows_of_agreement("", _SCALE, measure_tag_agreement(votes)))


def tag_agreement_table(name: str, votes: Sequence[Labels]) -> Table:
    """Show the agreement over whole sets."""
    agreement = measure_tag_agreement(votes)
    figures = (agreement.percent, agreement.fleiss, agreement.gwet, agreement.krippendorff)
    note = (
        f"Of {count(agreement.votes, 'set')} of tags on {count(agreement.tasks, 'task')} with two votes "
        "or more, with 95 % intervals by a bootstrap over tasks. Sets with tags in common agree in part, by "
        "the MASI distance [@passonneau2006]: 1 - J M, where J is the Jaccard index, and M is 1 for equal "
        "sets, 2/3 if one contains the other, and 1/3 if they overlap."
    )
    heads = ("Set", "Agreement", "Fleiss' kappa", "Gwet's AC", "Krippendorff's alpha")
    return Table("Agreement over sets of tags", heads, [(name, *map(write, figures))], note)


def tag_columns(tags: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of the table of a set: task, its tags, and the probability of each."""
    return ("task", "tags", *(f"p({tag})" for tag in tags))


def tag_rows(
    tags: Sequence[str], answers: Sequence[tuple[Sequence[str], NDArray[np.float64]]], watch: Watch = silent
) -> Iterator[Sequence[object]]:
    """Yield for each task its tags that are more probable than not, and the probability of each tag.

    `answers`: tasks and probabilities of each tag; a task without votes on a tag has no probability.
    """
    table: dict[str, list[float]] = {}
    for number, ((tasks, probabilities), step) in enumerate(steps_of(watch, answers)):
        step(0.0, "collecting tags")
        for task, probability in zip(tasks, probabilities.tolist(), strict=True):
            table.setdefault(task, [np.nan] * len(tags))[number] = probability
    for task, values in table.items():
        chosen = [tag for tag, value in zip(tags, values, strict=True) if value > 0.5]
        yield task, "; ".join(chosen), *map(format_number, values)
