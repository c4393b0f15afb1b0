"""Prior of the annotators, votes packed task by task, and initial posteriors."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, Labels, LabelsError, default_prior
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, choice, number

__all__ = [
    "LabelSettings",
    "PriorSettings",
    "TaskVotes",
    "by_span",
    "by_task",
    "prior_of",
    "standing",
    "task_spans",
]


REPEATS = {
    "all": "each of them counts",
    "first": "the first of them counts",
    "last": "the last of them counts",
}


@dataclass(frozen=True)
class LabelSettings(Settings):
    """Settings of every method without time."""

    repeats: Literal["all", "first", "last"] = choice(
        "all", "Repeated votes", "What an annotator's several votes on one task count for.", REPEATS
    )


@dataclass(frozen=True)
class PriorSettings(Settings):
    """Prior of every annotator, and of the classes (alpha_0 and nu_0 of the paper)."""

    prior_strength: float | None = number(
        None, "Prior strength",
        "How many votes of each class the prior counts for. Left open: one for every label, and one more for "
        "the right one. The pooled consensus estimates it from the crowd.",
        unit="votes", minimum=1e-6, maximum=1e8, left_open="usual",
    )  # fmt: skip
    prior_accuracy: float | None = number(
        None, "Prior accuracy",
        "How often an annotator of whom nothing is known is right. Left open: a little more often than by "
        "chance.",
        minimum=1e-6, maximum=1 - 1e-6, left_open="usual",
    )  # fmt: skip
    share_strength: float = number(
        1.0, "Prior of the classes' shares", "Pseudo-counts of tasks of each class.",
        unit="tasks", minimum=1e-6, maximum=1e8, advanced=True,
    )  # fmt: skip


def prior_of(labels: Labels, settings: PriorSettings) -> FloatArray:
    """Return the pseudo-counts of a confusion matrix that the settings mean, (J, L).

    The prior accuracy is shared equally among the outputs that stand for a class, the rest among the others.
    A class that no output stands for has equal pseudo-counts, as has one that all outputs stand for.
    `Labels.prior`, where it is given, takes the place of all that.
    """
    if labels.prior is not None:
        return labels.prior
    default = default_prior(labels)
    if settings.prior_strength is None and settings.prior_accuracy is None:
        return default
    assert labels.meaning is not None
    right = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    many = right.sum(axis=1, keepdims=True)
    chance = default / default.sum(axis=1, keepdims=True)
    if settings.prior_accuracy is not None:
        wrong = right.shape[1] - many
        accuracy = settings.prior_accuracy
        aimed = np.where(right, accuracy / np.maximum(many, 1), (1 - accuracy) / np.maximum(wrong, 1))
        chance = np.where((many == 0) | (wrong == 0), chance, aimed)
    strength = settings.prior_strength
    weight = default.sum(axis=1, keepdims=True) if strength is None else strength
    return np.asarray(chance * weight)


_MOST_ENTRIES = 300_000_000
"""Of all confusion matrices together: 2.4 GB."""

_PIECE = 2_000_000
"""Votes between two reports."""

_THREADS = min(4, os.cpu_count() or 1)
_SECONDS = 0.05
"""Between two reports while threads compute."""

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class TaskVotes:
    """V votes on N tasks, sorted by task; those on one task stay in the order in which they came.

    Attributes
    ----------
    start : (N + 1,) int64
        The votes on task i are `start[i]` to `start[i + 1]`.
    pair : (V,) uint32
        annotator * outputs + label.
    known : (N,) int16
        The class of a task where it is known, `OPEN` elsewhere.
    annotators, classes, outputs : int
    """

    start: NDArray[np.int64]
    pair: NDArray[np.uint32]
    known: NDArray[np.int16]
    annotators: int
    classes: int
    outputs: int

    def unpacked(self) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """Return annotator and output of each vote, two (V,)."""
        return (self.pair // self.outputs).astype(np.int32), (self.pair % self.outputs).astype(np.int16)


def task_spans(start: NDArray[np.int64], votes: int) -> tuple[tuple[int, int], ...]:
    """Cut tasks, whose votes begin at `start`, into pieces of about so many votes."""
    if len(start) < 2:
        return ()
    ends = (np.flatnonzero(np.diff(start[1:] // max(1, votes), append=-1)) + 1).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def by_span(
    spans: tuple[tuple[int, int], ...], run: Callable[[int, int], Result], report: Callable[[], None]
) -> list[Result]:
    """Run a kernel on spans of tasks that do not affect each other, several at a time.

    Parameters
    ----------
    spans : tuple of (first, last)
    run : callable
        Takes the first task and the one after the last. It holds no lock while it computes.
    report : callable
        Called before each round of spans and several times a second; it may raise.

    Returns
    -------
    list
        The results in the order of the spans, however many threads there are.
    """
    if len(spans) < 2 or _THREADS == 1:
        results = []
        for first, last in spans:
            report()
            results.append(run(first, last))
        return results
    results = []
    with ThreadPoolExecutor(_THREADS) as pool:
        for begin in range(0, len(spans), _THREADS):
            report()
            for waiting in [pool.submit(run, *span) for span in spans[begin : begin + _THREADS]]:
                while not waiting.done():
                    report()
                    wait([waiting], _SECONDS)
                results.append(waiting.result())
    return results


def by_task(labels: Labels, watch: Watch = silent) -> TaskVotes:
    """Sort votes by task, by counting.

    Raises
    ------
    LabelsError
        When the annotators' confusion matrices would not fit into memory.
    """
    from raterscope.algorithms.labels._ibcc_kernels import count_votes, place_votes

    tasks, annotators = len(labels.tasks), len(labels.annotators)
    classes, outputs = len(labels.classes), len(labels.outputs)
    if annotators * classes * outputs > _MOST_ENTRIES:
        raise LabelsError(
            f"{annotators:,} confusion matrices of {classes:,} by {outputs:,} do not fit into memory;"
            f" expected at most {_MOST_ENTRIES:,} entries in all."
        )
    pieces = [(first, min(first + _PIECE, len(labels))) for first in range(0, len(labels), _PIECE)]
    start = np.zeros(tasks + 1, dtype=np.int64)
    for first, last in pieces:
        watch(0.5 * first / len(labels), "sorting the votes")
        count_votes(labels.task[first:last], start[1:])
    np.cumsum(start, out=start)
    pair = np.empty(len(labels), dtype=np.uint32)
    place = start[:-1].copy()
    for first, last in pieces:
        watch(0.5 + 0.5 * first / len(labels), "sorting the votes")
        part = slice(first, last)
        place_votes(labels.task[part], labels.annotator[part], labels.label[part], outputs, place, pair)
    known = np.full(tasks, OPEN, dtype=np.int16) if labels.known is None else labels.known
    return TaskVotes(start, pair, known, annotators, classes, outputs)


def standing(labels: Labels, prior: FloatArray) -> FloatArray:
    """Describe how much of a vote each output is for each class, (L, J).

    An output counts for the class of which it is most often said according to the prior. Where several are
    equal in that, it counts for what it stands for if that is one of them; else for each of them in equal
    parts; for none where all classes are equal.

    Parameters
    ----------
    labels : Labels
    prior : (J, L) float64
        Pseudo-counts of a confusion matrix.
    """
    assert labels.meaning is not None
    rates = (prior / prior.sum(axis=1, keepdims=True)).T
    best = rates >= rates.max(axis=1, keepdims=True) * (1 - 1e-9)
    stands = labels.meaning[:, None] == np.arange(len(labels.classes))
    settled = (best & stands).any(axis=1, keepdims=True)
    tied = best & ~(best.all(axis=1, keepdims=True) & (len(labels.classes) > 1))
    chosen = np.where(settled, stands, tied)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))
