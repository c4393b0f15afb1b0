"""What further annotators would do to the clusters of one image: the chances behind `stopping` and `asking`.

A structure comes into the detections, and leaves them, in two ways. The votes on its cluster turn the
decision; that is the vote model's to say. Or clustering finds a cluster there, or none any more; on crowded
images this is by far the commoner one. A click joins those of others, or it does not: too wide of the mark,
or taken by a neighbour. So a structure with v marks is found with probability 1 - (1 - q)^(v - 1), where the
chance q of joining falls with neighbours close by. Finding is a latent normal variable that exceeds its
threshold, and between now and k annotators later this variable is correlated as a sum of independent terms
is, sqrt(R / (R + k)): what hangs by a hair changes its mind, what is well founded does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks._vote_model import EDGE, Looks, Problem, State, climb, log_odds, looks
from raterscope.algorithms.clicks.data import BoolArray, FloatArray, Fusion, IntArray
from raterscope.algorithms.clicks.dem import DECEPTION, deceived
from raterscope.algorithms.progress import silent

__all__ = [
    "Ahead",
    "Crowd",
    "Newcomers",
    "after_marks",
    "ahead",
    "crowd_of",
    "found",
    "found_later",
    "joining",
    "marks_of",
    "rates_at",
]

JOINS = 0.83
"""Chance that a further click on a lonely structure joins the others. Measured, as are the next two, on how
often subsets of 3 to 22 annotators of 24 crowded images find what all of them find; the same for any number
of annotators."""

CROWDED = 0.45
"""Share by which it falls where another structure is at the very same place."""

CROWDING = 3.0
"""Scatters over which that wears off, as a Gaussian."""

UNSEEN = 0.5
"""Structures that are expected, before anybody looked, besides those that resemble what was found."""

LOOSE = 0.25
"""And for every mark of an annotator, on average, that is part of no cluster."""

AGAIN = 3.0
"""Marks on every cluster beyond which an annotator cannot have meant the same structure."""

ROUNDS = 30
"""Iterations of EM that bring the vote model back to where the detections are from."""

HIDDEN = 40
"""Iterations of EM that count what was not found."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True, eq=False)
class Crowd:
    """The vote model of an image where its detections are: what is held of structures and annotators.

    Attributes
    ----------
    problem : Problem
    state : State
    looks : Looks
        Of the M clusters.
    honest, variance : float
        Share of what looks like a structure that is one, and how uncertain it is.
    rate : (R, K) float64
        Chance that each annotator marks a structure at each node.
    """

    problem: Problem
    state: State
    looks: Looks
    honest: float
    variance: float
    rate: FloatArray


@dataclass(frozen=True, eq=False)
class Newcomers:
    """Annotators who might look next, each drawn from the crowd or known from elsewhere.

    Attributes
    ----------
    rate : (k, K) float64
        Chance that each marks a structure at each node.
    stray : (k,) float64
        Chance that each marks what is none.
    """

    rate: FloatArray
    stray: FloatArray

    def __len__(self) -> int:
        return len(self.stray)


