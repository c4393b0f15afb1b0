"""CVAT for images 1.1: shapes and tags in XML, one file a job, a task or a project.

References
----------
CVAT.ai, "CVAT for images" (XML annotation format 1.1),
https://docs.cvat.ai/docs/manual/advanced/xml_format/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.annotations import (
    Annotation,
    AnnotationSet,
    Content,
    Document,
    Ellipse,
    Item,
    Kind,
    Points,
    Polygons,
    Rectangle,
    Remarks,
    RunLengths,
    Shape,
)
from raterscope.app.formats.cvat_writing import PROGRAM
from raterscope.app.formats.untrusted import text_of

TRACKS = "tracks of a video"

Number = TypeVar("Number", int, float)

_CONTENTS: Mapping[str, Content] = {
    "points": "points", "polygon": "areas", "mask": "areas", "ellipse": "areas", "tag": "labels",
}  # fmt: skip
_NOUNS = {"box": "boxes", "points": "points"}


class CvatDocument(Document):
    """A parsed file."""

    expected: ClassVar[Mapping[Kind, str]] = {
        "points": "points on images", "masks": "polygons, masks or ellipses on images",
        "labels": "tags of images",
    }  # fmt: skip

    def __init__(self, path: Path, root: Any) -> None:
        self._path, self._root = path, root
        self.run = text_of(root.findtext("meta/task/name") or "")

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are."""
        tags = {shape.tag for image in self._root.iterfind("image") for shape in image}
        return frozenset(_CONTENTS.get(tag, "marks") for tag in tags)

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the shapes and tags of each image.

        The annotator is the assignee of the job or task; in a project's file that of the image's task. On an
        image without a shape the assignee found nothing.
        """
        default, tasks = _assignees(self._root)
        remarks.left_out[TRACKS] += len(self._root.findall("track"))
        images = self._root.findall("image")
        for at, image in enumerate(images):
            watch(at / len(images), "reading images")
            name, number = text_of(image.get("name", "")), f"image {at + 1}"
            width, height = (_side(image.get(side)) for side in ("width", "height"))
            item = Item(name, number, width, height, f"image {name or number}")
            annotations = tuple(_annotation(shape, item.title) for shape in image)
            annotator = tasks.get(image.get("task_id", ""), default)
            yield AnnotationSet(
                item, annotator, annotations, is_complete=True, question="",
                is_truth=self.run.startswith(PROGRAM) and annotator is None and kind == "labels",
            )  # fmt: skip


def _assignees(root: Any) -> tuple[str | None, dict[str, str]]:
    """Return the assignees of the file and of each task of a project."""
    meta = root.find("meta")
    if meta is None:
        return None, {}
    default = None
    for kind in ("job", "task", "project"):
        if (element := meta.find(kind)) is not None:
            default = default or _assignee(element)
    tasks = {}
    for task in meta.iterfind("project/tasks/task"):
        number, assignee = text_of(task.findtext("id") or ""), _assignee(task)
        if number and assignee:
            tasks[number] = assignee
    return default, tasks


def _assignee(element: Any) -> str | None:
    assignee = element.find("assignee")
    if assignee is None:
        return None
    return text_of(assignee.findtext("username") or assignee.text or "") or None


def _annotation(shape: Any, item: str) -> Annotation:
    field, label = f"{shape.tag} on {item}", text_of(shape.get("label", ""))
    if shape.tag == "tag":
        return Annotation("tags", field, answers=(label,))
    noun = _NOUNS.get(shape.tag, f"{text_of(shape.tag)}s")
    drawn = _shape(shape)
    attributes = {
        text_of(attribute.get("name", "")): text_of(attribute.text or "")
        for attribute in shape.iterfind("attribute")
    }
    return Annotation(noun, field, () if drawn is None else (drawn,), label, attributes=attributes)


def _shape(shape: Any) -> Shape | None:
    if shape.tag == "points":
        return Points(_pairs(shape))
    if shape.tag == "polygon":
        return Polygons([_pairs(shape)])
    if shape.tag == "mask":
        counts = [_parse_number(count, int) for count in (shape.get("rle") or "").split(",")]
        rows, columns, top, left = (
            _parse_number(shape.get(key), int) for key in ("height", "width", "top", "left")
        )
        return RunLengths(counts, rows, columns, top=top, left=left)
    rotation = _parse_number(shape.get("rotation") or "0", float)
    if shape.tag == "ellipse":
        return Ellipse(_numbers(shape, "cx", "cy", "rx", "ry"), rotation)
    if shape.tag == "box":
        return Rectangle(_numbers(shape, "xtl", "ytl", "xbr", "ybr"), rotation)
    return None


def _side(text: str | None) -> float | None:
    integer = _parse_number(text, int)
    return _parse_number(text, float) if integer is None else integer


def _numbers(shape: Any, *keys: str) -> dict[str, float | None]:
    return {key: _parse_number(shape.get(key), float) for key in keys}


def _pairs(shape: Any) -> list[list[float | None]]:
    pairs = (shape.get("points") or "").split(";")
    return [[_parse_number(part, float) for part in pair.split(",")] for pair in pairs]


def _parse_number(text: str | None, kind: Callable[[str], Number]) -> Number | None:
    try:
        return kind(text or "")
    except ValueError:
        return None
