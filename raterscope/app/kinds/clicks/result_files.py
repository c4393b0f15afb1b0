"""What a fusion is written as: the rows of its tables, and the record of how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.fusion import FusionPlan, pool_rates
from raterscope.algorithms.clicks.result import AnnotatorRates, Fusion
from raterscope.algorithms.clicks.robustness import run_notices
from raterscope.algorithms.evaluation import Evaluation, compare
from raterscope.app.formats.output_files import shortest, take_away, write_record, write_table
from raterscope.app.outcome import Outcome, finite_or_none, record_of

Row = Sequence[object]

DETECTIONS = ("image", "cluster", "x", "y", "sxx", "sxy", "syy", "weight", "votes", "posterior", "detected")
SCORED_DETECTIONS = (*DETECTIONS, "score")
ANNOTATORS = ("annotator", "clicks", "reliability", "sensitivity", "precision")
CLICKS = ("annotator", "image", "x", "y", "inlier_probability", "cluster", "vote")
TIMED_CLICKS = ("annotator", "image", "x", "y", "time", "inlier_probability", "cluster", "vote")
EVALUATION = ("image", "truths", "detections", "matched", "sensitivity", "precision", "f0.5", "f1", "f2")


@dataclass(frozen=True, eq=False)
class Results:
    """All that a folder of results holds.

    Attributes
    ----------
    clicks : mapping of image to Clicks
    outcomes : mapping of image to Outcome
    plan : FusionPlan
    record : dict
        See `run_record`.
    evaluations : mapping of image to Evaluation, optional
        Where a truth is known.
    order : sequence of str
        The image of every row of the input, so that the clicks are written in the input's order; without it
        they are written image by image.
    """

    clicks: Mapping[str, Clicks]
    outcomes: Mapping[str, Outcome[Fusion]]
    plan: FusionPlan
    record: Mapping[str, Any]
    evaluations: Mapping[str, Evaluation] | None = None
    order: Sequence[str] = ()

    def fusions(self) -> dict[str, Fusion]:
        """Give the images that were fused."""
        return {name: one.fusion for name, one in self.outcomes.items() if one.fusion is not None}


def write_results(folder: Path, results: Results) -> list[Path]:
    """Write detections.csv, annotators.csv, clicks.csv, run.json and, with a truth, evaluation.csv.

    Each file replaces one that is there, whole or not at all. run.json comes last, and goes first where there
    is one: where it is, all that it tells of is there.

    Raises
    ------
    InputError
        When something cannot be written.
    """
    take_away(folder / "run.json")
    fusions = results.fusions()
    scored = any(fusion.score is not None for fusion in fusions.values())
    header = SCORED_DETECTIONS if scored else DETECTIONS
    detections = (row[: len(header)] for name, one in fusions.items() for row in detection_rows(name, one))
    names, rates = pool_rates(list(fusions.values()), [results.clicks[name].annotators for name in fusions])
    threshold = results.plan.assignment.outlier_threshold
    timed = any(one.time is not None for one in results.clicks.values())
    rows_of = {
        name: click_rows(name, one, *judged(fusions.get(name), one.annotator, threshold), timed=timed)
        for name, one in results.clicks.items()
    }
    order = results.order or [name for name, one in results.clicks.items() for _ in range(len(one))]
    clicks = (next(rows_of[name]) for name in order)
    written = [
        write_table(folder / "detections.csv", header, detections),
        write_table(folder / "annotators.csv", ANNOTATORS, annotator_rows(names, rates)),
        write_table(folder / "clicks.csv", TIMED_CLICKS if timed else CLICKS, clicks),
    ]
    if results.evaluations is not None:
        rows = evaluation_rows(results.evaluations)
        written.append(write_table(folder / "evaluation.csv", EVALUATION, rows))
    else:
        take_away(folder / "evaluation.csv")
    return [*written, write_record(folder / "run.json", results.record)]


def detection_rows(image: str, fusion: Fusion) -> Iterator[Row]:
    """Give the rows of detections.csv for one image, with the scores of a program; clusters count from 1."""
    clusters, detection = fusion.clustering, fusion.detection
    count = len(clusters)
    columns = (
        *clusters.mean.T, clusters.covariance[:, 0, 0], clusters.covariance[:, 0, 1],
        clusters.covariance[:, 1, 1], clusters.weight,
    )  # fmt: skip
    yield from zip(
        [image] * count,
        range(1, count + 1),
        *map(_texts, columns),
        fusion.votes.astype(np.int64).tolist(),
        _texts(detection.posterior),
        detection.detected.astype(np.int64).tolist(),
        [""] * count if fusion.score is None else _texts(fusion.score),
        strict=True,
    )


def _texts(values: FloatArray) -> list[str]:
    return [shortest(value) for value in values.tolist()]


def annotator_rows(names: Sequence[str], rates: AnnotatorRates) -> Iterator[Row]:
    """Give the rows of annotators.csv; what nothing can be said of is empty."""
    for r, name in enumerate(names):
        shares = (rates.reliability[r, 0], rates.sensitivity[r, 0], rates.precision[r, 0])
        yield (name, int(rates.clicks[r]), *map(shortest, shares))


def judged(
    fusion: Fusion | None, annotator: NDArray[np.integer], threshold: float
) -> tuple[FloatArray, IntArray, IntArray]:
    """Give the inlier probability, cluster and vote of each of N clicks.

    Parameters
    ----------
    fusion : Fusion or None
        The values are NaN and -1 without one.
    annotator : (N,) int
        Who clicked, as the rows of `Fusion.marked` are numbered.
    threshold : float
        Clicks less probably inliers than this belong to no cluster.

    Returns
    -------
    inlier : (N,) float64
        Probability of being no outlier; NaN where it is unknown.
    cluster : (N,) int64
        -1 for an outlier.
    vote : (N,) int64
        1 where the annotator counts as having marked the click's cluster, which asks that a click lies within
        the cluster's ellipse; 0 where not, -1 where it is unknown.
    """
    count = len(annotator)
    if fusion is None:
        return np.full(count, np.nan), np.full(count, -1), np.full(count, -1)
    inlier = fusion.clustering.inlier[fusion.mark]
    nearest = fusion.clustering.nearest[fusion.mark]
    cluster = np.where(inlier >= threshold, nearest, -1)
    vote = np.zeros(count, dtype=np.int64)
    if fusion.marked.shape[1]:
        vote = ((cluster >= 0) & fusion.marked[annotator, cluster]).astype(np.int64)
    return inlier, cluster, vote


def click_rows(
    image: str, clicks: Clicks, inlier: FloatArray, cluster: IntArray, vote: IntArray, *, timed: bool
) -> Iterator[Row]:
    """Give the rows of clicks.csv for one image, see `judged`.

    With `timed` there is a column of times. Whoever looked and marked nothing has a row without a place.
    """
    places = [_texts(clicks.x), _texts(clicks.y)]
    if timed:
        places.append([""] * len(clicks) if clicks.time is None else _texts(clicks.time))
    yield from zip(
        [clicks.annotators[annotator] for annotator in clicks.annotator.tolist()],
        [image] * len(clicks),
        *places,
        _texts(inlier),
        ["" if index < 0 else index + 1 for index in cluster.tolist()],
        ["" if answer < 0 else answer for answer in vote.tolist()],
        strict=True,
    )
    for idle in np.flatnonzero(clicks.counts() == 0):
        yield (clicks.annotators[idle], image, *[""] * (6 if timed else 5))


def evaluation_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Row]:
    """Give the rows of evaluation.csv: every image, then the figures' mean and the sums of the counts."""
    for image, one in evaluations.items():
        hits, truths = one.true_positive, one.true_positive + one.false_negative
        figures = (one.sensitivity, one.precision, one.f_half, one.f_one, one.f_two)
        yield (image, truths, hits + one.false_positive, hits, *map(shortest, figures))
    (mean,) = compare({"mean": list(evaluations.values())})
    hits, truths = mean.true_positive, mean.true_positive + mean.false_negative
    figures = (mean.sensitivity, mean.precision, mean.f_half, mean.f_one, mean.f_two)
    yield ("mean", truths, hits + mean.false_positive, hits, *map(shortest, figures))


