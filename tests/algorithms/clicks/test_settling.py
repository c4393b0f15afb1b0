"""Streams of several images that settle: the answer is a fusion's, in whatever order the clicks came."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks.fusion import FusionPlan, fuse, isolation_notice, learn_from_each_other
from raterscope.algorithms.clicks.image_priors import experience_of, experiences_of
from raterscope.algorithms.clicks.stopping import count_changes
from raterscope.algorithms.clicks.stream import (
    StreamPlan,
    advance_stream,
    begin_stream,
    can_share_streams,
    restart_stream,
    share_streams,
)
from raterscope.algorithms.simulation.click_crowds import gather_annotators, simulate_clicks
from raterscope.algorithms.simulation.smears import render_smear
from tests.algorithms.clicks.crowds import in_order, until

PLAN = StreamPlan()


IMAGES = 6


@functools.cache
def draw_smear(seed):
    return render_smear(seed, parasites=4, artefacts=14)


@functools.cache
def smears(seed):
    """Simulate images with few structures and many artefacts, which a single image cannot distinguish."""
    crowd = gather_annotators(24, seed)
    drawn = [draw_smear(seed + n) for n in range(1, IMAGES + 1)]
    clicked = (simulate_clicks(smear, crowd[n % 2 :: 2], seed + n) for n, smear in enumerate(drawn))
    return tuple(replace(clicks, time=None) for clicks in clicked)


def detections(fusions):
    return sum(int(fusion.detection.detected.sum()) for fusion in fusions)


def differing(fusions, others):
    return sum(count_changes(fusion, other) for fusion, other in zip(fusions, others, strict=True))


@pytest.fixture(scope="module")
def images():
    return smears(6)


@pytest.fixture(scope="module")
def fused(images):
    return learn_from_each_other(images, [fuse(image) for image in images], FusionPlan())


@pytest.mark.parametrize("seed", [0, 1])
def test_streams_settle_where_a_fusion_of_all_images_is(images, fused, seed):
    generator = np.random.default_rng(seed)
    ordered = [in_order(image, generator.permutation(len(image.annotators))) for image in images]
    states = []
    for clicks in ordered:
        state = begin_stream(until(clicks, 4), PLAN)
        for number in (8, len(clicks.annotators)):
            state = advance_stream(state, until(clicks, number), PLAN)
        states.append(state)
    assert differing(fused, [state.fusion for state in states]) > 0.3 * detections(fused)
    alone = [restart_stream(clicks, PLAN, state) for clicks, state in zip(ordered, states, strict=True)]
    settled = share_streams(ordered, alone, PLAN)
    assert differing(fused, [state.fusion for state in settled]) <= 0.02 * detections(fused)
    assert [state.step for state in settled] == [state.step for state in states]


def test_a_settled_stream_uses_evidence_of_the_other_images(images):
    early = [until(image, len(image.annotators) - 1) for image in images]
    settled = share_streams(early, [restart_stream(item, PLAN) for item in early], PLAN)
    fixed = experiences_of(
        [state.fusion for state in settled], [clicks_of_image.annotators for clicks_of_image in early]
    )
    rows = list(zip(settled, images, fixed, strict=True))
    went_on = [advance_stream(state, clicks, PLAN, experience=row).fusion for state, clicks, row in rows]
    at_once = [fuse(clicks, FusionPlan(), experience=row) for _, clicks, row in rows]
    assert differing(at_once, went_on) <= 0.05 * detections(at_once)


def test_images_that_are_not_followed_teach_too(images, fused):
    others = list(zip(images[1:], fused[1:], strict=True))
    (settled,) = share_streams(images[:1], [restart_stream(images[0], PLAN)], PLAN, others=others)
    assert count_changes(fused[0], settled.fusion) == 0


def test_a_fusion_does_not_depend_on_earlier_fusions_of_the_same_clicks(images, fused):
    for fusion, again in zip(fused, learn_from_each_other(images, fused, FusionPlan()), strict=True):
        assert np.array_equal(fusion.detection.posterior, again.detection.posterior)


def test_each_image_uses_the_results_of_the_others(images, fused):
    names = [image.annotators for image in images]
    for row, item in enumerate(experiences_of(fused, names)):
        remaining = [number for number in range(len(images)) if number != row]
        other = experience_of(
            [fused[number] for number in remaining], [names[number] for number in remaining]
        )
        assert item.images == other.images
        rows = item.rows(other.annotators)
        for part in ("hits", "lured", "structures", "artefacts", "inliers", "outliers"):
            np.testing.assert_allclose(getattr(item, part)[rows], getattr(other, part), atol=1e-9)
        for part in ("ease", "allure"):
            np.testing.assert_allclose(getattr(item, part), getattr(other, part), atol=1e-9)


def test_an_image_without_others_has_no_experience(fused, images):
    (first,) = experiences_of(fused[:1], [images[0].annotators])
    assert not first.images
    assert experiences_of([], []) == []


def test_a_run_of_some_images_lists_what_it_does_not_use():
    assert isolation_notice(FusionPlan(), 6, 6) is None
    assert isolation_notice(FusionPlan.make("oem", {"detector": "majority"}), 1, 6) is None
    assert "5 other images were not fused" in (isolation_notice(FusionPlan(), 1, 6) or "").lower()
    assert (isolation_notice(FusionPlan(), 1, 2) or "").startswith("Another image was not fused")


def test_the_published_algorithm_is_left_as_it_is():
    assert can_share_streams(PLAN)
    assert not can_share_streams(StreamPlan.make({"update": "printed"}))
