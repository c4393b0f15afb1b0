"""Evaluation of clicks: against ground truth and decisions, between runs, and by number of annotators.

The window, `fuse` and the report all use `Accuracy`. A detection matches a true position one to one within
the matching radius, a setting of the study (see `StudySettings`). Measures of several images are means over
the images on which they are defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.click_classes import sort_classes
from raterscope.algorithms.clicks.crowd_size import (
    STAGES,
    CrowdSizeCurve,
    CrowdSizeSettings,
    measure_crowd_sizes,
)
from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.result import LEVEL_ERROR, Fusion
from raterscope.algorithms.evaluation import (
    Comparison,
    Evaluation,
    compare,
    curves,
    evaluate,
    true_detections,
)
from raterscope.algorithms.evaluation import match as match_points
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.assessment import (
    DISPUTED,
    FEW,
    ComparedItem,
    Differences,
    Trust,
    comparable_in_words,
    run_before,
    step_in_words,
    trust_from,
)
from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import format_number, remove_file, write_table
from raterscope.app.outcome import Outcome, finite_or_none, successful
from raterscope.app.review import ReviewState, SampledItem, Spot, current_names, match
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.runs import Answers
from raterscope.text import counted

_LOOKED_AT = 8
"""Maximum number of images for the mean number of annotators."""


def trust_in_clicks(study: Study, images: Sequence[int], watch: Watch = silent) -> Trust:
    """Compare the posteriors of all spots of the images shown with ground truth, otherwise with decisions."""
    past = EarlierRuns(study)
    state, radius = study.review_state(), study.settings.matching_radius()
    by_truth: list[tuple[FloatArray, BoolArray]] = []
    by_decision: list[tuple[FloatArray, BoolArray]] = []
    for done, image in enumerate(images):
        watch(done / len(images), "comparing with ground truth and decisions")
        truth = study.truth(image)
        decided = [spot for spot in state.spots(image) if spot.verdict != "skipped"]
        result = study.shown.result(image, "clicks") if truth.known or decided else None
        if result is None:
            continue
        run, fusion = result
        if truth.known and not run.log.get("truth_held"):
            _, right = match_spots([(fusion, truth.positions)], radius)
            free = past.free(run, image, fusion)
            by_truth.append((fusion.detection.posterior[free], right[free]))
        if not by_truth:
            by_decision.append(past.decided(run, image, decided))
    trust = trust_from("spot", by_truth, by_decision)
    return trust if trust.judged >= FEW else replace(trust, comparable=_comparable(study, images))


class EarlierRuns:
    """Earlier runs, their decisions held fixed, and their posteriors before a spot was decided."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._runs = study.runs.all()

    def free(self, run: RunEntry, image: int, fusion: Fusion) -> BoolArray:
        """Return which clusters of a run had no decision held fixed."""
        is_held = apply_decisions(fusion, self._study.review_state(run.known).spots(image)).decided
        return np.asarray(~is_held[: len(fusion.detection.posterior)])

    def decided(self, shown_run: RunEntry, image: int, spots: Sequence[Spot]) -> tuple[FloatArray, BoolArray]:
        """Return the posterior of each decided spot before the decision, and whether it is a structure."""
        by_run: dict[int, list[Spot]] = {}
        for spot in spots:
            run = run_before(self._runs, shown_run, image, spot.decision)
            if run is not None:
                by_run.setdefault(run.id, []).append(spot)
        judged: list[tuple[float, bool]] = []
        for number, run_spots in by_run.items():
            fusion = self._study.runs.result(number, image)
            if fusion is None:
                continue
            free = self.free(self._study.runs.get(number), image, fusion)
            clusters = match(run_spots, fusion.clustering.mean, fusion.clustering.covariance)
            judged += [
                (float(fusion.detection.posterior[cluster]), spot.verdict != "rejected")
                for spot, cluster in zip(run_spots, clusters, strict=True)
                if cluster is not None and free[cluster]
            ]
        return np.array([p for p, _ in judged]), np.array([yes for _, yes in judged], dtype=bool)


def _comparable(study: Study, images: Sequence[int]) -> str:
    """Describe the calibration on crowds with a similar number of annotators per image."""
    results = [study.shown.result(image, "clicks") for image in images[:_LOOKED_AT]]
    counts = [len(result[1].marked) for result in results if result is not None]
    return comparable_in_words("clicks", float(np.mean(counts)), ("annotator", "image")) if counts else ""


@dataclass(frozen=True)
class Accuracy:
    """A run compared with the true positions of its images."""

    run: RunEntry
    row: Comparison  # means over images, counts summed
    detections: int
    area: float  # mean area under the ROC curve; NaN if no image has one


