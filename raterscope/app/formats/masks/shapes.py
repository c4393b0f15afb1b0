"""Shapes on the pixel grid: polygons, run lengths and outlines, with boxes known before drawing.

A pixel belongs to a polygon when its centre is inside by the even-odd rule: a ray from it crosses the outline
an odd number of times. A centre on the outline belongs to the polygon if the inside is to its right or, on a
horizontal edge, below it. Polygons with a common edge have no common pixel.

A few bytes of run lengths can encode a billion pixels; the extent of the runs is therefore computed before
memory is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 4_000_000
_MAX_CROSSINGS = 2_000_000_000
_SIDES = 360

Patch = tuple[int, int, NDArray[np.bool_]]
"""Top row, left column, and the mask from there."""

Box = tuple[int, int, int, int]
"""Top row, left column, number of rows, number of columns."""


def find_box(outlines: Iterable[NDArray[np.floating]], shape: tuple[int, int]) -> Box | None:
    """Find the largest box of the mask that `fill` draws; None if it would be empty.

    Raises `ValueError` for points that are not numbers.
    """
    drawn = [outline for outline in outlines if len(outline) >= 3]
    if not drawn:
        return None
    points = np.concatenate(drawn)
    if not np.isfinite(points).all():
        raise ValueError("a point is not a position")
    (low_x, low_y), (high_x, high_y) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    top, bottom = max(0, math.ceil(low_y)), min(shape[0], math.floor(high_y) + 1)
    left, right = max(0, math.ceil(low_x)), min(shape[1], math.floor(high_x) + 1)
    return (top, left, bottom - top, right - left) if bottom > top and right > left else None


def fill(outlines: Iterable[NDArray[np.floating]], shape: tuple[int, int]) -> Patch | None:
    """Fill outlines to one mask by the even-odd rule: an outline within another is a hole.

    Raises `ValueError` for points that are not numbers, and for too many crossings.

    `outlines`: (N, 2) each, column and row; the centre of the first pixel is at (0, 0). Each is closed from
    its last point to the first. `shape`: (rows, columns) of the image, to which the mask is cropped. The
    result is None if no pixel's centre is inside.
    """
    drawn = [np.asarray(outline, dtype=float) for outline in outlines]
    drawn = [outline for outline in drawn if len(outline) >= 3]
    box = find_box(drawn, shape)
    if box is None:
        return None
    top, left, rows, columns = box
    start = np.concatenate(drawn)
    end = np.concatenate([np.roll(outline, -1, axis=0) for outline in drawn])
    turns = _crossings(start, end, (top, top + rows), (left, left + columns))
    inside = np.bitwise_xor.accumulate(turns, axis=1).view(np.bool_)
    return (top, left, inside) if inside.any() else None


def find_crossing(outlines: Sequence[NDArray[np.floating]], shape: tuple[int, int]) -> list[int]:
    """Find the outlines that share pixels with another without one lying within the other.

    Raises the errors of `fill`, and has its arguments.
    """
    boxes = np.array([find_box([outline], shape) or (0, 0, 0, 0) for outline in outlines]).reshape(-1, 4)
    begin, end = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    found: set[int] = set()
    patches: dict[int, NDArray[np.bool_]] = {}
    for one in range(len(outlines)):
        low, high = np.maximum(begin, begin[one]), np.minimum(end, end[one])
        for other in (one + 1 + np.flatnonzero((low < high).all(axis=1)[one + 1 :])).tolist():
            parts = []
            for at in (one, other):
                if at not in patches:
                    patch = fill([outlines[at]], shape)
                    patches[at] = np.zeros(boxes[at, 2:], dtype=np.bool_) if patch is None else patch[2]
                rows, columns = (
                    slice(first, last)
                    for first, last in zip(low[other] - begin[at], high[other] - begin[at], strict=True)
                )
                parts.append(patches[at][rows, columns])
            shared = np.count_nonzero(parts[0] & parts[1])
            if 0 < shared < min(np.count_nonzero(patches[at]) for at in (one, other)):
                found |= {one, other}
    return sorted(found)


def _crossings(
    start: NDArray[np.float64], end: NDArray[np.float64], rows: tuple[int, int], columns: tuple[int, int]
) -> NDArray[np.uint8]:
    """Mark with 1 the pixels at which a row enters or leaves the inside."""
    (top, bottom), (left, right) = rows, columns
    upper, lower = np.minimum(start[:, 1], end[:, 1]), np.maximum(start[:, 1], end[:, 1])
    first = np.clip(np.ceil(upper), top, bottom).astype(np.int64)
    last = np.clip(np.ceil(lower), top, bottom).astype(np.int64)
    spans = last - first
    downwards = (start[:, 1] <= end[:, 1])[:, None]
    above = np.where(downwards, start, end)
    run, rise = (np.where(downwards, end, start) - above).T
    if spans.sum() > _MAX_CROSSINGS:
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
        # Computed from the upper end with the division last, so that both directions of an edge give the same
        # crossing.
        across = above[edge, 0] + (row - above[edge, 1]) * run[edge] / rise[edge]
        column = np.clip(np.ceil(across), left, right).astype(np.int64)
        kept = column < right
        crossings = (row[kept] - top) * width + (column[kept] - left)
        index, times = np.unique(crossings, return_counts=True)
        flat[index] ^= (times & 1).astype(np.uint8)
        done, begin = int(ends[stop - 1]), stop
    return turns


def parse_points(values: Any) -> NDArray[np.float64]:
    """Convert a flat list x, y, x, y ... or a list of pairs to points, (N, 2).

    Raises `ValueError` for anything else.
    """
    if not isinstance(values, (list, tuple)):
        raise ValueError("not a list of points")
    try:
        points = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("points that are not numbers") from None
    if points.ndim == 1 and len(points) % 2 == 0:
        points = points.reshape(-1, 2)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError("points that are not pairs of numbers")
    return points


def ellipse(x: float, y: float, across: float, down: float, rotation: float = 0.0) -> NDArray[np.float64]:
    """Approximate an ellipse by a polygon of 360 sides; `rotation` in degrees, clockwise on screen."""
    angle = np.arange(_SIDES) * (2 * np.pi / _SIDES)
    along, sideways = across * np.cos(angle), down * np.sin(angle)
    cosine, sine = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    return np.stack([x + along * cosine - sideways * sine, y + along * sine + sideways * cosine], axis=1)


def circle(x: float, y: float, radius: float) -> NDArray[np.float64]:
    """Approximate a circle by a polygon of 360 sides."""
    return ellipse(x, y, radius, radius)


def rectangle(
    left: float, top: float, width: float, height: float, rotation: float = 0.0
) -> NDArray[np.float64]:
    """Compute a rectangle's corners; `rotation` in degrees, clockwise on screen, about its first corner."""
    corners = np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    cosine, sine = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    return np.asarray(corners @ np.array([[cosine, sine], [-sine, cosine]]) + [left, top])


