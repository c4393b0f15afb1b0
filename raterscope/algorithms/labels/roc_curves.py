"""ROC curves of several methods by cross-validation ([simpson2013]_, section 4 and Fig. 2).

References
----------
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import distinct_values
from raterscope.algorithms.labels.assessment import Assessment, assess, log_odds, mean_curve
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.cross_validation import assign_folds, predict_folds
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, Labels, LabelsError
from raterscope.algorithms.labels.fusion import LabelPlan, run_with_programs
from raterscope.algorithms.labels.programs import Program
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings, choice, integer, switch


@dataclass(frozen=True, eq=False)
class Subsample:
    """Some of the tasks, with all their votes."""

    labels: Labels  # tasks and annotators renumbered; annotators without a vote on these tasks are excluded
    truth: ClassArray  # (n,)
    tasks: NDArray[np.int64]  # (n,): numbers of the tasks in the original labels
    annotators: NDArray[np.int64]  # (k,): numbers of the annotators in the original labels
    experienced: int  # number of annotators with enough votes of each class


def subsample(
    labels: Labels, truth: ClassArray, class_votes: int = 50, least_experienced: int = 10
) -> Subsample:
    """Select the tasks on which many experienced annotators voted.

    Experienced annotators voted on at least `class_votes` tasks of each true class. A task is selected if at
    least `least_experienced` of them voted, with or without known truth; then all votes on the task count,
    including those of other annotators.

    `truth`: (N,), true classes, `OPEN` where not known.
    `class_votes`: repeated votes on one task count once.
    Raises `LabelsError` if no task is selected.

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
    pair = distinct_values(labels.task.astype(np.int64) * len(labels.annotators) + labels.annotator)
    task, annotator = np.divmod(pair, max(len(labels.annotators), 1))
    votes = np.zeros((len(labels.annotators), len(labels.classes)), dtype=np.int64)
    known = truth[task] != OPEN
    np.add.at(votes, (annotator[known], truth[task[known]]), 1)
    present = np.unique(truth[truth != OPEN])
    least = votes[:, present].min(axis=1) if len(present) else np.zeros(len(votes), dtype=np.int64)
    experienced = least >= class_votes
    enough = np.bincount(task[experienced[annotator]], minlength=len(labels.tasks)) >= least_experienced
    if not len(present) or not enough.any():
        raise LabelsError(
            f"no task has votes of {least_experienced} annotators with {class_votes} votes on known tasks of "
            f"each class: {int(experienced.sum()):,} annotators have this number of votes, and the "
            f"maximum is {int(least.max(initial=0)):,}; lower one of the two numbers."
        )
    kept = enough[labels.task]
    tasks, annotators = np.flatnonzero(enough), np.unique(labels.annotator[kept]).astype(np.int64)
    number = np.full(len(labels.tasks), -1, dtype=np.int32)
    number[tasks] = np.arange(len(tasks))
    row = np.full(len(labels.annotators), -1, dtype=np.int32)
    row[annotators] = np.arange(len(annotators))
    smaller = replace(
        labels,
        task=number[labels.task[kept]],
        annotator=row[labels.annotator[kept]],
        label=labels.label[kept],
        tasks=tuple(labels.tasks[at] for at in tasks.tolist()),
        annotators=tuple(labels.annotators[at] for at in annotators.tolist()),
        time=None if labels.time is None else labels.time[kept],
        known=None if labels.known is None else labels.known[tasks],
        weights=None if labels.weights is None else labels.weights[annotators],
        aliases=labels.aliases & {labels.annotators[at] for at in annotators.tolist()},
    )
    return Subsample(smaller, truth[tasks], tasks, annotators, int(experienced.sum()))


METHODS = {
    "all": "all methods",
    "fast": "all but Gibbs sampling, EBCC and dynamic IBCC",
    "paper": "those of Figure 2 of the dynamic combination paper",
}
_SLOW = ("gibbs", "ebcc", "dynibcc")
_OF_PAPER = ("mean-score", "weighted-sum", "majority", "weighted-majority", "gibbs", "ibcc")
_VOTES = ("majority", "weighted-majority")
_LEVEL = 0.95


