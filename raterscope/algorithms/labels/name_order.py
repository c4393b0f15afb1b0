"""Order by name, for methods that visit tasks and votes one by one or draw numbers for them.

The same votes then have the same result, whether a table has a row a vote or a column an annotator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import LabelFusion, Labels, LabelSettings
from raterscope.algorithms.progress import Watch, silent, wrapping

Method = TypeVar("Method", bound=Callable[..., LabelFusion])


def ordered_by_name(run: Method) -> Method:
    """Decorate a method without time: its result does not depend on the order of its input."""

    @wraps(run)
    def run_in_order(
        labels: Labels, settings: LabelSettings | None = None, watch: Watch = silent
    ) -> LabelFusion:
        if settings is not None:
            labels = labels.settled(settings.repeats)
        tasks, annotators = _order(labels.tasks), _order(labels.annotators)
        number_of_task, number_of_annotator = _numbers(tasks), _numbers(annotators)

        def as_given(fusion: object) -> LabelFusion:
            assert isinstance(fusion, LabelFusion)
            return fusion.reordered(number_of_annotator, number_of_task)

        in_order = watch if watch is silent else wrapping(watch, as_given)
        task, annotator, label = _sorted_votes(labels, number_of_task, number_of_annotator)
        in_name_order = replace(
            labels, task=task, annotator=annotator, label=label, time=None,
            tasks=tuple(labels.tasks[task] for task in tasks.tolist()),
            annotators=tuple(labels.annotators[row] for row in annotators.tolist()),
            known=None if labels.known is None else labels.known[tasks],
            weights=None if labels.weights is None else labels.weights[annotators],
        )  # fmt: skip
        return as_given(run(in_name_order, settings, in_order))

    return cast(Method, run_in_order)


def _order(names: Sequence[str]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)


def _numbers(order: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    return numbers


def _sorted_votes(
    labels: Labels, task: NDArray[np.int64], annotator: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """Return tasks, annotators and labels of the votes, sorted by new numbers of tasks and annotators."""
    many, outputs = max(len(annotator), 1), len(labels.outputs)
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
