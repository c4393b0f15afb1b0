"""Test of constancy: power and false alarms in simulated crowds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.constancy import changes_in_words, constancy, half_change, main_change
from raterscope.algorithms.labels.dynamic import dynibcc
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import pooled
from tests.algorithms.labels.crowds import make

TASKS = 300


def crowd(seed: int, before: float, after: float, annotators: int = 20, changing: int = 10) -> Labels:
    """Return votes on all tasks in their order; the first annotators change after half of them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, TASKS)
    task, annotator = np.repeat(np.arange(TASKS), annotators), np.tile(np.arange(annotators), TASKS)
    good = np.where((annotator < changing) & (task >= TASKS // 2), after, before)
    wrong = (truth[task] + rng.integers(1, 3, len(task))) % 3
    return make(task, annotator, np.where(rng.random(len(task)) < good, truth[task], wrong), 3)


def test_a_fall_is_found_and_constant_annotators_are_left_alone() -> None:
    result, alarms = [], []
    for seed in range(8):
        labels = crowd(seed, 0.9, 0.75)
        p = constancy(labels, ibcc(labels)).p
        result.append((p[:10] < 0.05).mean())
        alarms.append((p[10:] < 0.05).mean())
    assert np.mean(result) >= 0.9
    assert np.mean(alarms) <= 0.1


def test_a_fall_from_87_to_65_percent_is_named() -> None:
    labels = crowd(4, 0.87, 0.65, changing=1)
    fusion = dynibcc(labels)
    result = constancy(labels, fusion)
    assert result.p[0] < 0.01
    assert result.changed()[0] == 0
    assert abs(int(result.step[0]) - TASKS // 2) < 60
    assert result.before[0] - result.after[0] > 0.1
    (sentence,) = changes_in_words(result, labels, fusion)
    assert f"0 (vote {main_change(result, labels, fusion, 0).step + 1:,}: " in sentence
    assert "harder" not in sentence


def test_a_change_of_all_annotators_may_be_one_of_the_tasks() -> None:
    labels = crowd(3, 0.9, 0.7, changing=20)
    fusion = dynibcc(labels)
    (sentence,) = changes_in_words(constancy(labels, fusion), labels, fusion)
    assert sentence.endswith("their tasks may have become harder or easier instead.")


def test_a_rise_is_found_too() -> None:
    result = []
    for seed in range(5):
        labels = crowd(seed, 0.65, 0.87)
        result.append((constancy(labels, ibcc(labels)).p[:10] < 0.05).mean())
    assert np.mean(result) >= 0.85


def test_the_direction_of_others_counts_and_the_own_does_not() -> None:
    """The classes are known, so that the residuals of the first annotator are those of its own votes."""
    own, truth = crowd(2, 0.85, 0.75, 1, 1), np.random.default_rng(2).integers(0, 3, TASKS).astype(np.int16)
    p = []
    for before, after, others in ((0.9, 0.9, 0), (0.9, 0.5, 9), (0.5, 0.9, 9)):
        rest = crowd(50, before, after, 10, 10) if others else own
        label = rest.label.reshape(TASKS, -1).copy()
        if others:  # votes of another crowd, for the same classes
            shift = truth - np.random.default_rng(50).integers(0, 3, TASKS)
            label = (label + shift[:, None]) % 3
        label[:, 0] = own.label
        task, annotator = (
            np.repeat(np.arange(TASKS), label.shape[1]),
            np.tile(np.arange(label.shape[1]), TASKS),
        )
        labels = replace(make(task, annotator, label.ravel(), 3), known=truth)
        p.append(constancy(labels, ibcc(labels)).p[0])
    alone, with_falls, with_rises = p
    assert with_falls < alone < with_rises < 1


def test_a_model_of_changing_annotators_does_not_make_constant_ones_change() -> None:
    alarms = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 2400)
        task = np.repeat(np.arange(2400), 5)
        annotator = np.argsort(rng.random((2400, 40)), axis=1)[:, :5].ravel()
        right = rng.random(len(task)) < 0.75
        labels = make(task, annotator, np.where(right, truth[task], 1 - truth[task]), 2)
        alarms.append((constancy(labels, dynibcc(labels)).p < 0.05).mean())
    assert np.mean(alarms) <= 0.09


def test_a_crowd_that_becomes_worse_does_not_make_constant_annotators_change() -> None:
    alarms, found = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 2400)
        task = np.repeat(np.arange(2400), 5)
        annotator = np.argsort(rng.random((2400, 40)), axis=1)[:, :5].ravel()
        worse = (annotator < 20) & (task >= 1200)
        right = rng.random(len(task)) < np.where(worse, 0.65, 0.85)
        labels = make(task, annotator, np.where(right, truth[task], 1 - truth[task]), 2)
        changed = constancy(labels, ibcc(labels)).p < 0.05
        alarms.append(changed[20:].mean())
        found.append(changed[:20].mean())
    assert np.mean(alarms) <= 0.06  # 0.083 by the classes of constant annotators
    assert np.mean(found) >= 0.9


def test_another_mixture_of_classes_is_no_change_of_the_annotator() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(TASKS) < TASKS // 2, 0, 1)
    task, annotator = np.repeat(np.arange(TASKS), 20), np.tile(np.arange(20), TASKS)
    right = rng.random(len(task)) < np.where(truth[task] == 0, 0.95, 0.65)
    labels = make(task, annotator, np.where(right, truth[task], 1 - truth[task]), 2)
    assert (constancy(labels, ibcc(labels)).p < 0.05).mean() <= 0.2


def test_few_votes_are_not_tested() -> None:
    labels = make([0, 1, 2], [0, 0, 0], [0, 1, 0])
    result = constancy(labels, ibcc(labels))
    assert np.isnan(result.p).all()
    assert len(result.changed()) == 0
    assert changes_in_words(result, labels, ibcc(labels)) == ()


def test_intervals_of_changes_hold_when_half_of_the_crowd_becomes_worse() -> None:
    inside, plain = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 3000)
        task = np.repeat(np.arange(3000), 3)
        annotator = np.argsort(rng.random((3000, 30)), axis=1)[:, :3].ravel()
        worse = (annotator < 15) & (task >= 1500)
        right = rng.random(len(task)) < np.where(worse, 0.65, 0.85)
        labels = make(task, annotator, np.where(right, truth[task], 1 - truth[task]), 2)
        fusion = pooled(labels)
        _, low, high = half_change(labels, fusion).T
        true = np.where(np.arange(30) < 15, -0.2, 0.0)
        inside.append((low <= true) & (true <= high))
        # without the doubt about the classes, and by the consensus for constant annotators
        share = fusion.posterior[labels.task, labels.label]
        for k in range(15):
            halves = [share[(annotator == k) & (late == (task >= 1500))] for late in (True, False)]
            change, error = (
                np.subtract(*[half.mean() for half in halves]),
                np.hypot(*[half.std() for half in halves]),
            )
            plain.append(abs(change + 0.2) <= 1.96 * error / np.sqrt(150))
    assert np.mean(plain) < 0.8
    assert np.mean(np.array(inside)[:, :15]) >= 0.9
    assert np.mean(np.array(inside)[:, 15:]) >= 0.9


def test_few_votes_have_no_change() -> None:
    labels = crowd(0, 0.9, 0.9)
    few = make(labels.task[:57], labels.annotator[:57], labels.label[:57], 3)  # 2 or 3 votes each
    assert np.isnan(half_change(few, ibcc(few))).all()


def test_on_known_tasks_the_change_is_that_of_the_right_votes_of_each_half() -> None:
    labels, truth = crowd(3, 0.9, 0.6, 5, 2), np.random.default_rng(3).integers(0, 3, TASKS)
    known = replace(labels, known=truth.astype(np.int16))
    right = (labels.label == truth[labels.task]).reshape(TASKS, 5)
    early, late = right[: TASKS // 2].mean(axis=0), right[TASKS // 2 :].mean(axis=0)
    change, low, high = half_change(known, ibcc(known)).T
    assert change == pytest.approx(late - early)
    assert ((low < change) & (change < high)).all()
