"""Weights of raters: 1 changes nothing, 0 is an exclusion, and two equal raters at one half are one."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import MaskFusion, Masks, MasksError
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, fuse_measured
from raterscope.algorithms.masks.metrics import place_in_frame
from raterscope.algorithms.simulation.mask_crowds import simulate_case

CASE = simulate_case(1, shape=(4, 32, 32), raters=5)
MASKS = Masks(CASE.masks, CASE.annotators, CASE.spacing)
FIRST = MASKS.annotators[0]
WEIGHING = [name for name, algorithm in FUSERS.items() if algorithm.weighs]
PLANS = [*((name, {}) for name in WEIGHING), ("staple", {"mrf": "0.5"}), ("laplace", {"spatial_prior": "on"})]


def probability(fusion: MaskFusion) -> np.ndarray:
    return place_in_frame(fusion, fusion.probability[0], (0, 0, 0), fusion.frame)


def fused(masks: Masks, name: str, settings: dict[str, str] | None = None) -> np.ndarray:
    return probability(fuse(masks, MaskPlan.make(name, settings or {})))


@functools.cache
def unweighted(name: str) -> MaskFusion:
    return fuse(MASKS, MaskPlan.make(name))


def test_most_methods_weigh():
    assert set(FUSERS) - set(WEIGHING) == {"mixture", "pstaple", "continuous-staple"}


@pytest.mark.parametrize(("name", "settings"), PLANS)
def test_weight_1_changes_nothing_and_0_excludes(name, settings):
    full, without = fused(MASKS, name, settings), fused(MASKS.without({FIRST}), name, settings)
    assert (fused(MASKS.with_weights({FIRST: 1.0}), name, settings) == full).all()
    assert (fused(MASKS.with_weights({FIRST: 0.0}), name, settings) == without).all()
    assert fused(MASKS.with_weights({FIRST: 1 - 1e-7}), name, settings) == pytest.approx(full, abs=1e-3)
    assert fused(MASKS.with_weights({FIRST: 1e-9}), name, settings) == pytest.approx(without, abs=0.02)


@pytest.mark.parametrize("name", WEIGHING)
def test_two_equal_raters_at_one_half_count_as_one(name):
    twin = replace(
        MASKS, values=np.concatenate([MASKS.values, MASKS.values[:1]]), annotators=(*MASKS.annotators, "twin")
    )
    fusion = fuse(twin.with_weights({FIRST: 0.5, "twin": 0.5}), MaskPlan.make(name))
    assert probability(fusion) == pytest.approx(probability(unweighted(name)), abs=0.02)
    if fusion.weight is not None:
        single = unweighted(name).weight.astype(int)
        assert np.abs(fusion.weight[0, 0].astype(int) + fusion.weight[0, -1] - single[0, 0]).max() <= 6


def test_probability_maps_are_averaged_with_weights():
    maps = np.stack([np.full((2, 3, 3), share, dtype=np.float32) for share in (0.2, 0.8)])
    masks = Masks(maps, ("anna", "ben")).with_weights({"anna": 0.25})
    assert probability(fuse(masks, MaskPlan.make("majority"))) == pytest.approx((0.05 + 0.8) / 1.25)


@pytest.mark.parametrize("name", ["mixture", "pstaple", "continuous-staple"])
def test_a_method_without_weights_counts_all_fully_with_a_notice(name):
    fusion, _ = fuse_measured(MASKS.with_weights({FIRST: 0.5}), MaskPlan.make(name))
    assert (probability(fusion) == probability(unweighted(name))).all()
    assert "cannot down-weight annotators: all count fully" in fusion.notices[-1]


def test_structures_fused_as_classes_of_one_model_cannot_be_weighted():
    values = MASKS.values.astype(np.uint8)
    values[:, :, :24] *= 2
    labels = Masks(values, MASKS.annotators, MASKS.spacing, structures=("node", "gland"))
    fusion = fuse(labels.with_weights({FIRST: 0.5}), MaskPlan.make("laplace"))
    assert "cannot down-weight annotators" in fusion.notices[-1]
    majority = fuse(labels.with_weights({FIRST: 0.5}), MaskPlan.make("majority"))
    assert not any("cannot" in notice for notice in majority.notices)


def test_a_weight_outside_0_to_1_is_refused():
    with pytest.raises(MasksError, match="expected more than 0, at most 1"):
        MASKS.with_weights({FIRST: -1.0})
