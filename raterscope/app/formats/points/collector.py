"""Collector of the points of one file: annotator, image and position where the file has them."""

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
from raterscope.app.formats.records import ClickTable, PointTable
from raterscope.app.formats.tables import FARTHEST, seconds_or_nan
from raterscope.app.formats.untrusted import is_number

__all__ = [
    "STATES", "UNKNOWN", "PointCollector", "PointFile", "is_detection", "places_of", "size_of", "take_points",
]  # fmt: skip

UNKNOWN = ""
"""In the place of an annotator's or image's name: the file does not tell it."""

STATES = ("accepted", "added", "skipped", "undecided")
"""Of a detection that leaves: what the expert said of it."""

_FIGURES = {"cluster", "votes", "posterior"}


@dataclass(frozen=True, eq=False)
class PointFile:
    """What a file of points holds.

    Attributes
    ----------
    clicks : ClickTable
        `UNKNOWN` is among its annotators and images where the file does not tell them.
    truth : PointTable or None
        Points that the file itself calls true.
    detections : bool
        Whether there are detections among them that left this program, which nobody marked.
    """

    clicks: ClickTable
    truth: PointTable | None = None
    detections: bool = False


@dataclass
class PointCollector:
    """Collects the points of a file.

    Attributes
    ----------
    path : Path
        For sentences.
    left_out : Counter
        What was not read, in words, with how often.
    detections : bool
        See `PointFile`.
    """

    path: Path
    detections: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    _annotators: dict[str, int] = field(default_factory=dict)
    _images: dict[str, int] = field(default_factory=dict)
    _extents: dict[int, tuple[float, float]] = field(default_factory=dict)
    _looked: set[tuple[int, int]] = field(default_factory=set)
    _pieces: list[tuple[int, int, float, FloatArray]] = field(default_factory=list)
    _lines: dict[int, int] = field(default_factory=dict)
    _true: list[tuple[int, FloatArray]] = field(default_factory=list)

    def picture(
        self, image: str | None, size: tuple[float, float] | None = None, line: int | None = None
    ) -> int:
        """Note an image, with its width and height and its line where they are known; gives its number."""
        number = self._images.setdefault(image or UNKNOWN, len(self._images))
        if line is not None:
            self._lines.setdefault(number, line)
        if size is not None:
            self._extents.setdefault(number, size)
        return number

    def look(self, annotator: str | None, image: str | None) -> None:
        """Note that somebody looked at an image."""
        who = self._annotators.setdefault(annotator or UNKNOWN, len(self._annotators))
        self._looked.add((who, self.picture(image)))

    def add(
        self, annotator: str | None, image: str | None, places: FloatArray, time: float = math.nan
    ) -> None:
        """Add an annotator's points: (N, 2), x and y in pixels, and the time in seconds."""
        self.look(annotator, image)
        who = self._annotators[annotator or UNKNOWN]
        self._pieces.append((who, self.picture(image), time, places))

    def add_truth(self, image: str | None, places: FloatArray) -> None:
        """Add true places, (N, 2)."""
        self._true.append((self.picture(image), places))

    def file(self, expected: str, notices: Sequence[str] = ()) -> PointFile:
        """Give all that was collected.

        Parameters
        ----------
        expected : str
            What the file was expected to have, for the sentence that refuses it.
        notices : sequence of str

        Raises
        ------
        InputError
            For a file in which nobody marked anything or looked at anything.
        """
        left = [f"{words} {count:,}" for words, count in self.left_out.items() if count]
        if not self._looked and not self._true:
            beside = f" (it has {', '.join(left)})" if left else ""
            raise InputError(f"has no points{beside}; expected {expected}", file=self.path)
        said = [*notices]
        if left:
            said.append(f"Left out, for they are no points: {', '.join(left)}.")
        images = tuple(self._images)
        counts = [len(places) for *_, places in self._pieces]
        who, image, time = (np.repeat([piece[at] for piece in self._pieces], counts) for at in range(3))
        places = _joined([one for *_, one in self._pieces])
        clicks = ClickTable(
            path=self.path, annotators=tuple(self._annotators), images=images,
            annotator=who.astype(np.int64), image=image.astype(np.int64), x=places[:, 0], y=places[:, 1],
            time=time if np.isfinite(time).any() else None, looked=frozenset(self._looked),
            extents=self._extents, lines=tuple(self._lines[number] for number in sorted(self._lines)),
            notices=tuple(said),
        )  # fmt: skip
        if not self._true:
            return PointFile(clicks, detections=self.detections)
        where = np.repeat([one for one, _ in self._true], [len(places) for _, places in self._true])
        true = _joined([one for _, one in self._true])
        truth = PointTable(
            path=self.path, images=images, image=where.astype(np.int64), x=true[:, 0], y=true[:, 1],
            extents=self._extents, searched=frozenset(one for one, _ in self._true),
        )  # fmt: skip
        return PointFile(clicks, truth, self.detections)


