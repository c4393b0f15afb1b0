"""Last changes of a study that was renamed while it was open in a program that was killed.

They are in the log of its former name, OLD.rscope-wal, beside NEW.rscope, where SQLite does not look for it.
Going on with the study would lose them for good, so it is not opened before they are taken in, or moved away.
A log is a study's only if it continues what that study holds: its decisions, imports, runs or views of spots,
with the times when they were made.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from raterscope.app.errors import counted, plain
from raterscope.app.formats.records import STUDY_SUFFIX
from raterscope.app.study.locking import is_held
from raterscope.app.study.records import StudyError

__all__ = ["refuse_left_log"]

_LOG = f"{STUDY_SUFFIX}-wal"
_HEADER = 32
_LARGEST = 1 << 30
_GROWING = {"decisions": "decision", "imports": "import", "runs": "run", "viewed": "view"}


def refuse_left_log(path: Path) -> None:
    """Refuse a study whose last changes are in the log of another name.

    Parameters
    ----------
    path : Path
        Of a study that nobody has open.

    Raises
    ------
    StudyError
        With what is in the log, and how it is taken in.
    """
    for log in _logs_without_study(path):
        found = _added(path, log)
        if found:
            raise StudyError(
                f"was renamed while it was open, and its last changes ({found}) are in {plain(log.name)} "
                f"beside it. Rename that file to {path.name}-wal and open the study "
                "again to take them in, or move it to another folder to go on without them",
                file=path,
            )


def _logs_without_study(path: Path) -> list[Path]:
    logs = []
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if not entry.name.casefold().endswith(_LOG) or entry.name == f"{path.name}-wal":
                continue
            log = Path(entry.path)
            if entry.is_file(follow_symlinks=False) and _HEADER < entry.stat().st_size <= _LARGEST:
                study = log.with_name(entry.name.removesuffix("-wal"))
                if not os.path.lexists(study) and not is_held(study):
                    logs.append(log)
    return logs


def _added(path: Path, log: Path) -> str:
    """Name what a log adds to a study; nothing where it is not that study's."""
    with tempfile.TemporaryDirectory(prefix="raterscope-", ignore_cleanup_errors=True) as folder:
        before, after = Path(folder) / "before.rscope", Path(folder) / "after.rscope"
        try:
            for copy in (before, after):
                shutil.copyfile(path, copy)
            shutil.copyfile(log, after.with_name(f"{after.name}-wal"))
            old, new = _contents(before), _contents(after)
        except (OSError, sqlite3.Error, UnicodeDecodeError):
            return ""
    if not any(old.values()):  # any log would seem to continue nothing
        return ""
    grown = []
    for table, noun in _GROWING.items():
        if new[table][: len(old[table])] != old[table]:
            return ""
        more = len(new[table]) - len(old[table])
        grown += [counted(more, noun)] if more else []
    return " and ".join(grown)


def _contents(copy: Path) -> dict[str, list[tuple[object, ...]]]:
    """Read the tables that only grow, of a file that is sound; older formats have no views."""
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA trusted_schema=OFF")
        if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        found: dict[str, list[tuple[object, ...]]] = {table: [] for table in _GROWING}
        for table in there & found.keys():
            found[table] = connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
        return found
