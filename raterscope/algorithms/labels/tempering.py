"""Tempering: weight of a vote if annotators make correlated errors.

A model of annotators assumes that the votes on a task are independent, given its class. Annotators make the
same errors on hard tasks, and the product of their likelihoods is then overconfident. The likelihood is
therefore raised to a power below one. The power needs no truths: it is the one that best predicts each
held-out vote from the other votes on its task.

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

from raterscope.algorithms.array_operations import max_rows, sum_rows
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.crowd_votes import task_spans
from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels, PriorSettings
from raterscope.algorithms.progress import Watch, parts_of, silent

POWERS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
"""Grid of the weight of a vote."""

_DEPENDENT = (0.6, 8.0)
"""Maximum weight of a vote, and minimum gain in nats, for correlated errors.

Independent votes mostly have weights of 0.8 to 1; a few crowds have lower weights by chance, with a smaller
gain."""

_PREDICTED = 200_000
"""Approximate maximum number of predicted votes; of more tasks, a sample is used."""

_AT_ONCE = 50_000
"""Number of votes times classes whose rates are in memory at a time, within a processor's cache."""

_MAX_LOGS = 10_000_000
"""Maximum number of entries of all confusion matrices for computing all expected logarithms."""

_LEAST = 1e-9
"""Minimum pseudo-counts of an output without the vote itself."""


@dataclass(frozen=True)
class Tempering:
    """Weight of a vote, and the gain in predicting held-out votes."""

    power: float  # weight of a vote, of `POWERS`; 1 for nearly independent votes
    gain: float  # log-likelihood of the held-out votes with this power less that with power 1, in nats
    votes: int  # number of held-out votes

    @property
    def dependent(self) -> bool:
        """True if annotators err on the same tasks beyond chance."""
        power, gain = _DEPENDENT
        return self.power <= power and self.gain >= gain


def is_modelled(fusion: LabelFusion) -> bool:
    """Return whether the method models annotators with a prior, which can be tempered."""
    algorithm = LABELLERS.get(fusion.algorithm)
    return algorithm is not None and issubclass(algorithm.settings, PriorSettings)


