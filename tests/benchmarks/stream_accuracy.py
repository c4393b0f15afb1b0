"""A stream beside a batch at each number of annotators, on real images: the paper's Figures 15 and 16.

Annotators come one by one, in a new order each run. Sensitivity and precision after clustering and after
detection, means over images and runs; how many detections only one of stream and batch has.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.stream_accuracy [RUNS]
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import fuse
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stream import StreamPlan, StreamState, advance_stream, begin_stream
from raterscope.algorithms.evaluation import evaluate, match
from tests.algorithms.clicks.crowds import RealImage, in_order, quantius, until

RADIUS = 4.0
SHOWN = (5, 8, 11, 13, 15, 17, 19, 21, 23, 25, 27, 30)
PLANS = {
    "default": StreamPlan(),
    "Algorithm 3 as published, scatter 2 px, observed likelihood": StreamPlan.make(
        {"update": "printed", "click_scatter": "2", "criterion": "observed"}
    ),
    "Algorithms 1 to 3 as published": StreamPlan.make(
        {
            "update": "printed",
            "as_published": "yes",
            "prior": "none",
            "start": "paper",
            "objective": "expected",
            "vote_coverage": "1",
        }
    ),
}


@dataclass
class Row:
    """Results of stream and batch at one number of annotators, image by image."""

    stream: list[list[float]] = field(default_factory=list)
    batch: list[list[float]] = field(default_factory=list)
    differ: list[int] = field(default_factory=list)
    detections: list[int] = field(default_factory=list)
    refreshed: list[bool] = field(default_factory=list)


def figures(fusion: Fusion, truth: np.ndarray) -> list[float]:
    mean = fusion.clustering.mean
    clusters, result = (
        evaluate(mean[keep], truth, RADIUS) for keep in (slice(None), fusion.detection.detected)
    )
    return [clusters.sensitivity, clusters.precision, result.sensitivity, result.precision, result.f_two]


def differing(item: Fusion, two: Fusion) -> int:
    positions, other = (fusion.clustering.mean[fusion.detection.detected] for fusion in (item, two))
    return len(positions) + len(other) - 2 * len(match(positions, other, RADIUS))


def follow(clicks: Clicks, truth: np.ndarray, plan: StreamPlan, first: int, rows: dict[int, Row]) -> None:
    state: StreamState | None = None
    for annotators in range(first, len(clicks.annotators) + 1):
        now = until(clicks, annotators)
        state = begin_stream(now, plan) if state is None else advance_stream(state, now, plan)
        if annotators in SHOWN:
            batch, row = fuse(now, plan.fusion), rows[annotators]
            row.stream.append(figures(state.fusion, truth))
            row.batch.append(figures(batch, truth))
            row.differ.append(differing(state.fusion, batch))
            row.detections.append(int(batch.detection.detected.sum()))
            row.refreshed.append(state.refreshed)


def table(name: str, plan: StreamPlan, images: Sequence[RealImage], runs: int, first: int) -> None:
    rows: dict[int, Row] = defaultdict(Row)
    for run in range(runs):
        for number, image in enumerate(images):
            order = np.random.default_rng([run, number]).permutation(len(image.clicks.annotators))
            follow(in_order(image.clicks, order), image.truth, plan, first, rows)
    print(f"\n{name}: {len(images)} images, {runs} orders, from {first} annotators, radius {RADIUS:g} px")
    columns = f"{'Sc':>8s}{'Pc':>7s}{'Sd':>7s}{'Pd':>7s}   "
    print(f"{'':4s}{'stream':>31s}{'batch':>32s}")
    print(f"{'R':>4s}{columns}{columns}{'dF2':>7s}{'differ':>8s}{'of':>7s}{'again':>7s}")
    worst = np.zeros(4)
    for annotators in sorted(rows):
        row = rows[annotators]
        ours, theirs = (np.nan_to_num(values).mean(axis=0) for values in (row.stream, row.batch))
        if annotators >= 11:
            worst = np.maximum(worst, np.abs(ours - theirs)[:4])
        print(
            f"{annotators:4d} " + "    ".join(
                "".join(f"{value:7.3f}" for value in values[:4]) for values in (ours, theirs)
            ) + f"   {ours[4] - theirs[4]:+7.3f}{np.mean(row.differ):8.1f}{np.mean(row.detections):7.1f}"
            f"{np.mean(row.refreshed):7.0%}", flush=True,
        )  # fmt: skip
    print("largest difference from 11 annotators on: " + " / ".join(f"{value:.3f}" for value in worst))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    images = quantius(Path(os.environ["RATERSCOPE_DATA"]))
    for name, plan in PLANS.items():
        table(
            name, plan, images, runs if plan.stream.update == "local" else 1, 3 if name == "default" else 10
        )


if __name__ == "__main__":
    main()
