from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from raterscope.algorithms.clicks import FusionPlan, fuse
from raterscope.algorithms.clicks.counting import count_distribution, expected_count
from raterscope.algorithms.clicks.fusion import learn_from_each_other
from raterscope.algorithms.clicks.result import LEVEL_ERROR, level_error
from raterscope.algorithms.evaluation import true_detections
from tests.benchmarks.calibration.counts import KINDS, draw

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)


def test_equal_posteriors_that_are_known_give_the_binomial_distribution():
    share = np.full(20, 0.3)
    estimate, low, high = expected_count(share, share, share)
    assert estimate == pytest.approx(6.0)
    assert (low, high) == (binom.ppf(0.025, 20, 0.3), binom.ppf(0.975, 20, 0.3))


def test_what_is_decided_leaves_nothing_open():
    share = np.array([1.0, 1.0, 0.0, 1.0])
    assert expected_count(share, share, share) == (3.0, 3.0, 3.0)


def test_no_spots_are_no_structures():
    assert expected_count(np.empty(0), np.empty(0), np.empty(0)) == (0.0, 0.0, 0.0)


@given(SHARES)
def test_the_estimate_lies_about_the_interval_and_the_interval_among_the_spots(share):
    unknown = np.full(len(share), np.nan)
    estimate, low, high = expected_count(share, unknown, unknown)
    assert estimate == pytest.approx(share.sum())
    assert 0 <= low <= high <= len(share)
    assert low - 1 <= estimate <= high + 1


@given(SHARES, st.floats(0, 0.3))
def test_what_is_not_known_of_the_posteriors_only_widens_the_interval(share, away):
    _, low, high = expected_count(share, share, share)
    _, wider_low, wider_high = expected_count(share, np.maximum(share - away, 0), np.minimum(share + away, 1))
    assert wider_low <= low + 1
    assert wider_high >= high - 1


def test_posteriors_that_err_together_are_held_by_the_interval():
    # One annotator's rate moves every posterior of an image: it is drawn again for each of many images.
    rng = np.random.default_rng(3)
    middle = np.log(np.linspace(0.2, 0.8, 30) / (1 - np.linspace(0.2, 0.8, 30)))
    spread = 0.8

    def share(shift):
        return 1 / (1 + np.exp(-(middle + shift)))

    _, low, high = expected_count(share(0.0), share(-1.96 * spread), share(1.96 * spread), 1.0)
    many = [(rng.random(30) < share(shift)).sum() for shift in rng.normal(0, spread, 4000)]
    inside = np.mean([(low <= number) & (number <= high) for number in many])
    assert 0.945 <= inside <= 0.985
    _, narrow_low, narrow_high = expected_count(share(0.0), share(0.0), share(0.0))
    assert high - low > 1.5 * (narrow_high - narrow_low)


def test_very_many_spots_are_counted_as_few_are():
    share = np.random.default_rng(5).beta(0.4, 0.4, 1_500)
    low, high = np.maximum(share - 0.05, 0), np.minimum(share + 0.05, 1)
    chance = count_distribution(share, low, high)
    assert chance.sum() == pytest.approx(1.0)
    known = count_distribution(share, share, share)
    number = np.arange(len(known))
    assert known @ number == pytest.approx(share.sum())
    assert known @ (number - share.sum()) ** 2 == pytest.approx((share * (1 - share)).sum())
    assert chance @ (number - share.sum()) ** 2 > known @ (number - share.sum()) ** 2


def test_decisions_make_the_common_error_smaller_up_to_the_intervals():
    errors = [level_error(number) for number in (0, 3, 12, 100, 10**6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == LEVEL_ERROR
    assert errors[-1] == pytest.approx(1.0, abs=1e-3)


def test_crowds_whose_artefacts_attract_many_are_held_by_the_interval():
    """Half the annotators mark a typical artefact: votes alone take many of them for structures."""
    kind = replace(KINDS["lures"], images=4)
    inside = []
    for seed in range(900, 906):
        images = draw(kind, seed)
        fusions = learn_from_each_other(
            [image.clicks for image in images], [fuse(image.clicks) for image in images], FusionPlan()
        )
        for image, fusion in zip(images, fusions, strict=True):
            detection = fusion.detection
            true = true_detections(fusion.clustering.mean, detection.posterior, image.truth, image.radius)
            _, low, high = expected_count(
                detection.posterior, detection.posterior_low, detection.posterior_high, detection.level_error
            )
            inside.append(low <= true.sum() <= high)
    assert np.mean(inside) >= 0.85
