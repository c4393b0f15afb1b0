"""Likelihood of the expert's decisions and of a program's scores.

A cluster that looks like a structure with probability `look` is one with probability q = look x h. Experts
err: with a share e of wrong decisions, a cluster is judged a structure with probability t = q + e (1 - 2 q).
Most experts are careful, e ~ Beta(1, 9); the decisions of some are unreliable, e uniform up to `WORST`.
Decisions that often contradict the votes therefore count less for other clusters. How the decided clusters
were chosen does not matter as long as the choice follows the votes ([rubin1976]_). It matters where the
choice follows the truth: some experts record rejections only, others acceptances only. Of the clusters that
the expert viewed, one judged a structure is recorded with probability r, and one judged no structure with
probability r'. It stays undecided with probability 1 - r t - r' (1 - t). The likelihood is summed over which
of the two is smaller, and by how much (`HABITS`). With r = r', undecided clusters carry no information.

Clusters that the expert selected are recorded as viewed, but experts also see clusters that they do not
select. Experts may go through the disputed clusters from the most disputed to the least, of the run or image
by image; then they viewed all clusters before the last decided one. Or they choose clusters, disputed ones or
any; then only the record shows what they viewed. The probability of each way of viewing follows from the
description length of the decided clusters: of a choice among clusters, or of an order in which those passed
stayed undecided. An expert who goes through probable structures and records acceptances leaves few undecided.
Only clusters viewed in an order tell which outcomes the expert records: clear ones elsewhere may be chosen.
Decisions in no order that contradict the votes are also explained by a crowd that is wrong; this needs many
decisions (`WRONG_CROWD`), since fewer often follow from recording one outcome.

A program may have searched the same images and scored its detections, by any real number; a higher score
means that a structure is more probable. Each cluster has the score of the detection on it, or none. The
crowd's posterior is multiplied by the likelihood ratio of detection and score, which is learned from the
decisions and the crowd's posteriors together, as [raykar2010]_ learn a classifier from annotators while the
truth is latent.

Only the order of the scores counts. After some rising transform, scores are normal with variance 1 and mean d
on structures, 0 on other clusters ([metz1978]_). Given d and the share of structures, all scores together
follow a mixture whose quantiles are known from the ranks, so that the transform need not be fitted. Whether
the program detects a cluster is modelled in the same way: a normal variable above a threshold, with means e
apart. Conspicuous objects have both more votes and higher scores. Given the truth, detection and score have
the correlation c with the log odds of the share of votes; d and e are the differences between structures and
other clusters of the same share. The likelihood is summed over a grid of d, e and c. With d = e = 0 scores
change nothing; the prior probability of this is 0.9.

All undecided clusters together count as `BELIEVED_CLUSTERS`, while every decision counts. Scores do not
affect the level of the run (see `_structure_share`): votes and scores of a real detector depend on each other
in more ways than c, and the level would follow them. Without decisions, scores therefore do not identify a
run of artefacts alone.

References
----------
.. [rubin1976] D. B. Rubin, "Inference and missing data", Biometrika 63 (1976) 581-592,
   doi:10.1093/biomet/63.3.581.
.. [raykar2010] V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni and L. Moy, "Learning
   from crowds", Journal of Machine Learning Research 11 (2010) 1297-1322.
.. [metz1978] C. E. Metz, "Basic principles of ROC analysis", Seminars in Nuclear Medicine 8 (1978) 283-298,
   doi:10.1016/S0001-2998(78)80014-2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raterscope.algorithms.clicks._vote_model import EMResult, Problem, looks
from raterscope.algorithms.clicks.data import BoolArray, FloatArray, IntArray

UNRELIABLE = 0.1
"""Prior probability that decisions are unreliable."""

WORST = 0.6
"""Largest possible share of wrong decisions. A larger one would explain every long series of decisions
against the votes by the expert's errors, and the crowd could never be wrong."""

CAREFUL = 1 - (1 - (np.arange(6) + 0.5) / 6) ** (1 / 9)
"""Nodes of the share e of wrong decisions: quantiles of Beta(1, 9)."""

