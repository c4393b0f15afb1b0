"""Agreement and observer variability of labels: between and within annotators, by answer and by tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement import (
    RepeatedAnswers,
    cohen_kappa,
    kappa_interval,
    repeated_answers,
    shares_alike,
    tag_agreement,
)
from raterscope.algorithms.annotators.agreement_statistics import (
    Coefficient,
    Scale,
    VoteAgreement,
    vote_agreement,
)
from raterscope.algorithms.annotators.reader_study import mean_interval
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.ordinal import is_ordinal
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import plain
from raterscope.app.formats.labels.tags import ABSENT_PRESENT, set_of_tag
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.page.contents import NONE, Block, Gallery, Notices, Section, Table, named
from raterscope.app.page.variability import (
    ANOTHER,
    ANY_READER,
    THE_SAME,
    Protocol,
    Statistic,
    forest_picture,
    last_answers,
    protocol_table,
    versus,
    write,
)
from raterscope.app.study.records import QuestionEntry
from raterscope.text import counted

AGREEMENT = ("answer", "scale", "coefficient", "value", "low", "high", "tasks", "votes")
_MAX_ANSWERS = 100
"""Maximum number of answers to measure one by one."""

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

    Grades other than numbers have distance 1 to the next grade.
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
    often = sorted(np.argsort(-numbers, kind="stable")[:_MAX_ANSWERS].tolist())
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
    votes = f"{counted(nominal.votes, 'vote')} on {counted(nominal.tasks, 'task')}"
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
    """Return task, answer and annotator of each annotator's last vote on each task in their first read."""
    last = last_answers(labels.annotators, labels.annotator, labels.task)
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
    """Measure the agreement on whole tag sets, from the votes on each tag."""
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
    """Write the agreement on whole tag sets, with the columns of other answers."""
    return write_table(path, AGREEMENT, rows_of_agreement("", _SCALE, measure_tag_agreement(votes)))


def tag_agreement_table(name: str, votes: Sequence[Labels]) -> Table:
    """Show the agreement on whole tag sets."""
    agreement = measure_tag_agreement(votes)
    figures = (agreement.percent, agreement.fleiss, agreement.gwet, agreement.krippendorff)
    note = (
        f"Of {counted(agreement.votes, 'set')} of tags on {counted(agreement.tasks, 'task')} with two votes "
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
    tags: Sequence[str], answers: Sequence[tuple[Sequence[str], NDArray[np.float64]]]
) -> Iterator[Sequence[object]]:
    """Yield for each task the tags with a probability above 0.5, and the probability of each tag.

    `answers`: tasks and probabilities of each tag; a task without votes on a tag has no probability.
    """
    table: dict[str, list[float]] = {}
    for number, (tasks, probabilities) in enumerate(answers):
        for task, probability in zip(tasks, probabilities.tolist(), strict=True):
            table.setdefault(task, [np.nan] * len(tags))[number] = probability
    for task, values in table.items():
        chosen = [tag for tag, value in zip(tags, values, strict=True) if value > 0.5]
        yield task, "; ".join(chosen), *map(format_number, values)


_MAX_READERS = 12
_MIN_TASKS = 5
_MAX_ROWS = 30

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class LabelVariability:
    """Variability of the answers to a question."""

    question: str
    agreement: VoteAgreement  # of all annotators, on a nominal scale
    annotators: int
    # (annotator, annotator) to Cohen's kappa, agreement and number of common tasks; of those with most votes
    pairs: dict[Pair, tuple[Coefficient, Coefficient, int]]
    with_others: dict[str, Coefficient]  # mean share of the others' votes that are equal
    repeats: list[RepeatedAnswers]  # pooled, then by reader
    # (annotator, annotator) to Cohen's kappa with linear and quadratic weights; empty without ordered answers
    weighted: dict[Pair, tuple[Coefficient, Coefficient]] = field(default_factory=dict)


def measure_labels(question: str, labels: Labels, watch: Watch = silent) -> LabelVariability:
    """Measure the agreement of annotators with each other and with themselves."""
    watch(0.0, "measuring agreement")
    task, answer, annotator = last_votes(labels)
    numbers = np.bincount(annotator, minlength=len(labels.annotators))
    busiest = [at for at in np.argsort(-numbers, kind="stable").tolist() if numbers[at]]
    order = np.lexsort((annotator, task))
    task, answer, annotator = task[order], answer[order], annotator[order]
    counts = np.zeros((int(task.max(initial=-1)) + 1, len(labels.outputs)), dtype=np.int64)
    np.add.at(counts, (task, answer), 1)
    votes = counts.sum(axis=1)
    pairs: dict[Pair, tuple[Coefficient, Coefficient, int]] = {}
    with_others: dict[str, Coefficient] = {}
    weighted: dict[Pair, tuple[Coefficient, Coefficient]] = {}
    chosen = busiest[:_MAX_READERS]
    given = {at: (task[annotator == at], answer[annotator == at]) for at in chosen}
    for at in chosen:
        own_tasks, own_answers = given[at]
        several = votes[own_tasks] > 1
        alike = (counts[own_tasks, own_answers] - 1)[several] / (votes[own_tasks] - 1)[several]
        with_others[labels.annotators[at]] = _within_one(mean_interval(alike))
    for first, second in combinations(chosen, 2):
        common, left, right = np.intersect1d(given[first][0], given[second][0], return_indices=True)
        if len(common) >= _MIN_TASKS:
            a, b = given[first][1][left], given[second][1][right]
            kappa = Coefficient(cohen_kappa(a, b), *kappa_interval(a, b))
            names = labels.annotators[first], labels.annotators[second]
            pairs[names] = kappa, shares_alike(a == b), len(common)
            if is_ordinal(labels):
                linear, quadratic = (
                    Coefficient(cohen_kappa(a, b, power=power), *kappa_interval(a, b, power=power))
                    for power in (1, 2)
                )
                weighted[names] = linear, quadratic
    watch(0.8, "comparing repeated answers")
    repeats = repeated_answers(labels.task, labels.annotator, labels.label, labels.annotators)
    agreement = measure_agreement(labels)["nominal"]
    return LabelVariability(question, agreement, len(busiest), pairs, with_others, repeats, weighted)


