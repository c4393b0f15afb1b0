"""Communities of annotators who behave alike, and what they are called."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from raterscope.algorithms.annotators import communities as module
from raterscope.algorithms.annotators.communities import (
    CommunitySettings,
    communities,
    describe_communities,
    describe_community,
)
from raterscope.algorithms.annotators.similarity import hellinger_similarity
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.annotators.crowds import FIVE, diagonal, planted

METHODS = ("nmf", "louvain")


@pytest.mark.parametrize("method", METHODS)
def test_five_planted_communities_of_two_hundred_are_found(method: str) -> None:
    mean, planted_in, votes = planted(FIVE, 200, 60, 0)
    result = communities(mean, votes, CommunitySettings(method=method))
    assert result.count == 5
    assert adjusted_rand_score(planted_in, result.community) >= 0.97
    assert result.modularity > 0.6
    for prototype in FIVE:
        assert np.abs(result.prototype - prototype).max(axis=(1, 2)).min() < 0.06
    assert (np.diff(result.sizes()) <= 0).all()
    np.testing.assert_allclose(result.participation.sum(axis=1), 1.0, rtol=1e-5)
    assert not result.notices


@pytest.mark.parametrize("method", METHODS)
def test_the_most_central_member_is_who_takes_part_most_then_who_voted_most(method: str) -> None:
    mean, _, votes = planted(FIVE, 20, 60, 0)
    votes = np.arange(len(votes)) + 60
    result = communities(mean, votes, CommunitySettings(method=method))
    central = result.central(votes)
    assert result.of(len(mean))[central].tolist() == list(range(result.count))
    for at, item in enumerate(central.tolist()):
        own = np.flatnonzero(result.community == at)
        most = result.participation[own, at].max()
        assert result.participation[result.members == item, at] == pytest.approx(most, abs=1e-4)
        if method == "louvain":
            assert item == result.members[own].max()


def test_more_classes_and_small_groups_do_not_shatter() -> None:
    kinds = np.stack([diagonal(0.9, 5), diagonal(0.5, 5), np.tile([0.8, 0.05, 0.05, 0.05, 0.05], (5, 1))])
    mean, planted_in, votes = planted(kinds, 20, 60, 2)
    result = communities(mean, votes)
    assert result.count == 3
    assert adjusted_rand_score(planted_in, result.community) == 1.0


def test_a_limit_is_reported_only_if_as_many_communities_have_members() -> None:
    rng = np.random.default_rng(0)
    alike = np.array([[rng.dirichlet(20 * row + 0.1) for row in diagonal(0.725, 12)] for _ in range(12)])
    constant = np.tile([0.9 + 0.1 / 12, *[0.1 / 12] * 11], (1, 12, 1))
    mean, votes = np.concatenate([alike, constant]), np.full(13, 100)
    result = communities(mean, votes, CommunitySettings(most=5))
    assert (result.sizes().tolist(), result.notices) == ([12, 1], ())
    limited = communities(*planted(FIVE, 10, 60, 0)[::2], CommunitySettings(most=5))
    assert limited.notices == ("All 5 communities allowed were needed: raise the limit.",)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_annotators_does_not_matter(method: str) -> None:
    mean, _, votes = planted(FIVE, 25, 25, 3)
    order = np.random.default_rng(3).permutation(len(mean))
    settings = CommunitySettings(method=method)
    first, other = communities(mean, votes, settings), communities(mean[order], votes, settings)
    np.testing.assert_array_equal(first.community[order], other.community)
    np.testing.assert_array_equal(first.participation[order], other.participation)
    assert first.modularity == other.modularity


def test_gathering_into_cells_finds_what_the_whole_network_does(monkeypatch: pytest.MonkeyPatch) -> None:
    mean, _, votes = planted(FIVE, 160, 60, 4)
    full = communities(mean, votes)
    monkeypatch.setattr(module, "_CELLS", 400)
    gathered = communities(mean, votes)
    assert gathered.count == full.count == 5
    assert adjusted_rand_score(full.community, gathered.community) > 0.99
    np.testing.assert_allclose(gathered.prototype, full.prototype, atol=0.01)
    assert gathered.modularity == pytest.approx(full.modularity, abs=0.01)


def test_modularity_is_that_of_the_whole_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its definition (Newman 2006), of all pairs at once; the links are added up some rows at a time."""
    mean, _, votes = planted(FIVE, 20, 25, 5)
    monkeypatch.setattr(module, "_CHUNK", 33)
    result = communities(mean, votes)
    near = hellinger_similarity(mean, result.scale).astype(np.float64)
    np.fill_diagonal(near, 0.0)
    strength, together = near.sum(axis=1), result.community[:, None] == result.community
    expected = ((near - np.outer(strength, strength) / near.sum()) * together).sum() / near.sum()
    assert result.modularity == pytest.approx(expected, rel=1e-5)


