"""State kept between two looks at a growing source: positions in files, identities of rows.

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

__all__ = [
    "MOST_FILES",
    "MOST_KEPT",
    "ExportState",
    "FilePosition",
    "Memory",
    "Position",
    "Waiting",
    "added",
    "contains",
    "identities",
    "identity_of",
]


MOST_FILES = 20_000
MOST_KEPT = 2_000_000
"""Rows whose identity is kept, 8 bytes each: a position never has more than some 40 MB."""

_BYTES_PER_ROW = 8

_Count = Annotated[int, msgspec.Meta(ge=0)]
Waiting = tuple[str, str, str, float | None, float | None, float | None]
_Kept = Annotated[bytes, msgspec.Meta(max_length=2 * MOST_KEPT * _BYTES_PER_ROW)]


@dataclass(frozen=True)
class FilePosition:
    """How far one file was read.

    Attributes
    ----------
    offset : int
        Bytes that were read.
    line : int
        The number of the line that begins there, from 1.
    kind : str
        table, export or json; empty before the first line is complete.
    codec, delimiter : str
    header : tuple of str
        The table's columns.
    digest : bytes
        Of blocks spread over what was read: tells a file that grew from another in its place.
    stamp : (size, modified, changed, inode) or None
        What the system says of the file, where it can be trusted that the same stamp means the same bytes.
    skipping : bool
        Whether the rest of the present line is passed over, because the line is too long.
    pointed : bool
        Whether a number had a decimal point, after which a comma is none.
    latest : float or None
        The latest time that came, seconds.
    disordered : bool
        Whether it was said that times go back.
    refused : bool
        Whether the file was said to be of no use.
    seen : bytes
        Sorted identities of the rows that the file ever gave, little-endian uint64 each.
    again : bytes or None
        Where the file was replaced: those that the present file has given so far.
    """

    offset: _Count = 0
    line: Annotated[int, msgspec.Meta(ge=1)] = 1
    kind: Annotated[str, msgspec.Meta(pattern="^(|table|export|json)$")] = ""
    codec: Annotated[str, msgspec.Meta(pattern="^(|utf-8|utf-(16|32)-[lb]e)$")] = ""
    delimiter: Annotated[str, msgspec.Meta(max_length=1)] = ""
    header: tuple[str, ...] = ()
    digest: bytes = b""
    stamp: tuple[int, int, int, int] | None = None
    skipping: bool = False
    pointed: bool = False
    latest: float | None = None
    disordered: bool = False
    refused: bool = False
    seen: _Kept = b""
    again: _Kept | None = None


@dataclass(frozen=True)
class ExportState:
    """What classification exports told, which their later lines need.

    Attributes
    ----------
    drawing : tuple of str
        Workflows that have a drawing task.
    owned : bytes
        Sorted identities of names, and of names with the subject that had each first.
    waiting : tuple of (workflow, person, image, time, width, height)
        Who looked in a workflow of which it is not yet known whether it has a drawing task; None for a number
        that is not known.
    """

    drawing: tuple[str, ...] = ()
    owned: _Kept = b""
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True)
class Position:
    """How far a source was read.

    Attributes
    ----------
    files : mapping of file name to FilePosition
    absent : bool
        Whether it was said that the source is not there.
    full : bool
        Whether it was said that no more rows can be told apart.
    exports : ExportState
    """

    files: dict[str, FilePosition] = field(default_factory=dict)
    absent: bool = False
    full: bool = False
    exports: ExportState = field(default_factory=ExportState)

    def as_dict(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return dict(msgspec.to_builtins(self))

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Position:
        """Take back what `as_dict` gave.

        Raises
        ------
        InputError
            For anything else.
        """
        try:
            position = msgspec.convert(told, cls)
        except (msgspec.ValidationError, RecursionError) as error:
            raise InputError(f"is no position in a source that grows: {error}") from None
        files = position.files.values()
        kept = [position.exports.owned, *(rows for one in files for rows in (one.seen, one.again or b""))]
        whole = all(len(rows) % _BYTES_PER_ROW == 0 for rows in kept)
        if not whole or len(files) > MOST_FILES or not all(map(_is_sound, files)):
            raise InputError("is no position in a source that grows: its parts do not fit together")
        return position


def _is_sound(one: FilePosition) -> bool:
    """Tell whether what is said of a file can be read on from."""
    if one.kind == "json":
        return bool(one.codec) and one.header == HEADER
    table = Table(Path(), one.header, (), ())
    if one.kind == "export" and not is_export(table):
        return False
    return not one.kind or bool(one.codec and one.delimiter and one.header)


UintArray = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

_NONE: UintArray = np.empty(0, dtype=np.uint64)


def identities(columns: Sequence[Sequence[str]], numbers: Sequence[FloatArray]) -> UintArray:
    """Give rows of names and numbers an identity each; all NaN are the same.

    Parameters
    ----------
    columns : sequence of columns of N names
    numbers : sequence of (N,) float64

    Returns
    -------
    (N,) uint64
    """
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for names in columns:
        told = {name: identity_of(name) for name in set(names)}
        mixed = _mixed(mixed ^ np.fromiter((told[name] for name in names), np.uint64, len(names)))
    for values in numbers:
        same = np.where(np.isnan(values), np.nan, values + 0.0)
        mixed = _mixed(mixed ^ same.astype("<f8").view("<u8").astype(np.uint64))
    return mixed


def identity_of(*texts: str) -> int:
    """Give some texts an identity."""
    joined = "\x00".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


def _mixed(values: UintArray) -> UintArray:
    """Stir 64 bits so that each depends on all, as the generator SplitMix64 does ([steele2014]_).

    References
    ----------
    .. [steele2014] G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
       Proceedings of OOPSLA 2014 (2014) 453-472, doi:10.1145/2660193.2660195.
    """
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def contains(kept: bytes, one: int) -> bool:
    """Tell whether an identity is among those kept."""
    return bool(_counts(_unpacked(kept), np.array([one], dtype=np.uint64))[0])


def added(kept: bytes, more: Sequence[int]) -> bytes:
    """Keep some more identities."""
    return _packed(_merged(_unpacked(kept), np.sort(np.array(more, dtype=np.uint64))))


class Memory:
    """The rows that each file of a source gave, as multisets.

    A file may hold a row twice: two clicks at one place. Where it is replaced, or where the row comes in
    another file, a row counts as new only if it comes more often than it came in any file before. A row with
    a time, or one that says that somebody marked nothing, cannot rightly come twice.
    """

    def __init__(self, files: Mapping[str, FilePosition]) -> None:
        self._seen = {name: _unpacked(one.seen) for name, one in files.items()}
        self._again = {name: _unpacked(one.again) for name, one in files.items() if one.again is not None}

    def __len__(self) -> int:
        return sum(map(len, self._seen.values()))

    def begin_again(self, name: str) -> None:
        """Take note that a file was replaced and is read from its beginning."""
        if len(self._seen.get(name, _NONE)):
            self._again[name] = _NONE

    def kept(self, name: str) -> tuple[bytes, bytes | None]:
        """Give what is to be kept of a file: `seen` and `again` of its position."""
        again = self._again.get(name)
        return _packed(self._seen.get(name, _NONE)), None if again is None else _packed(again)

    def take(self, name: str, rows: UintArray, once: BoolArray) -> BoolArray:
        """Take in rows of a file, and tell which are new.

        Parameters
        ----------
        name : str
        rows : (N,) uint64
            Their identities.
        once : (N,) bool
            Which cannot rightly come twice.

        Returns
        -------
        (N,) bool
        """
        order = np.argsort(rows, kind="stable")
        rows, once = rows[order], once[order]
        seen, again = self._seen.get(name, _NONE), self._again.get(name)
        given = _counts(seen, rows)
        before = np.zeros_like(given) if again is None else given
        for other, theirs in self._seen.items():
            if other != name:
                before = np.maximum(before, _counts(theirs, rows))
        number = np.arange(len(rows)) - np.searchsorted(rows, rows)
        number += given if again is None else _counts(again, rows)
        kept = ~once | (number == 0)
        if again is None:
            self._seen[name] = _merged(seen, rows[kept])
        else:
            self._seen[name] = _merged(seen, rows[kept & (number >= given)])
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
    """Put sorted identities in among others."""
    return np.insert(kept, np.searchsorted(kept, more), more)


def _unpacked(kept: bytes) -> UintArray:
    return np.frombuffer(kept, dtype="<u8").astype(np.uint64, copy=False)


def _packed(rows: UintArray) -> bytes:
    return rows.astype("<u8", copy=False).tobytes()
