"""Collector of the marks of one file: one mask for each annotator, image and structure.

Areas of annotations are drawn on the grid of their image. Contours and segments need the volume on which they
were drawn, which this module also finds.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.packing import pack
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.coding import NOTHING_CODED, Coding
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.annotations import (
    Annotation,
    Area,
    Bitmap,
    Brush,
    Circle,
    Corners,
    Document,
    Ellipse,
    Item,
    Points,
    Polygons,
    Rectangle,
    Remarks,
    RunLengths,
)
from raterscope.app.formats.cvat import TRACKS
from raterscope.app.formats.masks.naming import NO_NAMES, NameParts
from raterscope.app.formats.masks.shapes import (
    Box,
    Drawing,
    Patch,
    circle,
    column_major,
    decode_coco_counts,
    decode_studio_runs,
    draw_outlines,
    ellipse,
    empty_drawing,
    parse_points,
    read_runs,
    rectangle,
    row_major,
    unite,
)
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import is_number, refuse_size, text_of

_MAX_KEPT = 2_000_000_000
_ALWAYS_KEPT = 300_000_000
_KEPT_A_BYTE = 20
_MAX_DRAWN = 20_000_000_000
_DRAWN_A_BYTE = 2_000
_LARGEST_DRAWN = 50_000_000
"""Limits of pixels of masks that are drawn one after the other and kept packed: in total, for each byte of
the file, and of a mask.
"""

_MAX_STRUCTURES = 20
_NAMED = 10
_MAX_BOXES = 1_000_000

Origin = tuple[int, int, int]
Voxel = TypeVar("Voxel", np.bool_, np.float32)


def crop(values: NDArray[Voxel], origin: Origin = (0, 0, 0)) -> tuple[Origin, NDArray[Voxel]]:
    """Cut a mask to the box around its non-zero part; empty if there is none."""
    part, first = values, list(origin)
    for axis in range(3):
        others = tuple(other for other in range(3) if other != axis)
        largest = part.dtype.kind == "u" and part.size > 0  # several times faster than any()
        marked = np.flatnonzero(part.max(axis=others) if largest else part.any(axis=others))
        if not len(marked):
            return (0, 0, 0), values[:0, :0, :0].copy()
        first[axis] += int(marked[0])
        part = part[(slice(None),) * axis + (slice(marked[0], marked[-1] + 1),)]
    return (first[0], first[1], first[2]), np.ascontiguousarray(part)


def make_mask(
    annotator: str | None, item: str | None, structure: str, grid: Grid, values: NDArray[Voxel],
    origin: Origin = (0, 0, 0), coding: Coding = NOTHING_CODED,
) -> RaterMask:  # fmt: skip
    """Create the record of a mask on a grid, or on a part of it from `origin`."""
    at, kept = crop(values, origin)
    return RaterMask(annotator, item, structure, grid, at, kept, coding)


def split_labels(
    values: NDArray[np.integer], labels: Sequence[int], watch: Watch = silent
) -> Iterator[tuple[int, Origin, NDArray[np.bool_]]]:
    """Yield the voxels of each label as a mask within their box; empty if there are none.

    All boxes are found in one pass, instead of one pass per label.
    """
    from scipy.ndimage import find_objects

    highest = max(labels, default=0)
    boxes = find_objects(values, highest) if 0 < highest <= _MAX_BOXES else None
    for at, label in enumerate(labels):
        watch(at / len(labels), "separating labels")
        box = (
            boxes[label - 1] if boxes is not None and label > 0 else tuple(slice(0, n) for n in values.shape)
        )
        if box is None:
            yield label, (0, 0, 0), np.zeros((0, 0, 0), dtype=np.bool_)
        else:
            yield label, (box[0].start, box[1].start, box[2].start), values[box] == label


def describe_unknown(noun: str, numbers: Collection[int]) -> str:
    """Name labels or segments that a file marks without a description."""
    text = ", ".join(map(str, sorted(numbers)[:_NAMED]))
    more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    plural = "" if len(numbers) == 1 else "s"
    return f"Skipped: {noun}{plural} {text}{more}, which the file marks but does not describe."


def refuse_total(path: Path, voxels: int, most: int = _MAX_KEPT, per_byte: int = _KEPT_A_BYTE) -> None:
    """Raise `InputError` for marks with more voxels in total than the file's size allows.

    `path`: the file, which may have 300 million voxels and `per_byte` more for each byte. `voxels`: voxels in
    the boxes of all its marks, counted before drawing.
    """
    most = min(most, _ALWAYS_KEPT + per_byte * path.stat().st_size)
    if voxels > most:
        text = f"marks {voxels / 1e6:,.0f} million pixels in total"
        expected = f"expected {most // 1_000_000:,} million at most"
        raise InputError(f"{text}; {expected}. Split it into files of fewer images or annotators", file=path)


Key = tuple[str | None, str | None, str]
"""Annotator, image and structure."""


@dataclass
class MaskCollector:
    """Collector of the marks of a file, which are drawn after their total size was checked."""

    path: Path  # for messages
    left_out: Counter[str] = field(default_factory=Counter)
    _marks: dict[Key, list[tuple[str, Drawing]]] = field(default_factory=dict)
    _boxes: dict[Key, list[tuple[str, Drawing]]] = field(default_factory=dict)
    _looks: dict[tuple[str | None, str | None], Grid] = field(default_factory=dict)

    def look(self, annotator: str | None, item: str | None, grid: Grid) -> None:
        """Record that an annotator viewed an image."""
        self._looks.setdefault((annotator, item), grid)

    def add(
        self, annotator: str | None, item: str | None, structure: str, drawing: Drawing, field: str = "",
        *, box: bool = False,
    ) -> None:  # fmt: skip
        """Add a mark of an annotator, on an image that they viewed, to a structure.

        A box has a position but no shape; boxes count only in a file without other areas. `field` is the
        mark's field in the file, for messages.
        """
        marks = self._boxes if box and drawing.pixels else self._marks
        marks.setdefault((annotator, item, structure), []).append((field, drawing))

    def _draw(self, pieces: list[tuple[str, Drawing]]) -> tuple[Origin, NDArray[np.bool_]]:
        """Draw one annotator's marks of a structure on an image."""
        box_around = _around(pieces)
        values = np.zeros((1, box_around[2], box_around[3]), dtype=np.bool_)
        for field_name, drawing in pieces:
            try:
                patch = drawing.draw()
            except ValueError as error:
                raise InputError(
                    f"cannot be read: it has {error}", file=self.path, field=field_name or None
                ) from None
            if patch is not None:
                row, column, mask = patch[0] - box_around[0], patch[1] - box_around[1], patch[2]
                values[0, row : row + mask.shape[0], column : column + mask.shape[1]] |= mask
        return crop(values, (0, box_around[0], box_around[1]))

    def masks(self, watch: Watch = silent) -> tuple[RaterMask, ...]:
        """Return the masks.

        An annotator who viewed an image without marking a structure that others marked there has an empty
        mask of it. On an image without marks this applies to all structures of the file. Raises
        `InputError` for a mark that cannot be drawn, and for more pixels in total than allowed.
        """
        if not self._marks and self._boxes:
            self._marks, self._boxes = self._boxes, {}
            self.left_out["filled boxes"] = 0
        sizes = list(map(_pixels_of, self._marks.values()))
        pixels = sum(sizes)
        if max(sizes, default=0) <= _LARGEST_DRAWN:
            refuse_total(self.path, pixels, _MAX_DRAWN, _DRAWN_A_BYTE)
        else:
            refuse_total(self.path, pixels)
        marked: dict[str | None, dict[str, None]] = {}
        for _, item, structure in self._marks:
            marked.setdefault(item, {})[structure] = None
        all_structures = dict.fromkeys(structure for _, _, structure in self._marks)
        fallback = all_structures if 0 < len(all_structures) <= _MAX_STRUCTURES else {}
        masks = []
        for at, ((annotator, item), grid) in enumerate(self._looks.items()):
            watch(at / len(self._looks), "drawing marks")
            for structure in marked.get(item, fallback):
                key = (annotator, item, structure)
                if key not in self._marks and key in self._boxes:
                    continue  # the annotator marked something of unknown shape
                origin, values = self._draw(self._marks.pop(key, []))  # releases its drawings
                voxels = values if pixels <= _ALWAYS_KEPT else pack(values)
                masks.append(RaterMask(annotator, item, structure, grid, origin, voxels))
        return tuple(masks)

    def notices(self) -> list[str]:
        """Return messages on skipped marks."""
        messages = []
        if "filled boxes" in self.left_out:
            messages.append("The file holds only boxes: each is read as a filled mask.")
        if self._boxes:
            self.left_out["boxes"] += sum(map(len, self._boxes.values()))
        skipped = [f"{name} {count:,}" for name, count in self.left_out.items() if count]
        if skipped:
            messages.append(f"Skipped, because they are not masks: {', '.join(skipped)}.")
        return messages


