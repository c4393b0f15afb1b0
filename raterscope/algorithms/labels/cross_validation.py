"""Cross-validation with held-out truths, and the effect of excluding annotators."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
    """Result of cross-validation."""

    # (N, J): tasks with known truth: from the run without this truth. Other tasks: from the run with all
    # truths held fixed.
    posterior: FloatArray
    fold: NDArray[np.int16]  # (N,): the fold of the task's truth; `OPEN` where the truth is not known
    fusion: LabelFusion  # the run with all truths held fixed


def cross_validate(
    labels: Labels, truth: ClassArray, run: Run, folds: int = 5, seed: int = 0, watch: Watch = silent
) -> CrossValidation:
    """Fuse once for every fold with the other folds' truths held fixed, and once with all truths.

    See the paper's section 4. Every class is distributed evenly over the folds. `Labels.known` stays known in
    each run, except for the tasks of the held-out fold.

    `truth`: (N,), true classes, `OPEN` where not known.
    `folds`: at least 2; at most the number of truths.
    `seed`: seed of the draw of the folds. Raises `LabelsError` if fewer than two truths are known, or `folds`
    is below 2.
    """
    fold, known = assign_folds(labels, truth, folds, seed)
    share = 1 / (int(fold.max()) + 2)
    full = run(replace(labels, known=known), part(watch, 0.0, share, "all truths: "))
    posterior = predict_folds(labels, fold, known, run, part(watch, share, 1.0))
    return CrossValidation(np.where((fold >= 0)[:, None], posterior, full.posterior), fold, full)


def assign_folds(
    labels: Labels, truth: ClassArray, folds: int = 5, seed: int = 0
) -> tuple[NDArray[np.int16], ClassArray]:
    """Divide the tasks with known truth into folds, every class evenly; return folds and known classes.

    The fold of a task, (N,), is `OPEN` where the truth is unknown. Known classes, (N,), are the truths and
    `Labels.known`, with no fold held out. Raises `LabelsError` if fewer than two truths are known, or `folds`
    is below 2.
    """
    truth = np.asarray(truth, dtype=np.int16)
    if truth.shape != (len(labels.tasks),):
        raise LabelsError(f"{truth.shape} true classes; expected one a task.")
    judged = np.flatnonzero(truth != OPEN)
    if len(judged) < 2 or folds < 2:
        truths = "is 1 truth" if len(judged) == 1 else f"are {len(judged)} truths"
        raise LabelsError(
            f"there {truths} for {folds} fold{'s' * (folds != 1)}; expected at least 2 of each: one is "
            f"held out, another is held fixed."
        )
    fold = _folds(truth, judged, min(folds, len(judged)), seed)
    known = labels.known_classes()
    known[judged] = truth[judged]
    return fold, known


def predict_folds(
    labels: Labels, fold: NDArray[np.int16], known: ClassArray, run: Run, watch: Watch = silent
) -> FloatArray:
    """Predict the tasks of every fold by a run without their truths, (N, J); NaN for tasks in no fold.

    `fold`, `known`: (N,), as from `assign_folds`.
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
    ordered = shuffled[np.argsort(truth[shuffled], kind="stable")]
    fold = np.full(len(truth), OPEN, dtype=np.int16)
    fold[ordered] = np.arange(len(ordered)) % folds
    return fold


@dataclass(frozen=True, eq=False)
class ExclusionPreview:
    """Effect of excluding or down-weighting annotators."""

    task: NDArray[np.int64]  # (M,): tasks that get another class, the most certain changes first
    # before, after: (M,): their most probable classes
    before: ClassArray
    after: ClassArray
    lost: NDArray[np.int64]  # (Q,): tasks that would lose all votes and have no known class
    votes: int  # number of excluded votes
    fusion: LabelFusion  # result of the others' votes


def preview_exclusion(
    labels: Labels,
    fusion: LabelFusion,
    annotators: Collection[str],
    run: Run,
    watch: Watch = silent,
    weight: float | None = None,
) -> ExclusionPreview:
    """Fuse again without some annotators, or with another weight for them; list the tasks that change.

    `labels`: input of the fusion.
    `fusion`: the result with all annotators.
    `annotators`: names of the excluded annotators.
    `run`: makes the fusion with its settings.
    `weight`: new weight of the annotators; None excludes them. Lost tasks are not among the tasks with
    another class.
    """
    fewer = labels.reweighed(annotators, weight)
    after = run(fewer, watch)
    lost = (labels.votes_of_tasks() > 0) & (fewer.votes_of_tasks() == 0) & (after.known == OPEN)
    old, new = fusion.label(), after.label()
    changed = np.flatnonzero((old != new) & ~lost)
    sure = after.posterior[changed, new[changed]] - after.posterior[changed, old[changed]]
    changed = changed[np.argsort(-sure, kind="stable")]
    return ExclusionPreview(
        task=changed,
        before=old[changed],
        after=new[changed],
        lost=np.flatnonzero(lost),
        votes=len(labels) - len(fewer),
        fusion=after,
    )
