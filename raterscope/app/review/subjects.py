"""Subjects of decisions, for each kind of annotation.

`kind` is the kind of annotation of a subject, `form` the name under which the study stores it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

from raterscope.algorithms.masks.registration import RigidMotion
from raterscope.app.coding import Coding
from raterscope.app.nouns import NOUNS
from raterscope.app.review.samples import SampleSubject
from raterscope.text import counted, part_of_one

STRUCTURES, PARASITES = "structures", "parasites"
"""Default nouns of the counted structures, plural: without, and with blood cells counted too."""

LONGEST_NOUN = 40

COUNTED = ("leukocytes", "red_cells", "leukocytes_per_microlitre", "red_cells_per_microlitre", "thickness")
LARGEST_PIXEL = 1e6
MAX_POINTS = 10_000

_FEWEST = {"length": 2, "area": 3}


class CompleteSubject:
    """Subject whose fields are sufficient for each of its verbs."""

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None


@dataclass(frozen=True, kw_only=True)
class ScaleSubject:
    """Scale of an image: set it, or restore the file's scale."""

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "scale"
    verbs: ClassVar[tuple[str, ...]] = ("scale", "unscale")

    pixel_size: float | None = None  # micrometres; None to restore the file's scale
    # whether it applies to all images, including later ones; else only to the decision's image
    everywhere: bool = False
    # (x, y, x, y): drawn line of known length, pixels
    line: tuple[float, float, float, float] | None = None
    length: float | None = None  # that length, micrometres

    def __post_init__(self) -> None:
        if self.pixel_size is not None and not 0 < self.pixel_size < LARGEST_PIXEL:
            raise ValueError(f"a pixel of {self.pixel_size} µm; expected a size above 0.")
        if not all(map(math.isfinite, self.line or ())):
            raise ValueError("a line that ends nowhere; expected finite numbers.")

    def refuse(self, verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return "pixel_size" if verb == "scale" and self.pixel_size is None else None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "set the scale to 0.105 µm a pixel, all images"."""
        where = ", all images" if self.everywhere else ""
        if verb == "unscale":
            return f"take the scale from the file{where}"
        return f"set the scale to {self.pixel_size:.4g} µm a pixel{where}"


@dataclass(frozen=True, kw_only=True)
class ShapeSubject(CompleteSubject):
    """A measured line or outline on an image: add, move, reshape or delete it.

    "move" shifts the whole shape, "reshape" some of its points. Both decisions contain the new shape.
    """

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "shape"
    verbs: ClassVar[tuple[str, ...]] = ("measure", "move", "reshape", "delete")

    shape: Literal["length", "area"]
    points: tuple[tuple[float, float], ...]  # tuple of (x, y): pixels; an outline returns to the first
    number: int  # number on screen, from 1 on each image

    def __post_init__(self) -> None:
        if not _FEWEST[self.shape] <= len(self.points) <= MAX_POINTS:
            raise ValueError(
                f"{len(self.points):,} points; expected {_FEWEST[self.shape]} to {MAX_POINTS:,}."
            )
        if not all(math.isfinite(value) for point in self.points for value in point):
            raise ValueError("a point of a shape is not finite; expected finite numbers.")

    def in_words(self, verb: str) -> str:
        """Describe the decision: "measure area 3"."""
        return f"{verb} {self.shape} {self.number}"


@dataclass(frozen=True, kw_only=True)
class CountingSubject(CompleteSubject):
    """Basis of counts: counted cells, their density, the film's thickness, and the noun of the structures."""

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "counting"
    verbs: ClassVar[tuple[str, ...]] = ("count",)

    everywhere: bool = True  # on all images together; else on the decision's image alone
    leukocytes: float | None = None  # counted there
    red_cells: float | None = None  # counted there
    # the patient's; None where they were not counted. Of all images.
    leukocytes_per_microlitre: float | None = None
    # the patient's; None where they were not counted. Of all images.
    red_cells_per_microlitre: float | None = None
    thickness: float | None = None  # of the film, micrometres. Of all images.
    noun: str = ""  # plural name of the structures that are counted; empty for a default. Of all images.

    def __post_init__(self) -> None:
        if len(self.noun) > LONGEST_NOUN:
            raise ValueError(f"a noun of {len(self.noun):,} letters; expected {LONGEST_NOUN} at most.")
        for name in COUNTED:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} of {value}; expected a number above 0.")

    def in_words(self, _verb: str) -> str:
        """Describe the decision: "count 200 leukocytes, all images"."""
        parts = (
            (self.leukocytes, "{:,.0f} leukocytes"),
            (self.red_cells, "{:,.0f} red cells"),
            (self.leukocytes_per_microlitre, "{:,.0f} leukocytes/µl"),
            (self.red_cells_per_microlitre, "{:,.0f} red cells/µl"),
            (self.thickness, "a film of {:g} µm"),
        )
        details = ", ".join(words.format(value) for value, words in parts if value is not None)
        where = ", all images" if self.everywhere else ""
        return f"count {details or f'{self.noun or STRUCTURES} alone'}{where}"