Runs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""First pixel of each run, and the pixel after its last; sorted, without empty runs."""


def read_runs(counts: Sequence[Any], size: int) -> Runs:
    """Read run lengths, background first.

    Raises `ValueError` if the lengths are not integers, or do not fill a mask of `size` pixels.
    """
    if not all(type(count) is int and 0 <= count <= size for count in counts) or sum(counts) != size:
        raise ValueError("run lengths that do not fill the mask")
    ends = np.cumsum(np.array(counts, dtype=np.int64))
    starts = ends - np.array(counts, dtype=np.int64)
    return _without_empty(starts[1::2], ends[1::2])


def decode_coco_counts(text: str) -> list[int]:
    """Decode COCO's run lengths, packed into a string.

    Each character, counted from "0", holds five bits, the low ones first; the sixth bit means that more
    follow. From the fourth length on, the difference to the one before the last is stored. Raises
    `ValueError` for an invalid character, and a length that is truncated or negative.
    """
    counts: list[int] = []
    value, shift = 0, 0
    for letter in text:
        code = ord(letter) - 48
        if not 0 <= code < 64 or shift > 40:
            raise ValueError("invalid packed run lengths")
        value |= (code & 31) << shift
        shift += 5
        if code & 32:
            continue
        if code & 16:
            value -= 1 << shift
        if len(counts) > 2:
            value += counts[-2]
        if value < 0:
            raise ValueError("invalid packed run lengths")
        counts.append(value)
        value = shift = 0
    if shift:
        raise ValueError("packed run lengths that are cut short")
    return counts


def decode_studio_runs(packed: Sequence[Any], pixels: int) -> Runs:
    """Decode the pixels of a Label Studio brush that are not completely transparent.

    The brush packs red, green, blue and opacity of every pixel. The header has the number of values (32 bit),
    the bits of a value minus one (5 bit), and four sizes of counts minus one (4 bit each). Then follow, until
    all values are decoded: one bit, whether one value is repeated; two bits that select a size; the count
    minus one in that number of bits; and the value or the values. Raises `ValueError` for invalid bytes, an
    early end, or another number of values.

    `pixels`: pixels of the image; the header must claim four times as many values.
    """
    try:
        content = bytes(packed)
    except (TypeError, ValueError):
        raise ValueError("packed runs that are not bytes") from None
    bits = _Bits(content)
    count = bits.take(32)
    if count != 4 * pixels:
        raise ValueError(f"packed runs of {count:,} values for {pixels:,} pixels")
    word = bits.take(5) + 1
    if word != 8:
        raise ValueError(f"packed runs of {word} bits per value")
    sizes = [bits.take(4) + 1 for _ in range(4)]
    starts, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    at = 0
    while at < count:
        repeated = bits.take(1)
        stop = at + 1 + bits.take(sizes[bits.take(2)])
        if stop > count:
            raise ValueError("packed runs beyond the image")
        if repeated:
            opaque = bits.take(8) > 0
            first, last = (
                np.array([at // 4]),
                np.array([stop // 4]),
            )  # pixels whose fourth value is in the run
            if opaque:
                starts.append(first)
                ends.append(last)
        else:
            marked = at // 4 + np.flatnonzero(bits.bytes(stop - at)[3 - at % 4 :: 4])
            starts.append(marked)
            ends.append(marked + 1)
        at = stop
    return _without_empty(np.concatenate(starts), np.concatenate(ends))


def _without_empty(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Runs:
    kept = ends > starts
    return starts[kept], ends[kept]


class _Bits:
    """Reader of bits from bytes, the high ones first."""

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


@dataclass(frozen=True, eq=False)
class Drawing:
    """Drawing on a plane that is drawn later."""

    box: Box  # (top, left, rows, columns): its largest possible extent
    draw: Callable[[], Patch | None]  # draws it. May raise ValueError; the message follows "it has".

    @property
    def pixels(self) -> int:
        """Pixels of the box."""
        return self.box[2] * self.box[3]


def empty_drawing() -> Drawing:
    """Return a drawing without pixels."""
    return Drawing((0, 0, 0, 0), lambda: None)


def draw_outlines(outlines: Sequence[NDArray[np.floating]], shape: tuple[int, int]) -> Drawing:
    """Return the drawing that `fill` draws. Raises `ValueError` for points that are not numbers."""
    box = find_box(outlines, shape)
    return empty_drawing() if box is None else Drawing(box, lambda: fill(outlines, shape))


def unite(drawings: Sequence[Drawing]) -> Drawing:
    """Combine drawings to one."""
    filled = [drawing for drawing in drawings if drawing.pixels]
    if len(filled) < 2:
        return filled[0] if filled else empty_drawing()
    top, left = (min(drawing.box[k] for drawing in filled) for k in (0, 1))
    bottom, right = (max(drawing.box[k] + drawing.box[k + 2] for drawing in filled) for k in (0, 1))

    def draw() -> Patch:
        mask_of_all = np.zeros((bottom - top, right - left), dtype=np.bool_)
        for drawing in filled:
            if (patch := drawing.draw()) is not None:
                row, column, mask = patch
                rows, columns = mask.shape
                mask_of_all[row - top : row - top + rows, column - left : column - left + columns] |= mask
        return top, left, mask_of_all

    return Drawing((top, left, bottom - top, right - left), draw)


def row_major(runs: Runs, shape: tuple[int, int], origin: tuple[int, int] = (0, 0)) -> Drawing:
    """Return the drawing of runs along the rows of `shape`, at `origin`."""
    (top, left, rows, columns), draw = _draw_runs(runs, shape[1])
    row, column = origin
    return Drawing((row + top, column + left, rows, columns), lambda: (row + top, column + left, draw()))


def column_major(runs: Runs, shape: tuple[int, int]) -> Drawing:
    """Return the drawing of runs along the columns of `shape`."""
    (left, top, columns, rows), draw = _draw_runs(runs, shape[0])
    return Drawing((top, left, rows, columns), lambda: (top, left, np.ascontiguousarray(draw().T)))


def _draw_runs(runs: Runs, length: int) -> tuple[Box, Callable[[], NDArray[np.bool_]]]:
    """Return the box around runs: first line, first pixel in it, lines, pixels per line; and its drawing."""
    starts, ends = runs
    if not len(starts):
        return (0, 0, 0, 0), lambda: np.zeros((0, 0), dtype=np.bool_)
    line, last = starts // length, (ends - 1) // length
    first, lines = int(line[0]), int(last[-1] - line[0]) + 1
    low, width = 0, length
    if (line == last).all():
        low = int((starts % length).min())
        width = int(((ends - 1) % length).max()) + 1 - low
    begin = (line - first) * width + starts % length - low
    stop = begin + (ends - starts)

    def draw() -> NDArray[np.bool_]:
        turns = np.zeros(lines * width + 1, dtype=np.int8)
        turns[begin] += 1
        turns[stop] -= 1
        np.add.accumulate(turns, out=turns)
        return turns[:-1].view(np.bool_).reshape(lines, width)

    return (first, low, lines, width), draw


_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Steps east, south, west and north, in columns and rows."""


