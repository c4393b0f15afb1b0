"""Stop rule: predicted changes occur as often as predicted."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from raterscope.algorithms.clicks import FusionPlan, KnownSpots, fuse
from raterscope.algorithms.clicks._prospects import count_chances, detection_chance, later_detection_chance
from raterscope.algorithms.clicks._structure_share import StructureShare
from raterscope.algorithms.clicks.counting import expected_count
from raterscope.algorithms.clicks.stopping import (
    ExpectedChanges,
    StoppingSettings,
    StreamHistory,
    count_changes,
    is_settled,
    predict_outlook,
)
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.settings import SettingsError
from tests.algorithms.clicks.crowds import in_order, made, quantius, until

PLAN = FusionPlan()


def crowd(annotators=12, structures=25, sensitivity=0.75, strays=2.0, seed=0, side=400.0, spread=0.8):
    """Annotators of different ability mark structures that differ in how easily they are seen."""
    generator = np.random.default_rng(seed)
    truth = generator.uniform(20, side - 20, (structures, 2))
    odds = np.log(sensitivity / (1 - sensitivity))
    ability, ease = generator.normal(odds, spread, annotators), generator.normal(0, spread, structures)
    points, annotator_index = [], []
    for annotator in range(annotators):
        visible = generator.random(structures) < 1 / (1 + np.exp(-(ability[annotator] + ease)))
        wide = generator.uniform(0, side, (generator.poisson(strays), 2))
        points += [truth[visible] + generator.normal(0, 2, (visible.sum(), 2)), wide]
        annotator_index += [annotator] * (visible.sum() + len(wide))
    return made(np.vstack(points), annotator_index, annotators, (0.0, 0.0, side, side)), truth


def predicted(clicks, more=3, plan=PLAN, **texts) -> ExpectedChanges:
    return predict_outlook(clicks, fuse(clicks, plan), plan, StoppingSettings(more=more, **texts))


def history_of(changes) -> StreamHistory:
    history = StreamHistory.none()
    for number, change in enumerate(changes):
        history = history.then(
            annotators=number + 1, clicks=0, detections=0, changed=change, expected=0.0, chance=0.0,
            sensitivity=np.zeros(3), precision=np.zeros(3), firm=False, refreshed=False,
        )  # fmt: skip
    return history


def test_unanimous_annotators_meet_the_stop_rule_and_few_do_not():
    positions = [(20, 20), (70, 30), (40, 80)]
    settings = StoppingSettings()
    firm = []
    for annotators in (2, 12):
        clicks = made(positions * annotators, np.repeat(range(annotators), 3))
        firm.append(is_settled(predicted(clicks), history_of([]), settings))
    assert firm == [False, True]


@pytest.mark.parametrize(("annotators", "firm"), [(0, False), (1, False), (2, False), (10, True)])
def test_an_image_without_clicks_is_settled_once_enough_annotators_viewed_it(annotators, firm):
    ahead = predicted(made([], [], annotators))
    assert is_settled(ahead, history_of([]), StoppingSettings()) is firm
    assert np.isnan(ahead.sensitivity).all()
    assert np.isnan(ahead.precision).all()


@pytest.mark.parametrize(("structures", "settled"), [(15, False), (1, True)])
def test_the_rule_cannot_be_judged_where_each_annotator_clicked_once_on_different_spots(structures, settled):
    generator = np.random.default_rng(0)
    places = generator.uniform(50, 950, (structures, 2))
    points = places[generator.integers(structures, size=12)] + generator.normal(0, 4, (12, 2))
    clicks = made(points, range(12), 12, (0.0, 0.0, 1000.0, 1000.0))
    outlooks = [predicted(until(clicks, number)) for number in range(4, 13)]
    quiet = history_of([0] * 12)
    assert {outlook.reliable for outlook in outlooks} == {settled}
    assert any(is_settled(outlook, quiet, StoppingSettings()) for outlook in outlooks) == settled


def test_annotators_who_never_meet_do_not_meet_the_stop_rule():
    generator = np.random.default_rng(0)
    clicks = made(generator.uniform(0, 1000, (40, 2)), np.repeat([0, 1], 20), 2, (0.0, 0.0, 1000.0, 1000.0))
    ahead = predicted(clicks)
    assert ahead.detections == 0
    assert ahead.any > 0.8


def test_a_cluster_of_few_votes_is_less_certain_than_one_of_many():
    clear, faint = [(20, 20)] * 10 + [(70, 70)] * 10, [(45, 20)] * 2
    clicks = made([*clear, *faint], [*range(10), *range(10), 0, 1], 10)
    fusion = fuse(clicks, PLAN)
    chance = predict_outlook(clicks, fusion, PLAN).chance
    assert chance[fusion.votes == 2].min() > 10 * chance[fusion.votes == 10].max()


def test_what_the_expert_decided_does_not_change():
    clicks, truth = crowd(5)
    known = KnownSpots(truth[:, 0], truth[:, 1], np.ones(len(truth), dtype=bool))
    decided = made(clicks.points, clicks.annotator, 5, clicks.extent, known=known)
    fusion = fuse(decided, PLAN)
    ahead = predict_outlook(decided, fusion, PLAN)
    assert (ahead.chance[fusion.verdict >= 0] == 0).all()
    assert ahead.expected < predicted(clicks).expected


def test_more_annotators_change_more_and_later_ones_change_less():
    clicks, _ = crowd(16, seed=3)
    further = [predicted(clicks, more).expected for more in (1, 3, 8)]
    assert further == sorted(further)
    later = [predicted(until(clicks, number)).expected for number in (3, 6, 16)]
    assert later == sorted(later, reverse=True)


def test_neither_the_order_of_annotators_nor_their_names_matter():
    clicks, _ = crowd(8, seed=1)
    turned = in_order(clicks, np.random.default_rng(1).permutation(8))
    first, other = predicted(clicks), predicted(turned)
    assert other.expected == pytest.approx(first.expected, rel=1e-6)
    assert sorted(other.chance) == pytest.approx(sorted(first.chance), abs=1e-9)


def test_a_click_that_is_made_again_changes_nothing():
    clicks, _ = crowd(6)
    second = np.concatenate([np.arange(0, len(clicks), 3), np.arange(len(clicks))])
    twice = made(clicks.points[second], clicks.annotator[second], 6, clicks.extent)
    assert predicted(twice).expected == pytest.approx(predicted(clicks).expected)
    classed = replace(twice, classes=("ring", "gametocyte"), label=np.arange(len(twice)) % 2)
    assert predicted(classed).expected == pytest.approx(predicted(clicks).expected)


def test_numbers_of_marks_are_those_of_all_combinations():
    rate = np.random.default_rng(0).random((5, 2))
    exact = np.zeros((6, 2))
    for marks in product([0, 1], repeat=5):
        chosen = np.array(marks)[:, None] == 1
        exact[sum(marks)] += np.where(chosen, rate, 1 - rate).prod(axis=0)
    assert count_chances(rate) == pytest.approx(exact)


@pytest.mark.parametrize(("annotators", "more"), [(3, 2), (10, 1), (20, 10)])
def test_found_now_and_later_is_the_bivariate_normal_distribution(annotators, more):
    joins = np.array([0.5, 0.8])
    both = later_detection_chance(joins, annotators, more)
    shared = np.sqrt(annotators / (annotators + more))
    for row, now, come in [(0, 2, 0), (0, 3, 1), (1, 2, 1), (1, 3, 0)]:
        limits = [norm.ppf(detection_chance(joins[row], np.float64(marks))) for marks in (now, now + come)]
        exact = multivariate_normal.cdf(limits, cov=[[1, shared], [shared, 1]])
        assert both[row, now, come] == pytest.approx(exact, abs=1e-4)


def test_what_is_predicted_happens():
    expected, happened, any_predicted, any_happened, inside = 0.0, 0, 0.0, 0, 0
    for seed in range(16):
        clicks, _ = crowd(12, seed=seed)
        for now in (4, 6, 8):
            before = fuse(until(clicks, now), PLAN)
            ahead = predict_outlook(until(clicks, now), before, PLAN, StoppingSettings(more=3))
            other = count_changes(before, fuse(until(clicks, now + 3), PLAN))
            expected, happened = expected + ahead.expected, happened + other
            any_predicted, any_happened = any_predicted + ahead.any, any_happened + (other > 0)
            inside += ahead.interval[0] <= other <= ahead.interval[1]
    assert expected == pytest.approx(happened, rel=0.35)
    assert any_predicted / 48 == pytest.approx(any_happened / 48, abs=0.15)
    assert inside / 48 >= 0.9


def test_sensitivity_and_precision_are_those_against_the_truth():
    estimates, truths, covered = [], [], []
    for seed in range(8):
        clicks, truth = crowd(6, seed=seed, strays=4.0)
        fusion = fuse(clicks, PLAN)
        ahead = predict_outlook(clicks, fusion, PLAN)
        true = evaluate(fusion.clustering.mean[fusion.detection.detected], truth, 6.0)
        for three, item in ((ahead.sensitivity, true.sensitivity), (ahead.precision, true.precision)):
            assert three[1] <= three[0] <= three[2]
            covered.append(three[1] <= item <= three[2])
        estimates.append((ahead.sensitivity[0], ahead.precision[0]))
        truths.append((true.sensitivity, true.precision))
    assert np.mean(estimates, axis=0) == pytest.approx(np.mean(truths, axis=0), abs=0.08)
    assert np.mean(covered) >= 0.75


@pytest.mark.parametrize("level", [1.0, 1.7, 2.5])
def test_the_precision_of_detections_is_that_of_their_expected_count(level):
    clicks, _ = crowd(6, seed=1, strays=4.0)
    fusion = fuse(clicks, PLAN)
    detection = replace(fusion.detection, level_error=level)
    chosen = detection.detected
    columns = [getattr(detection, name)[chosen] for name in ("posterior", "posterior_low", "posterior_high")]
    precision = predict_outlook(clicks, replace(fusion, detection=detection), PLAN).precision
    assert precision * chosen.sum() == pytest.approx(expected_count(*columns, level))


def test_the_less_the_level_of_a_run_is_known_the_wider_is_the_interval_of_sensitivity():
    widths = np.zeros((5, 3))
    for seed in range(5):
        clicks, _ = crowd(5, seed=seed, strays=4.0)
        fusion = fuse(clicks, PLAN)
        for column, level in enumerate((0.0, 1.0, 2.5)):
            detection = replace(fusion.detection, level_error=level)
            ahead = predict_outlook(clicks, replace(fusion, detection=detection), PLAN)
            estimate, low, high = ahead.sensitivity
            assert low <= estimate <= high <= 1
            widths[seed, column] = high - low
    assert (np.diff(widths, axis=1) >= 0).all()
    assert widths[:, 2].mean() > widths[:, 0].mean()  # whole numbers hide small changes


def test_the_less_the_crowd_is_known_the_wider_is_the_interval_of_precision(monkeypatch):
    """As it was when one variance stood for the crowd; it is the deviation of h now, of unrated images."""
    clicks, _ = crowd(6, seed=1, strays=4.0)
    fusion, widths = fuse(clicks, PLAN, rated=False), []
    for deviation in (0.0, 0.03, 0.08):
        monkeypatch.setattr(
            StructureShare, "deviation", lambda _, share, known=deviation: np.full(len(share), known)
        )
        _, low, high = predict_outlook(clicks, fusion, PLAN).precision
        widths.append(high - low)
    assert widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize(
    ("changes", "firm"), [([], False), ([5, 0], False), ([5, 0, 0, 0], True), ([0, 0, 0, 1], False)]
)
def test_the_papers_rule_waits_for_steps_without_change(changes, firm):
    ahead = predicted(made([], [], 1))
    settings = StoppingSettings(rule="unchanged", unchanged=3)
    assert is_settled(ahead, history_of(changes), settings) is firm


def test_the_limit_applies_to_the_stop_rule():
    clicks, _ = crowd(8)
    ahead = predicted(clicks)
    for rule, value in (("share", ahead.share), ("chance", ahead.any)):
        assert is_settled(ahead, history_of([]), StoppingSettings(rule=rule, limit=value))
        assert not is_settled(ahead, history_of([]), StoppingSettings(rule=rule, limit=0.9 * value))


@pytest.mark.parametrize(
    ("changes", "firm"),
    [
        ([9], True),
        ([9, 0, 0, 0], True),
        ([9, 0, 0, 1], False),
        ([9, 2, 0, 0, 0], True),
        ([9, 1, 0, 0], False),
    ],
)
def test_what_the_last_annotators_changed_counts_beside_what_is_expected(changes, firm):
    ahead = predicted(crowd(8)[0])
    calm = replace(ahead, expected=0.0, coming=0.0)
    assert is_settled(calm, history_of(changes), StoppingSettings(more=3)) is firm


def test_changes_are_detections_that_appeared_or_vanished():
    def seen(*positions):
        return fuse(made(list(positions) * 6, np.repeat(range(6), len(positions))), PLAN)

    first, two, other = seen((20, 20)), seen((20, 20), (70, 70)), seen((70, 70))
    assert [
        count_changes(first, first),
        count_changes(first, two),
        count_changes(two, first),
        count_changes(first, other),
    ] == [0, 1, 1, 2]
    empty = fuse(made([], [], 3), PLAN)
    assert [count_changes(empty, two), count_changes(two, empty), count_changes(empty, empty)] == [
        2,
        2,
        0,
    ]


@pytest.mark.parametrize(("now", "strays"), [(2, 2.0), (3, 8.0), (4, 2.0), (8, 8.0)])
def test_no_more_than_all_decisions_can_change(now, strays):
    for seed in range(3):
        clicks, _ = crowd(12, structures=6, strays=strays, sensitivity=0.4, seed=seed)
        ahead = predicted(until(clicks, now), more=8)
        assert 0 <= ahead.share <= 1
        assert ahead.coming <= ahead.expected <= ahead.coming + ahead.detections + 1e-9


def test_a_history_of_an_earlier_version_goes_on():
    old = history_of([0, 1])
    older = replace(old, coming=np.empty(0), interval=np.empty((0, 2)))
    assert older.coming.tolist() == [0.0, 0.0]
    assert np.isnan(older.interval).all()
    assert len(older.until(-1)) == 1
    assert older.share == pytest.approx(old.share)


@pytest.mark.parametrize(
    ("algorithm", "detector"), [("oem", "majority"), ("hdbscan", "share"), ("hac", "dem")]
)
def test_any_clustering_and_any_detector_will_do(algorithm, detector):
    clicks, _ = crowd(8)
    ahead = predicted(clicks, plan=FusionPlan.make(algorithm, {"detector": detector}))
    assert 0 <= ahead.any <= 1
    assert ahead.expected >= 0
    assert ((ahead.chance >= 0) & (ahead.chance <= 1)).all()


def test_settings_are_checked():
    assert StoppingSettings.from_text({"rule": "chance", "limit": "0.1", "more": "5"}).more == 5
    with pytest.raises(SettingsError):
        StoppingSettings(rule="never")
    with pytest.raises(SettingsError):
        StoppingSettings(more=0)


def test_predictions_hold_on_a_real_crowd(real_data):
    expected = happened = 0.0
    for number, image in enumerate(quantius(real_data)[:14:3]):
        order = np.random.default_rng(number).permutation(len(image.clicks.annotators))
        clicks = in_order(image.clicks, order)
        for now in (6, 10, 15):
            before = fuse(until(clicks, now), PLAN)
            expected += predict_outlook(until(clicks, now), before, PLAN, StoppingSettings(more=3)).expected
            happened += count_changes(before, fuse(until(clicks, now + 3), PLAN))
    assert expected == pytest.approx(happened, rel=0.5)
