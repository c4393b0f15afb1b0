"""labelme: points on one image in JSON."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath
from typing import Any

from raterscope.app.errors import InputError
from raterscope.app.formats.points.gathering import Gathering, PointFile, places_of, size_of
from raterscope.app.formats.strangers import entries, text_of

__all__ = ["kinds_in", "read_labelme_points"]

_POINTS = ("point", "points")
_AREAS = ("polygon", "mask", "circle")


def kinds_in(content: Any) -> set[str]:
    """Tell what is marked on the image: points, areas, anything else."""
    return {_kind(shape) for shape in entries(content["shapes"])}


def read_labelme_points(path: Path, content: Any) -> PointFile:
    """Read points; a file without shapes is of somebody who looked and marked nothing.

    Raises
    ------
    InputError
        For a point that cannot be read.
    """
    gathering = Gathering(path)
    name = text_of(PureWindowsPath(text_of(content.get("imagePath"))).name) or None
    gathering.picture(name, size_of(content.get("imageWidth"), content.get("imageHeight")))
    gathering.look(None, name)
    for at, shape in enumerate(content["shapes"]):
        if not isinstance(shape, dict) or _kind(shape) != "points":
            gathering.left_out["other shapes"] += 1
            continue
        try:
            places = places_of(shape.get("points"))
        except ValueError as error:
            raise InputError(f"cannot be read: it has {error}", file=path, field=f"shapes[{at}]") from None
        gathering.add(None, name, places)
    return gathering.file("points")


def _kind(shape: dict[str, Any]) -> str:
    kind = shape.get("shape_type") or "polygon"
    return "points" if kind in _POINTS else "areas" if kind in _AREAS else "others"
