"""One file that grows, from where it was left: its complete lines, a block at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import plain
from raterscope.app.formats import zooniverse
from raterscope.app.formats.clicks import NEEDED, WANTED
from raterscope.app.formats.growing_files.blocks import (
    Hash,
    digest_of,
    is_settled,
    is_still,
    opened,
    stamp_of,
)
from raterscope.app.formats.growing_files.exports import Exports, classifications
from raterscope.app.formats.growing_files.findings import Findings
from raterscope.app.formats.growing_files.json_lines import HEADER, cut_objects, is_json
from raterscope.app.formats.growing_files.lines import LONGEST, begin, lines_in, size_of
from raterscope.app.formats.growing_files.records import (
    Records,
    Refusals,
    cut_records,
    header_in,
    joined,
    read_rows,
)
from raterscope.app.formats.growing_files.state import FilePosition, Memory, identities
from raterscope.app.formats.tables import Table, assign

__all__ = ["Reading"]

_BLOCK = 1 << 20
_MOST_BYTES = 64 << 20


@dataclass
class Reading:
    """One look at a source, file by file."""

    memory: Memory
    exports: Exports
    mapping: Mapping[str, str] | None
    watch: Watch
    most_rows: int
    ended: bool

    def __post_init__(self) -> None:
        self.rows_left, self.bytes_left = self.most_rows, _MOST_BYTES

    @property
    def is_done(self) -> bool:
        """Whether the look has as much as it takes."""
        return self.rows_left <= 0 or self.bytes_left <= 0

    def read(self, path: Path, before: FilePosition | None) -> Findings | None:
        """Read what came into a file; None where it has gone, or was rewritten in the meantime.

        Raises
        ------
        InputError
            For a file that cannot be used.
        """
        stream = opened(path)
        if stream is None:
            return None
        with stream:
            stamp = stamp_of(os.fstat(stream.fileno()))
            found = Findings(path, before or FilePosition())
            was = found.position
            replaced = was.offset > 0 and (
                stamp[0] < was.offset or digest_of(stream, was.offset) != was.digest
            )
            if replaced:
                found.said.append(f"{plain(path.name, 200)} was replaced: it is read from its beginning.")
                found.position = FilePosition(latest=was.latest, disordered=was.disordered)
            begin, taken = found.position.offset, hashlib.blake2b()
            is_whole = self._read_blocks(stream, found, taken)
            after = stamp_of(os.fstat(stream.fileno()))
            if after != stamp and not is_still(stream, begin, found.position.offset, taken):
                return None
            digest = digest_of(stream, found.position.offset)
        if replaced:
            self.memory.begin_again(path.name)
        self._tell_apart(found)
        seen, again = self.memory.kept(path.name)
        stamped = stamp if is_whole and stamp == after and is_settled(stamp) else None
        found.position = replace(found.position, digest=digest, stamp=stamped, seen=seen, again=again)
        return found

    def _read_blocks(self, stream: BinaryIO, found: Findings, taken: Hash) -> bool:
        """Read block after block; tell whether the file has no more complete line."""
        size = _BLOCK
        while not self.is_done:
            begin = found.position.offset
            stream.seek(begin)
            data = stream.read(size)
            if self._take_block(data, found, self.ended and len(data) < size):
                taken.update(data[: found.position.offset - begin])
                size = _BLOCK
            elif len(data) < size:
                return True
            else:
                size *= 2
            self.watch(1 - max(self.rows_left, 1) / (self.most_rows + 1), f"reading {plain(found.path.name)}")
        return False

    def _take_block(self, data: bytes, found: Findings, ended: bool) -> bool:
        """Take the complete lines at the beginning of some bytes; tell whether there was anything to take."""
        here = found.position
        if not here.codec:
            text = begin(data, found.path, ended)
            if text is not None:
                found.position = replace(here, codec=text.codec, offset=text.start)
            return text is not None
        lines, rest = lines_in(data, here.codec, ended)
        if here.skipping or (not lines and rest > LONGEST):
            return self._pass_over(data, lines, found)
        if not here.kind:
            taken = self._begin_table(lines, ended, found)
        elif here.kind == "json":
            taken = self._take_records(cut_objects(lines, found.path, self.mapping), found)
        else:
            width = len(here.header)
            records = cut_records(lines, here.delimiter, width, found.path, here.codec, rest, ended)
            taken = self._take_records(records, found)
        size = size_of(lines[:taken], here.codec)
        found.position = replace(found.position, offset=here.offset + size, line=here.line + taken)
        self.bytes_left -= size
        return found.position != here

    def _pass_over(self, data: bytes, lines: list[str], found: Findings) -> bool:
        """Pass over a line that is too long, as far as it has come."""
        here = found.position
        if not here.skipping:
            found.refuse(here.line, f"is longer than {LONGEST >> 20} MB")
        size = size_of(lines[:1], here.codec) if lines else max(len(data) // 4 * 4 - 4, 0)
        found.position = replace(
            here, offset=here.offset + size, line=here.line + len(lines[:1]), skipping=not lines
        )
        self.bytes_left -= size
        return size > 0

    def _begin_table(self, lines: list[str], ended: bool, found: Findings) -> int:
        """Tell what kind of file this is by its first line, and how many lines its header takes."""
        here = found.position
        if is_json(lines):
            found.position = replace(here, kind="json", header=HEADER)
            return 0
        header = header_in(lines, found.path, here.codec, ended)
        if header is None:
            return 0
        table = Table(found.path, header.columns, (), ())
        by_hand = set(self.mapping or ()) & set(header.columns)
        kind = "export" if zooniverse.is_export(table) and not by_hand else "table"
        found.position = replace(here, kind=kind, delimiter=header.delimiter, header=header.columns)
        return header.taken

    def _take_records(self, records: Records, found: Findings) -> int:
        """Read rows of cells; give the number of lines that are done with."""
        here = found.position
        records = records.first(self.rows_left)
        self.rows_left -= len(records.rows)
        found.lines_read += len(records.rows) + len(records.refused)
        bad: list[tuple[int, str, str | None]] = [
            (here.line + line, what, None) for line, what in records.refused
        ]
        if records.rows:
            lines = [here.line + line for line in records.at]
            table = Table(found.path, here.header, tuple(zip(*records.rows, strict=True)), lines)
            faults = self._read_table(table, found)
            bad += [(lines[row], what, name) for row, (name, what) in faults.found.items()]
        for line, what, name in sorted(bad, key=lambda one: one[0]):
            found.refuse(line, what, name)
        return records.taken

    def _read_table(self, table: Table, found: Findings) -> Refusals:
        """Read rows of cells; tell what is wrong in some."""
        here = found.position
        if here.kind == "export":
            marks, faults = classifications(table)
            found.marks += marks
            return faults
        column = assign(table, NEEDED, WANTED, self.mapping if here.kind == "table" else None)
        rows, faults, untimed, pointed = read_rows(table, column, here.pointed)
        found.rows.append(rows)
        found.position = replace(here, pointed=pointed)
        found.leave_untimed(untimed)
        return faults

    def _tell_apart(self, found: Findings) -> None:
        """Leave out the rows that came before."""
        name = found.path.name
        if found.marks:
            who = np.array([mark.identity for mark in found.marks], dtype=np.uint64)
            new = self.memory.take(name, who, np.ones(len(who), dtype=bool))
            marks = [mark for mark, is_new in zip(found.marks, new.tolist(), strict=True) if is_new]
            found.rows = [self.exports.rows_of(marks)]
            for mark in marks:
                found.shapes.update(mark.shapes)
        elif found.rows:
            rows = joined(found.rows)
            who = identities((rows.people, rows.images), (rows.x, rows.y, rows.time))
            new = self.memory.take(name, who, np.isfinite(rows.time) | np.isnan(rows.x))
            found.rows = [rows.kept(new)]
        else:
            return
        found.repeated += int((~new).sum())
        found.rows = [rows for rows in found.rows if len(rows)]
        found.look_at_times()
