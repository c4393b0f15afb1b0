"""labelme: shapes on one image in JSON; the file does not name its annotator.

References
----------
Wada K., "labelme: Image Polygonal Annotation with Python", https://github.com/wkentaro/labelme,
doi:10.5281/zenodo.5711226.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from pathlib import Path, PureWindowsPath
from typing import Any, ClassVar

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import (
    Annotation,
    AnnotationSet,
    Bitmap,
    Circle,
    Content,
    Corners,
    Document,
    Item,
    Kind,
    Points,
    Polygons,
    Remarks,
    Shape,
)
from raterscope.app.formats.untrusted import entries, input_errors, text_of

_CONTENTS: Mapping[Any, Content] = {
    "point": "points", "points": "points", "polygon": "areas", "mask": "areas", "circle": "areas",
}  # fmt: skip


def recognize(path: Path, content: Any) -> LabelmeDocument | None:
    """Recognize decoded JSON of this format."""
    if isinstance(content, dict) and isinstance(content.get("shapes"), list) and "imagePath" in content:
        return LabelmeDocument(path, content)
    return None


class LabelmeDocument(Document):
    """A parsed file."""

    expected: ClassVar[Mapping[Kind, str]] = {
        "points": "points", "masks": "polygons, masks, circles or rectangles",
    }  # fmt: skip
    is_single: ClassVar[bool] = True

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self._path, self._content = path, content

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are."""
        return frozenset(_content(shape) for shape in entries(self._content["shapes"]))

    def items(self) -> Sequence[Item]:
        """List the single image."""
        name = text_of(PureWindowsPath(text_of(self._content.get("imagePath"))).name)
        width, height = (self._content.get(f"image{side}") for side in ("Width", "Height"))
        if width is None and height is None:
            width, height = self._image_size
        return (Item(name, "", width, height, "imageHeight"),)

    @cached_property
    def _image_size(self) -> tuple[int | None, int | None]:
        """Size of the image within the file or beside it, because older versions do not state it."""
        from PIL import Image

        from raterscope.app.formats.sources import Source

        packed = self._content.get("imageData")
        if isinstance(packed, str):
            with input_errors(self._path, "an image"), Image.open(BytesIO(b64decode(packed))) as image:
                return image.size
        beside = PureWindowsPath(text_of(self._content.get("imagePath")))
        with suppress(InputError):
            if beside.name and not beside.anchor:
                file = Source(self._path.parent / beside.as_posix()).image().file
                return int(file.width), int(file.height)
        return None, None

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield all shapes as one set; a file without shapes means that the annotator marked nothing."""
        shapes = self._content["shapes"]
        annotations = tuple(_annotation(shape, f"shapes[{at}]") for at, shape in enumerate(shapes))
        yield AnnotationSet(self.items()[0], None, annotations, is_complete=True)


def _kind(shape: dict[str, Any]) -> Any:
    kind = shape.get("shape_type") or "polygon"
    return kind if isinstance(kind, str) else ""


def _content(shape: dict[str, Any]) -> Content:
    return _CONTENTS.get(_kind(shape), "marks")


def _annotation(shape: Any, field: str) -> Annotation:
    if not isinstance(shape, dict):
        return Annotation("entries that are not shapes", field)
    kind, drawn = _kind(shape), _shape(shape)
    noun = f"{text_of(kind).removesuffix('s')}s" if kind else "shapes without a kind"
    return Annotation(noun, field, () if drawn is None else (drawn,), text_of(shape.get("label")))


def _shape(shape: dict[str, Any]) -> Shape | None:
    kind, points = _kind(shape), shape.get("points")
    if kind in ("point", "points"):
        return Points(points)
    if kind == "polygon":
        return Polygons([points])
    if kind == "mask":
        return Bitmap(shape.get("mask"), points)
    if kind == "circle":
        return Circle(points)
    return Corners(points) if kind == "rectangle" else None
