"""Detections for other programs: GeoJSON that QuPath opens, keypoints of COCO, layers of points of napari."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raterscope.app.formats.output_files import replacing, write_table
from raterscope.app.formats.points.collector import STATES
from raterscope.app.formats.points.tables import CENTRE

__all__ = ["Detection", "OnImage", "write_coco", "write_geojson", "write_layer"]

_NAME = "Detection"
_COLOUR = (0, 158, 115)
_SPREAD = 2.0
"""Standard deviations of the clicks about a detection, from its place to the edges of its box."""

_BARE_SIDE = 1.0
"""Pixels: the side of the box of a detection of which no clicks tell how wide it is."""

_CERTAIN = STATES[:2]


@dataclass(frozen=True)
class Detection:
    """A detection, as the expert has it where the expert decided.

    Attributes
    ----------
    x, y : float
        Pixels, from the corner of the first.
    state : one of STATES
        Undecided where nobody looked.
    cluster : int or None
        Its number; None for a spot that the expert added.
    votes : int or None
        How many annotators marked it.
    posterior : float or None
        That it is there, as the run has it.
    spread : (across, down), optional
        Standard deviations of its clicks, pixels.
    """

    x: float
    y: float
    state: str
    cluster: int | None = None
    votes: int | None = None
    posterior: float | None = None
    spread: tuple[float, float] | None = None

    @property
    def score(self) -> float | None:
        """How sure it is: wholly, where the expert says so."""
        return 1.0 if self.state in _CERTAIN else self.posterior


@dataclass(frozen=True)
class OnImage:
    """The detections on an image of some width and height in pixels, of so many micrometres where known.

    `run` names the run that they are of.
    """

    name: str
    width: float
    height: float
    detections: Sequence[Detection]
    pixel_size: float | None = None
    run: str = ""


def write_geojson(path: Path, image: OnImage) -> Path:
    """Write the detections of an image as QuPath's point annotations, in pixels.

    Where the size of a pixel is known, places in micrometres are among the measurements. The member "image"
    tells which image it is, for which the format has no place; QuPath passes over it.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    size = math.nan if image.pixel_size is None else image.pixel_size
    features = [_feature(image.name, at, one, size) for at, one in enumerate(image.detections)]
    told = {"name": image.name, "width": _whole(image.width), "height": _whole(image.height)}
    told |= _told({"micrometresPerPixel": size})
    if image.run:
        told["run"] = image.run
    # QuPath reads by the system's encoding: letters beyond ASCII are escaped.
    return _write(path, {"type": "FeatureCollection", "image": told, "features": features})


def write_coco(path: Path, images: Sequence[OnImage]) -> Path:
    """Write the detections of images as objects of one category with one keypoint each.

    The box reaches two standard deviations of the clicks to each side. The score is the posterior, and 1
    where the expert said so.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    pictures = [
        {"id": number, "file_name": one.name, "width": _whole(one.width), "height": _whole(one.height)}
        for number, one in enumerate(images, start=1)
    ]
    found = [(number, one) for number, image in enumerate(images, start=1) for one in image.detections]
    category = {"id": 1, "name": _NAME, "supercategory": "", "keypoints": ["centre"], "skeleton": []}
    content = {
        "info": {"description": _described(images)},
        "licenses": [],
        "images": pictures,
        "categories": [category],
        "annotations": [_object(at, image, one) for at, (image, one) in enumerate(found, start=1)],
    }
    return _write(path, content)


def _described(images: Sequence[OnImage]) -> str:
    runs = "; ".join(dict.fromkeys(one.run for one in images if one.run))
    return f"Detections by {runs or 'Raterscope'}"


def write_layer(path: Path, image: OnImage) -> Path:
    """Write the detections of an image as a layer of points in napari: row, column, and properties.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    columns = ("index", "axis-0", "axis-1", "image", "cluster", "votes", "posterior", "state")
    rows = (
        (at, one.y - CENTRE, one.x - CENTRE, image.name, one.cluster, one.votes, one.posterior, one.state)
        for at, one in enumerate(image.detections)
    )
    return write_table(path, columns, rows)


def _feature(image: str, number: int, one: Detection, size: float) -> dict[str, Any]:
    measured = {"Cluster": one.cluster, "Votes": one.votes, "Posterior": one.posterior}
    measured |= {"X µm": one.x * size, "Y µm": one.y * size}
    return {
        "type": "Feature",
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{image}#{number}")),
        "geometry": {"type": "Point", "coordinates": [one.x, one.y]},
        "properties": {
            "objectType": "annotation",
            "classification": {"name": _NAME, "color": _COLOUR},
            "measurements": _told(measured),
            "metadata": {"state": one.state},
        },
    }


def _object(number: int, image: int, one: Detection) -> dict[str, Any]:
    across, down = one.spread or (0.0, 0.0)
    width, height = (max(2 * _SPREAD * side, _BARE_SIDE) for side in (across, down))
    return {
        "id": number,
        "image_id": image,
        "category_id": 1,
        "iscrowd": 0,
        "keypoints": [one.x, one.y, 2],
        "num_keypoints": 1,
        "bbox": [one.x - width / 2, one.y - height / 2, width, height],
        "area": width * height,
        **_told({"score": one.score}),
        "attributes": {
            **_told({"cluster": one.cluster, "votes": one.votes, "posterior": one.posterior}),
            "state": one.state,
        },
    }


def _told(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}


def _whole(side: float) -> float:
    return int(side) if side == int(side) else side


def _write(path: Path, content: Any) -> Path:
    with replacing(path) as file:
        json.dump(content, file, allow_nan=False)
        file.write("\n")
    return path