@dataclass(frozen=True)
class FoldedSettings(Settings):
    """Settings of the comparison: methods, tasks and the number of folds."""

    methods: str = choice("all", "Methods", "Methods to compare.", METHODS)
    folds: int = integer(
        5, "Folds", "A method gets the truths of all folds but one, and predicts the tasks of that fold.",
        minimum=2, maximum=100,
    )  # fmt: skip
    subsample: bool = switch(
        False, "Subsample", "Keep only tasks with votes of enough experienced annotators, as in section 4 of "
        "the dynamic combination paper.",
    )  # fmt: skip
    class_votes: int = integer(
        50, "Votes of each class", "Votes on tasks of each true class that make an annotator experienced. "
        "For the subsample.", unit="votes", minimum=1,
    )  # fmt: skip
    experienced: int = integer(
        10,
        "Experienced annotators",
        "Minimum number of experienced annotators with votes on a task. For the subsample.",
        minimum=1,
    )
    decisions: bool = switch(
        False, "Majorities as decisions", "Simple and weighted majority give a class instead of a share of "
        "votes, as in the paper: their ROC curve is then one point.", advanced=True,
    )  # fmt: skip
    fold_seed: int = integer(
        0,
        "Seed of folds",
        "Seed of the random division into folds.",
        minimum=0,
        maximum=2**31 - 1,
        advanced=True,
    )


@dataclass(frozen=True, eq=False)
class FoldedMethod:
    """Predictions of one method for held-out tasks."""

    name: str
    pooled: Assessment  # of the predictions of all folds together
    by_fold: tuple[Assessment | None, ...]  # of each fold separately
    # low, high: (J + 1,): interval of each class's pooled AUC, then of their mean; see `area_interval`
    low: FloatArray
    high: FloatArray
    seconds: float  # of all folds together
    posterior: FloatArray  # (n, J): of the n tasks of known truth, each from the run without it

    def areas(self, true: int | None = None) -> FloatArray:
        """Return the AUC of each fold, for a class or the mean of classes; NaN where undefined."""
        return np.array([_area(fold, true) for fold in self.by_fold])

    def area(self, true: int | None = None) -> tuple[float, float, float]:
        """Return the pooled AUC with its interval, for a class or by default the mean of classes."""
        at = -1 if true is None else true
        return _area(self.pooled, true), float(self.low[at]), float(self.high[at])

    def average(self, true: int) -> tuple[FloatArray, FloatArray]:
        """Return the vertical average of the folds' ROC curves of a class, see `mean_curve`."""
        curves = [fold.curves[true] for fold in self.by_fold if fold is not None]
        known = [
            (curve.false_positive_rate, curve.sensitivity) for curve in curves if math.isfinite(curve.area)
        ]
        return mean_curve(known) if known else (np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class FoldedCurves:
    """ROC curves of several methods on the same folds."""

    settings: FoldedSettings
    classes: tuple[str, ...]  # (J,)
    # tasks, annotators, votes: numbers of the labels that were fused; fewer than all for a subsample
    tasks: int
    annotators: int
    votes: int
    # truth, fold: (n,): class and fold of the tasks with known truth
    truth: ClassArray
    fold: NDArray[np.int16]
    methods: tuple[FoldedMethod, ...]
    failed: tuple[str, ...] = ()  # methods that cannot be used here, with the reason, a sentence each

    @property
    def truths(self) -> int:
        """Number of tasks with a known truth."""
        return len(self.truth)

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max(initial=-1)) + 1

    @property
    def shown(self) -> tuple[int, ...]:
        """Classes with a curve; of two classes only the last, because their curves are equivalent."""
        curves = self.methods[0].pooled.curves if self.methods else ()
        known = tuple(at for at, curve in enumerate(curves) if math.isfinite(curve.area))
        return known[-1:] if len(self.classes) == 2 else known

    def ranked(self) -> list[FoldedMethod]:
        """Sort the methods by their pooled AUC, the best first."""
        return sorted(self.methods, key=lambda method: -np.nan_to_num(method.area()[0], nan=-1.0))


