"""Agreement of measurements, against published examples."""

import numpy as np
import pytest

from raterscope.algorithms.annotators.agreement_statistics import (
    concordance_correlation,
    intraclass_correlation,
    limits_of_agreement,
    repeatability,
    within_case_variation,
)

SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
# Bland and Altman (1986), table 1: peak flow of 17 subjects by two meters.
LARGE = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]


@pytest.mark.parametrize(
    ("name", "value", "low", "high"),
    [
        ("one_way", 0.17, -0.133, 0.723),
        ("absolute", 0.29, 0.028, 0.748),
        ("consistency", 0.71, 0.342, 0.946),
        ("one_way_mean", 0.44, -0.884, 0.912),
        ("absolute_mean", 0.62, 0.102, 0.922),
        ("consistency_mean", 0.91, 0.676, 0.986),
    ],
)
def test_the_example_of_shrout_and_fleiss(name, value, low, high):
    """Estimates of their table 4; intervals of ICC(1,.) and ICC(3,.) as pingouin gives them."""
    result = getattr(intraclass_correlation(SHROUT), name)
    assert result.value == pytest.approx(value, abs=0.005)
    assert (result.low, result.high) == pytest.approx((low, high), abs=0.001)


def test_the_example_of_bland_and_altman():
    result = limits_of_agreement(LARGE, MINI)
    assert result.bias.value == pytest.approx(-2.1, abs=0.05)
    assert (result.bias.low, result.bias.high) == pytest.approx((-22.0, 17.8), abs=0.1)
    spread = (result.upper.value - result.lower.value) / (2 * 1.959964)
    assert spread == pytest.approx(38.8, abs=0.05)


def test_a_simulated_study_recovers_its_parameters():
    rng = np.random.default_rng(4)
    cases, raters = 40, 6
    inside, expected = [], 16 / (16 + 1 + 4)
    bias_inside, repeat = [], []
    for _ in range(300):
        offset = rng.normal(0, 1, raters)
        values = 50 + rng.normal(0, 4, (cases, 1)) + offset + rng.normal(0, 2, (cases, raters))
        result = intraclass_correlation(values).absolute
        inside.append(result.low <= expected <= result.high)
        bias = limits_of_agreement(values[:, 0], values[:, 1]).bias
        bias_inside.append(bias.low <= offset[0] - offset[1] <= bias.high)
        repeat.append(within_case_variation(values - offset)[0])
    assert 0.92 <= np.mean(inside) <= 0.98
    assert 0.92 <= np.mean(bias_inside) <= 0.98
    assert np.mean(repeat) == pytest.approx(2, abs=0.03)


def test_incomplete_tables_are_refused():
    with pytest.raises(ValueError, match="two cases and two raters"):
        intraclass_correlation([[1.0, 2.0]])
    with pytest.raises(ValueError, match="not finite"):
        limits_of_agreement([1, np.nan, 3], [1, 2, 3])


@pytest.mark.parametrize("values", [[[1, 2], [2, 1]], [[3, 3], [3, 3]], [[1, 1], [2, 2]], [[0, 5], [0, 5]]])
def test_degenerate_tables_give_no_number_instead_of_failing(values):
    correlations = vars(intraclass_correlation(values)).values()
    assert all(np.isnan(correlation.value) or -1 <= correlation.value <= 1 for correlation in correlations)


def test_concordance_of_the_peak_flow_meters():
    """The value that Stata's `concord` gives for these data; the interval against a jackknife."""
    result = concordance_correlation(LARGE, MINI)
    assert result.value == pytest.approx(0.943, abs=0.0005)
    differences = np.subtract(LARGE, MINI)
    jackknife = [
        concordance_correlation(np.delete(LARGE, at), np.delete(MINI, at)).value for at in range(len(LARGE))
    ]
    z = np.arctanh(jackknife)
    error = np.sqrt((len(z) - 1) / len(z) * ((z - z.mean()) ** 2).sum())
    half = (np.arctanh(result.high) - np.arctanh(result.low)) / (2 * 1.959964)
    assert half == pytest.approx(error, rel=0.35), differences


def test_repeatability_of_the_peak_flow_meter():
    """Bland and Altman (1986): a within-subject deviation of 15.3 l/min, times 2.77."""
    second = [490, 397, 512, 401, 470, 611, 415, 431, 638, 429, 420, 633, 275, 492, 165, 372, 421]
    reads = np.column_stack([LARGE, second])
    result = repeatability(reads)
    assert result.value == pytest.approx(2.77 * 15.3, abs=0.1)
    more = np.vstack([np.column_stack([reads, np.full(17, np.nan)]), [[500, np.nan, np.nan]]])
    assert repeatability(more) == result
    assert result.low < result.value < result.high


def test_identical_measurements_have_a_correlation_of_one_whatever_their_rounding_errors():
    once = np.array([18.5, 12.067, 10.389, 9.104, 8.58, 8.56, 8.543, 8.09, 7.541, 8.033])
    icc = intraclass_correlation(np.column_stack([once, once]))
    assert (icc.one_way.value, icc.absolute.value, icc.consistency.value) == (1, 1, 1)
    equal = intraclass_correlation(np.full((5, 3), 0.1))
    assert np.isnan([equal.one_way.value, equal.absolute.value, equal.consistency.value]).all()
