"""Positions of the rows of a table, in pixels of the image, and sizes of images."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.tables import (
    CORNERS,
    Faults,
    Table,
    UnknownColumns,
    assign_columns,
    fields_of,
    find_columns,
    is_missing,
    number_or_nan,
    read_numbers,
    refuse_missing,
    unit_of,
)

_CENTRES = ("The positions are the centres of boxes.",)


class ImageScale(NamedTuple):
    """Sizes of an image; None if they are unknown."""

    pixel_size: float | None = None  # micrometres
    size: tuple[float, float] | None = None  # (width, height), pixels


ImageScales = Callable[[str], ImageScale]
"""Returns the sizes of an image by its name."""


def unknown_scales(_image: str) -> ImageScale:
    """Return that no size of an image is known."""
    return ImageScale()


PERCENT = "_percent"
"""End of the fields x_percent and y_percent: positions in percent of the image."""

_MOSTLY = 0.5
"""Share of positions outside the stated size above which it is the size of a box instead of the image."""


_SHOWN = {"width": "clientwidth", "height": "clientheight"}
"""By field: the name of the column with the size at which a browser showed the image."""

_BY_CHANCE = 0.01
"""Maximum probability that random positions in an image all lie within the size at which it was shown."""

_PLACES = 8
"""Number of places along each side of an image; clicks in one are on one structure."""

_OFFSET = re.compile(r"(tile|patch|crop|roi|offset|origin)(x|y|left|top|row|col)|[xy](offset|origin)")
"""Name of a column with the position of a tile in its image, without signs."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of the N rows of a table."""

    # x, y: (N,): pixels; NaN in rows without both
    x: FloatArray
    y: FloatArray
    empty: NDArray[np.bool_]  # (N,): the rows without both
    extents: dict[int, tuple[float, float]]  # by image: sizes of images, from columns that state them
    notices: tuple[str, ...] = ()


def has_boxes(table: Table) -> bool:
    """Return whether a table has the corners of boxes instead of positions."""
    return find_columns(table, CORNERS) is not None and find_columns(table, ("x", "y")) is None


def assign_positions(
    table: Table, needed: Sequence[str], wanted: Sequence[str], mapping: Mapping[str, str] | None
) -> dict[str, str]:
    """Assign columns to fields, see `assign_columns`; corners of boxes may replace x and y.

    `mapping`: fields of columns, named by hand; x_percent and y_percent are assigned as x and y.
    """
    mapping = {name: field.removesuffix(PERCENT) for name, field in (mapping or {}).items()}
    if not mapping and has_boxes(table):
        needed = (*(field for field in needed if field not in ("x", "y")), *CORNERS)
    column = assign_columns(table, needed, wanted, mapping)
    for field in needed:
        _refuse_repeated(table, column[field], mapping)
    return column


def _refuse_repeated(table: Table, name: str, mapping: Mapping[str, str]) -> None:
    """Refuse a column that the table repeats with other values, unless the user chose one."""
    for other in table.header:
        again = re.sub(r" \(\d+\)$", "", other).casefold() == name.casefold() and other != name
        if (
            again
            and not {name, other} & mapping.keys()
            and list(table.column(other)) != list(table.column(name))
        ):
            raise InputError(
                f"has several columns {plain(name, 40)} with different values; rename or remove all but one",
                file=table.path,
            )


