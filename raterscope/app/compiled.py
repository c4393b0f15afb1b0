"""Folder for compiled code if the usual ones cannot be written, as in a read-only installation."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import raterscope

_VARIABLE = "NUMBA_CACHE_DIR"


def choose_folder() -> None:
    """Set a private temporary folder for numba, in this and all child processes.

    To be called before numba is loaded. Nothing is named where the installation or the cache folder can be
    written.
    """
    if _VARIABLE in os.environ or os.access(Path(raterscope.__file__).parent, os.W_OK):
        return
    from platformdirs import user_cache_path

    if not _can_be_written(user_cache_path("numba")):
        folder = _private_folder()
        if folder is not None:
            os.environ[_VARIABLE] = str(folder)


def _can_be_written(folder: Path) -> bool:
    """Make a folder and return whether files can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _private_folder() -> Path | None:
    """Make the folder; None if another user can write into it, because code in it is executed."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"raterscope-compiled-{user or 0}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    mine = user is None or (status.st_uid == user and not status.st_mode & 0o077)
    return folder if stat.S_ISDIR(status.st_mode) and mine else None
