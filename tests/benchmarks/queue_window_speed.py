"""Times of opening a study of many images, and of showing a decision in its queue.

Usage: python -m tests.benchmarks.queue_window_speed [IMAGES] [--keep FOLDER]

10,000 small images without words. `--keep` keeps the study in a folder for the next time.
`window_driving` says what the columns mean.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle
from pathlib import Path

import numpy as np
from PIL import Image
from PySide6.QtCore import Qt

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app import importing
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study

from .window_driving import ROUNDS, Driven, dark_application, heading

ANNOTATORS, SPOTS = 8, 6
WIDTH, HEIGHT = 160, 120


def make_study(folder: Path, images: int) -> Path:
    """Write small images with a few spots each, import them with their clicks, and fuse all."""
    rng = np.random.default_rng(7)
    lines = ["annotator,image,x,y"]
    for number in range(images):
        name = f"{number:05d}.png"
        pixels = rng.integers(150, 200, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name, compress_level=1)
        centres = rng.uniform((10, 10), (WIDTH - 10, HEIGHT - 10), (SPOTS, 2))
        chance = np.where(np.arange(SPOTS) < SPOTS // 2, 0.8, 0.4)
        for annotator in range(ANNOTATORS):
            clicked = centres[rng.random(SPOTS) < chance]
            for x, y in clicked + rng.normal(0, 1.5, clicked.shape):
                lines.append(f"w{annotator},{name},{x:.2f},{y:.2f}")
    (folder / "clicks.csv").write_text("\n".join(lines))
    path, unfinished = folder / "queue.rscope", folder / "unfinished.rscope"
    with Study.create(unfinished) as study:
        importing.store(importing.read_files([folder, folder / "clicks.csv"]), study)
        inputs = gather([entry.id for entry in study.images()], study)
        keep(fuse_inputs(inputs, FusionPlan.make("hac", {"detector": "majority"})), study)
    return unfinished.rename(path)


def measure(driven: Driven, path: Path) -> None:
    """Open the study, decide, walk the queue, and filter it."""
    window = driven.window
    with driven.once("study opened, an image shown", 1000):
        window.open_paths([path])
        driven.wait(lambda: driven.work is not None and driven.work.reviewing.session.shown)
    with driven.once("the same until nothing is under way"):
        driven.settle(0.5)
    work = driven.work
    review = work.reviewing
    verbs = cycle(("accept", "reject"))

    def decide() -> None:
        if review.spot is None:
            review.select(0)
        review.decide(next(verbs))

    driven.measure("decision, on disk and on to the next", 40, driven.deciding(decide), driven.decided)
    driven.measure("undo", 40, driven.deciding(window.document.undo), driven.decided)
    driven.measure("redo", 40, driven.deciding(window.document.redo), driven.decided)

    def arrived() -> bool:
        return review.session.shown and review.session.scene.image.id == work.review_queue.current

    driven.measure("next image", 100, lambda: work.review_queue.step(1), arrived)
    driven.measure("next disputed (Tab)", 100, lambda: driven.key(Qt.Key.Key_Tab), arrived)
    words = cycle(("0001", "000", "01", ""))
    driven.measure("filter by name", 100, lambda: work.queue.filter.setText(next(words)))


def main() -> None:
    """Measure and print."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    images = numbers[0] if numbers else 10_000
    application = dark_application()
    with tempfile.TemporaryDirectory() as temporary:
        kept = Path(sys.argv[sys.argv.index("--keep") + 1]) if "--keep" in sys.argv else Path(temporary)
        path = kept / "queue.rscope"
        if not path.exists():
            make_study(kept, images)
        used = kept / "used.rscope"  # beside the images
        used.write_bytes(path.read_bytes())
        driven = Driven(application)
        driven.settle()
        print(f"{images:,} images of {SPOTS} spots, {ANNOTATORS} annotators; milliseconds, {ROUNDS} rounds")
        heading()
        measure(driven, used)
        driven.close()
        used.unlink()


if __name__ == "__main__":
    main()
