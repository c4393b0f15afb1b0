"""Cross-validation on held-out truths, and the effect of an exclusion of annotators."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    LabelFusion,
    Labels,
    LabelsError,
)
from raterscope.algorithms.progress import Watch, part, silent

Run = Callable[[Labels, Watch], LabelFusion]
"""A fusion with its settings: ``run(labels, watch)``."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Result of cross-validation.

    Attributes
    ----------
    posterior : (N, J) float64
        Tasks with known truth: from the run without it. Other tasks: from the run with all truths held fixed.
    fold : (N,) int16
        The fold of the task's truth; `OPEN` where the truth is not known.
    fusion : LabelFusion
        The run with all truths held fixed.
    """

    posterior: FloatArray
    fold: NDArray[np.int16]
    fusion: LabelFusion


def cross_validate(
    labels: Labels, truth: ClassArray, run: Run, folds: int = 5, seed: int = 0, watch: Watch = silent
) -> CrossValidation:
    """Fuse once for every fold with the other folds' truths held fixed, and once with all of them.

    See the paper's section 4. Every class is distributed evenly over the folds. `Labels.known` stays known in
    each run, except for the tasks of the held-out fold.

    Parameters
    ----------
    truth : (N,) int16
        True classes, `OPEN` where not known.
    run : callable
        ``run(labels, watch)`` returns a `LabelFusion`.
    folds : int
        At least 2; at most the number of truths.
    seed : int
        Of the draw of the folds.

    Raises
    ------
    LabelsError
        When fewer than two truths are known, or fewer than two folds are asked for.
    """
    fold, known = deal_folds(labels, truth, folds, seed)
    share = 1 / (int(fold.max()) + 2)
    full = run(replace(labels, known=known), part(watch, 0.0, share, "all truths: "))
    posterior = predict_folds(labels, fold, known, run, part(watch, share, 1.0))
    return CrossValidation(np.where((fold >= 0)[:, None], posterior, full.posterior), fold, full)


def deal_folds(
    labels: Labels, truth: ClassArray, folds: int = 5, seed: int = 0
) -> tuple[NDArray[np.int16], ClassArray]:
    """Divide the tasks of known truth into folds, every class evenly.

    Returns
    -------
    fold : (N,) int16
        `OPEN` where the truth is not known.
    known : (N,) int16
        Known classes without a held-out fold: the truths, and `Labels.known`.

    Raises
    ------
    LabelsError
        When fewer than two truths are known, or fewer than two folds are asked for.
    """
    truth = np.asarray(truth, dtype=np.int16)
    if truth.shape != (len(labels.tasks),):
        raise LabelsError(f"{truth.shape} true classes; expected one a task.")
    judged = np.flatnonzero(truth != OPEN)
    if len(judged) < 2 or folds < 2:
        truths = "is 1 truth" if len(judged) == 1 else f"are {len(judged)} truths"
        raise LabelsError(
            f"there {truths} for {folds} fold{'s' * (folds != 1)}; expected at least 2 of each, so that one"
            " is measured while another is held fixed."
        )
    fold = _folds(truth, judged, min(folds, len(judged)), seed)
    known = np.full(len(labels.tasks), OPEN, dtype=np.int16) if labels.known is None else labels.known.copy()
    known[judged] = truth[judged]
    return fold, known


def predict_folds(
    labels: Labels, fold: NDArray[np.int16], known: ClassArray, run: Run, watch: Watch = silent
) -> FloatArray:
    """Predict the tasks of every fold by the run without their truths.

    Parameters
    ----------
    fold, known : (N,) int16
        As from `deal_folds`.
    run : callable
        ``run(labels, watch)`` returns a `LabelFusion`.

    Returns
    -------
    (N, J) float64
        NaN for tasks in no fold.
    """
    posterior = np.full((len(fold), len(labels.classes)), np.nan)
    folds = int(fold.max()) + 1
    for f in range(folds):
        held_out = fold == f
        step = part(watch, f / folds, (f + 1) / folds, f"fold {f + 1} of {folds}: ")
        predicted = run(replace(labels, known=np.where(held_out, OPEN, known).astype(np.int16)), step)
        posterior[held_out] = predicted.posterior[held_out]
    return posterior


def _folds(truth: ClassArray, judged: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int16]:
    """Assign tasks to folds, with the classes distributed evenly."""
    shuffled = np.random.default_rng(seed).permutation(judged)
    dealt = shuffled[np.argsort(truth[shuffled], kind="stable")]
    fold = np.full(len(truth), OPEN, dtype=np.int16)
    fold[dealt] = np.arange(len(dealt)) % folds
    return fold


@dataclass(frozen=True, eq=False)
class ExclusionPreview:
    """Effect of an exclusion of annotators.

    Attributes
    ----------
    task : (M,) int64
        Tasks that get another class, the most certain changes first.
    before, after : (M,) int16
        Their most probable classes.
    lost : (Q,) int64
        Tasks that would lose all votes and have no known class.
    votes : int
        Number of excluded votes.
    accuracy_before, accuracy_after : float
        On the tasks with a given truth, including lost ones; NaN without truths.
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


def preview_exclusion(
    labels: Labels,
    fusion: LabelFusion,
    annotators: Collection[str],
    run: Run,
    watch: Watch = silent,
    truth: ClassArray | None = None,
    weight: float | None = None,
) -> ExclusionPreview:
    """Fuse again without some annotators, or with another weight, and list the tasks that change.

    Parameters
    ----------
    labels : Labels
        Input of the fusion.
    fusion : LabelFusion
        The result with all annotators.
    annotators : collection of str
        Names of the excluded annotators.
    run : callable
        ``run(labels, watch)``: the fusion with its settings.
    truth : (N,) int16, optional
        True classes, `OPEN` where not known.
    weight : float, optional
        New weight of the annotators; None excludes them.

    Returns
    -------
    ExclusionPreview
        Lost tasks are not among those that get another class.
    """
    fewer = labels.reweighed(annotators, weight)
    after = run(fewer, watch)
    lost = (labels.votes_of_tasks() > 0) & (fewer.votes_of_tasks() == 0) & (after.known == OPEN)
    old, new = fusion.label(), after.label()
    changed = np.flatnonzero((old != new) & ~lost)
    sure = after.posterior[changed, new[changed]] - after.posterior[changed, old[changed]]
    changed = changed[np.argsort(-sure, kind="stable")]
    accuracy = [math.nan, math.nan]
    if truth is not None:
        for at, result in enumerate((fusion, after)):
            judged = assess(result.posterior, truth, result.classes)
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
