"""Where the iterations begin: the votes."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.labels.data import FloatArray, Labels

__all__ = ["standing"]


def standing(labels: Labels, prior: FloatArray) -> FloatArray:
    """Say how much of a vote each output is for each class, (L, J).

    An output counts for the class of which it is most often said according to the prior. Where several are
    equal in that, it counts for what it stands for if that is one of them; else for each of them in equal
    parts; for none where all classes are equal.

    Parameters
    ----------
    labels : Labels
    prior : (J, L) float64
        Pseudo-counts of a confusion matrix.
    """
    assert labels.meaning is not None
    rates = (prior / prior.sum(axis=1, keepdims=True)).T
    best = rates >= rates.max(axis=1, keepdims=True) * (1 - 1e-9)
    stands = labels.meaning[:, None] == np.arange(len(labels.classes))
    settled = (best & stands).any(axis=1, keepdims=True)
    tied = best & ~(best.all(axis=1, keepdims=True) & (len(labels.classes) > 1))
    chosen = np.where(settled, stands, tied)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))
