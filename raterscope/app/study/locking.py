"""Lock of an open study, snapshots of it, and write-ahead logs left by a killed program.

Lock: on POSIX systems a process that closes any handle on a file loses the locks that SQLite has there. Qt's
file dialog does so: it opens every file of a folder to detect its type. A file NAME.rscope-lock beside the
study is therefore also locked, by flock, which only its own handle releases. The lock ends with its process,
and the file names the process for error messages. A network folder may have no locks at all (ENOLCK). Two
programs could then overwrite each other's changes, so a study there opens read-only.

Snapshots: only the process that has a study open may use the locks of the database and its shared memory.
Another process copies the files as plain files, which needs no lock. The log (``-wal``) only grows until it
is restarted, and it contains everything that is moved into the main file meanwhile. If the log is the same
before and after the copy, both copies have the same state.

Orphaned logs: a study may be renamed while it is open in a program that is then killed. Its last changes are
in the log of the former name, OLD.rscope-wal, beside NEW.rscope, where SQLite does not look for it.
Continuing would lose these changes, so the study opens only after the log is merged into it, or moved away. A
log belongs to a study only if it continues the content of that study: its decisions, imports, runs or views
of spots, with their times.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import sqlite3
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from raterscope.app.errors import InUseError, StudyError, plain
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.text import counted

if sys.platform != "win32":
    import fcntl

NO_LOCKS = (
    "cannot be opened to change it: the file system of its folder has no locks, so another program could "
    "write over it; copy it to a local disk"
)
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_LONGEST = 1000


class Lock:
    """Lock of a study, held from its creation until `release`.

    If the file system has no flock, and on Windows, where a lock belongs to its handle, SQLite's own locks
    are used. Raises `InUseError` if another program holds the lock, or the file system has no locks. Raises
    `OSError` if the lock file cannot be created.
    """

    def __init__(self, study: Path) -> None:
        self._path = _lock_file(study)
        self._handle = _taken(self._path, study)

    def release(self) -> None:
        """Release the lock, so that others can open the study."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = None


def in_use(study: Path, *, locked_by_us: bool = False) -> str:
    """Explain why a study cannot be opened: its owner, if known, or that there are no locks.

    `locked_by_us`: whether this process holds the lock file, and SQLite could not get its own lock.
    """
    if locked_by_us and _has_no_locks(_lock_file(study)):
        return NO_LOCKS
    owner = "" if locked_by_us else _owner(_lock_file(study))
    return f"is open already, {owner or 'here or in another program'}; close it there first"


def is_held(study: Path) -> bool:
    """Return whether a process has a study of this name open, even if its file is missing."""
    if sys.platform == "win32":
        return _lock_file(study).exists()
    try:
        handle = os.open(_lock_file(study), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _lock_file(study: Path) -> Path:
    return study.with_name(f"{study.name}-lock")


def _taken(path: Path, study: Path) -> int | None:
    if sys.platform == "win32":
        return None
    while True:
        handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, handle):
                _name_owner(path)
                return handle
        except BlockingIOError:
            os.close(handle)
            raise InUseError(in_use(study), file=study) from None
        except OSError as error:
            os.close(handle)
            none = _has_no_locks(path)
            with contextlib.suppress(OSError):
                path.unlink()
            if none:
                raise InUseError(NO_LOCKS, file=study) from error
            return None
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    """Return whether the path still refers to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _name_owner(path: Path) -> None:
    """Write the owner into the lock file; failure does not affect the lock."""
    owner = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(owner, file)


def _owner(path: Path) -> str:
    """Return a description of a lock's owner; empty if unknown."""
    try:
        with path.open(encoding="utf-8") as file:
            owner = json.loads(file.read(_LONGEST))
        process, host, since = int(owner["process"]), plain(owner["host"], 40), str(owner["since"])
        when = datetime.fromisoformat(since)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    if (process, host) == (os.getpid(), plain(socket.gethostname(), 40)):
        return "in this program"
    return f"in process {process} on {host} since {when:%Y-%m-%d %H:%M}"


def _has_no_locks(path: Path) -> bool:
    """Return whether the file system refuses locks like SQLite's, tested on the lock file."""
    if sys.platform == "win32":
        return False
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _WITHOUT_LOCKS
    finally:
        os.close(handle)
    return False


_LOG = f"{STUDY_SUFFIX}-wal"
_HEADER = 32
_LARGEST = 1 << 30
_GROWING = {"decisions": "decision", "imports": "import", "runs": "run", "viewed": "view"}


def refuse_left_log(path: Path) -> None:
    """Refuse a study whose last changes are in the log of another name.

    `path`: path of a study that is not open. Raises `StudyError` with the log's contents, and how to restore
    them.
    """
    for log in _logs_without_study(path):
        changes = _added(path, log)
        if changes:
            raise StudyError(
                f"was renamed while it was open, and its last changes ({changes}) are in {plain(log.name)} "
                f"beside it. Rename that file to {path.name}-wal and open the study "
                "again to recover them, or move it to another folder to continue without them",
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
    """Describe the changes that a log adds to a study; empty if it belongs to another study."""
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
"""Length of the log's header, which differs after each restart of the log, bytes."""
_ATTEMPTS = 40
_PAUSE = 0.05


class Snapshot:
    """Copies of a study's files in a folder for temporary files, which `release` removes.

    Raises `StudyError` if the study changes too fast to be copied. Raises `OSError` if a file cannot be read,
    or the copy cannot be written.
    """

    def __init__(self, study: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="raterscope-", ignore_cleanup_errors=True)
        self.file = Path(self._folder.name) / "snapshot.rscope"  # the copy
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
    raise StudyError("is changing too fast to be read; try again", file=study)


def _state(study: Path, log: Path) -> tuple[object, ...]:
    """Return the log's header, the study's identity, and the times of their last changes."""
    main = study.stat()
    header, changed = b"", 0
    with suppress(FileNotFoundError), log.open("rb") as file:
        header, changed = file.read(_LOG_HEADER), log.stat().st_mtime_ns
    return header, (main.st_dev, main.st_ino), main.st_mtime_ns, main.st_size, changed