def test_those_of_few_votes_are_skipped_with_a_notice() -> None:
    mean, _, votes = planted(FIVE[1:3], 10, 60, 5)
    votes[[3, 12]] = 4
    result = communities(mean, votes, CommunitySettings(min_votes=5))
    assert 3 not in result.members
    assert result.of(20)[[3, 12]].tolist() == [-1, -1]
    assert set(result.of(20)[:10]) - {-1} != set(result.of(20)[10:]) - {-1}
    assert result.notices == ("2 annotators have fewer than 5 votes and belong to no community.",)


def test_annotators_of_many_votes_can_be_left_out_too() -> None:
    mean, _, votes = planted(FIVE[:2], 20, 60, 6)
    votes[7] = votes.max() + 100
    result = communities(mean, votes, CommunitySettings(max_votes=float(votes[7] - 1)))
    assert result.of(40)[7] == -1
    assert len(result.members) == 39
    assert result.notices == (
        f"1 annotator has more than {votes[7] - 1:,} votes and belongs to no community.",
    )


@pytest.mark.parametrize("method", METHODS)
def test_few_annotators_and_identical_annotators(method: str) -> None:
    settings = CommunitySettings(method=method, min_votes=0)
    mean, _, votes = planted(FIVE[:2], 1, 60, 6)
    nobody = communities(mean[:0], votes[:0], settings)
    assert (nobody.count, nobody.of(0).tolist(), nobody.prototype.shape) == (0, [], (0, 2, 3))
    first = communities(mean[:1], votes[:1], settings)
    np.testing.assert_allclose(first.prototype[0], mean[0])
    assert communities(mean, votes, settings).members.tolist() == [0, 1]
    alike = communities(np.tile(mean[:1], (30, 1, 1)), np.full(30, 9), settings)
    assert (alike.count, alike.modularity) == (1, 0.0)
    for result in (nobody, first, alike):
        assert np.isfinite(result.participation).all()


def test_what_cannot_be_grouped_is_refused() -> None:
    mean, _, votes = planted(FIVE, 2, 10, 7)
    with pytest.raises(ValueError, match="a number each"):
        communities(mean, votes[1:])
    with pytest.raises(ValueError, match="probabilities"):
        communities(mean * 2, votes)


@pytest.mark.parametrize("method", METHODS)
def test_it_can_be_cancelled_and_its_progress_never_falls(method: str) -> None:
    mean, _, votes = planted(FIVE, 20, 30, 8)
    fractions: list[float] = []

    def watch(fraction: float, words: str, **options: object) -> None:
        assert words
        fractions.append(fraction)

    communities(mean, votes, CommunitySettings(method=method), watch)
    assert len(fractions) > 3
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] == pytest.approx(1.0)

    def stop(fraction: float, words: str, **options: object) -> None:
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        communities(mean, votes, CommunitySettings(method=method), stop)