def _around(pieces: list[tuple[str, Drawing]]) -> Box:
    boxes = [drawing.box for _, drawing in pieces if drawing.pixels]
    if not boxes:
        return 0, 0, 0, 0
    top, left = (min(box[k] for box in boxes) for k in (0, 1))
    bottom, right = (max(box[k] + box[k + 2] for box in boxes) for k in (0, 1))
    return top, left, bottom - top, right - left


def _pixels_of(pieces: list[tuple[str, Drawing]]) -> int:
    """Count the pixels of all drawings, and of their common mask."""
    box_around = _around(pieces)
    return sum(drawing.pixels for _, drawing in pieces) + (
        box_around[2] * box_around[3] if len(pieces) > 1 else 0
    )


def find_series_volume(
    volumes: Sequence[VolumeFile], series: Collection[str], instances: Collection[str]
) -> VolumeFile | None:
    """Find the volume that a file refers to.

    The series' UID decides; of several volumes of one series, the volume with most of the referenced slices
    is used. If no series matches, the slices decide. Otherwise a single volume is used if it has no UID.
    """
    named = set(instances)

    def shared(volume: VolumeFile) -> int:
        return len(named.intersection(volume.instances))

    same_series = [volume for volume in volumes if volume.identifier and volume.identifier in series]
    candidates = same_series or [volume for volume in volumes if shared(volume)]
    if candidates:
        return max(candidates, key=shared)
    anonymous = [volume for volume in volumes if not volume.identifier]
    return anonymous[0] if len(anonymous) == 1 and len(volumes) == 1 else None


