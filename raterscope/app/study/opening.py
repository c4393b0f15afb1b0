"""Creating and opening the file of a study, with the errors that can occur.

An open study is locked by SQLite's exclusive locking mode. It uses the operating system's lock on the file,
which refuses a second open from any process and ends with its owner. On POSIX systems a process that closes
any handle of a file loses its locks on the file. Nothing else in the program therefore opens the file: even
the header is read through SQLite, and readers skip files called NAME.rscope. If a library opens it
nevertheless, a second lock is still held (`locking`). A study that another process has open can be read as a
copy of its current state (`snapshot`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Protocol

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import (
    DISK_FULL,
    FREE_SPACE,
    InUseError,
    StudyError,
    UnwrittenError,
    is_disk_full,
    system_reason,
)
from raterscope.app.formats.output_files import draft_for, is_flushed_later
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.app.study.locking import Lock, Snapshot, in_use, refuse_left_log
from raterscope.app.study.schema import (
    APPLICATION_ID,
    OLDEST,
    SCHEMA,
    VERSION,
    add_key,
    bring_up_to_date,
    schema_of,
)

# Maximum size of a value, and maximum size of a file whose pages are all checked when it is opened (some 0.1
# s). In larger files, pages of arrays are checked when they are read, by zlib's checksums.
_LONGEST_VALUE = 64 << 20
_CHECKED_WHOLE = 64 << 20
_COPIED_AT_ONCE = 256
"""Number of pages copied at a time: some milliseconds, during which a decision may have to wait."""
COPIED_BELOW = 64 << 20
"""Maximum size of a study whose snapshot is a copy, bytes; copying takes some 0.1 s."""
_WHAT_IS_THERE = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
_UNLOCKED = "rw" if sys.platform == "win32" else "rw&vfs=unix-none"
"""Access to a file of this process alone, also on a disk without locks."""
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
"""SQLite's error names for a full disk; the second is for the shared index beside a log."""
_SMALL_TABLES = ("images", "annotators", "imports", "objects", "marks", "runs", "results", "decisions")


class StudyResource(Protocol):
    """Resource of an open study in addition to its connection: its lock, or the files of a snapshot."""

    def release(self) -> None:
        """Release the file."""


def create(path: Path) -> tuple[int, int] | None:
    """Create an empty study and return its identity. It appears complete under its name, or not at all.

    Raises `StudyError` if a file of that name exists, or the folder cannot be written to.
    """
    return make(path, _fill)


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> tuple[int, int] | None:
    """Create a study's file with the contents from `fill`, and return its identity; see `create`."""
    if path.suffix.casefold() != STUDY_SUFFIX:
        raise StudyError("is not a name for a study; expected NAME.rscope", file=path)
    if os.path.lexists(path):
        raise StudyError("exists already; choose another name or open it", file=path)
    if not path.parent.is_dir():
        raise StudyError(f"cannot be created: there is no folder {path.parent}", file=path)
    draft = draft_for(path)
    try:
        with translated_errors(path, "created"):
            connection = sqlite3.connect(draft, isolation_level=None)
            try:
                connection.execute(_synchronous())
                fill(connection)
            finally:
                connection.close()
            file_identity = identity(draft)
            give_name(draft, path)
        return file_identity
    finally:
        with contextlib.suppress(OSError):  # of a read-only disk, where there is nothing to take away
            draft.unlink(missing_ok=True)


