"""PNG, decoded some rows at a time: libraries hold the whole image twice."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["png_form", "png_rows"]

_SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}
_HEAD = 33
_BLOCK = 1 << 20
_ROWS = 256


def png_form(path: Path) -> tuple[int, np.dtype[Any]] | None:
    """Tell how many samples of which kind a pixel has; None for palettes, single bits and interlaced rows."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    depth, colour, interlaced = head[24], head[25], head[28]
    if depth not in (8, 16) or colour not in _SAMPLES or interlaced:
        return None
    return _SAMPLES[colour], np.dtype(np.uint8 if depth == 8 else ">u2")


def png_rows(path: Path, width: int, height: int) -> Iterator[NDArray[Any]]:
    """Decode an image of which `png_form` tells, from the top, in arrays (rows, width, samples).

    Raises
    ------
    ValueError
        For what is damaged or cut short.
    """
    from raterscope.app.formats.pyramids._png_kernels import unfilter

    form = png_form(path)
    if form is None:
        raise ValueError("no PNG whose rows follow each other")
    samples, kind = form
    step = samples * kind.itemsize
    above = np.zeros(width * step, dtype=np.uint8)
    left = height
    size = min(_ROWS, left) * (1 + len(above))
    gathered = bytearray()
    with path.open("rb") as file:
        for piece in _inflated(file, size):
            gathered += piece
            while left and len(gathered) >= size:
                rows = np.frombuffer(bytes(gathered[:size]), np.uint8).reshape(-1, 1 + len(above)).copy()
                del gathered[:size]
                if not unfilter(rows, above, step):
                    raise ValueError("an unknown filter")
                left -= len(rows)
                size = min(_ROWS, left) * (1 + len(above))
                yield np.ascontiguousarray(rows[:, 1:]).view(kind).reshape(len(rows), width, samples)
    if left:
        raise ValueError(f"{left} rows are missing")


def _inflated(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Give what the image's chunks hold, at most so many bytes at a time."""
    machine = zlib.decompressobj()
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, name = int.from_bytes(head[:4], "big"), head[4:]
        if name != b"IDAT":
            file.seek(length + 4, 1)
            continue
        while length > 0 and (data := file.read(min(length, _BLOCK))):
            length -= len(data)
            while data:
                yield machine.decompress(data, most)
                data = machine.unconsumed_tail
        file.seek(4, 1)
