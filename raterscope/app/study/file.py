"""File of an open study, with errors in one sentence, and changes that are complete or not made at all."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Self

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import StudyError, UnwrittenError
from raterscope.app.program_files import FileState
from raterscope.app.study.locking import Lock
from raterscope.app.study.opening import (
    COPIED_BELOW,
    StudyResource,
    connect,
    copy_of,
    create,
    identity,
    log_of,
    read_in_place,
    shut,
    translated_errors,
)

_PATIENCE = 0.05
"""Interval between two checks whether waiting should continue, seconds."""


_LONGEST_CHANGE = 1.0
"""Maximum wait for the end of a change, seconds."""
_CHECKPOINT_AGAIN = "PRAGMA wal_autocheckpoint=1000"
"""Size of the log that starts a checkpoint (SQLite's default), pages."""


class _Readers:
    """Snapshots that read the main file in place; each releases it when it is closed."""

    def __init__(self) -> None:
        self.count = 0
        self.changes = 0
        """Number of the connection's changes that the main file contains."""
        self._left = threading.Condition()

    def count_up(self) -> None:
        with self._left:
            self.count += 1

    def release(self) -> None:
        with self._left:
            self.count -= 1
            self._left.notify_all()

    def wait(self) -> None:
        with self._left:
            self._left.wait_for(lambda: not self.count)


class _Reading:
    """Access to a connection for reading. A generator would take longer than a small read."""

    __slots__ = ("_connection", "_path")

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            with translated_errors(self._path, "read"):
                raise error


class StudyFile:
    """File of an open study.

    It is used by one thread at a time, and every change is on disk when its method returns.

    Every method raises StudyError if the file cannot be read or written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, hold: StudyResource | None) -> None:
        self.path = path
        self.connection = connection
        self._hold = hold
        self._file = identity(path)
        self._made: tuple[int, int] | None = None
        self._complete_at = connection.total_changes
        self._copying = threading.Lock()
        self._changing = threading.Lock()
        """Lock held by a change, so that no checkpoint of another thread runs during it."""
        self._readers = _Readers()
        self._closed = False

    @classmethod
    def create(cls, path: Path | str) -> Self:
        """Create an empty study and open it.

        Raises `StudyError` if a file of that name exists, or the folder cannot be written to.
        """
        full = Path(path).resolve()
        file_identity = create(full)
        study = cls.open(full)
        study._made = file_identity
        return study

    @classmethod
    def open(cls, path: Path | str, *, to_read: bool = False, lock: bool = True) -> Self:
        """Open a study for this process alone.

        Raises `StudyError` if it is missing, not a study, damaged, open elsewhere, from a newer version, or
        cannot be written.

        `to_read`: open it for reading only. Then a study that cannot be written can also be opened; of a
        study that is open elsewhere, a snapshot of its current state is opened. `lock`: see
        `opening.connect`.
        """
        full = Path(path).resolve()
        return cls(full, *connect(full, to_read=to_read, lock=lock))

    def copy(self, watch: Watch = silent) -> Self:
        """Return a snapshot of the study that another thread can read.

        The snapshot is deleted when it is closed, and cannot be changed. A small study is copied into a file
        without a name. A large study is read in place: changes then remain in the log until all snapshots are
        closed. Only this method may be called in any thread; reads and changes in the study's own thread then
        wait some milliseconds. Raises `StudyError` if the study is closed, or if its disk or the disk for
        temporary files fails.
        """
        while not self._copying.acquire(timeout=_PATIENCE):
            watch(0.0, "copying the study")
        try:
            if self._closed:
                raise StudyError("was closed meanwhile; open it again", file=self.path)
            with translated_errors(self.path, "copied"):
                in_place = self._read_in_place()
                if in_place is not None:
                    return type(self)(self.path, in_place, self._readers)
                return type(self)(self.path, copy_of(self.connection, watch), None)
        finally:
            self._copying.release()

    def _read_in_place(self) -> sqlite3.Connection | None:
        """Open a second connection on the completed main file; None if the study is to be copied."""
        if not isinstance(self._hold, Lock) or identity(self.path) != self._file:  # read only, or moved
            return None
        if self.path.stat().st_size < COPIED_BELOW:
            return None
        if self._readers.count:  # the main file may not change, and lacks what was done since
            if self.connection.total_changes != self._readers.changes:
                return None
        elif not self._complete_for_readers():
            return None
        connection = read_in_place(self.path)
        self._readers.count_up()
        return connection

    def _complete_for_readers(self) -> bool:
        """Move all changes into the main file, and keep later changes in the log."""
        if not self._changing.acquire(timeout=_LONGEST_CHANGE):
            return False
        try:
            self.connection.execute("PRAGMA wal_autocheckpoint=0").fetchone()
            try:
                (busy, *_) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.OperationalError:  # the study's own thread reads
                busy = True
            if busy:
                self.connection.execute(_CHECKPOINT_AGAIN).fetchone()
                return False
            self._readers.changes = self.connection.total_changes
            return True
        finally:
            self._changing.release()

    def checkpoint(self) -> bool:
        """Move the last changes from the log into the main file; return False if it is still incomplete.

        It is called while idle, so that a copied or renamed file contains all changes. Raises `StudyError` if
        the disk fails; nothing is lost.
        """
        if not self._copying.acquire(blocking=False):  # a copy is being made, which needs the log
            return False
        try:
            if self._closed or self._readers.count:
                return False
            with translated_errors(self.path, "written"):
                self.connection.execute(_CHECKPOINT_AGAIN)
                (busy, *_) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
        finally:
            self._copying.release()

    def rest(self) -> FileState:
        """Complete the main file while idle, and return its state.

        If nothing was written since, it only checks the file's name.
        """
        changes = self.connection.total_changes
        reason = ""
        if changes != self._complete_at:
            try:
                if self.checkpoint():
                    self._complete_at = changes
            except StudyError as error:
                reason = str(error)
        log = None if changes == self._complete_at else log_of(self.path)
        if identity(self.path) == self._file:
            return FileState(log=log if reason else None, why=reason)
        return FileState(True, current_path(self._file), log, reason)

    def close(self) -> None:
        """Close the file; one plain file remains. Copies in progress and snapshots are finished first.

        Raises `StudyError` if the disk is full; nothing is lost.
        """
        self._close()

    def discard(self, file_identity: tuple[int, int] | None = None) -> None:
        """Close the study, and remove its file if this process created it.

        `file_identity`: identity of the file that this process made, if `create` did not make it.
        """
        self._close(file_identity or self._made)

    def _close(self, discard: tuple[int, int] | None = None) -> None:
        with self._copying:
            if self._closed:
                return
            self._closed = True
            self._readers.wait()
            shut(self.path, self.connection, self._hold, discard)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read within this context, with database errors as StudyError; for the modules of this package."""
        return _Reading(self.path, self.connection)

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Change the file within this context, completely or not at all; for the modules of this package.

        A nested change is part of the outer change. Raises `UnwrittenError` if the change was not written.
        """
        if self.connection.in_transaction:
            yield self.connection
            return
        if identity(self.path) != self._file:  # writes would now be lost with the journal
            raise UnwrittenError(
                "was moved, renamed or deleted while open; open it where it is now, or put it back",
                file=self.path,
            )
        with translated_errors(self.path, "written"), self._changing:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise


_F_GETPATH = 50
"""Number of macOS's request for the path of a file."""


def current_path(file: tuple[int, int] | None) -> Path | None:
    """Find the current path of an open file by its device and inode; None if deleted or unknown."""
    handles = {"linux": "/proc/self/fd", "darwin": "/dev/fd"}.get(sys.platform)
    if handles is None or file is None:
        return None
    with suppress(OSError):
        for name in os.listdir(handles):  # noqa: PTH208
            path = _place_of(int(name), file)
            if path is not None:
                return path
    return None


def _place_of(handle: int, file: tuple[int, int]) -> Path | None:
    with suppress(OSError):
        status = os.fstat(handle)
        if (status.st_dev, status.st_ino) != file:
            return None
        path = _named(handle)
        current = path.stat()
        if (current.st_dev, current.st_ino) == file:
            return path
    return None


def _named(handle: int) -> Path:
    if sys.platform == "darwin":
        import fcntl

        name = fcntl.fcntl(handle, _F_GETPATH, bytes(1024))
        return Path(os.fsdecode(name.split(b"\0")[0]))
    return Path(f"/proc/self/fd/{handle}").readlink()
