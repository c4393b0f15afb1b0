"""Algorithm 1 of the OEM-DEM paper and CEM, against loops written from the papers' text alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raterscope.algorithms.clicks.baseline_clustering import CEMSettings, cem
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.simulation.click_crowds import overlapping_crowd, separated_crowd

L, EPSILON, MOST, LEAST, P0 = 5, 1e-5, 500, 10, 0.9
FLOOR = 0.3
"""Of the squared initial scatter: the only setting that is not the paper's."""


def k_means_as_in_section_3_1(points, count):
    """Use the centroids of scikit-learn, with clicks in the order in which they are sorted by the grid."""
    from raterscope.algorithms.clicks.oem import k_means

    return k_means(points, np.ones(len(points)), count, 0)


def beginning(clicks, count):
    """Choose the means and Sigma0 as section 3.1 does; the order of clicks only affects rounding."""
    from raterscope.algorithms.clicks._crowd import sort_into_cells

    variance = np.mean([np.var(clicks.x, ddof=1), np.var(clicks.y, ddof=1)]) / 200
    cells = sort_into_cells(clicks, 3 * math.sqrt(variance))
    return k_means_as_in_section_3_1(np.column_stack([cells.x, cells.y]), count) + cells.centre, variance


def gaussian(points, mean, covariance):
    """Eq. 2."""
    inverse, determinant = np.linalg.inv(covariance), np.linalg.det(covariance)
    away = points - mean
    return np.exp(-0.5 * ((away @ inverse) * away).sum(axis=1)) / math.sqrt((2 * math.pi) ** 2 * determinant)


def floored(covariance, least):
    values, vectors = np.linalg.eigh(covariance)
    return vectors @ np.diag(np.maximum(values, least)) @ vectors.T


def algorithm_1(clicks, count, *, cem=False):
    """Loop over components as Algorithm 1 does, line by line; all clicks, no shortcuts.

    With `cem` all p_r are one, eq. 2.17 of the thesis takes the place of eq. 15, and the message length of
    its section 2.2 that of eq. 16.
    """
    x, annotator, annotators = clicks.points, clicks.annotator, len(clicks.annotators)
    uniform = 1 / clicks.area
    means, variance = beginning(clicks, count)
    mean, covariance = list(means), [np.eye(2) * variance for _ in means]
    pi, p = [1 / len(mean)] * len(mean), np.full(annotators, 1.0 if cem else P0)
    penalty = L / 2 if cem else L / 4
    best, best_score, last_score, t, scores, counts = None, -np.inf, -np.inf, -1, [], []
    while len(pi) > 1 and t + 1 < MOST:
        while True:
            t += 1
            each = [pi[m] * gaussian(x, mean[m], covariance[m]) for m in range(len(pi))]  # E step, line 5
            mixture = np.sum(each, axis=0)
            alpha = p[annotator] * mixture / (p[annotator] * mixture + (1 - p[annotator]) * uniform)
            zeta = [density / np.maximum(mixture, 1e-300) for density in each]
            if not cem:  # M step, line 6: eq. 12
                p = np.array([alpha[annotator == r].mean() for r in range(annotators)]).clip(1e-6, 1 - 1e-6)
            soft = [(alpha * item).sum() for item in zeta]
            total = sum(max(0.0, count - penalty) for count in soft)
            new_pi, new_mean, new_covariance, kept = [], [], [], []
            for m, count in enumerate(soft):
                share = max(0.0, count - penalty) / total  # eq. 15
                if share == 0:
                    continue
                centre = (alpha * zeta[m]) @ x / count  # eq. 13
                away = x - centre
                spread = (away * (alpha * zeta[m])[:, None]).T @ away / count  # eq. 14
                new_pi.append(share)
                new_mean.append(centre)
                new_covariance.append(floored(spread, FLOOR * variance))
                kept.append(m)
            pi, mean, covariance = new_pi, new_mean, new_covariance
            if cem:
                score = -message_length(x, pi, mean, covariance)
            else:
                log_pi = [math.log(item) for item in pi]
                expected = ((1 - alpha) * np.log((1 - p[annotator]) * uniform)).sum() + alpha @ np.log(
                    p[annotator]
                )
                for position, m in enumerate(kept):  # eq. 7, with the posteriors of line 5
                    density = gaussian(x, mean[position], covariance[position])
                    log_density = np.log(np.maximum(density, 1e-300))
                    expected += (alpha * zeta[m]) @ (log_pi[position] + log_density)
                free = len(pi) * (L + 1) + annotators
                score = expected - L / 4 * sum(log_pi) - free / 2 * math.log(alpha.sum())  # eq. 16
            scores.append(score)
            counts.append(len(pi))
            if score > best_score:
                best_score = score
                best = np.array(mean), np.array(covariance), np.array(pi), p.copy(), alpha
            ended = score - last_score < EPSILON * abs(score)  # eq. 17
            last_score = score
            if t + 1 >= MOST or (ended and t + 1 >= LEAST):
                break
        weakest = int(np.argmin(pi))  # line 9
        del pi[weakest], mean[weakest], covariance[weakest]
    return best, np.array(scores), np.array(counts)


