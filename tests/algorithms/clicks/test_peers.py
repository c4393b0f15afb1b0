"""k-means, hierarchical clustering, DBSCAN and HDBSCAN: what all share, and each against a library."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fclusterdata
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans

from raterscope.algorithms.clicks import CLUSTERERS, ClicksError
from raterscope.algorithms.clicks.baseline_clustering import (
    LARGEST,
    DBSCANSettings,
    HACSettings,
    HDBSCANSettings,
    KMeansSettings,
    dbscan,
    hac,
    hdbscan,
    kmeans,
    usual_count,
)
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import made

PEERS = ["kmeans", "hac", "dbscan", "hdbscan"]


def same_partition(first, second):
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


@pytest.mark.parametrize("name", list(CLUSTERERS))
@pytest.mark.parametrize(
    "points",
    [
        [],
        [[5, 5]],
        [[5, 5], [5, 5]],
        [[5, 5], [5, 5], [5, 5]],
        [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6]],
        [[1e7, 1e7], [1e7 + 1, 1e7], [1e7, 1e7 + 1], [1e7 + 1, 1e7 + 1], [1e7, 1e7], [1e7 + 60, 1e7]],
    ],
    ids=["none", "one", "two", "identical", "collinear", "far"],
)
def test_clicks_that_broke_others(name, points):
    clicks = made(points, np.arange(len(points)) % 3, annotators=4)
    result = CLUSTERERS[name].run(clicks)
    assert result.inlier.shape == result.nearest.shape == (len(points),)
    assert np.isfinite(result.mean).all()
    assert (np.linalg.eigvalsh(result.covariance) > 0).all()
    assert len(result) == 0 or result.weight.sum() == pytest.approx(1)
    assert (result.nearest < len(result)).all()
    assert (result.nearest[result.inlier >= 0.5] >= 0).all()
    assert np.isnan(result.reliability[-1])


@pytest.mark.parametrize("name", PEERS)
def test_means_and_covariances_are_those_of_the_members(name):
    crowd = separated_crowd(20, seed=3)
    result = CLUSTERERS[name].run(crowd.clicks)
    points, members = crowd.clicks.points, result.inlier == 1
    for cluster in range(len(result)):
        own = points[members & (result.nearest == cluster)]
        assert result.mean[cluster] == pytest.approx(own.mean(axis=0))
        if len(own) > 2:
            values, vectors = np.linalg.eigh(np.cov(own.T, bias=True))
            values = np.maximum(values, result.scatter**2 / 4)  # the floor
            assert result.covariance[cluster] == pytest.approx(
                vectors @ np.diag(values) @ vectors.T, rel=1e-5
            )
    assert set(result.inlier) <= {0.0, 1.0}
    share = [members[crowd.clicks.annotator == row].mean() for row in range(20)]
    assert result.reliability == pytest.approx(share)


@pytest.mark.parametrize("name", PEERS)
def test_shifting_all_clicks_shifts_the_clusters(name):
    clicks = separated_crowd(15, seed=6).clicks
    far = made(clicks.points + 1e6, clicks.annotator, 15, (1e6, 1e6, 1e6 + 1000, 1e6 + 1000))
    near, moved = CLUSTERERS[name].run(clicks), CLUSTERERS[name].run(far)
    assert moved.mean - 1e6 == pytest.approx(near.mean, abs=1e-3)
    assert np.array_equal(moved.nearest, near.nearest)


@pytest.mark.parametrize("name", CLUSTERERS)
def test_the_order_of_clicks_does_not_matter(name):
    crowd = separated_crowd(20, seed=1).clicks
    points, annotator = np.round(crowd.points / 10), crowd.annotator  # many distances are equal
    rows = np.random.default_rng(0).permutation(len(points))
    moved = CLUSTERERS[name].run(made(points[rows], annotator[rows], 20))
    expected = CLUSTERERS[name].run(made(points, annotator, 20))
    assert np.array_equal(moved.inlier, expected.inlier[rows])
    assert same_partition(moved.nearest, expected.nearest[rows])


def test_density_methods_are_those_of_scikit_learn():
    clicks = separated_crowd(20, seed=1).clicks
    labels = DBSCAN(eps=20.0, min_samples=4).fit(clicks.points).labels_
    result = dbscan(clicks, DBSCANSettings(reach=20.0, min_neighbours=4))
    assert np.array_equal(result.inlier == 1, labels >= 0)
    assert same_partition(result.nearest[labels >= 0], labels[labels >= 0])
    order = np.lexsort(clicks.points.T)  # of the clicks, by which scikit-learn breaks ties
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = HDBSCAN(min_cluster_size=6, min_samples=3, copy=True).fit(clicks.points[order]).labels_
    result = hdbscan(clicks, HDBSCANSettings(min_clicks=6))
    assert np.array_equal(result.inlier == 1, labels >= 0)
    assert same_partition(result.nearest[labels >= 0], labels[labels >= 0])


@pytest.mark.parametrize("linkage", ["ward", "average", "complete", "single"])
def test_hierarchical_clustering_is_that_of_scipy(linkage):
    clicks = separated_crowd(12, seed=2).clicks
    result = hac(clicks, HACSettings(linkage=linkage, cut=40.0))
    expected = fclusterdata(clicks.points, 40.0, criterion="distance", method=linkage)
    assert same_partition(result.nearest, expected)
    assert len(hac(clicks, HACSettings(linkage=linkage, clusters=7))) == 7


def test_kmeans_is_as_tight_as_that_of_scikit_learn():
    clicks = separated_crowd(20, seed=5).clicks
    result = kmeans(clicks, KMeansSettings(clusters=15, restarts=10))
    loss = np.sum((clicks.points - result.mean[result.nearest]) ** 2)
    assert loss <= 1.02 * KMeans(15, n_init=10, random_state=0).fit(clicks.points).inertia_


def test_the_usual_number_is_twice_the_mean_clicks_of_who_clicked():
    clicks = made(np.arange(40).reshape(20, 2), [0] * 12 + [1] * 8, annotators=5)
    assert usual_count(clicks) == 20
    assert len(kmeans(clicks)) == len(hac(clicks)) == 20
    repeated = made([[1, 1], [2, 2]] * 6, [0] * 12)
    assert len(kmeans(repeated)) == 2


def test_too_many_clicks_for_hierarchical_clustering_are_refused_in_a_sentence():
    clicks = made(np.zeros((LARGEST + 1, 2)), np.zeros(LARGEST + 1))
    with pytest.raises(ClicksError, match=r"15001 clicks are too many.*at most 15000"):
        hac(clicks)


@pytest.mark.parametrize("name", PEERS)
def test_a_watch_may_cancel(name):
    def watch(*_, **__):
        raise Cancelled

    with pytest.raises(Cancelled):
        CLUSTERERS[name].run(separated_crowd(10, seed=0).clicks, watch=watch)


def test_kmeans_shows_clusters_on_its_way():
    partials = []
    kmeans(
        separated_crowd(10, seed=0).clicks,
        watch=lambda *_, partial=None, **__: partials.append(partial() if partial else None),
    )
    assert any(partial is not None and len(partial) for partial in partials)
