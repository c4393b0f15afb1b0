"""Accuracy of clustering and detection on real crowds and the papers' set-ups, beside other methods.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.clicks_accuracy [RUNS]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.baseline_clustering import dbscan, hdbscan, kmeans
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.clicks.result import Clustering
from raterscope.algorithms.evaluation import calibration, evaluate, match, true_detections
from raterscope.algorithms.simulation.click_crowds import CrowdOfClicks, overlapping_crowd, separated_crowd
from tests.algorithms.clicks.crowds import RealImage, iguanas, quantius

RADIUS = 4.0
SUBSETS = ("cells", "snr", "density", "smfish", "beads")

Method = Callable[[Clicks], FloatArray]


def shared(clicks: Clicks, clustering: Clustering, share: float) -> FloatArray:
    """Keep the clusters that at least a share of the annotators clicked."""
    marked = np.zeros((len(clicks.annotators), len(clustering)), dtype=bool)
    rows = (clustering.inlier >= 0.5) & (clustering.nearest >= 0)
    marked[clicks.annotator[rows], clustering.nearest[rows]] = True
    return clustering.mean[marked.sum(axis=0) >= share * len(clicks.annotators)]


def detected(clicks: Clicks, plan: FusionPlan) -> FloatArray:
    fusion = fuse(clicks, plan)
    return fusion.clustering.mean[fusion.detection.detected]


def methods() -> dict[str, Method]:
    values = OEMSettings(criterion="observed", penalty="half", click_scatter=2.0)
    quarter = OEMSettings(criterion="expected", penalty="quarter", click_scatter=2.0)
    printed = OEMSettings(as_published=True)
    refreshed = OEMSettings(as_published=True, published_form="refreshed")
    return {
        "OEM, default: clusters": lambda clicks: oem(clicks).mean,
        "same, clicked by >= 20 %": lambda clicks: shared(clicks, oem(clicks), 0.2),
        "same, DEM (the default fusion)": lambda clicks: detected(clicks, FusionPlan()),
        "OEM, scatter 2 px, observed, L/2": lambda clicks: oem(clicks, values).mean,
        "OEM, scatter 2 px, eq. 16, L/4": lambda clicks: oem(clicks, quarter).mean,
        "OEM as published": lambda clicks: oem(clicks, printed).mean,
        "same, refreshed posteriors": lambda clicks: oem(clicks, refreshed).mean,
        "HDBSCAN (5 clicks, 3 neighbours)": lambda clicks: hdbscan(clicks).mean,
        "DBSCAN (5 px, 3 neighbours)": lambda clicks: dbscan(clicks).mean,
        "k-means, twice the mean clicks": lambda clicks: kmeans(clicks).mean,
    }


def table_of_images(images: Sequence[RealImage]) -> None:
    print(
        f"\n{len(images)} images, radius {RADIUS:g} px: mean S / P / F2, F2 by subset, ratio to HDBSCAN's F2"
    )
    print(f"{'method':34s}{'S':>7s}{'P':>7s}{'F2':>7s}  " + "".join(f"{name:>9s}" for name in SUBSETS))
    scores: dict[str, np.ndarray] = {}
    seconds: dict[str, float] = {}
    for name, method in methods().items():
        start = time.perf_counter()
        items = [method(image.clicks) for image in images]
        seconds[name] = time.perf_counter() - start
        results = [
            evaluate(positions, image.truth, RADIUS) for positions, image in zip(items, images, strict=True)
        ]
        scores[name] = np.nan_to_num(
            [(evaluation.sensitivity, evaluation.precision, evaluation.f_two) for evaluation in results]
        )
    peer = next(values[:, 2].mean() for name, values in scores.items() if name.startswith("HDBSCAN"))
    for name, values in scores.items():
        by = [values[[image.subset == subset for image in images], 2].mean() for subset in SUBSETS]
        mean = values.mean(axis=0)
        print(
            f"{name:34s}" + "".join(f"{value:7.3f}" for value in mean) + "  "
            + "".join(f"{value:9.3f}" for value in by) + f"{mean[2] / peer:8.2f} x {seconds[name]:7.2f} s"
        )  # fmt: skip


def table_of_posteriors(images: Sequence[RealImage]) -> None:
    posterior, true = [], []
    for image in images:
        fusion = fuse(image.clicks)
        posterior.append(fusion.detection.posterior)
        true.append(true_detections(fusion.clustering.mean, fusion.detection.posterior, image.truth, RADIUS))
    error = calibration(np.concatenate(posterior), np.concatenate(true)).error
    print(f"\nexpected calibration error of the default fusion's posteriors: {error:.3f}")


def table_of_weights(images: Sequence[RealImage]) -> None:
    """Weigh down the third of the annotators whose own clicks agree least with the truth."""
    print("\nthe worst third of the annotators weighed: mean S / P / F2 for a weight of 1, .5, .1, excluded")
    plans = {
        "default fusion": FusionPlan(),
        "OEM, majority": FusionPlan.make(texts={"detector": "majority"}),
    }
    worst = [worst_third(image) for image in images]
    for name, plan in plans.items():
        line = ""
        for weight in (1.0, 0.5, 0.1, 0.0):
            scores = []
            for image, names in zip(images, worst, strict=True):
                weighed = (
                    image.clicks.with_weights(dict.fromkeys(names, weight))
                    if weight
                    else image.clicks.without(names)
                )
                result = detected(weighed, plan)
                clicks = evaluate(result, image.truth, RADIUS)
                scores.append(np.nan_to_num((clicks.sensitivity, clicks.precision, clicks.f_two)))
            line += "   " + " / ".join(f"{value:.3f}" for value in np.mean(scores, axis=0))
        print(f"{name:34s}{line}")


def worst_third(image: RealImage) -> set[str]:
    clicks, names = image.clicks, image.clicks.annotators
    agreement = {}
    for number in np.flatnonzero(clicks.counts()).tolist():
        own = clicks.points[clicks.annotator == number]
        hits = len(match(own, image.truth, RADIUS))
        agreement[names[number]] = 2 * hits / (len(own) + len(image.truth))
    return set(sorted(agreement, key=agreement.__getitem__)[: len(agreement) // 3])


def table_of_counts(images: Sequence[RealImage]) -> None:
    expert = np.array([image.count for image in images])
    counts: dict[str, Callable[[Clicks], float]] = {
        "default fusion": lambda clicks: int(fuse(clicks).detection.detected.sum()),
        "OEM, clicked by >= 20 %": lambda clicks: len(shared(clicks, oem(clicks), 0.2)),
        "median of volunteers": lambda clicks: float(np.median(clicks.counts())),
        "HDBSCAN (5 clicks, 3 neighbours)": lambda clicks: len(hdbscan(clicks)),
    }
    print(f"\n{len(images)} images of iguanas: mean absolute error of the count, and bias")
    for name, count in counts.items():
        error = np.array([count(image.clicks) for image in images]) - expert
        print(f"{name:34s}{abs(error).mean():7.3f}{error.mean():+7.2f}")


def table_of_crowds(
    title: str,
    draw: Callable[[int, int], CrowdOfClicks],
    sizes: Sequence[int],
    radius: float,
    scatter: float,
    runs: int,
) -> None:
    """Print a set-up; `scatter` is that of the papers, from the variance of clicks all over the image."""
    rows = {
        "default": OEMSettings(),
        "thesis's criterion": OEMSettings(criterion="thesis", covariance="free", click_scatter=scatter),
        "as published": OEMSettings(as_published=True),
        "as published, floor .01": OEMSettings(as_published=True, covariance_floor=0.01),
        "refreshed posteriors": OEMSettings(as_published=True, published_form="refreshed"),
        "same, floor .01": OEMSettings(as_published=True, published_form="refreshed", covariance_floor=0.01),
    }
    print(f"\n{title}, {runs} runs, tolerance {radius:g}: S / P for R = {', '.join(map(str, sizes))}")
    for name, settings in rows.items():
        line = ""
        for annotators in sizes:
            scores = []
            for seed in range(runs):
                crowd = draw(annotators, seed)
                positions = oem(crowd.clicks, settings).mean
                hits = len(match(positions, crowd.mean, radius))
                scores.append((hits / len(crowd.mean), hits / max(len(positions), 1)))
            sensitivity, precision = np.mean(scores, axis=0)
            line += f"   {sensitivity:.3f} / {precision:.3f}"
        print(f"{name:34s}{line}")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    table_of_crowds("thesis, section 2.3", separated_crowd, (20, 50), 50, 20.4, runs)
    table_of_crowds("OEM-DEM paper, section 3.1", overlapping_crowd, (11, 21, 31, 51), 0.3, 0.083, runs)
    root = os.environ.get("RATERSCOPE_DATA")
    if not root:
        print("real crowds skipped: set RATERSCOPE_DATA to the folder of clicks/quantius and clicks/iguanas")
        return
    images = quantius(Path(root))
    table_of_images(images)
    table_of_posteriors(images)
    table_of_weights(images)
    table_of_counts(iguanas(Path(root)))


if __name__ == "__main__":
    main()
