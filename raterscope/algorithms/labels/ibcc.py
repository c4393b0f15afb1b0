"""VB-IBCC: independent Bayesian combination of annotators by variational Bayes (sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.labels._alternation import Alternated, alternate
from raterscope.algorithms.labels._start import standing
from raterscope.algorithms.labels._votes import TaskVotes, by_task
from raterscope.algorithms.labels.data import Confusion, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.prior import LabelSettings, PriorSettings, prior_of
from raterscope.algorithms.labels.results import fused, unsettled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

__all__ = ["IBCCSettings", "ibcc"]

_FEW_ANNOTATORS = 6
_FEW_VOTES = 3


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

    def rates(self, counts: FloatArray, first: int, last: int, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect

        return float(expect(self.prior, counts, first, last, logs))

    def shares(self, total: FloatArray, logs: FloatArray) -> float:
        from raterscope.algorithms.labels._ibcc_kernels import expect_row

        return float(expect_row(self.share, total, logs))


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
    notices = [*unsettled(done.trace), *_advice(labels, settings, votes, done.counts)]
    del votes
    return fusion(done, notices)


def _advice(labels: Labels, settings: IBCCSettings, votes: TaskVotes, counts: FloatArray) -> list[str]:
    """Advise a stronger prior where there is little to learn from and the prior is the weak default."""
    if labels.prior is not None or settings.prior_strength is not None or len(labels.classes) < 2:
        return []
    heard = int((counts.sum(axis=(1, 2)) > 0).sum())
    if heard < 2:
        return []
    each = np.diff(votes.start)
    usual = float(np.median(each[each > 0]))
    if heard >= _FEW_ANNOTATORS and usual >= _FEW_VOTES:
        return []
    few = f"{heard:,} annotators" if heard < _FEW_ANNOTATORS else f"{usual:g} votes a task"
    return [
        f"With {few} the model has little to learn from, and a majority of the votes may be the better"
        " guide; a prior of strength 10 and accuracy 0.7 steadies it."
    ]
