"""Files that appear under their name when they are complete, or not at all.

The name of a draft says which process on which machine writes it. Drafts of processes that were killed can be
told from drafts that are being written, and the next process that writes into the folder removes them.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from raterscope.app.errors import InputError

__all__ = [
    "check_place",
    "draft_for",
    "drafting",
    "remove_stray_drafts",
    "removing_new_files",
    "whole",
    "write_whole",
]


_OLD = 600.0
"""Seconds without a change, after which a draft of a process that is gone is removed."""
_LONGEST = 120
"""Bytes of the file's own name: with what is put before, a name has at most 255."""
_DRAFT = re.compile(r"\.draft-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{8}\.", re.ASCII)
_LOOKED_INTO: set[Path] = set()


def draft_for(path: Path) -> Path:
    """Name a draft of a file, beside it; its name ends as the file's does.

    The first one in a folder removes the drafts that killed processes left there.
    """
    if path.parent not in _LOOKED_INTO:
        _LOOKED_INTO.add(path.parent)
        remove_stray_drafts(path.parent)
    name = os.fsdecode(os.fsencode(path.name)[-_LONGEST:])
    return path.with_name(f".draft-{_machine()}-{os.getpid()}-{uuid4().hex[:8]}.{name}")


def remove_stray_drafts(folder: Path) -> None:
    """Remove the old drafts in a folder whose process ran on this machine and is gone; others stay."""
    now = time.time()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _DRAFT.match(entry.name)
            if found is None or found[1] != _machine() or _runs(int(found[2])):
                continue
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False) and now - entry.stat().st_mtime > _OLD:
                    Path(entry.path).unlink()


@cache
def _machine() -> str:
    """Tell this machine, or this container on it, from others that see the same folder."""
    spaces = ""
    if sys.platform == "linux":
        with suppress(OSError):
            spaces = str(Path("/proc/self/ns/pid").readlink())
    return blake2b(f"{socket.gethostname()} {spaces}".encode(), digest_size=4).hexdigest()


def _runs(process: int) -> bool:
    """Tell whether a process runs; where that cannot be told, it is taken to."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


_new_files: ContextVar[list[Path] | None] = ContextVar("new_files", default=None)


@contextmanager
def removing_new_files(*causes: type[BaseException]) -> Iterator[None]:
    """Remove the files that were written inside when one of these exceptions ends it.

    A file that replaced another one stays: the other one is gone.
    """
    written: list[Path] = []
    token = _new_files.set(written)
    try:
        yield
    except causes:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    finally:
        _new_files.reset(token)


@contextmanager
def drafting(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Give a draft's name for each file; all take their names when all are whole.

    Raises
    ------
    InputError
        When they cannot be written; for a folder, and for a file that is there and write-protected.
    """
    for path in paths:
        check_place(path)
    drafts = [draft_for(path) for path in paths]
    try:
        yield drafts
        for draft in drafts:
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
        for draft, path in zip(drafts, paths, strict=True):
            new = None if path.exists() else _new_files.get()
            draft.replace(path)
            if new is not None:
                new.append(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=paths[0]) from error
    finally:
        for draft in drafts:
            if draft.exists():
                draft.unlink()


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes its name when it is whole; what was there stays until then.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    with drafting([path]) as (draft,), draft.open("wb") as file:
        yield file


def write_whole(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all; see `whole`."""
    with whole(path) as file:
        file.write(data)
    return path


def check_place(path: Path) -> None:
    """Make sure, before long work, that a file can be written as far as that can be seen.

    Raises
    ------
    InputError
        For a folder, one without a folder to be in, and one that is there and write-protected.
    """
    if path.is_dir():
        raise InputError("is a folder; expected the name of a file", file=path)
    if not path.parent.is_dir():
        raise InputError(f"cannot be written, for there is no folder {path.parent}", file=path)
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError("cannot be written: it is there already, and write-protected", file=path)
