"""How long the labels workspace takes to answer on large crowds, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.labels_window_speed [small|large ...] [--keep FOLDER]

"small" is 500 annotators with 47,000 votes, "large" 10,000 with a million; both are measured without words.
Each is shown as fused by IBCC, then by dynamic IBCC. A time is from the hand to what is painted; beside it
stands the longest time for which the event loop did not answer, whatever was at work, from the hand until
nothing is under way any more. "Own" is the processor's time of the window's thread alone, which says more
where others use the machine too. `--keep` keeps the studies in a folder for the next time.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.simulation.label_crowds import simulate_labels
from raterscope.algorithms.simulation.label_plans import scoring_crowd
from raterscope.app.formats.label_records import LabelTable, TrueLabels
from raterscope.app.labels.running import fuse_questions, gather, keep
from raterscope.app.main_window import SWITCH_SECONDS, MainWindow, apply_look
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.labels import add_true_labels, add_votes
from raterscope.app.workspaces.catalogue import WORKSPACES

PLANS = {
    "small": scoring_crowd(annotators=500),
    "large": scoring_crowd(tasks=100_000, annotators=10_000, fewest=16),
}
METHODS = ("ibcc", "dynibcc")
DECIDED = 1_000
"""Decisions that the journal holds at the outset."""

ROUNDS = 25
FUSIONS = 20


def make_study(path: Path, size: str) -> None:
    """Simulate a crowd, fuse its votes by each method, and decide some tasks."""
    crowd = simulate_labels(PLANS[size], 7)
    labels = crowd.labels
    third = len(labels.tasks) // 3
    with Study.create(path) as study:
        add_votes(study, LabelTable(
            Path("crowd.csv"), "Infected?", labels.annotators, labels.tasks, labels.outputs,
            labels.annotator, labels.task, labels.label, labels.time,
        ))  # fmt: skip
        classes, truth = labels.classes, crowd.truth[:third]
        add_true_labels(
            study, TrueLabels(Path("truth.csv"), "Infected?", labels.tasks[:third], classes, truth)
        )
        (question,) = study.questions()
        for task in labels.tasks[-DECIDED:]:
            subject = TaskSubject(task=task, label=classes[0])
            study.record(Decision(verb="label", item=question.id, subject=subject))
        for method in METHODS:
            keep(fuse_questions(gather([question.id], study), LabelPlan.make(method)), study)


def memory() -> float:
    """Give the memory in use, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Driven:
    """The window, driven by keys and by what clicks do, with the heart that beats in its event loop."""

    def __init__(self, application: QApplication) -> None:
        self.application = application
        self.window = MainWindow(remembers=False)
        self.window.resize(1440, 900)
        self.window.show()
        self.window.activateWindow()
        self.longest = 0.0
        self._last = time.perf_counter()
        self._heart = QTimer()
        self._heart.setTimerType(Qt.TimerType.PreciseTimer)
        self._heart.timeout.connect(self._beat)
        self._heart.start(1)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.longest, self._last = max(self.longest, now - self._last), now

    def listen(self) -> None:
        """Begin to listen for the longest silence."""
        self._last, self.longest = time.perf_counter(), 0.0

    @property
    def work(self):
        """The labels workspace."""
        return self.window.workspace

    def wait(self, until: Callable[[], bool], patience: float = 60.0) -> None:
        """Answer events until something is so."""
        deadline = time.perf_counter() + patience
        while not until():
            self.application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
            if time.perf_counter() > deadline:
                raise TimeoutError

    def settle(self, quiet: float = 0.05) -> None:
        """Answer events until nothing has been under way for a while."""
        since = time.perf_counter()

        def settled() -> bool:
            nonlocal since
            if self.window.jobs.busy:
                since = time.perf_counter()
            return time.perf_counter() - since > quiet

        self.wait(settled)

    def key(self, key: Qt.Key, place: QWidget | None = None) -> None:
        """Press a key in the queue, or elsewhere."""
        place = place or self.work.queue.view
        if not place.hasFocus():
            place.setFocus()
        QTest.keyClick(place, key)

    def measure(
        self, name: str, limit: float | None, act: Callable[[], object], done: Callable[[], bool],
        seen: tuple[QWidget, ...] = (), rounds: int = ROUNDS,
    ) -> None:  # fmt: skip
        """Print percentiles of an interaction, from the hand to what is painted, and the longest silence."""
        times, silences, own = [], [], []
        for _ in range(rounds):
            self.listen()
            begun, worked = time.perf_counter(), time.thread_time()
            act()
            self.wait(done)
            for widget in seen:
                widget.repaint()
            times.append(1000 * (time.perf_counter() - begun))
            own.append(1000 * (time.thread_time() - worked))
            self.settle()
            silences.append(1000 * self.longest)
        high = np.percentile(times, 95)
        tell(name, np.percentile(times, 50), high, limit, max(silences), np.percentile(own, 95))

    @contextmanager
    def once(self, name: str, limit: float | None = None) -> Iterator[None]:
        """Print how long something took, and the longest silence."""
        self.listen()
        begun = time.perf_counter()
        yield
        took = 1000 * (time.perf_counter() - begun)
        self.settle()
        tell(name, took, took, limit, 1000 * self.longest)


