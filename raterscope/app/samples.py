"""What the samples of all kinds have in common: a study that is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raterscope.app.study import Study

__all__ = ["made_whole"]


@contextmanager
def made_whole(path: Path) -> Iterator[Study]:
    """Give a new study to be filled, which takes its name when that is done.

    What one that was cut short has left is removed.
    """
    unfinished = path.with_name(f"unfinished-{path.name}")
    for ending in ("", "-wal", "-shm"):  # the database's own files beside it
        unfinished.with_name(unfinished.name + ending).unlink(missing_ok=True)
    with Study.create(unfinished) as study:
        yield study
    unfinished.replace(path)
