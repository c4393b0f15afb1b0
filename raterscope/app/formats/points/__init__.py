"""Readers of points on images, one module a format. `read_points` detects the format and reads the file."""

from __future__ import annotations

from typing import Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.points.collector import UNKNOWN, PointFile, take_points
from raterscope.app.formats.sources import SUFFIXES, File, Source, open_source

__all__ = ["UNKNOWN", "PointFile", "has_points", "read_points"]

_TABLES = (".csv", ".tsv", ".txt")


def has_points(file: File) -> Literal["alone", "beside", "nothing"] | None:
    """Find out whether a file holds points, by all of a JSON or XML file, or by a table's header.

    Parameters
    ----------
    file : Path or Source

    Returns
    -------
    "alone", "beside", "nothing" or None
        Beside: there are areas in the file too. Nothing: it is of a format that may hold points, and nothing
        was marked in it. None also for what cannot be read.
    """
    source = open_source(file)
    suffix = source.path.suffix.casefold()
    try:
        if suffix in _TABLES and source.path.is_file():  # a pipe can be read but once
            return "alone" if _is_layer(source) else None
        if suffix not in SUFFIXES or not source.path.is_file():
            return None
        contents = source.contents("points")
    except InputError:
        return None
    if contents is None:
        return None
    if "points" in contents:
        return "beside" if "areas" in contents else "alone"
    return None if contents else "nothing"


def read_points(file: File, watch: Watch = silent) -> PointFile:
    """Read the points of a file, whose format is detected from its content.

    Parameters
    ----------
    file : Path or Source
    watch : Watch

    Raises
    ------
    InputError
        When the file cannot be read, in a sentence that says where and why.
    """
    source = open_source(file)
    path = source.path
    if path.suffix.casefold() in _TABLES:
        from raterscope.app.formats.points.tables import read_points_layer

        return read_points_layer(source.table(watch, may_be_empty=True))
    document = source.document()
    if document is None or "points" not in document.expected:
        raise InputError(
            "holds no points that Raterscope reads; expected a table, GeoJSON of QuPath, keypoints of COCO or"
            " Label Studio, or points of CVAT or labelme",
            file=path,
        )
    return take_points(path, document, watch)


def _is_layer(source: Source) -> bool:
    from raterscope.app.formats.points.tables import is_points_layer

    return is_points_layer(source.head().table.header)
