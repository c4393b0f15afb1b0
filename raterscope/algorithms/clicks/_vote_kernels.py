"""Inner loops of detection: the log probability of votes, annotators' odds, draws of all parameters.

References
----------
.. [marsaglia2000] G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM
   Transactions on Mathematical Software 26 (2000) 363-372, doi:10.1145/358407.358414.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raterscope.algorithms.compiling import Array, compiled, small_code

EDGE = 1e-6
"""Minimum distance of rates from 0 and 1."""

FLUSH = 16
"""Number of factors that are multiplied before a logarithm is taken: all are between 1e-6 and 1e14."""

BLOCK = 64
"""Number of annotators whose odds `newton` maximises at the same time."""


class StackedVotes(NamedTuple):
    """Votes of I images, concatenated: M clusters and R annotators in all."""

    # clusters, annotators: (I + 1,): first cluster and first annotator of each image
    clusters: Array
    annotators: Array
    first: Array  # (M + 1,): first vote on each cluster
    annotator: Array  # (votes,): who marked each cluster, counted within the image
    count: Array  # (M,): number of these annotators, by weight
    weighted: Array  # (I,): whether some annotator of the image does not count fully
    weights: Array  # (R,): weight of each annotator
    drawn: Array  # (M,): tempered log probability of the votes on an artefact
    rest: Array  # (M,): the remaining part, on an artefact or a structure
    known: Array  # (M,): clusters whose known truth is held fixed
    truth: Array  # (M,): there 1 or 0
    trust: Array  # (I,): tempering: power of the likelihood of votes


class StackedPrior(NamedTuple):
    """Priors of I images with R annotators in all."""

    # hit, miss, quiet, false: (R,): pseudo-votes of the prior of the annotators' rates
    hit: Array
    miss: Array
    quiet: Array
    false: Array
    kinds: Array  # (I, 3)
    places: Array  # (I,): `Prior.places`
    share: Array  # (I, K)
    strength: Array  # (I,): weight of `share`


class StackedState(NamedTuple):
    """Parameters of I images with R annotators in all: (R,), (R,), (I, 3), (I, K) float64."""

    odds: Array
    chance: Array
    kinds: Array
    share: Array


class StackedPosteriors(NamedTuple):
    """Posteriors of M clusters of several images: (M, K), (M,), (M,) float64."""

    structure: Array
    artefact: Array
    chance: Array


@compiled(error_model="numpy")
def _omitted(
    own: int, annotators: int, weighted: bool, ratio: Array, weights: Array, shift: Array, quiet: Array
) -> None:  # fmt: skip
    """Write the log probability of no marks on a structure, by node, into `quiet`.

    `ratio` has the odds of each annotator's mark; the annotators' weights begin at `own`.
    """
    lift, factors = np.empty(len(shift)), np.empty(len(shift))
    for k in range(len(shift)):
        quiet[k], lift[k], factors[k] = 0.0, np.exp(shift[k]), 1.0
    if weighted:
        for r in range(annotators):
            for k in range(len(shift)):
                quiet[k] -= weights[own + r] * np.log(1.0 + ratio[r] * lift[k])
        return
    for r in range(annotators):
        for k in range(len(shift)):  # the nodes inside, for vector instructions
            factors[k] *= 1.0 + ratio[r] * lift[k]
        if r % FLUSH == FLUSH - 1 or r == annotators - 1:
            for k in range(len(shift)):
                quiet[k] -= np.log(factors[k])
                factors[k] = 1.0


@compiled(error_model="numpy")
def _unmet(begin: int, own: int, annotators: int, weighted: bool, chance: Array, weights: Array) -> float:
    """Return the log probability of no marks by chance; chances begin at `begin`, weights at `own`."""
    small_code()
    product, missed = 1.0, 0.0
    for r in range(annotators):
        if weighted:
            missed += weights[own + r] * np.log1p(-chance[begin + r])
            continue
        product *= 1.0 - chance[begin + r]
        if r % FLUSH == FLUSH - 1:
            missed += np.log(product)
            product = 1.0
    return float(missed + np.log(product))


@compiled(error_model="numpy")
def _by_chance(
    begin: int, own: int, annotators: int, weighted: bool, chance: Array, weights: Array, likely: Array
) -> None:
    """Write each annotator's weighted log odds of a mark by chance; see `_unmet`."""
    small_code()
    for r in range(annotators):
        rate = chance[begin + r]
        likely[r] = np.log(rate / (1 - rate)) * (weights[own + r] if weighted else 1.0)


