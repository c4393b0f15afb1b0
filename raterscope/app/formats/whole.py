"""Files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from raterscope.app.errors import InputError

__all__ = ["whole", "write_whole"]


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes its name when it is whole; what was there stays until then.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error
    finally:
        if draft.exists():
            draft.unlink()


def write_whole(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all; see `whole`."""
    with whole(path) as file:
        file.write(data)
    return path
