"""Votes sorted by task: spans of tasks for several threads, and sums over votes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import (
    IMPOSSIBLE,
    FloatArray,
    Labels,
    LabelsError,
    split_at_sets,
)
from raterscope.algorithms.progress import Watch, parts_of, silent

_MOST_ENTRIES = 300_000_000
"""Most entries of all confusion matrices together: 2.4 GB."""

_PIECE = 2_000_000
"""Votes between two reports."""

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class TaskVotes:
    """V votes on N tasks, sorted by task; votes on one task keep their order."""

    start: NDArray[np.int64]  # (N + 1,): the votes on task i are `start[i]` to `start[i + 1]`
    pair: NDArray[np.uint32]  # (V,): annotator * outputs + label
    known: NDArray[np.int16]  # (N,): the class of a task where it is known, `OPEN` elsewhere
    annotators: int
    classes: int
    outputs: int
    sets: NDArray[np.bool_] | None = None

    def split(self, first: int, last: int, logs: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
        """Divide a span of tasks at restricted ones; see `split_at_sets` for logarithms of a prior."""
        return split_at_sets(first, last, self.known, self.sets, logs, IMPOSSIBLE)

    def unpack(self) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """Return annotator and output of each vote, two (V,)."""
        return (self.pair // self.outputs).astype(np.int32), (self.pair % self.outputs).astype(np.int16)


def task_spans(start: NDArray[np.int64], votes: int) -> tuple[tuple[int, int], ...]:
    """Divide tasks, whose votes begin at `start`, into spans of about `votes` votes."""
    if len(start) < 2:
        return ()
    ends = (np.flatnonzero(np.diff(start[1:] // max(1, votes), append=-1)) + 1).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def sort_by_task(labels: Labels, watch: Watch = silent) -> TaskVotes:
    """Sort votes by task (counting sort).

    Raises `LabelsError` if the annotators' confusion matrices would not fit into memory.
    """
    from raterscope.algorithms.labels._ibcc_kernels import count_votes, place_votes

    tasks, annotators = len(labels.tasks), len(labels.annotators)
    classes, outputs = len(labels.classes), len(labels.outputs)
    if annotators * classes * outputs > _MOST_ENTRIES:
        raise LabelsError(
            f"{annotators:,} confusion matrices of {classes:,} by {outputs:,} do not fit into memory;"
            f" expected at most {_MOST_ENTRIES:,} entries in all."
        )
    pieces = parts_of(len(labels), _PIECE)
    start = np.zeros(tasks + 1, dtype=np.int64)
    for first, last in pieces:
        watch(0.5 * first / len(labels), "sorting the votes")
        count_votes(labels.task[first:last], start[1:])
    np.cumsum(start, out=start)
    pair = np.empty(len(labels), dtype=np.uint32)
    slot = start[:-1].copy()
    for first, last in pieces:
        watch(0.5 + 0.5 * first / len(labels), "sorting the votes")
        part = slice(first, last)
        place_votes(labels.task[part], labels.annotator[part], labels.label[part], outputs, slot, pair)
    known = labels.known_classes()
    return TaskVotes(start, pair, known, annotators, classes, outputs, labels.sets)


def class_shares(labels: Labels, prior: FloatArray) -> FloatArray:
    """Return the share of a vote that each output is for each class, (L, J).

    An output counts for the class with its highest rate in the prior. Among equal classes, it counts for the
    one it stands for; otherwise for each in equal parts, or for none if all classes are equal.

    `prior`: (J, L), pseudo-counts of a confusion matrix.
    """
    assert labels.meaning is not None
    rates = (prior / prior.sum(axis=1, keepdims=True)).T
    best = rates >= rates.max(axis=1, keepdims=True) * (1 - 1e-9)
    stands = labels.meaning[:, None] == np.arange(len(labels.classes))
    settled = (best & stands).any(axis=1, keepdims=True)
    tied = best & ~(best.all(axis=1, keepdims=True) & (len(labels.classes) > 1))
    chosen = np.where(settled, stands, tied)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))


_MANY_TERMS = 2_000_000
"""Votes times classes from which compiled code sums them; for fewer, loading it takes longer."""


def weighted_counts(labels: Labels, weight: FloatArray, watch: Watch = silent) -> FloatArray:
    """Sum a weight of each class, (N, J) of tasks, over the votes of each annotator and output, (K, J, L)."""
    annotators, outputs, classes = len(labels.annotators), len(labels.outputs), weight.shape[1]
    if len(labels) * classes >= _MANY_TERMS:
        from raterscope.algorithms.labels._ibcc_kernels import sum_votes

        by_output = np.zeros((annotators, outputs, classes))
        for first in range(0, len(labels), _PIECE):
            watch(first / len(labels), "counting votes")
            votes = slice(first, first + _PIECE)
            sum_votes(labels.task[votes], labels.annotator[votes], labels.label[votes], weight, by_output)
        return np.ascontiguousarray(by_output.transpose(0, 2, 1))
    pair = labels.annotator.astype(np.int64) * outputs + labels.label
    total = np.empty((annotators, classes, outputs))
    for j in range(classes):
        watch(j / classes, "counting votes")
        row = np.bincount(pair, weight[labels.task, j], minlength=annotators * outputs)
        total[:, j] = row.reshape(annotators, outputs)
    return total


def class_votes(labels: Labels) -> NDArray[np.int64]:
    """Count the votes of each task for the classes that their outputs stand for, (N, J)."""
    assert labels.meaning is not None
    classes = len(labels.classes)
    meant = labels.meaning[labels.label]
    cell = labels.task * np.int64(classes) + meant
    if (labels.meaning < 0).any():
        cell = cell[meant >= 0]
    return np.bincount(cell, minlength=len(labels.tasks) * classes).reshape(len(labels.tasks), classes)


class LastAnswers(Generic[Result]):
    """What was computed from the last answer to each crowd, as long as both exist."""

    def __init__(self) -> None:
        self._results: WeakKeyDictionary[Labels, tuple[ref[FloatArray], Result]] = WeakKeyDictionary()

    def find(self, labels: Labels, posterior: FloatArray, compute: Callable[[], Result]) -> Result:
        """Return the result for a posterior, computed when it is not the last one."""
        known = self._results.get(labels)
        if known is not None and known[0]() is posterior:
            return known[1]
        result = compute()
        self._results[labels] = (ref(posterior), result)
        return result
