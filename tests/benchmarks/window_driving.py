"""Response times of the whole window, driven by keys and slots, as lines of a table.

A time is from the key until all that has changed is painted; after a decision on masks, all but the small
views of the volume, which follow in the next turn of the event loop. "Silence" is the longest gap in which
the event loop did not answer, until no work is running. "Own" is the processor time of the window's thread
alone, which is comparable where others use the machine too. Each line is also appended as a JSON object to
the file that the environment variable RATERSCOPE_TIMES names.

Usage: python -m tests.benchmarks.window_driving STUDY

Opens a study, and prints the time until its first item is shown and until nothing is under way.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget

from raterscope.app.window.main_window import MainWindow
from raterscope.app.window.preferences import apply_chosen_theme
from raterscope.app.window.startup import load_libraries, load_workspaces, prioritise_window
from raterscope.app.workers import limit_heaps

__all__ = [
    "ROUNDS", "Driven", "calls_of", "dark_application", "heading", "measure_cancelling",
    "measure_deciding_meanwhile", "measure_fusing", "measure_fusing_again", "measure_studies", "memory",
    "print_line",
]  # fmt: skip

ROUNDS = 25
MOMENTS = (0.05, 0.2, 0.4, 0.8, 1.5)
"""Seconds after which a fusion is cancelled."""


def dark_application() -> QApplication:
    """Start the program's application, with all that it would load later loaded already."""
    limit_heaps()
    application = QApplication([])
    apply_chosen_theme("dark")
    load_libraries(lambda *_: None)
    list(load_workspaces())
    gc.collect()
    gc.freeze()
    prioritise_window()
    return application


def _studies(sizes: Sequence[str], make_study: Callable[[Path, str], None]) -> Iterator[tuple[str, Path]]:
    """Return a study of each size that the command line asks for, all without words, to be used up.

    ``make_study(path, size)`` makes one; `--keep FOLDER` keeps them as made for the next time.
    """
    words = sys.argv[1:]
    kept = Path(words[words.index("--keep") + 1]) if "--keep" in words else None
    with tempfile.TemporaryDirectory() as temporary:
        for size in [word for word in words if word in sizes] or sizes:
            path = (kept or Path(temporary)) / f"{size}.rscope"
            if not path.exists():
                unfinished = path.with_stem("unfinished")
                make_study(unfinished, size)
                unfinished.rename(path)
            used = Path(temporary) / "used.rscope"
            used.write_bytes(path.read_bytes())
            yield size, used
            used.unlink()


