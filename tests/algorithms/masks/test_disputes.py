"""Disputed regions on a ball that raters outline with a leak, a bite, and an irrelevant rim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.disputes import dispute_by_slice, disputes, in_words
from raterscope.algorithms.masks.voting import majority
from tests.algorithms.masks.staple_cases import ball, named

SHAPE = (36, 44, 48)
ORGAN = ball(SHAPE, (18, 20, 20), 10)
LEAK = ORGAN | ball(SHAPE, (18, 20, 31), 5)
BITE = ORGAN & ~ball(SHAPE, (18, 8, 20), 5)
RIM = ball(SHAPE, (18, 20, 20), 11)
NAMES = ("Rater 1", "Rater 2", "Rater 3", "Rater 4", "Rater 5")


def case(*values, **more):
    masks = named(np.stack(values), **more)
    return majority(masks), masks


def test_a_rim_is_no_dispute():
    assert disputes(*case(ORGAN, ORGAN, ORGAN, RIM)) == ()


def test_one_coarse_voxel_is_no_dispute_and_two_are():
    """Of 4 mm in the plane; the ball is small, so that its size alone would let 1.5 mm pass."""
    ball_of = [ball(SHAPE, (18, 20, 20), radius) for radius in (6, 7, 8)]
    spacing = (4.0, 4.0, 4.0)
    assert disputes(*case(ball_of[0], ball_of[0], ball_of[0], ball_of[1], spacing=spacing)) == ()
    assert disputes(*case(ball_of[0], ball_of[0], ball_of[0], ball_of[2], spacing=spacing)) != ()


def test_a_leak_and_a_bite_are_two_regions_with_whose_they_are():
    fusion, masks = case(ORGAN, RIM, LEAK, BITE, ORGAN)
    leak, bite = sorted(disputes(fusion, masks), key=lambda region: -region.volume_ml)
    assert (leak.beyond, leak.short, leak.leader) == ((2,), (), 2)
    assert (bite.beyond, bite.short, bite.leader) == ((), (3,), 3)
    # The leak's tip is at column 36, the organ's outermost voxel at column 30.
    assert leak.reach == pytest.approx(6.0)
    assert leak.away[2] == pytest.approx(6.0)
    assert 0 < leak.away[1] < 1.5  # the rim, which is nobody's business
    assert leak.away[0] == leak.away[3] == leak.away[4] == 0
    assert bite.away[3] == pytest.approx(-bite.reach)
    assert in_words(leak, NAMES) == "Rater 3 draws 6 mm beyond the others here."
    assert in_words(bite, NAMES).startswith("Rater 4 stays")
    assert in_words(leak, NAMES, "px") == "Rater 3 draws 6 px beyond the others here."
    inside = np.zeros(SHAPE, dtype=bool)
    inside[tuple(slice(at, at + n) for at, n in zip(leak.origin, leak.shape, strict=True))] = leak.voxels()
    assert inside.sum() * 1e-3 == pytest.approx(leak.volume_ml)
    assert np.count_nonzero(inside & LEAK & ~ORGAN) > 0.95 * np.count_nonzero(LEAK & ~ORGAN)
    assert leak.doubt_ml < leak.volume_ml


def test_distances_are_in_millimetres():
    fusion, masks = case(ORGAN, ORGAN, LEAK, spacing=(2.0, 0.5, 0.5))
    result = disputes(fusion, masks)
    assert max(region.reach for region in result) == pytest.approx(3.0)
    for region in result:
        assert region.volume_ml == pytest.approx(region.voxels().sum() * 0.5e-3)


def test_the_weight_is_the_leaders_where_the_leader_differs():
    fusion, masks = case(ORGAN, ORGAN, LEAK)
    weight = np.full((1, 3, *fusion.shape), 122, dtype=np.uint8)
    box = tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))
    weight[0, 2][(LEAK & ~ORGAN)[box]] = 8
    (leak,) = disputes(replace(fusion, weight=weight), masks)
    assert leak.weight == pytest.approx(8 / 255)
    assert in_words(leak, NAMES).endswith("here; the weight of that stretch in the model is 3 %.")


def test_positions_are_those_of_the_whole_image():
    values = np.stack([ORGAN, ORGAN, LEAK])
    (there,) = disputes(*case(*values))
    wide = named(values, origin=(5, 6, 7), frame=(60, 60, 60))
    (moved,) = disputes(majority(wide), wide)
    assert np.subtract(moved.origin, there.origin).tolist() == [5, 6, 7]
    assert np.array_equal(moved.voxels(), there.voxels())


def test_what_is_settled_is_disputed_no_more():
    known = np.full(SHAPE, OPEN, dtype=np.int8)
    known[:, :, 27:] = ORGAN[:, :, 27:]
    assert disputes(*case(ORGAN, ORGAN, LEAK, known=known)) == ()


def test_a_shell_all_round_is_parted_into_places_to_look_at():
    larger = ball(SHAPE, (18, 20, 20), 15)
    bumpy = larger | ball(SHAPE, (18, 20, 8), 9) | ball(SHAPE, (18, 8, 20), 9) | ball(SHAPE, (18, 20, 32), 9)
    fusion, masks = case(ORGAN, ORGAN, bumpy)
    result = disputes(fusion, masks)
    assert 3 <= len(result) <= 15
    observed = np.zeros(SHAPE, dtype=int)
    for region in result:
        crop = tuple(slice(at, at + n) for at, n in zip(region.origin, region.shape, strict=True))
        observed[crop] += region.voxels()
    assert observed.max() == 1
    assert np.count_nonzero(observed) > 0.9 * np.count_nonzero(bumpy & ~ORGAN)
    assert [region.doubt_ml for region in result] == sorted((r.doubt_ml for r in result), reverse=True)


def test_two_structures_each_have_their_own():
    labels = np.zeros((3, *SHAPE), dtype=np.uint8)
    labels[:, ORGAN] = 1
    labels[2, :, :, 26:][LEAK[:, :, 26:]] = 2
    masks = named(labels, structures=("organ", "leak"))
    organ, leak = sorted(disputes(majority(masks), masks), key=lambda region: region.structure)
    assert (organ.structure, organ.short, organ.beyond) == (0, (2,), ())
    assert (leak.structure, leak.short, leak.beyond) == (1, (), (2,))


def test_no_annotator_or_all_annotators():
    empty = np.zeros(SHAPE, dtype=bool)
    assert disputes(*case(empty, empty)) == ()
    assert disputes(*case(ORGAN, ORGAN, empty)) == ()


@pytest.mark.parametrize("at", [slice(None), slice(0, 29)])
def test_what_half_of_the_raters_mark_is_disputed_where_the_consensus_is_empty(at):
    organ, empty = ORGAN[:, :, at], np.zeros_like(ORGAN[:, :, at])
    fusion, masks = case(organ, organ, empty, empty)
    assert not fusion.mask.any()
    (region,) = disputes(fusion, masks)
    assert region.beyond == (0, 1)
    assert region.short == ()
    assert region.volume_ml == pytest.approx(np.count_nonzero(organ) * 1e-3)
    assert region.doubt_ml == pytest.approx(region.volume_ml)
    assert np.isnan(region.reach)
    assert in_words(region, NAMES) == "Rater 1 and Rater 2 mark this, the consensus does not."


def test_three_who_mark_three_places_dispute_each():
    positions = [ball(SHAPE, (18, 22, x), 5) for x in (8, 24, 40)]
    fusion, masks = case(*positions)
    result = disputes(fusion, masks)
    assert sorted(region.beyond for region in result) == [(0,), (1,), (2,)]
    assert in_words(result[0], NAMES).endswith("marks this, the consensus does not.")


def test_what_two_mark_on_one_slice_is_disputed():
    disc = ORGAN[18:19]
    (region,) = disputes(*case(disc, disc, np.zeros_like(disc), np.zeros_like(disc)))
    assert region.volume_ml == pytest.approx(np.count_nonzero(disc) * 1e-3)


def test_doubt_by_slice_of_the_whole_image():
    fusion, _ = case(ORGAN, ORGAN, LEAK, LEAK, spacing=(1.0, 2.0, 2.0))
    ml = dispute_by_slice(fusion)
    assert ml.shape == (36,)
    assert ml == pytest.approx((LEAK & ~ORGAN).sum(axis=(1, 2)) * 4e-3)


def test_three_to_ten_places_on_most_nodules(real_data):
    from tests.algorithms.masks.staple_cases import nodule

    counts = []
    for number in range(20):
        masks = nodule(real_data, number)
        counts.append(len(disputes(majority(masks), masks)))
    assert 3 <= np.median(counts) <= 10
    assert max(counts) <= 20
