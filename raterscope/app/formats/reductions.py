"""Export as reductions of Zooniverse, the table that panoptes_aggregation writes: a row for each subject.

References
----------
Zooniverse, "panoptes_aggregation", https://aggregation-caesar.zooniverse.org/docs/. Its readers take the
columns subject_id, workflow_id, task, reducer and data.KEY; a list is a literal of Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import write_table
from raterscope.app.formats.points.writing import ImageDetections

_FRAME = re.compile(r" frame (\d+)$")
_TASK = "T0"


def write_reductions(path: Path, reducer: str, reductions: Mapping[str, Mapping[str, object]]) -> Path:
    """Write the data of each subject; a key that a subject lacks is empty.

    Raises `InputError` without a subject, or if the file cannot be written.
    """
    if not reductions:
        raise InputError("holds no subjects of Zooniverse; reductions need clicks or answers of its export")
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
    """Return the clusters of each subject as the reducers of points name them; each class is a tool.

    `subjects`: by name of an image. Frames of a subject are images of their own.
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
