"""Where components begin."""

from __future__ import annotations

import warnings

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray

__all__ = ["k_means"]

MOST_DISTANCES = 2_000_000_000
"""Distances that k-means may look at: a second or so, for it cannot be cancelled."""


def k_means(points: FloatArray, worth: FloatArray, count: int, seed: int) -> FloatArray:
    """Find centroids by k-means, as the OEM-DEM paper begins (section 3.1): one a distinct point at most.

    Each of N points, (N, 2), counts by its worth, (N,).
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    count = min(count, len(np.unique(points, axis=0)))
    rounds = int(np.clip(MOST_DISTANCES // (len(points) * count), 3, 300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(count, n_init=1, max_iter=rounds, random_state=seed).fit(points, sample_weight=worth)
    return np.asarray(found.cluster_centers_, dtype=np.float64)