def message_length(x, pi, mean, covariance):
    """F of the thesis, section 2.2."""
    likelihood = np.log(
        sum(share * gaussian(x, *item) for share, *item in zip(pi, mean, covariance, strict=True))
    )
    clicks, count = len(x), len(pi)
    length = L / 2 * sum(math.log(clicks * item / 12) for item in pi)
    return -likelihood.sum() + length + count / 2 * math.log(clicks / 12) + (count * L + count) / 2


def scores_of(results, crowd):
    result = evaluate(results.mean, crowd.mean, 0.3)
    return len(results), result.sensitivity, result.precision


@pytest.mark.parametrize(("annotators", "seed", "count"), [(31, 0, 30), (11, 4, 120)])
def test_as_printed_walks_algorithm_1_line_by_line(annotators, seed, count):
    clicks = overlapping_crowd(annotators, seed).clicks
    result = oem(clicks, OEMSettings(as_published=True, initial_clusters=count))
    (mean, covariance, weight, reliability, inlier), scores, counts = algorithm_1(clicks, count)
    np.testing.assert_array_equal(result.trace.components, counts)
    np.testing.assert_allclose(result.trace.objective, scores, rtol=1e-6)
    np.testing.assert_allclose(result.mean, mean, atol=1e-5)
    np.testing.assert_allclose(result.covariance, covariance, atol=1e-5)
    np.testing.assert_allclose(result.weight, weight, atol=1e-6)
    np.testing.assert_allclose(result.inlier, inlier, atol=1e-5)
    np.testing.assert_allclose(result.reliability, reliability, atol=2e-6)


@pytest.mark.parametrize(
    ("annotators", "form", "expected"),
    [
        (31, "literal", (8, 0.8, 1.0)),
        (51, "literal", (19, 1.0, 0.53)),
        (31, "refreshed", (21, 0.9, 0.43)),
        (51, "refreshed", (25, 1.0, 0.4)),
    ],
)
def test_as_printed_finds_what_a_literal_implementation_finds(annotators, form, expected):
    crowd = overlapping_crowd(annotators, 0)
    result = oem(crowd.clicks, OEMSettings(as_published=True, published_form=form))
    assert scores_of(result, crowd) == pytest.approx(expected, abs=0.005)


def test_as_printed_makes_ten_iterations_at_least():
    clicks = separated_crowd(20, seed=1).clicks
    settings = OEMSettings(as_published=True, initial_clusters=2)
    assert len(oem(clicks, settings).trace.objective) >= LEAST


