"""Pooled consensus: hierarchical Dawid-Skene, mixed membership, subtypes of classes and the vote.

A model of annotators that takes their votes as independent is too sure of its answer, and the vote is not
sure enough. Five views of the same votes are therefore combined: two hierarchical Dawid-Skene models and
EBCC, whose likelihood is tempered by the design effect of correlated votes after the fit; a mixed-membership
model, in which every vote has an apparent class of its own; and the smoothed vote. The pool is the mean of
their logarithmic and their linear opinion pool. Where the votes look independent (see `independence`), the
untempered models take its place, as far as that is probable.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
.. [paun2018] S. Paun, B. Carpenter, J. Chamberlain, D. Hovy, U. Kruschwitz and M. Poesio, "Comparing
   Bayesian models of annotation", Transactions of the Association for Computational Linguistics 6 (2018)
   571-585, doi:10.1162/tacl_a_00040 (hierarchical Dawid-Skene).
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
.. [li2019] Y. Li, B. I. P. Rubinstein and T. Cohn, "Exploiting worker correlation for label aggregation in
   crowdsourcing", Proceedings of the 36th International Conference on Machine Learning, PMLR 97 (2019)
   3886-3895 (subtypes of classes).
.. [kish1965] L. Kish, "Survey sampling", Wiley (1965) (design effect).
.. [genest1986] C. Genest and J. V. Zidek, "Combining probability distributions: a critique and an annotated
   bibliography", Statistical Science 1 (1986) 114-135, doi:10.1214/ss/1177013825 (opinion pools).
.. [guo2017] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks",
   Proceedings of the 34th International Conference on Machine Learning, PMLR 70 (2017) 1321-1330 (the
   powers where classes are known).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._hierarchical import (
    FLOOR,
    correlation_of,
    dawid_skene,
    smoothed_vote,
    sort_votes,
    tempered,
)
from raterscope.algorithms.labels._membership import mixed_membership
from raterscope.algorithms.labels._sharpness import sharpened
from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels, LabelTrace, default_prior
from raterscope.algorithms.labels.ebcc import tempered_subtypes
from raterscope.algorithms.labels.independence import independence
from raterscope.algorithms.labels.prior import LabelSettings
from raterscope.algorithms.labels.results import counted, fused, unsettled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

__all__ = ["PooledSettings", "pooled"]

_WEIGHTS = {"by class": 0.17, "by skill": 0.17, "membership": 0.34, "subtypes": 0.15, "vote": 0.17}
"""Of Dawid-Skene with and without class accuracies, mixed membership, EBCC and the vote.

These, the least correlation and the mixture's strength were chosen on ten public crowds with truths; votes
alone cannot identify them, and on these crowds many other weights do as well.
"""

_MATRIX_STRENGTH = 4.0
"""Votes at most that the crowd's mean rates count for in a reported confusion matrix."""


