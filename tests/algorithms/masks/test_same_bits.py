"""The same masks give the same bits, from freshly compiled kernels and from those that were kept."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import hashlib
import numpy as np
from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.simulation.mask_crowds import simulate_case

case = simulate_case(3, shape=(8, 64, 64), raters=5)
masks = Masks(case.masks, case.annotators, case.spacing)
for name in ("laplace", "student", "gdp", "gaussian"):
    for _ in range(2):
        fusion = fuse(masks, MaskPlan.make(name))
        digest = hashlib.sha256(fusion.traces[0].objective.tobytes())
        for array in vars(fusion).values():
            if isinstance(array, np.ndarray):
                digest.update(array.tobytes())
        print(name, digest.hexdigest())
"""


def test_kernels_from_the_cache_give_the_bits_of_fresh_ones(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    fresh, kept = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert any(tmp_path.rglob("*.nbc"))
    assert kept == fresh
    assert fresh[::2] == fresh[1::2]
    assert len(set(fresh)) == 4
