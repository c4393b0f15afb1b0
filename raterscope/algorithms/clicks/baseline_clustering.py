"""Baselines of clustering: k-means, hierarchical clustering, DBSCAN, HDBSCAN, and CEM.

CEM is EM clustering without outliers (thesis, section 2.2). The others have no model of the annotators.

References
----------
.. [ester1996] M. Ester, H.-P. Kriegel, J. Sander and X. Xu, "A density-based algorithm for discovering
   clusters in large spatial databases with noise", Proceedings of the Second International Conference on
   Knowledge Discovery and Data Mining (1996).
.. [campello2013] R. J. G. B. Campello, D. Moulavi and J. Sander, "Density-based clustering based on
   hierarchical density estimates", Advances in Knowledge Discovery and Data Mining, Lecture Notes in
   Computer Science 7819 (2013) 160-172, doi:10.1007/978-3-642-37456-2_14.
.. [lloyd1982] S. P. Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 28
   (1982) 129-137, doi:10.1109/TIT.1982.1056489.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from raterscope.algorithms.clicks._path import PARAMETERS, Criterion, Form
from raterscope.algorithms.clicks.data import BoolArray, Clicks, ClicksError, FloatArray, IntArray
from raterscope.algorithms.clicks.oem import COVARIANCES, MixtureSettings, make_path, walk_path
from raterscope.algorithms.clicks.result import Clustering, Trace
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.algorithms.settings import Settings, choice, integer, number, switch

FLOOR = 0.25
"""Minimum variance of a cluster along any axis, as a share of the squared scatter of all clusters."""


def clustering_of_labels(clicks: Clicks, labels: IntArray) -> Clustering:
    """Describe clusters by their members.

    Means and covariances are those of the members, weighted by annotator. The eigenvalues of a covariance
    have a lower bound, since two or three clicks may lie on a line. Clicks of no cluster are outliers.

    `labels`: (N,), cluster of each click in any numbering, below zero for none. Clusters are in the order of
    the labels; those without clicks are omitted.
    """
    labels = np.asarray(labels, dtype=np.int64)
    member = labels >= 0
    _, index = np.unique(labels[member], return_inverse=True)
    worth = clicks.worth[clicks.annotator[member]]
    size = np.bincount(index, worth).astype(np.float64)
    points = clicks.points
    mean = np.column_stack([np.bincount(index, worth * column) / size for column in points[member].T])
    offset = points[member] - mean[index]
    products = (offset[:, 0] ** 2, offset[:, 0] * offset[:, 1], offset[:, 1] ** 2)
    xx, xy, yy = (np.bincount(index, worth * product) / size for product in products)
    covariance = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2)
    # Pool the standard deviation along an axis over clusters; where it is zero, 0.1 % of the image.
    freedom = 2 * np.sum(np.maximum(size - 1, 0))
    pooled = np.sqrt(np.sum((xx + yy) * size) / freedom) if freedom else 0.0
    scatter = float(pooled) if pooled > 0 else 1e-3 * float(np.sqrt(clicks.area))
    return Clustering(
        mean=mean,
        covariance=floored(covariance, FLOOR * scatter**2),
        weight=size / (float(size.sum()) or 1.0),
        inlier=member.astype(np.float64),
        nearest=_nearest(points, mean, labels, member, index),
        reliability=_reliability(clicks, member),
        scatter=scatter if len(mean) else np.nan,
        trace=Trace.none(),
    )


def floored(covariance: FloatArray, floor: float) -> FloatArray:
    """Raise the eigenvalues of (M, 2, 2) covariances to a minimum, square pixels."""
    values, vectors = np.linalg.eigh(covariance)
    raised: FloatArray = np.einsum("mij,mj,mkj->mik", vectors, np.maximum(values, floor), vectors)
    return raised


def _nearest(
    points: FloatArray, mean: FloatArray, labels: IntArray, member: BoolArray, index: IntArray
) -> IntArray:
    from scipy.spatial import cKDTree

    nearest = np.full(len(labels), -1, dtype=np.int64)
    nearest[member] = index
    if len(mean) and not member.all():
        nearest[~member] = cKDTree(mean).query(points[~member])[1]
    return nearest


def _reliability(clicks: Clicks, member: BoolArray) -> FloatArray:
    counts = clicks.counts()
    inliers = np.bincount(clicks.annotator, member, minlength=len(counts))
    return np.where(counts > 0, inliers / np.maximum(counts, 1), np.nan)


ROUNDED = 1 + 1e-9
"""Factor that corrects the rounding of sums of weights to whole numbers."""


@dataclass(frozen=True)
class DBSCANSettings(Settings):
    """Settings of `dbscan`; the defaults are those of Zooniverse's point reducer."""

    reach: float = number(5.0, "Reach", "Two clicks this near are neighbours.", unit="px", minimum=1e-9)
    min_neighbours: int = integer(
        3, "Minimum neighbours", "Minimum number of clicks within reach of a click, itself included, for the "
        "core of a cluster.", minimum=1,
    )  # fmt: skip


