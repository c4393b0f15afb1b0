"""Static models of annotators: VB-IBCC (sections 2 and 3 of the paper), and Dawid-Skene.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.alternation import Alternated, Rule, alternate
from raterscope.algorithms.labels.data import (
    Confusion,
    FloatArray,
    LabelFusion,
    Labels,
    LabelSettings,
    PriorSettings,
    default_prior,
    prior_of,
)
from raterscope.algorithms.labels.result import convergence_notices, make_fusion
from raterscope.algorithms.labels.task_votes import class_shares, sort_by_task
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number


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
    accelerated: ClassVar[bool] = True

    @cached_property
    def _at_rest(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of Gamma of the prior's parameters, of the rates and of the shares."""
        from raterscope.algorithms.labels._ibcc_kernels import log_gammas

        return log_gammas(self.prior), log_gammas(self.share[None])

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        return float(expect(self.prior, self._at_rest[0], counts, present, first, last, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        present, counts = np.ones(len(total), dtype=np.bool_), total[None, :, None]
        return float(expect(self.share[None], self._at_rest[1], counts, present, 0, 1, logs[:, None]))


def ibcc(labels: Labels, settings: IBCCSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes and every annotator's confusion matrix together.

    Any numbers of classes and outputs are possible. The tasks' distributions (eqs. 7, 8) and those of the
    annotators' rates and the classes' shares (eqs. 17 to 23) are updated in turn. The paper states that this
    finds the global maximum of the lower bound; it finds a local one that depends on the start. It therefore
    starts from the votes: each task's probabilities are (nu_0 + votes) / sum, where an output counts for the
    class with its highest prior rate, among equal ones for the class it stands for.

    Known tasks are held fixed, and count for the annotators' rates and the classes' shares. A task without
    votes and without a known class is not used.

    The trace is the lower bound (eq. 24) after each iteration; it never falls by more than rounding. With the
    annotators' distributions updated from the tasks, eqs. 25 to 31 are the sum of ln B(alpha) - ln
    B(alpha_0), of ln B(nu) - ln B(nu_0), and of the tasks' entropies. Raises `LabelsError` if the confusion
    matrices would not fit into memory.

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
    prior, strength = prior_of(labels, settings), settings.share_strength
    rule = _Expected(prior, np.full(len(labels.classes), strength))
    start = class_shares(labels, prior), strength
    return _estimate(labels, "ibcc", settings, prior, strength, rule, start, "lower bound", watch)


def _estimate(
    labels: Labels,
    algorithm: str,
    settings: IBCCSettings | DawidSkeneSettings,
    prior: FloatArray,
    strength: float,
    rule: Rule,
    start: tuple[FloatArray, float],
    objective: str,
    watch: Watch,
) -> LabelFusion:
    """Update tasks and annotators in turn, and make the fusion.

    `prior`, `strength`: pseudo-counts of every confusion matrix, (J, L), and of each class's share. `start`:
    share of a vote that each output is for each class, (L, J), and the pseudo-votes added to them.
    """
    votes = sort_by_task(labels, part(watch, 0.0, 0.1))

    def fusion(done: Alternated, notices: Iterable[str] = ()) -> LabelFusion:
        shares = (done.total + strength) / (done.total + strength).sum()
        alpha = np.empty(done.counts.shape)
        np.add(done.counts, prior, out=alpha)
        confusion = Confusion(alpha, prior)
        return make_fusion(labels, algorithm, done.posterior, confusion, done.trace, notices, shares=shares)

    done = alternate(
        votes, *start, rule, settings.iterations, settings.tolerance, objective,
        part(watch, 0.1, 1.0, "estimating classes and confusion matrices, "), fusion, labels.weights,
    )  # fmt: skip
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
    accelerated: ClassVar[bool] = False

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

    The trace is the log likelihood of the votes under the rates at the start of each iteration, with
    smoothing counted as votes; it never falls by more than rounding. Raises `LabelsError` if the confusion
    matrices would not fit into memory.

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
    smoothing = settings.smoothing
    prior = np.full((len(labels.classes), len(labels.outputs)), smoothing)
    rule = _Likeliest(smoothing, len(labels.outputs))
    start = class_shares(labels, default_prior(labels) if labels.prior is None else labels.prior), 0.0
    return _estimate(labels, "dawid_skene", settings, prior, smoothing, rule, start, "log-likelihood", watch)
