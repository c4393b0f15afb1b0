"""Cross-validation keeps the truth from the run that is judged by it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.cross_validation import cross_validate
from raterscope.algorithms.labels.data import OPEN, LabelFusion, Labels, LabelsError
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Watch, silent
from tests.algorithms.labels.test_voting import crowd

CROWD = crowd([(task, annotator, task % 2) for task in range(60) for annotator in range(2)], 60, ("a", "b"))


class Spy:
    """A fusion that records the known truths of each run."""

    def __init__(self) -> None:
        self.known: list[np.ndarray] = []

    def __call__(self, labels: Labels, watch: Watch) -> LabelFusion:
        assert labels.known is not None
        self.known.append(labels.known.copy())
        return majority(labels, watch=watch)


def test_every_truth_is_held_out_of_one_run_and_known_to_the_others() -> None:
    truth = np.array([0] * 40 + [1] * 11 + [OPEN] * 9, dtype=np.int16)
    spy = Spy()
    result = cross_validate(CROWD, truth, spy)
    full, *folds = spy.known
    assert np.array_equal(full, truth)
    assert len(folds) == 5
    hidden = sum((known_of_run == OPEN).astype(int) for known_of_run in folds)
    assert hidden[:51].tolist() == [1] * 51
    for f, known_of_run in enumerate(folds):
        fixed = result.fold == f
        assert np.array_equal(known_of_run, np.where(fixed, OPEN, truth))
        assert Counter(truth[fixed].tolist())[0] == 8  # classes are spread evenly
        assert Counter(truth[fixed].tolist())[1] in (2, 3)


def test_the_posterior_is_that_of_the_run_without_the_truth() -> None:
    wrong = np.where(np.arange(60) < 50, 1 - np.arange(60) % 2, OPEN).astype(np.int16)
    result = cross_validate(CROWD, wrong, lambda labels, watch: majority(labels, watch=watch))
    assert result.posterior[:, 1] == pytest.approx(np.arange(60) % 2)
    assert np.array_equal(result.fusion.posterior[:50, 1], wrong[:50])


def test_decisions_stay_known_but_not_for_the_task_that_is_judged() -> None:
    known = np.full(60, OPEN, dtype=np.int16)
    known[[0, 59]] = 1
    truth = np.array([0] * 10 + [OPEN] * 50, dtype=np.int16)
    spy = Spy()
    result = cross_validate(replace(CROWD, known=known), truth, spy)
    assert all(known_of_run[59] == 1 for known_of_run in spy.known)
    assert spy.known[1 + result.fold[0]][0] == OPEN
    assert result.fold[59] == OPEN


def test_a_seed_draws_the_folds() -> None:
    truth = np.zeros(60, dtype=np.int16)
    first, second, other = (
        cross_validate(CROWD, truth, lambda labels, watch: majority(labels), seed=seed).fold
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_fewer_truths_than_folds_are_left_out_one_by_one() -> None:
    truth = np.array([0, 1, 0] + [OPEN] * 57, dtype=np.int16)
    spy = Spy()
    cross_validate(CROWD, truth, spy)
    assert len(spy.known) == 4


@pytest.mark.parametrize(("count", "folds"), [(0, 5), (1, 5), (9, 1)])
def test_too_little_to_cross_is_refused(count: int, folds: int) -> None:
    truth = np.where(np.arange(60) < count, 0, OPEN).astype(np.int16)
    with pytest.raises(LabelsError, match="expected at least 2 of each"):
        cross_validate(CROWD, truth, lambda labels, watch: majority(labels), folds=folds)


def test_progress_never_falls() -> None:
    fractions: list[float] = []

    def watch(fraction: float, words: str, **options: object) -> None:
        fractions.append(fraction)
        silent(fraction, words)

    cross_validate(
        CROWD, np.zeros(60, dtype=np.int16), lambda labels, w: majority(labels, watch=w), watch=watch
    )
    assert fractions == sorted(fractions)
    assert len(fractions) >= 6
