"""Simulated volumes and raters: reproducible, with the requested errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.mixture import mixture
from raterscope.algorithms.simulation.mask_crowds import (
    SimulatedCase,
    SimulatedRater,
    gather_raters,
    simulate_case,
)

SMALL = {"shape": (30, 96, 96), "spacing": (5.0, 1.6, 1.6)}


def _case(subject: str, *raters: SimulatedRater, seed: int = 3) -> SimulatedCase:
    return simulate_case(seed, raters=raters or 3, subject=subject, **SMALL)


@pytest.mark.parametrize("subject", ["nodule", "prostate"])
def test_the_same_seed_gives_the_same_case_and_another_another(subject: str) -> None:
    shape, spacing = (12, 64, 64), (4.0, 1.2, 1.2)
    first, same, other = (simulate_case(n, shape, spacing, 3, subject=subject) for n in (3, 3, 4))
    np.testing.assert_array_equal(first.volume, same.volume)
    np.testing.assert_array_equal(first.masks, same.masks)
    assert (first.volume != other.volume).any()
    assert (first.truth != other.truth).any()


@pytest.mark.parametrize("subject", ["nodule", "prostate"])
def test_the_structure_stands_out_and_lies_within_the_volume(subject: str) -> None:
    case = _case(subject)
    centre, width = case.window
    shown = (case.volume - (centre - width / 2)) / width
    rim = ndimage.binary_dilation(case.truth, iterations=3) & ~ndimage.binary_dilation(case.truth)
    assert np.median(shown[case.truth]) - np.median(shown[rim]) > 0.1
    assert ndimage.label(case.truth)[1] == 1
    for axis in range(3):
        assert not np.take(case.truth, [0, -1], axis=axis).any()
    assert case.volume.dtype == np.int16
    assert case.volume.min() >= -1024


def test_a_careful_rater_draws_the_truth_and_a_careless_one_does_not() -> None:
    case = _case("prostate", SimulatedRater("a", scatter=0.01), SimulatedRater("b", scatter=2.5))
    wrong = [(mask ^ case.truth).sum() / case.truth.sum() for mask in case.masks]
    assert wrong[0] < 0.02
    assert wrong[1] > 5 * wrong[0]


def test_a_bias_moves_the_whole_outline() -> None:
    case = _case("prostate", SimulatedRater("a", 3.0, 0.01), SimulatedRater("b", -3.0, 0.01))
    assert (case.masks[0] | ~case.truth).all()
    assert (case.truth | ~case.masks[1]).all()
    assert case.masks[0].sum() > 1.2 * case.truth.sum() > 1.44 * case.masks[1].sum()


def test_a_leak_is_in_one_place() -> None:
    case = _case("prostate", SimulatedRater("a", 0.0, 0.01), SimulatedRater("b", 0.0, 0.01, leaks=True))
    more = case.masks[1] & ~case.masks[0]
    assert (more & case.leak).sum() > 0.8 * case.leak.sum() > 0
    assert (more & ~case.leak).sum() < 0.1 * more.sum()


def test_those_who_take_the_wider_outline_are_a_group_of_their_own() -> None:
    raters = [SimulatedRater(f"r{p}", 0.0, 0.5, wider=p > 2) for p in range(5)]
    case = simulate_case(1, (40, 96, 96), (2.0, 1.6, 1.6), raters, subject="prostate")
    fusion = mixture(Masks(case.masks, case.annotators, case.spacing))
    heavy, light = fusion.alternatives
    np.testing.assert_allclose(light.responsibility, [0, 0, 0, 1, 1], atol=0.2)
    assert light.mask.sum() > heavy.mask.sum()


def test_a_crowd_has_the_names_and_habits_that_were_requested() -> None:
    crowd = gather_raters(6, 1, wider=2)
    assert len({rater.name for rater in crowd}) == 6
    assert [rater.wider for rater in crowd] == [False] * 4 + [True] * 2
    assert sum(rater.leaks for rater in crowd) == 1
    with pytest.raises(ValueError, match="cannot"):
        gather_raters(2, 1, wider=3)


def test_a_large_volume_is_painted_slice_by_slice_so_that_it_can_be_cancelled() -> None:
    informed: list[float] = []

    def watch(fraction: float, words: str, **_: object) -> None:
        informed.append(fraction)

    simulate_case(1, (6, 520, 520), (5.0, 0.5, 0.5), 2, subject="prostate", watch=watch)
    assert len(informed) > 20 * 6
    assert informed == sorted(informed)
    assert informed[-1] <= 1


def test_what_is_not_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="liver"):
        simulate_case(1, subject="liver", **SMALL)
