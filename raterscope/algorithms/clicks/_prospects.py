"""Effect of further annotators on the clusters of one image: chances for `stopping` and `active_learning`.

Detections appear and vanish in two ways. Further votes change the decision on a cluster, as the vote model
predicts. Or clustering finds a new cluster, or loses one, which is far more common on crowded images.
Structures without a cluster are assumed to resemble those with one, as in capture and recapture. Stray clicks
may also meet by chance.

A click joins the others on its structure with probability q; it fails to if it is too far away or nearer to a
neighbour. A structure with v marks is therefore found with probability 1 - (1 - q)^(v - 1), and q is smaller
close to other structures. Finding is modelled as a latent normal variable above a threshold. Its correlation
between now and k annotators later is that of a sum of independent terms, sqrt(R / (R + k)): marginal findings
may change, clear ones do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks._structure_share import Honesty, honesty_of
from raterscope.algorithms.clicks._vote_model import (
    EDGE,
    Looks,
    Problem,
    State,
    log_odds,
    looks,
    lost_log_probability,
    run_em,
    without_decisions,
)
from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import silent

JOINS = 0.83
"""Chance that a further click on a lonely structure joins the others. Measured, as are the next two, on how
often subsets of 3 to 22 annotators of 24 crowded images find what all of them find; the same for any number
of annotators, and on four of the five kinds of image as on all (0.83 to 0.84, 0.38 to 0.52, 2.5 to 3.1)."""

CROWDED = 0.45
"""Share by which it falls if another structure is at the same position."""

CROWDING = 3.0
"""Range of this effect in scatters, as a Gaussian."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def joining_chance(mean: FloatArray, scatter: float) -> FloatArray:
    """Return the chance, (M,), that a further click on a structure joins the others there."""
    from scipy.spatial import cKDTree

    if len(mean) < 2 or not scatter > 0:
        return np.full(len(mean), JOINS)
    distance = cKDTree(mean).query(mean, k=2)[0][:, 1] / (CROWDING * scatter)
    chance: FloatArray = JOINS * (1 - CROWDED * np.exp(-0.5 * distance**2))
    return chance


def count_chances(rate: FloatArray) -> FloatArray:
    """Return the Poisson binomial distribution of the number of marks.

    Parameters
    ----------
    rate : (R, ...) float64
        Chance that each annotator marks.

    Returns
    -------
    (R + 1, ...) float64
    """
    chance = np.zeros((len(rate) + 1, *rate.shape[1:]))
    chance[0] = 1.0
    for number, own_rate in enumerate(rate):
        chance[1 : number + 2] = chance[1 : number + 2] * (1 - own_rate) + chance[: number + 1] * own_rate
        chance[0] *= 1 - own_rate
    return chance


def detection_chance(joins: FloatArray, marks: FloatArray) -> FloatArray:
    """Return the chance that clustering finds a structure with so many marks."""
    chance: FloatArray = 1 - (1 - joins) ** np.maximum(marks - 1, 0)
    return np.clip(chance, EDGE, 1 - EDGE)


