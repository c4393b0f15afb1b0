"""What a study holds as tables for the next program: detections, annotators, clicks, decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Fusion
from raterscope.algorithms.clicks.fusion import pool_rates
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.clicks.results import (
    ANNOTATORS,
    CLICKS,
    DETECTIONS,
    TIMED_CLICKS,
    annotator_rows,
    click_rows,
    detection_rows,
    judged,
)
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.formats.export import DECISIONS, decision_rows, write_table
from raterscope.app.review import Spot, fold, match
from raterscope.app.study import ImageEntry, RunEntry, Study

__all__ = ["export_table"]

Row = Sequence[object]

_X, _Y, _DETECTED = (DETECTIONS.index(name) for name in ("x", "y", "detected"))


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write a table of a study; of each image its latest run counts. See `exports.Writer`."""
    watch(0.0, f"writing {request.what}")
    return [_TABLES[request.what](study, request.path)]


def _write_detections(study: Study, path: Path) -> Path:
    """Write the detections; the expert's verdicts have the last word, and added spots have no cluster."""
    state = fold(study.decisions())
    fused = {entry.id: result for entry, result in _results(study)}
    rows = (
        row
        for entry in study.images()
        for row in _decided_rows(entry.name, fused.get(entry.id), state.spots(entry.id))
    )
    if not fused and not state.items("clicks"):
        raise InputError("holds no detections yet; `raterscope run` fuses its clicks", file=study.path)
    return write_table(path, (*DETECTIONS, "verdict"), rows)


def _decided_rows(image: str, result: tuple[RunEntry, Fusion] | None, spots: list[Spot]) -> Iterator[Row]:
    found: list[int | None] = [None] * len(spots)
    if result is not None:
        fusion = result[1]
        found = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
        said = {cluster: spot for spot, cluster in zip(spots, found, strict=True) if cluster is not None}
        for number, row in enumerate(detection_rows(image, fusion)):
            yield _with_verdict(list(row), said.get(number))
    for spot, cluster in zip(spots, found, strict=True):
        if cluster is None and spot.verdict != "skipped":
            yield _with_verdict([image, *[""] * (len(DETECTIONS) - 1)], spot)


def _with_verdict(row: list[object], spot: Spot | None) -> Row:
    if spot is None:
        return [*row, ""]
    if spot.verdict != "skipped":
        row[_X], row[_Y] = spot.x, spot.y
        row[_DETECTED] = int(spot.verdict != "rejected")
    return [*row, spot.verdict]


def _write_annotators(study: Study, path: Path) -> Path:
    fusions, names = [], []
    for entry, (run, fusion) in _results(study):
        fusions.append(fusion)
        names.append(study.clicks(entry.id, run).annotators)
    if not fusions:
        raise InputError(
            "has no run yet that tells of annotators; `raterscope run` makes one", file=study.path
        )
    return write_table(path, ANNOTATORS, annotator_rows(*pool_rates(fusions, names)))


def _write_clicks(study: Study, path: Path) -> Path:
    entries = study.images()
    timed = any(study.clicks(entry.id).time is not None for entry in entries)
    rows = (row for entry in entries for row in _click_rows(study, entry, timed))
    return write_table(path, TIMED_CLICKS if timed else CLICKS, rows)


def _click_rows(study: Study, entry: ImageEntry, timed: bool) -> Iterator[Row]:
    clicks, result = study.clicks(entry.id), study.latest_result(entry.id)
    inlier, cluster = judged(None, len(clicks), 0.0)
    if result is not None:
        run, fusion = result
        threshold = run.settings.get("assignment", {}).get("outlier_threshold", 0.5)
        there = len(study.clicks(entry.id, replace(run, excluded=())))  # later imports stand behind
        used = np.arange(len(clicks)) < there
        used &= np.array([clicks.annotators[who] not in run.excluded for who in clicks.annotator], dtype=bool)
        inlier[used], cluster[used] = judged(fusion, int(used.sum()), threshold)
    return click_rows(entry.name, clicks, inlier, cluster, timed=timed)


def _write_decisions(study: Study, path: Path) -> Path:
    return write_table(path, DECISIONS, decision_rows(study.decisions(), study.names()))


def _results(study: Study) -> Iterator[tuple[ImageEntry, tuple[RunEntry, Fusion]]]:
    for entry in study.images():
        result = study.latest_result(entry.id)
        if result is not None:
            yield entry, result


_TABLES: dict[str, Callable[[Study, Path], Path]] = {
    "detections": _write_detections,
    "annotators": _write_annotators,
    "clicks": _write_clicks,
    "decisions": _write_decisions,
}