@dataclass(frozen=True)
class HDBSCANSettings(Settings):
    """Settings of `hdbscan`; the defaults are those of Zooniverse's point reducer."""

    min_clicks: int = integer(5, "Minimum clicks", "Minimum number of clicks of a cluster.", minimum=2)
    min_neighbours: int = integer(
        3, "Minimum neighbours", "The distance to this neighbour measures density; a click is its own first "
        "neighbour.", minimum=1,
    )  # fmt: skip
    single_cluster: bool = switch(
        False, "Single cluster", "Allow a single cluster of all clicks.", advanced=True
    )  # fmt: skip


def dbscan(clicks: Clicks, settings: DBSCANSettings | None = None, watch: Watch = silent) -> Clustering:
    """Join clicks that have enough neighbours; the others are outliers.

    A neighbour counts by the weight of its annotator.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(dbscan(crowd.clicks))
    17
    """
    settings = DBSCANSettings() if settings is None else settings
    if not len(clicks):
        return clustering_of_labels(clicks, np.empty(0, dtype=np.int64))
    from sklearn.cluster import DBSCAN

    watch(0.0, f"joining {len(clicks)} clicks")
    points = clicks.points - np.median(clicks.points, axis=0)
    worth = clicks.worth[clicks.annotator] * ROUNDED
    fitted = DBSCAN(eps=settings.reach, min_samples=settings.min_neighbours).fit(points, sample_weight=worth)
    watch(1.0, "joined")
    return clustering_of_labels(clicks, fitted.labels_.astype(np.int64))


def hdbscan(clicks: Clicks, settings: HDBSCANSettings | None = None, watch: Watch = silent) -> Clustering:
    """Keep the clusters that persist over many densities; the other clicks are outliers.

    Weights of annotators do not affect which clicks are joined. They count in a cluster's centre and shape,
    and in detection.

    With fewer clicks than a cluster needs, there is no cluster.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(hdbscan(crowd.clicks))
    16
    """
    settings = HDBSCANSettings() if settings is None else settings
    if len(clicks) < max(settings.min_clicks, settings.min_neighbours):
        return clustering_of_labels(clicks, np.full(len(clicks), -1, dtype=np.int64))
    from sklearn.cluster import HDBSCAN

    watch(0.0, f"joining {len(clicks)} clicks")
    order = np.lexsort(clicks.points.T)  # ties do not depend on the order of the clicks
    points = clicks.points[order] - np.median(clicks.points, axis=0)
    fitted = HDBSCAN(
        min_cluster_size=settings.min_clicks,
        min_samples=settings.min_neighbours,
        allow_single_cluster=settings.single_cluster,
        copy=True,
    ).fit(points)
    watch(1.0, "joined")
    return clustering_of_labels(clicks, fitted.labels_[np.argsort(order)].astype(np.int64))


@dataclass(frozen=True)
class KMeansSettings(Settings):
    """Settings of `kmeans`."""

    clusters: int | None = integer(
        None, "Clusters", "Empty: twice the mean clicks of an annotator, as in the paper.", minimum=1,
        left_open="twice the mean clicks",
    )  # fmt: skip
    restarts: int = integer(
        3, "Restarts", "Runs from different starts; the result with the smallest sum of squares is kept.",
        minimum=1, maximum=100, advanced=True,
    )  # fmt: skip
    max_iterations: int = integer(
        100, "Iterations", "Maximum number of iterations of a run.", minimum=1, advanced=True
    )
    seed: int = integer(0, "Seed", "Of the starts.", minimum=0, maximum=2**31 - 1, advanced=True)


