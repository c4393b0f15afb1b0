"""The lock of an open study that is not lost when something else in the process looks into its file.

On POSIX systems a process that closes any handle on a file loses the locks that SQLite has there, and Qt's
own file dialog opens every file of a folder to tell what it is. So a file NAME.rscope-lock beside the study
is locked too, by flock, which only its own handle lets go of; it vanishes with its owner, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from raterscope.app.study.records import StudyError

if sys.platform != "win32":
    import fcntl

__all__ = ["IS_OPEN", "Lock"]

IS_OPEN = "is open already, here or in another program; close it there first"


class Lock:
    """Held from when it is made until `release`.

    Where the file system has no such locks, and on Windows, where a lock stays with its handle, SQLite's own
    are relied on.

    Raises
    ------
    StudyError
        When somebody else holds it.
    OSError
        When there can be no file beside the study.
    """

    def __init__(self, study: Path) -> None:
        self._path = study.with_name(f"{study.name}-lock")
        self._handle = _taken(self._path, study)

    def release(self) -> None:
        """Let others open the study."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = None


def _taken(path: Path, study: Path) -> int | None:
    if sys.platform == "win32":
        return None
    while True:
        handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise StudyError(IS_OPEN, file=study) from None
        except OSError:
            os.close(handle)
            return None
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    """Tell whether a file was not taken away by who held it before."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
