"""Annotators who may copy, found without a consensus, and a consensus that they do not sway."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels
from raterscope.algorithms.progress import Watch

__all__ = ["FairConsensus", "fair_consensus", "suspects"]

_LEAST_PARTNERS = 4
"""Annotators with tasks in common from whom an annotator's skill is estimated."""

_RANK = 0.4
"""Quantile of an annotator's agreements that stands for those with the rest: a ring is to be above it."""

_LEAST_SHARE = 0.5
"""Of the agreement that skills leave open, suspects have at least this."""

_SUSPICIOUS = 3.0
"""Standard deviations of the agreement beyond what skills explain, for annotators to be suspects."""

_LEAST_RING, _DENSE = 8, 0.7
"""Members of a ring, and the share of their pairs that agree too well: fewer do not sway the answer, and a
chain of good annotators is no ring."""

_ALIKE = 0.9
"""Chance-corrected agreement from which on annotators may be a ring that outvotes the rest."""

_LEAST_OUTSIDERS, _LEAST_COMMON = 3, 20
_DISAGREEMENT, _LEAST_DISAGREEMENT = 5.0, 0.1
"""Evidence that those outside agree with each other against the ring: standard deviations, and share of the
agreement that the ring's labels leave open."""

_ROUNDS = 10
_SMOOTHING = 5.0
"""Votes that an annotator's row is drawn by towards the crowd's."""


@dataclass(frozen=True, eq=False)
class FairConsensus:
    """Log probabilities of the classes from which votes can be taken away.

    Attributes
    ----------
    cluster : (K,) int64
        The set of suspects that an annotator is in, -1 for none. Each set counts for one annotator.
    weight : (K,) float64
        What each vote of an annotator counts for.
    rates : (K, J, L) float64
        Logarithms.
    posterior : (N, J) float64
    own : dict of cluster to (N, J) float64
        What it contributes.
    """

    cluster: NDArray[np.int64]
    weight: FloatArray
    rates: FloatArray
    posterior: FloatArray
    own: dict[int, FloatArray]

    def without(
        self, pair: tuple[int, int], task: NDArray[np.integer], labels: tuple[NDArray[np.integer], ...]
    ) -> FloatArray:
        """Give the probabilities on some tasks, (n, J), without a pair's votes and their fellow suspects'.

        Parameters
        ----------
        pair : tuple of two annotators
        task : (n,) integer
        labels : tuple of two (n,) integer
            Their votes on these tasks.
        """
        left = self.posterior[task]
        for which, (annotator, label) in enumerate(zip(pair, labels, strict=True)):
            number = int(self.cluster[annotator])
            if number < 0:
                left = left - self.weight[annotator] * self.rates[annotator][:, label].T
            elif which == 0 or number != self.cluster[pair[0]]:
                left = left - self.own[number][task]
        left = np.exp(left - left.max(axis=1, keepdims=True))
        return np.asarray(left / left.sum(axis=1, keepdims=True))


def suspects(
    pairs: NDArray[np.int32], common: FloatArray, same: FloatArray, labels: Labels, first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], bool]:
    """Find the sets of annotators who agree with each other far better than with the rest.

    With one skill s for each annotator, chance-corrected agreement of two who look for themselves is
    s_1 s_2, whatever the tasks' classes. A ring of copiers agrees better within, not with others. A ring of
    most annotators looks like good ones instead, see `_outvoting`.

    Parameters
    ----------
    pairs : (P, 2) int32
    common, same : (P,) float64
        Common tasks, and those on which both agree.
    labels : Labels
    first : (M,) int64
        The votes that count.

    Returns
    -------
    ((K,) int64, bool)
        The set of each annotator, -1 for none, and whether the sets outvote the rest.
    """
    people = len(labels.annotators)
    cluster = np.full(people, -1, dtype=np.int64)
    use = np.bincount(labels.label, minlength=len(labels.outputs)) / max(len(labels), 1)
    chance = float(np.square(use).sum())
    if not len(pairs) or chance >= 1:
        return cluster, False
    kappa = (same / common - chance) / (1 - chance)
    who, value = pairs.T.ravel(), np.concatenate([kappa, kappa])
    order = np.lexsort((value, who))
    edges = np.searchsorted(who[order], np.arange(people + 1))
    many = np.diff(edges)
    place = np.minimum(edges[:-1] + (_RANK * many).astype(np.int64), len(value) - 1)
    middle = np.where(many >= _LEAST_PARTNERS, value[order][place], np.nan)
    if not np.isfinite(middle).any():
        return cluster, False
    usual = np.sqrt(max(float(np.nanmedian(middle)), 0.01))
    skill = np.clip(middle / usual, 0.0, 1.0)
    expected = skill[pairs[:, 0]] * skill[pairs[:, 1]]
    agree = np.clip(expected + (1 - expected) * chance, 0.0, 1.0)
    spread = np.sqrt(np.maximum(agree * (1 - agree), 0.01) / common) / (1 - chance)
    beyond = (kappa - expected >= _LEAST_SHARE * (1 - expected)) & (kappa - expected > _SUSPICIOUS * spread)
    cluster = _rings(pairs, beyond, people)
    if (cluster >= 0).any():
        return cluster, False
    alike = _rings(pairs, kappa >= _ALIKE, people)
    for number in np.unique(alike[alike >= 0]).tolist():
        if _outvoting(np.flatnonzero(alike == number), pairs, labels, first):
            cluster[alike == number] = number
    return cluster, bool((cluster >= 0).any())


