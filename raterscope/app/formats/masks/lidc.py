"""LIDC-IDRI: nodules outlined by up to four radiologists on a chest CT, in XML.

An outline consists of the pixels just outside the nodule, which do not belong to it. An outline with
inclusion FALSE bounds a hole, and its pixels belong to the hole.

References
----------
.. [armato2011] S. G. Armato et al., "The Lung Image Database Consortium (LIDC) and Image Database Resource
   Initiative (IDRI): a completed reference database of lung nodules on CT scans", Medical Physics 38 (2011)
   915-931, doi:10.1118/1.3528204.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import box_around, overlap, slices_of
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.annotations import Document, Kind
from raterscope.app.formats.masks.collector import (
    crop,
    find_series_volume,
    missing_series_error,
    refuse_total,
)
from raterscope.app.formats.masks.shapes import fill
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import check_shape, text_of

SIDE = 512
"""Number of rows and columns of all CTs in the collection."""

_LISTED = 30
_MAX_SLICES = 5000
_MAX_NODULES = 600


@dataclass
class _Outline:
    z: float
    instance: str
    points: NDArray[np.int64]
    hole: bool


@dataclass(eq=False)
class _Nodule:
    """Nodule of one reader; the mask is cropped, and begins at `origin` of the grid."""

    reader: int
    outlines: list[_Outline]
    origin: tuple[int, int, int] = (0, 0, 0)
    mask: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.bool_))


class LidcDocument(Document):
    """A parsed file. `read_lidc` needs the series on which its contours were drawn."""

    expected: ClassVar[Mapping[Kind, str]] = {"masks": "reading sessions of a CT"}

    def __init__(self, root: Any) -> None:
        self.root = root


def read_lidc(
    path: Path, document: LidcDocument, volumes: tuple[VolumeFile, ...] = (), watch: Watch = silent
) -> MaskTable:
    """Read the nodules of 3 mm and more.

    Readers have no names in these files: they are "reader 1" and so on in the order of their sessions.
    Nodules of several readers with a common voxel are one structure; "nodule 1" is the structure outlined by
    most readers. The other readers have an empty mask of it.

    Without the CT the grid is computed from the positions of the outlines' slices, with pixels of 1 mm.
    Raises `InputError` for a file without sessions or outlines, and a file of another CT than the
    available one.
    """
    root = document.root
    sessions = root.findall("readingSession")
    if not sessions:
        raise InputError("has no reading sessions of a CT; expected up to four", file=path)
    left_out: Counter[str] = Counter()
    nodules = [
        nodule for reader, session in enumerate(sessions)
        for nodule in _nodules(path, session, reader, left_out)
    ]  # fmt: skip
    skipped = [f"Skipped: {', '.join(f'{text} {n}' for text, n in left_out.items())}."] if left_out else []
    if not nodules:
        raise InputError(
            f"has no outlines of nodules of 3 mm or more{f' ({skipped[0]})' if skipped else ''}", file=path
        )
    uid = text_of(next((e.text or "" for e in root.iter("SeriesInstanceUid")), ""))
    grid, slices, notices = _find_grid(path, uid, nodules, volumes)
    notices += _drop_unplaced(nodules, slices)
    if len(nodules) > _MAX_NODULES:
        text = f"has {len(nodules):,} nodules of 3 mm and more; expected {_MAX_NODULES} at most"
        raise InputError(text, file=path)
    refuse_total(path, sum(_voxels(nodule, slices) for nodule in nodules))
    for at, nodule in enumerate(nodules):
        watch(at / len(nodules), "filling outlines")
        _draw(path, nodule, grid, slices)
    masks = []
    for number, group in enumerate(_group_nodules(nodules), start=1):
        for reader in range(len(sessions)):
            origin, mask = _union([nodule for nodule in group if nodule.reader == reader])
            masks.append(
                RaterMask(f"reader {reader + 1}", uid or None, f"nodule {number}", grid, origin, mask)
            )
    return MaskTable(path, tuple(masks), (*notices, *skipped))


def _nodules(path: Path, session: Any, reader: int, left_out: Counter[str]) -> list[_Nodule]:
    marks = len(session.findall("nonNodule"))
    if marks:
        left_out["marks that are not nodules"] += marks
    nodules = []
    for element in session.findall("unblindedReadNodule"):
        outlines = [_outline(path, roi) for roi in element.findall("roi")]
        kept = [outline for outline in outlines if len(outline.points) > 1]
        if kept:
            nodules.append(_Nodule(reader, kept))
        else:
            left_out["nodules under 3 mm, which are points"] += 1
    return nodules


def _outline(path: Path, roi: Any) -> _Outline:
    try:
        points = [
            (int(edge.findtext("xCoord") or ""), int(edge.findtext("yCoord") or ""))
            for edge in roi.findall("edgeMap")
        ]
        z = float(roi.findtext("imageZposition") or "")
        if not np.isfinite(z) or any(abs(value) >= 2**31 for point in points for value in point):
            raise ValueError
    except ValueError:
        raise InputError("has a coordinate that is not a number", file=path, field="edgeMap") from None
    instance = text_of(roi.findtext("imageSOP_UID") or "")
    hole = (roi.findtext("inclusion") or "").strip().upper() == "FALSE"
    return _Outline(z, instance, np.array(points, dtype=np.int64).reshape(-1, 2), hole)


def _find_grid(
    path: Path, uid: str, nodules: list[_Nodule], volumes: tuple[VolumeFile, ...]
) -> tuple[Grid, dict[tuple[str, float], int], list[str]]:
    """Return the grid, and the slice of each outline by its UID and position."""
    outlines = [outline for nodule in nodules for outline in nodule.outlines]
    keys = {(outline.instance, outline.z) for outline in outlines}
    volume = find_series_volume(volumes, [uid] if uid else [], {outline.instance for outline in outlines})
    if volume is None and volumes:
        raise missing_series_error(path, [uid] if uid else [], volumes)
    if volume is not None:
        return volume.grid, _slices(path, volume, keys), []
    heights = sorted({z for _, z in keys})
    steps = np.diff(heights)
    steps = steps[steps > 0.01]
    step = float(steps.min()) if len(steps) else 1.0
    count = round((heights[-1] - heights[0]) / step) + 1
    if count > _MAX_SLICES:
        raise InputError(f"has outlines on {count:,} slices; expected {_MAX_SLICES:,} at most", file=path)
    check_shape(path, (count, SIDE, SIDE))
    grid = Grid((count, SIDE, SIDE), (1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, step, heights[0]), calibrated=False)
    message = (
        "The CT is not available: its position is unknown, and the grid has only the slices from the first"
        " outline to the last, with one pixel as one millimetre; add the CT for true sizes."
    )
    return grid, {key: round((key[1] - heights[0]) / step) for key in keys}, [message]


_OFF_SLICE = 0.25
"""Maximum distance of an outline from its slice, as a share of the nominal slice distance; otherwise its
slice is missing.
"""


def _slices(path: Path, volume: VolumeFile, keys: set[tuple[str, float]]) -> dict[tuple[str, float], int]:
    """Find the slices in a volume by UID, or else by height; missing slices are skipped."""
    grid = volume.grid
    directions = grid.matrix[:3, :3] / np.linalg.norm(grid.matrix[:3, :3], axis=0)
    if directions[0, 0] < 0.99 or directions[1, 1] < 0.99:
        raise InputError(
            f"counts pixels from the right and the front; {plain(volume.name, 60)} has another orientation"
            " and cannot be its CT",
            file=path,
        )
    number = {uid: at for at, uid in enumerate(volume.instances)}
    slices = {}
    for uid, z in keys:
        position = np.array([grid.matrix[0, 3], grid.matrix[1, 3], z])
        at = number.get(uid)
        if at is None:
            height = float(grid.heights(position))
            at = grid.slice_at(height)
            if at is not None and abs(height - float(grid.positions[at])) > _OFF_SLICE * grid.spacing[0]:
                at = None
        if at is not None:
            slices[uid, z] = at
    if not slices:
        z = next(iter(keys))[1]
        raise InputError(
            f"has an outline at {z:g} mm, which is not a slice of {plain(volume.name, 60)}", file=path
        )
    return slices


def _drop_unplaced(nodules: list[_Nodule], slices: dict[tuple[str, float], int]) -> list[str]:
    """Drop the outlines that are not on a slice; return notices that list them."""
    dropped: list[str] = []
    for number, nodule in enumerate(list(nodules), 1):
        lost = [outline for outline in nodule.outlines if (outline.instance, outline.z) not in slices]
        dropped += [f"nodule {number} by reader {nodule.reader + 1} at {outline.z:g} mm" for outline in lost]
        nodule.outlines = [outline for outline in nodule.outlines if (outline.instance, outline.z) in slices]
    nodules[:] = [nodule for nodule in nodules if nodule.outlines]
    more = f"; and {len(dropped) - _LISTED:,} more" if len(dropped) > _LISTED else ""
    text = "; ".join(dropped[:_LISTED])
    if not dropped:
        return []
    noun = "outline" if len(dropped) == 1 else "outlines"
    return [f"{len(dropped):,} {noun} could not be placed: the CT has no slice there ({text}{more})."]


def _voxels(nodule: _Nodule, slices: dict[tuple[str, float], int]) -> int:
    """Count the voxels of the box around a nodule, or of all its outlines if these are more."""
    points = np.concatenate([outline.points for outline in nodule.outlines])
    at = [slices[outline.instance, outline.z] for outline in nodule.outlines]
    columns, rows = (np.ptp(points, axis=0) + 1).tolist()
    return int(rows * columns * max(max(at) - min(at) + 1, len(at)))


def _draw(path: Path, nodule: _Nodule, grid: Grid, slices: dict[tuple[str, float], int]) -> None:
    rows, columns = grid.shape[1:]
    points = np.concatenate([outline.points for outline in nodule.outlines])
    if points.min() < 0 or points[:, 0].max() >= columns or points[:, 1].max() >= rows:
        raise InputError(f"has an outline beyond {rows} x {columns} pixels", file=path)
    at = [slices[outline.instance, outline.z] for outline in nodule.outlines]
    (left, top), (right, bottom), low, high = points.min(axis=0), points.max(axis=0), min(at), max(at)
    mask = np.zeros((high - low + 1, bottom - top + 1, right - left + 1), dtype=np.bool_)
    for outline, which in sorted(zip(nodule.outlines, at, strict=True), key=lambda pair: pair[0].hole):
        draw_outline(mask[which - low], outline.points - [left, top], hole=outline.hole)
    nodule.origin, nodule.mask = crop(mask, (low, int(top), int(left)))


def draw_outline(plane: NDArray[np.bool_], points: NDArray[np.int64], *, hole: bool) -> None:
    """Add the inside of an outline to a slice, or remove a hole from it; holes come last.

    `plane`: (Y, X), changed in place. `points`: (N, 2), column and row, all on the slice.
    """
    inside = np.zeros(plane.shape, dtype=np.bool_)
    if (patch := fill([points.astype(float)], (plane.shape[0], plane.shape[1]))) is not None:
        top, left, part = patch
        inside[top : top + part.shape[0], left : left + part.shape[1]] = part
    inside[points[:, 1], points[:, 0]] = hole
    if hole:
        plane &= ~inside
    else:
        plane |= inside


def _group_nodules(nodules: list[_Nodule]) -> list[list[_Nodule]]:
    """Group nodules with common voxels, directly or through others; groups with most readers first."""
    groups: list[list[_Nodule]] = []
    for nodule in nodules:
        touched = [group for group in groups if any(_overlap(nodule, other) for other in group)]
        groups = [group for group in groups if group not in touched]
        groups.append([nodule, *(other for group in touched for other in group)])
    return sorted(
        groups,
        key=lambda group: (
            -len({nodule.reader for nodule in group}), min(nodule.origin for nodule in group)
        ),
    )  # fmt: skip


def _overlap(nodule: _Nodule, other: _Nodule) -> bool:
    first, second = overlap(nodule.origin, nodule.mask.shape, other.origin, other.mask.shape)
    return bool((nodule.mask[first] & other.mask[second]).any())


def _union(nodules: list[_Nodule]) -> tuple[tuple[int, int, int], NDArray[np.bool_]]:
    if not nodules:
        return (0, 0, 0), np.zeros((0, 0, 0), dtype=np.bool_)
    origin, shape = box_around((nodule.origin, nodule.mask.shape) for nodule in nodules)
    mask = np.zeros(shape, dtype=np.bool_)
    for nodule in nodules:
        mask[slices_of(nodule.origin, nodule.mask.shape, origin)] |= nodule.mask
    return origin, mask
