"""Votes task by task, each packed into one number: what the iterations walk over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, Labels, LabelsError
from raterscope.algorithms.progress import Watch, silent

__all__ = ["TaskVotes", "by_task", "task_spans"]

_MOST_ENTRIES = 300_000_000
"""Of all confusion matrices together: 2.4 GB."""

_PIECE = 2_000_000
"""Votes between two reports."""


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
        """Give annotator and output of each vote, two (V,)."""
        return (self.pair // self.outputs).astype(np.int32), (self.pair % self.outputs).astype(np.int16)


def task_spans(start: NDArray[np.int64], votes: int) -> tuple[tuple[int, int], ...]:
    """Cut tasks, whose votes begin at `start`, into pieces of about so many votes."""
    if len(start) < 2:
        return ()
    ends = (np.flatnonzero(np.diff(start[1:] // max(1, votes), append=-1)) + 1).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


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
