"""Inner loops of detection: the log probability of votes, annotators' odds, draws of all parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

EDGE = 1e-6
"""Rates are kept this far from 0 and 1."""

FLUSH = 16
"""Factors that are multiplied before a logarithm is taken: all are between 1e-6 and 1e14."""


class StackedVotes(NamedTuple):
    """Votes of I images, one behind the other: M clusters and R annotators in all.

    Attributes
    ----------
    clusters, annotators : (I + 1,) int64
        First cluster and first annotator of each image.
    first : (M + 1,) int32
        First vote on each cluster.
    annotator : (votes,) int32
        Who marked each cluster, counted within the image.
    count : (M,) float64
        Number of these annotators, by weight.
    weighted : (I,) bool
        Whether some annotator of the image does not count fully.
    weights : (R,) float64
        Weight of each annotator.
    drawn : (M,) float64
        Tempered log probability of the votes on an artefact.
    rest : (M,) float64
        The remaining part, on an artefact or a structure.
    known : (M,) bool
        Clusters whose known truth is held fixed.
    truth : (M,) float64
        There 1 or 0.
    trust : (I,) float64
        Tempering: power of the likelihood of votes.
    """

    clusters: Array
    annotators: Array
    first: Array
    annotator: Array
    count: Array
    weighted: Array
    weights: Array
    drawn: Array
    rest: Array
    known: Array
    truth: Array
    trust: Array


class StackedPrior(NamedTuple):
    """Priors of I images with R annotators in all.

    Attributes
    ----------
    hit, miss, quiet, false : (R,) float64
        Votes of the prior of the annotators' rates.
    kinds : (I, 3) float64
    places : (I,) float64
        `Prior.places`.
    share : (I, K) float64
    strength : (I,) float64
        Weight of `share`.
    """

    hit: Array
    miss: Array
    quiet: Array
    false: Array
    kinds: Array
    places: Array
    share: Array
    strength: Array


class StackedState(NamedTuple):
    """Parameters of I images with R annotators in all: (R,), (R,), (I, 3), (I, K) float64."""

    odds: Array
    chance: Array
    kinds: Array
    share: Array


class StackedLooks(NamedTuple):
    """Posteriors of M clusters of several images: (M, K), (M,), (M,) float64."""

    structure: Array
    artefact: Array
    chance: Array


@compiled(error_model="numpy")
def _softplus(value: float) -> float:
    return float(max(value, 0.0) + np.log1p(np.exp(-abs(value))))


@compiled(error_model="numpy")
def _omitted(odds: Array, chance: Array, shift: Array, worth: Array, quiet: Array) -> float:
    """Return the log probability of no marks by chance; add that on a structure, by node, to `quiet`."""
    product, missed = 1.0, 0.0
    if len(worth):
        for r in range(len(odds)):
            missed += worth[r] * np.log1p(-chance[r])
            for k in range(len(shift)):
                quiet[k] -= worth[r] * _softplus(odds[r] + shift[k])
        return float(missed)
    for r in range(len(odds)):
        product *= 1.0 - chance[r]
        if r % FLUSH == FLUSH - 1:
            missed += np.log(product)
            product = 1.0
    ratio, lift, factors = np.exp(odds), np.exp(shift), np.ones(len(shift))
    for r in range(len(odds)):
        for k in range(len(shift)):  # the nodes inside, for vector instructions
            factors[k] *= 1.0 + ratio[r] * lift[k]
        if r % FLUSH == FLUSH - 1:
            for k in range(len(shift)):
                quiet[k] -= np.log(factors[k])
                factors[k] = 1.0
    for k in range(len(shift)):
        quiet[k] -= np.log(factors[k])
    return float(missed + np.log(product))


@compiled(error_model="numpy")
def weigh(votes: StackedVotes, odds: Array, chance: Array, shift: Array, looks: StackedLooks) -> None:
    """Compute the log probability of each cluster's votes (eqs. 21, 22).

    Parameters
    ----------
    votes : StackedVotes
    odds, chance : (R,) float64
    shift : (K,) float64
    looks : StackedLooks
        Written: as a structure at each node, and as clicks that met by chance.
    """
    for i in range(len(votes.trust)):
        begin, end = votes.clusters[i], votes.clusters[i + 1]
        own, other = votes.annotators[i], votes.annotators[i + 1]
        _weigh(
            votes.first[begin : end + 1], votes.annotator, votes.count[begin:end],
            votes.weights[own : other if votes.weighted[i] else own], odds[own:other], chance[own:other],
            shift, looks.structure[begin:end], looks.chance[begin:end],
        )  # fmt: skip


@compiled(error_model="numpy")
def _weigh(
    first: Array, annotator: Array, count: Array, worth: Array, odds: Array, chance: Array, shift: Array,
    present: Array, by_chance: Array,
) -> None:  # fmt: skip
    """Compute the log probability of the votes on each cluster of an image.

    Parameters
    ----------
    first : (M + 1,), annotator : (votes,) int32
        Annotators who marked each cluster.
    count : (M,) float64
        Number of these annotators, by weight.
    worth : (R,) float64
        Weights; empty where all count fully.
    odds, chance : (R,) float64
    shift : (K,) float64
    present : (M, K) float64
        Written: as a structure at each node.
    by_chance : (M,) float64
        Written: as clicks that met by chance.
    """
    quiet = np.zeros(len(shift))
    missed = _omitted(odds, chance, shift, worth, quiet)
    evidence, likely = odds, np.log(chance / (1 - chance))
    if len(worth):
        evidence, likely = worth * evidence, worth * likely
    for m in range(len(count)):
        own, met = 0.0, missed
        for p in range(first[m], first[m + 1]):
            own += evidence[annotator[p]]
            met += likely[annotator[p]]
        by_chance[m] = met
        for k in range(len(shift)):
            present[m, k] = own + count[m] * shift[k] + quiet[k]


@compiled(error_model="numpy")
def expect(
    first: Array, annotator: Array, count: Array, worth: Array, drawn: Array, rest: Array, known: Array,
    truth: Array, trust: float, odds: Array, chance: Array, shift: Array, kinds: Array, share: Array,
    structure: Array, artefact: Array, by_chance: Array,
) -> float:  # fmt: skip
    """Run an E step (eq. 25); return the log likelihood.

    Parameters
    ----------
    first, annotator, count, worth, odds, chance, shift
        As for `_weigh`.
    drawn : (M,) float64
        Tempered log probability of the votes on an artefact.
    rest : (M,) float64
        The remaining part, on an artefact or a structure.
    known : (M,) bool
        Clusters whose known truth is held fixed.
    truth : (M,) float64
        There 1 or 0.
    trust : float
        Tempering: power of the likelihood of votes.
    kinds : (3,), share : (K,) float64
    structure : (M, K), artefact, by_chance : (M,) float64
        Written: posteriors of a structure at each node, of an artefact, of chance.
    """
    _weigh(first, annotator, count, worth, odds, chance, shift, structure, by_chance)
    kind, at_node = np.log(kinds), np.log(share)
    value = 0.0
    for m in range(len(count)):
        absent = known[m] and truth[m] == 0.0
        there = known[m] and truth[m] == 1.0
        artefact[m] = -np.inf if there else drawn[m] + kind[1]
        by_chance[m] = -np.inf if there else by_chance[m] - rest[m] + kind[2]
        largest = max(artefact[m], by_chance[m])
        for k in range(len(shift)):
            structure[m, k] = -np.inf if absent else trust * structure[m, k] + kind[0] + at_node[k]
            largest = max(largest, structure[m, k])
        artefact[m], by_chance[m] = np.exp(artefact[m] - largest), np.exp(by_chance[m] - largest)
        total = artefact[m] + by_chance[m]
        for k in range(len(shift)):
            structure[m, k] = np.exp(structure[m, k] - largest)
            total += structure[m, k]
        artefact[m], by_chance[m] = artefact[m] / total, by_chance[m] / total
        structure[m] /= total
        value += largest + np.log(total)
    return float(value)


@compiled(error_model="numpy")
def held(
    hit: Array, miss: Array, quiet: Array, false: Array, odds: Array, chance: Array, weights: Array,
    shares: Array,
) -> float:  # fmt: skip
    """Return the log prior: of annotators' rates, all (R,) float64, and of shares with as many weights."""
    value = 0.0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            value += weights[k] * np.log(shares[k])
    for r in range(len(odds)):
        value -= hit[r] * _softplus(-odds[r]) + miss[r] * _softplus(odds[r])
        value += quiet[r] * np.log1p(-chance[r]) + false[r] * np.log(chance[r])
    return float(value)


