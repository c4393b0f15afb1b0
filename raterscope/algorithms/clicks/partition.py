"""From labels of clicks to a clustering, for methods that only part the clicks."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.results import Clustering, Trace

__all__ = ["clustering_of_labels", "floored"]

FLOOR = 0.25
"""Least variance of a cluster along any axis, as a share of the squared scatter of all clusters."""


def clustering_of_labels(clicks: Clicks, labels: IntArray) -> Clustering:
    """Describe clusters by their members.

    Means and covariances are those of the members, each by the weight of its annotator; a covariance's
    eigenvalues are kept above a floor, since two or three clicks may lie on a line. Clicks of no cluster are
    outliers.

    Parameters
    ----------
    clicks : Clicks
    labels : (N,) int
        Cluster of each click, below zero for none. Any numbering.

    Returns
    -------
    Clustering
        In the order of the labels, without those that have no clicks.
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
    scatter = _scatter(xx + yy, size, clicks)
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


def _scatter(variance: FloatArray, size: FloatArray, clicks: Clicks) -> float:
    """Pool the standard deviation along an axis over clusters; where it is zero, 0.1 % of the image."""
    freedom = 2 * np.sum(np.maximum(size - 1, 0))
    pooled = np.sqrt(np.sum(variance * size) / freedom) if freedom else 0.0
    return float(pooled) if pooled > 0 else 1e-3 * float(np.sqrt(clicks.area))


def floored(covariance: FloatArray, floor: float) -> FloatArray:
    """Raise the variances of (M, 2, 2) covariances along their axes to a least, in pixels squared."""
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