def test_ways_of_behaving_are_called_what_they_are() -> None:
    two, scores = ("no", "yes"), ("-1", "1", "3")
    descriptions = [describe_community(matrix, two, scores, (0, 1, 1)) for matrix in FIVE]
    assert descriptions == ["right 80 %", "reliable", "always -1", "mistakes no for yes", "seldom 3"]
    maybe = ("no", "maybe", "yes")
    assert describe_community(FIVE[4], two, maybe, (0, -1, 1)) == "non-committal"
    names = ("cat", "dog", "fox")
    for matrix, words in (
        (diagonal(0.99, 3), "very reliable"),
        (diagonal(0.9, 3), "reliable"),
        (diagonal(0.4, 3), "guessing"),
        (diagonal(1.0, 3)[[1, 2, 0]], "the wrong way round"),
        (np.tile([0.05, 0.9, 0.05], (3, 1)), "always dog"),
        (np.tile([0.7, 0.15, 0.15], (3, 1)), "mostly cat, whatever it is"),
        (diagonal(0.9, 3)[[1, 1, 2]], "mistakes cat for dog"),
    ):
        assert describe_community(matrix, names, names, (0, 1, 2)) == words
    assert describe_community([[0.2, 0.8], [0.9, 0.1]], two, two, (0, 1)) == "the wrong way round"
    for right in (0.62, 0.74):  # of two classes: well above chance, and right mostly
        assert describe_community(diagonal(right, 2), two, two, (0, 1)) == f"right {100 * right:.0f} %"
    eighteen = tuple(map(str, range(18)))
    assert describe_community(diagonal(0.5, 18), eighteen, eighteen, range(18)) == "right 50 %"
    assert describe_community(diagonal(0.4, 18), eighteen, eighteen, range(18)) == "right 40 %"
    assert describe_community(diagonal(0.2, 18), eighteen, eighteen, range(18)) == "better than guessing"
    assert describe_community(diagonal(0.57, 2), two, two, (0, 1)) in (
        "guessing",
        "little better than guessing",
    )
    takes_cats = [[0.5, 0.45, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    assert describe_community(takes_cats, names, names, (0, 1, 2)) == "right 50 to 80 %, often cat as dog"
    assert describe_community([[1.0]], ("thing",), ("thing",), (0,)) == "very reliable"


def test_long_names_of_classes_are_shortened_where_they_are_alike() -> None:
    """Otherwise names of communities would be unreadable, above all in a column of a table."""
    long = tuple(f"{'Carcinoma of the upper outer quadrant ' * 6}{end}" for end in ("left", "right"))
    names = describe_communities(
        np.stack([np.tile([0.98, 0.02], (2, 1)), np.tile([0.02, 0.98], (2, 1))]), long, long, (0, 1)
    )
    assert names == ("always Carcinoma of t…quadrant left", "always Carcinoma of t…uadrant right")


def test_communities_have_different_names() -> None:
    names = ("cat", "dog")
    many = np.stack([diagonal(0.88, 2), [[0.95, 0.05], [0.2, 0.8]], diagonal(0.89, 2), diagonal(0.88, 2)])
    text = describe_communities(many, names, names, (0, 1))
    assert len(set(text)) == 4
    assert all(words.startswith("reliable") for words in text)
    assert text[1] == "reliable (favours cat)"
    alike = describe_communities(np.stack([diagonal(0.88, 2)] * 3), names, names, (0, 1))
    assert alike == tuple(f"reliable (favours cat) {number}" for number in (1, 2, 3))
    assert describe_communities(np.empty((0, 2, 2)), names, names, (0, 1)) == ()


def test_a_real_crowd_falls_into_communities_that_differ(real_data: Path) -> None:
    """39 annotators who all judged the species of the same 108 birds."""
    with (real_data / "labels" / "bluebirds.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (real_data / "labels" / "bluebirds_truth.csv").open() as file:
        truth = {row["task"]: int(row["label"]) for row in csv.DictReader(file)}
    annotator = {name: at for at, name in enumerate(dict.fromkeys(row["worker"] for row in rows))}
    alpha = np.ones((len(annotator), 2, 2)) + np.eye(2)
    for row in rows:
        alpha[annotator[row["worker"]], truth[row["task"]], int(row["label"])] += 1
    mean = alpha / alpha.sum(axis=2, keepdims=True)
    result = communities(mean, np.full(len(annotator), 108))
    assert 3 <= result.count <= 8
    accuracy = np.trace(mean, axis1=1, axis2=2) / 2
    within = np.sqrt(np.mean([(accuracy[result.community == c]).var() for c in range(result.count)]))
    assert within < 0.6 * accuracy.std()
