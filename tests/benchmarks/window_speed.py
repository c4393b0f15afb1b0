"""How long the window takes to answer, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.window_speed [IMAGES]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app import importing
from raterscope.app.clicks.running import fuse_inputs, gather, keep
from raterscope.app.main_window import MainWindow, apply_look
from raterscope.app.study import Study

ANNOTATORS, SPOTS = 40, 50
ROUNDS = 40


def make_study(folder: Path, images: int) -> Path:
    """Write images with 50 spots each, clicked by 40 annotators, half of the spots by half of them."""
    rng = np.random.default_rng(7)
    lines = ["annotator,image,x,y"]
    for number in range(images):
        name = f"{number:03d}.png"
        Image.fromarray(rng.integers(150, 200, (960, 1280, 3), dtype=np.uint8)).save(
            folder / name, compress_level=1
        )
        places = rng.uniform((40, 40), (1240, 920), (SPOTS, 2))
        chance = np.where(np.arange(SPOTS) < SPOTS // 2, 0.8, 0.2)
        for who in range(ANNOTATORS):
            for x, y in places[rng.random(SPOTS) < chance] + rng.normal(0, 2, 2):
                dx, dy = rng.normal(0, 2, 2)
                lines.append(f"w{who},{name},{x + dx:.2f},{y + dy:.2f}")
    (folder / "clicks.csv").write_text("\n".join(lines))
    path = folder / "speed.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files([folder, folder / "clicks.csv"]), study)
        inputs = gather([entry.id for entry in study.images()], study)
        keep(fuse_inputs(inputs, FusionPlan()), study)
    return path


def main() -> None:
    """Measure and print."""
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    application = QApplication([])
    apply_look("dark")
    with tempfile.TemporaryDirectory() as folder:
        study = make_study(Path(folder), images)
        window = MainWindow(remembers=False)
        window.resize(1440, 900)
        window.show()
        window.activateWindow()
        window.open_paths([study])

        def wait(until: Callable[[], bool], patience: float = 30.0) -> None:
            deadline = time.perf_counter() + patience
            while not until():
                application.processEvents()
                if time.perf_counter() > deadline:
                    raise TimeoutError

        wait(lambda: window.workspace is not None and window.workspace.reviewing.scene is not None)
        wait(lambda: not window.jobs.busy)
        workspace = window.workspace
        assert workspace is not None
        reviewing = workspace.reviewing

        def measure(name: str, limit: float, act: Callable[[], object], done: Callable[[], bool]) -> None:
            times = []
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                act()
                wait(done)
                window.repaint()
                times.append(1000 * (time.perf_counter() - begun))
                wait(lambda: not window.jobs.busy)
            low, middle, high = np.percentile(times, [5, 50, 95])
            print(f"{name:34} {low:7.1f} {middle:7.1f} {high:7.1f}   {limit:5.0f}   {high / limit:5.2f}")

        def decisions() -> int:
            return len(window.document.contents.decisions) if window.document.contents else 0

        counted = 0

        def after(act: Callable[[], object]) -> Callable[[], object]:
            def call() -> None:
                nonlocal counted
                counted = decisions()
                act()

            return call

        def one_more() -> bool:
            return decisions() > counted

        def look(step: int) -> Callable[[], object]:
            return lambda: reviewing.select(((reviewing.current or 0) + step) % len(reviewing.spots))

        def decide(verb: str) -> Callable[[], object]:
            def call() -> None:
                if reviewing.spot is None:
                    reviewing.select(0)
                reviewing.decide(verb)  # type: ignore[arg-type]

            return after(call)

        print(f"{images} images of {SPOTS} spots, {ANNOTATORS} annotators; milliseconds, {ROUNDS} rounds")
        print(f"{'':34} {'5 %':>7} {'median':>7} {'95 %':>7}   limit   95 % / limit")
        reviewing.select(0)
        measure("another spot", 100, look(7), lambda: True)
        measure("accept, on disk and on to the next", 50, decide("accept"), one_more)
        measure("undo", 50, after(window.document.undo), one_more)
        measure("redo", 50, after(window.document.redo), one_more)
        solo = iter(range(10_000))
        measure("one annotator alone", 50, lambda: workspace.annotators.solo(next(solo) % 9), lambda: True)
        measure("pan", 16, lambda: workspace.canvas.pan(13, 7), lambda: True)
        measure("zoom", 16, lambda: workspace.canvas.zoom(1.02), lambda: True)
        if images > 1:
            shown = reviewing.scene.image.id if reviewing.scene else None

            def turn() -> None:
                nonlocal shown
                shown = reviewing.scene.image.id if reviewing.scene else None
                here = [item.key for item in workspace.queue.shown()].index(shown)
                workspace.queueing.step(1 if here == 0 else -1)

            def turned() -> bool:
                scene = reviewing.scene
                return scene is not None and scene.image.id != shown and workspace._pixels is not None

            measure("another image, with its pixels", 100, turn, turned)
        QTest.keyClick(workspace.canvas, Qt.Key.Key_Escape)
        window.close()


if __name__ == "__main__":
    main()
