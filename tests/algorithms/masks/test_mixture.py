"""Raters who follow two outlines are separated, and raters who follow one are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.mixture import MixtureSettings, mixture
from raterscope.algorithms.progress import Cancelled


def _field(rng: np.random.Generator, length: float) -> np.ndarray:
    values = ndimage.gaussian_filter(rng.standard_normal((40, 40, 40)), length, mode="wrap")
    return values / values.std()


def _raters(seed: int, groups: tuple[int, ...], apart: float = 3.0) -> Masks:
    """Raters of a ragged ball 22 mm wide; each group's outline is `apart` mm (r.m.s.) from the first's."""
    rng = np.random.default_rng(seed)
    z, y, x = np.mgrid[:40, :40, :40] - 20.0
    first = 11.0 - np.sqrt(z**2 + y**2 + x**2) + 1.5 * _field(rng, 5)
    masks = []
    for group, size in enumerate(groups):
        outline = first + (apart * _field(rng, 6) if group else 0.0)
        masks += [
            outline + 0.4 * rng.standard_normal() + rng.uniform(0.4, 1.1) * _field(rng, 3.5) > 0
            for _ in range(size)
        ]
    return Masks(np.array(masks), tuple(f"rater {p + 1}" for p in range(len(masks))))


def _sides(masks: Masks) -> list[int]:
    fusion = mixture(masks)
    if not fusion.alternatives:
        return [0] * len(masks.annotators)
    return np.argmax([alternative.responsibility for alternative in fusion.alternatives], axis=0).tolist()


@pytest.mark.parametrize("groups", [(2, 2), (5, 2)])
def test_two_planted_groups_are_found(groups: tuple[int, int]) -> None:
    assert all(_sides(_raters(seed, groups)) in _two_ways(groups) for seed in range(2))


def _two_ways(groups: tuple[int, int]) -> list[list[int]]:
    sides = [0] * groups[0] + [1] * groups[1]
    return [sides, [1 - side for side in sides]]


def test_a_lone_rater_of_another_outline_is_set_apart() -> None:
    assert all(_sides(_raters(seed, (4, 1), apart=5.0)) in _two_ways((4, 1)) for seed in range(2))


def test_slices_at_even_positions_far_from_zero_are_those_without_positions() -> None:
    masks = _raters(1, (2, 2))
    at_positions = replace(masks, slice_positions=200.0 + np.arange(40))
    first, second = (mixture(given).traces[0].objective for given in (masks, at_positions))
    assert second == pytest.approx(first, rel=1e-6)


@pytest.mark.parametrize("count", [3, 6])
def test_raters_of_one_outline_stay_together(count: int) -> None:
    assert not any(any(_sides(_raters(100 + seed, (count,)))) for seed in range(2))


def test_alternatives_share_the_raters_out_and_the_heaviest_is_the_mask() -> None:
    masks = _raters(1, (3, 2))
    fusion = mixture(masks)
    heavy, light = fusion.alternatives
    assert heavy.weight + light.weight == pytest.approx(1.0)
    np.testing.assert_allclose(heavy.responsibility + light.responsibility, 1.0)
    np.testing.assert_allclose(heavy.responsibility, [1, 1, 1, 0, 0], atol=0.1)
    np.testing.assert_array_equal(fusion.mask, heavy.mask)
    np.testing.assert_array_equal(fusion.mask, fusion.probability > 0.5)
    z, y, x = (slice(at, at + size) for at, size in zip(fusion.origin, fusion.shape, strict=True))
    own = masks.values[3:, z, y, x]
    dice = [2 * np.sum(item & light.mask[0]) / (item.sum() + light.mask.sum()) for item in own]
    assert min(dice) > 0.9
    assert any("rater 1, rater 2, rater 3; rater 4, rater 5" in notice for notice in fusion.notices)
    assert any("variant" in notice for notice in fusion.notices)


def test_relabelling_the_raters_permutes_their_groups() -> None:
    masks = _raters(2, (3, 2))
    order = [4, 0, 3, 2, 1]
    turned = replace(masks, values=masks.values[order], annotators=tuple(masks.annotators[p] for p in order))
    straight, permuted = mixture(masks), mixture(turned)
    np.testing.assert_array_equal(straight.mask, permuted.mask)
    for alternative, other in zip(straight.alternatives, permuted.alternatives, strict=True):
        np.testing.assert_allclose(alternative.responsibility[order], other.responsibility, atol=1e-3)


def test_a_constant_shift_of_the_contour_is_no_other_outline() -> None:
    z, y, x = np.mgrid[:40, :40, :40] - 20.0
    radius = np.sqrt(z**2 + y**2 + x**2)
    rng = np.random.default_rng(4)
    values = np.array([11.0 + shift + 0.8 * _field(rng, 3.5) > radius for shift in (-1, -1, 1, 1, 1)])
    assert not mixture(Masks(values, tuple("abcde"))).alternatives


def test_algorithm_1_to_the_letter_opens_no_second_consensus() -> None:
    masks = _raters(1, (3, 2))
    fusion = mixture(masks, MixtureSettings(as_published=True))
    assert not fusion.alternatives
    assert fusion.mask.any()
    assert any("Algorithm 1" in notice for notice in fusion.notices)


def test_settled_voxels_hold_in_every_consensus() -> None:
    masks = _raters(1, (3, 2))
    known = np.full(masks.shape, -1, dtype=np.int8)
    known[:20, :20] = 0
    known[30:, 30:, 30:] = 1
    fusion = mixture(replace(masks, known=known))
    assert fusion.alternatives
    z, y, x = (slice(at, at + size) for at, size in zip(fusion.origin, fusion.shape, strict=True))
    inner = known[z, y, x]
    for alternative in fusion.alternatives:
        assert not alternative.mask[0][inner == 0].any()
        assert alternative.mask[0][inner == 1].all()
        assert (alternative.probability[0][inner == 1] > 0.999).all()


def test_probabilities_are_grouped_as_the_masks_they_come_from() -> None:
    masks = _raters(1, (3, 2))
    soft = np.stack([ndimage.gaussian_filter(value.astype(np.float32), 1.0) for value in masks.values])
    fusion = mixture(replace(masks, values=soft.clip(0, 1)), MixtureSettings(slope=1.0))
    assert [alternative.responsibility.argmax() > 2 for alternative in fusion.alternatives] == [False, True]


def test_two_structures_are_grouped_together() -> None:
    masks = _raters(1, (3, 2))
    labels = masks.values.astype(np.uint8)
    labels[:, 20:][labels[:, 20:] == 1] = 2
    fusion = mixture(replace(masks, values=labels, structures=("upper", "lower")))
    assert fusion.mask.shape[0] == 2
    assert not (fusion.mask[0] & fusion.mask[1]).any()
    assert len(fusion.alternatives) == 2


@pytest.mark.parametrize("count", [1, 2, 4])
def test_raters_who_agree_have_one_consensus_which_is_theirs(count: int) -> None:
    first = _raters(1, (1,)).values
    fusion = mixture(Masks(np.repeat(first, count, axis=0), tuple("abcd"[:count])))
    assert not fusion.alternatives
    z, y, x = (slice(at, at + size) for at, size in zip(fusion.origin, fusion.shape, strict=True))
    np.testing.assert_array_equal(fusion.mask[0], first[0, z, y, x])
    assert fusion.mask.sum() == first.sum()


def test_masks_without_a_voxel_give_an_empty_consensus() -> None:
    fusion = mixture(Masks(np.zeros((4, 3, 8, 8), dtype=np.bool_), tuple("abcd")))
    assert not fusion.mask.any()
    assert not fusion.alternatives


def test_cancelling_stops_the_search() -> None:
    def watch(fraction: float, words: str, **_: object) -> None:
        if "consensus 2" in words:
            raise Cancelled

    with pytest.raises(Cancelled):
        mixture(_raters(1, (3, 2)), watch=watch)


def _large_crowd(apart: float) -> Masks:
    """Two groups of six who outline a disc 180 mm wide with a scatter of 1.2 mm."""
    rng = np.random.default_rng(7)

    def field(length: float) -> np.ndarray:
        values = ndimage.gaussian_filter(rng.standard_normal((1, 220, 220)), (0, length, length), mode="wrap")
        return values / values.std()

    _, y, x = np.mgrid[:1, :220, :220] - np.array([0, 110, 110]).reshape(3, 1, 1, 1)
    first = 90.0 - np.hypot(y, x)
    second = first + apart * field(6)
    masks = [outline + 1.2 * field(4) > 0 for outline in (first, second) for _ in range(6)]
    return Masks(np.array(masks), tuple("abcdefghijkl"))


def test_groups_nearer_than_two_raters_of_one_are_not_parted_however_plain_they_are() -> None:
    assert not mixture(_large_crowd(1.2)).alternatives
    assert len(mixture(_large_crowd(4.0)).alternatives) == 2