@compiled(error_model="numpy")
def tally(
    first: Array, annotator: Array, structure: Array, artefact: Array, by_chance: Array, hits: Array,
    false: Array, sums: Array,
) -> None:  # fmt: skip
    """Add up posteriors.

    Parameters
    ----------
    first, annotator
        As for `_weigh`.
    structure, artefact, by_chance
        As from `expect`.
    hits, false : (R,) float64
        Added to: each annotator's marks on structures, and on what met by chance.
    sums : (K + 2,) float64
        Added to: structures at each node, artefacts, chance.
    """
    nodes = structure.shape[1]
    for m in range(len(artefact)):
        present = 0.0
        for k in range(nodes):
            present += structure[m, k]
            sums[k] += structure[m, k]
        sums[nodes] += artefact[m]
        sums[nodes + 1] += by_chance[m]
        for p in range(first[m], first[m + 1]):
            hits[annotator[p]] += present
            false[annotator[p]] += by_chance[m]


@compiled(error_model="numpy")
def newton(hit: Array, nodes: Array, shift: Array, total: Array, odds: Array) -> None:
    """Maximise over each annotator's log odds of a mark, by Newton's method.

    Parameters
    ----------
    hit : (R,) float64
        Marks, including those of the prior.
    nodes : (R or 1, K) float64
        Clusters at each node: those that each annotator saw, or that all saw.
    shift : (K,) float64
    total : (R,) float64
        Marks and omissions of the prior, at shift 0.
    odds : (R,) float64
        To begin with; overwritten.
    """
    lift, chances = np.exp(shift), np.empty(len(shift))
    for r in range(len(hit)):
        row = min(r, len(nodes) - 1)
        value = odds[r]
        for _ in range(50):
            ratio = np.exp(value)
            chance = ratio / (1.0 + ratio)
            slope = hit[r] - chance * total[r]
            curve = chance * (1 - chance) * total[r] + 1e-6
            for k in range(len(shift)):  # without a sum, for vector instructions
                chances[k] = ratio * lift[k] / (1.0 + ratio * lift[k])
            for k in range(len(shift)):
                slope -= chances[k] * nodes[row, k]
                curve += chances[k] * (1 - chances[k]) * nodes[row, k]
            step = min(max(slope / curve, -2.0), 2.0)
            value = min(max(value + step, -13.8), 13.8)  # as far as EDGE
            if abs(step) < 1e-6:  # the error is now about its square
                break
        odds[r] = value


