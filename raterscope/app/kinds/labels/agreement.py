"""Agreement of the annotators of a question, of all answers and of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.vote_agreement import Coefficient, Scale, VoteAgreement, vote_agreement
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.ordinal import is_ordinal
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.output_files import format_number
from raterscope.app.page.contents import Table
from raterscope.app.page.variability import first_reads, write
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