def _fill(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    for statement in SCHEMA:
        connection.execute(statement)
    add_key(connection)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def connect(
    path: Path, *, to_read: bool = False, lock: bool = True
) -> tuple[sqlite3.Connection, StudyResource | None]:
    """Check a study's file and open it for this process alone; see `shut`.

    Raises `StudyError` if it is missing, not a study, damaged, open elsewhere, from a newer version, or
    cannot be written.

    `to_read`: open it for reading only. Then a study that cannot be written can also be opened, by several
    readers; of a study that is open elsewhere, a snapshot is opened. `lock`: False, with `to_read`, writes no
    lock to the disk, which suits many studies in a row.
    """
    writable = _look_from_outside(path, to_read)
    if to_read and not lock and not log_of(path).exists():
        with contextlib.suppress(StudyError):  # of one that is open elsewhere, or that a killed program left
            return _connected(path, False)
    try:
        return _connected(path, writable)
    except InUseError:
        if to_read:
            return _snapshot(path)
        raise
    except StudyError as refused:
        if to_read and writable and _is_disk_full(refused.__cause__):
            with contextlib.suppress(StudyError):  # where a killed program left something to be taken in
                return _connected(path, False)
        if to_read and not writable and isinstance(refused.__cause__, sqlite3.OperationalError):
            return _snapshot(path)  # the log of a killed program can be read only where it can be written
        raise


def _connected(path: Path, writable: bool) -> tuple[sqlite3.Connection, Lock | None]:
    connection = None
    with translated_errors(path, "opened"):
        lock = Lock(path) if writable else None
    try:
        with translated_errors(path, "opened", locked_by_us=writable):
            if writable and log_of(path).exists():
                _look_beside_log(path)
            connection = _open_file(path, "rw" if writable else "ro")
            version = _look_at_header(connection, path)
            # Before anything is written, so that a refused file does not change and can be repaired.
            _look_inside(connection, path, version, path)
            if writable:
                refuse_left_log(path)
                _take(connection)
                _look_for_end(connection, path, path)
            if version < VERSION and not writable:
                connection = _in_memory(connection)
            bring_up_to_date(connection, version, lasting=writable)
            if not writable:
                connection.execute("PRAGMA query_only=ON")
    except BaseException:
        if connection is not None:
            connection.close()
        if lock is not None:
            lock.release()
        raise
    return connection, lock


def _snapshot(path: Path) -> tuple[sqlite3.Connection, Snapshot]:
    """Open a copy of a study that another process may be changing."""
    connection = None
    with translated_errors(path, "copied"):
        snapshot = Snapshot(path)
    try:
        with translated_errors(path, "opened"):
            connection = _open_file(snapshot.file, _UNLOCKED)
            version = _look_at_header(connection, path)
            _look_inside(connection, path, version, snapshot.file)
            connection.execute("PRAGMA journal_mode=DELETE")
            bring_up_to_date(connection, version, lasting=False)
            connection.execute("PRAGMA query_only=ON")
    except BaseException:
        if connection is not None:
            connection.close()
        snapshot.release()
        raise
    return connection, snapshot


def _look_beside_log(path: Path) -> None:
    """Check a study with the log of a killed program, without changing either.

    A connection that can write merges the log into the file when it is closed, even into a damaged file.
    """
    connection = _open_file(path, "ro", alone=False)
    try:
        _look_inside(connection, path, _look_at_header(connection, path), path)
    finally:
        connection.close()
        with contextlib.suppress(OSError):
            path.with_name(f"{path.name}-shm").unlink()


def _open_file(path: Path, mode: str, *, alone: bool = True) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=0.0, check_same_thread=False
    )
    _guard(connection)
    if alone:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    return connection


def copy_of(connection: sqlite3.Connection, watch: Watch) -> sqlite3.Connection:
    """Copy an open study into an unnamed temporary file, which is deleted when it is closed.

    It may be called in another thread than the study's: SQLite serialises access, and changes made meanwhile
    are also in the copy.
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


def read_in_place(path: Path) -> sqlite3.Connection:
    """Open the main file of a study that this process has open, while nothing is written into it.

    Log and locks are ignored; because SQLite opens and closes the file, the study's own connection loses no
    lock.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        _guard(connection)
        connection.execute("PRAGMA query_only=ON")
        connection.execute(_WHAT_IS_THERE).fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def copy_into(copy: sqlite3.Connection, connection: sqlite3.Connection, watch: Watch) -> None:
    """Copy an open study into an open file, some pages at a time."""

    def report(_status: int, left: int, pages: int) -> None:
        watch(1 - left / max(pages, 1), "copying the study")

    watch(0.0, "copying the study")
    connection.backup(copy, pages=_COPIED_AT_ONCE, progress=report, sleep=0.005)


