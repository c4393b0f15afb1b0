"""Polygons and run lengths made into masks.

A pixel belongs to a polygon when its centre is inside by the even-odd rule: a ray from it crosses the outline
an odd number of times. A centre that lies on the outline belongs when the inside is to its right or, on a
level edge, below it, so that polygons that share an edge share no pixel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "circle", "column_major_runs", "compressed_counts", "ellipse", "fill", "paired", "rectangle",
    "row_major_runs", "studio_runs",
]  # fmt: skip

_AT_ONCE = 4_000_000
_MOST_CROSSINGS = 2_000_000_000
_SIDES = 360

Patch = tuple[int, int, NDArray[np.bool_]]
"""Top row, left column, and the mask from there."""


def fill(outlines: Iterable[NDArray[np.floating]], shape: tuple[int, int]) -> Patch | None:
    """Make outlines into one mask, by even-odd: an outline within another is a hole.

    Parameters
    ----------
    outlines : iterable of (N, 2) arrays
        Column and row; the centre of the first pixel is at (0, 0). Each is closed from its last point to the
        first.
    shape : (rows, columns)
        Of the image; what lies beyond is cut off.

    Returns
    -------
    (top, left, mask), or None when no pixel's centre is inside.

    Raises
    ------
    ValueError
        For points that are no numbers, and for more crossings than can be meant.
    """
    drawn = [np.asarray(outline, dtype=float) for outline in outlines]
    drawn = [outline for outline in drawn if len(outline) >= 3]
    if not drawn:
        return None
    every = np.concatenate(drawn)
    if not np.isfinite(every).all():
        raise ValueError("a point is no place")
    rows, columns = shape
    low, high = every.min(axis=0), every.max(axis=0)
    top, bottom = max(0, math.ceil(low[1])), min(rows, math.floor(high[1]) + 1)
    left, right = max(0, math.ceil(low[0])), min(columns, math.floor(high[0]) + 1)
    if bottom <= top or right <= left:
        return None
    start = every
    end = np.concatenate([np.roll(outline, -1, axis=0) for outline in drawn])
    turns = _crossings(start, end, (top, bottom), (left, right))
    inside = np.bitwise_xor.accumulate(turns, axis=1).view(np.bool_)
    return (top, left, inside) if inside.any() else None


def _crossings(
    start: NDArray[np.float64], end: NDArray[np.float64], rows: tuple[int, int], columns: tuple[int, int]
) -> NDArray[np.uint8]:
    """Mark, 0 or 1, the pixels at which a row enters or leaves the inside."""
    (top, bottom), (left, right) = rows, columns
    upper, lower = np.minimum(start[:, 1], end[:, 1]), np.maximum(start[:, 1], end[:, 1])
    first = np.clip(np.ceil(upper), top, bottom).astype(np.int64)
    last = np.clip(np.ceil(lower), top, bottom).astype(np.int64)
    spans = last - first
    downwards = (start[:, 1] <= end[:, 1])[:, None]
    above = np.where(downwards, start, end)
    run, rise = (np.where(downwards, end, start) - above).T
    if spans.sum() > _MOST_CROSSINGS:
        raise ValueError("an outline crosses its rows too often")
    width = right - left
    turns = np.zeros((bottom - top, width), dtype=np.uint8)
    flat = turns.reshape(-1)
    edges = np.flatnonzero(spans)
    ends = np.cumsum(spans[edges])
    begin, done = 0, 0
    while begin < len(edges):
        stop = max(begin + 1, int(np.searchsorted(ends, done + _AT_ONCE, side="right")))
        some = edges[begin:stop]
        count = spans[some]
        edge = np.repeat(some, count)
        offset = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count)
        row = first[edge] + offset
        # From its upper end and divided last, so that an edge is crossed at one place whichever way it goes.
        across = above[edge, 0] + (row - above[edge, 1]) * run[edge] / rise[edge]
        column = np.clip(np.ceil(across), left, right).astype(np.int64)
        kept = column < right
        places = (row[kept] - top) * width + (column[kept] - left)
        where, times = np.unique(places, return_counts=True)
        flat[where] ^= (times & 1).astype(np.uint8)
        done, begin = int(ends[stop - 1]), stop
    return turns


def paired(values: Any) -> NDArray[np.float64]:
    """Make points of a flat list x, y, x, y ... or of a list of pairs; (N, 2).

    Raises
    ------
    ValueError
        For anything else.
    """
    if not isinstance(values, (list, tuple)):
        raise ValueError("no list of points")
    try:
        points = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("points that are no numbers") from None
    if points.ndim == 1 and len(points) % 2 == 0:
        points = points.reshape(-1, 2)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError("points that are no pairs of numbers")
    return points


def ellipse(x: float, y: float, across: float, down: float, turned: float = 0.0) -> NDArray[np.float64]:
    """Give an ellipse as a polygon of 360 sides; `turned` in degrees, clockwise as seen."""
    angle = np.arange(_SIDES) * (2 * np.pi / _SIDES)
    along, aside = across * np.cos(angle), down * np.sin(angle)
    cosine, sine = math.cos(math.radians(turned)), math.sin(math.radians(turned))
    return np.stack([x + along * cosine - aside * sine, y + along * sine + aside * cosine], axis=1)


def circle(x: float, y: float, radius: float) -> NDArray[np.float64]:
    """Give a circle as a polygon of 360 sides."""
    return ellipse(x, y, radius, radius)


def rectangle(
    left: float, top: float, width: float, height: float, turned: float = 0.0
) -> NDArray[np.float64]:
    """Give a rectangle's corners; `turned` in degrees, clockwise as seen, about its first corner."""
    corners = np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    cosine, sine = math.cos(math.radians(turned)), math.sin(math.radians(turned))
    return np.asarray(corners @ np.array([[cosine, sine], [-sine, cosine]]) + [left, top])


