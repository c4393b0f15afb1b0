"""Lengths and areas of a study as a table for the next program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.formats.export import write_table
from raterscope.app.review import Measures, fold, read_measures
from raterscope.app.study import ImageEntry, Study

__all__ = ["export_measurements"]

_COLUMNS = (
    "image", "number", "shape", "length_px", "area_px2", "um_per_px", "length_um", "area_um2", "who", "at",
    "points",
)  # fmt: skip


def export_measurements(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write what was drawn and measured, a row each. See `exports.Writer`.

    A length is that of the line or of the outline; points are x y pairs in pixels.

    Raises
    ------
    InputError
        When nothing was measured.
    """
    watch(0.0, "writing measurements")
    decisions = study.decisions()
    measures = read_measures(decisions, fold(decisions))
    entries = [entry for entry in study.images() if not request.items or entry.id in request.items]
    rows = [row for entry in entries for row in _rows(entry, measures)]
    if not rows:
        raise InputError("holds no measurements yet; they are drawn in the window", file=study.path)
    return [write_table(request.path, _COLUMNS, rows)]


def _rows(entry: ImageEntry, measures: Measures) -> Iterator[Sequence[object]]:
    size = measures.pixel_size(entry.id, entry.pixel_size)
    for shape in measures.shapes.get(entry.id, ()):
        made, area = shape.made, shape.area
        yield (
            entry.name,
            shape.subject.number,
            "outline" if area is not None else "line",
            round(shape.length, 3),
            None if area is None else round(area, 3),
            size,
            None if size is None else round(shape.length * size, 6),
            None if size is None or area is None else round(area * size**2, 6),
            made.who,
            None if made.at is None else made.at.isoformat(timespec="milliseconds"),
            " ".join(f"{x:.2f},{y:.2f}" for x, y in shape.points.tolist()),
        )
