"""Records of a study other than the arrays of an algorithm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import msgspec
import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.masks.data import BoolArray, Float32Array
from raterscope.algorithms.masks.grid import Grid, plane_grid
from raterscope.app.errors import plain
from raterscope.text import counted


class Item(Protocol):
    """Item of a run's result: an image of clicks or masks, a question of labels or pairs."""

    @property
    def id(self) -> int:
        """Number in the study, within its kind."""

    @property
    def name(self) -> str:
        """Display name."""


@dataclass(frozen=True)
class ImageEntry:
    """Image as stored in the study.

    Attributes
    ----------
    id : int
    name : str
    path : str or None
        Stored path: relative to the study if beside or below it; None while only the size is known.
    width, height : float
        Pixels.
    size : int or None
        Size of the file, bytes.
    digest : str or None
        Digest of the file's content, see `references`.
    pixel_size : float or None
        Micrometres.
    grid : Grid or None
        The geometry of a volume; None for a plain image.
    modality : str
        DICOM's name of the modality; empty if unknown.
    identifier : str
        UID of a DICOM series, whose `path` is a folder; otherwise empty.
    """

    id: int
    name: str
    path: str | None
    width: float
    height: float
    size: int | None = None
    digest: str | None = None
    pixel_size: float | None = None
    grid: Grid | None = None
    modality: str = ""
    identifier: str = ""

    @property
    def lattice(self) -> Grid:
        """Geometry; of a plain image, pixels of unknown size."""
        return self.grid or plane_grid(round(self.height), round(self.width))

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        return (0.0, 0.0, self.width, self.height)


@dataclass(frozen=True)
class Scheme:
    """Meaning of the answers to a question, as the curator sets it."""

    outputs: tuple[str, ...]  # possible answers, in order
    classes: tuple[str, ...]  # possible classes, in order
    meaning: tuple[int, ...]  # class of each output, -1 for an output without a class
    # tuple of rows of pseudo-counts: prior of every annotator's confusion matrix, a row for each class and a
    # number for each output
    prior: tuple[tuple[float, ...], ...] | None = None
    # whether the classes are grades, from the lowest to the highest; None to detect it from the votes
    ordered: bool | None = None

    def __post_init__(self) -> None:
        for names in (self.outputs, self.classes):
            if len(set(names)) != len(names):
                raise ValueError(f"{names}: expected each name once.")
        if len(self.meaning) != len(self.outputs) or any(
            not -1 <= class_index < len(self.classes) for class_index in self.meaning
        ):
            raise ValueError("an output represents a class that does not exist.")
        if self.prior is not None and (
            len(self.prior) != len(self.classes)
            or any(len(row) != len(self.outputs) for row in self.prior)
            or not all(0 < value < math.inf for row in self.prior for value in row)
        ):
            raise ValueError("the prior is not a table of numbers above 0, with classes by outputs.")


@dataclass(frozen=True)
class QuestionEntry:
    """A question that annotators answered by labels: its number in the study, its name, its scheme."""

    id: int
    name: str
    scheme: Scheme


@dataclass(frozen=True)
class PairQuestion:
    """A question that annotators answered by comparing pairs: its number in the study and its name."""

    id: int
    name: str


@dataclass(frozen=True, eq=False)
class TruePoints:
    """Imported true points on one image.

    Attributes
    ----------
    x, y : (K,) float64
        Pixels.
    known : bool
        Whether the truth of the image was imported, even if it contains nothing.
    """

    x: FloatArray
    y: FloatArray
    known: bool

    @property
    def positions(self) -> FloatArray:
        """Coordinates, (K, 2)."""
        return np.column_stack([self.x, self.y])

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class MaskRecord:
    """Mask in its stored form: voxels as bool values or probabilities, cropped."""

    origin: tuple[int, int, int]  # (slice, row, column): the first voxel in the whole image
    mask: BoolArray | None  # (Z, Y, X)
    probability: Float32Array | None  # (Z, Y, X)

    @property
    def values(self) -> BoolArray | Float32Array:
        """Mask or probabilities, whichever is stored."""
        values = self.mask if self.probability is None else self.probability
        return np.zeros((0, 0, 0), dtype=bool) if values is None else values


@dataclass(frozen=True, eq=False)
class MarksRecord:
    """Stored marks of one import on one image."""

    # x, y: (N,)
    x: FloatArray
    y: FloatArray
    # (N,): the annotator's number in the study; empty for truth
    annotator: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # (R,): numbers of all annotators who viewed the image, also of those without marks
    looked: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    time: FloatArray | None = None  # (N,)
    score: FloatArray | None = None  # (N,): of the detections of a program
    classes: tuple[str, ...] = ()  # tuple of names: classes of the marks; () without classes
    label: IntArray | None = None  # (N,): index into `classes`, -1 for a mark without class


