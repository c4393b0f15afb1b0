"""Speed of masks fused, beside SimpleITK's STAPLE in the same run, and in how much memory.

Usage: OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.masks_speed [full]

"full" adds the peer on the large volume, which takes it the better part of a minute.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter, zoom

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.robust import LaplaceSettings, laplace
from tests.benchmarks.measuring import Watcher

SMALL = ((48, 48, 48), 4, (1.0, 1.0, 1.0))
LARGE = ((160, 500, 500), 7, (0.75, 0.5, 0.5))

PEAK = """
from tests.benchmarks.measuring import most_memory
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
masks = crowd(*LARGE)
fuse(masks, MaskPlan.make({name!r}, {texts!r}))
print(most_memory() / 2**10)
"""


def crowd(
    shape: tuple[int, int, int], raters: int, spacing: tuple[float, float, float], radius: float = 0.0
) -> Masks:
    """Draw raters of one ellipsoid, as large as a prostate or nearly a small volume, with wavering outlines.

    radius : mm; where 0, that.
    """
    generator = np.random.default_rng(0)
    radius = radius or min(25.0, 0.35 * min(n * step for n, step in zip(shape, spacing, strict=True)))
    axes = [(np.arange(n) - (n - 1) / 2) * step for n, step in zip(shape, spacing, strict=True)]
    halves = [min(n // 2, int(1.6 * radius / step) + 2) for n, step in zip(shape, spacing, strict=True)]
    box = tuple(slice(n // 2 - half, n // 2 + half) for n, half in zip(shape, halves, strict=True))
    z, y, x = (axis[part] for axis, part in zip(axes, box, strict=True))
    away = radius - np.sqrt((z[:, None, None] * 1.2) ** 2 + y[:, None] ** 2 + (x * 0.9) ** 2)
    values = np.zeros((raters, *shape), dtype=bool)
    coarse = [max(4, size // 4) for size in away.shape]
    for p in range(raters):
        noise = gaussian_filter(generator.normal(size=coarse), 2)
        noise *= 1.2 / noise.std()
        wide = zoom(noise, [n / m for n, m in zip(away.shape, coarse, strict=True)], order=1)
        values[p][box] = away + wide + generator.normal(0, 0.4) > 0
    return Masks(values, tuple(f"rater {p + 1}" for p in range(raters)), spacing)


def timed(run: Callable[[], object], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def peer(masks: Masks) -> float:
    """Time SimpleITK's STAPLE on the same masks, images made beforehand."""
    import SimpleITK

    images = [SimpleITK.GetImageFromArray(image.astype(np.uint8)) for image in masks.values]
    return timed(lambda: SimpleITK.STAPLE(images, 1.0), 1 if masks.values.size > 1e7 else 3)


def iteration(masks: Masks) -> float:
    """Time one iteration of Laplace on the masks as they are, by the difference of 120 and 20 of them."""
    few, many = (
        timed(lambda n=n: laplace(masks, LaplaceSettings(tolerance=0.0, max_iterations=n)), 5)
        for n in (20, 120)
    )
    return (many - few) / 100


def peak(name: str, texts: dict[str, str]) -> float:
    """Measure the most memory (GB) of a process that holds the large masks and fuses them."""
    program = PEAK.format(name=name, texts=texts)
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)


def main() -> None:
    full = "full" in sys.argv[1:]
    small, large = crowd(*SMALL), crowd(*LARGE)
    start = time.perf_counter()
    fuse(small)
    print(f"first call, compilation or its cache: {time.perf_counter() - start:.2f} s")
    print(f"one iteration on 48 x 48 x 48 x 4: {iteration(small) * 1e3:.2f} ms, target 0.5 ms")
    plans = (
        ("laplace", {}),
        ("laplace", {"spatial_prior": "yes"}),
        ("gaussian", {}),
        ("student", {}),
        ("gdp", {}),
        ("staple", {}),
        ("majority", {}),
    )
    peers = {"small": peer(small), "large": peer(large) if full else float("nan")}
    print(f"SimpleITK's STAPLE: {peers['small'] * 1e3:.1f} ms and {peers['large']:.1f} s")
    print(
        f"{'masks to consensus':28s}{'48^3 x 4':>10s}{'peer':>7s}{'160x500x500x7':>15s}{'peer':>7s}"
        f"{'silence':>9s}{'memory':>9s}"
    )
    plain = 0.0
    for name, texts in plans:
        plan = MaskPlan.make(name, texts)
        fuse(small, plan)
        watch = Watcher()
        brief, complete = (
            timed(lambda plan=plan: fuse(small, plan)),
            timed(lambda plan=plan: fuse(large, plan)),
        )
        watch.last, watch.longest = time.perf_counter(), 0.0
        fuse(large, plan, watch)
        plain = plain or complete
        print(
            f"{name + (', spatial prior' if texts else ''):28s}{brief * 1e3:8.1f}ms"
            f"{peers['small'] / brief:6.1f}x{complete:14.2f}s{peers['large'] / complete:6.0f}x"
            f"{watch.longest * 1e3:7.0f}ms{peak(name, texts):7.2f}GB"
            + (f"  {complete / plain:.1f} times without" if texts else ""),
            flush=True,
        )
    print("targets: Laplace 2 s, 1 GB, 20x; STAPLE 20x on both; spatial prior within 5 times of without")
    for radius in (10.0, 20.0, 40.0):
        masks = crowd(*LARGE, radius)
        disputed = int((masks.values.any(axis=0) & ~masks.values.all(axis=0)).sum())
        seconds = timed(lambda masks=masks: fuse(masks))
        print(f"radius {radius:.0f} mm: {disputed:,} disputed voxels, {seconds:.2f} s")


if __name__ == "__main__":
    main()