def _rings(pairs: NDArray[np.int32], linked: NDArray[np.bool_], people: int) -> NDArray[np.int64]:
    """Give the sets of annotators who are linked to most of each other; -1 for all others."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    cluster = np.full(people, -1, dtype=np.int64)
    links = pairs[linked]
    if not len(links):
        return cluster
    graph = csr_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(people, people))
    _, found = connected_components(graph, directed=False)
    compared = found[pairs[:, 0]][found[pairs[:, 0]] == found[pairs[:, 1]]]
    many = np.bincount(found[links[:, 0]], minlength=people)
    dense = many >= _DENSE * np.maximum(np.bincount(compared, minlength=people), 1)
    ring = dense & (np.bincount(found, minlength=people) >= _LEAST_RING)
    return np.where(ring[found], found, -1).astype(np.int64)


def _outvoting(
    members: NDArray[np.int64], pairs: NDArray[np.int32], labels: Labels, first: NDArray[np.int64]
) -> bool:
    """Test whether annotators who are alike copy, by what the others say.

    If they are alike because they are right, the others' votes are independent of each other given theirs. If
    they copy somebody's mistakes, the others agree with each other where they are wrong.
    """
    people, tasks, outputs = len(labels.annotators), len(labels.tasks), len(labels.outputs)
    who, task, label = (values[first] for values in (labels.annotator, labels.task, labels.label))
    inside = np.isin(who, members)
    votes = np.bincount(task[inside] * np.int64(outputs) + label[inside], minlength=tasks * outputs)
    votes = votes.reshape(tasks, outputs)
    theirs = np.where(votes.sum(axis=1) > 0, votes.argmax(axis=1), OPEN)
    outside = np.flatnonzero(~inside & (theirs[task] != OPEN))
    given = np.full((people, outputs, outputs), 0.0)
    np.add.at(given, (who[outside], theirs[task[outside]], label[outside]), 1.0)
    crowd = given.sum(axis=0) + 0.5 / outputs
    given += crowd / crowd.sum(axis=1, keepdims=True)
    rates = given / given.sum(axis=2, keepdims=True)
    said = {
        one: (task[rows], label[rows])
        for one in np.unique(who[outside]).tolist()
        for rows in (outside[who[outside] == one],)
    }
    others = pairs[~np.isin(pairs, members).any(axis=1)]
    same = expected = variance = open_ = 0.0
    for one, other in others.tolist():
        if one not in said or other not in said:
            continue
        both, mine, its = np.intersect1d(said[one][0], said[other][0], return_indices=True)
        if len(both) < _LEAST_COMMON:
            continue
        agree = (rates[one, theirs[both]] * rates[other, theirs[both]]).sum(axis=1)
        same += float((said[one][1][mine] == said[other][1][its]).sum())
        expected += float(agree.sum())
        variance += float((agree * (1 - agree)).sum())
        open_ += float((1 - agree).sum())
    beyond = same - expected
    few = len(said) < _LEAST_OUTSIDERS or open_ <= 0
    return not few and beyond > max(_DISAGREEMENT * np.sqrt(variance), _LEAST_DISAGREEMENT * open_)


def fair_consensus(
    labels: Labels, fusion: LabelFusion, first: NDArray[np.int64], cluster: NDArray[np.int64], watch: Watch
) -> FairConsensus:
    """Estimate classes and rates by expectation-maximisation, every set of suspects counting for one.

    Parameters
    ----------
    labels : Labels
    fusion : LabelFusion
        Its known tasks are held fixed.
    first : (M,) int64
        The votes that count.
    cluster : (K,) int64
    watch : Watch
    """
    assert labels.meaning is not None
    people, tasks = len(labels.annotators), len(labels.tasks)
    classes, outputs = len(labels.classes), len(labels.outputs)
    size = np.bincount(cluster[cluster >= 0], minlength=1)
    weight = np.where(cluster < 0, 1.0, 1.0 / np.maximum(size[cluster], 1))
    who, task, label = (values[first] for values in (labels.annotator, labels.task, labels.label))
    stands = labels.meaning[:, None] == np.arange(classes)
    share = np.full((tasks, classes), 1 / classes)
    for j in range(classes):
        share[:, j] += np.bincount(task, weight[who] * stands[label, j], minlength=tasks)
    share /= share.sum(axis=1, keepdims=True)
    known = np.flatnonzero(fusion.known != OPEN)
    pair = who.astype(np.int64) * outputs + label
    rates, posterior = np.zeros((people, classes, outputs)), np.log(share)
    own: dict[int, FloatArray] = {}
    for turn in range(_ROUNDS):
        watch(turn / _ROUNDS, "comparing annotators")
        share[known] = np.eye(classes)[fusion.known[known]]
        counts = np.empty((people, classes, outputs))
        for j in range(classes):
            row = np.bincount(pair, share[task, j], minlength=people * outputs)
            counts[:, j] = row.reshape(people, outputs)
        crowd = np.tensordot(weight, counts, axes=(0, 0)) + stands.T + 0.1
        counts += _SMOOTHING * crowd / crowd.sum(axis=1, keepdims=True)
        rates = np.log(counts / counts.sum(axis=2, keepdims=True))
        posterior = np.tile(np.log((share.sum(axis=0) + 1) / (tasks + classes)), (tasks, 1))
        for number in (-1, *np.unique(cluster[cluster >= 0]).tolist()):
            some = np.flatnonzero(cluster[who] == number)
            logs = weight[who[some], None] * rates[who[some], :, label[some]]
            given = np.stack(
                [np.bincount(task[some], logs[:, j], minlength=tasks) for j in range(classes)], 1
            )
            posterior += given
            if number >= 0:
                own[number] = np.asarray(given, dtype=np.float64)
        share = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    return FairConsensus(cluster, weight, rates, posterior, own)
