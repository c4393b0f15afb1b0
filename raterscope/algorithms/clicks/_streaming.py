"""Crowd model of a stream: the last state continues, and new components start near new clicks.

The evidence decides which of them remain, as in a batch. Components far from new clicks stay fixed; they
still count when the annotators are estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks._crowd import NEAR, Crowd, CrowdModel, sort_into_cells
from raterscope.algorithms.clicks._path import State, walk_from
from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.oem import (
    Habits,
    OEMSettings,
    crowd_model,
    fit_evidence,
    initial_reliability,
    path_of,
)
from raterscope.algorithms.clicks.result import Clustering, Trace
from raterscope.algorithms.progress import Watch

AROUND = 2.0
"""Scatters around a new click within which components start."""

APART = 2.0
"""Minimum scatters between them and existing components."""

TRIALS = 4
"""Maximum rounds of removal near new clicks."""


@dataclass(frozen=True, eq=False)
class CrowdMemory:
    """State of the crowd model in addition to its clustering: M components and R annotators."""

    # weight, support: (M,): odds that an annotator of ability 1 marks the component, and the marks it has
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
    """Fit the crowd model as in a batch; `known` as `oem` takes reliabilities."""
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
    `before`: its first components are the model's.
    `known`: (R,) float64, initial reliability of new annotators, as in `oem`.
    The origins, (M,), are the former indices of components; -1 for a new one.
    """
    words = f"following {len(memory.weight)} components"

    def tick() -> None:
        watch(0.5, words)

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

    def settle(times: int, again: int = 1) -> None:
        """Adapt the components near new clicks; all others stay fixed."""
        crowd.set_rules()
        crowd.sweep(0, tick, fixed=again)
        crowd.sweep(times, tick, number=int(near.sum()))
        crowd.survey(tick)

    def report(_gain: float, _position: int) -> None:
        tick()

    crowd.gather(tick)
    settle(2, 2)
    crowd.learn()
    objective: list[float] = []
    components: list[int] = []
    removed = 1
    while removed and len(objective) < TRIALS:
        settle(1)
        objective.append(crowd.evidence)
        components.append(len(crowd))
        crowd.set_rules()
        removed = crowd.prune(report, near)
        crowd.sweep(2, tick, number=int(near.sum()))
        crowd.survey(tick)
        crowd.learn()
    lonely = True
    while lonely:
        origin, near = origin[crowd.parts.alive], near[crowd.parts.alive]
        crowd.gather(tick)
        settle(3, 2)
        lonely = crowd.drop_isolated()
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
    crowd = Crowd(cells, len(marks.annotators), marks.area, model)
    crowd.scatter = before.scatter
    known = cells.rank[: len(memory.ability)]
    crowd.offset[known], crowd.precision[known] = memory.offset, memory.precision
    crowd.ability[known], crowd.outliers[known] = memory.ability, memory.outliers
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
    """Return which positions have one of the others within reach."""
    from scipy.spatial import cKDTree

    if not len(others) or not len(positions):
        return np.zeros(len(positions), dtype=bool)
    return np.asarray(cKDTree(others).query(positions, distance_upper_bound=reach)[0] < reach)


def _memory_of(crowd: Crowd, habits: Habits) -> CrowdMemory:
    rank, alive = crowd.cells.rank, crowd.parts.alive
    return CrowdMemory(
        crowd.parts.weight[alive], crowd.parts.support[alive], crowd.offset[rank], crowd.precision[rank],
        crowd.ability[rank], crowd.outliers[rank], habits,
    )  # fmt: skip


FRACTION = 1 / 8
"""Weight of a new component, of the smallest weight before."""


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
    `known`: (R,) float64, the p0 of new annotators, see `oem`; that of the settings where it is NaN.
    The origins, (M,), are the former indices of components; -1 for one that began at a new click.
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
    state = State(
        np.concatenate([before.mean[:components], new]) - cells.centre,
        covariance,
        weight / max(float(weight.sum()), 1e-300),
        reliability,
        np.concatenate([np.arange(components), np.full(len(new), -1)]),
    )
    path = path_of(settings, scatter)
    clustering, best = walk_from(cells, 1 / marks.area, state, path, scatter, watch)
    return clustering, best.origin
