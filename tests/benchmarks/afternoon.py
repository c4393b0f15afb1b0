"""An afternoon of review in the window: smears looked through one after the other, spots settled by keys.

Usage: python -m tests.benchmarks.afternoon [IMAGES [DECISIONS]] [--keep FOLDER]

300 simulated smears with about 50 disputed spots each and 5,000 decisions, without words. The study is
imported and fused by the window; half-way, an annotator is left out and the program closed and opened again.
`--keep` keeps the smears in a folder for the next time. `window_driving` says what the columns mean.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
from PIL import Image
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from raterscope.algorithms.simulation.click_crowds import Annotator, simulate_clicks
from raterscope.algorithms.simulation.smears import Smear, render_smear
from raterscope.app.review import Decision
from raterscope.app.sample_files import write_rows
from raterscope.app.workspaces.clicks.spots import Spot
from raterscope.widgets.dialogs.import_preview import ImportDialog
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog

from .window_driving import (
    Driven,
    dark_application,
    heading,
    measure_cancelling,
    measure_fusing_again,
    memory,
    print_line,
)

IMAGES, DECISIONS = 300, 5_000
ANNOTATORS = 20
PARASITES, ARTEFACTS = 75, 75
"""So many that some 50 spots of a smear are disputed among those annotators."""

TURNS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""Each smear drawn is used in four ways, mirrored; all annotators click on each again."""

WHOLE = 5
"""One image in so many is settled whole, of the others a few spots."""

FEW = 8
SETTLED = "accept, reject, skip, and on to the next"
TABLE = "clicks.csv"

QUIET = 0.01
"""Seconds without anything under way between two interactions."""

WHEN_SHOWN = """
import os, time
from raterscope.app.window import startup

class Shown(startup.MainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        print(time.time(), flush=True)
        os._exit(0)

startup.MainWindow = Shown
startup.main()
"""


def make_files(folder: Path, images: int, first: int = 0) -> list[Path]:
    """Draw smears, numbered from `first`, and let a crowd click on them: images and a table of clicks."""
    rng = np.random.default_rng(3)
    crowd = tuple(
        Annotator(f"w-{number:02d}", float(rng.beta(8, 3)), float(rng.beta(7, 3)), 2.5, 1.0)
        for number in range(ANNOTATORS)
    )
    rows: list[tuple[str, ...]] = []
    files = []
    for number in range(first, first + images):
        turn = number % len(TURNS)
        if turn == 0 or number == first:
            drawn = render_smear(number, parasites=PARASITES, artefacts=ARTEFACTS)
        smear = _mirrored(drawn, *TURNS[turn])
        name = f"smear-{number:03d}.jpg"
        files.append(folder / name)
        Image.fromarray(smear.image).save(files[-1], quality=90)
        clicks = simulate_clicks(smear, crowd, number)
        rows += [
            (crowd[annotator].name, name, f"{x:.1f}", f"{y:.1f}")
            for annotator, x, y in zip(clicks.annotator, clicks.x, clicks.y, strict=True)
        ]
    files.append(folder / (f"clicks-{first}.csv" if first else TABLE))
    write_rows(files[-1], ("annotator", "image", "x", "y"), rows)
    return files


def _mirrored(smear: Smear, down: int, across: int) -> Smear:
    height, width = smear.image.shape[:2]

    def moved(positions):
        x = positions[:, 0] if across > 0 else width - positions[:, 0]
        y = positions[:, 1] if down > 0 else height - positions[:, 1]
        return np.column_stack([x, y])

    return replace(
        smear, image=np.ascontiguousarray(smear.image[::down, ::across]),
        parasites=moved(smear.parasites), artefacts=moved(smear.artefacts),
    )  # fmt: skip


