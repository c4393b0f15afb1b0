"""Replay of the last annotators: predicted changes are corrected by those found."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.clicks.fusion import FusionPlan, fuse, learn_from_each_other
from raterscope.algorithms.clicks.replay import Replay, replay_last_annotators
from raterscope.algorithms.clicks.stopping import StoppingSettings, count_changes, predict_outlook
from tests.algorithms.clicks.crowds import until
from tests.algorithms.clicks.test_settling import smears

PLAN = FusionPlan.make("oem", {"interval_draws": "20"})


def replayed(images: int, predicted: float, happened: float) -> Replay:
    changed = (np.arange(images) < happened * images).astype(np.int64)
    return Replay(np.full(images, predicted), changed, np.empty(0, dtype=np.int64))


@pytest.mark.parametrize("predicted", [0.02, 0.1, 0.5, 0.9])
def test_predictions_that_came_true_stay(predicted):
    assert replayed(1000, predicted, predicted).additional(predicted) < 0.02


def test_many_images_correct_a_prediction_to_what_was_found_and_few_hardly():
    def corrected(images: int) -> float:
        chance = 0.1
        return 1 - (1 - chance) * np.exp(-replayed(images, chance, 0.4).additional(chance))

    assert corrected(2000) == pytest.approx(0.4, abs=0.01)
    assert corrected(0) == pytest.approx(0.1)
    assert corrected(5) < corrected(20) < corrected(100)


def test_a_replay_never_makes_a_prediction_surer():
    assert replayed(500, 0.5, 0.1).additional(0.5) == 0
    assert replayed(500, 0.5, 0.1).additional(0.01) == 0


def test_additional_changes_enter_all_numbers_of_a_prediction():
    clicks = smears(6)[0]
    fusion = fuse(clicks, PLAN)
    before, after = (predict_outlook(clicks, fusion, PLAN, correct=lambda _, n=n: n) for n in (0.0, 2.0))
    assert after.expected == pytest.approx(before.expected + 2)
    assert 1 - after.any == pytest.approx((1 - before.any) * np.exp(-2))
    assert (after.interval >= before.interval).all()
    assert after.interval[1] > before.interval[1]


def test_late_changes_are_those_between_runs_of_all_images():
    first, second, third = smears(6)[:3]
    clicks = [first, until(second, 3), third]
    fusions = learn_from_each_other(clicks, [fuse(own, PLAN) for own in clicks], PLAN)
    replay = replay_last_annotators(clicks, fusions, PLAN, StoppingSettings())
    shorter = [own if len(own.annotators) <= 3 else own.without(set(own.annotators[-3:])) for own in clicks]
    before = learn_from_each_other(shorter, [fuse(own, PLAN) for own in shorter], PLAN)
    expected = [count_changes(old, new) for old, new in zip(before, fusions, strict=True)]
    expected[1] = -1
    assert replay.late.tolist() == expected
    assert len(replay.predicted) == len(replay.changed) == 4