def shut(
    path: Path,
    connection: sqlite3.Connection,
    hold: StudyResource | None,
    discard: tuple[int, int] | None = None,
) -> None:
    """Close the file, leaving one plain file.

    Raises `StudyError` if this is not possible; the latest changes are then in another file beside it.

    `discard`: identity of the file that this process created, which is removed while it is locked, unless
    another file replaced it.
    """
    full = False
    try:
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        full = _is_disk_full(error)
    connection.close()
    if discard is not None and identity(path) == discard:
        with contextlib.suppress(OSError):
            path.unlink()
    if hold is not None:
        hold.release()
    if full and path.exists():
        raise StudyError(
            f"is closed, but the disk is full: the last changes are in {log_of(path).name}; keep both "
            "together, and open the study once there is room",
            file=path,
        )


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def log_of(path: Path) -> Path:
    """Return the path of the study's write-ahead log."""
    return path.with_name(f"{path.name}-wal")


@contextlib.contextmanager
def translated_errors(path: Path, action: str, *, locked_by_us: bool = False) -> Iterator[None]:
    """Translate errors of database and system into StudyError; `action` as in "cannot be opened"."""
    kind = UnwrittenError if action == "written" else StudyError
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if action == "opened" and name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise InUseError(in_use(path, locked_by_us=locked_by_us), file=path) from error
        sentence, log = _sentence(error, action), log_of(path)
        if name.startswith("SQLITE_CORRUPT") and log.exists():
            sentence = (
                f"cannot be {action}: the file is damaged, or {log.name} beside it belongs to another "
                f"study; move that file elsewhere, or open a backup"
            )
        raise kind(sentence, file=path) from error
    except UnicodeDecodeError as error:  # of the schema's own text, which no type of SQLite's reports
        raise StudyError(
            f"cannot be {action}: the file is damaged; open a backup of it", file=path
        ) from error
    except OSError as error:
        raise kind(f"cannot be {action}: {system_reason(error)}", file=path) from error


def give_name(draft: Path, path: Path) -> None:
    """Rename a draft to the study's name, unless that name exists."""
    try:
        os.link(draft, path)  # unlike a renaming, this never replaces another file
    except FileExistsError:
        raise StudyError("exists already; choose another name or open it", file=path) from None
    except OSError:  # a file system without links: take the name first, then give it to the draft
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            raise StudyError("exists already; choose another name or open it", file=path) from None
        draft.replace(path)
    if hasattr(os, "O_DIRECTORY") and not is_flushed_later():
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _guard(connection: sqlite3.Connection) -> None:
    """Restrict SQLite for untrusted files: sizes, schema, attached files."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    configure = getattr(connection, "setconfig", None)  # from Python 3.12 on
    if configure is not None:
        for switch, on in (("DEFENSIVE", True), ("DQS_DDL", False), ("DQS_DML", False)):
            configure(getattr(sqlite3, f"SQLITE_DBCONFIG_{switch}"), on)


def _synchronous() -> str:
    return f"PRAGMA synchronous={'OFF' if is_flushed_later() else 'FULL'}"


def _take(connection: sqlite3.Connection) -> None:
    """Lock the file exclusively, and merge the log of a killed program."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(_synchronous())
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Copy a read-only file of an older version into memory, where it can be migrated."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with contextlib.closing(connection):
        connection.backup(copy)
    return copy


