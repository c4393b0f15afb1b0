"""Records of the readers: tables of marks by column, and images on disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import NOTHING_CODED, Coding
from raterscope.app.errors import InputError

__all__ = [
    "STUDY_SUFFIX",
    "ClickTable",
    "ImageFile",
    "LabelTable",
    "MaskTable",
    "PairTable",
    "PointTable",
    "RaterMask",
    "TrueLabels",
    "Volume",
    "VolumeFile",
    "first_seen",
    "refuse_name",
    "refuse_special",
]

STUDY_SUFFIX = ".rscope"


@dataclass(frozen=True, eq=False)
class ClickTable:
    """The marks of many annotators on many images, N in all, by column.

    Attributes
    ----------
    path : Path
        The file they come from.
    annotators, images : tuple of names
        Each once, in the order of first appearance.
    annotator, image : (N,) int64
        Indices into `annotators` and `images`.
    x, y : (N,) float64
        Pixels, y down.
    time : (N,) float64, optional
        Seconds, from any origin.
    looked : frozenset of (annotator, image)
        Indices of who looked at what, where the file says so; who has a mark there need not be named again.
    extents : mapping of image index to (width, height)
        Where the file tells the size of its images.
    lines : tuple of int
        The line on which each image first appears; empty where the file has no lines to speak of.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    annotators: tuple[str, ...]
    images: tuple[str, ...]
    annotator: IntArray
    image: IntArray
    x: FloatArray
    y: FloatArray
    time: FloatArray | None = None
    looked: frozenset[tuple[int, int]] = frozenset()
    extents: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class PointTable:
    """True places, or detections of a program, on many images, N in all; attributes as in `ClickTable`.

    Attributes
    ----------
    searched : frozenset of int
        Indices of images of which the file tells the truth, be it that nothing is there; those with places
        need not be named again.
    score : (N,) float64, optional
        Of detections of a program; these are no true places.
    """

    path: Path
    images: tuple[str, ...]
    image: IntArray
    x: FloatArray
    y: FloatArray
    extents: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()
    searched: frozenset[int] = frozenset()
    score: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class ImageFile:
    """An image on disk, its pixels not yet read.

    Attributes
    ----------
    name : str
        The file's name.
    path : Path
    width, height : int
        Pixels, as shown: an orientation that the file asks for is applied.
    pixel_size : float or None
        Micrometres, where a TIFF of a microscope tells.
    """

    name: str
    path: Path
    width: int
    height: int
    pixel_size: float | None = None


def refuse_special(path: Path) -> None:
    """Refuse a study, a pipe, a device, a name that is no text: every reader does before it opens a file.

    On POSIX systems a process that closes any handle on a file loses its locks on it: having read an open
    study's first bytes, this process would no longer keep others out of it. A pipe or a device may block, or
    never end. A name that is not UTF-8 fits neither a study nor an export.

    Raises
    ------
    InputError
        For a file that is called NAME.rscope, for a pipe, socket or device, and for a link to one of them;
        for a name that is not UTF-8.
        A missing file and a folder are left to the reader.
    """
    if STUDY_SUFFIX in (path.suffix.casefold(), Path(os.path.realpath(path)).suffix.casefold()):
        raise InputError("is a study; open it instead of importing it", file=path)
    refuse_name(path, path.name)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError("is a pipe or a device; expected a file", file=path)


def refuse_name(path: Path, name: str) -> None:
    """Refuse a file or folder whose name, on disk, is bytes that are not UTF-8.

    Raises
    ------
    InputError
    """
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        raise InputError("has a name or folder that is not UTF-8; rename it", file=path)


