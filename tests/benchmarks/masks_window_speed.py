"""How long the masks workspace takes to answer on a large case, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.masks_window_speed [SLICES ROWS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter

from raterscope.app.formats.volumes import find_volumes
from raterscope.app.main_window import MainWindow, apply_look
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_masks
from raterscope.widgets.volume.layers import Stroke

RATERS = 7
ROUNDS = 20


def make_study(folder: Path, slices: int, rows: int) -> Path:
    """Write a volume with an organ of 40 x 35 x 35 mm by seven raters, one of whom leaks."""
    import nibabel

    rng = np.random.default_rng(1)
    spacing = (1.0, 0.5, 0.5)
    shape = (slices, rows, rows)
    half = np.array((20.0, 17.5, 17.5)) * min(1.0, slices / 160)
    axes = [
        (np.arange(size) - size / 2) * step / length
        for size, step, length in zip(shape, spacing, half, strict=True)
    ]
    z, y, x = np.ix_(*axes)
    away = np.sqrt(z**2 + y**2 + x**2).astype(np.float32)
    coarse = rng.normal(0, 40, (slices, -(-rows // 4), -(-rows // 4)))
    noise = coarse.repeat(4, 1).repeat(4, 2)[:, :rows, :rows]
    volume = (noise + np.where(away < 1, 60, -60)).astype(np.int16)
    nibabel.save(
        nibabel.Nifti1Image(volume.transpose(2, 1, 0), np.diag([-0.5, -0.5, 1, 1])), folder / "ct.nii"
    )
    masks = []
    for rater in range(RATERS):
        field = gaussian_filter(rng.normal(size=tuple(size // 4 for size in shape)), 2)
        field = (0.05 * field / field.std()).repeat(4, 0).repeat(4, 1).repeat(4, 2)
        pad = [(0, size - have) for size, have in zip(shape, field.shape, strict=True)]
        mask = away < 1 + np.pad(field, pad) + 0.01 * rater
        if rater == 3:
            mask[slices // 2 : slices // 2 + 12, rows // 2 : rows // 2 + 60, rows // 2 : rows // 2 + 30] = (
                True
            )
        masks.append(mask)
    path = folder / "large.rscope"
    with Study.create(path) as study:
        (found,) = find_volumes(folder / "ct.nii")
        (entry,) = study.add_volumes([found])
        placed = [PlacedMask(entry.id, f"rater {r + 1}", "organ", (0, 0, 0), m) for r, m in enumerate(masks)]
        add_masks(study, placed, "masks")
    return path


class Window:
    """The window, driven, with the longest time for which it did not answer."""

    def __init__(self, application: QApplication, study: Path) -> None:
        self.application = application
        self.window = MainWindow(remembers=False)
        self.window.resize(1440, 900)
        self.window.show()
        self.window.open_paths([study])
        self.longest = 0.0

    def wait(self, until: Callable[[], bool], patience: float = 120.0) -> None:
        """Answer events until something is so."""
        deadline = time.perf_counter() + patience
        while not until():
            begun = time.perf_counter()
            self.application.processEvents()
            self.longest = max(self.longest, time.perf_counter() - begun)
            if time.perf_counter() > deadline:
                raise TimeoutError
            time.sleep(0.0005)

    def settle(self) -> None:
        """Answer events until no job is at work."""
        self.wait(lambda: not self.window.jobs.busy)
        for _ in range(20):
            self.application.processEvents()
            time.sleep(0.005)
        self.wait(lambda: not self.window.jobs.busy)

    @contextmanager
    def blocks(self, what: str) -> Iterator[None]:
        """Print how long something took, and the longest single block of the window meanwhile."""
        self.longest, begun = 0.0, time.perf_counter()
        yield
        took = time.perf_counter() - begun
        print(f"{what:44} {1000 * took:9.0f} ms, longest block {1000 * self.longest:6.0f} ms", flush=True)

    def measure(self, name: str, limit: float, act: Callable[[], object], done: Callable[[], bool]) -> None:
        """Print percentiles of an interaction, from the hand to what is painted."""
        times = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            act()
            self.wait(done)
            self.window.repaint()
            times.append(1000 * (time.perf_counter() - begun))
            self.settle()
        low, middle, high = np.percentile(times, [5, 50, 95])
        print(
            f"{name:44} {low:7.1f} {middle:7.1f} {high:7.1f}   {limit:5.0f}   {high / limit:5.2f}", flush=True
        )


def main() -> None:
    """Measure and print."""
    slices, rows = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (160, 500)
    application = QApplication([])
    apply_look("dark")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = make_study(folder, slices, rows)
        print(f"{slices} x {rows} x {rows}, {RATERS} raters; study {path.stat().st_size / 1e6:.1f} MB")
        driven = Window(application, path)
        window = driven.window
        with driven.blocks("open, scene and pixels"):
            driven.wait(lambda: window.workspace is not None and window.workspace.reviewing.scene is not None)
            driven.settle()
        workspace = window.workspace
        with driven.blocks("fuse (compiles at first) and keep"):
            workspace.fuse_again()
            driven.wait(lambda: bool(window.document.contents and window.document.contents.runs))
            driven.settle()
        with driven.blocks("fuse again"):
            workspace.fuse_again()
            driven.wait(lambda: bool(window.document.contents and len(window.document.contents.runs) > 1))
            driven.settle()
        print(window.status._text.text())
        print(f"{'':44} {'5 %':>7} {'median':>7} {'95 %':>7}   limit   95 % / limit")
        review = workspace.reviewing

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

        def accept() -> None:
            if review.region is None:
                review.select(0)
            review.accept()

        stroke = np.full((1, 20, 20), 1, dtype=np.int8)
        origin = (slices // 2, rows // 2, rows // 2)
        digit = iter(range(10_000))
        maps = iter(range(10_000))
        names = ("doubt", "weight", "deviation", "none")
        driven.measure("next disputed", 100, review.next_disputed, lambda: True)
        driven.measure("accept, on disk and on to the next", 50, after(accept), one_more)
        driven.measure("undo", 50, after(window.document.undo), one_more)
        driven.measure("redo", 50, after(window.document.redo), one_more)
        painted = Stroke(origin, stroke, "axial", origin[0])
        paint = after(lambda: workspace.volume.painted.emit(painted))
        driven.measure("a stroke of the brush, on disk", 50, paint, one_more)
        driven.measure("solo", 50, lambda: workspace.solo(next(digit) % RATERS), lambda: True)
        driven.measure(
            "another map", 50, lambda: workspace.maps.choose_map(names[next(maps) % 4]), lambda: True
        )
        driven.measure("rater chosen in the table", 100,
                       lambda: workspace.raters.choose(f"rater {next(digit) % RATERS + 1}"),
                       lambda: True)  # fmt: skip
        with driven.blocks("fuse, cancelled after 300 ms"):
            workspace.fuse_again()
            driven.wait(lambda: workspace.fusing.job is not None)
            begun = time.perf_counter()
            driven.wait(lambda: time.perf_counter() - begun > 0.3)
            job = workspace.fusing.job
            begun = time.perf_counter()
            workspace.cancel_fusing()
            driven.wait(lambda: workspace.fusing.job is None)
            state = (
                "done before" if job is None else f"stopped in {1000 * (time.perf_counter() - begun):.0f} ms"
            )
        print(state)
        window.close()


if __name__ == "__main__":
    main()
