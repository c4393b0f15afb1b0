"""Fusion of images of clicks, in this process and in others.

Images are spread over processes if that is faster; if one image fails, the others are kept. Processes
exchange records of one class as one array per field, because pickling costs microseconds per array.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from raterscope.algorithms.click_classes import add_classes, class_names
from raterscope.algorithms.clicks.data import BoolArray, Clicks
from raterscope.algorithms.clicks.fusion import (
    FusionPlan,
    SharedVotes,
    carries_reliability,
    fuse,
    fuse_each,
    judge_images,
    learn_from_each_other,
    learns_across_images,
    renew_known,
    share_votes,
)
from raterscope.algorithms.clicks.result import Clustering, Fusion
from raterscope.algorithms.clicks.robustness import (
    add_half_detections,
    detect_together,
    halves_of,
    with_halves,
)
from raterscope.algorithms.progress import Watch, part, parts_of, silent, wrapping
from raterscope.app import outcome
from raterscope.app.outcome import Outcome, attempt
from raterscope.app.workers import Workers, processors

Record = TypeVar("Record")


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Arrays of the same type and number of axes: their concatenated values, and their shapes."""

    values: np.ndarray
    shapes: np.ndarray  # (arrays, axes)

    def split(self) -> Iterable[np.ndarray]:
        if (self.shapes == self.shapes[0]).all():
            return self.values.reshape(self.shapes.shape[0], *self.shapes[0])
        ends = np.cumsum(self.shapes.prod(axis=1)).tolist()
        arrays = [self.values[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        if self.shapes.shape[1] == 1:
            return arrays
        return [array.reshape(shape) for array, shape in zip(arrays, self.shapes.tolist(), strict=True)]


class _Repeated(NamedTuple):
    """A value that all records share."""

    value: Any
    times: int


@dataclass(frozen=True, eq=False)
class RecordBatch(Generic[Record]):
    """Frozen dataclasses of one class, as columns."""

    kind: type[Record]
    count: int
    columns: dict[str, Any]  # by field: arrays, a batch of the records in the field, one value, or a list

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordBatch[Record]:
        """Make a batch of one or more records.

        Examples
        --------
        >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
        >>> clicks = [separated_crowd(20, seed=seed).clicks for seed in (3, 4)]
        >>> [len(each) for each in RecordBatch.of(clicks).records()] == [len(each) for each in clicks]
        True
        """
        kind: Any = type(records[0])
        names = [field.name for field in dataclasses.fields(kind)]
        columns = {name: to_column([getattr(record, name) for record in records]) for name in names}
        return cls(kind, len(records), columns)

    def records(self) -> list[Record]:
        """Return the original records."""
        names = tuple(self.columns)
        columns = [_values(column) for column in self.columns.values()]
        records = []
        for values in zip(*columns, strict=True):
            record = object.__new__(self.kind)  # without checks, like unpickling
            record.__dict__.update(zip(names, values, strict=True))
            records.append(record)
        return records


def to_column(values: list[Any]) -> Any:
    """Return records or arrays of one kind as a batch, and other values as they are."""
    if not values:
        return values
    first = values[0]
    if len(values) > 1 and all(value is first for value in values):
        return _Repeated(first, len(values))
    if any(type(value) is not type(first) for value in values):
        return values
    if isinstance(first, np.ndarray):
        same = all(
            array.dtype == first.dtype and array.ndim == first.ndim and array.flags.c_contiguous
            for array in values
        )
        if not same or not first.ndim:
            return values
        shapes = np.array([array.shape for array in values], dtype=np.int64)
        return _Arrays(np.concatenate([array.reshape(-1) for array in values]), shapes)
    if dataclasses.is_dataclass(first) and hasattr(first, "__dict__") and not isinstance(first, type):
        return RecordBatch.of(values)
    return values


def _values(column: Any) -> Iterable[Any]:
    if isinstance(column, _Repeated):
        return repeat(*column)
    if isinstance(column, _Arrays):
        return column.split()
    return column.records() if isinstance(column, RecordBatch) else column


def from_column(column: Any) -> list[Any]:
    """Return the values that `to_column` packed."""
    return list(_values(column))


_MANY = 2000
"""Number of images from which processes start while the clicks are read (seconds of work)."""

_WORTH_PROCESSES = 4.0  # minimum seconds of work for processes, which take a second to start
# By algorithm with library calls that hold the GIL and cannot be cancelled: clicks that take 50 ms.
_HOLDS_GIL = ("hac", "hdbscan")
_HOLDS_GIL_FROM = 2500
_NAMED = 0.9  # share of the time for positions, if clicks have classes
_ALONE = 0.85  # share of the time for separate fusions, if detection is repeated on all images


@dataclass(frozen=True, eq=False)
class Draft:
    """Clustering of an image in progress."""

    item: str
    clustering: Clustering


def start_processes(workers: Workers, plan: FusionPlan, images: int = _MANY) -> None:
    """Start processes for a fusion that follows soon, if it uses several and there are enough images."""
    if workers.jobs > 1 and images >= _MANY and not carries_reliability(plan):
        workers.start(_load)


def _load() -> None:
    """Import the modules that the first fusion of a process needs."""
    from raterscope.algorithms.compiling import load_compiler

    load_compiler()


def fuse_images(
    clicks: Mapping[str, Clicks],
    plan: FusionPlan,
    *,
    jobs: int | None = None,
    watch: Watch = silent,
    others: Sequence[tuple[Clicks, Fusion]] = (),
    workers: Workers | None = None,
) -> dict[str, Outcome[Fusion]]:
    """Fuse the clicks of every image; return an outcome for each, in the given order.

    Each image is fused by itself with the seed of the plan. If the plan learns across images, detection is
    then repeated on each image with the rates from all of them. Results do not depend on the number of
    processes. If the plan carries reliabilities over, images are fused in the given order, and each starts
    with its annotators' reliabilities on their previous image.

    `clicks`: clicks by the image's name.
    `jobs`: largest number of processes; by default one for each processor. They are started only if enough
        work is left, or at once if a library's call would block this process.
    `watch`: called at least every 100 ms; a partial result is a `Draft` of the image at work here.
    `others`: images that were fused before by the same plan; they inform the rates too.
    `workers`: used instead of new processes; they may have started already.
    If the watch raises `Cancelled`, processes are stopped first.
    """
    jobs = processors() if jobs is None else jobs
    if carries_reliability(plan):
        jobs, workers = 1, None
    with Workers(jobs) if workers is None else nullcontext(workers) as workers:
        named = len(class_names([*clicks.values(), *(other_clicks for other_clicks, _ in others)])) > 1
        end = _NAMED if named else 1.0
        if learns_across_images(plan):
            separate = _fuse_separately(clicks, plan, workers, part(watch, 0.0, _ALONE * end))
            outcomes = _fuse_jointly(clicks, separate, plan, others, workers, part(watch, _ALONE * end, end))
        else:
            outcomes = _fuse_separately(clicks, plan, workers, part(watch, 0.0, end))
        return _classify(clicks, outcomes, others, part(watch, end, 1.0)) if named else outcomes


def _classify(
    clicks: Mapping[str, Clicks],
    outcomes: Mapping[str, Outcome[Fusion]],
    others: Sequence[tuple[Clicks, Fusion]],
    watch: Watch,
) -> dict[str, Outcome[Fusion]]:
    """Estimate the classes of the clusters of all images together. If it fails, all fail."""
    fused = outcome.successful(outcomes)
    images = [clicks[name] for name in fused]
    classified, problem, details = attempt(lambda: add_classes(images, list(fused.values()), others, watch))
    done = dict(outcomes)
    for index, name in enumerate(fused):
        fusion = classified[index] if classified else None
        done[name] = replace(outcomes[name], fusion=fusion, problem=problem, details=details)
    return done


def _fuse_separately(
    clicks: Mapping[str, Clicks], plan: FusionPlan, workers: Workers, watch: Watch
) -> dict[str, Outcome[Fusion]]:
    done: dict[str, Outcome[Fusion]] = {}
    remaining = dict(clicks)
    total = sum(map(_work_of, clicks.values())) or 1
    finished = first = 0
    reliability: dict[str, float] = {}
    started = time.monotonic()
    if (workers.running and len(remaining) > 1) or (
        plan.algorithm in _HOLDS_GIL and max(map(len, remaining.values()), default=0) > _HOLDS_GIL_FROM
    ):
        done = _fuse_in_processes(remaining, plan, workers, watch)
        remaining.clear()
    while remaining:
        measured = finished - first
        if workers.jobs > 1 and len(remaining) > 1 and measured:
            seconds = (time.monotonic() - started) * (total - finished) / measured
            if seconds > _WORTH_PROCESSES:
                watch_rest = part(watch, finished / total, 1.0)
                done |= _fuse_in_processes(remaining, plan, workers, watch_rest)
                break
        name = next(iter(remaining))
        work = _work_of(remaining[name])
        step = wrapping(
            part(watch, finished / total, (finished + work) / total, f"{name}: "), partial(Draft, name)
        )
        image_clicks = remaining.pop(name)
        done[name] = _outcome(name, image_clicks, plan, step, reliability)
        if (fusion := done[name].fusion) is not None:
            reliability |= _reliability(image_clicks, fusion)
        finished += work
        if not first:  # ignore the first time, which may include compilation
            first, started = finished, time.monotonic()
    return {name: done[name] for name in clicks}


def _fuse_jointly(
    clicks: Mapping[str, Clicks],
    separate: Mapping[str, Outcome[Fusion]],
    plan: FusionPlan,
    others: Sequence[tuple[Clicks, Fusion]],
    workers: Workers,
    watch: Watch,
) -> dict[str, Outcome[Fusion]]:
    """Repeat detection on the fused images with rates estimated from all of them. If it fails, all fail."""
    fused = outcome.successful(separate)
    if not fused:
        return dict(separate)
    started = time.perf_counter()

    def together() -> list[Fusion]:
        all_clicks = [*(clicks[name] for name in fused), *(other_clicks for other_clicks, _ in others)]
        renewed = (renew_known(image_clicks, fusion, plan) for image_clicks, fusion in others)
        fusions = [*fused.values(), *renewed]
        if workers.running:
            answer = _learn_in_processes(all_clicks, fusions, plan, workers, watch)
            if answer is not None:
                return answer
        shared = share_votes(all_clicks, fusions, plan)
        shared.prepare(plan)
        joint = learn_from_each_other(all_clicks, fusions, plan, part(watch, 0.0, 0.5), shared=shared)
        return add_half_detections(all_clicks, fusions, joint, plan, part(watch, 0.5, 1.0), shared=shared)

    joint, problem, details = attempt(together)
    seconds = (time.perf_counter() - started) / len(fused)
    outcomes = dict(separate)
    for index, name in enumerate(fused):
        outcomes[name] = Outcome(
            name, joint[index] if joint else None, problem, details, separate[name].seconds + seconds
        )
    return outcomes


def _learn_in_processes(
    clicks: Sequence[Clicks], fusions: Sequence[Fusion], plan: FusionPlan, workers: Workers, watch: Watch
) -> list[Fusion] | None:
    """Estimate rates from all images, and from each half, in worker processes; None if one fails.

    The images are divided once their evidence is known, and all processes detect on their part.
    """
    halves = halves_of(clicks, plan)
    shared = share_votes(clicks, fusions, plan)
    votes = *map(to_column, vars(shared).values()), plan
    parts = parts_of(len(clicks), -(-len(clicks) // (_MIN_TASKS * workers.jobs)))
    tasks: dict[str, tuple[Any, ...]] = {"all": (_weigh, *votes, parts)}
    tasks |= {f"half {number}": (_detect_half, *votes, half) for number, half in enumerate(halves)}
    total = len(tasks) + len(parts)
    joint: dict[str, list[Fusion]] = {}
    batches: list[tuple[Any, Any]] = []

    def tick(done: int) -> None:
        if not batches:  # built while the processes weigh the votes
            batches.extend(
                (RecordBatch.of(clicks[begin:end]), RecordBatch.of(fusions[begin:end]))
                for begin, end in parts
            )
        watch(done / total, "learning from each other")

    def then(task: str, answer: Any) -> dict[str, tuple[Any, ...]]:
        if task == "all" and answer is not None:
            named = zip(parts, batches, answer, strict=True)
            return {f"images {part}": (_judge, plan, *batch, *evidence) for part, batch, evidence in named}
        if isinstance(answer, RecordBatch):
            joint[task] = answer.records()
        return {}

    answers = workers.answer(_answer, tasks, tick, then=then)
    if len(answers) < total or any(answer is None for answer in answers.values()):
        return None
    detected = [answers[f"half {number}"] for number in range(len(halves))]
    in_order = [fusion for part in parts for fusion in joint[f"images {part}"]]
    return with_halves(in_order, fusions, halves, detected)


def _weigh(*arguments: Any) -> list[tuple[list[int], Any]]:
    """Return the evidence of each part of the images: indices within the part, and a column."""
    *fields, plan, parts = arguments
    evidence = SharedVotes(*map(from_column, fields)).weigh(plan, silent)
    answer = []
    for begin, end in parts:
        images = [image for image in range(begin, end) if image in evidence]
        answer.append(([image - begin for image in images], to_column([evidence[i] for i in images])))
    return answer


def _judge(
    plan: FusionPlan,
    clicks: RecordBatch[Clicks],
    fusions: RecordBatch[Fusion],
    images: list[int],
    column: Any,
) -> RecordBatch[Fusion]:
    evidence = dict(zip(images, from_column(column), strict=True))
    own = [evidence.get(image) for image in range(clicks.count)]
    return RecordBatch.of(judge_images(clicks.records(), fusions.records(), own, plan, at_once=clicks.count))


def _detect_half(*arguments: Any) -> dict[int, BoolArray]:
    *fields, plan, half = arguments
    return detect_together(SharedVotes(*map(from_column, fields)).only(set(half)), plan)


def _answer(function: Callable[..., Any], *arguments: Any) -> Any:
    return attempt(partial(function, *arguments))[0]


def _work_of(clicks: Clicks) -> int:
    return len(clicks) + 20


def _reliability(clicks: Clicks, fusion: Fusion) -> dict[str, float]:
    """Return the reliability (eq. 12) of the annotators of an image."""
    pairs = zip(clicks.annotators, fusion.clustering.reliability.tolist(), strict=True)
    return {name: value for name, value in pairs if math.isfinite(value)}


def _outcome(
    name: str,
    clicks: Clicks,
    plan: FusionPlan,
    watch: Watch = silent,
    reliability: Mapping[str, float] | None = None,
) -> Outcome[Fusion]:
    started = time.perf_counter()
    fusion, problem, details = attempt(
        lambda: fuse(clicks, plan, watch=watch, reliability=reliability, rated=False)
    )
    return Outcome(name, fusion, problem, details, time.perf_counter() - started)


_TASK = 6000
"""Clicks per task of a process, about 300 ms of work; a larger image is a separate task."""

_MIN_TASKS = 8
"""Minimum number of tasks per process, so that none waits long for the last task of another."""


def _outcomes(
    fuse_all: Callable[..., list[Outcome[Fusion]]],
    names: Sequence[str],
    clicks: RecordBatch[Clicks],
    plan: FusionPlan,
) -> RecordBatch[Outcome[Fusion]]:
    """Fuse several images in a process."""
    return RecordBatch.of(fuse_all(names, clicks.records(), plan))


def _fuse_all(names: Sequence[str], clicks: Sequence[Clicks], plan: FusionPlan) -> list[Outcome[Fusion]]:
    """Fuse images together if that is faster; otherwise, or if that fails, one by one."""
    started = time.perf_counter()
    fusions = attempt(partial(fuse_each, clicks, plan))[0] if learns_across_images(plan) else None
    if fusions is None:
        return [_outcome(name, own, plan) for name, own in zip(names, clicks, strict=True)]
    seconds = (time.perf_counter() - started) / len(names)
    return [Outcome(name, fusion, "", "", seconds) for name, fusion in zip(names, fusions, strict=True)]


def _tasks_of(clicks: Mapping[str, Clicks], jobs: int) -> list[list[str]]:
    """Divide images into tasks, the longest first, so that no long task runs alone at the end."""
    most = min(_TASK, sum(map(_work_of, clicks.values())) / (_MIN_TASKS * jobs))
    tasks: list[list[str]] = []
    work = math.inf
    for name in sorted(clicks, key=lambda name: -len(clicks[name])):
        own = _work_of(clicks[name])
        if work + own > most:
            tasks.append([])
            work = 0
        tasks[-1].append(name)
        work += own
    return tasks


def _fuse_in_processes(
    remaining: Mapping[str, Clicks], plan: FusionPlan, workers: Workers, watch: Watch
) -> dict[str, Outcome[Fusion]]:
    """Fuse in worker processes. An image whose worker died is tried once more, alone."""
    finished = 0
    done: dict[str, Outcome[Fusion]] = {}
    tasks = {str(number): names for number, names in enumerate(_tasks_of(remaining, workers.jobs))}

    def report(*_: object, **__: object) -> None:
        watch(finished / len(remaining), f"fused {finished} of {len(remaining)} images")

    def tick(count: int) -> None:
        nonlocal finished
        finished = max(finished, len(remaining) * count // len(tasks))
        report()

    def fuse_here(task: str) -> RecordBatch[Outcome[Fusion]]:
        done.update((name, _outcome(name, remaining[name], plan, report)) for name in tasks[task])
        return RecordBatch.of([done[name] for name in tasks[task]])

    def arguments(names: Sequence[str]) -> tuple[Any, ...]:
        return _fuse_all, names, RecordBatch.of([remaining[name] for name in names]), plan

    meanwhile = None if plan.algorithm in _HOLDS_GIL or workers.running else fuse_here
    given = {task: arguments(names) for task, names in tasks.items()}

    def then(_task: str, answer: RecordBatch[Outcome[Fusion]]) -> dict[str, tuple[Any, ...]]:
        done.update((fused.item, fused) for fused in answer.records())
        return {}

    first = workers.answer(_outcomes, given, tick, meanwhile, then=then)
    lost = [name for task, names in tasks.items() if task not in first for name in names]
    again = {name: arguments([name]) for name in lost}
    workers.answer(_outcomes, again, report, then=then)
    return done | {
        name: Outcome(name, None, "the process that fused it died.", "", 0.0)
        for name in remaining
        if name not in done
    }
