"""Simulated crowds that label tasks, with communities, annotators who change, and cohorts of tasks.

Votes are drawn from the model of the dynamic combination paper [simpson2013]_: each annotator has a confusion
matrix that may change from one vote to the next. There are two additions. Hard tasks show their class less
clearly: see `CrowdPlan.hard`. Annotators do not choose uniformly among all tasks: see `CrowdPlan.loyalty`.

References
----------
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import FloatArray, Labels

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Behaviour:
    """Behaviour of a part of the crowd."""

    name: str
    rows: Rows  # J rows of L numbers: the probability of every output for each class
    share: float = 1.0  # share of the crowd, in proportion to the other behaviours' shares


@dataclass(frozen=True)
class CrowdPlan:
    """Parameters of a simulated crowd."""

    # classes, outputs: tuple of J and L names
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    meaning: tuple[int, ...]  # tuple of L numbers: class of each output
    shares: tuple[float, ...]  # tuple of J numbers: the probability of each class
    behaviours: tuple[Behaviour, ...]
    tasks: int = 3200
    annotators: int = 500
    # fewest, most: number of votes of an annotator: a Pareto distribution between the two, truncated at the
    # number of tasks
    fewest: int = 15
    most: int = 3000
    tail: float = 1.0  # its exponent: the smaller, the more annotators have many votes
    # pseudo-counts of the Dirichlet distribution of annotators' confusion rows around their behaviour's
    spread: float = 100.0
    # share of annotators who change, among those with at least `settled` votes; see `label_crowds.CHANGES`
    changing: float = 0.6
    settled: int = 150
    # share of hard tasks: with probability d, a vote on a task of difficulty d is drawn from the mean of the
    # annotator's rows, weighted by the classes' shares, instead of the true class's row. The difficulties of
    # hard tasks are uniform from 0.2 to 0.9.
    hard: float = 0.1
    cohorts: int = 6  # consecutive groups of tasks. An annotator begins with one of them.
    # share of an annotator's votes on tasks of the own cohort, as long as there are any
    loyalty: float = 0.85
    prefix: str = "cell"  # prefix of the tasks' names

    def __post_init__(self) -> None:
        shape = (len(self.classes), len(self.outputs))
        if len(self.shares) != shape[0] or len(self.meaning) != shape[1]:
            raise ValueError("expected a share for every class, and a meaning for every output.")
        for behaviour in self.behaviours:
            rows = np.array(behaviour.rows, dtype=np.float64)
            if rows.shape != shape or not (rows > 0).all() or not np.allclose(rows.sum(axis=1), 1.0):
                raise ValueError(f"{behaviour.name} has no {shape} probabilities above 0 that add up to 1.")
        if not self.behaviours or self.tasks < self.cohorts or self.cohorts < 1 or self.annotators < 1:
            raise ValueError("expected behaviours, annotators, and at least one task for every cohort.")
        if not 1 <= self.fewest <= self.most:
            raise ValueError(f"{self.fewest} to {self.most} votes per annotator; expected at least 1.")


def scoring_crowd(tasks: int = 3200, annotators: int = 500, **changes: Any) -> CrowdPlan:
    """Plan a crowd that answers -1, 1 or 3 for two classes, with the five behaviours of the paper's figure 3.

    `**changes`: other fields of `CrowdPlan`.
    """
    behaviours = (
        Behaviour("reasonable", ((0.80, 0.15, 0.05), (0.20, 0.40, 0.40)), 0.24),
        Behaviour("extremists", ((0.90, 0.03, 0.07), (0.12, 0.05, 0.83)), 0.23),
        Behaviour("always no", ((0.97, 0.02, 0.01), (0.90, 0.06, 0.04)), 0.18),
        Behaviour("optimists", ((0.10, 0.60, 0.30), (0.05, 0.40, 0.55)), 0.16),
        Behaviour("non-committal", ((0.60, 0.35, 0.05), (0.25, 0.65, 0.10)), 0.19),
    )
    plan = CrowdPlan(
        classes=("no parasite", "parasite"),
        outputs=("-1", "1", "3"),
        meaning=(0, 1, 1),
        shares=(0.75, 0.25),
        behaviours=behaviours,
        tasks=tasks,
        annotators=annotators,
    )
    return replace(plan, **changes)


def staging_crowd(tasks: int = 3200, annotators: int = 500, **changes: Any) -> CrowdPlan:
    """Plan a crowd that names the stage of a malaria parasite in a red blood cell; see `scoring_crowd`."""
    stages = ("uninfected", "ring", "trophozoite", "schizont", "gametocyte")
    behaviours = (
        Behaviour("careful", _diagonal((0.95, 0.88, 0.86, 0.88, 0.92)), 0.34),
        Behaviour(
            "blind to rings", _diagonal((0.96, 0.25, 0.80, 0.84, 0.88), {(1, 0): 0.70, (2, 0): 0.14}), 0.20
        ),
        Behaviour(
            "mix the stages",
            _diagonal(
                (0.92, 0.62, 0.38, 0.42, 0.72), {(1, 2): 0.30, (2, 3): 0.42, (3, 2): 0.46, (4, 3): 0.2}
            ),
            0.20,
        ),
        Behaviour(
            "alarmed",
            _diagonal((0.42, 0.92, 0.66, 0.60, 0.60), {(0, 1): 0.50, (2, 1): 0.28, (3, 1): 0.3, (4, 1): 0.3}),
            0.14,
        ),
        Behaviour(
            "always uninfected",
            _diagonal((0.96, 0.08, 0.10, 0.10, 0.12), dict.fromkeys([(1, 0), (2, 0), (3, 0), (4, 0)], 0.8)),
            0.12,
        ),
    )
    plan = CrowdPlan(
        classes=stages,
        outputs=stages,
        meaning=tuple(range(len(stages))),
        shares=(0.52, 0.22, 0.14, 0.06, 0.06),
        behaviours=behaviours,
        tasks=tasks,
        annotators=annotators,
    )
    return replace(plan, **changes)


def _diagonal(right: tuple[float, ...], wrong: dict[tuple[int, int], float] | None = None) -> Rows:
    """Make confusion rows with given rates of correct and wrong answers, and the rest divided equally."""
    rows = np.full((len(right), len(right)), np.nan)
    np.fill_diagonal(rows, right)
    for output, chance in (wrong or {}).items():
        rows[output] = chance
    for row in rows:
        remaining = np.isnan(row)
        row[remaining] = (1 - np.nansum(row)) / max(remaining.sum(), 1)
    return tuple(tuple(float(chance) for chance in row) for row in rows)


SingleArray = NDArray[np.float32]

CHANGES = ("steady", "learns", "tires", "jumps")
"""Changes of annotators: learn their behaviour; tire, down to a single answer; jump to another behaviour."""

_BLOCK = 1 << 18
_DAY = 86400.0
_TIRES_AT, _LEARNT_AT = 0.35, 0.6
"""Shares of an annotator's votes after which tiring begins, and learning ends."""


