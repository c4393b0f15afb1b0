"""Snapshot of a study that another process has open: its files, copied as they were at one moment.

The owner alone may use the database's locks and its shared memory, so nothing of SQLite touches the files of
another process here. They are copied as plain files, which needs no lock: until the log of changes (``-wal``)
is begun again it only grows, and it holds all that is meanwhile taken over from it into the main file. So
when the log is the same before and after, what was copied of both is one state.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from raterscope.app.study.records import StudyError

__all__ = ["Snapshot"]

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
    log, log_copy = (place.with_name(f"{place.name}-wal") for place in (study, copy))
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
    """Give the log's header, which file the study is, and when either changed last."""
    main = study.stat()
    header, changed = b"", 0
    with suppress(FileNotFoundError), log.open("rb") as file:
        header, changed = file.read(_LOG_HEADER), log.stat().st_mtime_ns
    return header, (main.st_dev, main.st_ino), main.st_mtime_ns, main.st_size, changed
