"""State between two looks at a growing source, and Zooniverse exports that grow.

Identities of rows have 64 bits and are kept sorted. The chance that two of n different rows have the same
identity is n^2 / 2^65: less than one in ten million for a million rows. Such a row would be skipped as
already read.

A complete export is interpreted as a whole, a growing export by the lines so far. A person's first
classification of a subject counts. A classification without marks counts as a view only when the workflow is
known to have a drawing task; until then it is stored. A subject's frames are those with a known size or with
marks. If two subjects have the same file name, the second gets its number appended.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.app.errors import InputError
from raterscope.app.formats.growing_files.records import HEADER, Rows, repair_table
from raterscope.app.formats.tables import LONGEST_NAME, Faults, Table, seconds_or_nan
from raterscope.app.formats.zooniverse import is_export, name_subject, parse_classifications, read_frame_sizes

MAX_FILES = 20_000
MAX_KEPT = 2_000_000
"""Maximum number of stored row identities, 8 bytes each: a position needs at most about 40 MB."""

_BYTES_PER_ROW = 8

_Count = Annotated[int, msgspec.Meta(ge=0)]
Waiting = tuple[str, str, str, float | None, float | None, float | None]
_Kept = Annotated[bytes, msgspec.Meta(max_length=2 * MAX_KEPT * _BYTES_PER_ROW)]


@dataclass(frozen=True)
class FilePosition:
    """Position up to which one file was read."""

    offset: _Count = 0  # bytes that were read
    line: Annotated[int, msgspec.Meta(ge=1)] = 1  # number of the line that begins there, from 1
    # table, export or json; empty before the first line is complete
    kind: Annotated[str, msgspec.Meta(pattern="^(|table|export|json)$")] = ""
    codec: Annotated[str, msgspec.Meta(pattern="^(|utf-8|utf-(16|32)-[lb]e)$")] = ""
    delimiter: Annotated[str, msgspec.Meta(max_length=1)] = ""
    header: tuple[str, ...] = ()  # the table's columns
    # digest of blocks spread over the bytes read; it distinguishes a file that grew from one that was
    # replaced
    digest: bytes = b""
    # (size, modified, changed, inode) or None: status of the file, if an equal stamp later means the same
    # bytes
    stamp: tuple[int, int, int, int] | None = None
    skipping: bool = False  # whether the rest of the current line is skipped, because the line is too long
    pointed: bool = False  # whether a number had a decimal point; then a comma is no decimal mark
    latest: float | None = None  # latest time so far, seconds
    disordered: bool = False  # whether the message that times go back was given
    refused: bool = False  # whether the message that the file cannot be used was given
    seen: _Kept = b""  # sorted identities of all rows that the file ever had, little-endian uint64 each
    again: _Kept | None = None  # for a replaced file: identities of the rows of the current file so far


@dataclass(frozen=True)
class ExportState:
    """State of classification exports that their later lines need."""

    drawing: tuple[str, ...] = ()  # workflows that have a drawing task
    owned: _Kept = b""  # sorted identities of names, and of names with their first subject
    # tuple of (workflow, person, image, time, width, height): views in a workflow that has no drawing task so
    # far; None for an unknown number
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True)
class Position:
    """Position up to which a source was read."""

    files: dict[str, FilePosition] = field(default_factory=dict)  # by file name
    absent: bool = False  # whether the message that the source does not exist was given
    full: bool = False  # whether the message that no more rows can be distinguished was given
    exports: ExportState = field(default_factory=ExportState)

    def as_dict(self) -> dict[str, Any]:
        """Convert to types of JSON."""
        return dict(msgspec.to_builtins(self))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Position:
        """Create from the result of `as_dict`. Raises `InputError` for any other content."""
        try:
            position = msgspec.convert(content, cls)
        except (msgspec.ValidationError, RecursionError) as error:
            raise InputError(f"is not a position in a growing source: {error}") from None
        files = position.files.values()
        kept = [position.exports.owned, *(rows for file in files for rows in (file.seen, file.again or b""))]
        is_complete = all(len(rows) % _BYTES_PER_ROW == 0 for rows in kept)
        if not is_complete or len(files) > MAX_FILES or not all(map(_is_sound, files)):
            raise InputError("is not a position in a growing source: its parts do not fit together")
        return position


def _is_sound(file: FilePosition) -> bool:
    """Return whether reading can continue from a position."""
    if file.kind == "json":
        return bool(file.codec) and file.header == HEADER
    table = Table(Path(), file.header, (), ())
    if file.kind == "export" and not is_export(table):
        return False
    return not file.kind or bool(file.codec and file.delimiter and file.header)


UintArray = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

_NONE: UintArray = np.empty(0, dtype=np.uint64)


def identities(columns: Sequence[Sequence[str]], numbers: Sequence[FloatArray]) -> UintArray:
    """Compute an identity for each row of names and numbers, (N,); all NaN are the same.

    `columns`: N names each. `numbers`: (N,) each.
    """
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for names in columns:
        number = {name: identity_of(name) for name in set(names)}
        mixed = _mixed(mixed ^ np.fromiter((number[name] for name in names), np.uint64, len(names)))
    for values in numbers:
        same = np.where(np.isnan(values), np.nan, values + 0.0)
        mixed = _mixed(mixed ^ same.astype("<f8").view("<u8").astype(np.uint64))
    return mixed


def identity_of(*texts: str) -> int:
    """Compute the identity of some texts."""
    joined = "\x00".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


def _mixed(values: UintArray) -> UintArray:
    """Mix 64 bits so that each depends on all, as the generator SplitMix64 does ([steele2014]_).

    References
    ----------
    .. [steele2014] G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
       Proceedings of OOPSLA 2014 (2014) 453-472, doi:10.1145/2660193.2660195.
    """
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def contains(kept: bytes, identity: int) -> bool:
    """Return whether an identity is among the stored ones."""
    return bool(_counts(_unpacked(kept), np.array([identity], dtype=np.uint64))[0])


def added(kept: bytes, more: Sequence[int]) -> bytes:
    """Add identities to the stored ones."""
    return _packed(_merged(_unpacked(kept), np.sort(np.array(more, dtype=np.uint64))))


class Memory:
    """Multiset of the rows that each file of a source contained.

    A file may contain a row twice: two clicks at one position. If the file is replaced, or the row comes in
    another file, a row counts as new only if it is more frequent than in any file before. A row with a time,
    or a view without a mark, cannot be legitimately repeated.
    """

    def __init__(self, files: Mapping[str, FilePosition]) -> None:
        self._seen = {name: _unpacked(position.seen) for name, position in files.items()}
        self._again = {
            name: _unpacked(position.again) for name, position in files.items() if position.again is not None
        }

    def __len__(self) -> int:
        return sum(map(len, self._seen.values()))

    def begin_again(self, name: str) -> None:
        """Note that a file was replaced and is read from its beginning."""
        if len(self._seen.get(name, _NONE)):
            self._again[name] = _NONE

    def kept(self, name: str) -> tuple[bytes, bytes | None]:
        """Return `seen` and `again` of a file's position."""
        again = self._again.get(name)
        return _packed(self._seen.get(name, _NONE)), None if again is None else _packed(again)

    def take(self, name: str, rows: UintArray, once: BoolArray) -> BoolArray:
        """Add rows of a file; return whether each is new, (N,).

        `rows`: (N,), identities of the rows. `once`: (N,), True for rows that cannot be legitimately
        repeated.
        """
        order = np.argsort(rows, kind="stable")
        rows, once = rows[order], once[order]
        seen, again = self._seen.get(name, _NONE), self._again.get(name)
        earlier = _counts(seen, rows)
        before = np.zeros_like(earlier) if again is None else earlier
        for other, theirs in self._seen.items():
            if other != name:
                before = np.maximum(before, _counts(theirs, rows))
        number = np.arange(len(rows)) - np.searchsorted(rows, rows)
        number += earlier if again is None else _counts(again, rows)
        kept = ~once | (number == 0)
        if again is None:
            self._seen[name] = _merged(seen, rows[kept])
        else:
            self._seen[name] = _merged(seen, rows[kept & (number >= earlier)])
            self._again[name] = _merged(again, rows[kept])
            if len(self._again[name]) == len(self._seen[name]):
                del self._again[name]
        new = np.empty(len(rows), dtype=bool)
        new[order] = kept & np.where(once, before == 0, number >= before)
        return new