@compiled(error_model="numpy")
def _nodes(quiet: Array, share: Array, trust: float, node: Array) -> float:
    """Write the probability of no marks at each node, times that of the node, over a factor; return its log.

    `share`: (K,), logarithms.
    """
    small_code()
    largest = -np.inf
    for k in range(len(node)):
        node[k] = trust * quiet[k] + share[k]
        largest = max(largest, node[k])
    for k in range(len(node)):
        node[k] = np.exp(node[k] - largest)
    return float(largest)


@compiled(error_model="numpy")
def _expect(
    i: int, votes: StackedVotes, prior: StackedPrior, state: StackedState, shift: Array, lifts: Array,
    missed: float, likely: Array, looks: StackedPosteriors,
) -> float:  # fmt: skip
    """Run an E step (eq. 25) on image `i`: write the posteriors, return the log posterior.

    `lifts`: as for `ascend`. `missed`, `likely`: as from `_unmet` and `_by_chance`. The prior of the chances
    is not included.
    """
    small_code()
    structure, artefact, by_chance = looks.structure, looks.artefact, looks.chance
    first, annotator, weights, trust = votes.first, votes.annotator, votes.weights, votes.trust[i]
    drawn, rest, known, truth = votes.drawn, votes.rest, votes.known, votes.truth
    begin, own, kinds = votes.clusters[i], votes.annotators[i], state.kinds
    annotators, value = votes.annotators[i + 1] - own, 0.0
    ratio, evidence = np.empty(annotators), np.empty(annotators)
    for r in range(annotators):
        odds, worth = state.odds[own + r], weights[own + r]
        ratio[r], evidence[r] = np.exp(odds), worth * odds
        hit, miss = prior.hit[own + r], prior.miss[own + r]
        value += worth * (trust * (hit * odds - (hit + miss) * np.log(1.0 + ratio[r])))
    quiet, node, share = np.empty(len(shift)), np.empty(len(shift)), np.empty(len(shift))
    _omitted(own, annotators, votes.weighted[i], ratio, weights, shift, quiet)
    for k in range(len(shift)):
        share[k] = np.log(state.share[i, k])
        weight = prior.strength[i] * prior.share[i, k]
        if weight > 0.0:
            value += weight * share[k]
    for k in range(3):
        if prior.kinds[i, k] > 0.0:
            value += prior.kinds[i, k] * np.log(kinds[i, k])
    at_nodes = _nodes(quiet, share, trust, node)
    real, lure, stray = np.log(kinds[i, 0]) + at_nodes, np.log(kinds[i, 1]), np.log(kinds[i, 2])
    for m in range(begin, votes.clusters[i + 1]):
        present, met = 0.0, missed
        for p in range(first[m], first[m + 1]):
            present += evidence[annotator[p]]
            met += likely[annotator[p]]
        total = 0.0
        for k in range(len(shift)):
            structure[m, k] = lifts[m, k] * node[k]
            total += structure[m, k]
        present = trust * present + real + np.log(total)
        alluring, met = drawn[m] + lure, met - rest[m] + stray
        if known[m] and truth[m] == 0.0:
            present = -np.inf
        if known[m] and truth[m] == 1.0:
            alluring = met = -np.inf
        largest = max(present, max(alluring, met))
        present, alluring, met = np.exp(present - largest), np.exp(alluring - largest), np.exp(met - largest)
        every = present + alluring + met
        artefact[m], by_chance[m] = alluring / every, met / every
        for k in range(len(shift)):
            structure[m, k] *= present / every / total
        value += largest + np.log(every)
    return float(value)


@compiled(error_model="numpy")
def _chance_prior(i: int, votes: StackedVotes, prior: StackedPrior, chance: Array) -> float:
    """Return the log prior of the annotators' chances on image `i`."""
    small_code()
    value = 0.0
    for r in range(votes.annotators[i], votes.annotators[i + 1]):
        logs = prior.quiet[r] * np.log1p(-chance[r]) + prior.false[r] * np.log(chance[r])
        value += votes.weights[r] * logs
    return float(value)


