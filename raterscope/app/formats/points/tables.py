"""Tables of points: clicks, image sizes, ground truth, scored detections (also as COCO), and napari layers.

In a napari layer the first axis counts rows, and whole numbers are centres of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.annotations import Document
from raterscope.app.formats.coco import CocoDocument
from raterscope.app.formats.points.collector import STATES, PointCollector, PointFile, size_of
from raterscope.app.formats.points.positions import (
    PERCENT,
    ImageScales,
    assign_positions,
    describe_offsets,
    has_boxes,
    read_extents,
    read_positions,
    unknown_scales,
)
from raterscope.app.formats.records import ClickTable, PointTable, first_seen, number_classes
from raterscope.app.formats.tables import (
    CORNERS,
    FARTHEST,
    Faults,
    Table,
    UnknownColumns,
    assign_columns,
    fields_of,
    find_columns,
    holds_number,
    in_seconds,
    is_missing,
    number_or_nan,
    read_annotators,
    read_names,
    read_numbers,
    scale_of,
    seconds_of,
)
from raterscope.app.formats.untrusted import is_number, text_of
from raterscope.text import counted

FIELDS = (
    ("annotator", "annotator", True),
    ("image", "image", True),
    ("x", "x, pixels", True),
    ("y", "y, pixels", True),
    ("time", "time", False),
    ("read", "number of the read", False),
    ("class", "class", False),
)
"""Fields of a column: name, label on screen, and whether it is required."""

PLACED = ("image", "x", "y")
NEEDED = ("annotator", *PLACED)
WANTED = ("time", "width", "height", "read", "class")
SIZES = ("image", "width", "height")
_MAX_EMPTY = 100_000


def read_clicks(
    table: Table,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    scales: ImageScales = unknown_scales,
    annotator: str | None = None,
) -> ClickTable:
    """Read a table of clicks.

    A row without x and y means that the annotator viewed the image and marked nothing. Raises
    `UnknownColumns` if the header does not name the columns. Raises `InputError` for the first bad line; a
    table is read completely or not at all.

    `mapping`: fields of columns, named by hand: annotator, image, x, y, x_percent, y_percent, time, width,
    height, read, class, ignore. `annotator`: of all clicks, if the table names none.
    """
    try:
        column = assign_positions(table, NEEDED, WANTED, mapping)
    except UnknownColumns as unknown:
        if annotator is None or unknown.missing != ("annotator",):
            raise
        column = assign_positions(table, PLACED, WANTED, mapping)
    faults = Faults(table)
    annotator_names: Sequence[str] = [annotator or ""] * len(table)
    if "annotator" in column:
        annotator_names = read_annotators(table, column, faults)
    watch(0.85, "reading the names of images")
    pictures = read_names(table, column["image"], faults)
    watch(0.88, "reading positions")
    images, image = first_seen(pictures)
    positions = read_positions(table, column, image, faults, mapping, images, scales)
    faults.refuse()
    watch(0.95, "reading annotators and times")
    annotators, number = first_seen(annotator_names)
    kept = ~positions.empty
    looked = frozenset(zip(number[~kept].tolist(), image[~kept].tolist(), strict=True))
    time, notices = _times(table, column.get("time"))
    cells = table.column(column["class"]) if "class" in column else ()
    classes, label, class_notices = number_classes(list(compress(cells, kept.tolist())))
    return ClickTable(
        path=table.path, annotators=annotators, images=images, annotator=number[kept], image=image[kept],
        x=positions.x[kept], y=positions.y[kept], time=None if time is None else time[kept], looked=looked,
        extents=positions.extents, lines=find_first_lines(table.lines, image),
        notices=(*table.notices, *positions.notices, *describe_offsets(table), *notices, *class_notices),
        classes=classes, label=label,
        columns=fields_of(column) | _in_percent(mapping),
    )  # fmt: skip


def _in_percent(mapping: Mapping[str, str] | None) -> dict[str, str]:
    """Return the columns that the user named as positions in percent."""
    return {name: field for name, field in (mapping or {}).items() if field.endswith(PERCENT)}


def read_image_sizes(table: Table) -> ClickTable:
    """Read a table of images, with width and height, as a table without clicks.

    A column may contain the number of annotators without marks (n_empty_jobs). Each of these becomes an
    annotator without a name.
    """
    column = assign_columns(table, SIZES, ("empty",), None)
    faults = Faults(table)
    images, image = first_seen(read_names(table, column["image"], faults))
    extents = read_extents(table, column, image, faults)
    counts = np.zeros(len(table), dtype=np.int64)
    if "empty" in column:
        values = read_numbers(table, column["empty"], faults, empty=True)
        wrong = (values < 0) | (values % 1 != 0) | (values > _MAX_EMPTY)
        wrong &= ~np.isnan(values)
        faults.add(np.flatnonzero(wrong).tolist(), column["empty"], '"{cell}" is not a number of annotators')
        counts = np.where(wrong | np.isnan(values), 0, values).astype(np.int64)
    faults.refuse()
    annotator_names = [
        f"unnamed {index + 1} of {images[image[row]]}"
        for row in range(len(table))
        for index in range(counts[row])
    ]
    looked = frozenset(enumerate(np.repeat(image, counts).tolist()))
    none = np.empty(0, dtype=np.int64)
    return ClickTable(
        path=table.path, annotators=tuple(annotator_names), images=images, annotator=none, image=none,
        x=np.empty(0), y=np.empty(0), looked=looked, extents=extents,
        lines=find_first_lines(table.lines, image),
        notices=(f"The file contains the sizes of {len(images):,} images.",), columns=fields_of(column),
    )  # fmt: skip


def find_first_lines(lines: Sequence[int], image: IntArray) -> tuple[int, ...]:
    """Return the line on which each image first appears."""
    _, first = np.unique(image, return_index=True)
    return tuple(lines[row] for row in first)


def _times(table: Table, column: str | None) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Read times as seconds; a column with an unreadable time is skipped with a notice."""
    if column is None:
        return None, ()
    cells = table.column(column)
    scale = scale_of(column)
    first = next((cell for cell in cells if not is_missing(cell)), "")
    read = _finite_number if holds_number(first) else seconds_of
    seconds = np.full(len(cells), math.nan)
    for row, cell in enumerate(cells):
        try:
            if not is_missing(cell):
                seconds[row] = read(cell)
        except ValueError:
            example = f'line {table.lines[row]} has "{plain(cell, 40)}"'
            return None, (f"The times in {plain(column, 40)} were skipped: {example}, which is not a time.",)
    return in_seconds(seconds * scale, column), ()