def crowd_of(problem: Problem, fusion: Fusion) -> Crowd:
    """Bring the vote model to where an image's detections are, with the structures that are no cluster.

    What was found is the part of all structures that is easily seen. Left at that, the crowd would look more
    able, and structures more alike, than they are. So EM goes on with what was not found counted in the M
    step, by its expectation: every structure at a node that was found stands for (1 - pi) / pi that were not.

    Parameters
    ----------
    problem : Problem
        The votes of the fusion with a prior.
    fusion : Fusion
    """
    prior = problem.prior
    ascent = climb(problem, np.clip(fusion.detection.posterior, 0, 1), ROUNDS, 1e-6, silent)
    known = deceived(problem, ascent) if prior.places else (0.0, 0.0)
    deception = (DECEPTION[0] + known[0], DECEPTION[1] + known[1]) if prior.places else (0.0, 1.0)
    honest = 1 - deception[0] / sum(deception)
    variance = honest * (1 - honest) / (sum(deception) + 1)
    levels, level = _levels(fusion)
    state, now = ascent.state, ascent.looks
    found_ones = _by_crowd(problem)[:, None]
    for _ in range(HIDDEN):
        rate = rates_at(state.odds, prior.shift)
        unseen, marked = _unseen(rate, levels)
        nodes = _by_level(now.structure, level, len(levels))
        whole = _by_level(found_ones * now.structure, level, len(levels)) / np.maximum(1 - unseen, EDGE)
        counts = (whole * unseen).sum(axis=0) + nodes.sum(axis=0)
        hits = problem.marks @ now.present + np.einsum("qrk,qk->r", marked, whole)
        before = np.broadcast_to(counts, rate.shape)
        odds = log_odds(hits, before, prior.shift, (prior.hit, prior.miss), state.odds)
        share = counts + max(prior.strength, EDGE) * prior.share
        kinds = state.kinds.copy()
        if prior.places:
            kinds[0] = counts.sum() + prior.kinds[0]
        state = State(odds, state.chance, kinds, share / share.sum())
        now, _ = looks(problem, state)
    return Crowd(problem, state, now, honest, variance, rates_at(state.odds, prior.shift))


def rates_at(odds: FloatArray, shift: FloatArray) -> FloatArray:
    """Give the chance (R, K) of a mark by annotators of these odds on structures at nodes of ease."""
    rate: FloatArray = 1 / (1 + np.exp(-(odds[:, None] + shift)))
    return rate


