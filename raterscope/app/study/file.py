"""The file of an open study: read so that what goes wrong is a sentence, changed whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from raterscope.app.study.locking import Lock
from raterscope.app.study.opening import connect, copy_of, create, shut, told
from raterscope.app.study.records import StudyError

__all__ = ["StudyFile"]


class StudyFile:
    """An open study's file. Used by one thread at a time; every change is on disk when it is done.

    Every method raises StudyError, in a sentence, when the file does not do what is asked.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: Lock | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._file = _identity(path)

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

    def copy(self) -> Self:
        """Give the study as it stands now, to be read in another thread while this one goes on.

        The copy is of no name and vanishes when it is closed; nothing can be changed in it.
        """
        with told(self.path, "read"):
            return type(self)(self.path, copy_of(self._connection), None)

    def close(self) -> None:
        """Close the file; one plain file remains."""
        shut(self._connection, self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def sound(self) -> Iterator[sqlite3.Connection]:
        """Read, what goes wrong turned into a sentence; for the modules of this package."""
        with told(self.path, "read"):
            yield self._connection

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Change the file whole or not at all; for the modules of this package."""
        if _identity(self.path) != self._file:  # what is written now would be lost with its journal
            raise StudyError("was moved, renamed or deleted while open; put it back to go on", file=self.path)
        with told(self.path, "written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
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
