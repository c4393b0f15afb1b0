"""Annotators who say the same more often than two who look for themselves would: one copies the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.suspects import FairConsensus, fair_consensus, suspects
from raterscope.algorithms.labels.tempering import is_modelled
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["Copying", "copies", "copying_in_words"]

_LEAST_COMMON = 20
"""Tasks in common: of fewer, agreement says nothing."""

_MOST_PEOPLE, _MOST_PAIRS = 1_000, 10_000
"""Looked at are those with the most votes, and of their pairs those with the most tasks in common."""

_LEAST_SHARE = 0.5
"""From this share on one copies; people who err together on hard tasks stay below it."""

_CHANCE = 0.01
"""How probably anybody at all is named where nobody copies (Bonferroni)."""

_TOLD = 10
"""The most annotators that one sentence names."""

_OUTVOTED = (
    "They outvote the others, who agree with each other against them: these may share a mistake instead."
)

_SMOOTHING = 5.0
"""Votes that a class's row is drawn by towards how good the annotator is in all."""


@dataclass(frozen=True, eq=False)
class Copying:
    """Pairs of annotators who copy one another, or a third.

    Attributes
    ----------
    pairs : (P, 2) int32
    common : (P,) int64
        Tasks that both voted on.
    same : (P,) int64
        Of which both said the same.
    expected : (P,) float64
        Of which both would say the same if each looked for itself.
    outvoting : bool
        Whether they are so many that the votes cannot tell copying from a mistake that the rest share.
    """

    pairs: NDArray[np.int32]
    common: NDArray[np.int64]
    same: NDArray[np.int64]
    expected: FloatArray
    outvoting: bool = False

    @property
    def share(self) -> FloatArray:
        """Of the agreement that chance leaves open, how much there is, as Cohen's kappa has it: 1 is all."""
        return np.asarray((self.same - self.expected) / (self.common - self.expected))

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Put those together who copy, directly or by others; the largest group first."""
        group: dict[int, set[int]] = {}
        for one, other in self.pairs.tolist():
            joined = group.get(one, {one}) | group.get(other, {other})
            for member in joined:
                group[member] = joined
        found = {min(members): tuple(sorted(members)) for members in group.values()}
        return tuple(sorted(found.values(), key=lambda members: (-len(members), members)))


def copying_in_words(found: Copying, labels: Labels) -> tuple[str, ...]:
    """Name the annotators of each group, a sentence each."""
    sentences = []
    for members in found.groups():
        some = np.isin(found.pairs[:, 0], members)
        whole = float(found.common[some].sum())
        names = ", ".join(labels.annotators[one] for one in members[:_TOLD])
        more = f" and {len(members) - _TOLD:,} more" if len(members) > _TOLD else ""
        sentences.append(
            f"{len(members):,} annotators may copy from each other: {names}{more};"
            f" {found.same[some].sum() / whole:.0%} of their labels are the same,"
            f" {found.expected[some].sum() / whole:.0%} expected."
            + (f" {_OUTVOTED}" if found.outvoting else "")
        )
    return tuple(sentences)


def copies(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Copying:
    """Find the pairs of annotators whose votes are no two votes.

    Given the class of a task, annotators are taken for independent (dynamic combination paper, section 2).
    What the class is, is told here by all others: from each task's posterior both votes of the pair are
    taken away, so that people who copy do not make each other right. A larger ring would all the same: so
    sets of annotators who agree with each other far better than with the rest (`suspects`) count for one
    annotator in a consensus of its own, and for each other not at all. How often each says what where a class
    is true is estimated anew from that, drawn towards how often it is right in all; the products of these
    rates say how often both would agree. A pair is named where it agrees more often by more than chance
    explains in any of the pairs (normal tail, Bonferroni's correction) and has at least half of the
    agreement that is left open.
    Where most annotators are alike, they are suspects if the others agree with each other against them; only
    their own pairs are then looked at, for too few are left to judge the others by.

    Parameters
    ----------
    labels : Labels
        What was fused. Of repeated votes the first counts.
    fusion : LabelFusion
    watch : Watch

    Returns
    -------
    Copying
    """
    from scipy.sparse import csr_array
    from scipy.special import ndtri

    people, tasks = len(labels.annotators), len(labels.tasks)
    _, first = np.unique(labels.annotator.astype(np.int64) * tasks + labels.task, return_index=True)
    many = np.bincount(labels.annotator[first], minlength=people)
    looked_at = np.zeros(people, dtype=bool)
    looked_at[np.argsort(-many, kind="stable")[:_MOST_PEOPLE]] = True
    first = first[looked_at[labels.annotator[first]]]
    who, task, said = (values[first] for values in (labels.annotator, labels.task, labels.label))
    start = np.searchsorted(who, np.arange(people + 1))
    voted = csr_array((np.ones(len(who)), (who, task)), shape=(people, tasks))
    together = (voted @ voted.T).tocoo()
    wanted = np.flatnonzero((together.row < together.col) & (together.data >= _LEAST_COMMON))
    wanted = wanted[np.argsort(-together.data[wanted], kind="stable")[:_MOST_PAIRS]]
    pairs = np.column_stack([together.row, together.col])[wanted].astype(np.int32)
    tail = float(-ndtri(_CHANCE / max(len(pairs), 1)))
    count = np.asarray(together.data, dtype=np.float64)[wanted]
    same_of = _agreements(pairs, start, task, said, part(watch, 0.0, 0.3))
    cluster, outvoting = suspects(pairs, count, same_of, labels, first)
    if (cluster >= 0).any():
        fair = fair_consensus(labels, fusion, first, cluster, part(watch, 0.3, 0.5))
    else:
        rates = np.log(fusion.confusion.mean())
        posterior, power = _log_posterior(labels, fusion, rates)
        fair = FairConsensus(cluster, np.full(people, power), rates, posterior, {})
    found = []
    for at, (one, other) in enumerate(pairs.tolist()):
        if at % 64 == 0:
            watch(0.5 + 0.5 * at / len(pairs), "comparing annotators")
        same = int(same_of[at])
        if same < _LEAST_SHARE * count[at]:  # too little, whatever is expected
            continue
        if outvoting and not 0 <= cluster[one] == cluster[other]:  # too few are left to judge others by
            continue
        both, first_said, second_said = _common(one, other, start, task, said)
        left = fair.without((one, other), both, (first_said, second_said))
        agree = left @ (_rates(left, first_said, labels) * _rates(left, second_said, labels)).sum(axis=1)
        agree = np.clip(agree, 0.0, 1.0)
        expected, spread = float(agree.sum()), float(np.sqrt((agree * (1 - agree)).sum()))
        # Half a task is the step from one whole number to the next.
        beyond = same - expected - 0.5 > tail * spread
        if beyond and same - expected >= _LEAST_SHARE * (len(both) - expected):
            found.append((one, other, len(both), same, expected))
    columns = np.array(found, dtype=np.float64).reshape(len(found), 5)
    return Copying(
        columns[:, :2].astype(np.int32), columns[:, 2].astype(np.int64), columns[:, 3].astype(np.int64),
        columns[:, 4], outvoting,
    )  # fmt: skip


def _common(
    one: int, other: int, start: NDArray[np.int64], task: NDArray[np.integer], said: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """Give the tasks that two annotators voted on, and both votes on each."""
    mine, theirs = slice(start[one], start[one + 1]), slice(start[other], start[other + 1])
    both, here, there = np.intersect1d(task[mine], task[theirs], assume_unique=True, return_indices=True)
    return both, said[mine][here], said[theirs][there]


def _agreements(
    pairs: NDArray[np.int32], start: NDArray[np.int64], task: NDArray[np.integer],
    said: NDArray[np.integer], watch: Watch,
) -> FloatArray:  # fmt: skip
    """Count the common tasks on which each pair agrees."""
    same = np.zeros(len(pairs))
    for at, (one, other) in enumerate(pairs.tolist()):
        if at % 256 == 0:
            watch(at / len(pairs), "comparing annotators")
        _, first_said, second_said = _common(one, other, start, task, said)
        same[at] = (first_said == second_said).sum()
    return same


def _log_posterior(labels: Labels, fusion: LabelFusion, rates: FloatArray) -> tuple[FloatArray, float]:
    """Give the logarithm of a posterior from which votes can be taken away, and what each counts for.

    An opinion pool and shares of votes are no products of likelihoods. They are also less sure than the
    posterior of independent votes, so that independent annotators would seem to agree too often. The classes
    are then estimated from the annotators' rates.
    """
    if is_modelled(fusion):
        return np.log(np.maximum(fusion.posterior, 1e-300)), fusion.power
    total = np.tile(np.log(np.maximum(fusion.shares, 1e-300)), (len(fusion.posterior), 1))
    for j in range(total.shape[1]):
        votes = rates[labels.annotator, j, labels.label]
        total[:, j] += np.bincount(labels.task, votes, minlength=len(total))
    held = np.flatnonzero(fusion.known != OPEN)
    total[held] = np.log(np.maximum(fusion.posterior[held], 1e-300))
    return total, 1.0


def _rates(weight: FloatArray, said: NDArray[np.integer], labels: Labels) -> FloatArray:
    """Give how often each output is given where a class is true, (J, L), by weights (M, J) of the classes."""
    assert labels.meaning is not None
    counts = np.zeros((len(labels.outputs), weight.shape[1]))
    np.add.at(counts, said, weight)
    right = labels.meaning[:, None] == np.arange(weight.shape[1])
    share = float(counts[right].sum() / len(said))
    # Wrong ones as all wrong ones are spread, so that a class that was hardly seen is one like the others.
    wrong = np.where(right, 0.0, np.where(right, 0.0, counts).sum(axis=1, keepdims=True) + 1e-9)
    usual = np.where(right, share / np.maximum(right.sum(axis=0), 1), 0.0)
    usual += (1 - share) * wrong / wrong.sum(axis=0)
    counts += _SMOOTHING * usual / usual.sum(axis=0)
    return np.asarray((counts / counts.sum(axis=0)).T)
