"""Session: state of a workspace, observed by its views; background tasks that deliver the latest answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.app.jobs import Job

if TYPE_CHECKING:
    from raterscope.app.assessment import Change
    from raterscope.app.study import RunEntry

S = TypeVar("S")
A = TypeVar("A")
P = ParamSpec("P")

ORDER = ("run", "cleared", "scene", "amended", "part", "view", "blind", "selection", "inspected")
"""Order in which observers are notified of simultaneous changes."""


class Session(QObject, Generic[S, A]):
    """State of one workspace, observed by its views and controllers.

    A scene is one item of the study (an image, a case, a question) with the result of a run; the analysis is
    computed from it. All changes in a ``with session.change():`` block are made before the first observer is
    called. Every observer sees the same state, and each frame is painted once.
    """

    scene_changed = Signal(object)  # scene: another scene is shown. Never None.
    cleared = Signal()  # no scene is shown any more
    scene_amended = Signal(object)  # scene: the scene shown was replaced by an amended copy; see `amend`
    # for slow drawing: the scene, in the next turn of the event loop after `scene_changed`, unless it changed
    # again
    scene_settled = Signal(object)
    part_changed = Signal(str)  # another part of the same scene is reviewed: a structure
    # scene: once after `scene_changed`, `part_changed`, or a change of `covered`
    view_changed = Signal(object)
    blind_changed = Signal(bool)  # names and votes are hidden, or shown
    selection_changed = Signal(object)  # other annotators are selected
    run_chosen = Signal()  # another run was chosen, or the results of the chosen one must be read again
    change_inspected = Signal(object)  # change: a difference between two runs is inspected

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scene: S | None = None
        self._analysis: A | None = None
        self.previous: S | None = None
        """Scene before the current change, while observers are called."""
        self.blind = False
        """Whether names, votes and results are hidden until the expert decides."""
        self.part = ""
        """Part of the scene under review; empty if there is only one."""
        self.covered = False
        """Whether the part is hidden until it is decided."""
        self.selection: tuple[Any, ...] = ()
        """Selected annotators."""
        self.chosen_run: int | None = None
        """The run chosen to be shown; None for the latest of each item."""
        self.run: RunEntry | None = None
        """The stored run whose result is on screen."""
        self.inspected: Change | None = None
        """The inspected difference between two runs."""
        self._changed: set[str] = set()
        self._depth = 0
        self._notifying = False
        self._settle = QTimer(self, singleShot=True, interval=0)
        self._settle.timeout.connect(self._on_settled)

    @property
    def shown(self) -> bool:
        """True if a scene is shown."""
        return self._scene is not None

    @property
    def scene(self) -> S:
        """The scene shown; `LookupError` without one."""
        if self._scene is None:
            raise LookupError("no scene is shown")
        return self._scene

    @property
    def analysis(self) -> A:
        """Analysis of the scene; `LookupError` without one."""
        if self._analysis is None:
            raise LookupError("no analysis is shown")
        return self._analysis

    @contextmanager
    def change(self) -> Iterator[None]:
        """Group changes: observers are called once, at the end of the outermost block."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._notify()

    def show(self, scene: S | None, analysis: A | None = None, part: str = "") -> None:
        """Show a scene with its analysis, and a part of it; None clears."""
        with self.change():
            if not self._notifying and not self._changed & {"scene", "cleared"}:
                self.previous = self._scene
            self._scene, self._analysis, self.part = scene, analysis, part
            self._changed -= {"scene", "cleared", "part", "view"}
            self._changed |= {"cleared"} if scene is None else {"scene", "view"}

    def amend(self, scene: S) -> None:
        """Replace the scene shown by an amended copy of the same item and run."""
        with self.change():
            self._scene = scene
            self._changed.add("amended")

    def clear(self) -> None:
        """Show no scene."""
        self.show(None)

    def set_part(self, part: str) -> None:
        """Review another part of the scene."""
        with self.change():
            self.part = part
            self._changed |= {"part", "view"}

    def set_covered(self, covered: bool) -> None:
        """Cover or uncover the part under review."""
        if covered != self.covered:
            with self.change():
                self.covered = covered
                if self.shown:
                    self._changed.add("view")

    def select(self, selection: tuple[Any, ...]) -> None:
        """Select annotators everywhere, or none."""
        with self.change():
            self.selection = selection
            self._changed.add("selection")

    def set_blind(self, blind: bool) -> None:
        """Hide names and votes, or show them."""
        if blind != self.blind:
            with self.change():
                self.blind = blind
                self._changed.add("blind")

    def choose_run(self, run: int | None) -> None:
        """Show another run, or read the results of the chosen one again."""
        with self.change():
            self.chosen_run = run
            self._changed.add("run")

    def inspect(self, change: Change | None) -> None:
        """Inspect a difference between two runs, or none."""
        with self.change():
            self.inspected = change
            self._changed.add("inspected")

    def _notify(self) -> None:
        """Call observers until no change is left; changes made by an observer follow the current one."""
        if self._notifying:
            return
        self._notifying = True
        try:
            while self._changed:
                name = next(name for name in ORDER if name in self._changed)
                self._changed.discard(name)
                self._emit(name)
        finally:
            self._notifying = False
            self.previous = None

    def _emit(self, name: str) -> None:
        if name == "cleared":
            self._settle.stop()
            self.cleared.emit()
        elif name == "scene":
            self._settle.start()
            self.scene_changed.emit(self._scene)
        elif name == "amended":
            self.scene_amended.emit(self._scene)
        elif name == "part":
            self.part_changed.emit(self.part)
        elif name == "view":
            self.view_changed.emit(self._scene)
        elif name == "blind":
            self.blind_changed.emit(self.blind)
        elif name == "selection":
            self.selection_changed.emit(self.selection)
        elif name == "run":
            self.run_chosen.emit()
        else:
            self.change_inspected.emit(self.inspected)

    def _on_settled(self) -> None:
        if self._scene is not None:
            self.scene_settled.emit(self._scene)


