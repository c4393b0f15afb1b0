"""Response times of the clicks workspace, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.clicks_window_speed [IMAGES]

`window_driving` says what the columns mean.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
from PIL import Image
from PySide6.QtCore import QItemSelectionModel, Qt

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app import importing
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study

from .window_driving import ROUNDS, Driven, dark_application, heading

ANNOTATORS, SPOTS = 40, 50
TOGETHER = 20
"""Spots that are settled at once."""


def make_study(folder: Path, images: int) -> Path:
    """Write images with 50 spots each, clicked by 40 annotators, half of the spots by half of them."""
    rng = np.random.default_rng(7)
    lines = ["annotator,image,x,y"]
    for number in range(images):
        name = f"{number:03d}.png"
        Image.fromarray(rng.integers(150, 200, (960, 1280, 3), dtype=np.uint8)).save(
            folder / name, compress_level=1
        )
        positions = rng.uniform((40, 40), (1240, 920), (SPOTS, 2))
        chance = np.where(np.arange(SPOTS) < SPOTS // 2, 0.8, 0.2)
        for annotator in range(ANNOTATORS):
            for x, y in positions[rng.random(SPOTS) < chance] + rng.normal(0, 2, 2):
                dx, dy = rng.normal(0, 2, 2)
                lines.append(f"w{annotator},{name},{x + dx:.2f},{y + dy:.2f}")
    (folder / "clicks.csv").write_text("\n".join(lines))
    path = folder / "speed.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files([folder, folder / "clicks.csv"]), study)
        inputs = gather([entry.id for entry in study.images()], study)
        keep(fuse_inputs(inputs, FusionPlan()), study)
    return path


def measure(driven: Driven, images: int) -> None:
    """Measure all there is on the study that is open."""
    window, work = driven.window, driven.work
    review = work.reviewing

    def look(step: int) -> None:
        review.select(((review.current or 0) + step) % len(review.spots))

    def accept() -> None:
        if review.spot is None:
            review.select(0)
        review.decide("accept")

    review.select(0)
    driven.measure("another spot", 100, lambda: look(7))
    driven.measure("accept, on disk and on to the next", 50, driven.deciding(accept), driven.decided)
    driven.measure("undo", 50, driven.deciding(window.document.undo), driven.decided)
    driven.measure("redo", 50, driven.deciding(window.document.redo), driven.decided)
    solo = cycle(range(9))
    driven.measure("one annotator alone", 50, lambda: work.annotators.solo(next(solo)))
    driven.measure("pan", 16, lambda: work.canvas.pan(13, 7))
    driven.measure("zoom", 16, lambda: work.canvas.zoom(1.02))
    if images > 1:
        driven.measure("another image, with its pixels", 100, *turning(driven))
    settle_many(driven)


def settle_many(driven: Driven) -> None:
    """Measure the grid of spots, those of all images in it."""
    work, window = driven.work, driven.window
    grid = work.grid
    driven.measure("spots in a grid, and the image again", 100, lambda: driven.key(Qt.Key.Key_G))
    if not work.grid_shown:
        driven.key(Qt.Key.Key_G)
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findData("detected"))
    with driven.once("the spots of all images listed"):
        before = len(grid.numbers)
        grid.where_choice.setCurrentIndex(1)
        driven.wait(lambda: len(grid.numbers) > before)
    acts = cycle((lambda: work.batch_review.decide("reject"), window.document.undo))

    def act() -> None:
        first = grid.view.model().run(0, TOGETHER - 1)
        grid.view.selectionModel().select(first, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        next(acts)()

    driven.measure(f"{TOGETHER} spots settled at once, or undone", 50, driven.deciding(act), driven.decided)
    with driven.once("all of them settled"):
        grid.view.selectAll()
        driven.deciding(lambda: work.batch_review.decide("reject"))()
        driven.wait(driven.decided)
    driven.key(Qt.Key.Key_G)


def turning(driven: Driven) -> tuple[Callable[[], None], Callable[[], bool]]:
    """Return the act of going from the first image to the second or back, and whether that is shown."""
    work = driven.work
    shown = work.reviewing.session.scene.image.id

    def turn() -> None:
        nonlocal shown
        shown = work.reviewing.session.scene.image.id
        here = [item.key for item in work.queue.shown()].index(shown)
        work.review_queue.step(1 if here == 0 else -1)

    def turned() -> bool:
        scene = work.reviewing.session.scene
        return scene is not None and scene.image.id != shown and work.crops.has_image

    return turn, turned


def main() -> None:
    """Measure and print."""
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    application = dark_application()
    with tempfile.TemporaryDirectory() as folder:
        study = make_study(Path(folder), images)
        driven = Driven(application)
        driven.settle()
        print(f"{images} images of {SPOTS} spots, {ANNOTATORS} annotators; milliseconds, {ROUNDS} rounds")
        heading()
        with driven.once("study opened, scene shown"):
            driven.window.open_paths([study])
            driven.wait(lambda: driven.work is not None and driven.work.reviewing.session.shown)
        measure(driven, images)
        driven.close()


if __name__ == "__main__":
    main()
