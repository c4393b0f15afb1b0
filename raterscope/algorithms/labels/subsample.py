"""Subsample of tasks that experienced annotators voted on ([simpson2013]_, section 4).

References
----------
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, ClassArray, Labels, LabelsError

__all__ = ["Subsample", "subsample"]


@dataclass(frozen=True, eq=False)
class Subsample:
    """Some of the tasks, with all their votes.

    Attributes
    ----------
    labels : Labels
        Tasks and annotators renumbered; annotators without a vote on these tasks are left out.
    truth : (n,) int16
    tasks : (n,) int64
        Numbers of the tasks in the whole.
    annotators : (k,) int64
        Numbers of the annotators in the whole.
    experienced : int
        How many annotators had enough votes of each class.
    """

    labels: Labels
    truth: ClassArray
    tasks: NDArray[np.int64]
    annotators: NDArray[np.int64]
    experienced: int


def subsample(
    labels: Labels, truth: ClassArray, class_votes: int = 50, least_experienced: int = 10
) -> Subsample:
    """Select the tasks on which many experienced annotators voted.

    Experienced is who voted on at least `class_votes` tasks of each true class. A task is selected where at
    least `least_experienced` of them voted, whether its truth is known or not; then all votes on it count,
    also those of other annotators.

    Parameters
    ----------
    labels : Labels
    truth : (N,) int16
        True classes, `OPEN` where not known.
    class_votes : int
        Repeated votes on one task count once.
    least_experienced : int

    Returns
    -------
    Subsample

    Raises
    ------
    LabelsError
        When no task is selected.

    Examples
    --------
    >>> import numpy as np
    >>> task, annotator = np.divmod(np.arange(30), 3)
    >>> keep = (annotator < 2) | (task < 4)
    >>> labels = Labels(task[keep], annotator[keep], task[keep] % 2, tuple("abcdefghij"), ("x", "y", "z"),
    ...     ("0", "1"), ("0", "1"))
    >>> found = subsample(labels, np.arange(10) % 2, class_votes=5, least_experienced=2)
    >>> found.experienced, len(found.tasks), len(found.annotators)
    (2, 10, 3)
    """
    truth = np.asarray(truth, dtype=np.int16)
    pair = np.unique(labels.task.astype(np.int64) * len(labels.annotators) + labels.annotator)
    task, annotator = np.divmod(pair, max(len(labels.annotators), 1))
    votes = np.zeros((len(labels.annotators), len(labels.classes)), dtype=np.int64)
    known = truth[task] != OPEN
    np.add.at(votes, (annotator[known], truth[task[known]]), 1)
    there = np.unique(truth[truth != OPEN])
    least = votes[:, there].min(axis=1) if len(there) else np.zeros(len(votes), dtype=np.int64)
    experienced = least >= class_votes
    enough = np.bincount(task[experienced[annotator]], minlength=len(labels.tasks)) >= least_experienced
    if not len(there) or not enough.any():
        raise LabelsError(
            f"no task has votes of {least_experienced} annotators with {class_votes} votes on known tasks of "
            f"each class: {int(experienced.sum()):,} annotators have so many, and the one with the most has "
            f"{int(least.max(initial=0)):,}; lower one of the two numbers."
        )
    kept = enough[labels.task]
    tasks, people = np.flatnonzero(enough), np.unique(labels.annotator[kept]).astype(np.int64)
    number = np.full(len(labels.tasks), -1, dtype=np.int32)
    number[tasks] = np.arange(len(tasks))
    who = np.full(len(labels.annotators), -1, dtype=np.int32)
    who[people] = np.arange(len(people))
    smaller = replace(
        labels,
        task=number[labels.task[kept]],
        annotator=who[labels.annotator[kept]],
        label=labels.label[kept],
        tasks=tuple(labels.tasks[at] for at in tasks.tolist()),
        annotators=tuple(labels.annotators[at] for at in people.tolist()),
        time=None if labels.time is None else labels.time[kept],
        known=None if labels.known is None else labels.known[tasks],
    )
    return Subsample(smaller, truth[tasks], tasks, people, int(experienced.sum()))
