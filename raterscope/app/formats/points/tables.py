"""Tables of true points, and detections of a program with scores as tables or COCO."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.annotations import Document
from raterscope.app.formats.clicks import extents_of, first_lines, places
from raterscope.app.formats.coco import CocoDocument
from raterscope.app.formats.points.collector import STATES, PointCollector, PointFile, size_of
from raterscope.app.formats.records import PointTable, first_seen
from raterscope.app.formats.sources import File, Source, open_source
from raterscope.app.formats.tables import FARTHEST, Faults, Table, assign, assigned, names, numbers
from raterscope.app.formats.untrusted import is_number, json_content, read_bytes, text_of

__all__ = [
    "CENTRE",
    "PLACED",
    "are_detections",
    "are_scores",
    "holds_scores",
    "is_points_layer",
    "is_scored_coco",
    "may_hold_scores",
    "points_of",
    "read_points_layer",
    "read_scores",
    "recognize",
    "scores_of",
]


PLACED = ("image", "x", "y")


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
    column = assign(table, PLACED, ("width", "height"), mapping)
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


SCORED = ("image", "x", "y", "score")


def are_scores(table: Table) -> bool:
    """Tell whether a table has a score for each place, and is none of detections of this program."""
    return assigned(table, SCORED) is not None and not are_detections(table)


def is_scored_coco(content: Any) -> bool:
    """Tell whether decoded JSON is of COCO with scores: a list of results, or a file with annotations."""
    listed = content.get("annotations") if isinstance(content, dict) else content
    return (
        isinstance(listed, list)
        and bool(listed)
        and all(isinstance(one, dict) and "score" in one and "image_id" in one for one in listed)
    )


class ScoresDocument(Document):
    """A file of COCO with scores: `read_scores` reads it.

    Attributes
    ----------
    content : decoded JSON
        A list of results, or a mapping with images and annotations.
    """

    def __init__(self, content: Any) -> None:
        self.content = content


def may_hold_scores(text: bytes) -> bool:
    """Tell whether JSON may be COCO with scores; detections of this program have keypoints."""
    return b'"score"' in text and b'"keypoints"' not in text


def recognize(content: Any) -> ScoresDocument | None:
    """Take decoded JSON, or a parsed COCO file, if all of its annotations have a score."""
    if isinstance(content, CocoDocument):
        content = content.detections()
    return ScoresDocument(content) if is_scored_coco(content) else None


def holds_scores(source: Source) -> bool:
    """Tell whether a file is JSON of COCO with scores."""
    if source.path.suffix.casefold() != ".json":
        return False
    try:
        return isinstance(source.document(), ScoresDocument)
    except InputError:
        return False


def read_scores(file: File, mapping: Mapping[str, str] | None = None) -> PointTable:
    """Read the detections of a program.

    Parameters
    ----------
    file : Path or Source
        A table of text, or JSON of COCO.
    mapping : mapping of column to field, optional
        Of a table; fields: image, x, y, score, width, height, ignore.

    Raises
    ------
    UnknownColumns
        When the header does not tell which column is which.
    InputError
        For the first detection that cannot be read; nothing is read by halves.
    """
    source = open_source(file)
    path = source.path
    if path.suffix.casefold() != ".json":
        return scores_of(source.table(), mapping)
    document = source.document()
    if isinstance(document, ScoresDocument):
        return _of_coco(path, document.content)
    known = document.detections() if isinstance(document, CocoDocument) else None
    return _of_coco(path, json_content(path, read_bytes(path)) if known is None else known)


def scores_of(table: Table, mapping: Mapping[str, str] | None = None) -> PointTable:
    """Make scores of a table; a row with an image alone says that the program found nothing on it."""
    column = assign(table, SCORED, ("width", "height"), mapping)
    faults = Faults(table)
    images, image = first_seen(names(table, column["image"], faults))
    x, y, empty = places(table, column, faults)
    score = _numbers(table, column["score"], ~empty, faults)
    extents = extents_of(table, column, image, faults)
    faults.refuse()
    there = ~empty
    return PointTable(
        path=table.path, images=images, image=image[there], x=x[there], y=y[there], extents=extents,
        lines=first_lines(table.lines, image), searched=frozenset(range(len(images))), score=score[there],
    )  # fmt: skip


def _numbers(table: Table, column: str, needed: NDArray[np.bool_], faults: Faults) -> FloatArray:
    """Read finite numbers of any size."""
    values = np.array([_number(cell) for cell in table.column(column)])
    wrong = needed & ~np.isfinite(values)
    faults.add(np.flatnonzero(wrong).tolist(), column, '"{cell}" is no score; expected a number')
    return values


def _number(cell: str) -> float:
    try:
        return float(cell) if "_" not in cell else math.nan
    except ValueError:
        return math.nan


def _of_coco(path: Path, content: Any) -> PointTable:
    if not is_scored_coco(content):
        raise InputError(
            "holds no scores; expected a list of COCO results, or COCO annotations, with image_id, bbox and "
            "score",
            file=path,
        )
    listed = content["annotations"] if isinstance(content, dict) else content
    where = "annotations" if isinstance(content, dict) else "results"
    pictures = _pictures(path, content) if isinstance(content, dict) else {}
    images = {name: None for name, _ in pictures.values()}
    rows: list[tuple[str, float, float, float]] = []
    for at, one in enumerate(listed):
        place, field = _place(one), f"{where}[{at}]"
        number = one["image_id"]
        if isinstance(content, dict) and (type(number) not in (int, str) or number not in pictures):
            raise InputError(
                f"is on image {plain(number, 40)}, which is not listed", file=path, field=f"{field}.image_id"
            )
        if type(number) not in (int, str):
            raise InputError("names no image", file=path, field=f"{field}.image_id")
        if place is None:
            words = "has no place; expected a bbox of four numbers, or a keypoint"
            raise InputError(words, file=path, field=f"{field}.bbox")
        if not is_number(one["score"]):
            raise InputError(
                f'"{plain(one["score"], 40)}" is no score; expected a number',
                file=path,
                field=f"{field}.score",
            )
        name = pictures[number][0] if pictures else str(number)
        images.setdefault(name)
        rows.append((name, *place, float(one["score"])))
    index = {name: number for number, name in enumerate(images)}
    numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 3)
    extents = {index[name]: size for name, size in pictures.values() if size is not None}
    return PointTable(
        path=path, images=tuple(images), image=np.array([index[row[0]] for row in rows], dtype=np.int64),
        x=numbers[:, 0], y=numbers[:, 1], extents=extents, searched=frozenset(index.values()),
        score=numbers[:, 2],
    )  # fmt: skip


def _pictures(path: Path, content: Any) -> dict[int | str, tuple[str, tuple[float, float] | None]]:
    found: dict[int | str, tuple[str, tuple[float, float] | None]] = {}
    for at, one in enumerate(content.get("images") or []):
        if not isinstance(one, dict) or type(one.get("id")) not in (int, str):
            raise InputError("has no number", file=path, field=f"images[{at}]")
        name = text_of(one.get("file_name")) or plain(one["id"], 40)
        found[one["id"]] = (name, size_of(one.get("width"), one.get("height")))
    return found


def _place(one: Mapping[str, Any]) -> tuple[float, float] | None:
    """Give the centre of a box, else the first keypoint."""
    box, points = one.get("bbox"), one.get("keypoints")
    if isinstance(box, list) and len(box) == 4 and all(map(is_number, box)):
        place = (float(box[0] + box[2] / 2), float(box[1] + box[3] / 2))
    elif isinstance(points, list) and len(points) >= 2 and all(map(is_number, points[:2])):
        place = (float(points[0]), float(points[1]))
    else:
        return None
    return place if max(map(abs, place)) <= FARTHEST else None


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
