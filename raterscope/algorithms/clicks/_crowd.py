"""The crowd model of one image: components, annotators and who marked what."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raterscope.algorithms.clicks._grid import Cells
from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray
from raterscope.algorithms.clicks.results import Clustering, Trace

if TYPE_CHECKING:
    from raterscope.algorithms.clicks._crowd_kernels import Hands, Pairs, Parts, Rules

__all__ = ["NEAR", "Crowd", "CrowdModel"]

SPACING = 2.0
"""Components begin at clicks so many scatters apart: closer objects are hardly told apart."""

STRENGTH = 10.0
"""Pseudo-clicks with which a component's covariance holds to the common scatter."""

GATE = 25.0
"""Squared Mahalanobis distance beyond which a component is not seen: exp(-12.5) of its height."""

REACH = 6.0
"""Clicks so many scatters from a component are listed, those of annotators with a wide scatter too."""

NEAR = 4.0
"""Components so many scatters from a removed one adapt to the loss."""

ADAPTING = 3
"""Rounds of EM in which they do."""

BLOCK = 1000
"""Components whose clicks are listed between two calls of the watch."""

VISITS = 400_000
"""Clicks of components visited between two calls of the watch: some 30 ms of work."""


@dataclass(frozen=True)
class CrowdModel:
    """How the crowd is modelled.

    Attributes
    ----------
    scatter : float
        Click scatter to begin with, pixels.
    learn_scatter : bool
        Whether it is refined.
    resolution : float
        Scatter never falls beneath it.
    once : bool
        Whether an annotator marks an object at most once.
    own_hands : bool
        Whether every annotator has an offset and a scatter of his own.
    floor : float
        Smallest eigenvalue of a covariance, as a share of the squared scatter.
    reliability : float
        Share of clicks that are no outliers to begin with.
    most : int
        Components to begin with at most.
    lower_bound, max_rounds : int
    """

    scatter: float
    learn_scatter: bool
    resolution: float
    once: bool
    own_hands: bool
    floor: float
    reliability: float | FloatArray
    most: int
    lower_bound: int
    max_rounds: int


