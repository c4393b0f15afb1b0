"""Communities of annotators who worked on the same tasks."""

from __future__ import annotations

import csv
from pathlib import Path

import networkx
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from raterscope.algorithms.annotators import common_tasks as module
from raterscope.algorithms.annotators.common_tasks import (
    CommonTaskSettings,
    common_task_communities,
    common_tasks,
)
from raterscope.algorithms.annotators.network_communities import between_communities, louvain, modularity
from raterscope.algorithms.progress import Cancelled

METHODS = ("nmf", "louvain")


def _shifts(groups: int, size: int, each: int, strays: float, seed: int):
    """Give the votes of groups of annotators, each on a hundred tasks of its own, but for some strays."""
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
    found = common_task_communities(task, annotator, 600, 180, CommonTaskSettings(method=method))
    assert found.count == 6
    assert adjusted_rand_score(group, found.community) == 1.0
    assert found.modularity > 0.3
    assert found.prototype.shape == (6, 0, 0)
    np.testing.assert_allclose(found.participation.sum(axis=1), 1.0, rtol=1e-5)


def test_a_link_is_the_share_of_distinct_common_tasks() -> None:
    task, annotator = [0, 0, 1, 2, 1, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 2]
    links = common_tasks(task, annotator, 5, 4).links(slice(0, 4))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 2 / 3
    expected[1, 2] = expected[2, 1] = 1 / 2
    np.testing.assert_allclose(links, expected, rtol=1e-6)


def test_modularity_is_newmans() -> None:
    rng = np.random.default_rng(2)
    network = np.triu(rng.random((12, 12)), 1)
    network += network.T
    community = rng.integers(3, size=12)
    graph = networkx.from_numpy_array(network)
    groups = [set(np.flatnonzero(community == c).tolist()) for c in range(3)]
    links = between_communities(network + np.eye(12), community, 3)
    assert modularity(links) == pytest.approx(networkx.community.modularity(graph, groups), rel=1e-6)
    assert modularity(np.zeros((2, 2))) == 0.0


def test_louvain_gives_the_same_every_time_and_nothing_for_nobody() -> None:
    network = np.kron(np.eye(3), np.ones((4, 4))) + 0.01
    one = louvain(network, 3)
    assert adjusted_rand_score(np.repeat([0, 1, 2], 4), one) == 1.0
    np.testing.assert_array_equal(one, louvain(network, 3))
    assert louvain(np.zeros((0, 0))).tolist() == []
    assert louvain(np.zeros((2, 2))).tolist() == [0, 1]


@pytest.mark.parametrize("method", METHODS)
def test_neither_the_order_of_annotators_nor_repeated_votes_matter(method: str) -> None:
    task, annotator, _ = _shifts(4, 8, 15, 0.4, 3)
    order = np.random.default_rng(3).permutation(32)
    settings = CommonTaskSettings(method=method, least_tasks=1)
    one = common_task_communities(task, annotator, 400, 32, settings)
    twice = common_task_communities(np.tile(task, 2), np.tile(order[annotator], 2), 400, 32, settings)
    np.testing.assert_array_equal(one.of(32), twice.of(32)[order])
    assert one.modularity == pytest.approx(twice.modularity)


def test_many_annotators_are_grouped_by_their_closest_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WHOLE", 100)
    monkeypatch.setattr(module, "_CLOSEST", 20)
    task, annotator, group = _shifts(6, 40, 30, 0.2, 4)
    for method in METHODS:
        found = common_task_communities(task, annotator, 600, 240, CommonTaskSettings(method=method))
        assert adjusted_rand_score(group, found.community) > 0.97


@pytest.mark.parametrize("method", METHODS)
def test_those_of_few_tasks_and_those_alone_are_left_out_and_it_is_said(method: str) -> None:
    task = [*range(5), *range(5), *range(5, 10), 0]
    annotator = [0] * 5 + [1] * 5 + [2] * 5 + [3]
    settings = CommonTaskSettings(method=method, least_tasks=3)
    found = common_task_communities(task, annotator, 10, 4, settings)
    assert found.of(4).tolist() == [0, 0, -1, -1]
    assert found.notices == (
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
    found = common_task_communities(task, annotator, 200, 20, mean=mean)
    first = found.of(20)[0]
    np.testing.assert_allclose(found.prototype[first], [[0.9, 0.1], [0.2, 0.8]], atol=0.02)


def test_votes_that_do_not_fit_are_refused_and_it_can_be_cancelled() -> None:
    for task, annotator in (([0], [0, 1]), ([5], [0]), ([0], [-1])):
        with pytest.raises(ValueError, match="expected"):
            common_task_communities(task, annotator, 2, 2)

    def stop(fraction: float, words: str, **rest: object) -> None:
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
    who = {name: at for at, name in enumerate(dict.fromkeys(row["worker"] for row in rows))}
    votes = [tasks[row["task"]] for row in rows], [who[row["worker"]] for row in rows]
    for method, least in (("nmf", 0.39), ("louvain", 0.51)):
        settings = CommonTaskSettings(method=method)
        found = common_task_communities(*votes, len(tasks), len(who), settings)
        assert least <= found.modularity < 0.56
        assert 9 <= found.count <= 40