def image_of(volume: VolumeFile, volumes: Sequence[VolumeFile], instances: Collection[str]) -> str:
    """Return the name by which masks find their image: the series' UID.

    For several volumes of a series it is the name of the only volume whose slices (`instances`) a file refers
    to.
    """
    others = [
        other for other in volumes if other.identifier == volume.identifier and other.name != volume.name
    ]
    own, *rest = (not set(instances).isdisjoint(some.instances) for some in (volume, *others))
    return volume.name if others and own and not any(rest) else volume.identifier or volume.name


def notices_of_patient(dataset: Any, volume: VolumeFile, frames: Collection[str]) -> tuple[str, ...]:
    """Report a file whose patient ID or frames of reference are not those of the series it is placed on."""
    own = {"patient ID": {str(dataset.get("PatientID") or "").strip()}, "frame of reference": set(frames)}
    of_series = {"patient ID": volume.patient, "frame of reference": volume.frame_of_reference}
    other = [
        name
        for name, values in own.items()
        if of_series[name] and values - {""} and of_series[name] not in values
    ]
    if not other:
        return ()
    return (
        f"Has another {' and '.join(other)} than {plain(volume.name, 60)}, on which it is placed. Check that "
        "both are of one patient and that the outlines fit.",
    )


def may_fit(volume: VolumeFile, dataset: Any, frames: Collection[str]) -> bool:
    """Return whether positions in a file on another series may be those of a volume.

    They are not if both frames of reference are known and differ, unless the file states that it was
    de-identified, which replaces UIDs.
    """
    known = set(frames) - {""}
    is_replaced = str(dataset.get("PatientIdentityRemoved") or "") == "YES"
    return is_replaced or not volume.frame_of_reference or not known or volume.frame_of_reference in known