@dataclass(frozen=True, eq=False)
class SimulatedLabels:
    """Votes, and the parameters from which they were drawn."""

    labels: Labels  # in the order of time
    truth: NDArray[np.int16]  # (N,)
    difficulty: SingleArray  # (N,): 0 if a vote is drawn from the true class's row
    cohort_of_task: NDArray[np.int16]  # (N,)
    cohort: NDArray[np.int16]  # (K,)
    behaviours: tuple[str, ...]
    # (K,): index into `behaviours`: the final behaviour of annotators who learn, the first of annotators who
    # tire or jump
    community: NDArray[np.int16]
    change: NDArray[np.int8]  # (K,): index into `CHANGES`
    # (K,): index of the annotator's vote at which the change begins; -1 for constant annotators
    moment: NDArray[np.int32]
    # early, late: (K, J, L): confusion rows before and after the change; equal for constant annotators
    early: SingleArray
    late: SingleArray
    # (V,): progress of the change of each vote's annotator: 0 for `early`, 1 for `late`
    progress: SingleArray

    @property
    def changed(self) -> NDArray[np.bool_]:
        """True for annotators who change, (K,)."""
        return self.change > 0

    def confusion(self) -> SingleArray:
        """Return the true confusion matrix of each vote, (n, J, L), on a task that is not hard.

        All of them together take 4 J L bytes for each vote.
        """
        annotators, share = self.labels.annotator, self.progress[:, None, None]
        return np.asarray(self.early[annotators] * (1 - share) + self.late[annotators] * share)


