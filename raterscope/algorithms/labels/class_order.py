"""Order of classes in which those that are often confused are neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import ClassArray, FloatArray

_OPTIMAL = 300
"""Largest number of classes whose tree is turned for the closest neighbours, which takes cubic time."""


def similar_order(rates: FloatArray, meaning: ClassArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order classes and answers by how often they are confused: average linkage of the mutual rates.

    Parameters
    ----------
    rates : (J, L) float
        Probability of each answer where a class is true.
    meaning : (L,) int
        Class that each answer stands for, negative for none.

    Returns
    -------
    classes : (J,) int64
    outputs : (L,) int64
        Answers in the order of their classes; those that stand for none last.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    many = len(rates)
    between = np.zeros((many, many))
    for output in np.flatnonzero(meaning >= 0).tolist():
        between[:, meaning[output]] += rates[:, output]
    between = between + between.T
    np.fill_diagonal(between, 0.0)
    order = np.arange(many)
    if many > 2:
        distance = 1.0 - between / max(float(between.max()), 1e-300)
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=many <= _OPTIMAL)
        order = leaves_list(tree).astype(np.int64)
    rank = np.empty(many + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(many), many
    return order, np.argsort(rank[np.where(meaning < 0, many, meaning)], kind="stable")
