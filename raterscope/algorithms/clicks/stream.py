"""Streams of clicks: online OEM-DEM (OEM-DEM paper, section 6 and Algorithm 3).

A stream updates each image step by step, with the experience on other images at an earlier time. Its state
therefore depends on the order of the clicks. `share_streams` fuses each image from its clicks alone, and all
images learn from each other, as in `raterscope.algorithms.clicks.fusion`. The result is that of a fusion,
independent of the order, and the streams continue from there.

The crowd model continues from its last state, and new components start near new clicks. The evidence decides
which of them remain, as in a batch fusion. Components far from new clicks stay fixed, but count in the
estimates of the annotators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from raterscope.algorithms.clicks._crowd import NEAR, Crowd, CrowdModel, sort_into_cells
from raterscope.algorithms.clicks._path import State as CrowdState
from raterscope.algorithms.clicks._path import walk_from
from raterscope.algorithms.clicks._vote_model import Problem, State, carry_posteriors, run_em
from raterscope.algorithms.clicks.data import BoolArray, Clicks, ClicksError, FloatArray, IntArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    highest_ascent,
    judge_alone,
    problem_of,
    starting_posteriors,
)
from raterscope.algorithms.clicks.fusion import FusionPlan, conclude, learn_from_each_other
from raterscope.algorithms.clicks.image_priors import Experience, apply_experience, can_share
from raterscope.algorithms.clicks.oem import (
    Habits,
    OEMSettings,
    crowd_model,
    fit_evidence,
    initial_reliability,
    oem,
    path_of,
    uses_evidence,
)
from raterscope.algorithms.clicks.result import Clustering, Detection, Fusion, Trace, Votes
from raterscope.algorithms.clicks.stopping import votes_on
from raterscope.algorithms.clicks.voting import AssignmentSettings
from raterscope.algorithms.evaluation import match
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, SettingsError, choice, number, settings_from_texts

AROUND = 2.0
"""Radius around a new click, in scatters, within which components start."""

APART = 2.0
"""Minimum distance of new components from existing ones, in scatters."""

TRIALS = 4
"""Maximum number of rounds of removal near new clicks."""


@dataclass(frozen=True, eq=False)
class CrowdMemory:
    """State of the crowd model in addition to its clustering: M components and R annotators."""

    # weight, support: (M,): odds that an annotator of ability 1 marks the component, and its expected number
    # of marks
    weight: FloatArray
    support: FloatArray
    offset: FloatArray  # (R, 2)
    # precision, ability, outliers: (R,): of each annotator's scatter, marks and stray clicks
    precision: FloatArray
    ability: FloatArray
    outliers: FloatArray
    habits: Habits  # estimated when all clicks were last clustered


def refit(
    marks: Clicks, settings: OEMSettings, watch: Watch, known: FloatArray | None = None
) -> tuple[Clustering, CrowdMemory]:
    """Fit the crowd model as in a batch fusion; `known`: initial reliabilities, as in `oem`."""
    clustering, crowd, habits = fit_evidence(marks, settings, watch, known)
    return clustering, _memory_of(crowd, habits)


def update_model(
    marks: Clicks,
    before: Clustering,
    memory: CrowdMemory,
    settings: OEMSettings,
    watch: Watch,
    known: FloatArray | None = None,
) -> tuple[Clustering, CrowdMemory, IntArray]:
    """Update the crowd model with new clicks; return clustering, memory and origins.

    `marks`: the clicks that were clustered before come first.
    `before`: the clustering, whose first components are those of the model.
    `known`: (R,) float64, initial reliability of new annotators, as in `oem`.
    The origins, (M,), are the former indices of components; -1 for a new one.
    """
    text = f"following {len(memory.weight)} components"

    def tick() -> None:
        watch(0.5, text)

    model = crowd_model(settings, memory.habits, len(marks))
    if known is not None:
        model = replace(model, reliability=initial_reliability(known, settings, len(marks.annotators)))
    crowd = _restore_model(marks, before, memory, model, tick)
    row = crowd.cells.order >= len(before.inlier)
    new = np.column_stack([crowd.cells.x[row], crowd.cells.y[row]])
    opened = _open_components(crowd, new, tick)
    origin = np.concatenate([np.arange(len(memory.weight)), np.full(opened, -1)])
    near = _within((AROUND + NEAR) * crowd.scatter, crowd.parts.mean, new)
    first = np.argsort(~near, kind="stable")
    crowd.parts = type(crowd.parts)(*(values[first] for values in crowd.parts))
    origin, near = origin[first], near[first]

    def settle(times: int, again: int = 1, *, learn: bool = False, drop: bool = False) -> bool:
        """Update the components near new clicks; all others stay fixed. `learn`, `drop`: as for `survey`."""
        crowd.sweep(0, tick, fixed=again)
        crowd.sweep(times, tick, number=int(near.sum()))
        return crowd.survey(tick, learn=learn, drop=drop)

    def report(_gain: float, _position: int) -> None:
        tick()

    crowd.gather(tick)
    crowd.set_rules()
    settle(2, 2, learn=True)
    objective: list[float] = []
    components: list[int] = []
    removed = 1
    while removed and len(objective) < TRIALS:
        settle(1)
        objective.append(crowd.evidence)
        components.append(len(crowd))
        removed = crowd.prune(report, near)
        settle(2, 0, learn=True)
    lonely = True
    while lonely:
        origin, near = origin[crowd.parts.alive], near[crowd.parts.alive]
        crowd.gather(tick)
        lonely = settle(3, 2, drop=True)
    trace = Trace(
        np.array([*objective, crowd.evidence]),
        np.array([*components, len(crowd)], dtype=np.int64),
        np.zeros(len(objective) + 1, dtype=bool),
        len(objective),
        True,
    )
    return crowd.result(trace), _memory_of(crowd, memory.habits), origin


def _restore_model(
    marks: Clicks, before: Clustering, memory: CrowdMemory, model: CrowdModel, tick: Callable[[], None]
) -> Crowd:
    """Make the model of all marks from the state of the previous one."""
    from raterscope.algorithms.clicks._crowd_kernels import Parts

    cells = sort_into_cells(marks, 2 * model.scatter, tick)
    if isinstance(model.reliability, np.ndarray):
        begin = np.empty(len(cells.rank))
        begin[cells.rank] = model.reliability
        model = replace(model, reliability=begin)
    crowd = Crowd(cells, len(marks.annotators), marks.area, replace(model, scatter=before.scatter))
    known = cells.rank[: len(memory.ability)]
    crowd.scatters.offset[known], crowd.scatters.precision[known] = memory.offset, memory.precision
    crowd.counts.ability[known], crowd.counts.outliers[known] = memory.ability, memory.outliers
    number = len(memory.weight)
    matrix = before.covariance[:number]
    crowd.parts = Parts(
        before.mean[:number] - cells.centre,
        np.column_stack([matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 1, 1]]),
        memory.weight.copy(),
        memory.support.copy(),
        np.ones(number, dtype=np.bool_),
    )
    return crowd


def _open_components(crowd: Crowd, new: FloatArray, tick: Callable[[], None]) -> int:
    """Add components at crowded clicks near new ones, away from existing components; return their number."""
    from raterscope.algorithms.clicks._crowd_kernels import Parts

    chosen, count = crowd.choose_crowded(crowd.near(new, AROUND * crowd.scatter), tick)
    positions = np.column_stack([crowd.cells.x[chosen], crowd.cells.y[chosen]])
    apart = ~_within(APART * crowd.scatter, positions, crowd.parts.mean)
    weight = None if crowd.model.once else count[apart] / crowd.number
    added = crowd.start_components(chosen[apart], weight)
    crowd.parts = Parts(*(np.concatenate(pair) for pair in zip(crowd.parts, added, strict=True)))
    return int(apart.sum())


def _within(reach: float, positions: FloatArray, others: FloatArray) -> BoolArray:
    """Return whether each position has one of `others` within reach."""
    from scipy.spatial import cKDTree

    if not len(others) or not len(positions):
        return np.zeros(len(positions), dtype=bool)
    return np.asarray(cKDTree(others).query(positions, distance_upper_bound=reach)[0] < reach)


def _memory_of(crowd: Crowd, habits: Habits) -> CrowdMemory:
    rank, alive = crowd.cells.rank, crowd.parts.alive
    return CrowdMemory(
        crowd.parts.weight[alive], crowd.parts.support[alive], crowd.scatters.offset[rank],
        crowd.scatters.precision[rank], crowd.counts.ability[rank], crowd.counts.outliers[rank], habits,
    )  # fmt: skip


FRACTION = 1 / 8
"""Weight of a new component, as a share of the smallest previous weight."""


def continue_clustering(
    marks: Clicks,
    before: Clustering,
    components: int,
    settings: OEMSettings,
    watch: Watch,
    known: FloatArray | None = None,
) -> tuple[Clustering, IntArray]:
    """Cluster all clicks, initialised by eqs. 35 to 37; return clustering and origins.

    `marks`: the clicks that were clustered before come first.
    `components`: number of first components that are continued.
    `known`: (R,) float64, the p0 of new annotators, see `oem`; where it is NaN, the p0 of the settings is
    used. The origins, (M,), are the former indices of components; -1 for a component that started at a new
    click.
    """
    new, scatter = marks.points[len(before.inlier) :], before.scatter
    cells = sort_into_cells(marks, 3 * scatter)
    old = before.covariance[:components]
    covariance = np.concatenate(
        [
            np.column_stack([old[:, 0, 0], old[:, 0, 1], old[:, 1, 1]]),
            np.tile([scatter**2, 0.0, scatter**2], (len(new), 1)),
        ]
    )
    weight = before.weight[:components]
    least = FRACTION * float(weight.min()) if components else 1.0
    weight = np.concatenate([weight, np.full(len(new), least)])
    reliability = np.empty(len(marks.annotators))
    reliability[cells.rank] = initial_reliability(known, settings, len(marks.annotators))
    judged = np.flatnonzero(np.isfinite(before.reliability))
    reliability[cells.rank[judged]] = before.reliability[judged]
    state = CrowdState(
        np.concatenate([before.mean[:components], new]) - cells.centre,
        covariance,
        weight / max(float(weight.sum()), 1e-300),
        reliability,
        np.concatenate([np.arange(components), np.full(len(new), -1)]),
    )
    path = path_of(settings, scatter)
    clustering, best = walk_from(cells, 1 / marks.area, state, path, scatter, watch)
    return clustering, best.origin


Starts = Mapping[str, FloatArray | State]

BEFORE = "before"
"""Name of the start from the previous state of DEM."""

SAME = 2.0
"""Maximum distance, in scatters, of a new cluster from the earlier one that it continues."""


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


STREAM_SETTINGS = (OEMSettings, DEMSettings, AssignmentSettings, StreamSettings)
"""Classes of the settings of a `StreamPlan`, in the order of its fields."""


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
        """Plan for fusing all clicks at once."""
        return FusionPlan(clustering=self.clustering, detection=self.detection, assignment=self.assignment)

    @classmethod
    def make(cls, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from `field=value` pairs of a command line.

        Raises `SettingsError` for an unknown setting, or a value out of range.
        """
        return cls(*settings_from_texts(texts or {}, *STREAM_SETTINGS))

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
                f"a stream can be fused only by oem and dem, not {plan.algorithm} and {plan.detector}."
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
    """State that a stream keeps between steps, in addition to its fusion."""

    # number of clusters from clicks, the first ones of the fusion; the others are spots that the expert added
    components: int
    # (M,): index of each cluster in the previous fusion; -1 for new ones and for the expert's
    origin: IntArray
    refreshed: bool  # whether the step clustered all clicks again
    # marks, annotators: numbers of clicks (duplicates merged) and annotators at the last clustering of all
    # clicks
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
    """Cluster all marks as in a batch fusion; DEM also starts from its last state."""
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
    """DEM on the votes of a step; remembers its state and the chosen start."""

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

    With both, the result of an image depends on earlier steps.
    """
    return plan.stream.update != "printed" and not plan.clustering.carry_reliability


def restart_stream(
    clicks: Clicks, plan: StreamPlan, before: StreamState | None = None, watch: Watch = silent
) -> StreamState:
    """Fuse all clicks of an image separately, as `fuse` does; the step is that of the previous state."""
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
    fusions by the same plan; they also count.
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
