"""Clicks that keep coming: OEM-DEM goes on from where it stood (OEM-DEM paper, section 6 and Algorithm 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from raterscope.algorithms.clicks._stream_path import go_on
from raterscope.algorithms.clicks.assignment import AssignmentSettings
from raterscope.algorithms.clicks.data import (
    Clicks,
    ClicksError,
    Detection,
    FloatArray,
    Fusion,
    IntArray,
    Votes,
)
from raterscope.algorithms.clicks.dem import DEMSettings, deceived, highest, judge, problem_of, starts_of
from raterscope.algorithms.clicks.fusion import FusionPlan, conclude
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, SettingsError, choice

__all__ = ["StreamMemory", "StreamPlan", "StreamSettings", "StreamState", "advance", "begin"]


@dataclass(frozen=True)
class StreamSettings(Settings):
    """Settings of a stream."""

    update: str = choice(
        "printed", "Update", "How clusters go on when clicks come.", {"printed": "as printed"}
    )  # fmt: skip


@dataclass(frozen=True)
class StreamPlan:
    """How a stream of clicks is fused: by OEM and DEM, with which settings.

    The paper's own form needs a criterion of Algorithm 1: eq. 16 takes the evidence's place there.

    Attributes
    ----------
    clustering : OEMSettings
    detection : DEMSettings
    assignment : AssignmentSettings
    stream : StreamSettings
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
        """The plan of an image whose clicks are all there."""
        return FusionPlan(clustering=self.clustering, detection=self.detection, assignment=self.assignment)

    @classmethod
    def make(cls, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from `field=value` pairs of a command line.

        Raises
        ------
        SettingsError
            For a setting that is not known, or a value that will not do.
        """
        names = {spec.name for spec in StreamSettings.specs()}
        own = {name: text for name, text in (texts or {}).items() if name in names}
        rest = {name: text for name, text in (texts or {}).items() if name not in names}
        return cls._joined(FusionPlan.make("oem", "dem", rest), StreamSettings.from_text(own))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from what `as_dict` gave.

        Raises
        ------
        SettingsError
            For names and values that are not known here.
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
        """Give names and values, ready for JSON."""
        return {**self.fusion.as_dict(), "stream": self.stream.as_dict()}

    def in_words(self) -> str:
        """Say the plan, for the methods section of a report."""
        return (
            f"{self.fusion.in_words()} Clicks came one after the other and were fused as they came (OEM-DEM "
            f"paper, Algorithm 3; {self.stream.in_words()})."
        )


@dataclass(frozen=True, eq=False)
class StreamMemory:
    """What a step leaves for the next, besides its fusion.

    Attributes
    ----------
    components : int
        The first clusters of the fusion, that clicks made; the others are spots that the expert added.
    origin : (M,) int64
        Where each cluster stood in the fusion before; -1 for a new one.
    start : str
        What DEM began from at step 0: the start of new clusters.
    refreshed : bool
        Whether the step clustered all clicks anew.
    """

    components: int
    origin: IntArray
    start: str
    refreshed: bool


@dataclass(frozen=True, eq=False)
class StreamState:
    """Where a stream stands.

    Attributes
    ----------
    step : int
        Batches of clicks since the first.
    fusion : Fusion
        Of all clicks so far.
    memory : StreamMemory
    """

    step: int
    fusion: Fusion
    memory: StreamMemory

    @property
    def refreshed(self) -> bool:
        """Whether the step clustered all clicks anew."""
        return self.memory.refreshed


def begin(clicks: Clicks, plan: StreamPlan | None = None, watch: Watch = silent) -> StreamState:
    """Fuse the first clicks of a stream, as `fuse` does (Algorithm 3, line 1).

    Parameters
    ----------
    clicks : Clicks
        None will do.
    plan : StreamPlan, optional
    watch : Watch

    Returns
    -------
    StreamState
    """
    plan = StreamPlan() if plan is None else plan
    marks, mark = clicks.merged()
    clustering = oem(marks, plan.clustering, part(watch, 0.0, 0.9))
    chosen = _Detector(plan, part(watch, 0.9, 1.0))
    fusion = conclude(marks, mark, clustering, plan.assignment, chosen)
    origin = np.full(len(fusion.clustering), -1, dtype=np.int64)
    return StreamState(0, fusion, StreamMemory(len(clustering), origin, chosen.start, True))


def advance(
    state: StreamState, clicks: Clicks, plan: StreamPlan | None = None, watch: Watch = silent
) -> StreamState:
    """Go on with clicks that came (Algorithm 3, lines 4 to 8).

    Parameters
    ----------
    state : StreamState
    clicks : Clicks
        All so far: first those that the state has seen, in their order, and its annotators in theirs; what
        is new follows. There may be no new click, nor a new annotator.
    plan : StreamPlan, optional
        As before.
    watch : Watch

    Returns
    -------
    StreamState

    Raises
    ------
    ClicksError
        When the clicks do not begin with those that the state has seen.
    """
    plan = StreamPlan() if plan is None else plan
    marks, mark = clicks.merged()
    before = state.fusion
    seen = len(before.mark)
    if len(before.marked) > len(clicks.annotators) or not np.array_equal(mark[:seen], before.mark):
        raise ClicksError(
            f"the clicks do not begin with the {seen} of {len(before.marked)} annotators that the stream has "
            "seen."
        )
    if not seen:
        return replace(begin(clicks, plan, watch), step=state.step + 1)
    clustering, origin = go_on(
        marks, before.clustering, state.memory.components, plan.clustering, part(watch, 0.0, 0.9)
    )
    detector = _Detector(plan, part(watch, 0.9, 1.0), state.memory.start, origin, before.detection.posterior)
    fusion = conclude(marks, mark, clustering, plan.assignment, detector)
    added = len(fusion.clustering) - len(origin)
    memory = StreamMemory(len(origin), np.append(origin, np.full(added, -1)), detector.start, False)
    return StreamState(state.step + 1, fusion, memory)


@dataclass
class _Detector:
    """DEM from the posteriors before, where there were any (eq. 39)."""

    plan: StreamPlan
    watch: Watch
    start: str = ""
    origin: IntArray | None = None
    before: FloatArray | None = None

    def __call__(self, votes: Votes) -> Detection:
        settings = self.plan.detection
        problem = problem_of(votes, settings)
        starts = starts_of(votes, settings.start)
        if self.origin is not None and self.before is not None:
            first = starts_of(votes, self.start)[self.start]
            kept = np.flatnonzero(self.origin >= 0)
            first[kept] = self.before[self.origin[kept]]
            starts = {self.start: first}
        ascent, self.start = highest(problem, starts, settings, part(self.watch, 0.0, 0.8))
        return judge(problem, ascent, settings, deceived(problem, ascent), part(self.watch, 0.8, 1.0))
