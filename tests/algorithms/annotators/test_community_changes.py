"""Communities followed from moment to moment."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.annotators.communities import CommunitySettings
from raterscope.algorithms.annotators.community_changes import EVENTS, over_time
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.annotators.crowds import FIVE, planted


def _moment(kinds: list[int], sizes: list[int], seed: int) -> np.ndarray:
    every = [
        planted(FIVE[[kind]], size, 150, seed + at)[0]
        for at, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    ]
    return np.concatenate(every)


def _kinds(moved) -> list[tuple[str, int, int]]:
    return [(EVENTS[kind], number, other) for _, kind, number, other in moved.events.tolist()]


def test_a_community_keeps_its_number_when_sizes_turn_round() -> None:
    """Half of the larger go over to the smaller: both go on as they are."""
    votes = np.full(60, 150)
    first, second = _moment([1, 2], [40, 20], 1), _moment([1, 2], [20, 40], 2)
    moved = over_time([first, second], [votes, votes])
    assert moved.count == 2
    assert len(moved.events) == 0
    assert (moved.of(0)[:20] == moved.of(1)[:20]).all()
    assert (moved.of(0)[40:] == moved.of(1)[40:]).all()
    assert (moved.of(1)[20:40] == moved.of(0)[40]).all()
    assert moved.moments[1].community[0] == 1
    flow = moved.flows[0]
    assert flow.sum() == 60
    assert sorted(flow[:2, :2].ravel().tolist()) == [0, 20, 20, 20]
    for number, kind in ((moved.of(0)[0], 1), (moved.of(0)[50], 2)):
        at, matrices = moved.path(int(number))
        assert at.tolist() == [0, 1]
        assert np.abs(matrices - FIVE[kind]).max() < 0.1
        np.testing.assert_array_equal(moved.latest()[number], matrices[-1])


def test_a_community_that_changes_its_ways_with_all_its_members_goes_on() -> None:
    votes = np.full(50, 150)
    moved = over_time([_moment([1, 2], [30, 20], 3), _moment([1, 3], [30, 20], 4)], [votes, votes])
    assert moved.count == 2
    assert (moved.of(0) == moved.of(1)).all()


def test_a_split_and_a_joining_are_named() -> None:
    votes = np.full(70, 150)
    one = _moment([1, 1, 2], [30, 15, 25], 5)
    three = _moment([1, 3, 2], [30, 15, 25], 6)
    split = over_time([one, three], [votes, votes])
    whole = int(split.of(0)[0])
    assert _kinds(split) == [("splits off", 2, whole)]
    assert split.told(["a", "b", "c"]) == (f"At moment 2 c splits off from {'ab'[whole]}.",)
    joined = over_time([three, one], [votes, votes])
    gone, rest = int(joined.of(0)[30]), int(joined.of(0)[0])
    assert _kinds(joined) == [("joins", gone, rest)]
    assert joined.told(["a", "b", "c"]) == (f"At moment 2 {'abc'[gone]} joins {'abc'[rest]}.",)
    assert gone not in joined.identity[1]
    assert joined.path(gone)[0].tolist() == [0]


def test_newcomers_begin_a_community_and_those_who_came_to_none_are_counted() -> None:
    mean = _moment([1, 2], [20, 20], 7)
    early = np.repeat([150, 0], 20)
    moved = over_time([mean, mean, mean], [early, np.full(40, 150), early[::-1]])
    assert _kinds(moved) == [("begins", 1, -1), ("ends", 0, -1)]
    assert (moved.of(0)[20:] == -1).all()
    assert moved.flows[0][-1, :-1].sum() == 20
    assert moved.flows[1][:-1, -1].sum() == 20
    assert moved.told(["old", "new"]) == ("At moment 2 new begins.", "At moment 3 old ends.")


def test_moments_must_fit_and_may_be_empty() -> None:
    mean = _moment([1], [5], 8)
    with pytest.raises(ValueError, match="same annotators"):
        over_time([mean, mean[:3]], [np.full(5, 20), np.full(3, 20)])
    with pytest.raises(ValueError, match="votes"):
        over_time([mean], [])
    nothing = over_time([], [])
    assert nothing.latest().shape[0] == 0
    assert (nothing.count, nothing.moments, nothing.path(0)[0].tolist()) == (0, (), [])
    nobody = over_time([mean, mean], [np.zeros(5), np.full(5, 20)])
    assert _kinds(nobody) == [("begins", 0, -1)]


def test_it_can_be_cancelled_late() -> None:
    mean = _moment([1, 2], [10, 10], 9)

    def stop(fraction: float, words: str, **rest: object) -> None:
        if fraction > 0.8:
            raise Cancelled

    with pytest.raises(Cancelled):
        over_time([mean] * 3, [np.full(20, 150)] * 3, CommunitySettings(), stop)


def test_a_community_of_newcomers_with_a_deserter_begins_and_splits_off_from_none() -> None:
    """One of forty-one members came from elsewhere, the others had too few votes before."""
    before = _moment([1, 1, 2], [20, 1, 40], 10)
    now = _moment([1, 2, 2], [20, 1, 40], 11)
    early = np.where(np.arange(61) < 21, 150, 0)
    late = np.full(61, 150)
    moved = over_time([before, now], [early, late])
    assert sorted(moved.flows[0][0].tolist()) == [0, 1, 20]
    assert _kinds(moved) == [("begins", 1, -1)]
    back = over_time([now, before], [late, early])
    assert _kinds(back) == [("ends", int(back.of(0)[40]), -1)]


def test_moments_are_called_as_they_are_wanted() -> None:
    mean = _moment([1, 2], [20, 20], 12)
    moved = over_time([mean, mean], [np.repeat([150, 0], 20), np.full(40, 150)])
    assert moved.told(["old", "new"], ["at 1 %:", "at 100 %:"]) == ("At 100 %: new begins.",)