def _counts(kept: UintArray, rows: UintArray) -> npt.NDArray[np.int64]:
    left = np.searchsorted(kept, rows, side="left")
    return (np.searchsorted(kept, rows, side="right") - left).astype(np.int64)


def _merged(kept: UintArray, more: UintArray) -> UintArray:
    """Merge two sorted arrays of identities."""
    return np.insert(kept, np.searchsorted(kept, more), more)


def _unpacked(kept: bytes) -> UintArray:
    return np.frombuffer(kept, dtype="<u8").astype(np.uint64, copy=False)


def _packed(rows: UintArray) -> bytes:
    return rows.astype("<u8", copy=False).tobytes()


_Row = tuple[str, str, tuple[float, float, float, float, float], int]

_MAX_WAITING = 2000
_MAX_WORKFLOWS = 1000


@dataclass(frozen=True)
class Classification:
    """One person's classification of one subject."""

    line: int
    person: str
    subject: str
    workflow: str
    is_drawing: bool  # whether there are marks, which means that the workflow has a drawing task
    name: str  # the subject's name
    time: float  # seconds; NaN if unknown
    points: tuple[tuple[int, float, float], ...]  # tuple of (frame, x, y)
    sizes: Mapping[int, tuple[float, float]]  # by frame
    shapes: Mapping[str, int]  # number of marks that are not points, by shape

    @property
    def identity(self) -> int:
        """Identity of person, subject and workflow."""
        return identity_of("classification", self.person, self.subject, self.workflow)


