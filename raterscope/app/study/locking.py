"""The lock of an open study that is not lost when something else in the process looks into its file.

On POSIX systems a process that closes any handle on a file loses the locks that SQLite has there, and Qt's
own file dialog opens every file of a folder to tell what it is. So a file NAME.rscope-lock beside the study
is locked too, by flock, which only its own handle lets go of; it vanishes with its owner, however that ends.
It also names its owner, for those who are refused.

A network folder may have no locks at all (ENOLCK). Nothing would then keep two programs from writing over
each other, so a study there is not opened for writing. It can be read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
from datetime import datetime
from pathlib import Path

from raterscope.app.errors import plain
from raterscope.app.study.records import InUseError

if sys.platform != "win32":
    import fcntl

NO_LOCKS = (
    "cannot be opened to change it: the file system of its folder has no locks, so another program could "
    "write over it; copy it to a local disk"
)
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_LONGEST = 1000


class Lock:
    """Held from when it is made until `release`.

    Where the file system has no flock, and on Windows, where a lock stays with its handle, SQLite's own locks
    are relied on.

    Raises
    ------
    InUseError
        When another program holds it, or the file system has no locks.
    OSError
        When there can be no file beside the study.
    """

    def __init__(self, study: Path) -> None:
        self._path = _lock_file(study)
        self._handle = _taken(self._path, study)

    def release(self) -> None:
        """Let others open the study."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = None


def in_use(study: Path, *, locked_by_us: bool = False) -> str:
    """Say why a study cannot be had: its owner, as far as that is known, or that there are no locks.

    Parameters
    ----------
    study : Path
    locked_by_us : bool
        This process holds the lock beside the study, and SQLite was refused its own.
    """
    if locked_by_us and _has_no_locks(_lock_file(study)):
        return NO_LOCKS
    owner = "" if locked_by_us else _owner(_lock_file(study))
    return f"is open already, {owner or 'here or in another program'}; close it there first"


def is_held(study: Path) -> bool:
    """Return whether a process has a study of this name open, be its file there or not."""
    if sys.platform == "win32":
        return _lock_file(study).exists()
    try:
        handle = os.open(_lock_file(study), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _lock_file(study: Path) -> Path:
    return study.with_name(f"{study.name}-lock")


def _taken(path: Path, study: Path) -> int | None:
    if sys.platform == "win32":
        return None
    while True:
        handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, handle):
                _name_owner(path)
                return handle
        except BlockingIOError:
            os.close(handle)
            raise InUseError(in_use(study), file=study) from None
        except OSError as error:
            os.close(handle)
            none = _has_no_locks(path)
            with contextlib.suppress(OSError):
                path.unlink()
            if none:
                raise InUseError(NO_LOCKS, file=study) from error
            return None
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    """Return whether the path still names the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _name_owner(path: Path) -> None:
    """Write the owner into the lock file; failure does not affect the lock."""
    owner = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(owner, file)


def _owner(path: Path) -> str:
    """Read the owner of a lock, in words; empty if unknown."""
    try:
        with path.open(encoding="utf-8") as file:
            owner = json.loads(file.read(_LONGEST))
        process, host, since = int(owner["process"]), plain(owner["host"], 40), str(owner["since"])
        when = datetime.fromisoformat(since)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    if (process, host) == (os.getpid(), plain(socket.gethostname(), 40)):
        return "in this program"
    return f"in process {process} on {host} since {when:%Y-%m-%d %H:%M}"


def _has_no_locks(path: Path) -> bool:
    """Return whether the file system refuses locks like SQLite's, tried on the lock file."""
    if sys.platform == "win32":
        return False
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _WITHOUT_LOCKS
    finally:
        os.close(handle)
    return False
