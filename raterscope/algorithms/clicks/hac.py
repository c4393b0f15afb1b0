"""Hierarchical agglomerative clustering, as the OEM-DEM paper compares with (section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, ClicksError
from raterscope.algorithms.clicks.kmeans import usual_count
from raterscope.algorithms.clicks.partition import clustering_of_labels
from raterscope.algorithms.clicks.results import Clustering
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, choice, integer, number

__all__ = ["HACSettings", "hac"]

LARGEST = 15_000
"""Most clicks: the distances between all pairs take 0.9 GB then."""


@dataclass(frozen=True)
class HACSettings(Settings):
    """Settings of `hac`."""

    linkage: str = choice(
        "ward", "Linkage", "What counts as the distance of two clusters; with nearest, chains merge.",
        {"ward": "growth of variance", "average": "mean", "complete": "farthest", "single": "nearest"},
    )  # fmt: skip
    cut: float | None = number(
        None, "Cut", "Clusters farther apart than this are not merged. Left open, merging stops at the "
        "number of clusters.", unit="px", minimum=0.0,
    )  # fmt: skip
    clusters: int | None = integer(
        None, "Clusters", "Used where the cut is open. Left open: twice the mean clicks of an annotator.",
        minimum=1,
    )  # fmt: skip


def hac(clicks: Clicks, settings: HACSettings | None = None, watch: Watch = silent) -> Clustering:
    """Merge the two nearest clusters again and again.

    There are no outliers: every click is an inlier. Weights of annotators do not change which clicks are
    merged, for a link between two clicks is there or not; they count in a cluster's centre and shape, in how
    many clusters are usual, and in what is detected.

    Parameters
    ----------
    clicks : Clicks
    settings : HACSettings, optional
    watch : Watch

    Returns
    -------
    Clustering

    Raises
    ------
    ClicksError
        For more clicks than memory allows: it grows with their square.

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
    tree = linkage(pdist(clicks.points - np.median(clicks.points, axis=0)), settings.linkage)
    if settings.cut is None:
        labels = fcluster(tree, settings.clusters or usual_count(clicks), criterion="maxclust")
    else:
        labels = fcluster(tree, settings.cut, criterion="distance")
    watch(1.0, "merged")
    return clustering_of_labels(clicks, labels.astype(np.int64))
