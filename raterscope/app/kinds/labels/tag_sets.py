"""Sets of tags of a study: the questions of each, agreement over whole sets, and the table of all tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.tag_agreement import tag_agreement
from raterscope.algorithms.annotators.vote_agreement import VoteAgreement
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.formats.labels.tag_sets import ABSENT_PRESENT, set_of_tag
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.kinds.labels.agreement import AGREEMENT, last_votes, rows_of_agreement
from raterscope.app.page.contents import Table
from raterscope.app.page.variability import write
from raterscope.app.study.records import QuestionEntry
from raterscope.text import count

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

    Parameters
    ----------
    answers : sequence of (tasks, probabilities)
        Of each tag; a task that has no votes on a tag has no probability.
    """
    table: dict[str, list[float]] = {}
    for number, ((tasks, probabilities), step) in enumerate(steps_of(watch, answers)):
        step(0.0, "collecting tags")
        for task, probability in zip(tasks, probabilities.tolist(), strict=True):
            table.setdefault(task, [np.nan] * len(tags))[number] = probability
    for task, values in table.items():
        chosen = [tag for tag, value in zip(tags, values, strict=True) if value > 0.5]
        yield task, "; ".join(chosen), *map(format_number, values)