class CohortCase(msgspec.Struct, frozen=True):
    """Case of a cohort that was gathered into a study."""

    case: str
    kind: str
    # "done" for a case whose results are in the study; otherwise the reason, as reported by `raterscope
    # batch`
    status: str
    reason: str = ""  # why its results are missing, in a sentence
    digest: str = ""  # of the case's files, plan and version

    @property
    def is_done(self) -> bool:
        """Whether the case's results are in the study."""
        return self.status == "done"


class ReadCase(msgspec.Struct, frozen=True):
    """Case that a reader has read."""

    case: str  # name of the image, or of the two images of a pair
    position: int  # in the reader's order of the session, from 1
    seconds: float  # time that the case was on screen
    marks: int  # clicks, outlined structures, or answers
    key: str  # of the case in the coordinator's file


class CollectedRead(msgspec.Struct, frozen=True):
    """Finished session of a reader."""

    reader: str  # pseudonym, or name
    read: int  # 1 for the first read of a case
    digest: str  # of the session's journal
    # begun, finished: UTC times, ISO 8601
    begun: str
    finished: str
    cases: tuple[ReadCase, ...]  # those whose marks are in the study


class ReadProgress(msgspec.Struct, frozen=True):
    """Progress of a reader in one session: cases read, of all; `finished` once the session is locked."""

    reader: str
    read: int
    done: int
    cases: int
    finished: bool

    def in_words(self) -> str:
        """Describe the progress: "R02, read 1: 12 of 40 cases"."""
        return f"{self.reader}, read {self.read}: {self.done:,} of {_count(self.cases, 'case')}"


class ImportedFile(msgspec.Struct, frozen=True):
    """Table that was imported, known by its name, size and time of change; see `import_undo`."""

    number: int  # number of its import


class LastImport(msgspec.Struct, frozen=True):
    """What the last import added, so that it can be undone."""

    files: tuple[str, ...]
    imports: tuple[int, int]  # numbers of the last import before and after it
    images: int  # number of the last image before it
    annotators: int  # number of annotators before it
    decisions: tuple[int, int]  # numbers of the last decision before and after it
    run: int  # number of the last run before it
    questions: tuple[int, ...]  # questions before it
    schemes: dict[int, tuple[str, str]]  # by question, before and after it, if they differ
    structures: tuple[str, ...]  # that it added

    def in_words(self) -> str:
        """Name the import: "import of a.csv and 2 more files"."""
        more = f" and {counted(len(self.files) - 1, 'more file')}" if len(self.files) > 1 else ""
        return f"import of {plain(self.files[0], 60)}{more}"


class ReaderStudy(msgspec.Struct, frozen=True):
    """Reader study that is collected in a study."""

    study: str  # identifier, as in every reading file
    name: str
    kind: str
    blinding: bool  # whether the study is closed until every reader has finished
    unblinded: str = ""  # why it was opened before that; empty if it was not
    progress: tuple[ReadProgress, ...] = ()  # of every reader and session
    reads: tuple[CollectedRead, ...] = ()

    @property
    def unfinished(self) -> list[ReadProgress]:
        """Sessions that are not finished."""
        return [progress for progress in self.progress if not progress.finished]

    @property
    def is_blinded(self) -> bool:
        """Whether the study must not be shown yet."""
        return self.blinding and not self.unblinded and bool(self.unfinished)


class LoggedStructure(msgspec.Struct, frozen=True):
    """Structure in the log of a run of masks."""

    structure: str
    raters: tuple[str, ...] = ()
    disputed_ml: tuple[float, ...] = ()
    pair_dice: tuple[tuple[float | None, ...], ...] = ()
    follows: tuple[int, ...] = ()


class LoggedCase(msgspec.Struct, frozen=True):
    """Case in the log of a run of masks; without structures if its fusion failed."""

    image: str
    structures: tuple[LoggedStructure, ...] = ()
    seconds: float = 0.0


class MaskLog(msgspec.Struct, frozen=True):
    """Log of a run of masks."""

    images: tuple[LoggedCase, ...] = ()


_MANY = 0.1
"""Minimum share of marks outside their images for a notice that x and y may be exchanged."""


