"""COCO: the keypoints of the objects in images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.coco import annotator_of, objects_on
from raterscope.app.formats.points.gathering import Gathering, PointFile, is_detection, places_of, size_of
from raterscope.app.formats.strangers import entries, is_number, text_of

__all__ = ["kinds_in", "read_keypoints"]

Image = tuple[str, tuple[float, float] | None]


def kinds_in(content: Any) -> set[str]:
    """Tell what objects of a file are marked by: points, areas, anything else."""
    kinds = set()
    for one in entries(content["annotations"]):
        keypoints = one.get("keypoints")
        found = {"points"} if isinstance(keypoints, list) and any(keypoints[2::3]) else set()
        found |= {"areas"} if one.get("segmentation") else set()
        kinds |= found or {"others"}
    return kinds


def read_keypoints(path: Path, content: Any, watch: Watch = silent) -> PointFile:
    """Read the keypoints that are labelled, seen or not; each is a point.

    The annotator is what an object's attributes call so. One who is alone in the file, or is not told,
    looked at all of its images; of several it is known only where they marked.

    Raises
    ------
    InputError
        For keypoints that cannot be read, an image that is not listed, and a file without keypoints.
    """
    images = _images(path, content["images"])
    gathering = Gathering(path)
    for name, size in images.values():
        gathering.picture(name, size)
    people: dict[str | None, None] = {}
    for field, one, (image, _) in objects_on(path, content["annotations"], images, watch):
        if not one.get("keypoints"):
            gathering.left_out["objects without keypoints"] += 1
            continue
        try:
            places = _labelled(one["keypoints"])
        except ValueError as error:
            raise InputError(
                f"cannot be read: it has {error}", file=path, field=f"{field}.keypoints"
            ) from None
        told = one.get("attributes")
        gathering.detections |= isinstance(told, dict) and is_detection(told)
        who = annotator_of(one)
        people[who] = None
        gathering.add(who, image, places)
    if len(people) == 1 or not content["annotations"]:
        (alone,) = people or {None: None}
        for name, _ in images.values():
            gathering.look(alone, name)
    return gathering.file("keypoints of objects")


def _labelled(keypoints: Any) -> FloatArray:
    """Give the places of x, y, v, x, y, v, ... where v is not 0."""
    if not isinstance(keypoints, list) or len(keypoints) % 3 or not all(map(is_number, keypoints)):
        raise ValueError("no triples of numbers, x, y and visibility")
    triples = np.array(keypoints, dtype=np.float64).reshape(-1, 3)
    return places_of(triples[triples[:, 2] != 0, :2].tolist())


def _images(path: Path, listed: list[Any]) -> dict[int | str, Image]:
    found: dict[int | str, Image] = {}
    for at, image in enumerate(listed):
        if not isinstance(image, dict) or type(image.get("id")) not in (int, str):
            raise InputError("has no number", file=path, field=f"images[{at}]")
        name = text_of(image.get("file_name")) or f"image {plain(image['id'], 40)}"
        found[image["id"]] = (name, size_of(image.get("width"), image.get("height")))
    return found
