"""Records of the readers: tables of marks by column, and images on disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.app.errors import InputError

__all__ = [
    "STUDY_SUFFIX",
    "ClickTable",
    "ImageFile",
    "PointTable",
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
