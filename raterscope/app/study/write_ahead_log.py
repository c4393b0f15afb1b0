"""Write-ahead log of a study: snapshots of an open study, and logs left by a killed program.

Snapshots: the process that has a study open alone may use the locks of the database and its shared memory.
Another process copies the files as plain files, which needs no lock. Until the log (``-wal``) is begun again
it only grows, and it holds all that is meanwhile moved into the main file. So when the log is the same before
and after, the copies of both files are one state.

Logs left behind: the last changes of a study that was renamed while it was open in a program that was killed
are in the log of its former name, OLD.rscope-wal, beside NEW.rscope, where SQLite does not look for it.
Continuing would lose them, so the study is not opened before they are taken in, or moved away. A log belongs
to a study only if it continues what that study holds: its decisions, imports, runs or views of spots, with
their times.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from raterscope.app.errors import counted, plain
from raterscope.app.formats.records import STUDY_SUFFIX
from raterscope.app.study.locking import is_held
from raterscope.app.study.records import StudyError

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
        changes = _added(path, log)
        if changes:
            raise StudyError(
                f"was renamed while it was open, and its last changes ({changes}) are in {plain(log.name)} "
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
    """Describe the changes that a log adds to a study; empty if it belongs to another."""
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
    """Read the append-only tables of an intact file; older formats have no views."""
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA trusted_schema=OFF")
        if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        rows: dict[str, list[tuple[object, ...]]] = {table: [] for table in _GROWING}
        for table in tables & rows.keys():
            rows[table] = connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
        return rows


_LOG_HEADER = 32
"""Bytes; they differ whenever the log is begun again."""
_ATTEMPTS = 40
_PAUSE = 0.05


class Snapshot:
    """Copies of a study's files in a folder for temporary files, which `release` removes.

    Attributes
    ----------
    file : Path
        The copy.

    Raises
    ------
    StudyError
        When the study changes too fast to be copied.
    OSError
        When a file cannot be read, or the copy not be written.
    """

    def __init__(self, study: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="raterscope-", ignore_cleanup_errors=True)
        self.file = Path(self._folder.name) / "snapshot.rscope"
        try:
            _copy(study, self.file)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove the copies."""
        self._folder.cleanup()


def _copy(study: Path, copy: Path) -> None:
    log, log_copy = (file.with_name(f"{file.name}-wal") for file in (study, copy))
    for _ in range(_ATTEMPTS):
        before = _state(study, log)
        shutil.copyfile(study, copy)
        log_copy.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(log, log_copy)
        after = _state(study, log)
        if before == after or (before[0] and before[:2] == after[:2]):
            return
        time.sleep(_PAUSE)
    raise StudyError("is being changed too fast to be read; try again", file=study)


def _state(study: Path, log: Path) -> tuple[object, ...]:
    """Return the log's header, the study's identity, and the times of their last changes."""
    main = study.stat()
    header, changed = b"", 0
    with suppress(FileNotFoundError), log.open("rb") as file:
        header, changed = file.read(_LOG_HEADER), log.stat().st_mtime_ns
    return header, (main.st_dev, main.st_ino), main.st_mtime_ns, main.st_size, changed
