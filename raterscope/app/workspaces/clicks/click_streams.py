"""Live watching of a growing source, and replay of the clicks of one image, one step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.image_priors import Experience
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import Watch, without_partials
from raterscope.app.document import Document
from raterscope.app.errors import plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.growing_files import Growth
from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest, refit
from raterscope.app.kinds.clicks.live_watching import (
    Order,
    PendingClicks,
    WatchedImage,
    WatchPlan,
    follow_image,
    replay,
)
from raterscope.app.session import LatestTask
from raterscope.app.study import Study

EVERY = 1000
"""Milliseconds between two reads of the source."""
STOPPED = "Stopped by you."
ASKS = "The meaning of its columns is unknown."


WITHOUT_PROGRAMS = "Marked programs take no part in watching; Fuse (F5) uses them."


class LiveWatch(QObject):
    """Watch of one source, one step at a time: read, store, fuse, keep."""

    changed = Signal()  # watching started, waits, was paused, or ended
    stepped = Signal(int, object)  # new result of an image, not stored yet
    advanced = Signal(object)  # images: the results of these images are stored in the study
    noticed = Signal(str)  # notices about reading the source
    columns_unknown = Signal(object, object)  # the meaning of columns must be chosen before it can continue
    stopped = Signal(object)  # run or None: watching ended, and its result is stored as a run
    refused = Signal(str)  # why it could not continue

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._task = LatestTask()
        self._binding = False
        """Whether the current step runs in the study's thread and must not be cancelled."""
        self._stopping = False
        self._moved = True
        self._more = False
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.timeout.connect(self._read_source)
        self.following: LiveSource | None = None
        self.paused = False
        self.notice = ""
        self.refused_lines = 0
        self._latest_arrival: float | None = None
        document.decided.connect(self._on_decided)

    @property
    def waiting(self) -> bool:
        """Whether all new clicks have been processed."""
        return self.following is not None and self._wait.isActive()

    @property
    def since(self) -> float | None:
        """Seconds since the last new clicks; None without any."""
        return None if self._latest_arrival is None else time.monotonic() - self._latest_arrival

    def start(self, request: WatchRequest) -> None:
        """Watch a source, from the position of the last watching."""
        self.forget()
        self.paused = self._stopping = False
        self.notice = ""
        self.refused_lines = 0
        self._latest_arrival = None
        job = self._document.ask("Beginning to watch", partial(_begin, request), changes=True)
        self._run_step(job, self._on_begun)

    def pause(self, paused: bool) -> None:
        """Pause, or continue."""
        self.paused = paused
        if paused:
            self._wait.stop()
        elif not self._task.busy and self.following is not None:
            self._read_source()
        self.changed.emit()

    def stop(self) -> None:
        """Store the result as a run, and end."""
        self._stopping = True
        self._wait.stop()
        if not self._task.busy:
            self._keep_run()
        elif not self._binding:
            self._task.stop()

    def forget(self) -> None:
        """Stop at once, because the study is closed. Watching can be resumed from the stored position."""
        self._wait.stop()
        self._task.cancel()
        self.following = None

    def _read_source(self) -> None:
        following = self.following
        if following is not None:
            name = plain(following.request.source.name, 80)
            job = self._jobs.start(f"Reading {name}", partial(_read_growth, following), quiet=True)
            self._run_step(job, self._on_growth)
            self.changed.emit()

    def _on_begun(self, following: LiveSource) -> None:
        self.following = following
        self._moved = True
        self.advanced.emit(tuple(following.watched))
        self._read_source()

    def _on_growth(self, growth: Growth | UnknownColumns) -> None:
        following = self.following
        assert following is not None
        if isinstance(growth, UnknownColumns):
            self.following = None
            self._keep(following, ASKS)
            self.changed.emit()
            self.columns_unknown.emit(following.request, growth)
            return
        programs = self._document.review.programs
        text = " ".join((*growth.notices, *([WITHOUT_PROGRAMS] if programs else [])))
        if text and text != self.notice:
            self.noticed.emit(text)
        self.notice = text
        arrived = growth.table is not None
        self.refused_lines += growth.refused
        if arrived:
            self._latest_arrival = time.monotonic()
        self._more = growth.more
        if arrived or self._moved or growth.position != following.position:
            self._moved = False
            work = partial(_store, following, growth)
            self._run_step(self._document.ask("Storing new clicks", work, changes=arrived), self._on_stored)
        else:
            self._continue()

    def _on_stored(self, images: Sequence[int]) -> None:
        if images:
            job = self._jobs.start("Fusing new clicks", partial(self._advance, images), quiet=True)
            job.partial.connect(self._on_step)
            self._run_step(job, self._on_advanced)
        else:
            self._continue()

    def _advance(self, images: Sequence[int], watch: Watch) -> Sequence[int]:
        following = self.following
        assert following is not None
        for image, watched in following.advance(images, without_partials(watch)):
            watch(0.0, "fusing new clicks", partial=partial(_pair, image, watched))
        return images

    def _on_step(self, step: tuple[int, WatchedImage]) -> None:
        if self.following is not None:
            self.stepped.emit(*step)

    def _on_advanced(self, images: Sequence[int]) -> None:
        following = self.following
        assert following is not None
        job = self._document.ask("Saving the stream", partial(_keep, following, images))
        self._run_step(job, self._on_kept)

    def _on_kept(self, images: Sequence[int]) -> None:
        self.advanced.emit(images)
        self._continue()

    def _continue(self) -> None:
        following = self.following
        if self._stopping:
            self._keep_run()
        elif following is not None and not self._more and following.is_settling_due:
            self._run_step(self._settle(following), self._on_advanced)
        elif not self.paused:
            self._wait.start(0 if self._more else EVERY)
        self.changed.emit()

    def _keep_run(self) -> None:
        following = self.following
        if following is not None and following.is_settled:
            self._run_step(self._keep(following, STOPPED), self._on_run_kept)
        elif following is not None:
            self._run_step(self._settle(following), self._on_settled)

    def _settle(self, following: LiveSource) -> Job:
        return self._jobs.start("Fusing all clicks again", following.settle, quiet=True)

    def _on_settled(self, _images: Sequence[int]) -> None:
        following = self.following
        if following is not None:
            self._run_step(self._keep(following, STOPPED), self._on_run_kept)

    def _keep(self, following: LiveSource, reason: str) -> Job:
        """Store the result as a run, with the reason for the end."""
        return self._document.ask("Keeping the run", partial(_keep_run, following, reason), changes=True)

    def _on_run_kept(self, run: int | None) -> None:
        self.following = None
        self._stopping = False
        self.changed.emit()
        self.stopped.emit(run)

    def _on_decided(self) -> None:
        """Hold the new decision fixed from the next step on."""
        self._moved = True

    def _run_step(self, job: Job, go_on: Callable[[Any], None]) -> None:
        """Follow a job as the current step; late answers are dropped."""
        self._binding = job.binding
        self._task.follow(job, go_on, stopped=partial(self._on_stopped, job))

    def _on_stopped(self, job: Job) -> None:
        """End after a failure; after a cancellation by `stop`, store the run."""
        if job.state == "cancelled" and self._stopping:
            self._keep_run()
            return
        following, self.following = self.following, None
        self.changed.emit()
        if job.state == "failed":
            if following is not None:
                self._keep(following, job.error)
            self.refused.emit(job.error)


