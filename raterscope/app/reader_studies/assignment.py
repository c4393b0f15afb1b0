"""Assignments of a reader study: what a reading file and the coordinator's file contain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from raterscope.app.errors import InputError

COORDINATOR = "coordinator.json"
VERSION = 2
"""Of files with tasks of a table or a study; files of images alone have version 1."""


class Picture(msgspec.Struct, frozen=True):
    """An image of a case, as the study was set up with it.

    Attributes
    ----------
    path : str
        Relative to the file that names it where it lies beside or below that, else absolute.
    digest : str
        Of the content, see `file_digests`.
    width, height : int
        Pixels.
    pixel_size : float or None
        Micrometres.
    shape : (slices, rows, columns), optional
        Of masks: the grid on which readers draw.
    identifier : str
        UID of a DICOM series.
    """

    path: str
    digest: str
    width: int
    height: int
    pixel_size: float | None = None
    shape: tuple[int, int, int] | None = None
    identifier: str = ""


class ReadingCase(msgspec.Struct, frozen=True):
    """A case: one picture, two that are compared, or texts and pictures of a task.

    Attributes
    ----------
    key : str
        Neutral name that tells the reader nothing: "c007".
    texts : dict of field to text
        Contents of a task, in order.
    """

    key: str
    pictures: tuple[Picture, ...]
    texts: dict[str, str] = {}

    @property
    def digests(self) -> list[str]:
        """Digests of the pictures, and of the texts."""
        texts = [digest_of_texts(self.texts)] if self.texts else []
        return [*(picture.digest for picture in self.pictures), *texts]


def digest_of_texts(texts: Mapping[str, str]) -> str:
    """Compute the SHA-256 of the contents of a task."""
    return f"sha256:{hashlib.sha256(msgspec.json.encode(list(texts.items()))).hexdigest()}"


class ScheduledCase(msgspec.Struct, frozen=True):
    """A position in a reader's order.

    Attributes
    ----------
    session : int
        From 1; session 2 has the second read.
    case : str
        Key of the case.
    swapped : bool
        Of a pair: whether the second picture is on the left.
    """

    session: int
    case: str
    swapped: bool = False


class AskedQuestion(msgspec.Struct, frozen=True):
    """A question, see `protocol.Question`."""

    name: str
    classes: tuple[str, ...]
    text: str = ""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one reader does: the contents of a reading file before anything is read.

    Attributes
    ----------
    study : str
        Identifier of the reader study.
    name : str
        Name of the study.
    reader : str
        Pseudonym, or name where the study has no pseudonyms.
    places : tuple of ScheduledCase
        In the order in which the reader sees them, session after session.
    """

    study: str
    name: str
    kind: Literal["clicks", "masks", "labels", "pairs"]
    reader: str
    instruction: str
    structures: tuple[str, ...]
    questions: tuple[AskedQuestion, ...]
    washout_days: float
    cases: tuple[ReadingCase, ...]
    places: tuple[ScheduledCase, ...]
    version: int = 1

    @property
    def sessions(self) -> int:
        """Number of sessions."""
        return max((scheduled.session for scheduled in self.places), default=0)

    def case(self, key: str) -> ReadingCase:
        """Return a case by its key."""
        return next(case for case in self.cases if case.key == key)

    def positions(self, session: int) -> range:
        """Return the positions of a session's places."""
        numbers = [number for number, scheduled in enumerate(self.places) if scheduled.session == session]
        return range(numbers[0], numbers[-1] + 1) if numbers else range(0)


class ReaderEntry(msgspec.Struct, frozen=True):
    """A reader of a study: the key of the pseudonym, and the expected reads.

    Attributes
    ----------
    person : str
        Name in the protocol.
    reader : str
        Pseudonym.
    file : str
        Name of the reading file.
    """

    person: str
    reader: str
    file: str
    places: tuple[ScheduledCase, ...]


class Coordinator(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the coordinator's file, which no reader gets.

    Attributes
    ----------
    cases : tuple of ReadingCase
        With the pictures where they lie for the coordinator.
    names : dict of key to names
        Of the pictures of each case, or of its task, in the collected study.
    """

    study: str
    name: str
    kind: Literal["clicks", "masks", "labels", "pairs"]
    blinding: bool
    structures: tuple[str, ...]
    questions: tuple[AskedQuestion, ...]
    cases: tuple[ReadingCase, ...]
    names: dict[str, tuple[str, ...]]
    readers: tuple[ReaderEntry, ...]
    version: int = 1

    def case(self, key: str) -> ReadingCase:
        """Return a case by its key."""
        return next(case for case in self.cases if case.key == key)


def read_coordinator(path: Path) -> Coordinator:
    """Read a coordinator's file. Raises `InputError` if it is none."""
    try:
        coordinator = msgspec.json.decode(path.read_bytes(), type=Coordinator)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InputError("is not a coordinator's file of a reader study", file=path) from error
    if coordinator.version > VERSION:
        raise InputError("is from a newer version of Raterscope", file=path)
    return coordinator


def locate_picture(picture: Picture, file: Path) -> Path | None:
    """Find a picture at its stored path, otherwise beside the file that names it; None if it is missing.

    A path that climbs out of the folder by ".." or names another computer is not followed.
    """
    stored = picture.path
    name = stored.replace("\\", "/").rpartition("/")[2]
    candidates = [file.parent / name, file.parent / "images" / name]
    if not stored.startswith(("\\\\", "//")) and ".." not in Path(stored).parts:
        candidates.insert(0, file.parent / stored)
    for path in candidates:
        try:
            if path.exists():
                return path
        except (OSError, ValueError):
            continue
    return None
