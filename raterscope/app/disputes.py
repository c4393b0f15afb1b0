"""When an item is disputed: the same bounds for the window, reports and the comparison of runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion

DISPUTED = (0.1, 0.9)
"""Posteriors between which a spot that the expert did not decide is disputed."""

MATTERS = 0.25
"""Probability that an answer is wrong from which on a decision on it matters.

A decision also teaches of the other answers. To rank by that too, by the expected value of sample
information, set no more of them right on any crowd that was measured.
"""


def disputed_tasks(fusion: LabelFusion) -> NDArray[np.bool_]:
    """Tell of each task, (N,), whether no class reaches the upper bound and its truth was not known."""
    disputed = (fusion.posterior.max(axis=1, initial=0.0) < DISPUTED[1]) & (fusion.known == OPEN)
    return np.asarray(disputed)


def matters_in_words(wrong: FloatArray, noun: str) -> str:
    """Say on how many of some items a decision matters.

    Parameters
    ----------
    wrong : (n,) float64
        Probability that the answer to each is wrong.
    noun : str
        What one is called: "disputed spot".
    """
    matter = int((wrong >= MATTERS).sum())
    several = "" if len(wrong) == 1 else "s"
    return (
        f"A decision matters on {matter:,} of {len(wrong):,} {noun}{several}: the answer is wrong with a "
        f"probability of {MATTERS:g} or more."
    )