def read_positions(
    table: Table,
    column: Mapping[str, str],
    image: IntArray,
    faults: Faults,
    mapping: Mapping[str, str] | None = None,
    images: Sequence[str] = (),
    scales: ImageScales = unknown_scales,
) -> Positions:
    """Read the positions of a table, and the sizes of its images.

    The position of a box is its centre. If most positions are outside the size given by columns of width and
    height, these are the sizes of boxes whose corners are x and y. Shares of the image become pixels if its
    size is known, and micrometres if the size of their pixels is. Columns that the user named keep their
    meaning. Raises `InputError` if all positions are shares of images of unknown size, `UnknownColumns` if
    they have a unit and the size of the pixels is unknown.

    `column`: column of each field. `image`: (N,), the image of each row, an index into `images`. `mapping`:
    fields of columns, named by hand.
    """
    if "xmin" in column:
        x, y, empty = _read_corners(table, column, faults)
        return Positions(x, y, empty, read_extents(table, column, image, faults), _CENTRES)
    x, y = (read_numbers(table, column[field], faults, empty=True) for field in ("x", "y"))
    blank_x, blank_y = _blank(table, column["x"], x), _blank(table, column["y"], y)
    for only, field in ((blank_x & ~blank_y, "x"), (blank_y & ~blank_x, "y")):
        refuse_missing(table, column[field], np.flatnonzero(only).tolist(), faults)
    empty = blank_x & blank_y
    units = unit_of(column["x"]), unit_of(column["y"])
    in_percent = "%" in [unit[0] for unit in units if unit is not None] or any(
        field.endswith(PERCENT) for field in (mapping or {}).values()
    )
    if in_percent:
        x, y, mapping = x / 100, y / 100, None
    elif units != (None, None):
        factors, text = _pixels_per_unit(table, column, units, image, images, scales, mapping)
        return Positions(
            x * factors[0], y * factors[1], empty, read_extents(table, column, image, faults), (text,)
        )
    if mapping:
        return Positions(x, y, empty, read_extents(table, column, image, faults))
    in_shares = in_percent or _are_shares(x[~empty], y[~empty])
    shown = None if in_shares else _read_shown_sizes(table, column)
    if shown is not None:
        return _scale_shown(x, y, empty, shown, image, read_extents(table, column, image, faults))
    if {"width", "height"} <= set(column):
        width, height = (
            read_numbers(table, column[field], Faults(table), empty=True) for field in ("width", "height")
        )
        if ((x > width) | (y > height))[~empty].mean() > _MOSTLY:
            return Positions(x + width / 2, y + height / 2, empty, {}, _CENTRES)
    extents = read_extents(table, column, image, faults)
    if not in_shares:
        return Positions(x, y, empty, extents)
    known = [extents.get(number, scales(name).size) for number, name in enumerate(images)]
    sizes = [known[number] for number in image.tolist()]
    if None in sizes:
        problem = "all positions lie between 0 and 1; expected pixels. "
        hint = ", or name the columns by hand if they are pixels"
        if in_percent:
            problem, hint = "positions are in percent; expected pixels. ", ""
        raise InputError(
            f"{problem}Import the images too, or add columns of their width and height{hint}",
            file=table.path,
            field=column["x"],
        )
    width, height = np.array(sizes, dtype=np.float64).T
    range_in_words = "in percent" if in_percent else "between 0 and 1"
    text = f"Positions {range_in_words} were multiplied by the image's width and height."
    return Positions(x * width, y * height, empty, extents, (text,))


def _read_shown_sizes(table: Table, column: Mapping[str, str]) -> FloatArray | None:
    """Read the sizes at which images were shown and their own, (4, N); None without such columns."""
    names = {re.sub(r"[\W_]", "", name.casefold()): name for name in table.header}
    shown = [names.get(name, "") for name in _SHOWN.values()]
    if not all(shown) or not _SHOWN.keys() <= column.keys():
        return None
    columns = [*shown, *(column[field] for field in _SHOWN)]
    sizes = np.array([[number_or_nan(cell) for cell in table.column(name)] for name in columns])
    return sizes if (sizes > 0).all() else None


