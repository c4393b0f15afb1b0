"""Live watching of an image: clicks are processed step by step until the image is settled.

`Arrivals` divides the clicks on an image into steps with equal numbers of annotators, in order of arrival.
The same clicks in the same steps give the same answer, whether they are followed at once or in parts.
`replay` lets the annotators of a finished set of clicks arrive again, one after the other.

The export of retired images applies the same stop rule. An image needs no more annotators when few decisions
are expected to change with further annotators, and a fusion without its last annotators changes no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from raterscope.algorithms.clicks.data import PROGRAM, Clicks, FloatArray, IntArray, KnownSpots
from raterscope.algorithms.clicks.image_priors import Experience
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import (
    ExpectedChanges,
    StoppingSettings,
    StreamHistory,
    count_changes,
    is_settled,
    predict_outlook,
)
from raterscope.algorithms.clicks.stream import (
    STREAM_SETTINGS,
    StreamPlan,
    StreamState,
    advance_stream,
    begin_stream,
)
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, SettingsError, integer, settings_from_texts
from raterscope.app.kinds.clicks.runs import ExpertKnowledge, read_knowledge
from raterscope.app.study import Study, streams
from raterscope.app.study.records import MarksRecord

MAX_STEPS = 4
"""Average steps per annotator above which an import is not sorted by annotator, and becomes one step."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Clicks on one image in order of arrival: N clicks of R annotators in S steps."""

    extent: tuple[float, float, float, float]  # (left, top, right, bottom)
    imported: int = 0  # last included import
    # x, y: (N,)
    x: FloatArray = field(default_factory=lambda: np.empty(0))
    y: FloatArray = field(default_factory=lambda: np.empty(0))
    time: FloatArray = field(default_factory=lambda: np.empty(0))  # (N,): seconds, NaN if unknown
    # (N,): index into `order`
    annotator: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # (R,): numbers of the annotators in the study, in order of arrival
    order: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # rows, annotators: (S,): numbers of clicks and annotators that have arrived after each step
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    annotators: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def step_of(self, rows: int, annotators: int) -> int | None:
        """Return the step that ends after these numbers of clicks and annotators; None without one."""
        if rows == annotators == 0:
            return 0
        matches = np.flatnonzero((self.rows == rows) & (self.annotators == annotators))
        return int(matches[0]) + 1 if len(matches) else None

    def clicks(self, step: int, names: Sequence[str]) -> Clicks:
        """Return the clicks that had arrived after a step."""
        rows, annotators = (int(self.rows[step - 1]), int(self.annotators[step - 1])) if step else (0, 0)
        time = self.time[:rows]
        return Clicks(
            x=self.x[:rows],
            y=self.y[:rows],
            annotator=self.annotator[:rows],
            annotators=tuple(names[number] for number in self.order[:annotators].tolist()),
            extent=self.extent,
            time=None if np.isnan(time).all() else time,
        )


def append_steps(
    earlier: Arrivals,
    records: Iterable[tuple[int, MarksRecord]],
    per_step: int,
    since: int = 0,
    excluded: frozenset[int] = frozenset(),
) -> Arrivals:
    """Append records in steps of `per_step` annotators. Only the first step may span several imports.

    `records`: number of the import and marks, in order of import.
    `since`: the imports up to this one become one step.
    `excluded`: annotators whose clicks are left out.
    """
    parts: list[tuple[FloatArray, FloatArray, FloatArray, IntArray]] = []
    index = {number: position for position, number in enumerate(earlier.order.tolist())}
    rows, annotators, imported = earlier.rows.tolist(), earlier.annotators.tolist(), earlier.imported
    total = len(earlier.x)
    for number, record in records:
        imported = number
        is_kept = ~np.isin(record.annotator, sorted(excluded))
        annotator = record.annotator[is_kept]
        time = np.full(len(record.x), np.nan) if record.time is None else record.time
        steps = _steps(annotator, record.looked, excluded, set(index), per_step)
        if number <= since:
            steps = [(len(annotator), [newcomer for _, newcomers in steps for newcomer in newcomers])]
            rows, annotators = [], []
        for end, newcomers in steps:
            for newcomer in newcomers:
                index[newcomer] = len(index)
            rows.append(total + end)
            annotators.append(len(index))
        annotator_index = np.array(
            [index[annotator_number] for annotator_number in annotator.tolist()], dtype=np.int64
        )
        parts.append((record.x[is_kept], record.y[is_kept], time[is_kept], annotator_index))
        total += len(annotator)
    x, y, time, annotator = (
        np.concatenate([old, *(part[column] for part in parts)])
        for column, old in enumerate((earlier.x, earlier.y, earlier.time, earlier.annotator))
    )
    return Arrivals(
        extent=earlier.extent,
        imported=imported,
        x=x,
        y=y,
        time=time,
        annotator=annotator.astype(np.int64),
        order=np.array(list(index), dtype=np.int64),
        rows=np.array(rows, dtype=np.int64),
        annotators=np.array(annotators, dtype=np.int64),
    )


