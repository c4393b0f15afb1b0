"""Changed decisions without some clicks: clusters found again, changes counted."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.clicks import Clicks, FusionPlan, fuse
from raterscope.algorithms.clicks.annotator_rates import outsider_counts, pool_counts
from raterscope.algorithms.clicks.robustness import NO_CLUSTER, changed_decisions, same_clusters

SPOTS = ((30, 30), (80, 40), (40, 90), (95, 95))


def crowd(also=(), people: int = 5) -> Clicks:
    """All annotators mark four spots; those in `also` mark more, each in turn."""
    rng = np.random.default_rng(3)
    rows = [
        (annotator, x + rng.normal(), y + rng.normal())
        for annotator in range(people)
        for x, y in (*SPOTS, *(position for marker, position in also if marker == annotator))
    ]
    annotator, x, y = map(np.array, zip(*rows, strict=True))
    return Clicks(x, y, annotator, tuple(f"a{index}" for index in range(people)), (0, 0, 120, 120))


def share_of(least: float) -> FusionPlan:
    """Join clicks within 8 pixels and detect what this share of the annotators marked."""
    return FusionPlan.make(
        "dbscan", {"detector": "share", "reach": "8", "min_neighbours": "1", "share": str(least)}
    )


def test_a_spot_that_most_marked_is_lost_with_one_of_them_and_only_that_is_reported():
    clicks = crowd(also=[(0, (60, 65)), (1, (60, 65)), (2, (60, 65))])
    before, after = (fuse(image, share_of(0.55)) for image in (clicks, clicks.without({"a0"})))
    assert before.detection.detected.sum() == 5
    result = changed_decisions(before, after, clicks.annotator != 0)
    (old,), (new,) = result.before, result.after
    assert before.clustering.mean[old] == pytest.approx((60, 65), abs=3)
    assert after.clustering.mean[new] == pytest.approx((60, 65), abs=3)


def test_a_cluster_that_stood_on_one_annotator_is_found_nowhere():
    clicks = crowd(also=[(4, (60, 65))])
    before, after = (fuse(image, share_of(0.1)) for image in (clicks, clicks.without({"a4"})))
    there = same_clusters(before, after, clicks.annotator != 4)
    lost = np.flatnonzero(there == NO_CLUSTER)
    assert before.clustering.mean[lost] == pytest.approx(np.array([[60, 65]]), abs=3)
    for old, new in enumerate(there.tolist()):
        if new != NO_CLUSTER:
            assert before.clustering.mean[old] == pytest.approx(after.clustering.mean[new], abs=2)
    result = changed_decisions(before, after, clicks.annotator != 4)
    assert (result.before.tolist(), result.after.tolist()) == (lost.tolist(), [NO_CLUSTER])


def test_what_changes_most_is_reported_first():
    """Of six, two marked one place, which is gone without them, and one another, who are more of four."""
    clicks = crowd(also=[(0, (60, 65)), (1, (60, 65)), (5, (20, 65))], people=6)
    kept = clicks.annotator > 1
    before, after = (fuse(image, share_of(0.2)) for image in (clicks, clicks.without({"a0", "a1"})))
    result = changed_decisions(before, after, kept)
    assert before.clustering.mean[result.before] == pytest.approx(np.array([[60, 65], [20, 65]]), abs=3)
    assert result.after[0] == NO_CLUSTER
    assert after.clustering.mean[result.after[1]] == pytest.approx((20, 65), abs=3)


def test_nothing_changes_where_nothing_is_left_out():
    clicks = crowd()
    fusion = fuse(clicks)
    kept = np.ones(len(clicks), dtype=bool)
    assert same_clusters(fusion, fusion, kept).tolist() == list(range(len(fusion.clustering)))
    assert len(changed_decisions(fusion, fusion, kept)) == 0


def test_all_is_lost_when_all_are_left_out():
    clicks = crowd()
    before, after = fuse(clicks), fuse(clicks.without(set(clicks.annotators)))
    result = changed_decisions(before, after, np.zeros(len(clicks), dtype=bool))
    assert len(result) == before.detection.detected.sum() == len(SPOTS)
    assert set(result.after.tolist()) == {NO_CLUSTER}


def test_clicks_that_are_not_those_of_the_fusion_are_refused():
    clicks = crowd()
    fusion = fuse(clicks)
    with pytest.raises(ValueError, match="kept"):
        same_clusters(fusion, fusion, np.zeros(len(clicks), dtype=bool))


def test_an_excluded_annotator_is_rated_by_the_consensus_of_the_others():
    fusion = fuse(crowd(people=8))
    x, y = np.array([*SPOTS, (60, 65), (10, 100)], dtype=float).T
    excluded = Clicks(x, y, np.zeros(6, dtype=int), ("b",), (0, 0, 120, 120))
    counts = outsider_counts(excluded, fusion, FusionPlan().assignment)
    names, rates = pool_counts([counts], [excluded.annotators])
    assert names == ("b",)
    assert rates.clicks.tolist() == [6]
    assert rates.precision[0, 0] == pytest.approx(4 / 6, abs=0.03)
    assert rates.sensitivity[0, 0] > 0.9
    for value, low, high in (rates.precision[0], rates.sensitivity[0], rates.reliability[0]):
        assert low <= value <= high