MISJUDGED = float(CAREFUL.mean())
"""Mean share of wrong decisions of careful experts."""

WRONG = np.append(CAREFUL, WORST * (np.arange(4) + 0.5) / 4)
"""Nodes of e, those of unreliable decisions last."""

WRONG_PRIOR = np.append(np.full(6, (1 - UNRELIABLE) / 6), np.full(4, UNRELIABLE / 4))
"""Prior probabilities of the nodes of e."""

RECORDED = ((np.arange(5) + 0.5) / 5) ** (1 / 9)
"""Nodes of the larger of r and r': quantiles of Beta(9, 1). Experts who go through clusters leave few of them
by oversight, as careful experts decide few of them wrongly."""

HABITS = np.array([[1.0, 1.0], [0.25, 1.0], [1.0, 0.25], [0.02, 1.0], [1.0, 0.02]])
"""Relative probabilities of recording acceptances and rejections: (r, r') over the larger of the two."""

USUAL = np.array([0.5, 0.1, 0.1, 0.15, 0.15])
"""Prior probability of each habit."""

RECORDS = (HABITS[:, None, :] * RECORDED[:, None]).reshape(-1, 2)
"""Nodes of r and r', (H, 2): each habit combined with each node of the larger of the two."""

USUAL_RECORDS = np.repeat(np.log(USUAL / len(RECORDED)), len(RECORDED))
"""Log prior probabilities (H,) of the rows of `RECORDS`."""

DISPUTED = 0.4
"""Distance of a probability from one half up to which a cluster is disputed."""

MIN_ORDERED = 2
"""Minimum number of decisions for assuming an order."""

WRONG_CROWD = 1e-7
"""Prior probability that the outcomes contradict the votes because the crowd is wrong. It is small: outcomes
that are recorded selectively do the same. Development crowds: 1e-6 to 1e-8.
"""

MOST_BEYOND = 2
"""Maximum number of rejections of clusters with many votes that a run of artefacts alone explains besides
those in order. More, and those of others, follow from passing structures.
"""

MANY = 0.75
"""Share of the clusters of a run with fewer votes than one with many."""

NEGLIGIBLE = 0.02
"""Minimum probability that the expert passed a cluster, for counting it as undecided."""

FEWEST = 2
"""Minimum marks of an accepted cluster for information on h. With fewer, the expert has added the cluster."""


@dataclass(frozen=True, eq=False)
class Review:
    """Clusters of an image that the expert viewed; similar ones (within a few %) are one row."""

    # log_odds, look: (K,): log odds of the share of votes, and probability of looking like a structure
    log_odds: FloatArray
    look: FloatArray
    outcome: IntArray  # (K,): 1 where accepted, 0 where rejected, -1 where left without a decision
    # (K,): number of such clusters; undecided ones count by the probability that the expert passed them
    times: FloatArray
    in_order: FloatArray  # (K,): number of them that the expert viewed in an order


def reviews_of(
    judged: Sequence[tuple[Problem, EMResult]],
    log_odds_of: Sequence[FloatArray],
    true_share: Sequence[FloatArray],
    undecided: Sequence[FloatArray] | None,
    absent: float = 0.0,
) -> tuple[list[Review | None], list[Review | None]]:
    """Gather the clusters that the expert viewed on each image; None for an image without any.

    The two results use EM's estimates before and after the decisions.

    `log_odds_of`: (M,) of each image, log odds of the share of votes on its clusters. `true_share`: (M,) of
    each image, expected h before any decision. `undecided`: (M,) of each image, probability that each cluster
    looks like a structure, without any decisions. `absent`: prior probability that the run holds no
    structure.
    """
    apart = [
        looks(problem, ascent.state, clamped=False)[0].present
        if problem.prior.places and problem.known.any()
        else ascent.looks.present
        for problem, ascent in judged
    ]
    problems = [problem for problem, _ in judged]
    known = [problem.known & (problem.control is not False) for problem in problems]
    looking = apart if undecided is None else undecided
    chance = [look * h for look, h in zip(looking, true_share, strict=True)]
    truth = [problem.truth for problem in problems]
    ordered = _viewed_in_order(known, truth, chance, log_odds_of, absent)
    in_order = [
        own if problem.viewed is None else np.where(problem.viewed | problem.known, 1.0, own)
        for own, problem in zip(ordered, problems, strict=True)
    ]
    before, after = (
        [
            _review(problem, decided, log_odds, look, viewed) if problem.prior.places else None
            for problem, decided, log_odds, look, viewed in zip(
                problems, known, log_odds_of, looking, in_order, strict=True
            )
        ]
        for looking in (undecided or apart, apart)
    )
    return before, after


