"""Positions in tables of points: pixels, centres of boxes, or shares of the image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.app.errors import InputError
from raterscope.app.formats.tables import CORNERS, Faults, Table, assign_columns, find_columns, read_numbers

_MOSTLY = 0.5
"""Share of positions outside the stated size above which it is the size of a box, not of the image."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of the N rows of a table.

    Attributes
    ----------
    x, y : (N,) float64
        Pixels; NaN in rows without both.
    empty : (N,) bool
        The rows without both.
    extents : dict of image to (width, height)
        Sizes of images, from columns that state them.
    """

    x: FloatArray
    y: FloatArray
    empty: NDArray[np.bool_]
    extents: dict[int, tuple[float, float]]
    notices: tuple[str, ...] = ()


def has_boxes(table: Table) -> bool:
    """Return whether a table has the corners of boxes instead of positions."""
    return find_columns(table, CORNERS) is not None and find_columns(table, ("x", "y")) is None


def assign_positions(
    table: Table, needed: Sequence[str], wanted: Sequence[str], mapping: Mapping[str, str] | None
) -> dict[str, str]:
    """Assign columns to fields, see `assign_columns`; corners of boxes may take the place of x and y."""
    if not mapping and has_boxes(table):
        needed = (*(field for field in needed if field not in ("x", "y")), *CORNERS)
    return assign_columns(table, needed, wanted, mapping)


def read_positions(
    table: Table,
    column: Mapping[str, str],
    image: IntArray,
    faults: Faults,
    mapping: Mapping[str, str] | None = None,
) -> Positions:
    """Read the positions of a table, and the sizes of its images.

    The position of a box is its centre. Columns of width and height that most positions lie outside of are
    the sizes of boxes whose corners are x and y. Shares of the image become pixels where its size is known.
    Columns that were named by hand are taken as named. Raises `InputError` if all positions are shares of
    images of unknown size.

    Parameters
    ----------
    column : mapping of field to column
    image : (N,) int
        The image of each row.
    mapping : mapping of column to field, optional
        What was named by hand.
    """
    if "xmin" in column:
        x, y, empty = _read_corners(table, column, faults)
        return Positions(x, y, empty, read_extents(table, column, image, faults), _CENTRES)
    x, y = (read_numbers(table, column[field], faults, empty=True) for field in ("x", "y"))
    blank_x, blank_y = _blank(table, column["x"], x), _blank(table, column["y"], y)
    for only, field in ((blank_x & ~blank_y, "x"), (blank_y & ~blank_x, "y")):
        faults.add(np.flatnonzero(only).tolist(), column[field], "is empty; expected a position in pixels")
    empty = blank_x & blank_y
    if mapping:
        return Positions(x, y, empty, read_extents(table, column, image, faults))
    if {"width", "height"} <= set(column):
        width, height = (
            read_numbers(table, column[field], Faults(table), empty=True) for field in ("width", "height")
        )
        if ((x > width) | (y > height))[~empty].mean() > _MOSTLY:
            return Positions(x + width / 2, y + height / 2, empty, {}, _CENTRES)
    extents = read_extents(table, column, image, faults)
    if not _are_shares(x[~empty], y[~empty]):
        return Positions(x, y, empty, extents)
    sizes = [extents.get(number) for number in image.tolist()]
    if None in sizes:
        raise InputError(
            "all positions lie between 0 and 1; expected pixels. Multiply them by the image's width and "
            "height, add columns of that name, or name the columns by hand if they are pixels",
            file=table.path,
            field=column["x"],
        )
    width, height = np.array(sizes, dtype=np.float64).T
    words = "Positions between 0 and 1 were multiplied by the image's width and height."
    return Positions(x * width, y * height, empty, extents, (words,))


_CENTRES = ("The positions are the centres of boxes.",)


def _read_corners(
    table: Table, column: Mapping[str, str], faults: Faults
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Read the centres of boxes; also which rows have none."""
    corners = np.array([read_numbers(table, column[field], faults, empty=True) for field in CORNERS])
    blank = np.array(
        [_blank(table, column[field], values) for field, values in zip(CORNERS, corners, strict=True)]
    )
    empty: NDArray[np.bool_] = np.logical_and.reduce(blank)
    for at, field in enumerate(CORNERS):
        only = blank[at] & ~empty
        faults.add(np.flatnonzero(only).tolist(), column[field], "is empty; expected a position in pixels")
    left, top, right, bottom = corners
    return (left + right) / 2, (top + bottom) / 2, empty


def _are_shares(x: FloatArray, y: FloatArray) -> bool:
    """Return whether positions can only be shares of an image: between 0 and 1, and not all whole."""
    values = np.concatenate([x, y])
    return bool(len(x) > 1 and ((values >= 0) & (values <= 1)).all() and (values % 1 != 0).any())


def read_extents(
    table: Table, column: Mapping[str, str], image: IntArray, faults: Faults
) -> dict[int, tuple[float, float]]:
    """Read the sizes of images from the columns width and height; empty unless both exist."""
    if "width" not in column or "height" not in column:
        return {}
    extents: dict[int, tuple[float, float]] = {}
    width, height = (read_numbers(table, column[field], faults) for field in ("width", "height"))
    for size, field in ((width, "width"), (height, "height")):
        faults.add(
            np.flatnonzero(size <= 0).tolist(), column[field], "{cell} is not a size; expected pixels above 0"
        )
    other = []
    for row, pair in enumerate(zip(width.tolist(), height.tolist(), strict=True)):
        if extents.setdefault(int(image[row]), pair) != pair and not any(map(math.isnan, pair)):
            other.append(row)
    faults.add(other, column["width"], "gives the image another size than the lines before")
    return extents


def _blank(table: Table, column: str, values: FloatArray) -> NDArray[np.bool_]:
    """Return which cells are empty, unlike cells that are not numbers."""
    blank = np.isnan(values)
    for row in np.flatnonzero(blank).tolist():
        blank[row] = not table.column(column)[row].strip()
    return blank
