"""Export as CVAT for images 1.1: points, masks and tags, all images in one file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from raterscope.app.formats.output_files import open_text_output

PROGRAM = "Raterscope"
"""Beginning of the name of the task in a file with results, which are no annotator's."""

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
    """An image with its shapes; CVAT finds the image by its name."""

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

    `labels`: type of shape of each label. `title`: name of the task, which begins with `PROGRAM`.
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
