"""Collector of the points of one file: annotators, images and positions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import Annotation, Document, Points, Remarks
from raterscope.app.formats.records import ClickTable, PointTable, number_classes
from raterscope.app.formats.tables import FARTHEST, seconds_or_nan
from raterscope.app.formats.untrusted import is_number

UNKNOWN = ""
"""Placeholder for the name of an annotator or image that the file does not contain."""

STATES = ("accepted", "added", "skipped", "undecided")
"""States of an exported detection, by the expert's decision."""

_FIGURES = {"cluster", "votes", "posterior"}


@dataclass(frozen=True, eq=False)
class PointFile:
    """Content of a file of points."""

    clicks: ClickTable  # `UNKNOWN` is among its annotators and images if the file does not name them
    truth: PointTable | None = None  # points that the file itself marks as ground truth
    # whether the points include detections exported by this program, which no annotator marked
    detections: bool = False


@dataclass
class PointCollector:
    """Collector of the points of a file."""

    path: Path  # for messages
    detections: bool = False  # see `PointFile`
    left_out: Counter[str] = field(default_factory=Counter)  # number of skipped annotations by plural noun
    subjects: dict[str, str] = field(default_factory=dict)  # by image: subjects of Zooniverse
    _annotators: dict[str, int] = field(default_factory=dict)
    _images: dict[str, int] = field(default_factory=dict)
    _extents: dict[int, tuple[float, float]] = field(default_factory=dict)
    _looked: set[tuple[int, int]] = field(default_factory=set)
    _pieces: list[tuple[int, int, float, FloatArray]] = field(default_factory=list)
    _classes: list[str] = field(default_factory=list)
    _lines: dict[int, int] = field(default_factory=dict)
    _true: list[tuple[int, FloatArray]] = field(default_factory=list)

    def add_image(
        self, image: str | None, size: tuple[float, float] | None = None, line: int | None = None
    ) -> int:
        """Add an image, with its size and its line if known; return its index."""
        number = self._images.setdefault(image or UNKNOWN, len(self._images))
        if line is not None:
            self._lines.setdefault(number, line)
        if size is not None:
            self._extents.setdefault(number, size)
        return number

    def look(self, annotator: str | None, image: str | None) -> None:
        """Record that an annotator viewed an image."""
        annotator_index = self._annotators.setdefault(annotator or UNKNOWN, len(self._annotators))
        self._looked.add((annotator_index, self.add_image(image)))

    def add(
        self, annotator: str | None, image: str | None, points: FloatArray, time: float = math.nan,
        classes: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Add an annotator's points: (N, 2), x and y in pixels, the time in seconds, the class of each."""
        self.look(annotator, image)
        annotator_index = self._annotators[annotator or UNKNOWN]
        self._pieces.append((annotator_index, self.add_image(image), time, points))
        self._classes += [""] * len(points) if classes is None else classes

    def add_truth(self, image: str | None, points: FloatArray) -> None:
        """Add points of the ground truth, (N, 2)."""
        self._true.append((self.add_image(image), points))

    def file(self, expected: str, notices: Sequence[str] = ()) -> PointFile:
        """Return everything that was collected.

        Raises `InputError` for a file without points or views.

        `expected`: the expected annotations, for the error message of a file without points.
        """
        skipped = [f"{text} {count:,}" for text, count in self.left_out.items() if count]
        if not self._looked and not self._true:
            others = f" (it has {', '.join(skipped)})" if skipped else ""
            raise InputError(f"has no points{others}; expected {expected}", file=self.path)
        messages = [*notices]
        if skipped:
            messages.append(f"Skipped, because they are not points: {', '.join(skipped)}.")
        images = tuple(self._images)
        counts = [len(points) for *_, points in self._pieces]
        annotator, image, time = (np.repeat([piece[at] for piece in self._pieces], counts) for at in range(3))
        points = _concatenate([points for *_, points in self._pieces])
        classes, label, class_notices = number_classes(self._classes)
        clicks = ClickTable(
            path=self.path, annotators=tuple(self._annotators), images=images,
            annotator=annotator.astype(np.int64), image=image.astype(np.int64),
            x=points[:, 0], y=points[:, 1],
            time=time if np.isfinite(time).any() else None, looked=frozenset(self._looked),
            extents=self._extents, lines=tuple(self._lines[number] for number in sorted(self._lines)),
            notices=(*messages, *class_notices), classes=classes, label=label, subjects=self.subjects,
        )  # fmt: skip
        if not self._true:
            return PointFile(clicks, detections=self.detections)
        true_image = np.repeat(
            [number for number, _ in self._true], [len(points) for _, points in self._true]
        )
        true = _concatenate([points for _, points in self._true])
        truth = PointTable(
            path=self.path, images=images, image=true_image.astype(np.int64), x=true[:, 0], y=true[:, 1],
            extents=self._extents, searched=frozenset(number for number, _ in self._true),
        )  # fmt: skip
        return PointFile(clicks, truth, self.detections)


def is_detection(attributes: Mapping[str, object]) -> bool:
    """Return whether a point is a detection exported by this program, by its attributes.

    `attributes`: attributes, properties or measurements by name; the case of names is ignored.
    """
    values = {name.casefold(): value for name, value in attributes.items()}
    if values.get("state") in STATES:
        return values["state"] == "added" or not _FIGURES.isdisjoint(values)
    return values.keys() >= _FIGURES  # QuPath up to 0.4 stored measurements, not metadata


def position_array(pairs: object) -> FloatArray:
    """Convert decoded pairs of numbers to an array of positions, (N, 2); third numbers are ignored.

    An array is returned unchanged. Raises `ValueError` for any other value, and positions outside any
    possible image.
    """
    if isinstance(pairs, np.ndarray):
        return pairs
    pairs_read = []
    for pair in pairs if isinstance(pairs, (list, tuple)) else [None]:
        if not isinstance(pair, (list, tuple)) or not 2 <= len(pair) <= 3 or not all(map(is_number, pair)):
            raise ValueError("no pairs of numbers")
        pairs_read.append((float(pair[0]), float(pair[1])))
    points = np.array(pairs_read, dtype=np.float64).reshape(-1, 2)
    if not (np.abs(points) <= FARTHEST).all():
        raise ValueError("positions outside any possible image")
    return points


def size_of(width: object, height: object) -> tuple[float, float] | None:
    """Return the size of an image as floats; None if the values are not a size."""
    if is_number(width) and is_number(height) and 0 < width <= FARTHEST and 0 < height <= FARTHEST:
        return float(width), float(height)
    return None


def collect_points(path: Path, document: Document, watch: Watch = silent) -> PointFile:
    """Collect the points of a file's annotations.

    If the file does not state which images annotators viewed, a single annotator viewed all images, and
    several annotators viewed only the images that they marked. Raises `InputError` for points that cannot be
    read, and for a file without points.
    """
    collector = PointCollector(path)
    remarks = Remarks(collector.left_out)
    items = document.items()
    for item in items:
        collector.add_image(item.title, size_of(item.width, item.height))
    annotators: dict[str | None, None] = {}
    is_empty = True
    for annotation_set in document.sets("points", remarks, watch):
        is_empty, item = False, annotation_set.item
        title, size = item.title, size_of(item.width, item.height)
        collector.add_image(title, size, item.line)
        if item.subject:
            collector.subjects[title] = item.subject
        pieces: list[FloatArray] = []
        classes: list[str] = []
        for annotation in annotation_set.annotations:
            points = _points_of(path, annotation, size)
            if points is None:
                collector.left_out[annotation.noun] += 1
                continue
            pieces.append(points)
            own = is_detection(annotation.attributes)
            collector.detections |= own
            named = annotation.label not in ("", annotation_set.annotator) and not own
            classes += [annotation.label if named else ""] * len(points)
        if pieces and not annotation_set.is_truth:
            annotators[annotation_set.annotator] = None
        if annotation_set.is_truth:
            collector.add_truth(title, _concatenate(pieces))
        elif pieces or annotation_set.is_complete:
            collector.add(
                annotation_set.annotator, title, _concatenate(pieces), seconds_or_nan(annotation_set.time),
                classes,
            )  # fmt: skip
    if not annotators:
        collector.detections = document.is_own
    if len(annotators) == 1 or is_empty:
        (annotator,) = annotators or {None: None}
        for item in items:
            collector.look(annotator, item.title)
    return collector.file(document.expected["points"], remarks.notices)


def _points_of(path: Path, annotation: Annotation, size: tuple[float, float] | None) -> FloatArray | None:
    """Return the positions of an annotation in pixels; None for an annotation of another kind."""
    shape = next((shape for shape in annotation.shapes if isinstance(shape, Points)), None)
    if shape is None:
        return None
    try:
        if shape.percent and shape.pairs is None:
            raise ValueError("no value with x and y")
        points = _visible_points(shape.pairs) if shape.triples else position_array(shape.pairs)
        if not shape.percent:
            return points
        size = (None if annotation.size is None else size_of(*annotation.size)) or size
        if size is None:
            raise ValueError("no size of its image, original_width and original_height")
        return np.asarray(points / 100.0 * size)
    except ValueError as error:
        field = f"{annotation.field}{shape.field}"
        raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None


def _visible_points(keypoints: object) -> FloatArray:
    """Return the positions of x, y, v, x, y, v, ... where v is not 0."""
    if not isinstance(keypoints, list) or len(keypoints) % 3 or not all(map(is_number, keypoints)):
        raise ValueError("no triples of numbers, x, y and visibility")
    triples = zip(keypoints[::3], keypoints[1::3], keypoints[2::3], strict=True)
    return position_array([(x, y) for x, y, visibility in triples if visibility])


def _concatenate(pieces: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty((0, 2)), *pieces])