def tell(
    name: str, middle: float, high: float, limit: float | None, silence: float, own: float = np.nan
) -> None:
    """Print a line of the table."""
    most = f"{limit:7.0f}" if limit else " " * 7
    over = "  OVER" if limit and high > limit else ""
    worked = " " * 9 if np.isnan(own) else f"{own:9.1f}"
    print(f"{name:52s}{middle:9.1f}{high:9.1f}{worked}{most}{silence:10.1f}{over}", flush=True)


class Session:
    """The interactions on one study."""

    def __init__(self, driven: Driven, path: Path) -> None:
        self.driven, self.path = driven, path

    def open(self) -> None:
        """Open the study and wait until its tasks, its annotators and its answer are shown."""
        driven = self.driven
        driven.window.open_paths([self.path])
        driven.wait(lambda: driven.work is not None and bool(driven.work.queue.view.lines))
        driven.wait(lambda: driven.work.tasks.current is not None)

    def show(self, method: str) -> None:
        """Show the answer of a method."""
        driven = self.driven
        run = [one.id for one in driven.window.document.contents.runs if one.algorithm == method][-1]
        driven.work.runs.choose(run)
        driven.wait(lambda: driven.work.scene is not None and driven.work.scene.run.id == run)

    def decide(self) -> None:
        """Walk the queue, decide, undo and redo."""
        driven, window, work = self.driven, self.driven.window, self.driven.work
        state = {}
        here = (work.task_panel, work.queue, work.history)

        def note() -> None:
            state.update(task=work.tasks.current, made=len(window.document.contents.decisions))

        def decided() -> bool:
            return len(window.document.contents.decisions) > state["made"]

        def moved() -> bool:
            return work.tasks.current != state["task"]

        digits = cycle((Qt.Key.Key_1, Qt.Key.Key_2))

        def press(key: Qt.Key) -> Callable[[], None]:
            def call() -> None:
                note()
                driven.key(key)

            return call

        def digit() -> None:
            note()
            driven.key(next(digits))

        def after(slot: Callable[[], object]) -> Callable[[], None]:
            def call() -> None:
                note()
                slot()

            return call

        work.tasks.select(int(work.tasks._order[0]))
        driven.settle()
        driven.measure("decided by a digit, on disk, the next task painted", 50, digit,
                       lambda: decided() and moved(), here)  # fmt: skip
        driven.measure("next disputed (Tab)", 100, press(Qt.Key.Key_Tab), moved, here[:2])
        driven.measure("undo", 50, after(window.document.undo), decided, here)
        driven.measure("redo", 50, after(window.document.redo), decided, here)

    def people(self) -> None:
        """Choose annotators, communities and cells; sort, scroll and filter."""
        driven, work = self.driven, self.driven.work
        shown = work.wall.shown
        tiles, chosen = work.wall.tiles, iter(shown[3:])
        beside = (work.matrix, work.participation, work.wall, work.exclusion)

        def choose() -> None:
            work.wall.tiles._move(next(places), Qt.KeyboardModifier.NoModifier)

        places = count(3, 7)
        driven.measure("an annotator chosen in the wall", 100, choose, lambda: True, beside)
        if work.scene.fusion.drift is not None:
            drawn = []
            work.drift.show_drift, plain = lambda view: (drawn.append(1), plain(view)), work.drift.show_drift

            def follow() -> None:
                drawn.clear()
                work.people.choose((next(chosen),))

            driven.measure("an annotator's drift drawn", 100, follow, lambda: bool(drawn), (work.drift,))
            work.drift.show_drift = plain
            most = int(np.argmax(work.analysis.votes_of))
            work.people.choose((most,))
            driven.settle()
            last = work.drift.slider.maximum()
            steps = cycle(range(0, last, max(1, last // 53)))
            driven.measure("drift, a step of the slider", 33, lambda: work.drift.slider.setValue(next(steps)),
                           lambda: True, (work.drift,))  # fmt: skip
            work.drift.slider.setValue(0)
            driven.measure("drift, a frame of play", 33, work.drift._on_frame, lambda: True, (work.drift,))
        votes = iter(work.task_panel.votes.lines * ROUNDS)
        driven.measure("a voter chosen in the task", 100, lambda: work._on_voter(next(votes).annotator),
                       lambda: True, beside)  # fmt: skip
        groups = cycle(range(work.analysis.groups.found.count))
        driven.measure("a community chosen", 100, lambda: work.people.choose_community(next(groups)),
                       lambda: True, (*beside, work.cards))  # fmt: skip
        driven.measure("everybody chosen (Ctrl+A)", 100,
                       lambda: tiles._choose(tiles._order.tolist()), lambda: True, beside)  # fmt: skip
        work.people.choose_community(None)
        driven.settle()
        cells = cycle([(j, m) for j in range(2) for m in range(3)])
        listed: list[int] = []

        def ask_cell() -> None:
            listed.clear()
            work.middle_tabs.setCurrentIndex(0)
            driven.application.processEvents()
            work.matrix.cell_chosen.emit(*next(cells))

        work.behind.show_tasks, plain = lambda view: (listed.append(1), plain(view)), work.behind.show_tasks
        driven.measure("a cell of everybody's matrix, its tasks listed", 100, ask_cell,
                       lambda: bool(listed), (work.behind,))  # fmt: skip
        work.people.choose(shown[:1])
        driven.settle()
        driven.measure("a cell of one annotator, its tasks listed", 100, ask_cell, lambda: bool(listed),
                       (work.behind,))  # fmt: skip
        work.behind.show_tasks = plain
        work.middle_tabs.setCurrentIndex(0)
        driven.settle()
        bar = tiles.verticalScrollBar()
        heights = cycle(np.linspace(0, bar.maximum(), 41).astype(int).tolist())
        driven.measure("the wall scrolled, a frame", 16, lambda: bar.setValue(next(heights)), lambda: True,
                       (tiles.viewport(),))  # fmt: skip
        orders = cycle((*range(1, work.wall.measure.count()), 0))
        driven.measure("the wall sorted by another measure", 100,
                       lambda: work.wall.measure.setCurrentIndex(next(orders)), lambda: True,
                       (work.wall,))  # fmt: skip
        names = cycle(("1", "12", "7", "77", ""))
        driven.measure("an annotator looked for by name, a letter", 50,
                       lambda: work.wall.filter.setText(next(names)), lambda: True, (work.wall,))  # fmt: skip
        work.wall.filter.setText("")
        driven.measure("names hidden or shown", 100, lambda: driven.key(Qt.Key.Key_B), lambda: True,
                       (work.wall, work.task_panel, work.matrix))  # fmt: skip
        if len(shown) and work._blind:
            driven.key(Qt.Key.Key_B)

    def narrow(self) -> None:
        """Narrow the queue of tasks."""
        driven, work = self.driven, self.driven.work
        listed: list[int] = []
        plain = work.queue.set_tasks
        work.queue.set_tasks = lambda view: (listed.append(1), plain(view))

        def after(act: Callable[[], object]) -> Callable[[], object]:
            def call() -> None:
                listed.clear()
                act()

            return call

        words = cycle(("1", "12", "9", "99", "123", ""))
        kinds = cycle((*range(1, work.queue.choice.count()), 0))
        driven.measure("tasks looked for by name, a letter", 100,
                       after(lambda: work.queue.filter.setText(next(words))), lambda: bool(listed),
                       (work.queue,))  # fmt: skip
        work.queue.filter.setText("")
        driven.settle()
        driven.measure("the queue narrowed in another way", 100,
                       after(lambda: work.queue.choice.setCurrentIndex(next(kinds))), lambda: bool(listed),
                       (work.queue,))  # fmt: skip
        work.queue.choice.setCurrentIndex(0)
        driven.settle()
        bar = work.queue.view.verticalScrollBar()
        heights = cycle(np.linspace(0, bar.maximum(), 37).astype(int).tolist())
        driven.measure("the queue scrolled, a frame", 16, lambda: bar.setValue(next(heights)), lambda: True,
                       (work.queue.view.viewport(),))  # fmt: skip
        del work.queue.set_tasks

    def look_around(self) -> None:
        """Look where what is shown is worked out first."""
        driven, work = self.driven, self.driven.work
        with driven.once("who is like whom, drawn"):
            work.middle_tabs.setCurrentIndex(1)
            driven.settle()
        work.middle_tabs.setCurrentIndex(0)
        with driven.once("whom to ask next, listed"):
            work.left_tabs.setCurrentWidget(work.ask)
            driven.settle()
        work.left_tabs.setCurrentIndex(0)
        driven.settle()

    def leave_out(self) -> None:
        """See what would change without an annotator, leave it out, take it in again."""
        driven, work, document = self.driven, self.driven.work, self.driven.window.document
        work.wall.sort_by("accuracy", falling=False)
        one = work.wall.shown[0]
        work.people.choose((one,))
        driven.settle()
        with driven.once("what changes without an annotator, shown"):
            driven.key(Qt.Key.Key_X)
            driven.wait(lambda: work.exclusion.state == "shown")
            work.exclusion.repaint()
        made = len(document.contents.decisions)
        with driven.once("left out, on disk, crossed out on the wall", 50):
            work.excluding._on_excluded("always the same")
            driven.wait(lambda: len(document.contents.decisions) > made)
            work.wall.repaint()
        drafts: list[float] = []
        note = lambda *_: drafts.append(time.perf_counter())  # noqa: E731
        work.fusing.partial.connect(note)
        first, whole, silences = [], [], []
        for _ in range(5):
            runs = len(document.contents.runs)
            drafts.clear()
            driven.listen()
            begun = time.perf_counter()
            driven.key(Qt.Key.Key_F5)
            driven.wait(lambda: bool(drafts))
            work.progress.repaint()
            first.append(1000 * (time.perf_counter() - begun))
            driven.wait(lambda runs=runs: len(document.contents.runs) > runs)
            driven.settle()
            whole.append(1000 * (time.perf_counter() - begun))
            silences.append(1000 * driven.longest)
        work.fusing.partial.disconnect(note)
        tell("fused again without it, first partial result", np.median(first), max(first), 300, max(silences))
        tell("the same until all is kept and shown", np.median(whole), max(whole), None, max(silences))
        document.undo()
        driven.settle()

    def decide_meanwhile(self) -> None:
        """Decide while a fusion is at work, then cancel it."""
        driven, work, document = self.driven, self.driven.work, self.driven.window.document
        work.fuse_panel.algorithm.choose("dynibcc")
        driven.key(Qt.Key.Key_F5)
        driven.wait(lambda: work.fusing.job is not None)
        times: list[float] = []
        driven.listen()
        for _ in range(ROUNDS):
            made, begun = len(document.contents.decisions), time.perf_counter()
            driven.key(Qt.Key.Key_1)
            driven.wait(lambda made=made: len(document.contents.decisions) > made)
            for widget in (work.task_panel, work.queue, work.history):
                widget.repaint()
            times.append(1000 * (time.perf_counter() - begun))
            rest = time.perf_counter() + 0.02
            driven.wait(lambda rest=rest: time.perf_counter() > rest)
        at_work = "" if work.fusing.job is not None else " (it ended before)"
        tell(f"decided while a fusion is at work{at_work}", np.median(times), np.percentile(times, 95), 50,
             1000 * driven.longest)  # fmt: skip
        work.cancel_fusing()
        driven.settle()
        work.fuse_panel.algorithm.choose("ibcc")

    def cancel(self) -> None:
        """Cancel fusions at several moments."""
        driven, work = self.driven, self.driven.work
        told, stopped, silences = [], [], []
        for moment in (0.05, 0.2, 0.4, 0.8, 1.5):
            driven.key(Qt.Key.Key_F5)
            driven.wait(lambda: work.fusing.job is not None)
            job = work.fusing.job
            thread = driven.window.jobs._threads[job.key]
            begun = time.perf_counter()
            driven.wait(lambda begun=begun, moment=moment: time.perf_counter() - begun > moment)
            if job.over:
                driven.settle()
                continue
            driven.listen()
            begun = time.perf_counter()
            work.cancel_fusing()
            work.job_list.repaint()
            told.append(1000 * (time.perf_counter() - begun))
            driven.wait(lambda thread=thread: not thread.is_alive())
            stopped.append(1000 * (time.perf_counter() - begun))
            driven.settle()
            silences.append(1000 * driven.longest)
        if told:
            tell("Cancel acknowledged", np.median(told), max(told), 100, max(silences))
            tell("Cancel, the thread at an end", np.median(stopped), max(stopped), 500, max(silences))

    def again(self) -> None:
        """Fuse many times and say what memory that takes."""
        driven, document = self.driven, self.driven.window.document
        before, seconds = memory(), []
        driven.listen()
        for step in range(FUSIONS):
            runs, begun = len(document.contents.runs), time.perf_counter()
            driven.key(Qt.Key.Key_F5)
            driven.wait(lambda runs=runs: len(document.contents.runs) > runs)
            driven.settle()
            seconds.append(1000 * (time.perf_counter() - begun))
            if step in (0, FUSIONS // 2):
                print(f"    memory after fusion {step + 1}: {memory():.0f} MB")
        tell("fused again until all is shown", np.median(seconds), max(seconds), None, 1000 * driven.longest)
        print(
            f"    memory before {FUSIONS} fusions {before:.0f} MB, after them {memory():.0f} MB", flush=True
        )


def measure(application: QApplication, path: Path, *, last: bool) -> None:
    """Measure all there is on one study."""
    for workspace in WORKSPACES.values():
        workspace.load()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)
    driven = Driven(application)
    session = Session(driven, path)
    driven.settle()
    print(f"    memory of the empty window {memory():.0f} MB")
    with driven.once("study opened, tasks and annotators shown"):
        session.open()
    print(f"    memory with the study open {memory():.0f} MB")
    for method in METHODS:
        print(f"  {method}")
        with driven.once("another run shown"):
            session.show(method)
        session.decide()
        session.people()
        session.narrow()
        session.look_around()
    driven.work.fuse_panel.algorithm.choose("ibcc")
    session.show("ibcc")
    driven.settle()
    session.decide_meanwhile()
    session.leave_out()
    session.cancel()
    session.again()
    driven.window.document.close()
    driven.settle()
    driven.window.close()
    if not last:
        driven.window.deleteLater()
        driven.settle()


def main() -> None:
    """Measure and print."""
    words = sys.argv[1:]
    kept = Path(words[words.index("--keep") + 1]) if "--keep" in words else None
    sizes = [word for word in words if word in PLANS] or list(PLANS)
    application = QApplication([])
    apply_look("dark")
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            path = (kept or Path(temporary)) / f"{size}.rscope"
            if not path.exists():
                make_study(path, size)
            used = Path(temporary) / "used.rscope"
            used.write_bytes(path.read_bytes())
            print(f"{size}: {path.stat().st_size / 1e6:.0f} MB; milliseconds, {ROUNDS} rounds")
            print(f"{'':52s}{'median':>9s}{'95 %':>9s}{'own 95 %':>9s}{'limit':>7s}{'silence':>10s}")
            measure(application, used, last=size == sizes[-1])
            used.unlink()


if __name__ == "__main__":
    main()