@dataclass(frozen=True)
class PooledSettings(LabelSettings):
    """Settings of `pooled`."""

    correlation: float = number(
        0.2, "Least correlation", "Smallest correlation of the votes on a task. Estimated from the votes "
        "where it is larger; votes alone do not reveal errors that all annotators share.",
        minimum=0.0, maximum=1.0, advanced=True,
    )  # fmt: skip
    mixture: float = number(
        0.6, "Mixture strength", "Prior strength of a task's mixture of apparent classes. Larger: each vote "
        "depends less on the other votes on its task.",
        unit="votes", minimum=1e-3, maximum=1e3, advanced=True,
    )  # fmt: skip
    iterations: int = integer(
        60, "Iterations", "At most, for each model.", minimum=1, maximum=10_000, advanced=True
    )
    tolerance: float = number(
        1e-3, "Tolerance", "The fit ends when the tasks' probabilities change by less, summed over the "
        "classes and averaged over the tasks.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(eq=False)
class _Pool:
    """Sums over the views: of weighted logarithms, of weighted probabilities, and of the weights."""

    logs: FloatArray
    shares: FloatArray
    weight: float = 0.0

    def add(self, view: FloatArray, weight: float) -> None:
        self.logs += weight * np.log(view + FLOOR)
        self.shares += weight * view
        self.weight += weight

    def answer(self, tasks: NDArray[np.int64] | slice = slice(None)) -> FloatArray:
        """Give the mean of the logarithmic and the linear pool."""
        answer = _normalised(self.logs[tasks] / self.weight)
        answer += self.shares[tasks] / self.weight
        answer /= answer.sum(axis=1, keepdims=True)
        return answer


def pooled(labels: Labels, settings: PooledSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes by five views of the votes, and pool them.

    Row j of annotator k's confusion matrix is Dirichlet distributed with mean B_kj and strength c. The mean
    follows from the annotator's skill, the class's accuracy and the crowd's and the annotator's own wrong
    labels; skill's distribution, c and the classes' shares are estimated from the crowd. A prior that the
    question sets (`Labels.prior`) takes the place of c B; EBCC, which has no such prior, is then left out, as
    it is for very large crowds. Known tasks are held fixed. The likelihood of n votes on a task is raised to
    1 / (1 + (n - 1) rho), where rho is the correlation with which votes predict each other best, or the least
    one of the settings. The answer is p Q_0 + (1 - p) Q, where p is the probability that annotators err
    independently, Q the pool, and Q_0 that of the two Dawid-Skene models without the least correlation. Where
    classes are known, it is raised to the powers that suit these tasks, each judged as if its class were not
    known.

    Parameters
    ----------
    labels : Labels
    settings : PooledSettings, optional
    watch : Watch

    Returns
    -------
    LabelFusion
        `trace` has the changes of the first Dawid-Skene model, or of the one that did not converge.
        `confusion` has expected counts given the pooled posterior, on top of the crowd's mean rates.

    Raises
    ------
    LabelsError
        When the confusion matrices would not fit into memory.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_plans import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = pooled(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.92
    """
    settings = PooledSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    crowd = sort_votes(labels, part(watch, 0.0, 0.02))
    vote = smoothed_vote(labels, crowd, part(watch, 0.02, 0.03))

    def show(posterior: FloatArray) -> LabelFusion:
        trace = LabelTrace(np.empty(0), np.empty(0), converged=False)
        return _fusion(labels, posterior.copy(), trace, ())

    limits = (settings.iterations, settings.tolerance)
    known = np.flatnonzero(crowd.known != OPEN)
    judged = known[np.diff(crowd.start)[known] > 0]
    pool = _Pool(np.zeros_like(vote), np.zeros_like(vote))
    if len(judged):
        votes_alone = replace(crowd, known=np.full_like(crowd.known, OPEN))
        pool.add(smoothed_vote(labels, votes_alone, silent), _WEIGHTS["vote"])
    else:
        pool.add(vote, _WEIGHTS["vote"])
    free = np.zeros_like(vote)
    traces: list[LabelTrace] = []
    unheld: FloatArray | None = None
    begin, correlation = vote, settings.correlation
    for name, by_class, step in (
        ("by class", True, part(watch, 0.03, 0.3)),
        ("by skill", False, part(watch, 0.3, 0.5)),
    ):
        posterior = vote.copy()
        fit, trace = dawid_skene(crowd, posterior, by_class, *limits, part(step, 0.0, 0.8), show)
        estimated = correlation_of(crowd, fit, posterior, part(step, 0.8, 0.9))
        used = max(settings.correlation, estimated)
        if not traces and len(judged):
            unheld = tempered(crowd, fit, posterior, 0.0, silent)[judged]
        view = tempered(crowd, fit, posterior, used, part(step, 0.9, 0.95))
        pool.add(view, _WEIGHTS[name])
        if estimated < used:
            view = tempered(crowd, fit, posterior, estimated, part(step, 0.95, 1.0))
        free += np.log(view + FLOOR) / 2
        if not traces:
            begin, correlation = posterior, used
        traces.append(trace)
        del fit, posterior, view
    mixture, _ = mixed_membership(crowd, begin, settings.mixture, part(watch, 0.5, 0.65), judged, unheld)
    pool.add(mixture, _WEIGHTS["membership"])
    del mixture, begin
    subtypes = None
    if labels.prior is None:
        subtypes = tempered_subtypes(labels, vote, correlation, *limits, part(watch, 0.65, 0.8))
    if subtypes is not None:
        pool.add(subtypes, _WEIGHTS["subtypes"])
    answer, before = pool.answer(), pool.answer(judged)
    if settings.correlation > 0:
        step = part(watch, 0.8, 0.97)
        chance = independence(labels, settings.correlation, settings.mixture, *limits, step)
        for sums, rows in ((answer, slice(None)), (before, judged)):
            sums *= 1.0 - chance
            sums += chance * _normalised(free[rows])
    if len(judged):
        answer = sharpened(answer, before, crowd.known[judged], judged)
    answer[known] = np.eye(answer.shape[1])[crowd.known[known]]
    watch(0.97, "counting votes")
    trace = next((one for one in traces if not one.converged), traces[0])
    return _fusion(labels, answer, trace, unsettled(trace))


def _normalised(logs: FloatArray) -> FloatArray:
    """Turn logarithms into probabilities."""
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    return np.asarray(values)


def _fusion(
    labels: Labels, posterior: FloatArray, trace: LabelTrace, notices: list[str] | tuple[()]
) -> LabelFusion:
    """Count the annotators' votes given the posterior, on top of the crowd's mean rates."""
    prior = labels.prior
    if prior is None:
        counts = np.zeros((len(labels.outputs), len(labels.classes)))
        for j in range(counts.shape[1]):
            counts[:, j] = np.bincount(labels.label, posterior[labels.task, j], minlength=len(labels.outputs))
        mean = counts.T + default_prior(labels)
        prior = _MATRIX_STRENGTH * mean / mean.sum(axis=1, keepdims=True)
    return fused(labels, "pooled", posterior, counted(labels, posterior, prior), trace, notices)