class Crowd:
    """The crowd model of one image: components, annotators and who marked what, as far as is known."""

    def __init__(self, cells: Cells, annotators: int, area: float, model: CrowdModel) -> None:
        from raterscope.algorithms.clicks._crowd_kernels import Parts
        from raterscope.algorithms.clicks._near_kernels import Marks

        self.cells, self.model, self.uniform = cells, model, 1 / area
        self.marks = Marks(cells.x, cells.y, cells.annotator, cells.start, cells.grid)
        self.scatter = model.scatter
        self.worth = cells.worth
        self.number = float(self.worth.sum())
        self.clicks_of = np.bincount(cells.annotator, minlength=annotators).astype(np.float64)
        self.active = float(self.worth[self.clicks_of > 0].sum()) or 1.0
        self.outliers = np.maximum((1 - model.reliability) * self.clicks_of, 0.5)
        self.offset, self.precision = np.zeros((annotators, 2)), np.ones(annotators)
        self.ability = np.ones(annotators)
        self.workspace = np.zeros(annotators)
        self.total = np.zeros(len(cells))
        self.stamp = np.zeros(len(cells) + 1, dtype=np.int64)
        self.click = np.empty(16 * len(cells), dtype=np.int32)
        self.nearest, self.strongest = np.full(len(cells), -1, dtype=np.int64), np.zeros(len(cells))
        self.seen = np.zeros((annotators, 3))
        self.evidence = -math.inf
        self.parts = Parts(
            np.empty((0, 2)), np.empty((0, 3)), np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_)
        )

    def __len__(self) -> int:
        return int(self.parts.alive.sum())

    def seed(self, tick: Callable[[], None]) -> None:
        """Begin with a component where clicks of several annotators are, the most crowded places first."""
        chosen, count = self.crowded(np.arange(len(self.cells)), tick)
        clicks = float((self.worth * self.clicks_of).sum())
        weight = None if self.model.once else count / count.sum() * clicks / self.number
        self.parts = self.begun(chosen, weight)

    def crowded(self, rows: IntArray, tick: Callable[[], None]) -> tuple[IntArray, FloatArray]:
        """Choose, of some clicks, those where clicks of several annotators are; say how crowded they are."""
        from raterscope.algorithms.clicks._near_kernels import choose, crowding

        count = np.zeros(len(self.cells))
        for begin in range(0, len(rows), 50_000):
            some = rows[begin : begin + 50_000]
            crowding(self.marks, self.cells.weights, SPACING * self.scatter, self.model.once, some, count)
            tick()
        order = np.argsort(-self.worth[self.cells.annotator] * count, kind="stable")
        order = order[count[order] > 0]
        tick()
        chosen = choose(self.marks, order, SPACING * self.scatter, self.model.most)
        tick()
        return chosen, count[chosen]

    def begun(self, clicks: IntArray, weight: FloatArray | None) -> Parts:
        """Begin a component at each of some clicks; where objects are marked once, all weigh the same."""
        from raterscope.algorithms.clicks._crowd_kernels import Parts

        number = len(clicks)
        return Parts(
            np.column_stack([self.cells.x[clicks], self.cells.y[clicks]]),
            np.tile([self.scatter**2, 0.0, self.scatter**2], (number, 1)),
            np.full(number, 0.3) if weight is None else weight,
            np.ones(number),
            np.ones(number, dtype=np.bool_),
        )

    def near(self, places: FloatArray, reach: float) -> IntArray:
        """Find the clicks within reach of some places."""
        from raterscope.algorithms.clicks._near_kernels import gather

        all_of_them = np.ones(len(places), dtype=np.bool_)
        first, last, clicks = np.empty(len(places), np.int64), np.empty(len(places), np.int64), self.click
        for _ in range(2):
            found = gather(0, len(places), 0, self.marks, places, all_of_them, reach, first, last, clicks)
            if found <= len(clicks):
                break
            clicks = np.empty(found, dtype=np.int32)
        return np.unique(clicks[:found]).astype(np.int64)

    def compact(self) -> None:
        """Forget the components that were removed."""
        alive = self.parts.alive
        if not alive.all():
            self.parts = type(self.parts)(*(values[alive] for values in self.parts))

    def gather(self, tick: Callable[[], None]) -> None:
        """List the clicks near each component."""
        from raterscope.algorithms.clicks._crowd_kernels import Pairs
        from raterscope.algorithms.clicks._near_kernels import gather

        self.compact()
        first, last = (np.empty(len(self), dtype=np.int64) for _ in range(2))
        pairs, components = 0, len(first)
        for begin in range(0, components, BLOCK):
            end = min(begin + BLOCK, components)
            for _ in range(2):
                found = gather(
                    begin, end, pairs, self.marks, self.parts.mean, self.parts.alive, REACH * self.scatter,
                    first, last, self.click,
                )  # fmt: skip
                if found <= len(self.click):
                    break
                longer = np.empty(int(found * max(1.1, components / end)), dtype=np.int32)
                longer[:pairs] = self.click[:pairs]
                self.click = longer
            pairs = found
            tick()
        self.total[:] = 0
        self.pairs: Pairs = Pairs(first, last, self.click, np.zeros(pairs), self.total)

    def set_rules(self) -> None:
        """Fix for a while what the components take from the annotators and from each other."""
        from raterscope.algorithms.clicks._crowd_kernels import Hands, Rules

        rate = np.log(self.ability * self.precision / (self.outliers * self.uniform * 2 * math.pi))
        values, _, counts = _shared(self.ability, self.worth)
        ability = np.column_stack([values, counts])
        self.hands: Hands = Hands(
            self.offset, self.precision, rate, ability, self.cells.weights, self.workspace
        )
        variance = self.scatter**2
        support = self.parts.support[self.parts.alive]
        self.rules: Rules = Rules(
            self.model.once, variance, STRENGTH, self.model.floor * variance, GATE,
            math.log(max(len(support), 1) * self.uniform), max(float(support.mean()), 1.0) if len(support)
            else 1.0,
        )  # fmt: skip

    def blocks(self, number: int | None = None) -> Iterator[tuple[int, int]]:
        """Divide the components, or the first so many, into blocks of so many pairs as take some 30 ms."""
        last = self.pairs.last[:number]
        if not len(last) or last[-1] <= VISITS:
            yield from [(0, len(last))][: len(last)]
            return
        edges = np.searchsorted(last, np.arange(VISITS, last[-1], VISITS))
        steps = np.unique(np.concatenate([[0], edges, [len(last)]]))
        yield from zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True)

    def sweep(
        self, times: int, tick: Callable[[], None], *, renew: bool = True, number: int | None = None
    ) -> None:
        """Let EM run over all components, or the first so many; without `renew` only its E step."""
        from raterscope.algorithms.clicks._crowd_kernels import sweep

        for _ in range(times):
            for begin, end in self.blocks(number):
                sweep(begin, end, renew, self.marks, self.parts, self.pairs, self.hands, self.rules)
                tick()

    def survey(self, tick: Callable[[], None]) -> None:
        """Look over all components: sums by annotator, nearest components, the log evidence."""
        from raterscope.algorithms.clicks._crowd_kernels import survey

        self.seen[:] = 0
        self.nearest[:], self.strongest[:] = -1, 0
        value = 0.0
        for begin, end in self.blocks():
            value += survey(
                begin, end, self.marks, self.parts, self.pairs, self.hands, self.rules, self.seen,
                self.nearest, self.strongest,
            )  # fmt: skip
            tick()
        worth, outliers = self.worth, np.log(self.outliers * self.uniform)
        heard = np.log1p(self.total)
        if len(self.cells.weights):
            heard *= worth[self.cells.annotator]
        self.evidence = float(
            value + heard.sum() + (worth * self.clicks_of) @ outliers - (worth * self.outliers).sum()
        )
        tick()
        shares = self.total / (1 + self.total)
        self.inliers: FloatArray = np.bincount(
            self.cells.annotator, weights=shares, minlength=len(self.ability)
        ).astype(np.float64)

    def learn(self) -> None:
        """Renew what is known of the annotators, after `survey`."""
        inliers, worth = self.inliers, self.worth
        usual = max(float((worth * (self.clicks_of - inliers)).sum()) / self.active, 0.2)
        self.outliers = (self.clicks_of - inliers + 1) / (1 + 1 / usual)
        values, place, _ = _shared(self.ability, worth)
        weight = self.parts.weight[self.parts.alive]
        if self.model.once:
            chances = (weight / (1 + np.multiply.outer(values, weight))).sum(axis=1)[place]
        else:
            chances = np.full(len(self.ability), weight.sum())
        self.ability = (inliers + 1) / (chances + 1)
        marks = float((worth * inliers).sum())
        if self.model.own_hands and marks > 1:
            self._learn_hands(inliers)
        if self.model.learn_scatter and marks > len(weight) + 1:
            spread = float((worth * self.seen[:, 2] * self.precision).sum()) / (2 * (marks - len(weight)))
            self.scatter = max(self.scatter * math.sqrt(min(max(spread, 0.5), 2.0)), self.model.resolution)

    def _learn_hands(self, inliers: FloatArray) -> None:
        """Shrink offsets and scatters to the crowd's as far as they differ by no more than chance."""
        known, counted = inliers > 2, self.worth * inliers
        if self.worth[known].sum() < 4:
            return
        count, seen, variance = inliers[known], self.seen[known], self.scatter**2
        share = counted[known] / counted[known].sum()
        chance = variance / (self.precision[known] * count)
        beyond = float(share @ ((seen[:, 0] ** 2 + seen[:, 1] ** 2) / (2 * count**2) - chance))
        weight = inliers * self.precision
        pull = variance / max(beyond, 1e-6 * variance)
        offset = self.seen[:, :2] * (self.precision / (weight + pull))[:, None]
        self.offset = offset - counted @ offset / counted.sum()
        scale = np.log(np.maximum(seen[:, 2], 1e-9) / (2 * count))
        beyond = float(share @ ((scale - share @ scale) ** 2 - 1 / count))
        prior = min(max(2 / max(beyond, 1e-3), 4.0), 1000.0)
        square = (prior + self.seen[:, 2]) / (prior + 2 * inliers)
        square /= math.exp(float(counted @ np.log(square)) / float(counted.sum()))
        self.precision = 1 / np.clip(square, 0.1, 10.0)

    def drop_lonely(self) -> bool:
        """Remove, after `survey`, the components that fewer than two annotators marked.

        Where some count as part of one, that is who count less than `SEVERAL`.
        """
        from raterscope.algorithms.clicks._near_kernels import SEVERAL

        rows = np.flatnonzero((self.total > 1) & (self.nearest >= 0))
        number, annotators = len(self.parts.weight), len(self.ability)
        if len(self.cells.weights):
            who = np.unique(self.nearest[rows] * annotators + self.cells.annotator[rows])
            marked = np.bincount(who // annotators, self.worth[who % annotators], minlength=number)
            lonely = self.parts.alive & (marked < SEVERAL)
        else:
            lowest, highest = np.full(number, annotators), np.full(number, -1)
            np.minimum.at(lowest, self.nearest[rows], self.cells.annotator[rows])
            np.maximum.at(highest, self.nearest[rows], self.cells.annotator[rows])
            lonely = self.parts.alive & (lowest >= highest)
        self.parts.alive[lonely] = False
        return bool(lonely.any())

    def prune(self, tell: Callable[[float, int], None], dirty: BoolArray | None = None) -> int:
        """Try every component once, or those that are `dirty`, the weakest first.

        `tell` hears of the gain and how many were tried.
        """
        from raterscope.algorithms.clicks._crowd_kernels import prune

        order = np.argsort(self.parts.support, kind="stable")
        dirty = self.parts.alive.copy() if dirty is None else dirty & self.parts.alive
        position, removed = 0, 0
        while position < len(order):
            position, found, gain = prune(
                order, position, VISITS, NEAR * self.scatter, ADAPTING, self.model.lower_bound, dirty,
                self.stamp, self.marks, self.parts, self.pairs, self.hands, self.rules,
            )  # fmt: skip
            removed += found
            tell(gain, position)
        return removed

    def result(self, trace: Trace) -> Clustering:
        """Describe what is known as the clustering of the clicks in their own order, after `survey`."""
        alive, cells = self.parts.alive, self.cells
        number = np.where(alive, np.cumsum(alive) - 1, -1)
        xx, xy, yy = self.parts.covariance[alive].T
        covariance = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2)
        support = self.parts.support[alive]
        nearest = np.empty(len(cells), dtype=np.int64)
        nearest[cells.order] = np.where(self.nearest >= 0, number[self.nearest], -1) if len(number) else -1
        inlier = np.empty(len(cells))
        inlier[cells.order] = self.total / (1 + self.total)
        inliers = np.bincount(cells.annotator, weights=inlier[cells.order], minlength=len(self.ability))
        with np.errstate(invalid="ignore"):
            reliability = (inliers / self.clicks_of)[cells.rank]
        return Clustering(
            self.parts.mean[alive] + cells.centre, covariance, support / max(float(support.sum()), 1e-300),
            inlier, nearest, reliability, self.scatter, trace,
        )  # fmt: skip


def _shared(ability: FloatArray, worth: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Let many annotators share few abilities: the sums over them cost by the number of different ones.

    Give those, which of them each annotator has, and how many have each, by how much they count.
    """
    if len(ability) <= 64:
        return ability, np.arange(len(ability)), worth
    rounded = np.exp(np.rint(8 * np.log(ability)) / 8)
    values, place = np.unique(rounded, return_inverse=True)
    return values, place, np.bincount(place, worth).astype(np.float64)
