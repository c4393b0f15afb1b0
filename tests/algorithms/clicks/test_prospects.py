"""The model behind the stop rule: it agrees with what the run reports, and with sums over all outcomes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import betaln

from raterscope.algorithms.clicks import FusionPlan, KnownSpots, fuse
from raterscope.algorithms.clicks._prospects import (
    Newcomers,
    _new_detection_chance,
    drawn_sums,
    image_model,
)
from raterscope.algorithms.clicks._vote_model import looks
from raterscope.algorithms.clicks.dem import DEMSettings, problem_of
from raterscope.algorithms.clicks.fusion import learn_from_each_other
from raterscope.algorithms.clicks.result import Marks
from raterscope.algorithms.clicks.stopping import count_changes, image_model_of, predict_outlook, votes_on
from tests.algorithms.clicks.crowds import made, until
from tests.algorithms.clicks.test_stopping import crowd

PLAN = FusionPlan()


def faint(seed, objects, annotators=7):
    """Objects that draw few annotators, Beta(1, 3), far from each other, and few stray clicks."""
    generator = np.random.default_rng(seed)
    places = 100.0 * np.argwhere(np.ones((4, 5)))[generator.permutation(20)[:objects]] + 50
    lure = generator.beta(1, 3, objects)
    who, place = np.nonzero(generator.random((annotators, objects)) < lure)
    points = places[place] + generator.normal(0, 2, (len(place), 2))
    return made(points, who, annotators, (0.0, 0.0, 500.0, 500.0))


def rejecting(clicks, fusion, number):
    """Reject the most disputed spots, whether or not they are structures."""
    chosen = np.argsort(abs(fusion.detection.posterior - 0.5), kind="stable")[:number]
    places = fusion.clustering.mean[chosen]
    known = KnownSpots(places[:, 0], places[:, 1], np.zeros(number, dtype=bool))
    return replace(clicks, known=known)


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_after_few_decisions_the_model_agrees_with_the_run(number):
    for seed in (0, 3, 4):
        clicks, _ = crowd(8, seed=seed, strays=6.0)
        decided = rejecting(clicks, fuse(clicks, PLAN), number)
        fusion = fuse(decided, PLAN)
        model = image_model(problem_of(votes_on(decided, fusion), DEMSettings()), fusion, reported=False)
        undecided = fusion.verdict < 0
        assert undecided.sum() == len(undecided) - number
        reported = fusion.detection.posterior[undecided]
        assert model.posterior[undecided] == pytest.approx(reported, abs=0.025)


def test_the_model_of_an_image_agrees_with_a_run_of_several():
    clicks = [crowd(8, seed=seed, strays=6.0)[0] for seed in range(3)]
    alone = [fuse(image, PLAN) for image in clicks]
    clicks[0] = rejecting(clicks[0], alone[0], 4)
    alone[0] = fuse(clicks[0], PLAN)
    fusions = learn_from_each_other(clicks, alone, PLAN)
    for image, fusion in zip(clicks, fusions, strict=True):
        model = image_model_of(image, fusion, PLAN.detection)
        undecided = fusion.verdict < 0
        reported = fusion.detection.posterior[undecided]
        assert model.posterior[undecided] == pytest.approx(reported, abs=1e-5)


def test_one_decision_hardly_changes_what_is_expected_elsewhere():
    for seed in range(4):
        clicks, _ = crowd(8, seed=seed, strays=6.0)
        fusion = fuse(clicks, PLAN)
        before = predict_outlook(clicks, fusion, PLAN)
        row = int(np.argmax(fusion.detection.posterior))
        place = fusion.clustering.mean[row]
        known = KnownSpots(place[:1], place[1:], np.ones(1, dtype=bool))
        after_clicks = replace(clicks, known=known)
        after = predict_outlook(after_clicks, fuse(after_clicks, PLAN), PLAN)
        assert after.expected == pytest.approx(before.expected - before.chance[row], rel=0.1, abs=0.02)


def test_objects_that_few_annotators_see_are_expected_to_appear():
    """Artefacts that were not found count too; without them half as many changes were expected."""
    expected = happened = 0.0
    for seed in range(16):
        for objects in (8, 15):
            clicks = faint(seed, objects)
            before = fuse(until(clicks, 3), PLAN)
            expected += predict_outlook(until(clicks, 3), before, PLAN).expected
            happened += count_changes(before, fuse(until(clicks, 6), PLAN))
    assert expected == pytest.approx(happened, rel=0.3)


def test_a_crowd_of_a_thousand_is_settled():
    """The chance of so many omissions is below the smallest number."""
    clicks, _ = crowd(1000, structures=5, strays=0.1)
    ahead = predict_outlook(clicks, fuse(clicks, PLAN), PLAN)
    assert ahead.detections == 5
    assert ahead.expected < 0.01


def test_sums_over_those_who_marked_have_the_moments_of_all_combinations():
    generator = np.random.default_rng(0)
    odds, stray = generator.normal(0, 0.7, 12), generator.normal(-3, 0.7, 12)
    values, number = np.stack([odds, stray]), np.arange(13.0)
    mean, covariance = drawn_sums(odds, np.ones(12), values, number)
    for marks in (2, 4, 6, 9):
        chosen = [list(rows) for rows in combinations(range(12), marks)]
        weight = np.exp([odds[rows].sum() for rows in chosen])
        sums = np.array([values[:, rows].sum(axis=1) for rows in chosen]).T
        assert mean[:, marks] == pytest.approx(np.average(sums, axis=1, weights=weight), abs=0.06)
        exact = np.cov(sums, aweights=weight, ddof=0)
        assert covariance[:, :, marks] == pytest.approx(exact, rel=0.15, abs=0.05)
    assert mean[:, 12] == pytest.approx(values.sum(axis=1), abs=1e-6)


@pytest.mark.parametrize(("annotators", "error"), [(6, 0.02), (12, 0.013)])
def test_a_new_cluster_is_a_detection_as_often_as_by_em(annotators, error):
    """Compared with EM's posteriors of all clusters of so many marks, by the model's rates."""
    none = Newcomers(np.empty((0, 13)), np.empty(0))
    errors = []
    for seed in range(4):
        clicks, _ = crowd(annotators, seed=seed, strays=8.0)
        model = image_model_of(clicks, fuse(clicks, PLAN), PLAN.detection)
        chances = _new_detection_chance(model, none, 0.5)
        problem, (first, second) = model.problem, model.problem.prior.artefact
        for marks in (2, 3, 4):
            sets = list(combinations(range(annotators), marks))
            marked = np.array([[annotator in each for each in sets] for annotator in range(annotators)])
            count = np.full(len(sets), float(marks))
            drawn = replace(
                problem, marks=Marks.of(marked), count=count,
                known=np.zeros(len(count), dtype=bool), truth=np.zeros(len(count)), rest=np.zeros(len(count)),
                artefact=betaln(first + count, second + problem.crowd - count) - betaln(first, second),
            )  # fmt: skip
            present = (
                looks(drawn, model.state)[0].present * model.structure_share.mean(count / annotators) >= 0.5
            )
            rate, stray = model.rate, model.state.chance[:, None]
            structure = np.where(marked[..., None], rate[:, None], 1 - rate[:, None]).prod(axis=0)
            weights = (
                structure @ model.state.share,
                np.where(marked, stray, 1 - stray).prod(axis=0),
                np.ones(len(sets)),
            )
            for chance, weight in zip(chances, weights, strict=True):
                errors.append(chance[marks] - np.average(present, weights=weight))
    assert np.mean(np.abs(errors)) < error
