"""Alternating updates of tasks and annotators, accelerated.

Most tasks converge after a few updates of all tasks; a few take hundreds. Two methods accelerate these:

- The tasks that still change are updated separately, with their annotators, until they converge. Each such
  update also raises the objective.
- The logarithms of the rates are extrapolated from three successive updates ([varadhan2008]_). A step that
would lower the objective is rejected. Both begin after plain updates, so that the same local maximum is found
as without them.

References
----------
.. [varadhan2008] R. Varadhan and C. Roland, "Simple and globally convergent methods for accelerating the
   convergence of any EM algorithm", Scandinavian Journal of Statistics 35 (2008) 335-353,
   doi:10.1111/j.1467-9469.2007.00585.x (SQUAREM, its third step length).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.crowd_votes import TaskVotes
from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, LabelTrace
from raterscope.algorithms.progress import Watch

_PARTS = 4
"""Number of parts of a large crowd, independent of the processors, for equal sums on all machines."""

_THREADS = min(_PARTS, os.cpu_count() or 1)

_WORK = 4_000_000
"""Number of votes times classes in a piece, some milliseconds of work."""

_RATE = 30
"""Number of votes times classes that take as long as the update of one rate."""

_PLAIN = 12
"""Number of plain updates before the acceleration."""

_FINER = 0.1
"""Tolerance of accelerated updates, as a share of `tolerance`."""

_FEW_TASKS = 0.1
"""Maximum share of tasks that are updated separately."""

_ROUNDS = 30
"""Maximum number of updates of some tasks between two updates of all."""

_IGNORED = 0.1
"""Change of an annotator's counts, as a share of a task's, that may wait for the next update."""

_LONGEST = 4.0
"""Initial limit of the step length of an extrapolation; it grows while steps succeed."""

_FEW_CLASSES = 6
"""Maximum number of classes for which a pass over a large crowd is compiled separately."""

_LARGE = 4_000_000
"""Minimum number of votes times classes for which this compilation (about a second) saves time."""

Piece = tuple[int, int, int]
"""A part, its first task (or annotator), and the index after its last."""

_T = TypeVar("_T")


class Rule(Protocol):
    """Update of annotators' rates and classes' shares from the tasks.

    Both methods overwrite logarithms and return their contribution to the objective, without the tasks'
    entropy.
    """

    @property
    def accelerated(self) -> bool:
        """Whether updates may be accelerated: the objective must be valid for any logarithms."""

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        """Update annotators `first` to `last` from their counts, (K * L, J).

        `present` (K * L,) is True for outputs that an annotator used; the logarithms of the others are not
        needed. `logs` is (K * L, J).
        """

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        """Update the shares; `total` (J,) is the expected number of tasks of each class."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rule for annotators with weights, which multiply their counts and the logarithms of their rates."""

    rule: Rule
    weights: FloatArray  # (K,)

    @property
    def accelerated(self) -> bool:
        """As for the rule."""
        return self.rule.accelerated

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        """Update annotators from weighted counts."""
        outputs = len(logs) // len(self.weights)
        rows = slice(first * outputs, last * outputs)
        weight = np.repeat(self.weights[first:last], outputs)[:, None]
        factor = np.where(present[rows, None], weight, 1.0)
        logs[rows] /= factor
        value = self.rule.rates(counts[rows] * weight, present[rows], 0, last - first, logs[rows])
        logs[rows] *= factor
        return value

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        """Update the shares by the rule."""
        return self.rule.shares(total, logs)


@dataclass(frozen=True, eq=False)
class Alternated:
    """Result of the iterations."""

    posterior: FloatArray  # (N, J): of tasks with votes or a known class; arbitrary elsewhere
    counts: FloatArray  # (K, J, L): expected numbers of votes
    total: FloatArray  # (J,): expected numbers of tasks
    trace: LabelTrace


def alternate(
    votes: TaskVotes,
    standing: FloatArray,
    share: float,
    rule: Rule,
    iterations: int,
    tolerance: float,
    name: str,
    watch: Watch,
    fusion: Callable[[Alternated], LabelFusion],
    weights: FloatArray | None = None,
) -> Alternated:
    """Update tasks and annotators in turn until no task's probabilities change by `tolerance` or more.

    If updates converge slowly, the remaining distance is many times the last change. Accelerated updates, of
    which few are needed, therefore continue to a tenth of `tolerance`.

    `standing`: (L, J), initial share of a vote that each output gives to each class. `share`: initial
    pseudo-votes for every class of a task. `iterations`: maximum number of iterations.
    `name`: name of the objective.
    `fusion`: makes partial results from copies of the current state.
    `weights`: (K,), weights of the annotators, as `Labels.weights`.
    """
    if weights is not None:
        rule = Weighted(rule, weights)
        standing = np.concatenate([weight * standing for weight in weights.tolist()])
    objective: list[float] = []
    changes: list[float] = []
    done = 0.0

    def words() -> str:
        return f"iteration {len(changes) + 1}"

    def report() -> None:
        watch(done, words(), objective=objective[-1] if objective else None)

    def current(*, converged: bool) -> Alternated:
        trace = LabelTrace(np.array(objective), np.array(changes), converged, name)
        return passes.current(trace)

    def draft() -> LabelFusion:
        now = current(converged=False)
        return fusion(replace(now, posterior=now.posterior.copy(), counts=now.counts.copy()))

    least = tolerance * (_FINER if rule.accelerated else 1.0)
    with ThreadPoolExecutor(_THREADS) as pool:
        passes = _Passes(votes, rule, pool, report)
        passes.begin(standing, share)
        extrapolation = _Extrapolation(passes)
        while len(changes) < iterations and not (changes and changes[-1] < least):
            value, change = extrapolation.update(objective[-1]) if objective else passes.update()
            objective.append(value)
            changes.append(change)
            done = max(done, len(changes) / iterations, 0.95 * nearness(changes, least))
            watch(done, words(), objective=value, partial=draft)
            if rule.accelerated and len(changes) >= _PLAIN and least <= change:
                passes.settle_some(least)
                extrapolation.record()
    watch(1.0, f"{len(changes)} iterations", objective=objective[-1])
    return current(converged=changes[-1] < tolerance)


