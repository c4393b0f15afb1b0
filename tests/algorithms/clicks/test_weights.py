"""An annotator of weight w counts as w annotators who click alike.

An annotator can be divided into several with weights that add up to one. Without random draws, and at
convergence of EM, this changes nothing. And one of nearly no weight leaves what the others say.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks import Clicks, FusionPlan, Votes, fuse, learn_from_each_other
from raterscope.algorithms.clicks._crowd import sort_into_cells
from raterscope.algorithms.clicks._path import Path, walk
from raterscope.algorithms.clicks.dem import DEMSettings, dem, recursive
from raterscope.algorithms.clicks.image_priors import experience_of, judge_each, weigh_together
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.clicks.robustness import same_clusters
from raterscope.algorithms.clicks.stopping import predict_outlook, rank_annotators, rank_images
from raterscope.algorithms.clicks.stream import advance_stream, begin_stream
from raterscope.algorithms.clicks.voting import MajoritySettings, ShareSettings, majority, share
from raterscope.algorithms.evaluation import match
from raterscope.algorithms.progress import silent
from raterscope.algorithms.simulation.click_crowds import overlapping_crowd
from tests.algorithms.clicks.crowds import made, until, votes_of_text

NEARLY_NONE = 1e-6
PRIORS = ("crowd", "beta", "none")
CLUSTERERS = ("oem", "cem", "kmeans", "hac", "dbscan", "hdbscan")
BAD = "a12"
"""Annotators who click at random in `crowd(..., stray=True)`."""


def crowd(seed: int, people: int = 12, random: bool = False, side: float = 400.0):
    """Draw annotators who mark 40 objects once or not and stray now and then; one may click at random.

    He makes three tenths of all clicks then.
    """
    generator = np.random.default_rng(seed)
    objects = generator.uniform(10, side - 10, (40, 2))
    points = []
    for _ in range(people):
        visible = objects[generator.random(40) < generator.beta(12, 4)]
        stray = generator.uniform(0, side, (generator.poisson(3), 2))
        points.append(np.concatenate([visible + generator.normal(0, 3, visible.shape), stray]))
    if random:
        points.append(generator.uniform(0, side, (round(3 / 7 * sum(map(len, points))), 2)))
    annotator = np.repeat(np.arange(len(points)), [len(own) for own in points])
    return made(np.concatenate(points), annotator, extent=(0.0, 0.0, side, side)), objects


def several(clicks: Clicks, item: int, times: int) -> Clicks:
    """Divide an annotator into several with the same total weight."""
    own, number = clicks.annotator == item, len(clicks.annotators)
    others = [np.full(own.sum(), number + extra) for extra in range(times - 1)]
    weights = np.ones(number + times - 1)
    weights[[item, *range(number, len(weights))]] = 1 / times
    return replace(
        clicks,
        x=np.concatenate([clicks.x, *[clicks.x[own]] * (times - 1)]),
        y=np.concatenate([clicks.y, *[clicks.y[own]] * (times - 1)]),
        annotator=np.concatenate([clicks.annotator, *others]),
        annotators=(*clicks.annotators, *(f"again {extra}" for extra in range(times - 1))),
        weights=weights,
    )


def votes(seed: int, annotators: int = 9, clusters: int = 40) -> Votes:
    generator = np.random.default_rng(seed)
    present = generator.random(clusters) < 0.6
    able, stray = generator.beta(12, 5, annotators)[:, None], generator.beta(2, 18, annotators)[:, None]
    marked = generator.random((annotators, clusters)) < np.where(present, able, stray)
    return of_marks(marked)


def of_marks(marked, weights=None) -> Votes:
    clusters = marked.shape[1]
    return Votes(
        marked, np.full(clusters, 1 / clusters), np.full(clusters, -1, dtype=np.int8),
        np.full(len(marked), 0.01), 2000.0, weights,
    )  # fmt: skip


def share_right(fusion, objects, radius=9.0):
    """F1 of the detections."""
    result = fusion.clustering.mean[fusion.detection.detected]
    return 2 * len(match(result, objects, radius)) / (len(result) + len(objects))


# One annotator listed as several


@pytest.mark.parametrize("criterion", ["observed", "expected", "thesis", "length"])
def test_algorithm_1_cannot_distinguish_three_thirds_of_an_annotator_from_one(criterion):
    clicks, sigma = overlapping_crowd(21, 3).clicks, 0.25
    mean = clicks.points[np.random.default_rng(3).choice(len(clicks), 14, replace=False)]
    outliers = criterion != "length"
    path = Path(criterion, 1.25, 0.3 * sigma**2, math.inf, 0, 200, 1e-6, 0.9, outliers=outliers)
    result = []
    for clicks_of_image in (clicks, several(clicks, 4, 3)):
        cells = sort_into_cells(clicks_of_image, 3 * sigma)
        start = np.array([sigma**2, 0.0, sigma**2])
        trusted, uniform = (
            np.full(len(clicks_of_image.annotators), 0.9),
            (1 / clicks_of_image.area if outliers else 0.0),
        )
        result.append(walk(cells, trusted, uniform, mean - cells.centre, start, path, sigma, silent))
    once, thrice = result
    np.testing.assert_allclose(thrice.trace.objective, once.trace.objective, rtol=1e-9)
    np.testing.assert_allclose(thrice.mean, once.mean, atol=1e-6)
    np.testing.assert_allclose(thrice.weight, once.weight, atol=1e-9)
    np.testing.assert_allclose(thrice.inlier[: len(clicks)], once.inlier, atol=1e-6)
    np.testing.assert_allclose(thrice.reliability[:21], once.reliability, atol=1e-6)


@pytest.mark.parametrize("repeats", ["once", "often"])
def test_the_evidence_hardly_distinguishes_three_thirds_of_an_annotator_from_one(repeats):
    """Where components begin differs, and a few steps of EM do not forget it quite."""
    settings = OEMSettings(click_scatter=3.0, repeats=repeats)
    for seed in range(3):
        clicks, _ = crowd(seed)
        once, thrice = oem(clicks, settings), oem(several(clicks, 5, 3), settings)
        pairs = match(thrice.mean, once.mean, 0.02)
        assert len(pairs) == len(once) == len(thrice)
        assert thrice.trace.objective[-1] == pytest.approx(once.trace.objective[-1], abs=0.2)
        np.testing.assert_allclose(thrice.inlier[: len(clicks)], once.inlier, atol=0.01)
        np.testing.assert_allclose(thrice.reliability[:12], once.reliability, atol=0.01)


@pytest.mark.parametrize("prior", PRIORS)
def test_detection_cannot_distinguish_three_thirds_of_an_annotator_from_one(prior):
    settings = DEMSettings(prior=prior, interval_draws=20)
    for seed in range(3):
        marked = votes(seed).marked
        weights = np.array([*[1.0] * 8, 1 / 3, 1 / 3, 1 / 3])
        once = dem(of_marks(marked), settings)
        thrice = dem(of_marks(np.concatenate([marked, marked[8:], marked[8:]]), weights), settings)
        np.testing.assert_allclose(thrice.posterior, once.posterior, atol=1e-9)
        np.testing.assert_allclose(thrice.sensitivity[:9], once.sensitivity, atol=1e-9)
        np.testing.assert_allclose(thrice.specificity[:9], once.specificity, atol=1e-9)
        np.testing.assert_allclose(thrice.objective, once.objective, rtol=1e-9)


def test_a_large_crowd_is_believed_by_what_it_counts():
    marked = votes(0, annotators=100).marked
    halves = np.concatenate([marked, marked])
    once = dem(of_marks(marked), DEMSettings(interval_draws=20))
    twice = dem(of_marks(halves, np.full(200, 0.5)), DEMSettings(interval_draws=20))
    np.testing.assert_allclose(twice.posterior, once.posterior, atol=1e-9)


@pytest.mark.parametrize(
    ("detect", "settings"), [(majority, MajoritySettings()), (share, ShareSettings(0.3))]
)
def test_a_vote_cannot_distinguish_ten_tenths_of_an_annotator_from_one(detect, settings):
    marked = votes(4).marked
    once = detect(of_marks(marked), settings)
    tenths = detect(of_marks(np.repeat(marked, 10, axis=0), np.full(90, 0.1)), settings)
    assert tenths.detected.tolist() == once.detected.tolist()
    np.testing.assert_allclose(tenths.posterior, once.posterior)
    np.testing.assert_allclose(tenths.posterior_low, once.posterior_low)


def test_images_teach_each_other_the_same_by_three_thirds_of_an_annotator_as_by_one():
    images = [votes(seed, clusters=25) for seed in range(4)]
    names = [f"w{number}" for number in range(9)]
    settings = DEMSettings(interval_draws=20)
    weights = np.array([*[1.0] * 8, 1 / 3, 1 / 3, 1 / 3])
    parts = [
        of_marks(np.concatenate([image.marked, image.marked[8:], image.marked[8:]]), weights)
        for image in images
    ]

    def detected(votes, annotators):
        alone = [dem(image, settings).posterior for image in votes]
        evidence = weigh_together(votes, [annotators] * 4, alone, settings, silent)
        return judge_each(evidence, settings, silent)

    once, thrice = detected(images, names), detected(parts, [*names, "x", "y"])
    for detection, other in zip(once, thrice, strict=True):
        np.testing.assert_allclose(other.posterior, detection.posterior, atol=1e-6)


# An annotator of nearly no weight


def test_with_nearly_no_weight_the_others_decide():
    for seed in range(2):
        clicks, _ = crowd(seed)
        nearly, without = fuse(clicks.with_weights({"a5": NEARLY_NONE})), fuse(clicks.without({"a5"}))
        there = same_clusters(nearly, without, clicks.annotator != 5)
        assert sorted(there) == list(range(len(without.clustering)))
        np.testing.assert_allclose(nearly.clustering.mean, without.clustering.mean[there], atol=0.05)
        assert (nearly.detection.detected == without.detection.detected[there]).all()
        np.testing.assert_allclose(nearly.detection.posterior, without.detection.posterior[there], atol=0.05)


@pytest.mark.parametrize("prior", PRIORS)
def test_votes_of_almost_zero_weight_have_no_effect(prior):
    settings = DEMSettings(prior=prior, interval_draws=20)
    for seed in range(3):
        marked, weights = votes(seed).marked, np.ones(9)
        weights[3] = NEARLY_NONE
        nearly, without = (
            dem(of_marks(marked, weights), settings),
            dem(of_marks(marked[np.arange(9) != 3]), settings),
        )
        np.testing.assert_allclose(nearly.posterior, without.posterior, atol=1e-5)


def test_what_more_annotators_would_change_is_predicted_from_what_those_here_count():
    clicks, _ = crowd(1, people=8, random=True)
    nearly, without = clicks.with_weights({"a8": NEARLY_NONE}), clicks.without({"a8"})
    informed = [predict_outlook(image, fuse(image), FusionPlan()) for image in (clicks, nearly, without)]
    assert informed[1].expected == pytest.approx(informed[2].expected, rel=0.1)
    assert informed[1].missed == pytest.approx(informed[2].missed, rel=0.1)
    np.testing.assert_allclose(informed[1].sensitivity, informed[2].sensitivity, atol=0.02)
    gains = [rank_images([image], [fuse(image)], FusionPlan()).gain[0] for image in (nearly, without)]
    assert gains[0] == pytest.approx(gains[1], rel=0.15)


def test_experience_is_of_what_annotators_count():
    images = [crowd(seed, people=8)[0] for seed in range(3)]
    weighed = [image.with_weights({"a3": NEARLY_NONE}) for image in images]
    fusions = [fuse(image) for image in weighed]
    names = [image.annotators for image in images]
    learnt = experience_of(fusions, names, weights=[item.weights for item in weighed])
    without = [image.without({"a3"}) for image in images]
    others = experience_of(
        [fuse(image) for image in without], [clicks_of_image.annotators for clicks_of_image in without]
    )
    np.testing.assert_allclose(learnt.ease, others.ease, atol=0.3)
    assert learnt.votes == pytest.approx(others.votes, rel=0.05)
    requested = rank_annotators(until(weighed[0], 5), fuse(until(weighed[0], 5)), FusionPlan(), learnt)
    assert set(requested.annotators) == {"a5", "a6", "a7"}


# What holds for any weights


@pytest.mark.parametrize("algorithm", CLUSTERERS)
@pytest.mark.parametrize("detector", ["dem", "majority", "share", "recursive"])
def test_weights_of_one_change_nothing_and_slightly_less_almost_nothing(algorithm, detector):
    """Weights below 1 take another path through the inner loops."""
    clicks, _ = crowd(0, people=7)
    plan = FusionPlan.make(algorithm, {"detector": detector})
    plain, ones, less = (
        fuse(clicks if weight is None else replace(clicks, weights=np.full(7, weight)), plan)
        for weight in (None, 1.0, 1 - 1e-12)
    )
    for fusion, tolerance in ((ones, 0.0), (less, 1e-4)):
        np.testing.assert_allclose(fusion.clustering.mean, plain.clustering.mean, rtol=0, atol=tolerance)
        for name in ("posterior", "posterior_low", "posterior_high", "sensitivity"):
            values = (getattr(fusion.detection, name) for fusion in (fusion, plain))
            np.testing.assert_allclose(*values, rtol=0, atol=tolerance)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_objective_of_detection_never_falls(prior):
    for seed in range(5):
        weights = np.random.default_rng(seed).uniform(0.02, 1, 9)
        result = dem(replace(votes(seed), worth=weights), DEMSettings(prior=prior, interval_draws=20))
        assert (np.diff(result.objective) >= -1e-9).all()


def test_the_observed_likelihood_of_weighed_clicks_never_falls_between_removals():
    """As EM promises without the terms of the criterion that change with the components."""
    clicks, sigma = overlapping_crowd(21, 1).clicks, 0.25
    weights = np.random.default_rng(0).uniform(0.05, 1, 21)
    clicks = replace(clicks, weights=weights)
    mean = clicks.points[np.random.default_rng(1).choice(len(clicks), 14, replace=False)]
    likelihoods = []
    for iterations in (2, 5, 10, 20, 40, 80):
        path = Path("observed", 0.0, 0.3 * sigma**2, math.inf, 0, iterations, 1e-15, 0.9)
        cells = sort_into_cells(clicks, 3 * sigma)
        start = np.array([sigma**2, 0.0, sigma**2])
        trusted, centred = np.full(21, 0.9), mean - cells.centre
        result = walk(cells, trusted, 1 / clicks.area, centred, start, path, sigma, silent)
        if result.trace.best == iterations - 1:
            inside = float(weights[clicks.annotator] @ result.inlier)
            likelihoods.append(result.trace.objective[-1] + (6 * 14 + weights.sum()) / 2 * math.log(inside))
    assert len(likelihoods) >= 4
    assert (np.diff(likelihoods) > 0).all()


def test_every_removal_raises_the_evidence_of_weighed_clicks():
    clicks, _ = crowd(2)
    trace = oem(replace(clicks, weights=np.linspace(0.1, 1, 12))).trace
    assert trace.removed.any()
    assert (np.diff(trace.objective)[trace.removed[1:]] > 0).all()


@pytest.mark.parametrize(
    "detect",
    [dem, recursive, majority, lambda one: dem(one, DEMSettings(prior="beta", interval_draws=20))],
    ids=["dem", "recursive", "majority", "beta"],
)
def test_the_less_its_only_voter_counts_the_less_is_a_spot_believed(detect):
    for seed in range(4):
        marked = np.column_stack([votes(seed).marked, np.arange(9) == seed])
        posterior = []
        for weight in (1.0, 0.7, 0.4, 0.1, 1e-3):
            weights = np.ones(9)
            weights[seed] = weight
            posterior.append(detect(of_marks(marked, weights)).posterior[-1])
        assert (np.diff(posterior) <= 1e-9).all()
        assert posterior[-1] < posterior[0]


@pytest.mark.parametrize("algorithm", ["oem", "dbscan", "hac"])
def test_the_order_of_annotators_makes_no_difference(algorithm):
    clicks, _ = crowd(3, people=8)
    clicks = clicks.with_weights({"a2": 0.3, "a6": 0.7})
    order = np.random.default_rng(0).permutation(8)
    other = replace(
        clicks,
        annotator=np.argsort(order)[clicks.annotator],
        annotators=tuple(clicks.annotators[number] for number in order),
        weights=clicks.weights[order],
    )
    plan = FusionPlan.make(algorithm)
    first, two = fuse(clicks, plan), fuse(other, plan)
    np.testing.assert_allclose(two.clustering.mean, first.clustering.mean, atol=1e-6)
    np.testing.assert_allclose(two.detection.posterior, first.detection.posterior, atol=1e-6)
    for name in ("posterior_low", "posterior_high"):
        np.testing.assert_allclose(getattr(two.detection, name), getattr(first.detection, name), atol=1e-6)
    np.testing.assert_allclose(two.detection.sensitivity, first.detection.sensitivity[order], atol=1e-6)
    np.testing.assert_allclose(two.rates.sensitivity, first.rates.sensitivity[order], atol=1e-6)
    np.testing.assert_allclose(two.rates.precision, first.rates.precision[order], atol=1e-6)


def test_two_who_count_half_are_no_two_annotators():
    """A cluster of the crowd model takes two: one and a half are as near to two as to one."""
    spots = np.array([[20.0, 20.0], [80.0, 20.0], [20.0, 80.0], [80.0, 80.0], [50.0, 50.0]])
    everybody = np.concatenate([spots[:4] + shift for shift in np.linspace(-1, 1, 6)])
    points = np.concatenate([everybody, spots[4:], spots[4:] + 0.5])
    clicks = made(points, [*np.repeat(np.arange(6), 4), 0, 1])

    def finds(weights) -> bool:
        result = oem(clicks.with_weights(weights), OEMSettings(click_scatter=2.0))
        return bool((np.hypot(*(result.mean - spots[4]).T) < 3).any())

    assert finds({})
    assert finds({"a0": 0.5})
    assert not finds({"a0": 0.5, "a1": 0.5})
    assert not finds({"a0": 0.1})


def test_whole_votes_are_shown_and_own_rates_are_of_all_marks():
    clicks, _ = crowd(0)
    plain, weighed = fuse(clicks), fuse(clicks.with_weights({"a5": 0.5}))
    there = same_clusters(plain, weighed, np.ones(len(clicks), dtype=bool))
    kept = there >= 0
    assert kept.mean() > 0.9
    assert weighed.votes.dtype == np.int64
    assert (weighed.votes[there[kept]] == plain.votes[kept]).mean() > 0.9
    assert weighed.rates.clicks[5] == plain.rates.clicks[5]
    assert weighed.rates.sensitivity[5] == pytest.approx(plain.rates.sensitivity[5], abs=0.05)


def test_who_clicks_at_random_does_no_harm_with_a_tenth_of_his_weight():
    """Where every link of clicks makes a cluster and a tenth of the annotators a detection, he does harm."""
    plan = FusionPlan.make("hac", {"detector": "share", "share": "0.1", "cut": "8"})
    of = []
    for seed in range(6):
        clicks, objects = crowd(seed, people=6, random=True)
        ways = (clicks, clicks.with_weights({"a6": 0.1}), clicks.without({"a6"}))
        of.append([share_right(fuse(way, plan), objects) for way in ways])
    everybody, weighed, without = np.mean(of, axis=0)
    assert everybody < without - 0.1
    assert weighed == pytest.approx(without, abs=0.03)


def test_the_default_does_as_well_with_a_random_clicker_of_a_tenth_as_without():
    of = []
    for seed in range(6):
        clicks, objects = crowd(seed, people=5, random=True, side=250.0)
        ways = (clicks.with_weights({"a5": 0.1}), clicks.without({"a5"}))
        of.append([share_right(fuse(way), objects) for way in ways])
    weighed, without = np.mean(of, axis=0)
    assert weighed == pytest.approx(without, abs=0.015)


def test_images_of_weighed_annotators_are_fused_together():
    images = [crowd(seed, people=8)[0].with_weights({"a3": NEARLY_NONE}) for seed in range(3)]
    without = [image.without({"a3"}) for image in images]
    for fusion, other, clicks in zip(
        learn_from_each_other(images, [fuse(image) for image in images], FusionPlan()),
        learn_from_each_other(without, [fuse(image) for image in without], FusionPlan()),
        images,
        strict=True,
    ):
        there = same_clusters(fusion, other, clicks.annotator != 3)
        clear = abs(other.detection.posterior[there] - 0.5) > 0.01
        assert (fusion.detection.detected == other.detection.detected[there])[clear].all()
        difference = abs(fusion.detection.posterior - other.detection.posterior[there])
        assert difference.max() < 0.05
        assert np.median(difference) < 0.001


def test_a_stream_follows_weighed_annotators():
    clicks, _ = crowd(1, people=10)
    weighed = clicks.with_weights({"a2": 0.5, "a8": 0.2})
    state = begin_stream(until(weighed, 8))
    for number in (9, 10):
        state = advance_stream(state, until(weighed, number))
    at_once, followed = fuse(weighed), state.fusion
    result, other = (fusion.clustering.mean[fusion.detection.detected] for fusion in (at_once, followed))
    assert len(match(result, other, 4.0)) >= len(result) - 1
    assert abs(len(result) - len(other)) <= 1


def test_a_tie_of_tenths_is_a_tie():
    result = majority(replace(votes_of_text(["1", "0"] * 10), worth=np.full(20, 0.1)))
    assert result.detected.tolist() == [True]
