"""Exports of clicks: the files of a result folder, and the tables of a study with the decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.click_classes import class_names, sort_classes
from raterscope.algorithms.clicks.annotator_rates import pool_rates
from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.result import AnnotatorRates, Fusion
from raterscope.algorithms.clicks.voting import AssignmentSettings, votes_of
from raterscope.algorithms.evaluation import Evaluation, compare
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, description_of, files_for
from raterscope.app.formats.masks.naming import image_stem
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
    reduce_detections,
    write_coco,
    write_cvat,
    write_geojson,
    write_layer,
    write_reductions,
)
from raterscope.app.kinds.clicks.annotators import rate_excluded
from raterscope.app.kinds.clicks.runs import plan_of, reduced_weights
from raterscope.app.outcome import Outcome, successful
from raterscope.app.review import Measures, Spot, Weighed, match, read_measures
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.image_groups import subjects_of

Row = Sequence[object]

DETECTIONS = ("image", "cluster", "x", "y", "sxx", "sxy", "syy", "weight", "votes", "posterior", "detected")
SCORED_DETECTIONS = (*DETECTIONS, "score")
CLASS_COLUMNS = ("class", "class_posterior")
_RATES = ("reliability", "sensitivity", "precision")
ANNOTATORS = (
    "annotator",
    "clicks",
    *_RATES,
    *(f"{name}_{end}" for name in _RATES for end in ("low", "high")),
)
CLICKS = ("annotator", "image", "x", "y", "inlier_probability", "cluster", "vote")
TIMED_CLICKS = ("annotator", "image", "x", "y", "time", "inlier_probability", "cluster", "vote")
EVALUATION = ("image", "truths", "detections", "matched", "sensitivity", "precision", "f0.5", "f1", "f2")


@dataclass(frozen=True, eq=False)
class Results:
    """Contents of a folder of results."""

    clicks: Mapping[str, Clicks]  # by image
    outcomes: Mapping[str, Outcome[Fusion]]  # by image
    plan: FusionPlan
    record: Mapping[str, Any]  # see `run_record`
    evaluations: Mapping[str, Evaluation] | None = None  # by image with known truth
    # the image of every input row: clicks are written in the order of the input; without it, image by image
    order: Sequence[str] = ()


def write_results(folder: Path, results: Results) -> list[Path]:
    """Write detections.csv, annotators.csv, clicks.csv, run.json and, with a truth, evaluation.csv.

    Each file replaces an existing one completely or not at all. run.json is removed first and written last:
    if it exists, all files that it describes exist. Raises `InputError` when something cannot be written.
    """
    remove_file(folder / "run.json")
    fusions = successful(results.outcomes)
    paths = [
        write_table(folder / "detections.csv", *detection_table(fusions)),
        write_table(folder / "annotators.csv", *annotator_table(fusions, results.clicks)),
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
                *judge_clicks(fusions.get(name), clicks, results.plan.assignment),
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
    header = TIMED_CLICKS if timed else CLICKS
    classes = class_names(list(results.clicks.values()))
    if not classes:
        return header, columns
    number = {name: row for row, name in enumerate(("", *classes))}
    label = [number[name] for clicks in results.clicks.values() for name in _class_cells(clicks)]
    columns.append((("", *classes), np.array(label, dtype=np.int64)[rows]))
    return (*header, "class"), columns


def _class_cells(clicks: Clicks) -> list[str]:
    """Return the class of each click, empty for none."""
    if clicks.label is None:
        return [""] * len(clicks)
    names = (*clicks.classes, "")
    return [names[label] for label in clicks.label.tolist()]


def detection_table(fusions: Mapping[str, Fusion]) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Return header and rows of detections.csv; scores and classes have columns if there are any."""
    scored = any(fusion.score is not None for fusion in fusions.values())
    names = fused_classes(fusions.values())
    rows = (row for name, fusion in fusions.items() for row in detection_rows(name, fusion, names))
    score = len(DETECTIONS)
    header = (*SCORED_DETECTIONS, *class_columns(names))
    if scored:
        return header, rows
    return (*header[:score], *header[score + 1 :]), ((*row[:score], *row[score + 1 :]) for row in rows)