class _Passes:
    """Passes over tasks and annotators, in pieces for several threads, and their tables.

    `report`: called before every round of pieces; it may raise an exception.
    """

    def __init__(
        self, votes: TaskVotes, rule: Rule, pool: ThreadPoolExecutor, report: Callable[[], None]
    ) -> None:
        from raterscope.algorithms.labels._kernels import sort_by_pair

        self._votes, self._rule, self._pool, self._report = votes, rule, pool, report
        size = (votes.annotators * votes.outputs, votes.classes)
        # Counting by task would add votes to rows all over a large table; counting by pair sums each row
        # once, from the posterior, a smaller table.
        self._begin, self._task = np.zeros(size[0] + 1, dtype=np.int64), np.empty_like(votes.pair)
        sort_by_pair(votes.start, votes.pair, self._begin, self._task)
        self._has_votes = np.diff(self._begin) > 0
        of_annotators = np.arange(votes.annotators + 1) * (_RATE * votes.outputs)
        of_annotators += self._begin[:: votes.outputs]
        self._annotators = _pieces(of_annotators * votes.classes)
        self._tasks = _pieces((votes.start + np.arange(len(votes.start))) * votes.classes)
        self._posterior = np.zeros((len(votes.known), votes.classes))
        self._counts, self._weights, self._logs = np.zeros(size), np.zeros(size), np.zeros(votes.classes)
        self._total = np.zeros((len(self._tasks[0]), votes.classes))
        self._moved = np.zeros(len(votes.known), dtype=np.float32)
        # With hundreds of outputs most are never used by most annotators.
        many = 2 * np.count_nonzero(self._has_votes) > size[0]
        self._counted = slice(None) if many else np.flatnonzero(self._has_votes)
        few = votes.classes <= _FEW_CLASSES and len(votes.pair) * votes.classes >= _LARGE
        self._each_class = (0.0,) * votes.classes if few else self._logs

    def begin(self, standing: FloatArray, share: float) -> None:
        """Initialise tasks from the votes, then annotators from the tasks."""
        from raterscope.algorithms.labels._kernels import begin

        votes = self._votes

        def started(piece: Piece) -> None:
            part, first, last = piece
            begin(
                votes.start, votes.pair, votes.known, standing, share, first, last, self._posterior,
                self._total[part],
            )  # fmt: skip

        self._each(started, self._tasks)
        self._settle()

    def update(self) -> tuple[float, float]:
        """Update the tasks, then the annotators; return the objective and the largest change of a task."""
        from raterscope.algorithms.labels._kernels import expect_tasks, expect_two

        votes, logs = self._votes, self._logs
        expect = expect_two if votes.classes == 2 else expect_tasks

        def updated(piece: Piece) -> tuple[float, float]:
            part, first, last = piece
            spans = [
                expect(
                    votes.start, votes.pair, votes.known, prior, self._weights, low, high, self._posterior,
                    self._total[part], self._moved, self._each_class,
                )
                for low, high, prior in votes.split(first, last, logs)
            ]  # fmt: skip
            return sum(entropy for entropy, _ in spans), max((change for _, change in spans), default=0.0)

        self._total[:] = 0.0
        parts = self._each(updated, self._tasks)
        if votes.sets is not None:
            self._moved[votes.known < OPEN] = 0.0  # `settle_some` does not restrict tasks
        return sum(entropy for entropy, _ in parts) + self._settle(), max(change for _, change in parts)

    def settle_some(self, tolerance: float) -> None:
        """Update the tasks that changed by `tolerance` or more, and their annotators, until they converge."""
        from raterscope.algorithms.labels._kernels import expect_some

        votes = self._votes
        tasks = np.flatnonzero(self._moved >= tolerance)
        if len(tasks) > _FEW_TASKS * len(self._moved):
            return
        has_votes = self._has_votes.reshape(votes.annotators, votes.outputs)
        pending = np.zeros(votes.annotators)
        for _ in range(_ROUNDS):
            kept = expect_some(
                tasks, votes.start, votes.pair, self._logs, self._weights, votes.outputs, tolerance,
                self._posterior, self._counts, self._total[0], pending,
            )  # fmt: skip
            due = pending > _IGNORED * tolerance
            pending[due] = 0.0
            terms = np.concatenate([[0], np.cumsum(due)]) * (_RATE * votes.classes * votes.outputs)
            self._rate((has_votes & due[:, None]).ravel(), _pieces(terms))
            self._rule.shares(self._total[0], self._logs)
            tasks = tasks[:kept]
            if not kept:
                break

    def logarithms(self) -> FloatArray:
        """Return a copy of the logarithms of rates (only of outputs in use) and of shares, as a vector."""
        return np.concatenate([self._weights[self._counted].ravel(), self._logs])

    def replace_logarithms(self, values: FloatArray) -> None:
        """Overwrite the logarithms by a vector as from `logarithms`."""
        shares = len(self._logs)
        self._weights[self._counted] = values[:-shares].reshape(-1, shares)
        self._logs[:] = values[-shares:]

    def current(self, trace: LabelTrace) -> Alternated:
        """Return the current state; the next pass overwrites the posterior and the counts."""
        votes = self._votes
        counts = self._counts.reshape(votes.annotators, votes.outputs, votes.classes)
        return Alternated(self._posterior, counts.transpose(0, 2, 1), self._total[0].copy(), trace)

    def _settle(self) -> float:
        """Count the votes, update rates and shares by the rule; return their part of the objective."""
        self._total[0] = self._total.sum(axis=0)
        rates = self._rate(self._has_votes, self._annotators, count=True)
        return rates + self._rule.shares(self._total[0], self._logs)

    def _rate(self, present: NDArray[np.bool_], pieces: list[list[Piece]], *, count: bool = False) -> float:
        """Count the votes of the annotators with outputs present, then update their rates."""
        from raterscope.algorithms.labels._kernels import count_by_pair

        outputs = self._votes.outputs

        def rated(piece: Piece) -> float:
            _, first, last = piece
            if count:
                count_by_pair(
                    self._begin, self._task, first * outputs, last * outputs, self._posterior, self._counts,
                    self._each_class,
                )  # fmt: skip
            return self._rule.rates(self._counts, present, first, last, self._weights)

        return sum(self._each(rated, pieces))

    def _each(self, run: Callable[[Piece], _T], rounds: list[list[Piece]]) -> list[_T]:
        results: list[_T] = []
        for pieces in rounds:
            self._report()
            results += map(run, pieces) if len(pieces) == 1 else self._pool.map(run, pieces)
        return results


