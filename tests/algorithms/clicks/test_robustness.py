"""Decisions that depend on which images are fused together are counted, and announced where they are many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks.fusion import FusionPlan, fuse, learn_from_each_other
from raterscope.algorithms.clicks.robustness import (
    add_half_detections,
    depends_on_grouping,
    grouping_notice,
    rejection_notice,
    run_notices,
)
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import made
from tests.algorithms.clicks.test_settling import smears

PLAN = FusionPlan.make("oem", {"interval_draws": "20"})


@pytest.fixture(scope="module")
def images():
    return smears(6)


@pytest.fixture(scope="module")
def alone(images):
    return [fuse(image, PLAN) for image in images]


def together(images, alone):
    return add_half_detections(images, alone, learn_from_each_other(images, alone, PLAN), PLAN)


@pytest.fixture(scope="module")
def fused(images, alone):
    return together(images, alone)


def test_a_run_of_few_structures_reports_that_its_halves_disagree(images, alone, fused):
    differ = 0
    for half in (0, 1):
        for fusion, other in zip(fused[half::2], learn_from_each_other(images[half::2], alone[half::2], PLAN),
                              strict=True):  # fmt: skip
            differ += int((fusion.detection.detected != other.detection.detected).sum())
    detected = sum(int(fusion.detection.detected.sum()) for fusion in fused)
    assert differ > 0.02 * detected
    notice = grouping_notice(fused)
    spots = sum(int(depends_on_grouping(item).sum()) for item in fused)
    assert notice is not None
    assert notice.startswith(f"{spots} decisions depend on which images are fused together: {detected} ")
    assert notice in run_notices(fused)


def test_no_notice_where_the_crowd_agrees():
    images = [separated_crowd(20, seed=seed).clicks for seed in range(3)]
    fused = together(images, [fuse(image, PLAN) for image in images])
    assert all(fusion.halves.shape == (2, len(fusion.clustering)) for fusion in fused)
    assert grouping_notice(fused) is None


def test_the_order_of_images_does_not_matter(images, alone, fused):
    turned = together(images[::-1], alone[::-1])[::-1]
    for fusion, other in zip(fused, turned, strict=True):
        np.testing.assert_array_equal(fusion.halves, other.halves)


def test_images_that_do_not_learn_from_others_have_no_halves(images, alone):
    assert add_half_detections(images[:1], alone[:1], alone[:1], PLAN) == alone[:1]
    voted = FusionPlan.make("oem", {"detector": "majority"})
    assert add_half_detections(images, alone, alone, voted) == alone
    assert grouping_notice(alone) is None
    assert not depends_on_grouping(alone[0]).any()


def test_what_the_expert_decided_does_not_depend_on_the_grouping(images, fused):
    loose = int(np.flatnonzero(depends_on_grouping(fused[0]))[0])
    x, y = fused[0].clustering.mean[loose]
    known = replace(images[0].known, x=np.array([x]), y=np.array([y]), present=np.array([True]))
    decided = [replace(images[0], known=known), *images[1:]]
    second = together(decided, [fuse(image, PLAN) for image in decided])[0]
    assert second.verdict.max() == 1
    assert not depends_on_grouping(second)[second.verdict == 1].any()


def test_a_run_without_spots_says_why():
    """With two annotators and one common spot, the scatter is estimated from pairs of different spots."""
    points = [(150, 150), (156, 150), (47, 227), (94, 108), (166, 278), (1, 49), (216, 118), (86, 289)]
    clicks = made(points, [0, 1, 0, 0, 0, 1, 1, 1], extent=(0.0, 0.0, 300.0, 300.0))
    empty, found = (fuse(clicks, FusionPlan.make("oem", texts)) for texts in ({}, {"click_scatter": "6"}))
    assert (len(empty.clustering), len(found.clustering)) == (0, 1)
    (notice,) = run_notices([empty])
    assert f"at a click scatter of {empty.clustering.scatter:.3g} px" in notice
    assert "set the click scatter" in notice
    assert not any("No spots" in notice for notice in run_notices([empty, found]))
    (notice,) = run_notices([fuse(made(points[:2], [0, 0], 2), PLAN)])
    assert "clicks of two annotators" in notice


def test_rejections_that_deny_other_spots_are_named_until_one_spot_is_accepted(fused):
    denied = [
        replace(
            fusion,
            detection=replace(
                fusion.detection,
                undecided=np.full(len(fusion.marked.T), 0.9),
                detected=np.zeros(len(fusion.marked.T), dtype=np.bool_),
            ),
        )
        for fusion in fused
    ]
    spots = sum(len(fusion.marked.T) for fusion in denied)

    def with_verdicts(*verdicts):
        verdict = np.full(len(denied[0].marked.T), -1, dtype=np.int8)
        verdict[: len(verdicts)] = verdicts
        return [replace(denied[0], verdict=verdict), *denied[1:]]

    notice = rejection_notice(with_verdicts(0, 0, 0, 0, 0))
    assert notice is not None
    assert notice.startswith(
        f"All 5 decisions are rejections. They are why {spots - 5} undecided spots are not"
    )
    assert notice in run_notices(with_verdicts(0, 0, 0, 0, 0))
    assert rejection_notice(with_verdicts(0, 0, 0, 0)) is None
    assert rejection_notice(with_verdicts(0, 0, 0, 0, 0, 1)) is None
    assert rejection_notice([]) is None
