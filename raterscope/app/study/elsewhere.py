"""A study saved under another name or in another folder, with what its own file did not take."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.study.opening import copy_into, make
from raterscope.app.study.places import stored_path
from raterscope.app.study.study import Study

__all__ = ["save_elsewhere"]

_PLACES = (("images", "path"), ("streams", "source"))
"""What names a file, relative to the study where that lies beside or below it."""


def save_elsewhere(
    study: Study, path: Path, works: Sequence[Callable[[Study, Watch], Any]] = (), watch: Watch = silent
) -> list[Any]:
    """Copy a study and change the copy, whole or not at all; the study itself stays as it is.

    The copy finds its images where the study does.

    Parameters
    ----------
    study : Study
    path : Path
        Of a file that is not there yet.
    works : sequence of callables
        ``work(copy, watch)`` changes the copy, each in its turn.
    watch : Watch

    Returns
    -------
    list
        What came of each work.

    Raises
    ------
    StudyError
        When there is a file of that name, the folder cannot be written, or the study not be read.
    """
    path = path.resolve()
    with study.sound() as connection:
        made = make(path, partial(_copied, connection, study.path, path, part(watch, 0.0, 0.5)))
    if not works:
        return []
    with Study.open(path) as copy:
        try:
            return [work(copy, part(watch, 0.5, 1.0)) for work in works]
        except BaseException:
            copy.discard(made)
            raise


def _copied(
    connection: sqlite3.Connection, before: Path, now: Path, watch: Watch, copy: sqlite3.Connection
) -> None:
    copy_into(copy, connection, watch)
    copy.execute("PRAGMA journal_mode=DELETE")
    copy.execute("BEGIN")
    for table, column in _PLACES:
        rows = copy.execute(f"SELECT id, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
        moved = [(_moved(place, before, now), number) for number, place in rows]
        copy.executemany(f"UPDATE {table} SET {column} = ? WHERE id = ?", moved)
    copy.execute("COMMIT")


def _moved(place: str, before: Path, now: Path) -> str:
    """Write where a file is for a study in another folder; a place that is not followed stays as it is."""
    if not place or ".." in PurePosixPath(place).parts or PureWindowsPath(place).drive:
        return place
    return stored_path(before.parent / place, now)
