"""Records that readers return: tables of annotations by column, images and volumes on disk, masks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.masks.data import slices_of
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.packing import Voxels, voxels_of
from raterscope.app.coding import NOTHING_CODED, Coding
from raterscope.app.formats.tables import Coded

MAX_CLASSES = 50
"""Maximum number of classes of marks; a column with more values does not contain classes."""


@dataclass(frozen=True, eq=False)
class ClickTable:
    """Table of N marks by annotators on images."""

    path: Path  # the file they come from
    # annotators, images: tuple of names: each once, in the order of first appearance
    annotators: tuple[str, ...]
    images: tuple[str, ...]
    # annotator, image: (N,): indices into `annotators` and `images`
    annotator: IntArray
    image: IntArray
    # x, y: (N,): pixels, y down
    x: FloatArray
    y: FloatArray
    time: FloatArray | None = None  # (N,): seconds, from any origin
    # frozenset of (annotator, image): annotators and the images they viewed, if the file lists them; pairs
    # with marks may be missing
    looked: frozenset[tuple[int, int]] = frozenset()
    # by image index: sizes of images, if the file contains them
    extents: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    lines: tuple[int, ...] = ()  # the line on which each image first appears; empty if the file has no lines
    notices: tuple[str, ...] = ()  # messages on how the file was read, one sentence each
    # tuple of names: classes of the marks, in the order of first appearance; () without classes
    classes: tuple[str, ...] = ()
    label: IntArray | None = None  # (N,): index into `classes`, -1 for a mark without class
    columns: Mapping[str, str] = field(default_factory=dict)  # by column: of a table, what its columns hold
    # by name: subjects of Zooniverse, by the name of the image
    subjects: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class PointTable:
    """Table of N positions of the ground truth, or detections of a program, on images.

    Other attributes are as in `ClickTable`.
    """

    path: Path
    images: tuple[str, ...]
    image: IntArray
    x: FloatArray
    y: FloatArray
    extents: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # by column: of a table, what its columns hold
    # indices of images whose ground truth is complete, even if empty; those with positions may be missing
    searched: frozenset[int] = frozenset()
    score: FloatArray | None = None  # (N,): of detections of a program, which are not ground truth
    is_numbered: bool = False  # whether images are named by their ids in a COCO file

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class ImageFile:
    """Image on disk, whose pixels have not been read."""

    name: str  # the file's name
    path: Path
    # width, height: pixels, as shown: after the orientation in the file was applied
    width: int
    height: int
    pixel_size: float | None = None  # micrometres, if a TIFF of a microscope contains it
    # digest of a PNG by the checksums that it contains, see `image_structure.Chunks`
    digest: str | None = field(default=None, compare=False)
    is_cut_short: bool = field(default=False, compare=False)  # whether its end is missing


def first_seen(names: Sequence[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Return the distinct names in the order of first appearance, and the index of each entry, (N,) int64."""
    if isinstance(names, Coded):
        return tuple(names.names), names.numbers.astype(np.int64)
    number: dict[str, int] = {}
    index = [number.setdefault(name, len(number)) for name in names]
    return tuple(number), np.array(index, dtype=np.int64)


