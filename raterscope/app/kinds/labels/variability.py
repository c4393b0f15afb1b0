"""Observer variability of labels: kappas and alpha between annotators, and of repeated answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from raterscope.algorithms.annotators.agreement import cohen_kappa, kappa_interval
from raterscope.algorithms.annotators.reader_study import mean_interval
from raterscope.algorithms.annotators.repeated_answers import RepeatedAnswers, repeated_answers, shares_alike
from raterscope.algorithms.annotators.vote_agreement import Coefficient, VoteAgreement
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.ordinal import is_ordinal
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.labels.agreement import last_votes, measure_agreement
from raterscope.app.page.contents import Block, Gallery, Notices, Section, Table
from raterscope.app.page.units import NONE, named
from raterscope.app.page.variability import (
    ANOTHER,
    ANY_READER,
    THE_SAME,
    Protocol,
    Statistic,
    forest_picture,
    protocol_table,
    write,
)

_MOST_READERS = 12
_LEAST_TASKS = 5
_MOST_ROWS = 30

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class LabelVariability:
    """Variability of the answers to a question."""

    question: str
    agreement: VoteAgreement  # of all annotators, on a nominal scale
    annotators: int
    # by (str, str): Cohen's kappa and agreement of two annotators, and their common tasks; of those with the
    # most votes
    pairs: dict[Pair, tuple[Coefficient, Coefficient, int]]
    with_others: dict[str, Coefficient]  # mean share of the others' votes that are equal
    repeats: list[RepeatedAnswers]  # of all together, then of each person
    # by (str, str): Cohen's kappa of two annotators with linear and quadratic weights; empty without ordered
    # answers
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
    chosen = busiest[:_MOST_READERS]
    given = {at: (task[annotator == at], answer[annotator == at]) for at in chosen}
    for at in chosen:
        own_tasks, own_answers = given[at]
        several = votes[own_tasks] > 1
        alike = (counts[own_tasks, own_answers] - 1)[several] / (votes[own_tasks] - 1)[several]
        with_others[labels.annotators[at]] = _within_one(mean_interval(alike))
    for first, second in combinations(chosen, 2):
        common, left, right = np.intersect1d(given[first][0], given[second][0], return_indices=True)
        if len(common) >= _LEAST_TASKS:
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
        for repeated in repeats[: _MOST_ROWS + 1]
    ]
    note = (
        "Each answer is compared with the one that the same annotator gave to the task before, in the same "
        "or an earlier read. Intervals: Wilson's for the share, a bootstrap over repeats for Cohen's kappa."
    )
    if len(repeats) > len(rows):
        note += f" The {_MOST_ROWS} annotators with the most repeats are shown; the export has all."
    return Table(
        "Repeated answers of the same annotator", ("Annotator", "Repeats", "Equal", "Kappa"), rows, note
    )


def _pairs_table(variability: LabelVariability) -> Table:
    ranked = sorted(variability.pairs.items(), key=lambda item: -item[1][2])
    rows = [
        (
            " \N{MINUS SIGN} ".join(map(named, pair)),
            f"{common:,}",
            write(percent),
            write(kappa),
            *map(write, variability.weighted.get(pair, ())),
        )
        for pair, (kappa, percent, common) in ranked[:_MOST_ROWS]
    ]
    note = (
        "Cohen's kappa and the share of equal answers, with 95 % intervals, of annotators with "
        f"{_LEAST_TASKS} or more common tasks."
    )
    left_out = variability.annotators - min(variability.annotators, _MOST_READERS)
    if left_out:
        note += f" The {_MOST_READERS} annotators with the most votes; {counted(left_out, 'other')} left out."
    if len(ranked) > len(rows):
        note += f" {len(rows)} of {len(ranked)} pairs are shown; the export has all."
    weighted = ("Linear kappa", "Quadratic kappa") if variability.weighted else ()
    return Table("Pairs of annotators", ("", "Tasks", "Equal", "Kappa", *weighted), rows, note)


def _within_one(share: Coefficient) -> Coefficient:
    return Coefficient(share.value, max(0.0, share.low), min(1.0, share.high))
