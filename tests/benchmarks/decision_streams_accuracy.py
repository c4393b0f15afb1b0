"""Accuracy of EM on streams of decisions: the thesis's scenarios, and what one pass loses on a real crowd.

Usage: [RATERSCOPE_DATA=FOLDER] python -m tests.benchmarks.decision_streams_accuracy [RUNS]

First the mean squared errors over time of the thesis's Figures 3.2 to 3.4, then by number of annotators those
of Figures 5.1 to 5.3 with the share of wrong decisions, then recursive EM beside DEM on the paid crowd.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.decision_course import (
    DecisionSettings,
    admit_annotators,
    batch_em,
    initial_state,
    map_rule,
)
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse
from raterscope.algorithms.evaluation import calibration, evaluate, true_detections
from raterscope.algorithms.simulation.click_crowds import (
    JOINING,
    STREAMS,
    decide_again,
    voting_crowd,
)
from raterscope.app.papers.thesis import errors_of, over_time
from tests.algorithms.clicks.crowds import quantius

TIMES = (1, 2, 3, 5, 10, 20, 30)
CROWDS = (10, 20, 30, 40, 50)
SETTINGS = {"as published": DecisionSettings(as_published=True), "default": DecisionSettings()}


def table_of_times(runs: int) -> None:
    for name, (annotators, clusters, *rates) in STREAMS.items():
        for kind, settings in SETTINGS.items():
            errors = np.zeros((3, max(TIMES), 6))
            for seed in range(runs):
                crowd = voting_crowd(annotators, clusters, seed, *rates)
                errors += over_time(decide_again(crowd, max(TIMES), seed), crowd, settings)
            errors /= runs
            print(f"\n{name} scenario, R {annotators}, M {clusters}, means {rates}, {kind}, {runs} runs:")
            print("dB of rho_1, rho_0, mu; sensitivity / precision")
            print("   t  " + "".join(f"{method:36s}" for method in ("batch EM", "recursive EM", "Newton")))
            for step in TIMES:
                cells = [
                    "".join(f"{10 * np.log10(value):7.1f}" for value in error[:3])
                    + f"   {error[3]:.3f} / {error[4]:.3f}"
                    for error in errors[:, step - 1]
                ]
                print(f"{step:4d}" + "".join(f"{cell:36s}" for cell in cells))


def table_of_crowds(runs: int) -> None:
    for name, (clusters, *rates) in JOINING.items():
        errors = np.zeros((len(CROWDS), 4, 6))
        known, votes = np.zeros((2, len(CROWDS)))
        for seed in range(runs):
            crowd = voting_crowd(CROWDS[-1], clusters, seed, *rates)
            marked = crowd.votes.marked
            for column, settings in enumerate(SETTINGS.values()):
                state = admit_annotators(initial_state(0, clusters), marked[: CROWDS[0]], settings)
                for count in range(CROWDS[0], CROWDS[-1] + 1):
                    if count > CROWDS[0]:
                        state = admit_annotators(state, marked[count - 1 : count], settings)
                    if count in CROWDS:
                        row = CROWDS.index(count)
                        for offset, item in enumerate((state, batch_em(state, settings))):
                            errors[row, 2 * column + offset] += errors_of(item, crowd)
                        if not column:
                            sure = map_rule(state, crowd.sensitivity[:count], crowd.specificity[:count], 0.5)
                            known[row] += np.mean((sure >= 0.5) != crowd.present)
                            votes[row] += np.mean((2 * marked[:count].sum(axis=0) >= count) != crowd.present)
        print(f"\n{name} scenario, M {clusters}, means {rates}, {runs} runs: share of wrong decisions,")
        print("and mean squared error of rho_1, rho_0; recursive / batch EM")
        print(f"{'   R':6s}" + "".join(f"{kind:54s}" for kind in SETTINGS) + "MAP      majority")
        for row, count in enumerate(CROWDS):
            cells = [
                "   ".join(f"{first[at]:.4f} / {second[at]:.4f}" for at in (5, 0, 1))
                for first, second in ((errors[row, at] / runs, errors[row, at + 1] / runs) for at in (0, 2))
            ]
            print(f"{count:4d}  {cells[0]}   {cells[1]}   {known[row] / runs:.4f}   {votes[row] / runs:.4f}")


def table_of_images(root: Path) -> None:
    images = quantius(root)
    plans: dict[str, Callable[[], FusionPlan]] = {
        "DEM": FusionPlan,
        "recursive EM": lambda: FusionPlan.make("oem", {"detector": "recursive"}),
        "recursive EM, as published": lambda: FusionPlan.make(
            "oem", {"detector": "recursive", "recursion": "printed"}
        ),
    }
    print(f"\n{len(images)} images of a paid crowd, radius 4 px: mean S / P / F2, calibration error")
    for name, plan in plans.items():
        start, scores, posterior, true = time.perf_counter(), [], [], []
        for image in images:
            fusion = fuse(image.clicks, plan())
            mean, detection = fusion.clustering.mean, fusion.detection
            clicks = evaluate(mean[detection.detected], image.truth, 4.0)
            scores.append((clicks.sensitivity, clicks.precision, clicks.f_two))
            posterior.append(detection.posterior)
            true.append(true_detections(mean, detection.posterior, image.truth, 4.0))
        error = calibration(np.concatenate(posterior), np.concatenate(true)).error
        cells = "".join(f"{value:7.3f}" for value in np.nan_to_num(scores).mean(axis=0))
        print(f"{name:28s}{cells}{error:10.3f}{time.perf_counter() - start:8.2f} s with clustering")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    table_of_times(runs)
    table_of_crowds(runs)
    root = os.environ.get("RATERSCOPE_DATA")
    if root:
        table_of_images(Path(root))
    else:
        print("the real crowd skipped: set RATERSCOPE_DATA to the folder of clicks/quantius")


if __name__ == "__main__":
    main()
