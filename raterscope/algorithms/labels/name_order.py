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
        number = np.argsort(tasks), np.argsort(annotators)

        def as_given(fusion: object) -> LabelFusion:
            assert isinstance(fusion, LabelFusion)
            return fusion.reordered(number[1], number[0])

        in_order = watch if watch is silent else wrapping(watch, as_given)
        return as_given(run(_sorted(labels, tasks, annotators), settings, in_order))

    return cast(Method, run_in_order)


def _order(names: Sequence[str]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)


def _sorted(labels: Labels, tasks: NDArray[np.int64], annotators: NDArray[np.int64]) -> Labels:
    """Put tasks and annotators into an order, and sort the votes, without their times."""
    many, outputs = len(annotators), len(labels.outputs)
    key = np.argsort(tasks)[labels.task]
    key *= many
    key += np.argsort(annotators)[labels.annotator]
    key *= outputs
    key += labels.label
    key.sort()
    label = (key % outputs).astype(labels.label.dtype)
    key //= outputs
    annotator = (key % max(many, 1)).astype(labels.annotator.dtype)
    key //= max(many, 1)
    return replace(
        labels,
        task=key.astype(labels.task.dtype), annotator=annotator, label=label, time=None,
        tasks=tuple(labels.tasks[task] for task in tasks.tolist()),
        annotators=tuple(labels.annotators[row] for row in annotators.tolist()),
        known=None if labels.known is None else labels.known[tasks],
        weights=None if labels.weights is None else labels.weights[annotators],
    )  # fmt: skip
