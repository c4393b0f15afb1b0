"""Recursive EM as a detector: Algorithm 5 of the thesis, and what it loses against DEM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks import FusionPlan, Votes, fuse
from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.decision_streams import DecisionSettings, admit, begin
from raterscope.algorithms.clicks.dem import DEMSettings, dem
from raterscope.algorithms.clicks.recursive import RecursiveSettings, carried, detect_online, recursive
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.click_crowds import voting_crowd
from tests.algorithms.clicks.crowds import quantius, votes_of_text
from tests.algorithms.clicks.test_dem import found_votes

PRINTED = RecursiveSettings(recursion="printed")


def until(votes, turn):
    return replace(
        votes, marked=votes.marked[:turn], stray=None if votes.stray is None else votes.stray[:turn]
    )


def among(votes, clusters):
    return replace(
        votes,
        marked=votes.marked[:, clusters],
        weight=votes.weight[clusters],
        verdict=votes.verdict[clusters],
    )


def test_as_printed_it_is_algorithm_5():
    marked = voting_crowd(14, 12, seed=3).votes.marked
    state = admit(begin(0, 12), marked[:10], DecisionSettings(as_printed=True))
    for row in marked[10:]:
        state = admit(state, row[None], DecisionSettings(as_printed=True))
    result = recursive(votes_of_text(["".join("01"[int(mark)] for mark in row) for row in marked]), PRINTED)
    assert result.posterior == pytest.approx(state.posterior, abs=1e-6)
    assert result.sensitivity == pytest.approx(state.sensitivity, abs=1e-6)
    assert result.specificity == pytest.approx(state.specificity, abs=1e-6)


def test_one_pass_decides_as_dem_does():
    """With one iteration an annotator, where DEM makes as many as it takes."""
    right = np.zeros(3)
    for seed in range(10):
        votes, truth = found_votes(seed)
        detected = [
            recursive(votes).detected,
            dem(votes, DEMSettings(interval_draws=20)).detected,
            recursive(votes, PRINTED).detected,
        ]
        right += [np.mean(one == truth) for one in detected]
    ours, batch, printed = right / 10
    assert ours == pytest.approx(batch, abs=0.01)
    assert ours > printed + 0.05


def test_the_order_of_the_annotators_hardly_matters():
    votes, _ = found_votes(5)
    first = recursive(votes).detected
    generator = np.random.default_rng(0)
    for _ in range(5):
        order = generator.permutation(len(votes.marked))
        other = replace(votes, marked=votes.marked[order], stray=votes.stray[order])
        assert np.mean(recursive(other).detected != first) <= 0.03


def test_a_stream_comes_to_what_one_pass_comes_to():
    votes, _ = found_votes(2)
    detection, looks = detect_online(until(votes, 10))
    for turn in range(11, len(votes.marked) + 1):
        detection, looks = detect_online(until(votes, turn), looks)
    assert np.array_equal(detection.posterior, recursive(votes).posterior)
    assert np.array_equal(detection.posterior_low, recursive(votes).posterior_low)


def test_clusters_appear_vanish_and_change_places():
    right = np.zeros(2)
    for seed in range(10):
        votes, truth = found_votes(seed)
        generator = np.random.default_rng(seed)
        before = generator.permutation(len(truth))[:-6]
        now = generator.permutation(len(truth))[:-3]
        _, looks = detect_online(until(among(votes, before), 18))
        rows = {cluster: row for row, cluster in enumerate(before)}
        origin = np.array([rows.get(cluster, -1) for cluster in now])
        moved = carried(looks, origin)
        assert np.array_equal(moved.present[origin >= 0], looks.present[origin[origin >= 0]])
        for column, result in enumerate(
            (
                detect_online(among(votes, now), moved)[0],
                dem(among(votes, now), DEMSettings(interval_draws=20)),
            )
        ):
            right[column] += np.mean(result.detected == truth[now])
    online, batch = right / 10
    assert online == pytest.approx(batch, abs=0.02)


def test_looks_of_other_clusters_are_refused():
    votes, _ = found_votes(1)
    _, looks = detect_online(votes)
    with pytest.raises(ClicksError, match=r"the last decision was on \d+ clusters; expected 2\."):
        detect_online(votes_of_text(["11", "10"]), looks)


def test_a_stream_whose_stray_clicks_become_known_goes_on():
    votes, truth = found_votes(7)
    _, looks = detect_online(replace(until(votes, 15), stray=None, places=0.0))
    online = detect_online(votes, looks)[0]
    assert np.mean(online.detected == truth) > 0.8
    assert online.posterior.shape == truth.shape


def test_known_truths_are_held_from_when_they_are_known():
    votes, _ = found_votes(3)
    detection, looks = detect_online(until(votes, 20))
    verdict = votes.verdict.copy()
    verdict[:4] = 1 - detection.detected[:4]
    for held in (
        detect_online(replace(votes, verdict=verdict), looks)[0],
        recursive(replace(votes, verdict=verdict)),
    ):
        assert held.posterior[:4].tolist() == verdict[:4].tolist()
        assert held.posterior_low[:4].tolist() == held.posterior_high[:4].tolist() == verdict[:4].tolist()


@pytest.mark.parametrize("settings", [PRINTED, RecursiveSettings(), RecursiveSettings(first_annotators=1)])
@pytest.mark.parametrize("rows", [["000", "000"], ["111", "111"], ["1", "0"], ["1"], ["010", "000", "111"]])
def test_nothing_to_judge_by_is_no_number_that_is_none(settings, rows):
    result = recursive(votes_of_text(rows, stray=np.full(len(rows), 0.01), places=50.0), settings)
    for values in (result.posterior, result.posterior_low, result.posterior_high, result.sensitivity):
        assert np.isfinite(values).all()
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 2)])
def test_nobody_and_nothing(shape):
    votes = Votes(np.zeros(shape, bool), np.zeros(shape[1]), np.full(shape[1], -1, dtype=np.int8))
    result = recursive(votes)
    assert result.posterior.shape == (shape[1],)
    assert result.sensitivity.shape == (shape[0],)
    assert np.isfinite(result.posterior).all()


def test_one_value_of_the_objective_for_each_turn():
    votes, _ = found_votes(0, annotators=25)
    assert len(recursive(votes, RecursiveSettings(first_annotators=5)).objective) == 21
    assert len(recursive(votes, RecursiveSettings(first_annotators=100)).objective) == 1


def test_cancelling_stops_it():
    def watch(*_, **__):
        raise Cancelled

    with pytest.raises(Cancelled):
        recursive(found_votes(0)[0], watch=watch)


def test_progress_never_falls():
    fractions = []
    recursive(found_votes(0)[0], watch=lambda fraction, *_, **__: fractions.append(fraction))
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] == pytest.approx(1)


def test_real_spots_are_found_in_one_pass(real_data):
    plan = FusionPlan.make("oem", {"detector": "recursive"})
    scores = []
    for image in quantius(real_data):
        fusion = fuse(image.clicks, plan)
        scores.append(evaluate(fusion.clustering.mean[fusion.detection.detected], image.truth, 4.0).f_two)
    assert np.mean(scores) >= 0.83
