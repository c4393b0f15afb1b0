"""How far each file of a growing source was read, and which rows came, to be kept between two looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from raterscope.app.errors import InputError
from raterscope.app.formats.growing.json_lines import HEADER
from raterscope.app.formats.tables import Table
from raterscope.app.formats.zooniverse import is_export

__all__ = ["MOST_FILES", "MOST_KEPT", "ExportState", "FilePosition", "Position", "Waiting"]

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
