"""What would change if some annotators' votes were left out."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.cross_validation import Run
from raterscope.algorithms.labels.data import OPEN, ClassArray, LabelFusion, Labels
from raterscope.algorithms.progress import Watch, silent

__all__ = ["ExclusionPreview", "preview"]


@dataclass(frozen=True, eq=False)
class ExclusionPreview:
    """What comes of leaving annotators out.

    Attributes
    ----------
    task : (M,) int64
        Tasks that get another class, the surest changes first.
    before, after : (M,) int16
        Their most probable classes.
    lost : (Q,) int64
        Tasks that have votes now and would have none any more, nor a known class.
    votes : int
        Votes that would be left out.
    accuracy_before, accuracy_after : float
        On the tasks whose truth is given, tasks that were lost among them; NaN without truths.
    fusion : LabelFusion
        Result of the others' votes.
    """

    task: NDArray[np.int64]
    before: ClassArray
    after: ClassArray
    lost: NDArray[np.int64]
    votes: int
    accuracy_before: float
    accuracy_after: float
    fusion: LabelFusion


def preview(
    labels: Labels,
    fusion: LabelFusion,
    annotators: Collection[str],
    run: Run,
    watch: Watch = silent,
    truth: ClassArray | None = None,
) -> ExclusionPreview:
    """Fuse again without some annotators, and say what becomes of the tasks.

    Parameters
    ----------
    labels : Labels
        What was fused.
    fusion : LabelFusion
        The result with everybody.
    annotators : collection of str
        Names of those to leave out.
    run : callable
        ``run(labels, watch)``: the fusion with its settings.
    watch : Watch
    truth : (N,) int16, optional
        True classes, `OPEN` where not known.

    Returns
    -------
    ExclusionPreview
        A lost task is not among those that get another class: it gets none.
    """
    fewer = labels.without(annotators)
    after = run(fewer, watch)
    lost = (labels.votes_of_tasks() > 0) & (fewer.votes_of_tasks() == 0) & (after.known == OPEN)
    old, new = fusion.label(), after.label()
    changed = np.flatnonzero((old != new) & ~lost)
    sure = after.posterior[changed, new[changed]] - after.posterior[changed, old[changed]]
    changed = changed[np.argsort(-sure, kind="stable")]
    accuracy = [math.nan, math.nan]
    if truth is not None:
        for at, one in enumerate((fusion, after)):
            judged = assess(one.posterior, truth, one.classes)
            accuracy[at] = math.nan if judged is None else judged.accuracy
    return ExclusionPreview(
        task=changed,
        before=old[changed],
        after=new[changed],
        lost=np.flatnonzero(lost),
        votes=len(labels) - len(fewer),
        accuracy_before=accuracy[0],
        accuracy_after=accuracy[1],
        fusion=after,
    )
