"""Fusion of clicks: plans, all steps, and the rates of annotators."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, binom

from raterscope.algorithms.clicks import (
    CLUSTERERS,
    DETECTORS,
    Clicks,
    FusionPlan,
    KnownSpots,
    fuse,
    pool_rates,
)
from raterscope.algorithms.clicks.baseline_clustering import HACSettings
from raterscope.algorithms.clicks.fusion import fuse_each
from raterscope.algorithms.clicks.result import (
    ERRORS,
    HALF_WIDTH,
    AnnotatorRates,
    counts_at_errors,
    error_of_marks,
    precision_of,
    sensitivity_of,
)
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.settings import SettingsError
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import made

CROWD = separated_crowd(20, seed=1)


def with_known(clicks: Clicks, *spots) -> Clicks:
    x, y, present = zip(*spots, strict=True)
    known = KnownSpots(np.array(x), np.array(y), np.array(present))
    return Clicks(clicks.x, clicks.y, clicks.annotator, clicks.annotators, clicks.extent, known=known)


def test_the_default_finds_a_separated_crowd():
    crowd = separated_crowd(50, seed=1)
    fusion = fuse(crowd.clicks)
    positions = fusion.clustering.mean[fusion.detection.detected]
    result = evaluate(positions, crowd.mean, 50.0)
    assert (result.sensitivity, result.precision) == (1.0, 1.0)


@pytest.mark.parametrize("algorithm", list(CLUSTERERS))
@pytest.mark.parametrize("detector", list(DETECTORS))
def test_every_pair_of_algorithms_gives_a_whole_answer(algorithm, detector):
    fusion = fuse(CROWD.clicks, FusionPlan.make(algorithm, {"detector": detector}))
    clusters = len(fusion.clustering)
    assert clusters >= 5
    assert fusion.marked.shape == (20, clusters)
    assert fusion.verdict.tolist() == [-1] * clusters
    assert fusion.detection.posterior.shape == fusion.detection.detected.shape == (clusters,)
    assert fusion.rates.sensitivity.shape == (20, 3)
    assert np.array_equal(fusion.votes, fusion.marked.sum(axis=0))


@pytest.mark.parametrize("algorithm", list(CLUSTERERS))
@pytest.mark.parametrize("detector", list(DETECTORS))
def test_no_clicks_give_an_empty_answer(algorithm, detector):
    fusion = fuse(made([], [], annotators=3), FusionPlan.make(algorithm, {"detector": detector}))
    assert len(fusion.clustering) == len(fusion.detection.posterior) == len(fusion.mark) == 0
    assert fusion.marked.shape == (3, 0)
    assert fusion.rates.clicks.tolist() == [0, 0, 0]
    for rate in (fusion.rates.reliability, fusion.rates.sensitivity, fusion.rates.precision):
        assert np.isnan(rate).all()


def test_no_annotators_find_nothing():
    assert len(fuse(made([], [], annotators=0)).clustering) == 0


def test_known_spots_without_a_click_are_the_answer():
    fusion = fuse(with_known(made([], [], annotators=2), (30.0, 40.0, True), (60.0, 60.0, False)))
    assert fusion.clustering.mean.tolist() == [[30, 40]]
    assert fusion.detection.posterior.tolist() == [1.0]


def test_known_truths_are_held():
    free = fuse(CROWD.clicks)
    x, y = free.clustering.mean[np.argmax(free.detection.posterior)]
    fixed = fuse(with_known(CROWD.clicks, (x + 3, y, False), (5.0, 5.0, True)))
    rejected = np.flatnonzero(fixed.verdict == 0)
    assert len(rejected) == 1
    assert np.hypot(*(fixed.clustering.mean[rejected[0]] - (x, y))) < 15
    assert fixed.detection.posterior[rejected[0]] == 0
    assert not fixed.detection.detected[rejected[0]]
    assert fixed.verdict[-1] == 1
    assert fixed.clustering.mean[-1].tolist() == [5, 5]
    assert fixed.detection.posterior[-1] == 1


def test_marks_of_one_annotator_at_one_place_count_once():
    clicks = CROWD.clicks
    thrice = Clicks(
        np.tile(clicks.x, 3),
        np.tile(clicks.y, 3),
        np.tile(clicks.annotator, 3),
        clicks.annotators,
        clicks.extent,
    )
    once, more = fuse(clicks), fuse(thrice)
    assert np.array_equal(once.clustering.mean, more.clustering.mean)
    assert np.array_equal(once.detection.posterior, more.detection.posterior)
    assert np.array_equal(more.mark, np.tile(once.mark, 3))
    assert np.array_equal(more.rates.clicks, clicks.counts())


def test_the_same_input_gives_the_same_bits():
    first, second = fuse(CROWD.clicks), fuse(CROWD.clicks)
    assert np.array_equal(first.clustering.mean, second.clustering.mean)
    assert np.array_equal(first.detection.posterior_high, second.detection.posterior_high)


@pytest.mark.parametrize(
    ("algorithm", "texts"),
    [("oem", {}), ("oem", {"start": "weight"}), ("oem", {"objective": "expected"}), ("kmeans", {})],
)
def test_images_fused_in_one_loop_have_the_bits_of_each_alone(algorithm, texts):
    plan = FusionPlan.make(algorithm, texts)
    images = [separated_crowd(20, seed=seed).clicks for seed in range(5)]
    images[1] = with_known(images[1], (images[1].x[0], images[1].y[0], True))
    images[2] = replace(images[2], control=False)
    images[3] = made([], [], annotators=4)
    for together, alone in zip(
        fuse_each(images, plan), [fuse(own, plan, rated=False) for own in images], strict=True
    ):
        for name in ("posterior", "detected", "prevalence", "objective"):
            assert np.array_equal(getattr(together.detection, name), getattr(alone.detection, name))
        assert np.array_equal(together.clustering.mean, alone.clustering.mean)
        assert np.array_equal(together.verdict, alone.verdict)
        assert not together.is_rated or not len(together.rates.clicks)


def test_progress_never_falls_and_ends():
    fractions = []
    fuse(CROWD.clicks, watch=lambda fraction, *_, **__: fractions.append(fraction))
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] == pytest.approx(1)


def test_unreliable_annotators_are_found_out():
    fusion = fuse(CROWD.clicks)
    order = np.argsort(fusion.rates.reliability[:, 0])
    assert set(CROWD.reliability[order[:2]]) == {0.25}
    for rate in (fusion.rates.reliability, fusion.rates.sensitivity, fusion.rates.precision):
        is_known = ~np.isnan(rate[:, 0])
        assert (rate[is_known, 1] <= rate[is_known, 0]).all()
        assert (rate[is_known, 0] <= rate[is_known, 2]).all()


def test_intervals_of_reliability_cover_the_truth_at_the_stated_rate():
    """An outlier may fall on a cluster, and a wide click is no vote: the truth is the share that hits."""
    covered = []
    for seed in range(15):
        crowd = separated_crowd(20, seed)
        rates = fuse(crowd.clicks).rates.reliability
        truth = 0.975 * crowd.reliability
        covered.append((rates[:, 1] <= truth) & (truth <= rates[:, 2]))
    assert np.mean(covered) > 0.9


def test_an_interval_is_that_of_the_beta_distribution():
    fusion = fuse(CROWD.clicks)
    marks = fusion.rates.clicks
    votes = fusion.rates.reliability[:, 0] * (marks + 1) - 0.5
    assert votes == pytest.approx(np.round(votes), abs=1e-9)
    expected = beta(votes + 0.5, marks - votes + 0.5).ppf(0.025)
    assert fusion.rates.reliability[:, 1] == pytest.approx(expected)


def test_pooling_sums_over_images():
    crowds = [separated_crowd(20, seed) for seed in (1, 2, 3)]
    fusions = [fuse(crowd.clicks) for crowd in crowds]
    names = [crowd.clicks.annotators for crowd in crowds]
    alone_names, alone = pool_rates(fusions[:1], names[:1])
    assert alone_names == names[0]
    assert alone.reliability == pytest.approx(fusions[0].rates.reliability)
    assert alone.sensitivity == pytest.approx(fusions[0].rates.sensitivity)
    _, pooled = pool_rates(fusions, names)
    assert np.array_equal(pooled.clicks, sum(fusion.rates.clicks for fusion in fusions))
    width = [rate[:, 2] - rate[:, 1] for rate in (pooled.reliability, alone.reliability)]
    assert width[0].mean() < 0.8 * width[1].mean()


def test_pooling_goes_by_name_whatever_the_order():
    fusion = fuse(CROWD.clicks)
    names = CROWD.clicks.annotators
    other = tuple(f"other {name}" for name in names)
    result, rates = pool_rates([fusion, fusion], [names, other])
    assert result == (*names, *other)
    assert rates.reliability[:20] == pytest.approx(rates.reliability[20:])
    assert pool_rates([], [])[0] == ()


def test_a_plan_takes_texts_apart():
    plan = FusionPlan.make(
        "oem",
        {
            "detector": "share",
            "click_scatter": "2",
            "share": "0.3",
            "outlier_threshold": "0.4",
            "vote_coverage": "1",
        },
    )
    assert plan.clustering.as_dict()["click_scatter"] == 2.0
    assert plan.detection.as_dict() == {"share": 0.3}
    assert plan.assignment.as_dict() == {"outlier_threshold": 0.4, "vote_coverage": 1.0}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"scater": "2"}, r"scater is not a setting here; expected one of \d+, the nearest: \w*scatter, "),
        ({"share": "0.2"}, "share is not a setting here"),
        ({"click_scatter": "wide"}, "click_scatter is 'wide'; expected a number"),
        ({"vote_coverage": "2"}, r"vote_coverage is 2; expected 0\.1 to 1"),
    ],
)
def test_invalid_settings_are_refused_in_a_sentence(texts, sentence):
    with pytest.raises(SettingsError, match=sentence):
        FusionPlan.make(texts=texts)


def test_algorithms_that_are_not_known_are_refused_with_those_that_are():
    with pytest.raises(
        SettingsError, match=r"'magic' is not an algorithm for clicks; expected one of oem, cem"
    ):
        FusionPlan.make("magic")
    with pytest.raises(
        SettingsError, match=r"'magic' is not an algorithm for clicks; expected one of dem, majority"
    ):
        FusionPlan.make("oem", {"detector": "magic"})
    with pytest.raises(SettingsError, match="takes"):
        FusionPlan("oem", "dem", HACSettings())


def test_a_plan_survives_json():
    for algorithm, detector in product(CLUSTERERS, DETECTORS):
        plan = FusionPlan.make(algorithm, {"detector": detector, "outlier_threshold": "0.25"})
        assert FusionPlan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan
        assert CLUSTERERS[algorithm].title in plan.in_words()
        assert DETECTORS[detector].title in plan.in_words()
        names = [
            spec.name for part in (plan.clustering, plan.detection, plan.assignment) for spec in part.specs()
        ]
        assert len(set(names)) == len(names), plan  # texts differ


def test_a_stored_plan_that_is_invalid_is_refused():
    with pytest.raises(SettingsError, match="algorithm"):
        FusionPlan.from_dict({"detector": "dem"})


def test_annotators_in_another_order_keep_their_results():
    clicks, order = CROWD.clicks, np.random.default_rng(4).permutation(20)
    fusion = fuse(clicks)
    position = np.argsort(order)
    shuffled = fuse(
        replace(
            clicks,
            annotator=position[clicks.annotator],
            annotators=tuple(clicks.annotators[i] for i in order),
        )
    )
    turned = fusion.reordered(order)
    np.testing.assert_array_equal(turned.marked, shuffled.marked)
    np.testing.assert_allclose(turned.clustering.reliability, shuffled.clustering.reliability)
    np.testing.assert_allclose(turned.detection.sensitivity, shuffled.detection.sensitivity, atol=1e-4)
    np.testing.assert_allclose(turned.detection.false_negative, shuffled.detection.false_negative, atol=1e-3)
    np.testing.assert_array_equal(turned.rates.clicks, shuffled.rates.clicks)
    np.testing.assert_array_equal(turned.reordered(position).rates.sensitivity, fusion.rates.sensitivity)
    with pytest.raises(ValueError, match="each of them once"):
        fusion.reordered(np.array([0, 0, 1]))


def test_the_precision_is_the_share_of_an_annotators_marks_on_structures():
    fusion = fuse(CROWD.clicks)
    marks, posterior = fusion.rates.marks, fusion.detection.posterior
    expected = fusion.marked @ posterior / np.maximum(marks, 1)
    assert fusion.rates.precision[:, 0] == pytest.approx(expected)
    names, pooled = pool_rates([fusion, fusion], [CROWD.clicks.annotators] * 2)
    assert names == CROWD.clicks.annotators
    assert pooled.precision[:, 0] == pytest.approx(expected)
    twice, once = (np.ptp(rates.precision[:, 1:], axis=1) for rates in (pooled, fusion.rates))
    assert (twice <= once).all()  # ends are whole marks, so that a width may stay the same
    assert np.mean(twice < once) > 0.9


def test_a_second_click_on_each_spot_changes_no_precision():
    clicks = CROWD.clicks
    once, row = fuse(clicks), 3
    own = clicks.annotator == row
    twice = replace(
        clicks,
        annotator=np.append(clicks.annotator, clicks.annotator[own]),
        x=np.append(clicks.x, clicks.x[own] + 0.3),
        y=np.append(clicks.y, clicks.y[own] - 0.2),
        time=None,
    )
    fusion = fuse(twice)
    assert fusion.rates.precision[row] == pytest.approx(once.rates.precision[row], abs=0.03)
    assert fusion.rates.clicks[row] == 2 * once.rates.clicks[row]
    pooled = pool_rates([fusion, once], [clicks.annotators] * 2)[1].precision[row]
    assert pooled[0] == pytest.approx(once.rates.precision[row, 0], abs=0.03)


def test_doubtful_spots_widen_the_interval_of_a_sensitivity():
    hit, miss, half = np.array([30.0]), np.array([20.0]), np.array([0.5])
    exact, at_errors = beta(30.5, 20.5), np.ones((1, len(ERRORS)))
    sure = sensitivity_of(hit, miss, 30 * at_errors, 50 * at_errors, half, half)
    assert sure[0] == pytest.approx([exact.mean(), *exact.interval(0.95)])
    # spots that the annotator did not mark are in doubt: the ends are those of the lowest and highest level
    missed = 40 / (1 + np.exp(-ERRORS))
    doubtful = sensitivity_of(hit, miss, 30 * at_errors, 30 + missed[None], half, half)
    assert doubtful[0, 0] == sure[0, 0]
    assert doubtful[0, 1] == pytest.approx(beta(30.5, missed[-1] + 0.5).ppf(0.025))
    assert doubtful[0, 2] == pytest.approx(beta(30.5, missed[0] + 0.5).ppf(0.975))
    # doubt about all spots alike does not change the share, but fewer structures show less
    even = sensitivity_of(hit, miss, 18 + 0.6 * missed[None], 30 + missed[None], half, half)
    assert even[0, 1] == pytest.approx(beta(18.5 + 0.6 * missed[0], 12.5 + 0.4 * missed[0]).ppf(0.025))


def test_the_sensitivity_of_an_annotator_does_not_depend_on_how_many_are_estimated_at_once():
    """Processes estimate those of some images each: the last bits would depend on their number."""
    generator = np.random.default_rng(3)
    structures = generator.uniform(1, 60, (200, len(ERRORS)))
    hits = structures * generator.random((200, 1))
    columns = hits[:, 4], (structures - hits)[:, 4], hits, structures, *generator.random((2, 200))
    together = sensitivity_of(*columns)
    for size in (1, 3, 50):
        rows = [slice(begin, begin + size) for begin in range(0, 200, size)]
        parts = [sensitivity_of(*(column[own] for column in columns)) for own in rows]
        np.testing.assert_array_equal(np.concatenate(parts), together)


@pytest.mark.parametrize("artefacts", [0, 4, 10])
def test_the_interval_of_a_sensitivity_is_that_of_structures_among_doubtful_spots(artefacts):
    """Few annotators mark artefacts; if the level of the run is lower than estimated, they are no misses."""
    posterior, low, high = (
        np.append(np.full(30, structure), np.full(artefacts, artefact))
        for structure, artefact in ((0.995, 0.8), (0.97, 0.2), (0.999, 0.95))
    )
    detection = replace(
        fuse(CROWD.clicks).detection, posterior=posterior, posterior_low=low, posterior_high=high
    )
    marked = (np.arange(30 + artefacts) < 24)[None]
    hits, structures = counts_at_errors(marked, detection)
    half = np.array([0.5])
    rate = sensitivity_of(marked @ posterior, ~marked @ posterior, hits, structures, half, half)
    assert rate[0, 1] < 0.8 < rate[0, 2]


def test_a_result_of_an_earlier_version_gets_its_precision():
    fusion = fuse(CROWD.clicks)
    old = AnnotatorRates(
        fusion.rates.clicks, fusion.rates.reliability, fusion.rates.sensitivity,
        specificity=fusion.rates.sensitivity,
    )  # fmt: skip
    error = error_of_marks(fusion.marked, fusion.detection)
    expected = precision_of(fusion.detection.true_positive, fusion.rates.clicks, error)
    assert np.array_equal(replace(fusion, rates=old).rates.precision, expected)


def test_the_interval_of_a_precision_holds_one_where_all_marks_may_be_right():
    marks, hit = np.array([10, 10, 0]), np.array([9.99, 6.3, 0.0])
    rates = precision_of(hit, marks, np.column_stack([hit, hit, hit * (1 - hit / 10)]))
    assert rates[0, 2] == 1.0
    assert (rates[:2, 1] <= rates[:2, 0]).all()
    assert np.isnan(rates[2]).all()


def test_the_interval_of_a_precision_is_that_of_independent_truths_at_a_common_level():
    """Draw the number of right marks: sure spots make it certain, doubtful ones and the level do not."""
    posterior = np.repeat([0.9999, 0.8], [30, 20])
    detection = replace(
        fuse(CROWD.clicks).detection, posterior=posterior, posterior_low=posterior, posterior_high=posterior
    )
    marked = np.array([posterior > 0.9, posterior < 0.9])
    marks, hit = marked.sum(axis=1), marked @ posterior
    sure, doubtful = precision_of(hit, marks, error_of_marks(marked, detection))
    assert sure[1] > 0.995
    assert sure[2] == 1.0
    assert (doubtful[1:] * 20).tolist() == pytest.approx(binom(20, 0.8).interval(0.95), abs=1)
    logit = np.log(posterior / (1 - posterior))
    ends = [1 / (1 + np.exp(-(logit + HALF_WIDTH * sign))) for sign in (-1, 1)]
    detection = replace(detection, posterior_low=ends[0], posterior_high=ends[1])
    _, wide = precision_of(hit, marks, error_of_marks(marked, detection))
    draws = np.random.default_rng(0).normal(logit[-1], detection.level_error, 100_000)
    drawn = np.random.default_rng(1).binomial(20, 1 / (1 + np.exp(-draws)))
    assert wide[1:] * 20 == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1)
