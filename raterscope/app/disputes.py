"""When an item is disputed: the same bounds for the window, reports and the comparison of runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, LabelFusion

__all__ = ["DISPUTED", "disputed_tasks"]

DISPUTED = (0.1, 0.9)
"""Posteriors between which a spot that the expert did not decide is disputed."""


def disputed_tasks(fusion: LabelFusion) -> NDArray[np.bool_]:
    """Tell of each task, (N,), whether no class reaches the upper bound and its truth was not known."""
    disputed = (fusion.posterior.max(axis=1, initial=0.0) < DISPUTED[1]) & (fusion.known == OPEN)
    return np.asarray(disputed)