def choose_tempering(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Tempering:
    """Choose the power of the likelihood by leave-one-vote-out prediction.

    The posterior of a task's class follows from the other votes on the task, with each likelihood raised to
    the power. The held-out vote is predicted from this posterior and its annotator's expected rates without
    the vote. Known tasks, and tasks with a single vote, do not count.

    `labels`: the labels that were fused, without repeated votes. `fusion`: result of a model with a prior of
    the annotators, not tempered.
    """
    votes = _held_out(labels, fusion)
    if not len(votes):
        return Tempering(1.0, 0.0, 0)
    rates = _Rates(labels, fusion)
    first = np.flatnonzero(np.diff(labels.task[votes], prepend=-1))
    shares = np.log(fusion.shares)
    total = np.zeros(len(POWERS))
    weights = labels.vote_weights()
    blocks = task_spans(np.append(first, len(votes)), max(1, _AT_ONCE // len(shares)))
    for begin, end in blocks:
        watch(begin / len(first), "predicting held-out votes")
        starts = first[begin:end]
        stop = first[end] if end < len(first) else len(votes)
        block = votes[starts[0] : stop]
        own, sums = rates.parameters(block)
        logs = rates.expected_logs(block)
        reduced = np.maximum(own - fusion.posterior[labels.task[block]], _LEAST)
        sums += reduced
        sums -= own
        rate = np.divide(reduced, sums, out=reduced)
        own_weight: FloatArray | float = 1.0
        if weights is not None:
            own_weight = weights[block]
            logs = logs * own_weight[:, None]
        starts = starts - starts[0]
        others = np.add.reduceat(logs, starts)
        others = np.repeat(others, np.diff(starts, append=len(block)), axis=0)
        others -= logs
        for index, power in enumerate(POWERS):
            weight = power * others
            weight += shares
            weight -= max_rows(weight, keepdims=True)
            np.exp(weight, out=weight)
            predicted = np.einsum("vj,vj->v", weight, rate)
            predicted /= sum_rows(weight)
            total[index] += (own_weight * np.log(predicted)).sum()
    best = int(total.argmax())
    return Tempering(POWERS[best], float(total[best] - total[0]), len(votes))


def tempered(labels: Labels, fusion: LabelFusion, power: float) -> LabelFusion:
    """Weight each vote by the same power, with the annotators' rates unchanged.

    `labels`: the labels that were fused, without repeated votes.
    `fusion`: result of a model with a prior of the annotators.
    `power`: power of the likelihood of each vote, above 0 and at most 1. The new posterior is proportional to
    share_j exp(power sum_votes E[ln pi_jl]). Known tasks, and tasks without votes, do not change.
    """
    open_tasks = (fusion.known == OPEN) & (fusion.votes > 0)
    rates = _Rates(labels, fusion)
    total = np.zeros_like(fusion.posterior)
    weights = labels.vote_weights()
    for begin, end in parts_of(len(labels), _AT_ONCE // total.shape[1]):
        votes = np.arange(begin, end)
        cell = labels.task[votes, None].astype(np.int64) * total.shape[1] + np.arange(total.shape[1])
        logs = rates.expected_logs(votes)
        logs = logs if weights is None else logs * weights[votes, None]
        np.add.at(total.reshape(-1), cell.reshape(-1), logs.reshape(-1))
    total *= power
    total += np.log(fusion.shares)
    total -= max_rows(total, keepdims=True)
    np.exp(total, out=total)
    total /= sum_rows(total, keepdims=True)
    posterior = np.where(open_tasks[:, None], total, fusion.posterior)
    return replace(fusion, posterior=labels.keep_to_sets(posterior), power=power)


def _held_out(labels: Labels, fusion: LabelFusion) -> NDArray[np.int64]:
    """Return the votes to predict, sorted by task."""
    votes_of = labels.votes_of_tasks()
    predicted = (fusion.known == OPEN) & (votes_of > 1)
    every = -(-int(votes_of[predicted].sum()) // _PREDICTED)
    if every > 1:
        tasks = np.flatnonzero(predicted)[::every]
        predicted[:] = False
        predicted[tasks] = True
    rows = np.flatnonzero(predicted[labels.task])
    return rows[np.argsort(labels.task[rows], kind="stable")]


class _Rates:
    """Dirichlet parameters of the annotators' rates at each vote.

    With a static model they are the same for all votes of an annotator.
    """

    def __init__(self, labels: Labels, fusion: LabelFusion) -> None:
        self._label = labels.label
        self._alpha: NDArray[np.floating]
        if fusion.drift is None:
            self._row, self._alpha = labels.annotator, fusion.confusion.alpha
        else:
            self._row = np.empty(len(labels), dtype=np.int32)
            self._row[fusion.drift.vote] = np.arange(len(labels), dtype=np.int32)
            self._alpha = fusion.drift.alpha
        # For a few annotators with many votes, terms that depend only on the annotator are computed once.
        self._static = fusion.drift is None and self._alpha.size <= _MAX_LOGS
        if self._static:
            from scipy.special import digamma

            self._whole = self._alpha.sum(axis=2)
            self._logs = digamma(self._alpha) - digamma(self._whole)[:, :, None]

    def parameters(self, votes: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Return the parameters of the votes' labels and their sums over all outputs, both (n, J)."""
        row = self._row[votes]
        own = self._alpha[row, :, self._label[votes]].astype(np.float64)
        total = self._whole[row] if self._static else self._alpha[row].sum(axis=2, dtype=np.float64)
        return own, total

    def expected_logs(self, votes: NDArray[np.int64]) -> FloatArray:
        """Return the expected logarithms of the rates of the votes' labels, (n, J) (eq. 23)."""
        if self._static:
            return np.asarray(self._logs[self._row[votes], :, self._label[votes]])
        from scipy.special import digamma

        own, total = self.parameters(votes)
        return np.asarray(digamma(own) - digamma(total))
