"""Vote model of one image, and effect of further annotators on its clusters.

Clustering finds the structures that are easy to see. Without the others the crowd would look more able, and
structures more similar, than they are. EM therefore continues with an M step that includes the expected
structures that were not found: each structure found at a node represents (1 - pi) / pi of them.

A run reports a mixture of the answers with and without decisions (`decision_weight`), and knows more than the
votes of one image. The model reproduces both. First, its looks and its parameters are mixed with the same
weight: EM continues from each answer separately, because an E step would undo a mixture. Second, the odds of
each cluster are multiplied by the ratio of the reported odds to the model's own; further votes do not change
this ratio.

Detections appear and vanish in two ways. Further votes change the decision on a cluster, as the vote model
predicts. Or clustering finds a new cluster, or loses one, which is far more common on crowded images.
Structures without a cluster are assumed to resemble those with one, as in capture and recapture. The same
holds for artefacts; their number is mostly unknown while few clusters are found, and their marks are some of
those outside of clusters. Stray clicks may also meet by chance.

A click joins the others on its structure with probability q; it does not if it is too far away or nearer to a
neighbour. A structure with v marks is therefore found with probability 1 - (1 - q)^(v - 1), and q is smaller
close to other structures. Finding is modelled as a latent normal variable above a threshold. Its correlation
between now and k annotators later is that of a sum of independent terms, sqrt(R / (R + k)): marginal findings
may change, clear ones do not.

References
----------
.. [hajek1964] J. Hajek, "Asymptotic theory of rejective sampling with varying probabilities from a finite
   population", The Annals of Mathematical Statistics 35 (1964) 1491-1523, doi:10.1214/aoms/1177700375.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from raterscope.algorithms.clicks._structure_share import StructureShare, estimate_structure_share, times
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    ClusterPosteriors,
    EMResult,
    Problem,
    State,
    log_odds,
    looks,
    lost_log_probability,
    run_em,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.dem import mix_looks
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import silent

JOINS = 0.83
"""Chance that a further click on a lonely structure joins the others. This and the next two constants were
fitted to how often subsets of 3 to 22 annotators of 24 crowded images find the structures that all annotators
find. They do not depend on the number of annotators, nor much on the image: fitted to four of the five kinds
of image they are 0.83 to 0.84, 0.38 to 0.52, and 2.5 to 3.1.
"""

CROWDED = 0.45
"""Share by which `JOINS` falls if another structure is at the same position."""

CROWDING = 3.0
"""Range of the effect of `CROWDED`, in scatters: the standard deviation of a Gaussian."""


def joining_chance(mean: FloatArray, scatter: float) -> FloatArray:
    """Return the chance, (M,), that a further click on a structure joins the others there."""
    from scipy.spatial import cKDTree

    if len(mean) < 2 or not scatter > 0:
        return np.full(len(mean), JOINS)
    distance = cKDTree(mean).query(mean, k=2)[0][:, 1] / (CROWDING * scatter)
    chance: FloatArray = JOINS * (1 - CROWDED * np.exp(-0.5 * distance**2))
    return chance


def unseen_chance(rate: FloatArray, joins: FloatArray, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chance that a structure is not found, and that an annotator marked such a structure.

    With the chance of joining q and s = 1 - q, a structure with v marks is not found with probability s^(v -
    1), and with certainty if it has none. Sums over v are therefore values of the marks' generating function.
    The mark of an annotator of weight w exists with chance w.

    `rate`: (R, K) float64, chance that each annotator marks a structure at each node.
    `joins`: (Q,) float64.
    `worth`: (R,) float64, weight of each annotator.
    The results have shapes (Q, K) and (Q, R, K).
    """
    stray, weight = 1 - joins[:, None], worth[:, None]
    counted = weight * rate
    factor = 1 - counted + counted * stray[:, :, None]
    every = factor.prod(axis=1)
    none = (1 - counted).prod(axis=0)
    marked = rate * every[:, None] / factor
    if (worth < 1).any():
        unmarked = none / (1 - counted)
        alone = unmarked + (every[:, None] / factor - unmarked) / stray[:, :, None]
        marked = weight * marked + (1 - weight) * rate * alone
    return none + (every - none) / stray, marked


