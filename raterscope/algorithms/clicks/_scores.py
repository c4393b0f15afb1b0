"""Scores of a program as one more observer of the clusters.

A program searched the same images and gave each of its detections a score, any real number; higher means more
probably a structure. Each cluster has the score of the detection that lies on it, or none. The crowd's
posterior is multiplied by the likelihood ratio of detection and score, which is learned from the decisions
and the crowd's posteriors together, as [raykar2010]_ learn a classifier from annotators while the truth is
latent.

Only the order of the scores counts. After some rising transform, scores are normal with mean 0 on what is
none, d on structures, and variance 1 ([metz1978]_). Given d and the share of structures, all scores together
are a mixture whose quantiles are the ranks, so the transform need not be fitted. Detections are a normal
variable above a threshold in the same way, e apart. What is easily seen draws both votes and high scores: at
a given truth, either has the correlation c with the log odds of the share of votes, and d and e are what is
left between structures and others of the same share. Sums run over a grid of d, e and c. With d = e = 0
scores change nothing, and this has the prior probability .9.

Undecided clusters together teach these as `BELIEVED_CLUSTERS` would, while every decision counts. Scores do
not teach the level of the run (see `_honesty`): votes and scores of a real detector depend on each other in
more ways than c, and the level would follow them. So they do not tell a run of artefacts alone from others
without decisions.

References
----------
.. [raykar2010] V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni and L. Moy, "Learning
   from crowds", Journal of Machine Learning Research 11 (2010) 1297-1322.
.. [metz1978] C. E. Metz, "Basic principles of ROC analysis", Seminars in Nuclear Medicine 8 (1978) 283-298,
   doi:10.1016/S0001-2998(78)80014-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks._vote_model import Problem
from raterscope.algorithms.clicks.data import BoolArray, FloatArray

__all__ = ["ScoreFit", "ScoredClusters", "fit_scores", "gather_scores"]

APART = np.array([0.0, 0.35, 0.7, 1.2, 1.8, 2.5, 3.3])
"""Nodes of the distance d between the scores of structures and of others."""

FOUND = np.array([0.0, 0.5, 1.2, 2.0])
"""Nodes of the distance e between the detection of structures and of others."""

ALIKE = np.array([0.0, 0.3, 0.6, 0.8, 0.92])
"""Nodes of the correlation c of votes with detections and scores, given the truth."""

NOTHING = 0.9
"""Prior probability that neither detections nor their scores tell structures from others."""

BELIEVED_CLUSTERS = 200.0
"""Undecided clusters that teach d, e and c in full; more of them count as so many."""

MISTAKEN = 0.05
"""Chance that a decision is wrong, as far as it teaches d, e and c."""

PLACES = np.linspace(-6.0, 10.0, 1601)
"""Nodes of the normal scale, between which quantiles are interpolated."""

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ScoredClusters:
    """N clusters of a run on the images that a program searched.

    Attributes
    ----------
    given : sequence of (M,) bool
        Clusters of each image that are among them: all, or none.
    rank : (N,) float64
        Rank of the score among all detections, between 0 and 1; one half without a detection.
    found : (N,) bool
        True where the program has a detection.
    place : (N,) float64
        Log odds of the share of votes.
    known, truth : (N,)
        Decided clusters, and what was decided.
    """

    given: Sequence[BoolArray]
    rank: FloatArray
    found: BoolArray
    place: FloatArray
    known: BoolArray
    truth: FloatArray

    @property
    def worth(self) -> FloatArray:
        """(N,) weight of each cluster in learning."""
        undecided = max(int((~self.known).sum()), 1)
        return np.where(self.known, 1.0, min(BELIEVED_CLUSTERS / undecided, 1.0))


@dataclass(frozen=True, eq=False)
class ScoreFit:
    """Likelihood ratios of the scores.

    Attributes
    ----------
    ratio : sequence of (T, M) float64
        Of the clusters of each image, for T nodes of d, e and c; 1 on an image that the program did not
        search.
    way : (T,) float64
        Posterior of the nodes.
    """

    ratio: Sequence[FloatArray]
    way: FloatArray


def gather_scores(problems: Sequence[Problem], places: Sequence[FloatArray]) -> ScoredClusters | None:
    """Rank the scores of a run; None where no image has any.

    Parameters
    ----------
    problems : sequence of Problem
    places : sequence of (M,) float64
        Log odds of the share of votes on the clusters of each image.
    """
    from scipy.stats import rankdata

    scores = [one.score for one in problems if one.score is not None]
    if not sum(map(len, scores)):
        return None
    every = np.concatenate(scores)
    found = np.isfinite(every)
    rank = np.full(len(every), 0.5)
    rank[found] = (rankdata(every[found]) - 0.5) / max(int(found.sum()), 1)
    given = [np.full(len(one.count), one.score is not None) for one in problems]
    chosen = np.concatenate(given)
    return ScoredClusters(
        given,
        rank,
        found,
        np.concatenate(places)[chosen],
        np.concatenate([one.known for one in problems])[chosen],
        np.concatenate([one.truth for one in problems])[chosen],
    )


def fit_scores(clusters: ScoredClusters, posterior: FloatArray) -> ScoreFit:
    """Learn the likelihood ratios of the scores.

    Parameters
    ----------
    clusters : ScoredClusters
    posterior : (N,) float64
        Of each cluster by its votes; decided clusters are what was decided.
    """
    decided = clusters.truth * (1 - 2 * MISTAKEN) + MISTAKEN
    chance, worth = np.where(clusters.known, decided, posterior), clusters.worth
    log, ratios = [], []
    for weight, present, absent in _densities(clusters, chance):
        mixed = chance * np.exp(present) + (1 - chance) * np.exp(absent)
        log.append(np.log(weight) + worth @ np.log(np.maximum(mixed, TINY)))
        ratios.append(np.exp(present - absent))
    way, ratio = np.exp(np.array(log) - max(log)), np.array(ratios)
    parts, at = [], 0
    for given in clusters.given:
        number = int(given.sum())
        parts.append(ratio[:, at : at + number] if number else np.ones((len(ratio), len(given))))
        at += number
    return ScoreFit(parts, way / way.sum())


def _densities(
    clusters: ScoredClusters, chance: FloatArray
) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """Give each node's prior, and the log densities (N,) on structures and on others, over that on all."""
    from scipy.special import log_ndtr, ndtr

    share, place, between = _places(clusters, chance)
    found, prior = clusters.found, _prior()
    lost = 1 - float((found.sum() + 0.5) / (len(found) + 1))
    for depth, alike in enumerate(ALIKE):
        width, expected = np.sqrt(1 - alike**2), alike * place
        for row, keener in enumerate(FOUND):
            bound = float(_quantiles(np.array([lost]), share, keener + alike * between)[0])
            present = share * float(ndtr(keener + alike * between - bound))
            among = present / (present + (1 - share) * float(ndtr(-bound)))
            away = (bound - expected) / width
            seen = np.where(found, log_ndtr(-away), log_ndtr(away))
            away = away - keener / width
            seen_present = np.where(found, log_ndtr(-away), log_ndtr(away))
            for column, apart in enumerate(APART):
                mean = apart + alike * between
                score = _quantiles(clusters.rank, among, mean)
                base = np.logaddexp(np.log(among) + _normal(score - mean), np.log1p(-among) + _normal(score))
                scores = [
                    np.where(found, _normal((score - shift - expected) / width) - np.log(width) - base, 0.0)
                    for shift in (apart, 0.0)
                ]
                whole = np.where(found, np.log1p(-lost), np.log(lost))
                weight = prior[row, column, depth]
                yield weight, seen_present + scores[0] - whole, seen + scores[1] - whole