@compiled(error_model="numpy")
def _sum(values: Array) -> float:
    """Add up fewer than 128 values in numpy's order, so that the sum has the same bits."""
    if len(values) < 8:
        total = 0.0
        for value in values:
            total += value
        return total
    aligned = len(values) - len(values) % 8
    lane = values[:8].copy()
    for begin in range(8, aligned, 8):
        for i in range(8):
            lane[i] += values[begin + i]
    total = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))
    for i in range(aligned, len(values)):
        total += values[i]
    return float(total)


@compiled(error_model="numpy")
def _clipped_rate(right: float, wrong: float) -> float:
    total = right + wrong
    rate = right / total if total > 0.0 else 0.5
    return min(max(rate, EDGE), 1.0 - EDGE)


@compiled(error_model="numpy")
def _distribute(
    start: Array, known: Array, truth: Array, kinds: Array, share: Array, structure: Array, artefact: Array,
    by_chance: Array,
) -> None:  # fmt: skip
    """Distribute initial posteriors of a structure, (M,), over nodes and kinds as in the prior."""
    second, third = kinds[1], kinds[2]
    if second == 0.0 and third == 0.0:
        third = 1.0
    for m in range(len(start)):
        present = truth[m] if known[m] else start[m]
        absent = (1 - present) / (second + third)
        artefact[m], by_chance[m] = absent * second, absent * third
        for k in range(len(share)):
            structure[m, k] = present * share[k]


