"""Annotators' rates: their intervals cover what is true, and figures of one annotator and of groups agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.annotators.communities import describe_community
from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.dynamic import dynibcc
from raterscope.algorithms.labels.fusion import LabelPlan, fuse
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.rates import SPREAD, estimate_rates, label_doubt, rates_of
from tests.algorithms.labels.crowds import crowd, make


def simulated(annotators: int, classes: int, tasks: int, accuracy: np.ndarray, seed: int = 0):
    """Return labels with 5 votes a task, the truth, and the annotators' matrices."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    rates = rng.dirichlet(np.ones(classes), (annotators, classes)) * (1 - accuracy)[:, None, None]
    own = np.arange(classes)
    wrong = 1 - np.eye(classes)
    rates = rates * wrong
    rates *= ((1 - accuracy)[:, None] / rates.sum(axis=2))[:, :, None]
    rates[:, own, own] = accuracy[:, None]
    task = np.repeat(np.arange(tasks), 5)
    annotator = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :5].ravel()
    label = (rng.random(len(task))[:, None] > rates[annotator, truth[task]].cumsum(axis=1)).sum(axis=1)
    labels = make(task, annotator, np.minimum(label, classes - 1), classes)
    return labels, truth, rates


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_intervals_cover_entries_and_accuracies(classes: int) -> None:
    accuracy = np.random.default_rng(classes).beta(6, 2, 40)
    labels, truth, true = simulated(40, classes, 500, accuracy)
    rates = rates_of(labels, ibcc(labels))
    low, high = rates.interval()
    is_known = rates.counts.sum(axis=2) >= 5
    assert ((low <= true) & (true <= high))[is_known].mean() >= 0.93
    right = np.bincount(labels.annotator, labels.label == truth[labels.task], minlength=40)
    share = right / labels.votes_of_annotators()
    mean, low, high = rates.accuracies()
    assert ((low <= share) & (share <= high)).mean() >= 0.93
    assert np.abs(mean - share).mean() <= 0.05


def test_accuracies_of_a_crowd_with_few_disputed_tasks_have_narrow_intervals() -> None:
    labels, truth, _ = simulated(40, 5, 600, np.random.default_rng(3).uniform(0.55, 0.95, 40))
    mean, low, high = rates_of(labels, pooled(labels)).accuracies()
    right = np.bincount(labels.annotator, labels.label == truth[labels.task], minlength=40)
    share = right / labels.votes_of_annotators()
    assert ((low <= share) & (share <= high)).mean() >= 0.95
    binomial = 2 * 1.96 * np.sqrt(mean * (1 - mean) / labels.votes_of_annotators())
    assert ((high - low) / binomial).mean() <= 1.6


def test_known_classes_narrow_the_crowd_s_accuracy_most_where_they_are_typical() -> None:
    labels, truth, _ = simulated(40, 4, 600, np.random.default_rng(3).uniform(0.45, 0.9, 40))
    unsure = np.argsort(-pooled(labels).entropy())
    right = (labels.label == truth[labels.task]).mean()
    widths = []
    for tasks in ([], np.random.default_rng(1).choice(600, 50, replace=False), unsure[:50]):
        known = np.full(600, OPEN, dtype=np.int16)
        known[tasks] = truth[tasks]
        judged = replace(labels, known=known)
        (low,), (high,) = rates_of(judged, pooled(judged)).together(np.arange(40)).accuracy_interval()
        assert low <= right <= high
        widths.append(high - low)
    none, typical, disputed = widths
    assert typical < 0.6 * none
    assert typical < disputed < none


def test_good_annotators_of_many_classes_are_not_called_guessing() -> None:
    accuracy = np.full(60, 0.9)
    accuracy[50:] = 1 / 30
    labels, truth, _ = simulated(60, 30, 1500, accuracy)
    result = fuse(labels, LabelPlan.make("ibcc", {"communities": "behaviour"}))
    rates = rates_of(labels, result.fusion)
    names = [describe_community(item, labels.classes, labels.outputs, range(30)) for item in rates.mean[:50]]
    assert not any("guessing" in name for name in names)
    right = np.bincount(labels.annotator, labels.label == truth[labels.task], minlength=60)
    share = right / labels.votes_of_annotators()
    assert np.abs(rates.accuracy - share)[labels.votes_of_annotators() >= 25].mean() <= 0.05
    assert rates.accuracy[50:].max() < 0.3