def trace_outlines(mask: NDArray[np.bool_]) -> list[NDArray[np.float64]]:
    """Trace the outline of every part of a mask and every hole in it.

    `mask`: (rows, columns). The result holds the corners of each outline, (N, 2), column and row; the centre
    of the first pixel is at (0, 0). Pixels that touch only at a corner have separate outlines. A pixel is in
    the mask if it is within an odd number of outlines.
    """
    padded = np.pad(mask, 1)
    inside, up, left = padded[1:-1, 1:-1], padded[:-2, 1:-1], padded[1:-1, :-2]
    down, right = padded[2:, 1:-1], padded[1:-1, 2:]
    rows, columns = mask.shape
    # Directions of the edges that leave each corner of a pixel: one bit each, the inside always to the right.
    leaving = np.zeros((rows + 1, columns + 1), dtype=np.uint8)
    leaving[:-1, :-1] |= (inside & ~up).view(np.uint8)
    leaving[:-1, 1:] |= (inside & ~right).view(np.uint8) << 1
    leaving[1:, 1:] |= (inside & ~down).view(np.uint8) << 2
    leaving[1:, :-1] |= (inside & ~left).view(np.uint8) << 3
    starts = np.argwhere(leaving).tolist()
    directions = {(column, row): int(leaving[row, column]) for row, column in starts}
    closed = []
    for row, column in starts:
        while directions[column, row]:
            closed.append(_walk(directions, (column, row)))
    return closed


def _walk(directions: dict[tuple[int, int], int], start: tuple[int, int]) -> NDArray[np.float64]:
    """Follow edges from a corner back to it, and remove them."""
    first = heading = (directions[start] & -directions[start]).bit_length() - 1
    at, corners = start, []
    while True:
        at = (at[0] + _STEPS[heading][0], at[1] + _STEPS[heading][1])
        # Right before straight on, so that the walk stays at its pixel where two pixels touch at a corner.
        turn = next(
            step % 4 for step in (heading + 1, heading, heading + 3) if directions[at] & (1 << step % 4)
        )
        directions[at] &= ~(1 << turn)
        if turn != heading:
            corners.append(at)
        heading = turn
        if at == start and turn == first:
            break
    return np.array(corners, dtype=float) - 0.5
