"""Tables of a study of clicks: annotators and clicks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.fusion import pool_rates
from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.formats.export import write_table
from raterscope.app.kinds.clicks.results import (
    ANNOTATORS,
    CLICKS,
    TIMED_CLICKS,
    annotator_rows,
    click_rows,
    judged,
)
from raterscope.app.kinds.clicks.running import counted_in
from raterscope.app.review import Weighed
from raterscope.app.study import ImageEntry, RunEntry, Study

__all__ = ["export_table"]

Row = Sequence[object]


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write a table of a study; of each image the run shown counts. See `exports.Writer`."""
    watch(0.0, f"writing {request.what}")
    return [_TABLES[request.what](study, request.path)]


def _write_annotators(study: Study, path: Path) -> Path:
    """Write the annotators, with as how much of one each counted in the last run; the excluded at 0."""
    fusions, names, runs = [], [], []
    for entry, (run, fusion) in _results(study):
        runs.append(run)
        fusions.append(fusion)
        names.append(study.clicks(entry.id, run).annotators)
    if not fusions:
        raise InputError(
            "has no run yet that tells of annotators; `raterscope run` makes one", file=study.path
        )
    counted = counted_in(max(runs, key=attrgetter("id")), study.decisions())
    people, rates = pool_rates(fusions, names)
    told = dict(zip(people, annotator_rows(people, rates), strict=True))
    untold = [None] * (len(ANNOTATORS) - 1)
    rows = []
    for name in dict.fromkeys([*told, *counted]):
        how = counted.get(name, Weighed(1.0, ""))
        rows.append((*told.get(name, (name, *untold)), f"{how.weight:g}", how.reason))
    return write_table(path, (*ANNOTATORS, "weight", "reason"), rows)


def _write_clicks(study: Study, path: Path) -> Path:
    entries = study.images()
    timed = any(study.clicks(entry.id).time is not None for entry in entries)
    rows = (row for entry in entries for row in _click_rows(study, entry, timed))
    return write_table(path, TIMED_CLICKS if timed else CLICKS, rows)


def _click_rows(study: Study, entry: ImageEntry, timed: bool) -> Iterator[Row]:
    clicks, result = study.clicks(entry.id), study.shown.result(entry.id)
    inlier, cluster, vote = judged(None, clicks.annotator, 0.0)
    if result is not None:
        run, fusion = result
        threshold = run.settings.get("assignment", {}).get("outlier_threshold", 0.5)
        there = len(study.clicks(entry.id, replace(run, excluded=())))  # later imports stand behind
        used = np.arange(len(clicks)) < there
        used &= np.array([clicks.annotators[who] not in run.excluded for who in clicks.annotator], dtype=bool)
        fused = study.clicks(entry.id, run).annotator
        inlier[used], cluster[used], vote[used] = judged(fusion, fused, threshold)
    return click_rows(entry.name, clicks, inlier, cluster, vote, timed=timed)


def _results(study: Study) -> Iterator[tuple[ImageEntry, tuple[RunEntry, Fusion]]]:
    for entry in study.images():
        result = study.shown.result(entry.id)
        if result is not None:
            yield entry, result


_TABLES: dict[str, Callable[[Study, Path], Path]] = {
    "annotators": _write_annotators,
    "clicks": _write_clicks,
}
