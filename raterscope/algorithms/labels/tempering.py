"""Tempering: the weight of a vote where annotators make correlated errors.

A model of annotators assumes that the votes on a task are independent, given its class. Annotators err
together on hard tasks, and the product of their likelihoods is then too sure. The likelihood is therefore
raised to a power below one. The power needs no truths: it is the one with which each held-out vote is
predicted best from the other votes on its task.

References
----------
.. [bissiri2016] P. G. Bissiri, C. C. Holmes and S. G. Walker, "A general framework for updating belief
   distributions", Journal of the Royal Statistical Society B 78 (2016) 1103-1130, doi:10.1111/rssb.12158.
.. [grunwald2017] P. Grünwald and T. van Ommen, "Inconsistency of Bayesian inference for misspecified linear
   models, and a proposal for repairing it", Bayesian Analysis 12 (2017) 1069-1103, doi:10.1214/17-BA1085
   (the power by predictive performance).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.prior import PriorSettings
from raterscope.algorithms.progress import Watch, silent

__all__ = ["POWERS", "Tempering", "choose_tempering", "is_modelled", "tempered"]

POWERS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
"""Weights of a vote that are compared."""

_DEPENDENT = (0.6, 8.0)
"""Largest weight of a vote, and smallest gain in nats, at which errors are called correlated.

Independent votes mostly have weights of 0.8 to 1; few of them less by chance, with less gain."""

_PREDICTED = 200_000
"""Votes that are predicted, about; of more, those on every second, third ... task."""

_AT_ONCE = 500_000
"""Votes whose rates are held in memory at a time."""

_LEAST = 1e-9
"""Pseudo-counts that are left of an output when the vote itself is taken out."""


@dataclass(frozen=True)
class Tempering:
    """Weight of a vote, and how much better held-out votes are then predicted.

    Attributes
    ----------
    power : float
        Weight of a vote, of `POWERS`; 1 where votes are as good as independent.
    gain : float
        Log-likelihood of the held-out votes with this power less that with power 1, in nats.
    votes : int
        Votes that were held out.
    """

    power: float
    gain: float
    votes: int

    @property
    def dependent(self) -> bool:
        """True if annotators err on the same tasks, more than by chance."""
        power, gain = _DEPENDENT
        return self.power <= power and self.gain >= gain


def is_modelled(fusion: LabelFusion) -> bool:
    """Return whether the method models annotators with a prior, which can be tempered."""
    algorithm = LABELLERS.get(fusion.algorithm)
    return algorithm is not None and issubclass(algorithm.settings, PriorSettings)


def choose_tempering(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Tempering:
    """Choose the power of the likelihood by leave-one-vote-out prediction.

    The posterior of a task's class follows from its other votes, each likelihood raised to the power. The
    held-out vote is predicted from that posterior and its annotator's expected rates, from which the vote's
    own count is removed. Tasks that are known, or have a single vote, do not count.

    Parameters
    ----------
    labels : Labels
        What was fused, repeated votes settled.
    fusion : LabelFusion
        By a model with a prior of the annotators, not tempered.
    watch : Watch
    """
    rows = _held_out(labels, fusion)
    if not len(rows):
        return Tempering(1.0, 0.0, 0)
    alpha, said = _alpha_of(labels, fusion, rows), labels.label[rows]
    each = np.arange(len(rows))
    logs = _expected_logs(alpha, said)
    alpha[each, :, said] = np.maximum(alpha[each, :, said] - fusion.posterior[labels.task[rows]], _LEAST)
    rate = alpha[each, :, said] / alpha.sum(axis=2)
    del alpha
    first = np.flatnonzero(np.diff(labels.task[rows], prepend=-1))
    of = np.cumsum(np.diff(labels.task[rows], prepend=-1) != 0) - 1
    others = np.add.reduceat(logs, first)[of] - logs
    shares = np.log(fusion.shares)
    found = np.empty(len(POWERS))
    for at, power in enumerate(POWERS):
        watch(at / len(POWERS), f"predicting held-out votes, each weighted {power:g}")
        found[at] = np.log((_softmax(shares + power * others) * rate).sum(axis=1)).mean()
    best = int(found.argmax())
    return Tempering(POWERS[best], float(found[best] - found[0]) * len(rows), len(rows))


def tempered(labels: Labels, fusion: LabelFusion, power: float) -> LabelFusion:
    """Weight each vote by the same power, the annotators' rates unchanged.

    Parameters
    ----------
    labels : Labels
        What was fused, repeated votes settled.
    fusion : LabelFusion
        By a model with a prior of the annotators.
    power : float
        Of the likelihood of each vote, above 0 and at most 1.

    Returns
    -------
    LabelFusion
        Its posterior is proportional to share_j exp(power sum_votes E[ln pi_jl]), with its `power`.
        Known tasks, and those without votes, stay as they are.
    """
    open_tasks = (fusion.known == OPEN) & (fusion.votes > 0)
    total = np.zeros_like(fusion.posterior)
    for begin in range(0, len(labels), _AT_ONCE):
        rows = np.arange(begin, min(begin + _AT_ONCE, len(labels)))
        logs = _expected_logs(_alpha_of(labels, fusion, rows), labels.label[rows])
        for j in range(total.shape[1]):
            total[:, j] += np.bincount(labels.task[rows], logs[:, j], minlength=len(total))
    posterior = np.where(
        open_tasks[:, None], _softmax(np.log(fusion.shares) + power * total), fusion.posterior
    )
    return replace(fusion, posterior=posterior, power=power)


def _held_out(labels: Labels, fusion: LabelFusion) -> NDArray[np.int64]:
    """Return the votes that are predicted, task by task."""
    tells = (fusion.known == OPEN) & (labels.votes_of_tasks() > 1)
    every = -(-int(labels.votes_of_tasks()[tells].sum()) // _PREDICTED)
    if every > 1:
        tells[np.setdiff1d(np.arange(len(tells)), np.flatnonzero(tells)[::every])] = False
    rows = np.flatnonzero(tells[labels.task])
    return rows[np.argsort(labels.task[rows], kind="stable")]


def _alpha_of(labels: Labels, fusion: LabelFusion, rows: NDArray[np.int64]) -> FloatArray:
    """Return the Dirichlet parameters of each vote's annotator at that vote, (n, J, L), for overwriting."""
    if fusion.drift is None:
        return fusion.confusion.alpha[labels.annotator[rows]].astype(np.float64)
    step = np.empty(len(labels), dtype=np.int64)
    step[fusion.drift.vote] = np.arange(len(labels))
    return fusion.drift.alpha[step[rows]].astype(np.float64)


def _expected_logs(alpha: FloatArray, said: NDArray[np.integer]) -> FloatArray:
    """Return the expected logarithms of the rates of what was said, (n, J) (eq. 23)."""
    from scipy.special import digamma

    own = alpha[np.arange(len(alpha)), :, said]
    return np.asarray(digamma(own) - digamma(alpha.sum(axis=2)))


def _softmax(logs: FloatArray) -> FloatArray:
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
