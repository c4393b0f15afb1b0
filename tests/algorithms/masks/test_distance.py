"""Signed distances against scipy's exact transform, and the box that a fusion looks at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt, gaussian_filter

from raterscope.algorithms.masks.data import OPEN, Masks
from raterscope.algorithms.masks.distance import (
    domain,
    interpolate,
    logit_distance,
    signed_distance,
    skipped_slices,
)
from tests.algorithms.masks.staple_cases import ball


def blobs(shape: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=shape)
    width = [0 if size == 1 else 1.5 for size in shape]
    return np.asarray(gaussian_filter(noise, width) > 0.05)


@pytest.mark.parametrize("shape", [(14, 23, 19), (1, 31, 27)])
@pytest.mark.parametrize("spacing", [(1.0, 1.0, 1.0), (3.0, 0.65, 0.65), (0.5, 0.75, 2.0)])
@pytest.mark.parametrize("clip", [1.0, 2.763, 50.0])
def test_distances_are_those_of_an_exact_transform_in_millimetres(shape, spacing, clip):
    mask = blobs(shape)
    half = min(spacing[1:] if shape[0] == 1 else spacing) / 2
    inside = np.minimum(distance_transform_edt(mask, sampling=spacing) - half, clip)
    outside = np.minimum(distance_transform_edt(~mask, sampling=spacing) - half, clip)
    assert np.allclose(signed_distance(mask, spacing, clip), np.where(mask, inside, -outside), atol=2e-5)


def test_distance_of_nothing_and_of_everything_is_the_clip():
    empty = np.zeros((3, 4, 5), dtype=bool)
    assert (signed_distance(empty, (1, 1, 1), 2.5) == -2.5).all()
    assert (signed_distance(~empty, (1, 1, 1), 2.5) == 2.5).all()


def test_one_slice_has_no_boundary_above_or_below():
    mask = np.zeros((1, 21, 21), dtype=bool)
    mask[0, 5:16, 5:16] = True
    assert signed_distance(mask, (1, 1, 1), 9.0)[0, 10, 10] == pytest.approx(5.5)


def test_a_crop_with_a_margin_gives_the_same_distances():
    mask = np.zeros((30, 40, 50), dtype=bool)
    mask[8:18, 12:25, 14:33] = blobs((10, 13, 19), 3)
    spacing, clip = (1.5, 0.7, 0.7), 2.763
    full = Masks(mask[None], ("a",), spacing)
    part = domain(full, clip)
    box = tuple(slice(at, at + size) for at, size in zip(part.origin, part.shape, strict=True))
    assert part.shape < full.shape
    assert np.array_equal(
        signed_distance(part.values[0], spacing, clip), signed_distance(mask, spacing, clip)[box]
    )


@pytest.mark.parametrize("kind", ["bool", "labels", "probability"])
def test_domain_holds_every_mark_with_its_margin_and_stays_in_the_frame(kind):
    values = np.zeros((2, 12, 20, 30), dtype=bool)
    values[0, 1, 9, 4] = values[1, 6, 12, 28] = True
    if kind == "labels":
        values = values.astype(np.uint8)
    if kind == "probability":
        values = values.astype(np.float32) * np.float32(0.25)
    masks = Masks(values, ("a", "b"), (2.0, 1.0, 1.0))
    part = domain(masks, 3.0)
    assert part.origin == (0, 6, 1)
    assert part.shape == (9, 10, 29)
    assert part.frame == (12, 20, 30)
    assert part.values.sum() == values.sum()
    assert domain(part, 3.0) is part


def test_domain_takes_in_what_is_settled_and_widens_a_crop_that_is_too_narrow():
    values = np.zeros((1, 1, 4, 4), dtype=bool)
    values[0, 0, 1, 1] = True
    known = np.full((1, 4, 4), OPEN, dtype=np.int8)
    known[0, 3, 3] = 1
    masks = Masks(values, ("a",), origin=(0, 10, 10), frame=(1, 20, 15), known=known)
    part = domain(masks, 2.0)
    assert part.origin == (0, 9, 9)
    assert part.shape == (1, 7, 6)
    assert part.known is not None
    assert np.argwhere(part.known == 1).tolist() == [[0, 4, 4]]
    assert np.argwhere(part.values[0]).tolist() == [[0, 2, 2]]


def test_domain_of_nothing_is_everything():
    masks = Masks(np.zeros((2, 3, 4, 5), dtype=bool), ("a", "b"))
    assert domain(masks, 2.0) is masks


def test_a_probability_becomes_its_logit_over_the_slope():
    probability = np.array([[[0.0, 0.25, 0.5, 0.75, 1.0]]], dtype=np.float32)
    away = logit_distance(probability, 2.763, 5.0)
    assert away[0, 0].tolist() == pytest.approx([-2.763, -np.log(3) / 5, 0.0, np.log(3) / 5, 2.763])


def test_distances_of_a_nodule_have_the_known_sums(real_data: Path):
    with np.load(real_data / "masks/lidc/nodulebin/nodulebin_03.npz", allow_pickle=False) as file:
        masks = file["masks"].astype(bool)
    clip = np.log((1 - 1e-6) / 1e-6) / 5
    logits = [5 * signed_distance(mask, (1, 1, 1), clip).astype(float) for mask in masks]
    assert [float(logit.sum()) for logit in logits] == pytest.approx(
        [-1212352.612, -1341308.811, -1236097.056, -1340988.117], rel=1e-6
    )
    assert [float((logit**2).sum()) for logit in logits] == pytest.approx(
        [18427073.809, 19276078.992, 18701487.772, 19469809.657], rel=1e-6
    )


SPACING = (2.0, 1.0, 1.0)


def disc(row, column, radius, shape=(60, 80)):
    return ball((1, *shape), (0, row, column), radius)[0]


def test_discs_of_a_cone_grow_evenly():
    drawn = {3: disc(30, 40, 5), 7: disc(30, 40, 13)}
    result = interpolate(drawn, SPACING)
    assert sorted(result) == [4, 5, 6]
    for at, radius in ((4, 7), (5, 9), (6, 11)):
        wrong = np.count_nonzero(result[at] ^ disc(30, 40, radius))
        assert wrong < 0.06 * np.pi * radius**2


def test_a_tube_that_runs_aslant_stays_a_tube():
    drawn = {0: disc(15, 10, 6), 10: disc(40, 60, 6)}
    result = interpolate(drawn, SPACING)
    for at in range(1, 10):
        rows, columns = np.nonzero(result[at])
        assert abs(rows.mean() - (15 + 2.5 * at)) < 1
        assert abs(columns.mean() - (10 + 5 * at)) < 1
        assert np.count_nonzero(result[at]) == np.count_nonzero(disc(15, 10, 6))


def test_only_gaps_between_drawn_masks_are_filled():
    empty = np.zeros((60, 80), dtype=bool)
    drawn = {0: empty, 2: disc(30, 30, 5), 3: disc(30, 30, 6), 5: disc(30, 30, 6), 9: empty}
    result = interpolate(drawn, SPACING)
    assert sorted(result) == [4]
    assert np.array_equal(result[4], drawn[3])
    assert interpolate({}, SPACING) == {}
    assert interpolate({4: disc(5, 5, 3)}, SPACING) == {}


def test_a_mask_at_the_images_edge():
    drawn = {0: disc(0, 0, 9), 4: disc(0, 0, 15)}
    result = interpolate(drawn, SPACING)
    assert np.count_nonzero(drawn[0]) < np.count_nonzero(result[2]) < np.count_nonzero(drawn[4])
    assert result[2][0, 0]


def bars(*slices: range) -> Masks:
    """Draw the same square on some of 20 slices for each rater."""
    values = np.zeros((len(slices), 20, 8, 8), dtype=bool)
    for value, drawn in zip(values, slices, strict=True):
        value[list(drawn), 2:6, 2:6] = True
    return Masks(values, ("ann", "ben", "cem")[: len(slices)], origin=(3, 0, 0), frame=(40, 8, 8))


def test_raters_who_all_draw_every_second_slice_are_listed_together():
    (notice,) = skipped_slices(bars(range(4, 13, 2), range(4, 11, 2)))
    assert notice.startswith("ann and ben may have drawn only some slices: slices 9, 11, 13 and 15 are empty")
    (notice,) = skipped_slices(bars(range(4, 13, 2), range(3, 13), range(3, 13)))
    assert notice.startswith("ann may have drawn only some slices: slices 9, 11, 13 and 15 are empty")


def test_separate_parts_are_not_taken_for_skipped_slices():
    parts = bars(range(0, 20), range(0, 20))
    parts.values[:, [5, 6, 13]] = False  # three parts above each other
    assert skipped_slices(parts) == ()
    nodes = bars(range(4, 9, 2), range(4, 9, 2))
    nodes.values[:, 6] = np.roll(nodes.values[:, 6], 4, axis=-1)
    assert skipped_slices(nodes) == ()


def test_a_rater_of_part_of_the_slices_is_listed():
    (notice,) = skipped_slices(bars(range(2, 18), range(3, 17), range(3, 8)))
    assert notice.startswith(
        "cem marked nothing on slices 12, 13, 14, 15, 16, 17 and 3 more, which most other"
    )
    assert skipped_slices(bars(range(2, 18), range(3, 17), range(3, 13))) == ()  # 4 of 14
    assert skipped_slices(bars(range(2, 5), range(2, 5), range(2, 3))) == ()  # a small structure
