"""Tables of true places: image, x, y."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.app.formats.clicks import extents_of, first_lines
from raterscope.app.formats.records import PointTable, first_seen
from raterscope.app.formats.tables import Faults, Table, assign, names, numbers

__all__ = ["NEEDED", "points_of"]

NEEDED = ("image", "x", "y")


def points_of(table: Table, mapping: Mapping[str, str] | None = None) -> PointTable:
    """Make true places of a table.

    Parameters
    ----------
    table : Table
    mapping : mapping of column to field, optional
        Fields: image, x, y, width, height, ignore.

    Raises
    ------
    UnknownColumns
        When the header does not tell which column is which.
    InputError
        For the first bad line; nothing is read by halves.
    """
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