def _steps(
    annotator: IntArray, looked: IntArray, excluded: frozenset[int], known_annotators: set[int], per_step: int
) -> list[tuple[int, list[int]]]:
    """Divide an import into steps; return the end row of each, and its new annotators."""
    change = np.flatnonzero(np.diff(annotator)) + 1
    ends = [*change.tolist(), len(annotator)] if len(annotator) else []
    annotators = annotator[np.array(ends, dtype=np.int64) - 1].tolist()
    if len(annotators) > MAX_STEPS * len(set(annotators)):
        ends, annotators = [len(annotator)], [None]
    marked = set(annotator.tolist())
    idle = [
        annotator_number
        for annotator_number in looked.tolist()
        if annotator_number not in marked
        and annotator_number not in excluded
        and annotator_number not in known_annotators
    ]
    stretches = list(zip(ends, annotators, strict=True))
    steps: list[tuple[int, list[int]]] = []
    begin = 0
    for first in range(0, len(stretches), per_step):
        end = stretches[min(first + per_step, len(stretches)) - 1][0]
        fresh = dict.fromkeys(
            annotator_number
            for annotator_number in annotator[begin:end].tolist()
            if annotator_number not in known_annotators
        )
        known_annotators.update(fresh)
        steps.append((end, list(fresh)))
        begin = end
    for first in range(0, len(idle), per_step):
        steps.append((len(annotator), idle[first : first + per_step]))
    return steps


@dataclass(frozen=True)
class StepSettings(Settings):
    """Settings of the steps in which new clicks are processed."""

    annotators_a_step: int = integer(
        1, "Annotators per step", "New annotators whose clicks are processed together.", minimum=1,
        maximum=1000,
    )  # fmt: skip


