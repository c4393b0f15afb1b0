"""Agreement beyond chance: published examples, and voxels counted one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from raterscope.algorithms.annotators.agreement import (
    MISSING,
    alpha_over_cases,
    cohen_kappa,
    detection_agreement,
    fleiss_kappa,
    kappa_interval,
    krippendorff_alpha,
    mask_agreement,
)
from raterscope.algorithms.masks.data import Masks
from tests.algorithms.annotators.reader_studies import coverage_of_kappa


def test_krippendorffs_own_example():
    """Data C of "Content Analysis": 12 units, 4 observers, with gaps."""
    rows = (
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    )
    table = np.array([[MISSING if word == "." else int(word) for word in row.split()] for row in rows]).T
    assert krippendorff_alpha(table) == pytest.approx(0.743, abs=5e-4)


def test_fleiss_of_a_known_table():
    """Fourteen raters, ten subjects, five labels: kappa 0.210."""
    counts = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    table = np.array([np.repeat(np.arange(5), row) for row in counts])
    assert fleiss_kappa(table) == pytest.approx(0.210, abs=5e-4)
    gap = np.full((1, 14), MISSING)
    assert fleiss_kappa(np.vstack([table, gap])) == fleiss_kappa(table)


def test_cohen_of_fifty_grants():
    """Both yes 20, both no 15, one only 5 and 10: observed 0.7, expected 0.5, kappa 0.4."""
    a, b = [1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(a, b) == pytest.approx(0.4)
    assert cohen_kappa([*a, MISSING], [*b, 1]) == pytest.approx(0.4)


def test_two_raters_without_gaps_alpha_is_fleiss_with_a_small_sample_correction():
    """Krippendorff: alpha = 1 - (1 - kappa)(n - 1) / n with n values in all."""
    table = np.random.default_rng(2).integers(0, 3, size=(30, 2))
    table[:20, 1] = table[:20, 0]
    expected = 1 - (1 - fleiss_kappa(table)) * 59 / 60
    assert krippendorff_alpha(table) == pytest.approx(expected)


def test_where_there_is_nothing_to_compare():
    same = np.ones((5, 3), dtype=int)
    assert math.isnan(fleiss_kappa(same))
    assert math.isnan(krippendorff_alpha(same))
    assert math.isnan(cohen_kappa(same[:, 0], same[:, 1]))
    assert math.isnan(krippendorff_alpha(np.full((4, 3), MISSING)))
    assert math.isnan(cohen_kappa([MISSING], [1]))


def test_masks_are_their_voxels():
    rng = np.random.default_rng(6)
    values = np.zeros((4, 6, 7, 8), dtype=np.uint8)
    values[:, 2:5, 2:5, 2:6] = rng.integers(0, 3, size=(4, 3, 3, 4))
    masks = Masks(values, tuple("abcd"), structures=("s", "t"))
    flat = values.reshape(4, -1).T.astype(int)
    result = mask_agreement(masks)
    assert result.voxels == 6 * 7 * 8
    assert result.fleiss == pytest.approx(fleiss_kappa(flat))
    assert result.krippendorff == pytest.approx(krippendorff_alpha(flat))


def test_a_real_nodule_agrees_beyond_chance(real_data):
    with np.load(real_data / "masks/lidc/nodulebin/nodulebin_03.npz") as file:
        result = mask_agreement(Masks(file["masks"].astype(bool), tuple("abcd")))
    assert 0.6 < result.fleiss < 0.9


def test_the_interval_of_kappa_holds_the_true_value_for_few_units():
    """The coarse form of `tests.benchmarks.reader_study_coverage`."""
    for name, share in coverage_of_kappa(200, draws=300).items():
        assert 0.91 <= share <= 1.0, name


def test_perfect_agreement_on_few_units_is_not_certain():
    low, high = kappa_interval([0, 1] * 10, [0, 1] * 10)
    assert 0.6 < low < 0.9
    assert high == 1


@pytest.mark.parametrize(("power", "weights"), [(0, None), (1, "linear"), (2, "quadratic")])
def test_weighted_kappa_is_that_of_scikit_learn(power, weights):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(7)
    first = rng.integers(0, 5, 80)
    second = np.clip(first + rng.integers(-1, 2, 80), 0, 4)
    value = cohen_kappa(first, second, power=power)
    assert value == pytest.approx(metrics.cohen_kappa_score(first, second, weights=weights), abs=1e-12)
    low, high = kappa_interval(first, second, power=power)
    assert low < value < high


@pytest.mark.parametrize("power", [0, 2])
def test_the_interval_of_kappa_with_many_labels_is_that_of_units_drawn_one_by_one(power):
    rng = np.random.default_rng(2)
    first = rng.integers(50, size=150)
    second = np.where(rng.random(150) < 0.6, first, rng.integers(50, size=150))
    drawn = []
    for _ in range(1000):
        at = rng.integers(151, size=150)  # the last unit is that of the prior, in any cell
        a, b = (np.append(given, 0)[at] for given in (first, second))
        a[at == 150], b[at == 150] = rng.integers(50, size=(2, np.count_nonzero(at == 150)))
        drawn.append(cohen_kappa(a, b, power=power))
    expected = np.quantile(drawn, [0.025, 0.975])
    np.testing.assert_allclose(kappa_interval(first, second, power=power), expected, atol=0.02)


def test_intervals_of_weighted_kappa_hold_the_true_value():
    rng = np.random.default_rng(8)

    def draw(count):
        first = rng.integers(0, 5, count)
        return first, np.clip(first + rng.integers(-1, 2, count), 0, 4)

    true = cohen_kappa(*draw(200_000), power=2)
    ends = [kappa_interval(*draw(60), power=2, draws=400) for _ in range(80)]
    assert np.mean([low <= true <= high for low, high in ends]) >= 0.88


def test_alpha_over_cases_is_that_of_all_their_voxels_with_a_jackknife():
    rng = np.random.default_rng(4)
    cases = []
    for case in range(8):
        truth = rng.integers(0, 2, 50)
        wrong = rng.random((50, 3)) < 0.05 + 0.02 * case
        cases.append((np.where(wrong, 1 - truth[:, None], truth[:, None]), rng.integers(1, 9, 50)))
    cases[0] = cases[0][0][:, :2], cases[0][1]  # its third rater is missing
    found = alpha_over_cases(cases)
    voxels = [np.repeat(labels, count, axis=0) for labels, count in cases]
    voxels[0] = np.pad(voxels[0], ((0, 0), (0, 1)), constant_values=MISSING)
    assert found.value == pytest.approx(krippendorff_alpha(np.concatenate(voxels)))
    others = [krippendorff_alpha(np.concatenate(voxels[:at] + voxels[at + 1 :])) for at in range(8)]
    error = math.sqrt(7 / 8 * sum((other - np.mean(others)) ** 2 for other in others))
    half = stats.t.ppf(0.975, 7) * error
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))
    assert math.isnan(alpha_over_cases(cases[:2]).low)


def test_the_interval_of_detection_agreement_is_about_that_of_a_jackknife():
    rng = np.random.default_rng(3)
    first, second = [], []
    for _ in range(60):
        positions = rng.uniform(0, 1000, (rng.integers(1, 30), 2))
        first.append(positions[rng.random(len(positions)) < 0.8])
        second.append(positions[rng.random(len(positions)) < rng.uniform(0.4, 1.0)])
    share = detection_agreement(first, second, 2.0).share
    both = np.array(
        [sum((mark == other).all() for mark in a for other in b) for a, b in zip(first, second, strict=True)]
    )
    marks = np.array([len(a) + len(b) for a, b in zip(first, second, strict=True)])
    assert share.value == pytest.approx(2 * both.sum() / marks.sum())
    others = 2 * (both.sum() - both) / (marks.sum() - marks)
    half = stats.t.ppf(0.975, 59) * math.sqrt(59 / 60 * ((others - others.mean()) ** 2).sum())
    assert (share.low, share.high) == pytest.approx((share.value - half, share.value + half), abs=0.1 * half)