def label_statistics(variability: LabelVariability) -> Iterator[Statistic]:
    """Yield all statistics, for exports and protocols."""
    question, agreement = variability.question, variability.agreement
    tasks, readers = agreement.tasks, variability.annotators
    for key, value in (
        ("agreement", agreement.percent), ("fleiss", agreement.fleiss),
        ("Gwet's AC1", agreement.gwet), ("alpha", agreement.krippendorff),
    ):  # fmt: skip
        yield Statistic(question, key, value, "", ANY_READER, ANOTHER, tasks, readers)
    for repeated in variability.repeats:
        names = (repeated.person or ANY_READER, repeated.person or THE_SAME)
        for key, value in (("agreement", repeated.agreement), ("kappa", repeated.kappa)):
            yield Statistic(
                question, key, value, "", *names, repeated.repeats, 1, single=bool(repeated.person)
            )
    for pair, (kappa, percent, common) in variability.pairs.items():
        yield Statistic(question, "agreement", percent, "", *pair, common, single=True)
        yield Statistic(question, "kappa", kappa, "", *pair, common, single=True)
        for key, value in zip(
            ("linear kappa", "quadratic kappa"), variability.weighted.get(pair, ()), strict=False
        ):
            yield Statistic(question, key, value, "", *pair, common, single=True)


def variability_section(question: str, labels: Labels, protocol: Protocol, watch: Watch = silent) -> Section:
    """Report the variability of the answers to a question."""
    variability = measure_labels(question, labels, watch)
    statistics = list(label_statistics(variability))
    limits = protocol_table(protocol, statistics)
    blocks: list[Block] = [] if limits is None else [limits]
    if variability.repeats:
        blocks.append(_repeats_table(variability.repeats))
    else:
        sentence = "No annotator answered a task twice: intra-observer agreement is not known."
        blocks.append(Notices([sentence]))
    if variability.pairs:
        blocks.append(_pairs_table(variability))
    shown = {name: value for name, value in variability.with_others.items() if np.isfinite(value.value)}
    if len(shown) > 2:
        names = [plain(name, 40) for name in shown]
        title = "Agreement of each annotator with the others"
        label = "share of the others' equal votes"
        blocks.append(
            Gallery("Annotators compared", [forest_picture(names, list(shown.values()), label, title)])
        )
    return Section("Observer variability", blocks)


def _repeats_table(repeats: list[RepeatedAnswers]) -> Table:
    rows = [
        (
            named(repeated.person) if repeated.person else "All",
            f"{repeated.repeats:,}",
            write(repeated.agreement),
            write(repeated.kappa) if np.isfinite(repeated.kappa.value) else NONE,
        )
        for repeated in repeats[: _MAX_ROWS + 1]
    ]
    note = (
        "Each answer is compared with the one that the same annotator gave to the task before, in the same "
        "or an earlier read. Intervals: Wilson's for the share, a bootstrap over repeats for Cohen's kappa."
    )
    if len(repeats) > len(rows):
        note += f" The {_MAX_ROWS} annotators with the most repeats are shown; the export has all."
    return Table(
        "Repeated answers of the same annotator", ("Annotator", "Repeats", "Equal", "Kappa"), rows, note
    )


def _pairs_table(variability: LabelVariability) -> Table:
    ranked = sorted(variability.pairs.items(), key=lambda item: -item[1][2])
    rows = [
        (
            versus(pair),
            f"{common:,}",
            write(percent),
            write(kappa),
            *map(write, variability.weighted.get(pair, ())),
        )
        for pair, (kappa, percent, common) in ranked[:_MAX_ROWS]
    ]
    note = (
        "Cohen's kappa and the share of equal answers, with 95 % intervals, of annotators with "
        f"{_MIN_TASKS} or more common tasks."
    )
    left_out = variability.annotators - min(variability.annotators, _MAX_READERS)
    if left_out:
        note += f" The {_MAX_READERS} annotators with the most votes; {counted(left_out, 'other')} left out."
    if len(ranked) > len(rows):
        note += f" {len(rows)} of {len(ranked)} pairs are shown; the export has all."
    weighted = ("Linear kappa", "Quadratic kappa") if variability.weighted else ()
    return Table("Pairs of annotators", ("", "Tasks", "Equal", "Kappa", *weighted), rows, note)


def _within_one(share: Coefficient) -> Coefficient:
    return Coefficient(share.value, max(0.0, share.low), min(1.0, share.high))