def _review(
    problem: Problem, known: BoolArray, log_odds: FloatArray, look: FloatArray, viewed: FloatArray
) -> Review | None:
    marked = np.diff(problem.marks.first)
    decided = known & ((problem.truth == 0) | (marked >= FEWEST))
    rows = decided | (~known & (viewed > NEGLIGIBLE))
    if not rows.any():
        return None
    outcome = np.where(decided, problem.truth, -1)[rows]
    fine = np.where(outcome < 0, 4, 20)  # what was left weighs less, and there is more of it
    about = np.round(np.column_stack([log_odds[rows] * fine, look[rows] * 5 * fine, outcome]))
    _, first, kind = np.unique(about, axis=0, return_index=True, return_inverse=True)
    times, in_order = (
        np.bincount(kind.ravel(), number[rows]).astype(np.float64)
        for number in (np.where(decided, 1.0, viewed), viewed)
    )
    return Review(log_odds[rows][first], look[rows][first], outcome[first].astype(np.int64), times, in_order)


def _viewed_in_order(
    known: Sequence[BoolArray],
    truth: Sequence[FloatArray],
    chance: Sequence[FloatArray],
    log_odds_of: Sequence[FloatArray] = (),
    absent: float = 0.0,
) -> list[FloatArray]:
    """Return the probability (M,) that the expert viewed each cluster from the most disputed to the least.

    The ways of viewing are weighted by their description lengths. All lengths leave out the probability of
    the outcomes by the votes. Decisions in no order may also be explained by a crowd that is wrong, and
    rejections in order, with one or two of clusters with many votes, by a run of artefacts alone: else one
    rejection of the clearest would mean that the expert passed all others.

    `known`: (M,) of each image, clusters that are decided. `truth`: (M,) of each image, the decisions.
    `chance`: (M,) of each image, probability of a structure before any decision. `log_odds_of`: (M,) of each
    image, log odds of the share of votes. `absent`: prior probability that the run holds no structure.
    """
    every, distance = np.concatenate(known), [abs(probability - 0.5) for probability in chance]
    if np.count_nonzero(every) < MIN_ORDERED:
        return [np.zeros(len(decided)) for decided in known]
    log_record = [_log_record(*image) for image in zip(known, truth, chance, strict=True)]
    accepted = np.concatenate(truth)[every] > 0
    against = _log_ratio(accepted, np.concatenate(chance)[every])
    artefacts = None
    if absent > 0 and not accepted.any():
        none = _log_record(every, np.zeros(len(every)), np.zeros(len(every)))
        none[:, RECORDS[:, 1] < RECORDS[:, 0]] = -np.inf  # an expert who rejects passes no artefacts
        share = np.concatenate(log_odds_of)
        artefacts = none, float(np.log(absent) + against), share >= np.quantile(share, MANY)
    ordered, steps = _describe_ordered(every, np.concatenate(distance), np.concatenate(log_record), artefacts)
    by_image = [_describe_ordered(*image) for image in zip(known, distance, log_record, strict=True)]
    touched = sum(bool(decided.any()) for decided in known)
    through_images = sum(own for _, own in by_image) + float(_describe_choice(touched, len(known)))
    chosen = _describe_unordered(every, np.concatenate(distance))
    chosen -= float(np.logaddexp(np.log1p(-WRONG_CROWD), np.log(WRONG_CROWD) + against))
    lengths = np.array([chosen, steps, through_images])
    weight = np.exp(lengths.min() - lengths)
    _, in_run, in_images = weight / weight.sum()
    ends = np.cumsum([len(decided) for decided in known])[:-1]
    return [
        in_run * of_run + in_images * of_image
        for of_run, (of_image, _) in zip(np.split(ordered, ends), by_image, strict=True)
    ]


