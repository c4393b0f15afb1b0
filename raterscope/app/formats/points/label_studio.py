"""Label Studio: keypoints in JSON, several annotators a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.label_studio import annotations_of, item_of
from raterscope.app.formats.points.gathering import Gathering, PointFile, places_of, size_of
from raterscope.app.formats.strangers import entries

__all__ = ["kinds_in", "read_label_studio_points"]

_POINTS = ("keypointlabels", "keypoint")
_AREAS = ("brush", "polygon", "ellipse")

Size = tuple[float, float]


def kinds_in(content: Any) -> set[str]:
    """Tell what is marked in tasks: points, areas, anything else."""
    kinds = set()
    for task in entries(content):
        for made in (task.get("annotations"), task.get("completions"), task.get("predictions")):
            for one in entries(made):
                kinds |= {_kind(region) for region in entries(one.get("result"))}
    return kinds


def read_label_studio_points(path: Path, content: Any, watch: Watch = silent) -> PointFile:
    """Read keypoints, which are in percent of the image, as pixels.

    Cancelled annotations are left out; one without keypoints is of somebody who looked. What a model
    predicted is by an annotator of the model's name; what is marked as ground truth counts as that.

    Raises
    ------
    InputError
        For a keypoint that cannot be read or does not tell the size of its image, and a file without tasks.
    """
    gathering = Gathering(path)
    for at, task in enumerate(content):
        watch(at / len(content), "reading tasks")
        if not isinstance(task, dict):
            raise InputError("is no task", file=path, field=f"task {at + 1}")
        item = item_of(task, at)
        for one in annotations_of(task, gathering.left_out):
            size = next((found for region in entries(one.regions) if (found := _size(region))), None)
            gathering.picture(item, size)
            pieces = [np.empty((0, 2))]
            for number, region in enumerate(one.regions):
                if not isinstance(region, dict) or _kind(region) != "points":
                    gathering.left_out["marks that are no keypoints"] += 1
                    continue
                field = f"task {at + 1}, keypoint {number + 1}"
                try:
                    pieces.append(_place(region, size))
                except ValueError as error:
                    raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None
            places = np.concatenate(pieces)
            if one.truth:
                gathering.add_truth(item, places)
            else:
                gathering.add(one.annotator, item, places)
    return gathering.file("keypoints on images")


def _kind(region: dict[str, Any]) -> str:
    kind = str(region.get("type", ""))
    if kind in _POINTS:
        return "points"
    return "areas" if kind.removesuffix("labels") in _AREAS else "others"


def _place(region: dict[str, Any], size: Size | None) -> FloatArray:
    own, value = _size(region) or size, region.get("value")
    if own is None:
        raise ValueError("no size of its image, original_width and original_height")
    if not isinstance(value, dict):
        raise ValueError("no value with x and y")
    return np.asarray(places_of([[value.get("x"), value.get("y")]]) / 100.0 * own)


def _size(region: dict[str, Any]) -> Size | None:
    return size_of(region.get("original_width"), region.get("original_height"))
