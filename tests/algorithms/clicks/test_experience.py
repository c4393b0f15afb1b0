"""Evidence on annotators from earlier images, as the start of the next."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from raterscope.algorithms.clicks import FusionPlan, Votes, fuse
from raterscope.algorithms.clicks.dem import DEMSettings, detect_structures, problem_of
from raterscope.algorithms.clicks.image_priors import Experience, apply_experience, experience_of
from raterscope.algorithms.evaluation import match
from raterscope.algorithms.progress import silent
from tests.algorithms.clicks.crowds import made, quantius, until


def images_of(ability, number=8, structures=20, strays=2.0, seed=0, side=300.0):
    """Images on which every annotator marks a structure with the same chance, and the structures.

    `ability` gives the chances: one an annotator, or one an annotator and image.
    """
    generator = np.random.default_rng(seed)
    ability = np.broadcast_to(ability, (number, np.shape(ability)[-1]))
    images = []
    for chances in ability:
        truth = generator.uniform(15, side - 15, (structures, 2))
        points, annotators = [], []
        for annotator, chance in enumerate(chances):
            visible = generator.random(structures) < chance
            wide = generator.uniform(0, side, (generator.poisson(strays), 2))
            points += [truth[visible] + generator.normal(0, 2, (visible.sum(), 2)), wide]
            annotators += [annotator] * (visible.sum() + len(wide))
        images.append((made(np.vstack(points), annotators, len(chances), (0.0, 0.0, side, side)), truth))
    return images


def learnt(images, plan=None) -> Experience:
    return experience_of(
        [fuse(clicks, plan) for clicks, _ in images], [image.annotators for image, _ in images]
    )


def same(first, second) -> bool:
    return all(
        np.array_equal(
            getattr(first, field.name), getattr(second, field.name), equal_nan=field.type != "tuple"
        )
        if isinstance(getattr(first, field.name), np.ndarray)
        else getattr(first, field.name) == getattr(second, field.name)
        for field in fields(first)
    )


ABLE = np.array([0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.4, 0.2])


def test_without_experience_nothing_is_different():
    clicks, _ = images_of(ABLE, 1)[0]
    alone = fuse(clicks)
    for experience in (None, Experience.none(), experience_of([], [])):
        other = fuse(clicks, experience=experience)
        assert same(other.detection, alone.detection)
        assert same(other.clustering, replace(alone.clustering, trace=other.clustering.trace))


def test_images_without_detections_add_no_evidence():
    empty = made([], [], 4)
    assert experience_of([fuse(empty)], [empty.annotators]).images == 0


def test_annotators_are_known_by_their_names():
    images = images_of(ABLE, 6)
    experience = learnt(images)
    assert experience.images == 6
    assert experience.annotators == images[0][0].annotators
    assert spearmanr(experience.hits / experience.structures.sum(axis=1), ABLE)[0] > 0.95
    assert experience.rows(["a3", "nobody"]).tolist() == [3, -1]


def test_clicks_are_known_as_those_of_clusters_and_those_that_strayed():
    images = images_of(ABLE, 6, strays=4.0)
    experience = learnt(images)
    clicks = np.sum([image.counts() for image, _ in images], axis=0)
    assert experience.inliers + experience.outliers == pytest.approx(clicks)
    assert experience.outliers.mean() == pytest.approx(6 * 4.0, rel=0.2)


def test_the_order_of_images_makes_no_difference():
    images = images_of(ABLE, 5)
    first, other = learnt(images), learnt(images[::-1])
    for field in fields(Experience):
        assert getattr(first, field.name) == pytest.approx(getattr(other, field.name)), field.name


def test_annotators_who_differ_from_image_to_image_are_trusted_less():
    generator = np.random.default_rng(1)
    steady = learnt(images_of(ABLE, 10))
    changing = learnt(images_of(generator.uniform(0.1, 0.95, (10, 8)), 10))
    assert steady.votes > 4 * changing.votes


def test_one_image_is_hardly_trusted():
    assert learnt(images_of(ABLE, 1)).votes <= 2


def test_experience_distinguishes_able_annotators_from_others_at_once():
    """Two of four annotators marked each cluster: the able ones on one, the others on the other."""
    experience = learnt(images_of(ABLE, 10))
    marked = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    votes = Votes(marked, np.full(2, 0.5), np.full(2, -1, dtype=np.int8), np.full(4, 0.01), 500.0)
    settings = DEMSettings(interval_draws=20)
    names = ["a0", "a1", "a6", "a7"]
    alone = detect_structures(problem_of(votes, settings), votes, settings, silent)
    helped = detect_structures(
        apply_experience(problem_of(votes, settings), names, experience), votes, settings, silent
    )
    assert alone.posterior[0] == pytest.approx(alone.posterior[1])
    assert helped.posterior[0] > helped.posterior[1] + 0.05
    assert (helped.sensitivity[:2] > helped.sensitivity[2:] + 0.2).all()


def test_who_is_not_known_changes_no_prior_of_his_own():
    experience = learnt(images_of(ABLE, 6))
    votes = Votes(
        np.ones((2, 3), dtype=bool), np.ones(3) / 3, np.full(3, -1, np.int8), np.full(2, 0.01), 99.0
    )
    problem = problem_of(votes, DEMSettings())
    prior = apply_experience(problem, ["a0", "stranger"], experience).prior
    assert prior.hit[1] == pytest.approx(problem.prior.hit[1])
    assert prior.miss[1] == pytest.approx(problem.prior.miss[1])
    assert prior.hit[0] > problem.prior.hit[0]


@pytest.mark.parametrize(
    "plan",
    [FusionPlan.make("oem", {"learn_across_images": "no"}), FusionPlan.make("oem", {"detector": "majority"})],
)
def test_a_plan_that_does_not_learn_across_images_is_not_helped(plan):
    experience = learnt(images_of(ABLE, 5))
    clicks, _ = images_of(ABLE, 1, seed=9)[0]
    assert same(fuse(clicks, plan, experience=experience).detection, fuse(clicks, plan).detection)


def test_a_real_crowd_is_known_from_other_images(real_data):
    images = quantius(real_data)[:9]
    fusions = [fuse(image.clicks) for image in images]
    experience = experience_of(fusions[:8], [image.clicks.annotators for image in images[:8]])
    image = images[8]
    rows = experience.rows(image.clicks.annotators)
    known = np.flatnonzero(rows >= 0)
    assert len(known) >= 20
    rate = experience.hits[rows[known]] / experience.structures[rows[known]].sum(axis=1)
    clicks = image.clicks
    result = [len(match(clicks.points[clicks.annotator == item], image.truth, 4.0)) for item in known]
    assert spearmanr(rate, result)[0] > 0.5
    helped = fuse(until(clicks, 5), experience=experience)
    assert helped.detection.detected.sum() > 0
