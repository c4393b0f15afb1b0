"""Share of clusters that are structures among those that look like one, by share of votes and image.

The vote model explains clusters by structures, artefacts and chance meetings. It fits almost any votes, so
that a cluster that looks like a structure may still be an artefact. The chance h that it is one grows with
the share s of the crowd that marked it, and differs by image i: logit h = a + u + b z, where z is logit s
between -3 and 3, a the level of the run, u that of the image. Priors: a ~ N(4.5, 1), u ~ N(0, 1), b ~ N(1.5,
.5^2) above 0, so that more votes never count against a structure. Wider priors would adapt to a poor crowd
faster, but a few rejections of disputed clusters would distort the results of a good one.

A run may also hold no structure at all: a ~ N(-4, 1) and b ~ N(0, .5^2); or far fewer than its votes suggest:
a ~ N(1, 1.5^2). The prior probabilities of such runs are small, and rejections without acceptances make them
large.

The expert's decisions update a, u and b (see `_observers`). Decisions may also agree with the predictions
from the votes. The answer with decisions is therefore averaged with the answer without them, where h keeps
its mean. Its weight follows from the Bayes factor ([kass1995]_) and the number of decisions
(`decision_weight`). The posterior by votes is multiplied by the likelihood ratio of a program's scores, if
there are any. All sums are over a grid. Votes distinguish a run of artefacts alone from one with structures
only by the distribution of the clusters' votes. With artefacts alone, shares follow a falling Beta
distribution. The prior probability of such a run is multiplied by the likelihood ratio of the votes'
histogram under that distribution, to a power (see
`_vote_model`).

Images known to hold no structure (negative controls) show how many artefacts of an image look like
structures. Other images are assumed to have a similar number: its logarithm is normal about that of the
controls, with the variance of the counts and of the differences between images (`DIFFER`). Images that are
known to hold structures exclude a run of artefacts alone: the probability that none of their clusters is one
is exp(-sum of the posteriors).

References
----------
.. [gelman1998] A. Gelman and X.-L. Meng, "Simulating normalizing constants: from importance sampling to
   bridge sampling to path sampling", Statistical Science 13 (1998) 163-185, doi:10.1214/ss/1028905934.
.. [kass1995] R. E. Kass and A. E. Raftery, "Bayes factors", Journal of the American Statistical Association
   90 (1995) 773-795, doi:10.1080/01621459.1995.10476572.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from raterscope.algorithms.clicks._observers import (
    WRONG,
    WRONG_PRIOR,
    Review,
    ScoredClusters,
    expected_log_likelihood,
    fit_scores,
    gather_scores,
    habit_prior,
    log_likelihood,
    reviews_of,
    selected_probability,
)
from raterscope.algorithms.clicks._vote_model import BELIEVED, EMResult, Prior, Problem, looks
from raterscope.algorithms.clicks.data import FloatArray, within
from raterscope.algorithms.progress import Watch, silent

ABSENT = 0.05
"""Prior probability that a run holds no structure, if votes fit artefacts alone."""

BELIEVED_VOTES = 0.5
"""Power of the likelihood ratio of the votes' histogram."""

ARTEFACTS = ((1.0, 3.0), (1.0, 5.0), (1.0, 9.0), (2.0, 6.0), (4.0, 12.0))
"""Beta distributions of the share of annotators that artefacts attract."""

FOUND = 3
"""Minimum votes for the histogram: nearly every artefact with so many is a cluster. The lowest class never
counts.
"""

BINS = 10
"""Number of classes of the share of votes in the histogram."""


def absent_probability(problems: Sequence[Problem]) -> float:
    """Return the prior probability that a run holds no structure, from how its votes are distributed."""
    ratio = log_ratio([problem.count for problem in problems], [problem.crowd for problem in problems])
    odds = ABSENT / (1 - ABSENT) * np.exp(min(BELIEVED_VOTES * ratio, 0.0))
    return float(odds / (1 + odds))


