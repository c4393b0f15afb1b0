"""Replay of the clicks on the image on screen: steps are computed in the background, then played."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.experience import Experience
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import Watch, without_partials
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.clicks.replaying import Order, replayed
from raterscope.app.kinds.clicks.settling import refit
from raterscope.app.kinds.clicks.watching import Waiting, Watched, WatchPlan, follow
from raterscope.app.session import LatestTask

__all__ = ["Replay"]


class Replay(QObject):
    """The steps of one image, and the one that is shown.

    Signals
    -------
    changed
        More steps are worked out, or it is played or not.
    moved(int)
        Another step is to be shown, from 1; 0 before the first.
    refused(str)
    """

    changed = Signal()
    moved = Signal(int)
    refused = Signal(str)

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._task = LatestTask()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._play_on)
        self.set_speed(5.0)
        self.given: Waiting | None = None
        self.steps: list[Watched] = []
        self.measured: list[tuple[float, float]] = []
        """Sensitivity and precision of the steps, where true places are known."""
        self.position = 0

    @property
    def on(self) -> bool:
        """Whether there is something to play."""
        return self.given is not None

    @property
    def playing(self) -> bool:
        """Whether it goes on by itself."""
        return self._timer.isActive()

    @property
    def total(self) -> int:
        """Steps that there will be."""
        return 0 if self.given is None else len(self.given.arrivals)

    def start(
        self,
        clicks: Clicks,
        order: Order,
        per_step: int,
        seed: int,
        plan: WatchPlan,
        places: FloatArray,
        radius: float,
        experience: Callable[[], Experience] = Experience.none,
    ) -> None:
        """Work out the steps of an image's clicks, and play them as they come.

        `experience` gives what the other images say of the annotators, when the work begins. Where true
        places are known, (T, 2), the steps are measured against them within a radius.
        """
        self.leave()
        self.given = replayed(clicks, order, per_step, seed)
        self.steps, self.measured = [], []
        self.position = 0
        work = partial(_work_out, self.given, plan, places, radius, experience, self.steps, self.measured)
        job = self._jobs.start("Replaying clicks", work)
        job.partial.connect(self._on_step)
        self._task.follow(job, self._on_step, failed=self.refused.emit, stopped=self.changed.emit)
        self.play(True)

    def leave(self) -> None:
        """Play nothing any more."""
        self._timer.stop()
        self._task.cancel()
        self.given = None
        self.steps, self.measured = [], []
        self.position = 0

    def play(self, playing: bool) -> None:
        """Go on by itself, from the beginning where it was at the end; or stand still."""
        if playing and self.position >= self.total:
            self.position = 0
        if playing and self.on:
            self._timer.start()
        else:
            self._timer.stop()
        self.changed.emit()

    def set_speed(self, speed: float) -> None:
        """Play so many steps a second."""
        self.speed = speed
        self._timer.setInterval(max(16, round(1000 / speed)))

    def go_to(self, step: int) -> None:
        """Show a step, as far as steps are worked out."""
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
    given: Waiting,
    plan: WatchPlan,
    places: FloatArray,
    radius: float,
    experience: Callable[[], Experience],
    steps: list[Watched],
    measured: list[tuple[float, float]],
    watch: Watch,
) -> None:
    """Append every step as it is worked out; the lists are read meanwhile, and never otherwise written."""
    total = len(given.arrivals)
    for now in follow(None, given, experience, plan, without_partials(watch)):
        if len(steps) + 1 == total:
            now = refit(now, given, plan)
        if len(places):
            found = now.fusion.clustering.mean[now.fusion.detection.detected]
            against = evaluate(found, places, radius)
            measured.append((against.sensitivity, against.precision))
        steps.append(now)
        watch(len(steps) / total, f"annotators {len(steps):,} of {total:,}", partial=partial(len, steps))
