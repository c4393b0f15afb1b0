"""Reader of growing sources of clicks: the new rows of a file or of the files in a folder.

A file is read in blocks, from the position of the last look up to its last complete line.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain, system_reason
from raterscope.app.formats import zooniverse
from raterscope.app.formats.growing_files.lines import (
    LONGEST,
    Hash,
    Stamp,
    begin,
    digest_of,
    is_settled,
    is_unchanged,
    open_if_present,
    size_of,
    split_lines,
    stamp_of,
)
from raterscope.app.formats.growing_files.records import (
    HEADER,
    Records,
    Rows,
    is_json,
    join_rows,
    parse_objects,
    read_header,
    read_rows,
    split_records,
    table_of,
)
from raterscope.app.formats.growing_files.state import (
    MAX_FILES,
    MAX_KEPT,
    Classification,
    Exports,
    FilePosition,
    Memory,
    Position,
    identities,
    read_classifications,
)
from raterscope.app.formats.points.tables import NEEDED, WANTED
from raterscope.app.formats.records import ClickTable
from raterscope.app.formats.tables import Faults, Table, assign_columns, repeated_header_notice, unit_of
from raterscope.text import counted

_MAX_MESSAGES = 10


@dataclass
class _Findings:
    """Rows and messages from one look at a file."""

    path: Path
    position: FilePosition
    rows: list[Rows] = field(default_factory=list)
    marks: list[Classification] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0
    untimed: int = 0
    headers: list[int] = field(default_factory=list)  # lines that repeat the header

    def refuse(self, line: int, problem: str, field: str | None = None) -> None:
        """Count a skipped line; each of the first lines has a message."""
        self.refused += 1
        if self.refused <= _MAX_MESSAGES:
            self.messages.append(str(InputError(problem, file=self.path, line=line, field=field)))

    def note_untimed(self, cells: Sequence[tuple[int, str]]) -> None:
        """Count unreadable times, given as (line, cell)."""
        if cells and not self.untimed:
            line, cell = cells[0]
            problem = f'"{plain(cell, 40)}" is not a time; the row is kept without one'
            self.messages.append(str(InputError(problem, file=self.path, line=line)))
        self.untimed += len(cells)

    def check_order(self) -> None:
        """Report, once for each file, that times decrease."""
        for rows in self.rows:
            timed = np.flatnonzero(np.isfinite(rows.time))
            if not len(timed):
                continue
            times, latest = rows.time[timed], self.position.latest
            before = np.maximum.accumulate(np.concatenate([[-np.inf if latest is None else latest], times]))
            back = np.flatnonzero(times < before[:-1])
            if len(back) and not self.position.disordered:
                line = int(rows.line[timed[back[0]]])
                problem = "this time is earlier than the previous one; rows are used in the order of the file"
                self.messages.append(str(InputError(problem, file=self.path, line=line)))
            disordered = self.position.disordered or bool(len(back))
            self.position = replace(self.position, latest=float(before[-1]), disordered=disordered)

    def notices(self) -> tuple[str, ...]:
        """Return the messages for the user."""
        name, messages = plain(self.path.name, 200), list(self.messages)
        if self.refused > _MAX_MESSAGES:
            messages.append(f"{name}: {counted(self.refused - _MAX_MESSAGES, 'more bad line')} skipped.")
        if self.untimed > 1:
            messages.append(f"{name}: {counted(self.untimed - 1, 'more row')} without a readable time.")
        if self.repeated:
            messages.append(f"{name}: {counted(self.repeated, 'row')} skipped: they were read before.")
        messages += [f"{name}: {text}" for text in repeated_header_notice(self.headers)]
        if self.shapes:
            kinds = ", ".join(f"{plain(kind, 20)} {count:,}" for kind, count in self.shapes.most_common(6))
            messages.append(f"{name}: marks that are not points were skipped ({kinds}).")
        return tuple(messages)


def _refuse(path: Path, before: FilePosition | None, stamp: Stamp, error: InputError) -> _Findings:
    """Skip a file until it changes, with a single message."""
    position = replace(before or FilePosition(), refused=True, stamp=stamp)
    messages = [] if before is not None and before.refused else [str(error)]
    return _Findings(path, position, messages=messages)


_BLOCK = 1 << 20
_MAX_BYTES = 64 << 20


@dataclass
class _Reading:
    """One look at a source: reads the files in order, within limits of rows and bytes."""

    memory: Memory
    exports: Exports
    mapping: Mapping[str, str] | None
    watch: Watch
    max_rows: int
    ended: bool

    def __post_init__(self) -> None:
        self.rows_left, self.bytes_left = self.max_rows, _MAX_BYTES

    @property
    def is_done(self) -> bool:
        """Whether this look has reached a limit."""
        return self.rows_left <= 0 or self.bytes_left <= 0

    def read(self, path: Path, before: FilePosition | None) -> _Findings | None:
        """Read the new rows of a file; None if it was deleted or rewritten in the meantime.

        Raises `InputError` for a file that cannot be used.
        """
        stream = open_if_present(path)
        if stream is None:
            return None
        with stream:
            stamp = stamp_of(os.fstat(stream.fileno()))
            findings = _Findings(path, before or FilePosition())
            previous = findings.position
            is_replaced = previous.offset > 0 and (
                stamp[0] < previous.offset or digest_of(stream, previous.offset) != previous.digest
            )
            if is_replaced:
                name = plain(path.name, 200)
                findings.messages.append(f"{name} was replaced and is read from its beginning.")
                findings.position = FilePosition(latest=previous.latest, disordered=previous.disordered)
            begin, digest_read = findings.position.offset, hashlib.blake2b()
            is_at_end = self._read_blocks(stream, findings, digest_read)
            end_stamp = stamp_of(os.fstat(stream.fileno()))
            if end_stamp != stamp and not is_unchanged(stream, begin, findings.position.offset, digest_read):
                return None
            digest = digest_of(stream, findings.position.offset)
        if is_replaced:
            self.memory.begin_again(path.name)
        self._drop_repeated(findings)
        seen, again = self.memory.kept(path.name)
        stamped = stamp if is_at_end and stamp == end_stamp and is_settled(stamp) else None
        findings.position = replace(findings.position, digest=digest, stamp=stamped, seen=seen, again=again)
        return findings

    def _read_blocks(self, stream: BinaryIO, findings: _Findings, digest_read: Hash) -> bool:
        """Read the blocks of a file; return whether no complete line is left."""
        size = _BLOCK
        while not self.is_done:
            begin = findings.position.offset
            stream.seek(begin)
            data = stream.read(size)
            if self._read_block(data, findings, self.ended and len(data) < size):
                digest_read.update(data[: findings.position.offset - begin])
                size = _BLOCK
            elif len(data) < size:
                return True
            else:
                size *= 2
            fraction = 1 - max(self.rows_left, 1) / (self.max_rows + 1)
            self.watch(fraction, f"reading {plain(findings.path.name)}")
        return False

    def _read_block(self, data: bytes, findings: _Findings, ended: bool) -> bool:
        """Read the complete lines at the beginning of some bytes; return whether anything was read."""
        position = findings.position
        if not position.codec:
            text = begin(data, findings.path, ended)
            if text is not None:
                findings.position = replace(position, codec=text.codec, offset=text.start)
            return text is not None
        lines, rest = split_lines(data, position.codec, ended)
        if position.skipping or (not lines and rest > LONGEST):
            return self._skip_line(data, lines, findings)
        if not position.kind:
            line_count = self._begin_table(lines, ended, findings)
        elif position.kind == "json":
            line_count = self._read_records(parse_objects(lines, findings.path, self.mapping), findings)
        else:
            width = len(position.header)
            records = split_records(
                lines, position.delimiter, width, findings.path, position.codec, rest, ended
            )
            line_count = self._read_records(records, findings)
        size = size_of(lines[:line_count], position.codec)
        findings.position = replace(
            findings.position, offset=position.offset + size, line=position.line + line_count
        )
        self.bytes_left -= size
        return findings.position != position

    def _skip_line(self, data: bytes, lines: list[str], findings: _Findings) -> bool:
        """Skip the present part of a line that is too long."""
        position = findings.position
        if not position.skipping:
            findings.refuse(position.line, f"is longer than {LONGEST >> 20} MB")
        size = size_of(lines[:1], position.codec) if lines else max(len(data) // 4 * 4 - 4, 0)
        findings.position = replace(
            position, offset=position.offset + size, line=position.line + len(lines[:1]), skipping=not lines
        )
        self.bytes_left -= size
        return size > 0

    def _begin_table(self, lines: list[str], ended: bool, findings: _Findings) -> int:
        """Detect the kind of file by its first line; return the number of lines of its header."""
        position = findings.position
        if is_json(lines):
            findings.position = replace(position, kind="json", header=HEADER)
            return 0
        header = read_header(lines, findings.path, position.codec, ended)
        if header is None:
            return 0
        table = Table(findings.path, header.columns, (), ())
        by_hand = set(self.mapping or ()) & set(header.columns)
        kind = "export" if zooniverse.is_export(table) and not by_hand else "table"
        findings.position = replace(position, kind=kind, delimiter=header.delimiter, header=header.columns)
        return header.line_count

    def _read_records(self, records: Records, findings: _Findings) -> int:
        """Read rows of cells; return the number of lines consumed."""
        position = findings.position
        records = records.first(self.rows_left)
        self.rows_left -= len(records.rows)
        bad: list[tuple[int, str, str | None]] = [
            (position.line + line, problem, None) for line, problem in records.refused
        ]
        rows, lines = records.rows, [position.line + line for line in records.at]
        headers = [row for row, cells in enumerate(rows) if _is_header(cells, position.header)]
        if headers:
            findings.headers += [lines[row] for row in headers]
            rows = [cells for row, cells in enumerate(rows) if row not in headers]
            lines = [line for row, line in enumerate(lines) if row not in headers]
        if rows:
            table = Table(findings.path, position.header, tuple(zip(*rows, strict=True)), lines)
            faults = self._read_table(table, findings)
            for row in faults.rows:
                field, fault = faults.describe(row)
                bad.append((lines[row], fault, field))
        for line, problem, name in sorted(bad, key=lambda fault: fault[0]):
            findings.refuse(line, problem, name)
        return records.line_count

    def _read_table(self, table: Table, findings: _Findings) -> Faults:
        """Read rows of cells; return the problems of some."""
        position = findings.position
        if position.kind == "export":
            marks, faults = read_classifications(table)
            findings.marks += marks
            return faults
        column = assign_columns(table, NEEDED, WANTED, self.mapping if position.kind == "table" else None)
        for name in (column["x"], column["y"]):
            if unit_of(name) is not None and name not in (self.mapping or {}):
                raise InputError("has a unit; expected pixels", file=table.path, field=name)
        rows, faults, untimed, pointed = read_rows(table, column, position.pointed)
        findings.rows.append(rows)
        findings.position = replace(position, pointed=pointed)
        findings.note_untimed(untimed)
        return faults

    def _drop_repeated(self, findings: _Findings) -> None:
        """Drop the rows that were read before."""
        name = findings.path.name
        if findings.marks:
            row_ids = np.array([mark.identity for mark in findings.marks], dtype=np.uint64)
            new = self.memory.take(name, row_ids, np.ones(len(row_ids), dtype=bool))
            marks = [mark for mark, is_new in zip(findings.marks, new.tolist(), strict=True) if is_new]
            findings.rows = [self.exports.rows_of(marks)]
            for mark in marks:
                findings.shapes.update(mark.shapes)
        elif findings.rows:
            rows = join_rows(findings.rows)
            row_ids = identities((rows.annotators, rows.images), (rows.x, rows.y, rows.time))
            new = self.memory.take(name, row_ids, np.isfinite(rows.time) | np.isnan(rows.x))
            findings.rows = [rows.select(new)]
        else:
            return
        findings.repeated += int((~new).sum())
        findings.rows = [rows for rows in findings.rows if len(rows)]
        findings.check_order()


def _is_header(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Return whether a row repeats the header, as in tables that were joined."""
    return cells[0].strip() == header[0] and [cell.strip() for cell in cells] == list(header)


