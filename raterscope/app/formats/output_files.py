"""Output files, which appear under their name only when they are complete.

The name of a draft contains the process and the machine that write it. Drafts of killed processes are
distinguished from drafts in use, and the next process that writes into the folder removes them. Tables are
CSV in UTF-8, without cells that a spreadsheet would run as formulas.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from io import StringIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO
from uuid import uuid4

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, IntArray
from raterscope.app.errors import InputError, plain, system_reason
from raterscope.app.review import (
    BiasSubject,
    CommentSubject,
    Decision,
    GoldSubject,
    NameSubject,
    RegionSubject,
    SpotSubject,
    StructureSubject,
    TaskSubject,
    fold,
    one_by_one,
)

_OLD = 600.0
"""Time without a change after which the draft of an ended process is removed, seconds."""
_LONGEST = 120
"""Maximum length of the file's own name, bytes: with the prefix of a draft, a name has at most 255."""
_DRAFT = re.compile(r"\.draft-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{8}\.", re.ASCII)
_CLEANED: set[Path] = set()


def draft_for(path: Path) -> Path:
    """Return the path of a draft beside a file, with the same suffix.

    The first draft in a folder removes the drafts that killed processes left there.
    """
    if path.parent not in _CLEANED:
        _CLEANED.add(path.parent)
        remove_stray_drafts(path.parent)
    name = os.fsdecode(os.fsencode(path.name)[-_LONGEST:])
    return path.with_name(f".draft-{_machine()}-{os.getpid()}-{uuid4().hex[:8]}.{name}")


def remove_stray_drafts(folder: Path) -> None:
    """Remove old drafts in a folder whose process ran on this machine and has ended; others are kept."""
    now = time.time()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _DRAFT.match(entry.name)
            if match is None or match[1] != _machine() or _runs(int(match[2])):
                continue
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False) and now - entry.stat().st_mtime > _OLD:
                    Path(entry.path).unlink()


@cache
def _machine() -> str:
    """Return an identifier of this machine, or of this container on it."""
    spaces = ""
    if sys.platform == "linux":
        with suppress(OSError):
            spaces = str(Path("/proc/self/ns/pid").readlink())
    return blake2b(f"{socket.gethostname()} {spaces}".encode(), digest_size=4).hexdigest()


