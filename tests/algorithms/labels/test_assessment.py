"""Accuracy, curves and calibration against scikit-learn's and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.labels.assessment import assess, compare_accuracy, mean_curve
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.sharpening import sharpen
from tests.algorithms.labels.test_independence import make
from tests.algorithms.labels.test_pooled import make as look_alikes


def drawn(tasks: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors with many equal ones, and classes drawn from them but for a tenth of unknown ones."""
    rng = np.random.default_rng(seed)
    posterior = rng.integers(0, 4, (tasks, classes)) + 0.25
    posterior /= posterior.sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(classes, p=row) for row in posterior], dtype=np.int16)
    truth[rng.random(tasks) < 0.1] = OPEN
    return posterior, truth


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_figures_are_those_of_scikit_learn(classes: int) -> None:
    from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score, roc_curve

    posterior, truth = drawn(400, classes, seed=classes)
    result = assess(posterior, truth, tuple("abcde"[:classes]))
    assert result is not None
    true, values = truth[truth != OPEN], posterior[truth != OPEN]
    assert result.judged == len(true)
    assert result.log_loss == pytest.approx(log_loss(true, values))
    assert result.brier == pytest.approx(np.square(values - np.eye(classes)[true]).sum(axis=1).mean())
    expected = roc_auc_score(
        true, values[:, 1] if classes == 2 else values, multi_class="ovr", average="macro"
    )
    assert result.area == pytest.approx(expected)
    assert np.array_equal(result.confusion, confusion_matrix(true, values.argmax(axis=1)))
    for j, curve in enumerate(result.curves):
        rate, sensitivity, _ = roc_curve(true == j, values[:, j], drop_intermediate=False)
        assert curve.false_positive_rate == pytest.approx(rate)
        assert curve.sensitivity == pytest.approx(sensitivity)


def test_probabilities_as_frequent_as_claimed_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    chance = rng.random(50_000)
    truth = (rng.random(50_000) < chance).astype(np.int16)
    honest = assess(np.stack([1 - chance, chance], axis=1), truth, ("a", "b"))
    bold = np.where(chance > 0.5, 0.99, 0.01)
    sure = assess(np.stack([1 - bold, bold], axis=1), truth, ("a", "b"))
    assert honest is not None
    assert sure is not None
    assert honest.calibration.error < 0.01
    assert sure.calibration.error == pytest.approx(0.24, abs=0.01)  # sure of 99 %, right in 75 %
    assert sure.log_loss > honest.log_loss
    assert sure.accuracy == honest.accuracy


def test_equally_probable_classes_share_the_credit_whatever_their_order() -> None:
    posterior = np.array(
        [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]]
    )
    truth = np.array([0, 2, 2, 1, 2], dtype=np.int16)
    result = assess(posterior, truth, ("a", "b", "c"))
    turned = assess(posterior[:, ::-1], (2 - truth).astype(np.int16), ("c", "b", "a"))
    assert result is not None
    assert turned is not None
    assert result.right == pytest.approx([0.5, 0.5, 0.0, 1 / 3, 1.0])
    assert result.accuracy == turned.accuracy == pytest.approx(7 / 15)
    assert result.calibration.error == pytest.approx(turned.calibration.error)
    assert compare_accuracy(result, turned) == (0, 0, 1.0)


def test_nothing_known_is_no_assessment() -> None:
    assert assess(np.full((3, 2), 0.5), np.full(3, OPEN, dtype=np.int16), ("a", "b")) is None
    assert assess(np.empty((0, 2)), np.empty(0, dtype=np.int16), ("a", "b")) is None


def test_a_single_class_among_the_truths_has_no_curve() -> None:
    result = assess(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0], dtype=np.int16), ("a", "b"))
    assert result is not None
    assert math.isnan(result.area)
    assert result.accuracy == 0.5


def test_certain_and_wrong_costs_much_but_not_infinitely() -> None:
    result = assess(np.array([[1.0, 0.0]]), np.array([1], dtype=np.int16), ("a", "b"))
    assert result is not None
    assert 20 < result.log_loss < 30
    assert result.brier == pytest.approx(2.0)


def test_one_class_is_always_right() -> None:
    result = assess(np.ones((3, 1)), np.zeros(3, dtype=np.int16), ("a",))
    assert result is not None
    assert (result.accuracy, result.log_loss) == (1.0, pytest.approx(0.0))
    assert math.isnan(result.area)


def test_the_interval_of_a_share_is_wilsons() -> None:
    from scipy.stats import binomtest

    for hits, count in ((0, 5), (3, 10), (333, 333), (80, 100)):
        interval = binomtest(hits, count).proportion_ci(method="wilson")
        assert wilson(hits, count) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_two_methods_are_compared_where_they_differ() -> None:
    truth = np.zeros(100, dtype=np.int16)
    right, wrong = [0.9, 0.1], [0.1, 0.9]
    first = assess(np.array([right] * 90 + [wrong] * 10), truth, ("a", "b"))
    second = assess(np.array([right] * 78 + [wrong] * 20 + [right] * 2), truth, ("a", "b"))
    assert first is not None
    assert second is not None
    ours, theirs, chance = compare_accuracy(first, second)
    assert (ours, theirs) == (12, 2)
    assert chance == pytest.approx(2 * sum(math.comb(14, k) for k in range(3)) / 2**14)
    assert compare_accuracy(first, first) == (0, 0, 1.0)