_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson")
_FULL = f"more than {MAX_KEPT:,} rows or {MAX_FILES:,} files cannot be distinguished; no more are read."
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload")


@dataclass(frozen=True, eq=False)
class Growth:
    """Rows read since a position."""

    # the new rows in order; None if there are none. They may be only views, without a click
    table: ClickTable | None
    position: Position  # where the next look begins, once the rows are stored
    notices: tuple[str, ...] = ()  # messages for the user
    refused: int = 0  # rows that were skipped because of a problem
    repeated: int = 0  # rows that were skipped because they were read before
    more: bool = False  # whether more can be read immediately


def look(
    source: Path | str,
    position: Position | None = None,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    *,
    max_rows: int = 100_000,
    ended: bool = False,
) -> Growth:
    """Read the rows added to a file or a folder since the last look.

    The result depends only on the source and the position. A caller that stores rows and position together,
    and continues from the position stored last, loses no rows and gets no row twice. Raises `UnknownColumns`
    if the file's columns must be named by hand. Raises `InputError` for a file that cannot be used at all; in
    a folder such a file is skipped with a notice.

    `source`: a table (CSV, TSV), JSON lines or a Zooniverse classification export; or a folder with such
        files, read in the order of their names. It need not exist yet.
    `position`: where the last look ended; without it everything is read.
    `mapping`: fields of columns, named by hand: annotator, image, x, y, time, width, height, ignore.
    `max_rows`: limit of rows for one look.
    `ended`: whether the source is complete; then a last line without a line end is read too.
    """
    source = Path(source)
    position = Position() if position is None else position
    notices = list[str]()
    listed = _files(source)
    absent, full = listed is None, False
    if absent and not position.absent:
        state = "no longer exists" if position.files else "does not exist yet"
        notices.append(f"{plain(source.name, 200)} {state}; it is read when it appears.")
    changed = _changed(listed or [], position, again=mapping is not None)
    if not changed:
        return Growth(None, replace(position, absent=absent), tuple(notices))
    memory = Memory(position.files)
    reading = _Reading(memory, Exports(position.exports), mapping, watch, max_rows, ended)
    files, all_findings = dict(position.files), list[_Findings]()
    for path, stamp in changed:
        if len(memory) >= MAX_KEPT or (path.name not in files and len(files) >= MAX_FILES):
            full = True
            continue
        try:
            findings = reading.read(path, files.get(path.name))
        except InputError as error:
            if path == source:
                raise
            findings = _refuse(path, files.get(path.name), stamp, error)
        if findings is not None:
            all_findings.append(findings)
            files[path.name] = findings.position
        if reading.is_done:
            break
    if full and not position.full:
        notices.append(f"{plain(source.name, 200)}: {_FULL}")
    if reading.exports.forgotten:
        looks = counted(reading.exports.forgotten, "view")
        notices.append(f"{looks} without a mark skipped: no marks in their workflow so far.")
    table = _table(source, all_findings)
    watch(1.0, f"{counted(0 if table is None else len(table), 'new click')}")
    return Growth(
        table=table,
        position=Position(files, absent, full, reading.exports.state()),
        notices=(*notices, *(notice for findings in all_findings for notice in findings.notices())),
        refused=sum(findings.refused for findings in all_findings),
        repeated=sum(findings.repeated for findings in all_findings),
        more=reading.is_done,
    )


