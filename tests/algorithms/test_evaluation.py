"""Figures by hand, curves compared with matching at each threshold, calibration by draws."""

import numpy as np
import pytest

from raterscope.algorithms.evaluation import calibration, compare, curves, evaluate


def test_two_detections_do_not_share_a_true_point():
    result = evaluate(np.array([[0.0, 0.0], [0.5, 0.0]]), np.array([[0.0, 0.1]]), 4.0)
    assert (result.true_positive, result.false_positive, result.false_negative) == (1, 1, 0)
    assert result.matching.found.tolist() == [0]


def test_figures_by_hand():
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0], [30.0, 0.0]])
    positions = np.array([[1.0, 0.0], [10.0, 3.0], [50.0, 0.0]])
    result = evaluate(positions, truth, 4.0)
    assert (result.sensitivity, result.precision) == (0.5, pytest.approx(2 / 3))
    assert result.f_one == pytest.approx(2 * 2 / (2 * 2 + 2 + 1))
    assert result.f_two == pytest.approx(5 * 2 / (5 * 2 + 4 * 2 + 1))
    assert result.f_half == pytest.approx(1.25 * 2 / (1.25 * 2 + 0.25 * 2 + 1))


def test_a_detection_at_the_very_place_counts():
    assert evaluate(np.array([[3.0, 4.0]]), np.array([[3.0, 4.0]]), 1.0).true_positive == 1


def test_nothing_found_and_nothing_there():
    none, present = np.empty((0, 2)), np.zeros((1, 2))
    assert evaluate(none, present, 1.0).sensitivity == 0
    assert np.isnan(evaluate(none, present, 1.0).precision)
    assert np.isnan(evaluate(present, none, 1.0).sensitivity)
    assert evaluate(present, none, 1.0).precision == 0
    assert np.isnan(evaluate(none, none, 1.0).f_two)


@pytest.mark.parametrize("seed", range(8))
def test_every_threshold_counts_as_many_as_matching_again(seed):
    generator = np.random.default_rng(seed)
    positions, truth = generator.uniform(0, 20, (60, 2)), generator.uniform(0, 20, (40, 2))
    posterior = np.round(generator.random(60), 1)
    result = curves(positions, posterior, truth, 1.5)
    assert len(result.threshold) == len(np.unique(posterior)) + 1
    for threshold, hits, false in zip(
        result.threshold, result.true_positive, result.false_positive, strict=True
    ):
        recomputed = evaluate(positions[posterior >= threshold], truth, 1.5)
        assert (recomputed.true_positive, recomputed.false_positive) == (hits, false)


def test_curves_count_the_truths_that_no_cluster_reaches():
    positions = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]])
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [40.0, 0.0], [50.0, 0.0]])
    result = curves(positions, np.array([0.9, 0.8, 0.1]), truth, 2.0)
    assert result.sensitivity.tolist() == [0, 0.25, 0.5, 0.5]
    assert result.false_positive_rate.tolist() == [0, 0, 0, 1]
    assert result.roc_area == pytest.approx(0.5)
    assert result.average_precision == pytest.approx(0.5)


def test_area_below_the_roc_is_the_probability_of_the_right_order():
    generator = np.random.default_rng(0)
    truth = np.column_stack([np.arange(50) * 10.0, np.zeros(50)])
    result = np.vstack([truth, truth + np.array([0, 100.0])])
    posterior = np.concatenate([generator.beta(4, 2, 50), generator.beta(2, 4, 50)])
    order = (posterior[:50, None] > posterior[50:]).mean()
    assert curves(result, posterior, truth, 1.0).roc_area == pytest.approx(order)


def test_curves_without_clusters():
    result = curves(np.empty((0, 2)), np.empty(0), np.zeros((2, 2)), 1.0)
    assert result.sensitivity.tolist() == [0]
    assert result.average_precision == 0


def test_a_posterior_that_is_right_is_calibrated_and_one_that_is_sure_is_not():
    generator = np.random.default_rng(1)
    posterior = generator.random(50_000)
    true = generator.random(50_000) < posterior
    assert calibration(posterior, true).error < 0.01
    sure = calibration(np.round(posterior), true)
    assert sure.error == pytest.approx(0.25, abs=0.01)
    assert sure.count.sum() == 50_000
    assert np.isnan(sure.share[5])


def test_calibration_of_nothing():
    assert np.isnan(calibration(np.empty(0), np.empty(0, dtype=bool)).error)


def test_runs_are_compared_by_means_over_images():
    truth = np.array([[0.0, 0.0], [10.0, 0.0]])
    single, both, none = (
        evaluate(truth[:1], truth, 1.0),
        evaluate(truth, truth, 1.0),
        evaluate(truth[:0], truth, 1.0),
    )
    first, second = compare({"first": [single, both], "second": [both, none]})
    assert (first.name, first.images, first.true_positive, first.false_negative) == ("first", 2, 3, 1)
    assert (first.sensitivity, first.precision) == (0.75, 1.0)
    assert (second.sensitivity, second.precision) == (0.5, 1.0)  # precision of the empty one is not defined
