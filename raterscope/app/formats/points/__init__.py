"""Readers of points on images, one module a format. `read_points` tells what a file is and reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.points.gathering import UNTOLD, PointFile

__all__ = ["MARKS", "UNTOLD", "PointFile", "read_points", "tells"]

MARKS = (".json", ".geojson", ".xml")
"""How the names of files end that may hold points, but for the tables of napari."""

_TABLES = (".csv", ".tsv", ".txt")


def tells(path: Path | str) -> Literal["alone", "beside", "nothing"] | None:
    """Tell whether a file holds points, by all of a JSON or XML file, or by a table's header.

    Returns
    -------
    "alone", "beside", "nothing" or None
        Beside: outlines or masks stand in the file too. Nothing: it is of a format that may hold points, and
        nobody marked anything. None also for what cannot be read.
    """
    path = Path(path)
    try:
        if not path.is_file():  # a pipe can be read but once
            return None
        if path.suffix.casefold() in _TABLES:
            return "alone" if _is_layer(path) else None
        kind, content = _opened(path) if path.suffix.casefold() in MARKS else ("", None)
    except InputError:
        return None
    kinds = _kinds_in(kind, content)
    if "points" in kinds:
        return "beside" if "areas" in kinds else "alone"
    return "nothing" if kind and not kinds else None


def read_points(path: Path | str, watch: Watch = silent) -> PointFile:
    """Read the points of a file, having looked what it is.

    Parameters
    ----------
    path : Path
    watch : Watch

    Raises
    ------
    InputError
        When the file cannot be read, in a sentence that says where and why.
    """
    from raterscope.app.formats.points import coco, cvat, geojson, label_studio, labelme, napari
    from raterscope.app.formats.tables import read_table

    path = Path(path)
    if path.suffix.casefold() in _TABLES:
        return napari.read_points_layer(read_table(path, watch, may_be_empty=True))
    kind, content = _opened(path)
    if kind == "labelme":
        return labelme.read_labelme_points(path, content)
    readers = {
        "geojson": geojson.read_geojson, "coco": coco.read_keypoints, "cvat": cvat.read_cvat_points,
        "label studio": label_studio.read_label_studio_points,
    }  # fmt: skip
    if kind in readers:
        return readers[kind](path, content, watch)
    raise InputError(
        "holds no points that Raterscope reads; expected a table, GeoJSON of QuPath, keypoints of COCO or"
        " Label Studio, or points of CVAT or labelme",
        file=path,
    )


def _is_layer(path: Path) -> bool:
    from raterscope.app.formats.labels.columns import head_of
    from raterscope.app.formats.points.napari import is_points_layer

    return is_points_layer(head_of(path).table.header)


def _opened(path: Path) -> tuple[str, Any]:
    """Tell the format of a JSON or XML file; with what is in it."""
    from raterscope.app.formats.masks import coco, label_studio, labelme
    from raterscope.app.formats.points.geojson import is_geojson
    from raterscope.app.formats.strangers import read_json, read_xml

    if path.suffix.casefold() == ".xml":
        root = read_xml(path)
        return "cvat" if root.tag == "annotations" else "", root
    content = read_json(path)
    tests = {
        "geojson": is_geojson, "coco": coco.is_coco, "label studio": label_studio.is_label_studio,
        "labelme": labelme.is_labelme,
    }  # fmt: skip
    return next((name for name, test in tests.items() if test(content)), ""), content


def _kinds_in(kind: str, content: Any) -> set[str]:
    from raterscope.app.formats.points import coco, cvat, label_studio, labelme

    tests = {
        "coco": coco.kinds_in, "cvat": cvat.kinds_in, "label studio": label_studio.kinds_in,
        "labelme": labelme.kinds_in,
    }  # fmt: skip
    return tests[kind](content) if kind in tests else {"points"} if kind == "geojson" else set()
