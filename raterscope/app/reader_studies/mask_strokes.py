"""Strokes of brush, eraser and contour on a case, as stored and as the mask that they make."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError
from raterscope.app.reader_studies.reading_file import Operation

Index = tuple[int, int, int]

UNTOUCHED = -1


def pack_stroke(structure: str, origin: Index, values: NDArray[np.int8]) -> dict[str, Any]:
    """Return a stroke as the detail of an operation: 1 put in, 0 taken out, -1 untouched."""
    packed = zlib.compress(np.ascontiguousarray(values, dtype=np.int8).tobytes(), 1)
    return {"structure": structure, "origin": list(origin), "shape": list(values.shape), "values": packed}


def draw_strokes(
    strokes: Sequence[Operation], shape: Index, masks: dict[str, NDArray[np.bool_]] | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Draw the mask of each structure, (Z, Y, X).

    Raises `InputError` for a stroke that does not lie on the image.

    `masks`: masks of earlier strokes, which are drawn on.
    """
    masks = {} if masks is None else masks
    for stroke in strokes:
        structure, box, values = _unpack(stroke.detail, shape)
        if structure not in masks:
            masks[structure] = np.zeros(shape, dtype=np.bool_)
        np.copyto(masks[structure][box], values == 1, where=values != UNTOUCHED)
    return masks


def _unpack(detail: dict[str, Any], shape: Index) -> tuple[str, tuple[slice, ...], NDArray[np.int8]]:
    try:
        origin, size = [int(at) for at in detail["origin"]], [int(n) for n in detail["shape"]]
        fits = len(origin) == len(size) == 3 and all(
            at >= 0 and n > 0 and at + n <= whole for at, n, whole in zip(origin, size, shape, strict=True)
        )
        if not fits:
            raise ValueError
        count = size[0] * size[1] * size[2]
        data = zlib.decompressobj().decompress(detail["values"], count + 1)
        values = np.frombuffer(data, dtype=np.int8).reshape(size)
        box = tuple(slice(at, at + n) for at, n in zip(origin, size, strict=True))
        return str(detail["structure"]), box, values
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InputError("has a stroke that does not lie on its image") from error
