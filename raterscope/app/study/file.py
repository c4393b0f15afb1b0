"""The file of an open study: read so that what goes wrong is a sentence, changed whole or not at all."""

from __future__ import annotations

import sqlite3
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.study.locking import Lock
from raterscope.app.study.opening import connect, copy_of, create, shut, told
from raterscope.app.study.records import StudyError, UnwrittenError

__all__ = ["StudyFile"]

_PATIENCE = 0.05
"""Seconds between two looks whether it is still wanted."""


class StudyFile:
    """An open study's file. Used by one thread at a time; every change is on disk when it is done.

    Every method raises StudyError, in a sentence, when the file does not do what is asked.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: Lock | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._file = _identity(path)
        self._copying = threading.Lock()
        self._closed = False

    @classmethod
    def create(cls, path: Path | str) -> Self:
        """Make an empty study and open it.

        Raises
        ------
        StudyError
            When something of that name exists or the folder cannot be written.
        """
        full = Path(path).resolve()
        create(full)
        return cls.open(full)

    @classmethod
    def open(cls, path: Path | str, *, to_read: bool = False) -> Self:
        """Open a study for this process alone.

        Parameters
        ----------
        path : Path or str
        to_read : bool
            Whether it is enough to read it: then one that cannot be written is opened too.

        Raises
        ------
        StudyError
            When it is missing, no study, damaged, open elsewhere, from a newer version, or cannot be written.
        """
        full = Path(path).resolve()
        return cls(full, *connect(full, to_read=to_read))

    def copy(self, watch: Watch = silent) -> Self:
        """Give the study as it stands now, to be read in another thread while this one goes on.

        The copy is of no name and vanishes when it is closed; nothing can be changed in it. This alone may be
        called in any thread: what is read and changed in the study's own meanwhile waits some milliseconds.

        Raises
        ------
        StudyError
            When it was closed already, or its disk or that of temporary files does not do what is asked.
        """
        while not self._copying.acquire(timeout=_PATIENCE):
            watch(0.0, "copying the study")
        try:
            if self._closed:
                raise StudyError("was closed meanwhile; open it again", file=self.path)
            with told(self.path, "copied"):
                return type(self)(self.path, copy_of(self._connection, watch), None)
        finally:
            self._copying.release()

    def close(self) -> None:
        """Close the file; one plain file remains. A copy that is being made is finished first.

        Raises
        ------
        StudyError
            When the disk is too full for that; nothing is lost.
        """
        with self._copying:
            self._closed = True
            shut(self.path, self._connection, self._lock)

    def forget(self) -> None:
        """Drop what is kept in memory of the file, as it is not what was read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while error is not None:  # a reading that broke off is in its frames, and keeps the file open
            traceback.clear_frames(error.__traceback__)
            error = error.__cause__
        self.close()

    @contextmanager
    def sound(self) -> Iterator[sqlite3.Connection]:
        """Read, what goes wrong turned into a sentence; for the modules of this package."""
        with told(self.path, "read"):
            yield self._connection

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Change the file whole or not at all; for the modules of this package.

        A change within another is a part of it.

        Raises
        ------
        UnwrittenError
            When it did not take the change.
        """
        if self._connection.in_transaction:
            yield self._connection
            return
        if _identity(self.path) != self._file:  # what is written now would be lost with its journal
            raise UnwrittenError(
                "was moved, renamed or deleted while open; put it back to go on", file=self.path
            )
        with told(self.path, "written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self.forget()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _identity(path: Path) -> tuple[int, int] | None:
    """Tell one file from another of the same name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
