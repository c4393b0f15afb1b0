"""How far every two annotators of clicks agree on which clusters are there.

References
----------
.. [cohen1960] J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
   Measurement 20 (1960) 37-46, doi:10.1177/001316446002000104.
.. [dice1945] L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26
   (1945) 297-302, doi:10.2307/1932409.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent

__all__ = ["ClickAgreement", "click_agreement"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClickAgreement:
    """What every two of R annotators make of the clusters that both could have marked.

    Attributes
    ----------
    names : tuple of R str
    clusters : (R, R) int64
        Clusters on the images that both looked at.
    images : (R, R) int64
        Those images.
    dice : (R, R) float64
        Positive agreement: twice the clusters that both marked over the sum of what each marked there; NaN
        where neither marked any.
    kappa : (R, R) float64
        Cohen's, marked or not: agreement beyond what their two rates of marking give by chance; NaN where
        both marked all, or both none, or they have no image in common.
    """

    names: tuple[str, ...]
    clusters: NDArray[np.int64]
    images: NDArray[np.int64]
    dice: FloatArray
    kappa: FloatArray

    def standing(self, measure: FloatArray) -> FloatArray:
        """Give each annotator's mean agreement with the others, weighted by the clusters in common, (R,).

        NaN for who has nothing in common with anybody.
        """
        known = np.isfinite(measure) & ~np.eye(len(self.names), dtype=bool)
        weight = np.where(known, self.clusters, 0).astype(np.float64)
        total = weight.sum(axis=1)
        mean = (np.where(known, measure, 0.0) * weight).sum(axis=1) / np.maximum(total, 1.0)
        return np.where(total > 0, mean, np.nan)


def click_agreement(
    marked: Sequence[BoolArray], annotators: Sequence[Sequence[str]], watch: Watch = silent
) -> ClickAgreement:
    """Compare every two annotators over the clusters of the images that both looked at.

    A cluster is where clicks met: a place that nobody clicked is none, so that what all leave alone does not
    count as agreement, and neither do clicks that belong to no cluster. Kappa is the lower for it.

    Parameters
    ----------
    marked : sequence of (r, M) bool
        For each image, who marked which cluster: `Fusion.marked`.
    annotators : sequence of sequences of r str
        For each image, who looked, in the order of the rows.
    watch : Watch

    Raises
    ------
    ValueError
        For more images of one than of the other.
    """
    if len(marked) != len(annotators):
        raise ValueError(f"{len(marked)} images have votes, {len(annotators)} have annotators")
    index: dict[str, int] = {}
    for here in annotators:
        for name in here:
            index.setdefault(name, len(index))
    people, many = len(index), len(marked)
    both = np.zeros((people, people))
    looked, found = np.zeros((people, many)), np.zeros((people, many))
    sizes = np.array([one.shape[1] for one in marked], dtype=np.float64)
    for image, (votes, here) in enumerate(zip(marked, annotators, strict=True)):
        watch(image / many, "comparing annotators")
        rows = np.array([index[name] for name in here], dtype=np.int64)
        own = votes.astype(np.float32)
        both[np.ix_(rows, rows)] += own @ own.T
        looked[rows, image] = 1.0
        found[rows, image] = votes.sum(axis=1)
    clusters = (looked * sizes) @ looked.T
    first = found @ looked.T  # what the row's annotator marked where the column's looked too
    total = first + first.T
    with np.errstate(divide="ignore", invalid="ignore"):
        dice = 2 * both / total
        observed = (clusters - total + 2 * both) / clusters
        one, other = first / clusters, first.T / clusters
        expected = one * other + (1 - one) * (1 - other)
        kappa = np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)
    return ClickAgreement(
        names=tuple(index),
        clusters=clusters.astype(np.int64),
        images=(looked @ looked.T).astype(np.int64),
        dice=dice,
        kappa=kappa,
    )
