"""The test against the choice model: beside exact enumeration, and how often it is right."""

from itertools import product

import numpy as np
import pytest

from raterscope.algorithms.pairs.choice_model import fit_choices
from raterscope.algorithms.pairs.data import Pairs
from raterscope.algorithms.pairs.flip_test import choice_probability
from raterscope.algorithms.pairs.selection import crowd_probability, simes


def test_probability_lies_between_those_of_at_least_and_of_more():
    rng = np.random.default_rng(1)
    for count in (8, 12, 14):
        mean = rng.uniform(-0.8, 0.8, count)
        choices = np.array(list(product((-1, 1), repeat=count)))
        chance = np.prod((1 + choices * mean) / 2, axis=1)
        totals = choices.sum(axis=1)
        for total in range(-count, count + 1, 2):
            statistic = total - mean.sum()
            towards = np.sign(statistic)
            least = 2 * chance[towards * totals >= towards * total].sum()
            more = 2 * chance[towards * totals > towards * total].sum()
            result = choice_probability(mean, np.array([0, count]), np.array([statistic]))[0]
            assert 0.5 * more < result <= least + 0.01


def test_probabilities_are_uniform_where_the_model_is_right():
    rng = np.random.default_rng(2)
    people, votes = 4000, 40
    mean = np.tanh(rng.normal(size=people * votes))
    choice = np.where(rng.random(len(mean)) < (1 + mean) / 2, 1.0, -1.0)
    total = (choice - mean).reshape(people, votes).sum(axis=1)
    result = choice_probability(mean, np.arange(people + 1) * votes, total)
    for level in (0.01, 0.05, 0.2):
        assert (result < level).mean() == pytest.approx(level, abs=3.5 * np.sqrt(level / people))


@pytest.mark.parametrize("spread", [0.0, 0.6])
def test_the_spread_of_slopes_is_estimated_from_the_crowd(spread):
    rng = np.random.default_rng(4)
    people, votes, items = 150, 60, 30
    slope = np.abs(rng.normal(1, spread, people))
    annotator, left = np.repeat(np.arange(people), votes), rng.integers(items, size=people * votes)
    right = (left + rng.integers(1, items, len(left))) % items
    score = rng.normal(0, 1.5, items)
    mean = np.tanh(0.5 * slope[annotator] * (score[left] - score[right]))
    choice = np.where(rng.random(len(left)) < (1 + mean) / 2, 1.0, -1.0)
    names = (tuple(map(str, range(count))) for count in (people, items))
    deviation = fit_choices(Pairs(annotator, left, right, choice, *names)).slope_prior[1] ** -0.5
    assert deviation == pytest.approx(slope.std() / slope.mean() if spread else 0.15, abs=0.1)


def test_no_notice_for_annotators_without_choices():
    assert choice_probability(np.empty(0), np.array([0, 0]), np.zeros(1)).tolist() == [1.0]


def test_the_crowd_is_tested_for_one_large_bias_and_for_many_small_ones():
    even = (np.arange(100) + 0.5) / 100
    first, many = even.copy(), np.maximum(even**1.8, 1e-3)
    first[0] = 1e-5
    assert crowd_probability(even) > 0.5
    assert crowd_probability(first) == pytest.approx(simes(first) / 0.75)
    assert crowd_probability(many) < 0.01 < simes(many)
    assert crowd_probability(np.array([np.nan])) == 1.0