def later_detection_chance(
    joins: FloatArray, annotators: int, more: int, crowd: float | None = None
) -> FloatArray:
    """Return the chance that a structure is found now and with more annotators.

    Parameters
    ----------
    joins : (Q,) float64
        Chance that a further click joins.
    annotators, more : int
        R and k.
    crowd : float, optional
        How many annotators the R count as; R if left open.

    Returns
    -------
    (Q, R + 1, k + 1) float64
        By marks now and marks of the newcomers.
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


def unseen_chance(rate: FloatArray, joins: FloatArray, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chance that a structure is not found, and the chance that an annotator marked it then.

    With the chance of joining q and s = 1 - q, a structure with v marks is not found with probability s^(v -
    1), and with certainty if it has none. Sums over v are therefore values of the marks' generating function.
    The mark of an annotator of weight w exists with chance w.

    Parameters
    ----------
    rate : (R, K) float64
        Chance that each annotator marks a structure at each node.
    joins : (Q,) float64
    worth : (R,) float64
        How much of an annotator each counts as.

    Returns
    -------
    unseen : (Q, K) float64
    marked : (Q, R, K) float64
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


UNSEEN = 0.5
"""Expected structures in addition to those that resemble found ones."""

LOOSE = 0.25
"""The same for every mark outside of clusters of an average annotator."""

AGAIN = 3.0
"""Marks for each cluster beyond which an annotator cannot have meant the same structure."""

DIFFER = 1.2
"""Standard deviation of the ease of structures, in log odds, including structures not found. The vote model
expects half of that among found ones."""

ROUNDS = 5
"""Iterations of EM that restore the vote model of the detections."""

HIDDEN = 60
"""Maximum iterations of EM with structures that were not found."""

SETTLED = 0.005
"""Convergence of these iterations: changed structures as a share of all."""


@dataclass(frozen=True, eq=False)
class ImageModel:
    """Vote model of an image, fitted to its fusion.

    Attributes
    ----------
    problem : Problem
    state : State
    looks : Looks
        Of the M clusters.
    honesty : Honesty
        Share of clusters that are structures among those that look like one.
    rate : (R, K) float64
        Chance that each annotator marks a structure at each node.
    """

    problem: Problem
    state: State
    looks: Looks
    honesty: Honesty
    rate: FloatArray

    @property
    def honest(self) -> FloatArray:
        """(M,) chance that each cluster is a structure if it looks like one."""
        return self.honesty.mean(self.share)

    @property
    def posterior(self) -> FloatArray:
        """(M,) probability that each cluster is a structure, by votes and scores; decided ones included."""
        return self.honesty.scored(self.honest * self.looks.present)

    @property
    def share(self) -> FloatArray:
        """(M,) share of the annotators who marked each cluster."""
        share: FloatArray = self.problem.count / (self.problem.crowd or 1.0)
        return share


@dataclass(frozen=True, eq=False)
class Newcomers:
    """Annotators who might mark the image next, drawn from the crowd or known from other images.

    Attributes
    ----------
    rate : (k, K) float64
        Chance that each marks a structure at each node.
    stray : (k,) float64
        Chance that each marks another position.
    """

    rate: FloatArray
    stray: FloatArray

    def __len__(self) -> int:
        return len(self.stray)


def image_model(problem: Problem, fusion: Fusion) -> ImageModel:
    """Fit the vote model to an image's fusion, including the structures that have no cluster.

    Clustering finds the structures that are easily seen. Without the others the crowd would look more able,
    and structures more alike, than they are. EM therefore continues with the structures that were not found
    added to the M step by expectation: each structure found at a node represents (1 - pi) / pi that were not.

    Parameters
    ----------
    problem : Problem
        The votes of the fusion with a prior.
    fusion : Fusion
    """
    prior = problem.prior
    ascent = run_em(problem, np.clip(fusion.detection.posterior, 0, 1), ROUNDS, 1e-6, silent)
    undecided, loss = None, 0.0
    if problem.known.any():
        bare = run_em(without_decisions(problem), ascent.looks.present, ROUNDS, 1e-6, silent)
        undecided, loss = [bare.looks.present], lost_log_probability(problem, ascent, bare)
    honesty = honesty_of([(problem, ascent)], undecided=undecided, loss=loss)[0]
    levels, level = _levels(fusion)
    state, now = ascent.state, ascent.looks
    donors = _donors(problem, level, len(levels))
    usual = np.exp(-0.5 * (prior.shift / DIFFER) ** 2)
    usual *= max(prior.strength, EDGE) / usual.sum()
    for _ in range(HIDDEN):
        rate = mark_rates(state.odds, prior.shift)
        lost, marked = unseen_chance(rate, levels, problem.worth)
        total = donors @ now.structure / np.maximum(1 - lost, EDGE)
        counts = (total * lost).sum(axis=0) + now.structure.sum(axis=0)
        hits = problem.marks @ now.present + np.einsum("qrk,qk->r", marked, total)
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
    return ImageModel(problem, state, now, honesty, mark_rates(state.odds, prior.shift))


def mark_rates(odds: FloatArray, shift: FloatArray) -> FloatArray:
    """Return the chance (R, K) of a mark by annotators with some log odds on structures at nodes of ease."""
    rate: FloatArray = 1 / (1 + np.exp(-(odds[:, None] + shift)))
    return rate


@dataclass(frozen=True, eq=False)
class Changes:
    """Expected changes by further annotators on an image of M clusters.

    Attributes
    ----------
    chance : (M,) float64
        That each cluster's decision changes.
    structures, meetings : float
        Expected detections where there is no cluster: structures, and clicks that meet by chance.
    missed, variance : float
        Expected structures without a cluster, and how uncertain their number is.
    """

    chance: FloatArray
    structures: float
    meetings: float
    missed: float
    variance: float

    @property
    def appearing(self) -> float:
        """Expected detections where there is no cluster."""
        return self.structures + self.meetings


@dataclass(frozen=True, eq=False)
class FindingChances:
    """Chances that newcomers find structures, for Q levels of clusters that are found equally easily.

    Attributes
    ----------
    fusion : Fusion
    more : int
        Newcomers, k.
    level : (M,) int64
        Of each cluster.
    chance : (Q, R + k + 1) float64
        Chance that a structure is found, by its number of marks.
    chance_of_both : (Q, R + 1, k + 1) float64
        Chance that it is found both now and later, by marks now and marks of newcomers.
    marks : (R + 1, K) float64
        Chance of each number of marks on a structure at a node.
    strays : (R + 1,) float64
        The same on an artefact.
    structures : (Q, K) float64
        Structures, those that were not found included.
    seen_chance : (Q, K) float64
        Chance that they are found.
    marginal : float
        Clusters that depend on a single mark, plus one.
    """

    fusion: Fusion
    more: int
    level: IntArray
    chance: FloatArray
    chance_of_both: FloatArray
    marks: FloatArray
    strays: FloatArray
    structures: FloatArray
    seen_chance: FloatArray
    marginal: float


def finding_chances(crowd: ImageModel, fusion: Fusion, more: int) -> FindingChances:
    """Count the structures that a number of newcomers may find.

    Structures without a cluster are assumed to resemble those that were found. Each found structure
    represents 1 / pi similar ones, where pi is the chance that such a structure is found (Horvitz and
    Thompson's estimate, as in capture and recapture). The estimate of pi rests on clusters that depend on a
    single mark. The mark of an annotator of weight w exists with chance w.
    """
    annotators, worth = len(crowd.rate), crowd.problem.worth
    levels, level = _levels(fusion)
    chance_of_marks = detection_chance(levels[:, None], np.arange(annotators + more + 1.0))
    votes = _votes(crowd.problem)
    now = count_chances(worth[:, None] * crowd.rate)
    seen_chance = chance_of_marks[:, : annotators + 1] @ now
    donors = _donors(crowd.problem, level, len(levels))
    structures = donors @ crowd.looks.structure / seen_chance
    structures[-1] += (UNSEEN + LOOSE * _stray_marks(fusion, crowd.problem)) * crowd.state.share
    added = len(level) - donors.sum()
    structures *= max(0.0, 1 - added / max(float((structures * (1 - seen_chance)).sum()), EDGE))
    hanging = 1 - chance_of_marks[level, np.maximum(votes - 1, 0)] / chance_of_marks[level, votes]
    return FindingChances(
        fusion=fusion,
        more=more,
        level=level,
        chance=chance_of_marks,
        chance_of_both=later_detection_chance(levels, annotators, more, crowd.problem.crowd),
        marks=now,
        strays=count_chances(worth * crowd.state.chance),
        structures=structures,
        seen_chance=seen_chance,
        marginal=1 + float(hanging @ donors.sum(axis=0)),
    )


def predict_changes(
    crowd: ImageModel, chances: FindingChances, newcomers: Newcomers, threshold: float
) -> Changes:
    """Sum over the numbers of marks that newcomers may make on clusters and on other positions.

    Parameters
    ----------
    crowd : ImageModel
    chances : FindingChances
        Of the image, for the same number of newcomers.
    newcomers : Newcomers
    threshold : float
        Posterior from which on a cluster is detected.
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
    come *= _new_detection_chance(crowd, newcomers, threshold)[sums]
    blurred = _blurred(fusion) * more / max(annotators + more, 1)
    appear = np.einsum("vk,qvb,bk->qk", chances.marks, come, count_chances(newcomers.rate))
    missed = float((structures * (1 - seen_chance)).sum())
    meet = chances.strays @ come[-1] @ count_chances(newcomers.stray)
    return Changes(
        np.clip(chance, 0.0, 1.0),
        float((structures * appear).sum()) + blurred,
        float(crowd.problem.prior.places * meet),
        missed,
        float((structures * (1 - seen_chance) / seen_chance).sum()) + missed**2 / chances.marginal,
    )


def _votes(problem: Problem) -> IntArray:
    """Return the summed weights of the annotators who marked each cluster, rounded: (M,)."""
    return np.rint(problem.count).astype(np.int64)


def _stray_marks(fusion: Fusion, problem: Problem) -> float:
    """Return the marks of an annotator that are part of no cluster, on average."""
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


def _new_detection_chance(crowd: ImageModel, newcomers: Newcomers, threshold: float) -> FloatArray:
    """Return the chance that a new cluster is a detection, by its number of marks: (R + k + 1,).

    It depends on the annotators of the marks: their log odds vary as the annotators' do.
    """
    from scipy.special import betaln, ndtr

    rate = np.clip(np.concatenate([crowd.rate, newcomers.rate]), EDGE, 1 - EDGE)
    stray = np.clip(np.concatenate([crowd.state.chance, newcomers.stray]), EDGE, 1 - EDGE)
    worth = np.concatenate([crowd.problem.worth, np.ones(len(newcomers))])
    number = np.arange(len(rate) + 1.0)
    first, second = crowd.problem.prior.artefact
    quiet = np.maximum(worth.sum() - number, 0)
    likely, unlikely = np.average(rate, axis=0, weights=worth), np.average(stray, weights=worth)
    structure = np.outer(number, np.log(likely)) + np.outer(quiet, np.log1p(-likely))
    structure = np.exp(structure) @ crowd.state.share
    artefact = np.exp(betaln(first + number, second + quiet) - betaln(first, second))
    by_chance = np.exp(number * np.log(unlikely) + quiet * np.log1p(-unlikely))
    kinds = crowd.state.kinds
    others = kinds[1] * artefact + kinds[2] * by_chance
    odds = np.log(np.maximum(kinds[0] * structure, 1e-300)) - np.log(np.maximum(others, 1e-300))
    bar = np.clip(threshold / crowd.honesty.mean(number / max(worth.sum(), 1.0)), EDGE, 1 - EDGE)
    able = rate @ crowd.state.share
    single = np.log(able / stray)
    able = worth * able
    variance = np.average((single - np.average(single, weights=able)) ** 2, weights=able)
    spread = np.sqrt(np.maximum(variance, 0.01) * np.maximum(number, 1))
    chance: FloatArray = ndtr((odds - np.log(bar / (1 - bar))) / spread)
    return chance


def _levels(fusion: Fusion) -> tuple[FloatArray, IntArray]:
    """Round the chances of joining to (Q,) levels, an isolated one last; return (M,) rows of them too."""
    joins = np.append(joining_chance(fusion.clustering.mean, fusion.clustering.scatter), JOINS)
    levels, level = np.unique(np.rint(joins * 40) / 40, return_inverse=True)
    return levels, level[:-1].astype(np.int64)


def _donors(problem: Problem, level: IntArray, levels: int) -> FloatArray:
    """Return which clusters represent structures that were not found, by chance of joining: (Q, M), 0 or 1.

    Clusters that the expert added are excluded: the crowd did not find them.
    """
    marked = np.diff(problem.marks_by_cluster.indptr)
    added = problem.known & (problem.truth == 1) & (marked < 2)
    chosen: FloatArray = ((level == np.arange(levels)[:, None]) & ~added).astype(np.float64)
    return chosen


def predict_votes(crowd: ImageModel, newcomers: Newcomers) -> tuple[FloatArray, FloatArray]:
    """Predict the votes on each of M clusters.

    Returns
    -------
    come : (M, k + 1) float64
        Chance of every number of newcomers' marks.
    posterior : (M, k + 1) float64
        Probability of a structure after them.
    """
    more = len(newcomers)
    structure = crowd.looks.structure @ count_chances(newcomers.rate).T
    artefact = crowd.looks.artefact[:, None] * np.exp(_artefact(crowd, more) + _log_choices(more))
    stray = crowd.looks.chance[:, None] * count_chances(newcomers.stray)
    come: FloatArray = structure + artefact + stray
    share = (crowd.problem.count[:, None] + np.arange(more + 1.0)) / max(crowd.problem.crowd + more, 1.0)
    posterior = crowd.honesty.mean(share) * structure / np.maximum(come, 1e-300)
    return come, crowd.honesty.scored(posterior)


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
