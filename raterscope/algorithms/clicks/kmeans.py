"""k-means, as the OEM-DEM paper compares with (section 3.1).

References
----------
.. [lloyd1982] S. P. Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 28
   (1982) 129-137, doi:10.1109/TIT.1982.1056489.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.partition import clustering_of_labels
from raterscope.algorithms.clicks.results import Clustering
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, integer

__all__ = ["KMeansSettings", "kmeans", "usual_count"]


@dataclass(frozen=True)
class KMeansSettings(Settings):
    """Settings of `kmeans`."""

    clusters: int | None = integer(
        None, "Clusters", "Left open: twice the mean clicks of an annotator, as the paper takes.", minimum=1
    )  # fmt: skip
    restarts: int = integer(
        3, "Restarts", "Runs from other starts; the tightest is kept.", minimum=1, maximum=100, advanced=True
    )  # fmt: skip
    max_iterations: int = integer(100, "Iterations", "Most iterations of a run.", minimum=1, advanced=True)
    seed: int = integer(0, "Seed", "Of the starts.", minimum=0, maximum=2**31 - 1, advanced=True)


def usual_count(clicks: Clicks) -> int:
    """Give twice the mean clicks of the annotators who clicked, no more than there are places to be."""
    worth, counts = clicks.worth, clicks.counts()
    clicked = float(worth[counts > 0].sum())
    wanted = max(1, round(2 * float((worth * counts).sum()) / (clicked or 1.0)))
    return min(wanted, len(np.unique(clicks.points, axis=0)))


def kmeans(clicks: Clicks, settings: KMeansSettings | None = None, watch: Watch = silent) -> Clustering:
    """Part the clicks into a given number of clusters, each click to the nearest centre.

    There are no outliers: every click is an inlier. A click counts by the weight of its annotator.

    Parameters
    ----------
    clicks : Clicks
    settings : KMeansSettings, optional
    watch : Watch

    Returns
    -------
    Clustering

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
    for run in range(settings.restarts):
        share = part(watch, run / settings.restarts, (run + 1) / settings.restarts)
        loss, found = _lloyd(clicks, points, count, settings, settings.seed + run, share)
        if loss < best:
            best, labels = loss, found
    return clustering_of_labels(clicks, labels)


def _lloyd(
    clicks: Clicks, points: FloatArray, count: int, settings: KMeansSettings, seed: int, watch: Watch
) -> tuple[float, IntArray]:
    from scipy.spatial import cKDTree
    from sklearn.cluster import kmeans_plusplus

    watch(0.0, f"choosing {count} centres")
    worth = clicks.worth[clicks.annotator]
    centre, _ = kmeans_plusplus(points, count, sample_weight=worth, random_state=seed)
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
