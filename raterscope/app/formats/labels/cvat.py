"""CVAT for images 1.1: the tags of images in XML, one file a job, a task or a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.labels.gathering import Gathering, joined
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.masks.cvat import assignees
from raterscope.app.formats.strangers import text_of

__all__ = ["has_tags", "read_cvat_tags"]


def has_tags(root: Any, *, alone: bool) -> bool:
    """Tell whether images have tags; `alone` if they have no shapes."""
    kinds = {shape.tag for image in root.iterfind("image") for shape in image}
    return kinds == {"tag"} if alone else "tag" in kinds


def read_cvat_tags(
    path: Path, root: Any, annotator: str, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read the tags of images; several on one image are one label.

    The annotator is the assignee of the job or task, and in a project's file that of the image's task.

    Raises
    ------
    InputError
        For a file without tags.
    """
    whole, tasks = assignees(root)
    gathering = Gathering(path)
    images = root.findall("image")
    for at, image in enumerate(images):
        watch(at / len(images), "reading images")
        name = text_of(image.get("name", ""))
        who = tasks.get(image.get("task_id", ""), whole) or annotator
        tags = [text_of(tag.get("label", "")) for tag in image.iterfind("tag")]
        gathering.left_out["shapes"] += sum(shape.tag != "tag" for shape in image)
        gathering.add("", who, name or f"image {at + 1}", joined(tags), picture=name)
    return gathering.tables()