def log_ratio(counts: Sequence[FloatArray], crowds: Sequence[float]) -> float:
    """Compare a model of artefacts alone with the histogram of a run's numbers of votes.

    The histogram's log likelihood is reduced by one half for each class. The votes of a larger crowd count as
    those of `BELIEVED` annotators.

    `counts`: (M,) of each image, number of annotators who marked each cluster. `crowds`: number of annotators
    of each image.
    """
    if not len(counts):
        return 0.0
    number = [int(min(max(round(crowd), 1), BELIEVED)) for crowd in crowds]
    image = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
    trials, fewest = np.array([number, [_fewest(each) for each in number]])[:, image]
    votes = np.rint(np.concatenate(counts) * trials / np.maximum(crowds, 1.0)[image]).astype(np.int64)
    counted = votes >= fewest
    votes = np.minimum(votes, trials)
    classes = np.minimum(votes * BINS // trials, BINS - 1)[counted]
    observed = np.bincount(classes, minlength=BINS).astype(np.float64)
    found = np.bincount(image[counted], minlength=len(counts))
    expected = np.add.reduce(
        [each * _classes_of_artefacts(own) for each, own in zip(found.tolist(), number, strict=True)]
    )
    filled = observed > 0
    if not filled.any():
        return 0.0
    fit = np.log(np.maximum(expected[:, filled], TINY)) @ observed[filled]
    return float(fit.max() - observed[filled] @ np.log(observed[filled])) + (np.count_nonzero(filled) - 1) / 2


def _fewest(trials: int) -> int:
    """Return the minimum number of votes that counts, given the number of annotators."""
    return min(max(FOUND, -(-trials // BINS)), trials)


@lru_cache(maxsize=int(BELIEVED))
def _classes_of_artefacts(trials: int) -> FloatArray:
    """Return the probabilities of the classes of votes on artefacts, for each distribution."""
    number = np.arange(_fewest(trials), trials + 1)
    classes = np.minimum(number * BINS // trials, BINS - 1)
    chances = [np.bincount(classes, _chance(number, trials, shape), minlength=BINS) for shape in ARTEFACTS]
    return np.array(chances)


def _chance(number: np.ndarray, trials: int, shape: tuple[float, float]) -> FloatArray:
    """Return the probabilities of numbers of votes on an artefact, which sum to one."""
    from scipy.special import betaln, gammaln

    log = betaln(shape[0] + number, shape[1] + trials - number)
    log += gammaln(trials + 1) - gammaln(number + 1) - gammaln(trials - number + 1)
    chance = np.exp(log - log.max())
    return np.asarray(chance / chance.sum())


CASES = 20.0
"""Default weight of the expected share of structures, in clusters."""

MAX_CASES = 1e4
"""Maximum weight of the expected share of structures, in clusters."""

DIFFER = 0.2
"""Variance of the log number of artefacts that look like structures, from image to image."""

COUNTED = 0.5
"""Number added to the counts of such artefacts, as by Jeffreys' prior of a Poisson rate."""


def known_shares(
    problems: Sequence[Problem], looks: Sequence[FloatArray], chances: Sequence[FloatArray]
) -> FloatArray:
    """Return the log probability (A, B) of prior knowledge on the run, by level and slope.

    `looks`: (M,) of each image, probability that each cluster looks like a structure, without any decisions.
    `chances`: (A, B, M) of each image, chance that a cluster that looks like a structure is one.
    """
    structures = [chance @ look for chance, look in zip(chances, looks, strict=True)]
    zero = np.zeros(chances[0].shape[:2]) if chances else np.zeros((1, 1))
    return _expected(problems, structures, zero) + _controls(problems, looks, structures, zero)


def _expected(problems: Sequence[Problem], structures: Sequence[FloatArray], zero: FloatArray) -> FloatArray:
    prior = next((problem.prior for problem in problems if problem.prior.expected is not None), None)
    total = sum(len(problem.count) for problem in problems)
    if prior is None or prior.expected is None or not total:
        return zero
    mean = np.clip(sum(structures, zero) / total, TINY, 1 - TINY)
    share = prior.expected
    return np.asarray(_cases(prior) * (share * np.log(mean) + (1 - share) * np.log1p(-mean)))


def _cases(prior: Prior) -> float:
    """Return the weight of the expected share, in clusters, from its interval."""
    if prior.expected is None or prior.expected_error is None:
        return CASES
    variance = (prior.expected_error / 1.96) ** 2
    return float(np.clip(prior.expected * (1 - prior.expected) / variance - 1, 1.0, MAX_CASES))


def _controls(
    problems: Sequence[Problem],
    looks: Sequence[FloatArray],
    structures: Sequence[FloatArray],
    zero: FloatArray,
) -> FloatArray:
    negative = [float(look.sum()) for own, look in zip(problems, looks, strict=True) if own.control is False]
    value = zero
    for problem, present in zip(problems, structures, strict=True):
        if problem.control:
            value = value + np.log(-np.expm1(-np.maximum(present, TINY)))
    others = [
        float(look.sum()) - present
        for own, look, present in zip(problems, looks, structures, strict=True)
        if own.control is not False
    ]
    if not negative or not others:
        return value
    usual, observed = np.mean(negative) + COUNTED, sum(negative) + COUNTED
    artefacts = np.maximum(sum(others, zero), 0) / len(others) + COUNTED
    variance = 1 / observed + DIFFER / len(negative) + DIFFER / len(others)
    return np.asarray(value - 0.5 * np.log(artefacts / usual) ** 2 / variance)


STEP = 0.4
"""Distance between nodes of the level."""

LEVEL = STEP * np.arange(-19.0, 22.0)
"""Nodes of the level a of the run."""

SLOPE = np.linspace(0.0, 3.5, 10)
"""Nodes of the slope b over the log odds of the share of votes."""

OFFSET = 2 * STEP * np.arange(-4.0, 5.0)
"""Nodes of the offset u of an image."""

SUM = STEP * np.arange(-27.0, 30.0)
"""Nodes of a + u."""

POOR = 0.001
"""Prior probability of a run with few structures: a ~ N(1, 1.5^2)."""

SHARE = np.linspace(-3.0, 3.0, 61)
"""Nodes of the log odds of the share of votes, between which the mean of h is interpolated."""

SPARSE = 0.2
"""Mean share of votes on structures below which shares are divided by it: in very large crowds where each
annotator marks little, the absolute share carries no information.
"""

PREDICTED_AFTER = 0.6
"""Weight in the evidence of EM's predictions after the decisions: EM follows the first decisions most."""

FEW = 24.0
"""Decisions at which the answers with and without them have equal weight if both predict the decisions
equally well (development crowds: 20 to 30)."""

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class StructureShare:
    """Chance that clusters of one image that look like structures are structures."""

    # (C, B): posterior at the nodes of the level, offset included, and the slope; empty if all clusters that
    # look like structures are structures
    weight: FloatArray
    shift: float = 0.0  # log odds that are added to those of a share, see `SPARSE`
    # weight of the looks without decisions; large if decisions turned out as expected, are few, or were
    # recorded by their outcome
    doubted: float = 0.0
    # (T, M): likelihood ratio of the score of each cluster, for T relations between scores and structures;
    # empty without scores
    ratio: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    node_weight: FloatArray = field(default_factory=lambda: np.empty(0))  # (T,): posterior of these relations
    # (C, B): posterior without any decisions
    before: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    decisions: int = 0  # of all images

    def mean(self, share: FloatArray) -> FloatArray:
        """Return the expected h at shares of votes, of any shape."""
        return self._moment(share, 1)

    def undecided(self, share: FloatArray) -> FloatArray:
        """Return the expected h at shares of votes, without any decisions."""
        return replace(self, weight=self.before).mean(share)

    def deviation(self, share: FloatArray) -> FloatArray:
        """Return the standard deviation of h at shares of votes."""
        variance = self._moment(share, 2) - self._moment(share, 1) ** 2
        return np.asarray(np.sqrt(np.maximum(variance, 0)))

    def scored(self, posterior: FloatArray) -> FloatArray:
        """Return the posteriors (M, ...) of the clusters by votes and scores, from those by votes."""
        if not self.node_weight.size:
            return posterior
        scored = np.zeros(posterior.shape)
        for weight, ratio in zip(self.node_weight, self.ratio, strict=True):
            scored += weight * times(posterior, ratio.reshape(-1, *[1] * (posterior.ndim - 1)))
        return scored

    def scored_draws(self, generator: np.random.Generator, drawn: FloatArray) -> FloatArray:
        """Return posteriors by votes and scores, one relation of the scores for each of D draws: (D, M)."""
        if not self.node_weight.size:
            return drawn
        return times(
            drawn, self.ratio[generator.choice(len(self.node_weight), len(drawn), p=self.node_weight)]
        )

    def draw(self, generator: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
        """Draw levels (offset included) and slopes, stratified: all clusters of a run share their errors."""
        total = self.weight.ravel().cumsum()
        strata = (generator.permutation(draws) + 0.5) / draws
        chosen = total.searchsorted(strata * total[-1], side="right")
        level, slope = np.unravel_index(chosen, self.weight.shape)
        return SUM[level], SLOPE[slope]

    def log_odds(self, share: FloatArray) -> FloatArray:
        """Return z at shares of votes."""
        inside = within(share, TINY, 1 - TINY)
        return within(np.log(inside / (1 - inside)) + self.shift, SHARE[0], SHARE[-1])

    def _moment(self, share: FloatArray, power: int) -> FloatArray:
        if not self.weight.size:
            return np.ones(np.shape(share))
        at_nodes = self.weight.ravel() @ _chances(power)
        return np.asarray(np.interp(self.log_odds(share), SHARE, at_nodes))


def estimate_structure_share(
    judged: Sequence[tuple[Problem, EMResult]],
    watch: Watch = silent,
    undecided: Sequence[FloatArray] | None = None,
    loss: float = 0.0,
) -> list[StructureShare]:
    """Estimate h on each image of a run from the decisions on all of them.

    `judged`: problem of each image, with the result of EM.
    `undecided`: (M,) of each image, probability that each cluster looks like a structure, without any
        decisions; it orders the clusters if there is no record of the clusters that the expert viewed.
    `loss`: log probability of the votes that EM lost by fitting the decisions.
    An image without artefacts in its prior has h = 1 everywhere.
    """
    shifts = [_shift(problem, ascent) for problem, ascent in judged]
    absent = absent_probability([problem for problem, _ in judged if problem.prior.places])
    kinds = np.array([1 - absent - POOR, POOR, absent])
    shares = [problem.count / (problem.crowd or 1.0) for problem, _ in judged]
    informed = any(
        known is not None
        for problem, _ in judged
        for known in (problem.score, problem.control, problem.prior.expected)
    )
    decisions = sum(int(problem.known.sum()) for problem, _ in judged)
    log_odds_of = [
        StructureShare(np.empty(0), shift).log_odds(share)
        for shift, share in zip(shifts, shares, strict=True)
        if decisions or informed
    ]
    level, slope = _levels_and_slopes()
    prior = np.log((kinds[:, None] * level)[:, :, None] * slope[:, None, :] + TINY**20)
    scored = gather_scores([problem for problem, _ in judged], log_odds_of)
    if informed:
        prior = prior + _known(judged, log_odds_of, undecided)
    spread = _spread()
    before = _blurred(spread, np.exp(prior - prior.max()).sum(axis=0))
    if not decisions:
        structure_shares = [
            StructureShare(before if problem.prior.places else np.empty(0), shift, 1.0, before=before)
            for (problem, _), shift in zip(judged, shifts, strict=True)
        ]
        watch(1.0, "weighing the decisions")
        return structure_shares if scored is None else _with_scores(judged, structure_shares, shares, scored)
    images = [StructureShare(before, shift) for shift in shifts]
    first, second = reviews_of(
        judged,
        log_odds_of,
        [image.mean(share) for image, share in zip(images, shares, strict=True)],
        undecided,
        absent,
    )
    habits = habit_prior(first)
    prior = prior[:, :, :, None, None] + np.log(WRONG_PRIOR)[:, None] + habits
    common, evidence = _common(prior, first, second, loss, spread, watch)
    blurred = _blurred(spread, common.sum(axis=(2, 3)))
    surprise = evidence - _expected_evidence(first, before, habits)
    trust = decision_weight(decisions, surprise)
    doubted = 1 - trust * (1 - selected_probability(common.sum(axis=(0, 1, 2))))
    structure_shares = []
    for image, ((problem, _), shift, review) in enumerate(zip(judged, shifts, second, strict=True)):
        weight = blurred
        if review is not None:
            likely, weighed, _ = _weighed(review, spread, len(habits))
            weight = (likely * np.tensordot(spread.T, common / weighed, 1)).sum(axis=(2, 3))
            weight /= weight.sum()
        if problem.prior.places:
            weight = trust * weight + (1 - trust) * before
            structure_shares.append(
                StructureShare(weight, shift, doubted, before=before, decisions=decisions)
            )
        else:
            structure_shares.append(StructureShare(np.empty(0), shift, doubted, decisions=decisions))
        watch(0.5 + (image + 1) / (2 * len(judged)), "weighing the decisions")
    return structure_shares if scored is None else _with_scores(judged, structure_shares, shares, scored)


def decision_weight(decisions: int, surprise: float = 0.0) -> float:
    """Return the weight of the answer with a number of decisions, against the answer without them.

    A few decisions may change EM and h to another explanation of the whole crowd, which later decisions
    refute. The two answers are therefore averaged as models. The prior odds of the answer with decisions grow
    with their number. They are multiplied by the Bayes factor, which measures how much better this answer
    predicts the decisions. Decisions that turn out as expected leave the undecided clusters as they were;
    decisions that contradict the votes soon have full weight.

    `surprise`: log Bayes factor of the answer with decisions.

    Examples
    --------
    >>> [round(decision_weight(n), 3) for n in (1, 3, 10, 30, 100)]
    [0.0, 0.002, 0.067, 0.661, 0.986]
    >>> [round(decision_weight(10, surprise), 3) for surprise in (2.0, 4.0, 6.0)]
    [0.348, 0.798, 0.967]
    """
    if not decisions:
        return 0.0
    log_odds = 3 * np.log(decisions / FEW) + surprise
    return float(1 / (1 + np.exp(-np.clip(log_odds, -500, 500))))


def _expected_evidence(reviews: Sequence[Review | None], before: FloatArray, habits: FloatArray) -> float:
    """Return the log probability of the decisions if h keeps its mean `before` them and EM is unchanged."""
    at_nodes = before.ravel() @ _chances(1)
    likely = np.log(WRONG_PRIOR)[:, None] + habits
    for review in reviews:
        if review is not None:
            true_share = np.interp(review.log_odds, SHARE, at_nodes)
            likely = likely + expected_log_likelihood(review, true_share, len(habits))
    return float(np.logaddexp.reduce(likely, axis=None))


def _common(
    prior: FloatArray,
    first: Sequence[Review | None],
    second: Sequence[Review | None],
    loss: float,
    spread: FloatArray,
    watch: Watch,
) -> tuple[FloatArray, float]:
    """Return the posterior (A, B, E, H) of the parameters that all images share, and the log evidence.

    Decisions also enter EM, which then predicts them. The kind of run therefore follows from the predictions
    of EM before the decisions, the other parameters from what EM does not explain. This assumes clusters that
    are independent given the votes. But they share the uncertainty about the crowd: in a small crowd, one of
    EM's solutions may be wrong about many of them at once. Decisions therefore count against all structures
    of a run less than the product of their probabilities. The log evidence is the integral of the expected
    log likelihood over the weight of the decisions (thermodynamic integration, [gelman1998]_). Here it is a
    weighted mean of the two ends (`PREDICTED_AFTER`): EM before the decisions, and EM after them less the
    `loss`.
    """
    likely = [np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1, 1))]
    for image, reviews in enumerate(zip(first, second, strict=True)):
        for index, review in enumerate(reviews):
            if review is not None:
                _, weighed, scale = _weighed(review, spread, prior.shape[-1])
                likely[index] = likely[index] + np.log(weighed) + scale
        watch((image + 1) / (2 * len(first)), "weighing the decisions")
    axes = (1, 2, 3, 4)
    before, _ = _summed(np.broadcast_to(prior + likely[0], _full_shape(prior)), axes)
    after, post = _summed(np.broadcast_to(prior + likely[1], _full_shape(prior)), axes)
    kinds = before + PREDICTED_AFTER * np.maximum(after - max(loss, 0.0) - before, 0.0)
    total = float(np.logaddexp.reduce(kinds))
    post *= np.exp(kinds - total)[:, None, None, None, None]
    return np.asarray(post.sum(axis=0)), total - float(np.logaddexp.reduce(prior, axis=None))


def _summed(log: FloatArray, axes: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Return log sums of exponentials over all axes but the first, and each entry's share of its sum."""
    peak = log.max(axis=axes, keepdims=True)
    share = np.exp(log - peak)
    total = share.sum(axis=axes, keepdims=True)
    share /= total
    return (peak + np.log(total)).ravel(), share


def _full_shape(prior: FloatArray) -> tuple[int, ...]:
    return (*prior.shape[:3], len(WRONG), prior.shape[-1])


def _weighed(review: Review, spread: FloatArray, habits: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the likelihood of a review by level of the image and of the run, and the log of their scale."""
    log = log_likelihood(review, SUM, SLOPE, habits)
    scale = log.max(axis=0)
    likely = np.exp(log - scale)
    return likely, np.maximum(np.tensordot(spread, likely, 1), TINY**20), scale


@lru_cache(maxsize=1)
def _levels_and_slopes() -> tuple[FloatArray, FloatArray]:
    """Return the prior probabilities (3, A) of levels and (3, B) of slopes, by kind of run."""
    level = [_normal(LEVEL, 4.5, 1.0), _normal(LEVEL, 1.0, 1.5), _normal(LEVEL, -4.0, 1.0)]
    slope = [_normal(SLOPE, 1.5, 0.5)] * 2 + [_normal(SLOPE, 0.0, 0.5)]
    return np.array(level), np.array(slope)


@lru_cache(maxsize=1)
def _spread() -> FloatArray:
    """Return the probability of each level of an image given that of the run: (A, C)."""
    offset = _normal(OFFSET, 0.0, 1.0)
    spread = np.zeros((len(LEVEL), len(SUM)))
    for row in range(len(LEVEL)):
        spread[row, row : row + 2 * len(OFFSET) : 2] = offset
    return spread


def _blurred(spread: FloatArray, common: FloatArray) -> FloatArray:
    """Return the probability of level and slope of an image without decisions: (C, B)."""
    weight = spread.T @ common
    return np.asarray(weight / weight.sum())


def _known(
    judged: Sequence[tuple[Problem, EMResult]],
    log_odds_of: Sequence[FloatArray],
    undecided: Sequence[FloatArray] | None,
) -> FloatArray:
    """Return the log probability (A, B) of information other than votes and decisions."""
    problems = [problem for problem, _ in judged]
    seen = undecided or [looks(problem, ascent.state, clamped=False)[0].present for problem, ascent in judged]
    chances = [
        1 / (1 + np.exp(-(LEVEL[:, None, None] + SLOPE[:, None] * log_odds))) for log_odds in log_odds_of
    ]
    return known_shares(problems, seen, chances)


def _with_scores(
    judged: Sequence[tuple[Problem, EMResult]],
    structure_shares: Sequence[StructureShare],
    shares: Sequence[FloatArray],
    scored: ScoredClusters,
) -> list[StructureShare]:
    """Estimate how scores relate to structures, from the posteriors by votes of all images' clusters."""
    posteriors = [
        (ascent.looks.present * structure_share.mean(share))[searched]
        for (_, ascent), structure_share, share, searched in zip(
            judged, structure_shares, shares, scored.searched, strict=True
        )
    ]
    fit = fit_scores(scored, np.concatenate(posteriors))
    return [
        replace(structure_share, node_weight=fit.node_weight, ratio=ratio)
        for structure_share, ratio in zip(structure_shares, fit.ratio, strict=True)
    ]


def times(posterior: FloatArray, ratio: FloatArray) -> FloatArray:
    """Multiply the odds of posteriors by factors."""
    return np.asarray(posterior * ratio / (posterior * ratio + 1 - posterior))


def _shift(problem: Problem, ascent: EMResult) -> float:
    look, crowd = ascent.looks.present, problem.crowd or 1.0
    total = float(look.sum())
    mean = float(look @ problem.count) / (crowd * total) if total > 0 else SPARSE
    mean = max(mean, TINY)
    return float(np.log(SPARSE / (1 - SPARSE)) - np.log(mean / (1 - mean))) if mean < SPARSE else 0.0


@lru_cache(maxsize=2)
def _chances(power: int) -> FloatArray:
    """Return a power of h at all nodes: (C x B, nodes of the share)."""
    chance = 1 / (1 + np.exp(-(SUM[:, None, None] + SLOPE[:, None] * SHARE)))
    return np.asarray(chance.reshape(-1, len(SHARE)) ** power)


def _normal(nodes: FloatArray, mean: float, deviation: float) -> FloatArray:
    weight = np.exp(-0.5 * ((nodes - mean) / deviation) ** 2)
    return np.asarray(weight / weight.sum())
