"""Clicks, results and runs for tests of the study."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.result import AnnotatorRates, Clustering, Detection, Fusion, Trace
from raterscope.app.formats.records import ClickTable
from raterscope.app.study import RunEntry, Study


def a_table(
    seed: int, images: tuple[str, ...], clicks: int = 60, annotators: int = 7, size: float = 100.0
) -> ClickTable:
    """Clicks at random, `clicks` on each image; the sizes are given."""
    rng = np.random.default_rng(seed)
    total = clicks * len(images)
    return ClickTable(
        path=Path("made.csv"),
        annotators=tuple(f"annotator {number}" for number in range(annotators)),
        images=images,
        annotator=rng.integers(0, annotators, total),
        image=np.repeat(np.arange(len(images)), clicks),
        x=rng.uniform(0, size, total),
        y=rng.uniform(0, size, total),
        time=rng.uniform(0, 60, total),
        extents=dict.fromkeys(range(len(images)), (size, size)),
    )


def a_fusion(clicks: Clicks, seed: int = 0, clusters: int = 5) -> Fusion:
    """A result of the right shapes, its numbers at random."""
    rng = np.random.default_rng(seed)
    merged, mark = clicks.merged()
    r, m, k = len(clicks.annotators), clusters, len(merged)

    def share(*shape: int) -> np.ndarray:
        return rng.uniform(size=shape)

    trace = Trace(share(9), np.arange(9), np.zeros(9, dtype=bool), 8, True)
    nearest = rng.integers(-1, m, k)
    clustering = Clustering(
        share(m, 2), np.tile(np.eye(2), (m, 1, 1)), share(m), share(k), nearest, share(r), float("nan"), trace
    )
    detection = Detection(
        share(m), share(m), share(m), share(m) > 0.5, 0.25, *(share(r) for _ in range(6)), share(4), False
    )
    rates = AnnotatorRates(clicks.counts(), share(r, 3), share(r, 3), np.full((r, 3), np.nan))
    return Fusion(clustering, share(r, m) > 0.5, detection, np.full(m, -1, dtype=np.int8), rates, mark)


def a_run(**changes: object) -> RunEntry:
    values: dict[str, object] = {
        "kind": "clicks",
        "algorithm": "oem + dem",
        "settings": {"scatter": 2.0, "seed": 5},
        "seed": 5,
        "versions": {"raterscope": "0.1"},
        "digest": "sha256:0",
        "started": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "seconds": 1.5,
        "log": {"iterations": 9},
    }
    return RunEntry(**{**values, **changes})  # type: ignore[arg-type]


def reopened(study: Study) -> Study:
    study.close()
    return Study.open(study.path)