def _prior() -> FloatArray:
    """Give the prior probability of the nodes of e, d and c, and of nothing, for which c makes no odds."""
    telling = np.outer([0.4, 0.2, 0.2, 0.2], [0.25, *[0.125] * 6])
    telling[0, 0] = 0.0
    telling *= (1 - NOTHING) / telling.sum()
    telling[0, 0] = NOTHING
    return np.asarray(np.multiply.outer(telling, [0.25, 0.2, 0.2, 0.2, 0.15]))


def _places(clusters: ScoredClusters, chance: FloatArray) -> tuple[float, FloatArray, float]:
    """Give the share of structures, where votes (N,) lie among others, and where structures do."""
    worth, place = clusters.worth, clusters.place
    share = float(np.clip(chance @ worth / worth.sum(), 1e-4, 1 - 1e-4))
    middle, square = [], 0.0
    for one in (chance * worth, (1 - chance) * worth):
        whole = max(float(one.sum()), TINY)
        middle.append(float(one @ place) / whole)
        square += float(one @ place**2) - middle[-1] ** 2 * whole
    spread = max(float(np.sqrt(max(square / worth.sum(), 0.0))), 0.1)
    return share, (place - middle[1]) / spread, (middle[0] - middle[1]) / spread


def _quantiles(rank: FloatArray, share: float, apart: float) -> FloatArray:
    """Give the scores at ranks, for a share of structures and a distance."""
    from scipy.special import ndtr

    whole = share * ndtr(PLACES - apart) + (1 - share) * ndtr(PLACES)
    return np.asarray(np.interp(rank, whole, PLACES))


def _normal(place: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * place**2 - 0.5 * np.log(2 * np.pi))
