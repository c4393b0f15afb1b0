"""Response times of the masks workspace on a large case, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.masks_window_speed [SLICES ROWS]

`window_driving` says what the columns mean.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count, cycle
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from scipy.ndimage import gaussian_filter

from raterscope.app.formats.volumes import find_volumes
from raterscope.app.importing import import_files
from raterscope.app.kinds.masks.sample import make_sample
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_masks
from raterscope.widgets.volume.scene import Stroke

from .window_driving import ROUNDS, Driven, dark_application, heading, measure_cancelling

RATERS = 7
CASES = 6


def make_study(folder: Path, slices: int, rows: int) -> Path:
    """Write a volume with an organ of 40 x 35 x 35 mm by seven raters, one of which leaks."""
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
        (stream_entry,) = find_volumes(folder / "ct.nii")
        (entry,) = study.add_images([stream_entry])
        placed = [PlacedMask(entry.id, f"rater {r + 1}", "organ", (0, 0, 0), m) for r, m in enumerate(masks)]
        add_masks(study, placed, "masks")
    return path


def _shows(driven: Driven, path: Path) -> bool:
    contents = driven.window.document.contents
    return contents is not None and contents.path == path and driven.work.session.shown


def measure(driven: Driven, slices: int, rows: int) -> None:
    """Measure all there is on the study that is open."""
    window, work = driven.window, driven.work
    review = work.reviewing
    with driven.once("fused (compiled at first) and kept"):
        driven.fuse()
    with driven.once("fused again"):
        driven.fuse()
    print(window.status.text.text())

    def accept() -> None:
        if review.region is None:
            review.select(0)
        review.accept()

    def afterwards(act: Callable[[], object]) -> Callable[[], None]:
        """Return an act that is waited for, to be back where the next round begins."""

        def call() -> None:
            driven.deciding(act)()
            driven.wait(driven.decided)
            driven.settle()

        return call

    undo, redo = window.document.undo, window.document.redo
    driven.measure("next disputed", 100, review.next_disputed)
    driven.measure("accept, on disk and on to the next", 50, driven.deciding(accept), driven.decided,
                   after=afterwards(undo))  # fmt: skip
    afterwards(accept)()
    driven.measure("undo", 50, driven.deciding(undo), driven.decided, after=afterwards(redo))
    afterwards(undo)()
    driven.measure("redo", 50, driven.deciding(redo), driven.decided, after=afterwards(undo))
    origin = (slices // 2, rows // 2, rows // 2)
    stroke = Stroke(origin, np.full((1, 20, 20), 1, dtype=np.int8), "axial", origin[0])
    driven.measure("a stroke of the brush, on disk", 50,
                   driven.deciding(lambda: work.volume.painted.emit(stroke)), driven.decided)  # fmt: skip
    raters = count()
    driven.measure("solo", 50, lambda: work.slice_view.solo(next(raters) % RATERS))
    maps = cycle(("doubt", "weight", "uncertainty", "none"))
    driven.measure("another map", 50, lambda: work.maps.map.choose(next(maps)))
    driven.measure("rater selected in the table", 100,
                   lambda: work.raters.choose(f"rater {next(raters) % RATERS + 1}"))  # fmt: skip
    measure_cancelling(driven)


def measure_cases(driven: Driven) -> None:
    """Measure going from case to case and from region to region in a study of several cases."""
    work = driven.work
    review = work.reviewing
    driven.fuse()

    def arrived() -> bool:
        return review.session.shown and review.session.scene.image.id == work.review_queue.current

    steps = cycle((1,) * (CASES - 1) + (-1,) * (CASES - 1))
    driven.measure("next case, down or up", 100, lambda: work.review_queue.step(next(steps)), arrived)

    def next_region() -> None:
        driven.key(Qt.Key.Key_Tab, work.volume)

    driven.measure("Tab through structures and cases", 100, next_region, arrived)


def main() -> None:
    """Measure and print."""
    slices, rows = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (160, 500)
    application = dark_application()
    with tempfile.TemporaryDirectory() as name:
        path = make_study(Path(name), slices, rows)
        driven = Driven(application)
        driven.settle()
        print(f"{slices} x {rows} x {rows}, {RATERS} raters; study {path.stat().st_size / 1e6:.1f} MB")
        print(f"milliseconds, {ROUNDS} rounds")
        heading()
        with driven.once("study opened, scene and pixels"):
            driven.window.open_paths([path])
            driven.wait(partial(_shows, driven, path))
            driven.settle()
        measure(driven, slices, rows)
        path = make_sample(Path(name) / "cases", import_files, cases=CASES)
        with driven.once(f"study of {CASES} cases opened"):
            driven.window.open_paths([path])
            driven.wait(partial(_shows, driven, path))
            driven.settle()
        measure_cases(driven)
        driven.close()


if __name__ == "__main__":
    main()
