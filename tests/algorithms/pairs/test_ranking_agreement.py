"""Rankings beside a known one: another implementation of Kendall's tau, and the tables of the paper."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from raterscope.algorithms.pairs.ranking_agreement import TrueRanking, compare_rankings

CHAINS = ((11, 21), (22, 4, 6), (30, 8), (25, 13, 16, 2, 15), (18, 1))
"""The known order of competitive images in Table 5 of the position bias paper."""

SCORES = {
    11: (0.4059, 0.4343), 21: (0.4087, 0.4086), 22: (0.0896, 0.1032), 4: (0.0914, 0.1207),
    6: (0.0932, 0.1084), 30: (-0.0025, 0.0055), 8: (0.0086, -0.0024), 25: (-0.2166, -0.2099),
    13: (-0.1961, -0.2111), 16: (-0.2551, -0.2887), 2: (-0.3710, -0.2785), 15: (-0.2160, -0.2791),
    18: (-0.6249, -0.6180), 1: (-0.6135, -0.6376),
}  # fmt: skip
"""Their original and corrected scores in Table 4."""


def whole(position):
    return TrueRanking(np.asarray(position, dtype=float), np.zeros(len(position), np.int32))


@pytest.mark.parametrize("seed", range(5))
def test_tau_is_that_of_scipy_ties_included(seed):
    rng = np.random.default_rng(seed)
    score, position = rng.integers(0, 12, 30).astype(float), rng.integers(1, 15, 30).astype(float)
    result = compare_rankings(score, np.zeros(30, np.int32), whole(position))
    assert result.tau == pytest.approx(kendalltau(score, -position).statistic)
    assert result.items == 30


def test_the_corrected_ranking_of_the_paper_agrees_more_with_its_ground_truth():
    items = list(SCORES)
    position, group = np.full(len(items), np.nan), np.zeros(len(items), np.int32)
    for number, chain in enumerate(CHAINS):
        for rank, item in enumerate(chain, start=1):
            position[items.index(item)], group[items.index(item)] = rank, number
    truth, component = TrueRanking(position, group), np.zeros(len(items), np.int32)
    original, corrected = (
        compare_rankings(np.array([SCORES[item][at] for item in items]), component, truth) for at in (0, 1)
    )
    assert (original.agreeing, original.opposed) == (6, 10)
    assert (corrected.agreeing, corrected.opposed) == (12, 4)
    assert (original.tau, corrected.tau) == pytest.approx((-0.25, 0.5))
    assert original.best == ()


def test_pairs_that_nothing_links_or_orders_do_not_count():
    score = np.array([3.0, 2.0, 1.0, np.nan, 5.0])
    component = np.array([0, 0, 1, 1, -1], np.int32)
    result = compare_rankings(score, component, whole([1, 2, 3, 4, 5]))
    assert (result.items, result.agreeing, result.opposed, result.tau) == (3, 1, 0, 1.0)
    empty = compare_rankings(score, component, whole([np.nan] * 5))
    assert empty.items == 0
    assert np.isnan(empty.tau)


def test_the_best_items_that_are_found():
    score = np.array([9.0, 1.0, 8.0, 7.0, 6.0, 5.0])
    result = compare_rankings(score, np.zeros(6, np.int32), whole([1, 2, 3, 4, 5, 6]))
    assert result.best == ((1, 1.0), (3, 2 / 3), (5, 4 / 5))
