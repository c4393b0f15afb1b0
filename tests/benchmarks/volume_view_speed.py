"""Response times of the views of a volume while seven outlines show, beside the limits set for each.

Usage: python -m tests.benchmarks.volume_view_speed
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets import theme
from raterscope.widgets.volume.scene import HeatMap, Outline
from raterscope.widgets.volume.volume_view import VolumeView

SIZE = 1144, 644
"""Size of the middle of a window of 1440 x 900 when the panel at the right is folded."""

ROUNDS = 60
PAUSE = 0.012
RATERS = 7


def make(shape: tuple[int, int, int]) -> tuple[np.ndarray, list[Outline], np.ndarray]:
    """Make a volume, the masks of seven raters in its middle half, and their mean."""
    rng = np.random.default_rng(3)
    coarse = rng.normal(size=tuple(-(-size // 4) for size in shape)).astype(np.float32)
    smooth = (400 * gaussian_filter(coarse, 1)).astype(np.int16)
    volume = smooth.repeat(4, 0).repeat(4, 1).repeat(4, 2)[tuple(slice(size) for size in shape)]
    half = tuple(size // 2 for size in shape)
    positions = np.meshgrid(*(np.linspace(-1.1, 1.1, size, dtype=np.float32) for size in half), indexing="ij")
    away = np.sqrt(sum(position**2 for position in positions))
    origin = tuple(size // 4 for size in shape)
    masks = []
    for _ in range(RATERS):
        rough = gaussian_filter(rng.normal(size=half).astype(np.float32), 6)
        masks.append(away + 0.05 * rough / rough.std() < 1)
    outlines = [
        Outline(f"r{rater}", f"rater {rater + 1}", theme.annotator_style(rater)[0], mask, origin)
        for rater, mask in enumerate(masks)
    ]
    mean = np.mean(masks, axis=0, dtype=np.float32)
    return volume, [*outlines, Outline("consensus", "consensus", "#ffffff", mean, origin, 2.2)], mean


def measure(name: str, shape: tuple[int, int, int], spacing: tuple[float, float, float]) -> None:
    """Measure one volume and print."""
    application = QApplication.instance() or QApplication([])
    volume, outlines, mean = make(shape)
    view = VolumeView()
    view.resize(*SIZE)
    view.show()
    view.set_volume(volume, Grid.plain(shape, spacing, calibrated=True), modality="CT")
    view.set_outlines(outlines)
    view.set_dispute(np.arange(shape[0], dtype=float))
    axial, middle = view.view("axial"), view.crosshair
    application.processEvents()

    def report(kind: str, limit: int, act: Callable[[int], object]) -> None:
        took = []
        for step in range(ROUNDS):
            start = time.perf_counter()
            act(step)
            application.processEvents()
            took.append(1e3 * (time.perf_counter() - start))
            quiet = time.perf_counter() + PAUSE
            while time.perf_counter() < quiet:
                application.processEvents()
        median, high, most = np.percentile(took, (50, 95, 100))
        print(
            f"{name:22} {kind:28} {median:6.1f} ms  95 %: {high:5.1f}  longest: {most:5.1f}  limit: {limit}"
        )

    def around(step: int) -> tuple[int, int, int]:
        across = int(shape[2] * (0.5 + 0.2 * np.cos(step / 7)))
        return middle[0] + step % 5 - 2, int(shape[1] * (0.5 + 0.2 * np.sin(step / 9))), across

    report("slice wheel", 16, lambda step: axial.step(1 if (step // 9) % 2 else -1))
    report("cross-hair in three views", 33, lambda step: view.go_to(around(step)))
    report("window drag", 16, lambda step: view.windows.set(40 + step, 400 + 3 * step))
    report("zoom", 16, lambda step: axial.zoom(1.03 if step < ROUNDS // 2 else 1 / 1.03))
    report("solo", 50, lambda step: view.set_solo(f"r{step % RATERS}"))
    view.set_solo(None)
    report("contour, fill", 50, lambda step: view.set_style("fill" if step % 2 else "contour"))
    doubt = HeatMap(1 - np.abs(2 * mean - 1), outlines[0].origin, 0.0, 1.0, "doubt", "doubt")
    report("doubt on and off", 50, lambda step: view.set_heat_map(doubt if step % 2 else None))
    view.set_tool("brush")
    start = QPoint(axial.width() // 2, axial.height() // 2)
    QTest.mousePress(axial, Qt.MouseButton.LeftButton, pos=start)
    report("brush drag", 16, lambda step: QTest.mouseMove(axial, start + QPoint(2 * step, step)))
    QTest.mouseRelease(axial, Qt.MouseButton.LeftButton, pos=start)
    view.close()


def main() -> None:
    """Measure a thin and a large volume."""
    application = QApplication([])
    theme.apply_theme(application, theme.DARK)
    measure("28 x 512 x 512", (28, 512, 512), (5.0, 0.5, 0.5))
    measure("160 x 500 x 500", (160, 500, 500), (1.0, 0.5, 0.5))


if __name__ == "__main__":
    main()
