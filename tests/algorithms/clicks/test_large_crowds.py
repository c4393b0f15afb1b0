"""Detection with hundreds and thousands of annotators: no less sure than with dozens, and no other model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks import FusionPlan, fuse
from raterscope.algorithms.clicks._vote_model import run_em
from raterscope.algorithms.clicks.dem import DEMSettings, dem, problem_of
from raterscope.algorithms.clicks.fusion import learn_from_each_other
from raterscope.algorithms.clicks.oem import learn_habits
from raterscope.algorithms.clicks.stream import advance_stream, begin_stream
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import silent
from tests.algorithms.clicks.crowds import until
from tests.algorithms.clicks.large_crowds import SCATTER, Scene, large_crowd

QUICK = DEMSettings(interval_draws=20)


def test_a_thousand_volunteers_who_see_a_fifth_of_the_objects_find_them_all():
    crowd = large_crowd(Scene(), 1000, seed=0)
    fusion = fuse(crowd.clicks)
    result = evaluate(fusion.clustering.mean[fusion.detection.detected], crowd.truth, 2 * SCATTER)
    assert (result.sensitivity, result.precision) == (1.0, 1.0)


@pytest.mark.parametrize("annotators", [65, 200, 1000, 5000])
@pytest.mark.parametrize(
    "scene",
    [
        Scene(objects=60, sensitivity=(0.1, 0.1)),
        Scene(objects=20, sensitivity=(0.6, 0.9)),
        Scene(objects=60, sensitivity=(0.1, 0.9), careless=0.3, ability=0.7),
    ],
)
def test_objects_are_found_whatever_the_size_of_the_crowd(scene, annotators):
    crowd = large_crowd(scene, annotators, seed=1)
    assert dem(crowd.votes, QUICK).detected[crowd.true].mean() > 0.95


def test_every_vote_counts_against_chance():
    """Each of 2000 volunteers marks three of 200 objects: thirty each, where strays make a fifth of one."""
    crowd = large_crowd(Scene(objects=200, sensitivity=(0.5, 0.5), marks=3.0), 2000, seed=2)
    assert dem(crowd.votes, QUICK).detected[crowd.true].mean() > 0.98


def test_a_crowd_of_which_all_annotators_came_ten_times_distinguishes_structures_from_artefacts_no_better():
    scene = Scene(objects=30, sensitivity=(0.3, 0.8), artefacts=15, drawn=(0.1, 0.3), ability=1.0)
    votes = large_crowd(scene, 64, seed=3).votes
    many = replace(votes, marked=np.tile(votes.marked, (10, 1)), stray=np.tile(votes.stray, 10))
    once, often = dem(votes, QUICK), dem(many, QUICK)
    assert np.ptp(once.posterior) > 0.4
    assert often.posterior == pytest.approx(once.posterior, abs=1e-3)


@pytest.mark.parametrize("annotators", [30, 1000])
def test_a_finer_lattice_of_ease_makes_no_difference(annotators):
    scene = Scene(objects=40, sensitivity=(0.2, 0.9), artefacts=10, ability=0.5)
    votes = large_crowd(scene, annotators, seed=4).votes
    problem = problem_of(votes, QUICK)
    coarse = run_em(problem, votes.marked.mean(axis=0), 500, 1e-9, silent)
    prior = problem.prior
    shift = np.linspace(-3, 3, 49)
    share = np.interp(shift, prior.shift, prior.share)
    fine = replace(prior, shift=shift, share=share / share.sum())
    second = run_em(replace(problem, prior=fine), votes.marked.mean(axis=0), 500, 1e-9, silent)
    assert second.looks.present == pytest.approx(coarse.looks.present, abs=0.02)


def test_images_of_few_and_of_many_annotators_teach_each_other():
    """What draws a tenth of the crowd is no object, where the same people see most objects elsewhere."""
    objects, artefacts = (
        Scene(objects=40, sensitivity=(0.6, 0.8)),
        Scene(objects=0, artefacts=6, drawn=(0.1, 0.2)),
    )
    crowds = [large_crowd(objects, 600, 5), large_crowd(objects, 25, 6), large_crowd(artefacts, 300, 7)]
    clicks = [crowd.clicks for crowd in crowds]
    learnt = learn_from_each_other(clicks, [fuse(own) for own in clicks], FusionPlan())
    positions = [fusion.clustering.mean[fusion.detection.detected] for fusion in learnt]
    for position, crowd in zip(positions[:2], crowds[:2], strict=True):
        result = evaluate(position, crowd.truth, 2 * SCATTER)
        assert min(result.sensitivity, result.precision) > 0.95
    assert len(positions[2]) == 0


def test_a_stream_keeps_its_detections_as_the_crowd_grows():
    crowd = large_crowd(Scene(objects=40, sensitivity=(0.3, 0.3)), 400, seed=8)
    state = begin_stream(until(crowd.clicks, 25))
    for number in range(50, 401, 25):
        state = advance_stream(state, until(crowd.clicks, number))
        positions = state.fusion.clustering.mean[state.fusion.detection.detected]
        result = evaluate(positions, crowd.truth, 2 * SCATTER)
        assert min(result.sensitivity, result.precision) > 0.95, number


@pytest.mark.parametrize("scene", [Scene(), Scene(sensitivity=(0.3, 0.7), marks=3.0)])
def test_the_scatter_is_learned_of_thousands_who_give_many_clicks_or_few(scene):
    learnt = [learn_habits(large_crowd(scene, 3000, seed).clicks).scatter for seed in range(3)]
    assert max(learnt) < 1.5 * SCATTER
    assert min(learnt) > SCATTER / 1.5
