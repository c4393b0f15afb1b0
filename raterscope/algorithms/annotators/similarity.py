"""How alike annotators behave: the Hellinger similarity of their confusion matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.progress import Watch, silent

__all__ = [
    "SCALE",
    "Float32Array",
    "fitting_scale",
    "hellinger_similarity",
    "roots_of",
    "similarity_of_roots",
]

Float32Array = NDArray[np.float32]

SCALE = 30.0
"""By what the distance is multiplied. Of 25 planted crowds, with one to six communities and 30 to 100 votes
an annotator, 12 joined communities that differ in one class only, 40 began to split single ones by chance.
"""

_CHUNK = 100


def roots_of(mean: ArrayLike) -> Float32Array:
    """Give the square roots of confusion matrices, a row each: (M, J, L) to (M, J * L).

    Half the squared distance of two such rows is the sum over the classes of their Hellinger distances.

    Raises
    ------
    ValueError
        For anything but probabilities that add up to 1 over the outputs.
    """
    matrices = np.asarray(mean, dtype=np.float64)
    if matrices.ndim != 3 or not matrices.shape[1] or not matrices.shape[2]:
        raise ValueError(f"confusion matrices of {matrices.shape}; expected annotators, classes and outputs.")
    proper = bool((matrices >= 0).all()) and np.allclose(matrices.sum(axis=2), 1.0, atol=1e-6)
    if not proper:
        raise ValueError(
            "a confusion matrix has rows that are no probabilities; expected them to add up to 1."
        )
    return np.sqrt(matrices).reshape(len(matrices), matrices.shape[1] * matrices.shape[2]).astype(np.float32)


def fitting_scale(roots: Float32Array, classes: int, watch: Watch = silent) -> float:
    """Give the scale that fits a crowd: `SCALE`, or less where even those who are most alike lie apart.

    The distance adds up over the classes, and the fewer votes there are of each, the more of it is chance:
    with eight classes and 60 votes two annotators of one behaviour lie so far apart that at `SCALE` each
    would be a community. So the scale is at most the inverse of the distance of an annotator to the tenth
    nearest (in a crowd of less than a hundred, to the nearest tenth), by the median of at most a thousand of
    them.

    Parameters
    ----------
    roots : (M, J * L) float32
        As of `roots_of`; which thousand are taken goes by their order.
    classes : int
        J.
    watch : Watch
    """
    near = max(1, min(10, len(roots) // 10))
    if len(roots) <= near:
        return SCALE
    some = roots[:: -(-len(roots) // 1000)]
    far = []
    for first in range(0, len(some), _CHUNK):
        watch(first / len(some), "measuring how far annotators lie apart")
        distance = np.float32(classes) - some[first : first + _CHUNK] @ roots.T
        far.append(np.partition(distance, near, axis=1)[:, near])
    return min(SCALE, 1.0 / max(float(np.median(np.concatenate(far))), 1e-6))


def similarity_of_roots(
    left: Float32Array, right: Float32Array, classes: int, scale: float = SCALE
) -> Float32Array:
    """Give the similarity of every row of `left`, (A, J * L), to every one of `right`, (B, J * L); (A, B).

    `classes` is J; with a larger `scale` the unlike are less alike, see `hellinger_similarity`.
    """
    distance = np.maximum(np.float32(classes) - left @ right.T, np.float32(0))
    return np.asarray(np.exp(np.float32(-scale) * distance))


def hellinger_similarity(mean: ArrayLike, scale: float = SCALE) -> Float32Array:
    """Give exp(-scale * distance), 1 for two annotators whose expected confusion matrices are the same.

    The distance is that of equations 32 and 33 of the dynamic combination paper: over the classes, the sum of
    1 - sum_l sqrt(pi_jl pi'_jl). That is the *squared* Hellinger distance, so small that with a scale of
    1, as printed, nearly all similarities lie near 1 and two of five planted communities are
    found; hence `scale`.

    Parameters
    ----------
    mean : (M, J, L) array
        The expected probabilities of the outputs, rows adding up to 1.
    scale : float
        Above 0.

    Returns
    -------
    (M, M) float32
        Symmetric, with 1 on the diagonal.

    Raises
    ------
    ValueError
        For anything but probabilities.

    Examples
    --------
    >>> good, swaps = [[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]
    >>> hellinger_similarity([good, good, swaps], scale=1.0).round(2)
    array([[1.  , 1.  , 0.45],
           [1.  , 1.  , 0.45],
           [0.45, 0.45, 1.  ]], dtype=float32)
    """
    roots = roots_of(mean)
    similarity = similarity_of_roots(roots, roots, np.asarray(mean).shape[1], scale)
    similarity = (similarity + similarity.T) / np.float32(2)
    np.fill_diagonal(similarity, 1.0)
    return similarity