def _finite_number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


def read_truth_points(
    table: Table, mapping: Mapping[str, str] | None = None, scales: ImageScales = unknown_scales
) -> PointTable:
    """Read a table of ground truth, or the detected rows of a table of detections.

    A row without x and y means that the image contains no structure. Raises `UnknownColumns` if the header
    does not name the columns. Raises `InputError` for the first bad line; a table is read completely or not
    at all.

    `mapping`: fields of columns, named by hand: image, x, y, width, height, ignore.
    """
    detected = _detected(table)
    skipped = int((~detected).sum())
    more = (f"{counted(skipped, 'cluster')} skipped: not detected.",) if skipped else ()
    return _read_points(table, PLACED, mapping, scales, detected, more)


def _read_points(
    table: Table, fields: tuple[str, ...], mapping: Mapping[str, str] | None, scales: ImageScales,
    used: NDArray[np.bool_], notices: tuple[str, ...] = (),
) -> PointTable:  # fmt: skip
    """Read the used rows that have a position, with their scores if `fields` has score."""
    column = assign_positions(table, fields, ("width", "height"), mapping)
    faults = Faults(table)
    images, image = first_seen(read_names(table, column["image"], faults))
    positions = read_positions(table, column, image, faults, mapping, images, scales)
    used = used & ~positions.empty
    score = _numbers(table, column["score"], used, faults)[used] if "score" in fields else None
    faults.refuse()
    return PointTable(
        path=table.path, images=images, image=image[used], x=positions.x[used], y=positions.y[used],
        extents=positions.extents, lines=find_first_lines(table.lines, image),
        searched=frozenset(range(len(images))), score=score,
        notices=(*table.notices, *positions.notices, *describe_offsets(table), *notices),
        columns=fields_of(column) | _in_percent(mapping),
    )  # fmt: skip


def are_detections(table: Table) -> bool:
    """Return whether a table holds detections exported from a study."""
    return {"cluster", "posterior", "detected"} <= set(table.header)


def _detected(table: Table) -> NDArray[np.bool_]:
    """Return whether each row is ground truth: all rows, or the detected rows of a table of detections."""
    if not are_detections(table):
        return np.ones(len(table), dtype=np.bool_)
    return np.array([cell.strip() != "0" for cell in table.column("detected")], dtype=np.bool_)