DIFFER = 1.2
"""Standard deviation of the ease of structures, in log odds, including structures not found. The vote model
expects half of that among found structures.
"""

ROUNDS = 5
"""Iterations of EM that restore the vote model of the detections."""

HIDDEN = 60
"""Maximum iterations of EM with structures that were not found."""

SETTLED = 0.005
"""Change, as a share of all structures, below which these iterations have converged."""


@dataclass(frozen=True, eq=False)
class ImageModel:
    """Vote model of an image, fitted to its fusion."""

    problem: Problem
    state: State
    looks: ClusterPosteriors  # of the M clusters
    structure_share: StructureShare  # share of clusters that are structures among those that look like one
    ratio: FloatArray  # (M,): ratio between the odds that the run reported and those of the model

    @property
    def rate(self) -> FloatArray:
        """Chance that each annotator marks a structure at each node, (R, K)."""
        return mark_rates(self.state.odds, self.problem.prior.shift)

    @property
    def true_share(self) -> FloatArray:
        """Chance that each cluster is a structure if it looks like one, (M,)."""
        return self.structure_share.mean(self.share)

    @property
    def posterior(self) -> FloatArray:
        """Reported probability that each cluster is a structure, (M,); by votes for decided clusters."""
        return times(self.structure_share.scored(self.true_share * self.looks.present), self.ratio)

    @property
    def share(self) -> FloatArray:
        """Share of the annotators who marked each cluster, (M,)."""
        share: FloatArray = self.problem.count / (self.problem.crowd or 1.0)
        return share


def image_model(problem: Problem, fusion: Fusion, *, reported: bool = True) -> ImageModel:
    """Fit the vote model to an image's fusion, including the structures that have no cluster.

    `problem`: the votes of the fusion with a prior. `reported`: whether the fusion's posteriors are those of
    a vote model; then this model reproduces them.
    """
    levels, level = joining_levels(fusion)
    donors = donors_of(problem, level, len(levels))
    ascent = run_em(problem, np.clip(fusion.detection.posterior, 0, 1), ROUNDS, 1e-6, silent)
    if problem.known.any():
        free, start = without_decisions(problem), fusion.detection.undecided
        start = np.clip(start, 0, 1) if start.size else ascent.looks.present
        bare = run_em(free, start, ROUNDS, 1e-6, silent)
        loss = lost_log_probability(problem, ascent, bare)
        (structure_share,) = estimate_structure_share(
            [(problem, ascent)], undecided=[bare.looks.present], loss=loss
        )
        bare = _with_unseen(free, bare, levels, donors)
        ascent = mix_looks(
            problem, _with_unseen(problem, ascent, levels, donors), bare.looks, structure_share.doubted
        )
        ascent = replace(ascent, state=_mix_states(ascent.state, bare.state, structure_share.doubted))
    else:
        (structure_share,) = estimate_structure_share([(problem, ascent)])
        ascent = _with_unseen(problem, ascent, levels, donors)
    crowd = ImageModel(problem, ascent.state, ascent.looks, structure_share, np.ones(len(problem.known)))
    if not reported:
        return crowd
    own, run = (np.clip(values, EDGE, 1 - EDGE) for values in (crowd.posterior, fusion.detection.posterior))
    ratio = run * (1 - own) / (own * (1 - run))
    return replace(crowd, ratio=np.where(problem.known, 1.0, ratio))


