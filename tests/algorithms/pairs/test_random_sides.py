"""Sides drawn at random or not, and what the flip test makes of them once they are drawn again."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.data import PairSettings
from raterscope.algorithms.pairs.selection import LEVELS, check_redrawn_sides, redraw_sides
from raterscope.algorithms.simulation.pair_crowds import study_crowd


def with_left(pairs, left_first):
    """Put the item of lower number on the left of some comparisons, and on the right of the others."""
    lower_left = pairs.left < pairs.right
    turned = lower_left != left_first
    return replace(
        pairs,
        left=np.where(turned, pairs.right, pairs.left),
        right=np.where(turned, pairs.left, pairs.right),
        choice=np.where(turned, -pairs.choice, pairs.choice),
    )


@pytest.fixture(scope="module")
def crowd():
    return study_crowd(0.1, 0.7, 3).pairs


def test_sides_drawn_at_random_are_not_doubted_even_in_a_biased_crowd(crowd):
    result = fuse(crowd)
    assert result.flagged.sum() > 30
    assert result.sides == ""
    assert not any("drawn at random" in notice for notice in result.notices)


def test_the_better_item_mostly_on_the_left_is_reported(crowd):
    better = np.argsort(-fuse(crowd).corrected)
    rank = np.empty(len(better), dtype=int)
    rank[better] = np.arange(len(better))
    rng = np.random.default_rng(1)
    numbered = replace(crowd, left=rank[crowd.left], right=rank[crowd.right])
    result = fuse(with_left(numbered, rng.random(len(crowd)) < 0.8))
    assert result.sides.startswith("the better item was on the left in ")
    assert 0.75 < float(result.sides.split("in ")[1].split("%")[0]) / 100 < 0.85
    assert sum("Sides were not drawn at random" in notice for notice in result.notices) == 1


def test_items_that_keep_to_a_side_are_reported(crowd):
    # of some numberings, that which says least of which item is better
    score = fuse(crowd).corrected
    orders = [np.random.default_rng(seed).permutation(len(score)) for seed in range(40)]
    order = min(orders, key=lambda item: abs(np.corrcoef(score, item)[0, 1]))
    numbered = replace(crowd, left=order[crowd.left], right=order[crowd.right])
    mostly = np.random.default_rng(0).random(len(crowd)) < 0.8
    assert "some items were mostly on the left" in fuse(with_left(numbered, mostly)).sides


def test_pairs_always_shown_on_the_same_sides_are_reported(crowd):
    count = len(crowd.items)
    key = np.minimum(crowd.left, crowd.right) * count + np.maximum(crowd.left, crowd.right)
    once = np.random.default_rng(0).random(count * count) < 0.5
    assert "most pairs had the same item on the left" in fuse(with_left(crowd, once[key])).sides


def test_knockoffs_promise_their_rate_without_random_sides(crowd):
    plan = PairPlan.make("iss", {"rule": "knockoffs", "draws": "3"})
    result = fuse(with_left(crowd, np.True_), plan)
    assert not any("drawn at random" in notice for notice in result.notices)


def test_redrawing_keeps_who_preferred_which_item(crowd):
    second = redraw_sides(crowd, 4)
    turned = second.left != crowd.left
    assert 0.4 < turned.mean() < 0.6
    assert (second.left[turned] == crowd.right[turned]).all()
    np.testing.assert_array_equal(second.choice, np.where(turned, -crowd.choice, crowd.choice))


def test_no_annotator_is_biased_once_sides_are_redrawn(crowd):
    result = check_redrawn_sides(crowd, PairSettings(), 6)
    assert result.tested == len(crowd.annotators)
    assert np.abs(result.below.mean(axis=0) - LEVELS).max() < 0.06
    assert (result.accused > 0).sum() <= 1
