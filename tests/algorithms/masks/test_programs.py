"""Masks of programs combined with the consensus of raters: used if they help, without effect otherwise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from raterscope.algorithms.masks.calibration import calibrate, count_in_bins, log_loss
from raterscope.algorithms.masks.data import OPEN, Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.gold_cases import calibrate_with_truth
from raterscope.algorithms.masks.metrics import place_in_frame
from raterscope.algorithms.masks.programs import (
    Program,
    combine,
    combine_calibrated,
    gather_evidence,
    weigh,
)

SHAPE = (1, 44, 44)
CASES = 12


def bumps(rng):
    values = gaussian_filter(rng.standard_normal(SHAPE), (0, 4, 4), mode="wrap")
    return values / values.std()


def true_height(rng):
    _, y, x = np.indices(SHAPE) - 22.0
    return rng.uniform(9, 12) - np.hypot(y, x) + 1.5 * bumps(rng)


def outline_good(height, rng, raters):
    return height + 0.4 * bumps(rng) > 0


def outline_biased(height, rng, raters):
    return height + 0.4 * bumps(rng) + 1.5 > 0


def outline_blurred(height, rng, raters):
    return (1 / (1 + np.exp(-(height + 0.4 * bumps(rng))))).astype(np.float32)


def outline_useless(height, rng, raters):
    row, column = rng.uniform(14, 30, 2)
    _, y, x = np.indices(SHAPE)
    return 8 - np.hypot(y - row, x - column) > 0


def copy_of_a_rater(height, rng, raters):
    return raters[1]


def crowd(raters, outline, seed=1, scatter=1.6):
    """Cases: (masks, values of a program, truth)."""
    rng = np.random.default_rng(seed)
    cases = []
    for _ in range(CASES):
        height = true_height(rng)
        masks = np.array([height + scatter * bumps(rng) > 0 for _ in range(raters)])
        names = tuple(f"rater {p}" for p in range(raters))
        cases.append((Masks(masks, names), outline(height, rng, masks), height > 0))
    return cases


def weighed(cases, *, programs=("unet",), gold=0):
    """Weights of programs, with the truth of the first cases known."""
    evidence = [
        gather_evidence(masks, [Program(name, values) for name in programs], truth if n < gold else None)
        for n, (masks, values, truth) in enumerate(cases)
    ]
    return weigh(programs, evidence)


def test_the_spread_of_raters_is_the_standard_deviation_of_their_outlines():
    edges = (17, 19, 24)
    halves = np.stack([np.indices((1, 44, 44))[2] < edge for edge in edges])
    masks = Masks(halves, ("a", "b", "c"), (1.0, 1.0, 0.5))
    evidence = gather_evidence(masks, [Program("unet", halves[0])])
    assert evidence.spread == pytest.approx(0.5 * np.std(edges, ddof=1), rel=1e-3)


def combined(cases, *, programs=("unet",), gold=0, plan=None):
    """Weights, and fusions before and after."""
    weights = weighed(cases, programs=programs, gold=gold)
    before = [fuse(masks, plan) for masks, _, _ in cases]
    after = [
        combine(fusion, masks, [Program(name, values) for name in programs], weights)
        for fusion, (masks, values, _) in zip(before, cases, strict=True)
    ]
    return weights, before, after


def loss(fusions, cases):
    """Mean log loss against the truth."""
    return np.mean(
        [
            log_loss(place_in_frame(fusion, fusion.probability[0], (0, 0, 0), SHAPE), truth, 1 / truth.size)
            for fusion, (_, _, truth) in zip(fusions, cases, strict=True)
        ]
    )


def dice(fusions, cases):
    shares = []
    for fusion, (_, _, truth) in zip(fusions, cases, strict=True):
        mask = place_in_frame(fusion, fusion.mask[0], (0, 0, 0), SHAPE)
        shares.append(2 * (mask & truth).sum() / (mask.sum() + truth.sum()))
    return np.mean(shares)


@pytest.mark.parametrize(
    ("raters", "outline"), [(2, outline_good), (5, outline_biased), (3, outline_blurred)]
)
def test_a_program_that_outlines_well_lowers_the_log_loss(raters, outline):
    cases = crowd(raters, outline)
    weights, before, after = combined(cases)
    assert weights.used
    assert loss(after, cases) < loss(before, cases)
    assert dice(after, cases) > dice(before, cases) - 0.001


@pytest.mark.parametrize("raters", [2, 3, 5])
@pytest.mark.parametrize("outline", [outline_useless, copy_of_a_rater])
def test_a_useless_program_and_the_copy_of_a_rater_change_no_bit(raters, outline):
    weights, before, after = combined(crowd(raters, outline))
    assert not weights.used
    assert all(a is b for a, b in zip(after, before, strict=True))


def test_the_bias_of_a_program_is_corrected():
    cases = crowd(3, outline_biased)
    weights, before, after = combined(cases)
    assert weights.offset < 0
    sizes = [sum(fusion.mask.sum() for fusion in fusions) for fusions in (before, after)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)
    assert sum(values.sum() for _, values, _ in cases) > 1.2 * sizes[0]


def test_two_copies_of_a_program_are_worth_what_it_is_alone():
    cases = crowd(3, outline_good)
    alone, _, after = combined(cases)
    twice, _, both = combined(cases, programs=("unet", "again"))
    assert twice.near.sum() == pytest.approx(alone.near.sum(), rel=0.02)
    for one, two in zip(after, both, strict=True):
        np.testing.assert_allclose(two.probability, one.probability, atol=0.005)


def test_known_outlines_show_how_good_a_program_is_even_beside_a_single_rater():
    cases = crowd(1, outline_good)
    assert not combined(cases)[0].used
    weights, before, after = combined(cases, gold=10)
    assert weights.known >= 10
    assert weights.near[0] > 1
    assert dice(after, cases) > dice(before, cases) + 0.02


def test_what_the_expert_settled_stays():
    cases = crowd(3, outline_good)
    masks, values, truth = cases[0]
    known = np.where(values != truth, ~values, OPEN).astype(np.int8)
    known[0, 22, 22] = 0
    cases[0] = replace(masks, known=known), values, truth
    weights, _, after = combined(cases)
    assert weights.used
    inside = place_in_frame(after[0], after[0].mask[0], (0, 0, 0), SHAPE)
    settled = known != OPEN
    np.testing.assert_array_equal(inside[settled], known[settled] == 1)


@pytest.mark.parametrize("algorithm", ["majority", "staple"])
def test_mask_and_probability_agree_after_the_combination(algorithm):
    cases = crowd(3, outline_good)
    _, before, after = combined(cases, plan=MaskPlan.make(algorithm))
    assert any((a.mask != b.mask).any() for a, b in zip(after, before, strict=True))
    for one, two in zip(before, after, strict=True):
        moved = one.probability != two.probability
        np.testing.assert_array_equal(two.mask[moved], two.probability[moved] > 0.5)
        np.testing.assert_array_equal(two.mask[~moved], one.mask[~moved])


def test_a_single_case_is_judged_by_its_parts():
    good, useless = crowd(3, outline_good)[:1], crowd(3, outline_useless)[:1]
    assert combined(good)[0].used
    assert not combined(useless)[0].used


def test_the_words_name_programs_and_what_they_count_as():
    weights, _, _ = combined(crowd(3, outline_good))
    assert f"unet counts as {weights.near[0]:.1f} near the outline" in weights.in_words()
    useless, _, _ = combined(crowd(3, outline_useless))
    assert useless.in_words().startswith("The consensus does not include the program unet")
    single, _, _ = combined(crowd(1, outline_good))
    assert "this needs two raters" in single.in_words()


def test_a_program_decides_voxels_with_equal_votes():
    cases = crowd(2, outline_good)
    _, before, after = combined(cases, plan=MaskPlan.make("majority", {"ties": "in"}))
    moved = 0
    for one, two in zip(before, after, strict=True):
        tied = (one.probability == 0.5) & (two.probability != 0.5)
        np.testing.assert_array_equal(two.mask[tied], two.probability[tied] > 0.5)
        moved += int(tied.sum())
    assert moved


def true_outline(calibrations, cases, gold):
    """Log loss and calibration error of the true outline in disputed voxels of cases without known truth."""
    chances, right = [], []
    for calibration, (masks, _, truth) in list(zip(calibrations, cases, strict=True))[gold:]:
        votes = masks.values.sum(axis=0)
        disputed = within(calibration, (votes > 0) & (votes < len(masks.values)))
        chances.append(calibration.true_outline()[disputed].astype(float))
        right.append(within(calibration, truth)[disputed])
    chance, inside = np.concatenate(chances), np.concatenate(right)
    claimed, true, count = count_in_bins(chance, inside).T
    return log_loss(chance, inside, 1 / len(inside)), np.abs(claimed - true).sum() / count.sum()


def within(calibration, values):
    box = zip(calibration.origin, calibration.ratio.shape, strict=True)
    return values[tuple(slice(at, at + size) for at, size in box)]


@pytest.mark.parametrize(("raters", "outline"), [(2, outline_biased), (4, outline_good)])
def test_the_probability_of_the_true_outline_gains_by_a_program_and_stays_calibrated(raters, outline):
    gold = 12
    cases = [case for seed in range(2) for case in crowd(raters, outline, seed)]
    weights = weighed(cases, gold=gold)
    alone = [calibrate(masks) for masks, _, _ in cases]
    both = [
        combine_calibrated(fuse(masks), calibration, masks, [Program("unet", values)], weights)[1]
        for calibration, (masks, values, _) in zip(alone, cases, strict=True)
    ]
    known = [
        within(c, truth) if n < gold else None
        for n, (c, (_, _, truth)) in enumerate(zip(alone, cases, strict=True))
    ]
    (loss_alone, error_alone), (loss_both, error_both) = (
        true_outline(calibrate_with_truth(calibrations, known), cases, gold) for calibrations in (alone, both)
    )
    assert loss_both < 0.9 * loss_alone
    assert error_both < error_alone + 0.03
    np.testing.assert_array_equal(both[0].another_rater(), alone[0].another_rater())
    np.testing.assert_array_equal(both[0].half_width(), alone[0].half_width())


def test_an_unused_program_leaves_the_calibration():
    masks, values, _ = (cases := crowd(3, outline_useless))[0]
    calibration = calibrate(masks)
    program = Program("unet", values)
    assert combine_calibrated(fuse(masks), calibration, masks, [program], weighed(cases))[1] is calibration
