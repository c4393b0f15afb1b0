"""Tables of true places: image, x, y."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import counted
from raterscope.app.formats.clicks import extents_of, first_lines, places
from raterscope.app.formats.records import PointTable, first_seen
from raterscope.app.formats.tables import Faults, Table, assign, names

__all__ = ["NEEDED", "are_detections", "points_of"]

NEEDED = ("image", "x", "y")


def points_of(table: Table, mapping: Mapping[str, str] | None = None) -> PointTable:
    """Make true places of a table; of one of detections, of those that were detected.

    A row without x and y says that nothing is on the image.

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
    x, y, empty = places(table, column, faults)
    extents = extents_of(table, column, image, faults)
    faults.refuse()
    detected = _detected(table)
    there = detected & ~empty
    left = int((~detected).sum())
    return PointTable(
        path=table.path, images=images, image=image[there], x=x[there], y=y[there], extents=extents,
        lines=first_lines(table.lines, image), searched=frozenset(range(len(images))),
        notices=(f"Left out are {counted(left, 'cluster')} that were not detected.",) if left else (),
    )  # fmt: skip


def are_detections(table: Table) -> bool:
    """Tell whether a table is one of detections, as it leaves a study."""
    return {"cluster", "posterior", "detected"} <= set(table.header)


def _detected(table: Table) -> NDArray[np.bool_]:
    """Tell which rows are true places: of a table of detections those detected."""
    if not are_detections(table):
        return np.ones(len(table), dtype=np.bool_)
    return np.array([cell.strip() != "0" for cell in table.column("detected")], dtype=np.bool_)