def while_shown(method: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[Any, P], None]:
    """Make a method of an object with a `_session` do nothing while no scene is shown.

    As a slot, it accepts as many arguments of the signal as the method.
    """
    takes = len(signature(method).parameters) - 1

    @wraps(method)
    def guarded(self: Any, *args: P.args, **kwargs: P.kwargs) -> None:
        session: Session[Any, Any] = self._session
        if session.shown:
            method(self, *args[:takes], **kwargs)  # type: ignore[arg-type]

    return cast(Callable[Concatenate[Any, P], None], guarded)


Deliver = Callable[[Any], object]


class Busy(Protocol):
    """Panel that shows whether a measurement is running, and its progress."""

    def set_busy(self, busy: bool, fraction: float = 0.0) -> None:
        """Show whether the measurement is running."""


class LatestTask:
    """Background work of one purpose: a new job replaces the running ones, unless it runs beside them.

    `cancel` drops the answers of all jobs. A followed job reports only here: exactly one of `deliver` and
    `stopped` is called for it, unless it is cancelled first. When a callback runs, its job no longer counts
    as running: a callback may follow the next job.
    """

    def __init__(self) -> None:
        self._running: dict[Job, bool] = {}
        """Running jobs, and whether each must finish."""

    @property
    def busy(self) -> bool:
        """True while a job runs."""
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
        beside: bool = False,
    ) -> None:
        """Deliver the answer of a newly started job.

        `deliver`: called with the answer.
        `progressed`: called with the job while it runs.
        `failed`: called with the reason if the job fails; `stopped` follows.
        `stopped`: called if the job ends without an answer, because it failed or was cancelled elsewhere.
        `must_finish`: whether the job writes a file; then `cancel` drops its answer and lets it finish.
        `beside`: whether earlier jobs continue.
        """
        if not beside:
            self.cancel()
        self._running[job] = must_finish
        job.finished.connect(partial(self._on_finished, job, deliver))
        job.ended.connect(partial(self._on_ended, job, failed, stopped))
        if progressed is not None:
            job.progressed.connect(partial(self._on_progressed, job, progressed))

    def measure(self, job: Job, panel: Busy, deliver: Deliver, failed: Callable[[str], object]) -> None:
        """Follow a measurement; a panel shows it as running until it ends."""

        def done(answer: Any) -> None:
            panel.set_busy(False)
            deliver(answer)

        def progressed(job: Job) -> None:
            panel.set_busy(True, job.fraction)

        panel.set_busy(True)
        self.follow(job, done, progressed=progressed, failed=failed, stopped=partial(panel.set_busy, False))

    def cancel(self) -> None:
        """Stop all jobs without a report."""
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