@compiled(error_model="numpy")
def ascend(
    begin: int, end: int, most: Array, tolerance: float, starts: bool, start: Array, votes: StackedVotes,
    prior: StackedPrior, shift: Array, state: StackedState, looks: StackedLooks, former: Array,
    objective: Array, steps: Array, converged: Array,
) -> None:  # fmt: skip
    """Iterate E and M steps on each of several images.

    An image has converged if its last E step gained less than the tolerance. Its parameters are then those of
    that step; otherwise they are updated after it.

    Parameters
    ----------
    begin, end : int
        Range of images, of I.
    most : (I,) int64
        E steps at most; 0 to leave an image as it is.
    tolerance : float
        Relative gain at which to end.
    starts : bool
        Whether to begin with an M step from `start`; the state is then only written.
    start : (M,) float64
        Initial posteriors of a structure.
    votes : StackedVotes
    prior : StackedPrior
    shift : (K,) float64
    state : StackedState
        To begin with; overwritten.
    looks : StackedLooks
        Written: posteriors of the last E step.
    former : (I,) float64
        Objective of the last E step, of an earlier call; NaN at the first one. Overwritten.
    objective : (I, N) float64
        Written: the objective of each E step.
    steps : (I,) int64
        Written: number of E steps.
    converged : (I,) bool
        Written.
    """
    nodes = len(shift)
    for i in range(begin, end):
        if not most[i]:
            continue
        from_cluster, to_cluster = votes.clusters[i], votes.clusters[i + 1]
        own, other = votes.annotators[i], votes.annotators[i + 1]
        annotators = other - own
        first, annotator = votes.first[from_cluster : to_cluster + 1], votes.annotator
        known, truth = votes.known[from_cluster:to_cluster], votes.truth[from_cluster:to_cluster]
        weights, trust = votes.weights[own:other], votes.trust[i]
        worth = votes.weights[own : other if votes.weighted[i] else own]
        hit, miss, quiet, false = (
            prior.hit[own:other], prior.miss[own:other], prior.quiet[own:other], prior.false[own:other]
        )  # fmt: skip
        prior_kinds, clusters = prior.kinds[i], prior.places[i]
        prior_share, strength = prior.share[i], prior.strength[i]
        odds, chance, kinds, share = (
            state.odds[own:other], state.chance[own:other], state.kinds[i], state.share[i]
        )  # fmt: skip
        structure = looks.structure[from_cluster:to_cluster]
        artefact, by_chance = looks.artefact[from_cluster:to_cluster], looks.chance[from_cluster:to_cluster]
        shares, prior_weights = np.empty(3 + nodes), np.empty(3 + nodes)
        prior_weights[:3], prior_weights[3:] = prior_kinds, strength * prior_share
        believed_hit, believed_miss = weights * (trust * hit), weights * (trust * miss)
        own_quiet, own_false = weights * quiet, weights * false
        prior_votes = hit + miss
        last = former[i]
        for iteration in range(-1 if starts else 0, most[i]):
            if iteration < 0:
                _distribute(
                    start[from_cluster:to_cluster], known, truth, prior_kinds, prior_share, structure,
                    artefact, by_chance,
                )  # fmt: skip
                odds[:] = 0.0
            else:
                value = expect(
                    first, annotator, votes.count[from_cluster:to_cluster], worth,
                    votes.drawn[from_cluster:to_cluster], votes.rest[from_cluster:to_cluster], known, truth,
                    trust, odds, chance, shift, kinds, share, structure, artefact, by_chance,
                )  # fmt: skip
                shares[:3], shares[3:] = kinds, share
                value += held(
                    believed_hit, believed_miss, own_quiet, own_false, odds, chance, prior_weights, shares
                )
                if clusters:
                    value -= _sum(kinds)  # of a Poisson process
                objective[i, iteration] = value
                steps[i] = iteration + 1
                if not np.isnan(last) and value - last <= tolerance * abs(value):
                    converged[i] = True
                    break
                last = value
            hits, marks, sums = np.zeros(annotators), np.zeros(annotators), np.zeros(nodes + 2)
            tally(first, annotator, structure, artefact, by_chance, hits, marks, sums)
            newton(hits + hit, sums[:nodes].copy().reshape(1, nodes), shift, prior_votes, odds)
            for r in range(annotators):
                if clusters:
                    chance[r] = _clipped_rate(false[r], quiet[r])
                else:
                    chance[r] = _clipped_rate(marks[r] + false[r], sums[nodes + 1] - marks[r] + quiet[r])
            present, absent = _sum(sums[:nodes]) + prior_kinds[0], sums[nodes + 1] + prior_kinds[2]
            kinds[0], kinds[1], kinds[2] = present, sums[nodes] + prior_kinds[1], clusters
            if not clusters:
                total = present + kinds[1] + absent
                kinds[0] = min(max(present / total, EDGE), 1.0 - EDGE) if total > 0.0 else 0.5
                kinds[1], kinds[2] = 0.0, 1.0 - kinds[0]
            share[:] = sums[:nodes] + strength * prior_share
            structures = _sum(share)
            share[:] = share / structures if structures > 0.0 and iteration >= 0 else prior_share
        former[i] = last


