"""Active learning: annotators who correct most errors come first."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.clicks import FusionPlan, fuse
from raterscope.algorithms.clicks.image_priors import Experience, experience_of
from raterscope.algorithms.clicks.stopping import rank_annotators, rank_images
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.clicks.crowds import in_order, made, quantius, until
from tests.algorithms.clicks.test_experience import images_of, learnt

PLAN = FusionPlan()
ABLE = np.array([0.7, 0.65, 0.6, 0.75, 0.95, 0.8, 0.5, 0.2])
"""The first four have looked."""


@pytest.fixture(scope="module")
def experience() -> Experience:
    return learnt(images_of(ABLE, 10))


def an_image(seed=5):
    return until(images_of(ABLE, 1, seed=seed)[0][0], 4)


def rank(clicks, experience, annotators=None):
    return rank_annotators(clicks, fuse(clicks, PLAN), PLAN, experience, annotators)


def test_the_ablest_who_have_not_looked_come_first(experience):
    ranked = rank(an_image(), experience)
    assert ranked.annotators == ("a4", "a5", "a6", "a7")
    assert (np.diff(ranked.gain) < 0).all()
    assert ranked.gain[0] > ranked.gain_of_new > ranked.gain[-1]
    assert ranked.sensitivity == pytest.approx([0.95, 0.8, 0.5, 0.2], abs=0.2)


def test_only_eligible_annotators_are_ranked(experience):
    assert rank(an_image(), experience, {"a0", "a6", "a7", "stranger"}).annotators == ("a6", "a7")
    assert rank(an_image(), experience, ()).annotators == ()


def test_stray_clicks_count_against_an_annotator():
    generator = np.random.default_rng(2)
    images = []
    for clicks, truth in images_of(np.full(6, 0.75), 8, strays=8.0):
        wild = generator.uniform(0, 300, (40, 2))
        annotator = [*clicks.annotator, *[5] * 40]
        images.append((made([*clicks.points, *wild], annotator, 6, clicks.extent), truth))
    ranked = rank(until(images_of(np.full(6, 0.75), 1, seed=3, strays=8.0)[0][0], 3), learnt(images))
    assert ranked.annotators[-1] == "a5"
    assert ranked.reliability[-1] < 0.5 < ranked.reliability[0]


def test_nothing_is_known_before_the_first_image():
    ranked = rank(an_image(), Experience.none())
    assert len(ranked) == 0
    assert ranked.gain_of_new > 0


@pytest.mark.parametrize("looked", [0, 1])
def test_an_image_without_detections_is_ranked(experience, looked):
    ranked = rank(made([], [], looked), experience)
    assert len(ranked) == 8 - looked
    assert ranked.gain[0] >= 0


def test_the_reason_is_one_sentence(experience):
    words = rank(an_image(), experience).why(0)
    assert words.startswith("Marks 9")
    assert words.endswith(".")
    assert "Expected to correct" in words


def test_the_image_that_few_have_seen_comes_first():
    images = [clicks for clicks, _ in images_of(np.full(12, 0.7), 4)]
    clicks = [until(image, number) for image, number in zip(images, (12, 3, 8, 5), strict=True)]
    ranked = rank_images(clicks, [fuse(own, PLAN) for own in clicks], PLAN)
    assert ranked.image.tolist() == [1, 3, 2, 0]
    assert (np.diff(ranked.gain) <= 0).all()


def test_asking_can_be_cancelled(experience):
    def stop(fraction, words, **_):
        raise Cancelled

    clicks = an_image()
    with pytest.raises(Cancelled):
        rank_annotators(clicks, fuse(clicks, PLAN), PLAN, experience, watch=stop)


def test_on_a_real_crowd_chosen_annotators_find_more_than_arriving_ones(real_data):
    images = quantius(real_data)
    fusions = [fuse(image.clicks, PLAN) for image in images[:8]]
    names = [image.clicks.annotators for image in images[:8]]
    arrived, chosen = [], []
    for number in range(0, 8, 2):
        others = [other for other in range(8) if other != number]
        experience = experience_of([fusions[i] for i in others], [names[i] for i in others])
        image, own = images[number], names[number]
        order = np.random.default_rng(number).permutation(len(own)).tolist()
        start = until(in_order(image.clicks, order), 3)
        ranked = rank_annotators(start, fuse(start, PLAN), PLAN, experience, set(own))
        best = [own.index(name) for name in ranked.annotators[:3]]
        for annotator, scores in ((order[:6], arrived), ([*order[:3], *best], chosen)):
            remaining = [index for index in range(len(own)) if index not in annotator]
            fusion = fuse(until(in_order(image.clicks, [*annotator, *remaining]), 6), PLAN)
            result = fusion.clustering.mean[fusion.detection.detected]
            scores.append(evaluate(result, image.truth, 4.0).f_two)
    assert np.mean(chosen) > np.mean(arrived) + 0.01