def first_seen(names: list[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Give names their numbers in the order of first appearance.

    Returns
    -------
    unique : tuple of str
    index : (N,) int64
    """
    number: dict[str, int] = {}
    index = [number.setdefault(name, len(number)) for name in names]
    return tuple(number), np.array(index, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The votes of many annotators on many tasks, V in all, by column.

    Attributes
    ----------
    path : Path
        The file they come from.
    question : str
        What was asked, where the file asks several things or names it; else empty.
    annotators, tasks, outputs : tuple of names
        Each once: annotators and tasks in the order of first appearance; outputs in the file's own order
        where it has one, else by value where all are numbers, else by the alphabet.
    annotator, task : (V,) int32
    label : (V,) int16
    time : (V,) float64, optional
        Seconds from any origin, NaN where it is not known.
    pictures : mapping of task index to a file name or path
        Where the file says which picture a task is of; else a task's own name is looked for.
    missing : int
        Rows without a label, which are left out.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    question: str
    annotators: tuple[str, ...]
    tasks: tuple[str, ...]
    outputs: tuple[str, ...]
    annotator: NDArray[np.int32]
    task: NDArray[np.int32]
    label: NDArray[np.int16]
    time: NDArray[np.float64] | None = None
    pictures: Mapping[int, str] = field(default_factory=dict)
    missing: int = 0
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, eq=False)
class TrueLabels:
    """The true classes of some tasks, N in all.

    Attributes
    ----------
    path : Path
    question : str
    tasks : tuple of N names, each once
    classes : tuple of names
        As `LabelTable.outputs`.
    label : (N,) int16
        Index into `classes`.
    notices : tuple of str
    """

    path: Path
    question: str
    tasks: tuple[str, ...]
    classes: tuple[str, ...]
    label: NDArray[np.int16]
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tasks)


@dataclass(frozen=True, eq=False)
class PairTable:
    """The comparisons of many annotators, E in all, by column.

    Attributes
    ----------
    path : Path
        The file they come from.
    question : str
        What was asked, where the file asks several things or names it; else empty.
    annotators, items : tuple of names
        Each once, in the order of first appearance; an item stays though its comparisons are left out.
    annotator, left, right : (E,) int32
        An item is never compared with itself.
    choice : (E,) float64
        Above 0 where the left item was preferred, below 0 for the right one, 0 for a tie; 1 and -1 unless
        the file has numbers. Finite.
    time : (E,) float64, optional
        Seconds from any origin, NaN where it is not known.
    pictures : mapping of item index to a file name or path
        Where the file says which picture an item is; else an item's own name is looked for.
    missing : int
        Rows without an answer, which are left out.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    question: str
    annotators: tuple[str, ...]
    items: tuple[str, ...]
    annotator: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    choice: NDArray[np.float64]
    time: NDArray[np.float64] | None = None
    pictures: Mapping[int, str] = field(default_factory=dict)
    missing: int = 0
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.choice)


@dataclass(frozen=True)
class VolumeFile:
    """An image or volume on disk, its voxels not yet read.

    Attributes
    ----------
    name : str
        For people, without the patient's: the file's name, or the series' description and number.
    path : Path
        The file, or the folder of a DICOM series.
    grid : Grid
    modality : str
        As DICOM calls it: "CT", "MR"; empty where nothing tells.
    files : tuple of Path
        All files that hold voxels, in the order of the slices; one for a file that holds all.
    frames : tuple of int
        Of a file with several images: those that are the slices, in their order.
    identifier : str
        The series' UID, which contours refer to; empty where there is none.
    instances : tuple of str
        The UID of each slice; empty where there are none.
    window : (centre, width), optional
        How the file wants its values shown.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each: gaps, tilt, a mixed folder.
    """

    name: str
    path: Path
    grid: Grid
    modality: str = ""
    files: tuple[Path, ...] = ()
    frames: tuple[int, ...] = ()
    identifier: str = ""
    instances: tuple[str, ...] = ()
    window: tuple[float, float] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Volume:
    """The voxels of a volume.

    Attributes
    ----------
    values : (Z, Y, X) uint8, int16, uint16 or float32; or (Z, Y, X, 3) uint8 for colour
        Rescaled as the file says: Hounsfield units for CT.
    grid : Grid
    modality : str
    window : (centre, width), optional
    """

    values: NDArray[np.generic]
    grid: Grid
    modality: str = ""
    window: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class RaterMask:
    """What one annotator marked as one structure on one image.

    Attributes
    ----------
    annotator : str or None
        None where the file does not say who.
    item : str or None
        The image's name or the series' UID, where the file says which.
    structure : str
        Empty where the file does not name it.
    grid : Grid
        The whole image's.
    origin : (slice, row, column)
        The first voxel of `values` in the grid.
    values : (Z, Y, X) bool or float32
        A mask, or probabilities 0 to 1, cropped to what is not 0; of no voxels where nothing was marked.
    coding : Coding
        What the file says that the structure stands for.
    """

    annotator: str | None
    item: str | None
    structure: str
    grid: Grid
    origin: tuple[int, int, int]
    values: NDArray[np.bool_] | NDArray[np.float32]
    coding: Coding = NOTHING_CODED

    def whole(self) -> NDArray[np.bool_] | NDArray[np.float32]:
        """Give the mask on the whole grid."""
        part = tuple(slice(at, at + n) for at, n in zip(self.origin, self.values.shape, strict=True))
        if self.values.dtype == np.bool_:
            mask = np.zeros(self.grid.shape, dtype=np.bool_)
            mask[part] = self.values
            return mask
        probability = np.zeros(self.grid.shape, dtype=np.float32)
        probability[part] = self.values
        return probability


@dataclass(frozen=True, eq=False)
class MaskTable:
    """The masks of one file.

    Attributes
    ----------
    path : Path
    masks : tuple of RaterMask
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    masks: tuple[RaterMask, ...]
    notices: tuple[str, ...] = ()
