"""The same masks give the same bits, from freshly compiled kernels and from those that were kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks import _robust_kernels as kernels


def digests() -> list[str]:
    """Sweep twice, by the kernel that calls all those whose sums have no fixed order; digest the results."""
    rng = np.random.default_rng(3)
    data = rng.normal(size=(5, 3_000)).astype(np.float32)
    weight, state = rng.random(3_000).astype(np.float32), rng.integers(-1, 2, 3_000).astype(np.int8)
    rater = np.stack([rng.normal(size=5), *rng.uniform(0.1, 2.0, (2, 5)), rng.uniform(1.0, 9.0, 5)])
    results = []
    for _ in range(2):
        t, s = np.zeros(3_000, np.float32), np.ones(3_000, np.float32)
        sums, totals = np.zeros((4, 5)), np.zeros(1)
        for _ in range(3):
            kernels.sweep(
                kernels.STUDENT, data, weight, state, rater, np.empty(0, np.float32), 0.0, t, s, 0, 3_000,
                sums, totals, np.empty((2, 0)), None,
            )  # fmt: skip
        results.append(
            hashlib.sha256(b"".join(array.tobytes() for array in (t, s, sums, totals))).hexdigest()
        )
    return results


PROGRAM = f"from {__name__} import digests; print(*digests(), sep='\\n')"


def test_kernels_from_the_cache_give_the_bits_of_fresh_ones(tmp_path):
    """`make kernels` compiled those of this process, in another order and in several processes."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[3], env=environment, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    fresh = ended.stdout.splitlines()
    assert any(tmp_path.rglob("*.nbc"))
    assert digests() == fresh
    assert len(set(fresh)) == 1
