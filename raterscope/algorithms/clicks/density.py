"""DBSCAN and HDBSCAN by scikit-learn, which users know from elsewhere.

References
----------
.. [ester1996] M. Ester, H.-P. Kriegel, J. Sander and X. Xu, "A density-based algorithm for discovering
   clusters in large spatial databases with noise", Proceedings of the Second International Conference on
   Knowledge Discovery and Data Mining (1996).
.. [campello2013] R. J. G. B. Campello, D. Moulavi and J. Sander, "Density-based clustering based on
   hierarchical density estimates", Advances in Knowledge Discovery and Data Mining, Lecture Notes in
   Computer Science 7819 (2013) 160-172, doi:10.1007/978-3-642-37456-2_14.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.partition import clustering_of_labels
from raterscope.algorithms.clicks.results import Clustering
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, integer, number, switch

__all__ = ["DBSCANSettings", "HDBSCANSettings", "dbscan", "hdbscan"]

ROUNDED = 1 + 1e-9
"""Times which sums of weights reach a whole number that rounding kept them from."""


@dataclass(frozen=True)
class DBSCANSettings(Settings):
    """Settings of `dbscan`; the defaults are those of Zooniverse's point reducer."""

    reach: float = number(5.0, "Reach", "Two clicks this near are neighbours.", unit="px", minimum=1e-9)
    least_neighbours: int = integer(
        3, "Least neighbours", "Clicks within reach, its own included, that make a click a cluster's core.",
        minimum=1,
    )  # fmt: skip


@dataclass(frozen=True)
class HDBSCANSettings(Settings):
    """Settings of `hdbscan`; the defaults are those of Zooniverse's point reducer."""

    least_clicks: int = integer(5, "Least clicks", "Fewer clicks than this make no cluster.", minimum=2)
    least_neighbours: int = integer(
        3, "Least neighbours", "The distance to this neighbour, itself the first, measures density.",
        minimum=1,
    )  # fmt: skip
    single_cluster: bool = switch(
        False, "Single cluster", "All clicks may turn out to be one cluster.", advanced=True
    )  # fmt: skip


def dbscan(clicks: Clicks, settings: DBSCANSettings | None = None, watch: Watch = silent) -> Clustering:
    """Join clicks that have enough neighbours; the rest are outliers.

    A neighbour counts by the weight of its annotator.

    Parameters
    ----------
    clicks : Clicks
    settings : DBSCANSettings, optional
    watch : Watch

    Returns
    -------
    Clustering

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
    found = DBSCAN(eps=settings.reach, min_samples=settings.least_neighbours).fit(points, sample_weight=worth)
    watch(1.0, "joined")
    return clustering_of_labels(clicks, found.labels_.astype(np.int64))


def hdbscan(clicks: Clicks, settings: HDBSCANSettings | None = None, watch: Watch = silent) -> Clustering:
    """Keep the clusters that last over many densities; the rest are outliers.

    Weights of annotators do not change which clicks belong together; they count in a cluster's centre and
    shape, and in what is detected.

    Parameters
    ----------
    clicks : Clicks
    settings : HDBSCANSettings, optional
    watch : Watch

    Returns
    -------
    Clustering
        Empty where there are fewer clicks than make a cluster.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> len(hdbscan(crowd.clicks))
    16
    """
    settings = HDBSCANSettings() if settings is None else settings
    if len(clicks) < max(settings.least_clicks, settings.least_neighbours):
        return clustering_of_labels(clicks, np.full(len(clicks), -1, dtype=np.int64))
    from sklearn.cluster import HDBSCAN

    watch(0.0, f"joining {len(clicks)} clicks")
    points = clicks.points - np.median(clicks.points, axis=0)
    found = HDBSCAN(
        min_cluster_size=settings.least_clicks,
        min_samples=settings.least_neighbours,
        allow_single_cluster=settings.single_cluster,
        copy=True,
    ).fit(points)
    watch(1.0, "joined")
    return clustering_of_labels(clicks, found.labels_.astype(np.int64))
