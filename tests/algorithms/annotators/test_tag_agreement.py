"""Agreement over sets of tags, against NLTK 3.9 (`masi_distance`, `AnnotationTask.alpha`)."""

import numpy as np
import pytest

from raterscope.algorithms.annotators import agreement
from raterscope.algorithms.annotators.agreement import masi_distances, tag_agreement

VOTES = "ab a ab|c bc|abc bd b|d d ad|a c ac"
"""Tags of the annotators of five tasks."""


def sets_of(words: list[str]) -> np.ndarray:
    return np.array([[tag in word for tag in "abcd"] for word in words])


def test_distances_are_those_of_nltk() -> None:
    expected = [
        [0, 0.666667, 1, 0.833333, 1],
        [0.666667, 0, 0.888889, 0.666667, 1],
        [1, 0.888889, 0, 0.666667, 0.888889],
        [0.833333, 0.666667, 0.666667, 0, 0.666667],
        [1, 1, 0.888889, 0.666667, 0],
    ]
    distances = masi_distances(sets_of(["a", "ab", "bc", "abcd", "cd"]))
    assert distances == pytest.approx(np.array(expected), abs=1e-5)


def test_two_empty_sets_agree_and_an_empty_one_with_no_other() -> None:
    assert masi_distances([[0, 0], [0, 0], [1, 0]]).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


def test_alpha_is_that_of_nltk_and_lies_within_its_interval() -> None:
    tasks = [task.split() for task in VOTES.split("|")]
    number = np.repeat(np.arange(5), [len(words) for words in tasks])
    agreement = tag_agreement(number, sets_of([word for words in tasks for word in words]))
    alpha = agreement.krippendorff
    assert alpha.value == pytest.approx(0.2558522311631308, abs=1e-9)
    assert alpha.low < alpha.value < alpha.high
    assert (agreement.tasks, agreement.votes) == (5, 14)


def test_random_tasks_stand_for_more_sets_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "MAX_SETS", 200)
    random = np.random.default_rng(1)
    sets = random.random((600, 1, 20)) < 0.3
    sets = (sets ^ (random.random((600, 2, 20)) < 0.02)).reshape(-1, 20)
    task = np.repeat(np.arange(600), 2)
    some = tag_agreement(task, sets)
    assert 100 < some.tasks < 600
    few = tag_agreement(task[:200], sets[:200])
    assert some.krippendorff.low < few.krippendorff.high
    assert few.krippendorff.low < some.krippendorff.high
