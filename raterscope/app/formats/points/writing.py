"""Export of detections: GeoJSON, keypoints of COCO, points of CVAT and napari, Zooniverse reductions.

Reductions are the table that panoptes_aggregation writes: a row for each subject, with points or answers.

References
----------
Zooniverse, "panoptes_aggregation", https://aggregation-caesar.zooniverse.org/docs/. Its readers take the
columns subject_id, workflow_id, task, reducer and data.KEY; a list is a literal of Python.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raterscope.app.errors import InputError
from raterscope.app.formats.cvat import PROGRAM, CvatImage, CvatShape, write_cvat_file
from raterscope.app.formats.output_files import open_text_output, write_table
from raterscope.app.formats.points.collector import STATES
from raterscope.app.formats.points.tables import CENTRE

_NAME = "Detection"
_COLOUR = (0, 158, 115)
_SPREAD = 2.0
"""Distance from a detection to the edges of its box, in standard deviations of its clicks."""

_BARE_SIDE = 1.0
"""Minimum side of the box of a detection, pixels."""

_CERTAIN = STATES[:2]


@dataclass(frozen=True)
class Detection:
    """A detection after the expert's decision, if there is one."""

    # x, y: pixels, from the corner of the first pixel
    x: float
    y: float
    state: str  # one of STATES: undecided if there is no decision
    cluster: int | None = None  # its number; None for a spot that the expert added
    votes: int | None = None  # number of annotators who marked it
    posterior: float | None = None  # posterior probability of the detection in the run
    spread: tuple[float, float] | None = None  # (across, down): standard deviations of its clicks, pixels
    label: str = ""  # class; empty without classes
    shares: Mapping[str, float] = field(default_factory=dict)  # by class: probability of each class

    @property
    def score(self) -> float | None:
        """Score: 1 if the expert accepted or added the detection, otherwise the posterior."""
        return 1.0 if self.state in _CERTAIN else self.posterior


@dataclass(frozen=True)
class ImageDetections:
    """Detections on one image."""

    name: str
    # width, height: pixels
    width: float
    height: float
    detections: Sequence[Detection]
    pixel_size: float | None = None  # micrometres, if known
    run: str = ""  # name of the run


def write_geojson(path: Path, image: ImageDetections) -> Path:
    """Write the detections of an image as QuPath's point annotations, in pixels.

    If the size of a pixel is known, positions in micrometres are among the measurements. The additional
    member "image" names the image; QuPath ignores it. Raises `InputError` if it cannot be written.
    """
    size = math.nan if image.pixel_size is None else image.pixel_size
    features = [_feature(image.name, at, detection, size) for at, detection in enumerate(image.detections)]
    image_entry = {
        "name": image.name,
        "width": _integer_if_exact(image.width),
        "height": _integer_if_exact(image.height),
    }
    image_entry |= _finite_values({"micrometresPerPixel": size})
    if image.run:
        image_entry["run"] = image.run
    # QuPath reads in the system's encoding: non-ASCII characters are escaped.
    return _write(path, {"type": "FeatureCollection", "image": image_entry, "features": features})


def write_coco(path: Path, images: Sequence[ImageDetections], classes: Sequence[str] = ()) -> Path:
    """Write the detections of images as objects with one keypoint each, of a category for each class.

    The box extends two standard deviations of the clicks to each side, within the image. The score is the
    posterior, or 1 if the expert accepted or added the detection. Raises `InputError` if it cannot be
    written.

    `classes`: the categories in order; those of the detections if empty.
    """
    pictures = [
        {
            "id": number,
            "file_name": image.name,
            "width": _integer_if_exact(image.width),
            "height": _integer_if_exact(image.height),
        }
        for number, image in enumerate(images, start=1)
    ]
    numbered = [
        (number, image, detection)
        for number, image in enumerate(images, start=1)
        for detection in image.detections
    ]
    found = {detection.label or _NAME for *_, detection in numbered}
    names = classes or sorted(found, key=str.casefold) or [_NAME]
    category = {name: number for number, name in enumerate(names, start=1)}
    content = {
        "info": {"description": f"Detections by {_runs_of(images) or PROGRAM}"},
        "licenses": [],
        "images": pictures,
        "categories": [
            {"id": number, "name": name, "supercategory": "", "keypoints": ["centre"], "skeleton": []}
            for name, number in category.items()
        ],
        "annotations": [
            _object(at, number, detection, category.get(detection.label or _NAME, 1), image)
            for at, (number, image, detection) in enumerate(numbered, start=1)
        ],
    }
    return _write(path, content)


_CVAT_ATTRIBUTES = ("state", "cluster", "votes", "posterior")


def write_cvat(path: Path, images: Sequence[ImageDetections]) -> Path:
    """Write the detections of images as points of CVAT for images 1.1, with a label for each class.

    State, cluster, votes and posterior are attributes of the labels, as text; missing values are empty. The
    source of accepted and added detections is manual, of all others auto. Raises `InputError` if it cannot be
    written.
    """
    names = {detection.label or _NAME for image in images for detection in image.detections} or {_NAME}
    marked = [
        CvatImage(
            image.name,
            (image.width, image.height),
            [
                CvatShape(
                    "points",
                    detection.label or _NAME,
                    detection.state in _CERTAIN,
                    {"points": f"{detection.x:.10g},{detection.y:.10g}"},
                    {name: getattr(detection, name) for name in _CVAT_ATTRIBUTES},
                )
                for detection in image.detections
            ],
        )
        for image in images
    ]
    title = _runs_of(images) or PROGRAM
    return write_cvat_file(path, marked, dict.fromkeys(names, "points"), title, _CVAT_ATTRIBUTES)


