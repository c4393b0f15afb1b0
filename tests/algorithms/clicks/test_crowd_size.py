"""Methods on crowds of several sizes (OEM-DEM paper, figures 2 and 7 to 16)."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.clicks.crowd_size import (
    CrowdSizeSettings,
    crowd_sizes,
    first_annotators,
    measure_crowd_sizes,
)
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.click_crowds import overlapping_crowd, separated_crowd


@pytest.fixture(scope="module")
def images():
    return [(crowd.clicks, crowd.mean) for crowd in (separated_crowd(14, seed) for seed in range(2))]


def test_sizes_are_even_between_the_fewest_and_the_most():
    assert crowd_sizes(CrowdSizeSettings(), 30) == (5, 10, 15, 20, 25, 30)
    assert crowd_sizes(CrowdSizeSettings(min_annotators=11, max_annotators=51, crowds=5), 60) == (
        11,
        21,
        31,
        41,
        51,
    )
    assert crowd_sizes(CrowdSizeSettings(min_annotators=11), 7) == (7,)


def test_annotators_come_in_the_order_given():
    clicks = separated_crowd(6, 0).clicks
    subset = first_annotators(clicks, [4, 1, 5], 2)
    assert subset.annotators == (clicks.annotators[4], clicks.annotators[1])
    assert (np.diff(subset.annotator) >= 0).all()
    np.testing.assert_array_equal(subset.points[subset.annotator == 1], clicks.points[clicks.annotator == 1])


def test_the_whole_crowd_scores_as_its_fusion(images):
    settings = CrowdSizeSettings(crowds=1, min_annotators=14, draws=1, published=False)
    curves = measure_crowd_sizes(images, 50.0, settings=settings)
    assert [curve.stage for curve in curves] == ["clustering", "detection"]
    fusions = [fuse(clicks) for clicks, _ in images]
    for curve, rows in zip(curves, (slice(None), "detected"), strict=True):
        scores = []
        for fusion, (_, truth) in zip(fusions, images, strict=True):
            mean = fusion.clustering.mean
            scores.append(
                evaluate(mean[fusion.detection.detected] if rows == "detected" else mean, truth, 50.0)
            )
        assert curve.sensitivity[0] == pytest.approx(np.mean([row.sensitivity for row in scores]), abs=0.05)
        assert curve.precision[0] == pytest.approx(np.mean([row.precision for row in scores]), abs=0.05)
        assert curve.draws.tolist() == [2]


def test_methods_of_the_paper_and_the_stream_come_along(images):
    settings = CrowdSizeSettings(min_annotators=6, crowds=2, draws=2, streamed=True)
    curves = {
        (curve.stage, curve.method): curve for curve in measure_crowd_sizes(images[:1], 50.0, None, settings)
    }
    methods = {method for _, method in curves}
    assert {"chosen method", "chosen method, streamed", "OEM as published", "CEM as published"} <= methods
    printed = curves["detection", "OEM as published, streamed, DEM as published"]
    assert printed.draws.tolist() == [2, 2]
    assert {"k-means, majority vote", "hierarchical, DEM as published"} <= methods
    batch, stream = (curves["clustering", name] for name in ("chosen method", "chosen method, streamed"))
    assert batch.sensitivity[-1] > batch.sensitivity[0] - 0.05
    np.testing.assert_allclose(stream.sensitivity, batch.sensitivity, atol=0.1)
    assert (batch.sensitivity_error >= 0).all()
    assert batch.annotators.tolist() == [6, 14]


def test_the_same_seed_draws_the_same_crowds_and_work_can_be_cancelled():
    crowd = overlapping_crowd(11, 0)
    settings = CrowdSizeSettings(crowds=2, draws=1, published=False)
    image = [(crowd.clicks, crowd.mean)]
    plan = FusionPlan.make("kmeans", {"detector": "majority"})
    first, second = (measure_crowd_sizes(image, 0.3, plan, settings) for _ in range(2))
    np.testing.assert_array_equal(first[0].sensitivity, second[0].sensitivity)

    def refuse(*_: object, **__: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        measure_crowd_sizes(image, 0.3, FusionPlan(), settings, refuse)
