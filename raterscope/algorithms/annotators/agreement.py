"""How far raters agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

References
----------
.. [cohen1960] J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
   Measurement 20 (1960) 37-46, doi:10.1177/001316446002000104.
.. [fleiss1971] J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin
   76 (1971) 378-382, doi:10.1037/h0031619.
.. [krippendorff2018] K. Krippendorff, "Content analysis: an introduction to its methodology", 4th edition,
   Sage (2018) (chapter 12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.patterns import patterns_of
from raterscope.algorithms.masks.staple import DOMAINS, MARGIN, counted_voxels
from raterscope.algorithms.progress import Watch, silent

__all__ = ["MISSING", "MaskAgreement", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "mask_agreement"]

FloatArray = NDArray[np.float64]

MISSING = -1
"""In a table of ratings: this rater did not rate this unit."""


@dataclass(frozen=True, eq=False)
class MaskAgreement:
    """How far raters agree voxel by voxel, background included.

    Attributes
    ----------
    fleiss, krippendorff : float
        Of all raters; NaN where all gave but one and the same label.
    cohen : (P, P) float64
        Of each pair; NaN where both gave but one and the same label.
    voxels : int
        How many counted: agreed background raises each figure.
    domain : str
        Which they were, in words.
    """

    fleiss: float
    krippendorff: float
    cohen: FloatArray
    voxels: int
    domain: str


def cohen_kappa(a: ArrayLike, b: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Give (observed - expected) / (1 - expected) agreement of two raters with their own rates of labels.

    Parameters
    ----------
    a, b : (N,) int
        Labels 0 and up; units that either left out (`MISSING`) do not count.
    weight : (N,) array, optional
        How often each unit is there.

    Returns
    -------
    float
        NaN where nothing is left, or both gave one and the same label throughout.

    Examples
    --------
    >>> round(float(cohen_kappa([0, 0, 1, 1, 1], [0, 1, 1, 1, 1])), 3)
    0.545
    """
    one, other = np.asarray(a), np.asarray(b)
    count = np.ones(len(one)) if weight is None else np.asarray(weight, dtype=np.float64)
    both = (one != MISSING) & (other != MISSING)
    one, other, count = one[both], other[both], count[both]
    total = count.sum()
    if total <= 0:
        return float("nan")
    classes = int(max(one.max(), other.max())) + 1
    observed = count[one == other].sum() / total
    rates = [np.bincount(each, count, minlength=classes) / total for each in (one, other)]
    return _beyond_chance(observed, float(rates[0] @ rates[1]))


def fleiss_kappa(ratings: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Give Fleiss' kappa: agreeing pairs of ratings, beyond what all raters' common rates of labels give.

    Parameters
    ----------
    ratings : (N, R) int
        Labels 0 and up; only units that every rater rated count.
    weight : (N,) array, optional
        How often each unit is there.

    Returns
    -------
    float
        NaN with less than two raters, no unit that all rated, or one label throughout.

    Examples
    --------
    >>> round(fleiss_kappa([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]]), 3)
    0.657
    """
    table = np.asarray(ratings)
    complete = (table != MISSING).all(axis=1)
    votes, count = _votes(table[complete], None if weight is None else np.asarray(weight)[complete])
    raters = table.shape[1]
    if raters < 2 or count.sum() <= 0:
        return float("nan")
    agreeing = (votes * (votes - 1)).sum(axis=1) / (raters * (raters - 1))
    rate = count @ votes / (count.sum() * raters)
    return _beyond_chance(float(count @ agreeing / count.sum()), float(rate @ rate))


def krippendorff_alpha(ratings: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Give Krippendorff's alpha for nominal labels, 1 - observed / expected disagreement.

    Parameters
    ----------
    ratings : (N, R) int
        Labels 0 and up, or `MISSING`; units with less than two ratings do not count.
    weight : (N,) array, optional
        How often each unit is there.

    Returns
    -------
    float
        NaN where nothing can be paired, or one label was given throughout.

    Examples
    --------
    >>> round(krippendorff_alpha([[0, 0, MISSING], [1, 1, 1], [0, 1, 0], [1, MISSING, 1]]), 3)
    0.625
    """
    votes, count = _votes(np.asarray(ratings), weight)
    rated = votes.sum(axis=1)
    votes, count, rated = (each[rated > 1] for each in (votes, count, rated))
    total = float(count @ rated)
    if total <= 0:
        return float("nan")
    disagreeing = (rated**2 - (votes**2).sum(axis=1)) / (rated - 1)
    observed = float(count @ disagreeing) / total
    whole = count @ votes
    expected = (total**2 - float(whole @ whole)) / (total * (total - 1))
    return 1.0 - observed / expected if expected > 0 else float("nan")


def mask_agreement(
    masks: Masks, domain: str = "masks", margin: float = MARGIN, watch: Watch = silent
) -> MaskAgreement:
    """Compare the raters' labels voxel by voxel; voxels that all labelled alike are one weighted unit.

    Parameters
    ----------
    masks : Masks
        Probabilities count as marked above one half.
    domain : {"masks", "frame"}
        Which voxels count: the box around all masks with a margin, or the whole image.
    margin : float
        mm.
    watch : Watch

    Examples
    --------
    >>> from raterscope.algorithms.masks.data import Masks
    >>> from raterscope.algorithms.simulation.raters import simulate_case
    >>> case = simulate_case(1, shape=(8, 64, 64), raters=3)
    >>> masks = Masks(case.masks, case.annotators, case.spacing)
    >>> round(mask_agreement(masks).fleiss, 2)
    0.83
    """
    patterns = patterns_of(masks, watch=watch)
    voxels = counted_voxels(masks, patterns, domain, margin)
    count = patterns.counted_over(voxels)
    labels = patterns.labels.astype(np.int64)
    raters = labels.shape[1]
    cohen = np.empty((raters, raters))
    for p in range(raters):
        for q in range(p + 1):
            cohen[p, q] = cohen[q, p] = cohen_kappa(labels[:, p], labels[:, q], count)
    return MaskAgreement(
        fleiss=fleiss_kappa(labels, count),
        krippendorff=krippendorff_alpha(labels, count),
        cohen=cohen,
        voxels=voxels,
        domain=DOMAINS[domain],
    )


def _votes(ratings: NDArray[np.integer], weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Count the ratings of each unit by label, (N, K), and how often each unit is there."""
    classes = int(ratings.max(initial=0)) + 1
    votes = np.stack([(ratings == k).sum(axis=1) for k in range(classes)], axis=1).astype(np.float64)
    count = np.ones(len(ratings)) if weight is None else np.asarray(weight, dtype=np.float64)
    return votes, count


def _beyond_chance(observed: float, expected: float) -> float:
    return (observed - expected) / (1.0 - expected) if expected < 1.0 else float("nan")
