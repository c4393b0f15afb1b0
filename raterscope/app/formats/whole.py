"""Files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from raterscope.app.errors import InputError
from raterscope.app.formats.drafts import draft_for

__all__ = ["check_place", "drafting", "removing_new_files", "whole", "write_whole"]


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
