"""Steps of live watching: complete, and the same however often the source is read."""

import numpy as np
import pytest

from raterscope.algorithms.clicks.data import Clicks
from raterscope.app.kinds.clicks.live_watching import Arrivals, append_steps, replay
from raterscope.app.study.records import MarksRecord

EXTENT = (0.0, 0.0, 100.0, 100.0)
NAMES = tuple(f"W{number}" for number in range(9))


def record(*stretches: tuple[int, int], idle: tuple[int, ...] = ()) -> MarksRecord:
    """Clicks by annotators in turn: (annotator, how many)."""
    annotator = np.repeat([number for number, _ in stretches], [count for _, count in stretches]).astype(
        np.int64
    )
    x = np.arange(len(annotator), dtype=float)
    looked = np.union1d(annotator, np.array(idle, dtype=np.int64))
    return MarksRecord(x, x + 0.5, annotator, looked)


def steps_of(arrivals: Arrivals) -> list[tuple[int, int]]:
    return list(zip(arrivals.rows.tolist(), arrivals.annotators.tolist(), strict=True))


def rows_of(clicks: Clicks) -> set[tuple[str, float, float, float]]:
    assert clicks.time is not None
    names = [clicks.annotators[annotator] for annotator in clicks.annotator.tolist()]
    return set(zip(names, clicks.x.tolist(), clicks.y.tolist(), clicks.time.tolist(), strict=True))


def test_a_step_is_an_annotator_whatever_his_number() -> None:
    arrivals = append_steps(Arrivals(EXTENT), [(1, record((7, 3), (2, 1))), (2, record((7, 2), (4, 1)))], 1)
    assert steps_of(arrivals) == [(3, 1), (4, 2), (6, 2), (7, 3)]
    clicks = arrivals.clicks(3, NAMES)
    assert clicks.annotators == ("W7", "W2")
    assert clicks.annotator.tolist() == [0, 0, 0, 1, 0, 0]
    assert clicks.time is None


def test_who_marked_nothing_comes_too_and_once() -> None:
    arrivals = append_steps(Arrivals(EXTENT), [(1, record((3, 2), idle=(5, 6))), (2, record(idle=(5, 3)))], 1)
    assert steps_of(arrivals) == [(2, 1), (2, 2), (2, 3)]
    assert arrivals.clicks(3, NAMES).annotators == ("W3", "W5", "W6")


def test_reading_on_comes_to_the_same_as_reading_at_once() -> None:
    rng = np.random.default_rng(4)
    records = []
    for number in range(1, 8):
        people = rng.permutation(9)[: rng.integers(1, 5)]
        stretches = [(int(annotator), int(rng.integers(1, 6))) for annotator in people]
        records.append((number, record(*stretches, idle=(int(rng.integers(0, 9)),))))
    at_once = append_steps(Arrivals(EXTENT), records, 2)
    parts = Arrivals(EXTENT)
    for item in records:
        parts = append_steps(parts, [item], 2)
    assert parts.imported == at_once.imported == 7
    for name in ("x", "y", "annotator", "order", "rows", "annotators"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(at_once, name))


def test_the_excluded_never_came() -> None:
    records = [(1, record((7, 3), (2, 1), idle=(5,)))]
    without = append_steps(Arrivals(EXTENT), records, 1, excluded=frozenset({7, 5}))
    assert steps_of(without) == [(1, 1)]
    assert without.clicks(1, NAMES).annotators == ("W2",)


def test_what_was_there_before_the_watch_is_one_step() -> None:
    records = [(1, record((7, 3), (2, 1))), (2, record((1, 2))), (3, record((4, 1)))]
    assert steps_of(append_steps(Arrivals(EXTENT), records, 1, since=2)) == [(6, 3), (7, 4)]


def test_clicks_by_turns_are_one_step() -> None:
    turns = record(*[(index % 3, 1) for index in range(30)])
    assert steps_of(append_steps(Arrivals(EXTENT), [(1, turns)], 1)) == [(30, 3)]


def test_a_position_in_the_stream_is_found_again() -> None:
    arrivals = append_steps(Arrivals(EXTENT), [(1, record((7, 3), (2, 1)))], 1)
    assert [arrivals.step_of(*counts) for counts in ((0, 0), (3, 1), (4, 2), (3, 2))] == [0, 1, 2, None]


@pytest.mark.parametrize("order", ["time", "random"])
def test_a_replay_ends_with_all_the_clicks(order: str) -> None:
    rng = np.random.default_rng(1)
    annotator = rng.integers(0, 5, 40)
    time = rng.uniform(0, 100, 40)
    clicks = Clicks(rng.uniform(0, 100, 40), rng.uniform(0, 100, 40), annotator, NAMES[:6], EXTENT, time)
    pending = replay(clicks, order, 2, seed=3)  # type: ignore[arg-type]
    assert len(pending.arrivals) == 3
    last = pending.clicks(3)
    assert sorted(last.annotators) == sorted(clicks.annotators)
    assert rows_of(last) == rows_of(clicks)
    first = pending.clicks(1)
    assert len(first.annotators) == 2
    if order == "time":
        started = {
            name: min(t for a, t in zip(annotator, time, strict=True) if NAMES[a] == name)
            for name in NAMES[:5]
        }
        assert list(first.annotators) == sorted(started, key=started.__getitem__)[:2]


def test_a_replay_at_random_is_another_with_another_seed() -> None:
    clicks = Clicks(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), NAMES, EXTENT)
    orders = {tuple(replay(clicks, "random", 1, seed).arrivals.order.tolist()) for seed in range(5)}
    assert len(orders) == 5
