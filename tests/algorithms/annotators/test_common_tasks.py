"""Communities of annotators who worked on the same tasks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import adjusted_rand_score

from raterscope.algorithms.annotators import common_tasks as module
from raterscope.algorithms.annotators.common_tasks import (
    EVENTS,
    CommonTaskSettings,
    common_task_communities,
    common_tasks,
    follow,
)
from raterscope.algorithms.annotators.communities import communities
from raterscope.algorithms.annotators.network_communities import louvain, modularity
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.annotators.crowds import FIVE, planted

METHODS = ("nmf", "louvain")


def _shifts(groups: int, size: int, each: int, strays: float, seed: int):
    """Return the votes of groups of annotators, each on a hundred tasks of its own, but for some strays."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), size)
    annotator = np.repeat(np.arange(len(group)), each)
    own = group[annotator] * 100 + rng.integers(100, size=len(annotator))
    astray = rng.random(len(annotator)) < strays
    return np.where(astray, rng.integers(groups * 100, size=len(own)), own), annotator, group


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strays", [0.0, 0.1, 0.3])
def test_six_planted_groups_are_found(strays: float, method: str) -> None:
    task, annotator, group = _shifts(6, 30, 40, strays, 1)
    result = common_task_communities(task, annotator, 600, 180, CommonTaskSettings(method=method))
    assert result.count == 6
    assert adjusted_rand_score(group, result.community) == 1.0
    assert result.modularity > 0.3
    assert result.prototype.shape == (6, 0, 0)
    np.testing.assert_allclose(result.participation.sum(axis=1), 1.0, rtol=1e-5)


def test_a_link_is_the_share_of_distinct_common_tasks() -> None:
    task, annotator = [0, 0, 1, 2, 1, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 2]
    links = common_tasks(task, annotator, 5, 4).links(slice(0, 4))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 2 / 3
    expected[1, 2] = expected[2, 1] = 1 / 2
    np.testing.assert_allclose(links, expected, rtol=1e-6)


def test_modularity_is_newmans() -> None:
    import networkx

    rng = np.random.default_rng(2)
    network = np.triu(rng.random((12, 12)), 1)
    network += network.T
    community = rng.integers(3, size=12)
    graph = networkx.from_numpy_array(network)
    groups = [set(np.flatnonzero(community == c).tolist()) for c in range(3)]
    member = np.eye(3)[community]
    links = member.T @ network @ member
    assert modularity(links) == pytest.approx(networkx.community.modularity(graph, groups), rel=1e-6)
    assert modularity(np.zeros((2, 2))) == 0.0


def test_louvain_gives_the_same_every_time_and_nothing_for_no_annotator() -> None:
    network = np.kron(np.eye(3), np.ones((4, 4))) + 0.01
    first = louvain(network, 3)
    assert adjusted_rand_score(np.repeat([0, 1, 2], 4), first) == 1.0
    np.testing.assert_array_equal(first, louvain(network, 3))
    assert louvain(np.zeros((0, 0))).tolist() == []
    assert louvain(np.zeros((2, 2))).tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_louvain_finds_the_communities_of_another_implementation(seed: int) -> None:
    """Of networks that are dense or sparse, with weights, ties, loops and annotators without links."""
    others = pytest.importorskip("sknetwork.clustering")
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 120))
    network = rng.random((count, count)) * (rng.random((count, count)) < rng.choice([0.05, 0.3, 1.0]))
    network += network.T
    for links in (network, np.ceil(network), csr_array(network, dtype=np.float32)):
        peer = others.Louvain(random_state=seed, shuffle_nodes=True).fit_predict(
            csr_matrix(links, dtype=np.float64)
        )
        np.testing.assert_array_equal(louvain(links, seed), peer)


