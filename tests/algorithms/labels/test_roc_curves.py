"""ROC curves of several methods on the same folds."""

import numpy as np
import pytest

from raterscope.algorithms.labels.cross_validation import cross_validate
from raterscope.algorithms.labels.data import OPEN, Labels
from raterscope.algorithms.labels.roc_curves import (
    FoldedSettings,
    area_interval,
    folded_curves,
    mean_area,
)
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Cancelled

FAST = FoldedSettings(methods="fast")


def crowd(classes: int, tasks: int = 60, people: int = 5) -> tuple[Labels, np.ndarray]:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, classes, tasks)
    task, annotator = np.divmod(np.arange(tasks * people), people)
    answers = np.where(rng.random(len(task)) < 0.6, truth[task], rng.integers(0, classes, len(task)))
    names = tuple(map(str, range(classes)))
    of = tuple(f"t{at}" for at in range(tasks)), tuple(f"p{at}" for at in range(people))
    return Labels(task, annotator, answers, *of, names, names), truth.astype(np.int16)


def test_every_method_predicts_the_same_folds_without_their_truths() -> None:
    labels, truth = crowd(2)
    truth[::7] = OPEN
    result = folded_curves(labels, truth, FAST)
    assert (result.folds, result.truths, result.shown) == (5, int((truth != OPEN).sum()), (1,))
    crossed = cross_validate(labels, truth, lambda rows, watch: majority(rows, watch=watch))
    vote = next(method for method in result.methods if method.name == "majority")
    known = truth != OPEN
    hits, remaining = crossed.posterior[known & (truth == 1), 1], crossed.posterior[known & (truth == 0), 1]
    area = (hits[:, None] > remaining).mean() + (hits[:, None] == remaining).mean() / 2
    assert vote.area()[0] == pytest.approx(area)
    assert [assessment.judged for assessment in vote.by_fold if assessment] == np.bincount(
        crossed.fold[known]
    ).tolist()
    low, high = vote.area()[1:]
    assert low < area < high
    across, up = vote.average(1)
    assert np.trapezoid(up, across) == pytest.approx(np.nanmean(vote.areas(1)))


def test_several_classes_have_a_curve_each_and_their_mean() -> None:
    result = folded_curves(*crowd(3), FAST)
    assert result.shown == (0, 1, 2)
    best = result.ranked()[0]
    assert best.area()[0] == pytest.approx(np.mean([best.area(true)[0] for true in range(3)]))


def test_majorities_as_decisions_have_one_point() -> None:
    labels, truth = crowd(2)
    result = folded_curves(labels, truth, FoldedSettings(methods="fast", decisions=True))
    for method in result.methods:
        points = len(method.pooled.curves[1].threshold)
        assert (points == 3) == (method.name in ("majority", "weighted-majority"))


def test_the_subsample_is_measured_alone() -> None:
    labels, truth = crowd(2)
    few = FoldedSettings(methods="fast", subsample=True, class_votes=5, experienced=5)
    result = folded_curves(labels.subset(labels.task != 3), truth, few)
    assert result.tasks == 59


def test_it_can_be_cancelled() -> None:
    def stop(*_arguments: object, **_more: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        folded_curves(*crowd(2), FAST, watch=stop)


def test_intervals_widen_with_fewer_tasks_and_hold_where_classes_are_parted() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for count in (20, 200):
        truth = np.arange(count) % 2
        score = truth + rng.normal(size=count)
        low, high = area_interval(np.column_stack([-score, score]), truth)
        widths.append(high[1] - low[1])
        np.testing.assert_allclose(low[0], low[1])
    assert widths[0] > 2 * widths[1]
    truth = np.arange(40) % 2
    low, high = area_interval(np.column_stack([1 - truth, truth]).astype(float), truth)
    assert high[1] == 1
    assert low[1] == pytest.approx(0.025 ** (1 / 20))


def test_the_mean_of_folds_has_students_interval() -> None:
    mean, low, high = mean_area([0.8, 0.9, np.nan, 0.85])
    assert mean == pytest.approx(0.85)
    assert high - mean == pytest.approx(4.3027 * 0.05 / np.sqrt(3), rel=1e-4)
    assert mean - low == pytest.approx(high - mean)