def _with_unseen(problem: Problem, ascent: EMResult, levels: FloatArray, donors: FloatArray) -> EMResult:
    """Continue EM with the structures that were not found."""
    prior, state, now = problem.prior, ascent.state, ascent.looks
    usual = np.exp(-0.5 * (prior.shift / DIFFER) ** 2)
    usual *= max(prior.strength, EDGE) / usual.sum()
    for _ in range(HIDDEN):
        rate = mark_rates(state.odds, prior.shift)
        lost, marked = unseen_chance(rate, levels, problem.worth)
        total = donors @ now.structure / np.maximum(1 - lost, EDGE)
        counts = (total * lost).sum(axis=0) + now.structure.sum(axis=0)
        hits = problem.marks.sums(now.present) + np.einsum("qrk,qk->r", marked, total)
        before = np.broadcast_to(counts, rate.shape)
        odds = log_odds(hits, before, prior.shift, (prior.hit, prior.miss), state.odds)
        share = counts + usual
        kinds = state.kinds.copy()
        if prior.places:
            kinds[0] = counts.sum() + prior.kinds[0]
        share /= share.sum()
        settled = np.abs(share - state.share).sum() < SETTLED
        state = State(odds, state.chance, kinds, share)
        now, _ = looks(problem, state)
        if settled:
            break
    return replace(ascent, looks=now, state=state)


def _mix_states(state: State, undecided: State, doubted: float) -> State:
    """Mix parameters with those estimated without decisions, as `mix_looks` does with looks."""
    return State(
        *(
            getattr(state, item.name) + doubted * (getattr(undecided, item.name) - getattr(state, item.name))
            for item in fields(state)
        )
    )


def mark_rates(odds: FloatArray, shift: FloatArray) -> FloatArray:
    """Return the chance (R, K) of a mark by annotators with some log odds on structures at nodes of ease."""
    rate: FloatArray = 1 / (1 + np.exp(-(odds[:, None] + shift)))
    return rate


def joining_levels(fusion: Fusion) -> tuple[FloatArray, IntArray]:
    """Round the chances of joining to (Q,) levels, an isolated structure's last; return each level, (M,)."""
    joins = np.append(joining_chance(fusion.clustering.mean, fusion.clustering.scatter), JOINS)
    levels, level = np.unique(np.rint(joins * 40) / 40, return_inverse=True)
    return levels, level[:-1].astype(np.int64)


def donors_of(problem: Problem, level: IntArray, levels: int) -> FloatArray:
    """Return which clusters represent structures that were not found, (Q, M), by chance of joining.

    Clusters that the expert added are excluded: the crowd did not find them.
    """
    marked = np.diff(problem.marks.first)
    added = problem.known & (problem.truth == 1) & (marked < 2)
    chosen: FloatArray = ((level == np.arange(levels)[:, None]) & ~added).astype(np.float64)
    return chosen


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_NORMAL, _NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)

LEVELS = 401
"""Number of levels of the annotators' summed odds, between which sums over those who marked are interpolated.
"""

LEAST = 0.01
"""Variance that is added to the log odds of new clusters."""

ATTRACTION_NODES = 12
"""Nodes of the share of annotators that an artefact attracts."""

COUNTED = 0.5
"""Number added to the found artefacts, as by Jeffreys' prior of a Poisson rate."""

TINY = 1e-300


def count_chances(rate: FloatArray) -> FloatArray:
    """Return the Poisson binomial distribution of the number of marks, (R + 1, ...).

    `rate`: (R, ...) float64, chance that each annotator marks.
    """
    chance = np.zeros((len(rate) + 1, *rate.shape[1:]))
    chance[0] = 1.0
    for number, own_rate in enumerate(rate):
        chance[1 : number + 2] = chance[1 : number + 2] * (1 - own_rate) + chance[: number + 1] * own_rate
        chance[0] *= 1 - own_rate
    return chance


def detection_chance(joins: FloatArray, marks: FloatArray) -> FloatArray:
    """Return the chance that clustering finds a structure with a number of marks."""
    chance: FloatArray = 1 - (1 - joins) ** np.maximum(marks - 1, 0)
    return np.clip(chance, EDGE, 1 - EDGE)


