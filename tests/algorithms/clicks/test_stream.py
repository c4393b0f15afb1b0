"""Clicks that keep coming: the default, which does as a batch would."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from raterscope.algorithms.clicks import ClicksError, FusionPlan, KnownSpots, fuse
from raterscope.algorithms.clicks.image_priors import experience_of
from raterscope.algorithms.clicks.oem import oem
from raterscope.algorithms.clicks.stream import StreamPlan, advance_stream, begin_stream
from raterscope.algorithms.evaluation import evaluate, match
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.settings import SettingsError
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import in_order, made, quantius, until
from tests.algorithms.clicks.streams import (
    HIDDEN,
    PLAN,
    changed,
    crowd,
    decided,
    followed,
    same,
    with_hidden,
    with_more,
)

# The default does as a batch would


def test_a_stream_begins_as_a_batch_does():
    clicks = crowd(6)
    state = begin_stream(clicks)
    assert state.step == 0
    assert state.refreshed
    assert same(state.fusion, fuse(clicks))


@pytest.mark.parametrize("clicks", [crowd(16, seed=1), separated_crowd(16, seed=2).clicks])
def test_each_step_decides_as_a_batch(clicks):
    states = followed(clicks, 5)
    assert [state.step for state in states] == list(range(12))
    assert 0 < sum(state.refreshed for state in states[1:]) < 6
    for number, state in enumerate(states, start=5):
        batch = fuse(until(clicks, number))
        assert changed(state.fusion, batch, 10.0) <= 1
        assert abs(state.fusion.detection.prevalence - batch.detection.prevalence) < 0.05
    assert not changed(states[-1].fusion, batch, 10.0)
    np.testing.assert_allclose(states[-1].fusion.rates.sensitivity, batch.rates.sensitivity, atol=0.03)
    np.testing.assert_allclose(states[-1].fusion.clustering.scatter, batch.clustering.scatter, rtol=0.05)


def test_real_images_are_followed_and_the_letter_lags(real_data):
    """On dense images: sensitivity and precision as a batch has them, annotator by annotator."""
    printed = StreamPlan.make({"update": "printed", "click_scatter": "2", "criterion": "observed"})
    differences, lags = [], []
    for number in (0, 14):
        image = quantius(real_data)[number]
        order = np.random.default_rng(number).permutation(len(image.clicks.annotators))
        clicks = until(in_order(image.clicks, order), 20)
        states, letter = followed(clicks, 11), followed(clicks, 11, printed)
        for step in range(1, len(states), 2):
            batch = fuse(until(clicks, 11 + step))
            ours, theirs, lagging = (
                evaluate(decided(fusion), image.truth, 4.0)
                for fusion in (states[step].fusion, batch, letter[step].fusion)
            )
            differences.append((ours.sensitivity - theirs.sensitivity, ours.precision - theirs.precision))
            lags.append(theirs.sensitivity - lagging.sensitivity)
    assert (np.abs(np.mean(differences, axis=0)) < 0.01).all()
    assert (np.abs(differences) < 0.06).all()
    assert np.mean(lags) > 0.02


def test_growth_decides_when_everything_is_recomputed():
    clicks = crowd(12, seed=3)
    always = followed(clicks, 8, StreamPlan.make({"growth": "0"}))
    never = followed(clicks, 8, StreamPlan.make({"growth": "100"}))
    assert all(state.refreshed for state in always)
    assert not any(state.refreshed for state in never[1:])
    batch = fuse(clicks)
    assert same(always[-1].fusion.clustering, batch.clustering)
    assert not changed(always[-1].fusion, batch)


def test_a_missed_structure_appears_with_its_clicks():
    clicks, plan = with_hidden(crowd(16, positions=39), range(8, 16)), StreamPlan.make({"growth": "100"})
    states = followed(clicks, 8, plan)
    result = [has_hidden(state.fusion) for state in states]
    assert result == [has_hidden(fuse(until(clicks, number))) for number in range(8, 17)]
    first = states[result.index(True)]
    new = first.memory.origin == -1
    assert np.linalg.norm(first.fusion.clustering.mean[new] - HIDDEN, axis=1).tolist() == [
        pytest.approx(0, abs=4)
    ]
    assert not any((state.memory.origin == -1).any() for state in states[1:] if state is not first)


def has_hidden(fusion) -> bool:
    return bool((np.linalg.norm(decided(fusion) - HIDDEN, axis=1) < 4).any())


def test_the_former_place_of_every_cluster_is_known():
    before, after = followed(crowd(9), 8)
    origin = after.memory.origin
    kept = origin >= 0
    moved = after.fusion.clustering.mean[kept] - before.fusion.clustering.mean[origin[kept]]
    assert kept.sum() >= 38
    assert len(set(origin[kept])) == kept.sum()
    assert np.abs(moved).max() < 2


# Whatever comes


def test_who_marked_nothing_counts():
    clicks = crowd(8)
    before = begin_stream(clicks)
    after = advance_stream(before, with_more(clicks, [], [], ["quiet"]))
    assert after.fusion.marked.shape[0] == 9
    assert not after.fusion.marked[8].any()
    assert np.isnan(after.fusion.clustering.reliability[8])
    assert after.fusion.detection.sensitivity[8] < before.fusion.detection.sensitivity.min()
    assert not changed(before.fusion, after.fusion)


def test_one_click_moves_what_is_near_alone():
    clicks = crowd(8)
    before = begin_stream(clicks)
    after = advance_stream(before, with_more(clicks, [[26.0, 26.0]], [3]))
    assert len(after.fusion.mark) == len(clicks) + 1
    origin = after.memory.origin
    assert np.array_equal(np.sort(origin), np.arange(len(before.fusion.clustering)))
    moved = np.linalg.norm(after.fusion.clustering.mean - before.fusion.clustering.mean[origin], axis=1)
    assert moved[origin.argsort()][1:].max() < 0.5
    assert not changed(before.fusion, after.fusion)


def test_many_clicks_at_once():
    clicks = crowd(24, seed=5)
    state = advance_stream(begin_stream(until(clicks, 4)), clicks)
    assert len(clicks) - len(until(clicks, 4)) > 500
    assert not changed(state.fusion, fuse(clicks))


def test_old_annotators_bring_more():
    clicks = crowd(10, seed=6)
    half = np.arange(len(clicks)) % 2 == 0
    rows = np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])
    clicks = replace(clicks, x=clicks.x[rows], y=clicks.y[rows], annotator=clicks.annotator[rows])
    state = None
    for number in (half.sum(), half.sum() + 40, half.sum() + 80, len(clicks)):
        now = replace(clicks, x=clicks.x[:number], y=clicks.y[:number], annotator=clicks.annotator[:number])
        state = begin_stream(now) if state is None else advance_stream(state, now)
    assert not changed(state.fusion, fuse(clicks))


def test_a_repeated_click_adds_no_evidence():
    clicks = crowd(8)
    state = begin_stream(clicks)
    second = advance_stream(state, with_more(clicks, clicks.points[:30], clicks.annotator[:30]))
    assert len(second.fusion.clustering.inlier) == len(clicks)
    assert np.array_equal(second.fusion.mark[-30:], second.fusion.mark[:30])
    assert not changed(state.fusion, second.fusion)


@pytest.mark.parametrize(
    "texts", [{}, {"update": "printed", "click_scatter": "2"}, {"criterion": "observed"}]
)
def test_a_stream_may_begin_with_nothing_or_with_no_annotator(texts):
    plan = StreamPlan.make(texts)
    clicks = crowd(12)
    nobody = replace(until(clicks, 1), x=[], y=[], annotator=[], annotators=())
    state = begin_stream(nobody, plan)
    assert len(state.fusion.clustering) == 0
    state = advance_stream(state, replace(nobody, annotators=("a0",)), plan)
    assert state.fusion.marked.shape == (1, 0)
    for number in (1, 2, 3, 12):
        state = advance_stream(state, until(clicks, number), plan)
    assert state.step == 5
    assert 25 <= state.fusion.detection.detected.sum() <= 45


def test_early_spam_is_outlived():
    clicks, generator = crowd(14, seed=7), np.random.default_rng(0)
    spam = made(generator.uniform(0, 400, (240, 2)), np.repeat(np.arange(4), 60), 4, clicks.extent)
    full = with_more(spam, clicks.points, clicks.annotator + 4, [f"good {number}" for number in range(14)])
    states = followed(full, 4)
    state = states[-1]
    assert states[1].refreshed  # a fourth more people, an eighth more clicks
    assert changed(state.fusion, fuse(full)) <= 1
    assert state.fusion.rates.reliability[:4, 0].max() < state.fusion.rates.reliability[4:, 0].min()


def test_what_the_expert_decides_takes_effect_at_once_and_can_be_taken_back():
    clicks = crowd(8)
    free = begin_stream(clicks)
    sure = int(np.argmax(free.fusion.votes))
    x, y = free.fusion.clustering.mean[sure]
    known = KnownSpots(np.array([x, 375.0]), np.array([y, 375.0]), np.array([False, True]))
    fixed = advance_stream(free, replace(clicks, known=known))
    result = fixed.fusion
    denied = int(np.linalg.norm(result.clustering.mean - [x, y], axis=1).argmin())
    assert result.verdict[denied] == 0
    assert not result.detection.detected[denied]
    assert result.verdict[-1] == 1
    assert result.detection.detected[-1]
    assert fixed.memory.components == len(result.clustering) - 1
    assert fixed.memory.origin[-1] == -1
    later = advance_stream(fixed, with_more(replace(clicks, known=known), [[375.0, 374.0]], [8], ["new"]))
    assert later.fusion.verdict[-1] == 1
    assert (later.fusion.verdict >= 0).sum() == 2
    freed = advance_stream(fixed, clicks)
    assert (freed.fusion.verdict == -1).all()
    assert not changed(freed.fusion, free.fusion)


def test_experience_helps_a_stream_as_it_helps_a_batch():
    clicks = crowd(6, seed=8)
    taught = experience_of([fuse(crowd(6, seed=seed)) for seed in (9, 10)], [clicks.annotators] * 2)
    state = begin_stream(clicks, experience=taught)
    assert same(state.fusion, fuse(clicks, experience=taught))
    assert not same(state.fusion, fuse(clicks))
    more = with_more(clicks, [[375.0, 374.0]], [0])
    after, without = advance_stream(state, more, experience=taught), advance_stream(state, more)
    assert not after.refreshed
    assert not np.array_equal(after.fusion.detection.posterior, without.fusion.detection.posterior)


@pytest.mark.parametrize("texts", [{}, {"update": "printed", "click_scatter": "2"}])
def test_newcomers_begin_with_the_reliability_that_they_have_on_other_images(texts):
    """OEM-DEM paper, sections 4 and 6.2: with other images where every other mark of some is stray."""
    clicks = crowd(6, seed=8)
    images = [crowd(6, seed=seed) for seed in (9, 10)]
    taught = experience_of([fuse(image) for image in images], [clicks.annotators] * 2)
    taught = replace(taught, inliers=np.full(6, 10.0), outliers=np.full(6, 10.0))
    np.testing.assert_array_equal(taught.reliability([*clicks.annotators[:2], "new"]), [0.5, 0.5, np.nan])
    plan = StreamPlan.make(texts | {"carry_reliability": "yes", "max_iterations": "9"})
    without = StreamPlan.make(texts | {"max_iterations": "9"})
    known = taught.reliability(clicks.annotators)
    state = begin_stream(clicks, plan, experience=taught).fusion.clustering
    np.testing.assert_array_equal(
        state.inlier, oem(clicks.merged()[0], plan.clustering, reliability=known).inlier
    )
    usual = begin_stream(clicks, without, experience=taught).fusion.clustering
    assert not np.array_equal(state.inlier, usual.inlier)
    first = begin_stream(until(clicks, 5), plan)
    single, other = (advance_stream(first, clicks, plan, experience=fixed).fusion for fixed in (taught, None))
    assert not np.array_equal(single.clustering.inlier, other.clustering.inlier)


# Exact, and asked for as other algorithms are


def test_the_same_state_goes_on_to_the_same_bits():
    clicks = crowd(12, seed=11)
    for texts in ({}, {"update": "printed", "click_scatter": "2"}, {"criterion": "observed"}):
        plan = StreamPlan.make(texts)
        first = two = begin_stream(until(clicks, 6), plan)
        for number in range(7, 13):
            first, two = (
                advance_stream(first, until(clicks, number), plan),
                advance_stream(_copied(two), until(clicks, number), plan),
            )
            assert same(first, two)


def _copied(record):
    """Copy every array as read-only, as a study returns it."""
    copied_fields = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            value = _copied(value)
        elif isinstance(value, np.ndarray):
            value = value.copy()
            value.setflags(write=False)
        copied_fields[field.name] = value
    return type(record)(**copied_fields)


def test_the_order_of_those_who_come_together_makes_no_difference():
    clicks = crowd(12, seed=12)
    turned = in_order(clicks, np.array([0, 1, 2, 3, 4, 5, 6, 7, 11, 9, 10, 8]))
    state = begin_stream(until(clicks, 8), StreamPlan.make({"growth": "100"}))
    first, two = (
        advance_stream(state, values, StreamPlan.make({"growth": "100"})).fusion
        for values in (clicks, turned)
    )
    assert len(first.clustering) == len(two.clustering)
    assert len(match(first.clustering.mean, two.clustering.mean, 1e-3)) == len(first.clustering)
    position = np.array([0, 1, 2, 3, 4, 5, 6, 7, 11, 9, 10, 8])
    np.testing.assert_allclose(
        first.reordered(position).detection.sensitivity, two.detection.sensitivity, atol=1e-3
    )


@pytest.mark.parametrize("case", [0, 1])
def test_clicks_that_do_not_go_on_are_refused(case):
    clicks = crowd(8)
    state = begin_stream(clicks)
    twice = np.r_[0, 0, 1 : len(clicks) - 1]
    repeated = replace(clicks, x=clicks.x[twice], y=clicks.y[twice], annotator=clicks.annotator[twice])
    wrong = [until(clicks, 7), repeated][case]
    with pytest.raises(ClicksError, match="the clicks do not begin with"):
        advance_stream(state, wrong)


def test_a_plan_is_described_and_read_again():
    plan = StreamPlan.make({"growth": "0.5", "click_scatter": "3", "detection_threshold": "0.6"})
    assert plan.stream.growth == 0.5
    assert plan.fusion == FusionPlan.make("oem", {"click_scatter": "3", "detection_threshold": "0.6"})
    stored = json.loads(json.dumps(plan.as_dict()))
    assert StreamPlan.from_dict(stored) == plan
    assert stored["stream"] == {"update": "local", "growth": 0.5}
    assert plan.in_words().startswith(plan.fusion.in_words())
    assert "growth 0.5" in plan.in_words()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"growht": "1"}, "growht is not a setting here"),
        ({"growth": "-1"}, "growth"),
        ({"update": "now"}, "update"),
    ],
)
def test_what_is_no_plan_is_refused(values, words):
    with pytest.raises(SettingsError, match=words):
        StreamPlan.make(values)


def test_a_stream_is_fused_by_oem_and_dem():
    with pytest.raises(SettingsError, match="kmeans"):
        StreamPlan.from_dict({**FusionPlan.make("kmeans").as_dict(), "stream": {}})


def test_a_step_can_be_cancelled():
    clicks = crowd(9)
    state, calls = begin_stream(until(clicks, 8)), []

    def stop(fraction, words, **_):
        calls.append(fraction)
        if len(calls) > 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        advance_stream(state, clicks, PLAN, stop)
    assert calls == sorted(calls)
