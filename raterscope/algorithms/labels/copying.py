"""Detection of annotators who copy: pairs that agree more than independent annotators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels, has_own_matrices
from raterscope.algorithms.labels.result import Copying, LabelResult
from raterscope.algorithms.labels.tempering import is_modelled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.text import listed, percent

_MIN_PARTNERS = 4
"""Minimum number of annotators with common tasks for estimating an annotator's skill."""

_RANK = 0.4
"""Quantile of an annotator's agreements with others that represents independent ones; a ring lies above it.
"""


_SUSPICIOUS = 3.0
"""Minimum agreement of suspects beyond that explained by skills, in standard deviations."""

_MIN_RING, _DENSE = 8, 0.7
"""Minimum members of a ring, and minimum share of their pairs that agree too well: smaller rings hardly
affect the result, and a chain of good annotators is not a ring.
"""

_ALIKE = 0.9
"""Minimum chance-corrected agreement of a ring that may outvote the others."""

_SAME, _FEWEST = 0.98, 3
"""Minimum agreement of a smaller ring that may outvote the others, and minimum number of its members."""

_MIN_AGREEMENT = 0.05
"""Minimum chance-corrected agreement outside a ring. If the others guess, good annotators look like a ring.
"""

_MIN_OUTSIDERS = 3
_DISAGREEMENT, _MIN_DISAGREEMENT = 5.0, 0.1
"""Minimum evidence that annotators outside a ring agree with each other against it: in standard deviations,
and as a share of the agreement that the ring's labels do not explain.
"""

_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class FairConsensus:
    """Log probabilities of the classes, with methods to remove votes."""

    # (K,): set of suspects to which each annotator belongs, -1 for none. Each set counts as one annotator.
    cluster: NDArray[np.int64]
    weight: FloatArray  # (K,): weight of each vote of an annotator
    rates: FloatArray  # (K, J, L): logarithms
    posterior: FloatArray  # (N, J)
    own: dict[int, FloatArray]  # by cluster: contribution of the set

    def without(
        self, pair: tuple[int, int], task: NDArray[np.integer], labels: tuple[NDArray[np.integer], ...]
    ) -> FloatArray:
        """Return the probabilities on some tasks, (n, J), without the votes of a pair and of their sets.

        `task`: (n,). `labels`: two of (n,), the pair's votes on these tasks.
        """
        remaining = self.posterior[task]
        for turn, (annotator, label) in enumerate(zip(pair, labels, strict=True)):
            number = int(self.cluster[annotator])
            if number < 0:
                remaining = remaining - self.weight[annotator] * self.rates[annotator][:, label].T
            elif turn == 0 or number != self.cluster[pair[0]]:
                remaining = remaining - self.own[number][task]
        remaining = np.exp(remaining - remaining.max(axis=1, keepdims=True))
        return np.asarray(remaining / remaining.sum(axis=1, keepdims=True))


def find_suspects(
    pairs: NDArray[np.int32], common: FloatArray, same: FloatArray, labels: Labels, first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], bool]:
    """Find sets of annotators who agree with each other far better than with the others.

    With one skill s for each annotator, the chance-corrected agreement of two independent annotators is s_1
    s_2, for any classes. Copiers in a ring agree better with each other, but not with others. If most
    annotators belong to the ring, they look like good annotators instead, see `_outvoting`.

    `pairs`: (P, 2).
    `common`, `same`: (P,), numbers of common tasks, and of those on which both agree. `first`: (M,), indices
    of the votes that count. The result is the set of each annotator, (K,), -1 for none, and whether the sets
    outvote the others.
    """
    annotators = len(labels.annotators)
    cluster = np.full(annotators, -1, dtype=np.int64)
    excess = skill_excess(pairs, common, same, labels)
    if excess is None:
        return cluster, False
    kappa, beyond, _ = excess
    cluster = _linked_sets(pairs, beyond, annotators)
    if (cluster >= 0).any():
        outside = (cluster[pairs] < 0).all(axis=1)
        judged = kappa[outside] @ common[outside] >= _MIN_AGREEMENT * common[outside].sum()
        return np.where(judged, cluster, -1), False
    for least, fewest in ((_ALIKE, _MIN_RING), (_SAME, _FEWEST)):
        alike = _linked_sets(pairs, kappa >= least, annotators, fewest)
        for number in np.unique(alike[alike >= 0]).tolist():
            members = np.flatnonzero(alike == number)
            if (cluster[members] < 0).all() and _outvoting(members, pairs, labels, first):
                cluster[members] = cluster.max() + 1
    return cluster, bool((cluster >= 0).any())


