"""Readers' bias, repeatability and variance, against independent programs and simulations."""

import numpy as np
import pytest

from raterscope.algorithms.annotators.reader_study import (
    TERMS,
    compare_readers,
    compare_reads,
    mean_over_pairs,
    reader_variance,
)
from raterscope.algorithms.annotators.statistics import holm, wilcoxon
from tests.algorithms.annotators.reader_studies import coverage_of_studies


def _study(seed=0, cases=12, readers=4, reads=2):
    rng = np.random.default_rng(seed)
    shape = (cases, readers, reads)
    values = 10 + rng.normal(0, 3, shape[:1])[:, None, None] + rng.normal(0, 1, readers)[:, None]
    return values + rng.normal(0, 0.5, shape[:2])[:, :, None] + rng.normal(0, 0.7, shape)


def test_a_complete_table_gives_the_analysis_of_variance():
    values = _study()
    n, k, m = values.shape
    cells, grand = values.mean(axis=2), values.mean()
    of_cases = k * m * ((cells.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    of_readers = n * m * ((cells.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    rest = cells - cells.mean(axis=1, keepdims=True) - cells.mean(axis=0) + grand
    of_both = m * (rest**2).sum() / ((n - 1) * (k - 1))
    error = values.var(axis=2, ddof=1).mean()
    expected = np.sqrt(
        [(of_cases - of_both) / (k * m), (of_readers - of_both) / (n * m), (of_both - error) / m, error]
    )
    case, reader, _ = np.indices(values.shape)
    fit = reader_variance(values.ravel(), case.ravel(), reader.ravel())
    assert [getattr(fit, term).value for term in TERMS] == pytest.approx(expected, rel=1e-4)
    # The error has n k (m - 1) degrees of freedom.
    assert (fit.error.low, fit.error.high) == pytest.approx(
        np.sqrt(error * 48 / np.array([69.0226, 30.7545])), rel=1e-3
    )


def test_a_table_with_gaps_gives_the_figures_of_statsmodels():
    """statsmodels 0.15.0, `mixedlm("y ~ 1", vc_formula=...)`, REML, of the same measurements."""
    values = _study(cases=40, readers=6)
    case, reader, _ = np.indices(values.shape)
    keep = np.random.default_rng(5).random(values.size).reshape(values.shape) < 0.6
    fit = reader_variance(values[keep], case[keep], reader[keep])
    expected = [2.379311, 1.162653, 0.503452, 0.688426]
    assert [getattr(fit, term).value for term in TERMS] == pytest.approx(expected, rel=5e-4)
    assert fit.mean.value == pytest.approx(10.184357, abs=1e-5)


def test_readers_without_differences_and_perfect_reads():
    same = reader_variance([3.0] * 8, [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4)
    assert (same.mean.value, same.case.value, same.error.value) == (3.0, 0.0, 0.0)
    exact = reader_variance([1.0, 1, 2, 2, 4, 4, 8, 8], [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4)
    assert exact.error.value == 0
    assert exact.case.value == pytest.approx(np.std([1, 2, 4, 8], ddof=1), rel=1e-3)


@pytest.mark.parametrize(("case", "reader"), [([0, 0], [0, 1]), ([0, 1], [0, 0])])
def test_one_case_or_reader_is_refused(case, reader):
    with pytest.raises(ValueError, match="two or more"):
        reader_variance([1.0, 2.0], case, reader)


def test_reads_of_a_person_are_compared_with_each_other_and_people_with_people():
    names = {"anna": [1, 2, 3, 4], "ben": [2, 3, 4, 5], "anna (read 2)": [1, 2, 3, 5]}
    result = compare_readers({name: dict(enumerate(map(float, of))) for name, of in names.items()})
    anna, ben = result.readers
    assert (anna.name, anna.cases, anna.repeated) == ("anna", 4, 4)
    assert anna.bias.value == pytest.approx(-0.875)  # of the mean of both reads
    assert anna.repeatability.value == pytest.approx(1.959964 * np.sqrt(2) * np.sqrt(0.125))
    assert anna.limits.bias.value == 0.25
    assert ben.repeated == 0
    assert ben.limits is None
    assert compare_readers({"anna": {0: 1.0}}) is None


def test_biased_readers_are_found():
    values = _study(seed=5, cases=40, readers=6)
    values[:, 2] += 3
    result = compare_reads(values, "abcdef")
    assert result.readers[2].adjusted < 1e-6
    assert result.readers[2].bias.low > 0
    assert all(reader.p_value <= reader.adjusted for reader in result.readers)


def test_intervals_of_a_simulated_study_hold_its_parameters():
    """The coarse form of `tests.benchmarks.reader_study_coverage`."""
    for name, (share, _) in coverage_of_studies(12, seed=2).items():
        assert 0.8 <= share <= 1.0, name


def test_tests_of_readers_are_those_of_pingouin():
    """pingouin 0.7.0: `wilcoxon` (W 20.5, p .288086) and `multicomp(method="holm")`."""
    x = [20, 22, 19, 20, 22, 18, 24, 20, 19, 24, 26, 13]
    y = [38, 37, 33, 29, 14, 12, 20, 22, 17, 25, 26, 16]
    result = wilcoxon(x, y)
    assert result.statistic == 20.5
    assert result.p_value == pytest.approx(0.288086, abs=5e-3)
    assert holm([0.5, float("nan"), 0.9])[0] == 1.0
    adjusted = holm([0.5, 0.003, 0.32, 0.054, 0.0003])
    assert adjusted == pytest.approx([0.64, 0.012, 0.64, 0.162, 0.0015])


@pytest.mark.parametrize("seed", [6, 40, 126])
def test_few_readers_that_hardly_differ_have_no_interval_rather_than_an_absurd_one(seed):
    """Satterthwaite's upper end was above 1e37 times the largest value, or a division by zero."""
    rng = np.random.default_rng(seed)
    case, reader = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    values = np.round(2 * rng.normal(0, 1, 4)[case] + rng.normal(0, 0.5, 12), 1)
    fit = reader_variance(values, case, reader)
    for part in (fit.case, fit.reader, fit.error):
        assert np.isnan(part.high) or part.low <= part.value <= part.high < 100 * np.ptp(values)


def test_the_interval_of_a_mean_over_pairs_counts_readers():
    names, rng = "abcdef", np.random.default_rng(0)
    inside, narrow = [], []
    for _ in range(200):
        own = dict(zip(names, rng.normal(0, 1, 6), strict=True))
        values = {(p, q): own[p] + own[q] + rng.normal(0, 0.2) for p in names for q in names if p < q}
        result = mean_over_pairs(values)
        inside.append(result.low <= 0 <= result.high)
        spread = 2 * np.std(list(values.values())) / np.sqrt(15)
        narrow.append(abs(result.value) <= spread)
    assert 0.9 <= np.mean(inside) <= 1
    assert np.mean(narrow) < 0.85  # as if pairs were independent
    two = mean_over_pairs({("a", "b"): 0.5})
    assert two.value == 0.5
    assert np.isnan(two.low)
