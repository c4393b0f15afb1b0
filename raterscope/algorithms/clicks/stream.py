"""Streams of clicks: online OEM-DEM (OEM-DEM paper, section 6 and Algorithm 3).

A stream follows each image from step to step, with the experience on other images at an earlier time. Its
state therefore depends on the order of the clicks. `share_streams` fuses each image from its clicks alone,
and all images learn from each other, as in `raterscope.algorithms.clicks.fusion`. The result is that of a
fusion, independent of the order, and the streams continue from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from raterscope.algorithms.clicks._streaming import CrowdMemory, continue_clustering, refit, update_model
from raterscope.algorithms.clicks._vote_model import Problem, State, carry_posteriors, run_em
from raterscope.algorithms.clicks.data import Clicks, ClicksError, FloatArray, IntArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    highest_ascent,
    judge_alone,
    problem_of,
    starting_posteriors,
)
from raterscope.algorithms.clicks.experience import Experience, apply_experience
from raterscope.algorithms.clicks.fusion import FusionPlan, conclude, learn_from_each_other
from raterscope.algorithms.clicks.learning import can_share
from raterscope.algorithms.clicks.oem import OEMSettings, oem, uses_evidence
from raterscope.algorithms.clicks.result import Clustering, Detection, Fusion, Votes
from raterscope.algorithms.clicks.stopping import votes_on
from raterscope.algorithms.clicks.voting import AssignmentSettings
from raterscope.algorithms.evaluation import match
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, SettingsError, choice, number

Starts = Mapping[str, FloatArray | State]

BEFORE = "before"
"""Name of the start from the previous state of DEM."""

SAME = 2.0
"""Scatters within which a new cluster is the same as an earlier one."""


@dataclass(frozen=True)
class StreamSettings(Settings):
    """Settings of a stream."""

    update: str = choice(
        "local", "Update", "How new clicks update clusters. Near new clicks: clusters start there, remain "
        "if the evidence supports them, and all are refitted from time to time. As published (Algorithm 3): "
        "a cluster starts at every click.", {"local": "near new clicks", "printed": "as published"},
    )  # fmt: skip
    growth: float = number(
        0.2, "Growth", "All clusters are refitted once the number of clicks or of annotators has grown by "
        "this share. Not used as published.", minimum=0.0, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True)
class StreamPlan:
    """Plan of a stream of clicks: the settings of OEM and DEM.

    The published form needs a criterion of Algorithm 1: eq. 16 replaces the evidence.
    """

    clustering: OEMSettings = field(default_factory=OEMSettings)
    detection: DEMSettings = field(default_factory=DEMSettings)
    assignment: AssignmentSettings = field(default_factory=AssignmentSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)

    def __post_init__(self) -> None:
        if self.stream.update == "printed" and self.clustering.criterion == "evidence":
            object.__setattr__(self, "clustering", replace(self.clustering, criterion="expected"))

    @property
    def fusion(self) -> FusionPlan:
        """The plan of a fusion of all clicks."""
        return FusionPlan(clustering=self.clustering, detection=self.detection, assignment=self.assignment)

    @classmethod
    def make(cls, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from `field=value` pairs of a command line.

        Raises `SettingsError` for an unknown setting, or a value out of range.
        """
        names = {spec.name for spec in StreamSettings.specs()}
        own = {name: text for name, text in (texts or {}).items() if name in names}
        others = {name: text for name, text in (texts or {}).items() if name not in names}
        return cls._joined(FusionPlan.make("oem", others), StreamSettings.from_text(own))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from the result of `as_dict`.

        Raises `SettingsError` for unknown names and values.
        """
        plan = FusionPlan.from_dict(values)
        return cls._joined(plan, StreamSettings.from_dict(values.get("stream", {})))

    @classmethod
    def _joined(cls, plan: FusionPlan, stream: StreamSettings) -> Self:
        if not isinstance(plan.clustering, OEMSettings) or not isinstance(plan.detection, DEMSettings):
            raise SettingsError(
                f"a stream is fused by oem and dem, not {plan.algorithm} and {plan.detector}."
            )
        return cls(plan.clustering, plan.detection, plan.assignment, stream)

    def as_dict(self) -> dict[str, Any]:
        """Return names and values, ready for JSON."""
        return {**self.fusion.as_dict(), "stream": self.stream.as_dict()}

    def in_words(self) -> str:
        """Describe the plan, for the methods section of a report."""
        return (
            f"{self.fusion.in_words()} Clicks were fused as a stream, in order of arrival (OEM-DEM paper, "
            f"Algorithm 3; {self.stream.in_words()})."
        )


@dataclass(frozen=True, eq=False)
class StreamMemory:
    """Memory of a stream from step to step, in addition to its fusion."""

    # number of clusters from clicks, the first ones of the fusion; the others are spots that the expert added
    components: int
    # (M,): index of each cluster in the previous fusion; -1 for new ones and for the expert's
    origin: IntArray
    refreshed: bool  # whether the step clustered all clicks again
    # marks, annotators: numbers at the last clustering of all clicks: clicks, duplicates merged, and
    # annotators
    marks: int
    annotators: int
    crowd: CrowdMemory | None  # if the criterion is the evidence
    votes: State  # state of DEM
    start: str  # start of DEM at step 0: in the published version, new clusters use it (eq. 39)


@dataclass(frozen=True, eq=False)
class StreamState:
    """State of a stream."""

    step: int  # number of batches of clicks since the first
    fusion: Fusion  # of all clicks so far
    memory: StreamMemory

    @property
    def refreshed(self) -> bool:
        """True if the step clustered all clicks again."""
        return self.memory.refreshed


def begin_stream(
    clicks: Clicks,
    plan: StreamPlan | None = None,
    watch: Watch = silent,
    *,
    experience: Experience | None = None,
) -> StreamState:
    """Fuse the first clicks of a stream, as `fuse` does (Algorithm 3, line 1).

    `clicks`: may be empty. `experience`: experience on other images, as for `fuse`. With a plan that carries
    reliabilities, clustering starts from the annotators' reliabilities on those images (section 4).
    """
    plan = StreamPlan() if plan is None else plan
    known = _carried_reliability(clicks, plan, experience)
    detector = _Detector(plan.detection, clicks.annotators, experience)
    return _recluster(clicks.merged(), plan, None, detector, watch, known)


def advance_stream(
    state: StreamState,
    clicks: Clicks,
    plan: StreamPlan | None = None,
    watch: Watch = silent,
    *,
    experience: Experience | None = None,
) -> StreamState:
    """Update a stream with new clicks (Algorithm 3, lines 4 to 8).

    `clicks`: all clicks so far: first those of the state and its annotators, in the same order, then any new
        ones. Weights do not change.
    `plan`: as before.
    `experience`: experience on other images, as for `begin_stream`.
    Raises `ClicksError` if the clicks do not begin with those of the state.
    """
    plan = StreamPlan() if plan is None else plan
    marks, mark = clicks.merged()
    before, memory, printed = state.fusion, state.memory, plan.stream.update == "printed"
    seen = len(before.mark)
    if len(before.marked) > len(clicks.annotators) or not np.array_equal(mark[:seen], before.mark):
        raise ClicksError(
            f"the clicks do not begin with the {seen} of {len(before.marked)} annotators that the stream has "
            "seen."
        )
    detector = _Detector(plan.detection, clicks.annotators, experience)
    known = _carried_reliability(clicks, plan, experience)
    if not seen or (not printed and _grow(marks, memory, 1 + plan.stream.growth)):
        return _recluster((marks, mark), plan, state, detector, watch, known)
    clustering, crowd, origin = _follow_clusters(marks, state, plan, part(watch, 0.0, 0.8), known)

    def starts(votes: Votes, problem: Problem) -> Starts:
        again = None if printed else carry_posteriors(problem, memory.votes)
        if again is not None:
            return {BEFORE: again}
        first = starting_posteriors(votes, memory.start)[memory.start]
        kept = np.flatnonzero(origin >= 0)
        first[kept] = before.detection.posterior[origin[kept]]
        return {memory.start: first}

    detect = partial(detector, starts, part(watch, 0.8, 1.0))
    fusion = conclude(marks, mark, clustering, plan.assignment, detect)
    return StreamState(
        state.step + 1,
        fusion,
        replace(
            memory,
            components=len(clustering),
            origin=_padded(origin, fusion),
            refreshed=False,
            crowd=crowd,
            votes=detector.came_to,
        ),
    )


def _carried_reliability(
    clicks: Clicks, plan: StreamPlan, experience: Experience | None
) -> FloatArray | None:
    """Return annotators' p0 from other images, NaN if unknown; None unless the plan carries it."""
    if experience is None or not plan.clustering.carry_reliability:
        return None
    return experience.reliability(clicks.annotators)