def start_program(folder: Path, rounds: int = 5) -> None:
    """Print how long it takes from the command to the window's first picture; settings are of a folder."""
    took = []
    call, where = [sys.executable, "-c", WHEN_SHOWN], {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    for _ in range(rounds):
        start = time.time()
        done = subprocess.run(call, capture_output=True, text=True, check=True, env=where)
        took.append(1000 * (float(done.stdout) - start))
    print_line("window on screen after start", np.median(took), max(took), 1500, 0.0)


@dataclass
class Series:
    """Times of one interaction: until it was painted, own time, silence."""

    limit: float | None
    taken: list[tuple[float, float, float]] = field(default_factory=list)


class Afternoon:
    """An afternoon of interactions, and how long the window takes for each."""

    def __init__(self, driven: Driven) -> None:
        self.driven = driven
        self.series: dict[str, Series] = {}
        self.path = Path()
        self._rng = np.random.default_rng(5)
        self._seen: set[int] = set()
        self._reported = 0
        self._notches = cycle((120, 120, 120, -120, -120, -120))

    @property
    def work(self):
        """The workspace of clicks."""
        return self.driven.work

    @property
    def review(self):
        """The spots of the image on screen."""
        return self.work.reviewing

    @property
    def image(self) -> int | None:
        """The image on screen with its pixels."""
        if self.work is None or not self.work.session.shown or not self.work.crops.has_image:
            return None
        return self.work.session.scene.image.id

    def act(
        self, name: str, limit: float | None, act: Callable[[], object],
        done: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """Run an act and record its times."""
        self.note(name, limit, self.driven.time(act, done, QUIET))

    def note(self, name: str, limit: float | None, times: tuple[float, float, float]) -> None:
        """Record the times of an interaction."""
        self.series.setdefault(name, Series(limit)).taken.append(times)

    def table(self) -> None:
        """Print a line for each interaction, those with a limit first."""
        heading()
        for name, series in sorted(self.series.items(), key=lambda entry: entry[1].limit is None):
            took, own, silences = np.transpose(series.taken)
            print_line(f"{name} ({len(took):,})", np.median(took), np.percentile(took, 95), series.limit,
                 max(silences), np.percentile(own, 95))  # fmt: skip

    def disputed(self) -> list[Spot]:
        """List the disputed spots of the image on screen."""
        return [spot for spot in self.review.spots if spot.state == "disputed"]

    def nothing_left(self) -> bool:
        """Return whether no spot of the study is disputed any more."""
        return not self.work.review_queue.disputed

    # The study

    def bring_in(self, files: Sequence[Path]) -> None:
        """Import the files, which makes a study, and fuse all images."""
        driven = self.driven
        with driven.once(f"{len(files) - 1} images and the clicks on them imported"):
            driven.window.open_paths(files)
            driven.wait(lambda: driven.window.findChild(ImportDialog) is not None)
            driven.window.findChild(ImportDialog).accept()
            driven.window.activateWindow()  # else there is no window manager here to do it
            driven.wait(lambda: driven.work is not None)
        self.path = driven.window.document.contents.path
        with driven.once("all of them fused"):
            driven.fuse()
            driven.wait(lambda: self.image is not None)

    def size(self) -> float:
        """Return the study's size with what is not yet in its file itself, MB."""
        return sum(path.stat().st_size for path in self.path.parent.glob(f"{self.path.name}*")) / 1e6

    def open_again(self) -> None:
        """Close study and open it again: until its most disputed image is on screen."""
        driven = self.driven
        kept = driven.decisions
        driven.window.document.close()
        driven.settle(0.2)
        with driven.once(f"study with {kept:,} decisions opened, an image shown"):
            driven.window.open_paths([self.path])
            driven.wait(lambda: self.image is not None)
        assert driven.decisions == kept

    def add(self, files: Sequence[Path]) -> None:
        """Import further images and the clicks on them, fuse all, and look at the first in the queue."""
        before = len(self.work.queue.shown())
        self.driven.window.open_paths(files)
        self.driven.wait(lambda: len(self.work.queue.shown()) == before + len(files) - 1)
        self.driven.fuse()
        self.next_image()

    # One image after the other

    def walk(self, until: int) -> None:
        """Go through the queue until so many decisions are in the journal, or nothing is disputed."""
        while self.driven.decisions < until and not self.nothing_left():
            self._seen.add(self.image)
            looked = len(self._seen)
            self.look_around()
            self.settle_spots(None if looked % WHOLE == 0 else FEW, until)
            if looked % 20 == 10:
                self.many_at_once()
            if looked % 15 == 0:
                self.flag()
            self.next_image()

    def next_image(self) -> None:
        """Go to the next image of the queue that was not looked at yet; from the last one to the first."""
        work, here = self.work, self.image
        order = [item.key for item in work.queue.shown()]
        if self._seen | {here} >= set(order):
            self._seen.clear()
        there = next(image for image in order if image not in self._seen and image != here)
        if order.index(there) == order.index(here) + 1:
            go = partial(self.driven.key, Qt.Key.Key_PageDown, work.canvas)
        else:
            go = partial(work.queue.item_chosen.emit, there)
        self.act("another image, with its pixels", 100, go, lambda: self.image == there)

    def settle_spots(self, most: int | None, until: int) -> None:
        """Decide spots of the image on screen, so many or all; now and then, go back on one."""
        image, turn = self.image, 0
        while self.image == image and turn != most and self.driven.decisions < until:
            left = self.disputed()
            if not left:
                break
            here = self.review.spot
            if here is None or here.state != "disputed" or (turn % 5 == 0 and len(left) > 1):
                before, tab = self.review.current, partial(self.driven.key, Qt.Key.Key_Tab, self.work.canvas)
                self.act("next disputed (Tab)", 100, tab,
                         lambda before=before: self.review.current != before)  # fmt: skip
            self._decide(sum(not spot.skipped for spot in left) > 1)
            if turn % 20 == 10:
                self._go_back_on_it()
            turn += 1
            self._look_at_memory()

    def _decide(self, may_skip: bool) -> None:
        image, spot = self.image, self.review.spot
        keys = (Qt.Key.Key_A, Qt.Key.Key_R, Qt.Key.Key_S)
        key = keys[self._rng.choice(3, p=(0.55, 0.4, 0.05) if may_skip else (0.6, 0.4, 0.0))]

        def gone_on() -> bool:
            if not self.driven.decided() or self.review._go_on or self.image is None:
                return False
            here = self.review.spot
            elsewhere = here is not None and (spot is None or (here.x, here.y) != (spot.x, spot.y))
            return elsewhere or self.image != image or self.nothing_left()

        press = self.driven.deciding(partial(self.driven.key, key, self.work.canvas))
        times = self.driven.time(press, gone_on, QUIET)
        if self.image == image:
            self.note(SETTLED, 50, times)
        else:
            self.note("the last one settled, and on to the next image", 100, times)

    def _go_back_on_it(self) -> None:
        for name, keys in (("undo", QKeySequence.StandardKey.Undo), ("redo", QKeySequence.StandardKey.Redo)):
            self.act(name, 50, self.driven.deciding(partial(self._press, keys)), self.driven.decided)

    def _press(self, keys: QKeySequence.StandardKey) -> None:
        QTest.keySequence(self.driven.window.focusWidget(), QKeySequence(keys))

    def _look_at_memory(self) -> None:
        thousands = self.driven.decisions // 1_000
        if thousands > self._reported:
            self._reported = thousands
            took = [series[0] for series in self.series[SETTLED].taken[-500:]]
            print(f"    {1_000 * thousands:,} decisions: memory {memory():.0f} MB, of the last 500 "
                  f"{np.median(took):.1f} ms, 95 % {np.percentile(took, 95):.1f}, "
                  f"load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip

    # What is done beside

    def look_around(self) -> None:
        """Zoom, pan, look at what one annotator marked, hide one, choose one in the plot."""
        work, canvas = self.work, self.work.canvas
        middle = QPointF(canvas.width() // 2, canvas.height() // 2)
        for _ in range(6):
            self.act("zoom by the wheel, a frame", 16, partial(self._turn_wheel, middle))
        point = middle.toPoint()
        QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=point)
        for _ in range(6):
            point += QPoint(11, 7)
            self.act("pan by a drag, a frame", 16, partial(QTest.mouseMove, canvas, point))
        QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=point)
        digit = Qt.Key(int(self._rng.integers(Qt.Key.Key_1, Qt.Key.Key_9 + 1)))
        for _ in range(2):
            self.act("one annotator alone, or all again", 50, partial(self.driven.key, digit, canvas))
        annotator = int(self._rng.integers(ANNOTATORS))
        for hidden in ({annotator}, set()):
            self.act("an annotator hidden or shown", 50, partial(work.table.hidden_changed.emit, hidden))
        self.act(
            "an annotator chosen in a plot", 100, partial(work.reliability.annotator_chosen.emit, annotator)
        )

    def _turn_wheel(self, point: QPointF) -> None:
        event = QWheelEvent(
            point, point, QPoint(), QPoint(0, next(self._notches)), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(self.work.canvas, event)

    def many_at_once(self) -> None:
        """Settle some disputed spots in the grid by one decision, and undo it."""
        grid, key = self.work.grid, self.driven.key
        if len(self.disputed()) < 6:
            return
        self.act("grid of crops, all in sight shown", None, partial(key, Qt.Key.Key_G, self.work.canvas),
                 lambda: grid.pictures.kept.keys() >= set(grid._visible_items()) > set())  # fmt: skip
        key(Qt.Key.Key_Home, grid.view)
        for _ in range(5):
            QTest.keyClick(grid.view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
        self.driven.settle()
        accept = partial(key, Qt.Key.Key_A, grid.view)
        self.act("several accepted in the grid", 50, self.driven.deciding(accept), self.driven.decided)
        back = partial(self._press, QKeySequence.StandardKey.Undo)
        self.act("several taken back by one undo", 50, self.driven.deciding(back), self.driven.decided)
        self.act("image shown in place of the grid", None, partial(key, Qt.Key.Key_G, grid.view))

    def flag(self) -> None:
        """Flag the image for a common reason."""
        self.driven.key(Qt.Key.Key_F, self.work.canvas)
        for dialog in self.driven.window.findChildren(ReasonDialog):
            if dialog.isVisible():
                dialog.edit.setText("badly stained")
                self.act("image flagged", 50, self.driven.deciding(dialog.accept), self.driven.decided)
        self.driven.window.activateWindow()  # else there is no window manager here to do it
        self.driven.wait(self.driven.window.isActiveWindow)

    def leave_out(self) -> None:
        """Exclude an annotator from later fusions."""
        document = self.driven.window.document
        out = Decision(verb="exclude", annotators=document.contents.annotators[:1], reason="a test account")
        act = self.driven.deciding(partial(document.record, out))
        self.act("annotator left out", 50, act, self.driven.decided)


def main() -> None:
    """Measure and print."""
    words = sys.argv[1:]
    kept = Path(words[words.index("--keep") + 1]) if "--keep" in words else None
    numbers = [int(word) for word in words if word.isdigit()]
    images, decisions = (*numbers, *(IMAGES, DECISIONS)[len(numbers) :])
    with tempfile.TemporaryDirectory() as temporary:
        files = kept or Path(temporary) / "kept"
        if not (files / TABLE).exists():
            files.mkdir(parents=True, exist_ok=True)
            make_files(files, images)
        used = Path(temporary) / "used"
        shutil.copytree(files, used)
        print(f"{images} images, {ANNOTATORS} annotators, {decisions:,} decisions; milliseconds; "
              f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
        heading()
        start_program(Path(temporary))
        application = dark_application()
        driven = Driven(application)
        driven.settle()
        spend(driven, sorted(used.iterdir()), decisions)
        driven.close()


def spend(driven: Driven, files: Sequence[Path], decisions: int) -> None:
    """Spend the afternoon."""
    afternoon = Afternoon(driven)
    print(f"    memory of the empty window {memory():.0f} MB")
    afternoon.bring_in(files)
    queue, images = driven.work.review_queue, driven.window.document.contents.images
    print(f"    {queue.disputed / len(images):.0f} disputed spots an image; memory {memory():.0f} MB; "
          f"study {afternoon.size():.1f} MB", flush=True)  # fmt: skip
    afternoon.walk(decisions // 2)
    afternoon.leave_out()
    measure_fusing_again(driven, 2)
    measure_cancelling(driven)
    afternoon.open_again()
    afternoon.walk(decisions)
    afternoon.open_again()
    print(f"    memory {memory():.0f} MB, study {afternoon.size():.1f} MB, load {os.getloadavg()[0]:.1f}")
    afternoon.table()


if __name__ == "__main__":
    main()
