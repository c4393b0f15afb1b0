"""labelme: shapes on one image in JSON."""

from __future__ import annotations

import base64
import binascii
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from raterscope.app.errors import InputError
from raterscope.app.formats.masks.coco import flat_grid
from raterscope.app.formats.masks.drawings import Drawing, nothing, outlined
from raterscope.app.formats.masks.gathering import Gathering
from raterscope.app.formats.masks.naming import NOTHING, Named
from raterscope.app.formats.masks.polygons import Patch, circle, paired
from raterscope.app.formats.strangers import refuse_size, text_of
from raterscope.app.formats.volumes.records import MaskTable

__all__ = ["is_labelme", "read_labelme"]

_FILLED = ("polygon", "mask", "circle", "rectangle")


def is_labelme(content: Any) -> bool:
    """Tell whether decoded JSON is of this format."""
    return isinstance(content, dict) and isinstance(content.get("shapes"), list) and "imagePath" in content


def read_labelme(
    path: Path, content: Any, names: Named = NOTHING, spacing: tuple[float, float, float] | None = None
) -> MaskTable:
    """Read polygons, masks, circles and rectangles.

    Raises
    ------
    InputError
        For a shape that cannot be read. A file without any is of somebody who marked nothing.
    """
    size = (content.get("imageHeight"), content.get("imageWidth"))
    refuse_size(path, *size, field="imageHeight")
    shape = (int(size[0]), int(size[1]))
    item = text_of(PureWindowsPath(text_of(content.get("imagePath"))).name) or path.stem
    gathering = Gathering(path)
    gathering.look(names.annotator, item, flat_grid(*shape, spacing))
    for at, one in enumerate(content["shapes"]):
        kind = one.get("shape_type") or "polygon" if isinstance(one, dict) else ""
        if kind not in _FILLED:
            gathering.left_out["points and lines"] += 1
            continue
        field = f"shapes[{at}]"
        try:
            drawing = _drawing(kind, one, shape)
        except ValueError as error:
            raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None
        gathering.add(names.annotator, item, text_of(one.get("label")), drawing, field)
    masks = gathering.masks()
    if not masks:
        if gathering.left_out:
            raise InputError("has no masks; expected polygons, masks, circles or rectangles", file=path)
        gathering.add(names.annotator, item, names.structure or "", nothing())
        masks = gathering.masks()
    return MaskTable(path, masks, tuple(gathering.notices()))


def _drawing(kind: str, one: dict[str, Any], size: tuple[int, int]) -> Drawing:
    points = paired(one.get("points"))
    if kind == "mask":
        return _mask(points, one.get("mask"), size)
    if kind == "polygon":
        return outlined([points - 0.5], size)
    if len(points) != 2:
        raise ValueError(f"a {kind} of {len(points)} points")
    (x, y), (other_x, other_y) = points
    if kind == "circle":
        return outlined([circle(x, y, math.hypot(other_x - x, other_y - y)) - 0.5], size)
    corners = np.array([[x, y], [other_x, y], [other_x, other_y], [x, other_y]])
    return outlined([corners - 0.5], size)


def _mask(points: Any, packed: Any, size: tuple[int, int]) -> Drawing:
    """Read a mask, a PNG in base64, whose first pixel lies at the first point; only its head for now."""
    if not isinstance(packed, str) or not len(points):
        raise ValueError("no mask")
    left, top = (round(float(value)) for value in points.min(axis=0))
    with _opened(packed) as image:
        if image.width > size[1] or image.height > size[0]:
            raise ValueError("a mask larger than its image")
        rows, columns = max(0, min(size[0], top + image.height)), max(0, min(size[1], left + image.width))
    box = (max(0, top), max(0, left), rows - max(0, top), columns - max(0, left))
    if min(box[2:]) <= 0:
        return nothing()

    def draw() -> Patch:
        with _opened(packed) as image:
            values = np.asarray(image.convert("L")) > 0
        return box[0], box[1], values[box[0] - top : rows - top, box[1] - left : columns - left]

    return Drawing(box, draw)


@contextmanager
def _opened(packed: str) -> Iterator[Any]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(base64.b64decode(packed, validate=True)), formats=("PNG",)) as image:
            yield image
    except (binascii.Error, OSError, SyntaxError, Image.DecompressionBombError):
        raise ValueError("a mask that is no PNG") from None