def memory() -> float:
    """Return the memory in use, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def heading() -> None:
    """Print the head of the table."""
    print(f"{'':52s}{'median':>9s}{'95 %':>9s}{'own 95 %':>9s}{'limit':>7s}{'silence':>10s}", flush=True)


def print_line(
    name: str, middle: float, high: float, limit: float | None, silence: float, own: float = np.nan
) -> None:
    """Print a line of the table, in milliseconds."""
    most = f"{limit:7.0f}" if limit else " " * 7
    over = "  OVER" if limit and high > limit else ""
    worked = " " * 9 if np.isnan(own) else f"{own:9.1f}"
    if record := os.environ.get("RATERSCOPE_TIMES"):
        line = {"name": name, "median": float(middle), "high": float(high), "silence": float(silence)}
        with Path(record).open("a") as lines:
            lines.write(json.dumps(line) + "\n")
    print(f"{name:52s}{middle:9.1f}{high:9.1f}{worked}{most}{silence:10.1f}{over}", flush=True)


@contextmanager
def calls_of(owner: object, method: str) -> Iterator[list[float]]:
    """Record the times at which a method is called, within the context; the method still runs."""
    calls: list[float] = []
    plain = getattr(owner, method)

    def noting(*arguments: object) -> None:
        calls.append(time.perf_counter())
        plain(*arguments)

    setattr(owner, method, noting)
    try:
        yield calls
    finally:
        delattr(owner, method)


class Driven:
    """The window, driven by keys and slots, with a timer that measures gaps in its event loop."""

    def __init__(self, application: QApplication) -> None:
        self.application = application
        self.window = MainWindow(remembers=False)
        self.window.resize(1440, 900)
        self.window.show()
        self.window.activateWindow()
        self.longest = 0.0
        self._made = 0
        self._last = time.perf_counter()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(1)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.longest, self._last = max(self.longest, now - self._last), now

    def listen(self) -> None:
        """Begin to listen for the longest silence."""
        self._last, self.longest = time.perf_counter(), 0.0

    @property
    def work(self):
        """The workspace that is shown."""
        return self.window.workspace

    @property
    def decisions(self) -> int:
        """Number of decisions in the journal."""
        contents = self.window.document.contents
        return len(contents.decisions) if contents else 0

    @property
    def runs(self) -> int:
        """Number of runs in the study."""
        contents = self.window.document.contents
        return len(contents.runs) if contents else 0

    def wait(self, until: Callable[[], bool], patience: float = 120.0) -> None:
        """Process events until a condition holds."""
        deadline = time.perf_counter() + patience
        while not until():
            self.application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
            if time.perf_counter() > deadline:
                raise TimeoutError

    def settle(self, quiet: float = 0.05) -> None:
        """Process events until no work has been running for a while."""
        since = time.perf_counter()

        def settled() -> bool:
            nonlocal since
            if self.window.busy:
                since = time.perf_counter()
            return time.perf_counter() - since > quiet

        self.wait(settled)

    def rest(self, seconds: float) -> None:
        """Process events for a while."""
        end = time.perf_counter() + seconds
        self.wait(lambda: time.perf_counter() > end)

    def key(self, key: Qt.Key, widget: QWidget | None = None) -> None:
        """Press a key in the queue, or elsewhere."""
        widget = widget or self.work.queue.view
        if not widget.hasFocus():
            widget.setFocus()
        QTest.keyClick(widget, key)

    def deciding(self, act: Callable[[], object]) -> Callable[[], None]:
        """Return an act that is `decided` as soon as one more decision, or undoing of one, is on disk."""

        def call() -> None:
            self._made = self.decisions
            act()

        return call

    def decided(self) -> bool:
        """Return whether what was begun last as `deciding` is on disk."""
        return self.decisions > self._made

    def measure(
        self, name: str, limit: float | None, act: Callable[[], object],
        done: Callable[[], bool] = lambda: True, rounds: int = ROUNDS,
        after: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """Print percentiles of an interaction; see `time`. What is done after each round is not measured."""
        measured = []
        for _ in range(rounds):
            measured.append(self.time(act, done))
            after()
        times, own, silences = zip(*measured, strict=True)
        high = np.percentile(times, 95)
        print_line(name, np.percentile(times, 50), high, limit, max(silences), np.percentile(own, 95))

    def paint(self) -> None:
        """Paint what has changed; scenes of plots find out in the first round what they have to paint."""
        for _ in range(2):
            self.application.sendPostedEvents()

    def time(
        self, act: Callable[[], object], done: Callable[[], bool] = lambda: True,
        quiet: float = 0.05,
    ) -> tuple[float, float, float]:  # fmt: skip
        """Return milliseconds until an act is painted, of the window's thread, of the longest silence."""
        self.listen()
        start, worked = time.perf_counter(), time.thread_time()
        act()
        self.wait(done)
        self.paint()
        took, own = time.perf_counter() - start, time.thread_time() - worked
        self.settle(quiet)
        return 1000 * took, 1000 * own, 1000 * self.longest

    def scroll(self, name: str, view: QAbstractScrollArea, *, across: bool = False) -> None:
        """Print percentiles of scrolling a view from one end to the other."""
        bar = view.horizontalScrollBar() if across else view.verticalScrollBar()
        positions = cycle(np.linspace(0, bar.maximum(), 41).astype(int).tolist())
        self.measure(name, 16, lambda: bar.setValue(next(positions)))

    @contextmanager
    def once(self, name: str, limit: float | None = None) -> Iterator[None]:
        """Print how long something took, and the longest silence."""
        self.listen()
        start = time.perf_counter()
        yield
        took = 1000 * (time.perf_counter() - start)
        self.settle()
        print_line(name, took, took, limit, 1000 * self.longest)

    def begin_fusing(self) -> None:
        """Press F5 and wait until the fusion is at work."""
        self.key(Qt.Key.Key_F5)
        self.wait(lambda: self.work.fusing.job is not None)

    def fuse(self) -> None:
        """Press F5 and wait until the run is kept and shown."""
        runs = self.runs
        self.key(Qt.Key.Key_F5)
        self.wait(lambda: self.runs > runs, 1800.0)
        self.settle()

    def close(self) -> None:
        """Close study and the window."""
        self.window.document.close()
        self.settle()
        self.window.close()
        self.window.deleteLater()
        self.settle()