def test_entries_are_unknown_where_every_task_has_one_vote() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    label = np.where(rng.random(300) < 0.8, truth, 1 - truth)
    labels = make(np.arange(300), np.arange(300) % 10, label)
    low, high = rates_of(labels, pooled(labels)).interval()
    assert (low == 0).all()
    assert (high == 1).all()
    labels = replace(labels, known=np.where(np.arange(300) < 30, truth, OPEN).astype(np.int16))
    low, high = rates_of(labels, pooled(labels)).interval()
    assert (high - low).mean() < 0.8


def test_known_classes_leave_no_doubt_of_labels() -> None:
    labels = crowd(tasks=200, annotators=4)
    posterior = np.eye(3)[np.arange(200) % 3]
    known = np.arange(200, dtype=np.int16) % 3
    free = estimate_rates(labels, posterior)
    fixed = estimate_rates(replace(labels, known=known), posterior)
    assert fixed.doubt.max() == 0.0
    assert (free.doubt > 0).any()
    width = [np.subtract(*item.interval()[::-1]).mean() for item in (fixed, free)]
    assert width[0] < width[1]


def test_many_votes_on_clear_tasks_leave_a_binomial_interval() -> None:
    labels = crowd(tasks=420, annotators=25)
    low, high = rates_of(labels, pooled(labels)).accuracy_interval()
    binomial = 2 * 1.96 * np.sqrt(0.8 * 0.2 / 420)
    assert (high - low).mean() == pytest.approx(binomial, rel=0.1)


def test_groups_average_to_the_crowd() -> None:
    labels = crowd(tasks=100, annotators=6)
    rates = rates_of(labels, ibcc(labels))
    votes = labels.votes_of_annotators()
    first, second = np.array([0, 1, 4]), np.array([2, 3, 5])
    parts = [rates.together(rows).accuracy[0] for rows in (first, second)]
    weights = [votes[rows].sum() for rows in (first, second)]
    assert np.average(parts, weights=weights) == pytest.approx(rates.together(np.arange(6)).accuracy[0])
    assert np.average(rates.accuracy, weights=votes) == pytest.approx(np.average(parts, weights=weights))


def test_the_crowd_of_a_rare_class_has_an_interval_that_shows_something() -> None:
    rng = np.random.default_rng(4)
    tasks, annotators = 1500, 150
    truth = (rng.random(tasks) < 0.2).astype(np.int64)
    true = np.array([[0.7, 0.3], [0.4, 0.6]])
    task = np.repeat(np.arange(tasks), 12)
    annotator = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :12].ravel()
    labels = make(task, annotator, (rng.random(len(task)) > true[truth[task], 0]).astype(np.int64), 2)
    rates = rates_of(labels, pooled(labels))
    every = np.arange(annotators)
    low, high = (ends[0] for ends in rates.together(every).interval())
    assert ((low <= true) & (true <= high)).all()
    assert (high - low).max() < 0.5
    alone = np.subtract(*rates.interval()[::-1]).mean(axis=0)
    few = np.subtract(*rates.together(every[:5]).interval()[::-1])[0]
    assert (few < alone).all()
    assert (high - low < few).all()


@pytest.mark.parametrize("method", [ibcc, dynibcc])
def test_a_class_with_few_tasks_does_not_widen_accuracies_by_other_models(method) -> None:
    rng = np.random.default_rng(11)
    truth = rng.choice(3, 1200, p=[0.67, 0.3, 0.03])
    true = np.array([[0.85, 0.1, 0.05], [0.15, 0.8, 0.05], [0.2, 0.2, 0.6]])
    task = np.repeat(np.arange(1200), 5)
    annotator = np.argsort(rng.random((1200, 40)), axis=1)[:, :5].ravel()
    label = (rng.random(len(task))[:, None] > true[truth[task]].cumsum(axis=1)).sum(axis=1)
    labels = make(task, annotator, label, 3)
    rates = rates_of(labels, method(labels))
    own = np.bincount(annotator, true[truth, truth][task]) / np.bincount(annotator)
    _, low, high = rates.accuracies()
    assert ((low <= own) & (own <= high)).mean() >= 0.95
    assert (high - low).mean() < 0.5
    low, high = (ends[0] for ends in rates.together(np.arange(40)).interval())
    assert ((low <= true) & (true <= high)).mean() >= 0.85


def test_one_annotator_alone_has_the_same_figures() -> None:
    labels = crowd(tasks=80, annotators=5)
    rates = rates_of(labels, ibcc(labels))
    alone = rates.together(np.array([3]))
    np.testing.assert_array_equal(alone.mean[0], rates.mean[3])
    np.testing.assert_array_equal(alone.interval()[0][0], rates.interval()[0][3])
    assert alone.accuracies() == tuple(accuracy[3:4] for accuracy in rates.accuracies())