def number_classes(cells: Sequence[str]) -> tuple[tuple[str, ...], IntArray | None, tuple[str, ...]]:
    """Return the classes of marks, the index of each mark's class, and notices; an empty cell is -1.

    A column with too many values for classes is skipped with a notice.
    """
    stripped = [cell.strip() for cell in cells]
    names = tuple(name for name in dict.fromkeys(stripped) if name)
    if not names:
        return (), None, ()
    if len(names) > MAX_CLASSES:
        text = (
            f"The classes of the marks were skipped: {len(names):,} values, expected at most {MAX_CLASSES}."
        )
        return (), None, (text,)
    index = {name: number for number, name in enumerate(names)} | {"": -1}
    return names, np.array([index[name] for name in stripped], dtype=np.int64), ()


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Table of V votes by annotators on tasks."""

    path: Path  # the file they come from
    question: str  # the question, if the file has several or names it; else empty
    # annotators, tasks, outputs: tuple of names: each once: annotators and tasks in the order of first
    # appearance. Outputs in the file's own order if it has one, otherwise by value if all are numbers,
    # otherwise in alphabetical order.
    annotators: tuple[str, ...]
    tasks: tuple[str, ...]
    outputs: tuple[str, ...]
    # annotator, task: (V,)
    annotator: NDArray[np.int32]
    task: NDArray[np.int32]
    label: NDArray[np.int16]  # (V,)
    time: NDArray[np.float64] | None = None  # (V,): seconds from any origin, NaN if unknown
    # by task index: the picture of a task, if the file contains it; otherwise the task's name is used
    pictures: Mapping[int, str] = field(default_factory=dict)
    missing: int = 0  # rows without a label, which are skipped
    notices: tuple[str, ...] = ()  # messages on how the file was read, one sentence each
    columns: Mapping[str, str] = field(default_factory=dict)  # by column: of a table, what its columns hold
    # by name: subjects of Zooniverse, by the name of the task
    subjects: Mapping[str, str] = field(default_factory=dict)
    # (M, 2): annotator and task of rows without a label
    unlabelled: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    tags: bool | None = None  # whether a vote can have several tags; None to detect it
    # (V, L): for votes of a program, the probability of each output
    probability: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, eq=False)
class TrueLabels:
    """True classes of N tasks."""

    path: Path
    question: str
    tasks: tuple[str, ...]  # tuple of N names, each once
    classes: tuple[str, ...]  # tuple of names: as `LabelTable.outputs`
    label: NDArray[np.int16]  # (N,): index into `classes`
    notices: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # by column: of a table, what its columns hold
    unlabelled: tuple[str, ...] = ()  # tuple of names: tasks of a table of true labels that have none

    def __len__(self) -> int:
        return len(self.tasks)


@dataclass(frozen=True, eq=False)
class TaskContents:
    """Contents of tasks as shown to annotators: texts, and addresses of sounds, films and pages."""

    path: Path
    fields: Mapping[str, Mapping[str, str]]  # by field: in the file's order: "prompt", "response"
    notices: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # by column: of a table, what its columns hold

    @property
    def tasks(self) -> tuple[str, ...]:
        """Distinct tasks."""
        return tuple(dict.fromkeys(task for texts in self.fields.values() for task in texts))

    def __len__(self) -> int:
        return len(self.tasks)


LabelFile = LabelTable | TrueLabels | TaskContents
"""Contents of a table of labels: votes, true labels, or contents of tasks."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Table of E comparisons by annotators."""

    path: Path  # the file they come from
    question: str  # the question, if the file has several or names it; else empty
    # annotators, items: tuple of names: each once, in the order of first appearance; includes items whose
    # comparisons are skipped
    annotators: tuple[str, ...]
    items: tuple[str, ...]
    # annotator, left, right: (E,): `left` and `right` always differ
    annotator: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    # (E,): above 0 where the left item was preferred, below 0 for the right one, 0 for a tie; 1 and -1 unless
    # the file has numbers. Finite.
    choice: NDArray[np.float64]
    time: NDArray[np.float64] | None = None  # (E,): seconds from any origin, NaN if unknown
    # by item index: the picture of an item, if the file contains it; otherwise the item's name is used
    pictures: Mapping[int, str] = field(default_factory=dict)
    missing: int = 0  # rows without an answer, which are skipped
    notices: tuple[str, ...] = ()  # messages on how the file was read, one sentence each
    # tuple of names: subjects of the comparisons: prompts that models answered. Empty if the file names none.
    tasks: tuple[str, ...] = ()
    task: NDArray[np.int32] | None = None  # (E,): index into `tasks`; -1 for none
    # texts of the tasks: prompts by column, and the answer of each item by the item's name
    contents: TaskContents | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # by column: of a table, what its columns hold

    def __len__(self) -> int:
        return len(self.choice)


