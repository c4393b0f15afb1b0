"""New study files and copies under another name, and the key of de-identified exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.study.opening import copy_into, make
from raterscope.app.study.records import StudyError
from raterscope.app.study.references import stored_path
from raterscope.app.study.schema import EXPORT_KEY, KEY_BYTES
from raterscope.app.study.study import Study


@contextmanager
def new_study(path: Path) -> Iterator[Study]:
    """Create a study to be filled; if that fails, remove the created file.

    Raises `StudyError` when something of that name exists, however late it came, or the folder cannot be
    written.
    """
    with Study.create(path) as study:
        try:
            yield study
        except BaseException:
            study.discard()
            raise


_PLACES = (("images", "path"), ("streams", "source"))
"""What names a file, relative to the study where that lies beside or below it."""


def save_elsewhere(
    study: Study, path: Path, works: Sequence[Callable[[Study, Watch], Any]] = (), watch: Watch = silent,
    prepare: Callable[[sqlite3.Connection], object] | None = None,
) -> list[Any]:  # fmt: skip
    """Copy a study and change the copy, completely or not at all; the study itself stays unchanged.

    The copy finds its images where the study does. Raises `StudyError` when there is a file of that name, the
    folder cannot be written, or the study not be read.

    Parameters
    ----------
    path : Path
        Of a file that is not there yet.
    works : sequence of callables
        ``work(copy, watch)`` changes the copy, each in its turn.
    prepare : callable, optional
        ``prepare(connection)`` removes rows of the copy before the file is there; their space is cleared.

    Returns
    -------
    list
        Result of each job.
    """
    path = path.resolve()
    with study.reading() as connection:
        identity = make(path, partial(_copied, connection, study.path, path, part(watch, 0.0, 0.5), prepare))
    if not works:
        return []
    with Study.open(path) as copy:
        try:
            return [work(copy, part(watch, 0.5, 1.0)) for work in works]
        except BaseException:
            copy.discard(identity)
            raise


def _copied(
    connection: sqlite3.Connection, before: Path, path: Path, watch: Watch,
    prepare: Callable[[sqlite3.Connection], object] | None, copy: sqlite3.Connection,
) -> None:  # fmt: skip
    copy_into(copy, connection, watch)
    copy.execute("PRAGMA journal_mode=DELETE")
    copy.execute("BEGIN")
    for table, column in _PLACES:
        rows = copy.execute(f"SELECT id, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
        moved = [(_moved(file, before, path), number) for number, file in rows]
        copy.executemany(f"UPDATE {table} SET {column} = ? WHERE id = ?", moved)
    if prepare is not None:
        prepare(copy)
    copy.execute("COMMIT")
    if prepare is not None:
        copy.execute("VACUUM")


def _moved(file: str, before: Path, path: Path) -> str:
    """Rewrite a stored path for a study in another folder; untrusted paths stay unchanged."""
    if not file or ".." in PurePosixPath(file).parts or PureWindowsPath(file).drive:
        return file
    return stored_path(before.parent / file, path)


def export_key(study: Study) -> bytes:
    """Return the key of de-identified exports.

    Raises `StudyError` for a file of an older version that cannot be written: a key made for it would be
    lost.
    """
    with study.reading() as connection:
        row = connection.execute("SELECT value FROM keys WHERE name = ?", (EXPORT_KEY,)).fetchone()
    if row is None:
        raise StudyError(
            "has no key for de-identified exports, and cannot be written; open a copy that can be written",
            file=study.path,
        )
    if len(row[0]) != KEY_BYTES:
        raise StudyError("is damaged: its key for de-identified exports cannot be read", file=study.path)
    return bytes(row[0])