def test_a_certain_and_right_answer_has_a_log_loss_of_nought_without_a_sign() -> None:
    result = assess(np.eye(2), np.array([0, 1], dtype=np.int16), ("a", "b"))
    assert result is not None
    assert str(result.log_loss) == "0.0"


def test_the_mean_of_curves_has_the_mean_area_and_of_one_curve_is_that_curve():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, 90).astype(np.int16)
    posterior = np.round(rng.dirichlet(np.ones(4), 90) + 0.4 * np.eye(4)[truth], 1)  # with many ties
    result = assess(posterior, truth, tuple("abcd"))
    curves = [(curve.false_positive_rate, curve.sensitivity) for curve in result.curves]
    across, down = mean_curve(curves)
    assert np.trapezoid(down, across) == pytest.approx(result.area, abs=1e-12)
    assert (np.diff(across) >= 0).all()
    assert (np.diff(down) >= -1e-12).all()
    across, down = mean_curve(curves[:1] * 3)
    assert np.trapezoid(down, across) == pytest.approx(result.curves[0].area, abs=1e-12)
    assert {(0.0, 0.0), (1.0, 1.0)} <= set(zip(across.tolist(), down.round(12).tolist(), strict=True))


def applied(posterior: np.ndarray, known: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Sharpen tasks of unknown class by others of known class."""
    full = np.concatenate([known, posterior])
    return sharpen(full, known, truth, np.arange(len(known)))[len(known) :]


def two(share: np.ndarray) -> np.ndarray:
    return np.stack([share, 1 - share], axis=1)


def test_a_consensus_that_is_too_modest_becomes_surer_and_one_too_sure_more_modest() -> None:
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.5, 0.99, 400)
    truth = (rng.random(400) > chance).astype(np.int16)
    for power in (0.5, 2.0):
        claimed = chance**power / (chance**power + (1 - chance) ** power)
        error = np.abs(applied(two(claimed), two(claimed), truth)[:, 0] - chance).mean()
        assert error < 0.7 * np.abs(claimed - chance).mean()
    same = applied(two(chance), two(chance), truth)[:, 0]
    assert np.abs(same - chance).mean() < 0.03


def test_known_tasks_show_only_of_tasks_that_look_as_clear() -> None:
    disputed, clear = two(np.full(30, 0.55)), two(np.array([0.97, 0.995]))
    right = np.zeros(30, dtype=np.int16)
    assert applied(clear, disputed, right) == pytest.approx(clear, abs=1e-3)
    assert applied(disputed, disputed, right)[0, 0] > 0.56


def test_decided_doubtful_tasks_do_not_make_clear_ones_doubtful() -> None:
    """Three in ten decisions contradict the crowd on tasks of 0.8 to 0.9; those above were not decided."""
    doubtful, clear = two(np.linspace(0.8, 0.9, 200)), two(np.linspace(0.93, 0.99, 200))
    decided = (np.arange(200) % 10 < 3).astype(np.int16)
    assert applied(clear, doubtful, decided)[:, 0].mean() > clear[:, 0].mean() - 0.01
    both = np.concatenate([doubtful, clear])
    known = applied(both, both[::4], np.resize(decided, 100))
    assert known[200:, 0].mean() < clear[:, 0].mean() - 0.03


def test_one_mistake_among_known_tasks_changes_little() -> None:
    share = two(np.full(20, 0.9))
    truth = np.zeros(20, dtype=np.int16)
    mistaken = truth.copy()
    mistaken[0] = 1
    assert applied(share, share, mistaken)[0, 0] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("sure", [False, True])
def test_known_classes_of_some_tasks_calibrate_the_others(sure: bool) -> None:
    labels, truth = look_alikes(1, 5, each=15, lookalike=0.3) if sure else make(0, 5)
    known = np.full(len(truth), OPEN, dtype=np.int16)
    known[:150] = truth[:150]
    judged = np.where(known == OPEN, truth, OPEN).astype(np.int16)
    free, fusion = pooled(labels), pooled(replace(labels, known=known))
    assert (fusion.label()[:150] == truth[:150]).all()
    assert (fusion.posterior[:150].max(axis=1) == 1.0).all()
    before, after = (assess(item.posterior, judged, labels.classes) for item in (free, fusion))
    assert after.calibration.error < before.calibration.error - 0.015
    assert after.log_loss < before.log_loss


def test_both_of_two_classes_have_one_area_where_posteriors_are_rounded_to_one() -> None:
    """The curve of a class ranks tasks by odds, which differ where 1 - 1e-20 and 1 - 1e-30 are equal."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 300).astype(np.int16)
    odds = rng.normal(60.0 * truth - 30.0, 50.0)
    both = np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)
    result = assess(np.exp(both), truth, ("no", "yes"))
    assert result is not None
    higher = odds[truth == 1][:, None] > odds[truth == 0]
    assert [curve.area for curve in result.curves] == pytest.approx([higher.mean()] * 2)
    assert result.area == pytest.approx(higher.mean())
    assert (np.exp(both[:, 0]) == 1.0).sum() > 20