def later_detection_chance(
    joins: FloatArray, annotators: int, more: int, crowd: float | None = None
) -> FloatArray:
    """Return the chance that a structure is found now and with more annotators.

    `joins`: (Q,) float64, chance that a further click joins.
    `annotators`, `more`: R and k.
    `crowd`: effective number of annotators; by default R. The result, (Q, R + 1, k + 1), is indexed by
    present marks and marks of the newcomers.
    """
    from scipy.special import ndtr, ndtri

    crowd = annotators if crowd is None else crowd
    now = np.arange(annotators + 1.0)
    first = ndtri(detection_chance(joins[:, None], now))[:, :, None]
    second = ndtri(detection_chance(joins[:, None, None], now[:, None] + np.arange(more + 1.0)))
    # The bivariate normal distribution as an integral over the correlation's angle (Drezner and Wesolowsky).
    total = np.arcsin(np.sqrt(crowd / (crowd + more)))
    both: FloatArray = ndtr(first) * ndtr(second)
    squares, product = first**2 + second**2, 2 * first * second
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        angle = total * (node + 1) / 2
        exponent = -(squares - product * np.sin(angle)) / (2 * np.cos(angle) ** 2)
        both = both + weight * total / (4 * np.pi) * np.exp(exponent)
    return np.clip(both, 0, np.minimum(ndtr(first), ndtr(second)))


UNSEEN = 0.5
"""Expected structures in addition to those that resemble found ones."""

LOOSE = 0.25
"""Expected further structures for every mark of an average annotator outside of clusters."""

AGAIN = 3.0
"""Maximum marks per cluster of an annotator who marks each structure once."""


@dataclass(frozen=True, eq=False)
class Newcomers:
    """Annotators who might mark the image next, drawn from the crowd or known from other images."""

    rate: FloatArray  # (k, K): chance that each marks a structure at each node
    stray: FloatArray  # (k,): chance that each marks another position

    def __len__(self) -> int:
        return len(self.stray)


@dataclass(frozen=True, eq=False)
class Changes:
    """Expected changes by further annotators on an image of M clusters."""

    chance: FloatArray  # (M,): that each cluster's decision changes
    # structures, meetings: expected detections where there is no cluster: structures; artefacts and clicks
    # that meet by chance
    structures: float
    meetings: float
    # missed, variance: expected structures without a cluster, and how uncertain their number is
    missed: float
    variance: float
    # (k + 1, K): new detections of structures at each node, if each had this number of marks by newcomers
    arrivals: FloatArray
    blurred: float  # part of `structures` that clustering merged and may separate


@dataclass(frozen=True, eq=False)
class FindingChances:
    """Chances that newcomers find structures, for Q levels of clusters that are found equally easily."""

    fusion: Fusion
    more: int  # newcomers, k
    level: IntArray  # (M,): of each cluster
    chance: FloatArray  # (Q, R + k + 1): chance that a structure is found, by its number of marks
    # (Q, R + 1, k + 1): chance that it is found both now and later, by marks now and marks of newcomers
    chance_of_both: FloatArray
    marks: FloatArray  # (R + 1, K): chance of each number of marks on a structure at a node
    strays: FloatArray  # (R + 1,): the same on an artefact
    lured: FloatArray  # (R + 1, L): the same on an artefact at each node of its attraction
    artefacts: FloatArray  # (L,): artefacts, those that were not found included
    structures: FloatArray  # (Q, K): structures, those that were not found included
    seen_chance: FloatArray  # (Q, K): chance that they are found
    marginal: float  # clusters that depend on a single mark, plus one