def is_detection(told: Mapping[str, object]) -> bool:
    """Tell by what is told of a point whether it is a detection that left this program.

    Parameters
    ----------
    told : mapping of name to value
        Attributes, properties or measurements, whatever the case of their names.
    """
    known = {name.casefold(): value for name, value in told.items()}
    if known.get("state") in STATES:
        return known["state"] == "added" or not _FIGURES.isdisjoint(known)
    return known.keys() >= _FIGURES  # QuPath up to 0.4 kept measurements, not metadata


def places_of(pairs: object) -> FloatArray:
    """Make decoded pairs of numbers an array of places, (N, 2); a third number of a pair is a height.

    An array that was made so before stays as it is.

    Raises
    ------
    ValueError
        For what are no pairs of numbers, or places farther out than any image reaches.
    """
    if isinstance(pairs, np.ndarray):
        return pairs
    found = []
    for pair in pairs if isinstance(pairs, (list, tuple)) else [None]:
        if not isinstance(pair, (list, tuple)) or not 2 <= len(pair) <= 3 or not all(map(is_number, pair)):
            raise ValueError("no pairs of numbers")
        found.append((float(pair[0]), float(pair[1])))
    places = np.array(found, dtype=np.float64).reshape(-1, 2)
    if not (np.abs(places) <= FARTHEST).all():
        raise ValueError("places farther out than any image reaches")
    return places


def size_of(width: object, height: object) -> tuple[float, float] | None:
    """Give the size of an image where a file tells it."""
    if is_number(width) and is_number(height) and 0 < width <= FARTHEST and 0 < height <= FARTHEST:
        return float(width), float(height)
    return None


def take_points(path: Path, document: Document, watch: Watch = silent) -> PointFile:
    """Take the points of a file's annotations.

    Where the file does not say who looked at which image, an annotator who is alone in it looked at all of
    its images; of several it is known only where they marked.

    Raises
    ------
    InputError
        For points that cannot be read, and for a file without points.
    """
    gathering = PointCollector(path)
    remarks = Remarks(gathering.left_out)
    items = document.items()
    for item in items:
        gathering.picture(item.title, size_of(item.width, item.height))
    people: dict[str | None, None] = {}
    is_empty = True
    for one in document.sets("points", remarks, watch):
        is_empty = False
        title, size = one.item.title, size_of(one.item.width, one.item.height)
        gathering.picture(title, size, one.item.line)
        pieces = []
        for annotation in one.annotations:
            found = _points_of(path, annotation, size)
            if found is None:
                gathering.left_out[annotation.noun] += 1
                continue
            pieces.append(found)
            gathering.detections |= is_detection(annotation.attributes)
        if pieces and not one.is_truth:
            people[one.annotator] = None
        if one.is_truth:
            gathering.add_truth(title, _joined(pieces))
        elif pieces or one.is_complete:
            gathering.add(one.annotator, title, _joined(pieces), seconds_or_nan(one.time))
    if not people:
        gathering.detections = document.is_own
    if len(people) == 1 or is_empty:
        (alone,) = people or {None: None}
        for item in items:
            gathering.look(alone, item.title)
    return gathering.file(document.expected["points"], remarks.notices)


def _points_of(path: Path, annotation: Annotation, size: tuple[float, float] | None) -> FloatArray | None:
    """Give the places of an annotation in pixels; None for one of another kind."""
    shape = next((shape for shape in annotation.shapes if isinstance(shape, Points)), None)
    if shape is None:
        return None
    try:
        if shape.percent and shape.pairs is None:
            raise ValueError("no value with x and y")
        places = _labelled(shape.pairs) if shape.triples else places_of(shape.pairs)
        if not shape.percent:
            return places
        size = (None if annotation.size is None else size_of(*annotation.size)) or size
        if size is None:
            raise ValueError("no size of its image, original_width and original_height")
        return np.asarray(places / 100.0 * size)
    except ValueError as error:
        field = f"{annotation.field}{shape.field}"
        raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None


def _labelled(keypoints: object) -> FloatArray:
    """Give the places of x, y, v, x, y, v, ... where v is not 0."""
    if not isinstance(keypoints, list) or len(keypoints) % 3 or not all(map(is_number, keypoints)):
        raise ValueError("no triples of numbers, x, y and visibility")
    triples = zip(keypoints[::3], keypoints[1::3], keypoints[2::3], strict=True)
    return places_of([(x, y) for x, y, visibility in triples if visibility])


def _joined(pieces: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty((0, 2)), *pieces])