def test_the_papers_cem_is_algorithm_1_without_outliers():
    clicks = overlapping_crowd(11, 2).clicks
    result = cem(clicks, CEMSettings(version="paper", initial_clusters=60))
    (mean, covariance, weight, *_), scores, counts = algorithm_1(clicks, 60, cem=True)
    np.testing.assert_array_equal(result.trace.components, counts)
    np.testing.assert_allclose(result.trace.objective, scores, rtol=1e-6)
    np.testing.assert_allclose(result.mean, mean, atol=1e-5)
    np.testing.assert_allclose(result.covariance, covariance, atol=1e-5)
    np.testing.assert_allclose(result.weight, weight, atol=1e-6)


def test_the_theses_cem_follows_equations_2_14_to_2_17():
    """One iteration from the same beginning; its score is minus F."""
    clicks = separated_crowd(20, seed=5).clicks
    settings = CEMSettings(version="thesis", max_iterations=1, click_scatter=20.0, initial_clusters=30)
    result = cem(clicks, settings)
    from raterscope.algorithms.clicks._crowd import sort_into_cells

    cells = sort_into_cells(clicks, 60.0)
    start = k_means_as_in_section_3_1(np.column_stack([cells.x, cells.y]), 30) + cells.centre
    x = clicks.points
    each = np.column_stack([gaussian(x, item, np.eye(2) * 400.0) / 30 for item in start])
    share = each / each.sum(axis=1, keepdims=True)
    left = np.maximum(share.sum(axis=0) - L / 2, 0)
    pi = left / left.sum()
    alive = np.flatnonzero(pi)
    assert len(result) == len(alive)
    mean = [share[:, m] @ x / share[:, m].sum() for m in alive]
    spread = [
        floored((share[:, m, None] * (x - item)).T @ (x - item) / share[:, m].sum(), 0.3 * 400)
        for m, item in zip(alive, mean, strict=True)
    ]
    np.testing.assert_allclose(result.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(result.covariance, spread, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(result.weight, pi[alive], rtol=1e-7)
    assert result.trace.objective[0] == pytest.approx(-message_length(x, pi[alive], mean, spread), rel=1e-8)


def test_the_methods_text_lists_every_difference_from_the_paper():
    literal = OEMSettings(as_published=True)
    refreshed = OEMSettings(as_published=True, published_form="refreshed")
    assert literal.departures() == ("covariances have a floor",)
    assert len(refreshed.departures()) == 5
    assert len(OEMSettings(criterion="observed").departures()) > 9
    words = FusionPlan(clustering=refreshed).in_words()
    for clause in refreshed.departures():
        assert clause in words
    assert "no bound" in words
    printed = FusionPlan.make("oem", {"as_published": "yes", "vote_coverage": "1"})
    assert "no bound" not in printed.in_words()
    assert "message length" in FusionPlan.make("cem", {"criterion": "observed"}).in_words()


def test_the_theses_cost_is_that_of_the_state_that_is_kept():
    """-Q + L M/2 log of the inliers (thesis, section 2.1), of the parameters of the best iteration."""
    crowd = separated_crowd(20, 3)
    clicks = crowd.clicks
    settings = OEMSettings(criterion="thesis", covariance="free", click_scatter=20.0)
    result = oem(clicks, settings)
    x, p = clicks.points, result.reliability[clicks.annotator].clip(1e-6, 1 - 1e-6)
    each = result.weight[:, None] * np.array(
        [gaussian(x, *item) for item in zip(result.mean, result.covariance, strict=True)]
    )
    mixture = each.sum(axis=0)
    alpha = p * mixture / (p * mixture + (1 - p) / clicks.area)
    zeta = each / np.maximum(mixture, 1e-300)
    expected = (alpha * (zeta * np.log(np.maximum(p * each, 1e-300))).sum(axis=0)).sum()
    expected += ((1 - alpha) * np.log((1 - p) / clicks.area)).sum()
    cost = -expected + L * len(result) / 2 * math.log(alpha.sum())
    assert -result.trace.objective.max() == pytest.approx(cost, rel=1e-3)
    assert len(result) == 15