def _follow_clusters(
    marks: Clicks, state: StreamState, plan: StreamPlan, watch: Watch, known: FloatArray | None
) -> tuple[Clustering, CrowdMemory | None, IntArray]:
    """Update the clusters with new clicks, by the model of the plan."""
    before, memory = state.fusion.clustering, state.memory
    if memory.crowd is not None:
        return update_model(marks, before, memory.crowd, plan.clustering, watch, known)
    clustering, origin = continue_clustering(marks, before, memory.components, plan.clustering, watch, known)
    return clustering, None, origin


def _recluster(
    merged: tuple[Clicks, IntArray],
    plan: StreamPlan,
    state: StreamState | None,
    detector: _Detector,
    watch: Watch,
    known: FloatArray | None,
) -> StreamState:
    """Cluster all marks as in a batch; DEM starts as in a batch, and from its last state."""
    (marks, mark), crowd = merged, None
    former = None if state is None or not len(state.fusion.mark) else state
    if len(marks) and uses_evidence(plan.clustering):
        clustering, crowd = refit(marks, plan.clustering, part(watch, 0.0, 0.9), known)
    else:
        clustering = oem(marks, plan.clustering, part(watch, 0.0, 0.9), reliability=known)

    def starts(votes: Votes, problem: Problem) -> Starts:
        again = None if former is None else carry_posteriors(problem, former.memory.votes)
        first: Starts = starting_posteriors(votes, plan.detection.start)
        return first if again is None else {**first, BEFORE: again}

    detect = partial(detector, starts, part(watch, 0.9, 1.0))
    fusion = conclude(marks, mark, clustering, plan.assignment, detect)
    origin = np.full(len(clustering), -1, dtype=np.int64)
    if former is not None and len(clustering):
        positions = former.fusion.clustering.mean[: former.memory.components]
        same = match(clustering.mean, positions, SAME * clustering.scatter)
        origin[same.found] = same.truth
    return StreamState(
        0 if state is None else state.step + 1,
        fusion,
        StreamMemory(
            components=len(clustering),
            origin=_padded(origin, fusion),
            refreshed=True,
            marks=len(marks),
            annotators=_clicked(marks),
            crowd=crowd,
            votes=detector.came_to,
            start=former.memory.start if former is not None else detector.start,
        ),
    )


