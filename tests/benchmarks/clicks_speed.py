"""Speed of OEM, beside scikit-learn's Gaussian mixture swept over the number of components.

Usage: OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.clicks_speed [full]

"full" adds a million clicks, and waits for the peer where it takes minutes.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from tests.benchmarks.measuring import Watcher, most_memory

CASES = (
    ("1,000 clicks", 1_000, 40, 600.0, 30, 0.05),
    ("5,000 clicks", 5_000, 100, 1_000.0, 60, 0.25),
    ("50,000 clicks, M0 = 120", 50_000, 60, 2_000.0, 1_000, 2.0),
    ("50,000 clicks, 1,000 objects", 50_000, 1_000, 4_000.0, 60, 2.0),
)
MILLION = ("1,000,000 clicks, 5,000 objects", 1_000_000, 5_000, 20_000.0, 250, 60.0)


def marked_once(clicks: int, objects: int, side: float, annotators: int, seed: int = 0) -> Clicks:
    """Draw about so many clicks: each object is marked once or not, and a tenth of the clicks are stray."""
    generator = np.random.default_rng(seed)
    positions = generator.uniform(0, side, (objects, 2))
    share = min(0.95, 0.9 * clicks / (objects * annotators))
    annotator, group = np.nonzero(generator.random((annotators, objects)) < share)
    stray = clicks // 10
    points = np.concatenate(
        [positions[group] + generator.normal(0, 3, (len(group), 2)), generator.uniform(0, side, (stray, 2))]
    )
    annotator = np.concatenate([annotator, generator.integers(0, annotators, stray)])
    names = tuple(f"annotator {number:05d}" for number in range(annotators))
    return Clicks(points[:, 0], points[:, 1], annotator, names, (0.0, 0.0, side, side))


def swept(clicks: Clicks, objects: int) -> float:
    """Time the mixture for twelve numbers of components up to twice the objects, the best by BIC."""
    start = time.perf_counter()
    for number in np.unique(np.linspace(1, 2 * objects, 12).astype(int)):
        GaussianMixture(number, covariance_type="full", random_state=0).fit(clicks.points).bic(clicks.points)
    return time.perf_counter() - start


def main() -> None:
    full = "full" in sys.argv[1:]
    start = time.perf_counter()
    oem(marked_once(500, 20, 500.0, 20))
    print(f"first call, compilation or its cache: {time.perf_counter() - start:.2f} s")
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        f"{'case':34s}{'OEM':>9s}{'target':>9s}{'silence':>9s}{'found':>7s}{'HDBSCAN':>10s}"
        f"{'GMM sweep':>11s}{'ratio':>8s}"
    )
    for name, size, objects, side, annotators, target in (*CASES, *((MILLION,) if full else ())):
        clicks = marked_once(size, objects, side, annotators)
        settings = OEMSettings(initial_clusters=120 if "M0" in name else None)
        seconds, watch = float("inf"), Watcher()
        for _ in range(1 if size > 100_000 else 3):
            watch = Watcher()
            start = time.perf_counter()
            result = oem(clicks, settings, watch)
            seconds = min(seconds, time.perf_counter() - start)
        line = f"{name:34s}{seconds:8.3f}s{target:8.2f}s{watch.longest * 1e3:7.0f}ms{len(result):7d}"
        if size <= 50_000:
            start = time.perf_counter()
            HDBSCAN(min_cluster_size=5, min_samples=3, copy=True).fit(clicks.points)
            line += f"{time.perf_counter() - start:9.2f}s"
        if size <= 5_000 or (full and size * objects <= 5_000_000):
            peer = swept(clicks, objects)
            line += f"{peer:10.2f}s{peer / seconds:7.0f}x"
        print(line, flush=True)
    print(f"most memory: {most_memory() / 2**10:.2f} GB")


if __name__ == "__main__":
    main()
