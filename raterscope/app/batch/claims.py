"""Locks of cases, so that no two workers process the same one.

A scheduler that loses sight of a worker gives its case to another, and a command may be started twice. The
second worker then waits for the first. The lock, by flock, ends with its process and also holds between the
computers of a network folder. Where a file system has no locks, the last result of a case is kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

LOCKS = ".locks"


@contextmanager
def claim(output: Path, name: str) -> Iterator[bool]:
    """Hold the lock of a name in a cohort's folder; wait until it is free.

    Returns False where the file system has no locks.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    folder = output / LOCKS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    handle = _lock(path)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def _lock(path: Path) -> int | None:
    if sys.platform == "win32":
        return None
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(path.stat(), os.fstat(handle)):
                return handle
        except FileNotFoundError:  # its owner has removed it meanwhile
            pass
        except OSError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