def finding_chances(crowd: ImageModel, fusion: Fusion, more: int) -> FindingChances:
    """Count the structures and artefacts that a number of newcomers may find.

    Structures without a cluster are assumed to resemble those that were found. Each found structure
    represents 1 / pi similar ones, where pi is the chance that such a structure is found (Horvitz and
    Thompson's estimate, as in capture and recapture). The estimate of pi rests on clusters that depend on a
    single mark. The mark of an annotator of weight w exists with chance w.
    """
    annotators, worth = len(crowd.rate), crowd.problem.worth
    levels, level = joining_levels(fusion)
    chance_of_marks = detection_chance(levels[:, None], np.arange(annotators + more + 1.0))
    votes = _votes(crowd.problem)
    now = count_chances(worth[:, None] * crowd.rate)
    seen_chance = chance_of_marks[:, : annotators + 1] @ now
    donors = donors_of(crowd.problem, level, len(levels))
    structures, loose = donors @ crowd.looks.structure / seen_chance, _stray_marks(fusion, crowd.problem)
    structures[-1] += (UNSEEN + LOOSE * loose) * crowd.state.share
    added = len(level) - donors.sum()
    structures *= max(0.0, 1 - added / max(float((structures * (1 - seen_chance)).sum()), EDGE))
    hanging = 1 - chance_of_marks[level, np.maximum(votes - 1, 0)] / chance_of_marks[level, votes]
    lure, weight = _lures(crowd.problem.prior.artefact)
    lured = count_chances(worth[:, None] * lure)
    seen = chance_of_marks[-1, : annotators + 1]
    artefacts = weight * _found_artefacts(crowd.problem, crowd.looks.artefact, donors)
    artefacts /= max(float(weight @ (seen @ lured)), EDGE)
    marks = float(np.arange(annotators + 1) * (1 - seen) @ lured @ artefacts) / (crowd.problem.crowd or 1.0)
    artefacts *= min(1.0, loose / max(marks, EDGE))
    return FindingChances(
        fusion=fusion,
        more=more,
        level=level,
        chance=chance_of_marks,
        chance_of_both=later_detection_chance(levels, annotators, more, crowd.problem.crowd),
        marks=now,
        strays=count_chances(worth * crowd.state.chance),
        lured=lured,
        artefacts=artefacts,
        structures=structures,
        seen_chance=seen_chance,
        marginal=1 + float(hanging @ donors.sum(axis=0)),
    )


def predict_changes(
    crowd: ImageModel, chances: FindingChances, newcomers: Newcomers, threshold: float
) -> Changes:
    """Compute the expected changes over the marks that newcomers may make on clusters and elsewhere.

    `chances`: chances on the image, for the same number of newcomers. `threshold`: lowest posterior of a
    detection.
    """
    fusion, structures, seen_chance = chances.fusion, chances.structures, chances.seen_chance
    annotators, more = len(crowd.rate), chances.more
    votes = _votes(crowd.problem)
    later = chances.chance_of_both[chances.level, votes] / chances.chance[chances.level, votes][:, None]
    coming, posterior = predict_votes(crowd, newcomers)
    stays = (coming * later * (posterior >= threshold)).sum(axis=1)
    chance = np.where(fusion.detection.detected, 1 - stays, stays)
    chance[crowd.problem.known] = 0.0

    sums = np.arange(annotators + 1)[:, None] + np.arange(more + 1)
    come = chances.chance[:, sums] - chances.chance_of_both
    structure, meeting, artefact = _new_detection_chance(crowd, newcomers, threshold)
    blurred = _blurred(fusion) * more / max(annotators + more, 1)
    arrivals = np.einsum("vk,qvb,qk->bk", chances.marks, come * structure[sums], structures)
    missed = float((structures * (1 - seen_chance)).sum())
    lure, _ = _lures(crowd.problem.prior.artefact)
    again = count_chances(np.tile(lure, (more, 1)))
    draw = np.einsum("vl,vb,bl->l", chances.lured, come[-1] * artefact[sums], again)
    meet = chances.strays @ (come[-1] * meeting[sums]) @ count_chances(newcomers.stray)
    return Changes(
        np.clip(chance, 0.0, 1.0),
        float((arrivals * count_chances(newcomers.rate)).sum()) + blurred,
        float(crowd.problem.prior.places * meet + chances.artefacts @ draw),
        missed,
        float((structures * (1 - seen_chance) / seen_chance).sum()) + missed**2 / chances.marginal,
        arrivals,
        blurred,
    )