def fused_classes(fusions: Iterable[Fusion], spots: Iterable[Spot] = ()) -> tuple[str, ...]:
    """Return the classes of results and decisions, in alphabetical order."""
    used = {name for fusion in fusions if fusion.classes is not None for name in fusion.classes.names}
    return sort_classes(used | {spot.label for spot in spots})


def class_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of classes: the most probable, its posterior, and that of each class."""
    return (*CLASS_COLUMNS, *(f"p({name})" for name in names)) if names else ()


def annotator_table(
    fusions: Mapping[str, Fusion], clicks: Mapping[str, Clicks]
) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Return header and rows of annotators.csv, with the accuracy of their classes if they gave any."""
    annotators = [clicks[name].annotators for name in fusions]
    names, rates = pool_rates(list(fusions.values()), annotators)
    rows = annotator_rows(names, rates)
    accuracy = class_accuracy(list(fusions.values()), annotators)
    if not accuracy:
        return ANNOTATORS, rows
    extended = ((*row, accuracy.get(name)) for name, row in zip(names, rows, strict=True))
    return (*ANNOTATORS, "class_accuracy"), extended


def class_accuracy(fusions: Sequence[Fusion], annotators: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the expected share of right classes of the annotators who gave some."""
    return {
        name: float(value)
        for fusion, names in zip(fusions, annotators, strict=True)
        if fusion.classes is not None
        for name, value in zip(names, fusion.classes.accuracy, strict=True)
        if np.isfinite(value)
    }


def detection_rows(image: str, fusion: Fusion, names: Sequence[str] = ()) -> Iterator[Row]:
    """Return the rows of detections.csv for one image, with scores and classes; clusters count from 1."""
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
        *_classes_of(fusion, names),
        strict=True,
    )


def _classes_of(fusion: Fusion, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Return the cells of `class_columns`, by column."""
    classes, count = fusion.classes, len(fusion.clustering)
    if classes is None:
        yield from [[""] * count for _ in class_columns(names)]
        return
    yield [classes.names[label] for label in classes.label().tolist()]
    yield _texts(classes.posterior.max(axis=1))
    column = {name: classes.posterior[:, number] for number, name in enumerate(classes.names)}
    for name in names:
        yield _texts(column.get(name, np.zeros(count)))


def _texts(values: FloatArray) -> list[str]:
    return [format_number(value) for value in values.tolist()]


def annotator_rows(names: Sequence[str], rates: AnnotatorRates) -> Iterator[Row]:
    """Return the rows of annotators.csv. Undefined rates are empty."""
    three = np.hstack([getattr(rates, name) for name in _RATES])
    columns = np.hstack([three[:, ::3], np.delete(three, np.s_[::3], axis=1)])
    for name, clicks, row in zip(names, rates.clicks.tolist(), columns.tolist(), strict=True):
        yield (name, clicks, *map(format_number, row))


def judge_clicks(
    fusion: Fusion | None, clicks: Clicks, assignment: AssignmentSettings
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the inlier probability, cluster and vote of each of N clicks, (N,) each.

    `fusion`: without one, the values are NaN and -1.
    `assignment`: settings of the fusion, see `votes_of`.
    The probability is NaN where it is unknown, the cluster is -1 for an outlier, and the vote is -1 where it
    is unknown.
    """
    if fusion is None:
        count = len(clicks)
        return np.full(count, np.nan), np.full(count, -1), np.full(count, -1)
    inlier, nearest = fusion.clustering.inlier[fusion.mark], fusion.clustering.nearest[fusion.mark]
    clustering = replace(fusion.clustering, inlier=inlier, nearest=nearest)
    threshold = assignment.outlier_threshold
    vote = votes_of(clicks, clustering, threshold, assignment.vote_coverage)
    return inlier, np.where(inlier >= threshold, nearest, -1), vote.astype(np.int64)


def click_rows(
    image: str, clicks: Clicks, inlier: FloatArray, cluster: IntArray, vote: IntArray, *, timed: bool,
    named: bool = False,
) -> Iterator[Row]:  # fmt: skip
    """Return the rows of clicks.csv for one image, see `judge_clicks`.

    With `timed` there is a column of times, with `named` one of classes. An annotator without clicks on the
    image has a row without position.
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
        *([_class_cells(clicks)] if named else []),
        strict=True,
    )
    for idle in np.flatnonzero(clicks.counts() == 0):
        yield (clicks.annotators[idle], image, *[""] * (5 + timed + named))


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


_X, _Y, _DETECTED = (DETECTIONS.index(name) for name in ("x", "y", "detected"))
_WRITERS = {"geojson": write_geojson, "napari": write_layer}
"""Writers of formats with one image per file."""

_WRITERS_OF_ALL = {"coco": write_coco, "cvat": write_cvat}
"""Writers of formats with all images in one file."""


def export_detections(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the detections of a study, those of the run shown of each image; see `exports.Writer`.

    A table has a row for each cluster, with the expert's verdict, and one for each spot that the expert
    added. Other formats hold the detections; GeoJSON and napari write a file for each of several images into
    a folder. Raises `InputError` if there is no fusion or decision, or nothing that the format stores.
    """
    watch(0.0, f"writing {request.what}")
    if request.format == "csv":
        header, rows, *_ = rows_of_images(study, request, part(watch, 0.0, 0.5))
        all_rows = [row for _, image_rows in rows for row in image_rows]
        score = len(DETECTIONS)
        if not any(row[score] != "" for row in all_rows):
            header = (*header[:score], *header[score + 1 :])
            all_rows = [(*row[:score], *row[score + 1 :]) for row in all_rows]
        return [write_table(request.path, header, all_rows)]
    images = read_detections(study, request, part(watch, 0.0, 0.5))
    if request.format == "panoptes":
        subjects = {entry.name: subject for entry, subject in subjects_of(study, _images(study, request))}
        reductions = reduce_detections(images, subjects)
        return [write_reductions(request.path, "raterscope_points", reductions)]
    if request.format in _WRITERS_OF_ALL:
        return [_WRITERS_OF_ALL[request.format](request.path, images)]
    if request.format == "napari":  # which opens no layer without points
        images = [image for image in images if image.detections]
    if not images:
        raise InputError("contains no detections to write as points", file=study.path)
    write, named = _WRITERS[request.format], [(image, image_stem(image.name)) for image in images]
    return [write(path, image) for image, path, _ in files_for(request, named, part(watch, 0.5, 1.0))]


def read_detections(study: Study, request: Request, watch: Watch = silent) -> list[ImageDetections]:
    """Read the detections on the requested images, decisions applied.

    Raises `InputError` if there is no fusion or decision.
    """
    header, rows, runs, measures = rows_of_images(study, request, watch)
    return [
        _on_image(entry, [dict(zip(header, row, strict=True)) for row in image_rows], measures, runs)
        for entry, image_rows in rows
    ]


def rows_of_images(
    study: Study, request: Request, watch: Watch
) -> tuple[tuple[str, ...], list[tuple[ImageEntry, list[Row]]], dict[int, RunEntry], Measures]:
    """Return the columns of all clusters, the rows of each image with verdicts, the runs, and the measures.

    Raises `InputError` if there is no fusion or decision.
    """
    decisions, state = study.decisions(), study.review_state()
    entries = _images(study, request)
    fusions: list[tuple[ImageEntry, Fusion | None]] = []
    runs: dict[int, RunEntry] = {}
    for step, entry in enumerate(entries):
        result = study.shown.result(entry.id, "clicks")
        if result is not None or state.spots(entry.id):
            fusions.append((entry, None if result is None else result[1]))
            if result is not None:
                runs[entry.id] = result[0]
        watch((step + 1) / len(entries), f"reading {plain(entry.name)}")
    if not fusions:
        raise InputError("contains no detections yet; `raterscope run` fuses its clicks", file=study.path)
    names = fused_classes(
        (fusion for _, fusion in fusions if fusion is not None),
        (spot for entry, _ in fusions for spot in state.spots(entry.id)),
    )
    rows = [
        (entry, list(_decided_rows(entry.name, fusion, state.spots(entry.id), names)))
        for entry, fusion in fusions
    ]
    header = (*SCORED_DETECTIONS, *class_columns(names), "verdict")
    return header, rows, runs, read_measures(decisions, state)


def _on_image(
    entry: ImageEntry,
    rows: Sequence[Mapping[str, object]],
    measures: Measures,
    runs: Mapping[int, RunEntry],
) -> ImageDetections:
    detections = [_detection(row) for row in rows if row["detected"]]
    size, run = measures.pixel_size(entry.id, entry.pixel_size), runs.get(entry.id)
    return ImageDetections(
        entry.name, entry.width, entry.height, detections, size, "" if run is None else description_of(run)
    )


def _detection(cells: Mapping[str, object]) -> Detection:
    x, y, sxx, syy, posterior = (
        None if cells[name] == "" else float(str(cells[name]))
        for name in ("x", "y", "sxx", "syy", "posterior")
    )
    assert x is not None
    assert y is not None
    cluster, votes = (None if cells[name] == "" else int(str(cells[name])) for name in ("cluster", "votes"))
    spread = None if sxx is None or syy is None else (math.sqrt(max(sxx, 0.0)), math.sqrt(max(syy, 0.0)))
    shares = {name[2:-1]: float(str(cell or 0)) for name, cell in cells.items() if name.startswith("p(")}
    return Detection(
        x, y, str(cells["verdict"]) or "undecided", cluster, votes, posterior, spread,
        str(cells.get("class", "")), shares,
    )  # fmt: skip


def _decided_rows(
    image: str, fusion: Fusion | None, spots: Sequence[Spot], names: Sequence[str]
) -> Iterator[Row]:
    """Return the rows of an image's clusters with the expert's verdicts. Added spots have no cluster."""
    clusters: list[int | None] = [None] * len(spots)
    if fusion is not None:
        clusters = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
        spot_of = {
            cluster: spot for spot, cluster in zip(spots, clusters, strict=True) if cluster is not None
        }
        for number, row in enumerate(detection_rows(image, fusion, names)):
            yield _with_verdict(list(row), spot_of.get(number), names)
    for spot, cluster in zip(spots, clusters, strict=True):
        if cluster is None and spot.verdict != "skipped":
            blank = [""] * (len(SCORED_DETECTIONS) - 1 + len(class_columns(names)))
            yield _with_verdict([image, *blank], spot, names)


def _with_verdict(row: list[object], spot: Spot | None, names: Sequence[str]) -> Row:
    if spot is None:
        return [*row, ""]
    if spot.verdict != "skipped":
        row[_X], row[_Y] = format_number(spot.x), format_number(spot.y)
        row[_DETECTED] = int(spot.verdict != "rejected")
        if spot.label:
            row[len(SCORED_DETECTIONS) :] = [spot.label, "1", *(str(int(n == spot.label)) for n in names)]
    return [*row, spot.verdict]


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write a table of a study from the runs shown; see `exports.Writer`."""
    watch(0.0, f"writing {request.what}")
    return [_TABLES[request.what](study, request)]


def _write_annotators(study: Study, request: Request) -> Path:
    """Write the annotators with their weight in the last run.

    The weight of excluded ones is 0; their rates are by the consensus of the others.
    """
    results = list(_results(study, request))
    fusions, names, runs = [], [], []
    aliases = study.review_state().aliases
    for entry, (run, fusion) in results:
        runs.append(run)
        fusions.append(fusion)
        names.append([aliases.get(name, name) for name in study.clicks(entry.id, run).annotators])
    if not fusions:
        raise InputError("has no run yet; `raterscope run` makes one", file=study.path)
    counted = reduced_weights(max(runs, key=attrgetter("id")), study)
    annotators, rates = pool_rates(fusions, names)
    excluded, excluded_rates = rate_excluded(
        ((entry.id, run, fusion) for entry, (run, fusion) in results), study, aliases
    )
    rates_rows = dict(zip(excluded, annotator_rows(excluded, excluded_rates), strict=True))
    rates_rows |= zip(annotators, annotator_rows(annotators, rates), strict=True)
    accuracy = class_accuracy(fusions, names)
    rows = []
    for name, row in rates_rows.items():
        weighed = counted.get(name, Weighed(1.0, ""))
        named = (accuracy.get(name),) if accuracy else ()
        rows.append((*row, *named, f"{weighed.weight:g}", weighed.reason))
    header = (*ANNOTATORS, "class_accuracy") if accuracy else ANNOTATORS
    return write_table(request.path, (*header, "weight", "reason"), rows)


def _write_clicks(study: Study, request: Request) -> Path:
    entries = _images(study, request)
    timed = any(study.clicks(entry.id).time is not None for entry in entries)
    named = any(study.clicks(entry.id).label is not None for entry in entries)
    rows = (row for entry in entries for row in _click_rows(study, entry, timed, named))
    header = TIMED_CLICKS if timed else CLICKS
    return write_table(request.path, (*header, "class") if named else header, rows)


def _click_rows(study: Study, entry: ImageEntry, timed: bool, named: bool) -> Iterator[Row]:
    clicks, result = study.clicks(entry.id), study.shown.result(entry.id, "clicks")
    inlier, cluster, vote = judge_clicks(None, clicks, AssignmentSettings())
    if result is not None:
        run, fusion = result
        whole = replace(run, excluded=(), programs=())
        click_count = len(study.clicks(entry.id, whole))  # later imports follow
        absent = {*run.excluded, *run.programs}
        used = ~np.array([name in absent for name in clicks.annotators], dtype=bool)[clicks.annotator]
        used &= np.arange(len(clicks)) < click_count
        assignment = (plan_of(run) or FusionPlan()).assignment
        judged = judge_clicks(fusion, study.clicks(entry.id, run), assignment)
        inlier[used], cluster[used], vote[used] = judged
    return click_rows(entry.name, clicks, inlier, cluster, vote, timed=timed, named=named)


def _images(study: Study, request: Request) -> list[ImageEntry]:
    return [entry for entry in study.images() if not request.items or entry.id in request.items]


def _results(study: Study, request: Request) -> Iterator[tuple[ImageEntry, tuple[RunEntry, Fusion]]]:
    for entry in _images(study, request):
        result = study.shown.result(entry.id, "clicks")
        if result is not None:
            yield entry, result


_TABLES: dict[str, Callable[[Study, Request], Path]] = {
    "annotators": _write_annotators,
    "clicks": _write_clicks,
}


_MEASUREMENT_COLUMNS = (
    "image", "number", "shape", "length_px", "area_px2", "um_per_px", "length_um", "area_um2", "who", "at",
    "points",
)  # fmt: skip


def export_measurements(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the measured lengths and outlines, one per row; see `exports.Writer`.

    A length is that of the line or of the outline; points are x y pairs in pixels. Raises `InputError` when
    nothing was measured.
    """
    watch(0.0, "writing measurements")
    measures = read_measures(study.decisions(), study.review_state())
    entries = [entry for entry in study.images() if not request.items or entry.id in request.items]
    rows = [row for entry in entries for row in _rows(entry, measures)]
    if not rows:
        raise InputError("contains no measurements yet; they are drawn in the window", file=study.path)
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