@compiled(error_model="numpy")
def tally(
    begin: int, end: int, first: Array, annotator: Array, structure: Array, artefact: Array,
    by_chance: Array, hits: Array, false: Array, sums: Array,
) -> None:  # fmt: skip
    """Add up posteriors of a range of clusters.

    `first`: (M + 1,), where each cluster's votes begin.
    `annotator`: (votes,) int32, annotators who marked each cluster.
    `structure`, `artefact`, `by_chance`: (M, K), (M,) and (M,) float64, posteriors.
    `hits`, `false`: (R,) float64, added to: each annotator's marks on structures, and on chance meetings.
    `sums`: (1, K + 2) float64, added to: structures at each node, artefacts, chance.
    """
    small_code()
    nodes = structure.shape[1]
    for m in range(begin, end):
        present, met = 0.0, by_chance[m]
        for k in range(nodes):
            present += structure[m, k]
            sums[0, k] += structure[m, k]
        sums[0, nodes] += artefact[m]
        sums[0, nodes + 1] += met
        for p in range(first[m], first[m + 1]):
            hits[annotator[p]] += present
            false[annotator[p]] += met


@compiled(error_model="numpy")
def _omissions(count: int, ratio: Array, lift: Array, nodes: Array, omissions: Array, squares: Array) -> None:
    """Add up expected omissions of annotators over nodes, (K, BLOCK), and those times their chances."""
    for j in range(count):
        omissions[j], squares[j] = 0.0, 0.0
    for k in range(len(lift)):
        for j in range(count):  # the annotators inside, for vector instructions
            omission = 1.0 / (1.0 + ratio[j] * lift[k])
            omitted = omission * nodes[k, j]
            omissions[j] += omitted
            squares[j] += omitted * omission


@compiled(error_model="numpy")
def newton(own: int, hit: Array, nodes: Array, shift: Array, total: Array, odds: Array) -> None:
    """Maximise over the log odds of a mark of R annotators, by Newton's method.

    `own`: the first annotator's index into `odds`.
    `hit`: (R,) float64, marks, including those of the prior.
    `nodes`: (R or 1, K or more) float64, clusters at each node, seen by each annotator or by all.
    `shift`: (K,) float64.
    `total`: (R,) float64, marks and omissions of the prior, at shift 0.
    `odds`: (R or more,) float64, initial values; overwritten.
    """
    small_code()
    several, nodes_of = len(nodes) > 1, np.empty((len(shift), BLOCK))
    lift, seen, value, ratio = np.empty(len(shift)), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    missed, squares = np.empty(BLOCK), np.empty(BLOCK)
    for k in range(len(shift)):
        lift[k] = np.exp(shift[k])
    for begin in range(0, len(hit), BLOCK):
        count = min(BLOCK, len(hit) - begin)
        for j in range(count):
            value[j], seen[j] = odds[own + begin + j], 0.0
            for k in range(len(shift)):
                nodes_of[k, j] = nodes[begin + j if several else 0, k]
                seen[j] += nodes_of[k, j]
        for _ in range(50):
            for j in range(count):
                ratio[j] = np.exp(value[j])
            _omissions(count, ratio, lift, nodes_of, missed, squares)
            longest = 0.0
            for j in range(count):
                chance, counts = ratio[j] / (1.0 + ratio[j]), total[begin + j]
                slope = hit[begin + j] - chance * counts - (seen[j] - missed[j])
                curve = chance * (1 - chance) * counts + 1e-6 + missed[j] - squares[j]
                step = min(max(slope / curve, -2.0), 2.0)
                value[j] = min(max(value[j] + step, -13.8), 13.8)  # as far as EDGE
                longest = max(longest, abs(step))
            if longest < 1e-6:  # the error is now about its square
                break
        for j in range(count):
            odds[own + begin + j] = value[j]


@compiled(error_model="numpy")
def _clipped_rate(right: float, total: float) -> float:
    rate = right / total if total > 0.0 else 0.5
    return min(max(rate, EDGE), 1.0 - EDGE)


