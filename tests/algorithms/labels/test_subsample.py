"""The subsample keeps the tasks of experienced annotators, with everybody's votes."""

import numpy as np
import pytest

from raterscope.algorithms.labels.data import OPEN, LabelsError
from raterscope.algorithms.labels.roc_curves import subsample
from tests.algorithms.labels.test_voting import crowd

NAMES = ("a", "b")
TRUTH = np.array([0, 1] * 5 + [OPEN] * 2, dtype=np.int16)


def votes() -> list[tuple[int, int, int]]:
    """Annotators 0 and 1 see everything, 2 one class alone, 3 few tasks."""
    answers = [
        (task, annotator, task % 2)
        for task in range(12)
        for annotator in range(2)
        if (task, annotator) != (3, 1)
    ]
    return [*answers, *((task, 2, 0) for task in range(0, 10, 2)), *((task, 3, 1) for task in (0, 3, 11))]


def test_tasks_of_enough_experienced_annotators_stay_with_all_their_votes() -> None:
    labels = crowd(votes(), 12, NAMES)
    result = subsample(labels, TRUTH, class_votes=4, least_experienced=2)
    assert result.experienced == 2
    assert result.tasks.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    assert len(result.labels) == len([vote for vote in votes() if vote[0] != 3])
    assert set(result.labels.annotators) == set(labels.annotators)
    np.testing.assert_array_equal(result.truth, TRUTH[result.tasks])
    for at, task in enumerate(result.tasks.tolist()):
        assert result.labels.tasks[at] == labels.tasks[task]


def test_repeated_votes_make_no_annotator_experienced() -> None:
    labels = crowd([*votes(), *votes()], 12, NAMES)
    with pytest.raises(LabelsError, match="the maximum is 5"):
        subsample(labels, TRUTH, class_votes=6, least_experienced=1)


def test_without_truths_nothing_is_selected() -> None:
    with pytest.raises(LabelsError, match="no task"):
        subsample(crowd(votes(), 12, NAMES), np.full(12, OPEN))
