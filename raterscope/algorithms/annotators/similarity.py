"""Similarity of annotators by confusion matrices (Hellinger), and hierarchical clustering of raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.progress import Watch, parts_of, run_parts, silent

Float32Array = NDArray[np.float32]

SCALE = 30.0
"""Default factor of the squared Hellinger distance.

In 25 planted crowds, with one to six communities and 30 to 100 votes for each annotator, a scale of 12 joined
communities that differ in only one class, and a scale of 40 began to split communities by chance.
"""

_CHUNK = 100


def roots_of(mean: ArrayLike) -> Float32Array:
    """Return the square roots of confusion matrices as rows: (M, J, L) to (M, J * L).

    Half the squared distance of two such rows is the sum over the classes of their Hellinger distances.
    Raises `ValueError` for matrices that are not probabilities adding up to 1 over the outputs.
    """
    matrices = np.asarray(mean, dtype=np.float64)
    if matrices.ndim != 3 or not matrices.shape[1] or not matrices.shape[2]:
        raise ValueError(f"confusion matrices of {matrices.shape}; expected annotators, classes and outputs.")
    proper = bool((matrices >= 0).all()) and np.allclose(matrices.sum(axis=2), 1.0, atol=1e-6)
    if not proper:
        raise ValueError(
            "a confusion matrix has rows that are not probabilities; expected rows that add up to 1."
        )
    return np.sqrt(matrices).reshape(len(matrices), matrices.shape[1] * matrices.shape[2]).astype(np.float32)


def fitting_scale(roots: Float32Array, classes: int, watch: Watch = silent) -> float:
    """Return the scale for a crowd: `SCALE`, or less if even the most similar annotators differ.

    The distance is a sum over the classes, and with few votes it is mostly due to chance: with eight classes
    and 60 votes, two annotators of one behaviour differ so much that with `SCALE` each would be a community.
    The scale is therefore at most the inverse of an annotator's distance to the tenth nearest annotator (in a
    crowd below a hundred, to the nearest tenth of the crowd); the median over at most a thousand annotators
    is used.

    `roots`: (M, J * L), as from `roots_of`; the thousand are evenly spaced in their order. `classes`: J.
    """
    near = max(1, min(10, len(roots) // 10))
    if len(roots) <= near:
        return SCALE
    sample = roots[:: -(-len(roots) // 1000)]

    def measure(begin: int, end: int) -> Float32Array:
        distance = np.float32(classes) - sample[begin:end] @ roots.T
        return np.partition(distance, near, axis=1)[:, near]

    check = partial(watch, 0.0, "measuring distances of annotators")
    far = run_parts(measure, parts_of(len(sample), _CHUNK), check)
    return min(SCALE, 1.0 / max(float(np.median(np.concatenate(far))), 1e-6))


def similarity_of_roots(
    left: Float32Array, right: Float32Array, classes: int, scale: float = SCALE
) -> Float32Array:
    """Return the similarity, (A, B), of every row of `left`, (A, J * L), to every row of `right`, (B, J * L).

    `classes` is J; a larger `scale` lowers the similarity of different rows, see `hellinger_similarity`.
    """
    distance = np.maximum(np.float32(classes) - left @ right.T, np.float32(0))
    return np.asarray(np.exp(np.float32(-scale) * distance))


def hellinger_similarity(mean: ArrayLike, scale: float = SCALE) -> Float32Array:
    """Return exp(-scale * distance), 1 for annotators with equal expected confusion matrices.

    The distance is that of equations 32 and 33 of the dynamic combination paper: the sum over the classes of
    1 - sum_l sqrt(pi_jl pi'_jl), the *squared* Hellinger distance. It is small: with a scale of 1, as
    published, nearly all similarities are near 1, and only two of five planted communities are found.

    `mean`: (M, J, L), the expected probabilities of the outputs, rows adding up to 1.
    `scale`: above 0.
    The result, (M, M), is symmetric, with 1 on the diagonal.
    Raises `ValueError` for matrices that are not probabilities.
    """
    roots = roots_of(mean)
    similarity = similarity_of_roots(roots, roots, np.asarray(mean).shape[1], scale)
    similarity = (similarity + similarity.T) / np.float32(2)
    np.fill_diagonal(similarity, 1.0)
    return similarity


@dataclass(frozen=True, eq=False)
class CaseAgreement:
    """Similarity of every two raters of one case."""

    annotators: tuple[str, ...]  # (R,): raters of this case. The same name is the same rater in every case.
    # (R, R): 1 for equal raters, 0 for raters without agreement. Either the probability that they follow the
    # same consensus (`same_consensus`), or their Dice score; NaN if undefined.
    similarity: NDArray[np.float64]

    def __post_init__(self) -> None:
        size = len(self.annotators)
        similarity = np.asarray(self.similarity, dtype=np.float64)
        if similarity.shape != (size, size) or len(set(self.annotators)) != size:
            raise ValueError(f"similarities of {similarity.shape} for {size} raters; expected a row each.")
        known = similarity[~np.isnan(similarity)]
        if known.size and not (known.min() >= -1e-9 and known.max() <= 1 + 1e-9):
            raise ValueError("a similarity is outside 0 to 1.")
        if not np.allclose(similarity, similarity.T, atol=1e-9, equal_nan=True):
            raise ValueError("the similarity matrix is not symmetric.")
        object.__setattr__(self, "similarity", similarity)


@dataclass(frozen=True, eq=False)
class RaterTree:
    """Hierarchical clustering of raters."""

    names: tuple[str, ...]  # (n,): in alphabetical order
    # (n, n): one minus the mean similarity over the common cases; NaN for a pair without any
    distance: NDArray[np.float64]
    common: NDArray[np.int64]  # (n, n): cases that both annotated
    # (n - 1, 4): linkage matrix as in SciPy: each row joins two clusters (a rater's own number, or n + i for
    # the cluster of row i) at a height, and has their number of raters. A height above 1 joins clusters
    # without a common case.
    linkage: NDArray[np.float64]
    # (n,): the leaves from left to right, for a dendrogram without crossing branches
    order: NDArray[np.int64]
    notices: tuple[str, ...] = ()

    def cut(self, height: float) -> tuple[tuple[str, ...], ...]:
        """Return the groups at a height, in the order of the leaves."""
        from scipy.cluster.hierarchy import fcluster

        group = fcluster(self.linkage, height, "distance") if len(self.linkage) else np.ones(1)
        clusters: dict[int, list[str]] = {}
        for leaf in self.order.tolist():
            clusters.setdefault(int(group[leaf]), []).append(self.names[leaf])
        return tuple(map(tuple, clusters.values()))


def same_consensus(responsibilities: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the similarity of the raters of a case: 1 if two follow the same consensus, else 0.

    A rater follows the consensus with the highest responsibility, as in the paper's section 4.3.

    `responsibilities`: (P,) for each consensus of the mixture; at least one consensus.
    """
    follows = np.argmax(np.stack(list(responsibilities)), axis=0)
    return np.asarray(follows[:, None] == follows, dtype=np.float64)


def cluster_raters(cases: Sequence[CaseAgreement]) -> RaterTree:
    """Cluster raters by their similarity over common cases.

    The distance of two raters is one minus their mean similarity: with `same_consensus` it is the paper's
    distance N - N_xy as a share of the cases. The paper's raters annotated every case; here only common cases
    count. Clusters are joined by complete linkage, at the largest distance between them. A pair without a
    common case has the distance 2, larger than any other, and is joined last.

    Raises `ValueError` without raters.
    """
    names = tuple(sorted({name for case in cases for name in case.annotators}))
    if not names:
        raise ValueError("no case has a rater; expected at least one.")
    number = {name: at for at, name in enumerate(names)}
    total, common = np.zeros((len(names),) * 2), np.zeros((len(names),) * 2, dtype=np.int64)
    for case in cases:
        at = np.ix_(*([number[name] for name in case.annotators],) * 2)
        known = ~np.isnan(case.similarity)
        total[at] += np.where(known, case.similarity, 0.0)
        common[at] += known
    distance = np.where(common > 0, 1.0 - total / np.maximum(common, 1), np.nan).clip(0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    linkage, order = _linked(distance)
    return RaterTree(names, distance, common, linkage, order, _notices(names, common))


_NEVER_MET = 2.0


def _linked(distance: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if len(distance) < 2:
        return np.empty((0, 4)), np.arange(len(distance))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    known = np.where(np.isnan(distance), _NEVER_MET, distance)
    linked = linkage(squareform((known + known.T) / 2, checks=False), "complete")
    return linked, leaves_list(linked).astype(np.int64)


def _notices(names: tuple[str, ...], common: NDArray[np.int64]) -> tuple[str, ...]:
    above = np.triu_indices(len(names), 1)
    never = [(names[a], names[b]) for a, b in zip(*above, strict=True) if common[a, b] == 0]
    if not never:
        return ()
    first, second = never[0]
    more_text = "" if len(never) == 1 else f" (and {len(never) - 1} more)"
    return (
        f"{first} and {second}{more_text} have no case in common: their distance is unknown, and they are "
        "joined last.",
    )
