"""Accuracy against votes, enough votes, and the distribution of a budget."""

import numpy as np
import pytest

from raterscope.algorithms.labels.active_learning import next_votes
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.vote_budget import (
    BudgetSettings,
    CostSettings,
    Price,
    assign_votes,
    extrapolate_gain,
    has_enough,
    measure_vote_curve,
    replay_stopping,
    vote_ranks,
)
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import silent
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd
from tests.algorithms.labels.test_active_learning import specialists
from tests.benchmarks.label_budget import RULES, replay, simulated

PLAN = LabelPlan()


def fuse(labels, watch=silent):
    return run(labels, PLAN, watch)


def vote(labels, _watch=silent):
    return majority(labels)


@pytest.fixture(scope="module")
def staged():
    return simulate_labels(staging_crowd(tasks=200, annotators=20), seed=3)


def test_limits_of_load_cost_and_tasks_are_kept():
    labels, fusion = specialists(400, 60, 3, 2)
    prices = {f"a{k}": Price(cost=2.0 if k % 2 else 1.0, most=3 if k < 10 else None) for k in range(60)}
    budget = BudgetSettings(votes=150, each=5, per_task=2, enough=0.9, spend=120.0)
    asked = assign_votes(labels, fusion, budget, prices)
    load = np.bincount(asked.annotator[asked.annotator != OPEN], minlength=60)
    assert load[:10].max() <= 3
    assert load.max() <= 5
    assert np.bincount(asked.task).max() <= 2
    assert sum(prices[f"a{k}"].cost if k >= 0 else 1.5 for k in asked.annotator.tolist()) <= 120
    assert not has_enough(fusion, 0.9)[asked.task].any()
    pairs = list(zip(asked.task.tolist(), asked.annotator.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)


def test_the_dearer_of_two_equal_annotators_gets_fewer_tasks():
    labels, fusion = specialists(300, 20, 2, 4)
    fusion.confusion.alpha[:2] = 1 + 50 * np.eye(2)  # two good annotators
    asked = assign_votes(labels, fusion, BudgetSettings(votes=200, each=100), {"a1": Price(5.0)})
    counts = np.bincount(asked.annotator[asked.annotator >= 0], minlength=20)
    assert counts[0] > counts[1]


def test_a_further_vote_on_a_task_counts_for_less():
    labels, fusion = specialists(5, 40, 2, 6)
    once = next_votes(labels, fusion, 5)
    twice = assign_votes(labels, fusion, BudgetSettings(votes=30, per_task=6, each=5, enough=1.0))
    assert len(twice) > len(once)
    for task in np.unique(twice.task).tolist():
        gains = twice.gain[twice.task == task]
        assert (np.diff(gains) <= 1e-12).all()
        doubt = fusion.posterior[task]
        assert gains.sum() <= -(doubt * np.log2(np.maximum(doubt, 1e-300))).sum() + 1e-9


def test_the_curve_ends_with_all_votes(staged):
    labels, truth = staged.labels, staged.truth.astype(np.int16)
    curve = measure_vote_curve(labels, truth, vote, CostSettings(draws=2))
    assert curve.votes[-1] == pytest.approx(len(labels) / (labels.votes_of_tasks() > 0).sum())
    assert curve.accuracy[-1, 0] == pytest.approx((majority(labels).label() == truth).mean())
    assert (np.diff(curve.most) > 0).all()
    assert curve.accuracy[-1, 0] > curve.accuracy[0, 0] + 0.05
    assert (curve.accuracy[:, 1] < curve.accuracy[:, 0]).all()
    without = measure_vote_curve(labels, np.full_like(truth, OPEN), vote, CostSettings(draws=1))
    assert np.isnan(without.accuracy).all()
    assert np.isfinite(without.expected).all()


def test_votes_are_ranked_on_their_task_in_the_order_given(staged):
    labels = staged.labels
    order = np.random.default_rng(0).permutation(len(labels))
    ranks = vote_ranks(labels, order)
    for task in range(5):
        own = order[labels.task[order] == task]
        assert ranks[own].tolist() == list(range(len(own)))


def test_stopping_saves_votes_and_has_an_error_on_gold_tasks(staged):
    labels, truth = staged.labels, staged.truth.astype(np.int16)
    never = replay_stopping(labels, truth, vote, limit=1.1)
    assert (never.used, never.stopped, never.judged) == (len(labels), 0, 0)
    stopped = replay_stopping(labels, truth, fuse, limit=0.9)
    assert 0 < stopped.used < len(labels)
    assert stopped.used >= 3 * stopped.stopped
    assert stopped.low <= stopped.error <= stopped.high
    nowhere = np.full_like(truth, OPEN)
    assert np.isnan(replay_stopping(labels, nowhere, vote, limit=0.9).error)


def test_the_interval_of_the_gain_holds_what_more_votes_gain():
    held = []
    labels, truth = simulated(1, 200, 12)
    ranks = vote_ranks(labels, np.random.default_rng(1).permutation(len(labels)))
    fewer = labels.subset(ranks < 6)
    now = fuse(fewer)
    for gain in extrapolate_gain(fewer, now, fuse, 2):
        more = fuse(labels.subset(ranks < 6 + round(gain.more))).label()
        real = float((more == truth).mean() - (now.label() == truth).mean())
        held.append(gain.low <= real <= gain.high)
        assert gain.low < gain.gain < gain.high
    assert np.mean(held) >= 0.85


def test_the_gain_of_one_or_two_votes_per_task_is_not_predicted():
    labels, _ = simulated(0, 20, 5)
    two = labels.subset(vote_ranks(labels, np.arange(len(labels))) < 2)
    assert extrapolate_gain(two, vote(two), vote, 3) == ()


def test_votes_by_information_beat_random_ones_with_shared_load():
    labels, truth = simulated(2, tasks=40, annotators=16)
    random, rule = (replay(labels, truth, RULES[name], 1)[-1] for name in ("random", "rule"))
    assert rule[0] == pytest.approx(random[0])
    assert rule[3] > 8  # of 16 annotators
    assert rule[1] > random[1] + 0.03