@dataclass(frozen=True)
class WatchPlan:
    """Settings of live watching: fusion, stop rule and steps."""

    stream: StreamPlan = field(default_factory=StreamPlan)
    stopping: StoppingSettings = field(default_factory=StoppingSettings)
    steps: StepSettings = field(default_factory=StepSettings)

    @classmethod
    def make(cls, texts: Mapping[str, str]) -> Self:
        """Make a plan from `field=value` pairs of a command line."""
        *stream, stopping, steps = settings_from_texts(
            texts, *STREAM_SETTINGS, StoppingSettings, StepSettings
        )
        return cls(StreamPlan(*stream), stopping, steps)

    def as_dict(self) -> dict[str, Any]:
        """Return names and values, ready for JSON. A `FusionPlan` can be made of them too."""
        return {
            **self.stream.as_dict(), "stopping": self.stopping.as_dict(), "steps": self.steps.as_dict(),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class WatchedImage:
    """State of live watching on one image."""

    state: StreamState
    outlook: ExpectedChanges  # expected changes by further annotators
    history: StreamHistory
    # experience with annotators from other images, from the first clicks or the last settling of all images
    experience: Experience
    excluded: tuple[str, ...]  # excluded annotators
    known: KnownSpots  # the expert's decisions
    weights: FloatArray | None = None  # (R,): as `Clicks.weights`
    viewed: FloatArray | None = None  # (V, 2): as `Clicks.viewed`
    control: bool | None = None  # as `Clicks.control`
    scores: FloatArray | None = None  # (K, 3): as `Clicks.scores`

    @property
    def fusion(self) -> Fusion:
        """The current answer."""
        return self.state.fusion

    @property
    def firm(self) -> bool:
        """Whether no more annotators are needed."""
        return bool(len(self.history) and self.history.firm[-1])


@dataclass(frozen=True, eq=False)
class PendingClicks:
    """Clicks and knowledge of one image, as read from the study."""

    arrivals: Arrivals
    names: Sequence[str]  # of all annotators of the study
    held: ExpertKnowledge  # the expert's knowledge of the image
    excluded: tuple[str, ...]  # annotators excluded from `arrivals`
    weights: Mapping[str, float] = field(default_factory=dict)  # the reduced weights of annotators
    scores: FloatArray | None = None  # (K, 3): as `Clicks.scores`

    def clicks(self, step: int) -> Clicks:
        """Return all clicks that had arrived after a step."""
        clicks = replace(self.arrivals.clicks(step, self.names), **self.held._asdict(), scores=self.scores)
        return clicks.with_weights(self.weights) if self.weights else clicks

    def reached(self, watched: WatchedImage) -> int | None:
        """Return the number of steps in an answer; None if it is not based on these arrivals."""
        if watched.excluded != self.excluded:
            return None
        step = self.arrivals.step_of(len(watched.fusion.mark), watched.fusion.marked.shape[0])
        if step is not None and (self.weights or watched.weights is not None):
            return step if _equal(watched.weights, self.clicks(step).weights) else None
        return step

    def has_more(self, watched: WatchedImage | None) -> bool:
        """Return whether new clicks, annotators, exclusions, weights or decisions outdate the answer."""
        if watched is None:
            return len(self.arrivals) > 0
        return self.reached(watched) != len(self.arrivals) or not _has_same_knowledge(watched, self)


def read_pending(
    study: Study,
    images: Sequence[int],
    plan: WatchPlan,
    earlier: Mapping[int, PendingClicks],
    since: int,
    watch: Watch = silent,
) -> dict[int, PendingClicks]:
    """Read the pending clicks of images, continuing from an earlier reading.

    Imports up to `since`, before watching began, are one step.
    """
    state = study.review_state()
    names, views = study.annotators(), study.views.by_image()
    excluded = tuple(sorted(state.apart))
    numbers = frozenset(number for number, name in enumerate(names) if name in state.apart)
    pending_by_image = {}
    for done, image in enumerate(images):
        watch(done / len(images), "reading new clicks")
        last = earlier.get(image)
        arrivals = Arrivals(study.image(image).extent)
        if last is not None and last.excluded == excluded:
            arrivals = last.arrivals
        new_clicks = streams.arrivals(study, image, arrivals.imported)
        arrivals = append_steps(arrivals, new_clicks, plan.steps.annotators_a_step, since, numbers)
        held_spots = read_knowledge(image, state, views)
        scores = None if PROGRAM in state.excluded else study.scores(image)
        pending_by_image[image] = PendingClicks(arrivals, names, held_spots, excluded, state.weights, scores)
    return pending_by_image


def follow_image(
    previous: WatchedImage | None,
    pending: PendingClicks,
    experience: Callable[[], Experience],
    plan: WatchPlan,
    watch: Watch = silent,
) -> Iterator[WatchedImage]:
    """Process the pending clicks of an image step by step.

    `previous`: last state of the image. If it cannot be continued, for example after an exclusion, the image
    starts from the beginning. `experience`: returns the experience with annotators for the first clicks.
    """
    current = previous
    done = None if current is None else pending.reached(current)
    if done is None:
        current, done = None, 0
    total = len(pending.arrivals)
    if current is not None and done == total and not _has_same_knowledge(current, pending):
        yield _apply_new_decisions(current, pending, plan, watch)
    for step in range(done, total):
        step_watch = part(watch, (step - done) / (total - done), (step + 1 - done) / (total - done))
        current = _next_answer(current, pending.clicks(step + 1), experience, pending, plan, step_watch)
        yield current


def _next_answer(
    previous: WatchedImage | None,
    clicks: Clicks,
    experience: Callable[[], Experience],
    pending: PendingClicks,
    plan: WatchPlan,
    watch: Watch,
) -> WatchedImage:
    if previous is None:
        known_experience, history = experience(), StreamHistory.none()
        state = begin_stream(clicks, plan.stream, watch, experience=known_experience)
        changed_count = int(state.fusion.detection.detected.sum())
    else:
        known_experience, history = previous.experience, previous.history
        state = advance_stream(previous.state, clicks, plan.stream, watch, experience=known_experience)
        changed_count = count_changes(previous.fusion, state.fusion)
    ahead = predict_outlook(clicks, state.fusion, plan.stream, plan.stopping, watch)
    history = _with_step(history, clicks, state, ahead, changed_count, plan)
    expert_knowledge = {**pending.held._asdict(), "scores": pending.scores}
    return WatchedImage(
        state, ahead, history, known_experience, pending.excluded, weights=clicks.weights, **expert_knowledge
    )


def _apply_new_decisions(
    previous: WatchedImage, pending: PendingClicks, plan: WatchPlan, watch: Watch
) -> WatchedImage:
    """Hold new decisions fixed. No step is added to the history, because no clicks arrived."""
    clicks = pending.clicks(len(pending.arrivals))
    state = advance_stream(previous.state, clicks, plan.stream, watch, experience=previous.experience)
    ahead = predict_outlook(clicks, state.fusion, plan.stream, plan.stopping, watch)
    held_spots = pending.held._asdict()
    return replace(previous, state=state, outlook=ahead, scores=pending.scores, **held_spots)


def revise_last_step(
    previous: WatchedImage,
    clicks: Clicks,
    state: StreamState,
    experience: Experience,
    plan: WatchPlan,
    watch: Watch = silent,
) -> WatchedImage:
    """Replace the last step by an answer from the same clicks and the other images' experience."""
    ahead = predict_outlook(clicks, state.fusion, plan.stream, plan.stopping, watch)
    changed_count = int(previous.history.changed[-1]) + count_changes(previous.fusion, state.fusion)
    history = _with_step(previous.history.until(-1), clicks, state, ahead, changed_count, plan)
    return replace(previous, state=state, outlook=ahead, experience=experience, history=history)


def _with_step(
    history: StreamHistory,
    clicks: Clicks,
    state: StreamState,
    ahead: ExpectedChanges,
    changed_count: int,
    plan: WatchPlan,
) -> StreamHistory:
    history = history.then(
        annotators=len(clicks.annotators),
        clicks=len(clicks),
        detections=int(state.fusion.detection.detected.sum()),
        changed=changed_count,
        expected=ahead.expected,
        chance=ahead.any,
        sensitivity=ahead.sensitivity,
        precision=ahead.precision,
        firm=False,
        refreshed=state.refreshed,
        coming=ahead.coming,
        interval=ahead.interval,
    )
    firm = np.append(history.firm[:-1], is_settled(ahead, history, plan.stopping))
    return replace(history, firm=firm)


def _has_same_knowledge(watched: WatchedImage, pending: PendingClicks) -> bool:
    """Return whether an answer rests on the current decisions, views and scores."""
    held_spots = pending.held
    spots = all(
        np.array_equal(getattr(watched.known, name), getattr(held_spots.known, name))
        for name in ("x", "y", "present")
    )
    same = watched.control == held_spots.control and _equal(watched.scores, pending.scores)
    return spots and same and _equal(watched.viewed, held_spots.viewed)


def _equal(left: FloatArray | None, right: FloatArray | None) -> bool:
    return left is right if left is None or right is None else np.array_equal(left, right)


Order = Literal["time", "random"]


def replay(clicks: Clicks, order: Order, per_step: int, seed: int = 0) -> PendingClicks:
    """Let the annotators of finished clicks arrive again, as pending clicks.

    `clicks`: their `known` spots are held fixed from the first step on.
    `order`: annotators by the time of their first click, those without a time last, or at random.
    `per_step`: number of annotators whose clicks arrive together.
    `seed`: seed of the random order.
    """
    if per_step < 1:
        raise SettingsError(f"{per_step} annotators a step; expected 1 or more.")
    annotators = len(clicks.annotators)
    turn = np.random.default_rng(seed).permutation(annotators) if order == "random" else _by_time(clicks)
    rank = np.argsort(turn)
    rows = np.argsort(rank[clicks.annotator], kind="stable")
    counts = clicks.counts()[turn]
    annotators_by_step = np.minimum(np.arange(per_step, annotators + per_step, per_step), annotators)
    arrivals = Arrivals(
        extent=clicks.extent,
        x=clicks.x[rows],
        y=clicks.y[rows],
        time=np.full(len(rows), np.nan) if clicks.time is None else clicks.time[rows],
        annotator=rank[clicks.annotator[rows]],
        order=turn.astype(np.int64),
        rows=np.concatenate([[0], np.cumsum(counts)])[annotators_by_step],
        annotators=annotators_by_step.astype(np.int64),
    )
    weights = (
        {} if clicks.weights is None else dict(zip(clicks.annotators, clicks.weights.tolist(), strict=True))
    )
    held_spots = ExpertKnowledge(clicks.known, clicks.viewed, clicks.control)
    return PendingClicks(arrivals, clicks.annotators, held_spots, (), weights, clicks.scores)


def _by_time(clicks: Clicks) -> IntArray:
    annotators = len(clicks.annotators)
    first = np.full(annotators, np.inf)
    if clicks.time is not None:
        has_time = np.isfinite(clicks.time)
        np.minimum.at(first, clicks.annotator[has_time], clicks.time[has_time])
    return np.argsort(first, kind="stable").astype(np.int64)
