"""Crowd model of one image, fitted to clicks that are sorted into the cells of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import Clustering, Trace
from raterscope.algorithms.progress import Watch, parts_of

if TYPE_CHECKING:
    from raterscope.algorithms.clicks._crowd_kernels import Pairs, Parts


MAXIMUM_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Cells:
    """N clicks relative to their centre, sorted by cell and, within a cell, by position."""

    # x, y: (N,): position less `centre`
    x: FloatArray
    y: FloatArray
    annotator: IntArray  # (N,): index of the annotator among the sorted names
    rank: IntArray  # (R,): that index, for the annotators in the order of the input
    # (R,): weight of each annotator, in the order of their names; empty where all count fully
    weights: FloatArray
    order: IntArray  # (N,): row among the clicks of the input
    centre: FloatArray  # (x, y)
    start: IntArray  # (cells + 1,): first click of each cell, row by row
    grid: FloatArray  # (5,): left, top, side, columns, rows

    def __len__(self) -> int:
        return len(self.x)

    @property
    def worth(self) -> FloatArray:
        """Weights of the annotators, (R,); ones where all count fully."""
        return self.weights if len(self.weights) else np.ones(len(self.rank))


def sort_into_cells(clicks: Clicks, side: float, tick: Callable[[], None] = lambda: None) -> Cells:
    """Sort clicks into cells of about the given side, pixels.

    The clicks are centred first: squares of coordinates near 1e7 would cancel. Annotators are numbered by
    name, and clicks at one position are sorted by it. The order of the input therefore makes no difference.
    `tick` is called between the steps.
    """
    centre = np.array(clicks.centre)
    x, y = clicks.x - centre[0], clicks.y - centre[1]
    left, top, width, height = float(x.min()), float(y.min()), float(np.ptp(x)), float(np.ptp(y))
    most = min(MAXIMUM_CELLS, 4 * len(x) + 16)
    side = max(side, np.sqrt(width * height / most), width / most, height / most, 1e-300)
    columns, rows = int(width / side) + 1, int(height / side) + 1
    cell = np.minimum((y - top) / side, rows - 1).astype(np.int64) * columns
    cell += np.minimum((x - left) / side, columns - 1).astype(np.int64)
    rank = np.empty(len(clicks.annotators), dtype=np.int64)
    rank[sorted(range(len(rank)), key=clicks.annotators.__getitem__)] = np.arange(len(rank))
    annotator = rank[clicks.annotator]
    key = _key(cell, (x - left) / side, (y - top) / side, annotator)
    tick()
    order = np.argsort(key)
    tick()
    start = np.zeros(columns * rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell, minlength=columns * rows), out=start[1:])
    grid = np.array([left, top, side, columns, rows], dtype=np.float64)
    weights = np.empty(0) if clicks.weights is None else clicks.weights[np.argsort(rank)]
    return Cells(
        x[order], y[order], annotator[order], rank, weights, order.astype(np.int64), centre, start, grid
    )


def _key(cell: IntArray, x: FloatArray, y: FloatArray, annotator: IntArray) -> NDArray[np.uint64]:
    """Pack cell, position in the cell and annotator into one number, which is sorted four times as fast."""
    key = cell.astype(np.uint64) << np.uint64(42)
    for value, shift in ((x, 28), (y, 14)):
        key |= ((value % 1.0) * 2**14).astype(np.uint64) << np.uint64(shift)
    return np.asarray(key | (annotator % 2**14).astype(np.uint64))


SPACING = 2.0
"""Minimum distance of initial components, in scatters; closer objects are hardly separable."""

REACH = 6.0
"""Radius around a component, in scatters, within which clicks are listed, also those of annotators with a
wide scatter.
"""

NEAR = 4.0
"""Radius around a removed component, in scatters, within which others adapt."""

ADAPTING = 3
"""Number of rounds of EM for this adaptation."""

BLOCK = 1000
"""Number of components whose clicks are listed between two calls of the watch."""

VISITS = 400_000
"""Number of clicks of components visited between two calls of the watch, about 30 ms of work."""


@dataclass(frozen=True)
class CrowdModel:
    """Parameters of the crowd model."""

    scatter: float  # click scatter to begin with, pixels
    learn_scatter: bool  # whether it is refined
    resolution: float  # lower bound of the scatter
    once: bool  # whether an annotator marks an object at most once
    per_annotator_scatter: bool  # whether every annotator has an own offset and scatter
    floor: float  # smallest eigenvalue of a covariance, as a share of the squared scatter
    reliability: float | FloatArray  # share of clicks that are no outliers to begin with
    most: int  # maximum number of initial components
    lower_bound: int
    max_rounds: int


class Crowd:
    """Crowd model of one image: components, annotators, and posteriors of what each click marks."""

    def __init__(self, cells: Cells, annotators: int, area: float, model: CrowdModel) -> None:
        from raterscope.algorithms.clicks._crowd_kernels import Marks, Parts
        from raterscope.algorithms.clicks._kernels import AnnotatorScatters, Counts, Frame

        self.cells, self.model = cells, model
        self.marks = Marks(cells.x, cells.y, cells.annotator, cells.start, cells.grid)
        self.worth = cells.worth
        self.number = float(self.worth.sum())
        clicks = np.bincount(cells.annotator, minlength=annotators).astype(np.float64)
        self.weighted_clicks = self.worth * clicks
        active = float(self.worth[clicks > 0].sum()) or 1.0
        self.scatters = AnnotatorScatters(
            np.zeros((annotators, 2)), np.ones(annotators), np.empty(annotators), np.empty((annotators, 2)),
            cells.weights, np.zeros(annotators),
        )  # fmt: skip
        self.counts = Counts(
            clicks, np.maximum((1 - model.reliability) * clicks, 0.5), np.zeros(annotators),
            np.ones(annotators), np.empty(annotators, dtype=np.int64), np.zeros((annotators, 3)),
        )  # fmt: skip
        self.frame = Frame(
            model.once,
            model.per_annotator_scatter,
            model.learn_scatter,
            model.resolution,
            model.floor,
            1 / area,
            active,
        )
        # scatter, log evidence, density, support, levels, dropped components: see `advance`
        self.values = np.array([model.scatter, -math.inf, 0.0, 1.0, 0.0, 0.0])
        self.total = np.zeros(len(cells))
        self.stamp = np.zeros(len(cells) + 1, dtype=np.int64)
        self.click = np.empty(16 * len(cells), dtype=np.int32)
        self.nearest, self.strongest = np.full(len(cells), -1, dtype=np.int64), np.zeros(len(cells))
        self.parts = Parts(
            np.empty((0, 2)), np.empty((0, 3)), np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_)
        )

    @property
    def scatter(self) -> float:
        """Click scatter, pixels."""
        return float(self.values[0])

    @property
    def evidence(self) -> float:
        """Log evidence, as of the last `survey`."""
        return float(self.values[1])

    def __len__(self) -> int:
        return int(np.count_nonzero(self.parts.alive))

    def seed(self, tick: Callable[[], None]) -> None:
        """Start components where several annotators clicked, the most crowded positions first."""
        chosen, count = self.choose_crowded(np.arange(len(self.cells)), tick)
        clicks = float(self.weighted_clicks.sum())
        weight = None if self.model.once else count / count.sum() * clicks / self.number
        self.parts = self.start_components(chosen, weight)

    def choose_crowded(self, rows: IntArray, tick: Callable[[], None]) -> tuple[IntArray, FloatArray]:
        """Choose clicks that are near clicks of several annotators; also return their `crowding`."""
        from raterscope.algorithms.clicks._crowd_kernels import choose, crowding

        count = np.zeros(len(self.cells))
        for begin in range(0, len(rows), 50_000):
            batch = rows[begin : begin + 50_000]
            crowding(self.marks, self.cells.weights, SPACING * self.scatter, self.model.once, batch, count)
            tick()
        order = np.argsort(-self.worth[self.cells.annotator] * count, kind="stable")
        order = order[count[order] > 0]
        tick()
        chosen = choose(self.marks, order, SPACING * self.scatter, self.model.most)
        tick()
        return chosen, count[chosen]

    def start_components(self, clicks: IntArray, weight: FloatArray | None) -> Parts:
        """Start a component at each of some clicks; all have the same weight if objects are marked once."""
        from raterscope.algorithms.clicks._crowd_kernels import Parts

        number = len(clicks)
        return Parts(
            np.column_stack([self.cells.x[clicks], self.cells.y[clicks]]),
            np.tile([self.scatter**2, 0.0, self.scatter**2], (number, 1)),
            np.full(number, 0.3) if weight is None else weight,
            np.ones(number),
            np.ones(number, dtype=np.bool_),
        )

    def near(self, positions: FloatArray, reach: float) -> IntArray:
        """Find the clicks within reach of some positions."""
        from raterscope.algorithms.clicks._crowd_kernels import gather

        all_of_them = np.ones(len(positions), dtype=np.bool_)
        first, last, clicks = (
            np.empty(len(positions), np.int64),
            np.empty(len(positions), np.int64),
            self.click,
        )
        for _ in range(2):
            count = gather(
                0, len(positions), 0, self.marks, positions, all_of_them, reach, first, last, clicks
            )
            if count <= len(clicks):
                break
            clicks = np.empty(count, dtype=np.int32)
        return np.unique(clicks[:count]).astype(np.int64)

    def compact(self) -> None:
        """Drop the removed components from all arrays."""
        alive = self.parts.alive
        if not alive.all():
            self.parts = type(self.parts)(*(values[alive] for values in self.parts))

    def gather(self, tick: Callable[[], None]) -> None:
        """List the clicks near each component."""
        from raterscope.algorithms.clicks._crowd_kernels import Pairs, gather

        self.compact()
        pairs, components = 0, len(self.parts.alive)
        first, last = np.empty(components, dtype=np.int64), np.empty(components, dtype=np.int64)
        for begin, end in parts_of(components, BLOCK):
            for _ in range(2):
                count = gather(
                    begin, end, pairs, self.marks, self.parts.mean, self.parts.alive, REACH * self.scatter,
                    first, last, self.click,
                )  # fmt: skip
                if count <= len(self.click):
                    break
                longer = np.empty(int(count * max(1.1, components / end)), dtype=np.int32)
                longer[:pairs] = self.click[:pairs]
                self.click = longer
            pairs = count
            tick()
        self.total[:] = 0
        self.pairs: Pairs = Pairs(first, last, self.click, np.zeros(pairs), self.total)

    def set_rules(self) -> None:
        """Compute the values that are fixed during a sweep over the components; `survey` also does this."""
        self._advance((0, 0), 0, 0, ends=True)

    def _advance(
        self, block: tuple[int, int], fixed: int, times: int, *, surveys: bool = False, ends: bool = False,
        learns: bool = False, drops: bool = False,
    ) -> None:  # fmt: skip
        from raterscope.algorithms.clicks._crowd_kernels import advance

        advance(
            *block, fixed, times, surveys, ends, learns, drops, self.marks, self.parts, self.pairs,
            self.scatters, self.counts, self.frame, self.values, self.nearest, self.strongest,
        )  # fmt: skip

    def blocks(self, number: int | None = None) -> list[tuple[int, int]]:
        """Divide the components, or the first ones, into blocks of about 30 ms of work."""
        last = self.pairs.last[:number]
        if len(self.pairs.message) <= VISITS:
            return [(0, len(last))] if len(last) else []
        edges = np.searchsorted(last, np.arange(VISITS, last[-1] if len(last) else 0, VISITS))
        steps = np.unique(np.concatenate([[0], edges, [len(last)]]))
        return list(zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True))

    def sweep(
        self, times: int, tick: Callable[[], None], *, fixed: int = 0, number: int | None = None
    ) -> None:
        """Run EM over all components, or the first ones, after `fixed` rounds of E steps alone."""
        blocks = self.blocks(number)
        rounds = [(1, 0)] * fixed + [(0, 1)] * times
        if len(self.pairs.message) * len(rounds) <= VISITS:
            rounds = [(fixed, times)]
        for still, moving in rounds:
            for block in blocks:
                self._advance(block, still, moving)
                tick()

    def survey(
        self, tick: Callable[[], None], *, fixed: int = 0, times: int = 0, learn: bool = False,
        drop: bool = False,
    ) -> bool:  # fmt: skip
        """Summarise all components: sums by annotator, nearest components, the log evidence.

        `fixed`, `times`: rounds before the summary, as for `sweep`.
        `learn`: update the annotators' parameters and the scatter.
        `drop`: remove components that fewer than two annotators marked, by weight. Return whether any were
        removed.
        """
        blocks = self.blocks() or [(0, 0)]
        if len(blocks) > 1 or len(self.pairs.message) * (fixed + times) > VISITS:
            self.sweep(times, tick, fixed=fixed)
            fixed = times = 0
        for block in blocks:
            last = block is blocks[-1]
            self._advance(
                block, fixed, times, surveys=True, ends=last, learns=learn and last, drops=drop and last
            )
            tick()
        return drop and bool(self.values[5])

    def prune(self, report: Callable[[float, int], None], dirty: BoolArray | None = None) -> int:
        """Try to remove every component once, or those that are `dirty`, the weakest first.

        `report` receives the gain and the number of components tried.
        """
        from raterscope.algorithms.clicks._crowd_kernels import prune

        order = np.argsort(self.parts.support, kind="stable")
        dirty = self.parts.alive.copy() if dirty is None else dirty & self.parts.alive
        position, removed = 0, 0
        while position < len(order):
            position, dropped, gain = prune(
                order, position, VISITS, NEAR * self.scatter, ADAPTING, self.model.lower_bound, dirty,
                self.stamp, self.marks, self.parts, self.pairs, self.scatters, self.frame, self.values,
            )  # fmt: skip
            removed += dropped
            report(gain, position)
        return removed

    def result(self, trace: Trace) -> Clustering:
        """Return the clustering of the clicks in their own order, after `survey`."""
        alive, cells = self.parts.alive, self.cells
        number = np.where(alive, np.cumsum(alive) - 1, -1)
        covariance = self.parts.covariance[alive].take([0, 1, 1, 2], axis=1).reshape(-1, 2, 2)
        support = self.parts.support[alive]
        nearest = np.empty(len(cells), dtype=np.int64)
        nearest[cells.order] = np.where(self.nearest >= 0, number[self.nearest], -1) if len(number) else -1
        inlier = np.empty(len(cells))
        inlier[cells.order] = self.total / (1 + self.total)
        inliers = np.bincount(cells.annotator, weights=inlier[cells.order], minlength=len(cells.rank))
        with np.errstate(invalid="ignore"):
            reliability = (inliers / self.counts.clicks)[cells.rank]
        return Clustering(
            self.parts.mean[alive] + cells.centre, covariance, support / max(float(support.sum()), 1e-300),
            inlier, nearest, reliability, self.scatter, trace,
        )  # fmt: skip


def fit_crowd(
    cells: Cells, annotators: int, area: float, model: CrowdModel, watch: Watch
) -> tuple[Clustering, Crowd]:
    """Fit the crowd model: start components wherever clicks agree, and remove those without evidence.

    Each round runs EM over all components with the annotators' parameters fixed, tries to remove each
    component, and updates the annotators' parameters. The rounds end when no component is removed. Within a
    round every removal raises the evidence.

    `annotators`: R. `area`: area of the image.
    """
    crowd = Crowd(cells, annotators, area, model)
    done, text = 0.0, "choosing initial clusters"

    def tick() -> None:
        watch(done, text)

    crowd.seed(tick)
    initial = max(len(crowd), 1)
    objective: list[float] = []
    components: list[int] = []
    removed: list[bool] = []

    def note(value: float, *, forced: bool = False) -> None:
        objective.append(value)
        components.append(len(crowd))
        removed.append(forced)

    crowd.gather(tick)
    crowd.set_rules()
    text = f"fitting {len(crowd)} components"
    crowd.survey(tick, fixed=2, times=5, learn=True)
    converged, value = False, -math.inf
    for iteration in range(model.max_rounds):
        text = f"fitting {len(crowd)} components"
        crowd.gather(tick)
        crowd.survey(tick, fixed=2, times=3)
        value = crowd.evidence
        note(value)
        start, width = done, (0.9 - done) * (0.6 if iteration == 0 else 0.4)

        def report(gain: float, position: int, start: float = start, width: float = width) -> None:
            nonlocal done, value
            done = start + width * position / initial
            value += gain
            if gain:
                note(value, forced=True)
            watch(
                done, f"removing the weakest of {len(crowd)} components", objective=value,
                partial=lambda: crowd.result(Trace.none()),
            )  # fmt: skip

        lost = crowd.prune(report)
        done = max(done, start + width)
        lonely = crowd.survey(tick, times=2, learn=True, drop=True)
        converged = lost == 0 and not lonely and iteration > 1
        if converged:
            break
    text = f"fitting {len(crowd)} components"
    settled = False
    while not settled:
        crowd.gather(tick)
        settled = not crowd.survey(tick, fixed=2, times=6, drop=True)
    note(crowd.evidence)
    trace = Trace(
        np.array(objective), np.array(components, dtype=np.int64), np.array(removed, dtype=bool),
        len(objective) - 1, converged,
    )  # fmt: skip
    return crowd.result(trace), crowd
