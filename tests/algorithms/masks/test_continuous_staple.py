"""Continuous STAPLE: a real nodule, the equations voxel by voxel, and raters who agree."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.masks.continuous_staple import ContinuousSTAPLESettings, continuous_staple
from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.distance import signed_distance
from tests.algorithms.masks.staple_cases import ball, named, nodule

CLIP = float(np.log((1 - 1e-6) / 1e-6) / 5)
FRAME = ContinuousSTAPLESettings(clip=CLIP, domain="frame")
BALLS = np.stack([ball((17, 18, 19), (8, 8, 8 + p), 5 + 0.6 * p) for p in range(3)])


def test_a_real_nodule(real_data):
    """In units of logits, biases are those in mm times the slope of 5 / mm, variances that squared."""
    fusion = continuous_staple(nodule(real_data), FRAME)
    assert fusion.mask.sum() == 6700
    assert 25 * fusion.variance[0] == pytest.approx([10.574306, 1.653006, 6.293600, 1.978459], rel=1e-4)
    assert np.array_equal(fusion.sigma, fusion.variance)
    assert 5 * fusion.bias[0] == pytest.approx([0.686788, -0.479265, 0.472085, -0.476365], abs=1e-4)


def test_it_is_a_fixed_point_of_the_equations_voxel_by_voxel():
    fusion = continuous_staple(named(BALLS), FRAME)
    data = np.stack([signed_distance(mask, (1.0, 1.0, 1.0), CLIP) for mask in BALLS]).astype(float)
    bias, variance = (item[0][:, None, None, None] for item in (fusion.bias, fusion.variance))
    truth = ((data - bias) / variance).sum(axis=0) / (1 / variance).sum(axis=0)
    remaining = (data - truth - bias) ** 2
    assert (data - truth).mean(axis=(1, 2, 3)) == pytest.approx(fusion.bias[0], abs=1e-5)
    assert remaining.mean(axis=(1, 2, 3)) + 1 / (1 / variance).sum() == pytest.approx(
        fusion.variance[0], abs=1e-6
    )
    box = tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))
    assert fusion.distance[0] == pytest.approx(truth[box], abs=1e-5)


def test_the_log_likelihood_never_falls():
    objective = continuous_staple(named(BALLS)).traces[0].objective
    assert len(objective) > 5
    assert np.diff(objective).min() > -1e-9 * abs(objective[-1])


def test_a_rater_who_marks_more_has_the_larger_bias():
    sizes = np.stack([ball((21, 21, 21), (10, 10, 10), radius) for radius in (5.0, 5.0, 7.0)])
    bias = continuous_staple(named(sizes)).bias[0]
    assert bias[2] > bias[0] == pytest.approx(bias[1], abs=1e-6)


def test_the_frame_is_so_many_more_voxels():
    wide = np.pad(BALLS, ((0, 0), (9, 9), (9, 9), (9, 9)))
    part = named(BALLS, origin=(9, 9, 9), frame=wide.shape[1:])
    assert continuous_staple(part, FRAME).variance == pytest.approx(
        continuous_staple(named(wide), FRAME).variance, rel=1e-5
    )


def test_a_consensus_that_is_one_rater_is_stated_to_be():
    """The second of three nested balls is nearest to the mean, and more so with every iteration."""
    assert any("rests almost only on r2" in notice for notice in continuous_staple(named(BALLS)).notices)


def test_raters_who_agree_or_marked_nothing_and_one_alone():
    solid = BALLS[0]
    same = continuous_staple(named(np.stack([solid] * 4)))
    assert same.mask.sum() == solid.sum()
    assert np.all(np.isfinite(same.variance))
    assert not continuous_staple(named(BALLS & False)).mask.any()
    assert continuous_staple(named(BALLS | True)).mask.all()
    assert continuous_staple(named(solid[None])).mask.sum() == solid.sum()


def test_probabilities_are_taken_by_their_logit():
    distance = np.stack([signed_distance(mask, (1.0, 1.0, 1.0), 1.5) for mask in BALLS]).astype(float)
    maps = (1 / (1 + np.exp(-5 * distance))).astype(np.float32)
    settings = ContinuousSTAPLESettings(clip=1.5, domain="frame")
    fusion = continuous_staple(named(maps), settings)
    plain = continuous_staple(named(BALLS), settings)
    assert fusion.mask.sum() == plain.mask.sum()
    assert fusion.variance == pytest.approx(plain.variance, rel=1e-2)


def test_settled_voxels_are_held():
    known = np.full(BALLS.shape[1:], OPEN, dtype=np.int8)
    known[8, 8, :] = 0
    known[2, 2, 2] = 1
    fusion = continuous_staple(named(BALLS, known=known))
    fixed = known[tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))]
    assert np.array_equal(fusion.mask[0][fixed != OPEN], fixed[fixed != OPEN] == 1)
    assert np.array_equal(fusion.distance[0] > 0, fusion.mask[0])