class _Extrapolation:
    """Extrapolation of the logarithms from three successive updates ([varadhan2008]_)."""

    def __init__(self, passes: _Passes) -> None:
        self._passes = passes
        self._states: list[FloatArray] = []
        self._longest = _LONGEST

    def record(self) -> None:
        """Record the logarithms after an update."""
        self._states.append(self._passes.logarithms())

    def update(self, before: float) -> tuple[float, float]:
        """Update as `_Passes.update`, from extrapolated logarithms after three records.

        `before`: current objective. A step that would lower it is undone.
        """
        if len(self._states) < 3:
            return self._passes.update()
        first, second, last = self._states
        self._states = []
        slope, bend = np.subtract(second, first), np.subtract(last, second, out=second)
        bend -= slope
        step = float(np.sqrt((slope @ slope) / max(float(bend @ bend), 1e-300)))
        length = min(step, self._longest)
        if length <= 1.0:
            return self._passes.update()
        if step >= self._longest:
            self._longest *= _LONGEST
        slope *= 2.0 * length
        bend *= length**2
        slope += first
        self._passes.replace_logarithms(np.add(slope, bend, out=slope))
        value, change = self._passes.update()
        if value >= before:
            return value, change
        self._longest = max(_LONGEST, self._longest / _LONGEST**2)
        self._passes.replace_logarithms(last)
        return self._passes.update()


def nearness(changes: list[float], tolerance: float) -> float:
    """Estimate the progress, 0 to 1, assuming that changes decrease geometrically."""
    first, last = max(changes), changes[-1]
    if not 0.0 < tolerance < last < first:
        return 0.0
    return log(first / last) / log(first / tolerance)


def _pieces(terms: NDArray[np.int64]) -> list[list[Piece]]:
    """Divide tasks or annotators, (N,), into parts of about equal work, and these into rounds of pieces.

    A round has one piece of each part. `terms` (N + 1,): cumulative work before each, and in total.
    """
    work = int(terms[-1])
    parts, rounds = _PARTS if work > _WORK // 16 else 1, work // (_PARTS * _WORK) + 1
    bounds = np.searchsorted(terms, np.linspace(0, work, parts * rounds + 1)).tolist()
    bounds[-1] = len(terms) - 1
    pieces = list(pairwise(bounds))
    return [[(part, *pieces[part * rounds + turn]) for part in range(parts)] for turn in range(rounds)]