def missing_series_error(path: Path, series: Collection[str], volumes: Sequence[VolumeFile]) -> InputError:
    """Return the error that names the series to add."""
    name = plain(next(iter(series), "that it does not name"), 70)
    others = "; the available volumes are others" if volumes else ""
    return InputError(
        f"was drawn on the series {name}{others}; add the folder of that series first", file=path
    )


Size = tuple[int, int]
"""Rows and columns."""


def collect_masks(
    path: Path, document: Document | None, names: NameParts = NO_NAMES, watch: Watch = silent
) -> MaskTable:
    """Collect the areas of a file's annotations; areas of the same class, annotator and image are one mask.

    A pixel extends from its index to the next, with its centre at one half. If the file does not state which
    images annotators viewed, all annotators with areas viewed all images. Boxes are read if the file has no
    other areas. Raises `InputError` for an area that cannot be read, an image without a size, and a file
    without areas.

    `names`: the annotator of annotations without a name, and the structure of an empty file.
    """
    if document is None or "masks" not in document.expected:
        problem = "contains no known annotations; expected COCO, Label Studio, labelme, CVAT or LIDC-IDRI"
        raise InputError(problem, file=path)
    collector, grids = MaskCollector(path), _Grids(path)
    items = document.items()
    for item in items:
        grids.of_item(item)
    annotators: dict[str | None, None] = {}
    remarks = Remarks(collector.left_out)
    for annotation_set in document.sets("masks", remarks, part(watch, 0.0, 0.5)):
        annotator, title = annotation_set.annotator or names.annotator, annotation_set.item.title or path.stem
        for annotation in annotation_set.annotations:
            areas = [shape for shape in annotation.shapes if not isinstance(shape, Points)]
            if not areas:
                collector.left_out[annotation.noun] += 1
                continue
            grid = grids.of_annotation(annotation, annotation_set.item)
            size = grid.shape[1], grid.shape[2]
            try:
                drawing = unite([make_drawing(area, size) for area in areas])
            except ValueError as error:
                raise InputError(
                    f"cannot be read: it has {error}", file=path, field=annotation.field
                ) from None
            annotators[annotator] = None
            collector.look(annotator, title, grid)
            is_box = isinstance(areas[0], Rectangle)
            collector.add(annotator, title, annotation.label, drawing, annotation.field, box=is_box)
        if annotation_set.is_complete and (grid_of_image := grids.of_item(annotation_set.item)) is not None:
            collector.look(annotator, title, grid_of_image)
    if not annotators:
        if not document.is_single or any(collector.left_out.values()):
            raise _without_masks(path, document, collector)
        (item,) = items
        collector.add(names.annotator, item.title or path.stem, names.structure or "", empty_drawing())
    for item in items:
        if (grid_of_image := grids.of_item(item)) is not None:
            for annotator in annotators:
                collector.look(annotator, item.title or path.stem, grid_of_image)
    run = run_in_title(document.run)
    masks, notices = collector.masks(part(watch, 0.5, 1.0)), (*collector.notices(), *notices_of_run(run))
    return MaskTable(path, masks, notices, run)


def _without_masks(path: Path, document: Document, collector: MaskCollector) -> InputError:
    if collector.left_out[TRACKS]:
        return InputError("follows objects through a video; export it as CVAT for images 1.1", file=path)
    others = ", ".join(f"{noun} {count:,}" for noun, count in collector.left_out.items() if count)
    others = others and f" (it has {others})"
    return InputError(f"has no masks{others}; expected {document.expected['masks']}", file=path)


