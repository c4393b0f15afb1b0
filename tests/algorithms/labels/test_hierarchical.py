"""Hierarchical Dawid-Skene: the effective number of votes on a task."""

import numpy as np
import pytest

from raterscope.algorithms.labels.crowd_votes import smoothed_vote, sort_votes
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.hierarchical import dawid_skene, effective_votes, tempered_posteriors
from raterscope.algorithms.progress import silent

TASKS, CLASSES = 400, 3


def votes_of(careful: int, constant: int, weights: np.ndarray | None = None) -> Labels:
    """Simulate annotators who vote on every task; some always give the same answer."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, CLASSES, TASKS)
    label = np.tile(np.arange(constant + careful) % CLASSES, (TASKS, 1))
    right = np.random.default_rng(1).random((TASKS, careful)) < 0.8
    wrong = truth[:, None] + np.random.default_rng(2).integers(1, CLASSES, (TASKS, careful))
    label[:, :careful] = np.where(right, truth[:, None], wrong % CLASSES)
    task, annotator = (values.ravel() for values in np.indices(label.shape))
    names = tuple(f"class {j}" for j in range(CLASSES))
    tasks, annotators = (tuple(map(str, range(count))) for count in label.shape)
    return Labels(task, annotator, label.ravel(), tasks, annotators, names, names, weights=weights)


def fitted(labels: Labels):
    crowd = sort_votes(labels, silent)
    posterior = smoothed_vote(labels, crowd, silent)
    return crowd, dawid_skene(crowd, posterior, True, 60, 1e-3, silent)[0], posterior


def test_effective_votes_follow_from_the_spread_of_the_rates():
    labels = votes_of(5, 3)
    crowd, fit, _ = fitted(labels)
    logs = np.log(fit.rates(crowd)[labels.annotator, labels.label])
    spread = np.sqrt(np.square(logs - (logs @ fit.shares)[:, None]) @ fit.shares).reshape(TASKS, -1)
    expected = np.square(spread.sum(axis=1)) / np.square(spread).sum(axis=1)
    assert effective_votes(crowd, fit) == pytest.approx(expected, rel=1e-3)


def test_equal_annotators_count_in_full_and_by_their_weight():
    for weights, number in ((None, 6.0), (np.full(6, 0.5), 3.0)):
        crowd, fit, _ = fitted(votes_of(6, 0, weights))
        assert effective_votes(crowd, fit).mean() == pytest.approx(number, rel=0.05)


def test_annotators_who_always_give_the_same_answer_do_not_weaken_the_votes_of_others():
    entropies = []
    for constant in (0, 6):
        posterior = tempered_posteriors(*fitted(votes_of(5, constant)), [0.3], silent)[0]
        entropies.append(-(posterior * np.log(posterior)).sum(axis=1).mean())
    assert entropies[1] == pytest.approx(entropies[0], rel=0.1)  # 1.5 times as large if all votes count
