"""Scores of a program as one more observer of the clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks import Clicks, Votes
from raterscope.algorithms.clicks._observers import ScoredClusters, fit_scores
from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.dem import dem as detect
from raterscope.algorithms.clicks.fusion import fuse
from raterscope.algorithms.clicks.result import Detection
from raterscope.algorithms.clicks.robustness import score_notice
from raterscope.algorithms.clicks.voting import cluster_scores
from tests.algorithms.clicks.crowds import made


def dem(votes: Votes) -> Detection:
    """Detect with few draws for the intervals."""
    return detect(votes, DEMSettings(interval_draws=20))


def crowd(seed: int, structures: int, artefacts: int, people: int = 20) -> tuple[Votes, np.ndarray]:
    """Simulate votes of people who mark structures as often as they can, and artefacts by Beta(1, 4)."""
    rng = np.random.default_rng(seed)
    true = np.arange(structures + artefacts) < structures
    chance = np.where(true, rng.beta(4, 3, len(true)), rng.beta(1, 4, len(true)))
    marked = rng.random((people, len(true))) < chance
    visible = marked.sum(axis=0) >= 2
    marked, true = marked[:, visible], true[visible]
    unknown = np.full(len(true), -1, dtype=np.int8)
    return Votes(marked, marked.mean(axis=0), unknown, np.full(people, 1e-3), 500.0), true


def scored(votes: Votes, true: np.ndarray, apart: float, seed: int = 0) -> Votes:
    """Return the program's scores: normal, so far apart; one structure in ten is not detected."""
    rng = np.random.default_rng([5, seed])
    score = rng.normal(apart * true, 1.0)
    result = rng.random(len(true)) < np.where(true | (apart == 0), 0.9, 0.6)
    return replace(votes, score=np.where(result, score, np.nan))


def log_loss(posterior: np.ndarray, true: np.ndarray) -> float:
    return float(-np.log(np.clip(np.where(true, posterior, 1 - posterior), 1e-6, 1)).mean())


def losses(apart: float) -> tuple[float, float]:
    """Return the mean log loss over crowds by votes alone and with scores."""
    result = []
    for seed in range(6):
        votes, true = crowd(seed, 80, 40)
        with_scores = scored(votes, true, apart, seed)
        result.append([log_loss(dem(item).posterior, true) for item in (votes, with_scores)])
    before, after = np.mean(result, axis=0)
    return float(before), float(after)


def test_uninformative_scores_change_almost_nothing():
    before, after = losses(0.0)
    assert after <= 1.01 * before


@pytest.mark.parametrize(("apart", "gain"), [(1.19, 0.98), (2.33, 0.95)])
def test_good_scores_lower_the_log_loss(apart, gain):
    """The areas under the ROC curve are .8 and .95."""
    before, after = losses(apart)
    assert after <= gain * before


def test_only_the_order_of_the_scores_counts():
    votes, true = crowd(1, 40, 40)
    votes = scored(votes, true, 2.0)
    other = replace(votes, score=-1000 + 3 * np.exp(votes.score))
    np.testing.assert_allclose(dem(votes).posterior, dem(other).posterior)


def test_a_run_of_artefacts_alone_is_cleared_by_twelve_rejections():
    votes, true = crowd(3, 0, 60)
    votes = scored(votes, true, 1.5)
    order = np.argsort(abs(dem(votes).posterior - 0.5))
    verdict = votes.verdict.copy()
    verdict[order[:12]] = 0
    left = dem(replace(votes, verdict=verdict)).posterior[order[12:]]
    assert np.mean(left >= 0.5) <= 0.1


def test_a_posterior_with_scores_lies_in_its_interval():
    votes, true = crowd(2, 40, 40)
    result = dem(scored(votes, true, 2.0))
    assert ((result.posterior_low <= result.posterior) & (result.posterior <= result.posterior_high)).all()


def test_an_image_that_was_not_searched_is_as_before():
    votes, _ = crowd(4, 30, 30)
    np.testing.assert_array_equal(dem(votes).posterior, dem(replace(votes, score=None)).posterior)


def test_each_detection_belongs_to_one_cluster():
    clicks = made([(20, 20), (21, 20), (20, 21), (70, 70), (71, 70), (70, 71)], [0, 1, 2, 0, 1, 2])
    fusion = fuse(replace(clicks, scores=np.array([[20.3, 20.4, 3.0], [20.5, 20.0, 7.0], [50, 50, 9.0]])))
    assert len(fusion.clustering) == 2
    assert sorted(np.isnan(fusion.score)) == [False, True]
    assert np.nanmax(fusion.score) in (3.0, 7.0)
    assert cluster_scores(clicks, fusion.clustering) is None
    none = cluster_scores(replace(clicks, scores=np.empty((0, 3))), fusion.clustering)
    assert np.isnan(none).all()


def test_scores_must_be_finite():
    clicks = made([(20, 20)], [0])
    with pytest.raises(ClicksError, match="scores of a program"):
        replace(clicks, scores=np.array([[1.0, 2.0, np.nan]]))
    assert isinstance(clicks, Clicks)


def test_scores_that_contradict_the_votes_are_named():
    votes, true = crowd(1, 40, 40)
    fusion = fuse(made([(20, 20), (21, 20), (70, 70), (71, 70)], [0, 1, 0, 1]))
    assert score_notice([fusion]) is None
    detection = replace(dem(votes), detected=true)
    order = np.arange(len(true)) * np.where(true, -1.0, 1.0)
    for score, words in (
        (np.where(true, np.nan, 1.0), "has a detection on 0 of"),
        (order, "high scores are detected less often"),
    ):
        assert words in score_notice([replace(fusion, detection=detection, score=score)])
    assert score_notice([replace(fusion, detection=detection, score=-order)]) is None


def test_equal_scores_show_only_where_there_are_detections():
    """Otherwise their common rank would look like evidence of every detection."""
    rng = np.random.default_rng(4)
    problems = 200
    rank, tied = np.full(problems, 0.5), np.ones(problems)
    chance, log_odds = rng.uniform(0.6, 1, problems), rng.normal(size=problems)
    nothing = np.zeros(problems, dtype=bool)
    clusters = ScoredClusters(
        [np.ones(problems, bool)], rank, tied, np.ones(problems, bool), log_odds, nothing, np.zeros(problems)
    )
    fit = fit_scores(clusters, chance)
    ratio = fit.node_weight @ fit.ratio[0]
    assert np.abs(ratio - 1).max() < 0.1


def test_votes_that_part_the_clusters_widely_raise_no_warning():
    """Then all detections are structures in double precision."""
    true = np.arange(400) % 2 == 0
    detected = np.arange(400) < 200
    rank = np.where(detected, (np.arange(400) + 0.5) / 200, 0.5)
    none = np.zeros(400, dtype=bool)
    votes = np.where(true, 10.0, -10.0)
    fit = fit_scores(ScoredClusters([~none], rank, 0.0 * rank, detected, votes, none, 0.0 * rank), 1.0 * true)
    assert fit.node_weight.sum() == pytest.approx(1.0)