def _begin(request: WatchRequest, study: Study, _watch: Watch) -> LiveSource:
    return LiveSource(study, request)


def _read_growth(following: LiveSource, watch: Watch) -> Growth | UnknownColumns:
    try:
        return following.look(watch)
    except UnknownColumns as unknown:
        return unknown


def _store(following: LiveSource, growth: Growth, study: Study, watch: Watch) -> list[int]:
    following.store(study, growth, watch)
    return following.gather(study, watch)


def _keep(following: LiveSource, images: Sequence[int], study: Study, _watch: Watch) -> Sequence[int]:
    following.keep(study, images)
    return images


def _keep_run(following: LiveSource, reason: str, study: Study, _watch: Watch) -> int | None:
    following.end(study, reason)
    return following.keep_run(study)


def _pair(image: int, watched: WatchedImage) -> tuple[int, WatchedImage]:
    return image, watched


class Replay(QObject):
    """Replay of the clicks of one image: computes its steps in the background, and plays them."""

    changed = Signal()  # more steps are computed, or playing started or stopped
    moved = Signal(int)  # number of the step to show, from 1; 0 before the first
    refused = Signal(str)

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._task = LatestTask()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._play_on)
        self.set_speed(5.0)
        self.waiting: PendingClicks | None = None
        self.steps: list[WatchedImage] = []
        self.measured: list[tuple[float, float]] = []
        """Sensitivity and precision of the steps, if there is ground truth."""
        self.position = 0

    @property
    def on(self) -> bool:
        """Whether a replay is open."""
        return self.waiting is not None

    @property
    def at_end(self) -> bool:
        """Whether the last step, with all clicks, is shown."""
        return self.on and 0 < self.position == self.total == len(self.steps)

    @property
    def playing(self) -> bool:
        """Whether the replay is playing."""
        return self._timer.isActive()

    @property
    def total(self) -> int:
        """Number of steps."""
        return 0 if self.waiting is None else len(self.waiting.arrivals)

    def start(
        self,
        clicks: Clicks,
        order: Order,
        per_step: int,
        seed: int,
        plan: WatchPlan,
        truth: FloatArray,
        radius: float,
        experience: Callable[[], Experience] = Experience.none,
    ) -> None:
        """Compute the steps of an image's clicks, and play them as they are computed.

        `experience` returns the experience from other images, when the work begins. With true positions
        `truth`, (T, 2), the steps are evaluated within a radius.
        """
        self.leave()
        self.waiting = replay(clicks, order, per_step, seed)
        self.steps, self.measured = [], []
        self.position = 0
        work = partial(_work_out, self.waiting, plan, truth, radius, experience, self.steps, self.measured)
        job = self._jobs.start("Replaying clicks", work)
        job.partial.connect(self._on_step)
        self._task.follow(job, self._on_step, failed=self.refused.emit, stopped=self.changed.emit)
        self.play(True)

    def leave(self) -> None:
        """Close the replay."""
        self._timer.stop()
        self._task.cancel()
        self.waiting = None
        self.steps, self.measured = [], []
        self.position = 0

    def play(self, playing: bool) -> None:
        """Play, from the beginning if it is at the end; or pause."""
        if playing and self.position >= self.total:
            self.position = 0
        if playing and self.on:
            self._timer.start()
        else:
            self._timer.stop()
        self.changed.emit()

    def set_speed(self, speed: float) -> None:
        """Set the number of steps a second."""
        self.speed = speed
        self._timer.setInterval(max(16, round(1000 / speed)))

    def go_to(self, step: int) -> None:
        """Show a step, as far as steps are computed."""
        step = min(max(step, 0), len(self.steps))
        if step != self.position:
            self.position = step
            self.moved.emit(step)

    def _play_on(self) -> None:
        self.go_to(self.position + 1)
        if not self._task.busy and self.position >= len(self.steps):
            self.play(False)

    def _on_step(self, _count: int | None) -> None:
        self.changed.emit()


def _work_out(
    waiting: PendingClicks,
    plan: WatchPlan,
    truth: FloatArray,
    radius: float,
    experience: Callable[[], Experience],
    steps: list[WatchedImage],
    measured: list[tuple[float, float]],
    watch: Watch,
) -> None:
    """Append every step as it is computed. Other threads read the lists; only this thread writes them."""
    total = len(waiting.arrivals)
    for watched in follow_image(None, waiting, experience, plan, without_partials(watch)):
        if len(steps) + 1 == total:
            watched = refit(watched, waiting, plan)
        if len(truth):
            mean = watched.fusion.clustering.mean[watched.fusion.detection.detected]
            evaluation = evaluate(mean, truth, radius)
            measured.append((evaluation.sensitivity, evaluation.precision))
        steps.append(watched)
        watch(len(steps) / total, f"annotators {len(steps):,} of {total:,}", partial=partial(len, steps))