def usual_count(clicks: Clicks) -> int:
    """Return twice the mean clicks of annotators with clicks, at most the number of distinct positions."""
    worth, counts = clicks.worth, clicks.counts()
    clicked = float(worth[counts > 0].sum())
    target = max(1, round(2 * float((worth * counts).sum()) / (clicked or 1.0)))
    return min(target, len(np.unique(clicks.points, axis=0)))


def kmeans(clicks: Clicks, settings: KMeansSettings | None = None, watch: Watch = silent) -> Clustering:
    """Divide the clicks into a given number of clusters, each click to the nearest centre.

    There are no outliers: every click is an inlier. A click counts by the weight of its annotator.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(kmeans(crowd.clicks, KMeansSettings(clusters=15)))
    15
    """
    settings = KMeansSettings() if settings is None else settings
    if not len(clicks):
        return clustering_of_labels(clicks, np.empty(0, dtype=np.int64))
    points = clicks.points - np.median(clicks.points, axis=0)
    count = usual_count(clicks)
    if settings.clusters is not None:
        count = min(settings.clusters, len(np.unique(points, axis=0)))
    best, labels = np.inf, np.zeros(len(clicks), dtype=np.int64)
    for run, share in steps_of(watch, range(settings.restarts)):
        loss, nearest = _lloyd(clicks, points, count, settings, settings.seed + run, share)
        if loss < best:
            best, labels = loss, nearest
    return clustering_of_labels(clicks, labels)


def _lloyd(
    clicks: Clicks, points: FloatArray, count: int, settings: KMeansSettings, seed: int, watch: Watch
) -> tuple[float, IntArray]:
    from scipy.spatial import cKDTree
    from sklearn.cluster import kmeans_plusplus

    watch(0.0, f"choosing {count} centres")
    worth = clicks.worth[clicks.annotator]
    # The starts do not depend on the order of the clicks, nor on a common factor of the weights.
    order = np.lexsort(points.T)
    weight = worth[order] / (worth.max() or 1.0)
    centre, _ = kmeans_plusplus(points[order], count, sample_weight=weight, random_state=seed)
    labels = np.full(len(points), -1, dtype=np.int64)
    for iteration in range(settings.max_iterations):
        distance, nearest = cKDTree(centre).query(points)
        loss = float(np.sum(worth * distance**2))
        if np.array_equal(nearest, labels):
            break
        labels = nearest.astype(np.int64)
        size = np.bincount(labels, worth, minlength=count)
        filled = size > 0
        for axis in range(2):
            total = np.bincount(labels, worth * points[:, axis], minlength=count)
            centre[filled, axis] = total[filled] / size[filled]
        watch(
            (iteration + 1) / settings.max_iterations,
            f"moving {count} centres",
            objective=-loss,
            partial=partial(clustering_of_labels, clicks, labels),
        )
    return loss, labels


LARGEST = 15_000
"""Maximum number of clicks: the distances between all pairs then take 0.9 GB."""


@dataclass(frozen=True)
class HACSettings(Settings):
    """Settings of `hac`."""

    linkage: str = choice(
        "ward", "Linkage", "Distance between two clusters; with nearest, chains of clicks merge.",
        {"ward": "growth of variance", "average": "mean", "complete": "farthest", "single": "nearest"},
    )  # fmt: skip
    cut: float | None = number(
        None, "Cut", "Clusters farther apart than this are not merged. Empty: merging stops at the number of "
        "clusters.", unit="px", minimum=0.0, left_open="none",
    )  # fmt: skip
    clusters: int | None = integer(
        None, "Clusters", "Used if the cut is empty. Empty: twice the mean clicks of an annotator.",
        minimum=1, left_open="twice the mean clicks",
    )  # fmt: skip