def test_an_excluded_annotator_is_measured_by_the_others() -> None:
    labels = crowd(tasks=200, annotators=6, accuracy=0.8)
    named = labels.annotators[2]
    fewer = labels.without([named])
    fusion = ibcc(fewer)
    out = labels.subset(labels.annotator == 2)
    with_them, without = rates_of(fewer, fusion, out), rates_of(fewer, fusion)
    assert without.votes[2] == 0
    assert with_them.votes[2] == 200
    assert np.diagonal(with_them.mean[2]).min() > 0.7
    np.testing.assert_allclose(with_them.mean[:2], without.mean[:2])
    assert with_them.skill == without.skill


def test_rates_of_a_dynamic_model_are_those_of_the_last_vote() -> None:
    rng = np.random.default_rng(1)
    tasks = 400
    truth = rng.integers(0, 3, tasks)
    task, annotator = np.repeat(np.arange(tasks), 5), np.tile(np.arange(5), tasks)
    good = np.where(annotator == 0, np.where(task < 200, 0.95, 0.35), 0.9)
    wrong = (truth[task] + rng.integers(1, 3, len(task))) % 3
    labels = make(task, annotator, np.where(rng.random(len(task)) < good, truth[task], wrong), 3)
    fusion = dynibcc(labels)
    rates = rates_of(labels, fusion)
    assert rates.time == "the last vote"
    assert rates.accuracy[0] < 0.55
    assert rates.accuracy[1:].min() > 0.8
    low, high = rates.accuracy_interval()
    last = np.array([0.35, 0.9, 0.9, 0.9, 0.9])
    assert ((low < last) & (last < high)).all()
    room = np.minimum(rates.accuracy - low, high - rates.accuracy)
    assert (room > 0.1 * (high - low)).all()
    everybody = rates.together(np.arange(5)).accuracy[0]
    assert everybody == pytest.approx(np.average(rates.accuracy, weights=labels.votes_of_annotators()))


def test_a_crowd_of_no_annotator_has_rates() -> None:
    labels = make([], [], [], 3)
    rates = estimate_rates(labels, np.full((0, 3), 1 / 3))
    assert rates.mean.shape == (0, 3, 3)
    assert rates.together(np.arange(0)).mean.shape == (1, 3, 3)


def test_an_output_that_stands_for_no_class_is_never_right() -> None:
    labels = make([0, 0, 1, 1], [0, 1, 0, 1], [0, 2, 1, 2], 2, 3, meaning=np.array([0, 1, OPEN], np.int16))
    rates = estimate_rates(labels, np.eye(2))
    assert rates.right[1] == 0.0
    assert np.isfinite(rates.mean).all()
    np.testing.assert_allclose(rates.mean.sum(axis=2), 1.0)


def test_doubt_about_the_classes_of_votes_widens_rates_by_the_variance_of_the_votes():
    rng = np.random.default_rng(5)
    share, output = rng.dirichlet(np.ones(3), 40), np.eye(4)[rng.integers(0, 4, 40)]
    mean = rng.dirichlet(np.ones(4), 3)
    variance = share * (1 - share)
    doubt = variance.T @ output
    away = np.square(output[:, None] - mean)
    expected = (variance[..., None] * away).sum(axis=0)
    moved = doubt - mean * doubt.sum(axis=1, keepdims=True)
    assert label_doubt(mean, doubt, np.zeros((3, 4))) == pytest.approx(expected + np.square(SPREAD * moved))


def test_intervals_of_accuracies_by_an_overconfident_model_are_those_of_a_calibrated_one():
    """Most annotators take some tasks for another class; the model counts their mistakes as right."""
    inside, excess, widths = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 400)
        task, annotator = np.repeat(np.arange(400), 7), rng.random((400, 30)).argsort(axis=1)[:, :7].ravel()
        seen = np.where(rng.random(400) < 0.2, 1 - truth, truth)[task]
        seen = np.where(rng.random(len(task)) < 0.2, truth[task], seen)
        label = np.where(rng.random(len(task)) < rng.beta(8, 2, 30)[annotator], seen, 1 - seen)
        labels = make(task, annotator, label, 2)
        mean, low, high = rates_of(labels, ibcc(labels)).accuracies()
        right = np.bincount(annotator, label == truth[task], minlength=30) / np.bincount(annotator)
        inside.append((low <= right) & (right <= high))
        excess.append(mean - right)
        widths.append(high - low)
        assert ((low <= mean) & (mean <= high)).all()
        assert (mean - (low + high) / 2).mean() > 0.05  # the middle is nearer to the vote
    assert np.mean(excess) > 0.05
    assert np.mean(inside) >= 0.93
    assert np.mean(widths) < 0.4  # the overconfidence counts once
