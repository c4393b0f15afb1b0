"""One look at a growing source of clicks: its files, and the new rows in them."""

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
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats import zooniverse
from raterscope.app.formats.growing_files.exports import Classification, Exports, classifications
from raterscope.app.formats.growing_files.lines import (
    LONGEST,
    Hash,
    Stamp,
    begin,
    digest_of,
    is_settled,
    is_still,
    lines_in,
    opened,
    size_of,
    stamp_of,
)
from raterscope.app.formats.growing_files.records import (
    HEADER,
    Records,
    Refusals,
    Rows,
    cut_objects,
    cut_records,
    header_in,
    is_json,
    joined,
    read_rows,
    table_of,
)
from raterscope.app.formats.growing_files.state import (
    MOST_FILES,
    MOST_KEPT,
    FilePosition,
    Memory,
    Position,
    identities,
)
from raterscope.app.formats.points.tables import NEEDED, WANTED
from raterscope.app.formats.records import ClickTable
from raterscope.app.formats.tables import Table, assign

__all__ = ["Findings", "Growth", "Reading", "look", "refused"]


_MOST_SAID = 10


@dataclass
class Findings:
    """What came of one file."""

    path: Path
    position: FilePosition
    rows: list[Rows] = field(default_factory=list)
    marks: list[Classification] = field(default_factory=list)
    shapes: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    lines_read: int = 0
    refused: int = 0
    repeated: int = 0
    untimed: int = 0

    def refuse(self, line: int, what: str, field: str | None = None) -> None:
        """Take note of a line that is left out; the first ones are told in full."""
        self.refused += 1
        if self.refused <= _MOST_SAID:
            self.said.append(str(InputError(what, file=self.path, line=line, field=field)))

    def leave_untimed(self, cells: Sequence[tuple[int, str]]) -> None:
        """Take note of times that are none, given as (line, cell)."""
        if cells and not self.untimed:
            line, cell = cells[0]
            what = f'"{plain(cell, 40)}" is no time; the row came without one'
            self.said.append(str(InputError(what, file=self.path, line=line)))
        self.untimed += len(cells)

    def look_at_times(self) -> None:
        """Say, once a file, that times go back."""
        for rows in self.rows:
            timed = np.flatnonzero(np.isfinite(rows.time))
            if not len(timed):
                continue
            times, latest = rows.time[timed], self.position.latest
            before = np.maximum.accumulate(np.concatenate([[-np.inf if latest is None else latest], times]))
            back = np.flatnonzero(times < before[:-1])
            if len(back) and not self.position.disordered:
                line = int(rows.line[timed[back[0]]])
                what = "this time is earlier than the previous one; rows are used in the order of the file"
                self.said.append(str(InputError(what, file=self.path, line=line)))
            disordered = self.position.disordered or bool(len(back))
            self.position = replace(self.position, latest=float(before[-1]), disordered=disordered)

    def notices(self) -> tuple[str, ...]:
        """Give the sentences for people."""
        name, said = plain(self.path.name, 200), list(self.said)
        if self.refused > _MOST_SAID:
            said.append(f"{name}: {counted(self.refused - _MOST_SAID, 'more bad line')} left out.")
        if self.untimed > 1:
            said.append(f"{name}: {counted(self.untimed - 1, 'more row')} without a time that can be read.")
        if self.repeated:
            said.append(f"{name}: {counted(self.repeated, 'row')} left out, having come before.")
        if self.shapes:
            kinds = ", ".join(f"{plain(kind, 20)} {count:,}" for kind, count in self.shapes.most_common(6))
            said.append(f"{name}: marks that are no points were left out ({kinds}).")
        return tuple(said)


def refused(path: Path, before: FilePosition | None, stamp: Stamp, error: InputError) -> Findings:
    """Leave a file out until it changes, which is said once."""
    position = replace(before or FilePosition(), refused=True, stamp=stamp)
    said = [] if before is not None and before.refused else [str(error)]
    return Findings(path, position, said=said)


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


_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson")
_FULL = f"more than {MOST_KEPT:,} rows or {MOST_FILES:,} files cannot be told apart; no more is read."
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload")


@dataclass(frozen=True, eq=False)
class Growth:
    """What came since a position.

    Attributes
    ----------
    table : ClickTable or None
        The rows that are new, in the order in which they came; None where there are none. It may tell of
        looks alone, without a click.
    position : Position
        From where to look next, once the rows are stored.
    notices : tuple of str
        Sentences for people.
    lines_read : int
        Rows that were read, of which some may not be new and some were refused.
    refused : int
        Rows that were left out because something is wrong in them.
    repeated : int
        Rows that were left out because they had come before.
    more : bool
        Whether more can be read at once.
    """

    table: ClickTable | None
    position: Position
    notices: tuple[str, ...] = ()
    lines_read: int = 0
    refused: int = 0
    repeated: int = 0
    more: bool = False


