"""Protocol of a reader study: one TOML file, checked completely before anything is written."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raterscope.app.errors import InputError, TableProblems, plain, system_reason

KINDS = ("clicks", "masks", "labels", "pairs")
SIDES = ("left", "right", "tie")
"""Answers to a question about a pair."""

MOST_CLASSES = 9
"""Classes of a question: one digit key each."""

_MOST = {"reads": 9, "washout_days": 3650, "seed": 2**31 - 1}


@dataclass(frozen=True)
class Question:
    """A question that a reader answers on every case."""

    name: str  # short name, which is the question's name in the collected study
    # answers, in the order of their digit keys; of pairs left, right, and tie where ties are allowed
    classes: tuple[str, ...]
    text: str = ""  # the question in a sentence


@dataclass(frozen=True)
class Protocol:
    """Description of a reader study."""

    name: str
    kind: str  # clicks, masks, labels or pairs
    readers: tuple[str, ...]
    # files and folders of images, each once; of pairs the images that are compared; of labels and pairs also
    # tables and studies of tasks, of pairs also of comparisons
    cases: tuple[Path, ...]
    structures: tuple[str, ...] = ()  # what readers outline, of masks
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
    if len(protocol.structures) > MOST_CLASSES:
        reader.problem("structures", f"has {len(protocol.structures)} names; expected at most {MOST_CLASSES}")
    if protocol.repeated_cases is not None and protocol.reads == 1:
        reader.problem("repeated_cases", "needs at least 2 reads")
    if "washout_days" in values and values.get("reads", 1) == 1:
        reader.problem("washout_days", "needs at least 2 reads")


def _find_cases(reader: _Fields, folder: Path) -> tuple[Path, ...]:
    """Find the files of the cases; a word is a file, a folder or a pattern."""
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
            if len(classes) == 1 or len(classes) > MOST_CLASSES:
                fields.problem("classes", f"has {len(classes)}; expected 2 to {MOST_CLASSES}, a key each")
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
        """Return a field as it is; None for the word "all"."""
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
