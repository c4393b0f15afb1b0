"""Readers of points on images. `read_points` detects the format and reads the file."""

from __future__ import annotations

from typing import Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.points.collector import UNKNOWN, PointFile, collect_points
from raterscope.app.formats.points.tables import (
    holds_bare_points,
    is_points_layer,
    read_bare_points,
    read_points_layer,
)
from raterscope.app.formats.sources import File, is_of_plugin, may_hold_annotations, open_source
from raterscope.app.formats.workbooks import WORKBOOKS

__all__ = ["UNKNOWN", "PointFile", "has_points", "read_points"]

_TABLES = (".csv", ".tsv", ".txt", *WORKBOOKS)


def has_points(file: File) -> Literal["alone", "beside", "nothing"] | None:
    """Find out whether a file holds points "alone" or "beside" areas, or "nothing" though it could.

    A table is judged by its header, a JSON or XML file by all of it. The result is None for any other file,
    and for one that cannot be read.
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
            "holds no readable points; expected a table, GeoJSON of QuPath, keypoints of COCO or"
            " Label Studio, or points of CVAT or labelme",
            file=path,
        )
    return collect_points(path, document, watch)
