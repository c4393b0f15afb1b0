"""Tables of true points, and detections of a program with scores as tables or COCO."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.annotations import Document
from raterscope.app.formats.coco import CocoDocument
from raterscope.app.formats.points.collector import STATES, PointCollector, PointFile, size_of
from raterscope.app.formats.records import ClickTable, PointTable, first_seen
from raterscope.app.formats.sources import File, Source, open_source
from raterscope.app.formats.tables import (
    FARTHEST,
    Faults,
    Table,
    assign,
    assigned,
    names,
    numbers,
    scale_of,
    seconds_of,
)
from raterscope.app.formats.untrusted import is_number, json_content, read_bytes, text_of

__all__ = [
    "CENTRE",
    "FIELDS",
    "NEEDED",
    "PLACED",
    "are_detections",
    "are_scores",
    "clicks_of",
    "extents_of",
    "first_lines",
    "holds_scores",
    "is_points_layer",
    "is_scored_coco",
    "may_hold_scores",
    "points_of",
    "read_points_layer",
    "read_scores",
    "recognize",
    "scores_of",
    "sizes_of",
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