def _runs(process: int) -> bool:
    """Return whether a process runs; True if unknown."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


_new_files: ContextVar[list[Path] | None] = ContextVar("new_files", default=None)
_flushed_later: ContextVar[bool] = ContextVar("flushed_later", default=False)


@contextmanager
def flushed_later() -> Iterator[None]:
    """Write files and studies within this context without flushing each; then call `flush_folder`."""
    token = _flushed_later.set(True)
    try:
        yield
    finally:
        _flushed_later.reset(token)


def is_flushed_later() -> bool:
    """Return whether files that are written now are flushed later."""
    return _flushed_later.get()


def flush_folder(folder: Path) -> None:
    """Flush all files below a folder to the disk, and the folders themselves."""
    for path in (*folder.rglob("*"), folder):
        if path.is_file() or hasattr(os, "O_DIRECTORY"):
            handle = os.open(path, os.O_RDWR if path.is_file() else os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextmanager
def remove_new_files_on(*causes: type[BaseException]) -> Iterator[None]:
    """Remove the files written within this context if it ends by one of these exceptions.

    A file that replaced another file is kept, because the other file is lost.
    """
    written: list[Path] = []
    token = _new_files.set(written)
    try:
        yield
    except causes:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    finally:
        _new_files.reset(token)


@contextmanager
def write_together(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Write several files under draft names; they are renamed when all are complete.

    Raises `InputError` if a file cannot be written, is a folder, or exists and is write-protected.
    """
    for path in paths:
        check_writable(path)
    drafts = [draft_for(path) for path in paths]
    try:
        yield drafts
        for draft in () if is_flushed_later() else drafts:
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
        for draft, path in zip(drafts, paths, strict=True):
            new = None if path.exists() else _new_files.get()
            draft.replace(path)
            if new is not None:
                new.append(path)
    except OSError as error:
        raise InputError(f"cannot be written: {system_reason(error)}", file=paths[0]) from error
    finally:
        for draft in drafts:
            if draft.exists():
                draft.unlink()


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Write a file that gets its name when it is complete; an existing file is kept until then.

    Raises `InputError` if it cannot be written.
    """
    with write_together([path]) as (draft,), draft.open("wb") as file:
        yield file


def write_bytes(path: Path, data: bytes) -> Path:
    """Write the bytes of a file, completely or not at all."""
    with open_output(path) as file:
        file.write(data)
    return path


def check_writable(path: Path) -> None:
    """Check before long work whether a file can be written, as far as possible.

    Raises `InputError` for a folder, a file in a missing folder, and an existing file that is
    write-protected.
    """
    if path.is_dir():
        raise InputError("is a folder; expected a file name", file=path)
    if not path.parent.is_dir():
        raise InputError(f"cannot be written: there is no folder {path.parent}", file=path)
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError("cannot be written: it exists and is write-protected", file=path)


DECISIONS = (
    "decision", "at", "who", "kind", "verb", "item", "spot", "x", "y", "from_x", "from_y", "structure",
    "region", "box", "rater", "task", "label", "annotators", "weight", "reason", "run", "about", "undoes",
    "in_effect", "blind", "words", "standing",
)  # fmt: skip

_LONGEST_PART = 80
"""Maximum length of a part of a file name, bytes: a name has up to three parts, and at most 255 bytes on most
disks.
"""
_FIRST = frozenset("'=+-@\t\r")  # first characters of text that may be changed
_SPECIAL = (",", '"', "\r", *(f"\n{letter}" for letter in _FIRST))
"""Pattern of text that may need an apostrophe or quotes, in texts preceded by a line feed."""
_RUNS = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE | re.ASCII)


@contextmanager
def open_text_output(path: Path) -> Iterator[TextIO]:
    """Write a text file that gets its name when it is complete; an existing file is kept until then.

    Raises `InputError` if it cannot be written.
    """
    with open_output(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()  # it flushes, and leaves the file open


def make_folder(folder: Path) -> None:
    """Create a folder unless it exists. Raises `InputError` if it cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be created: {system_reason(error)}", file=folder) from error


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Fill a new or empty folder within this context; an exception empties it again.

    Raises `InputError` if it cannot be created, or already contains files, which would mix with the new
    files.
    """
    existed = folder.exists()
    make_folder(folder)
    if any(folder.iterdir()):
        raise InputError("is not empty; choose a new folder", file=folder)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if existed:
            make_folder(folder)
        raise


def file_name_part(name: str) -> str:
    """Convert any name to a part of a file name."""
    kept = re.sub(r"[^\w+-]+", "-", plain(name)).strip("-")
    return kept.encode()[:_LONGEST_PART].decode(errors="ignore") or "unnamed"


def unique_name(name: str, used: set[str]) -> str:
    """Make a file name differ from the used ones, ignoring case, and add it to them."""
    unique, number = name, 2
    while unique.casefold() in used:
        unique, number = f"{name}-{number}", number + 1
    used.add(unique.casefold())
    return unique


def remove_file(path: Path) -> None:
    """Remove a file if it exists. Raises `InputError` if it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {system_reason(error)}", file=path) from error