def _lures(shape: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Return nodes of the share of annotators that an artefact attracts, and their probabilities."""
    from scipy.special import roots_jacobi

    node, weight = roots_jacobi(ATTRACTION_NODES, shape[1] - 1, shape[0] - 1)
    return np.asarray((node + 1) / 2), np.asarray(weight / weight.sum())


def _found_artefacts(problem: Problem, artefact: FloatArray, donors: FloatArray) -> float:
    """Return the expected number of artefacts among the clusters; 0 if the model has none."""
    if len(artefact) and not problem.prior.kinds[1]:
        return 0.0
    return float((donors @ artefact).sum()) + COUNTED


def _votes(problem: Problem) -> IntArray:
    """Return the summed weights of the annotators who marked each cluster, rounded: (M,)."""
    return np.rint(problem.count).astype(np.int64)


def _stray_marks(fusion: Fusion, problem: Problem) -> float:
    """Return an annotator's mean number of marks outside of clusters."""
    marks, rows = problem.worth * fusion.rates.clicks, fusion.rates.clicks > 0
    reliability = np.nan_to_num(fusion.clustering.reliability[rows])
    return float((marks[rows] * (1 - reliability)).sum()) / (problem.crowd or 1.0)


def _blurred(fusion: Fusion) -> float:
    """Return the number of structures that clustering merged, if most annotators marked many more.

    Clustering then mistook the scatter of structures for the scatter of clicks; further annotators may
    correct it.
    """
    own = fusion.rates.clicks * np.nan_to_num(fusion.clustering.reliability)
    marked = float(np.median(own)) if len(own) else 0.0
    return max(0.0, marked - AGAIN * len(fusion.clustering))


def _new_detection_chance(
    crowd: ImageModel, newcomers: Newcomers, threshold: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the chance that a new cluster is a detection, by its number of marks.

    The odds of a structure depend on two sums over the annotators who marked the cluster: of their log odds
    of a mark on a structure, and of those of a stray click. The sums are approximately normal. The results,
    each (R + k + 1,), are the chances for clusters of marks on a structure, of stray clicks that met by
    chance, and of marks on an artefact.
    """
    from scipy.special import betaln, ndtr

    prior, state = crowd.problem.prior, crowd.state
    rate = np.clip(np.concatenate([crowd.rate, newcomers.rate]), EDGE, 1 - EDGE)
    stray = np.clip(np.concatenate([state.chance, newcomers.stray]), EDGE, 1 - EDGE)
    worth = np.concatenate([crowd.problem.worth, np.ones(len(newcomers))])
    odds = (np.log(rate / (1 - rate)) - prior.shift) @ state.share
    by_chance = np.log(stray / (1 - stray))
    number = np.arange(len(rate) + 1.0)
    quiet = np.maximum(worth.sum() - number, 0)
    share = number / max(worth.sum(), 1.0)
    missed = worth @ np.log1p(-rate) + np.outer(number, prior.shift)
    base = np.logaddexp.reduce(missed + np.log(np.maximum(state.share, TINY)), axis=1)
    base += np.log(max(state.kinds[0], EDGE))
    first, second = prior.artefact
    artefact = betaln(first + number, second + quiet) - betaln(first, second)
    artefact += np.log(max(state.kinds[1], TINY))
    alone = np.log(max(state.kinds[2], TINY)) + float(worth @ np.log1p(-stray))
    bar = np.clip(threshold / crowd.structure_share.mean(share), EDGE, 1 - EDGE)
    base -= np.log(bar / (1 - bar))
    chances = []
    for tilt in (odds, by_chance, np.zeros(len(odds))):
        mean, spread = drawn_sums(tilt, worth, np.stack([odds, by_chance]), number)
        slope = spread[0, 1] / np.maximum(spread[1, 1], EDGE)
        rest = np.sqrt(np.maximum(spread[0, 0] - slope * spread[0, 1], 0) + LEAST)
        chance = np.zeros(len(number))
        for node, weight in zip(_NORMAL, _NORMAL_WEIGHTS / _NORMAL_WEIGHTS.sum(), strict=True):
            away = np.sqrt(np.maximum(spread[1, 1], 0)) * node
            others = np.logaddexp(artefact, alone + mean[1] + away)
            chance += weight * ndtr((base + mean[0] + slope * away - others) / rest)
        chances.append(chance)
    return chances[0], chances[1], chances[2]


def drawn_sums(
    tilt: FloatArray, worth: FloatArray, values: FloatArray, number: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of sums of values over the annotators who marked a cluster.

    Given their number, the annotators are drawn by their odds of a mark; a shift of the log odds that they
    share has no effect. The moments are those of independent draws with that number on average (rejective
    sampling, [hajek1964]_).

    `tilt`: (T,) float64, log odds of a mark.
    `worth`: (T,) float64, weight of each annotator.
    `values`: (V, T) float64.
    `number`: (N,) float64, marks.
    Mean and covariance have shapes (V, N) and (V, V, N).
    """
    tilt = tilt + np.log(np.maximum(worth, EDGE))
    level = np.linspace(-20 - tilt.max(), 20 - tilt.min(), LEVELS)
    chosen = 1 / (1 + np.exp(-(tilt + level[:, None])))
    weight, expected = chosen * (1 - chosen), chosen.sum(axis=1)
    total = weight.sum(axis=1)
    centre = values @ weight.T / total
    square = np.einsum("nt,at,bt->abn", weight, values, values) - total * centre[:, None] * centre
    mean = np.array([np.interp(number, expected, own) for own in values @ chosen.T])
    return mean, np.array([[np.interp(number, expected, own) for own in row] for row in square])


def predict_votes(crowd: ImageModel, newcomers: Newcomers) -> tuple[FloatArray, FloatArray]:
    """Predict the newcomers' votes on each of M clusters, and the posteriors after them.

    The results, each (M, k + 1), are the chance of every number of marks, and the probability of a structure
    after them.
    """
    more = len(newcomers)
    structure = crowd.looks.structure @ count_chances(newcomers.rate).T
    artefact = crowd.looks.artefact[:, None] * np.exp(_artefact(crowd, more) + _log_choices(more))
    stray = crowd.looks.chance[:, None] * count_chances(newcomers.stray)
    come: FloatArray = structure + artefact + stray
    share = (crowd.problem.count[:, None] + np.arange(more + 1.0)) / max(crowd.problem.crowd + more, 1.0)
    posterior = crowd.structure_share.mean(share) * structure / np.maximum(come, 1e-300)
    return come, times(crowd.structure_share.scored(posterior), crowd.ratio[:, None])


def _log_choices(more: int) -> FloatArray:
    """Return the log binomial coefficients of k newcomers: (k + 1,)."""
    from scipy.special import betaln

    number = np.arange(more + 1.0)
    return np.asarray(-np.log1p(more) - betaln(more - number + 1, number + 1))


def _artefact(crowd: ImageModel, more: int) -> FloatArray:
    """Return the log probability of newcomers' marks if the cluster is an artefact: (M, k + 1)."""
    from scipy.special import betaln

    first, second = crowd.problem.prior.artefact
    number, count = np.arange(more + 1.0), crowd.problem.count[:, None]
    quiet = crowd.problem.crowd - count
    drawn: FloatArray = betaln(first + count + number, second + quiet + more - number)
    drawn -= betaln(first + count, second + quiet)
    return drawn
