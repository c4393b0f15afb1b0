"""The detections of a study for the next program: what the expert decided has the last word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.export import write_table
from raterscope.app.formats.masks.naming import bare
from raterscope.app.formats.points.writing import Detection, OnImage, write_coco, write_geojson, write_layer
from raterscope.app.kinds.clicks.results import DETECTIONS, SCORED_DETECTIONS, detection_rows
from raterscope.app.provenance import description_of
from raterscope.app.review import Measures, Spot, fold, match, read_measures
from raterscope.app.study import ImageEntry, RunEntry, Study

__all__ = ["export_detections"]

Row = Sequence[object]

_COLUMNS = (*SCORED_DETECTIONS, "verdict")
_UNSCORED = (*DETECTIONS, "verdict")
_X, _Y, _DETECTED = (DETECTIONS.index(name) for name in ("x", "y", "detected"))
_WRITERS = {"geojson": write_geojson, "napari": write_layer}
"""Formats that hold one image a file."""


def export_detections(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the detections of a study, of each image those of the run shown. See `exports.Writer`.

    A table has a row for every cluster, with what became of it, and one for every spot that the expert added.
    Other formats have what was detected, and of several images GeoJSON and napari a file each, in a folder.

    Raises
    ------
    InputError
        When nothing was fused or decided yet, or there is nothing that the format holds.
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
        every = [row for _, some in rows for row in some]
        if any(row[-2] != "" for row in every):
            return [write_table(request.path, _COLUMNS, every)]
        return [write_table(request.path, _UNSCORED, ((*row[:-2], row[-1]) for row in every))]
    measures = read_measures(decisions, state)
    images = [_on_image(entry, some, measures, runs.get(entry.id)) for entry, some in rows]
    if request.format == "coco":
        return [write_coco(request.path, images)]
    if request.format == "napari":  # which opens no layer without points
        images = [image for image in images if image.detections]
    if not images:
        raise InputError("holds nothing that was detected, and so no layer of points", file=study.path)
    write, named = _WRITERS[request.format], [(image, bare(Path(image.name))) for image in images]
    return [write(path, image) for image, path, _ in files_for(request, named, part(watch, 0.5, 1.0))]


def _on_image(entry: ImageEntry, rows: Sequence[Row], measures: Measures, run: RunEntry | None) -> OnImage:
    found = [_detection(row) for row in rows if row[_DETECTED]]
    size = measures.pixel_size(entry.id, entry.pixel_size)
    return OnImage(
        entry.name, entry.width, entry.height, found, size, "" if run is None else description_of(run)
    )


def _detection(row: Row) -> Detection:
    told = dict(zip(_COLUMNS, row, strict=True))
    x, y, sxx, syy, posterior = (
        None if told[name] == "" else float(str(told[name])) for name in ("x", "y", "sxx", "syy", "posterior")
    )
    assert x is not None
    assert y is not None
    cluster, votes = (None if told[name] == "" else int(str(told[name])) for name in ("cluster", "votes"))
    spread = None if sxx is None or syy is None else (math.sqrt(max(sxx, 0.0)), math.sqrt(max(syy, 0.0)))
    return Detection(x, y, str(told["verdict"]) or "undecided", cluster, votes, posterior, spread)


def _decided_rows(image: str, fusion: Fusion | None, spots: Sequence[Spot]) -> Iterator[Row]:
    """Give the rows of an image's clusters with the expert's verdicts; added spots have no cluster."""
    found: list[int | None] = [None] * len(spots)
    if fusion is not None:
        found = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
        said = {cluster: spot for spot, cluster in zip(spots, found, strict=True) if cluster is not None}
        for number, row in enumerate(detection_rows(image, fusion)):
            yield _with_verdict(list(row), said.get(number))
    for spot, cluster in zip(spots, found, strict=True):
        if cluster is None and spot.verdict != "skipped":
            yield _with_verdict([image, *[""] * (len(SCORED_DETECTIONS) - 1)], spot)


def _with_verdict(row: list[object], spot: Spot | None) -> Row:
    if spot is None:
        return [*row, ""]
    if spot.verdict != "skipped":
        row[_X], row[_Y] = spot.x, spot.y
        row[_DETECTED] = int(spot.verdict != "rejected")
    return [*row, spot.verdict]
