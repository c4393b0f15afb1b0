"""Clicks that keep coming: Algorithm 3 to the letter."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks import FusionPlan, fuse
from raterscope.algorithms.clicks._path import Path
from raterscope.algorithms.clicks.stream import StreamPlan, advance_stream, begin_stream
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import until
from tests.algorithms.clicks.streams import PLAN, crowd, followed, same, with_hidden
from tests.algorithms.clicks.test_oem_reference import densely_from


def inliers(clicks, mean, covariance, weight, reliability):
    """Eq. 8 of the parameters that a step begins with: those that the paper returns after one iteration."""
    away = clicks.points[:, None] - mean[None]
    square = np.einsum("nmi,mij,nmj->nm", away, np.linalg.inv(covariance), away)
    height = weight / (2 * np.pi * np.sqrt(np.linalg.det(covariance)))
    inside = reliability[clicks.annotator] * (np.exp(-square / 2) * height).sum(axis=1)
    return inside / (inside + (1 - reliability[clicks.annotator]) / clicks.area)


def test_as_printed_a_step_begins_at_equations_35_to_37():
    """With one iteration of Algorithm 1 a step: what it comes to, from the equations written out densely."""
    clicks = separated_crowd(20, seed=3).clicks
    texts = {"update": "printed", "as_published": "yes", "max_iterations": "1"}
    states = followed(until(clicks, 10), 8, StreamPlan.make(texts))
    for before, after, number in zip(states, states[1:], (9, 10), strict=False):
        now, old = until(clicks, number), before.fusion.clustering
        new = now.points[len(old.inlier) :]
        sigma = old.scatter
        weight = np.concatenate([old.weight, np.full(len(new), old.weight.min() / 8)])
        start = (
            np.concatenate([old.mean, new]),
            np.concatenate([old.covariance, np.tile(np.eye(2) * sigma**2, (len(new), 1, 1))]),
            weight / weight.sum(),
            np.append(old.reliability, 0.9),
        )
        path = Path("expected", 1.25, 0.3 * sigma**2, np.inf, 1, 1, 1e-5, 0.9, form="literal")
        inlier = inliers(now, *start)
        mean, covariance, weight, reliability, _, _ = densely_from(
            now.points, now.annotator, 1 / now.area, start, path, 1
        )
        result = after.fusion.clustering
        assert len(result) == len(mean)
        np.testing.assert_allclose(result.mean, mean, atol=1e-6)
        np.testing.assert_allclose(result.covariance, covariance, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.weight, weight, atol=1e-9)
        np.testing.assert_allclose(result.inlier, inlier, atol=1e-7)
        assert reliability.shape == result.reliability.shape


def test_as_printed_detection_begins_at_equation_39():
    """With one iteration of Algorithm 2: eqs. 27-29 from the old posteriors, then eq. 25."""
    clicks = with_hidden(crowd(12, positions=39), range(8, 12))
    plan = StreamPlan.make(
        {"update": "printed", "click_scatter": "2", "prior": "none", "start": "share",
         "detection_iterations": "1", "vote_coverage": "1"}
    )  # fmt: skip
    before = begin_stream(until(clicks, 8), plan)
    after = advance_stream(before, clicks, plan)
    marked, origin = after.fusion.marked, after.memory.origin
    start = marked.sum(axis=0) / 12
    kept = origin >= 0
    assert 30 < kept.sum() < len(kept)
    start[kept] = before.fusion.detection.posterior[origin[kept]]
    rate = start.sum() / len(start)
    right = np.clip(marked @ start / start.sum(), 1e-6, 1 - 1e-6)
    wrong = np.clip(marked @ (1 - start) / (1 - start).sum(), 1e-6, 1 - 1e-6)
    log = [
        np.log(share) + np.log(chance) @ marked + np.log1p(-chance) @ ~marked
        for share, chance in ((rate, right), (1 - rate, wrong))
    ]
    np.testing.assert_allclose(after.fusion.detection.posterior, 1 / (1 + np.exp(log[1] - log[0])), atol=1e-9)


def test_as_printed_takes_a_criterion_of_algorithm_1():
    plan = StreamPlan.make({"update": "printed"})
    assert plan.fusion.clustering.criterion == "expected"
    assert StreamPlan.make({"update": "printed", "criterion": "observed"}).clustering.criterion == "observed"
    assert PLAN.fusion == FusionPlan()


def test_as_printed_begins_as_a_batch_does():
    clicks = until(crowd(8), 6)
    plan = StreamPlan.make({"update": "printed", "click_scatter": "2"})
    assert same(begin_stream(clicks, plan).fusion, fuse(clicks, plan.fusion))
