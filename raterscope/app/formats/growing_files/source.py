"""One look at a growing source of clicks: its files, and the new rows in them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.growing_files.blocks import Stamp, stamp_of
from raterscope.app.formats.growing_files.exports import Exports
from raterscope.app.formats.growing_files.findings import Findings, refused
from raterscope.app.formats.growing_files.reading import Reading
from raterscope.app.formats.growing_files.records import joined, table_of
from raterscope.app.formats.growing_files.state import MOST_FILES, MOST_KEPT, Memory, Position
from raterscope.app.formats.records import ClickTable

__all__ = ["Growth", "look"]

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