def hac(clicks: Clicks, settings: HACSettings | None = None, watch: Watch = silent) -> Clustering:
    """Repeatedly merge the two nearest clusters.

    There are no outliers: every click is an inlier. Weights of annotators do not affect which clicks are
    merged. They count in a cluster's centre and shape, in the default number of clusters, and in detection.

    Raises `ClicksError` for more than `LARGEST` clicks, because memory grows with their square.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(hac(crowd.clicks))
    30
    """
    settings = HACSettings() if settings is None else settings
    if len(clicks) > LARGEST:
        raise ClicksError(
            f"{len(clicks)} clicks are too many for hierarchical clustering, whose memory grows with their "
            f"square; expected at most {LARGEST}."
        )
    if len(clicks) < 2:
        return clustering_of_labels(clicks, np.zeros(len(clicks), dtype=np.int64))
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    watch(0.0, f"merging {len(clicks)} clicks")
    order = np.lexsort(clicks.points.T)  # ties do not depend on the order of the clicks
    points = clicks.points[order] - np.median(clicks.points, axis=0)
    tree = linkage(pdist(points), settings.linkage)
    if settings.cut is None:
        labels = fcluster(tree, settings.clusters or usual_count(clicks), criterion="maxclust")
    else:
        labels = fcluster(tree, settings.cut, criterion="distance")
    watch(1.0, "merged")
    return clustering_of_labels(clicks, labels[np.argsort(order)].astype(np.int64))


CRITERIA = {
    "length": "message length (thesis, section 2.2)",
    "observed": "observed likelihood, with the penalties of eq. 16",
}


VERSIONS = {
    "corrected": "corrected",
    "paper": "as in the OEM-DEM paper",
    "thesis": "as in the thesis",
}


@dataclass(frozen=True)
class CEMSettings(MixtureSettings):
    """Settings of `cem`."""

    covariance: str = choice("free", "Covariance", "Of the clusters.", COVARIANCES, advanced=True)
    criterion: str = choice("length", "Criterion", "Criterion for the number of clusters.", CRITERIA)
    version: str = choice(
        "corrected", "Version", "Paper: starts exactly as OEM as published, with scatter from the variance "
        "of the clicks, no cap on the initial number, one-sided eq. 17, 10 to 500 iterations. "
        "Thesis (section 2.2): annihilates components all at once. Both choose by message length.", VERSIONS,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """List the differences from the published algorithm, as clauses for the methods text of a report."""
        if self.version == "paper":
            return (
                "covariances have a floor",
                "components are updated all at once, as the thesis prints (eqs. 2.14 to 2.17): the paper "
                "prints no equations of CEM",
            )
        if self.version == "thesis":
            return (
                "covariances have a floor",
                "the initial number and scatter, which the thesis does not state, are those of the settings",
                "convergence is relative to the criterion",
            )
        return (
            "covariances have a floor",
            "eq. 2.17 annihilates one component after the other",
            "removal may end without any cluster",
            *(
                ()
                if self.criterion == "length"
                else ("the observed likelihood with the penalties of eq. 16 replaces the message length",)
            ),
        )


def cem(clicks: Clicks, settings: CEMSettings | None = None, watch: Watch = silent) -> Clustering:
    """Cluster the clicks of one image without outliers (thesis, section 2.2).

    `clicks`: N clicks of R annotators. `watch`: called with every iteration. `inlier` and `reliability` of
    the result are one wherever there are clicks.

    Notes
    -----
    The OEM-DEM paper compares with CEM "initialized exactly as OEM" (section 3.1) without equations. Its
    version here uses the thesis's equations in the paper's Algorithm 1 without outliers.
    `CEMSettings.departures` lists the differences from the publications.

    References
    ----------
    .. [figueiredo2002] M. A. T. Figueiredo and A. K. Jain, "Unsupervised learning of finite mixture
       models", IEEE Transactions on Pattern Analysis and Machine Intelligence 24 (2002) 381-396,
       doi:10.1109/34.990138.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> found = cem(separated_crowd(20, seed=1).clicks, CEMSettings(version="thesis"))
    >>> bool((found.inlier == 1).all())
    True
    """
    settings = CEMSettings() if settings is None else settings
    published = settings.version != "corrected"
    forms: dict[str, Form] = {"corrected": "corrected", "paper": "literal", "thesis": "thesis"}
    path = partial(
        make_path,
        settings,
        criterion="length" if published else cast(Criterion, settings.criterion),
        penalty=PARAMETERS / 2,
        form=forms[settings.version],
        outliers=False,
    )
    return walk_path(clicks, settings, watch, path, settings.version == "paper")