Box = tuple[int, int, int]

_BLIND = ", blind"


@dataclass(frozen=True, kw_only=True)
class SpotSubject:
    """A spot on an image of clicks: accept, reject, skip, add or move it; or reopen it."""

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "clicks"
    verbs: ClassVar[tuple[str, ...]] = ("accept", "reject", "skip", "add", "move", "reopen")

    # x, y: position of the spot, pixels; for a move, the new position
    x: float
    y: float
    number: int | None = None  # the number that it had on screen
    # from_x, from_y: for a move, the old position
    from_x: float | None = None
    from_y: float | None = None
    blind: bool = False  # whether votes, annotators and the model's answer were hidden
    label: str = ""  # class of an accepted, added or moved spot; empty if undecided

    def __post_init__(self) -> None:
        for name in ("x", "y", "from_x", "from_y"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} of a decision is {value}; expected a finite number.")

    def refuse(self, verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        if verb == "move" and (self.from_x is None or self.from_y is None):
            return "from_x and from_y"
        return None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "reject spot 12"."""
        noun = f"spot {self.number}" if self.number is not None else "a spot"
        if verb == "add" or self.number is None:
            noun += f" at {self.x:.0f}, {self.y:.0f}"
        if self.label:
            noun += f" as {self.label}"
        return f"{verb} {noun}{_BLIND if self.blind else ''}"


@dataclass(frozen=True, kw_only=True)
class SpotOf:
    """One of several spots with a common decision."""

    image: int  # the image's number in the study
    x: float
    y: float
    number: int | None = None  # as of a `SpotSubject`
    run: int | None = None  # the run whose result was on screen
    about: int | None = None  # an earlier decision on the spot

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise ValueError(f"a spot at {self.x}, {self.y}; expected finite numbers.")


@dataclass(frozen=True, kw_only=True)
class SpotsSubject:
    """Spots on one image or several: accept, reject or skip them all."""

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "spots"
    verbs: ClassVar[tuple[str, ...]] = ("accept", "reject", "skip")

    spots: tuple[SpotOf, ...]
    blind: bool = False  # as of a `SpotSubject`
    label: str = ""  # as of a `SpotSubject`

    @cached_property
    def by_image(self) -> dict[int, list[SpotOf]]:
        """The spots of each image."""
        by_image: dict[int, list[SpotOf]] = {}
        for spot in self.spots:
            by_image.setdefault(spot.image, []).append(spot)
        return by_image

    @property
    def images(self) -> tuple[int, ...]:
        """Images of the spots, without repetition."""
        return tuple(self.by_image)

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None if self.spots else "spots"

    def in_words(self, verb: str) -> str:
        """Describe the decision: "reject 14 spots in 3 images"."""
        count, images = len(self.spots), len(self.images)
        noun = f"{count:,} spots" if count > 1 else "1 spot"
        where = f" in {images:,} images" if images > 1 else ""
        where += f" as {self.label}" if self.label else ""
        return f"{verb} {noun}{where}{_BLIND if self.blind else ''}"


@dataclass(frozen=True, kw_only=True)
class ImageSubject(CompleteSubject):
    """An image of clicks: set or remove its flag or control mark.

    A positive control is known to hold structures, a negative one to hold none.
    """

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "image"
    verbs: ClassVar[tuple[str, ...]] = ("flag", "unflag", "positive", "negative", "uncontrol")

    name: str  # name of the image

    def in_words(self, verb: str) -> str:
        """Describe the decision: "flag the image", "mark as negative control"."""
        if verb == "uncontrol":
            return "mark as no control"
        return f"{verb} the image" if "flag" in verb else f"mark as {verb} control"


@dataclass(frozen=True, kw_only=True)
class WeightSubject(CompleteSubject):
    """Down-weight the decision's annotators in all kinds."""

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "weight"
    verbs: ClassVar[tuple[str, ...]] = ("weigh",)

    weight: float  # above 0 and below 1; full weight is restored by the verb include

    def __post_init__(self) -> None:
        if not 0 < self.weight < 1:
            raise ValueError(f"a weight of {self.weight}; expected a number above 0 and below 1.")

    def in_words(self, _verb: str) -> str:
        """Describe the weight: "at ½"."""
        return f"at {part_of_one(self.weight)}"


@dataclass(frozen=True, kw_only=True)
class RegionSubject:
    """A region of a structure: settle or skip its voxels, or reopen it for another decision.

    "accept" settles them as in the consensus, "take" as marked by one rater, "paint" as drawn by the expert.
    """

    kind: ClassVar[str] = "masks"
    form: ClassVar[str] = "masks"
    verbs: ClassVar[tuple[str, ...]] = ("accept", "take", "paint", "skip", "reopen")

    structure: str
    # origin, shape: (slice, row, column): box of the region in the whole image
    origin: Box
    shape: Box
    # number of the disputed region on screen; None for voxels painted elsewhere
    number: int | None = None
    rater: str = ""  # rater whose version is used
    # whether it is the whole structure, which settles every disputed region
    whole: bool = False
    blind: bool = False  # whether the raters' masks and the model's answer were hidden
    edit: str = ""  # how the voxels of "paint" were drawn, such as "smooth"; empty for the brush

    def __post_init__(self) -> None:
        if len(self.origin) != 3 or len(self.shape) != 3 or min(self.origin) < 0 or min(self.shape) < 1:
            raise ValueError(f"a region of {self.shape} at {self.origin}; expected a box of voxels.")

    def refuse(self, verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return "rater" if verb == "take" and not self.rater else None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "take rater 2 in region 3", "smooth on slices 77-84, blind"."""
        where = f"region {self.number}" if self.number is not None else _slices(self.origin, self.shape)
        if verb == "take":
            where = f"{self.rater} in {where}"
        elif verb == "paint" and self.whole:
            where = f"all of {self.structure}"
        elif verb == "paint" and self.number is not None:
            where = f"in {where}"
        elif self.edit:
            where = f"on {where}"
        return f"{self.edit or verb} {where}{_BLIND if self.blind else ''}"


def _slices(origin: Box, shape: Box) -> str:
    first, last = origin[0] + 1, origin[0] + shape[0]
    return f"slice {first}" if first == last else f"slices {first}-{last}"


@dataclass(frozen=True, kw_only=True)
class StructureSubject:
    """A structure of masks: set its coding in exports."""

    kind: ClassVar[str] = "masks"
    form: ClassVar[str] = "structure"
    verbs: ClassVar[tuple[str, ...]] = ("describe",)

    structure: str
    coding: Coding  # complete coding: it replaces the coding of the files

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None if self.structure else "structure"

    def in_words(self, verb: str) -> str:
        """Describe the decision: "describe liver as Liver, ORGAN"."""
        named = self.coding.type.meaning if self.coding.type is not None else ""
        meaning = ", ".join(part for part in (named, self.coding.role) if part)
        return f"{verb} {self.structure}{f' as {meaning}' if meaning else ''}"


@dataclass(frozen=True, kw_only=True)
class RegistrationSubject:
    """Another series of a case: register it with the case, or restore the position in its file."""

    kind: ClassVar[str] = "masks"
    form: ClassVar[str] = "registration"
    verbs: ClassVar[tuple[str, ...]] = ("register", "unregister")

    series: int  # the series' number in the study
    name: str  # name of the series
    motion: RigidMotion = field(default_factory=RigidMotion)
    information: float | None = None  # mutual information, nats; None for typed values
    overlap: float | None = None  # share of the smaller volume within the other

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "register PET: shift 6.2 mm, rotation 4.1°"."""
        if verb == "unregister":
            return f"take the position of {self.name} from the file"
        how = "" if self.information is not None else ", typed"
        motion = self.motion
        text = f"shift {motion.translation:.1f} mm, rotation {motion.angle:.1f}°"
        return f"register {self.name}: {text}{how}"


@dataclass(frozen=True, kw_only=True)
class TaskSubject:
    """A task of a question: set its true class, skip it, or reopen it for another decision."""

    kind: ClassVar[str] = "labels"
    form: ClassVar[str] = "labels"
    verbs: ClassVar[tuple[str, ...]] = ("label", "skip", "reopen")

    task: str
    label: str = ""  # name of the class; empty for a skipped task

    def refuse(self, verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return "label" if verb == "label" and not self.label else None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "label task 0417 supernova"."""
        return f"label {self.task} as {self.label}" if verb == "label" else f"{verb} {self.task}"


@dataclass(frozen=True, kw_only=True)
class GoldSubject:
    """A task of a question: mark it as a gold task, whose class is known, or remove that mark."""

    kind: ClassVar[str] = "labels"
    form: ClassVar[str] = "gold"
    verbs: ClassVar[tuple[str, ...]] = ("gold", "ungold")

    task: str
    label: str = ""  # name of the known class

    def refuse(self, verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return "label" if verb == "gold" and not self.label else None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "mark task 0417 as gold task, supernova"."""
        if verb == "gold":
            return f"mark {self.task} as gold task, {self.label}"
        return f"remove the gold mark of {self.task}"


@dataclass(frozen=True, kw_only=True)
class BiasSubject(CompleteSubject):
    """An annotator of pairs: flag or clear position bias, skip, or reopen for another decision."""

    kind: ClassVar[str] = "pairs"
    form: ClassVar[str] = "pairs"
    verbs: ClassVar[tuple[str, ...]] = ("flag", "clear", "skip", "reopen")

    annotator: str

    def in_words(self, verb: str) -> str:
        """Describe the decision: "flag annotator 70"."""
        return f"{verb} annotator {self.annotator}"


@dataclass(frozen=True, kw_only=True)
class GroupsSubject(CompleteSubject):
    """Groups of all images, such as patients or slides; they replace earlier groups."""

    kind: ClassVar[str] = ""  # images are of clicks or masks
    form: ClassVar[str] = "groups"
    verbs: ClassVar[tuple[str, ...]] = ("group",)
    everywhere: ClassVar[bool] = True

    groups: dict[str, tuple[int, ...]]  # numbers of the images in the study; empty for no groups

    def in_words(self, _verb: str) -> str:
        """Describe the decision: "group 12 images in 3 groups"."""
        images, groups = sum(map(len, self.groups.values())), len(self.groups)
        if not groups:
            return "remove the groups of the images"
        return f"group {counted(images, 'image')} in {counted(groups, 'group')}"


OfClicks = (
    SpotSubject | SpotsSubject | ImageSubject | WeightSubject | ScaleSubject | ShapeSubject | CountingSubject
)

NAMED = {"masks": "structure", "clicks": "class"}


@dataclass(frozen=True, kw_only=True)
class NameSubject:
    """Name of a structure or of a class of clicks in all images: change it, or merge it with another."""

    form: ClassVar[str] = "name"
    verbs: ClassVar[tuple[str, ...]] = ("rename", "merge")

    of: str  # kind of annotation: masks or clicks
    name: str  # current name
    new: str  # new name; the name of another structure or class if both are merged

    def __post_init__(self) -> None:
        if self.of not in NAMED:
            raise ValueError(f"a name of {self.of!r}; expected one of {', '.join(NAMED)}.")

    @property
    def kind(self) -> str:
        """Kind of annotation."""
        return self.of

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None if self.name and self.new and self.name != self.new else "another name"

    def in_words(self, verb: str) -> str:
        """Describe the decision: "rename structure gtv to GTV"."""
        return f"{verb} {NAMED[self.of]} {self.name} {'to' if verb == 'rename' else 'with'} {self.new}"


_NEAR = 3.0
"""Maximum distance, in pixels, of a spot in another run that shares a spot's comments and bookmarks."""

_COMMENT_WORDS = {
    "comment": "comment on",
    "uncomment": "remove the comment on",
    "bookmark": "bookmark",
    "unbookmark": "remove the bookmark of",
}


@dataclass(frozen=True, kw_only=True)
class CommentSubject:
    """Subject of a comment or bookmark; the text of a comment is the reason of the decision."""

    form: ClassVar[str] = "comment"
    verbs: ClassVar[tuple[str, ...]] = tuple(_COMMENT_WORDS)

    of: str  # kind of annotation
    name: str = ""  # name of the structure, task or annotator; empty for a spot, an image or a question
    number: int | None = None  # number of a spot or region on screen
    # x, y: position of a spot, pixels
    x: float | None = None
    y: float | None = None
    # origin, shape: box of a region, voxels; empty for other subjects
    origin: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.of not in NOUNS:
            raise ValueError(f"a comment on {self.of!r}; expected one of {', '.join(NOUNS)}.")

    @property
    def kind(self) -> str:
        """Kind of annotation."""
        return self.of

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "comment on spot 12", "remove the bookmark of the image"."""
        return f"{_COMMENT_WORDS[verb]} {self.noun()}"

    @property
    def box(self) -> tuple[Box, Box] | None:
        """Origin and shape of a region; None for other subjects."""
        if len(self.origin) != 3 or len(self.shape) != 3:
            return None
        (slice_, row, column), (slices, rows, columns) = self.origin, self.shape
        return (slice_, row, column), (slices, rows, columns)

    def noun(self) -> str:
        """Name the subject: "spot 12", "liver, region 3", "task t7", "the image"."""
        if self.x is not None:
            return "a spot" if self.number is None else f"spot {self.number}"
        if self.of == "masks" and self.name:
            return self.name if self.number is None else f"{self.name}, region {self.number}"
        nouns = NOUNS[self.of]
        return f"{nouns.detail} {self.name}" if self.name else f"the {nouns.item}"

    def matches(self, other: CommentSubject) -> bool:
        """Return whether another subject of the same item is the same spot, region, task or item.

        Boxes are of the same region if their intersection is at least half of their union.
        """
        if self.name != other.name or (self.x is None) != (other.x is None):
            return False
        if self.x is not None and self.y is not None and other.x is not None and other.y is not None:
            return math.hypot(self.x - other.x, self.y - other.y) <= _NEAR
        if len(self.origin) != len(other.origin):
            return False
        sides = zip(self.origin, self.shape, other.origin, other.shape, strict=True)
        shared = math.prod(max(0, min(a + size, b + length) - max(a, b)) for a, size, b, length in sides)
        return 2 * shared >= math.prod(self.shape) + math.prod(other.shape) - shared


Subject = (
    OfClicks
    | RegionSubject
    | StructureSubject
    | RegistrationSubject
    | TaskSubject
    | GoldSubject
    | BiasSubject
    | SampleSubject
    | CommentSubject
    | NameSubject
    | GroupsSubject
)
SUBJECTS: dict[str, type[Any]] = {subject.form: subject for subject in get_args(Subject)}
"""Subjects of decisions, by the name under which the study stores them."""