def truths_of(study: Study) -> dict[int, FloatArray]:
    """Return the true positions, (T, 2), of every image that has ground truth."""
    truths = {entry.id: study.truth(entry.id) for entry in study.images()}
    return {image: points.positions for image, points in truths.items() if points.known}


def evaluate_fusion(fusion: Fusion, truth: FloatArray, radius: float) -> Evaluation:
    """Compare the detections of an image with its true positions."""
    return evaluate(fusion.clustering.mean[fusion.detection.detected], truth, radius)


def evaluate_outcomes(
    outcomes: Mapping[str, Outcome[Fusion]], truth: Mapping[str, FloatArray], radius: float
) -> dict[str, Evaluation]:
    """Compare detections with ground truth on the images that have it."""
    return {
        name: evaluate_fusion(fusion, truth[name], radius)
        for name, fusion in successful(outcomes).items()
        if name in truth
    }


def match_spots(fusions: Iterable[tuple[Fusion, FloatArray]], radius: float) -> tuple[FloatArray, BoolArray]:
    """Return the posterior of every spot of several images, and whether it matches a true position.

    `fusions`: each image's fusion and true positions, (T, 2).
    """
    posteriors, true = [np.empty(0)], [np.empty(0, dtype=bool)]
    for fusion, true_positions in fusions:
        posteriors.append(fusion.detection.posterior)
        true.append(
            true_detections(fusion.clustering.mean, fusion.detection.posterior, true_positions, radius)
        )
    return np.concatenate(posteriors), np.concatenate(true)


def measure_runs(
    runs: Sequence[int], radius: float, study: Study, watch: Watch = silent
) -> tuple[int, int, tuple[Accuracy, ...]]:
    """Evaluate runs on all images with ground truth.

    The results are the number of true positions, the number of images with them, and the accuracy of each run
    on them.
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
            finite_areas = np.array(areas)[np.isfinite(areas)]
            area = float(finite_areas.mean()) if len(finite_areas) else float("nan")
            measured.append(Accuracy(run, row, row.true_positive + row.false_positive, area))
    return sum(map(len, truths.values())), len(truths), tuple(measured)


@dataclass(frozen=True, eq=False)
class DecidedSpots:
    """The M spots of an image: its clusters, then the spots that the expert added."""

    # x, y: (M,): position in pixels; the new position if the expert moved a spot
    x: FloatArray
    y: FloatArray
    present: np.ndarray  # (M,): whether it counts as a structure
    # posterior, low, high: (M,): 0 or 1 where the expert decided; low and high are the ends of the 95 %
    # interval
    posterior: FloatArray
    low: FloatArray
    high: FloatArray
    decided: np.ndarray  # (M,)
    # by class: probability of each class, given a structure; NaN for an added spot without class
    shares: Mapping[str, FloatArray] = field(default_factory=dict)
    level_error: float = LEVEL_ERROR  # of the posteriors, see `Detection`


def apply_decisions(fusion: Fusion | None, spots: Sequence[Spot]) -> DecidedSpots:
    """Apply the expert's decisions on an image to its fusion. Skipped spots are unchanged."""
    table = np.empty((0, 7))
    clusters_of_spots: list[int | None] = [None] * len(spots)
    if fusion is not None:
        clusters, detection = fusion.clustering, fusion.detection
        clusters_of_spots = match(spots, clusters.mean, clusters.covariance)
        ends = (detection.posterior, detection.posterior_low, detection.posterior_high)
        table = np.column_stack([clusters.mean, detection.detected, *ends, np.zeros(len(clusters))])
    added = []
    for spot, cluster in zip(spots, clusters_of_spots, strict=True):
        if spot.verdict == "skipped":
            continue
        yes = float(spot.verdict != "rejected")
        row = (spot.x, spot.y, yes, yes, yes, yes, 1.0)
        if cluster is None:
            added.append(row)
        else:
            table[cluster] = row
    columns = np.concatenate([table, np.array(added).reshape(-1, 7)]).T.copy()
    x, y, present, posterior, low, high, decided = columns
    shares = _class_shares(fusion, spots, clusters_of_spots, len(x))
    error = LEVEL_ERROR if fusion is None else fusion.detection.level_error
    return DecidedSpots(x, y, present > 0, posterior, low, high, decided > 0, shares, error)


