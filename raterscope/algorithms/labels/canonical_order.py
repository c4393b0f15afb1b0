"""Canonical order, for methods that visit tasks and votes one by one or draw numbers for them.

Tasks are ordered by name, annotators by the number and content of their votes. The same votes then have the
same result, whatever the order of the table and the names of the annotators, for example pseudonyms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import LabelFusion, Labels, LabelSettings
from raterscope.algorithms.progress import THREADS, Watch, no_check, parts_of, run_parts, silent, wrapping

_VOTES = 1_000_000
"""Number of votes whose hashes are in memory at a time."""

_COMPILED_FROM = 1_000_000
"""Minimum number of votes for compiled code; for fewer, loading it takes longer."""

_LONGEST = 32
"""Maximum number of votes on a task that are sorted by insertion."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Method = TypeVar("Method", bound=Callable[..., LabelFusion])


def in_canonical_order(run: Method) -> Method:
    """Decorate a method without time; its result does not depend on the order of its input."""

    @wraps(run)
    def run_in_order(
        labels: Labels, settings: LabelSettings | None = None, watch: Watch = silent
    ) -> LabelFusion:
        if settings is not None:
            labels = labels.settled(settings.repeats)
        tasks, annotators = _by_name(labels.tasks), _by_name(labels.annotators)
        annotators = annotators[np.lexsort([key[annotators] for key in _keys_of_annotators(labels)])]
        number_of_task, number_of_annotator = _numbers(tasks), _numbers(annotators)

        def as_given(fusion: object) -> LabelFusion:
            assert isinstance(fusion, LabelFusion)
            return fusion.reordered(number_of_annotator, number_of_task)

        in_order = watch if watch is silent else wrapping(watch, as_given)
        task, annotator, label = _sorted_votes(labels, number_of_task, number_of_annotator)
        ordered = replace(
            labels, task=task, annotator=annotator, label=label, time=None,
            tasks=tuple(map(labels.tasks.__getitem__, tasks.tolist())),
            annotators=tuple(map(labels.annotators.__getitem__, annotators.tolist())),
            known=None if labels.known is None else labels.known[tasks],
            weights=None if labels.weights is None else labels.weights[annotators],
        )  # fmt: skip
        return as_given(run(ordered, settings, in_order))

    return cast(Method, run_in_order)


def _by_name(names: Sequence[str]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)


def _keys_of_annotators(labels: Labels) -> list[NDArray[np.integer]]:
    """Return the numbers of votes, preceded by hashes of the votes, which decide between equal numbers.

    A new vote therefore moves its annotator past few others.
    """
    votes = labels.votes_of_annotators()
    if len(np.unique(votes)) == len(votes):
        return [votes]
    of_output = _mixed(np.arange(len(labels.outputs), dtype=np.uint64))
    alone, together = np.zeros((2, len(labels.annotators)), dtype=np.uint64)
    blocks = [slice(*block) for block in parts_of(len(labels), _VOTES)]
    for rows in blocks:
        np.add.at(alone, labels.annotator[rows], of_output[labels.label[rows]])
    of_task = np.zeros(len(labels.tasks), dtype=np.uint64)
    for source, by, total, of in (
        (alone, labels.annotator, of_task, labels.task),
        (of_task, labels.task, together, labels.annotator),
    ):
        if len(labels) >= _COMPILED_FROM:
            from raterscope.algorithms.labels._ibcc_kernels import add_hashes

            add_hashes(source, by, of_output, labels.label, total, of)
            continue
        for rows in blocks:
            np.add.at(total, of[rows], _mixed(source[by[rows]] ^ of_output[labels.label[rows]]))
    return [together, alone, votes]


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values + np.uint64(1)) * _MULTIPLIER
    return np.asarray((values ^ (values >> np.uint64(29))) * _MULTIPLIER)


def _numbers(order: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    return numbers


def _sorted_votes(
    labels: Labels, task: NDArray[np.int64], annotator: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """Return tasks, annotators and labels of the votes, sorted by new numbers of tasks and annotators."""
    many, outputs = max(len(annotator), 1), len(labels.outputs)
    if len(labels) >= _COMPILED_FROM and many * outputs <= np.iinfo(np.uint32).max:
        return _sorted_by_counting(labels, task, annotator)
    key = task[labels.task]
    key *= many
    key += annotator[labels.annotator]
    key *= outputs
    key += labels.label
    key.sort()
    label = (key % outputs).astype(np.int16)
    key //= outputs
    voter = (key % many).astype(np.int32)
    key //= many
    return key.astype(np.int32), voter, label


def _sorted_by_counting(
    labels: Labels, task: NDArray[np.int64], annotator: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """Sort as `_sorted_votes` with compiled code, which also needs less memory."""
    from raterscope.algorithms.labels._ibcc_kernels import place_renumbered, sort_within_tasks

    count = np.empty(len(task), dtype=np.int64)
    count[task] = labels.votes_of_tasks()
    start = np.concatenate([[0], np.cumsum(count)])
    pair = np.empty(len(labels), dtype=np.uint32)
    outputs, slot = len(labels.outputs), start[:-1].copy()
    place_renumbered(labels.task, labels.annotator, labels.label, task, annotator, outputs, slot, pair)
    for at in np.flatnonzero(count > _LONGEST).tolist():
        pair[start[at] : start[at + 1]].sort()
    sorted_task, voter = np.empty((2, len(pair)), dtype=np.int32)
    label = np.empty(len(pair), dtype=np.int16)

    def sort(first: int, last: int) -> None:
        sort_within_tasks(first, last, start, _LONGEST, outputs, pair, sorted_task, voter, label)

    run_parts(sort, parts_of(len(count), -(-len(count) // THREADS)), no_check)
    return sorted_task, voter, label
