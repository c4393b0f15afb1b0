"""New study files, copies under another name or for a second reader, and the key of de-identified exports.

A blind copy contains no decision of the first reader and nothing derived from one: no viewed spots, no runs
that held decisions fixed, no comparisons of methods with decisions, and no state of a stream. Data that are
not in the file cannot be seen in the window, in exports, in reports or by SQL. `merging.merge_studies`
reveals both reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import StudyError
from raterscope.app.program_files import user_name
from raterscope.app.study.opening import copy_into, make
from raterscope.app.study.records import SecondRead
from raterscope.app.study.references import stored_path
from raterscope.app.study.schema import EXPORT_KEY, KEY_BYTES
from raterscope.app.study.study import Study
from raterscope.text import counted


@contextmanager
def new_study(path: Path) -> Iterator[Study]:
    """Create a study within this context; after an error, remove the created file.

    Raises `StudyError` if a file of that name exists, even if it appeared just now, or the folder cannot be
    written to.
    """
    with Study.create(path) as study:
        try:
            yield study
        except BaseException:
            study.discard()
            raise


_PLACES = (("images", "path"), ("streams", "source"))
"""Columns with paths of files, relative to the study if the file is beside or below it."""


def save_elsewhere(
    study: Study, path: Path, works: Sequence[Callable[[Study, Watch], Any]] = (), watch: Watch = silent,
    prepare: Callable[[sqlite3.Connection], object] | None = None,
) -> list[Any]:  # fmt: skip
    """Copy a study and change the copy, completely or not at all; return the results of the changes.

    The copy refers to the same image files; the study itself does not change. Raises `StudyError` if there is
    a file of that name, the folder cannot be written to, or the study cannot be read.

    `path`: file that does not exist yet.
    `works`: functions that change the copy, one after another.
    `prepare`: removes rows of the copy before the file appears; their space is cleared.
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
    """Rewrite a stored path for a study in another folder; untrusted paths do not change."""
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


_GUARDS = ("decisions_stay", "decisions_remain", "decisions_follow",
           "viewed_stay", "viewed_remain", "viewed_follow")  # fmt: skip
_MEASURED = ("crowd_sizes", "compared_methods", "last_import", "reads", "second_read")
"""Settings that contain measurements with decisions or refer to them, in addition to those of `_FOLDS`."""

_FOLDS = "label_folds%"
_KEPT = """SELECT object FROM marks UNION SELECT object FROM masks UNION SELECT object FROM votes
    UNION SELECT object FROM results UNION SELECT object FROM outlines"""


@dataclass(frozen=True)
class CopiedStudy:
    """Content that a copy for a second reader lacks."""

    blind: bool
    decisions: int  # decisions that were left out
    runs: int  # runs that were left out because they used decisions
    kept_runs: int  # other runs

    def in_words(self) -> str:
        """Describe the copy in a line."""
        if not self.blind:
            return "a copy with all decisions"
        if not self.decisions and not self.runs:
            return "a blind copy; there was no decision to omit"
        text = f"a blind copy without {counted(self.decisions, 'decision')}"
        if self.runs:
            text += f" and without {counted(self.runs, 'run')} that used decisions"
        return text if self.kept_runs or not self.runs else f"{text}; press Fuse (F5) in the copy"


def copy_for_reader(study: Study, target: Path, *, blind: bool, watch: Watch = silent) -> CopiedStudy:
    """Copy a study for a second reader, completely or not at all.

    Raises `StudyError` if there is a file of that name, the folder cannot be written, or the study cannot be
    read.

    `target`: file that does not exist yet. `blind`: whether the copy omits all decisions and their effects.
    """
    decisions, runs = study.decisions(), study.runs.all()
    if not blind:
        save_elsewhere(study, target, watch=watch)
        return CopiedStudy(False, len(decisions), 0, len(runs))
    read = SecondRead(user_name(), datetime.now(UTC), study.path.name)

    def mark(copy: Study, _watch: Watch) -> None:
        copy.settings.second_read = read

    save_elsewhere(study, target, [mark], watch, prepare=_remove_decisions)
    used = sum(run.known > 0 for run in runs)
    return CopiedStudy(True, len(decisions), used, len(runs) - used)


def _remove_decisions(copy: sqlite3.Connection) -> None:
    """Remove the decisions, and everything derived from them, from an unopened copy."""
    guards = dict(
        copy.execute(
            f"SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name IN ({_marks(_GUARDS)})",
            _GUARDS,
        )
    )
    for name in guards:
        copy.execute(f"DROP TRIGGER {name}")
    for table in ("results", "outlines", "shown"):
        copy.execute(f"DELETE FROM {table} WHERE run IN (SELECT id FROM runs WHERE known > 0)")
    copy.execute("DELETE FROM runs WHERE known > 0")
    for table in ("decisions", "viewed", "watched", "streams"):
        copy.execute(f"DELETE FROM {table}")
    copy.execute(
        f"DELETE FROM settings WHERE name IN ({_marks(_MEASURED)}) OR name LIKE ?", (*_MEASURED, _FOLDS)
    )
    copy.execute(f"DELETE FROM chunks WHERE object NOT IN ({_KEPT})")
    copy.execute(f"DELETE FROM objects WHERE id NOT IN ({_KEPT})")
    for statement in guards.values():
        copy.execute(statement)


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
