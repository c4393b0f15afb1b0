"""Simulated crowds that label tasks are what their plan says."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from raterscope.algorithms.simulation.label_crowds import (
    CHANGES,
    Behaviour,
    scoring_crowd,
    simulate_labels,
    staging_crowd,
)

PLANS = {"scores": scoring_crowd, "stages": staging_crowd}


def frequencies(crowd, votes):
    """Count the outputs given to each class, as shares."""
    labels = crowd.labels
    table = np.zeros((len(labels.classes), len(labels.outputs)))
    np.add.at(table, (crowd.truth[labels.task[votes]], labels.label[votes]), 1)
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_same_seed_gives_the_same_votes_and_another_seed_others(plan):
    first, second, other = (simulate_labels(plan(400, 60), seed) for seed in (5, 5, 6))
    for name in ("task", "annotator", "label", "time"):
        np.testing.assert_array_equal(getattr(first.labels, name), getattr(second.labels, name))
    np.testing.assert_array_equal(first.confusion(), second.confusion())
    assert not np.array_equal(first.truth, other.truth)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_votes_come_from_the_rows_of_their_behaviours(plan):
    crowd = simulate_labels(plan(3000, 4000, hard=0.0), 1)
    labels = crowd.labels
    row = crowd.confusion()[np.arange(len(labels)), crowd.truth[labels.task]]
    np.testing.assert_allclose(row.sum(axis=1), 1.0, atol=1e-5)
    for index in [crowd.change == kind for kind in range(len(CHANGES))]:
        votes = index[labels.annotator]
        values = np.bincount(labels.label[votes], minlength=row.shape[1])
        variance = (row[votes] * (1 - row[votes])).sum(axis=0)
        z = (values - row[votes].sum(axis=0)) / np.sqrt(variance)
        assert np.abs(z).max() < 4


def test_communities_have_the_rows_and_the_shares_of_their_behaviours():
    plan = scoring_crowd(3000, 4000, hard=0.0)
    crowd = simulate_labels(plan, 2)
    members = np.bincount(crowd.community) / plan.annotators
    np.testing.assert_allclose(members, [behaviour.share for behaviour in plan.behaviours], atol=0.001)
    for number, behaviour in enumerate(plan.behaviours):
        steady = (crowd.community == number) & ~crowd.changed
        result = frequencies(crowd, steady[crowd.labels.annotator])
        np.testing.assert_allclose(result, behaviour.rows, atol=0.03)


def test_hard_tasks_show_their_class_less():
    crowd = simulate_labels(scoring_crowd(3000, 4000, hard=0.5), 3)
    extremists = (crowd.community == crowd.behaviours.index("extremists")) & ~crowd.changed
    votes = extremists[crowd.labels.annotator]
    hard = crowd.difficulty[crowd.labels.task] > 0.6
    plain = crowd.difficulty[crowd.labels.task] == 0
    apart = [np.abs(np.subtract(*frequencies(crowd, votes & item))).sum() for item in (plain, hard)]
    assert apart[0] == pytest.approx(2 * (0.90 - 0.12), abs=0.06)
    assert apart[1] < 0.4 * apart[0]


def test_numbers_of_votes_are_heavy_tailed_and_no_annotator_votes_twice_on_a_task():
    crowd = simulate_labels(scoring_crowd(), 4)
    counts = crowd.labels.votes_of_annotators()
    assert counts.max() == 3000
    assert counts.min() == 15
    assert np.median(counts) < 35
    assert np.sort(counts)[-60:].sum() > 0.5 * counts.sum()
    pairs = crowd.labels.annotator.astype(np.int64) * len(crowd.labels.tasks) + crowd.labels.task
    assert len(np.unique(pairs)) == len(pairs)


def test_who_may_vote_on_all_tasks_does():
    crowd = simulate_labels(scoring_crowd(150, 30, most=10**6, fewest=100), 1)
    assert crowd.labels.votes_of_annotators().max() == 150
    pairs = crowd.labels.annotator.astype(np.int64) * 150 + crowd.labels.task
    assert len(np.unique(pairs)) == len(pairs)


def test_cohorts_share_tasks():
    crowd = simulate_labels(scoring_crowd(6000, 500, most=400, loyalty=0.8), 5)
    home = crowd.cohort[crowd.labels.annotator] == crowd.cohort_of_task[crowd.labels.task]
    assert home.mean() == pytest.approx(0.8, abs=0.02)


def test_votes_come_in_time_and_change_goes_one_way():
    crowd = simulate_labels(scoring_crowd(), 6)
    labels = crowd.labels
    assert (np.diff(labels.time) >= 0).all()
    order = labels.in_time()
    same = np.diff(labels.annotator[order]) == 0
    assert (np.diff(crowd.progress[order])[same] >= 0).all()
    assert (crowd.progress[~crowd.changed[labels.annotator]] == 0).all()


def test_change_begins_at_the_moment_that_is_given():
    crowd = simulate_labels(scoring_crowd(), 7)
    labels = crowd.labels
    assert set(crowd.change) == {0, 1, 2, 3}
    for annotator in np.flatnonzero(crowd.changed):
        progress = crowd.progress[labels.annotator == annotator]
        moment = crowd.moment[annotator]
        assert (progress[:moment] == 0).all()
        assert progress[moment + 1] > 0
        assert progress[-1] == 1
    assert (crowd.moment[~crowd.changed] == -1).all()
    np.testing.assert_array_equal(crowd.early[~crowd.changed], crowd.late[~crowd.changed])


def test_the_busiest_who_change_are_seen_to():
    crowd = simulate_labels(scoring_crowd(hard=0.0), 8)
    labels = crowd.labels
    counts = labels.votes_of_annotators()
    busiest = np.flatnonzero(crowd.changed & (counts > 1000))
    assert len(busiest)
    for annotator in busiest:
        votes = np.flatnonzero(labels.annotator == annotator)
        first, last = votes[: len(votes) // 4], votes[-len(votes) // 4 :]
        tables = [
            np.bincount(crowd.truth[labels.task[part]] * 3 + labels.label[part], minlength=6)
            for part in (first, last)
        ]
        used = np.sum(tables, axis=0) > 0
        assert stats.chi2_contingency(np.array(tables)[:, used]).pvalue < 1e-4


@pytest.mark.parametrize(
    "changes",
    [
        {"behaviours": (Behaviour("odd", ((0.5, 0.5), (0.5, 0.5))),)},
        {"behaviours": (Behaviour("odd", ((0.5, 0.5, 0.5), (0.2, 0.4, 0.4))),)},
        {"behaviours": ()},
        {"shares": (1.0,)},
        {"tasks": 3},
        {"fewest": 0},
    ],
)
def test_plans_that_cannot_be(changes):
    with pytest.raises(ValueError, match=r"\."):
        replace(scoring_crowd(), **changes)
