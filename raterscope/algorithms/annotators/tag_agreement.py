"""Agreement of annotators who give sets of tags, with partial agreement by the MASI distance.

References
----------
.. [passonneau2006] R. Passonneau, "Measuring agreement on set-valued items (MASI) for semantic and pragmatic
   annotation", Proceedings of the fifth international conference on language resources and evaluation (LREC),
   European Language Resources Association (2006) 831-836.
.. [krippendorff2018] K. Krippendorff, "Content analysis: an introduction to its methodology", 4th edition,
   Sage (2018) (chapter 12).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.vote_agreement import VoteAgreement, vote_agreement

MOST_SETS = 2000
"""Different sets of tags up to which all tasks are used."""


def masi_distances(sets: ArrayLike) -> NDArray[np.float64]:
    """Return the MASI distance of each two sets of tags, 0 to 1.

    It is 1 - J M: J is the Jaccard index, M is 1 for equal sets, 2/3 if the one contains the other, 1/3 if
    they overlap, and 0 if they share nothing ([passonneau2006]_). Two empty sets are equal.

    Parameters
    ----------
    sets : (S, T) bool
        The tags of each set.

    Examples
    --------
    >>> masi_distances([[1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]]).round(3)[0].tolist()
    [0.0, 0.667, 0.889]
    """
    has = np.asarray(sets, dtype=np.float64)
    shared = has @ has.T
    size = has.sum(axis=1)
    union = size[:, None] + size[None, :] - shared
    smaller = np.minimum(size[:, None], size[None, :])
    weight = np.where(shared == union, 1.0, np.where(shared == smaller, 2 / 3, 1 / 3))
    jaccard = np.divide(shared, union, out=np.ones_like(union), where=union > 0)
    return np.asarray(1 - weight * jaccard)


def tag_agreement(task: ArrayLike, sets: ArrayLike, *, seed: int = 0) -> VoteAgreement:
    """Measure the agreement of votes that are sets of tags; see `vote_agreement`.

    With more than `MOST_SETS` different sets, random tasks with so many are used.

    Parameters
    ----------
    task : (V,) int
        The task of each vote, from 0; at most one vote of an annotator on a task.
    sets : (V, T) bool
        The tags of each vote.

    Examples
    --------
    >>> agreement = tag_agreement([0, 0, 1, 1], [[1, 0], [1, 0], [0, 1], [1, 1]])
    >>> round(agreement.krippendorff.value, 3)
    0.5
    """
    tasks, has = np.asarray(task), np.asarray(sets, dtype=np.bool_)
    different, number = np.unique(has, axis=0, return_inverse=True)
    number = number.ravel()
    if len(different) > MOST_SETS:
        order = np.random.default_rng(seed).permutation(int(tasks.max()) + 1)[tasks]
        rows = np.argsort(order, kind="stable")
        _, first = np.unique(number[rows], return_index=True)
        last = order[rows[np.sort(first)[MOST_SETS]]]
        kept = order < last
        return tag_agreement(tasks[kept], has[kept], seed=seed)
    return vote_agreement(tasks, number, len(different), apart=masi_distances(different), seed=seed)