def _scale_shown(
    x: FloatArray, y: FloatArray, empty: NDArray[np.bool_], sizes: FloatArray, image: IntArray,
    extents: dict[int, tuple[float, float]],
) -> Positions:  # fmt: skip
    """Scale positions on the screen to the image; positions beyond the shown size are those in the image.

    Zooniverse gives both sizes, but positions in the image. Positions within the shown size are scaled if so
    many would not lie there by chance, or one lies beyond the image.
    """
    shown, own, marks = sizes[:2, ~empty], sizes[2:, ~empty], np.array([x, y])[:, ~empty]
    # Many annotators click the same structures: places are independent, clicks are not.
    places = np.vstack([image[~empty], np.floor(_PLACES * marks / own)])
    _, place = np.unique(places, axis=1, return_inverse=True)
    within = np.full(int(place.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(within, place, np.log(np.minimum(shown / own, 1)).sum(axis=0))
    chance = within.sum()
    if (marks <= shown).all() and (chance < math.log(_BY_CHANCE) or (marks > own).any()):
        factors = sizes[2:] / sizes[:2]
        text = "Positions were scaled from the size at which images were shown to that of the image."
        return Positions(x * factors[0], y * factors[1], empty, extents, (text,))
    text = "Positions are read as pixels of the image, not of the size at which it was shown."
    return Positions(x, y, empty, extents, () if (shown == own).all() else (text,))


def describe_offsets(table: Table) -> tuple[str, ...]:
    """Return a notice if a table has positions of tiles, to which its positions may be relative."""
    names = [
        name
        for name in table.header
        if _OFFSET.fullmatch(re.sub(r"[\W_]", "", name.casefold()))
        and any(number_or_nan(cell) > 0 for cell in table.column(name))
    ]
    if not names:
        return ()
    return (
        f"{plain_names(names, 4, 20)}: not added to the positions, which are read as those in the image. Add "
        "them before the import if positions are relative to a tile.",
    )


def _pixels_per_unit(
    table: Table, column: Mapping[str, str], units: Sequence[tuple[str, float] | None], image: IntArray,
    images: Sequence[str], scales: ImageScales, mapping: Mapping[str, str] | None,
) -> tuple[Sequence[FloatArray | float], str]:  # fmt: skip
    """Return pixels per unit of x and of y in each row, and a notice; 1 for named columns of unknown size."""
    sizes = [scales(name).pixel_size for name in images]
    with_units = zip((column["x"], column["y"]), units, strict=True)
    names = " and ".join(plain(name, 40) for name, unit in with_units if unit is not None)
    unit = next(unit[0] for unit in units if unit is not None)
    if None in sizes:
        missing = f"the size of a pixel of {plain(images[sizes.index(None)], 60)} is unknown"
        if mapping and {column["x"], column["y"]} & mapping.keys():
            text = f"Read as pixels, as you named them: {names}. The positions have a unit, and {missing}."
            return (1.0, 1.0), text
        problem = (
            f"{names}: in {unit}, and {missing}; import the image with its pixel size (TIFF, OME-TIFF) or "
            "set its scale first, or name the columns by hand if they are pixels"
        )
        raise UnknownColumns(table.path, table.header, table.first_rows(), fields_of(column), (), problem)
    per_row = np.array(sizes, dtype=np.float64)[image]
    least, largest = (f"{size:.4g}" for size in (per_row.min(), per_row.max()))
    values = least if least == largest else f"{least} to {largest}"
    text = f"Converted from {unit} to pixels of {values} µm: {names}."
    return [1.0 if unit is None else unit[1] / per_row for unit in units], text


def _read_corners(
    table: Table, column: Mapping[str, str], faults: Faults
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Read the centres of boxes; also return the rows without a box."""
    corners = np.array([read_numbers(table, column[field], faults, empty=True) for field in CORNERS])
    blank = np.array(
        [_blank(table, column[field], values) for field, values in zip(CORNERS, corners, strict=True)]
    )
    empty: NDArray[np.bool_] = np.logical_and.reduce(blank)
    for at, field in enumerate(CORNERS):
        only = blank[at] & ~empty
        refuse_missing(table, column[field], np.flatnonzero(only).tolist(), faults)
    left, top, right, bottom = corners
    return (left + right) / 2, (top + bottom) / 2, empty


def _are_shares(x: FloatArray, y: FloatArray) -> bool:
    """Return whether positions can only be shares of an image: between 0 and 1, and not all integers."""
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
    """Return whether each cell is empty, in contrast to cells that are not numbers."""
    blank = np.isnan(values)
    for row in np.flatnonzero(blank).tolist():
        blank[row] = is_missing(table.column(column)[row])
    return blank