class _Grids:
    """Grids of a file's images, one for each size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[Size, Grid] = {}

    def of_item(self, item: Item) -> Grid | None:
        """Return the grid of an image; None if its size is optional and missing."""
        if item.field is None and (item.width is None or item.height is None):
            return None
        return self._of_size(item.height, item.width, item.field)

    def of_annotation(self, annotation: Annotation, item: Item) -> Grid:
        """Return the grid on which an annotation was drawn."""
        width, height = annotation.size or (item.width, item.height)
        if item.field is None and (width is None or height is None):
            raise InputError(
                "does not contain the size of its image", file=self._path, field=annotation.field
            )
        return self._of_size(height, width, item.field or annotation.field)

    def _of_size(self, rows: Any, columns: Any, field: str | None) -> Grid:
        if type(rows) is int and type(columns) is int and (rows, columns) in self._known:
            return self._known[rows, columns]
        refuse_size(self._path, rows, columns, field=field)
        return self._known.setdefault((rows, columns), Grid.plain((1, rows, columns)))


def make_drawing(area: Area, size: Size) -> Drawing:
    """Check an area and find its box in an image; it is drawn later.

    Raises `ValueError` for values that cannot be read; the message follows "it has".
    """
    scale = np.array([size[1], size[0]]) / 100.0
    match area:
        case Polygons(outlines, percent):
            # Polygons of one object are its parts, not holes: they are united.
            points = [parse_points(outline) * (scale if percent else 1.0) for outline in outlines]
            return unite([draw_outlines([outline - 0.5], size) for outline in points])
        case RunLengths(down=True):
            return _image_runs(area, size)
        case RunLengths():
            return _boxed_runs(area, size)
        case Brush(packed, form):
            if form not in ("rle", None) or not isinstance(packed, list):
                raise ValueError("no packed runs")
            return row_major(decode_studio_runs(packed, size[0] * size[1]), size)
        case Ellipse(values, rotation, percent):
            numbers = _numbers(values, rotation, scale if percent else None)
            return draw_outlines([ellipse(*numbers) - 0.5], size)
        case Rectangle():
            return draw_outlines([_corners(area, scale) - 0.5], size)
        case Circle(pairs):
            (x, y), (on_x, on_y) = _two(pairs, "circle")
            return draw_outlines([circle(x, y, math.hypot(on_x - x, on_y - y)) - 0.5], size)
        case Corners(pairs):
            (x, y), (far_x, far_y) = _two(pairs, "rectangle")
            corners = np.array([[x, y], [far_x, y], [far_x, far_y], [x, far_y]])
            return draw_outlines([corners - 0.5], size)
        case Bitmap(packed, pairs):
            return _bitmap(parse_points(pairs), packed, size)


def _image_runs(area: RunLengths, size: Size) -> Drawing:
    """Draw COCO's runs along the columns of the complete image."""
    if (area.rows, area.columns) != size:
        claimed = plain([area.rows, area.columns], 40)
        raise ValueError(f"run lengths of another size than its image, {claimed}")
    counts = decode_coco_counts(area.counts) if isinstance(area.counts, str) else area.counts
    if not isinstance(counts, list):
        raise ValueError("no run lengths")
    return column_major(read_runs(counts, size[0] * size[1]), size)


def _boxed_runs(area: RunLengths, size: Size) -> Drawing:
    """Draw CVAT's runs along the rows of a box."""
    rows, columns, top, left = area.rows, area.columns, area.top, area.left
    if not all(type(side) is int and side > 0 for side in (rows, columns)):
        shown = f"{plain(rows, 20)} x {plain(columns, 20)}"
        raise ValueError(f"a mask that claims a size of {shown}; expected integers above 0")
    if top is None or left is None:
        raise ValueError("no position")
    if not (0 <= top <= size[0] - rows and 0 <= left <= size[1] - columns):
        raise ValueError("a mask beyond its image")
    return row_major(read_runs(area.counts, rows * columns), (rows, columns), (top, left))


def _numbers(values: Mapping[str, Any], rotation: Any, scale: NDArray[np.float64] | None) -> list[float]:
    """Check four numbers along x, y, x, y, which may be in percent, and a rotation."""
    numbers = [float(value) for value in (*values.values(), rotation) if is_number(value)]
    if len(numbers) != len(values) + 1:
        raise ValueError(f"no numbers for {', '.join(values)} or its rotation")
    if scale is None:
        return numbers
    return [value * factor for value, factor in zip(numbers, [*scale, *scale, 1.0], strict=True)]