@dataclass(frozen=True)
class VolumeFile:
    """Image or volume on disk, whose voxels have not been read."""

    # shown to the user, without the patient's name: the file's name, or the series' description and number
    name: str
    path: Path  # the file, or the folder of a DICOM series
    grid: Grid
    modality: str = ""  # in DICOM's terms: "CT", "MR"; empty if unknown
    # all files with voxels, in the order of the slices; one if a single file has all voxels
    files: tuple[Path, ...] = ()
    # for a file with several images: indices of the images that are the slices, in order
    frames: tuple[int, ...] = ()
    identifier: str = ""  # the series' UID, which contours refer to; empty if there is none
    instances: tuple[str, ...] = ()  # the UID of each slice; empty if there are none
    window: tuple[float, float] | None = None  # (centre, width): the file's preferred display window
    # messages on how the file was read, one sentence each: gaps, tilt, a mixed folder
    notices: tuple[str, ...] = ()
    pixel_size: float | None = None  # micrometres, of a microscope's image
    # patient, frame_of_reference: ID and UID of a DICOM series, which those of its masks are compared with
    patient: str = field(default="", repr=False)
    frame_of_reference: str = ""


@dataclass(frozen=True, eq=False)
class Volume:
    """Voxels of a volume."""

    # (Z, Y, X), int16, uint16 or float32; or (Z, Y, X, 3) for colour: rescaled as the file specifies:
    # Hounsfield units for CT
    values: NDArray[np.generic]
    grid: Grid
    modality: str = ""
    window: tuple[float, float] | None = None  # (centre, width)
    unit: str = ""  # of PET values: "SUV" or "Bq/ml"


@dataclass(frozen=True, eq=False)
class RaterMask:
    """Mask by one annotator of one structure on one image."""

    annotator: str | None  # none if the file does not contain it
    item: str | None  # the image's name or the series' UID, if the file contains it
    structure: str  # empty if the file does not name it
    grid: Grid  # grid of the complete image
    origin: tuple[int, int, int]  # (slice, row, column): the first voxel of `values` in the grid
    voxels: Voxels  # the values, perhaps packed
    coding: Coding = NOTHING_CODED  # coded meaning of the structure

    @property
    def values(self) -> NDArray[np.bool_] | NDArray[np.float32]:
        """Mask, or probabilities 0 to 1, (Z, Y, X), cropped to the non-zero part; empty without marks."""
        return voxels_of(self.voxels)

    def whole(self) -> NDArray[np.bool_] | NDArray[np.float32]:
        """Return the mask on the complete grid."""
        values = self.values
        mask: NDArray[Any] = np.zeros(self.grid.shape, dtype=values.dtype)
        mask[slices_of(self.origin, values.shape)] = values
        return mask


@dataclass(frozen=True, eq=False)
class MaskTable:
    """Masks of one file."""

    path: Path
    masks: tuple[RaterMask, ...]
    notices: tuple[str, ...] = ()  # messages on how the file was read, one sentence each
    run: str = ""  # the run of Raterscope that the file is an export of; empty for all other files
    # (field, name): fields of a DICOM file that may serve as the annotator's name, the most distinctive first
    origins: tuple[tuple[str, str], ...] = ()


Answers = TypeVar("Answers", LabelTable, PairTable)


def group_by_name(
    tables: Sequence[Answers], unnamed: str, contents: Callable[[Answers], Collection[str]]
) -> dict[str, list[Answers]]:
    """Group files by the case-folded name of their question, in the order of first appearance.

    A file without a question belongs to the only question that is named, if their contents have a common
    name; otherwise to `unnamed`.
    """
    named = {table.question.casefold() for table in tables if table.question}
    shared = {name for table in tables if table.question and len(named) == 1 for name in contents(table)}
    groups: dict[str, list[Answers]] = {}
    for table in tables:
        key = (table.question or unnamed).casefold()
        if not table.question and not shared.isdisjoint(contents(table)):
            (key,) = named
        groups.setdefault(key, []).append(table)
    return groups
