"""What a vote should count for: people who err on the same tasks make a model too sure of itself.

A model of annotators takes the votes on a task as independent, given its class. Real ones err together on
hard tasks, and the product of their likelihoods is then surer than it should be. The likelihood is therefore
raised to a power below one, as for any model that is not quite right (Bissiri, Holmes and Walker 2016, "A
general framework for updating belief distributions"; Gruenwald and van Ommen 2017, on choosing the power by
what is foreseen). No truth is needed to choose it: each vote is foretold from the others on its task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.prior import PriorSettings
from raterscope.algorithms.progress import Watch, silent

__all__ = ["POWERS", "Foresight", "foresight", "is_modelled", "tempered"]

POWERS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
"""What a vote may count for."""

_DEPENDENT = (0.6, 8.0)
"""What votes count for at most, and nats gained at least, for people to err together.

Independent votes mostly come to 0.8 to 1; few of them to less by chance, with less to gain."""

_LOOKED_AT = 200_000
"""Votes that are foretold, about; of more, those on every second, third ... task."""

_AT_ONCE = 500_000
"""Votes whose rates are held in memory at a time."""

_LEAST = 1e-9
"""Pseudo-counts that are left of an output when the vote itself is taken out."""


@dataclass(frozen=True)
class Foresight:
    """What votes should count for, and how much better they then foretell each other.

    Attributes
    ----------
    power : float
        What a vote counts for, of `POWERS`: 1 where they are as good as independent.
    gain : float
        By how much the log-likelihood of the votes, each foretold from the others on its task, is then above
        that of power 1; nats.
    votes : int
        Votes that were foretold.
    """

    power: float
    gain: float
    votes: int

    @property
    def dependent(self) -> bool:
        """Whether people err on the same tasks, more than chance would have it."""
        power, gain = _DEPENDENT
        return self.power <= power and self.gain >= gain


def is_modelled(fusion: LabelFusion) -> bool:
    """Whether it is by a model with a prior of the annotators, which can be tempered."""
    algorithm = LABELLERS.get(fusion.algorithm)
    return algorithm is not None and issubclass(algorithm.settings, PriorSettings)


def foresight(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Foresight:
    """Find the power of the likelihood with which the votes on a task foretell each other best.

    The class of a task is believed by the other votes on it, each likelihood raised to the power; the vote
    is then as probable as its annotator's expected rates say, without what the vote itself taught of them.
    Tasks that are known, or have a single vote, say nothing of the power.

    Parameters
    ----------
    labels : Labels
        What was fused, repeated votes settled.
    fusion : LabelFusion
        By a model with a prior of the annotators, not tempered.
    watch : Watch
    """
    rows = _looked_at(labels, fusion)
    if not len(rows):
        return Foresight(1.0, 0.0, 0)
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
        watch(at / len(POWERS), f"foretelling votes, each counting for {power:g}")
        found[at] = np.log((_softmax(shares + power * others) * rate).sum(axis=1)).mean()
    best = int(found.argmax())
    return Foresight(POWERS[best], float(found[best] - found[0]) * len(rows), len(rows))


def tempered(labels: Labels, fusion: LabelFusion, power: float) -> LabelFusion:
    """Let each vote count for part of one, the annotators' rates as they were found.

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
        Its posterior is proportional to share_j exp(power sum_votes E[ln pi_jl]), with `power` told.
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


def _looked_at(labels: Labels, fusion: LabelFusion) -> NDArray[np.int64]:
    """Give the votes that are foretold, task by task."""
    tells = (fusion.known == OPEN) & (labels.votes_of_tasks() > 1)
    every = -(-int(labels.votes_of_tasks()[tells].sum()) // _LOOKED_AT)
    if every > 1:
        tells[np.setdiff1d(np.arange(len(tells)), np.flatnonzero(tells)[::every])] = False
    rows = np.flatnonzero(tells[labels.task])
    return rows[np.argsort(labels.task[rows], kind="stable")]


def _alpha_of(labels: Labels, fusion: LabelFusion, rows: NDArray[np.int64]) -> FloatArray:
    """Give the Dirichlet parameters of each vote's annotator at that vote, (n, J, L), for overwriting."""
    if fusion.drift is None:
        return fusion.confusion.alpha[labels.annotator[rows]].astype(np.float64)
    step = np.empty(len(labels), dtype=np.int64)
    step[fusion.drift.vote] = np.arange(len(labels))
    return fusion.drift.alpha[step[rows]].astype(np.float64)


def _expected_logs(alpha: FloatArray, said: NDArray[np.integer]) -> FloatArray:
    """Give the expected logarithms of the rates of what was said, (n, J) (eq. 23)."""
    from scipy.special import digamma

    own = alpha[np.arange(len(alpha)), :, said]
    return np.asarray(digamma(own) - digamma(alpha.sum(axis=2)))


def _softmax(logs: FloatArray) -> FloatArray:
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
