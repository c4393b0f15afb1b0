"""Simulated crowds that compare pairs: the study of [xu2016]_, section 3.1, and demonstrations.

References
----------
.. [xu2016] Q. Xu, J. Xiong, X. Cao and Y. Yao, "False discovery rate control and statistical quality
   assessment of annotators in crowdsourced ranking", Proceedings of the 33rd International Conference on
   Machine Learning, PMLR 48 (2016), doi:10.48550/arXiv.1605.05860.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from raterscope.algorithms.pairs.data import BoolArray, FloatArray, IndexArray, Pairs
from raterscope.algorithms.simulation.smears import STAGES, draw_cell

WAYS = ("careful", "always one side", "mostly one side", "one side in doubt", "tires")
"""Ways of answering: carefully; one side blindly; one side occasionally; one side if the items are similar;
carefully at first, then with more and more clicks on one side.
"""

_STUDY = 20160048
_DAY = 86400.0
_SLIP = 0.02
_IN_DOUBT = 0.9
_TIRES_AT, _TIRED = 0.3, 0.85
"""Share of the comparisons after which tiring begins, and rate of clicks on the side at the end."""


@dataclass(frozen=True)
class PairCrowd:
    """Parameters of a simulated crowd."""

    items: int = 40
    annotators: int = 120
    # fewest, most: number of comparisons of an annotator: a Pareto distribution between the two
    fewest: int = 20
    most: int = 400
    tail: float = 1.2  # its exponent: the smaller, the more annotators have many comparisons
    # 5 numbers: shares of the crowd with each of `WAYS`, not normalised
    shares: tuple[float, float, float, float, float] = (0.70, 0.06, 0.10, 0.08, 0.06)
    leftwards: float = 0.7  # share of annotators with a side who prefer the left one
    # scale of logistic noise, times a factor for each annotator from 0.7 to 1.4. The noise is added to the
    # difference of the scores, which are normal with standard deviation 1.
    noise: float = 0.5
    ties: float = 0.0  # perceived differences below this are ties
    # chance of a blind click by annotators who mostly click one side; otherwise the answer is careful
    mostly: float = 0.45
    doubt: float = 0.8  # score difference below which annotators who click one side in doubt do so
    groups: int = 1  # groups of items; pairs are within a group except for the `bridges`
    # number of comparisons between each group and the next; with 0, the groups cannot be ranked together
    bridges: int = 3
    weak: int = 0  # items with only three comparisons each
    lopsided: float = 0.0  # preference of items for a side, 0 to 1: each is shown left with its own chance
    prefix: str = "cell"  # prefix of the items' names

    def __post_init__(self) -> None:
        if self.annotators < 1 or self.groups < 1 or self.items - self.weak < 2 * self.groups:
            raise ValueError("expected annotators, and at least two items for every group.")
        if not 1 <= self.fewest <= self.most or min(self.bridges, self.weak) < 0:
            raise ValueError(f"{self.fewest} to {self.most} comparisons per annotator; expected at least 1.")
        if len(self.shares) != len(WAYS) or min(self.shares) < 0 or not sum(self.shares) > 0:
            raise ValueError(f"{len(WAYS)} expected a share of at least 0 for each way of answering.")
        chances = (self.leftwards, self.mostly, self.lopsided)
        if not self.noise > 0 or not all(0 <= chance <= 1 for chance in chances):
            raise ValueError("noise must be above 0, and chances from 0 to 1.")


@dataclass(frozen=True, eq=False)
class SimulatedPairs:
    """Comparisons, and the parameters from which they were drawn."""

    pairs: Pairs
    score: FloatArray  # (n,): the true scores
    way: NDArray[np.int8]  # (p,): index into `WAYS`
    side: NDArray[np.int8]  # (p,): 1 for a preference of left, -1 for right, 0 for careful annotators
    # (p,): index, in order of time, of the annotator's comparison at which tiring begins; -1 for all others
    begins: IndexArray

    @property
    def biased(self) -> BoolArray:
        """True for annotators who prefer a side, (p,)."""
        return np.asarray(self.side != 0)


def study_crowd(
    p1: float, p2: float, run: int = 0, items: int = 16, good: int = 100, biased: int = 50
) -> SimulatedPairs:
    """Draw the paper's simulated study (section 3.1), in which every annotator compares every pair once.

    The items have a random order. A good annotator's answer is wrong with probability p1. Biased annotators
    choose their side, left or right, with probability p2, and otherwise answer as good annotators. The left
    item is drawn for every comparison.

    `run`: number of the draw; the same number gives the same result.
    """
    rng = np.random.default_rng([_STUDY, round(100 * p1), round(100 * p2), run])
    score = rng.permutation(items).astype(np.float64)
    pair = np.array(list(combinations(range(items), 2)), dtype=np.int32)
    annotators = good + biased
    annotator = np.repeat(np.arange(annotators, dtype=np.int32), len(pair))
    both = np.tile(pair, (annotators, 1))
    turned = rng.random(len(both)) < 0.5
    left, right = np.where(turned, both[:, 1], both[:, 0]), np.where(turned, both[:, 0], both[:, 1])
    side = np.zeros(annotators, dtype=np.int8)
    side[good:] = np.where(rng.random(biased) < 0.5, 1, -1)
    choice = np.where(score[left] > score[right], 1.0, -1.0)
    choice = np.where(rng.random(len(choice)) < p1, -choice, choice)
    disturbed = (rng.random(len(choice)) < p2) & (side != 0)[annotator]
    choice = np.where(disturbed, side[annotator], choice)
    pairs = Pairs(annotator, left, right, choice, _numbered("", annotators), _numbered("", items))
    behaviour = np.where(side != 0, WAYS.index("mostly one side"), 0).astype(np.int8)
    return SimulatedPairs(pairs, score, behaviour, side, np.full(annotators, -1, dtype=np.int32))


def simulate_pairs(plan: PairCrowd, seed: int = 0) -> SimulatedPairs:
    """Draw a crowd and its comparisons, in the order of time; the same plan and seed give the same bits."""
    rng = np.random.default_rng([seed, 11])
    annotators = plan.annotators
    score = ndtri((rng.permutation(plan.items) + 0.5) / plan.items)
    edges = np.cumsum(plan.shares) / sum(plan.shares)
    even = (np.arange(annotators) + 0.5) / annotators
    behaviour = rng.permutation(np.minimum(np.searchsorted(edges, even), len(WAYS) - 1)).astype(np.int8)
    side = np.where(behaviour > 0, np.where(rng.random(annotators) < plan.leftwards, 1, -1), 0).astype(
        np.int8
    )
    counts = np.clip(np.rint(plan.fewest * rng.permutation(even) ** (-1 / plan.tail)), 1, plan.most)
    counts = counts.astype(np.int64)
    annotator = np.repeat(np.arange(annotators, dtype=np.int32), counts)
    number = np.arange(len(annotator)) - np.repeat(np.cumsum(counts) - counts, counts)
    left, right = _compared(plan, len(annotator), rng)
    tendency = plan.lopsided * rng.uniform(-1.0, 1.0, plan.items)
    turned = rng.random(len(left)) > 0.5 + (tendency[left] - tendency[right]) / 4
    left, right = np.where(turned, right, left), np.where(turned, left, right)
    begins = np.where(behaviour == WAYS.index("tires"), np.ceil(_TIRES_AT * counts), -1).astype(np.int32)
    progress = np.clip((number - begins[annotator]) / np.maximum(counts - begins, 1)[annotator], 0.0, 1.0)
    own = plan.noise * rng.uniform(0.7, 1.4, annotators)
    gap = score[left] - score[right]
    seen = gap + own[annotator] * rng.logistic(size=len(gap))
    choice = np.where(np.abs(seen) < plan.ties, 0.0, np.sign(seen))
    chance = np.array([0.0, 1 - _SLIP, plan.mostly, 0.0, 0.0])[behaviour[annotator]]
    in_doubt = np.where(np.abs(gap) < plan.doubt, _IN_DOUBT, 0.0)
    chance = np.where(behaviour[annotator] == WAYS.index("one side in doubt"), in_doubt, chance)
    chance = np.where(behaviour[annotator] == WAYS.index("tires"), _TIRED * progress, chance)
    choice = np.where(rng.random(len(chance)) < chance, side[annotator], choice)
    time = _times(counts, annotator, rng)
    order = np.argsort(time, kind="stable")
    numbers = rng.choice(9 * max(annotators, 1000), annotators, replace=False) + 1
    pairs = Pairs(
        annotator[order], left[order], right[order], choice[order], _numbered("v-", annotators, numbers),
        _numbered(f"{plan.prefix}-", plan.items), time[order],
    )  # fmt: skip
    return SimulatedPairs(pairs, score, behaviour, side, begins)


def draw_item(crowd: SimulatedPairs, item: int, size: int = 80) -> NDArray[np.uint8]:
    """Draw a red blood cell for an item: a higher score means an older parasite.

    `size`: pixels along a side, at least 64. The picture has shape (size, size, 3).
    """
    stages = STAGES[:4]
    share = float((np.count_nonzero(crowd.score < crowd.score[item]) + 0.5) / len(crowd.score)) * len(stages)
    stage = min(int(share), len(stages) - 1)
    within = share - stage
    # Within a stage, later parasites are clearer; cells without a parasite look more and more like infected
    # ones.
    return draw_cell(item, stages[stage], 0.5 * within if stage == 0 else 0.8 * (1 - within), size)


def _compared(plan: PairCrowd, count: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Draw the compared items: within groups except for the bridges, the weak items last."""
    strong = plan.items - plan.weak
    group = np.arange(strong) * plan.groups // strong
    first = np.searchsorted(group, np.arange(plan.groups))
    size = np.bincount(group)
    left = rng.integers(strong, size=count)
    own_group = group[left]
    step = 1 + np.floor(rng.random(count) * (size[own_group] - 1)).astype(np.int64)
    right = first[own_group] + (left - first[own_group] + step) % size[own_group]
    special: list[tuple[int, int]] = []
    for at in range(plan.groups - 1):
        ends = [first[g] + rng.integers(size[g], size=plan.bridges) for g in (at, at + 1)]
        special += zip(*(end.tolist() for end in ends), strict=True)
    for item in range(strong, plan.items):
        special += [(item, int(other)) for other in rng.choice(strong, min(3, strong), replace=False)]
    where = rng.choice(count, min(len(special), count), replace=False)
    for at, (winner, other) in zip(where.tolist(), special, strict=False):
        left[at], right[at] = winner, other
    return left.astype(np.int32), right.astype(np.int32)


def _times(counts: NDArray[np.int64], annotator: IndexArray, rng: np.random.Generator) -> FloatArray:
    """Draw times: every annotator works once, on one of 30 days, with some seconds for each comparison."""
    begin = rng.uniform(0.0, 30 * _DAY, len(counts))
    durations = np.cumsum(rng.gamma(2.0, 3.0, len(annotator)))
    before = np.concatenate([[0.0], durations])[np.cumsum(counts) - counts]
    return np.asarray(np.round(begin[annotator] + durations - before[annotator], 3))


def _numbered(prefix: str, count: int, numbers: NDArray[np.integer] | None = None) -> tuple[str, ...]:
    result = np.arange(count) + 1 if numbers is None else numbers
    width = len(str(int(result.max()))) if prefix else 0
    return tuple(f"{prefix}{number:0{width}d}" for number in result.tolist())