def read_classifications(table: Table) -> tuple[list[Classification], Faults]:
    """Read the rows of an export, each independently of the others."""
    table, wrong = repair_table(table, table.header)
    refused = Faults(table, wrong)
    data, metadata = table.column("subject_data"), table.column("metadata")
    result = []
    for row, line in enumerate(table.lines):
        single = Table(
            table.path, table.header, tuple(column[row : row + 1] for column in table.columns), (line,)
        )
        faults, shapes = Faults(single), Counter[str]()
        looks, drawing, _ = parse_classifications(single, faults, shapes)
        if faults.rows:
            refused.add([row], *faults.describe(0))
        if row in refused.rows:
            continue
        look, sizes = looks[0], dict(read_frame_sizes(metadata[row]))
        name = name_subject(data[row], look.subject)
        if not _is_name(name) or not all(map(_is_name, (look.annotator, look.subject, look.workflow))):
            refused.add([row], "subject_data", f"has names longer than {LONGEST_NAME} letters")
            continue
        result.append(
            Classification(
                line, look.annotator, look.subject, look.workflow, bool(drawing), name,
                seconds_or_nan(look.time),
                tuple(look.points), sizes, shapes,
            )
        )  # fmt: skip
    return result, refused


def _is_name(text: str) -> bool:
    """Return whether a text is short enough, and has no unpaired surrogate, which JSON may contain."""
    return len(text) <= LONGEST_NAME and not any("\ud800" <= letter <= "\udfff" for letter in text)


class Exports:
    """Converter of classifications to rows, with the state from earlier lines of the exports."""

    def __init__(self, state: ExportState) -> None:
        self.forgotten = 0  # waiting looks that were dropped because there were too many
        self._drawing = set(state.drawing)
        self._owned = state.owned
        self._waiting = list(state.waiting)

    def state(self) -> ExportState:
        """Return the state to store."""
        return ExportState(tuple(sorted(self._drawing)), self._owned, tuple(self._waiting))

    def rows_of(self, classifications: Sequence[Classification]) -> Rows:
        """Return the clicks, and the views without a mark, in the order in which they become known."""
        rows: list[_Row] = []
        for item in classifications:
            is_new = item.is_drawing and item.workflow not in self._drawing
            if is_new and len(self._drawing) < _MAX_WORKFLOWS:
                self._drawing.add(item.workflow)
                rows += [_row_of(look, item.line) for look in self._waiting if look[0] == item.workflow]
                self._waiting = [look for look in self._waiting if look[0] != item.workflow]
            base = self._name(item.name, item.subject)
            marked = {frame for frame, _, _ in item.points}
            for frame in sorted({*item.sizes, *marked} or {0}):
                image = base + (f" frame {frame + 1}" if frame else "")
                width, height = item.sizes.get(frame, (math.nan, math.nan))
                if item.workflow not in self._drawing:
                    time, *size = (
                        None if math.isnan(value) else value for value in (item.time, width, height)
                    )
                    self._waiting.append((item.workflow, item.person, image, time, size[0], size[1]))
                    continue
                positions = [point[1:] for point in item.points if point[0] == frame] or [
                    (math.nan, math.nan)
                ]
                rows += [
                    (item.person, image, (x, y, item.time, width, height), item.line) for x, y in positions
                ]
        self.forgotten += max(len(self._waiting) - _MAX_WAITING, 0)
        self._waiting = self._waiting[-_MAX_WAITING:]
        numbers = np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 5)
        column = iter(numbers.T.copy())
        line = np.array([row[3] for row in rows], dtype=np.int64)
        return Rows(
            [row[0] for row in rows], [row[1] for row in rows], x=next(column), y=next(column),
            time=next(column), width=next(column), height=next(column), line=line,
        )  # fmt: skip

    def _name(self, name: str, subject: str) -> str:
        """Return the name for its first subject; for any other, the name with the subject's number."""
        plain, owner = identity_of("name", name), identity_of("owner", name, subject)
        if not contains(self._owned, plain):
            self._owned = added(self._owned, [plain, owner])
        return name if contains(self._owned, owner) else f"{name} (subject {subject})"


def _row_of(look: Waiting, line: int) -> _Row:
    _, person, image, *numbers = look
    time, width, height = (math.nan if value is None else value for value in numbers)
    return person, image, (math.nan, math.nan, time, width, height), line
