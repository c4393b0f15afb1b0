"""Tables of true places: image, x, y."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.clicks import extents_of, first_lines
from raterscope.app.formats.records import PointTable, first_seen
from raterscope.app.formats.tables import Faults, Table, assign, names, numbers, read_table

__all__ = ["NEEDED", "points_of", "read_points"]

NEEDED = ("image", "x", "y")


def read_points(
    path: Path | str, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> PointTable:
    """Read a table of true places.

    Parameters
    ----------
    path : Path
    mapping : mapping of column to field, optional
        Fields: image, x, y, width, height, ignore.
    watch : Watch

    Raises
    ------
    UnknownColumns
        When the header does not tell which column is which.
    InputError
        For a file that is no table, and for the first bad line; nothing is read by halves.
    """
    return points_of(read_table(Path(path), watch), mapping)


def points_of(table: Table, mapping: Mapping[str, str] | None = None) -> PointTable:
    """Make true places of a table; see `read_points`."""
    column = assign(table, NEEDED, ("width", "height"), mapping)
    faults = Faults(table)
    images, image = first_seen(names(table, column["image"], faults))
    x, y = (numbers(table, column[field], faults) for field in ("x", "y"))
    extents = extents_of(table, column, image, faults)
    faults.refuse()
    return PointTable(
        path=table.path, images=images, image=image, x=x, y=y, extents=extents,
        lines=first_lines(table.lines, image),
    )  # fmt: skip