def simulate_labels(plan: CrowdPlan, seed: int = 0) -> SimulatedLabels:
    """Draw a crowd and its votes; the same plan and seed give the same bits.

    No annotator votes twice on a task.
    """
    rng = np.random.default_rng([seed, 4])
    shares = np.array(plan.shares) / sum(plan.shares)
    truth = rng.choice(len(shares), size=plan.tasks, p=shares).astype(np.int16)
    hard = rng.random(plan.tasks) < plan.hard
    difficulty = np.where(hard, rng.uniform(0.2, 0.9, plan.tasks), 0.0).astype(np.float32)
    cohort_of_task = (np.arange(plan.tasks) * plan.cohorts // plan.tasks).astype(np.int16)

    parts = np.array([behaviour.share for behaviour in plan.behaviours])
    community = rng.permutation(_apportioned(parts, plan.annotators)).astype(np.int16)
    cohort = rng.integers(plan.cohorts, size=plan.annotators).astype(np.int16)
    counts = rng.permutation(_counts(plan))
    change = _changes(plan, counts, rng)
    early, late = _confusions(plan, community, change, rng)
    jumps_at = rng.uniform(0.35, 0.65, plan.annotators)
    begins = np.stack(
        [np.full(plan.annotators, -1.0), np.zeros(plan.annotators), _TIRES_AT * counts, jumps_at * counts]
    )
    moment = np.ceil(begins[change, np.arange(plan.annotators)]).astype(np.int32)

    annotator = np.repeat(np.arange(plan.annotators, dtype=np.int32), counts)
    number = np.arange(len(annotator)) - np.repeat(np.cumsum(counts) - counts, counts)
    task = _tasks(plan, cohort, counts, annotator, number, rng)
    progress = _progress(change, moment, counts, annotator, number)
    time = _times(plan, cohort, counts, annotator, rng)
    order = np.argsort(time, kind="stable")
    annotator, task, progress, time = annotator[order], task[order], progress[order], time[order]
    label = _votes(early, late, annotator, truth[task], progress, difficulty[task], shares, rng)
    numbers = rng.choice(9 * max(plan.annotators, 1000), plan.annotators, replace=False) + 1
    labels = Labels(
        task=task, annotator=annotator, label=label, time=time,
        tasks=_numbered(f"{plan.prefix}-", np.arange(plan.tasks) + 1), annotators=_numbered("v-", numbers),
        outputs=plan.outputs, classes=plan.classes, meaning=np.array(plan.meaning, dtype=np.int16),
    )  # fmt: skip
    return SimulatedLabels(
        labels, truth, difficulty, cohort_of_task, cohort,
        tuple(behaviour.name for behaviour in plan.behaviours),
        community, change, moment, early, late, progress,
    )  # fmt: skip


def _numbered(prefix: str, numbers: NDArray[np.integer]) -> tuple[str, ...]:
    width = len(str(int(numbers.max())))
    return tuple(f"{prefix}{number:0{width}d}" for number in numbers.tolist())


def _apportioned(parts: FloatArray, count: int) -> NDArray[np.int64]:
    """Return `count` indices of parts in proportion to the parts' sizes."""
    edges = np.cumsum(parts) / parts.sum()
    return np.minimum(np.searchsorted(edges, (np.arange(count) + 0.5) / count), len(parts) - 1)


def _counts(plan: CrowdPlan) -> NDArray[np.int64]:
    """Return the numbers of votes: evenly spaced quantiles of a truncated Pareto distribution."""
    survival = (np.arange(plan.annotators) + 0.5) / plan.annotators
    counts = np.rint(plan.fewest * survival ** (-1 / plan.tail))
    return np.asarray(np.clip(counts, 1, min(plan.most, plan.tasks)), dtype=np.int64)


def _changes(plan: CrowdPlan, counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
    """Choose the annotators who change, with one of each kind among those with the most votes."""
    change = np.zeros(plan.annotators, dtype=np.int8)
    able = np.flatnonzero(counts >= plan.settled)
    able = able[np.argsort(-counts[able], kind="stable")]
    count = round(plan.changing * len(able))
    kinds = np.arange(count) % 3 + 1
    chosen = np.concatenate([np.arange(min(3, count)), 3 + rng.permutation(max(len(able) - 3, 0))])[:count]
    change[able[np.sort(chosen)]] = kinds
    return change


def _confusions(
    plan: CrowdPlan, community: NDArray[np.int16], change: NDArray[np.int8], rng: np.random.Generator
) -> tuple[SingleArray, SingleArray]:
    """Draw the rows before and after the change."""
    prototypes = np.array([behaviour.rows for behaviour in plan.behaviours])
    own = _dirichlet(plan.spread * prototypes[community], rng)
    kinds = len(plan.behaviours)
    step = rng.integers(1, kinds, len(community)) if kinds > 1 else np.zeros(len(community), dtype=np.int64)
    other = _dirichlet(plan.spread * prototypes[(community + step) % kinds], rng)
    confused = 0.2 * own + 0.8 / len(plan.outputs)
    usual = own[:, int(np.argmax(plan.shares))].argmax(axis=1)
    idle = 0.15 * own + 0.85 * np.eye(len(plan.outputs))[usual][:, None, :]
    index = change[:, None, None]
    early = np.where(index == CHANGES.index("learns"), confused, own)
    late = np.where(index == CHANGES.index("tires"), idle, own)
    late = np.where(index == CHANGES.index("jumps"), other, late)
    return early.astype(np.float32), late.astype(np.float32)


def _dirichlet(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    drawn = rng.standard_gamma(alpha) + 1e-12
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def _tasks(
    plan: CrowdPlan, cohort: NDArray[np.int16], counts: NDArray[np.int64],
    annotator: NDArray[np.int32], number: NDArray[np.int64], rng: np.random.Generator,
) -> NDArray[np.int32]:  # fmt: skip
    """Choose the tasks: each annotator visits the own cohort, and all other cohorts, with a fixed step.

    A step that is coprime to the length of the walk visits every task once.
    """
    edges = np.searchsorted(np.arange(plan.tasks) * plan.cohorts // plan.tasks, np.arange(plan.cohorts + 1))
    size = np.diff(edges)[cohort]
    away = plan.tasks - size
    home = np.clip(np.rint(plan.loyalty * counts), counts - away, np.minimum(size, counts)).astype(np.int64)
    # Votes in the own cohort are spread evenly: vote n is one if this count increases.
    before = number * home[annotator] // counts[annotator]
    at_home = (number + 1) * home[annotator] // counts[annotator] > before
    position = np.where(at_home, before, number - before)
    walks = [_walk(length, annotator, position, rng) for length in (size, away)]
    first = edges[cohort][annotator]
    outside = walks[1] + np.where(walks[1] >= first, size[annotator], 0)
    chosen = np.where(at_home, first + walks[0], outside)
    # Tasks visited in a row should not have neighbouring names.
    names = np.concatenate([low + rng.permutation(high - low) for low, high in pairwise(edges)])
    return np.asarray(names[chosen], dtype=np.int32)


def _walk(
    length: NDArray[np.int64],
    annotator: NDArray[np.int32],
    position: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the position in each annotator's walk at some steps; 0 for empty walks."""
    length = np.maximum(length, 1)
    stride = np.ones_like(length)
    unfit = length > 2
    while unfit.any():
        stride[unfit] = rng.integers(1, length[unfit])
        unfit &= np.gcd(stride, length) != 1
    start = rng.integers(0, length)
    return np.asarray((start[annotator] + position * stride[annotator]) % length[annotator])


def _progress(
    change: NDArray[np.int8], moment: NDArray[np.int32], counts: NDArray[np.int64],
    annotator: NDArray[np.int32], number: NDArray[np.int64],
) -> SingleArray:  # fmt: skip
    """Return the progress of the annotators' change at each vote."""
    since = number - moment[annotator]
    length = np.select(
        [change == CHANGES.index("learns"), change == CHANGES.index("tires")],
        [_LEARNT_AT * counts, (0.9 - _TIRES_AT) * counts],
        default=1e-9,
    )
    share = np.clip(since / length[annotator], 0.0, 1.0)
    share = share * share * (3 - 2 * share)
    share[(since == 0) & (change[annotator] == CHANGES.index("jumps"))] = 1.0
    share[change[annotator] == 0] = 0.0
    return share.astype(np.float32)


def _times(
    plan: CrowdPlan, cohort: NDArray[np.int16], counts: NDArray[np.int64],
    annotator: NDArray[np.int32], rng: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """Draw the times of votes: seconds within a session, about a day between sessions."""
    gaps = rng.gamma(2.0, 4.0, len(annotator))
    pause = rng.random(len(annotator)) < 1 / 40
    gaps[pause] += rng.exponential(0.8 * _DAY, int(pause.sum()))
    begin = (cohort + rng.beta(1.0, 2.5, plan.annotators)) * 20 * _DAY
    total = np.cumsum(gaps)
    ends = np.cumsum(counts)
    offset = np.concatenate([[0.0], total[ends - 1][:-1]])
    return np.asarray(np.round(begin[annotator] + total - offset[annotator], 1))


def _votes(
    early: SingleArray, late: SingleArray, annotator: NDArray[np.int32], truth: NDArray[np.int16],
    progress: SingleArray, difficulty: SingleArray, shares: FloatArray, rng: np.random.Generator,
) -> NDArray[np.int16]:  # fmt: skip
    """Draw the outputs."""
    label = np.empty(len(annotator), dtype=np.int16)
    blurred = [np.tensordot(rows, shares.astype(np.float32), axes=([1], [0])) for rows in (early, late)]
    for low in range(0, len(annotator), _BLOCK):
        part = slice(low, low + _BLOCK)
        annotators, truths, share = annotator[part], truth[part], progress[part][:, None]
        row = early[annotators, truths] * (1 - share) + late[annotators, truths] * share
        doubt = difficulty[part][:, None]
        row = (
            row * (1 - doubt)
            + (blurred[0][annotators] * (1 - share) + blurred[1][annotators] * share) * doubt
        )
        edges = np.cumsum(row, axis=1)
        drawn = rng.random(len(annotators), dtype=np.float32)[:, None] * edges[:, -1:]
        label[part] = (drawn >= edges[:, :-1]).sum(axis=1)
    return label