def row_major_runs(counts: Sequence[Any], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Make run lengths, background first, along the rows into a mask.

    Raises
    ------
    ValueError
        When the lengths are no whole numbers, or do not fill the shape.
    """
    return _runs(counts, shape[0] * shape[1]).reshape(shape)


def column_major_runs(counts: Sequence[Any], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Make run lengths, background first, down the columns into a mask; errors as `row_major_runs`."""
    return np.ascontiguousarray(_runs(counts, shape[0] * shape[1]).reshape(shape[::-1]).T)


def _runs(counts: Sequence[Any], size: int) -> NDArray[np.bool_]:
    if not all(type(count) is int and 0 <= count <= size for count in counts) or sum(counts) != size:
        raise ValueError("run lengths that do not fill the mask")
    values = np.zeros(len(counts), dtype=np.bool_)
    values[1::2] = True
    return np.repeat(values, np.array(counts, dtype=np.int64))


def compressed_counts(text: str) -> list[int]:
    """Decode the run lengths that COCO packs into a string.

    Five bits a letter, from "0" upwards, the low ones first; a sixth says that more follow. From the fourth
    length on, the difference to the one before the last is stored.

    Raises
    ------
    ValueError
        For a letter that is none of the code, and a length that is cut short or below 0.
    """
    counts: list[int] = []
    value, shift = 0, 0
    for letter in text:
        code = ord(letter) - 48
        if not 0 <= code < 64 or shift > 40:
            raise ValueError("packed run lengths that are none")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue
        if code & 16:
            value -= 1 << shift
        if len(counts) > 2:
            value += counts[-2]
        if value < 0:
            raise ValueError("packed run lengths that are none")
        counts.append(value)
        value = shift = 0
    if shift:
        raise ValueError("packed run lengths that are cut short")
    return counts


def studio_runs(packed: Sequence[Any], pixels: int) -> NDArray[np.uint8]:
    """Decode a Label Studio brush, which packs red, green, blue and opacity of every pixel.

    A head gives the number of values (32 bit), the bits of a value (5 bit, less one), and four sizes of
    counts (4 bit each, less one). Then, until all values are there: one bit that says whether one value is
    repeated, two that choose a size, the count less one in that many bits, and the value or the values.

    Parameters
    ----------
    packed : sequence of bytes, 0 to 255
    pixels : int
        What the image has; the number of values that the head claims must be four times that.

    Returns
    -------
    (pixels, 4) uint8

    Raises
    ------
    ValueError
        For bytes that are none, end early, or claim another number of values.
    """
    try:
        content = bytes(packed)
    except (TypeError, ValueError):
        raise ValueError("packed runs that are no bytes") from None
    bits = _Bits(content)
    count = bits.take(32)
    if count != 4 * pixels:
        raise ValueError(f"packed runs of {count:,} values for {pixels:,} pixels")
    word = bits.take(5) + 1
    if word != 8:
        raise ValueError(f"packed runs of {word} bits a value")
    sizes = [bits.take(4) + 1 for _ in range(4)]
    values = np.zeros(count, dtype=np.uint8)
    at = 0
    while at < count:
        repeated = bits.take(1)
        stop = at + 1 + bits.take(sizes[bits.take(2)])
        if stop > count:
            raise ValueError("packed runs beyond the image")
        values[at:stop] = bits.take(8) if repeated else bits.bytes(stop - at)
        at = stop
    return values.reshape(-1, 4)


class _Bits:
    """Reads bits from bytes, the high ones first."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, bits: int) -> int:
        first, last = self._at >> 3, (self._at + bits + 7) >> 3
        if last > len(self._content):
            raise ValueError("packed runs that are cut short")
        word = int.from_bytes(self._content[first:last], "big") >> (8 * last - self._at - bits)
        self._at += bits
        return word & ((1 << bits) - 1)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        first, shift = self._at >> 3, self._at & 7
        if self._at + 8 * count > 8 * len(self._content):
            raise ValueError("packed runs that are cut short")
        self._at += 8 * count
        part = np.frombuffer(self._content, dtype=np.uint8)[first : first + count + 1]
        if not shift:
            return part[:count]
        return np.asarray((part[:-1] << shift) | (part[1:] >> (8 - shift)), dtype=np.uint8)
