"""Several structures at once: as the model of one where there is one, and consistent where there are more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from raterscope.algorithms.masks import robust
from raterscope.algorithms.masks.data import OPEN, Masks
from raterscope.algorithms.masks.multiclass import log_ratios, multiclass
from raterscope.algorithms.progress import Cancelled

SETTINGS = {
    "gaussian": robust.GaussianSettings,
    "laplace": robust.LaplaceSettings,
    "student": robust.StudentSettings,
    "gdp": robust.GDPSettings,
}


def _organ(seed: int = 0, raters: int = 4) -> tuple[Masks, np.ndarray]:
    """A ball with a core off its middle, as each rater draws both; and the truth."""
    rng = np.random.default_rng(seed)
    z, y, x = np.mgrid[:20, :28, :28] - np.array([10, 14, 14]).reshape(3, 1, 1, 1)

    def labels(shake: float) -> np.ndarray:
        waves = [ndimage.gaussian_filter(rng.standard_normal(z.shape), 2) for _ in range(2)]
        outer, inner = (shake * (wave - wave.mean()) / wave.std() for wave in waves)
        ball = 9 - np.sqrt(z**2 + y**2 + x**2) + outer > 0
        core = 5 - np.sqrt(z**2 + y**2 + (x - 3) ** 2) + inner > 0
        return np.where(ball, np.where(core, 2, 1), 0).astype(np.uint8)

    truth = labels(0.0)
    values = np.stack([labels(0.4 + 0.3 * p) for p in range(raters)])
    return Masks(values, tuple("abcdefg"[:raters]), structures=("rim", "core")), truth


def _as_labels(mask: np.ndarray) -> np.ndarray:
    return sum((s + 1) * item.astype(int) for s, item in enumerate(mask))


def _dice(item: np.ndarray, second: np.ndarray) -> float:
    return 2 * np.sum(item & second) / (item.sum() + second.sum())


@pytest.mark.parametrize("name", SETTINGS)
def test_one_structure_is_fused_as_by_the_model_of_one_structure(name: str) -> None:
    masks, _ = _organ()
    first = Masks((masks.values > 0).astype(np.uint8), masks.annotators)
    settings = SETTINGS[name](max_iterations=30)
    together, alone = multiclass(first, settings, name), getattr(robust, name)(first, settings)
    np.testing.assert_array_equal(together.mask, alone.mask)
    np.testing.assert_allclose(together.traces[0].objective, alone.traces[0].objective, rtol=1e-5)
    np.testing.assert_allclose(together.distance, alone.distance, atol=2e-3)
    np.testing.assert_allclose(together.deviation, alone.deviation, rtol=5e-3, atol=1e-4)
    np.testing.assert_allclose(together.bias, alone.bias, atol=1e-3)
    np.testing.assert_allclose(together.sigma, alone.sigma, rtol=5e-3)
    if name != "gaussian":
        np.testing.assert_allclose(together.tau, alone.tau, rtol=2e-2)


@pytest.mark.parametrize(
    ("name", "bound", "voxels"), [("gaussian", -785600.996, 6699), ("laplace", -598665.375, 6786)]
)
def test_a_nodule_of_four_readers_as_computed_independently(
    name: str, bound: float, voxels: int, real_data: Path
) -> None:
    with np.load(real_data / "masks/lidc/nodulebin/nodulebin_03.npz") as file:
        masks = Masks(file["masks"].astype(np.uint8), tuple("abcd"))
    clip = float(np.log((1 - 1e-6) / 1e-6) / 5)
    fusion = multiclass(masks, SETTINGS[name](clip=clip, floor=False, tolerance=0.0, max_iterations=20), name)
    assert fusion.traces[0].objective[-1] == pytest.approx(bound, rel=1e-6)
    assert fusion.mask.sum() == voxels


@pytest.mark.parametrize("floor", [True, False])
def test_one_structure_has_the_spatial_prior_of_the_model_of_one_structure(floor: bool) -> None:
    masks, _ = _organ()
    first = Masks((masks.values > 0).astype(np.uint8), masks.annotators)
    settings = robust.LaplaceSettings(max_iterations=12, tolerance=0.0, floor=floor, spatial_prior=True)
    together, alone = multiclass(first, settings), robust.laplace(first, settings)
    np.testing.assert_allclose(together.traces[0].objective, alone.traces[0].objective, rtol=1e-4)
    assert (together.mask != alone.mask).sum() <= 2


def test_one_structure_has_the_factorised_scales_of_the_model_of_one_structure() -> None:
    masks, _ = _organ()
    first = Masks((masks.values > 0).astype(np.uint8), masks.annotators)
    settings = robust.GDPSettings(max_iterations=30, scales="factorised")
    together, alone = multiclass(first, settings, "gdp"), robust.gdp(first, settings)
    np.testing.assert_array_equal(together.mask, alone.mask)
    np.testing.assert_allclose(together.traces[0].objective, alone.traces[0].objective, rtol=1e-5)


def test_the_spatial_prior_smooths_several_structures() -> None:
    masks, truth = _organ(seed=2)
    settings = robust.LaplaceSettings(max_iterations=20)
    plain = multiclass(masks, settings)
    smooth = multiclass(masks, replace(settings, spatial_prior=True, spatial_radius=5.0))

    def roughness(distance: np.ndarray) -> float:
        return float(sum(np.abs(np.diff(distance, 2, axis=axis)).sum() for axis in (1, 2, 3)))

    assert roughness(smooth.distance) < roughness(plain.distance)
    assert not smooth.notices
    for label in (1, 2):
        assert _dice(_as_labels(smooth.mask) == label, truth == label) > 0.8


def test_settled_voxels_are_given_as_settled_with_the_spatial_prior() -> None:
    masks, _ = _organ()
    known = np.full(masks.shape, OPEN, dtype=np.int8)
    known[2:5, 3:9, 3:9] = 2
    settings = robust.LaplaceSettings(max_iterations=10, spatial_prior=True)
    fusion = multiclass(replace(masks, known=known), settings)
    assert fusion.mask[1][known == 2].all()


@pytest.mark.parametrize(("floor", "smooth"), [(True, False), (False, True)])
@pytest.mark.parametrize("name", [*SETTINGS, "factorised"])
def test_no_update_lowers_the_bound(name: str, floor: bool, smooth: bool) -> None:
    masks, _ = _organ()
    settings = robust.GDPSettings(scales="factorised") if name == "factorised" else SETTINGS[name]()
    settings = replace(settings, floor=floor, max_iterations=15, tolerance=0.0, spatial_prior=smooth)
    fusion = multiclass(masks, settings, "gdp" if name == "factorised" else name)
    objective = fusion.traces[0].objective
    assert (np.diff(objective) >= -1e-6 * np.abs(objective[1:])).all()


def test_two_structures_are_found_and_do_not_overlap() -> None:
    masks, truth = _organ(raters=5)
    fusion = multiclass(masks)
    assert not (fusion.mask[0] & fusion.mask[1]).any()
    for label in (1, 2):
        scores = [_dice(labels == label, truth == label) for labels in masks.values]
        assert _dice(_as_labels(fusion.mask) == label, truth == label) > max(0.85, np.mean(scores))
    np.testing.assert_array_equal(fusion.distance > 0, fusion.mask)
    assert (fusion.probability.sum(axis=0) <= 1 + 1e-5).all()
    assert (fusion.weight.astype(int).sum(axis=1) == 255).all()
    assert (fusion.variance[:, 0] < fusion.variance[:, -1]).all()


def test_the_names_of_structures_do_not_matter() -> None:
    masks, _ = _organ()
    turned = replace(
        masks, values=np.array([0, 2, 1], dtype=np.uint8)[masks.values], structures=("core", "rim")
    )
    straight, other = multiclass(masks), multiclass(turned)
    np.testing.assert_array_equal(straight.mask, other.mask[::-1])
    np.testing.assert_allclose(straight.variance, other.variance[::-1], rtol=1e-4)


def test_relabelling_the_raters_permutes_their_figures() -> None:
    masks, _ = _organ()
    order = [2, 0, 3, 1]
    turned = replace(masks, values=masks.values[order], annotators=tuple("cadb"))
    straight, other = multiclass(masks), multiclass(turned)
    np.testing.assert_array_equal(straight.mask, other.mask)
    np.testing.assert_allclose(straight.variance[:, order], other.variance, rtol=1e-4)


def test_log_ratios_hold_every_label_that_was_given() -> None:
    masks, _ = _organ()
    ratios = log_ratios(masks, 2.5, 5.0)
    every = np.concatenate([np.zeros_like(ratios[:, :1]), ratios], axis=1)
    np.testing.assert_array_equal(every.argmax(axis=1), masks.values)
    assert np.abs(ratios).max() <= 2.5


def test_log_ratios_of_probabilities_keep_the_order_of_the_classes() -> None:
    rng = np.random.default_rng(1)
    every = rng.dirichlet([0.02] * 4, size=(2, 3, 5, 7)).astype(np.float32)
    inside = np.ascontiguousarray(np.moveaxis(every[..., 1:], -1, 1)).clip(0, 1)
    masks = Masks(inside, ("a", "b"), structures=("s", "t", "u"))
    ratios = log_ratios(masks, 2.763, 5.0)
    best = np.concatenate([np.zeros_like(ratios[:, :1]), ratios], axis=1).argmax(axis=1)
    clear = np.sort(every, axis=-1)[..., -1] > 0.5001
    np.testing.assert_array_equal(best[clear], every.argmax(axis=-1)[clear])
    assert np.isfinite(ratios).all()


def test_settled_voxels_are_given_as_settled() -> None:
    masks, _ = _organ()
    known = np.full(masks.shape, -1, dtype=np.int8)
    known[:8], known[12:, :10] = 0, 2
    fusion = multiclass(replace(masks, known=known))
    settled = known >= 0
    np.testing.assert_array_equal(_as_labels(fusion.mask)[settled], known[settled])
    np.testing.assert_allclose(fusion.probability[1][settled], known[settled] == 2)


def test_raters_who_agree_are_returned() -> None:
    masks, _ = _organ(raters=1)
    for count in (1, 3):
        same = Masks(
            np.repeat(masks.values, count, axis=0), tuple("abc"[:count]), structures=masks.structures
        )
        np.testing.assert_array_equal(_as_labels(multiclass(same).mask), masks.values[0])


def test_masks_without_a_voxel_give_none() -> None:
    empty = Masks(np.zeros((3, 2, 6, 6), dtype=np.uint8), tuple("abc"), structures=("rim", "core"))
    fusion = multiclass(empty)
    assert not fusion.mask.any()
    assert np.isfinite(fusion.probability).all()


def test_a_structure_no_annotator_marked_is_reported() -> None:
    masks, _ = _organ()
    fusion = multiclass(replace(masks, values=np.minimum(masks.values, 1)))
    assert fusion.mask[0].any()
    assert not fusion.mask[1].any()
    assert any("core" in notice for notice in fusion.notices)


def test_cancelling_stops_within_an_iteration() -> None:
    masks, _ = _organ()
    calls = []

    def watch(fraction: float, words: str, **_: object) -> None:
        calls.append(fraction)
        if "iteration 2" in words:
            raise Cancelled

    with pytest.raises(Cancelled):
        multiclass(masks, watch=watch)
    assert calls == sorted(calls)