@pytest.mark.parametrize("method", METHODS)
def test_neither_the_order_of_annotators_nor_repeated_votes_matter(method: str) -> None:
    task, annotator, _ = _shifts(4, 8, 15, 0.4, 3)
    order = np.random.default_rng(3).permutation(32)
    settings = CommonTaskSettings(method=method, min_tasks=1)
    first = common_task_communities(task, annotator, 400, 32, settings)
    twice = common_task_communities(np.tile(task, 2), np.tile(order[annotator], 2), 400, 32, settings)
    np.testing.assert_array_equal(first.of(32), twice.of(32)[order])
    assert first.modularity == pytest.approx(twice.modularity)


def test_many_annotators_are_grouped_by_their_closest_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WHOLE", 100)
    monkeypatch.setattr(module, "_CLOSEST", 20)
    task, annotator, group = _shifts(6, 40, 30, 0.2, 4)
    for method in METHODS:
        result = common_task_communities(task, annotator, 600, 240, CommonTaskSettings(method=method))
        assert adjusted_rand_score(group, result.community) > 0.97


@pytest.mark.parametrize("method", METHODS)
def test_those_of_few_tasks_and_those_alone_are_skipped_with_a_notice(method: str) -> None:
    task = [*range(5), *range(5), *range(5, 10), 0]
    annotator = [0] * 5 + [1] * 5 + [2] * 5 + [3]
    settings = CommonTaskSettings(method=method, min_tasks=3)
    result = common_task_communities(task, annotator, 10, 4, settings)
    assert result.of(4).tolist() == [0, 0, -1, -1]
    assert result.notices == (
        "1 annotator labelled fewer than 3 tasks and belongs to no community.",
        "1 annotator labelled no task of another annotator and belongs to no community.",
    )
    for votes in (0, 5):
        nobody = common_task_communities(task[:votes], annotator[:votes], 10, 4, settings)
        assert (nobody.count, nobody.members.tolist()) == (0, [])
    assert common_task_communities([], [], 0, 0, settings).count == 0


def test_prototypes_are_the_mean_confusion_of_those_who_take_part() -> None:
    task, annotator, group = _shifts(2, 10, 40, 0.0, 5)
    mean = np.where(group[:, None, None] == 0, [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]])
    result = common_task_communities(task, annotator, 200, 20, mean=mean)
    first = result.of(20)[0]
    np.testing.assert_allclose(result.prototype[first], [[0.9, 0.1], [0.2, 0.8]], atol=0.02)


def test_votes_that_do_not_fit_are_refused_and_it_can_be_cancelled() -> None:
    for task, annotator in (([0], [0, 1]), ([5], [0]), ([0], [-1])):
        with pytest.raises(ValueError, match="expected"):
            common_task_communities(task, annotator, 2, 2)

    def stop(fraction: float, words: str, **options: object) -> None:
        if fraction > 0.5:
            raise Cancelled

    task, annotator, _ = _shifts(3, 10, 20, 0.2, 6)
    with pytest.raises(Cancelled):
        common_task_communities(task, annotator, 300, 30, watch=stop)


def test_a_real_crowd_holds_together_about_as_well_as_known(real_data: Path) -> None:
    """176 annotators who compared products: modularity .53 by Louvain, at least .39 by factorisation."""
    with (real_data / "labels" / "product.csv").open() as file:
        rows = list(csv.DictReader(file))
    tasks = {name: at for at, name in enumerate(dict.fromkeys(row["task"] for row in rows))}
    annotator = {name: at for at, name in enumerate(dict.fromkeys(row["worker"] for row in rows))}
    votes = [tasks[row["task"]] for row in rows], [annotator[row["worker"]] for row in rows]
    for method, least in (("nmf", 0.39), ("louvain", 0.51)):
        settings = CommonTaskSettings(method=method)
        result = common_task_communities(*votes, len(tasks), len(annotator), settings)
        assert least <= result.modularity < 0.56
        assert 9 <= result.count <= 40


def _moment(kinds: list[int], sizes: list[int], seed: int) -> np.ndarray:
    every = [
        planted(FIVE[[kind]], size, 150, seed + at)[0]
        for at, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    ]
    return np.concatenate(every)


