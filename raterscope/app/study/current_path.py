"""Current path of a file that this process has open."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["current_path"]

_F_GETPATH = 50
"""What macOS calls the question for a file's path."""


def current_path(file: tuple[int, int] | None) -> Path | None:
    """Find where an open file is now, by its device and number; None where it is deleted or nothing tells."""
    handles = {"linux": "/proc/self/fd", "darwin": "/dev/fd"}.get(sys.platform)
    if handles is None or file is None:
        return None
    with suppress(OSError):
        for name in os.listdir(handles):  # noqa: PTH208
            place = _place_of(int(name), file)
            if place is not None:
                return place
    return None


def _place_of(handle: int, file: tuple[int, int]) -> Path | None:
    with suppress(OSError):
        status = os.fstat(handle)
        if (status.st_dev, status.st_ino) != file:
            return None
        place = _named(handle)
        found = place.stat()
        if (found.st_dev, found.st_ino) == file:
            return place
    return None


def _named(handle: int) -> Path:
    if sys.platform == "darwin":
        import fcntl

        name = fcntl.fcntl(handle, _F_GETPATH, bytes(1024))
        return Path(os.fsdecode(name.split(b"\0")[0]))
    return Path(f"/proc/self/fd/{handle}").readlink()
