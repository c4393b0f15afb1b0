"""Readers of points on images. `read_points` detects the format and reads the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.coco import CocoDocument
from raterscope.app.formats.points.collector import UNKNOWN, PointFile, collect_points
from raterscope.app.formats.points.positions import ImageScales, unknown_scales
from raterscope.app.formats.points.tables import (
    ScoresDocument,
    holds_bare_points,
    is_points_layer,
    read_bare_points,
    read_coco_scores,
    read_points_layer,
    read_score_table,
)
from raterscope.app.formats.records import PointTable
from raterscope.app.formats.sources import File, Source, is_of_plugin, may_hold_annotations, open_source
from raterscope.app.formats.untrusted import json_content, read_bytes
from raterscope.app.formats.workbooks import WORKBOOKS

__all__ = ["UNKNOWN", "PointFile", "has_points", "holds_scores", "read_points", "read_scores"]

_TABLES = (".csv", ".tsv", ".txt", *WORKBOOKS)


def has_points(file: File) -> Literal["alone", "beside", "nothing"] | None:
    """Detect whether a file contains points "alone" or "beside" areas, or could but has "nothing".

    A table is judged by its header, a JSON or XML file completely. The result is None for any other file, and
    for one that cannot be read.
    """
    source = open_source(file)
    suffix = source.path.suffix.casefold()
    try:
        if suffix in _TABLES and source.path.is_file():  # a pipe can be read only once
            table = source.head().table
            return "alone" if is_points_layer(table.header) or holds_bare_points(table) else None
        if not may_hold_annotations(source.path) or not source.path.is_file():
            return None
        contents = source.contents("points")
    except InputError:
        return "alone" if is_of_plugin(source.path) else None  # no other reader knows what is wrong
    if contents is None:
        return None
    if "points" in contents:
        return "beside" if "areas" in contents else "alone"
    return None if contents else "nothing"


def read_points(file: File, watch: Watch = silent) -> PointFile:
    """Read the points of a file, whose format is detected from its content.

    Raises `InputError` if the file cannot be read; the message contains file, line and field.
    """
    source = open_source(file)
    path = source.path
    if path.suffix.casefold() in _TABLES:
        table = source.table(watch, may_be_empty=True)
        return read_points_layer(table) if is_points_layer(table.header) else read_bare_points(table)
    document = source.document()
    if document is None or "points" not in document.expected:
        raise InputError(
            "contains no readable points; expected a table, GeoJSON of QuPath, keypoints of COCO or"
            " Label Studio, or points of CVAT or labelme",
            file=path,
        )
    return collect_points(path, document, watch)


def holds_scores(source: Source) -> bool:
    """Return whether a file is COCO JSON with scores."""
    if source.path.suffix.casefold() != ".json":
        return False
    try:
        return isinstance(source.document(), ScoresDocument)
    except InputError:
        return False


def read_scores(
    file: File, mapping: Mapping[str, str] | None = None, scales: ImageScales = unknown_scales
) -> PointTable:
    """Read the detections of a program.

    Raises `UnknownColumns` if the header does not name the columns. Raises `InputError` for the first
    detection that cannot be read; a file is read completely or not at all.

    `file`: a table, or COCO JSON. `mapping`: fields of a table's columns, named by hand: image, x, y, score,
    width, height, ignore.
    """
    source = open_source(file)
    path = source.path
    if path.suffix.casefold() != ".json":
        return read_score_table(source.table(), mapping, scales)
    document = source.document()
    if isinstance(document, ScoresDocument):
        return read_coco_scores(path, document.content)
    content = document.detections() if isinstance(document, CocoDocument) else None
    return read_coco_scores(path, json_content(path, read_bytes(path)) if content is None else content)
