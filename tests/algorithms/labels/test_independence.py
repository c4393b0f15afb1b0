"""Independence of annotators: crowds with and without shared errors, and undecidable crowds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from raterscope.algorithms.labels import independence as independence_module
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.crowd_votes import smoothed_vote, sort_votes
from raterscope.algorithms.labels.data import OPEN, Labels
from raterscope.algorithms.labels.hierarchical import dawid_skene
from raterscope.algorithms.labels.independence import (
    _DEGREES,
    _ERROR,
    _FREEDOM,
    PRIOR,
    _likelihoods,
    independence,
    mixed_membership,
)
from raterscope.algorithms.labels.pooled import PooledSettings, pooled
from raterscope.algorithms.progress import Cancelled, silent

USUAL = {"correlation": 0.2, "mixture": 0.6, "iterations": 60, "tolerance": 1e-3}


def make(
    seed: int, each: int, classes: int = 3, mixture: float = 0.0, tasks: int = 600
) -> tuple[Labels, np.ndarray]:
    """Draw votes that are independent, or whose apparent classes come from a mixture in each task."""
    rng = np.random.default_rng(seed)
    annotators = 40
    truth = rng.integers(0, classes, tasks).astype(np.int16)
    task = np.repeat(np.arange(tasks), each)
    annotator = rng.random((tasks, annotators)).argsort(axis=1)[:, :each].ravel()
    apparent = truth[task]
    if mixture:
        share = rng.gamma(mixture * (0.25 + 2.0 * np.eye(classes)[truth]))
        share /= share.sum(axis=1, keepdims=True)
        apparent = (rng.random(len(task))[:, None] > share[task].cumsum(axis=1)).sum(axis=1)
    wrong = rng.random(len(task)) > rng.uniform(0.55, 0.9, annotators)[annotator]
    label = np.where(wrong, (apparent + rng.integers(1, classes, len(task))) % classes, apparent)
    names = tuple(map(str, range(classes)))
    return Labels(
        task,
        annotator,
        label,
        tuple(map(str, range(tasks))),
        tuple(map(str, range(annotators))),
        names,
        names,
    ), truth


def test_rounds_beyond_each_change_find_the_same_mixtures_in_fewer(monkeypatch):
    labels, _ = make(0, 8, 4, mixture=0.6)
    crowd = sort_votes(labels, silent)
    posterior = smoothed_vote(labels, crowd, silent)
    fit, _ = dawid_skene(crowd, posterior, True, 60, 1e-3, silent)
    monkeypatch.setattr(independence_module, "_ROUNDS", 1000)
    mixtures, rounds = [], []
    for beyond in (0.0, 0.4):
        monkeypatch.setattr(independence_module, "_BEYOND", beyond)
        done = set()

        def watch(fraction, words, *, done=done, **_):
            done.add(fraction)

        start = crowd, posterior, USUAL["mixture"], watch
        mixtures.append(mixed_membership(*start, like=fit, tolerance=1e-6)[0])
        rounds.append(len(done))
    assert mixtures[1] == pytest.approx(mixtures[0], abs=1e-3)
    assert rounds[1] < 0.7 * rounds[0]


def test_independent_annotators_are_distinguished_from_those_who_err_together():
    alone, _ = make(0, 12, 4)
    together, _ = make(0, 12, 4, mixture=0.6)
    assert independence(alone, **USUAL) > 0.6
    assert independence(together, **USUAL) < 0.02


def test_a_statistic_is_compared_with_those_of_each_model_by_students_t():
    independent, dependent = np.array([40.0, 52.0, 46.0, 58.0]), np.array([150.0, 300.0, 220.0, 210.0])
    likelihoods = _likelihoods(90.0, independent, dependent)
    means = np.array([independent.mean(), dependent.mean()])
    spreads = np.sqrt([each.var(ddof=1) + 1.0 for each in (independent, dependent)] + (_ERROR * means) ** 2)
    between = means[1] + _DEGREES * (means[0] - means[1]), spreads[1] + _DEGREES * (spreads[0] - spreads[1])
    expected = t.pdf(90.0, _FREEDOM, means[0], spreads[0]), t.pdf(90.0, _FREEDOM, *between).mean()
    assert likelihoods[1] / likelihoods[0] == pytest.approx(expected[1] / expected[0])


def test_tasks_of_unequal_difficulty_are_distinguished_from_shared_errors():
    labels, truth = make(1, 15, 5)
    rng = np.random.default_rng(1)
    guessed = rng.random(len(labels)) < 0.8 * rng.beta(0.7, 1.5, len(truth))[labels.task]
    hard = replace(labels, label=np.where(guessed, rng.integers(0, 5, len(labels)), labels.label))
    assert independence(hard, **USUAL) > 0.5
    together, _ = make(1, 15, 5, mixture=2.0)
    assert independence(together, **USUAL) < 0.1


def test_two_votes_a_task_or_none_show_nothing():
    few, _ = make(0, 2)
    assert independence(few, **USUAL) == pytest.approx(PRIOR, abs=0.15)
    single, _ = make(0, 1)
    assert independence(single, **USUAL) == PRIOR
    nobody = single.subset(np.zeros(len(single), dtype=bool))
    assert independence(nobody, **USUAL) == PRIOR


def test_decisions_and_repetition_do_not_change_it():
    labels, truth = make(1, 6)
    known = np.full(len(truth), OPEN, dtype=np.int16)
    known[:30] = truth[:30]
    first = independence(labels, **USUAL)
    assert independence(replace(labels, known=known), **USUAL) == first
    assert independence(labels, **USUAL) == first


def test_independent_votes_count_in_full():
    errors, without = [], []
    for seed in range(3):
        labels, truth = make(seed, 12)
        result = assess(pooled(labels).posterior, truth, labels.classes)
        errors.append(result.calibration.error)
        assert result.accuracy > 0.97
        vote = np.zeros((len(truth), 3))
        np.add.at(vote, (labels.task, labels.label), 1.0)
        without.append(assess((vote + 1 / 3) / 13, truth, labels.classes).calibration.error)
    assert np.mean(errors) < 0.07  # 0.14 if each vote counts in part
    assert np.mean(without) > 0.2


def test_it_is_not_estimated_where_votes_count_in_full_anyway():
    labels, _ = make(0, 5)
    words = set()
    pooled(labels, PooledSettings(correlation=0.0), lambda done, text, **options: words.add(text))
    assert words
    assert not any(word.startswith("simulated crowds") for word in words)


def test_it_is_cancelled():
    labels, _ = make(1, 5)
    calls = []

    def watch(fraction, words, **options):
        assert not calls or fraction >= calls[-1]
        calls.append(fraction)
        if words == "simulated crowds: fitting":
            raise Cancelled

    with pytest.raises(Cancelled):
        independence(labels, **USUAL, watch=watch)
