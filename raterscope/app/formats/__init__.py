"""Readers and writers of files, one module for each format. `read` detects the format and reads the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.points import read_scores
from raterscope.app.formats.points.positions import ImageScales, unknown_scales
from raterscope.app.formats.points.tables import (
    are_detections,
    are_scores,
    read_score_table,
    read_truth_points,
)
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable
from raterscope.app.formats.sources import File, open_source
from raterscope.app.formats.tables import Table, UnknownColumns, find_columns, holds_number
from raterscope.app.formats.untrusted import refuse_special

__all__ = ["KINDS", "ClickTable", "ImageFile", "PointTable", "UnknownColumns", "is_named_truth", "read"]

KINDS = (
    "clicks", "truth", "image", "scores", "volume", "masks", "labels", "true-labels", "pairs", "true-ranking",
)  # fmt: skip
"""Kinds of files; `read` reads the first four, `volumes`, `masks`, `labels` and `pairs` the others."""

_TRUTH_WORDS = ("truth", "gt", "gold", "expert", "reference")


def read(
    file: File,
    kind: str | None = None,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    scales: ImageScales = unknown_scales,
    annotator: str | None = None,
) -> ClickTable | PointTable | ImageFile:
    r"""Read a file, whose format is detected from its content.

    `kind`: clicks, truth, image or scores; by default detected from the file's first bytes and its header.
    `annotator`: annotator of clicks, if the table names none.
    `mapping`: fields of a table's columns, named by hand. A table of image sizes becomes a `ClickTable`
    without clicks. Only the header of an image is read. Raises `UnknownColumns` if the user must name a
    table's columns. Raises `InputError` if the file cannot be read; the message contains file, line and
    field.
    """
    source = open_source(file)
    path = source.path
    if kind not in (None, *KINDS[:4]):
        raise InputError(f"{plain(kind)} is not a kind of table; expected one of {', '.join(KINDS[:4])}")
    refuse_special(path)
    if kind == "scores" or (kind is None and path.suffix.casefold() == ".json"):
        return read_scores(source, mapping, scales)
    if kind == "image" or (kind is None and source.is_image()):
        return source.image().file
    table = source.table(watch)
    if kind == "truth":
        return read_truth_points(table, mapping, scales)
    if kind is None and (are_detections(table) or are_scores(table) or is_named_truth(path)):
        annotator = None
    return _read_marks(table, kind, mapping, watch, scales, annotator)


def _read_marks(
    table: Table, kind: str | None, mapping: Mapping[str, str] | None, watch: Watch, scales: ImageScales,
    annotator: str | None,
) -> ClickTable | PointTable:  # fmt: skip
    from raterscope.app.formats import zooniverse
    from raterscope.app.formats.points import tables
    from raterscope.app.formats.points.collector import collect_points

    if zooniverse.is_export(table) and not set(mapping or ()) & set(table.header):
        return collect_points(table.path, zooniverse.ZooniverseDocument(table), watch).clicks
    try:
        return tables.read_clicks(table, mapping, watch, scales, annotator)
    except UnknownColumns as unknown:
        if mapping is None and {"x", "y"} <= set(unknown.missing) and find_columns(table, tables.SIZES):
            return tables.read_image_sizes(table)
        if kind is None and unknown.missing == ("annotator",):
            if mapping is None and are_scores(table) and not is_named_truth(table.path):
                return read_score_table(table, None, scales)
            if _is_truth(table, unknown):
                return read_truth_points(table, mapping, scales)
        raise


def _is_truth(table: Table, unknown: UnknownColumns) -> bool:
    """Return whether points without an annotator are ground truth, rather than clicks with an unknown header.

    They are ground truth if the file's name contains a word for it, if the file contains detections, or if no
    column of text could name annotators.
    """
    if are_detections(table) or is_named_truth(table.path):
        return True
    unassigned = [name for name in table.header if name not in unknown.guess]
    return all(
        all(holds_number(cell.strip() or "0") for cell in table.column(name)[:1000]) for name in unassigned
    )


def is_named_truth(path: Path) -> bool:
    """Return whether a file's name contains a word for ground truth."""
    words = "".join(letter if letter.isalnum() else " " for letter in path.stem.casefold()).split()
    return any(word in _TRUTH_WORDS for word in words)
