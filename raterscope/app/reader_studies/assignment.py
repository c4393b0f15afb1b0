"""Assignments of a reader study: what a reading file and the coordinator's file contain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from raterscope.app.errors import InputError, system_reason

COORDINATOR = "coordinator.json"
VERSION = 3
"""Version of the file format: 1 of images alone, 2 with tasks of tables or studies, 3 with texts of pairs."""


class Picture(msgspec.Struct, frozen=True):
    """An image of a case, as the study was set up with it."""

    path: str  # relative to the file that names it where it lies beside or below that, else absolute
    digest: str  # of the content, see `references`
    # width, height: pixels
    width: int
    height: int
    pixel_size: float | None = None  # micrometres
    # (slices, rows, columns): of masks: the grid on which readers draw
    shape: tuple[int, int, int] | None = None
    identifier: str = ""  # UID of a DICOM series


class Side(msgspec.Struct, frozen=True):
    """An item of a pair."""

    texts: dict[str, str] = {}  # by field
    has_picture: bool = False  # whether the next picture of the case is of this item


class ReadingCase(msgspec.Struct, frozen=True):
    """A case: one picture, two items that are compared, or texts and pictures of a task."""

    key: str  # neutral name that tells the reader nothing: "c007"
    pictures: tuple[Picture, ...]
    texts: dict[str, str] = {}  # by field: contents of a task, in order; of a pair the prompt of both items
    sides: tuple[Side, ...] = ()  # both items of a pair; empty where both are a picture alone

    @property
    def digests(self) -> list[str]:
        """Digests of the pictures, and of the texts."""
        texts = [digest_of_texts(texts) for texts in self.all_texts if texts]
        return [*(picture.digest for picture in self.pictures), *texts]

    @property
    def all_texts(self) -> list[dict[str, str]]:
        """Texts of the case and of its sides."""
        return [self.texts, *(side.texts for side in self.sides)]


def digest_of_texts(texts: Mapping[str, str]) -> str:
    """Compute the SHA-256 of the contents of a task."""
    return f"sha256:{hashlib.sha256(msgspec.json.encode(list(texts.items()))).hexdigest()}"


class ScheduledCase(msgspec.Struct, frozen=True):
    """A position in a reader's order."""

    session: int  # from 1; session 2 has the second read
    case: str  # key of the case
    swapped: bool = False  # of a pair: whether the second picture is on the left


class AskedQuestion(msgspec.Struct, frozen=True):
    """A question, see `protocol.Question`."""

    name: str
    classes: tuple[str, ...]
    text: str = ""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one reader does: the contents of a reading file before anything is read."""

    study: str  # identifier of the reader study
    name: str  # name of the study
    kind: Literal["clicks", "masks", "labels", "pairs"]
    reader: str  # pseudonym, or name where the study has no pseudonyms
    instruction: str
    structures: tuple[str, ...]
    questions: tuple[AskedQuestion, ...]
    washout_days: float
    cases: tuple[ReadingCase, ...]
    places: tuple[ScheduledCase, ...]  # in the order in which the reader sees them, session after session
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
    """A reader of a study: the key of the pseudonym, and the expected reads."""

    person: str  # name in the protocol
    reader: str  # pseudonym
    file: str  # name of the reading file
    places: tuple[ScheduledCase, ...]


class Coordinator(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the coordinator's file, which no reader gets."""

    study: str
    name: str
    kind: Literal["clicks", "masks", "labels", "pairs"]
    blinding: bool
    structures: tuple[str, ...]
    questions: tuple[AskedQuestion, ...]
    cases: tuple[ReadingCase, ...]  # with the pictures where they lie for the coordinator
    # by key: of the pictures of each case, of its task, or of both items of a pair, in the collected study
    names: dict[str, tuple[str, ...]]
    readers: tuple[ReaderEntry, ...]
    tasks: dict[str, str] = {}  # by key: on which a pair was compared, where the comparisons have tasks
    seed: int | None = None  # of orders, pseudonyms and sides; None in files of earlier versions
    version: int = 1

    def case(self, key: str) -> ReadingCase:
        """Return a case by its key."""
        return next(case for case in self.cases if case.key == key)

    def title(self, key: str) -> str:
        """Name a case in the collected study: task and items."""
        names = " and ".join(self.names[key])
        return f"{self.tasks[key]}: {names}" if key in self.tasks else names

    def pictured(self, case: ReadingCase) -> list[tuple[str, Picture]]:
        """Return the pictures of a case with their names."""
        names = self.names[case.key]
        if case.sides:
            names = tuple(name for name, side in zip(names, case.sides, strict=True) if side.has_picture)
        return list(zip(names, case.pictures, strict=False))

    def texts_by_task(self, case: ReadingCase) -> dict[str, dict[str, str]]:
        """Return the texts of a case as a study stores them: by task or item, and by field."""
        names = self.names[case.key]
        if not case.sides:
            return {names[0]: case.texts} if case.texts else {}
        sides = {name: side.texts for name, side in zip(names, case.sides, strict=True) if side.texts}
        if case.key not in self.tasks:
            return sides
        answers = {name: "\n\n".join(texts.values()) for name, texts in sides.items()}
        return {self.tasks[case.key]: case.texts | answers}


def read_coordinator(path: Path) -> Coordinator:
    """Read a coordinator's file. Raises `InputError` if it is none."""
    try:
        coordinator = msgspec.json.decode(path.read_bytes(), type=Coordinator)
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=path) from error
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