def _log_ratio(accepted: BoolArray, chance: FloatArray) -> float:
    """Return the log probability of decisions if no cluster is a structure, less that by the votes.

    `chance`: (N,) probability of a structure before any decision.
    """
    likely = np.clip(np.where(accepted, chance, 1 - chance), 0.02, 0.98)
    return float(np.log(np.where(accepted, MISJUDGED, 1 - MISJUDGED) / likely).sum())


def _log_record(known: BoolArray, truth: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the log probability (M, H) of the record of each viewed cluster: its decision, or none."""
    judged = chance * (1 - 2 * MISJUDGED) + MISJUDGED
    undecided = 1 - np.outer(judged, RECORDS[:, 0]) - np.outer(1 - judged, RECORDS[:, 1])
    return np.log(np.where(known[:, None], RECORDS.T[np.where(truth > 0, 0, 1)], undecided))


def _describe_ordered(
    known: BoolArray,
    distance: FloatArray,
    log_record: FloatArray,
    artefacts: tuple[FloatArray, float, BoolArray] | None = None,
) -> tuple[FloatArray, float]:
    """Return the probability (M,) that the expert viewed each cluster in order, and the description length.

    The decided clusters are described by the habits (`_log_record`) among the disputed ones up to a bound,
    and as a choice among the clusters beyond it. Bounds are averaged by their description lengths. A run of
    artefacts alone changes which bounds are probable, but not the length.

    `artefacts`: `log_record` if all clusters are artefacts, the log of its prior probability times the ratio
    of the probabilities of the outcomes, and the clusters (M,) with many votes.
    """
    disputed = distance <= DISPUTED
    order = np.argsort(distance[disputed], kind="stable")
    ends = np.flatnonzero(known[disputed][order])
    every = int(np.count_nonzero(known))
    if not len(ends):
        return np.zeros(len(known)), float(_describe_others(every, len(known)))
    number = np.arange(len(ends)) + 1

    def recorded(record: FloatArray) -> FloatArray:
        every_habit = np.cumsum(record[disputed][order], axis=0)[ends] + USUAL_RECORDS
        return np.asarray(np.logaddexp.reduce(every_habit, axis=1))

    others = _describe_others(every - number, len(known) - ends - 1)
    explained = recorded(log_record)
    total = -float(np.logaddexp.reduce(explained - others)) + float(np.log(np.count_nonzero(disputed) + 1))
    if artefacts is not None:
        none, prior, clear = artefacts
        left = np.count_nonzero(known & ~clear) - np.cumsum(~clear[disputed][order][ends])
        few = (every - number <= MOST_BEYOND) & (left == 0)
        explained = np.logaddexp(explained, np.where(few, recorded(none) + prior, -np.inf))
    weight = np.exp(explained - others - (explained - others).max())
    beyond = np.append(np.cumsum((weight / weight.sum())[::-1])[::-1], 0.0)
    return beyond[np.searchsorted(distance[disputed][order][ends], distance)], total


def _describe_unordered(known: BoolArray, distance: FloatArray) -> float:
    """Return the description length of decided clusters chosen among all, or among disputed ones."""
    disputed = distance <= DISPUTED
    inside, most = int(np.count_nonzero(known & disputed)), int(np.count_nonzero(disputed))
    number, total = int(np.count_nonzero(known)), len(known)
    among_disputed = float(_describe_choice(inside, most)) + float(
        _describe_others(number - inside, total - most)
    )
    return min(float(_describe_choice(number, total)), among_disputed)


def _describe_choice(number: ArrayLike, total: ArrayLike) -> FloatArray:
    """Return the description length of a subset of some size, if every size is equally likely."""
    from scipy.special import betaln

    chosen, every = np.asarray(number), np.asarray(total)
    return np.asarray(-betaln(chosen + 1, every - chosen + 1))


def _describe_others(number: ArrayLike, total: ArrayLike) -> FloatArray:
    """Return the description length of decided clusters that a way of viewing does not explain."""
    return np.asarray(np.where(np.asarray(number) > 0, _describe_choice(number, total), 0.0))


def habit_prior(reviews: Sequence[Review | None]) -> FloatArray:
    """Return the log prior probability (H,) of the habits; a single habit if no cluster stayed undecided."""
    if not any((review.outcome < 0).any() for review in reviews if review is not None):
        return np.zeros(1)
    return USUAL_RECORDS


def selected_probability(habits: FloatArray) -> float:
    """Return the probability that decisions were recorded by outcome, from the weights (H,) of habits."""
    if len(habits) == 1:
        return 0.0
    by_habit = habits.reshape(len(HABITS), -1).sum(axis=1)
    return float(1 - by_habit[0] / by_habit.sum())


def log_likelihood(review: Review, level: FloatArray, slope: FloatArray, habits: int) -> FloatArray:
    """Return the log probability of an image's review: (C, B, E, H), with C levels and B slopes.

    For undecided clusters, the mean share of careful experts' wrong decisions is used; this hardly matters.
    """
    true_share = (1 / (1 + np.exp(-(level[:, None] + slope * log_odds))) for log_odds in review.log_odds)
    return _log_likelihood(review, true_share, (len(level), len(slope)), habits)


def expected_log_likelihood(review: Review, true_share: FloatArray, habits: int) -> FloatArray:
    """Return the log probability (E, H) of an image's review with a fixed h of its (K,) clusters."""
    every = _log_likelihood(review, (np.full((1, 1), value) for value in true_share), (1, 1), habits)
    return np.asarray(every[0, 0])


def _log_likelihood(
    review: Review, true_share: Iterable[FloatArray], shape: tuple[int, int], habits: int
) -> FloatArray:
    record = RECORDS if habits > 1 else np.ones((1, 2))
    decided = np.zeros((*shape, len(WRONG), 1))
    undecided = np.zeros((*shape, len(WRONG) - len(CAREFUL) + 1, habits))
    share = np.append(MISJUDGED, WRONG[len(CAREFUL) :])[:, None]
    # The probability that a cluster stays undecided is linear in the probability of a structure.
    contrast = record[:, 0] - record[:, 1]
    never, change = 1 - record[:, 1] - contrast * share, contrast * (2 * share - 1)
    for at_nodes, look, outcome, times, in_order in zip(
        true_share, review.look, review.outcome, review.times, review.in_order, strict=True
    ):
        chance = (look * at_nodes)[:, :, None, None]
        if outcome < 0:
            undecided += times * np.log(never + change * chance)
        else:
            judged = chance * (1 - 2 * WRONG[:, None]) + WRONG[:, None]
            decided += times * np.log(judged if outcome else 1 - judged)
            undecided += in_order * np.log(record[:, 1 - outcome])
    of_careful = np.maximum(np.arange(len(WRONG)) - len(CAREFUL) + 1, 0)
    return np.asarray(decided + undecided[:, :, of_careful])


SCORE_DISTANCES = np.array([0.0, 0.35, 0.7, 1.2, 1.8, 2.5, 3.3])
"""Nodes of the distance d between the scores of structures and of other clusters."""

DETECTION_DISTANCES = np.array([0.0, 0.5, 1.2, 2.0])
"""Nodes of the distance e between the detection variables of structures and of other clusters."""

CORRELATIONS = np.array([0.0, 0.3, 0.6, 0.8, 0.92])
"""Nodes of the correlation c of votes with detections and scores, given the truth."""

UNINFORMATIVE = 0.9
"""Prior probability that neither detections nor their scores separate structures from others."""

BELIEVED_CLUSTERS = 200.0
"""Maximum weight of all undecided clusters together in the estimates of d, e and c, in clusters."""

MISTAKEN = 0.05
"""Probability that a decision is wrong, in the estimates of d, e and c."""

SCALE_NODES = np.linspace(-6.0, 10.0, 1601)
"""Nodes of the normal scale, between which quantiles are interpolated."""

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ScoredClusters:
    """N clusters of a run on the images that a program searched."""

    searched: Sequence[BoolArray]  # sequence of (M,): clusters of each image that are included: all, or none
    # (N,): rank of the score among all detections, between 0 and 1; one half without a detection
    rank: FloatArray
    tied: FloatArray  # (N,): share of the detections with the same score; 0 where no other has it
    detected: BoolArray  # (N,): True where the program has a detection
    log_odds: FloatArray  # (N,): log odds of the share of votes
    # known, truth: (N,): decided clusters, and the decisions
    known: BoolArray
    truth: FloatArray

    @property
    def worth(self) -> FloatArray:
        """Weight of each cluster in the estimates of d, e and c, (N,)."""
        undecided = max(int((~self.known).sum()), 1)
        return np.where(self.known, 1.0, min(BELIEVED_CLUSTERS / undecided, 1.0))


@dataclass(frozen=True, eq=False)
class ScoreFit:
    """Likelihood ratios of the scores."""

    # (T, M) for each image: likelihood ratios of its M clusters at T nodes of d, e and c; 1 if the program
    # did not search the image
    ratio: Sequence[FloatArray]
    node_weight: FloatArray  # (T,): posterior of the nodes


def gather_scores(problems: Sequence[Problem], log_odds_of: Sequence[FloatArray]) -> ScoredClusters | None:
    """Rank the scores of a run; None where no image has any.

    `log_odds_of`: (M,) of each image, log odds of the share of votes on its clusters.
    """
    scores = [problem.score for problem in problems if problem.score is not None]
    if not sum(map(len, scores)):
        return None
    from scipy.stats import rankdata  # it takes a second to load

    every = np.concatenate(scores)
    detected = np.isfinite(every)
    rank = np.full(len(every), 0.5)
    tied, found = np.zeros(len(every)), max(int(detected.sum()), 1)
    rank[detected] = (rankdata(every[detected]) - 0.5) / found
    _, same, number = np.unique(every[detected], return_inverse=True, return_counts=True)
    tied[detected] = np.where(number > 1, number / found, 0.0)[same]
    searched = [np.full(len(problem.count), problem.score is not None) for problem in problems]
    chosen = np.concatenate(searched)
    return ScoredClusters(
        searched,
        rank,
        tied,
        detected,
        np.concatenate(log_odds_of)[chosen],
        np.concatenate([problem.known for problem in problems])[chosen],
        np.concatenate([problem.truth for problem in problems])[chosen],
    )


def fit_scores(clusters: ScoredClusters, posterior: FloatArray) -> ScoreFit:
    """Estimate the likelihood ratios of the scores.

    `posterior`: (N,), posterior of each cluster by its votes; decided clusters follow the decision.
    """
    decided = clusters.truth * (1 - 2 * MISTAKEN) + MISTAKEN
    chance, worth = np.where(clusters.known, decided, posterior), clusters.worth
    log, ratios = [], []
    for weight, present, absent in _densities(clusters, chance):
        mixed = chance * np.exp(present) + (1 - chance) * np.exp(absent)
        log.append(np.log(weight) + worth @ np.log(np.maximum(mixed, TINY)))
        ratios.append(np.exp(present - absent))
    node_weight, ratio = np.exp(np.array(log) - max(log)), np.array(ratios)
    parts, at = [], 0
    for searched in clusters.searched:
        number = int(searched.sum())
        parts.append(ratio[:, at : at + number] if number else np.ones((len(ratio), len(searched))))
        at += number
    return ScoreFit(parts, node_weight / node_weight.sum())


def _densities(
    clusters: ScoredClusters, chance: FloatArray
) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """Return each node's prior, and log densities (N,) on structures and others, relative to all.

    Detections with the same score have the probability of the interval of ranks that they share.
    """
    from scipy.special import log_ndtr, ndtr

    share, log_odds, between = _standardised_votes(clusters, chance)
    detected, tied, prior = clusters.detected, clusters.tied > 0, _prior()
    lost = 1 - float((detected.sum() + 0.5) / (len(detected) + 1))
    for depth, alike in enumerate(CORRELATIONS):
        width, expected = np.sqrt(1 - alike**2), alike * log_odds
        for row, keener in enumerate(DETECTION_DISTANCES):
            bound = float(_quantiles(np.array([lost]), share, keener + alike * between)[0])
            present = share * float(ndtr(keener + alike * between - bound))
            others = (1 - share) * float(ndtr(-bound))
            among, besides = present / (present + others), max(others / (present + others), TINY)
            away = (bound - expected) / width
            detection = np.where(detected, log_ndtr(-away), log_ndtr(away))
            away = away - keener / width
            seen_present = np.where(detected, log_ndtr(-away), log_ndtr(away))
            for column, apart in enumerate(SCORE_DISTANCES):
                mean = apart + alike * between
                score = _quantiles(clusters.rank, among, mean)
                base = np.logaddexp(np.log(among) + _normal(score - mean), np.log(besides) + _normal(score))
                scores = [
                    np.where(
                        detected, _normal((score - shift - expected) / width) - np.log(width) - base, 0.0
                    )
                    for shift in (apart, 0.0)
                ]
                if tied.any():
                    ends = [
                        _quantiles(clusters.rank[tied] + side * clusters.tied[tied] / 2, among, mean)
                        for side in (-1, 1)
                    ]
                    for log_density, shift in zip(scores, (apart, 0.0), strict=True):
                        low, high = (ndtr((end - shift - expected[tied]) / width) for end in ends)
                        log_density[tied] = np.log(np.maximum(high - low, TINY) / clusters.tied[tied])
                marginal = np.where(detected, np.log1p(-lost), np.log(lost))
                weight = prior[row, column, depth]
                yield weight, seen_present + scores[0] - marginal, detection + scores[1] - marginal


def _prior() -> FloatArray:
    """Return the prior probability of the nodes of e, d and c, with an extra share for d = e = 0."""
    telling = np.outer([0.4, 0.2, 0.2, 0.2], [0.25, *[0.125] * 6])
    telling[0, 0] = 0.0
    telling *= (1 - UNINFORMATIVE) / telling.sum()
    telling[0, 0] = UNINFORMATIVE
    return np.asarray(np.multiply.outer(telling, [0.25, 0.2, 0.2, 0.2, 0.15]))


def _standardised_votes(clusters: ScoredClusters, chance: FloatArray) -> tuple[float, FloatArray, float]:
    """Return the share of structures, votes (N,) standardised by the others, and the structures' mean."""
    worth, log_odds = clusters.worth, clusters.log_odds
    share = float(np.clip(chance @ worth / worth.sum(), 1e-4, 1 - 1e-4))
    middle, square = [], 0.0
    for weight in (chance * worth, (1 - chance) * worth):
        total = max(float(weight.sum()), TINY)
        middle.append(float(weight @ log_odds) / total)
        square += float(weight @ log_odds**2) - middle[-1] ** 2 * total
    spread = max(float(np.sqrt(max(square / worth.sum(), 0.0))), 0.1)
    return share, (log_odds - middle[1]) / spread, (middle[0] - middle[1]) / spread


def _quantiles(rank: FloatArray, share: float, apart: float) -> FloatArray:
    """Return the scores at ranks, for a share of structures and a distance."""
    from scipy.special import ndtr

    cumulative = share * ndtr(SCALE_NODES - apart) + (1 - share) * ndtr(SCALE_NODES)
    return np.asarray(np.interp(rank, cumulative, SCALE_NODES))


def _normal(value: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * value**2 - 0.5 * np.log(2 * np.pi))