def look(
    source: Path | str,
    position: Position | None = None,
    mapping: Mapping[str, str] | None = None,
    watch: Watch = silent,
    *,
    most_rows: int = 100_000,
    ended: bool = False,
) -> Growth:
    """Read what came into a file or a folder since the last look.

    It depends on the source and the position alone: who stores rows and position together, and looks again
    from the position stored last, loses nothing and gets nothing twice.

    Parameters
    ----------
    source : Path
        A table (CSV and its like), JSON lines or a Zooniverse classification export; or a folder with such
        files, read in the order of their names. It need not be there yet.
    position : Position, optional
        Where the last look ended; without it, all is read.
    mapping : mapping of column to field, optional
        Names columns by hand: annotator, image, x, y, time, width, height, ignore.
    watch : Watch
    most_rows : int
        No more are read in one look.
    ended : bool
        Whether nothing more will come: a last line without an end is read too.

    Returns
    -------
    Growth

    Raises
    ------
    UnknownColumns
        Where the file's columns must be named by hand.
    InputError
        For a file that cannot be used at all; in a folder such a file is left out, and that is said.
    """
    source = Path(source)
    position = Position() if position is None else position
    notices = list[str]()
    listed = _files(source)
    absent, full = listed is None, False
    if absent and not position.absent:
        there = "is no longer there" if position.files else "is not there yet"
        notices.append(f"{plain(source.name, 200)} {there}: what comes will be read.")
    changed = _changed(listed or [], position, again=mapping is not None)
    if not changed:
        return Growth(None, replace(position, absent=absent), tuple(notices))
    memory = Memory(position.files)
    reading = Reading(memory, Exports(position.exports), mapping, watch, most_rows, ended)
    files, found = dict(position.files), list[Findings]()
    for path, stamp in changed:
        if len(memory) >= MOST_KEPT or (path.name not in files and len(files) >= MOST_FILES):
            full = True
            continue
        try:
            one = reading.read(path, files.get(path.name))
        except InputError as error:
            if path == source:
                raise
            one = refused(path, files.get(path.name), stamp, error)
        if one is not None:
            found.append(one)
            files[path.name] = one.position
        if reading.is_done:
            break
    if full and not position.full:
        notices.append(f"{plain(source.name, 200)}: {_FULL}")
    if reading.exports.forgotten:
        looks = counted(reading.exports.forgotten, "look")
        notices.append(f"{looks} without a mark left out: nobody has drawn in their workflow so far.")
    table = _table(source, found)
    watch(1.0, f"{counted(0 if table is None else len(table), 'new click')}")
    return Growth(
        table=table,
        position=Position(files, absent, full, reading.exports.state()),
        notices=(*notices, *(notice for one in found for notice in one.notices())),
        lines_read=sum(one.lines_read for one in found),
        refused=sum(one.refused for one in found),
        repeated=sum(one.repeated for one in found),
        more=reading.is_done,
    )


def _changed(
    listed: list[tuple[Path, Stamp]], position: Position, *, again: bool
) -> list[tuple[Path, Stamp]]:
    """Leave out the files that are as they were; `again` says to try those of no use once more."""
    known = position.files
    return [
        (path, stamp)
        for path, stamp in listed
        if path.name not in known or known[path.name].stamp != stamp or (again and known[path.name].refused)
    ]


def _table(source: Path, found: list[Findings]) -> ClickTable | None:
    giving = [one for one in found if one.rows]
    if not giving:
        return None
    rows = joined([rows for one in giving for rows in one.rows])
    alone = len(giving) == 1
    return table_of(rows, giving[0].path if alone else source, has_lines=alone)


def _files(source: Path) -> list[tuple[Path, Stamp]] | None:
    """List the files to look at with their stamps, by name; None where nothing is there."""
    try:
        if not source.is_dir():
            return [(source, stamp_of(source.stat()))]
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in entries if _is_wanted(entry.name))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=source) from None
    found = []
    for name in names:
        with contextlib.suppress(OSError):
            status = (source / name).stat()
            if stat.S_ISREG(status.st_mode):
                found.append((source / name, stamp_of(status)))
    return found


def _is_wanted(name: str) -> bool:
    path = Path(name.casefold())
    if name.startswith((".", "~")) or not name.isprintable():
        return False
    return path.suffix in _SUFFIXES and Path(path.stem).suffix not in _UNFINISHED
