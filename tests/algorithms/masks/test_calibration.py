"""Maps and bands from the raters' spread: right as often as they claim on simulated raters."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.special import stdtr

from raterscope.algorithms.masks.calibration import (
    BINS,
    LEVELS,
    calibrate,
    count_in_bins,
    default_multipliers,
    pool_calibrations,
    student,
)
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import OPEN, Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, report_on
from raterscope.algorithms.masks.gold_cases import calibrate_with_truth, judge_with_truth
from tests.benchmarks.calibration.masks import beyond, calibration_error, log_loss, whole


def a_crowd(seed, raters=6, shape=(1, 90, 90)):
    """Draw raters of one disc or ball whose outlines waver, each with a bias."""
    generator = np.random.default_rng(seed)
    positions = np.indices(shape, dtype=float)
    middle = (np.array(shape) - 1) / 2
    away = 25 - np.sqrt(sum((position - at) ** 2 for position, at in zip(positions, middle, strict=True)))
    values = []
    for _ in range(raters):
        noise = gaussian_filter(generator.normal(size=shape), (2 if shape[0] > 1 else 0, 6, 6))
        values.append(away + 2.0 * noise / noise.std() + generator.normal(0, 1.0) > 0)
    return np.array(values)


def named(values, **more):
    return Masks(values, tuple(f"r{p}" for p in range(len(values))), **more)


def calibrated(values, **more):
    return calibrate(named(values, **more))


@pytest.fixture(scope="module")
def left_out():
    """Return (calibration of the others, votes of the others, mask of the one left out) of several cases."""
    result = []
    for seed in range(8):
        values = a_crowd(seed)
        for p in (0, 3):
            remaining = np.delete(values, p, axis=0)
            result.append((calibrated(remaining), remaining.sum(axis=0), values[p]))
    return result


def test_another_raters_voxels_come_as_often_as_claimed(left_out):
    chances, shares, marks = [], [], []
    for result, votes, mask in left_out:
        disputed = (votes > 0) & (votes < 5)
        chances.append(whole(result, result.another_rater(), votes.shape)[disputed])
        shares.append(votes[disputed] / 5)
        marks.append(mask[disputed])
    chance, share, mark = (np.concatenate(item) for item in (chances, shares, marks))
    assert log_loss(chance, mark) < log_loss(share, mark)
    assert calibration_error(chance, mark) < 0.06


def test_bands_hold_as_much_of_another_raters_outline_as_they_claim(left_out):
    multipliers = pool_calibrations([result for result, _, _ in left_out])[0].multipliers
    away = [beyond(result, mask) for result, _, mask in left_out]
    for level, reach in zip(LEVELS, multipliers, strict=True):
        assert np.mean([(item <= reach).mean() for item in away]) == pytest.approx(level, abs=0.06)


def test_what_the_expert_settled_is_fixed_and_nothing_else_moves():
    values = a_crowd(1)
    known = np.full(values.shape[1:], OPEN, dtype=np.int8)
    known[0, 20:30, 40:50] = 1
    known[0, 60:70, 40:50] = 0
    before, after = calibrated(values), calibrated(values, known=known)
    truth = whole(after, after.true_outline(), known.shape)
    earlier = whole(before, before.true_outline(), known.shape)
    assert (truth[known == 1] == 1).all()
    assert (truth[known == 0] == 0).all()
    np.testing.assert_array_equal(truth[known == OPEN], earlier[known == OPEN])
    np.testing.assert_array_equal(after.another_rater(), before.another_rater())


def test_positions_of_even_slices_change_nothing_and_uneven_ones_do():
    values = a_crowd(2, 4, (9, 60, 60))
    even = calibrated(values, spacing=(2.0, 1.0, 1.0))
    positions = 2.0 * np.arange(9)
    informed = calibrated(values, spacing=(2.0, 1.0, 1.0), slice_positions=positions)
    np.testing.assert_allclose(informed.scale, even.scale, rtol=0.02)
    assert informed.multipliers == even.multipliers
    positions[5:] += 6.0
    apart = calibrated(values, spacing=(2.0, 1.0, 1.0), slice_positions=positions)
    assert np.abs(apart.scale[5] / even.scale[5] - 1).max() > 0.02


def test_two_raters_keep_the_multipliers_of_other_crowds_with_a_notice():
    pair, crowd = calibrated(a_crowd(3, 2)), calibrated(a_crowd(4))
    second = pool_calibrations([pair, crowd])
    assert second[0].multipliers == default_multipliers(2)
    assert (second[0].cases, second[1].cases) == (0, 1)
    assert second[1].multipliers != default_multipliers(6)
    assert any(texts.startswith("Two raters show little") for texts in second[0].notices())


def test_a_single_rater_and_empty_masks_give_nothing():
    assert calibrated(a_crowd(5, 1)) is None
    assert calibrated(np.zeros((3, 1, 8, 8), dtype=bool)) is None


def test_a_rater_who_drew_nothing_lowers_the_probability_and_leaves_the_band():
    values = a_crowd(7, 4)
    drawn, result = calibrated(values), calibrated(np.append(values, np.zeros_like(values[:1]), axis=0))
    assert (result.raters, result.silent) == (4, 1)
    np.testing.assert_allclose(result.half_width(), drawn.half_width(), rtol=1e-5)
    np.testing.assert_allclose(result.another_rater(), drawn.another_rater() * 4.5 / 6, atol=1e-6)
    np.testing.assert_allclose(result.true_outline(), drawn.true_outline() * 4.5 / 6, atol=1e-6)
    assert result.notices()[1].startswith("1 of 5 raters drew nothing")
    settled = np.full(values.shape[1:], OPEN, dtype=np.int8)
    settled[0, 45, 45] = 1
    decided = replace(
        drawn, settled=settled[tuple(map(slice, drawn.origin, np.add(drawn.origin, drawn.ratio.shape)))]
    )
    again = replace(result, settled=decided.settled)
    np.testing.assert_allclose(again.true_outline(), decided.true_outline(), atol=1e-6)
    alone = calibrated(np.append(values[:1], np.zeros_like(values[:2]), axis=0))
    assert (alone.raters, alone.silent) == (3, 0)


def test_raters_who_agree_leave_a_narrow_band():
    values = np.repeat(a_crowd(6, 1), 4, axis=0)
    result = calibrated(values)
    assert result.half_width().max() < 0.1
    inside = whole(result, result.another_rater(), values[0].shape) > 0.5
    np.testing.assert_array_equal(inside, values[0])


def discs(radii, shape):
    rows, columns = np.indices(shape) - (np.array(shape) // 2).reshape(2, 1, 1)
    return np.array([[np.hypot(rows, columns) <= radius] for radius in radii])


def half_width(radii, size):
    """Return the half-width of the 95 % band of discs where their mean outline crosses the middle row."""
    result = calibrated(discs(radii, (size, size)))
    row, column = size // 2 - result.origin[1], round(size // 2 + np.mean(radii)) - result.origin[2]
    return float(result.half_width()[0, row, column])


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_larger_picture_of_the_same_masks_has_the_same_bands(seed):
    radii = 20 + 2 * np.random.default_rng(seed).standard_normal(5)
    assert half_width(4 * radii, 280) / 4 == pytest.approx(half_width(radii, 70), rel=0.15)


def test_an_offset_moves_the_true_outline_alone():
    result = calibrated(a_crowd(7))
    moved = replace(result, offset=-2.0)
    assert (moved.true_outline() > 0.5).sum() < (result.true_outline() > 0.5).sum()
    np.testing.assert_array_equal(moved.another_rater(), result.another_rater())


def a_disc(radius, result):
    """Return the true outline on the part that was calibrated."""
    rows, columns = np.indices(result.ratio.shape[1:]) + np.array(result.origin[1:]).reshape(2, 1, 1)
    return (np.hypot(rows - 44.5, columns - 44.5) < radius)[None]


def test_gold_cases_show_the_common_offset_and_few_of_them_show_little():
    result = [calibrated(a_crowd(seed)) for seed in range(10, 22)]
    truths = [a_disc(21, item) for item in result]
    unknown = [None] * len(result)
    assert calibrate_with_truth(result, unknown)[0].gold == 0
    first = calibrate_with_truth(result, truths[:1] + unknown[1:])[-1]
    few = calibrate_with_truth(result, truths[:3] + unknown[3:])[-1]
    many = calibrate_with_truth(result, [*truths[:10], None, None])[-1]
    assert (first.gold, few.gold, many.gold) == (1, 3, 10)
    assert -5 < many.offset < few.offset < first.offset == 0
    before, after = result[-1].true_outline(), many.true_outline()
    near = np.abs(result[-1].ratio) < 2
    assert log_loss(after[near], truths[-1][near]) < 0.8 * log_loss(before[near], truths[-1][near])
    np.testing.assert_array_equal(many.another_rater(), result[-1].another_rater())


@pytest.mark.parametrize("name", FUSERS)
def test_every_algorithm_gives_the_same_products(name):
    masks = named(a_crowd(8, 4, (1, 70, 70)))
    result = report_on(fuse(masks, MaskPlan.make(name)), masks).calibration
    alone = calibrate(masks)
    np.testing.assert_array_equal(result.another_rater(), alone.another_rater())
    np.testing.assert_array_equal(result.half_width(), alone.half_width())


def test_gold_cases_that_contradict_each_other_move_nothing():
    result = [calibrated(a_crowd(seed)) for seed in range(10, 16)]
    truths = [a_disc(21 if number % 2 else 29, item) for number, item in enumerate(result)]
    assert {item.offset for item in calibrate_with_truth(result, truths)} == {0}
    judged = judge_with_truth(result, truths)
    assert len(judged) == len(result)
    assert all(len(chance) == len(right) > 100 for chance, right in judged)


def test_probabilities_are_counted_in_bins_of_equal_width():
    chance = np.concatenate([[0.0, 1.0], np.random.default_rng(1).random(500)])
    right = np.random.default_rng(2).random(502) < chance
    edges = np.linspace(0, 1, BINS + 1)
    columns = [
        np.histogram(chance, edges, weights=weight)[0] for weight in (chance, right * 1.0, np.ones(502))
    ]
    np.testing.assert_allclose(count_in_bins(chance, right), np.stack(columns, axis=1))


@pytest.mark.parametrize("curve", [(0.0, 1.0), (0.1, 1.2)])
def test_a_large_map_of_probabilities_is_that_of_its_parts_to_the_last_bit(curve):
    ratio = np.random.default_rng(3).normal(0, 12, (2, 600, 600)).astype(np.float32)
    ratio[0, 0, :3] = np.inf, -np.inf, np.nan
    whole_map = student(ratio, 20.8, curve)
    parts = [student(row, 20.8, curve) for row in ratio[0]]
    assert whole_map[0].tobytes() == np.array(parts).tobytes()
    expected = stdtr(20.8, curve[0] + curve[1] * ratio.astype(float))
    np.testing.assert_allclose(whole_map, expected, atol=2e-6)
