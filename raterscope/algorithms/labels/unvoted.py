"""Tasks whose most probable class has no vote: when such a class may be the consensus.

A model of the annotators may infer a class that nobody chose, as where annotators confuse two classes in one
direction. Without evidence that their votes mean that class, such an answer is mostly an artefact of the
model. It therefore needs confident cases: tasks that are known, or where a class with votes is almost sure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, LabelFusion, Labels

__all__ = ["CASES", "bar_unvoted", "unvoted_tasks"]

CASES = 10
"""Votes on confident cases that a class without votes needs at least."""

_CONFIDENT = 0.9
"""Posterior from which the class of a task with votes for it counts as a confident case."""

_BAR = 0.8
"""Posterior that a class without votes needs at least."""

_BELOW = 1e-6
"""By how much a barred class is less probable than the best one with votes, relatively."""


def unvoted_tasks(labels: Labels, fusion: LabelFusion) -> NDArray[np.int64]:
    """List the undecided tasks whose most probable class has no vote while other classes have some."""
    assert labels.meaning is not None
    meant = labels.meaning[labels.label]
    tasks = len(fusion.posterior)
    voted = np.bincount(labels.task, meant == fusion.label()[labels.task], minlength=tasks) > 0
    named = np.bincount(labels.task, meant != OPEN, minlength=tasks) > 0
    return np.flatnonzero(named & ~voted & (fusion.known == OPEN))


def bar_unvoted(labels: Labels, fusion: LabelFusion) -> LabelFusion:
    """Let a class without votes be the consensus only where confident cases support it.

    It stays if its posterior is .8 or more and the same annotators gave the same labels in at least `CASES`
    votes on confident cases of that class, and in more of them than of any class with votes. Elsewhere its
    probability is reduced to just below that of the most probable class with votes.

    Parameters
    ----------
    labels : Labels
        What was fused, repeated votes settled or not.
    fusion : LabelFusion

    Returns
    -------
    LabelFusion
        With a notice of the tasks of either kind.
    """
    doubtful = unvoted_tasks(labels, fusion)
    if not len(doubtful):
        return fusion
    assert labels.meaning is not None
    classes, tasks = len(fusion.classes), len(fusion.posterior)
    place = np.full(tasks, OPEN)
    place[doubtful] = np.arange(len(doubtful))
    votes = np.flatnonzero(place[labels.task] != OPEN)
    row = place[labels.task[votes]]
    support = _support(labels, fusion, votes, row, len(doubtful))
    meant = labels.meaning[labels.label[votes]]
    voted = np.zeros((len(doubtful), classes), dtype=bool)
    voted[row[meant != OPEN], meant[meant != OPEN]] = True
    each = np.arange(len(doubtful))
    best = fusion.label()[doubtful]
    own = support[each, best]
    kept = (
        (fusion.posterior[doubtful, best] >= _BAR)
        & (own >= CASES)
        & (own > np.where(voted, support, 0).max(axis=1))
    )
    posterior = fusion.posterior.copy()
    barred, of = doubtful[~kept], voted[~kept]
    limit = np.where(of, posterior[barred], 0.0).max(axis=1, keepdims=True)
    limit = np.maximum(limit, _BELOW)
    changed = np.where(of, posterior[barred], np.minimum(posterior[barred], limit * (1 - _BELOW)))
    first = np.where(of, posterior[barred], -1.0).argmax(axis=1)
    changed[np.arange(len(barred)), first] = limit[:, 0]
    posterior[barred] = changed / changed.sum(axis=1, keepdims=True)
    return replace(
        fusion, posterior=posterior, notices=(*fusion.notices, *_notices(int(kept.sum()), len(barred)))
    )


def _support(
    labels: Labels, fusion: LabelFusion, votes: NDArray[np.int64], row: NDArray[np.int64], rows: int
) -> NDArray[np.int64]:
    """Count the votes on confident cases of each class in which annotators gave the labels given here.

    Parameters
    ----------
    labels : Labels
    fusion : LabelFusion
    votes, row : (M,) int64
        Votes on the doubtful tasks, and which of these tasks each is on.
    rows : int

    Returns
    -------
    (rows, J) int64
    """
    assert labels.meaning is not None
    tasks, outputs = len(fusion.posterior), len(fusion.outputs)
    label = fusion.label()
    agreed = np.bincount(labels.task, labels.meaning[labels.label] == label[labels.task], minlength=tasks) > 0
    sure = fusion.posterior[np.arange(tasks), label] >= _CONFIDENT
    confident = (fusion.known != OPEN) | (sure & agreed)
    pair = labels.annotator.astype(np.int64) * outputs + labels.label
    wanted, at = np.unique(pair[votes], return_inverse=True)
    cases = np.flatnonzero(confident[labels.task])
    found = np.minimum(np.searchsorted(wanted, pair[cases]), len(wanted) - 1)
    same = wanted[found] == pair[cases]
    table = np.zeros((len(wanted), len(fusion.classes)), dtype=np.int64)
    np.add.at(table, (found[same], label[labels.task[cases[same]]]), 1)
    support = np.zeros((rows, len(fusion.classes)), dtype=np.int64)
    np.add.at(support, row, table[at])
    return support


def _notices(kept: int, barred: int) -> list[str]:
    notices = []
    if kept:
        notices.append(
            f"{_tasks(kept)} a class that nobody voted for there: the annotators gave the same labels in at"
            f" least {CASES} votes on confident cases of that class, more than of any class with votes."
        )
    if barred:
        notices.append(
            f"{_tasks(barred)} the most probable class with votes: a class without votes was more probable,"
            " but not supported by enough votes on confident cases."
        )
    return notices


def _tasks(count: int) -> str:
    return "1 task gets" if count == 1 else f"{count:,} tasks get"