def folded_curves(
    labels: Labels,
    truth: ClassArray,
    settings: FoldedSettings | None = None,
    plans: Mapping[str, LabelPlan] | None = None,
    watch: Watch = silent,
    programs: Sequence[Program] = (),
) -> FoldedCurves:
    """Predict every known task by each method from the truths of the other folds.

    All methods have the same folds, with every class distributed evenly.

    `truth`: (N,), true classes, `OPEN` where not known.
    `plans`: plans of some methods; other methods have their defaults. `failed` lists methods that cannot be
    used on these labels.
    `programs`: programs with all tasks and classes of the labels; every method's consensus is combined with
        them, see `programs.combine`.
    Raises `LabelsError` for fewer than two truths, or if the subsample has no task.

    Examples
    --------
    >>> import numpy as np
    >>> task, annotator = np.divmod(np.arange(120), 3)
    >>> right = np.random.default_rng(0).random(120) < 0.8
    >>> label = np.where(right, task % 2, 1 - task % 2)
    >>> labels = Labels(task, annotator, label, tuple(map(str, range(40))), ("x", "y", "z"), ("0", "1"),
    ...     ("0", "1"))
    >>> found = folded_curves(labels, np.arange(40) % 2, FoldedSettings(methods="fast"))
    >>> [method.name for method in found.methods[:2]], found.folds
    (['pooled', 'ibcc'], 5)
    """
    settings = settings or FoldedSettings()
    truth = np.asarray(truth, dtype=np.int16)
    if settings.subsample:
        sample = subsample(labels, truth, settings.class_votes, settings.experienced)
        labels, truth = sample.labels, sample.truth
        programs = [replace(program, probability=program.probability[sample.tasks]) for program in programs]
    fold, known = assign_folds(labels, truth, settings.folds, settings.fold_seed)
    names, judged = _names(settings), fold >= 0
    methods: list[FoldedMethod] = []
    failed: list[str] = []
    for done, name in enumerate(names):
        title = LABELLERS[name].title
        step = part(watch, done / len(names), (done + 1) / len(names), f"{title}: ")
        plan = (plans or {}).get(name) or LabelPlan.make(name)
        begun = time.perf_counter()
        try:
            posterior = predict_folds(labels, fold, known, partial(run_with_programs, plan, programs), step)
        except LabelsError as error:
            failed.append(f"{title} cannot be used here: {error}")
            continue
        seconds = time.perf_counter() - begun
        posterior = posterior[judged]
        if settings.decisions and name in _VOTES:
            posterior = np.eye(posterior.shape[1])[posterior.argmax(axis=1)]
        methods.append(judge_folds(name, posterior, truth[judged], fold[judged], labels.classes, seconds))
    return FoldedCurves(
        settings, labels.classes, len(labels.tasks), int((labels.votes_of_annotators() > 0).sum()),
        len(labels), truth[judged], fold[judged], tuple(methods), tuple(failed),
    )  # fmt: skip


def judge_folds(
    name: str,
    posterior: FloatArray,
    truth: ClassArray,
    fold: NDArray[np.int16],
    classes: tuple[str, ...],
    seconds: float,
) -> FoldedMethod:
    """Assess the predictions of a method for n tasks with known truth, together and by fold.

    `posterior`: (n, J). `truth`, `fold`: (n,). `classes`: names of the J classes.
    """
    pooled = assess(posterior, truth, classes)
    assert pooled is not None
    by_fold = tuple(
        assess(posterior, np.where(fold == f, truth, OPEN).astype(np.int16), classes)
        for f in range(int(fold.max()) + 1)
    )
    return FoldedMethod(name, pooled, by_fold, *area_interval(posterior, truth), seconds, posterior)


