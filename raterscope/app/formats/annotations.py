"""Common form of annotations that every format yields: annotator, image, shape or answer.

A format's module parses a file once into a `Document`. Each kind of annotation (clicks, masks, labels) reads
its part of the document's sets. Shapes keep the file's values unchecked, so that a file with a bad polygon
still yields its points. The reader of a shape checks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from msgspec import Struct

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.untrusted import text_of

Content = Literal["points", "areas", "labels", "marks", "others"]
"""Marks are shapes on an image that are neither points nor areas; others have no position on an image."""

Kind = Literal["points", "masks", "labels"]
"""A kind of annotation; also the name of the package that reads it."""

_ANNOTATOR_KEYS = (
    "annotator", "annotator_id", "annotator_name", "rater", "reader", "worker_id", "worker", "user",
    "user_id", "username", "created_by", "completed_by",
)  # fmt: skip

_SHORT = 200
"""Characters of the longest name that is cached."""


class Item(Struct, frozen=True, gc=False):
    """An image or a task.

    Attributes
    ----------
    name : str
        The image's file name; empty if the file does not contain it.
    number : str
        Name of an item without a file name: "image 3", "task 7".
    width, height
        Pixels as in the file, not checked.
    field : str or None
        Field of the size in the file, for error messages; None if the size is optional.
    distinction : str
        Distinguishes tasks of the same name: "task 7", "subject 12".
    line : int or None
        Line of a table on which the item first appears.
    subject : str
        Number of the subject of Zooniverse.
    """

    name: str = ""
    number: str = ""
    width: Any = None
    height: Any = None
    field: str | None = None
    distinction: str = ""
    line: int | None = None
    subject: str = ""

    @property
    def title(self) -> str:
        """Name, or number if there is no name."""
        return self.name or self.number


class Points(Struct, frozen=True, gc=False):
    """One or more points.

    Attributes
    ----------
    pairs
        Pairs of x and y; with `triples` a flat list x, y, visibility, ..., where visibility 0 means no point.
    percent : bool
        Whether coordinates are in percent of the image's size instead of pixels.
    field : str
        Appended to the annotation's field in error messages.
    """

    pairs: Any
    triples: bool = False
    percent: bool = False
    field: str = ""


class Polygons(Struct, frozen=True, gc=False):
    """The union of one or more outlines, each a list of pairs or a flat list x, y, x, y, ..."""

    outlines: Any
    percent: bool = False


class RunLengths(Struct, frozen=True, gc=False):
    """A mask as run lengths, background first.

    Attributes
    ----------
    counts
        A list of lengths, or the string that COCO packs them into.
    rows, columns
        Size of the box that the runs fill.
    down : bool
        Whether runs go down the columns of the whole image, instead of along the rows of the box.
    top, left
        The box's first row and column.
    """

    counts: Any
    rows: Any
    columns: Any
    down: bool = False
    top: Any = 0
    left: Any = 0


class Brush(Struct, frozen=True, gc=False):
    """The packed runs of a Label Studio brush; see `masks.shapes.decode_studio_runs`."""

    packed: Any
    format: Any


class Ellipse(Struct, frozen=True, gc=False):
    """An ellipse: centre and radii along x and y by the file's own keys, rotated clockwise in degrees."""

    values: Mapping[str, Any]
    rotation: Any = 0.0
    percent: bool = False


class Circle(Struct, frozen=True, gc=False):
    """A circle, given by its centre and a point on it."""

    pairs: Any


class Rectangle(Struct, frozen=True, gc=False):
    """A bounding box: left, top, right, bottom by the file's own keys.

    Attributes
    ----------
    values : mapping of key to value
    rotation
        Degrees clockwise, about the centre or the first corner.
    about_corner : bool
        Whether the rotation is about the first corner; then the last two values are width and height.
    """

    values: Mapping[str, Any]
    rotation: Any = 0.0
    about_corner: bool = False
    percent: bool = False


class Corners(Struct, frozen=True, gc=False):
    """An area between two opposite corners, given as pairs."""

    pairs: Any