def skill_excess(
    pairs: NDArray[np.int32],
    common: FloatArray,
    same: FloatArray,
    labels: Labels,
    deviations: float = _SUSPICIOUS,
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Compare the agreement of pairs with that expected from their skills; None if no skill can be estimated.

    `deviations`: standard deviations beyond the expected agreement. The results, each (P,), are the
    chance-corrected agreement, whether it is far beyond the product of the skills, and whether both skills
    are known.
    """
    annotators = len(labels.annotators)
    use = labels.votes_of_outputs() / max(len(labels), 1)
    chance = float(np.square(use).sum())
    if not len(pairs) or chance >= 1:
        return None
    kappa = (same / common - chance) / (1 - chance)
    annotator, value = pairs.T.ravel(), np.concatenate([kappa, kappa])
    order = np.lexsort((value, annotator))
    edges = np.searchsorted(annotator[order], np.arange(annotators + 1))
    many = np.diff(edges)
    edge = np.minimum(edges[:-1] + (_RANK * many).astype(np.int64), len(value) - 1)
    middle = np.where(many >= _MIN_PARTNERS, value[order][edge], np.nan)
    if not np.isfinite(middle).any():
        return None
    usual = np.sqrt(max(float(np.nanmedian(middle)), 0.01))
    skill = np.clip(middle / usual, 0.0, 1.0)
    expected = skill[pairs[:, 0]] * skill[pairs[:, 1]]
    agree = np.clip(expected + (1 - expected) * chance, 0.0, 1.0)
    spread = np.sqrt(np.maximum(agree * (1 - agree), 0.01) / common) / (1 - chance)
    beyond = (kappa - expected >= _MIN_SHARE * (1 - expected)) & (kappa - expected > deviations * spread)
    return kappa, beyond, np.isfinite(expected)


def _linked_sets(
    pairs: NDArray[np.int32], linked: NDArray[np.bool_], annotators: int, fewest: int = _MIN_RING
) -> NDArray[np.int64]:
    """Return sets in which most pairs of annotators are linked; -1 for annotators in no set."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    cluster = np.full(annotators, -1, dtype=np.int64)
    links = pairs[linked]
    if not len(links):
        return cluster
    graph = csr_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(annotators, annotators))
    _, rings = connected_components(graph, directed=False)
    compared = rings[pairs[:, 0]][rings[pairs[:, 0]] == rings[pairs[:, 1]]]
    many = np.bincount(rings[links[:, 0]], minlength=annotators)
    dense = many >= _DENSE * np.maximum(np.bincount(compared, minlength=annotators), 1)
    ring = dense & (np.bincount(rings, minlength=annotators) >= fewest)
    return np.where(ring[rings], rings, -1).astype(np.int64)


