"""What came on an image, taken up step by step, until it is firm.

The same clicks in the same steps come to the same answer, whether they are followed in one go or in several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from raterscope.algorithms.clicks.data import PROGRAM, Clicks, FloatArray, KnownSpots
from raterscope.algorithms.clicks.experience import Experience
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import (
    Outlook,
    StoppingSettings,
    StreamHistory,
    changed,
    is_firm,
    outlook,
)
from raterscope.algorithms.clicks.stream import StreamPlan, StreamState, advance, begin
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, SettingsError, integer
from raterscope.app.kinds.clicks.arriving import Arrivals, in_steps
from raterscope.app.kinds.clicks.held_fixed import HeldFixed, held_fixed
from raterscope.app.review import fold
from raterscope.app.study import Study, streams


@dataclass(frozen=True)
class StepSettings(Settings):
    """How what comes is taken up."""

    annotators_a_step: int = integer(
        1, "Annotators a step", "Whose clicks are taken up together, where several have come.", minimum=1,
        maximum=1000,
    )  # fmt: skip


@dataclass(frozen=True)
class WatchPlan:
    """How a stream is fused, when an image is firm, how what comes is taken up."""

    stream: StreamPlan = field(default_factory=StreamPlan)
    stopping: StoppingSettings = field(default_factory=StoppingSettings)
    steps: StepSettings = field(default_factory=StepSettings)

    @classmethod
    def make(cls, texts: Mapping[str, str]) -> Self:
        """Make a plan of `field=value` pairs of a command line; see `FusionPlan.make`."""
        own = {
            kind: {name: text for name, text in texts.items() if name in _names(kind)}
            for kind in (StoppingSettings, StepSettings)
        }
        rest = {name: text for name, text in texts.items() if not any(name in one for one in own.values())}
        return cls(
            StreamPlan.make(rest),
            StoppingSettings.from_text(own[StoppingSettings]),
            StepSettings.from_text(own[StepSettings]),
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan of what `as_dict` gave; raises SettingsError for what is not known."""
        parts = [values.get(name, {}) for name in ("stopping", "steps")]
        if not all(isinstance(one, Mapping) for one in parts):
            raise SettingsError("the plan of a watch cannot be read.")
        return cls(
            StreamPlan.from_dict(values),
            StoppingSettings.from_dict(parts[0]),
            StepSettings.from_dict(parts[1]),
        )

    def as_dict(self) -> dict[str, Any]:
        """Give names and values, ready for JSON; a `FusionPlan` can be made of them too."""
        return {
            **self.stream.as_dict(), "stopping": self.stopping.as_dict(), "steps": self.steps.as_dict(),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Watched:
    """What a stream has come to on one image.

    Attributes
    ----------
    state : StreamState
    outlook : Outlook
        What more annotators would change.
    history : StreamHistory
    experience : Experience
        What was held of annotators from other images when the first clicks came, or when all images were
        last settled.
    excluded : tuple of str
        Annotators that were left out.
    known : KnownSpots
        What the expert had decided.
    weights : (R,) float64, optional
        As `Clicks.weights`.
    viewed : (V, 2) float64, optional
        As `Clicks.viewed`.
    control : bool, optional
        As `Clicks.control`.
    scores : (K, 3) float64, optional
        As `Clicks.scores`.
    """

    state: StreamState
    outlook: Outlook
    history: StreamHistory
    experience: Experience
    excluded: tuple[str, ...]
    known: KnownSpots
    weights: FloatArray | None = None
    viewed: FloatArray | None = None
    control: bool | None = None
    scores: FloatArray | None = None

    @property
    def fusion(self) -> Fusion:
        """The answer now."""
        return self.state.fusion

    @property
    def firm(self) -> bool:
        """Whether no more annotators are needed."""
        return bool(len(self.history) and self.history.firm[-1])


@dataclass(frozen=True, eq=False)
class Waiting:
    """What there is to follow on one image, as read from the study.

    Attributes
    ----------
    arrivals : Arrivals
    names : sequence of str
        Of all annotators of the study.
    held : HeldFixed
        What the expert knows of the image.
    excluded : tuple of str
        Annotators left out of `arrivals`.
    weights : mapping of annotator to float
        As how much of one each of those counts who do not count fully.
    scores : (K, 3) float64, optional
        As `Clicks.scores`.
    """

    arrivals: Arrivals
    names: Sequence[str]
    held: HeldFixed
    excluded: tuple[str, ...]
    weights: Mapping[str, float] = field(default_factory=dict)
    scores: FloatArray | None = None

    def clicks(self, step: int) -> Clicks:
        """Give all that had come after so many steps."""
        clicks = replace(self.arrivals.clicks(step, self.names), **self.held._asdict(), scores=self.scores)
        return clicks.weighed(self.weights) if self.weights else clicks

    def reached(self, watched: Watched) -> int | None:
        """Give the steps that are in an answer; None where it is not one of these arrivals."""
        if watched.excluded != self.excluded:
            return None
        step = self.arrivals.step_of(len(watched.fusion.mark), watched.fusion.marked.shape[0])
        if step is not None and (self.weights or watched.weights is not None):
            return step if _equal(watched.weights, self.clicks(step).weights) else None
        return step

    def has_more(self, watched: Watched | None) -> bool:
        """Tell whether something is to be taken up.

        Clicks, annotators, exclusions, weights, or what the expert knows.
        """
        if watched is None:
            return len(self.arrivals) > 0
        return self.reached(watched) != len(self.arrivals) or not _same(watched, self)


def waiting(
    study: Study,
    images: Sequence[int],
    plan: WatchPlan,
    before: Mapping[int, Waiting],
    since: int,
    watch: Watch = silent,
) -> dict[int, Waiting]:
    """Read what there is to follow on images, going on from what was read before.

    What was imported up to `since`, before anything was watched, is one step.
    """
    decisions = study.decisions()
    state = fold(decisions)
    names, views = study.annotators(), study.views.by_image()
    excluded = tuple(sorted(state.excluded))
    numbers = frozenset(number for number, name in enumerate(names) if name in state.excluded)
    found = {}
    for done, image in enumerate(images):
        watch(done / len(images), "reading what came")
        last = before.get(image)
        arrivals = Arrivals(study.image(image).extent)
        if last is not None and last.excluded == excluded:
            arrivals = last.arrivals
        came = streams.arrivals(study, image, arrivals.imported)
        arrivals = in_steps(arrivals, came, plan.steps.annotators_a_step, since, numbers)
        held = held_fixed(image, state, views)
        scores = None if PROGRAM in state.excluded else study.scores(image)
        found[image] = Waiting(arrivals, names, held, excluded, state.weights, scores)
    return found


def follow(
    before: Watched | None,
    given: Waiting,
    experience: Callable[[], Experience],
    plan: WatchPlan,
    watch: Watch = silent,
) -> Iterator[Watched]:
    """Take up what has come on an image, step by step.

    Parameters
    ----------
    before : Watched or None
        Where it was; where that cannot be gone on from, as when an annotator was excluded or weighed since,
        it begins anew.
    given : Waiting
    experience : callable
        Gives what to hold of annotators when the first clicks come.
    plan : WatchPlan
    watch : Watch
    """
    now = before
    done = None if now is None else given.reached(now)
    if done is None:
        now, done = None, 0
    total = len(given.arrivals)
    if now is not None and done == total and not _same(now, given):
        yield _decided(now, given, plan, watch)
    for step in range(done, total):
        told = part(watch, (step - done) / (total - done), (step + 1 - done) / (total - done))
        now = _then(now, given.clicks(step + 1), experience, given, plan, told)
        yield now


def _then(
    before: Watched | None,
    clicks: Clicks,
    experience: Callable[[], Experience],
    given: Waiting,
    plan: WatchPlan,
    watch: Watch,
) -> Watched:
    if before is None:
        held, history = experience(), StreamHistory.none()
        state = begin(clicks, plan.stream, watch, experience=held)
        other = int(state.fusion.detection.detected.sum())
    else:
        held, history = before.experience, before.history
        state = advance(before.state, clicks, plan.stream, watch, experience=held)
        other = changed(before.fusion, state.fusion)
    ahead = outlook(clicks, state.fusion, plan.stream, plan.stopping, watch, experience=held)
    history = _with_step(history, clicks, state, ahead, other, plan)
    known = {**given.held._asdict(), "scores": given.scores}
    return Watched(state, ahead, history, held, given.excluded, weights=clicks.weights, **known)


def _decided(before: Watched, given: Waiting, plan: WatchPlan, watch: Watch) -> Watched:
    """Hold fixed what the expert decided since; no step of the history, for nobody came."""
    clicks = given.clicks(len(given.arrivals))
    state = advance(before.state, clicks, plan.stream, watch, experience=before.experience)
    ahead = outlook(clicks, state.fusion, plan.stream, plan.stopping, watch, experience=before.experience)
    held = given.held._asdict()
    return replace(before, state=state, outlook=ahead, scores=given.scores, **held)


def revised(
    before: Watched,
    clicks: Clicks,
    state: StreamState,
    experience: Experience,
    plan: WatchPlan,
    watch: Watch = silent,
) -> Watched:
    """Put what the same clicks amount to in the light of other images in place of the last step."""
    ahead = outlook(clicks, state.fusion, plan.stream, plan.stopping, watch, experience=experience)
    other = int(before.history.changed[-1]) + changed(before.fusion, state.fusion)
    history = _with_step(before.history.until(-1), clicks, state, ahead, other, plan)
    return replace(before, state=state, outlook=ahead, experience=experience, history=history)


def _with_step(
    history: StreamHistory, clicks: Clicks, state: StreamState, ahead: Outlook, other: int, plan: WatchPlan
) -> StreamHistory:
    history = history.then(
        annotators=len(clicks.annotators),
        clicks=len(clicks),
        detections=int(state.fusion.detection.detected.sum()),
        changed=other,
        expected=ahead.expected,
        chance=ahead.any,
        sensitivity=ahead.sensitivity,
        precision=ahead.precision,
        firm=False,
        refreshed=state.refreshed,
        coming=ahead.coming,
    )
    firm = np.append(history.firm[:-1], is_firm(ahead, history, plan.stopping))
    return replace(history, firm=firm)


def _same(watched: Watched, given: Waiting) -> bool:
    """Tell whether an answer rests on what the expert knows now, and on the scores of now."""
    held = given.held
    spots = all(
        np.array_equal(getattr(watched.known, name), getattr(held.known, name))
        for name in ("x", "y", "present")
    )
    same = watched.control == held.control and _equal(watched.scores, given.scores)
    return spots and same and _equal(watched.viewed, held.viewed)


def _equal(one: FloatArray | None, other: FloatArray | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _names(kind: type[Settings]) -> list[str]:
    return [spec.name for spec in kind.specs()]