@compiled(error_model="numpy")
def _maximise(
    i: int, starts: bool, votes: StackedVotes, prior: StackedPrior, shift: Array, state: StackedState,
    looks: StackedPosteriors,
) -> None:  # fmt: skip
    """Run an M step (eqs. 27-29) on image `i`; the first step (`starts`) keeps the share of the prior."""
    small_code()
    nodes, own, clusters = len(shift), votes.annotators[i], prior.places[i]
    annotators = votes.annotators[i + 1] - own
    hits, marks, total = np.empty(annotators), np.empty(annotators), np.empty(annotators)
    sums = np.empty((1, nodes + 2))
    for k in range(nodes + 2):
        sums[0, k] = 0.0
    for r in range(annotators):
        hits[r], marks[r], total[r] = 0.0, 0.0, prior.hit[own + r] + prior.miss[own + r]
        if starts:
            state.odds[own + r] = 0.0
    tally(
        votes.clusters[i], votes.clusters[i + 1], votes.first, votes.annotator, looks.structure,
        looks.artefact, looks.chance, hits, marks, sums,
    )  # fmt: skip
    for r in range(annotators):
        hits[r] += prior.hit[own + r]
    newton(own, hits, sums, shift, total, state.odds)
    false, quiet, chance, kinds, share = prior.false, prior.quiet, state.chance, state.kinds, state.share
    for r in range(annotators):
        right, wrong = false[own + r], quiet[own + r]
        if not clusters:
            right, wrong = marks[r] + right, sums[0, nodes + 1] - marks[r] + wrong
        chance[own + r] = _clipped_rate(right, right + wrong)
    present, absent = prior.kinds[i, 0], sums[0, nodes + 1] + prior.kinds[i, 2]
    for k in range(nodes):
        present += sums[0, k]
    kinds[i, 0], kinds[i, 1], kinds[i, 2] = present, sums[0, nodes] + prior.kinds[i, 1], clusters
    if not clusters:
        kinds[i, 0] = _clipped_rate(present, present + kinds[i, 1] + absent)
        kinds[i, 1], kinds[i, 2] = 0.0, 1.0 - kinds[i, 0]
    structures = 0.0
    for k in range(nodes):
        sums[0, k] += prior.strength[i] * prior.share[i, k]
        structures += sums[0, k]
    for k in range(nodes):
        share[i, k] = sums[0, k] / structures if structures > 0.0 and not starts else prior.share[i, k]


@compiled(error_model="numpy")
def ascend(
    begin: int, end: int, most: Array, tolerance: float, starts: bool, votes: StackedVotes,
    prior: StackedPrior, shift: Array, lifts: Array, state: StackedState, looks: StackedPosteriors,
    former: Array, objective: Array, steps: Array, converged: Array,
) -> None:  # fmt: skip
    """Iterate E and M steps on each of several images.

    An image has converged if its last E step gained less than the tolerance. Its parameters are then those of
    that step; otherwise they are updated after it.

    `begin`, `end`: range of images.
    `most`: (I,) int64, largest number of E steps; 0 to leave an image as it is.
    `tolerance`: relative gain at which to end.
    `starts`: whether to begin with an M step from `looks`; the state is then only written.
    `shift`: (K,) float64.
    `lifts`: (M, K) float64, factors of the clusters' counts of votes at each node.
    `state`: initial values; overwritten.
    `looks`: posteriors; overwritten by those of the last E step.
    `former`: (I,) float64, objective of the last E step, of an earlier call; NaN at the first one.
        Overwritten.
    `objective`: (I, N) float64, written: the objective of each E step.
    `steps`: (I,) int64, written: number of E steps.
    `converged`: (I,) bool, written.
    """
    small_code()
    kinds, chance = state.kinds, state.chance
    for i in range(begin, end):
        last, missed, of_chance = former[i], 0.0, 0.0
        if not most[i]:
            continue
        own, weighted = votes.annotators[i], votes.weighted[i]
        annotators = votes.annotators[i + 1] - own
        likely = np.empty(annotators)
        earliest = -1 if starts else 0
        for iteration in range(earliest, most[i]):
            if iteration >= 0:
                if not prior.places[i] or iteration <= earliest + 1:  # later M steps keep the chances
                    missed = _unmet(own, own, annotators, weighted, chance, votes.weights)
                    _by_chance(own, own, annotators, weighted, chance, votes.weights, likely)
                    of_chance = _chance_prior(i, votes, prior, chance)
                value = of_chance + _expect(i, votes, prior, state, shift, lifts, missed, likely, looks)
                if prior.places[i]:
                    value -= kinds[i, 0] + kinds[i, 1] + kinds[i, 2]  # of a Poisson process
                objective[i, iteration] = value
                steps[i] = iteration + 1
                if not np.isnan(last) and value - last <= tolerance * abs(value):
                    converged[i] = True
                    break
                last = value
            _maximise(i, iteration < 0, votes, prior, shift, state, looks)
        former[i] = last


