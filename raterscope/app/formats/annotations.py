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
"""Content of annotations: "marks" are shapes on an image that are neither points nor areas; "others" have no
position.
"""

Kind = Literal["points", "masks", "labels"]
"""A kind of annotation; also the name of the package that reads it."""

_ANNOTATOR_KEYS = (
    "annotator", "annotator_id", "annotator_name", "rater", "reader", "worker_id", "worker", "user",
    "user_id", "username", "created_by", "completed_by",
)  # fmt: skip

JOINT = " + "
"""Separator of answers that were chosen together."""

_SHORT = 200
"""Maximum length of a name that is cached, characters."""


class Item(Struct, frozen=True, gc=False):
    """Image or task."""

    name: str = ""  # the image's file name; empty if the file does not contain it
    number: str = ""  # name of an item without a file name: "image 3", "task 7"
    # width, height: size in pixels as in the file, not checked
    width: Any = None
    height: Any = None
    # field of the size in the file, for error messages; None if the size is optional
    field: str | None = None
    distinction: str = ""  # distinguishes tasks of the same name: "task 7", "subject 12"
    line: int | None = None  # line of a table on which the item first appears
    subject: str = ""  # number of the subject of Zooniverse

    @property
    def title(self) -> str:
        """Name, or number if there is no name."""
        return self.name or self.number


class Points(Struct, frozen=True, gc=False):
    """Shape that consists of one or more points."""

    # pairs of x and y; with `triples` a flat list x, y, visibility, ..., where visibility 0 means no point
    pairs: Any
    triples: bool = False
    percent: bool = False  # whether coordinates are in percent of the image's size instead of pixels
    field: str = ""  # appended to the annotation's field in error messages


class Polygons(Struct, frozen=True, gc=False):
    """Union of one or more outlines, each a list of pairs or a flat list x, y, x, y, ......"""

    outlines: Any
    percent: bool = False


class RunLengths(Struct, frozen=True, gc=False):
    """Mask as run lengths, background first."""

    counts: Any  # a list of lengths, or the string that COCO packs them into
    # rows, columns: size of the box that contains the runs
    rows: Any
    columns: Any
    # whether runs go down the columns of the whole image, instead of along the rows of the box
    down: bool = False
    # top, left: the box's first row and column
    top: Any = 0
    left: Any = 0


class Brush(Struct, frozen=True, gc=False):
    """Packed runs of a Label Studio brush; see `masks.shapes.decode_studio_runs`."""

    packed: Any
    format: Any


class Ellipse(Struct, frozen=True, gc=False):
    """Ellipse: centre and radii along x and y by the file's own keys, and clockwise rotation in degrees."""

    values: Mapping[str, Any]
    rotation: Any = 0.0
    percent: bool = False


class Circle(Struct, frozen=True, gc=False):
    """Circle, given by its centre and a point on it."""

    pairs: Any


class Rectangle(Struct, frozen=True, gc=False):
    """Bounding box: left, top, right, bottom by the file's own keys."""

    values: Mapping[str, Any]  # by key
    rotation: Any = 0.0  # degrees clockwise, about the centre or the first corner
    # whether the rotation is about the first corner; then the last two values are width and height
    about_corner: bool = False
    percent: bool = False


class Corners(Struct, frozen=True, gc=False):
    """Rectangle between two opposite corners, given as pairs."""

    pairs: Any


class Bitmap(Struct, frozen=True, gc=False):
    """Mask as a PNG in base64; its first pixel is at the first of `pairs`."""

    packed: Any
    pairs: Any


Area = Polygons | RunLengths | Brush | Ellipse | Circle | Rectangle | Corners | Bitmap
Shape = Points | Area


class Annotation(Struct, frozen=True, gc=False):
    """Mark on an image, or answer about an image or task."""

    noun: str  # plural noun for the count of skipped annotations: "polygons"
    field: str  # its field in the file, for error messages
    shapes: tuple[Shape, ...] = ()  # empty for an answer, and for marks that no kind reads
    label: str = ""  # the class of the marked object
    answers: tuple[str, ...] = ()  # classes of the whole image or task that were chosen together
    question: str = ""  # the question, if the file has several
    wording: str = ""  # the question as shown to annotators
    problem: str = ""  # problem of the answers, for the error message
    # (width, height): size of the image, if the annotation itself contains it; not checked
    size: tuple[Any, Any] | None = None
    attributes: Mapping[str, Any] = {}  # by name


class AnnotationSet(Struct, frozen=True, gc=False):
    """Annotations of one annotator on one item."""

    item: Item
    annotator: str | None  # none if the file does not name one
    annotations: Sequence[Annotation] = ()
    # whether the annotator viewed the complete item, even without marks
    is_complete: bool = False
    # a question about every item: a set without an answer counts as unanswered
    question: str | None = None
    time: str = ""  # date and time as in the file
    is_truth: bool = False  # whether the file marks it as ground truth


@dataclass
class Remarks:
    """Messages for the user about a file that was read."""

    left_out: Counter[str] = field(default_factory=Counter)  # number of skipped annotations by plural noun
    notices: list[str] = field(default_factory=list)


class Document:
    """Parsed file of annotations; each format derives a class."""

    # expected annotations by Kind, for each kind that the format can contain; used in the error message for a
    # file without them
    expected: ClassVar[Mapping[Kind, str]] = {}
    is_single: ClassVar[bool] = False  # whether the file holds annotations of one image by one annotator
    is_own: bool = False  # whether this program wrote it
    run: str = ""  # title of the file, if it has one: names the run of this program whose result it is
    is_text: bool = False  # whether annotations stay text until they are read, which needs less memory

    def contents(self) -> frozenset[Content]:
        """Find the sorts of annotations in the file. Raises `InputError` for a file that is damaged."""
        return frozenset({"areas"})

    def items(self) -> Sequence[Item]:
        """List the images that the file lists separately from its annotations."""
        return ()

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the annotations.

        Raises `InputError` for an annotation that cannot be read, with its field.

        `kind`: the kind to read; shapes of other kinds may be missing. `remarks`: collects the messages for
        the user.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class AnnotationFormat:
    """Format of annotation files, which a plugin adds by an entry point of ``raterscope.formats``."""

    endings: tuple[str, ...]  # endings of its files, in lower case: ".dots"
    # ``read(path)`` parses a file once; it raises `raterscope.app.errors.InputError` for a damaged one
    read: Callable[[Path], Document]


def join_choices(choices: list[str]) -> str:
    """Join answers that were chosen together to one answer, whatever their order."""
    return JOINT.join(sorted(set(choices), key=str.casefold))


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
