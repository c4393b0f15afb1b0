"""Decisions that a fusion holds fixed, outdated fusions, and spots that decisions find again."""

from dataclasses import replace

import numpy as np

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.app import review
from raterscope.app.review import (
    Decision,
    ReviewState,
    Spot,
    differ,
    fold,
    known_spots,
    known_voxels,
    match,
)
from tests.app.review.decisions import a_region, added, journal, on, settle, weigh

# Known spots and voxels


def test_known_spots_are_those_decided_and_those_imported() -> None:
    state = fold(journal(on("accept", 10), on("reject", 20), on("skip", 30), on("add", 40)))
    known = known_spots(state.spots(1))
    assert known.x.tolist() == [10, 20, 40]
    assert known.present.tolist() == [True, False, True]
    with_truth = known_spots(state.spots(1), (np.array([20.5, 90.0]), np.array([0.0, 1.0])))
    assert with_truth.x.tolist() == [10, 20, 40, 90]
    assert with_truth.present.tolist() == [True, False, True, True]
    assert len(known_spots(state.spots(2))) == 0


def test_the_last_decision_is_on_top_and_an_undone_one_is_removed() -> None:
    decisions = journal(
        settle("accept", 11, number=1),
        settle("paint", 12),
        Decision(verb="skip", item=1, subject=a_region()),
    )
    settled = {
        11: Settled((0, 0, 0), np.ones((1, 2, 4), dtype=np.int8)),
        12: Settled((0, 1, 2), np.array([[[0, OPEN], [1, 1]]], dtype=np.int8)),
    }

    def known(state: ReviewState) -> object:
        result = known_voxels(state.regions(1), settled, "nodule", (0, 0, 1), (1, 4, 3))
        return None if result is None else result[0].tolist()

    assert known(fold(decisions)) == [[1, 1, 1], [1, 0, 1], [-1, 1, 1], [-1, -1, -1]]
    decisions = added(decisions, review.undo(fold(decisions), 2))
    assert known(fold(decisions)) == [[1, 1, 1], [1, 1, 1], [-1, -1, -1], [-1, -1, -1]]
    decisions = added(decisions, review.undo(fold(decisions), 1))
    assert known(fold(decisions)) is None


def test_settled_voxels_make_a_fusion_stale_and_a_skip_does_not() -> None:
    skipped = journal(Decision(verb="skip", item=1, subject=a_region()))
    painted = added(skipped, settle("paint", 12))
    assert not differ(fold([]), fold(skipped), "masks")
    assert differ(fold(skipped), fold(painted), "masks")
    assert not differ(fold(skipped), fold(painted), "clicks")


# Stale


def is_stale(decisions: list[Decision], known: int, item: int | None = None) -> bool:
    """Compare what a fusion knew with the whole journal."""
    return differ(
        fold([decision for decision in decisions if decision.id <= known]), fold(decisions), "clicks", item
    )


def test_a_fusion_is_stale_when_what_it_rests_on_has_changed() -> None:
    decisions = journal(on("accept", 10), on("skip", 20))
    assert is_stale(decisions, 0)
    assert not is_stale(decisions, 1)
    assert not is_stale(decisions, 2)
    decisions = added(decisions, Decision(verb="undo", undoes=1))
    assert is_stale(decisions, 2)
    assert not is_stale(decisions, 0)
    assert not is_stale(decisions, 0, item=1)
    decisions = added(decisions, replace(on("reject", 5), item=2))
    assert is_stale(decisions, 3, item=2)
    assert not is_stale(decisions, 3, item=1)
    decisions = added(decisions, Decision(verb="exclude", annotators=("W1",)))
    assert is_stale(decisions, 4, item=1)
    assert not is_stale([], 0)


def test_a_weight_makes_fusions_of_every_kind_stale() -> None:
    half, quarter = fold(journal(weigh("W1"))), fold(journal(weigh("W1"), weigh("W1", 0.25)))
    assert differ(fold([]), half, "clicks", 1)
    assert differ(half, quarter, "clicks", 1)
    assert not differ(half, fold(journal(weigh("W1", reason="other words"))), "clicks", 1)
    assert all(differ(fold([]), half, kind) for kind in ("masks", "labels", "pairs"))


# Finding a spot again


def a_spot(x: float, y: float = 0.0) -> Spot:
    return Spot(x, y, "accepted", 1, x, y)


def rounds(*variances: float) -> np.ndarray:
    return np.array([np.eye(2) * variance for variance in variances])


def test_a_decision_finds_its_spot_again_by_place() -> None:
    spots = [a_spot(10), a_spot(50), a_spot(90)]
    mean = np.array([[51.0, 1.0], [200.0, 0.0], [9.5, 0.0]])
    assert match(spots, mean, rounds(4, 4, 4)) == [2, 0, None]


def test_two_decisions_never_share_a_spot_and_the_nearer_has_it() -> None:
    spots = [a_spot(10), a_spot(12)]
    assert match(spots, np.array([[12.4, 0.0]]), rounds(4)) == [None, 0]
    assert match(spots, np.array([[12.4, 0.0], [13.0, 0.0]]), rounds(4, 4)) == [1, 0]


def test_a_wide_cluster_is_found_from_farther_away() -> None:
    spot = [a_spot(0)]
    assert match(spot, np.array([[8.0, 0.0]]), rounds(1)) == [None]
    assert match(spot, np.array([[8.0, 0.0]]), rounds(9)) == [0]
    assert match(spot, np.array([[2.5, 0.0]]), rounds(0)) == [0]
    assert match(spot, np.empty((0, 2)), np.empty((0, 2, 2))) == [None]
    assert match([], np.zeros((1, 2)), rounds(1)) == []


def test_a_moved_spot_is_matched_where_its_cluster_stands() -> None:
    (spot,) = fold(journal(on("move", 30, from_x=10, from_y=0))).spots(1)
    assert match([spot], np.array([[30.0, 0.0], [10.0, 0.0]]), rounds(1, 1)) == [1]


def test_the_rejection_of_a_spot_is_carried_to_a_nearer_cluster_than_its_acceptance() -> None:
    accepted = a_spot(0)
    rejected = replace(accepted, verdict="rejected")
    for away, expected in ((4.0, [0]), (5.0, [None])):  # the cluster's standard deviation is 3
        assert match([rejected], np.array([[away, 0.0]]), rounds(9)) == expected
        assert match([accepted], np.array([[away, 0.0]]), rounds(9)) == [0]
