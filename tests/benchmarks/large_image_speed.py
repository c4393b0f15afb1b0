"""Preparation and response times of a large image, and memory, beside the limits.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.large_image_speed [side] [png | jpg | tif]

The image is a mosaic of real smears (iml_malaria), 20,000 x 20,000 by default.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PIL import Image
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from raterscope.app.formats.pyramids import PyramidCache, PyramidReader, open_pyramid
from raterscope.widgets import theme
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.viewport import ClickMarks

SIZE = 1144, 644
"""Size of the middle of a window of 1440 x 900 when the panel at the right is folded."""

FRAME = 16
CLICKS = 1_000_000
ROUNDS = 150
PAUSE = 0.016
SIDE = 20_000


class Memory:
    """The most that this process has taken since it was reset last, in MB."""

    def __init__(self) -> None:
        self._most = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def most(self) -> int:
        """Return the peak since the last call, and reset it."""
        most, self._most = max(self._most, _resident()), 0
        return most

    def _watch(self) -> None:
        while True:
            self._most = max(self._most, _resident())
            time.sleep(0.01)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


def mosaic(side: int, path: Path) -> None:
    """Lay smears side by side, turned at random, in a process of its own, whose memory is not ours."""
    if os.fork():
        os.wait()
        return
    import imagecodecs
    import tifffile

    folder = Path(os.environ["RATERSCOPE_DATA"]) / "clicks" / "iml_malaria" / "images"
    smears = [np.asarray(Image.open(file_path).convert("RGB")) for file_path in sorted(folder.iterdir())]
    rng = np.random.default_rng(0)
    pixels = np.empty((side, side, 3), dtype=np.uint8)
    for top in range(0, side, 960):
        for left in range(0, side, 1280):
            smear = smears[rng.integers(len(smears))][:: rng.choice([-1, 1]), :: rng.choice([-1, 1])]
            part = pixels[top : top + 960, left : left + 1280]
            part[...] = smear[: part.shape[0], : part.shape[1]]
    if path.suffix == ".tif":
        tifffile.imwrite(
            path, pixels, photometric="rgb", compression="zlib", rowsperstrip=64, compressionargs={"level": 1}
        )
    else:
        encode = imagecodecs.png_encode if path.suffix == ".png" else imagecodecs.jpeg8_encode
        path.write_bytes(encode(pixels, 1 if path.suffix == ".png" else 90))
    os._exit(0)


def report(application: QApplication, kind: str, act: Callable[[int], object], rounds: int = ROUNDS) -> None:
    """Repeat an act at the rate of a screen, and print the time of a frame."""
    took = []
    for step in range(rounds):
        start = time.perf_counter()
        act(step)
        application.processEvents()
        took.append(1e3 * (time.perf_counter() - start))
        quiet = time.perf_counter() + PAUSE - took[-1] / 1e3
        while time.perf_counter() < quiet:  # what comes from other threads in the meantime are frames too
            start = time.perf_counter()
            application.processEvents()
            if (between := 1e3 * (time.perf_counter() - start)) > 1:
                took.append(between)
            time.sleep(0.001)
    median, high, most = np.percentile(took, (50, 95, 100))
    print(f"  {kind:44} {median:6.1f} ms  95 %: {high:5.1f}  longest: {most:5.1f}  limit: {FRAME}")


def settle(application: QApplication, seconds: float = 1.0) -> None:
    """Wait for all requested tiles."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        application.processEvents()
        time.sleep(0.002)


