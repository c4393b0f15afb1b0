"""Which decisions on an image change when it is fused without some of its clicks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import IntArray
from raterscope.algorithms.clicks.results import Fusion

__all__ = ["NO_CLUSTER", "ChangedDecisions", "changed_decisions", "same_clusters"]

NO_CLUSTER = -1


@dataclass(frozen=True, eq=False)
class ChangedDecisions:
    """Places that are held for a structure in one of two fusions of an image only, the surest changes first.

    Attributes
    ----------
    before, after : (K,) int64
        The cluster there in the fusion with all clicks and in that with fewer; `NO_CLUSTER` where it has
        none. One of the two is detected and the other is not.
    """

    before: IntArray
    after: IntArray

    def __len__(self) -> int:
        return len(self.before)


def changed_decisions(before: Fusion, after: Fusion, kept: NDArray[np.bool_]) -> ChangedDecisions:
    """Compare two fusions of an image, detected or not, cluster by cluster.

    Parameters
    ----------
    before : Fusion
        Of N clicks.
    after : Fusion
        Of those that were kept, in the same order.
    kept : (N,) bool
    """
    there = same_clusters(before, after, kept)
    old, new = before.detection, after.detection
    gone = there == NO_CLUSTER
    then = np.where(gone, False, new.detected[there]) if len(new.detected) else np.zeros(len(there), bool)
    changed = np.flatnonzero(old.detected != then)
    fresh = np.setdiff1d(np.flatnonzero(new.detected), there)
    pairs = np.concatenate(
        [
            np.column_stack([changed, there[changed]]),
            np.column_stack([np.full(len(fresh), NO_CLUSTER), fresh]),
        ]
    ).astype(np.int64)
    first = np.where(pairs[:, 0] == NO_CLUSTER, 0.0, _at(old.posterior, pairs[:, 0]))
    second = np.where(pairs[:, 1] == NO_CLUSTER, 0.0, _at(new.posterior, pairs[:, 1]))
    pairs = pairs[np.argsort(-np.abs(second - first), kind="stable")]
    return ChangedDecisions(before=pairs[:, 0], after=pairs[:, 1])


def same_clusters(before: Fusion, after: Fusion, kept: NDArray[np.bool_]) -> IntArray:
    """Find every cluster again in another fusion of the image: those are one that have most clicks in common.

    Clicks count by their probability to be no outliers in both, and each cluster is found once at most, so
    that the clicks in common are as many as can be.

    Parameters
    ----------
    before, after, kept
        As `changed_decisions` takes them.

    Returns
    -------
    (M,) int64
        For each cluster of `before` that of `after`, `NO_CLUSTER` where no click is common.

    Raises
    ------
    ValueError
        Where the clicks are not those of the fusions.
    """
    from scipy.optimize import linear_sum_assignment

    if len(kept) != len(before.mark) or int(kept.sum()) != len(after.mark):
        raise ValueError(
            f"{int(kept.sum())} of {len(kept)} clicks are kept; the fusions are of "
            f"{len(before.mark)} and {len(after.mark)}"
        )
    one, other = before.mark[kept], after.mark
    was, becomes = before.clustering.nearest[one], after.clustering.nearest[other]
    inlier = before.clustering.inlier[one] * after.clustering.inlier[other]
    some = (was >= 0) & (becomes >= 0)
    common = np.zeros((len(before.clustering), len(after.clustering)))
    np.add.at(common, (was[some], becomes[some]), inlier[some])
    found = np.full(len(common), NO_CLUSTER, dtype=np.int64)
    rows, columns = linear_sum_assignment(common, maximize=True)
    shared = common[rows, columns] > 0
    found[rows[shared]] = columns[shared]
    return found


def _at(values: NDArray[np.float64], places: IntArray) -> NDArray[np.float64]:
    """Take values; what stands for `NO_CLUSTER` is not looked at."""
    return values[places] if len(values) else np.zeros(len(places))
