"""The default on crowds that were real: a paid one on spots, volunteers on iguanas."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from raterscope.algorithms.clicks import Fusion, FusionPlan, fuse
from raterscope.algorithms.evaluation import Evaluation, calibration, evaluate, match, true_detections
from tests.algorithms.clicks.crowds import RealImage, iguanas, quantius

RADIUS = 4.0  # as the study that the spots come from


@cache
def images(folder: Path) -> list[RealImage]:
    return quantius(folder)


@cache
def fused(folder: Path, algorithm: str, detector: str, **texts: str) -> list[Fusion]:
    plan = FusionPlan.make(algorithm, {"detector": detector, **texts})
    return [fuse(image.clicks, plan) for image in images(folder)]


def judged(folder: Path, algorithm: str, detector: str, **texts: str) -> list[Evaluation]:
    return [
        evaluate(fusion.clustering.mean[fusion.detection.detected], image.truth, RADIUS)
        for image, fusion in zip(images(folder), fused(folder, algorithm, detector, **texts), strict=True)
    ]


def by_subset(folder: Path, results: list[Evaluation]) -> dict[str, float]:
    subsets = {image.subset for image in images(folder)}
    return {
        subset: float(
            np.mean(
                [
                    result.f_two
                    for image, result in zip(images(folder), results, strict=True)
                    if image.subset == subset
                ]
            )
        )
        for subset in subsets
    }


def test_the_default_finds_the_spots(real_data):
    results = judged(real_data, "oem", "dem")
    assert len(results) == 24
    assert np.mean([result.f_two for result in results]) >= 0.83


def test_the_default_is_nowhere_below_hdbscan(real_data):
    ours = by_subset(real_data, judged(real_data, "oem", "dem"))
    theirs = by_subset(real_data, judged(real_data, "hdbscan", "share", share="0"))
    assert len(ours) == 5
    for subset, value in ours.items():
        assert value >= theirs[subset]


@pytest.mark.parametrize(
    ("algorithm", "sensitivity", "precision", "f_two"),
    [("hdbscan", 0.731, 0.876, 0.753), ("dbscan", 0.457, 0.773, 0.492)],
)
def test_the_density_methods_do_as_they_do_elsewhere(real_data, algorithm, sensitivity, precision, f_two):
    results = judged(real_data, algorithm, "share", share="0")
    result = [
        np.mean([getattr(result, name) for result in results])
        for name in ("sensitivity", "precision", "f_two")
    ]
    assert result == pytest.approx([sensitivity, precision, f_two], abs=0.01)


def test_k_means_does_at_least_as_it_does_elsewhere(real_data):
    results = judged(real_data, "kmeans", "share", share="0")
    assert np.mean([result.sensitivity for result in results]) >= 0.757
    assert np.mean([result.precision for result in results]) >= 0.603
    assert np.mean([result.f_two for result in results]) >= 0.711


def test_priors_keep_what_the_printed_form_and_the_majority_discard(real_data):
    half = images(real_data)[::2]

    def sensitivity(fusions: list[Fusion]) -> float:
        found = (fusion.clustering.mean[fusion.detection.detected] for fusion in fusions)
        pairs = zip(found, half, strict=True)
        return float(np.mean([evaluate(mean, image.truth, RADIUS).sensitivity for mean, image in pairs]))

    default = sensitivity(fused(real_data, "oem", "dem")[::2])
    for texts in ({"detector": "majority"}, {"detector": "dem", "prior": "none"}):
        plan = FusionPlan.make("oem", texts)
        assert default > sensitivity([fuse(image.clicks, plan) for image in half]) + 0.1


def test_the_default_converges(real_data):
    for image, fusion in zip(images(real_data), fused(real_data, "oem", "dem"), strict=True):
        assert fusion.clustering.trace.converged, image


def test_posteriors_are_calibrated(real_data):
    posterior, true = [], []
    for image, fusion in zip(images(real_data), fused(real_data, "oem", "dem"), strict=True):
        posterior.append(fusion.detection.posterior)
        true.append(true_detections(fusion.clustering.mean, fusion.detection.posterior, image.truth, RADIUS))
    assert calibration(np.concatenate(posterior), np.concatenate(true)).error < 0.05


def test_annotators_are_ranked_as_the_truth_ranks_them(real_data):
    precision, recall = [], []
    for image, fusion in zip(images(real_data), fused(real_data, "oem", "dem"), strict=True):
        marks, _ = image.clicks.merged()
        clicked = np.flatnonzero(marks.counts())
        hits = np.array(
            [len(match(marks.points[marks.annotator == row], image.truth, RADIUS)) for row in clicked]
        )
        rates = fusion.rates
        precision.append(spearmanr(rates.reliability[clicked, 0], hits / marks.counts()[clicked])[0])
        recall.append(spearmanr(rates.sensitivity[clicked, 0], hits / len(image.truth))[0])
    assert np.mean(precision) >= 0.59
    assert np.mean(recall) >= 0.95


def test_iguanas_are_counted(real_data):
    error = [
        abs(int(fuse(image.clicks).detection.detected.sum()) - image.count) for image in iguanas(real_data)
    ]
    assert len(error) == 149
    assert np.mean(error) <= 0.85