def _outvoting(
    members: NDArray[np.int64], pairs: NDArray[np.int32], labels: Labels, first: NDArray[np.int64]
) -> bool:
    """Test whether similar annotators copy, from the votes of the others.

    If they agree because they are right, the votes of the others are independent given their votes. If they
    copy mistakes, the others agree with each other on the wrong answers.
    """
    annotators, tasks, outputs = len(labels.annotators), len(labels.tasks), len(labels.outputs)
    voter, task, label = (values[first] for values in (labels.annotator, labels.task, labels.label))
    inside = np.isin(voter, members)
    votes = np.bincount(task[inside] * np.int64(outputs) + label[inside], minlength=tasks * outputs)
    votes = votes.reshape(tasks, outputs)
    majority = np.where(votes.sum(axis=1) > 0, votes.argmax(axis=1), OPEN)
    outside = np.flatnonzero(~inside & (majority[task] != OPEN))
    confusion = np.full((annotators, outputs, outputs), 0.0)
    np.add.at(confusion, (voter[outside], majority[task[outside]], label[outside]), 1.0)
    crowd = confusion.sum(axis=0) + 0.5 / outputs
    confusion += crowd / crowd.sum(axis=1, keepdims=True)
    rates = confusion / confusion.sum(axis=2, keepdims=True)
    answers = {
        annotator: (task[rows], label[rows])
        for annotator in np.unique(voter[outside]).tolist()
        for rows in (outside[voter[outside] == annotator],)
    }
    others = pairs[~np.isin(pairs, members).any(axis=1)]
    same = expected = variance = open_ = 0.0
    for annotator, other in others.tolist():
        if annotator not in answers or other not in answers:
            continue
        both, own_rows, its = np.intersect1d(answers[annotator][0], answers[other][0], return_indices=True)
        if len(both) < _MIN_COMMON:
            continue
        agree = (rates[annotator, majority[both]] * rates[other, majority[both]]).sum(axis=1)
        same += float((answers[annotator][1][own_rows] == answers[other][1][its]).sum())
        expected += float(agree.sum())
        variance += float((agree * (1 - agree)).sum())
        open_ += float((1 - agree).sum())
    beyond = same - expected
    few = len(answers) < _MIN_OUTSIDERS or open_ <= 0
    return not few and beyond > max(_DISAGREEMENT * np.sqrt(variance), _MIN_DISAGREEMENT * open_)


def fair_consensus(
    labels: Labels,
    fusion: LabelFusion,
    first: NDArray[np.int64],
    cluster: NDArray[np.int64],
    watch: Watch,
    start: FloatArray | None = None,
) -> FairConsensus:
    """Estimate classes and rates by EM; each set of suspects counts as one annotator.

    `fusion`: its known tasks are held fixed. `first`: (M,), indices of the votes that count. `cluster`: (K,),
    set of each annotator. `start`: (N, J), initial probabilities; by default shares of these votes.
    """
    assert labels.meaning is not None
    annotators, tasks = len(labels.annotators), len(labels.tasks)
    classes, outputs = len(labels.classes), len(labels.outputs)
    size = np.bincount(cluster[cluster >= 0], minlength=1)
    weight = np.where(cluster < 0, 1.0, 1.0 / np.maximum(size[cluster], 1))
    annotator, task, label = (values[first] for values in (labels.annotator, labels.task, labels.label))
    means_class = labels.meaning[:, None] == np.arange(classes)
    share = _vote_shares(labels, first, weight) if start is None else start.copy()
    known = np.flatnonzero(fusion.known != OPEN)
    pair = annotator.astype(np.int64) * outputs + label
    rates, posterior = np.zeros((annotators, classes, outputs)), share
    own: dict[int, FloatArray] = {}
    for turn in range(_ROUNDS):
        watch(turn / _ROUNDS, "comparing annotators")
        share[known] = np.eye(classes)[fusion.known[known]]
        counts = np.empty((annotators, classes, outputs))
        for j in range(classes):
            row = np.bincount(pair, share[task, j], minlength=annotators * outputs)
            counts[:, j] = row.reshape(annotators, outputs)
        crowd = np.tensordot(weight, counts, axes=(0, 0)) + means_class.T + 0.1
        counts += _SMOOTHING * crowd / crowd.sum(axis=1, keepdims=True)
        rates = np.log(counts / counts.sum(axis=2, keepdims=True))
        posterior = np.tile(np.log((share.sum(axis=0) + 1) / (tasks + classes)), (tasks, 1))
        for number in (-1, *np.unique(cluster[cluster >= 0]).tolist()):
            members = np.flatnonzero(cluster[annotator] == number)
            logs = weight[annotator[members], None] * rates[annotator[members], :, label[members]]
            voted_rates = np.stack(
                [np.bincount(task[members], logs[:, j], minlength=tasks) for j in range(classes)], 1
            )
            posterior += voted_rates
            if number >= 0:
                own[number] = np.asarray(voted_rates, dtype=np.float64)
        share = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    return FairConsensus(cluster, weight, rates, posterior, own)


