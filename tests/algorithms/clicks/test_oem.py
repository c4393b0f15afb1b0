"""OEM on crowds whose truth is known."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.clicks.oem import oem
from raterscope.algorithms.simulation.mixtures import separated_crowd


def test_finds_the_components_of_a_separated_crowd():
    crowd = separated_crowd(20, seed=1)
    found = oem(crowd.clicks)
    distance = np.linalg.norm(found.mean[:, None] - crowd.mean[None], axis=2)
    assert len(found) == 15
    assert (distance.min(axis=0) < 15).all()
    assert abs(found.weight.sum() - 1) < 1e-12
