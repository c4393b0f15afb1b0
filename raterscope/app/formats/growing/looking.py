"""One look at a source of clicks that grows."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.growing.blocks import Stamp, stamp_of
from raterscope.app.formats.growing.exports import Exports
from raterscope.app.formats.growing.findings import Findings, refused
from raterscope.app.formats.growing.identities import Memory
from raterscope.app.formats.growing.positions import MOST_FILES, MOST_KEPT, Position
from raterscope.app.formats.growing.reading import Reading
from raterscope.app.formats.growing.rows import joined, table_of
from raterscope.app.formats.records import ClickTable

__all__ = ["Growth", "look"]

_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson")
_UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".download")


@dataclass(frozen=True, eq=False)
class Growth:
    """What came since a position.

    Attributes
    ----------
    table : ClickTable or None
        The rows that are new, in the order in which they came; None where there are none.
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
    memory = Memory(
        {name: one.seen for name, one in position.files.items()},
        {name: one.again for name, one in position.files.items()},
    )
    reading = Reading(memory, Exports(position.exports), mapping, watch, most_rows, ended)
    files, notices, looks = dict(position.files), list[str](), list[Findings]()
    found = _files(source)
    absent, full = found is None, position.full
    if absent and not position.absent:
        there = "is no longer there" if position.files else "is not there yet"
        notices.append(f"{plain(source.name, 200)} {there}: what comes will be read.")
    for path, stamp in found or ():
        before = files.get(path.name)
        if before is not None and before.stamp == stamp and (mapping is None or not before.refused):
            continue
        if before is None and len(files) >= MOST_FILES:
            notices.append(f"{plain(source.name, 200)}: there are more than {MOST_FILES:,} files.")
            break
        if len(memory) >= MOST_KEPT:
            full = True
            break
        try:
            one = reading.read(path, before)
        except InputError as error:
            if path == source:
                raise
            one = refused(path, before, stamp, error)
        if one is None:
            continue
        looks.append(one)
        files[path.name] = one.position
        if reading.is_done:
            break
    if full and not position.full:
        notices.append(
            f"More than {MOST_KEPT:,} rows came, which is as many as can be told apart: no more is read."
        )
    parts = [rows for one in looks for rows in one.rows]
    paths = {one.path for one in looks if one.rows}
    table = None
    if parts:
        only = paths.pop() if len(paths) == 1 else None
        table = table_of(joined(parts), only or source, has_lines=only is not None)
    watch(1.0, f"{counted(0 if table is None else len(table), 'new click')}")
    return Growth(
        table=table,
        position=replace(position, files=files, absent=absent, full=full, exports=reading.exports.state()),
        notices=(*notices, *(notice for one in looks for notice in one.notices())),
        lines_read=sum(one.lines_read for one in looks),
        refused=sum(one.refused for one in looks),
        repeated=sum(one.repeated for one in looks),
        more=not full and reading.is_done,
    )


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
    suffixes = [suffix.casefold() for suffix in Path(name).suffixes]
    if name.startswith((".", "~")) or not name.isprintable() or set(suffixes) & set(_UNFINISHED):
        return False
    return bool(suffixes) and suffixes[-1] in _SUFFIXES
