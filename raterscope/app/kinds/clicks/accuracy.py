"""Accuracy of clicks' runs against true places: one computation for the window, `fuse` and the report.

A detection matches a true place one to one within the matching radius, a setting of the study (see
`StudySettings`). Measures of several images are means over the images on which they are defined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.evaluation import (
    Comparison,
    Evaluation,
    compare,
    curves,
    evaluate,
    true_detections,
)
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.outcome import Outcome
from raterscope.app.study import RunEntry, Study


@dataclass(frozen=True)
class Accuracy:
    """A run against the true places of its images.

    Attributes
    ----------
    run : RunEntry
    row : Comparison
        Means over images, counts summed.
    detections : int
    area : float
        Mean area under the ROC curve; NaN where no image has one.
    """

    run: RunEntry
    row: Comparison
    detections: int
    area: float


def truths_of(study: Study) -> dict[int, FloatArray]:
    """Give the true places of every image of which they are known, (T, 2) each."""
    truths = {entry.id: study.truth(entry.id) for entry in study.images()}
    return {image: points.places for image, points in truths.items() if points.known}


def evaluate_fusion(fusion: Fusion, truth: FloatArray, radius: float) -> Evaluation:
    """Compare the detections of an image with its true places."""
    return evaluate(fusion.clustering.mean[fusion.detection.detected], truth, radius)


def evaluate_outcomes(
    outcomes: Mapping[str, Outcome[Fusion]], truth: Mapping[str, FloatArray], radius: float
) -> dict[str, Evaluation]:
    """Compare detections with the truth, on the images of which a truth is known."""
    return {
        name: evaluate_fusion(outcome.fusion, truth[name], radius)
        for name, outcome in outcomes.items()
        if outcome.fusion is not None and name in truth
    }


def judged_spots(fusions: Iterable[tuple[Fusion, FloatArray]], radius: float) -> tuple[FloatArray, BoolArray]:
    """Give the posterior of every spot of several images, and whether it is a true place.

    Parameters
    ----------
    fusions : iterable of (Fusion, (T, 2) float64)
        Each image's fusion and true places.
    radius : float
    """
    posteriors, true = [np.empty(0)], [np.empty(0, dtype=bool)]
    for fusion, places in fusions:
        posteriors.append(fusion.detection.posterior)
        true.append(true_detections(fusion.clustering.mean, fusion.detection.posterior, places, radius))
    return np.concatenate(posteriors), np.concatenate(true)


def measure_runs(
    runs: Sequence[int], radius: float, study: Study, watch: Watch = silent
) -> tuple[int, int, tuple[Accuracy, ...]]:
    """Measure runs on all images with true places.

    Returns
    -------
    places, images : int
        How many true places there are, and on how many images.
    measured : tuple of Accuracy
        Of the runs with such an image.
    """
    truths = truths_of(study)
    measured = []
    for done, number in enumerate(runs):
        run = study.runs.get(number)
        evaluations, areas = [], []
        for image in run.items:
            watch(done / len(runs), f"comparing run {done + 1} of {len(runs)}")
            fusion = study.runs.result(number, image) if image in truths else None
            if fusion is None:
                continue
            evaluations.append(evaluate_fusion(fusion, truths[image], radius))
            areas.append(
                curves(fusion.clustering.mean, fusion.detection.posterior, truths[image], radius).roc_area
            )
        if evaluations:
            (row,) = compare({str(number): evaluations})
            known = np.array(areas)[np.isfinite(areas)]
            area = float(known.mean()) if len(known) else float("nan")
            measured.append(Accuracy(run, row, row.true_positive + row.false_positive, area))
    return sum(map(len, truths.values())), len(truths), tuple(measured)
