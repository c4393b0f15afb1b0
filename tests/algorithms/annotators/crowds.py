"""Planted communities: annotators whose confusion matrices are known, seen through a few votes each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FIVE = np.array(
    [
        [[0.80, 0.15, 0.05], [0.20, 0.40, 0.40]],
        [[0.90, 0.03, 0.07], [0.12, 0.05, 0.83]],
        [[0.97, 0.02, 0.01], [0.90, 0.06, 0.04]],
        [[0.10, 0.60, 0.30], [0.05, 0.40, 0.55]],
        [[0.60, 0.35, 0.05], [0.25, 0.65, 0.10]],
    ]
)
"""The five of the dynamic combination paper's figure 3, about: two classes, three scores."""


def planted(
    prototypes: NDArray[np.float64], size: int, votes: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return expected confusion matrices under a flat prior, each annotator's community, and votes."""
    rng = np.random.default_rng(seed)
    count, classes, outputs = prototypes.shape
    community = np.repeat(np.arange(count), size)
    alpha = np.ones((len(community), classes, outputs))
    for at, objects in enumerate(community):
        for j, number in enumerate(rng.multinomial(votes, np.full(classes, 1 / classes))):
            alpha[at, j] += rng.multinomial(number, prototypes[objects, j])
    return alpha / alpha.sum(axis=2, keepdims=True), community, np.full(len(community), votes)


def diagonal(accuracy: float, classes: int) -> NDArray[np.float64]:
    """Return the confusion matrix of an annotator with this accuracy and uniform errors."""
    wrong = (1 - accuracy) / (classes - 1)
    return np.where(np.eye(classes, dtype=bool), accuracy, wrong)