@compiled(error_model="numpy")
def _draw_gammas(row: int, shapes: Array, table: Array, drawn: Array) -> int:
    """Draw from Gamma distributions of scale 1 by rejection [marsaglia2000]_, from a row of the table on.

    Return the next row. `shapes`, `table`: as for `draw`. `drawn`: (S,), written.
    """
    small_code()
    for s in range(len(shapes)):
        third, width, power = shapes[s, 0], shapes[s, 1], shapes[s, 2]
        while True:
            normal, uniform, exponent = table[row, 0], table[row, 1], table[row, 2]
            row = row + 1 if row + 1 < len(table) else 0
            root, square = 1.0 + width * normal, normal * normal
            cube = root * root * root
            if root > 0.0 and (
                uniform < 1.0 - 0.0331 * square * square  # most are accepted without a logarithm
                or np.log(uniform) < 0.5 * square + third * (1.0 - cube + np.log(cube))
            ):
                break
        drawn[s] = third * cube
        if power > 0.0:
            drawn[s] *= np.exp(-exponent * power)
    return row


@compiled(error_model="numpy")
def draw(
    begin: int, end: int, first: Array, annotator: Array, level: Array, worth: Array,
    artefact: Array, rest: Array, trust: float, shapes: Array, factor: Array, table: Array, kinds: Array,
    shift: Array, share: Array, lifts: Array, drawn: Array,
) -> None:  # fmt: skip
    """Draw annotators' rates; compute the chances that clusters look like structures with them.

    The sum over the nodes of a structure depends only on its number of votes and the odds of their
    annotators.

    `begin`, `end`: range of draws.
    `first`, `annotator`: as for `tally`.
    `level`: (M,) int64, index into `lifts` of each cluster.
    `worth`: (R,) float64, weights; empty where all count fully.
    `artefact`, `rest`, `trust`: as `drawn`, `rest`, `trust` of `StackedVotes`.
    `shapes`: (4 * R, 3) float64, as from `gamma_shapes`, of each annotator's marks on structures, omissions
        there, marks and omissions by chance.
    `factor`: (R,) float64, of the odds of a mark on a structure.
    `table`: (N, 3) float64, normal, uniform and exponential random numbers.
    `kinds`: (D, 3) float64, logarithms.
    `shift`, `share`: (K,) float64, the share's logarithm.
    `lifts`: (L, K) float64, factors of the distinct counts of votes at each node.
    `drawn`: (D, M) float64, written.
    """
    small_code()
    nodes, quiet, node = np.empty(len(lifts)), np.empty(len(shift)), np.empty(len(shift))
    annotators, weighted = len(factor), len(worth) > 0
    evidence, likely = np.empty(annotators), np.empty(annotators)
    ratio, chance, gammas = np.empty(annotators), np.empty(annotators), np.empty(len(shapes))
    row = begin - begin
    zero = annotators - annotators  # for a literal the kernels would be compiled once more
    for d in range(begin, end):
        row = _draw_gammas(row, shapes, table, gammas)
        for r in range(annotators):
            rate = gammas[r] / (gammas[r] + gammas[annotators + r])
            rate = min(max(rate, EDGE), 1.0 - EDGE)
            ratio[r] = rate / (1.0 - rate) * factor[r]
            evidence[r] = np.log(ratio[r]) * (worth[r] if weighted else 1.0)
            rate = gammas[2 * annotators + r] / (gammas[2 * annotators + r] + gammas[3 * annotators + r])
            chance[r] = min(max(rate, EDGE), 1.0 - EDGE)
        _omitted(zero, annotators, weighted, ratio, worth, shift, quiet)
        missed = _unmet(zero, zero, annotators, weighted, chance, worth)
        _by_chance(zero, zero, annotators, weighted, chance, worth, likely)
        at_nodes = _nodes(quiet, share, trust, node)
        for count in range(len(lifts)):
            nodes[count] = 0.0
            for k in range(len(shift)):
                nodes[count] += lifts[count, k] * node[k]
            nodes[count] = np.log(nodes[count]) + at_nodes
        for m in range(len(artefact)):
            present, met = 0.0, missed - rest[m] + kinds[d, 2]
            for p in range(first[m], first[m + 1]):
                present += evidence[annotator[p]]
                met += likely[annotator[p]]
            present = trust * present + nodes[level[m]] + kinds[d, 0]
            drawn_to = artefact[m] + kinds[d, 1]
            drawn[d, m] = 1 / (1 + np.exp(min(drawn_to - present, 700.0)) + np.exp(min(met - present, 700.0)))