SCORED = ("image", "x", "y", "score")


def are_scores(table: Table) -> bool:
    """Return whether a table has a score for each position, and does not come from this program."""
    needed = (*CORNERS, "image", "score") if has_boxes(table) else SCORED
    return find_columns(table, needed) is not None and not are_detections(table)


def is_scored_coco(content: Any) -> bool:
    """Return whether decoded JSON is COCO with scores: a list of results, or a file with annotations."""
    listed = content.get("annotations") if isinstance(content, dict) else content
    return (
        isinstance(listed, list)
        and bool(listed)
        and all(isinstance(entry, dict) and "score" in entry and "image_id" in entry for entry in listed)
    )


class ScoresDocument(Document):
    """A COCO file with scores, which `read_scores` reads."""

    def __init__(self, content: Any) -> None:
        self.content = content  # decoded JSON: a list of results, or a mapping with images and annotations


def may_hold_scores(text: bytes) -> bool:
    """Return whether JSON may be COCO with scores.

    Detections exported by this program have keypoints, and are no list of results.
    """
    return b'"score"' in text and (b'"keypoints"' not in text or text.lstrip()[:1] == b"[")


def recognize(content: Any) -> ScoresDocument | None:
    """Recognize decoded JSON, or a parsed COCO file, in which all annotations have a score."""
    if isinstance(content, CocoDocument):
        content = content.detections()
    return ScoresDocument(content) if is_scored_coco(content) else None


def read_score_table(
    table: Table, mapping: Mapping[str, str] | None = None, scales: ImageScales = unknown_scales
) -> PointTable:
    """Read a table of scores; a row with only an image means that the program found nothing on it."""
    return _read_points(table, SCORED, mapping, scales, np.ones(len(table), dtype=np.bool_))


def _numbers(table: Table, column: str, needed: NDArray[np.bool_], faults: Faults) -> FloatArray:
    """Read finite numbers of any size."""
    values = np.array([number_or_nan(cell) for cell in table.column(column)])
    wrong = needed & ~np.isfinite(values)
    faults.add(np.flatnonzero(wrong).tolist(), column, '"{cell}" is not a score; expected a number')
    return values


def read_coco_scores(path: Path, content: Any) -> PointTable:
    """Read the detections in COCO JSON; raises `InputError` as `points.read_scores`."""
    if not is_scored_coco(content):
        raise InputError(
            "contains no scores; expected a list of COCO results, or COCO annotations, with image_id, bbox "
            "and score",
            file=path,
        )
    listed = content["annotations"] if isinstance(content, dict) else content
    list_name = "annotations" if isinstance(content, dict) else "results"
    pictures = _listed_images(path, content) if isinstance(content, dict) else {}
    images = {name: None for name, _ in pictures.values()}
    rows: list[tuple[str, float, float, float]] = []
    for at, entry in enumerate(listed):
        position, field = _centre_of(entry), f"{list_name}[{at}]"
        number = entry["image_id"]
        if isinstance(content, dict) and (type(number) not in (int, str) or number not in pictures):
            raise InputError(
                f"is on image {plain(number, 40)}, which is not listed", file=path, field=f"{field}.image_id"
            )
        if type(number) not in (int, str):
            raise InputError("names no image", file=path, field=f"{field}.image_id")
        if position is None:
            text = "has no position; expected a bbox of four numbers, or a keypoint"
            if entry.get("segmentation"):
                text = (
                    "has a segment and no bbox; add one, or write the segments above your threshold as "
                    "annotations of a COCO file with images, without score, to import them as masks"
                )
            raise InputError(text, file=path, field=f"{field}.bbox")
        if not is_number(entry["score"]):
            raise InputError(
                f'"{plain(entry["score"], 40)}" is not a score; expected a number',
                file=path,
                field=f"{field}.score",
            )
        name = pictures[number][0] if pictures else str(number)
        images.setdefault(name)
        rows.append((name, *position, float(entry["score"])))
    index = {name: number for number, name in enumerate(images)}
    numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 3)
    extents = {index[name]: size for name, size in pictures.values() if size is not None}
    return PointTable(
        path=path, images=tuple(images), image=np.array([index[row[0]] for row in rows], dtype=np.int64),
        x=numbers[:, 0], y=numbers[:, 1], extents=extents, searched=frozenset(index.values()),
        score=numbers[:, 2], is_numbered=not pictures,
    )  # fmt: skip


