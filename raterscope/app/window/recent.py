"""The studies that were opened lately, those that are known to have gone left out.

A thread looks whether they are there: a network drive that does not answer would hold the window up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Job, Jobs
from raterscope.app.window import memory

__all__ = ["LOOK_MS", "Recent", "wait_no_longer"]

LOOK_MS = 2000
"""How long an answer is waited for; a drive that gives none by then is not asked again until it does."""


class Recent(QObject):
    """Lists the studies that were opened lately.

    Parameters
    ----------
    jobs : Jobs
    parent : QObject

    Signals
    -------
    changed
        `offered` may be another list.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._looking: Job | None = None
        self._there: dict[Path, bool] = {}

    @property
    def offered(self) -> tuple[Path, ...]:
        """Those that may be there, the last one first."""
        return tuple(path for path in memory.recent_studies() if self._there.get(path, True))

    @property
    def folder(self) -> Path | None:
        """The folder of the last one that is there; None where nothing is known to be."""
        return next((path.parent for path in self.offered if path in self._there), None)

    def look(self) -> None:
        """Look which of them are there."""
        if self._looking is not None and not self._looking.left:
            return
        job = self._jobs.start("Looking for studies", partial(_look, memory.recent_studies()), quiet=True)
        self._looking = job
        job.finished.connect(self._on_found)
        wait_no_longer(job, LOOK_MS)

    def _on_found(self, there: dict[Path, bool]) -> None:
        self._there = there
        self.changed.emit()


def wait_no_longer(job: Job, milliseconds: int) -> None:
    """Cancel a job that asks a drive, if it has no answer by then."""
    timer = QTimer(job)
    timer.setSingleShot(True)
    timer.timeout.connect(job.cancel)
    timer.start(milliseconds)


def _look(paths: Sequence[Path], watch: Watch) -> dict[Path, bool]:
    found = {}
    for done, path in enumerate(paths):
        watch(done / len(paths), "looking for studies")
        found[path] = path.is_file()
    return found