@compiled(error_model="numpy")
def draw(
    begin: int, end: int, first: Array, annotator: Array, counts: Array, level: Array, worth: Array,
    artefact: Array, rest: Array, trust: float, odds: Array, chance: Array, kinds: Array,
    shift: Array, share: Array, drawn: Array,
) -> None:  # fmt: skip
    """Compute the chances that clusters look like structures for drawn parameters.

    The sum over the nodes of a structure depends only on its number of votes and the odds of their
    annotators.

    Parameters
    ----------
    begin, end : int
        Range of draws, of D.
    first, annotator, worth
        As for `_weigh`.
    counts : (L,) float64
        The different counts of votes.
    level : (M,) int64
        Index into `counts` of each cluster.
    artefact, rest : (M,) float64
    trust : float
        As for `expect`.
    odds, chance : (D, R) float64
    kinds : (D, 3) float64
        Logarithms.
    shift, share : (K,) float64
        The share's logarithm.
    drawn : (D, M) float64
        Written.
    """
    nodes = np.empty(len(counts))
    for d in range(begin, end):
        nodes[:] = np.nan
        quiet = np.zeros(len(shift))
        missed = _omitted(odds[d], chance[d], shift, worth, quiet)
        evidence, likely = odds[d], np.log(chance[d] / (1 - chance[d]))
        if len(worth):
            evidence, likely = worth * evidence, worth * likely
        for m in range(len(artefact)):
            own, met = 0.0, missed - rest[m] + kinds[d, 2]
            for p in range(first[m], first[m + 1]):
                own += evidence[annotator[p]]
                met += likely[annotator[p]]
            if np.isnan(nodes[level[m]]):
                at = trust * (counts[level[m]] * shift + quiet) + share
                largest = at.max()
                total = np.exp(at - largest).sum()
                nodes[level[m]] = largest + np.log(total)
            own = trust * own + nodes[level[m]] + kinds[d, 0]
            drawn_to = artefact[m] + kinds[d, 1]
            other = max(drawn_to, met)
            other += np.log(np.exp(drawn_to - other) + np.exp(met - other))
            drawn[d, m] = 1 / (1 + np.exp(min(other - own, 700.0)))