def walk(application: QApplication, canvas: ImageCanvas, words: str) -> None:
    """Pan, drag, zoom and turn the wheel at several scales."""
    side = canvas.extent[2]

    def wheel(step: int) -> None:
        point = QPointF(canvas.width() * 0.6, canvas.height() * 0.4)
        turn = 120 if (step // 25) % 2 == 0 else -120
        event = QWheelEvent(
            point, point, QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(canvas, event)

    def drag(step: int) -> None:
        QTest.mouseMove(canvas, start + QPoint(-9 * (step % 60), 5 * (step % 60)))

    canvas.fit()
    settle(application)
    report(application, f"{words}: wheel from the whole", wheel)
    for scale in (0.06, 0.25, 0.5, 1.0, 4.0):
        canvas.fit()
        canvas.zoom(scale / canvas.viewport.scale)
        canvas.centre_on(side / 2, side / 2)
        settle(application)
        report(
            application, f"{words}: pan at {scale:g}", lambda step: canvas.pan(-31, 17 * (-1) ** (step // 20))
        )
        start = QPoint(canvas.width() // 2, canvas.height() // 2)
        QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=start)
        report(application, f"{words}: drag at {scale:g}", drag)
        QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=start)
    rng = np.random.default_rng(1)
    report(application, f"{words}: elsewhere at 1", lambda _: canvas.centre_on(*rng.uniform(0, side, 2)), 40)


def first_sight(application: QApplication, canvas: ImageCanvas, reader: PyramidReader) -> None:
    """Measure how soon a new part of the image is sharp."""
    took = []
    rng = np.random.default_rng(2)
    side = reader.levels[0][0]
    canvas.set_image(reader, (0, 0, side, side))
    settle(application)
    canvas.zoom(1.0 / canvas.viewport.scale)
    for _ in range(20):
        start = time.perf_counter()
        canvas.centre_on(*rng.uniform(0.1 * side, 0.9 * side, 2))
        store = canvas.layers.image._picture.store
        visible = canvas.viewport.visible
        keys = canvas.layers.image._picture._covering(0, visible, 0)
        while any(store.get(key) is None for key in keys):
            application.processEvents()
        application.processEvents()
        took.append(1e3 * (time.perf_counter() - start))
        settle(application, 0.1)
    median, high = np.percentile(took, (50, 95))
    print(f"  {'a fresh part is sharp after':44} {median:6.1f} ms  95 %: {high:5.1f}")


def main() -> None:
    """Measure and print."""
    side = int(sys.argv[1]) if len(sys.argv) > 1 else SIDE
    suffix = sys.argv[2] if len(sys.argv) > 2 else "jpg"
    application = QApplication([])
    theme.apply_theme(application, theme.DARK)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"mosaic.{suffix}"
        mosaic(side, path)
        memory = Memory()
        size = path.stat().st_size / 1e6
        print(f"{side} x {side}, {suffix}, {size:.0f} MB; memory before: {memory.most()} MB")
        cache = PyramidCache(Path(folder) / "cache")
        start = time.perf_counter()
        reader = open_pyramid(path, "sha256:benchmark", cache=cache)
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in cache.folder.iterdir()) / 1e6
        print(f"  pyramid made in {seconds:.1f} s, {size:.0f} MB on disk; memory at most {memory.most()} MB")
        start = time.perf_counter()
        reader = open_pyramid(path, "sha256:benchmark", cache=cache)
        print(f"  found again in {1e3 * (time.perf_counter() - start):.1f} ms")
        canvas = ImageCanvas()
        canvas.resize(*SIZE)
        canvas.show()
        canvas.set_image(reader, (0, 0, side, side))
        walk(application, canvas, "image")
        first_sight(application, canvas, reader)
        print(f"  memory at most {memory.most()} MB")
        rng = np.random.default_rng(3)
        x, y = rng.uniform(0, side, (2, CLICKS))
        marks = ClickMarks(x, y, rng.integers(0, 40, CLICKS))
        start = time.perf_counter()
        canvas.layers.set_clicks(marks)
        print(f"  {CLICKS:,} clicks taken in {1e3 * (time.perf_counter() - start):.0f} ms", end="")
        while not len(canvas.layers.crowd._clicks.clicks):
            application.processEvents()
        print(f", shown after {1e3 * (time.perf_counter() - start):.0f} ms")
        walk(application, canvas, "clicks")
        print(f"  memory at most {memory.most()} MB")
        canvas.close()


if __name__ == "__main__":
    main()