def _class_shares(
    fusion: Fusion | None, spots: Sequence[Spot], clusters: Sequence[int | None], count: int
) -> dict[str, FloatArray]:
    """Return the class probabilities of an image's spots, with decisions applied."""
    classes = None if fusion is None else fusion.classes
    names = sort_classes([*(() if classes is None else classes.names), *(spot.label for spot in spots)])
    if not names:
        return {}
    table = np.full((count, len(names)), np.nan)
    if classes is not None:
        table[: len(classes.posterior)] = 0.0
        columns = [names.index(name) for name in classes.names]
        table[: len(classes.posterior), columns] = classes.posterior
    added = 0 if fusion is None else len(fusion.clustering)
    for spot, cluster in zip(spots, clusters, strict=True):
        if spot.verdict != "skipped":
            row = added if cluster is None else cluster
            added += cluster is None
            if spot.label:
                table[row] = [name == spot.label for name in names]
    return dict(zip(names, table.T.copy(), strict=True))


def compare_runs(at: ComparedItem, differences: Differences) -> None:
    """Compare an item's results in two runs and fill in the differences."""
    spots = at.state.spots(at.item)
    old_fusion, new_fusion = at.then, at.now
    old, new = old_fusion.detection.posterior, new_fusion.detection.posterior
    low, high = DISPUTED
    old_disputed, new_disputed = ((posterior > low) & (posterior < high) for posterior in (old, new))
    differences.disputed_before += int(old_disputed.sum())
    differences.disputed_after += int(new_disputed.sum())
    pairs = match_points(
        old_fusion.clustering.mean, new_fusion.clustering.mean, at.study.settings.matching_radius()
    )
    settled_then = apply_decisions(old_fusion, spots).decided[: len(old)]
    settled_now = apply_decisions(new_fusion, spots).decided[: len(new)]
    differences.decided += int((old_disputed & settled_then).sum())
    for i, j in zip(pairs.found.tolist(), pairs.truth.tolist(), strict=True):
        if settled_now[j] or settled_then[i]:
            continue
        flipped = old_fusion.detection.detected[i] != new_fusion.detection.detected[j]
        if flipped:
            state = "a detection now" if new_fusion.detection.detected[j] else "no detection any more"
        elif new_disputed[j] and not old_disputed[i]:
            state = "disputed now"
            differences.newly_disputed += 1
        else:
            continue
        x, y = map(float, new_fusion.clustering.mean[j])
        text = f"{step_in_words(old[i], new[j])}, {state}: spot at ({x:.0f}, {y:.0f})"
        differences.changes.append(at.change(text, flipped + abs(new[j] - old[i]), point=(x, y)))
    for fusion, settled, matched, state in (
        (old_fusion, settled_then, pairs.found, "gone"),
        (new_fusion, settled_now, pairs.truth, "new detection"),
    ):
        unmatched = fusion.detection.detected & ~settled
        unmatched[matched] = False
        for m in np.flatnonzero(unmatched).tolist():
            x, y = map(float, fusion.clustering.mean[m])
            differences.changes.append(at.change(f"{state}: spot at ({x:.0f}, {y:.0f})", 2.0, point=(x, y)))


COLUMNS = (
    "stage", "method", "annotators", "crowds", "sensitivity", "sensitivity_error", "precision",
    "precision_error",
)  # fmt: skip

NO_TRUTH = "no image has ground truth to measure crowds of several sizes against"

Curves = tuple[CrowdSizeCurve, ...]

Crowds = tuple[dict[str, Clicks], dict[str, FloatArray]]
"""Clicks and true positions of images, by name."""


_FIGURES = ("sensitivity", "precision", "sensitivity_error", "precision_error")
_COUNTS = ("annotators", "draws")


@dataclass(frozen=True, eq=False)
class CrowdSizes:
    """The stored curves of a study."""

    curves: Curves
    facts: str  # a sentence: time, number of images, radius and crowds


def measure_images(
    clicks: Mapping[str, Clicks],
    truth: Mapping[str, FloatArray],
    radius: float,
    plan: FusionPlan,
    settings: CrowdSizeSettings,
    watch: Watch = silent,
) -> Curves:
    """Measure the methods on the images with ground truth. Raises `InputError` where there is none."""
    crowds = [
        (clicks[name], positions) for name, positions in truth.items() if name in clicks and len(positions)
    ]
    if not crowds:
        raise InputError(NO_TRUTH)
    return measure_crowd_sizes(crowds, radius, plan, settings, watch)


def read_crowds(images: Sequence[int], study: Study, watch: Watch = silent) -> Crowds:
    """Read clicks and true positions of the images that have ground truth, by image name.

    Excluded annotators and decisions on spots are not used. Raises `InputError` where no image has ground
    truth.
    """
    names = {entry.id: entry.name for entry in study.images()}
    state = study.review_state()
    truth = {
        image: positions
        for image, positions in truths_of(study).items()
        if image in images and len(positions)
    }
    if not truth:
        raise InputError(NO_TRUTH)
    clicks = {}
    for done, image in enumerate(truth):
        watch(done / len(truth), "reading clicks")
        crowd = study.clicks(image)
        crowd = crowd.joined(current_names(crowd.annotators, state.aliases))
        clicks[names[image]] = crowd.without(state.apart)
    return clicks, {names[image]: positions for image, positions in truth.items()}


