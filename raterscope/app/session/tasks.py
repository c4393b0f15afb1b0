"""Background work whose answers are delivered only as long as they are wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from raterscope.app.jobs import Job

__all__ = ["LatestTask", "TaskGroup"]

Deliver = Callable[[Any], object]


class TaskGroup:
    """Jobs of one purpose that may run side by side; `cancel` drops the answers of all of them.

    A job that is followed reports here only: exactly one of `deliver` and `stopped` is called for it, unless
    it is cancelled first. When a callback runs, its job no longer counts as running, so that a callback may
    follow the next job.
    """

    def __init__(self) -> None:
        self._running: dict[Job, bool] = {}
        """Jobs, and whether each must finish."""

    @property
    def busy(self) -> bool:
        """Whether a job is running whose answer is wanted."""
        return bool(self._running)

    def follow(
        self,
        job: Job,
        deliver: Deliver,
        *,
        progressed: Callable[[Job], object] | None = None,
        failed: Callable[[str], object] | None = None,
        stopped: Callable[[], object] | None = None,
        must_finish: bool = False,
    ) -> None:
        """Deliver the answer of a job that has just been started.

        Parameters
        ----------
        job : Job
        deliver : callable
            ``deliver(answer)`` takes the result.
        progressed : callable, optional
            ``progressed(job)`` hears of progress while the job runs.
        failed : callable, optional
            ``failed(sentence)`` takes the reason where the job fails; `stopped` follows.
        stopped : callable, optional
            Called where the job ends without an answer: it failed, or something else cancelled it.
        must_finish : bool
            The job writes: `cancel` drops its answer and lets it finish.
        """
        self._running[job] = must_finish
        job.finished.connect(partial(self._on_finished, job, deliver))
        job.ended.connect(partial(self._on_ended, job, failed, stopped))
        if progressed is not None:
            job.progressed.connect(partial(self._on_progressed, job, progressed))

    def cancel(self) -> None:
        """Stop all jobs; none of them reports any more."""
        running, self._running = self._running, {}
        for job, must_finish in running.items():
            if not must_finish:
                job.cancel()

    def stop(self) -> None:
        """Stop all jobs; each reports that it stopped."""
        for job in tuple(self._running):
            job.cancel()

    def _on_progressed(self, job: Job, progressed: Callable[[Job], object]) -> None:
        if job in self._running and job.state == "running":
            progressed(job)

    def _on_finished(self, job: Job, deliver: Deliver, answer: object) -> None:
        if job in self._running:
            del self._running[job]
            deliver(answer)

    def _on_ended(
        self, job: Job, failed: Callable[[str], object] | None, stopped: Callable[[], object] | None
    ) -> None:
        if job not in self._running:
            return
        del self._running[job]
        if job.state == "failed" and failed is not None:
            failed(job.error)
        if stopped is not None:
            stopped()


class LatestTask:
    """Background work of which only the newest answer is wanted: a new job replaces the one that runs."""

    def __init__(self) -> None:
        self._group = TaskGroup()

    @property
    def busy(self) -> bool:
        """Whether the newest job has not reported yet."""
        return self._group.busy

    def follow(
        self,
        job: Job,
        deliver: Deliver,
        *,
        progressed: Callable[[Job], object] | None = None,
        failed: Callable[[str], object] | None = None,
        stopped: Callable[[], object] | None = None,
        must_finish: bool = False,
    ) -> None:
        """Cancel the job that runs, and deliver the answer of this one; see `TaskGroup.follow`."""
        self._group.cancel()
        self._group.follow(
            job, deliver, progressed=progressed, failed=failed, stopped=stopped, must_finish=must_finish
        )

    def cancel(self) -> None:
        """Stop the job that runs; nothing of it is reported."""
        self._group.cancel()

    def stop(self) -> None:
        """Stop the job that runs; `stopped` is called as soon as it has ended."""
        self._group.stop()
