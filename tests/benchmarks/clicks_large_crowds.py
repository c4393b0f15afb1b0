"""Fusion with fifty to five thousand annotators: accuracy beside other methods, time and memory.

Usage: python -m tests.benchmarks.clicks_large_crowds [LARGEST [RUNS]]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from raterscope.algorithms.clicks import FusionPlan, fuse
from raterscope.algorithms.clicks.baseline_clustering import hdbscan
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.dem import dem
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import predict_outlook
from raterscope.algorithms.evaluation import evaluate
from tests.algorithms.clicks.large_crowds import SCATTER, LargeCrowd, Scene, large_crowd
from tests.benchmarks.measuring import most_memory

PEER = 50_000
"""Clicks beyond which HDBSCAN takes too long."""

SIZES = (50, 200, 500, 1000, 2000, 5000)
SCENES = {
    "100 objects, seen by 20 %": Scene(),
    "same, 30 % careless": Scene(careless=0.3),
    "100 objects, 10 to 90 %": Scene(sensitivity=(0.1, 0.9), ability=0.7),
    "80 by 60 %, 20 artefacts": Scene(objects=80, sensitivity=(0.6, 0.6), artefacts=20),
    "same, able and less so, 15 % careless": Scene(
        objects=80, sensitivity=(0.4, 0.9), artefacts=20, careless=0.15, ability=1.0
    ),
    "20 objects by 90 %, 10 artefacts": Scene(objects=20, sensitivity=(0.9, 0.9), artefacts=10),
    "300 objects by 30 to 70 %": Scene(objects=300, sensitivity=(0.3, 0.7), ability=0.5),
    "100 objects, 3 marks each": Scene(sensitivity=(0.3, 0.7), artefacts=10, marks=3.0),
}


def of_most(fusion: Fusion) -> FloatArray:
    """Keep what most annotators marked."""
    return fusion.clustering.mean[fusion.marked.mean(axis=0) >= 0.5]


def accuracy(positions: FloatArray | None, crowd: LargeCrowd) -> tuple[float, float]:
    if positions is None:
        return np.nan, np.nan
    evaluation = evaluate(positions, crowd.truth, 2 * SCATTER)
    return evaluation.sensitivity, evaluation.precision


def seconds_of_detection(crowd: LargeCrowd) -> float:
    start = time.perf_counter()
    dem(crowd.votes)
    return time.perf_counter() - start


def seconds_ahead(clicks: Clicks, fusion: Fusion) -> float:
    start = time.perf_counter()
    predict_outlook(clicks, fusion, FusionPlan())
    return time.perf_counter() - start


def main() -> None:
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    warm = large_crowd(Scene(objects=10), 20, 0).clicks
    seconds_ahead(warm, fuse(warm))
    print("S / P within 2 scatters; seconds: all of the fusion, detection of it, looking ahead")
    print(
        f"{'scene':38s}{'R':>6s}{'clicks':>8s}{'fusion':>13s}{'HDBSCAN':>13s}{'by half':>13s}{'seconds':>20s}"
    )
    for name, scene in SCENES.items():
        for annotators in (size for size in SIZES if size <= largest):
            scores, seconds = [], []
            for seed in range(runs):
                crowd = large_crowd(scene, annotators, seed)
                start = time.perf_counter()
                fusion = fuse(crowd.clicks)
                spent = time.perf_counter() - start
                result = (
                    fusion.clustering.mean[fusion.detection.detected],
                    hdbscan(crowd.clicks).mean if len(crowd.clicks) <= PEER else None,
                    of_most(fusion),
                )
                scores.append([accuracy(positions, crowd) for positions in result])
                ahead = seconds_ahead(crowd.clicks, fusion)
                seconds.append((spent, seconds_of_detection(crowd), ahead))
            line = "".join(f"{first:6.2f} /{second:5.2f}" for first, second in np.mean(scores, axis=0))
            spent_on = "".join(f"{value:7.2f}" for value in np.mean(seconds, axis=0))
            print(f"{name:38s}{annotators:6d}{len(crowd.clicks):8d}{line}{spent_on}", flush=True)
    print(f"most memory: {most_memory():.0f} MB")


if __name__ == "__main__":
    main()
