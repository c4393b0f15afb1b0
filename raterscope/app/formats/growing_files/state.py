"""State between two looks at a growing source: positions in files, identities of rows.

Identities of rows have 64 bits and are kept sorted. Two of n different rows share an identity with a chance
of n^2 / 2^65: less than one in ten million for a million rows. Such a row would be skipped as read before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.app.errors import InputError
from raterscope.app.formats.growing_files.records import HEADER
from raterscope.app.formats.tables import Table
from raterscope.app.formats.zooniverse import is_export

MOST_FILES = 20_000
MOST_KEPT = 2_000_000
"""Rows whose identity is stored, 8 bytes each: a position takes at most about 40 MB."""

_BYTES_PER_ROW = 8

_Count = Annotated[int, msgspec.Meta(ge=0)]
Waiting = tuple[str, str, str, float | None, float | None, float | None]
_Kept = Annotated[bytes, msgspec.Meta(max_length=2 * MOST_KEPT * _BYTES_PER_ROW)]


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
    # of blocks spread over the bytes read: distinguishes a file that grew from one that was replaced
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
    # tuple of (workflow, person, image, time, width, height): looks in a workflow that has no drawing task so
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
        if not is_complete or len(files) > MOST_FILES or not all(map(_is_sound, files)):
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
    """Multiset of the rows that each file of a source had.

    A file may hold a row twice: two clicks at one position. If the file is replaced, or the row comes in
    another file, a row counts as new only if it is more frequent than in any file before. A row with a time,
    or a look without a mark, is never legitimately repeated.
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
        """Add rows of a file; return which are new, (N,).

        `rows`: (N,), identities of the rows. `once`: (N,), rows that are never legitimately repeated.
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
    """Insert sorted identities into sorted ones."""
    return np.insert(kept, np.searchsorted(kept, more), more)


def _unpacked(kept: bytes) -> UintArray:
    return np.frombuffer(kept, dtype="<u8").astype(np.uint64, copy=False)


def _packed(rows: UintArray) -> bytes:
    return rows.astype("<u8", copy=False).tobytes()
