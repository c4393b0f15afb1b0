"""napari: a layer of points as a table; the first axis counts rows, and whole numbers are pixels' centres."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from raterscope.app.errors import InputError
from raterscope.app.formats.points.collector import STATES, PointCollector, PointFile
from raterscope.app.formats.tables import Faults, Table, assign, names, numbers

__all__ = ["CENTRE", "is_points_layer", "read_points_layer"]

CENTRE = 0.5
"""From where a pixel begins to where napari counts it: there a pixel's number is its centre's place."""


def is_points_layer(header: Collection[str]) -> bool:
    """Tell by its columns whether a table is a layer of points, and not one of shapes."""
    return {"axis-0", "axis-1"} <= set(header) and "shape-type" not in header


def read_points_layer(table: Table) -> PointFile:
    """Read the points of a layer; a property called as an annotator or image tells who and where.

    An empty layer is of somebody who looked and marked nothing.

    The last two axes are row and column. Axes before them, slices or times, must have one value.

    Raises
    ------
    InputError
        For a place that is no number, and for points on several slices.
    """
    path = table.path
    axes = [name for name in table.header if name.startswith("axis-")]
    faults = Faults(table)
    found = {axis: numbers(table, axis, faults) for axis in axes}
    idle = dict.fromkeys((*axes, *({"index"} & set(table.header))), "ignore")
    column = assign(table, (), ("annotator", "image"), idle)
    told = {name: names(table, column[name], faults) for name in column}
    faults.refuse()
    axes.sort(key=lambda name: (len(name), name))
    for axis in axes[:-2]:
        count = len(np.unique(found[axis]))
        if count > 1:
            raise InputError(
                f"has {count:,} different values; expected points on one image, by row and column",
                file=path, field=axis,
            )  # fmt: skip
    row, column_axis = axes[-2:]
    places = np.column_stack([found[column_axis], found[row]]) + CENTRE
    left_here = {"cluster", "state"} <= set(table.header)
    gathering = PointCollector(
        path, detections=left_here and not set(STATES).isdisjoint(table.column("state"))
    )
    blank = [""] * len(table)
    marks: dict[tuple[str, str], list[int]] = {}
    for at, key in enumerate(zip(told.get("annotator", blank), told.get("image", blank), strict=True)):
        marks.setdefault(key, []).append(at)
    for (who, image), rows in marks.items():
        gathering.add(who, image, places[rows])
    if not len(table):
        gathering.look(None, None)
    return gathering.file("points")