def _follow(means, votes):
    moments = [communities(mean, counts) for mean, counts in zip(means, votes, strict=True)]
    return follow(moments, len(votes[0]))


def _kinds(moved) -> list[tuple[str, int, int]]:
    return [(EVENTS[kind], number, other) for _, kind, number, other in moved.events.tolist()]


def test_a_community_keeps_its_number_when_sizes_turn_round() -> None:
    """Half of the larger go over to the smaller: both go on as they are."""
    votes = np.full(60, 150)
    first, second = _moment([1, 2], [40, 20], 1), _moment([1, 2], [20, 40], 2)
    moved = _follow([first, second], [votes, votes])
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
    moved = _follow([_moment([1, 2], [30, 20], 3), _moment([1, 3], [30, 20], 4)], [votes, votes])
    assert moved.count == 2
    assert (moved.of(0) == moved.of(1)).all()


def test_a_split_and_a_joining_are_named() -> None:
    votes = np.full(70, 150)
    first = _moment([1, 1, 2], [30, 15, 25], 5)
    three = _moment([1, 3, 2], [30, 15, 25], 6)
    split = _follow([first, three], [votes, votes])
    total = int(split.of(0)[0])
    assert _kinds(split) == [("splits off", 2, total)]
    assert split.describe_events(["a", "b", "c"]) == (f"At moment 2 c splits off from {'ab'[total]}.",)
    joined = _follow([three, first], [votes, votes])
    gone, remaining = int(joined.of(0)[30]), int(joined.of(0)[0])
    assert _kinds(joined) == [("joins", gone, remaining)]
    assert joined.describe_events(["a", "b", "c"]) == (
        f"At moment 2 {'abc'[gone]} joins {'abc'[remaining]}.",
    )
    assert gone not in joined.identity[1]
    assert joined.path(gone)[0].tolist() == [0]


def test_newcomers_begin_a_community_and_those_who_came_to_none_are_counted() -> None:
    mean = _moment([1, 2], [20, 20], 7)
    early = np.repeat([150, 0], 20)
    moved = _follow([mean, mean, mean], [early, np.full(40, 150), early[::-1]])
    assert _kinds(moved) == [("begins", 1, -1), ("ends", 0, -1)]
    assert (moved.of(0)[20:] == -1).all()
    assert moved.flows[0][-1, :-1].sum() == 20
    assert moved.flows[1][:-1, -1].sum() == 20
    assert moved.describe_events(["old", "new"]) == ("At moment 2 new begins.", "At moment 3 old ends.")


def test_there_may_be_no_moments_and_no_communities() -> None:
    empty = follow([], 0)
    assert empty.latest().shape[0] == 0
    assert (empty.count, empty.moments, empty.path(0)[0].tolist()) == (0, (), [])
    mean = _moment([1], [5], 8)
    late = _follow([mean, mean], [np.zeros(5), np.full(5, 20)])
    assert _kinds(late) == [("begins", 0, -1)]


def test_a_community_of_newcomers_with_a_deserter_begins_and_splits_off_from_none() -> None:
    """One of forty-one members came from elsewhere, the others had too few votes before."""
    before = _moment([1, 1, 2], [20, 1, 40], 10)
    now = _moment([1, 2, 2], [20, 1, 40], 11)
    early = np.where(np.arange(61) < 21, 150, 0)
    late = np.full(61, 150)
    moved = _follow([before, now], [early, late])
    assert sorted(moved.flows[0][0].tolist()) == [0, 1, 20]
    assert _kinds(moved) == [("begins", 1, -1)]
    back = _follow([now, before], [late, early])
    assert _kinds(back) == [("ends", int(back.of(0)[40]), -1)]


def test_moments_are_called_as_they_are_wanted() -> None:
    mean = _moment([1, 2], [20, 20], 12)
    moved = _follow([mean, mean], [np.repeat([150, 0], 20), np.full(40, 150)])
    assert moved.describe_events(["old", "new"], ["at 1 %:", "at 100 %:"]) == ("At 100 %: new begins.",)