def _corners(area: Rectangle, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    left, top, right, bottom, rotation = _numbers(area.values, area.rotation, scale if area.percent else None)
    if area.about_corner:
        return rectangle(left, top, right, bottom, rotation)
    corners = rectangle(0.0, 0.0, right - left, bottom - top)
    middle = corners.mean(axis=0)
    angle = np.radians(rotation)
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.asarray((corners - middle) @ [[cosine, sine], [-sine, cosine]] + middle + [left, top])


def _two(pairs: Any, noun: str) -> NDArray[np.float64]:
    points = parse_points(pairs)
    if len(points) != 2:
        raise ValueError(f"a {noun} of {len(points)} points")
    return points


def _bitmap(points: NDArray[np.float64], packed: Any, size: Size) -> Drawing:
    """Find the box of a PNG in base64 by its header; its first pixel is at the first point."""
    if not isinstance(packed, str) or not len(points):
        raise ValueError("no mask")
    left, top = (round(float(value)) for value in points.min(axis=0))
    with _open_bitmap(packed) as image:
        if image.width > size[1] or image.height > size[0]:
            raise ValueError("a mask larger than its image")
        rows, columns = max(0, min(size[0], top + image.height)), max(0, min(size[1], left + image.width))
    box = (max(0, top), max(0, left), rows - max(0, top), columns - max(0, left))
    if min(box[2:]) <= 0:
        return empty_drawing()

    def draw() -> Patch:
        with _open_bitmap(packed) as image:
            values = np.asarray(image.convert("L")) > 0
        return box[0], box[1], values[box[0] - top : rows - top, box[1] - left : columns - left]

    return Drawing(box, draw)


@contextmanager
def _open_bitmap(packed: str) -> Iterator[Any]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(base64.b64decode(packed, validate=True)), formats=("PNG",)) as image:
            yield image
    except (binascii.Error, OSError, SyntaxError, Image.DecompressionBombError):
        raise ValueError("a mask that is not a PNG") from None


_RUN = re.compile(r"Raterscope (run \d+ \(.+)")


def run_in_description(dataset: Any) -> str:
    """Name the run of Raterscope in the description of a DICOM series; empty without one."""
    return run_in_title(text_of(str(dataset.get("SeriesDescription") or "")))


def run_in_title(title: str) -> str:
    """Name the run of Raterscope in the title of a file; empty without one."""
    match = _RUN.match(title)
    return "" if match is None else match[1]


_GENERAL = re.compile(
    r"(raterscope|rt[ _-]?struct(ure)?s?|rt[ _-]?ss|structure[ _-]?sets?|segmentations?|segs?|unknown|"
    r"none|default|unnamed|research)?[ _-]*\d*",
    re.IGNORECASE,
)
_ORIGINS = (
    ("ReviewerName", "reviewer"),
    ("StructureSetLabel", "structure set label"),
    ("StructureSetName", "structure set name"),
    ("SeriesDescription", "series description"),
)


def origins_of(dataset: Any) -> tuple[tuple[str, str], ...]:
    """Return the fields of a DICOM file that may name its annotator (not general words), and the series."""
    origins = []
    for keyword, words in _ORIGINS:
        name = text_of(str(dataset.get(keyword) or "").replace("^", " ")).strip()
        if not _GENERAL.fullmatch(name):
            origins.append((words, name))
    number = dataset.get("SeriesNumber")
    if number is not None:
        origins.append(("series number", f"series {int(number)}"))
    return tuple(origins)


def notices_of_run(run: str) -> tuple[str, ...]:
    """Return the notice that a file with the result of a run does not belong to a rater."""
    if not run:
        return ()
    return (
        f"This is a consensus of Raterscope, {run}, not of a rater. It is imported only if you name an "
        f"annotator (`raterscope import --annotator NAME`), or as truth (--kind truth).",
    )