def run_record(
    plan: FusionPlan,
    outcomes: Iterable[Outcome[Fusion]],
    *,
    started: datetime,
    seconds: float,
    digest: str,
    inputs: Sequence[Mapping[str, object]],
    weights: Mapping[str, float],
    controls: Mapping[str, bool] | None = None,
    scores: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Make the contents of run.json: all that is needed to make the same results again, and how it went.

    `weights` says as how much of one each of those annotators counted who did not count fully, `controls` of
    control images whether they are known to hold structures, `scores` where a program's came from.
    """
    record = record_of(
        plan, seed=getattr(plan.clustering, "seed", None), digest=digest, inputs=inputs, started=started,
        seconds=seconds,
    )  # fmt: skip
    outcomes = list(outcomes)
    fusions = [one.fusion for one in outcomes if one.fusion is not None]
    images = [image_record(outcome) for outcome in outcomes]
    notices = run_notices(fusions)
    named: dict[str, Any] = {"controls": dict(controls)} if controls else {}
    named |= {"scores": dict(scores)} if scores else {}
    return record | {"weights": dict(weights), **named, "notices": notices, "images": images}


def scores_record(clicks: Mapping[str, Clicks], source: Mapping[str, object]) -> dict[str, object]:
    """Say where the scores of a program came from, ready for JSON: the file, images and detections."""
    searched = [one.scores for one in clicks.values() if one.scores is not None]
    return {**source, "images": len(searched), "detections": sum(map(len, searched))}


def image_record(outcome: Outcome[Fusion]) -> dict[str, Any]:
    """Say how the fusion of one image went, ready for JSON: counts, iterations, objective, seconds."""
    record: dict[str, Any] = {"image": outcome.item, "seconds": round(outcome.seconds, 4)}
    if outcome.fusion is None:
        return record | {"problem": outcome.problem}
    clusters, detection = outcome.fusion.clustering, outcome.fusion.detection
    trace = clusters.trace
    return record | {
        "clusters": len(clusters),
        "detections": int(detection.detected.sum()),
        "click_scatter": finite_or_none(clusters.scatter),
        "iterations": len(trace.objective),
        "kept_iteration": trace.best,
        "converged": trace.converged,
        "objective": finite_or_none(trace.objective[trace.best]) if trace.best >= 0 else None,
        "detection_iterations": len(detection.objective),
        "detection_converged": detection.converged,
        "detection_objective": finite_or_none(detection.objective[-1]) if len(detection.objective) else None,
    }
