"""CVAT for images 1.1: points in XML, one file a job, a task or a project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.cvat import assignees
from raterscope.app.formats.points.gathering import Gathering, PointFile, places_of, size_of
from raterscope.app.formats.strangers import text_of

__all__ = ["kinds_in", "read_cvat_points"]

_AREAS = ("polygon", "mask", "ellipse")


def kinds_in(root: Any) -> set[str]:
    """Tell what is marked on images: points, areas, anything else."""
    tags = {shape.tag for image in root.iterfind("image") for shape in image}
    return {"points" if tag == "points" else "areas" if tag in _AREAS else "others" for tag in tags}


def read_cvat_points(path: Path, root: Any, watch: Watch = silent) -> PointFile:
    """Read the points of images; a shape of several points is as many.

    The annotator is the assignee of the job or task, and in a project's file that of the image's task; an
    image without a shape is one that the assignee looked at.

    Raises
    ------
    InputError
        For a shape that cannot be read, and a file without images.
    """
    whole, tasks = assignees(root)
    gathering = Gathering(path)
    gathering.left_out["tracks of a video"] += len(root.findall("track"))
    images = root.findall("image")
    for at, image in enumerate(images):
        watch(at / len(images), "reading images")
        name = text_of(image.get("name", "")) or f"image {at + 1}"
        gathering.picture(name, size_of(*(_number(image.get(side)) for side in ("width", "height"))))
        who = tasks.get(image.get("task_id", ""), whole)
        gathering.look(who, name)
        for shape in image:
            if shape.tag != "points":
                gathering.left_out["tags" if shape.tag == "tag" else "other shapes"] += 1
                continue
            try:
                places = places_of(list(_pairs(shape.get("points") or "")))
            except ValueError as error:
                raise InputError(
                    f"cannot be read: it has {error}", file=path, field=f"points on {name}"
                ) from None
            gathering.add(who, name, places)
    return gathering.file("points on images")


def _pairs(text: str) -> Iterator[list[float | None]]:
    for pair in text.split(";"):
        yield [_number(part) for part in pair.split(",")]


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