def area_interval(posterior: FloatArray, truth: ClassArray) -> tuple[FloatArray, FloatArray]:
    """Return the 95 % intervals of the AUC of each class against the rest, then of their mean.

    The variance is DeLong's, from the placements of all tasks ([delong1988]_); for the mean of classes it
    includes their covariances. The interval is symmetric for the logit of the AUC. If the classes are
    separated perfectly, the variance is 0; the lower end is then the exact one for a share that is right for
    each task of the smaller class ([clopper1934]_). In 2,000 simulated data sets with AUC 0.6 to 0.99 and
    classes of 5 to 450 tasks, 90 to 97 % of the intervals covered the AUC.

    `posterior`: (n, J). `truth`: (n,), all known. Both ends, (J + 1,), are NaN where the AUC is undefined.

    References
    ----------
    .. [delong1988] E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two or
       more correlated receiver operating characteristic curves: a nonparametric approach", Biometrics 44
       (1988) 837-845, doi:10.2307/2531595.
    .. [clopper1934] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in
       the case of the binomial", Biometrika 26 (1934) 404-413, doi:10.1093/biomet/26.4.404.
    """
    classes = posterior.shape[1]
    odds = log_odds(posterior)
    placements = [_placements(odds[:, at], truth == at) for at in range(classes)]
    known = [at for at, placement in enumerate(placements) if placement is not None]
    low, high = np.full((2, classes + 1), np.nan)
    if not known:
        return low, high
    areas, influences, fewest = [], [], []
    for at in known:
        area, influence, few = placements[at] or (0.0, np.empty(0), 0.0)
        low[at], high[at] = _logit_interval(area, float(np.square(influence).sum()), few)
        areas.append(area)
        influences.append(influence)
        fewest.append(few)
    together = np.mean(influences, axis=0)
    low[-1], high[-1] = _logit_interval(
        float(np.mean(areas)), float(np.square(together).sum()), float(np.mean(fewest))
    )
    return low, high


def mean_area(areas: Sequence[float] | FloatArray) -> tuple[float, float, float]:
    """Return the mean of the folds' AUC with Student's 95 % interval; NaN without folds.

    The interval assumes independent folds, which is only approximate, because the runs share truths.
    """
    from scipy.special import stdtrit

    known = np.asarray(areas, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return math.nan, math.nan, math.nan
    mean = float(known.mean())
    if len(known) < 2:
        return mean, math.nan, math.nan
    half = float(stdtrit(len(known) - 1, 0.5 + _LEVEL / 2)) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)


def _names(settings: FoldedSettings) -> list[str]:
    if settings.methods == "paper":
        return list(_OF_PAPER)
    return [name for name in LABELLERS if settings.methods == "all" or name not in _SLOW]


def _area(assessment: Assessment | None, true: int | None) -> float:
    if assessment is None:
        return math.nan
    return assessment.area if true is None else assessment.curves[true].area


def _placements(score: FloatArray, true: NDArray[np.bool_]) -> tuple[float, FloatArray, float] | None:
    """Return the AUC, the contribution of each task to its error, and the size of the smaller group."""
    from scipy.stats import rankdata

    present = int(true.sum())
    absent = len(true) - present
    if not present or not absent:
        return None
    ranks, placement = rankdata(score), np.empty(len(score))
    placement[true] = (ranks[true] - rankdata(score[true])) / absent
    placement[~true] = 1 - (ranks[~true] - rankdata(score[~true])) / present
    area = float(placement[true].mean())
    influence = (placement - area) / np.where(true, present, absent)
    return area, influence, float(min(present, absent))


def _logit_interval(area: float, variance: float, fewest: float) -> tuple[float, float]:
    from scipy.special import expit, logit, ndtri

    if variance <= 0 or not 0 < area < 1:
        end = (0.5 - _LEVEL / 2) ** (1 / fewest)
        return (end, 1.0) if area > 0.5 else (0.0, 1 - end)
    half = float(ndtri(0.5 + _LEVEL / 2)) * math.sqrt(variance) / (area * (1 - area))
    return float(expit(logit(area) - half)), float(expit(logit(area) + half))
