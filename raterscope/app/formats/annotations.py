"""Neutral annotations that every format yields: annotator, image, shape or answer.

A format's module parses a file once into a `Document`. Each kind of annotation (clicks, masks, labels) takes
from its sets what belongs to it. Shapes keep the values of the file, which nobody has checked: a file with a
bad polygon still gives its points. Who takes a shape checks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

from msgspec import Struct

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.untrusted import text_of

__all__ = [
    "Annotation", "AnnotationSet", "Area", "Bitmap", "Brush", "Circle", "Content", "Corners", "Document",
    "Ellipse", "Item", "Kind", "Points", "Polygons", "Rectangle", "Remarks", "RunLengths", "Shape",
    "find_annotator",
]  # fmt: skip

Content = Literal["points", "areas", "labels", "marks", "others"]
"""Marks are shapes on an image that are neither points nor areas; others have no place on an image."""

Kind = Literal["points", "masks", "labels"]
"""A kind of annotation, as its readers are named."""

_ANNOTATOR_KEYS = (
    "annotator", "annotator_id", "annotator_name", "rater", "reader", "worker_id", "worker", "user",
    "user_id", "username", "created_by", "completed_by",
)  # fmt: skip

_SHORT = 200
"""Letters of a name that is worth remembering."""


class Item(Struct, frozen=True, gc=False):
    """An image or a task.

    Attributes
    ----------
    name : str
        The image's file name; empty where the file does not give it.
    number : str
        What an item without a name is called: "image 3", "task 7".
    width, height
        Pixels as the file has them, not checked.
    field : str or None
        Where in the file the size is, for error messages; None where a file need not have it.
    distinction : str
        What tells tasks of one name apart: "task 7", "subject 12".
    line : int or None
        Line of a table on which the item comes first.
    """

    name: str = ""
    number: str = ""
    width: Any = None
    height: Any = None
    field: str | None = None
    distinction: str = ""
    line: int | None = None

    @property
    def title(self) -> str:
        """Name, or number where there is no name."""
        return self.name or self.number


class Points(Struct, frozen=True, gc=False):
    """One or more points.

    Attributes
    ----------
    pairs
        Pairs of x and y; with `triples` a flat list x, y, visibility, ..., where visibility 0 is no point.
    percent : bool
        Whether places are in percent of the image's size instead of pixels.
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
    """The packed runs of a Label Studio brush; see `masks.shapes.studio_runs`."""

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
    """A box that says where something is: left, top, right, bottom by the file's own keys.

    Attributes
    ----------
    values : mapping of key to value
    rotation
        Degrees clockwise, about the centre or about the first corner.
    about_corner : bool
        Then the last two values are width and height.
    percent : bool
    """

    values: Mapping[str, Any]
    rotation: Any = 0.0
    about_corner: bool = False
    percent: bool = False


class Corners(Struct, frozen=True, gc=False):
    """An area between two opposite corners, given as pairs."""

    pairs: Any


class Bitmap(Struct, frozen=True, gc=False):
    """A mask as a PNG in base64, whose first pixel lies at the first of `pairs`."""

    packed: Any
    pairs: Any


Area = Polygons | RunLengths | Brush | Ellipse | Circle | Rectangle | Corners | Bitmap
Shape = Points | Area


class Annotation(Struct, frozen=True, gc=False):
    """A mark on an image, or an answer about it.

    Attributes
    ----------
    noun : str
        What it is, in the plural, for the count of what was left out: "polygons".
    field : str
        Where in the file it is, for error messages.
    shapes : tuple of Shape
        Empty for an answer, and for marks that no kind takes.
    label : str
        The class of what is marked.
    answers : tuple of str
        Classes of the whole image or task that were chosen together.
    question : str
        What they answer, where the file asks several questions.
    wording : str
        The question as annotators read it.
    problem : str
        What is wrong with the answers, for the error message.
    size : (width, height), optional
        Of the image, where the annotation itself gives it; not checked.
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
    """What one annotator marked on one item.

    Attributes
    ----------
    item : Item
    annotator : str or None
        None where the file does not name one.
    annotations : sequence of Annotation
    is_complete : bool
        Whether the annotator looked at the item and marked all that they saw, be it nothing.
    question : str or None
        The question that was asked about every item: a set without an answer to it lacks one.
    time : str
        Date and time as the file has it.
    is_truth : bool
        Whether the file calls it the ground truth.
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
    """What to tell the user about a file that was read.

    Attributes
    ----------
    left_out : Counter
        Plural nouns of what was not read, with how often.
    notices : list of str
    """

    left_out: Counter[str] = field(default_factory=Counter)
    notices: list[str] = field(default_factory=list)


class Document:
    """A file of annotations that was parsed: each format has a class of its own.

    Attributes
    ----------
    expected : mapping of Kind to str
        For each kind that the format can hold, what a file was expected to have, for the message that
        refuses a file without it.
    is_single : bool
        Whether the file is one annotator's of one image.
    is_own : bool
        Whether this program wrote it.
    is_text : bool
        Whether annotations stay text until they are taken, which needs less memory.
    """

    expected: ClassVar[Mapping[Kind, str]] = {}
    is_single: ClassVar[bool] = False
    is_own: bool = False
    is_text: bool = False

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are.

        Raises
        ------
        InputError
            For a file that is damaged.
        """
        return frozenset({"areas"})

    def items(self) -> Sequence[Item]:
        """List the images that the file names beside its annotations."""
        return ()

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the annotations.

        Parameters
        ----------
        kind : Kind
            What is to be taken: shapes of other kinds need not be there.
        remarks : Remarks
            Collects the remarks for the user.
        watch : Watch

        Raises
        ------
        InputError
            For what cannot be read, with its field.
        """
        raise NotImplementedError


def find_annotator(*sources: Any) -> str | None:
    """Give the annotator that the first of some mappings names, such as an object's attributes."""
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
