"""The same masks give the same bits, from freshly compiled kernels and from those that were kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.simulation.mask_crowds import simulate_case


def digests() -> list[str]:
    """Fuse twice; give the digests of the results' arrays."""
    case = simulate_case(3, shape=(8, 64, 64), raters=5)
    masks = Masks(case.masks, case.annotators, case.spacing)
    results = []
    for _ in range(2):
        fusion = fuse(masks, MaskPlan.make("student"))
        digest = hashlib.sha256(fusion.traces[0].objective.tobytes())
        for array in vars(fusion).values():
            if isinstance(array, np.ndarray):
                digest.update(array.tobytes())
        results.append(digest.hexdigest())
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
