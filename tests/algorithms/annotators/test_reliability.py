"""Reliability across kinds: recovered correlation, no effect without support, and held-out likelihood."""

import numpy as np
import pytest

from raterscope.algorithms.annotators.reliability import annotator_reliability, from_interval

KINDS = ("clicks", "labels")


def crowd(correlation: float, people: int, error: float, seed: int = 1):
    rng = np.random.default_rng(seed)
    covariance = [[1.0, correlation], [correlation, 1.0]]
    truth = rng.multivariate_normal([1.0, 2.0], covariance, people)
    errors = np.full_like(truth, error)
    return truth, truth + errors * rng.normal(size=truth.shape), errors


@pytest.mark.parametrize("correlation", [0.4, 0.8])
def test_a_correlation_is_recovered_with_its_interval(correlation):
    _, estimate, error = crowd(correlation, 800, 0.7)
    result = annotator_reliability(estimate, error, KINDS)
    assert result.low[0, 1] < correlation < result.high[0, 1]
    assert result.correlation[0, 1] == pytest.approx(correlation, abs=0.1)
    assert result.mean == pytest.approx([1.0, 2.0], abs=0.1)
    assert result.spread == pytest.approx([1.0, 1.0], abs=0.1)


def test_without_a_correlation_each_kind_counts_alone():
    _, estimate, error = crowd(0.0, 300, 0.7)
    together = annotator_reliability(estimate, error, KINDS)
    assert together.correlation[0, 1] == 0
    for kind, name in enumerate(KINDS):
        alone = annotator_reliability(estimate[:, [kind]], error[:, [kind]], (name,))
        assert together.value[:, kind] == pytest.approx(alone.value[:, 0])
    assert "each kind counts alone" in together.sentence()


def test_a_negative_correlation_is_not_used():
    _, estimate, error = crowd(-0.8, 300, 0.5)
    result = annotator_reliability(estimate, error, KINDS)
    assert result.raw_correlation[0, 1] < -0.5
    assert result.correlation[0, 1] == 0


def test_one_kind_predicts_another_that_an_annotator_did_not_mark():
    truth, estimate, error = crowd(0.8, 400, 0.5)
    estimate[:150, 1] = np.nan
    result = annotator_reliability(estimate, error, KINDS)
    predicted, true = result.value[:150, 1], truth[:150, 1]
    assert np.corrcoef(predicted, true)[0, 1] > 0.6
    covered = (result.value_low[:150, 1] <= true) & (true <= result.value_high[:150, 1])
    assert covered.mean() == pytest.approx(0.95, abs=0.05)


def test_scores_compare_with_the_crowd_and_cover_the_truth():
    truth, estimate, error = crowd(0.8, 1000, 0.6)
    result = annotator_reliability(estimate, error, KINDS)
    true = ((truth - [1.0, 2.0]) / 1.0).mean(axis=1)
    covered = (result.score_low <= true) & (true <= result.score_high)
    assert covered.mean() == pytest.approx(0.95, abs=0.025)


def test_the_normal_model_agrees_with_the_posterior_computed_densely():
    _, estimate, error = crowd(0.8, 60, 0.6)
    result = annotator_reliability(estimate, error, KINDS)
    covariance = result.spread[:, None] * result.correlation * result.spread
    total = np.kron(np.eye(60), covariance) + np.diag((error**2).ravel())
    design = np.tile(np.eye(2), (60, 1))
    inverse = np.linalg.inv(total)
    mean = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ estimate.ravel())
    gain = np.kron(np.eye(60), covariance) @ inverse
    predicted = design @ mean + gain @ (estimate.ravel() - design @ mean)
    assert result.mean == pytest.approx(mean)
    assert result.value.ravel() == pytest.approx(predicted)


def test_four_kinds_with_gaps_and_an_annotator_without_any():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(200, 1)) + 0.5 * rng.normal(size=(200, 4))
    estimate = truth + 0.5 * rng.normal(size=truth.shape)
    estimate[rng.random(estimate.shape) < 0.3] = np.nan
    estimate[0] = np.nan
    result = annotator_reliability(
        estimate, np.full_like(estimate, 0.5), ("clicks", "masks", "labels", "pairs")
    )
    assert np.linalg.eigvalsh(result.correlation).min() > 0
    assert (result.correlation > 0).all()
    assert np.isfinite(result.value).all()
    assert np.isnan(result.score[0])
    assert np.isfinite(result.score[1:]).sum() == np.isfinite(estimate[1:]).any(axis=1).sum()


@pytest.mark.parametrize("people", [0, 1, 2])
def test_few_annotators_relate_nothing(people):
    result = annotator_reliability(np.ones((people, 2)), np.ones((people, 2)), KINDS)
    assert result.correlation[0, 1] == 0
    assert "not related" in result.sentence()


def test_intervals_become_log_odds():
    value, error = from_interval([0.5], [0.5])
    assert (value[0], error[0] > 0) == (0.0, True)


@pytest.mark.parametrize(("correlation", "least"), [(0.0, -0.0005), (0.8, 0.003)])
def test_held_out_votes_are_predicted_no_worse_and_better_if_kinds_are_correlated(correlation, least):
    from tests.benchmarks.calibration.reliability import gain

    gained = [gain(correlation, people=60, votes=(4, 40), seed=seed) for seed in range(12)]
    assert np.mean(gained, axis=0)[0] > least


def test_pairs_of_kinds_without_common_annotators_share_one_sentence():
    estimate = np.full((12, 4), np.nan)
    estimate[:, 0] = np.linspace(-1, 1, 12)
    estimate[:, 1] = estimate[:, 0]
    estimate[0, 2:] = 0.0
    words = annotator_reliability(
        estimate, np.full((12, 4), 0.3), ("clicks", "labels", "masks", "pairs")
    ).sentence()
    assert words.startswith("Reliability in clicks and labels is correlated")
    assert words.count("not related") == 1