def _look_from_outside(path: Path, to_read: bool) -> bool:
    """Refuse a path that cannot be a study, and return whether it can be written."""
    try:
        if path.is_dir():
            raise StudyError("is a folder; expected a study, a file NAME.rscope", file=path)
        size = path.stat().st_size
    except FileNotFoundError:
        raise StudyError(f"does not exist; looked in {path.parent}", file=path) from None
    except OSError as error:
        raise StudyError(f"cannot be opened: {system_reason(error)}", file=path) from error
    if not path.is_file():
        raise StudyError("is not a regular file; expected a study", file=path)
    if size == 0:
        raise StudyError("is empty; expected a study", file=path)
    if not os.access(path, os.R_OK):
        raise StudyError("cannot be read: you lack the permission", file=path)
    file, folder = (os.access(location, os.W_OK) for location in (path, path.parent))
    if not (to_read or (file and folder)) and _on_read_only_disk(path):
        raise StudyError("cannot be written: it is on a read-only disk; open a copy of it", file=path)
    if not (to_read or file):
        raise StudyError("cannot be written: you lack the permission; open a copy of it", file=path)
    if not (to_read or folder):
        raise StudyError("is in a folder that cannot be written; open a copy of it elsewhere", file=path)
    return file and folder


def _on_read_only_disk(path: Path) -> bool:
    # By the file system: opening the file to write would close a handle on it.
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _look_at_header(connection: sqlite3.Connection, path: Path) -> int:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StudyError("is a database of another program; expected a study", file=path)
    if path.suffix.casefold() != STUDY_SUFFIX:
        raise StudyError("is a study with another suffix; rename it to NAME.rscope", file=path)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise StudyError(
            f"was written by a newer Raterscope (format {version}; this one reads {VERSION}); update it",
            file=path,
        )
    if version < OLDEST:
        raise StudyError(f"declares format {version}, which does not exist; the file is damaged", file=path)
    return version


def _look_for_end(connection: sqlite3.Connection, path: Path, file: Path) -> int:
    """Refuse a truncated file, and return its full size."""
    pages, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if file.stat().st_size < pages * page:
        raise StudyError("is cut short: its end is missing", file=path)
    return int(pages * page)


def _look_inside(connection: sqlite3.Connection, path: Path, version: int, file: Path) -> None:
    size = file.stat().st_size
    if not log_of(file).exists():  # where a killed program may have left its end
        size = _look_for_end(connection, path, file)
    objects = Counter(connection.execute(_WHAT_IS_THERE).fetchall())
    if objects != _expected(version):
        raise StudyError("is damaged or was altered: its tables are not those of a study", file=path)
    tables = [""] if size <= _CHECKED_WHOLE else [f"('{name}')" for name in _SMALL_TABLES]
    for table in tables:
        answer = connection.execute(f"PRAGMA quick_check{table}").fetchone()[0]
        if answer != "ok":
            raise StudyError(f"is damaged ({answer.splitlines()[-1]}); open a backup of it", file=path)


@cache
def _expected(version: int) -> Counter[tuple[str, str, str, str | None]]:
    """List all objects of a version's schema, including those of SQLite; others are refused.

    In a manipulated file, a trigger may also be called sqlite_something, which SQLite itself does not allow.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        for statement in schema_of(version):
            fresh.execute(statement)
        return Counter(fresh.execute(_WHAT_IS_THERE).fetchall())


def _is_disk_full(error: BaseException | None) -> bool:
    return is_disk_full(error) or (getattr(error, "sqlite_errorname", "") or "").startswith(_NO_ROOM)


def _sentence(error: sqlite3.Error, action: str) -> str:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"cannot be {action}: another program has it open; close it there first"
    if name.startswith("SQLITE_NOTADB"):
        return "is not a study; expected a file NAME.rscope made by Raterscope"
    if name.startswith("SQLITE_CORRUPT") or str(error).startswith("Could not decode to UTF-8"):
        return f"cannot be {action}: the file is damaged; open a backup of it"
    if name.startswith(_NO_ROOM) and action == "copied":
        return f"cannot be copied: the disk for temporary files is full; {FREE_SPACE}"
    if name.startswith(_NO_ROOM):
        return f"cannot be {action}: {DISK_FULL}; nothing was changed. {FREE_SPACE.capitalize()}"
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return f"cannot be {action}: the file or its folder cannot be written"
    if name.startswith("SQLITE_TOOBIG"):
        return f"cannot be {action}: a value in it is larger than any that Raterscope writes"
    return f"cannot be {action}: {error}"