def store_crowd_sizes(
    curves: Curves,
    images: int,
    radius: float,
    settings: CrowdSizeSettings,
    study: Study,
    watch: Watch = silent,
) -> CrowdSizes:
    """Store curves in the study; they replace the previous ones."""
    watch(0.0, "storing the measurements")
    day = datetime.now(UTC).astimezone().date().isoformat()
    facts = f"Measured {day} on {counted(images, 'image')} within {radius:g} px: {settings.in_words()}."
    record = {
        "facts": facts,
        "curves": [
            {"method": curve.method, "stage": curve.stage}
            | {name: getattr(curve, name).tolist() for name in _COUNTS}
            | {name: list(map(finite_or_none, getattr(curve, name).tolist())) for name in _FIGURES}
            for curve in curves
        ],
    }
    study.settings.crowd_sizes = record
    return CrowdSizes(curves, facts)


def load_crowd_sizes(study: Study, watch: Watch = silent) -> CrowdSizes | None:
    """Load the stored curves of a study; None without readable ones."""
    watch(0.0, "reading the stored measurements")
    record = study.settings.crowd_sizes
    if record is None:
        return None
    try:
        curves = tuple(_curve_of(curve_record) for curve_record in record["curves"])
        return CrowdSizes(curves, str(record["facts"])) if curves else None
    except (KeyError, TypeError, ValueError):
        return None


def _curve_of(record: Mapping[str, Any]) -> CrowdSizeCurve:
    sizes, draws = (np.array(record[name], dtype=np.int64) for name in _COUNTS)
    figures = [
        np.array([math.nan if value is None else value for value in record[name]], dtype=np.float64)
        for name in _FIGURES
    ]
    if not len(sizes) or any(column.shape != (len(sizes),) for column in (sizes, draws, *figures)):
        raise ValueError("figures of unlike length")
    if record["stage"] not in STAGES:
        raise ValueError("no stage")
    sensitivity, precision, sensitivity_error, precision_error = figures
    return CrowdSizeCurve(
        str(record["method"]), record["stage"], sizes, sensitivity, precision, sensitivity_error,
        precision_error, draws,
    )  # fmt: skip


def write_crowd_sizes(folder: Path, curves: Curves) -> list[Path]:
    """Write crowd_size.csv into a folder; without curves, remove an existing one."""
    path = folder / "crowd_size.csv"
    if not curves:
        remove_file(path)
        return []
    return [write_table(path, COLUMNS, _rows(curves))]


def _rows(curves: Curves) -> Iterator[tuple[object, ...]]:
    for curve in curves:
        figures = (curve.sensitivity, curve.sensitivity_error, curve.precision, curve.precision_error)
        for at, (size, draws) in enumerate(zip(curve.annotators, curve.draws, strict=True)):
            yield (
                curve.stage,
                curve.method,
                int(size),
                int(draws),
                *(format_number(float(figure[at])) for figure in figures),
            )


def crowd_sizes_in_words(curves: Curves) -> Iterator[str]:
    """Summarise each method for the smallest and the largest crowd, one line each."""
    for curve in curves:
        ends = " to ".join(
            f"{curve.sensitivity[at]:.3f}/{curve.precision[at]:.3f}" for at in dict.fromkeys((0, -1))
        )
        sizes = " to ".join(str(int(curve.annotators[at])) for at in dict.fromkeys((0, -1)))
        yield f"after {curve.stage}, {curve.method}: sensitivity/precision {ends} with {sizes} annotators"


def undecided_detections(study: Study, state: ReviewState, watch: Watch = silent) -> list[SampledItem]:
    """List the detections of the runs shown that the expert has not decided."""
    outlines = study.shown.answers()
    listed = []
    for image, step in steps_of(watch, study.items()["clicks"]):
        step(0.0, "listing detections")
        run = study.shown.run(image.id, "clicks")
        if run is None:
            continue
        answers = outlines.get(image.id) or Answers.of(study.runs.result(run, image.id))
        spots = [spot for spot in state.spots(image.id) if spot.verdict != "skipped"]
        decided = set(match(spots, answers.mean, answers.covariance))
        for cluster in np.flatnonzero(answers.detected).tolist():
            if cluster not in decided:
                x, y = answers.mean[cluster].tolist()
                listed.append(SampledItem(item=image.id, number=cluster + 1, run=run, x=x, y=y))
    return listed