def _runs_of(images: Sequence[ImageDetections]) -> str:
    return "; ".join(dict.fromkeys(image.run for image in images if image.run))


def write_layer(path: Path, image: ImageDetections) -> Path:
    """Write the detections of an image as a layer of points in napari: row, column, and properties.

    Raises `InputError` if it cannot be written.
    """
    columns = ("index", "axis-0", "axis-1", "image", "cluster", "votes", "posterior", "state")
    named = any(detection.label for detection in image.detections)
    rows = (
        (
            at,
            detection.y - CENTRE,
            detection.x - CENTRE,
            image.name,
            detection.cluster,
            detection.votes,
            detection.posterior,
            detection.state,
            *((detection.label,) if named else ()),
        )
        for at, detection in enumerate(image.detections)
    )
    return write_table(path, (*columns, "class") if named else columns, rows)


def _feature(image: str, number: int, detection: Detection, size: float) -> dict[str, Any]:
    measured = {"Cluster": detection.cluster, "Votes": detection.votes, "Posterior": detection.posterior}
    measured |= {f"P({name})": share for name, share in detection.shares.items()}
    measured |= {"X µm": detection.x * size, "Y µm": detection.y * size}
    return {
        "type": "Feature",
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{image}#{number}")),
        "geometry": {"type": "Point", "coordinates": [detection.x, detection.y]},
        "properties": {
            "objectType": "annotation",
            "classification": {"name": _NAME, "color": _COLOUR}
            if not detection.label
            else {"name": detection.label},
            "measurements": _finite_values(measured),
            "metadata": {"state": detection.state},
        },
    }


def _object(
    number: int, image_id: int, detection: Detection, category: int, image: ImageDetections
) -> dict[str, Any]:
    left, top, width, height = box_within(detection, image)
    return {
        "id": number,
        "image_id": image_id,
        "category_id": category,
        "iscrowd": 0,
        "segmentation": [],
        "keypoints": [detection.x, detection.y, 2],
        "num_keypoints": 1,
        "bbox": [left, top, width, height],
        "area": width * height,
        **_finite_values({"score": detection.score}),
        "attributes": {
            **_finite_values(
                {"cluster": detection.cluster, "votes": detection.votes, "posterior": detection.posterior}
            ),
            "state": detection.state,
            **({"class_probabilities": dict(detection.shares)} if detection.shares else {}),
        },
    }


def box_within(detection: Detection, image: ImageDetections) -> tuple[float, float, float, float]:
    """Return left, top, width and height of a detection's box, two standard deviations to each side.

    It is cropped to the image; if it is completely outside, width or height is 0.
    """
    width, height = (max(2 * _SPREAD * side, _BARE_SIDE) for side in detection.spread or (0.0, 0.0))
    left, top = max(detection.x - width / 2, 0.0), max(detection.y - height / 2, 0.0)
    right, bottom = min(detection.x + width / 2, image.width), min(detection.y + height / 2, image.height)
    return left, top, max(right - left, 0.0), max(bottom - top, 0.0)


def _finite_values(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}


def _integer_if_exact(side: float) -> float:
    return int(side) if side == int(side) else side


def _write(path: Path, content: Any) -> Path:
    with open_text_output(path) as file:
        json.dump(content, file, allow_nan=False)
        file.write("\n")
    return path


_FRAME = re.compile(r" frame (\d+)$")
_TASK = "T0"


def write_reductions(path: Path, reducer: str, reductions: Mapping[str, Mapping[str, object]]) -> Path:
    """Write the data of each subject; a key that a subject lacks is empty.

    Raises `InputError` without a subject, or if the file cannot be written.
    """
    if not reductions:
        text = "has no Zooniverse subjects; reductions need clicks or answers from a Zooniverse export"
        raise InputError(f"the study {text}")
    keys = sorted({key for data in reductions.values() for key in data})
    rows = (
        (subject, "", _TASK, reducer, *(data.get(key) for key in keys))
        for subject, data in reductions.items()
    )
    columns = ("subject_id", "workflow_id", "task", "reducer", *(f"data.{key}" for key in keys))
    return write_table(path, columns, rows)


def reduce_detections(
    images: Sequence[ImageDetections], subjects: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    """Return the clusters of each subject with the names that reducers use; each class is a tool.

    `subjects`: by name of an image. Frames of a subject are separate images.
    """
    tools = sorted({detection.label for image in images for detection in image.detections} | {""})
    numbers = {name: at for at, name in enumerate(tools if tools == [""] else tools[1:])}
    reductions: dict[str, dict[str, object]] = {}
    for image in images:
        if image.name not in subjects:
            continue
        data = reductions.setdefault(subjects[image.name], {})
        frame = _FRAME.search(image.name)
        start = f"frame{int(frame[1]) - 1 if frame else 0}.{_TASK}_tool"
        for label, number in numbers.items():
            found = [detection for detection in image.detections if detection.label == label]
            if not found:
                continue
            columns = {
                "x": [detection.x for detection in found],
                "y": [detection.y for detection in found],
                "count": [detection.votes for detection in found],
                "var_x": [detection.spread and detection.spread[0] ** 2 for detection in found],
                "var_y": [detection.spread and detection.spread[1] ** 2 for detection in found],
                "probability": [detection.score for detection in found],
            }
            data |= {f"{start}{number}_clusters_{key}": str(values) for key, values in columns.items()}
    return reductions