def _vote_shares(labels: Labels, votes: NDArray[np.int64], weight: FloatArray | None = None) -> FloatArray:
    """Return the votes' shares by class, (N, J), with an additional vote on each task for all classes."""
    assert labels.meaning is not None
    classes, tasks = len(labels.classes), len(labels.tasks)
    task, meant = labels.task[votes], labels.meaning[labels.label[votes]]
    weights = np.ones(len(votes)) if weight is None else weight[labels.annotator[votes]]
    share = np.full((tasks, classes), 1 / classes)
    for j in range(classes):
        share[:, j] += np.bincount(task, weights * (meant == j), minlength=tasks)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


_MIN_COMMON = 20
"""Minimum number of common tasks."""

_MAX_ANNOTATORS, _MAX_PAIRS = 1_000, 10_000
"""Maximum number of annotators (those with most votes), and of their pairs (those with most common tasks),
that are tested.
"""

_MIN_SHARE = 0.5
"""Minimum share of copied votes; annotators with correlated errors on hard tasks stay below it."""

_CHANCE = 0.01
"""Probability of any false positive if no annotator copies (Bonferroni)."""

_NAMED = 10
"""Maximum number of annotators named in a sentence."""

_OUTVOTED = "They outvote the others, who agree with each other. The others may also share a mistake instead."

_SMOOTHING = 5.0
"""Weight of the annotator's overall accuracy in a class's row, in votes."""


def copying_in_words(copying: Copying, labels: Labels) -> tuple[str, ...]:
    """Describe each group of annotators in a sentence."""
    sentences = []
    for members in copying.groups():
        in_group = np.isin(copying.pairs[:, 0], members)
        total = float(copying.common[in_group].sum())
        names = listed([labels.annotators[annotator] for annotator in members], _NAMED)
        sentences.append(
            f"{len(members):,} annotators may copy from each other: {names};"
            f" {percent(copying.same[in_group].sum() / total)} of their labels are the same,"
            f" {percent(copying.expected[in_group].sum() / total)} expected."
            + (f" {_OUTVOTED}" if copying.outvoting else "")
        )
    return tuple(sentences)


def copying_of(labels: Labels, result: LabelResult, watch: Watch = silent) -> Copying:
    """Return the possible copiers stored in a result, or find them if it has none."""
    return find_copies(labels, result.fusion, watch) if result.copying is None else result.copying


