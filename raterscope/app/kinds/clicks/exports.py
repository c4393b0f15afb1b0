"""Exports of clicks: the files of a result folder, and the tables of a study with the decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.fusion import FusionPlan, pool_rates
from raterscope.algorithms.clicks.result import AnnotatorRates, Fusion
from raterscope.algorithms.evaluation import Evaluation, compare
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, description_of, files_for
from raterscope.app.formats.masks.naming import strip_suffixes
from raterscope.app.formats.output_files import (
    Column,
    format_number,
    remove_file,
    write_columns,
    write_record,
    write_table,
)
from raterscope.app.formats.points.writing import (
    Detection,
    ImageDetections,
    write_coco,
    write_geojson,
    write_layer,
)
from raterscope.app.kinds.clicks.runs import reduced_weights
from raterscope.app.outcome import Outcome, successful
from raterscope.app.review import Measures, Spot, Weighed, fold, match, read_measures
from raterscope.app.study import ImageEntry, RunEntry, Study

Row = Sequence[object]

DETECTIONS = ("image", "cluster", "x", "y", "sxx", "sxy", "syy", "weight", "votes", "posterior", "detected")
SCORED_DETECTIONS = (*DETECTIONS, "score")
ANNOTATORS = ("annotator", "clicks", "reliability", "sensitivity", "precision")
CLICKS = ("annotator", "image", "x", "y", "inlier_probability", "cluster", "vote")
TIMED_CLICKS = ("annotator", "image", "x", "y", "time", "inlier_probability", "cluster", "vote")
EVALUATION = ("image", "truths", "detections", "matched", "sensitivity", "precision", "f0.5", "f1", "f2")


@dataclass(frozen=True, eq=False)
class Results:
    """Contents of a folder of results.

    Attributes
    ----------
    clicks : mapping of image to Clicks
    outcomes : mapping of image to Outcome
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


def write_results(folder: Path, results: Results) -> list[Path]:
    """Write detections.csv, annotators.csv, clicks.csv, run.json and, with a truth, evaluation.csv.

    Each file replaces an existing one completely or not at all. run.json is removed first and written last:
    if it exists, all files that it describes exist. Raises `InputError` when something cannot be written.
    """
    remove_file(folder / "run.json")
    fusions = successful(results.outcomes)
    scored = any(fusion.score is not None for fusion in fusions.values())
    header = SCORED_DETECTIONS if scored else DETECTIONS
    detections = (
        row[: len(header)]
        for name, image_fusion in fusions.items()
        for row in detection_rows(name, image_fusion)
    )
    names, rates = pool_rates(list(fusions.values()), [results.clicks[name].annotators for name in fusions])
    paths = [
        write_table(folder / "detections.csv", header, detections),
        write_table(folder / "annotators.csv", ANNOTATORS, annotator_rows(names, rates)),
        write_columns(folder / "clicks.csv", *click_columns(results, fusions)),
    ]
    if results.evaluations is not None:
        rows = evaluation_rows(results.evaluations)
        paths.append(write_table(folder / "evaluation.csv", EVALUATION, rows))
    else:
        remove_file(folder / "evaluation.csv")
    return [*paths, write_record(folder / "run.json", results.record)]


def click_columns(results: Results, fusions: Mapping[str, Fusion]) -> tuple[tuple[str, ...], list[Column]]:
    """Return the columns of clicks.csv of all images, after their names; see `judge_clicks`.

    Rows are in the order of the input if it is known.
    """
    threshold = results.plan.assignment.outlier_threshold
    timed = any(clicks.time is not None for clicks in results.clicks.values())
    index: dict[str, int] = {}
    judged = []
    for name, clicks in results.clicks.items():
        judged.append(
            (
                np.array(
                    [index.setdefault(annotator, len(index)) for annotator in clicks.annotators],
                    dtype=np.int64,
                )[clicks.annotator],
                clicks.x,
                clicks.y,
                np.full(len(clicks), np.nan) if clicks.time is None else clicks.time,
                *judge_clicks(fusions.get(name), clicks.annotator, threshold),
            )
        )
    annotator, x, y, time, inlier, cluster, vote = (
        np.concatenate(column) for column in zip(*judged, strict=True)
    )
    image = np.repeat(np.arange(len(judged)), [len(clicks) for clicks in results.clicks.values()])
    rows = np.arange(len(image))
    if results.order:
        number = {name: row for row, name in enumerate(results.clicks)}
        rows[np.argsort([number[name] for name in results.order], kind="stable")] = np.arange(len(image))
    columns: list[Column] = [
        (tuple(index), annotator[rows]),
        (tuple(results.clicks), image[rows]),
        x[rows],
        y[rows],
    ]
    if timed:
        columns.append(time[rows])
    clusters = ("", *map(str, range(1, int(cluster.max(initial=-1)) + 2)))
    columns += [inlier[rows], (clusters, cluster[rows] + 1), (("", "0", "1"), vote[rows] + 1)]
    return (TIMED_CLICKS if timed else CLICKS), columns


