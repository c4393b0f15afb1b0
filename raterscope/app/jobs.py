"""Work outside the GUI thread: progress, time left, cancellation, partial results."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from shiboken6 import isValid

from raterscope import __version__
from raterscope.algorithms.progress import Cancelled, RefusedError, Watch
from raterscope.app.errors import InputError, system_reason

State = Literal["running", "cancelling", "done", "failed", "cancelled"]
Work = Callable[[Watch], Any]

REPORT_SECONDS = 0.05
PARTIAL_SECONDS = 0.15
PATIENCE_SECONDS = 0.5
REST_SECONDS = 1.0
LEAVING_MS = 20
NICE_INCREMENT = 5
"""Increment of `nice` for the threads of long work.

With more, work that the window waits for would get no processor while other programs are busy.
"""

_AT_WORK: set[Job] = set()
"""Jobs that a thread may still be executing; this reference keeps them alive, even after the window is
closed."""


class Pace:
    """Estimate of the time left, from the recent progress: steps of a job differ in speed."""

    def __init__(self) -> None:
        self._since = self._next = (0.0, 0.0)
        self._left: float | None = None

    def seconds_left(self, elapsed: float, fraction: float) -> float | None:
        """Return the time left after some progress; None while there is too little."""
        if elapsed >= 1.5 * self._next[0]:
            self._since, self._next = self._next, (elapsed, fraction)
        then, before = self._since
        if elapsed > 1 and fraction > max(before, 0.02):
            self._left = (elapsed - then) * (1 - fraction) / (fraction - before)
        return self._left


class Job(QObject):
    """One piece of work. Its signals arrive in the GUI thread; after `cancel`, only `ended` does.

    Binding work has lasting effects: if it is done before it notices the cancelling, then it is done.
    """

    progressed = Signal()
    partial = Signal(object)
    finished = Signal(object)
    failed = Signal(str)
    ended = Signal()

    _reported = Signal(float, str, object)
    _drafted = Signal(object)
    _returned = Signal(object)
    _raised = Signal(object, str, str)

    def __init__(
        self,
        key: int,
        title: str,
        work: Work,
        owner: QObject,
        *,
        binding: bool,
        quiet: bool,
        costly: bool,
        background: bool,
    ) -> None:
        super().__init__()  # without a parent, whose deletion would delete it during its work
        self._owner = owner
        self.key = key  # counts up; never used again
        self.title = title
        self.binding = binding
        self.quiet = quiet
        self.costly = costly  # whether closing asks for a confirmation before it stops this job
        # whether the job runs in the background: the status line shows it, and Fuse stays available
        self.background = background
        self.state: State = "running"
        self.fraction = 0.0
        self.text = ""
        self.objective: float | None = None
        self.seconds_left: float | None = None
        # raised, error, details: after a failure, the type of error, one sentence, and the traceback for a
        # report
        self.raised: type[Exception] | None = None
        self.error = ""
        self.details = ""
        self._begun = time.monotonic()
        self._work = work
        self._cancel = threading.Event()
        self._partial_requested = threading.Event()
        self._partial_requested.set()
        self._started: float | None = None
        self._pace = Pace()
        self._done = threading.Event()
        self._report_sent = 0.0
        self._partial_sent = 0.0
        queued = Qt.ConnectionType.QueuedConnection
        self._reported.connect(self._on_reported, queued)
        self._drafted.connect(self._on_drafted, queued)
        self._returned.connect(self._on_returned, queued)
        self._raised.connect(self._on_raised, queued)

    @property
    def over(self) -> bool:
        """True when the job has ended."""
        return self.state in ("done", "failed", "cancelled")

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begun

    @property
    def left(self) -> bool:
        """True when the worker thread no longer uses this object, which may then be deleted."""
        return self._done.is_set()

    def cancel(self) -> None:
        """Request cancellation; later answers are dropped."""
        if self.state == "running":
            self.state = "cancelling"
            self.text = "stopping"
            self._cancel.set()
            if not self.binding:
                patience = QTimer(self, singleShot=True)  # it ends with the job
                patience.timeout.connect(self.abandon)
                patience.start(int(PATIENCE_SECONDS * 1000))
            self.progressed.emit()

    def abandon(self) -> None:
        """Stop waiting for work that does not react, such as a call into a library."""
        if not self.over:
            self._cancel.set()
            self._end("cancelled")

    def execute(self) -> None:
        """Execute the work in the calling thread."""
        self._started = time.perf_counter()
        if not self.quiet and not self.binding:
            _lower_priority()
        try:
            self._stop_if_cancelled()
            result = self._work(self._watch)
        except Cancelled as stop:
            self._send(self._raised, stop, "", "")
        except Exception as error:  # any error is reported in the list of jobs
            details = getattr(error, "details", "") or traceback.format_exc()
            self._send(self._raised, error, _in_words(error, details), details)
        else:
            self._send(self._returned, result)
        self._work = _no_work
        self._done.set()

    def _watch(
        self,
        fraction: float,
        text: str,
        *,
        objective: float | None = None,
        partial: Callable[[], object] | None = None,
    ) -> None:
        self._stop_if_cancelled()
        time_now = time.perf_counter()
        if time_now - self._report_sent >= REPORT_SECONDS:
            self._report_sent = time_now
            self._send(self._reported, fraction, text, objective)
        if (
            partial is not None
            and time_now - self._partial_sent >= PARTIAL_SECONDS
            and self._partial_requested.is_set()
        ):
            self._partial_sent = time_now
            self._partial_requested.clear()
            self._send(self._drafted, partial())

    def _stop_if_cancelled(self) -> None:
        if self._cancel.is_set():
            raise Cancelled

    def _send(self, signal: Any, *values: object) -> None:
        try:
            signal.emit(*values)
        except RuntimeError:  # the program is at its end, and this object with it
            self._cancel.set()

    def _on_reported(self, fraction: float, text: str, objective: object) -> None:
        if not isValid(self._owner):
            return
        if self.state != "running" or self._started is None:
            return
        self.fraction = min(max(fraction, self.fraction), 1.0)
        self.text = text
        self.objective = objective if isinstance(objective, float) else None
        self.seconds_left = self._pace.seconds_left(time.perf_counter() - self._started, self.fraction)
        self.progressed.emit()

    def _on_drafted(self, partial: object) -> None:
        if self.state == "running" and isValid(self._owner):
            self.partial.emit(partial)
        self._partial_requested.set()

    def _on_returned(self, result: object) -> None:
        if not isValid(self._owner):
            return
        if self.state == "running" or (self.state == "cancelling" and self.binding):
            self.fraction = 1.0
            self.text = "done"
            self.state = "done"
            self.finished.emit(result)
            self.ended.emit()
        elif not self.over:
            self._end("cancelled")

    def _on_raised(self, error: Exception, sentence: str, details: str) -> None:
        if self.over or not isValid(self._owner):
            return
        if self.state == "cancelling" or isinstance(error, Cancelled):
            self._end("cancelled")
            return
        self.raised = type(error)
        self.error = sentence
        self.details = details
        self.state = "failed"
        self.failed.emit(self.error)
        self.ended.emit()

    def _end(self, state: State) -> None:
        self.state = self.text = state
        if isValid(self._owner):
            self.ended.emit()


def in_turns(steps: Iterator[None], parent: QObject, then: Callable[[], object]) -> None:
    """Run steps in the GUI thread, one per turn of the event loop; then call a function, in another turn."""
    # Not `QTimer.singleShot`: two such calls may run before anything else does.
    turn = QTimer(parent, singleShot=True, interval=0)
    over = False

    def step() -> None:
        nonlocal over
        if over:
            turn.deleteLater()
            then()
        else:
            over = next(steps, "over") is not None
            turn.start()

    turn.timeout.connect(step)
    step()


def _lower_priority() -> None:
    """Lower the priority of this thread and its children below the window's.

    On other systems than Linux, a thread has no priority of its own.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with suppress(OSError):  # it works as well without
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE_INCREMENT)