def measure_studies(
    sizes: Sequence[str],
    make_study: Callable[[Path, str], None],
    measure: Callable[[Driven, Path], None],
) -> None:
    """Print a table for a study of each size that is requested; see `_studies`."""
    application = dark_application()
    for size, path in _studies(sizes, make_study):
        print(f"{size}: {path.stat().st_size / 1e6:.0f} MB; milliseconds, {ROUNDS} rounds")
        heading()
        driven = Driven(application)
        driven.settle()
        print(f"    memory of the empty window {memory():.0f} MB")
        measure(driven, path)
        driven.close()


def measure_fusing(driven: Driven, times: int) -> None:
    """Fuse many times and print the memory in use."""
    before, seconds = memory(), []
    driven.listen()
    for step in range(times):
        start = time.perf_counter()
        driven.fuse()
        seconds.append(1000 * (time.perf_counter() - start))
        if step in (0, times // 2):
            print(f"    memory after fusion {step + 1}: {memory():.0f} MB")
    print_line(
        "fused again until all is shown", np.median(seconds), max(seconds), None, 1000 * driven.longest
    )
    print(f"    memory before {times} fusions {before:.0f} MB, after them {memory():.0f} MB", flush=True)


def measure_fusing_again(driven: Driven, times: int) -> None:
    """Fuse again after an annotator was excluded: the first partial result, and all of it."""
    work = driven.work
    drafts: list[float] = []
    note = lambda *_: drafts.append(time.perf_counter())  # noqa: E731
    work.fusing.partial.connect(note)
    first, full, silences = [], [], []
    for _ in range(times):
        runs = driven.runs
        drafts.clear()
        driven.listen()
        start = time.perf_counter()
        driven.key(Qt.Key.Key_F5)
        driven.wait(lambda: bool(drafts))
        driven.paint()
        first.append(1000 * (time.perf_counter() - start))
        driven.wait(lambda runs=runs: driven.runs > runs)
        driven.settle()
        full.append(1000 * (time.perf_counter() - start))
        silences.append(1000 * driven.longest)
    work.fusing.partial.disconnect(note)
    print_line(
        "fused again without it, first partial result", np.median(first), max(first), 300, max(silences)
    )
    print_line("the same until all is kept and shown", np.median(full), max(full), None, max(silences))


def measure_deciding_meanwhile(driven: Driven, decide: Callable[[], object]) -> None:
    """Decide while a fusion is at work, then cancel it."""
    driven.begin_fusing()
    times: list[float] = []
    driven.listen()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        driven.deciding(decide)()
        driven.wait(driven.decided)
        driven.paint()
        times.append(1000 * (time.perf_counter() - start))
        driven.rest(0.02)
    at_work = "" if driven.work.fusing.job is not None else " (it ended before)"
    print_line(f"decided while a fusion is at work{at_work}", np.median(times), np.percentile(times, 95), 50,
         1000 * driven.longest)  # fmt: skip
    driven.work.fusing.cancel()
    driven.settle()


def measure_cancelling(driven: Driven) -> None:
    """Cancel fusions at several moments."""
    work = driven.work
    messages, stopped, silences = [], [], []
    for moment in MOMENTS:
        driven.begin_fusing()
        job = work.fusing.job
        thread = driven.window.jobs._threads[job.key]
        driven.rest(moment)
        if job.over:
            driven.settle()
            continue
        driven.listen()
        start = time.perf_counter()
        work.fusing.cancel()
        driven.paint()
        messages.append(1000 * (time.perf_counter() - start))
        driven.wait(lambda thread=thread: not thread.is_alive())
        stopped.append(1000 * (time.perf_counter() - start))
        driven.settle()
        silences.append(1000 * driven.longest)
    if messages:
        print_line("Cancel acknowledged", np.median(messages), max(messages), 100, max(silences))
        print_line("Cancel, the thread at an end", np.median(stopped), max(stopped), 500, max(silences))


def _measure_opening(path: Path) -> None:
    driven = Driven(dark_application())
    driven.settle()
    heading()
    with driven.once("study opened, the first item shown"):
        driven.window.open_paths([path])
        driven.wait(lambda: driven.work is not None and driven.work.session.shown)
        driven.paint()
    with driven.once("the same until nothing is under way"):
        driven.settle(0.5)
    print(f"    memory {memory():.0f} MB")
    driven.close()


if __name__ == "__main__":
    _measure_opening(Path(sys.argv[1]))