def write_record(path: Path, record: Mapping[str, object]) -> Path:
    """Write a JSON record of how results were computed, completely or not at all.

    Raises `InputError` if it cannot be written.
    """
    with open_text_output(path) as file:
        json.dump(record, file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")
    return path


def format_number(value: float) -> str:
    """Format a number with up to nine digits; empty if it is not finite."""
    return f"{value:.9g}" if math.isfinite(value) else ""


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a CSV table with a header row, completely or not at all.

    Raises `InputError` if it cannot be written.

    `rows`: numbers are written as they are. None, NaN and infinity are empty. Text that a spreadsheet would
    run as a formula gets an apostrophe, also in the header.
    """
    with open_text_output(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([escape_formula(name) for name in columns])
        writer.writerows([_cell(cell) for cell in row] for row in rows)
    return path


Column = FloatArray | tuple[Sequence[str], IntArray]
"""Column of numbers, or of texts with the index of the text in each row."""

_ROWS_AT_ONCE = 100_000


def write_columns(path: Path, names: Sequence[str], columns: Sequence[Column]) -> Path:
    """Write the CSV table of `write_table` from columns of N rows, several times as fast.

    Numbers are written by `format_number`. Raises `InputError` if it cannot be written.

    `names`: header of the columns, two or more.
    """
    count = len(columns[0] if isinstance(columns[0], np.ndarray) else columns[0][1])
    cells = [
        column if isinstance(column, np.ndarray) else (np.array(quoted(column[0]), dtype=object), column[1])
        for column in columns
    ]
    with open_text_output(path) as file:
        file.write(",".join(quoted(names)) + "\n")
        for begin in range(0, count, _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            texts = [
                list(map(format_number, cell[rows].tolist()))
                if isinstance(cell, np.ndarray)
                else cell[0][cell[1][rows]].tolist()
                for cell in cells
            ]
            file.write("\n".join(map(",".join, zip(*texts, strict=True))) + "\n")
    return path


def quoted(texts: Sequence[str]) -> list[str]:
    """Return texts as cells of a CSV table, in quotes where necessary."""
    joined = "\n".join(["", *texts])
    if joined.count("\n") == len(texts) and not any(part in joined for part in _SPECIAL):
        return list(texts)
    quotes = StringIO()
    writer = csv.writer(quotes, lineterminator="\n")
    cells = []
    for text in texts:
        writer.writerow((_cell(text), ""))
        cells.append(quotes.getvalue()[:-2])
        quotes.seek(0)
        quotes.truncate()
    return cells


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run: = + - @ tab CR. Numbers are not changed.

    Text that already begins with apostrophes gets another, so that reading removes only the added apostrophe.
    """
    return f"'{text}" if _RUNS.match(text) and not _NUMBER.fullmatch(text) else text


def unescape_formula(text: str) -> str:
    """Remove the apostrophe that `escape_formula` put before a text."""
    return text[1:] if text.startswith("'") and _RUNS.match(text[1:]) else text


def decision_rows(
    decisions: Sequence[Decision], items: Mapping[tuple[str, int], str]
) -> Iterator[Sequence[object]]:
    """Yield the rows of decisions.csv: the whole journal in order, one row for each spot of a decision."""
    state = fold(decisions)
    for decision in chain.from_iterable(map(one_by_one, decisions)):
        subject = decision.subject
        yield (
            decision.id, "" if decision.at is None else decision.at.isoformat(timespec="milliseconds"),
            decision.who, "" if subject is None else subject.kind, decision.verb, _item(decision, items),
            *_subject_cells(decision), "; ".join(decision.annotators), getattr(subject, "weight", None),
            decision.reason, decision.run, decision.about, decision.undoes, state.in_effect(decision.id),
            getattr(subject, "blind", None), state.in_words(decision),
            "" if decision.verb == "undo" else state.status(decision.id),
        )  # fmt: skip


def _item(decision: Decision, items: Mapping[tuple[str, int], str]) -> str:
    if decision.subject is None or decision.item is None:
        return ""
    return items.get((decision.subject.kind, decision.item), f"number {decision.item}")


def _subject_cells(decision: Decision) -> Sequence[object]:
    """Return the cells from spot to label; a box is given by its first and last voxels, counted from 0."""
    subject = decision.subject
    if isinstance(subject, CommentSubject):
        of = {kind: subject.name or None for kind in ("masks", "pairs", "labels") if kind == subject.of}
        is_spot = subject.x is not None
        return (
            subject.number if is_spot else None, subject.x, subject.y, None, None, of.get("masks"),
            None if is_spot else subject.number, None, of.get("pairs"), of.get("labels"), None,
        )  # fmt: skip
    if isinstance(subject, SpotSubject):
        spot = (subject.number, subject.x, subject.y, subject.from_x, subject.from_y)
        return (*spot, *[None] * 5, subject.label or None)
    if isinstance(subject, RegionSubject):
        sides = zip("zyx", subject.origin, subject.shape, strict=True)
        box = " ".join(f"{name} {first}-{first + count - 1}" for name, first, count in sides)
        return (*[None] * 5, subject.structure, subject.number, box, subject.rater, None, None)
    if isinstance(subject, StructureSubject):
        return (*[None] * 5, subject.structure, *[None] * 5)
    if isinstance(subject, NameSubject):  # the column structure also has the former name of a class
        return (*[None] * 5, subject.name, *[None] * 4, subject.new)
    if isinstance(subject, BiasSubject):
        return (*[None] * 8, subject.annotator, None, None)
    if isinstance(subject, (TaskSubject, GoldSubject)):
        return (*[None] * 9, subject.task, subject.label)
    return [None] * 11


def _cell(value: object) -> object:
    if isinstance(value, str):
        return escape_formula(value) if value[:1] in _FIRST else value
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if value is None or (isinstance(value, (float, np.floating)) and not math.isfinite(value)):
        return ""
    return value
