"""Static models of annotators: VB-IBCC (sections 2 and 3 of the paper), and Dawid-Skene.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import (
    Confusion,
    FloatArray,
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    PriorSettings,
    TaskVotes,
    class_shares,
    default_prior,
    prior_of,
    sort_by_task,
)
from raterscope.algorithms.labels.result import convergence_notices, make_fusion
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

_PARTS = 4
"""Number of parts of the tasks, independent of the processors, for equal sums on all machines."""

_THREADS = min(_PARTS, os.cpu_count() or 1)

_WORK = 1_000_000
"""Votes times classes of a piece: some 10 ms."""

_FEW_CLASSES = 6
"""Number of classes up to which a pass is compiled for it."""

Piece = tuple[int, int, int]
"""A part, its first task (or annotator), and the one after its last."""

_T = TypeVar("_T")


class Rule(Protocol):
    """Update of annotators' rates and classes' shares from the tasks.

    Both methods overwrite logarithms and return their part of the objective without the tasks' entropy.
    """

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        """Update annotators `first` to `last`, and sum their counts (P, K * L, J) in the first part.

        `present` (K * L,) is True for outputs that an annotator used; the logarithms of the others are not
        needed. `logs` is (K * L, J).
        """

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        """Update the shares; `total` (J,) is the expected number of tasks of each class."""


@dataclass(frozen=True, eq=False)
class Alternated:
    """Result of the iterations.

    Attributes
    ----------
    posterior : (N, J) float64
        Of tasks with votes or a known class; arbitrary elsewhere.
    counts : (K, J, L) float64
        Expected numbers of votes.
    total : (J,) float64
        Expected numbers of tasks.
    trace : LabelTrace
    """

    posterior: FloatArray
    counts: FloatArray
    total: FloatArray
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
) -> Alternated:
    """Update tasks and annotators in turn until no task's probabilities change by `tolerance` or more.

    Parameters
    ----------
    votes : TaskVotes
    standing : (L, J) float64
        Initial share of a vote that each output is for each class.
    share : float
        Initial pseudo-votes for every class of a task.
    rule : Rule
    iterations : int
        At most.
    tolerance : float
    name : str
        Of the objective.
    watch : Watch
    fusion : callable
        Makes partial results from copies of the present state.
    """
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

    with ThreadPoolExecutor(_THREADS) as pool:
        passes = _Passes(votes, rule, pool, report)
        passes.begin(standing, share)
        converged = False
        while not converged and len(changes) < iterations:
            value, change = passes.update()
            objective.append(value)
            changes.append(change)
            converged = change < tolerance
            done = max(done, len(changes) / iterations, _nearness(changes, tolerance))
            watch(done, words(), objective=value, partial=draft)
    watch(1.0, f"{len(changes)} iterations", objective=objective[-1])
    return current(converged=converged)


class _Passes:
    """Passes over tasks and annotators, in pieces for several threads, and their tables.

    Parameters
    ----------
    votes : TaskVotes
    rule : Rule
    pool : ThreadPoolExecutor
    report : callable
        Called before every round of pieces; it may raise.
    """

    def __init__(
        self, votes: TaskVotes, rule: Rule, pool: ThreadPoolExecutor, report: Callable[[], None]
    ) -> None:
        self._votes, self._rule, self._pool, self._report = votes, rule, pool, report
        size = (votes.annotators * votes.outputs, votes.classes)
        # Each part counts into tables of its own: not worth it where those are as large as the votes.
        self._tasks = _pieces(votes, _PARTS if 8 * size[0] * size[1] < len(votes.pair) else 1)
        terms = 100 * votes.classes * votes.outputs  # 100 of an entry
        self._annotators = _evenly(votes.annotators, _WORK // terms + 1)
        self._posterior = np.zeros((len(votes.known), votes.classes))
        self._counts = np.zeros((len(self._tasks[0]), *size))
        self._total = np.zeros((len(self._counts), votes.classes))
        self._heard = np.zeros(size[0], dtype=np.bool_)
        self._heard[votes.pair] = True
        # With hundreds of outputs most are never used by most annotators: what stays 0 is left alone.
        many = 2 * np.count_nonzero(self._heard) > size[0]
        self._counted = slice(None) if many else np.flatnonzero(self._heard)
        self._weights, self._logs = np.zeros(size), np.zeros(votes.classes)

    def begin(self, standing: FloatArray, share: float) -> None:
        """Initialise tasks from the votes, then annotators from the tasks."""
        from raterscope.algorithms.labels._ibcc_kernels import begin

        votes = self._votes

        def started(piece: Piece) -> None:
            part, first, last = piece
            begin(
                votes.start, votes.pair, votes.known, standing, share, first, last, self._posterior,
                self._counts[part], self._total[part],
            )  # fmt: skip

        self._each(started, self._tasks)
        self._settle()

    def update(self) -> tuple[float, float]:
        """Update the tasks, then the annotators; return the objective and the largest change of a task."""
        from raterscope.algorithms.labels._ibcc_kernels import expect_tasks, expect_two

        votes, logs = self._votes, self._logs
        expect = expect_two if votes.classes == 2 else expect_tasks
        each_class = (0.0,) * votes.classes if votes.classes <= _FEW_CLASSES else logs

        def updated(piece: Piece) -> tuple[float, float]:
            part, first, last = piece
            return expect(
                votes.start, votes.pair, votes.known, logs, self._weights, first, last, self._posterior,
                self._counts[part], self._total[part], each_class,
            )  # fmt: skip

        self._counts[:, self._counted], self._total[:] = 0.0, 0.0
        parts = self._each(updated, self._tasks)
        return sum(entropy for entropy, _ in parts) + self._settle(), max(change for _, change in parts)

    def current(self, trace: LabelTrace) -> Alternated:
        """Return the present state; the next pass overwrites the posterior and the counts."""
        votes = self._votes
        counts = self._counts[0].reshape(votes.annotators, votes.outputs, votes.classes)
        return Alternated(self._posterior, counts.transpose(0, 2, 1), self._total[0].copy(), trace)

    def _settle(self) -> float:
        """Update rates and shares from the counts by the rule; return their part of the objective."""
        self._total[0] = self._total.sum(axis=0)

        def rated(piece: Piece) -> float:
            return self._rule.rates(self._counts, self._heard, piece[1], piece[2], self._weights)

        rates = sum(self._each(rated, self._annotators))
        return rates + self._rule.shares(self._total[0], self._logs)

    def _each(self, run: Callable[[Piece], _T], rounds: list[list[Piece]]) -> list[_T]:
        results: list[_T] = []
        for pieces in rounds:
            self._report()
            results += map(run, pieces) if len(pieces) == 1 else self._pool.map(run, pieces)
        return results


def _nearness(changes: list[float], tolerance: float) -> float:
    """Estimate the progress: changes fall geometrically."""
    first, last = max(changes), changes[-1]
    if not 0.0 < tolerance < last < first:
        return 0.0
    return 0.95 * log(first / last) / log(first / tolerance)


def _pieces(votes: TaskVotes, parts: int) -> list[list[Piece]]:
    """Divide the tasks into parts with about equal votes, and these into rounds of one piece of each part."""
    work = votes.start + np.arange(len(votes.start))
    rounds = int(work[-1]) * votes.classes // (parts * _WORK) + 1
    bounds = np.searchsorted(work, np.linspace(0, work[-1], parts * rounds + 1))
    bounds[-1] = len(votes.known)
    return [
        [
            (part, int(bounds[at]), int(bounds[at + 1]))
            for part in range(parts)
            for at in [part * rounds + turn]
        ]
        for turn in range(rounds)
    ]


def _evenly(many: int, step: int) -> list[list[Piece]]:
    """Divide annotators into rounds of pieces."""
    pieces = [(0, first, min(first + step, many)) for first in range(0, many, step)]
    return [pieces[first : first + _PARTS] for first in range(0, len(pieces), _PARTS)]


@dataclass(frozen=True)
class IBCCSettings(PriorSettings, LabelSettings):
    """Settings of `ibcc`."""

    iterations: int = integer(500, "Iterations", "At most.", minimum=1, maximum=100_000, advanced=True)
    tolerance: float = number(
        1e-4, "Tolerance", "Convergence: largest change of a task's probabilities.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Expected:
    """Dirichlet distributions of the rates and the shares, given the tasks (eqs. 17, 22)."""

    prior: FloatArray
    share: FloatArray

    @cached_property
    def _at_rest(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of Gamma of the prior's parameters, of the rates and of the shares."""
        from raterscope.algorithms.labels._ibcc_kernels import log_gammas

        return log_gammas(self.prior), log_gammas(self.share[None])[0]

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        return float(expect(self.prior, self._at_rest[0], counts, present, first, last, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect_row

        return float(expect_row(self.share, self._at_rest[1], total, np.arange(len(total)), logs))


def ibcc(labels: Labels, settings: IBCCSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes and every annotator's confusion matrix together.

    Any numbers of classes and outputs are possible. The tasks' distributions (eqs. 7, 8) and those of the
    annotators' rates and the classes' shares (eqs. 17 to 23) are updated in turn. The paper states that this
    finds the global maximum of the lower bound; it finds a local one that depends on the start. It therefore
    starts from the votes: each task's probabilities are (nu_0 + votes) / sum, where an output counts for the
    class with its highest prior rate, among equal ones for the class it stands for.

    Known tasks are held fixed, and count for the annotators' rates and the classes' shares. A task without
    votes and without a known class is not used.

    Parameters
    ----------
    labels : Labels
    settings : IBCCSettings, optional
    watch : Watch

    Returns
    -------
    LabelFusion
        The trace is the lower bound (eq. 24) after each iteration; it never falls by more than rounding. With
        the annotators' distributions updated from the tasks, eqs. 25 to 31 are the sum of ln B(alpha) - ln
        B(alpha_0), of ln B(nu) - ln B(nu_0), and of the tasks' entropies.

    Raises
    ------
    LabelsError
        When the confusion matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = ibcc(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.89
    """
    settings = IBCCSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    prior = prior_of(labels, settings)
    nu = np.full(len(labels.classes), settings.share_strength)
    votes = sort_by_task(labels, part(watch, 0.0, 0.1))

    def fusion(done: Alternated, notices: Iterable[str] = ()) -> LabelFusion:
        shares = (nu + done.total) / (nu + done.total).sum()
        alpha = np.empty(done.counts.shape)
        np.add(done.counts, prior, out=alpha)
        confusion = Confusion(alpha, prior)
        return make_fusion(labels, "ibcc", done.posterior, confusion, done.trace, notices, shares=shares)

    done = alternate(
        votes,
        class_shares(labels, prior),
        settings.share_strength,
        _Expected(prior, nu),
        settings.iterations,
        settings.tolerance,
        "lower bound",
        part(watch, 0.1, 1.0, "estimating classes and confusion matrices, "),
        fusion,
    )
    del votes
    return fusion(done, convergence_notices(done.trace))


@dataclass(frozen=True)
class DawidSkeneSettings(LabelSettings):
    """Settings of `dawid_skene`."""

    smoothing: float = number(
        1e-10, "Smoothing", "Added to every count of a confusion matrix, and to the tasks of each class. "
        "Near 0: maximum likelihood, however few votes the rates rest on.",
        unit="votes", minimum=1e-10, maximum=1e6, advanced=True,
    )  # fmt: skip
    iterations: int = integer(500, "Iterations", "At most.", minimum=1, maximum=100_000, advanced=True)
    tolerance: float = number(
        1e-3, "Tolerance", "Convergence: largest change of a task's probabilities.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Likeliest:
    """Maximum likelihood rates and shares, given the tasks."""

    smoothing: float
    outputs: int

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import maximise

        return float(maximise(self.smoothing, counts, present, first, last, self.outputs, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import maximise_row

        return float(maximise_row(self.smoothing, total, logs))


def dawid_skene(
    labels: Labels, settings: DawidSkeneSettings | None = None, watch: Watch = silent
) -> LabelFusion:
    """Estimate the tasks' classes and every annotator's confusion matrix by expectation-maximisation.

    It starts from each task's shares of votes, where an output counts for the class that it stands for;
    `Labels.prior`, if set, counts only in this start, as in `ibcc`. Known tasks are held fixed. A task
    without votes and without a known class is not used.

    Parameters
    ----------
    labels : Labels
    settings : DawidSkeneSettings, optional
    watch : Watch

    Returns
    -------
    LabelFusion
        The trace is the log likelihood of the votes under the rates at the start of each iteration, with
        smoothing counted as votes; it never falls by more than rounding.

    Raises
    ------
    LabelsError
        When the confusion matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = dawid_skene(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.88
    """
    settings = DawidSkeneSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    votes = sort_by_task(labels, part(watch, 0.0, 0.1))
    prior = np.full((len(labels.classes), len(labels.outputs)), settings.smoothing)

    def fusion(done: Alternated, notices: Iterable[str] = ()) -> LabelFusion:
        shares = (done.total + settings.smoothing) / (done.total + settings.smoothing).sum()
        alpha = np.empty(done.counts.shape)
        np.add(done.counts, prior, out=alpha)
        confusion = Confusion(alpha, prior)
        return make_fusion(
            labels, "dawid_skene", done.posterior, confusion, done.trace, notices, shares=shares
        )

    done = alternate(
        votes,
        class_shares(labels, default_prior(labels) if labels.prior is None else labels.prior),
        0.0,
        _Likeliest(settings.smoothing, len(labels.outputs)),
        settings.iterations,
        settings.tolerance,
        "log-likelihood",
        part(watch, 0.1, 1.0, "estimating classes and confusion matrices, "),
        fusion,
    )
    del votes
    return fusion(done, convergence_notices(done.trace))
