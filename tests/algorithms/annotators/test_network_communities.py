"""Communities of a network: how many, who, and whatever the order and the scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from raterscope.algorithms.annotators.network_communities import FactorisationSettings, by_links, factorise
from raterscope.algorithms.annotators.similarity import hellinger_similarity
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.annotators.crowds import FIVE, planted


def _blocks(sizes: list[int], within: float, between: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(len(sizes)), sizes)
    rate = np.where(of[:, None] == of, within, between)
    network = np.triu(rng.beta(20 * rate, 20 * (1 - rate)), 1)
    return (network + network.T + np.eye(len(of))).astype(np.float32)


def _partition(community: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(community == c).tolist()) for c in np.unique(community)}


def test_the_number_of_blocks_is_found_and_all_annotators_is_in_its_own() -> None:
    sizes = [30, 20, 12, 7]
    result = factorise(_blocks(sizes, 0.7, 0.05, 1))
    assert result.member.shape[1] == 4
    expected = np.repeat(np.arange(4), sizes)
    assert _partition(result.participation.argmax(axis=1)) == _partition(expected)
    np.testing.assert_allclose(result.participation.sum(axis=1), 1.0, rtol=1e-5)
    assert result.participation.max(axis=1).min() > 0.7
    np.testing.assert_allclose(
        result.unit * (result.member @ result.link)[:30, 30:50].mean(), 0.05, atol=0.03
    )


def test_an_annotator_between_two_communities_takes_part_in_both() -> None:
    network = _blocks([20, 20, 1], 0.8, 0.02, 2)
    network[40, :40] = network[:40, 40] = 0.45
    result = factorise(network)
    assert result.member.shape[1] == 2
    assert 0.35 < result.participation[40, 0] < 0.65


def test_one_behaviour_is_one_community_however_many_share_it() -> None:
    for size in (40, 700):
        mean, _, _ = planted(FIVE[1:2], size, 60, 3)
        assert factorise(hellinger_similarity(mean)).member.shape[1] == 1


def test_the_objective_never_rises() -> None:
    mean, _, _ = planted(FIVE, 40, 40, 4)
    trace = factorise(hellinger_similarity(mean), FactorisationSettings(restarts=1)).objective
    assert len(trace) > 4
    assert np.diff(trace).max() <= 1e-6 * np.abs(trace).max()
    assert trace[-1] < trace[0] - 10


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_annotators_does_not_matter(seed: int) -> None:
    network = _blocks([9, 6, 5, 2], 0.6, 0.2, seed)
    order = np.random.default_rng(seed).permutation(len(network))
    first = factorise(network).participation
    other = factorise(network[np.ix_(order, order)]).participation
    np.testing.assert_array_equal(first[order], other)


def test_neither_scale_nor_copies_change_the_communities() -> None:
    network = _blocks([9, 7, 5], 0.7, 0.1, 5)
    plain = factorise(network)
    scaled = factorise(network * np.float32(1 / 64))
    assert _partition(plain.member.argmax(axis=1)) == _partition(scaled.member.argmax(axis=1))
    copies = factorise(np.kron(network, np.ones((5, 5), dtype=np.float32)))
    heavy = factorise(network, weight=np.full(21, 5, dtype=np.float32))
    for result in (copies.member.argmax(axis=1)[::5], heavy.member.argmax(axis=1)):
        assert _partition(result) == _partition(plain.member.argmax(axis=1))


def test_weights_are_what_copies_would_be() -> None:
    """The objective of three annotators who stand for 4, 2 and 1 is that of seven."""
    network = np.array([[1, 0.2, 0.1], [0.2, 1, 0.6], [0.1, 0.6, 1]], dtype=np.float32)
    many = np.array([4, 2, 1])
    every = np.repeat(np.repeat(network, many, axis=0), many, axis=1)
    options = FactorisationSettings(most=2, restarts=20, max_iterations=2000)
    short = factorise(network, options, weight=many.astype(np.float32))
    long = factorise(every, options)
    assert short.tempering == pytest.approx(long.tempering)
    np.testing.assert_allclose(
        short.member.repeat(many, axis=0) @ short.link.repeat(many, axis=1),
        long.member @ long.link,
        atol=0.02,
    )


def test_a_sparse_network_is_taken_apart_as_the_same_dense_one() -> None:
    network = _blocks([15, 10, 8], 0.7, 0.1, 6)
    network[network < 0.15] = 0.0
    dense, sparse = factorise(network), factorise(csr_array(network))
    np.testing.assert_allclose(sparse.participation, dense.participation, atol=2e-3)
    np.testing.assert_allclose(sparse.objective[-1], dense.objective[-1], rtol=1e-3)


def test_no_links_no_communities_and_bad_networks_are_refused() -> None:
    assert factorise(np.empty((0, 0), dtype=np.float32)).member.shape == (0, 0)
    assert factorise(np.zeros((3, 3), dtype=np.float32)).member.shape == (3, 0)
    assert factorise(np.ones((1, 1), dtype=np.float32)).participation.tolist() == [[1.0]]
    for bad in (np.ones((2, 3)), -np.ones((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="network"):
            factorise(bad.astype(np.float32))


def test_it_can_be_cancelled() -> None:
    def stop(fraction: float, words: str, **options: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        factorise(_blocks([5, 5], 0.7, 0.1, 7), watch=stop)


def _as_printed(network: np.ndarray, seed: int, iterations: int) -> np.ndarray:
    """Return the participation by the updates of Psorakis et al. (2011), written out, from one start."""
    count = len(network)
    member, link = np.random.default_rng((seed, 0)).random((2, count, count), dtype=np.float32).astype(float)
    link, ones = link.T, np.ones((count, count))

    def shrinkage() -> np.ndarray:
        return np.diag((count + 5 - 1) / ((member**2).sum(axis=0) / 2 + (link**2).sum(axis=1) / 2 + 2))

    beta = shrinkage()
    for _ in range(iterations):
        link = link / (member.T @ ones + beta @ link) * (member.T @ (network / (member @ link)))
        member = member / (ones @ link.T + member @ beta) * ((network / (member @ link)) @ link.T)
        beta = shrinkage()
    return member / member.sum(axis=1, keepdims=True)


def test_updates_as_printed_are_those_of_the_paper() -> None:
    network = _blocks([9, 6, 4], 0.7, 0.05, 1)
    order = by_links(network)
    settings = FactorisationSettings(restarts=1, max_iterations=60, as_published=True)
    result = factorise(network, settings).participation[order]
    literal = _as_printed(network[np.ix_(order, order)].astype(float), 0, 60)
    kept = literal.max(axis=0) > 1e-3
    np.testing.assert_allclose(result[:, result.max(axis=0) > 1e-3], literal[:, kept], atol=2e-3)
