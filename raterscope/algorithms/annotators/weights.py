"""Weights of down-weighted annotators, for all kinds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import RefusedError

FloatArray = NDArray[np.float64]


def checked_weights(
    values: FloatArray | None, annotators: Sequence[str], refuse: type[RefusedError]
) -> FloatArray | None:
    """Return the weights of annotators as (K,), or None where all count fully.

    Raises an error of the given class unless there is one weight above 0 and at most 1 for each annotator.
    """
    if values is None:
        return None
    weights = np.ascontiguousarray(values, dtype=np.float64)
    if weights.shape != (len(annotators),):
        raise refuse(f"{weights.size} weights for {len(annotators)} annotators.")
    bad = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(bad):
        raise refuse(
            f"the weight of {annotators[bad[0]]} is {weights[bad[0]]}; expected more than 0, at most 1."
        )
    return None if bool((weights == 1).all()) else weights


def weights_by_name(weights: Mapping[str, float], annotators: Sequence[str]) -> FloatArray | None:
    """Return the weight of each annotator, 1 for those without and for excluded ones; None without any."""
    if not weights:
        return None
    return np.array([weights.get(name, 1.0) or 1.0 for name in annotators], dtype=np.float64)


def reweighed(
    weights: FloatArray | None, annotators: Sequence[str], chosen: Collection[str], weight: float
) -> FloatArray:
    """Return the weights, (K,), with another one for the chosen annotators."""
    others = np.ones(len(annotators)) if weights is None else weights
    return np.where([name in chosen for name in annotators], weight, others)
