"""CVAT for images 1.1: shapes and tags in XML, one file for a job, task or project.

References
----------
CVAT.ai, "CVAT for images" (XML annotation format 1.1),
https://docs.cvat.ai/docs/manual/advanced/xml_format/.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

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
from raterscope.app.formats.output_files import open_text_output
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
        tags = {shape.tag for image in self._root.iterfind("image") for shape in _drawn(image)}
        return frozenset(_CONTENTS.get(tag, "marks") for tag in tags)

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the shapes and tags of each image.

        The annotator is the assignee of the job or task; in a project's file, of the image's task. An image
        without shapes means that the assignee marked nothing.
        """
        default, tasks = _assignees(self._root)
        remarks.left_out[TRACKS] += len(self._root.findall("track"))
        images = self._root.findall("image")
        for at, image in enumerate(images):
            watch(at / len(images), "reading images")
            name, number = text_of(image.get("name", "")), f"image {at + 1}"
            width, height = (_side(image.get(side)) for side in ("width", "height"))
            item = Item(name, number, width, height, f"image {name or number}")
            annotations = tuple(_annotation(shape, item.title) for shape in _drawn(image))
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


def _drawn(image: Any) -> Iterator[Any]:
    """Yield the shapes of an image; of a skeleton, its points within the image, named "SKELETON: POINT"."""
    for shape in image:
        if shape.tag != "skeleton":
            yield shape
            continue
        for point in shape.iterfind("points"):
            if point.get("outside") != "1":
                label = f"{shape.get('label', '')}: {point.get('label', '')}"
                yield ElementTree.Element("points", {**point.attrib, "label": label})


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


PROGRAM = "Raterscope"
"""Prefix of the task's name in a file with results, which do not belong to an annotator."""

_FIELDS = {"points": {"occluded": "0", "z_order": "0"}, "mask": {"occluded": "0", "z_order": "0"}, "tag": {}}


@dataclass(frozen=True)
class CvatShape:
    """A shape or tag of an image."""

    type: Literal["points", "mask", "tag"]
    label: str
    is_manual: bool  # whether the expert decided
    geometry: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)  # None without a value


@dataclass(frozen=True)
class CvatImage:
    """Image with its shapes; CVAT finds the image by its name."""

    name: str
    size: tuple[float, float] | None  # (width, height) in pixels; None if unknown
    shapes: Sequence[CvatShape]


def write_cvat_file(
    path: Path,
    images: Sequence[CvatImage],
    labels: Mapping[str, str],
    title: str,
    attributes: Sequence[str] = (),
) -> Path:
    """Write images with their shapes. Raises `InputError` if the file cannot be written.

    `labels`: shape type of each label. `title`: name of the task, which begins with `PROGRAM`.
    `attributes`: names of the attributes of all labels, which hold text.
    """
    root = ElementTree.Element("annotations")
    _add_texts(root, {"version": "1.1"})
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    _add_texts(task, {"name": title})
    declared = ElementTree.SubElement(task, "labels")
    for name in sorted(labels, key=str.casefold):
        label = ElementTree.SubElement(declared, "label")
        _add_texts(label, {"name": name, "type": labels[name]})
        described = ElementTree.SubElement(label, "attributes")
        for attribute in attributes:
            texts = {"name": attribute, "mutable": "False", "input_type": "text"}
            _add_texts(
                ElementTree.SubElement(described, "attribute"), {**texts, "default_value": "", "values": ""}
            )
    for number, image in enumerate(images):
        sides = () if image.size is None else zip(("width", "height"), image.size, strict=True)
        element = ElementTree.SubElement(
            root, "image",
            {
                "id": f"{number}", "name": _printable(image.name),
                **{side: f"{math.ceil(length)}" for side, length in sides},
            },
        )  # fmt: skip
        for shape in image.shapes:
            drawn = ElementTree.SubElement(
                element, shape.type,
                {
                    "label": _printable(shape.label), "source": "manual" if shape.is_manual else "auto",
                    **_FIELDS[shape.type], **shape.geometry,
                },
            )  # fmt: skip
            for attribute in attributes:
                value = shape.attributes.get(attribute)
                text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else f"{value}"
                ElementTree.SubElement(drawn, "attribute", {"name": attribute}).text = text
    ElementTree.indent(root)
    with open_text_output(path) as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n')
        file.write(ElementTree.tostring(root, encoding="unicode") + "\n")
    return path


def mask_geometry(mask: NDArray[np.bool_]) -> dict[str, str]:
    """Encode a mask, (Y, X) with at least one pixel: run lengths along the rows of its box, zeros first."""
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    top, left = int(rows[0]), int(columns[0])
    box = mask[top : rows[-1] + 1, left : columns[-1] + 1]
    edges = np.flatnonzero(np.diff(box.ravel(), prepend=False, append=not box[-1, -1]))
    runs = ",".join(map(str, np.diff(edges, prepend=0).tolist()))
    height, width = box.shape
    sides = {"left": left, "top": top, "width": width, "height": height}
    return {"rle": runs, **{side: f"{value}" for side, value in sides.items()}}


def _add_texts(parent: ElementTree.Element, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        ElementTree.SubElement(parent, name).text = _printable(text)


def _printable(text: str) -> str:
    """Replace characters that XML cannot hold."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