def _unseen(rate: FloatArray, joins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the chance that a structure is not found, and that an annotator marks it all the same.

    With the chance of joining q and s = 1 - q, it is not found with probability s^(v - 1) when it has v
    marks, and surely when it has none; so sums over v are values of the marks' generating function.

    Returns
    -------
    unseen : (Q, K) float64
    marked : (Q, R, K) float64
    """
    stray = 1 - joins[:, None]
    each = 1 - rate + rate * stray[:, :, None]
    every = each.prod(axis=1)
    none = (1 - rate).prod(axis=0)
    return none + (every - none) / stray, rate * every[:, None] / each


def joining(mean: FloatArray, scatter: float) -> FloatArray:
    """Give the chance that a further click on each of M structures joins the others, by the nearest one."""
    from scipy.spatial import cKDTree

    if len(mean) < 2 or not scatter > 0:
        return np.full(len(mean), JOINS)
    distance = cKDTree(mean).query(mean, k=2)[0][:, 1] / (CROWDING * scatter)
    chance: FloatArray = JOINS * (1 - CROWDED * np.exp(-0.5 * distance**2))
    return chance


def marks_of(rate: FloatArray) -> FloatArray:
    """Give the chance of every number of marks, exactly: the Poisson binomial distribution.

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
    for number, one in enumerate(rate):
        chance[1 : number + 2] = chance[1 : number + 2] * (1 - one) + chance[: number + 1] * one
        chance[0] *= 1 - one
    return chance


def found(joins: FloatArray, marks: FloatArray) -> FloatArray:
    """Give the chance that clustering finds a structure with so many marks."""
    chance: FloatArray = 1 - (1 - joins) ** np.maximum(marks - 1, 0)
    return np.clip(chance, EDGE, 1 - EDGE)


def found_later(joins: FloatArray, annotators: int, more: int) -> FloatArray:
    """Give the chance that a structure is found now and with more annotators.

    Parameters
    ----------
    joins : (Q,) float64
        Chance that a further click joins.
    annotators, more : int
        R and k.

    Returns
    -------
    (Q, R + 1, k + 1) float64
        By marks now and marks of those who come.
    """
    from scipy.special import ndtr, ndtri

    now = np.arange(annotators + 1.0)
    first = ndtri(found(joins[:, None], now))[:, :, None]
    second = ndtri(found(joins[:, None, None], now[:, None] + np.arange(more + 1.0)))
    # The bivariate normal distribution as an integral over the correlation's angle (Drezner and Wesolowsky).
    whole = np.arcsin(np.sqrt(annotators / (annotators + more)))
    both: FloatArray = ndtr(first) * ndtr(second)
    squares, product = first**2 + second**2, 2 * first * second
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        angle = whole * (node + 1) / 2
        exponent = -(squares - product * np.sin(angle)) / (2 * np.cos(angle) ** 2)
        both = both + weight * whole / (4 * np.pi) * np.exp(exponent)
    return np.clip(both, 0, np.minimum(ndtr(first), ndtr(second)))


@dataclass(frozen=True, eq=False)
class Ahead:
    """What newcomers are expected to change on an image of M clusters.

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


def ahead(crowd: Crowd, fusion: Fusion, newcomers: Newcomers, threshold: float) -> Ahead:
    """Sum over the numbers of marks that newcomers may make on what is a cluster and on what is none.

    A structure without a cluster resembles those that were found: each of these stands for 1 / pi structures
    like it, where pi is the chance that such a structure is found (Horvitz and Thompson's estimate, as in
    capture and recapture).

    Parameters
    ----------
    crowd : Crowd
    fusion : Fusion
    newcomers : Newcomers
    threshold : float
        Posterior from which on a cluster is detected.
    """
    annotators, more = len(crowd.rate), len(newcomers)
    levels, level = _levels(fusion)
    both = found_later(levels, annotators, more)
    marks = np.arange(annotators + more + 1.0)
    whole = found(levels[:, None], marks)
    votes = fusion.votes
    later = both[level, votes] / whole[level, votes][:, None]
    coming, posterior = after_marks(crowd, newcomers)
    stays = (coming * later * (posterior >= threshold)).sum(axis=1)
    chance = np.where(fusion.detection.detected, 1 - stays, stays)
    chance[crowd.problem.known] = 0.0

    come = whole[:, _sums(annotators, more)] - both
    come *= _telling(crowd, newcomers, threshold)[_sums(annotators, more)]
    now = marks_of(crowd.rate)  # (R + 1, K)
    seen = whole[:, : annotators + 1] @ now  # (Q, K)
    by_crowd = _by_crowd(crowd.problem)
    many = _by_level(by_crowd[:, None] * crowd.looks.structure, level, len(levels)) / seen
    many[-1] += (UNSEEN + LOOSE * _loose(fusion)) * crowd.state.share
    blurred = _blurred(fusion) * more / max(annotators + more, 1)
    added = len(by_crowd) - by_crowd.sum()
    many *= max(0.0, 1 - added / max(float((many * (1 - seen)).sum()), EDGE))
    appear = np.einsum("vk,qvb,bk->qk", now, come, marks_of(newcomers.rate))
    meet = marks_of(crowd.state.chance) @ come[-1] @ marks_of(newcomers.stray)
    return Ahead(
        np.clip(chance, 0.0, 1.0),
        float((many * appear).sum()) + blurred,
        float(crowd.problem.prior.places * meet),
        float((many * (1 - seen)).sum()),
        float((many * (1 - seen) / seen).sum()),
    )


def _loose(fusion: Fusion) -> float:
    """Give the marks of an annotator that are part of no cluster, on average."""
    marks, rows = fusion.rates.clicks, fusion.rates.clicks > 0
    reliability = np.nan_to_num(fusion.clustering.reliability[rows])
    return float((marks[rows] * (1 - reliability)).sum()) / max(len(marks), 1)


def _blurred(fusion: Fusion) -> float:
    """Give the structures that clustering has run together, where most annotators marked many more.

    That is when it has taken the scatter of structures for the scatter of clicks; with each further annotator
    it may find its way.
    """
    own = fusion.rates.clicks * np.nan_to_num(fusion.clustering.reliability)
    marked = float(np.median(own)) if len(own) else 0.0
    return max(0.0, marked - AGAIN * len(fusion.clustering))


def _telling(crowd: Crowd, newcomers: Newcomers, threshold: float) -> FloatArray:
    """Give the chance that so many marks make a detection of what is no cluster yet: (R + k + 1,).

    What they tell depends on whose marks they are: their log odds vary as the annotators' do.
    """
    from scipy.special import betaln, ndtr

    rate = np.clip(np.concatenate([crowd.rate, newcomers.rate]), EDGE, 1 - EDGE)
    stray = np.clip(np.concatenate([crowd.state.chance, newcomers.stray]), EDGE, 1 - EDGE)
    number = np.arange(len(rate) + 1.0)
    first, second = crowd.problem.prior.artefact
    quiet = len(rate) - number
    likely, unlikely = rate.mean(axis=0), stray.mean()
    structure = likely ** number[:, None] * (1 - likely) ** quiet[:, None] @ crowd.state.share
    artefact = np.exp(betaln(first + number, second + quiet) - betaln(first, second))
    by_chance = unlikely**number * (1 - unlikely) ** quiet
    kinds = crowd.state.kinds
    others = kinds[1] * artefact + kinds[2] * by_chance
    odds = np.log(np.maximum(kinds[0] * structure, 1e-300)) - np.log(np.maximum(others, 1e-300))
    bar = np.clip(threshold / crowd.honest, EDGE, 1 - EDGE)
    able = rate @ crowd.state.share
    single = np.log(able / stray)
    variance = np.average((single - np.average(single, weights=able)) ** 2, weights=able)
    spread = np.sqrt(np.maximum(variance, 0.01) * np.maximum(number, 1))
    chance: FloatArray = ndtr((odds - np.log(bar / (1 - bar))) / spread)
    return chance


def _by_crowd(problem: Problem) -> BoolArray:
    """Tell the clusters that the crowd found from the structures that the expert added."""
    added: BoolArray = problem.known & (problem.truth == 1) & (problem.count < 2)
    return ~added


def _levels(fusion: Fusion) -> tuple[FloatArray, IntArray]:
    """Round the chances of joining: (Q,) that there are, the lonely one last, and (M,) rows of them."""
    joins = np.append(joining(fusion.clustering.mean, fusion.clustering.scatter), JOINS)
    levels, level = np.unique(np.rint(joins * 20) / 20, return_inverse=True)
    return levels, level[:-1].astype(np.int64)


def _by_level(structure: FloatArray, level: IntArray, levels: int) -> FloatArray:
    summed = np.zeros((levels, structure.shape[1]))
    np.add.at(summed, level, structure)
    return summed


def _sums(annotators: int, more: int) -> IntArray:
    return np.arange(annotators + 1)[:, None] + np.arange(more + 1)


def after_marks(crowd: Crowd, newcomers: Newcomers) -> tuple[FloatArray, FloatArray]:
    """Foresee the votes on each of M clusters.

    Returns
    -------
    come : (M, k + 1) float64
        Chance of every number of newcomers' marks.
    posterior : (M, k + 1) float64
        Probability of a structure after them.
    """
    more = len(newcomers)
    structure = crowd.looks.structure @ marks_of(newcomers.rate).T
    artefact = crowd.looks.artefact[:, None] * np.exp(_artefact(crowd, more) + _choices(more))
    stray = crowd.looks.chance[:, None] * marks_of(newcomers.stray)
    come: FloatArray = structure + artefact + stray
    return come, crowd.honest * structure / np.maximum(come, 1e-300)


def _choices(more: int) -> FloatArray:
    """Give the logarithm of how many ways there are to choose so many of the newcomers: (k + 1,)."""
    from scipy.special import betaln

    number = np.arange(more + 1.0)
    return np.asarray(-np.log1p(more) - betaln(more - number + 1, number + 1))


def _artefact(crowd: Crowd, more: int) -> FloatArray:
    """Give the log probability of newcomers' marks, were the cluster an artefact: (M, k + 1)."""
    from scipy.special import betaln

    first, second = crowd.problem.prior.artefact
    number, count = np.arange(more + 1.0), crowd.problem.count[:, None]
    quiet = len(crowd.rate) - count
    drawn: FloatArray = betaln(first + count + number, second + quiet + more - number)
    drawn -= betaln(first + count, second + quiet)
    return drawn
