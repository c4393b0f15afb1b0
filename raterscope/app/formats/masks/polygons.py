"""Polygons made into masks.

A pixel belongs to a polygon when its centre is inside by the even-odd rule: a ray from it crosses the outline
an odd number of times. A centre that lies on the outline belongs when the inside is to its right or, on a
level edge, below it, so that polygons that share an edge share no pixel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Patch", "box_of", "circle", "ellipse", "fill", "paired", "rectangle"]

_AT_ONCE = 4_000_000
_MOST_CROSSINGS = 2_000_000_000
_SIDES = 360

Patch = tuple[int, int, NDArray[np.bool_]]
"""Top row, left column, and the mask from there."""

Box = tuple[int, int, int, int]
"""Top row, left column, and how many rows and columns from there."""


def box_of(outlines: Iterable[NDArray[np.floating]], shape: tuple[int, int]) -> Box | None:
    """Give the box that the mask of `fill` has at most; None where it would be empty.

    Raises
    ------
    ValueError
        For points that are no numbers.
    """
    drawn = [outline for outline in outlines if len(outline) >= 3]
    if not drawn:
        return None
    every = np.concatenate(drawn)
    if not np.isfinite(every).all():
        raise ValueError("a point is no place")
    (low_x, low_y), (high_x, high_y) = every.min(axis=0).tolist(), every.max(axis=0).tolist()
    top, bottom = max(0, math.ceil(low_y)), min(shape[0], math.floor(high_y) + 1)
    left, right = max(0, math.ceil(low_x)), min(shape[1], math.floor(high_x) + 1)
    return (top, left, bottom - top, right - left) if bottom > top and right > left else None


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
    box = box_of(drawn, shape)
    if box is None:
        return None
    top, left, rows, columns = box
    start = np.concatenate(drawn)
    end = np.concatenate([np.roll(outline, -1, axis=0) for outline in drawn])
    turns = _crossings(start, end, (top, top + rows), (left, left + columns))
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
