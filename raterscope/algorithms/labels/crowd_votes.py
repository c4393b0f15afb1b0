"""Votes sorted by task, their sums, and votes prepared for the pooled models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from threading import Event
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import running_count, sum_rows
from raterscope.algorithms.labels.data import (
    IMPOSSIBLE,
    OPEN,
    ClassArray,
    FloatArray,
    IndexArray,
    Labels,
    LabelsError,
    default_prior,
    keep_to_sets,
    split_at_sets,
)
from raterscope.algorithms.labels.ordinal import OrdinalTypes, class_positions, is_ordinal, ordinal_types
from raterscope.algorithms.progress import T, Watch, parts_of, run_parts, silent

_MAX_ENTRIES = 300_000_000
"""Maximum number of entries of all confusion matrices together: 2.4 GB."""

_HALVED = 200_000
"""Minimum number of votes for sorting in two threads."""

_PIECE = 2_000_000
"""Number of votes between two progress reports."""

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
    """Divide tasks into spans of about `votes` votes; `start`: begin of each task's votes."""
    if len(start) < 2:
        return ()
    ends = (np.flatnonzero(np.diff(start[1:] // max(1, votes), append=-1)) + 1).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def sort_by_task(labels: Labels, watch: Watch = silent) -> TaskVotes:
    """Sort votes by task (counting sort, unless they are sorted).

    Raises `LabelsError` if the annotators' confusion matrices would not fit into memory.
    """
    tasks, annotators = len(labels.tasks), len(labels.annotators)
    classes, outputs = len(labels.classes), len(labels.outputs)
    if annotators * classes * outputs > _MAX_ENTRIES:
        raise LabelsError(
            f"{annotators:,} confusion matrices of {classes:,} by {outputs:,} do not fit into memory;"
            f" expected at most {_MAX_ENTRIES:,} entries in all."
        )
    known = labels.known_classes()
    if (labels.task[1:] >= labels.task[:-1]).all():
        start = np.concatenate([[0], np.cumsum(labels.votes_of_tasks())])
        pair = labels.annotator.astype(np.uint32)
        pair *= np.uint32(outputs)
        pair += labels.label.view(np.uint16)
        return TaskVotes(start, pair, known, annotators, classes, outputs, labels.sets)
    from raterscope.algorithms.labels._ibcc_kernels import count_votes, place_votes

    # Votes of the second half follow those of the first half on the same task.
    half = len(labels) if len(labels) < _HALVED else -(-len(labels) // 2)
    halves = parts_of(len(labels), half)
    count = np.zeros((len(halves), tasks), dtype=np.int64)
    start = np.zeros(tasks + 1, dtype=np.int64)

    def each_half(run: Callable[[int, slice], None], done: float) -> None:
        for first, last in parts_of(half, _PIECE):
            check = partial(watch, done + 0.5 * first / half, "sorting the votes")
            pieces = [(at, min(at + last - first, end)) for at, end in ((b + first, e) for b, e in halves)]
            run_parts(lambda begin, end: run(begin // half, slice(begin, end)), pieces, check)

    each_half(lambda at, part: count_votes(labels.task[part], count[at]), 0.0)
    np.cumsum(count.sum(axis=0), out=start[1:])
    pair = np.empty(len(labels), dtype=np.uint32)
    slots = start[:-1] + np.cumsum(count, axis=0) - count
    each_half(
        lambda at, part: place_votes(
            labels.task[part], labels.annotator[part], labels.label[part], outputs, slots[at], pair
        ),
        0.5,
    )
    return TaskVotes(start, pair, known, annotators, classes, outputs, labels.sets)


def class_shares(labels: Labels, prior: FloatArray) -> FloatArray:
    """Return the share of a vote that each output gives to each class, (L, J).

    An output counts for the class with its highest rate in the prior. If several classes have this rate, it
    counts for the class that it represents if it is among them, otherwise for each in equal parts, or for
    none if all classes are equal.

    `prior`: (J, L), pseudo-counts of a confusion matrix.
    """
    assert labels.meaning is not None
    rates = (prior / prior.sum(axis=1, keepdims=True)).T
    best = rates >= rates.max(axis=1, keepdims=True) * (1 - 1e-9)
    means_class = labels.meaning[:, None] == np.arange(len(labels.classes))
    settled = (best & means_class).any(axis=1, keepdims=True)
    tied = best & ~(best.all(axis=1, keepdims=True) & (len(labels.classes) > 1))
    chosen = np.where(settled, means_class, tied)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))


_VOTES_OF_ROW = 10
"""Minimum votes per annotator and output for counting in two halves."""

_MANY_TERMS = 2_000_000
"""Minimum number of votes times classes for compiled code; for fewer, loading it takes longer."""


def weighted_counts(labels: Labels, weight: FloatArray, watch: Watch = silent) -> FloatArray:
    """Sum a weight of each class, (N, J) of tasks, over the votes of each annotator and output, (K, J, L)."""
    annotators, outputs, classes = len(labels.annotators), len(labels.outputs), weight.shape[1]
    if len(labels) * classes >= _MANY_TERMS:
        from raterscope.algorithms.labels._ibcc_kernels import sum_votes

        report = partial(watch, 0.0, "counting votes")
        # In two halves if the tables to add up are much smaller than the votes.
        halves = 2 if annotators * outputs < len(labels) // _VOTES_OF_ROW else 1
        parts = parts_of(len(labels), -(-len(labels) // halves))

        def count(first: int, last: int) -> FloatArray:
            by_output = np.zeros((annotators, outputs, classes))
            for low, high in parts_of(last - first, _PIECE):
                if halves == 1:
                    report()
                votes = slice(first + low, first + high)
                sum_votes(labels.task[votes], labels.annotator[votes], labels.label[votes], weight, by_output)
            return by_output

        total, *others = run_parts(count, parts, report)
        for other in others:
            total += other
        return np.ascontiguousarray(total.transpose(0, 2, 1))
    pair = labels.annotator.astype(np.int64) * outputs + labels.label
    total = np.empty((annotators, classes, outputs))
    for j in range(classes):
        watch(j / classes, "counting votes")
        row = np.bincount(pair, weight[labels.task, j], minlength=annotators * outputs)
        total[:, j] = row.reshape(annotators, outputs)
    return total


def class_votes(labels: Labels, dtype: Any = np.int64) -> NDArray[Any]:
    """Count the votes on each task for the classes that their outputs represent, (N, J)."""
    assert labels.meaning is not None
    classes = len(labels.classes)
    if len(labels) * classes >= _MANY_TERMS:
        from raterscope.algorithms.labels._ibcc_kernels import count_classes

        count = np.zeros((len(labels.tasks), classes), dtype=dtype)
        count_classes(labels.task, labels.label, labels.meaning, count)
        return count
    meant = labels.meaning[labels.label]
    cell = labels.task * np.int64(classes) + meant
    if (labels.meaning < 0).any():
        cell = cell[meant >= 0]
    count = np.bincount(cell, minlength=len(labels.tasks) * classes).reshape(len(labels.tasks), classes)
    return count.astype(dtype, copy=False)


class LastAnswers(Generic[Result]):
    """Cache of results computed from the last posterior of each crowd, as long as both exist."""

    def __init__(self) -> None:
        self._results: WeakKeyDictionary[Labels, tuple[ref[FloatArray], Result]] = WeakKeyDictionary()

    def find(self, labels: Labels, posterior: FloatArray, compute: Callable[[], Result]) -> Result:
        """Return the result for a posterior, which is computed unless the posterior is the last one."""
        known = self._results.get(labels)
        if known is not None and known[0]() is posterior:
            return known[1]
        result = compute()
        self._results[labels] = (ref(posterior), result)
        return result


Spans: TypeAlias = tuple[tuple[int, int], ...]

TERMS = 1_000_000
"""Number of votes times classes between two progress reports."""

LARGE = 4_000_000
"""Minimum number of votes times classes of a large crowd. For a large crowd, tables of tasks have single
precision, tasks are divided into two parts with separate counts, and each fit starts from another fit.
"""

_SAMPLE = 5_000_000
"""Number of votes times classes in the part of a large crowd that is fitted first."""

_TASKS_OF_PAIR = 8
"""Maximum number of tasks for each pair of annotator and output for counting votes of large crowds pair by
pair.
"""

_FEW_CLASSES = 6
"""Maximum number of classes for which kernels are compiled separately for large crowds."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes sorted by task, the pairs of annotator and output that occur, and the classes of the outputs."""

    start: NDArray[np.int64]  # (N + 1,): the votes on task i are `start[i]` to `start[i + 1]`
    pair: IndexArray  # (V,): the pair of each vote
    begin: NDArray[np.int64]  # (K + 1,): the pairs of annotator k are `begin[k]` to `begin[k + 1]`
    # owner, output: (P,), (P,): annotator and output of each pair
    owner: IndexArray
    output: ClassArray
    known: ClassArray  # (N,)
    meaning: ClassArray  # (L,): class of each output, `OPEN` for no class
    means_class: NDArray[np.bool_]  # (L, J): the same as a table
    use: FloatArray  # (L,): share of each output among the votes
    votes: FloatArray  # (K,): number of votes, multiplied by the annotator's weight
    prior: FloatArray | None  # (J, L)
    # tuple of tuples of (first, last): spans of tasks, in parts with separate counts
    parts: tuple[Spans, ...]
    ordinal: OrdinalTypes | None = None  # grid of the annotators' parameters for ordered classes
    weights: FloatArray | None = None  # (K,): as `Labels.weights`
    sets: NDArray[np.bool_] | None = None  # (S, J): as `Labels.sets`
    large: bool = False  # whether tables are of single precision, and fits start from others
    # whether votes are counted by pair, which is faster if the table of counts is as large as that of the
    # tasks
    by_pair: bool = False

    @cached_property
    def pair_order(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Start of each pair's votes, (P + 1,), and the task of each vote in this order, (V,)."""
        from raterscope.algorithms.labels._kernels import sort_by_pair

        begin, task = np.zeros(len(self.owner) + 1, dtype=np.int64), np.empty(len(self.pair), dtype=np.uint32)
        sort_by_pair(self.start, self.pair, begin, task)
        return begin, task

    @property
    def by_task(self) -> tuple[NDArray[np.int64], IndexArray, IndexArray]:
        """Start of the votes on each task, the pair of each vote, and the annotator of each pair."""
        return self.start, self.pair, self.owner

    @property
    def votes_of_tasks(self) -> NDArray[np.int64] | FloatArray:
        """Sum of the weights of the votes on each task, (N,)."""
        if self.weights is None:
            return np.diff(self.start)
        task = np.repeat(np.arange(len(self.known)), np.diff(self.start))
        return np.bincount(task, self.weights[self.owner[self.pair]], len(self.known)).astype(np.float64)

    def split(self, first: int, last: int, prior: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
        """Divide a span of tasks at restricted ones; see `split_at_sets`."""
        return split_at_sets(first, last, self.known, self.sets, prior)

    def weigh(self, counts: FloatArray) -> FloatArray:
        """Multiply counts by pair and class, (S, P, J), by the annotators' weights, in place."""
        if self.weights is not None:
            counts *= self.weights[self.owner][:, None]
        return counts

    @property
    def spans(self) -> Spans:
        """Spans of all tasks."""
        return tuple(chain.from_iterable(self.parts))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Tasks with votes or a known class."""
        return np.asarray((np.diff(self.start) > 0) | (self.known > OPEN))

    @property
    def dtype(self) -> Any:
        """Data type of the tables of tasks."""
        return np.float32 if self.large else np.float64

    @property
    def each_class(self) -> tuple[float, ...] | FloatArray:
        """An entry for each class, for kernels that are compiled separately for few classes.

        It is a tuple if this saves time; with weights, most of the time goes to powers.
        """
        few = self.large and self.means_class.shape[1] <= _FEW_CLASSES and self.weights is None
        return (0.0,) * self.means_class.shape[1] if few else np.zeros(self.means_class.shape[1])

    def sample(self) -> tuple[Crowd, NDArray[np.int64]]:
        """Return the votes on about `LARGE` votes times classes, and their tasks."""
        terms = len(self.pair) * self.means_class.shape[1]
        tasks = np.arange(0, len(self.known), max(1, terms // _SAMPLE))
        count = np.diff(self.start)[tasks]
        start = np.concatenate([[0], np.cumsum(count)])
        pair = self.pair[np.repeat(self.start[tasks] - start[:-1], count) + np.arange(start[-1])]
        votes = np.bincount(self.owner[pair], minlength=len(self.votes)).astype(np.float64)
        votes *= 1.0 if self.weights is None else self.weights
        parts = _divide(start, self.means_class.shape[1], large=True)
        return replace(self, start=start, pair=pair, known=self.known[tasks], votes=votes, parts=parts), tasks


def sort_votes(labels: Labels, watch: Watch) -> Crowd:
    """Sort the votes by task, and list the pairs of annotator and output."""
    assert labels.meaning is not None
    votes = sort_by_task(labels, watch)
    occurring = np.zeros(votes.annotators * votes.outputs, dtype=np.bool_)
    occurring[votes.pair] = True
    pairs = np.flatnonzero(occurring)
    number = (running_count(occurring) - 1).astype(np.int32)
    owner, output = (pairs // votes.outputs).astype(np.int32), (pairs % votes.outputs).astype(np.int16)
    weights = labels.vote_weights()
    means_class = labels.meaning[:, None] == np.arange(votes.classes)
    use: FloatArray = labels.votes_of_outputs().astype(np.float64)
    given: FloatArray = labels.votes_of_annotators().astype(np.float64)
    if weights is not None:
        use = np.bincount(labels.label, weights, minlength=votes.outputs).astype(np.float64)
        given = np.bincount(labels.annotator, weights, minlength=votes.annotators).astype(np.float64)
    use += 1.0
    large = len(labels) * votes.classes >= LARGE
    parts = _divide(votes.start, votes.classes, large=large)
    positions = class_positions(labels.meaning, votes.classes) if is_ordinal(labels) else None
    ordinal = None if positions is None else ordinal_types(positions, votes.outputs)
    return Crowd(
        votes.start, number[votes.pair], np.searchsorted(owner, np.arange(votes.annotators + 1)), owner,
        output, votes.known, labels.meaning, means_class, use / use.sum(), given, labels.prior, parts,
        ordinal, labels.weights, labels.sets, large,
        large and len(votes.known) <= _TASKS_OF_PAIR * len(pairs),
    )  # fmt: skip


def _divide(start: NDArray[np.int64], classes: int, *, large: bool) -> tuple[Spans, ...]:
    """Divide tasks into spans, and those of large crowds into two parts."""
    spans = task_spans(start, TERMS // classes)
    half = -(-len(spans) // 2)
    return (spans[:half], spans[half:]) if large else (spans,)


def smoothed_vote(labels: Labels, crowd: Crowd, watch: Watch) -> FloatArray:
    """Compute (votes + 1/J) / (n + 1), known tasks held fixed, (N, J) of the crowd's type."""
    tasks, classes = len(labels.tasks), len(labels.classes)
    weight, weights = class_shares(labels, default_prior(labels)), labels.vote_weights()
    if weights is None and (weight == crowd.means_class).all():
        watch(0.0, "counting votes")
        vote: FloatArray = class_votes(labels, crowd.dtype)
        vote += 1 / classes
    else:
        vote = np.empty((tasks, classes), dtype=crowd.dtype)
        for j in range(classes):
            watch(j / classes, "counting votes")
            share = weight[labels.label, j]
            share = share if weights is None else share * weights
            vote[:, j] = np.bincount(labels.task, share, minlength=tasks) + 1 / classes
    vote /= sum_rows(vote, keepdims=True)
    fixed = np.flatnonzero(crowd.known > OPEN)
    vote[fixed] = np.eye(classes)[crowd.known[fixed]]
    return keep_to_sets(vote, crowd.known, crowd.sets)


def run_by_part(
    parts: tuple[Spans, ...], run: Callable[[int, int, int], T], report: Callable[[], None]
) -> list[T]:
    """Run a kernel on the spans of each part, several parts at a time; return the results in order.

    `run`: called with the number of the part, the first task, and the index after the last task. `report`:
    called several times a second; it may raise an exception.
    """
    if len(parts) == 1:
        results = []
        for span in parts[0]:
            report()
            results.append(run(0, *span))
        return results
    stopped = Event()  # the other parts end with their span

    def run_part(at: int, _: int) -> list[T]:
        return [run(at, *span) for span in parts[at] if not stopped.is_set()]

    done = run_parts(run_part, parts_of(len(parts), 1), report, stopped.set)
    return list(chain.from_iterable(done))


def count_votes_of(crowd: Crowd, posterior: FloatArray, report: Callable[[], None]) -> FloatArray:
    """Count votes by pair and class with the posterior as weights, (S, P, J).

    S is the number of the crowd's parts, 1 if votes are counted by pair.
    """
    from raterscope.algorithms.labels._pooled_kernels import count_pairs

    counts = np.zeros((1 if crowd.by_pair else len(crowd.parts), len(crowd.owner), posterior.shape[1]))
    if crowd.by_pair:
        count_each_pair(crowd, posterior, counts[0], report)
        return crowd.weigh(counts)

    def count(at: int, first: int, last: int) -> None:
        count_pairs(first, last, crowd.by_task, posterior, counts[at])

    run_by_part(crowd.parts, count, report)
    return crowd.weigh(counts)


def count_each_pair(
    crowd: Crowd, posterior: FloatArray, counts: FloatArray, report: Callable[[], None]
) -> None:
    """Count votes with the posterior as weights, (P, J), pair by pair; rows without votes do not change."""
    from raterscope.algorithms.labels._kernels import count_by_pair

    begin, task = crowd.pair_order

    def count(first: int, last: int) -> None:
        count_by_pair(begin, task, first, last, posterior, counts, crowd.each_class)

    run_parts(
        count, parts_of(len(counts), TERMS * len(counts) // max(1, len(task) * counts.shape[1])), report
    )