class Bitmap(Struct, frozen=True, gc=False):
    """A mask as a PNG in base64; its first pixel is at the first of `pairs`."""

    packed: Any
    pairs: Any


Area = Polygons | RunLengths | Brush | Ellipse | Circle | Rectangle | Corners | Bitmap
Shape = Points | Area


class Annotation(Struct, frozen=True, gc=False):
    """A mark on an image, or an answer about it.

    Attributes
    ----------
    noun : str
        Plural noun for the count of skipped annotations: "polygons".
    field : str
        Its field in the file, for error messages.
    shapes : tuple of Shape
        Empty for an answer, and for marks that no kind reads.
    label : str
        The class of the marked object.
    answers : tuple of str
        Classes of the whole image or task that were chosen together.
    question : str
        The question, if the file has several.
    wording : str
        The question as shown to annotators.
    problem : str
        Problem of the answers, for the error message.
    size : (width, height), optional
        Size of the image, if the annotation itself contains it; not checked.
    attributes : mapping of name to value
    """

    noun: str
    field: str
    shapes: tuple[Shape, ...] = ()
    label: str = ""
    answers: tuple[str, ...] = ()
    question: str = ""
    wording: str = ""
    problem: str = ""
    size: tuple[Any, Any] | None = None
    attributes: Mapping[str, Any] = {}


class AnnotationSet(Struct, frozen=True, gc=False):
    """Annotations by one annotator on one item.

    Attributes
    ----------
    annotator : str or None
        None if the file does not name one.
    is_complete : bool
        Whether the annotator looked at the complete item, even if they marked nothing.
    question : str or None
        A question about every item: a set without an answer to it counts as missing one.
    time : str
        Date and time as in the file.
    is_truth : bool
        Whether the file marks it as ground truth.
    """

    item: Item
    annotator: str | None
    annotations: Sequence[Annotation] = ()
    is_complete: bool = False
    question: str | None = None
    time: str = ""
    is_truth: bool = False


@dataclass
class Remarks:
    """Messages for the user about a file that was read.

    Attributes
    ----------
    left_out : Counter
        Number of skipped annotations by plural noun.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    notices: list[str] = field(default_factory=list)


class Document:
    """A parsed file of annotations; each format derives a class.

    Attributes
    ----------
    expected : mapping of Kind to str
        For each kind that the format can hold, the expected annotations, for the error message of a file
        without them.
    is_single : bool
        Whether the file holds annotations of one image by one annotator.
    is_own : bool
        Whether this program wrote it.
    is_text : bool
        Whether annotations stay text until they are read, which needs less memory.
    """

    expected: ClassVar[Mapping[Kind, str]] = {}
    is_single: ClassVar[bool] = False
    is_own: bool = False
    is_text: bool = False

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are. Raises `InputError` for a file that is damaged."""
        return frozenset({"areas"})

    def items(self) -> Sequence[Item]:
        """List the images that the file names separately from its annotations."""
        return ()

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the annotations.

        Raises `InputError` for an annotation that cannot be read, with its field.

        Parameters
        ----------
        kind : Kind
            The kind to read; shapes of other kinds may be missing.
        remarks : Remarks
            Collects the remarks for the user.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class AnnotationFormat:
    """Format of annotation files, which a plugin adds by an entry point of ``raterscope.formats``.

    Attributes
    ----------
    endings : tuple of str
        Endings of its files, in lower case: ".dots".
    read : callable
        ``read(path)`` parses a file once; it raises `raterscope.app.errors.InputError` for a damaged one.
    """

    endings: tuple[str, ...]
    read: Callable[[Path], Document]


def find_annotator(*sources: Any) -> str | None:
    """Return the annotator named by the first of some mappings, such as an object's attributes."""
    for source in sources:
        if isinstance(source, dict):
            for key in _ANNOTATOR_KEYS:
                value = source.get(key)
                if value is not None and (name := _short(value) if _is_short(value) else text_of(value)):
                    return name
    return None


def _is_short(value: Any) -> bool:
    return type(value) is str and len(value) <= _SHORT


@lru_cache(maxsize=1024)
def _short(value: str) -> str:
    return text_of(value)
