"""Making and opening the file of a study, and what to say when that fails.

A study that is open is locked by SQLite's exclusive locking mode: the operating system's own lock on the
file, which refuses a second open from this process or another and vanishes with its owner, however that ends.
On POSIX systems a process that closes any handle on a file loses its locks on it: so nothing else in the
program opens the file, even the header is read through SQLite, a study must be called NAME.rscope, which all
readers leave alone, and where somebody else's library opens it all the same, a second lock holds (`locking`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from raterscope.algorithms.progress import Watch
from raterscope.app.formats.records import STUDY_SUFFIX
from raterscope.app.study.locking import IS_OPEN, Lock
from raterscope.app.study.migration import OLDEST, bring_up_to_date, schema_of
from raterscope.app.study.records import StudyError, UnwrittenError
from raterscope.app.study.schema import APPLICATION_ID, SCHEMA, VERSION

__all__ = ["connect", "copy_into", "copy_of", "create", "make", "shut", "told"]

# The largest value that is read, and up to which size of file every page is looked at when it is opened (some
# 0.1 s). In larger files the pages of arrays are looked at when they are read, safe by zlib's checksums.
_LONGEST_VALUE = 64 << 20
_CHECKED_WHOLE = 64 << 20
_COPIED_AT_ONCE = 256
"""Pages; some milliseconds, for which a decision may have to wait."""
_SMALL_TABLES = ("images", "annotators", "imports", "objects", "marks", "runs", "results", "decisions")


def create(path: Path) -> None:
    """Make an empty study. It appears whole under its name, or not at all.

    Raises
    ------
    StudyError
        When something of that name exists or the folder cannot be written.
    """
    make(path, _fill)


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make a study's file with what `fill` puts into it; see `create`."""
    if path.suffix.casefold() != STUDY_SUFFIX:
        raise StudyError("is no name for a study; expected NAME.rscope", file=path)
    if os.path.lexists(path):
        raise StudyError("exists already; choose another name or open it", file=path)
    if not path.parent.is_dir():
        raise StudyError(f"cannot be made, for there is no folder {path.parent}", file=path)
    draft = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with told(path, "made"):
            connection = sqlite3.connect(draft, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous=FULL")
                fill(connection)
            finally:
                connection.close()
            _give_name(draft, path)
    finally:
        with contextlib.suppress(OSError):  # of a read-only disk, where there is nothing to take away
            draft.unlink(missing_ok=True)


def _fill(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def connect(path: Path, *, to_read: bool = False) -> tuple[sqlite3.Connection, Lock | None]:
    """Open a study's file for this process alone, having looked whether it is sound; see `shut`.

    Parameters
    ----------
    path : Path
    to_read : bool
        Whether it is enough to read it: then one that cannot be written is opened too, beside other readers.

    Raises
    ------
    StudyError
        When it is missing, no study, damaged, open elsewhere, from a newer version, or cannot be written.
    """
    writable = _look_from_outside(path, to_read)
    try:
        return _connected(path, writable)
    except StudyError as refused:
        if to_read and writable and _is_for_want_of_room(refused.__cause__):
            with contextlib.suppress(StudyError):  # where a killed program left something to be taken in
                return _connected(path, False)
        raise


def _connected(path: Path, writable: bool) -> tuple[sqlite3.Connection, Lock | None]:
    connection = None
    with told(path, "opened"):
        lock = Lock(path) if writable else None
    try:
        with told(path, "opened"):
            connection = sqlite3.connect(
                f"{path.as_uri()}?mode={'rw' if writable else 'ro'}",
                uri=True,
                isolation_level=None,
                timeout=0.0,
                check_same_thread=False,
            )
            _guard(connection)
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            version = _look_at_header(connection, path)
            # Before anything is written: a file that is refused stays as it was found, for whoever mends it.
            _look_inside(connection, path, version)
            if writable:
                _take(connection)
                _look_for_end(connection, path)
            if version < VERSION and not writable:
                connection = _in_memory(connection)
            bring_up_to_date(connection, version)
            if not writable:
                connection.execute("PRAGMA query_only=ON")
    except BaseException:
        if connection is not None:
            connection.close()
        if lock is not None:
            lock.release()
        raise
    return connection, lock


def copy_of(connection: sqlite3.Connection, watch: Watch) -> sqlite3.Connection:
    """Copy an open study into a file without a name, to be read beside it; it goes when it is closed.

    It may be called in another thread than the study's: SQLite lets one in after the other, and what is
    written meanwhile is in the copy too.
    """
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    try:
        _guard(copy)
        copy_into(copy, connection, watch)
        copy.execute("PRAGMA query_only=ON")
    except BaseException:
        copy.close()
        raise
    return copy


def copy_into(copy: sqlite3.Connection, connection: sqlite3.Connection, watch: Watch) -> None:
    """Copy an open study into an open file, some pages at a time."""

    def tell(_status: int, left: int, pages: int) -> None:
        watch(1 - left / max(pages, 1), "copying the study")

    watch(0.0, "copying the study")
    connection.backup(copy, pages=_COPIED_AT_ONCE, progress=tell, sleep=0.005)


def shut(path: Path, connection: sqlite3.Connection, lock: Lock | None) -> None:
    """Close the file, leaving one plain file.

    Raises
    ------
    StudyError
        When that is not possible: what was written last is in another file, beside it.
    """
    full = False
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        full = _is_for_want_of_room(error)
    connection.close()
    if lock is not None:
        lock.release()
    if full and path.exists():
        raise StudyError(
            f"is closed, but the disk is full: what was written last is in {_beside(path).name}; keep both "
            "together, and open the study once there is room",
            file=path,
        )


def _beside(path: Path) -> Path:
    """Name the file in which SQLite has what was written last."""
    return path.with_name(f"{path.name}-wal")


@contextlib.contextmanager
def told(path: Path, done: str) -> Iterator[None]:
    """Say what the database or the system refused, in a sentence; `done` as in "cannot be opened"."""
    kind = UnwrittenError if done == "written" else StudyError
    try:
        yield
    except sqlite3.Error as error:
        raise kind(_sentence(error, done), file=path) from error
    except UnicodeDecodeError as error:  # of the schema's own text, which no type of SQLite's reports
        raise StudyError(f"cannot be {done}: the file is damaged; open a backup of it", file=path) from error
    except OSError as error:
        raise kind(f"cannot be {done}: {error.strerror or error}", file=path) from error


def _give_name(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike a renaming, this never replaces what somebody else has just made
    except FileExistsError:
        raise StudyError("exists already; choose another name or open it", file=path) from None
    except OSError:  # a file system without links
        draft.rename(path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _guard(connection: sqlite3.Connection) -> None:
    """Let a stranger's file do no more than hold what is read from it."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")


def _take(connection: sqlite3.Connection) -> None:
    """Make sure that nobody else has the file, and take into it what a killed program had left beside it."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Copy a file of an older version that cannot be written, to be brought up to date where it can."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with contextlib.closing(connection):
        connection.backup(copy)
    return copy


def _look_from_outside(path: Path, to_read: bool) -> bool:
    """Refuse what can be seen to be no study; gives whether it can be written."""
    try:
        if path.is_dir():
            raise StudyError("is a folder; expected a study, a file NAME.rscope", file=path)
        size = path.stat().st_size
    except FileNotFoundError:
        raise StudyError(f"is not there; looked in {path.parent}", file=path) from None
    except OSError as error:
        raise StudyError(f"cannot be opened: {error.strerror or error}", file=path) from error
    if not path.is_file():
        raise StudyError("is no ordinary file; expected a study", file=path)
    if size == 0:
        raise StudyError("is empty; expected a study", file=path)
    if not os.access(path, os.R_OK):
        raise StudyError("cannot be read: you lack the permission", file=path)
    file, folder = (os.access(place, os.W_OK) for place in (path, path.parent))
    if not (to_read or (file and folder)) and _on_read_only_disk(path):
        raise StudyError("cannot be written: it is on a read-only disk; open a copy of it", file=path)
    if not (to_read or file):
        raise StudyError("cannot be written: you lack the permission; open a copy of it", file=path)
    if not (to_read or folder):
        raise StudyError("lies in a folder that cannot be written; open a copy of it elsewhere", file=path)
    return file and folder


def _on_read_only_disk(path: Path) -> bool:
    # Asked of the disk: to try to write would close a handle on the file.
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _look_at_header(connection: sqlite3.Connection, path: Path) -> int:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StudyError("is a database of another program; expected a study", file=path)
    if path.suffix.casefold() != STUDY_SUFFIX:
        raise StudyError("is a study by another name; rename it to NAME.rscope", file=path)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise StudyError(
            f"was written by a newer Raterscope (format {version}; this one reads {VERSION}); update it",
            file=path,
        )
    if version < OLDEST:
        raise StudyError(f"declares format {version}, which never was; the file is damaged", file=path)
    return version


def _look_for_end(connection: sqlite3.Connection, path: Path) -> int:
    """Refuse a file without its end; gives how long it is to be."""
    pages, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if path.stat().st_size < pages * page:
        raise StudyError("is cut short: its end is missing", file=path)
    return int(pages * page)


def _look_inside(connection: sqlite3.Connection, path: Path, version: int) -> None:
    size = path.stat().st_size
    if not _beside(path).exists():  # where a killed program may have left its end
        size = _look_for_end(connection, path)
    found = {
        (kind, name): sql
        for kind, name, sql in connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
    }
    if found != {(sql.split()[1].lower(), sql.split()[2]): sql for sql in schema_of(version)}:
        raise StudyError("is damaged or was altered: its tables are not those of a study", file=path)
    tables = [""] if size <= _CHECKED_WHOLE else [f"('{name}')" for name in _SMALL_TABLES]
    for table in tables:
        answer = connection.execute(f"PRAGMA quick_check{table}").fetchone()[0]
        if answer != "ok":
            raise StudyError(f"is damaged ({answer.splitlines()[-1]}); open a backup of it", file=path)


def _is_for_want_of_room(error: BaseException | None) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_FULL")


def _sentence(error: sqlite3.Error, done: str) -> str:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return IS_OPEN
    if name.startswith("SQLITE_NOTADB"):
        return "is no study; expected a file NAME.rscope that Raterscope made"
    if name.startswith("SQLITE_CORRUPT") or str(error).startswith("Could not decode to UTF-8"):
        return f"cannot be {done}: the file is damaged; open a backup of it"
    if name.startswith("SQLITE_FULL") and done == "copied":
        return "cannot be copied: the disk for temporary files is full"
    if name.startswith("SQLITE_FULL"):
        return f"cannot be {done}: the disk is full; nothing was changed"
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return f"cannot be {done}: the file or its folder cannot be written"
    if name.startswith("SQLITE_TOOBIG"):
        return f"cannot be {done}: a value in it is larger than any that Raterscope writes"
    return f"cannot be {done}: {error}"