def detection_rows(image: str, fusion: Fusion) -> Iterator[Row]:
    """Return the rows of detections.csv for one image, with a program's scores; clusters count from 1."""
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
    return [format_number(value) for value in values.tolist()]


def annotator_rows(names: Sequence[str], rates: AnnotatorRates) -> Iterator[Row]:
    """Return the rows of annotators.csv. Undefined rates are empty."""
    for r, name in enumerate(names):
        shares = (rates.reliability[r, 0], rates.sensitivity[r, 0], rates.precision[r, 0])
        yield (name, int(rates.clicks[r]), *map(format_number, shares))


def judge_clicks(
    fusion: Fusion | None, annotator: NDArray[np.integer], threshold: float
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the inlier probability, cluster and vote of each of N clicks.

    Parameters
    ----------
    fusion : Fusion or None
        The values are NaN and -1 without one.
    annotator : (N,) int
        Annotator of each click, a row of `Fusion.marked`.
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
    """Return the rows of clicks.csv for one image, see `judge_clicks`.

    With `timed` there is a column of times. An annotator without clicks on the image has a row without
    position.
    """
    columns = [_texts(clicks.x), _texts(clicks.y)]
    if timed:
        columns.append([""] * len(clicks) if clicks.time is None else _texts(clicks.time))
    yield from zip(
        [clicks.annotators[annotator] for annotator in clicks.annotator.tolist()],
        [image] * len(clicks),
        *columns,
        _texts(inlier),
        ["" if index < 0 else index + 1 for index in cluster.tolist()],
        ["" if answer < 0 else answer for answer in vote.tolist()],
        strict=True,
    )
    for idle in np.flatnonzero(clicks.counts() == 0):
        yield (clicks.annotators[idle], image, *[""] * (6 if timed else 5))


def evaluation_rows(evaluations: Mapping[str, Evaluation]) -> Iterator[Row]:
    """Return the rows of evaluation.csv: each image, then mean rates and summed counts."""
    for image, evaluation in evaluations.items():
        hits, truths = evaluation.true_positive, evaluation.true_positive + evaluation.false_negative
        figures = (
            evaluation.sensitivity,
            evaluation.precision,
            evaluation.f_half,
            evaluation.f_one,
            evaluation.f_two,
        )
        yield (image, truths, hits + evaluation.false_positive, hits, *map(format_number, figures))
    (mean,) = compare({"mean": list(evaluations.values())})
    hits, truths = mean.true_positive, mean.true_positive + mean.false_negative
    figures = (mean.sensitivity, mean.precision, mean.f_half, mean.f_one, mean.f_two)
    yield ("mean", truths, hits + mean.false_positive, hits, *map(format_number, figures))


_COLUMNS = (*SCORED_DETECTIONS, "verdict")
_UNSCORED = (*DETECTIONS, "verdict")
_X, _Y, _DETECTED = (DETECTIONS.index(name) for name in ("x", "y", "detected"))
_WRITERS = {"geojson": write_geojson, "napari": write_layer}
"""Formats that hold one image a file."""


def export_detections(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the detections of a study, of each image those of the run shown; see `exports.Writer`.

    A table has a row for each cluster, with the expert's verdict, and one for each spot that the expert
    added. Other formats hold the detections; GeoJSON and napari write a file for each of several images into
    a folder. Raises `InputError` if there is no fusion or decision, or nothing that the format stores.
    """
    watch(0.0, f"writing {request.what}")
    decisions = study.decisions()
    state = fold(decisions)
    entries = [entry for entry in study.images() if not request.items or entry.id in request.items]
    rows: list[tuple[ImageEntry, list[Row]]] = []
    runs: dict[int, RunEntry] = {}
    for step, entry in enumerate(entries):
        result, spots = study.shown.result(entry.id), state.spots(entry.id)
        if result is not None or spots:
            fusion = None if result is None else result[1]
            if result is not None:
                runs[entry.id] = result[0]
            rows.append((entry, list(_decided_rows(entry.name, fusion, spots))))
        watch((step + 1) / len(entries) / 2, f"reading {plain(entry.name)}")
    if not rows:
        raise InputError("holds no detections yet; `raterscope run` fuses its clicks", file=study.path)
    if request.format == "csv":
        all_rows = [row for _, image_rows in rows for row in image_rows]
        if any(row[-2] != "" for row in all_rows):
            return [write_table(request.path, _COLUMNS, all_rows)]
        return [write_table(request.path, _UNSCORED, ((*row[:-2], row[-1]) for row in all_rows))]
    measures = read_measures(decisions, state)
    images = [_on_image(entry, image_rows, measures, runs.get(entry.id)) for entry, image_rows in rows]
    if request.format == "coco":
        return [write_coco(request.path, images)]
    if request.format == "napari":  # which opens no layer without points
        images = [image for image in images if image.detections]
    if not images:
        raise InputError("holds no detections to write as points", file=study.path)
    write, named = _WRITERS[request.format], [(image, strip_suffixes(Path(image.name))) for image in images]
    return [write(path, image) for image, path, _ in files_for(request, named, part(watch, 0.5, 1.0))]


def _on_image(
    entry: ImageEntry, rows: Sequence[Row], measures: Measures, run: RunEntry | None
) -> ImageDetections:
    detections = [_detection(row) for row in rows if row[_DETECTED]]
    size = measures.pixel_size(entry.id, entry.pixel_size)
    return ImageDetections(
        entry.name, entry.width, entry.height, detections, size, "" if run is None else description_of(run)
    )


def _detection(row: Row) -> Detection:
    cells = dict(zip(_COLUMNS, row, strict=True))
    x, y, sxx, syy, posterior = (
        None if cells[name] == "" else float(str(cells[name]))
        for name in ("x", "y", "sxx", "syy", "posterior")
    )
    assert x is not None
    assert y is not None
    cluster, votes = (None if cells[name] == "" else int(str(cells[name])) for name in ("cluster", "votes"))
    spread = None if sxx is None or syy is None else (math.sqrt(max(sxx, 0.0)), math.sqrt(max(syy, 0.0)))
    return Detection(x, y, str(cells["verdict"]) or "undecided", cluster, votes, posterior, spread)


def _decided_rows(image: str, fusion: Fusion | None, spots: Sequence[Spot]) -> Iterator[Row]:
    """Return the rows of an image's clusters with the expert's verdicts. Added spots have no cluster."""
    clusters: list[int | None] = [None] * len(spots)
    if fusion is not None:
        clusters = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
        spot_of = {
            cluster: spot for spot, cluster in zip(spots, clusters, strict=True) if cluster is not None
        }
        for number, row in enumerate(detection_rows(image, fusion)):
            yield _with_verdict(list(row), spot_of.get(number))
    for spot, cluster in zip(spots, clusters, strict=True):
        if cluster is None and spot.verdict != "skipped":
            yield _with_verdict([image, *[""] * (len(SCORED_DETECTIONS) - 1)], spot)


def _with_verdict(row: list[object], spot: Spot | None) -> Row:
    if spot is None:
        return [*row, ""]
    if spot.verdict != "skipped":
        row[_X], row[_Y] = spot.x, spot.y
        row[_DETECTED] = int(spot.verdict != "rejected")
    return [*row, spot.verdict]


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write a table of a study from the runs shown; see `exports.Writer`."""
    watch(0.0, f"writing {request.what}")
    return [_TABLES[request.what](study, request.path)]


def _write_annotators(study: Study, path: Path) -> Path:
    """Write the annotators with their weight in the last run; 0 for excluded ones."""
    fusions, names, runs = [], [], []
    aliases = fold(study.decisions()).aliases
    for entry, (run, fusion) in _results(study):
        runs.append(run)
        fusions.append(fusion)
        names.append([aliases.get(name, name) for name in study.clicks(entry.id, run).annotators])
    if not fusions:
        raise InputError("has no run yet; `raterscope run` makes one", file=study.path)
    counted = reduced_weights(max(runs, key=attrgetter("id")), study.decisions())
    annotators, rates = pool_rates(fusions, names)
    rates_rows = dict(zip(annotators, annotator_rows(annotators, rates), strict=True))
    untold = [None] * (len(ANNOTATORS) - 1)
    rows = []
    for name in dict.fromkeys([*rates_rows, *(name for name in counted if name not in aliases)]):
        weighed = counted.get(name, Weighed(1.0, ""))
        rows.append((*rates_rows.get(name, (name, *untold)), f"{weighed.weight:g}", weighed.reason))
    return write_table(path, (*ANNOTATORS, "weight", "reason"), rows)


def _write_clicks(study: Study, path: Path) -> Path:
    entries = study.images()
    timed = any(study.clicks(entry.id).time is not None for entry in entries)
    rows = (row for entry in entries for row in _click_rows(study, entry, timed))
    return write_table(path, TIMED_CLICKS if timed else CLICKS, rows)


def _click_rows(study: Study, entry: ImageEntry, timed: bool) -> Iterator[Row]:
    clicks, result = study.clicks(entry.id), study.shown.result(entry.id)
    inlier, cluster, vote = judge_clicks(None, clicks.annotator, 0.0)
    if result is not None:
        run, fusion = result
        threshold = run.settings.get("assignment", {}).get("outlier_threshold", 0.5)
        click_count = len(study.clicks(entry.id, replace(run, excluded=())))  # later imports stand behind
        used = np.arange(len(clicks)) < click_count
        used &= np.array(
            [clicks.annotators[annotator] not in run.excluded for annotator in clicks.annotator], dtype=bool
        )
        fused = study.clicks(entry.id, run).annotator
        inlier[used], cluster[used], vote[used] = judge_clicks(fusion, fused, threshold)
    return click_rows(entry.name, clicks, inlier, cluster, vote, timed=timed)


def _results(study: Study) -> Iterator[tuple[ImageEntry, tuple[RunEntry, Fusion]]]:
    for entry in study.images():
        result = study.shown.result(entry.id)
        if result is not None:
            yield entry, result


_TABLES: dict[str, Callable[[Study, Path], Path]] = {"annotators": _write_annotators, "clicks": _write_clicks}


_MEASUREMENT_COLUMNS = (
    "image", "number", "shape", "length_px", "area_px2", "um_per_px", "length_um", "area_um2", "who", "at",
    "points",
)  # fmt: skip


def export_measurements(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the measured lengths and outlines, a row each; see `exports.Writer`.

    A length is that of the line or of the outline; points are x y pairs in pixels. Raises `InputError` when
    nothing was measured.
    """
    watch(0.0, "writing measurements")
    decisions = study.decisions()
    measures = read_measures(decisions, fold(decisions))
    entries = [entry for entry in study.images() if not request.items or entry.id in request.items]
    rows = [row for entry in entries for row in _rows(entry, measures)]
    if not rows:
        raise InputError("holds no measurements yet; they are drawn in the window", file=study.path)
    return [write_table(request.path, _MEASUREMENT_COLUMNS, rows)]


def _rows(entry: ImageEntry, measures: Measures) -> Iterator[Sequence[object]]:
    size = measures.pixel_size(entry.id, entry.pixel_size)
    for shape in measures.shapes.get(entry.id, ()):
        decision, area = shape.made, shape.area
        yield (
            entry.name,
            shape.subject.number,
            "outline" if area is not None else "line",
            round(shape.length, 3),
            None if area is None else round(area, 3),
            size,
            None if size is None else round(shape.length * size, 6),
            None if size is None or area is None else round(area * size**2, 6),
            decision.who,
            None if decision.at is None else decision.at.isoformat(timespec="milliseconds"),
            " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.points.tolist()),
        )
