"""Tables of clicks: annotator, image, x, y and perhaps time; and tables of the images that were shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import plain
from raterscope.app.formats.records import ClickTable, first_seen
from raterscope.app.formats.tables import Faults, Table, assign, names, numbers

__all__ = [
    "FIELDS", "NEEDED", "clicks_of", "extents_of", "first_lines", "scale_of", "seconds_of", "seconds_or_nan",
    "sizes_of",
]  # fmt: skip

FIELDS = (
    ("annotator", "annotator", True),
    ("image", "image", True),
    ("x", "x, pixels", True),
    ("y", "y, pixels", True),
    ("time", "time", False),
)
"""What a column may hold: the program's word, people's, whether some column must."""

NEEDED = ("annotator", "image", "x", "y")
WANTED = ("time", "width", "height")
SIZES = ("image", "width", "height")
_MOST_EMPTY = 100_000


def clicks_of(table: Table, mapping: Mapping[str, str] | None = None, watch: Watch = silent) -> ClickTable:
    """Make clicks of a table.

    A row without x and y says that the annotator looked at the image and marked nothing.

    Parameters
    ----------
    table : Table
    mapping : mapping of column to field, optional
        Fields: annotator, image, x, y, time, width, height, ignore.
    watch : Watch

    Raises
    ------
    UnknownColumns
        When the header does not tell which column is which.
    InputError
        For the first bad line; nothing is read by halves.
    """
    column = assign(table, NEEDED, WANTED, mapping)
    faults = Faults(table)
    people = names(table, column["annotator"], faults)
    watch(0.85, "reading the names of images")
    pictures = names(table, column["image"], faults)
    watch(0.88, "reading places")
    x, y, empty = places(table, column, faults)
    watch(0.92, "reading places")
    images, image = first_seen(pictures)
    extents = extents_of(table, column, image, faults)
    faults.refuse()
    watch(0.95, "reading annotators and times")
    annotators, annotator = first_seen(people)
    looked = frozenset(zip(annotator[empty].tolist(), image[empty].tolist(), strict=True))
    time, notices = _times(table, column.get("time"))
    kept = ~empty
    return ClickTable(
        path=table.path, annotators=annotators, images=images, annotator=annotator[kept], image=image[kept],
        x=x[kept], y=y[kept], time=None if time is None else time[kept], looked=looked, extents=extents,
        lines=first_lines(table.lines, image), notices=notices,
    )  # fmt: skip


def sizes_of(table: Table, mapping: Mapping[str, str] | None = None) -> ClickTable:
    """Make a table of images, with width and height, into clicks that are yet to come.

    Where a column tells how many annotators looked and marked nothing (n_empty_jobs), they are counted,
    without a name: each is taken for a person of its own.
    """
    column = assign(table, SIZES, ("empty",), mapping)
    faults = Faults(table)
    images, image = first_seen(names(table, column["image"], faults))
    extents = extents_of(table, column, image, faults)
    counts = np.zeros(len(table), dtype=np.int64)
    if "empty" in column:
        found = numbers(table, column["empty"], faults, empty=True)
        wrong = (found < 0) | (found % 1 != 0) | (found > _MOST_EMPTY)
        wrong &= ~np.isnan(found)
        faults.add(np.flatnonzero(wrong).tolist(), column["empty"], '"{cell}" is no count of annotators')
        counts = np.where(wrong | np.isnan(found), 0, found).astype(np.int64)
    faults.refuse()
    people = [
        f"unnamed {one + 1} of {images[image[row]]}"
        for row in range(len(table))
        for one in range(counts[row])
    ]
    looked = frozenset(enumerate(np.repeat(image, counts).tolist()))
    none = np.empty(0, dtype=np.int64)
    return ClickTable(
        path=table.path, annotators=tuple(people), images=images, annotator=none, image=none, x=np.empty(0),
        y=np.empty(0), looked=looked, extents=extents, lines=first_lines(table.lines, image),
        notices=(f"The file tells the size of {len(images):,} images.",),
    )  # fmt: skip


def places(
    table: Table, column: Mapping[str, str], faults: Faults
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Read x and y, NaN in rows without either; the third tells those rows."""
    x, y = (numbers(table, column[field], faults, empty=True) for field in ("x", "y"))
    blank_x, blank_y = _blank(table, column["x"], x), _blank(table, column["y"], y)
    for only, field in ((blank_x & ~blank_y, "x"), (blank_y & ~blank_x, "y")):
        faults.add(np.flatnonzero(only).tolist(), column[field], "is empty; expected a place in pixels")
    return x, y, blank_x & blank_y


def extents_of(
    table: Table, column: Mapping[str, str], image: IntArray, faults: Faults
) -> dict[int, tuple[float, float]]:
    """Read the sizes of images from the columns width and height, where there are both."""
    if "width" not in column or "height" not in column:
        return {}
    extents: dict[int, tuple[float, float]] = {}
    width, height = (numbers(table, column[field], faults) for field in ("width", "height"))
    for size, field in ((width, "width"), (height, "height")):
        faults.add(
            np.flatnonzero(size <= 0).tolist(), column[field], "{cell} is no size; expected pixels above 0"
        )
    other = []
    for row, pair in enumerate(zip(width.tolist(), height.tolist(), strict=True)):
        if extents.setdefault(int(image[row]), pair) != pair and not any(map(math.isnan, pair)):
            other.append(row)
    faults.add(other, column["width"], "gives the image another size than the lines before")
    return extents


def first_lines(lines: Sequence[int], image: IntArray) -> tuple[int, ...]:
    """Tell the line on which each image appears first."""
    _, first = np.unique(image, return_index=True)
    return tuple(lines[row] for row in first)


def _blank(table: Table, column: str, values: FloatArray) -> NDArray[np.bool_]:
    """Tell which cells are empty, and not merely no number."""
    blank = np.isnan(values)
    for row in np.flatnonzero(blank).tolist():
        blank[row] = not table.column(column)[row].strip()
    return blank


def _times(table: Table, column: str | None) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Read times as seconds; a column that holds none is left out, and that is said."""
    if column is None:
        return None, ()
    cells = table.column(column)
    scale = scale_of(column)
    read = _number_of if any(_is_number(cell) for cell in cells[:100]) else seconds_of
    seconds = np.full(len(cells), math.nan)
    for row, cell in enumerate(cells):
        try:
            if cell.strip():
                seconds[row] = read(cell)
        except ValueError:
            where = f'line {table.lines[row]} has "{plain(cell, 40)}"'
            return None, (f"The times in {plain(column, 40)} were left out: {where}, which is no time.",)
    return seconds * scale, ()


def scale_of(column: str) -> float:
    """Tell how many seconds the numbers of a column of times count in, by its name."""
    return 0.001 if column.casefold().endswith(("ms", "milliseconds")) else 1.0


def _number_of(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def seconds_of(text: str) -> float:
    """Turn a date and time, "2024-01-02 03:04:05 UTC", into seconds since 1970.

    Raises
    ------
    ValueError
        For a text that is none.
    """
    moment = datetime.fromisoformat(text.strip().removesuffix(" UTC"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def seconds_or_nan(text: str) -> float:
    """Give a date and time in seconds, NaN for what is none."""
    try:
        return seconds_of(text)
    except ValueError:
        return math.nan