def _changed(
    listed: list[tuple[Path, Stamp]], position: Position, *, again: bool
) -> list[tuple[Path, Stamp]]:
    """Select the files that changed; `again` includes files that were refused before."""
    known = position.files
    return [
        (path, stamp)
        for path, stamp in listed
        if path.name not in known or known[path.name].stamp != stamp or (again and known[path.name].refused)
    ]


def _table(source: Path, all_findings: list[_Findings]) -> ClickTable | None:
    used = [findings for findings in all_findings if findings.rows]
    if not used:
        return None
    rows = join_rows([rows for findings in used for rows in findings.rows])
    is_single = len(used) == 1
    return table_of(rows, used[0].path if is_single else source, has_lines=is_single)


def _files(source: Path) -> list[tuple[Path, Stamp]] | None:
    """List the files with their stamps, by name; None if the source does not exist."""
    try:
        if not source.is_dir():
            return [(source, stamp_of(source.stat()))]
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in entries if _is_wanted(entry.name))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=source) from None
    listed = []
    for name in names:
        with contextlib.suppress(OSError):
            status = (source / name).stat()
            if stat.S_ISREG(status.st_mode):
                listed.append((source / name, stamp_of(status)))
    return listed


def _is_wanted(name: str) -> bool:
    path = Path(name.casefold())
    if name.startswith((".", "~")) or not name.isprintable():
        return False
    return path.suffix in _SUFFIXES and Path(path.stem).suffix not in _UNFINISHED
