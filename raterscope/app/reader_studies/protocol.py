"""Protocol of a reader study, and the assignments of its reading files and of the coordinator's file.

The protocol is one TOML file, checked completely before anything is written.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from raterscope.app.errors import InputError, TableProblems, plain, system_reason

COORDINATOR = "coordinator.json"
VERSION = 3
"""Version of the file format: 1 has only images, 2 tasks of tables or studies too, 3 texts of pairs too."""


class Picture(msgspec.Struct, frozen=True):
    """An image of a case, as it was at the set-up of the study."""

    path: str  # relative to the file that names it if beside or below that, else absolute
    digest: str  # of the content, see `references`
    # width, height: pixels
    width: int
    height: int
    pixel_size: float | None = None  # micrometres
    # (slices, rows, columns): grid on which readers draw masks
    shape: tuple[int, int, int] | None = None
    identifier: str = ""  # UID of a DICOM series


class Side(msgspec.Struct, frozen=True):
    """An item of a pair."""

    texts: dict[str, str] = {}  # by field
    has_picture: bool = False  # whether the next picture of the case is of this item


class ReadingCase(msgspec.Struct, frozen=True):
    """A case: one picture, two items to compare, or texts and pictures of a task."""

    key: str  # neutral name without information for the reader: "c007"
    pictures: tuple[Picture, ...]
    texts: dict[str, str] = {}  # by field, in order: contents of a task; for a pair, the common prompt
    sides: tuple[Side, ...] = ()  # both items of a pair; empty if both are only pictures

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
    """Assignment of one reader: the contents of a new reading file."""

    study: str  # identifier of the reader study
    name: str  # name of the study
    kind: Literal["clicks", "masks", "labels", "pairs"]
    reader: str  # pseudonym, or name if the study has no pseudonyms
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
        """Return the positions of a session."""
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
    cases: tuple[ReadingCase, ...]  # with the pictures' paths for the coordinator
    # by key of a case: names of its pictures, of its task, or of both items of a pair, in the collected study
    names: dict[str, tuple[str, ...]]
    readers: tuple[ReaderEntry, ...]
    tasks: dict[str, str] = {}  # by key of a pair: task of its comparison, if there are tasks
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
        """Return the pictures of a case, with their names."""
        names = self.names[case.key]
        if case.sides:
            names = tuple(name for name, side in zip(names, case.sides, strict=True) if side.has_picture)
        return list(zip(names, case.pictures, strict=False))

    def texts_by_task(self, case: ReadingCase) -> dict[str, dict[str, str]]:
        """Return the texts of a case in the form of a study: by task or item, and by field."""
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

    A path that leaves the folder by ".." or names another computer is ignored.
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


KINDS = ("clicks", "masks", "labels", "pairs")
SIDES = ("left", "right", "tie")
"""Answers to a question about a pair."""

MAX_CLASSES = 9
"""Maximum number of classes of a question: one digit key each."""

_MOST = {"reads": 9, "washout_days": 3650, "seed": 2**31 - 1}


@dataclass(frozen=True)
class Question:
    """A question that a reader answers on every case."""

    name: str  # short name, which is the question's name in the collected study
    # answers, in the order of their digit keys; for pairs left, right, and tie if ties are allowed
    classes: tuple[str, ...]
    text: str = ""  # the question in a sentence


@dataclass(frozen=True)
class Protocol:
    """Description of a reader study."""

    name: str
    kind: str  # clicks, masks, labels or pairs
    readers: tuple[str, ...]
    # files and folders of images, each once; for pairs, the images to compare. For labels and pairs also
    # tables and studies of tasks, for pairs also of comparisons
    cases: tuple[Path, ...]
    structures: tuple[str, ...] = ()  # structures to outline, for masks
    questions: tuple[Question, ...] = ()  # of labels and pairs
    pairs: int | None = None  # number of pairs that are drawn from all; None for all pairs
    reads: int = 1  # times that a reader reads a case
    repeated_cases: int | None = None  # number of cases that are read again, drawn at random; None for all
    washout_days: float = 0.0  # days from the end of a session to the beginning of the next
    seed: int = 0  # of the order of cases, of pseudonyms and of sides
    blinding: bool = True  # whether the collected study is closed until every reader has finished
    # whether readers are named R01, R02 and so on in every file but the coordinator's
    pseudonyms: bool = True
    copy_images: bool = False  # whether the images are copied beside the reading files, under neutral names
    instruction: str = ""  # shown to the reader at all times


def read_protocol(path: Path) -> Protocol:
    """Read a protocol from a TOML file.

    Raises `TableProblems` with every problem, each with the field's name. Raises `InputError` if the file
    cannot be read or is not TOML.
    """
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not a TOML file: {plain(error, 200)}", file=path) from error
    return check_protocol(values, path.absolute().parent, path)


def check_protocol(values: Mapping[str, Any], folder: Path, file: Path) -> Protocol:
    """Check the fields of a protocol.

    `values`: fields of a TOML file; see `Protocol`. ``questions`` is a list of tables with name, classes (for
        pairs ties instead) and text.
    `folder`: the cases are relative to it.
    `file`: file to name in messages.
    Raises `TableProblems` with every problem.
    """
    reader = _Fields(values)
    kind = reader.text("kind", needed=True)
    if kind and kind not in KINDS:
        reader.problem("kind", f'"{plain(kind)}" is not a kind; expected {", ".join(KINDS)}')
        kind = ""
    protocol = Protocol(
        name=reader.text("name", needed=True),
        kind=kind,
        readers=reader.names("readers", needed=True),
        cases=_find_cases(reader, folder),
        structures=reader.names("structures", needed=kind == "masks"),
        questions=_questions(reader, kind),
        pairs=reader.whole("pairs", None, 1) if values.get("pairs") != "all" else reader.taken("pairs"),
        reads=reader.whole("reads", 1, 1) or 1,
        repeated_cases=reader.whole("repeated_cases", None, 1),
        washout_days=reader.number("washout_days", 0.0),
        seed=reader.whole("seed", 0, 0) or 0,
        blinding=reader.switch("blinding", True),
        pseudonyms=reader.switch("pseudonyms", True),
        copy_images=reader.switch("copy_images", False),
        instruction=reader.text("instruction"),
    )
    _check_together(reader, protocol, values)
    reader.refuse_others()
    if reader.problems:
        raise TableProblems(file, reader.problems)
    return protocol


def _check_together(reader: _Fields, protocol: Protocol, values: Mapping[str, Any]) -> None:
    """Report fields that contradict each other."""
    kind = protocol.kind
    only = {"structures": ("masks",), "questions": ("labels", "pairs"), "pairs": ("pairs",)}
    for name, kinds in only.items():
        if kind and kind not in kinds and name in values:
            reader.problem(name, f"belongs to {' and '.join(kinds)}, not to {kind}")
    if len(protocol.structures) > MAX_CLASSES:
        reader.problem("structures", f"has {len(protocol.structures)} names; expected at most {MAX_CLASSES}")
    if protocol.repeated_cases is not None and protocol.reads == 1:
        reader.problem("repeated_cases", "needs at least 2 reads")
    if "washout_days" in values and values.get("reads", 1) == 1:
        reader.problem("washout_days", "needs at least 2 reads")


def _find_cases(reader: _Fields, folder: Path) -> tuple[Path, ...]:
    """Find the files of the cases; each entry is a file, a folder or a pattern."""
    files: dict[Path, None] = {}
    for word in reader.names("cases", needed=True, once=False):
        path = folder / word
        pattern = Path(word)
        root = Path(pattern.anchor) if pattern.is_absolute() else folder
        try:
            matches = [path] if path.exists() else sorted(root.glob(str(pattern.relative_to(pattern.anchor))))
        except (ValueError, NotImplementedError, OSError):
            matches = []
        if not matches:
            reader.problem("cases", f"there is no file {plain(word, 200)}")
        files.update(dict.fromkeys(match.resolve() for match in matches))
    return tuple(files)


def _questions(reader: _Fields, kind: str) -> tuple[Question, ...]:
    """Read the questions of labels and pairs."""
    tables = reader.taken("questions", [])
    if kind not in ("labels", "pairs"):
        return ()
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        reader.problem("questions", "is missing; expected a table [[questions]] with a name")
        return ()
    questions = []
    for number, table in enumerate(tables, start=1):
        fields = _Fields(table, f"questions, number {number}, ", reader.problems)
        if kind == "labels":
            classes = fields.names("classes", needed=True)
            if len(classes) == 1 or len(classes) > MAX_CLASSES:
                fields.problem("classes", f"has {len(classes)}; expected 2 to {MAX_CLASSES}, a key each")
        else:
            classes = SIDES if fields.switch("ties", True) else SIDES[:2]
        questions.append(Question(fields.text("name", needed=True), classes, fields.text("text")))
        fields.refuse_others()
    names = [question.name.casefold() for question in questions]
    if len(set(names)) < len(names):
        reader.problem("questions", "two have the same name")
    return tuple(questions)


@dataclass
class _Fields:
    """Fields of a table; each problem is noted with the field's name."""

    values: Mapping[str, Any]
    where: str = ""
    problems: list[str] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def problem(self, name: str, sentence: str) -> None:
        """Add a problem."""
        self.problems.append(f"field {self.where}{name}: {sentence}")

    def taken(self, name: str, default: Any = None) -> Any:
        """Return a field unchanged; None for the word "all"."""
        self._read.add(name)
        value = self.values.get(name, default)
        return None if value == "all" else value

    def _get(self, name: str, valid: Callable[[Any], bool], expected: str, default: Any, needed: bool) -> Any:
        self._read.add(name)
        if name not in self.values:
            if needed:
                self.problem(name, f"is missing; expected {expected}")
            return default
        value = self.values[name]
        if not valid(value):
            shown = "empty" if value in ("", []) else plain(repr(value))
            self.problem(name, f"is {shown}; expected {expected}")
            return default
        return value

    def text(self, name: str, *, needed: bool = False) -> str:
        """Return a line of text."""

        def valid(value: Any) -> bool:
            return isinstance(value, str) and value.isprintable() and bool(value.strip() or not needed)

        return str(self._get(name, valid, "a line of text", "", needed)).strip()

    def names(self, name: str, *, needed: bool = False, once: bool = True) -> tuple[str, ...]:
        """Return a list of names, each once."""

        def valid(value: Any) -> bool:
            return (
                isinstance(value, list)
                and bool(value)
                and all(isinstance(text, str) and text.strip() and text.isprintable() for text in value)
            )

        value = self._get(name, valid, "a list of names", [], needed)
        names = [text.strip() for text in value]
        seen: set[str] = set()
        for text in names:
            if once and text.casefold() in seen:
                self.problem(name, f"{plain(text)} occurs twice")
            seen.add(text.casefold())
        return tuple(names)

    def whole(self, name: str, default: int | None, least: int) -> int | None:
        """Return a whole number."""
        most = _MOST.get(name, 1_000_000)

        def valid(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

        value = self._get(name, valid, f"a whole number from {least} to {most:,}", default, False)
        return None if value is None else int(value)

    def number(self, name: str, default: float) -> float:
        """Return a number of at least 0."""
        most = _MOST.get(name, 1_000_000)

        def valid(value: Any) -> bool:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most

        return float(self._get(name, valid, f"a number from 0 to {most:,}", default, False))

    def switch(self, name: str, default: bool) -> bool:
        """Return true or false."""
        return bool(self._get(name, lambda value: isinstance(value, bool), "true or false", default, False))

    def refuse_others(self) -> None:
        """Report fields that a protocol does not have."""
        for name in self.values:
            if name not in self._read:
                self.problem(plain(name), f"is unknown; expected {', '.join(sorted(self._read))}")