def _grow(marks: Clicks, memory: StreamMemory, times: float) -> bool:
    return len(marks) >= times * memory.marks or _clicked(marks) >= times * memory.annotators


def _clicked(marks: Clicks) -> int:
    return int(np.count_nonzero(marks.counts()))


def _padded(origin: IntArray, fusion: Fusion) -> IntArray:
    return np.append(origin, np.full(len(fusion.clustering) - len(origin), -1))


class _Detector:
    """DEM on the votes of a step; keeps its state and its start."""

    def __init__(
        self, settings: DEMSettings, annotators: Sequence[str], experience: Experience | None
    ) -> None:
        self.settings, self.annotators, self.experience = settings, annotators, experience

    def __call__(self, starts: Callable[[Votes, Problem], Starts], watch: Watch, votes: Votes) -> Detection:
        problem = problem_of(votes, self.settings)
        if self.experience is not None and can_share(votes, self.settings):
            problem = apply_experience(problem, self.annotators, self.experience)
        initial_states = starts(votes, problem)
        ascent, self.start = highest_ascent(problem, initial_states, self.settings, part(watch, 0.0, 0.6))
        self.came_to = ascent.state
        return judge_alone(problem, ascent, initial_states, self.settings, part(watch, 0.6, 1.0))


def can_share_streams(plan: StreamPlan) -> bool:
    """Return whether the plan allows `share_streams`: not Algorithm 3, nor carried reliabilities.

    Both make the result of an image depend on earlier steps.
    """
    return plan.stream.update != "printed" and not plan.clustering.carry_reliability


def restart_stream(
    clicks: Clicks, plan: StreamPlan, before: StreamState | None = None, watch: Watch = silent
) -> StreamState:
    """Fuse all clicks of an image alone, as `fuse` does; the step is that of the previous state."""
    state = begin_stream(clicks, plan, watch)
    return state if before is None else replace(state, step=before.step)


def share_streams(
    clicks: Sequence[Clicks],
    alone: Sequence[StreamState],
    plan: StreamPlan,
    watch: Watch = silent,
    *,
    others: Sequence[tuple[Clicks, Fusion]] = (),
) -> list[StreamState]:
    """Let images that were fused alone learn from each other; return them as streams.

    The streams have the decisions of a fusion of all the images.

    `alone`: stream of each image, as from `restart_stream`. `others`: images that are not streams, with their
    fusions by the same plan; they count too.
    """
    fusions = learn_from_each_other(
        [*clicks, *(other for other, _ in others)],
        [*(state.fusion for state in alone), *(other for _, other in others)],
        plan.fusion,
        part(watch, 0.0, 0.9),
    )
    settled = []
    for done, (own, state, fusion) in enumerate(zip(clicks, alone, fusions, strict=False)):
        part(watch, 0.9, 1.0)(done / len(alone), "settling")
        problem = problem_of(votes_on(own, fusion), plan.detection)
        start = np.clip(fusion.detection.posterior, 0, 1)
        votes = run_em(problem, start, 1, 0.0, silent).state if fusion is not state.fusion else None
        memory = state.memory if votes is None else replace(state.memory, votes=votes)
        settled.append(replace(state, fusion=fusion, memory=memory))
    return settled