def _no_work(watch: Watch) -> None:
    """Replace finished work, so that its references are released."""


def _in_words(error: Exception, details: str) -> str:
    if isinstance(error, (InputError, RefusedError)):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this."
    if isinstance(error, OSError):
        reason = system_reason(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    return _unexpected(error, details)


def _unexpected(error: Exception, details: str) -> str:
    """Write a file for the report of an internal error; return a sentence with its name."""
    from platformdirs import user_log_path

    path = user_log_path("raterscope") / "error.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Raterscope {__version__}\n{details}", encoding="utf-8")
    except OSError:
        return f"Internal error ({type(error).__name__}). See the details under Jobs, and report it."
    return f"Internal error ({type(error).__name__}). Report it with the file {path}."


class Lane:
    """A thread that runs its jobs in order, such as the study's thread, which owns the database."""

    def __init__(self, name: str) -> None:
        # called in the thread whenever it has been idle for a second
        self.rest: Callable[[], object] | None = None
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Add a job at the end."""
        self._queue.put(job)

    def finish(self) -> None:
        """Run the queued jobs, then stop."""
        self._queue.put(None)

    def wait(self) -> None:
        """Wait until all queued jobs are done."""
        self._thread.join()

    @property
    def over(self) -> bool:
        """True once the job has ended."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """Finish all jobs and wait for them: decisions must reach the disk."""
        self.finish()
        self.wait()

    def _run(self) -> None:
        while True:
            try:
                job = self._queue.get(timeout=None if self.rest is None else REST_SECONDS)
            except queue.Empty:
                if self.rest is not None:
                    self.rest()
                continue
            if job is None:
                return
            job.execute()
            del job


class Jobs(QObject):
    """All running work. `updated` is emitted when a visible job starts, progresses or ends."""

    updated = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._begun = 0
        self._leaving: list[Job] = []
        self._leave = QTimer(self, interval=LEAVING_MS)
        self._leave.timeout.connect(self._delete_ended)
        self._jobs: dict[int, Job] = {}
        self._threads: dict[int, threading.Thread] = {}

    def start(
        self,
        title: str,
        work: Work,
        *,
        lane: Lane | None = None,
        quiet: bool = False,
        costly: bool = False,
        background: bool = False,
    ) -> Job:
        """Start work in a separate thread, or at the end of a lane.

        Quiet work is not listed. The user waits for it, and it has priority over other work.

        Connect to the job's signals at once: no signal arrives before control returns to the event loop.
        """
        self._begun += 1
        binding = lane is not None
        job = Job(
            self._begun, title, work, self, binding=binding, quiet=quiet, costly=costly, background=background
        )
        self._jobs[job.key] = job
        _AT_WORK.add(job)
        if not quiet:
            job.progressed.connect(partial(self.updated.emit, job))
            job.ended.connect(partial(self.updated.emit, job))
            self.updated.emit(job)
        job.ended.connect(partial(self._on_ended, job))
        if lane is not None:
            lane.put(job)
        else:
            thread = threading.Thread(target=job.execute, name=title, daemon=True)
            self._threads[job.key] = thread
            thread.start()
        return job

    @property
    def busy(self) -> bool:
        """True while any job runs."""
        return bool(self._jobs)

    def costly_running(self, seconds: float) -> tuple[Job, ...]:
        """List the costly jobs that have run for some seconds and would be stopped."""
        return tuple(
            job for job in self._jobs.values() if job.costly and job.state == "running" and job.age >= seconds
        )

    def cancel(self, key: int) -> None:
        """Cancel the job of this key, if it still runs."""
        job = self._jobs.get(key)
        if job is not None:
            job.cancel()

    def close(self) -> None:
        """Cancel all but quiet writing, and wait briefly for the threads to stop."""
        for job in list(self._jobs.values()):
            if not (job.quiet and job.binding):
                job.cancel()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))
        for job in list(self._jobs.values()):
            if job.state == "cancelling":
                job.abandon()
        self._leave.stop()

    def _on_ended(self, job: Job) -> None:
        del self._jobs[job.key]
        self._threads.pop(job.key, None)
        self._leaving.append(job)
        self._delete_ended()

    def _delete_ended(self) -> None:
        """Delete ended jobs once their threads have left them."""
        removed = [job for job in self._leaving if job.left]
        for job in removed:
            self._leaving.remove(job)
            _AT_WORK.discard(job)
            job.deleteLater()
        if not self._leaving:
            self._leave.stop()
        elif not self._leave.isActive():
            self._leave.start()
