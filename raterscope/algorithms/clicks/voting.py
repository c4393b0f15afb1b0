"""Assignment of clicks to clusters (section 4), and detection by majority or share of votes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.baseline_clustering import floored
from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray, KnownSpots, median
from raterscope.algorithms.clicks.result import Clustering, Detection, Votes
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, number, switch

WHOLE = 0.99
"""Maximum coverage of the ellipse within which an annotator's further clicks repeat a vote."""

REACH = 9.21
"""Maximum squared Mahalanobis distance between a known spot and its cluster: 99 % of a Gaussian."""

REACH_OF_REJECTED = 2.25
"""Value of `REACH` for a spot that is not a structure, 1.5 standard deviations: rejecting another cluster
would hide a structure.
"""


@dataclass(frozen=True)
class AssignmentSettings(Settings):
    """Settings of `votes_of`."""

    outlier_threshold: float = number(
        0.5, "Inlier threshold", "A click is a vote if its inlier probability reaches this.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    vote_coverage: float = number(
        0.975, "Vote coverage", "A click is a vote within the ellipse with this share of its cluster's "
        "clicks; 1 for no limit, as in the paper.", minimum=0.1, maximum=1.0, advanced=True,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """List the differences from section 4 of the OEM-DEM paper, as clauses for the methods text."""
        merged = "an annotator's clicks at exactly the same position count once"
        if self.vote_coverage < 1:
            return merged, "votes lie within an ellipse around their cluster; the paper has no bound"
        return (merged,)


def votes_of(
    clicks: Clicks, clustering: Clustering, threshold: float = 0.5, coverage: float = 1.0
) -> BoolArray:
    """Return whether each click is a vote for its nearest cluster, (N,) (OEM-DEM paper, section 4).

    `clicks`: the N clicks that were clustered.
    `threshold`: clicks with a smaller inlier probability are not votes.
    `coverage`: clicks outside the ellipse with this share of the cluster's clicks are not votes either. The
        paper has no such bound; without it, imprecise annotators seem as able as precise ones.
    """
    votes: BoolArray = (clustering.inlier >= threshold) & (clustering.nearest >= 0)
    return _within_ellipses(clicks, clustering, votes, coverage) if coverage < 1 else votes


def repeats_of(clicks: Clicks, clustering: Clustering, marked: BoolArray, coverage: float) -> IntArray:
    """Count each annotator's clicks beyond the first on the clusters that they marked, (R,).

    Clustering may classify repeated clicks as outliers; within the ellipse of a cluster that the annotator
    marked they are not further marks.

    `marked`: (R, M), as from `assign`. `coverage`: as in `votes_of`.
    """
    near = clustering.nearest >= 0
    near[near] = marked[clicks.annotator[near], clustering.nearest[near]]
    near = _within_ellipses(clicks, clustering, near, min(coverage, WHOLE))
    own = np.bincount(clicks.annotator[near], minlength=len(marked))
    return np.asarray(np.maximum(own - marked.sum(axis=1), 0), dtype=np.int64)


def _within_ellipses(clicks: Clicks, clustering: Clustering, chosen: BoolArray, coverage: float) -> BoolArray:
    """Return whether each click is chosen and lies in its cluster's ellipse with some coverage, (N,)."""
    within = chosen.copy()
    if within.any():
        cluster = clustering.nearest[within]
        x, y = clicks.x[within] - clustering.mean[cluster, 0], clicks.y[within] - clustering.mean[cluster, 1]
        xx, xy, _, yy = clustering.covariance.reshape(-1, 4)[cluster].T
        distance = (yy * x * x - 2 * xy * x * y + xx * y * y) / (xx * yy - xy * xy)
        within[within] = distance <= -2 * np.log1p(-coverage)
    return within


def assign(clicks: Clicks, clustering: Clustering, votes: BoolArray) -> BoolArray:
    """Return whether each annotator marked each cluster, (R, M) (OEM-DEM paper, eq. 20).

    `clicks`: the N clicks that were clustered, of R annotators. `votes`: (N,) bool, True for clicks that are
    votes, as from `votes_of`.
    """
    marked = np.zeros((len(clicks.annotators), len(clustering)), dtype=bool)
    marked[clicks.annotator[votes], clustering.nearest[votes]] = True
    return marked


def assign_outsiders(clicks: Clicks, clustering: Clustering) -> Clustering:
    """Return the clustering as of N clicks that were not clustered.

    Each belongs to the nearest cluster by Mahalanobis distance, within 99 % of the cluster's probability.
    """
    points, nearest = np.column_stack([clicks.x, clicks.y]), np.full(len(clicks), -1, dtype=np.int64)
    row, cluster, distance = _near_pairs(points, clustering.mean, clustering.covariance)
    farthest_first = np.argsort(-distance, kind="stable")
    nearest[row[farthest_first]] = cluster[farthest_first]
    return replace(clustering, inlier=(nearest >= 0).astype(np.float64), nearest=nearest)


def apply_known_spots(
    clicks: Clicks, clustering: Clustering, known: KnownSpots, votes: BoolArray
) -> tuple[Clustering, NDArray[np.int8]]:
    """Match known spots to clusters, and append known structures without a cluster.

    A known spot belongs to the nearest cluster by Mahalanobis distance: a structure within 99 % of the
    cluster's probability, a rejected spot within 1.5 standard deviations. Each cluster belongs to one spot at
    most, the nearest pairs first. A known structure without a cluster becomes a cluster with the click
    scatter as covariance; clicks near it that were not votes are its inliers. On an image known to hold no
    structure, all other clusters are known artefacts.

    `votes`: (N,), as from `votes_of`. Appended clusters are the last of the clustering. The second result,
    (M,), is 1 or 0 where the truth is known, -1 elsewhere.
    """
    verdict = np.full(len(clustering), -1 if clicks.control is not False else 0, dtype=np.int8)
    if not len(known):
        return clustering, verdict
    cluster = clusters_of_spots(clicks, clustering, known)
    verdict[cluster[cluster >= 0]] = known.present[cluster >= 0]
    missed = np.column_stack([known.x, known.y])[(cluster < 0) & known.present]
    if not len(missed):
        return clustering, verdict
    return (
        _with_appended(clicks, clustering, missed, _scatter(clicks, clustering), votes),
        np.concatenate([verdict, np.ones(len(missed), dtype=np.int8)]),
    )


def clusters_of_spots(clicks: Clicks, clustering: Clustering, known: KnownSpots) -> IntArray:
    """Return the cluster of each known spot, (K,), as `apply_known_spots` matches them; -1 for none."""
    cluster_of = np.full(len(known), -1, dtype=np.int64)
    covariance = floored(clustering.covariance, _scatter(clicks, clustering) ** 2)
    spot, cluster, distance = _near_pairs(np.column_stack([known.x, known.y]), clustering.mean, covariance)
    taken = np.zeros(len(clustering), dtype=bool)
    within_reach = known.present[spot] | (distance <= REACH_OF_REJECTED)
    for row in np.argsort(distance, kind="stable"):
        if within_reach[row] and cluster_of[spot[row]] < 0 and not taken[cluster[row]]:
            cluster_of[spot[row]] = cluster[row]
            taken[cluster[row]] = True
    return cluster_of


def viewed_clusters(clicks: Clicks, clustering: Clustering, verdict: NDArray[np.int8]) -> BoolArray | None:
    """Find the clusters that the expert viewed and left undecided.

    `verdict`: (M,), as from `apply_known_spots`. The result, (M,), is True for the undecided cluster nearest
    to a viewed spot, within 99 % of the cluster's probability. It is None without a record of viewed spots.
    """
    if clicks.viewed is None:
        return None
    viewed = np.zeros(len(clustering), dtype=np.bool_)
    if len(clicks.viewed) and len(clustering):
        covariance = floored(clustering.covariance, _scatter(clicks, clustering) ** 2)
        spot, cluster, distance = _near_pairs(clicks.viewed, clustering.mean, covariance)
        used = np.zeros(len(clicks.viewed), dtype=np.bool_)
        for row in np.argsort(distance, kind="stable"):
            if not used[spot[row]]:
                used[spot[row]] = True
                viewed[cluster[row]] = True
    return viewed & (verdict < 0)


def cluster_scores(clicks: Clicks, clustering: Clustering) -> FloatArray | None:
    """Find the score of a program's detection on each cluster.

    A detection belongs to the nearest cluster within 99 % of the probability of two observers of the same
    position. Each cluster belongs to one detection at most, the nearest pairs first. The result, (M,), is NaN
    for clusters without a detection. It is None if the program did not search the image.
    """
    if clicks.scores is None:
        return None
    scores = np.full(len(clustering), np.nan)
    used = np.zeros(len(clicks.scores), dtype=np.bool_)
    scatter = _scatter(clicks, clustering)
    covariance = 2 * floored(clustering.covariance, scatter**2)
    detection, cluster, distance = _near_pairs(clicks.scores[:, :2], clustering.mean, covariance)
    for row in np.argsort(distance, kind="stable"):
        if not used[detection[row]] and np.isnan(scores[cluster[row]]):
            used[detection[row]] = True
            scores[cluster[row]] = clicks.scores[detection[row], 2]
    return scores


def stray_chance(clicks: Clicks, clustering: Clustering) -> tuple[FloatArray | None, float]:
    """Return the chance that an annotator's outlier falls on a given position, and the number of positions.

    The chance, (R,), comes from the expected number of outliers, half a click added, and the share of the
    image that the usual cluster covers. It is None if the clustering method has no outliers, or found no
    cluster. The number of positions is the area of the image over that of the usual cluster, at least 1; 0 if
    the chance is None.
    """
    if not len(clustering) or (clustering.inlier == 1).all():
        return None, 0.0
    outliers = np.bincount(clicks.annotator, 1 - clustering.inlier, minlength=len(clicks.annotators))
    size = float(np.pi * REACH * np.sqrt(median(np.linalg.det(clustering.covariance))))
    positions = max(clicks.area / size, 1.0)
    return np.asarray(1 - np.exp(-(outliers + 0.5) / positions), dtype=np.float64), positions


def _with_appended(
    clicks: Clicks, clustering: Clustering, spots: FloatArray, scatter: float, votes: BoolArray
) -> Clustering:
    covariance = np.tile(np.eye(2) * scatter**2, (len(spots), 1, 1))
    loose = np.flatnonzero(~votes)
    click, spot, distance = _near_pairs(clicks.points[loose], spots, covariance)
    nearest, inlier = clustering.nearest.copy(), clustering.inlier.copy()
    order = np.argsort(-distance, kind="stable")  # the nearest spot is written last
    nearest[loose[click[order]]] = len(clustering) + spot[order]
    inlier[loose[click]] = 1.0
    won = np.bincount(nearest[loose[np.unique(click)]] - len(clustering), minlength=len(spots))
    weight = won / max(len(clicks), 1)
    return replace(
        clustering,
        mean=np.vstack([clustering.mean, spots]),
        covariance=np.concatenate([clustering.covariance, covariance]),
        weight=np.concatenate([clustering.weight * (1 - weight.sum()), weight]),
        inlier=inlier,
        nearest=nearest,
    )


def _scatter(clicks: Clicks, clustering: Clustering) -> float:
    """Return the click scatter, or else the clusters' median size, or else a share of the image's size."""
    if np.isfinite(clustering.scatter) and clustering.scatter > 0:
        return clustering.scatter
    if len(clustering):
        return float(np.sqrt(np.median(np.trace(clustering.covariance, axis1=1, axis2=2)) / 2))
    return 0.005 * float(np.sqrt(clicks.area))


def _near_pairs(
    points: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Find pairs of a point and a component within reach: rows of both and squared Mahalanobis distances."""
    from scipy.spatial import cKDTree

    if not len(points) or not len(mean):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    radius = np.sqrt(REACH * np.linalg.eigvalsh(covariance)[:, -1])
    near = cKDTree(points).query_ball_point(mean, radius)
    component = np.repeat(np.arange(len(mean)), [len(rows) for rows in near])
    point = np.concatenate([np.asarray(rows, dtype=np.int64) for rows in near])
    offset = points[point] - mean[component]
    distance = np.einsum("ni,nij,nj->n", offset, np.linalg.inv(covariance)[component], offset)
    within = distance <= REACH
    return point[within], component[within], distance[within]


EVEN = 1e-9
"""Tolerance of sums of weights at thresholds."""


@dataclass(frozen=True)
class MajoritySettings(Settings):
    """Settings of `majority`."""

    ties_count: bool = switch(
        True, "Ties count", "Half of the annotators are enough (eq. 33); otherwise more than half are needed."
    )


@dataclass(frozen=True)
class ShareSettings(Settings):
    """Settings of `share`."""

    share: float = number(
        0.2, "Share of votes", "Smallest share of annotators who mark a detection.", minimum=0.0, maximum=1.0
    )


def majority(votes: Votes, settings: MajoritySettings | None = None, watch: Watch = silent) -> Detection:
    """Detect clusters that half of the annotators marked, by weight (OEM-DEM paper, eq. 33).

    The posterior is the share of votes, with the interval of this share (Jeffreys prior). Sensitivities and
    specificities are relative to the majority vote.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> detection = majority(crowd.votes)
    >>> int((detection.detected == crowd.present).sum())
    38
    """
    settings = MajoritySettings() if settings is None else settings
    beyond = 2 * votes.count - votes.crowd
    watch(1.0, "counted the votes")
    return _detection(votes, beyond >= -EVEN if settings.ties_count else beyond > EVEN)


def share(votes: Votes, settings: ShareSettings | None = None, watch: Watch = silent) -> Detection:
    """Detect clusters that a share of the annotators marked, by weight.

    The result has the same fields as that of `majority`.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import voting_crowd
    >>> crowd = voting_crowd(15, 40, seed=1)
    >>> int(share(crowd.votes, ShareSettings(share=0.3)).detected.sum())
    27
    """
    settings = ShareSettings() if settings is None else settings
    watch(1.0, "counted the votes")
    return _detection(votes, votes.count >= settings.share * votes.crowd - EVEN)


def _detection(votes: Votes, enough: BoolArray) -> Detection:
    from scipy.special import betaincinv

    known = votes.verdict >= 0
    present = np.where(known, votes.verdict == 1, enough & (len(votes.marked) > 0))
    count = votes.count
    quiet = np.maximum(votes.crowd - count, 0)
    part = np.where(known, votes.verdict, votes.share).astype(np.float64)
    low, high = (betaincinv(count + 0.5, quiet + 0.5, level) for level in (0.025, 0.975))
    hits = (votes.marked & present).sum(axis=1).astype(np.float64)
    false = (votes.marked & ~present).sum(axis=1).astype(np.float64)
    structures, absent = float(present.sum()), float((~present).sum())
    return Detection(
        posterior=part,
        posterior_low=np.where(known, part, np.minimum(low, part)),
        posterior_high=np.where(known, part, np.maximum(high, part)),
        detected=present,
        prevalence=float(present.mean()) if len(present) else np.nan,
        sensitivity=_ratio(hits, structures),
        specificity=_ratio(absent - false, absent),
        true_positive=hits,
        false_negative=structures - hits,
        true_negative=absent - false,
        false_positive=false,
        objective=np.empty(0),
        converged=True,
    )


def _ratio(part: FloatArray, total: float) -> FloatArray:
    return part / total if total else np.full(len(part), np.nan)