def name_by_ids(table: PointTable, names: Mapping[str, str]) -> PointTable:
    """Name the images of COCO results by their ids; the table is unchanged if one has no name of its own."""
    found = tuple(names.get(name, "") for name in table.images)
    if not table.is_numbered or not all(found) or len(set(found)) < len(found):
        return table
    return replace(table, images=found, is_numbered=False)


def _listed_images(path: Path, content: Any) -> dict[int | str, tuple[str, tuple[float, float] | None]]:
    pictures: dict[int | str, tuple[str, tuple[float, float] | None]] = {}
    for at, entry in enumerate(content.get("images") or []):
        if not isinstance(entry, dict) or type(entry.get("id")) not in (int, str):
            raise InputError("has no number", file=path, field=f"images[{at}]")
        name = text_of(entry.get("file_name")) or plain(entry["id"], 40)
        pictures[entry["id"]] = (name, size_of(entry.get("width"), entry.get("height")))
    return pictures


def _centre_of(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the centre of a box, otherwise of the visible keypoints."""
    box, points = entry.get("bbox"), entry.get("keypoints")
    if isinstance(box, list) and len(box) == 4 and all(map(is_number, box)):
        position = (float(box[0] + box[2] / 2), float(box[1] + box[3] / 2))
    elif isinstance(points, list) and points and len(points) % 3 == 0 and all(map(is_number, points)):
        triples = list(zip(points[::3], points[1::3], points[2::3], strict=True))
        xs, ys, _ = zip(*([triple for triple in triples if triple[2]] or triples), strict=True)
        position = ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2)
    else:
        return None
    return position if max(map(abs, position)) <= FARTHEST else None


CENTRE = 0.5
"""Offset of napari's coordinates, which count from the centre of the first pixel."""


def is_points_layer(header: Collection[str]) -> bool:
    """Return whether a table is a layer of points instead of shapes, by its columns."""
    return {"axis-0", "axis-1"} <= set(header) and "shape-type" not in header


def holds_bare_points(table: Table) -> bool:
    """Return whether a table has x and y, but neither annotators nor images, as ImageJ's results do."""
    names = {name.casefold().strip() for name in table.header}
    return {"x", "y"} <= names and not any(find_columns(table, (field,)) for field in ("annotator", "image"))


def read_bare_points(table: Table) -> PointFile:
    """Read points of one annotator on one image, both from the file's name; raises `InputError`."""
    column = assign_columns(table, ("x", "y"), (), None)
    faults = Faults(table)
    x, y = (read_numbers(table, column[field], faults) for field in ("x", "y"))
    faults.refuse()
    collector = PointCollector(table.path)
    collector.add("", "", np.column_stack([x, y]))
    return collector.file("points")


def read_points_layer(table: Table) -> PointFile:
    """Read the points of a napari layer; properties may name annotator and image.

    An empty layer means that the annotator viewed the image and marked nothing. The last two axes are row and
    column. Axes before them, slices or times, must have one value. Raises `InputError` for a coordinate that
    is not a number, and for points on several slices.
    """
    path = table.path
    axes = [name for name in table.header if name.startswith("axis-")]
    faults = Faults(table)
    coordinates = {axis: read_numbers(table, axis, faults) for axis in axes}
    idle = dict.fromkeys((*axes, *({"index"} & set(table.header))), "ignore")
    column = assign_columns(table, (), ("annotator", "image"), idle)
    name_columns = {name: read_names(table, column[name], faults) for name in column}
    faults.refuse()
    axes.sort(key=lambda name: (len(name), name))
    for axis in axes[:-2]:
        count = len(np.unique(coordinates[axis]))
        if count > 1:
            raise InputError(
                f"has {count:,} different values; expected points on one image, by row and column",
                file=path, field=axis,
            )  # fmt: skip
    row, column_axis = axes[-2:]
    points = np.column_stack([coordinates[column_axis], coordinates[row]]) + CENTRE
    is_exported = {"cluster", "state"} <= set(table.header)
    collector = PointCollector(
        path, detections=is_exported and not set(STATES).isdisjoint(table.column("state"))
    )
    blank = [""] * len(table)
    marks: dict[tuple[str, str], list[int]] = {}
    for at, key in enumerate(
        zip(name_columns.get("annotator", blank), name_columns.get("image", blank), strict=True)
    ):
        marks.setdefault(key, []).append(at)
    for (annotator, image), rows in marks.items():
        collector.add(annotator, image, points[rows])
    if not len(table):
        collector.look(None, None)
    return collector.file("points")