@dataclass(frozen=True)
class ImportSummary:
    """Summary of one imported file.

    Attributes
    ----------
    kind : str
        clicks, truth, scores or masks.
    file : str
    marks, images, annotators : int
        Imported marks, their images, and annotators who viewed them.
    empty : int
        Number of views without a mark; for truth, number of images without structures.
    duplicates : int
        Marks at exactly the position of another mark by the same annotator; fusing counts them once.
    outside : int
        Marks outside their image; they are kept.
    exchanged : int
        Marks that would be outside their image with x and y exchanged.
    left_out : int
        Marks skipped because the study does not have their image.
    notices : tuple of str
        Messages on how the file was read, a sentence each.
    """

    kind: str
    file: str
    marks: int
    images: int
    annotators: int
    empty: int
    duplicates: int
    outside: int
    exchanged: int
    left_out: int
    notices: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Describe the import in a sentence or more."""
        if not self.marks and not self.empty and self.notices:
            return " ".join(self.notices)
        noun = {"truth": "true point", "scores": "detection of a program"}.get(self.kind, "click")
        marks = (
            f"{self.marks:,} detections of a program"
            if self.kind == "scores" and self.marks != 1
            else _count(self.marks, noun)
        )
        text = f"{marks} on {_count(self.images, 'image')}"
        if self.kind == "clicks":
            text += f" by {_count(self.annotators, 'annotator')}"
        remarks = []
        if self.left_out:
            remarks.append(f"{self.left_out:,} skipped, on images that the study does not have")
        if self.empty and self.kind != "clicks":
            remarks.append(f"{_count(self.empty, 'image')} without structures")
        elif self.empty:
            remarks.append(f"{_count(self.empty, 'view')} without a mark")
        if self.duplicates and self.kind != "scores":
            same_place = (
                "the same position" if self.kind == "truth" else "the same position by the same annotator"
            )
            remarks.append(f"{_count(self.duplicates, 'duplicate')} at {same_place}, counted once")
        if self.outside:
            remark = f"{self.outside:,} outside the image, kept"
            if self.outside > _MANY * self.marks and self.exchanged < _MANY * self.outside:
                remark += f"; {self.exchanged:,} would be with x and y exchanged: check these columns"
            remarks.append(remark)
        if remarks:
            text += f" ({'; '.join(remarks)})"
        return " ".join([text + ".", *self.notices])


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """Run, with the items of its results.

    Attributes
    ----------
    kind : str
        clicks, masks or labels.
    algorithm : str
        Name or description: "oem + dem".
    settings, versions, log : dict
        Ready for JSON.
    seed : int or None
    digest : str
        Digest of the input, see `digest_of`.
    started : datetime
        With its time zone.
    seconds : float
    known : int
        The last decision that was held fixed or otherwise used; 0 for none.
    imported : int or None
        The last import that the run used; None for all present imports.
    excluded : tuple of str
        Excluded annotators.
    weights : dict of annotator to float
        Weight of each annotator who did not count fully.
    aliases : dict of name to name
        The main name of each joined name; joined names counted as one annotator.
    programs : tuple of str
        Annotators that were programs.
    id : int
        Number in the study; 0 before the run is stored.
    items : tuple of int
    """

    kind: str
    algorithm: str
    settings: dict[str, Any]
    versions: dict[str, Any]
    digest: str
    started: datetime
    seconds: float
    seed: int | None = None
    log: dict[str, Any] = field(default_factory=dict)
    known: int = 0
    imported: int | None = None
    excluded: tuple[str, ...] = ()
    weights: dict[str, float] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    id: int = 0
    items: tuple[int, ...] = ()


@dataclass(frozen=True)
class SecondRead:
    """Origin of a blind copy for a second reader: author, time, and source file."""

    by: str
    at: datetime
    source: str


@dataclass(frozen=True)
class Read:
    """Decisions of another expert that were merged into a study."""

    file: str  # name of the study with the decisions
    experts: tuple[str, ...]  # who decided
    merged_by: str
    merged_at: datetime
    blind: bool = False  # whether that study was a blind copy
    # copied_by, copied_at: str, datetime or None: author and time of the blind copy
    copied_by: str = ""
    copied_at: datetime | None = None

    def in_words(self) -> str:
        """Describe the read: "ben.rscope (ben); merged by anna on 2026-03-01 12:00"."""
        text = f"{self.file} ({', '.join(self.experts) or 'no decision'})"
        if self.blind and self.copied_at is not None:
            text += f", a blind second read copied by {self.copied_by} on {_day(self.copied_at)}"
        return f"{text}; merged by {self.merged_by} on {_day(self.merged_at)}"


def _day(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class ImageQuality(msgspec.Struct, frozen=True):
    """Quality of an image, by which the queue of clicks can be sorted."""

    focus: float | None  # variance of the Laplacian, summed over the channels; None if undefined
    # share of saturated pixels in the most saturated channel; None if not measured
    saturation: float | None