def find_copies(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Copying:
    """Find pairs of annotators whose votes are not independent.

    Given the class of a task, annotators are assumed independent (dynamic combination paper, section 2). The
    posterior of each task's class is computed without both votes of the pair, so that copiers do not confirm
    each other. In larger rings they still would. Sets of annotators who agree with each other far better than
    with the others (`find_suspects`) therefore count as one annotator in a separate consensus, and are
    excluded when their own members are compared. Each annotator's rates of outputs by class are estimated
    from it, shrunk towards the overall accuracy; their products give the expected agreement. A pair is listed
    if its agreement exceeds that significantly (binomial tail, Bonferroni's correction), has at least half of
    the agreement beyond chance, and is far beyond the product of both skills, which does not depend on the
    few votes that others gave to a task. Skills follow from the agreement with others, and from the
    consensus. Pairs whose agreement is explained by a class that part of the crowd misreads are removed
    (`_without_shared_misreadings`). If most annotators agree, they are suspects if the others agree with each
    other against them. Only their own pairs are then tested: too few annotators remain to test the others.

    `labels`: input of the fusion. The first of repeated votes counts.
    """
    if not has_own_matrices(labels):
        return _copying([], outvoting=False)
    from scipy.sparse import csr_array
    from scipy.special import ndtri, softmax

    annotators, tasks = len(labels.annotators), len(labels.tasks)
    busy = np.zeros(annotators, dtype=bool)  # votes of others need not be sorted
    busy[np.argsort(-labels.votes_of_annotators(), kind="stable")[: 2 * _MAX_ANNOTATORS]] = True
    votes = np.flatnonzero(busy[labels.annotator])
    _, first = np.unique(
        labels.annotator[votes].astype(np.int64) * tasks + labels.task[votes], return_index=True
    )
    first = votes[first]
    many = np.bincount(labels.annotator[first], minlength=annotators)
    looked_at = np.zeros(annotators, dtype=bool)
    looked_at[np.argsort(-many, kind="stable")[:_MAX_ANNOTATORS]] = True
    first = first[looked_at[labels.annotator[first]]]
    voter, task, label = (values[first] for values in (labels.annotator, labels.task, labels.label))
    start = np.searchsorted(voter, np.arange(annotators + 1))
    voted = csr_array((np.ones(len(voter)), (voter, task)), shape=(annotators, tasks))
    together = (voted @ voted.T).tocoo()
    requested = np.flatnonzero((together.row < together.col) & (together.data >= _MIN_COMMON))
    requested = requested[np.argsort(-together.data[requested], kind="stable")[:_MAX_PAIRS]]
    pairs = np.column_stack([together.row, together.col])[requested].astype(np.int32)
    chance = _CHANCE / max(len(pairs), 1)
    count = np.asarray(together.data, dtype=np.float64)[requested]
    same_of = _agreements(pairs, start, task, label, part(watch, 0.0, 0.3))
    cluster, outvoting = find_suspects(pairs, count, same_of, labels, first)
    likely = same_of >= _MIN_SHARE * count  # with less, whatever is expected
    excess = skill_excess(pairs, count, same_of, labels, float(-ndtri(chance)))
    if excess is not None and not outvoting:
        _, beyond_skills, known = excess
        likely &= beyond_skills | ~known
    possible = np.flatnonzero(likely)
    if not len(possible):
        return _copying([], outvoting)
    if (cluster >= 0).any():
        fair = fair_consensus(labels, fusion, first, cluster, part(watch, 0.3, 0.5))
    else:
        rates = np.log(fusion.confusion.mean())
        posterior, power = _log_posterior(labels, fusion, rates)
        fair = FairConsensus(cluster, np.full(annotators, power), rates, posterior, {})
    has_suspects = bool((cluster >= 0).any())
    right = _accuracy(labels, first, softmax(fair.posterior, axis=1) if has_suspects else fusion.posterior)
    by_chance = float(np.square(labels.votes_of_outputs() / len(labels)).sum())
    skill = np.clip((right - by_chance) / max(1 - by_chance, 1e-9), 0.0, 1.0)
    pairs_found = []
    for at, (pair, (annotator, other)) in enumerate(zip(possible, pairs[possible].tolist(), strict=True)):
        if at % 64 == 0:
            watch(0.5 + 0.4 * at / len(possible), "comparing annotators")
        same = int(same_of[pair])
        if outvoting and not 0 <= cluster[annotator] == cluster[other]:  # too few are left to judge others by
            continue
        both, first_label, second_label = _common_tasks(annotator, other, start, task, label)
        remaining = fair.without((annotator, other), both, (first_label, second_label))
        agree = remaining @ (
            _rates(remaining, first_label, labels) * _rates(remaining, second_label, labels)
        ).sum(axis=1)
        # If the others vote little or mostly guess, the agreement expected from them is too low.
        by_skill = skill[annotator] * skill[other]
        usual = np.full(len(both), by_skill + (1 - by_skill) * by_chance)
        if _is_beyond(same, agree, chance) and (outvoting or _is_beyond(same, usual, chance)):
            pairs_found.append((annotator, other, len(both), same, float(agree.sum())))
    found = _copying(pairs_found, outvoting)
    if outvoting or not pairs_found:
        return found
    return _without_shared_misreadings(found, labels, fusion, first, chance, watch)


def _accuracy(labels: Labels, votes: NDArray[np.int64], posterior: FloatArray) -> FloatArray:
    """Return the share of correct votes of each annotator, (K,); 0 without votes."""
    assert labels.meaning is not None
    voter, meant = labels.annotator[votes], labels.meaning[labels.label[votes]]
    right = np.where(meant == OPEN, 0.0, posterior[labels.task[votes], meant])
    sums, counts = (np.bincount(voter, weight, len(labels.annotators)) for weight in (right, None))
    return np.asarray(sums / np.maximum(counts, 1))


def _is_beyond(same: int, agree: FloatArray, chance: float) -> bool:
    """Test whether agreement on some tasks is above its probabilities, and mostly due to copies.

    The binomial tail is an upper bound: independent events with the same mean probability have the widest
    tails if all are equally probable ([hoeffding1956]_).

    References
    ----------
    .. [hoeffding1956] W. Hoeffding, "On the distribution of the number of successes in independent trials",
       Annals of Mathematical Statistics 27 (1956) 713-721, doi:10.1214/aoms/1177728178.
    """
    from scipy.special import bdtrc

    many, expected = len(agree), float(np.clip(agree, 0.0, 1.0).sum())
    mostly = same - expected >= _MIN_SHARE * (many - expected)
    return bool(mostly and same > expected and bdtrc(same - 1, many, expected / many) < chance)


def _without_shared_misreadings(
    found: Copying, labels: Labels, fusion: LabelFusion, first: NDArray[np.int64], chance: float, watch: Watch
) -> Copying:
    """Keep the pairs whose agreement the behaviour of other annotators does not explain.

    If part of a crowd misreads a class, the consensus may follow either part, and agreement within a part
    seems to be copied. The classes are therefore estimated again from three starts, including the suspects'
    own answers; the most likely estimate is used. The suspects count as one annotator in it, and are excluded
    from the classes that then explain their agreement. Each annotator's rates maximise the likelihood of all
    their votes given these classes: a class that others also misread is expected to be misread. If most votes
    are from suspects, each group is compared with all others.
    """
    from scipy.special import logsumexp, softmax

    groups = found.groups()
    accused, voter = np.unique(found.pairs), labels.annotator[first]
    if np.isin(voter, accused).mean() < 0.5:
        groups = (tuple(accused.tolist()),)
    kept = np.zeros(len(found.pairs), dtype=bool)
    for group in groups:
        inside = np.isin(voter, group)
        one = np.where(np.isin(np.arange(len(labels.annotators)), group), 0, -1)
        fits = [
            fair_consensus(labels, fusion, first, one, part(watch, 0.9, 0.9), start)
            for start in (fusion.posterior, None, _vote_shares(labels, first[inside]))
        ]
        fit = max(fits, key=lambda fit: logsumexp(fit.posterior, axis=1).sum())
        posterior = softmax(fit.posterior - fit.own[0], axis=1)
        votes = {member: first[voter == member] for member in group}
        rates = {member: _likeliest_rates(labels, rows, posterior) for member, rows in votes.items()}
        for at in np.flatnonzero(np.isin(found.pairs[:, 0], group)).tolist():
            annotator, other = found.pairs[at].tolist()
            both = np.intersect1d(labels.task[votes[annotator]], labels.task[votes[other]])
            agree = posterior[both] @ (rates[annotator] * rates[other]).sum(axis=1)
            kept[at] = _is_beyond(int(found.same[at]), agree, chance)
    return Copying(found.pairs[kept], found.common[kept], found.same[kept], found.expected[kept])


def _likeliest_rates(labels: Labels, votes: NDArray[np.int64], posterior: FloatArray) -> FloatArray:
    """Return an annotator's rates of outputs by class, (J, L), given the others' probabilities, (N, J)."""
    assert labels.meaning is not None
    task, label = labels.task[votes], labels.label[votes]
    others = posterior[task]
    given = (label[:, None] == np.arange(len(labels.outputs))).astype(np.float64)
    usual = others.T @ given + 1 / given.shape[1]
    usual /= usual.sum(axis=1, keepdims=True)
    rates = usual
    for _ in range(_ROUNDS):
        share = others * rates[:, label].T
        share /= share.sum(axis=1, keepdims=True)
        rates = share.T @ given + usual
        rates /= rates.sum(axis=1, keepdims=True)
    return np.asarray(rates)


def _copying(pairs: list[tuple[int, int, int, int, float]], outvoting: bool) -> Copying:
    """Make the result from pairs: both annotators, common tasks, agreements, and expected agreements."""
    columns = np.array(pairs, dtype=np.float64).reshape(len(pairs), 5)
    return Copying(
        columns[:, :2].astype(np.int32), columns[:, 2].astype(np.int64), columns[:, 3].astype(np.int64),
        columns[:, 4], outvoting,
    )  # fmt: skip


def _common_tasks(
    annotator: int,
    other: int,
    start: NDArray[np.int64],
    task: NDArray[np.integer],
    label: NDArray[np.integer],
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """Return the tasks that two annotators voted on, and both votes on each."""
    first_votes, second_votes = (
        slice(start[annotator], start[annotator + 1]),
        slice(start[other], start[other + 1]),
    )
    both, first_rows, second_rows = np.intersect1d(
        task[first_votes], task[second_votes], assume_unique=True, return_indices=True
    )
    return both, label[first_votes][first_rows], label[second_votes][second_rows]


def _agreements(
    pairs: NDArray[np.int32], start: NDArray[np.int64], task: NDArray[np.integer],
    label: NDArray[np.integer], watch: Watch,
) -> FloatArray:  # fmt: skip
    """Count the common tasks on which each pair agrees."""
    same = np.zeros(len(pairs))
    for at, (annotator, other) in enumerate(pairs.tolist()):
        if at % 256 == 0:
            watch(at / len(pairs), "comparing annotators")
        _, first_label, second_label = _common_tasks(annotator, other, start, task, label)
        same[at] = (first_label == second_label).sum()
    return same


def _log_posterior(labels: Labels, fusion: LabelFusion, rates: FloatArray) -> tuple[FloatArray, float]:
    """Return a log posterior from which votes can be removed, and the weight of each vote.

    Opinion pools and shares of votes are not products of likelihoods. They are also less certain than the
    posterior of independent votes, so that independent annotators would seem to agree too often. For these,
    the classes are estimated again from the annotators' rates.
    """
    if is_modelled(fusion):
        return np.log(np.maximum(fusion.posterior, 1e-300)), fusion.power
    total = np.tile(np.log(np.maximum(fusion.shares, 1e-300)), (len(fusion.posterior), 1))
    for j in range(total.shape[1]):
        votes = rates[labels.annotator, j, labels.label]
        total[:, j] += np.bincount(labels.task, votes, minlength=len(total))
    fixed = np.flatnonzero(fusion.known != OPEN)
    total[fixed] = np.log(np.maximum(fusion.posterior[fixed], 1e-300))
    return total, 1.0


def _rates(weight: FloatArray, label: NDArray[np.integer], labels: Labels) -> FloatArray:
    """Return the rates of outputs by class, (J, L), from weights (M, J) of the classes."""
    assert labels.meaning is not None
    counts = np.zeros((len(labels.outputs), weight.shape[1]))
    np.add.at(counts, label, weight)
    right = labels.meaning[:, None] == np.arange(weight.shape[1])
    share = float(counts[right].sum() / len(label))
    # Wrong outputs are distributed as all wrong outputs, so that a rare class resembles the others.
    wrong = np.where(right, 0.0, np.where(right, 0.0, counts).sum(axis=1, keepdims=True) + 1e-9)
    usual = np.where(right, share / np.maximum(right.sum(axis=0), 1), 0.0)
    usual += (1 - share) * wrong / np.maximum(wrong.sum(axis=0), 1e-9)
    counts += _SMOOTHING * usual / usual.sum(axis=0)
    return np.asarray((counts / counts.sum(axis=0)).T)
