"""VB-IBCC: independent Bayesian combination of annotators by variational Bayes (sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._alternation import Alternated, alternate
from raterscope.algorithms.labels._start import standing
from raterscope.algorithms.labels._votes import by_task
from raterscope.algorithms.labels.data import Confusion, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.prior import LabelSettings, PriorSettings, prior_of
from raterscope.algorithms.labels.results import fused, unsettled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

__all__ = ["IBCCSettings", "ibcc"]


@dataclass(frozen=True)
class IBCCSettings(PriorSettings, LabelSettings):
    """Settings of `ibcc`."""

    iterations: int = integer(500, "Iterations", "At most.", minimum=1, maximum=100_000, advanced=True)
    tolerance: float = number(
        1e-4, "Tolerance", "Change of every task's probabilities beneath which this ends.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Expected:
    """Dirichlet distributions of the rates and the shares, given the tasks (eqs. 17, 22)."""

    prior: FloatArray
    share: FloatArray

    def rates(
        self, counts: FloatArray, present: NDArray[np.bool_], first: int, last: int, logs: FloatArray
    ) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        return float(expect(self.prior, counts, present, first, last, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect_row

        return float(expect_row(self.share, total, np.arange(len(total)), logs))


def ibcc(labels: Labels, settings: IBCCSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes and every annotator's confusion matrix together.

    Any numbers of classes and outputs. The tasks' distributions (eqs. 7, 8) and those of the annotators'
    rates and the classes' shares (eqs. 17 to 23) are updated in turn. The paper says that this finds the
    global maximum of the lower bound; it finds a local one, and which depends on where it begins. So it
    begins with the votes: each task's probabilities are (nu_0 + votes) / sum, where an output counts for the
    class of which the prior says it is said most often, and among equals for the one that it stands for.

    Known tasks are held fixed, teach the annotators' rates and count among the classes' shares. A task
    without votes that is not known takes no part: it says nothing.

    Parameters
    ----------
    labels : Labels
    settings : IBCCSettings, optional
    watch : Watch

    Returns
    -------
    LabelFusion
        The trace is the lower bound (eq. 24) after each iteration; it never falls by more than rounding.
        Where the annotators' distributions are those that the tasks give, eqs. 25 to 31 come down to
        the sum of ln B(alpha) - ln B(alpha_0), of ln B(nu) - ln B(nu_0), and of the tasks' entropies.

    Raises
    ------
    LabelsError
        When the confusion matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_plans import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = ibcc(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.89
    """
    settings = IBCCSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    prior = prior_of(labels, settings)
    nu = np.full(len(labels.classes), settings.share_strength)
    votes = by_task(labels, part(watch, 0.0, 0.1))

    def fusion(done: Alternated, notices: Iterable[str] = ()) -> LabelFusion:
        shares = (nu + done.total) / (nu + done.total).sum()
        alpha = np.empty(done.counts.shape)
        np.add(done.counts, prior, out=alpha)
        confusion = Confusion(alpha, prior)
        return fused(labels, "ibcc", done.posterior, confusion, done.trace, notices, shares=shares)

    done = alternate(
        votes,
        standing(labels, prior),
        settings.share_strength,
        _Expected(prior, nu),
        settings.iterations,
        settings.tolerance,
        "lower bound",
        part(watch, 0.1, 1.0, "estimating classes and confusion matrices, "),
        fusion,
    )
    del votes
    return fusion(done, unsettled(done.trace))
