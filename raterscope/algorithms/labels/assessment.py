"""Assessment of posteriors against known truths and the majority vote, and advice on trust in a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.array_operations import ROWS_AT_ONCE, running_count, sum_rows
from raterscope.algorithms.evaluation import Calibration, calibration
from raterscope.algorithms.labels.crowd_votes import class_votes
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.rates import Rates, crowd_confusion, is_identified, rates_of
from raterscope.algorithms.labels.sharpening import log_variance
from raterscope.algorithms.labels.tempering import Tempering
from raterscope.algorithms.progress import no_check, parts_of, run_parts
from raterscope.text import percent

_BINS = 10
"""Number of bins of the calibration curves, of equal width."""

_TIE = 1e-9
"""Maximum difference of posteriors that count as equal."""

_TINY = 1e-300
"""Minimum posterior for computing odds."""

_LEAST = 1e-12
"""Minimum posterior in the log loss, which is infinite at zero."""


@dataclass(frozen=True, eq=False)
class ClassCurve:
    """ROC curve of one class against all others."""

    name: str
    count: int  # judged tasks that are of the class
    # (T,): tasks with at least this posterior count as the class; decreasing, the first is infinite.
    # Posteriors rounded to the same number are ordered by their odds
    threshold: FloatArray
    # false_positive_rate, sensitivity: (T,): all NaN if no judged task is of another class, or of this class
    false_positive_rate: FloatArray
    sensitivity: FloatArray
    area: float  # area under the ROC curve (AUC); NaN without a curve
    calibration: Calibration  # of the class's posterior


@dataclass(frozen=True, eq=False)
class Assessment:
    """Quality of posteriors on the tasks whose class is known."""

    classes: tuple[str, ...]  # (J,)
    judged: int  # number of tasks with known truth
    # accuracy, accuracy_low, accuracy_high: share of judged tasks whose most probable class is the true one,
    # and its Wilson interval of 95 %. If m classes are equally probable and one of them is true, the task
    # counts as 1/m
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    log_loss: float  # mean of -ln posterior of the true class, in nats
    brier: float  # mean over tasks of the summed squares of posterior minus truth, 0 to 2
    area: float  # mean of the classes' AUC, with equal weights; NaN without two classes among the truths
    curves: tuple[ClassCurve, ...]  # tuple of J ClassCurve
    # (J, J): judged tasks by true class (row) and most probable class (column); in a tie, the first
    confusion: NDArray[np.int64]
    # calibration of the most probable class's posterior. `error` is the expected calibration error
    calibration: Calibration
    # (judged,): credit of each judged task, in the order of the tasks: 1 if the most probable class is right,
    # 0 if it is wrong, 1/m if the true class is one of m equally probable classes
    right: FloatArray


def assess(posterior: FloatArray, truth: ClassArray, classes: tuple[str, ...]) -> Assessment | None:
    """Assess posteriors on the tasks with known class; None if there are none.

    Equally probable classes share the credit for a task, so that the order of the classes does not matter.
    The AUC of more than two classes is the mean of the one-against-the-rest AUCs; with two classes both are
    equal. Tasks are ranked by `log_odds`.

    `posterior`: (N, J).
    `truth`: (N,), true classes, `OPEN` where unknown.
    `classes`: names of the J classes.

    Examples
    --------
    >>> import numpy as np
    >>> posterior = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> result = assess(posterior, np.array([0, 1, 1], np.int16), ("no", "yes"))
    >>> result.judged, round(result.accuracy, 3), round(result.log_loss, 3)
    (3, 0.667, 0.415)
    """
    judged = np.flatnonzero(np.asarray(truth) >= 0)
    if not len(judged):
        return None
    values = np.asarray(posterior, dtype=np.float64)[judged]
    true = np.asarray(truth)[judged].astype(np.int64)
    size, many = len(classes), len(judged)
    chosen = values.argmax(axis=1)
    of_true = values[np.arange(many), true]
    top = values >= values.max(axis=1, keepdims=True) - _TIE
    right = top[np.arange(many), true] / top.sum(axis=1)
    low, high = wilson(float(right.sum()), many)
    odds = log_odds(values)
    curves = tuple(_curve(name, values[:, j], odds[:, j], true == j) for j, name in enumerate(classes))
    areas = [curve.area for curve in curves if not math.isnan(curve.area)]
    return Assessment(
        classes=classes,
        judged=many,
        accuracy=float(right.mean()),
        accuracy_low=low,
        accuracy_high=high,
        log_loss=float(np.abs(np.log(np.maximum(of_true, _LEAST))).mean()),
        brier=float((np.square(values).sum(axis=1) - 2.0 * of_true + 1.0).mean()),
        area=float(np.mean(areas)) if areas else math.nan,
        curves=curves,
        confusion=np.bincount(true * size + chosen, minlength=size * size).reshape(size, size),
        calibration=calibration(values[np.arange(many), chosen], right, _BINS),
        right=right,
    )


def compare_accuracy(first: Assessment, second: Assessment) -> tuple[int, int, float]:
    """Compare two assessments of the same tasks (exact McNemar's test; a sign test with ties).

    The result is the number of tasks with more credit in the first and in the second assessment, and the
    two-sided p value. Raises `ValueError` if different numbers of tasks were judged.
    """
    from scipy.special import bdtr

    if first.judged != second.judged:
        raise ValueError(f"{first.judged} and {second.judged} tasks are judged; expected the same tasks.")
    ours = int(np.count_nonzero(first.right > second.right + _TIE))
    wins_of_second = int(np.count_nonzero(second.right > first.right + _TIE))
    if ours == wins_of_second:
        return ours, wins_of_second, 1.0
    return (
        ours,
        wins_of_second,
        min(1.0, 2.0 * float(bdtr(min(ours, wins_of_second), ours + wins_of_second, 0.5))),
    )


def mean_curve(
    curves: Sequence[tuple[NDArray[np.floating], NDArray[np.floating]]],
) -> tuple[FloatArray, FloatArray]:
    """Average curves vertically: the mean height at every point of any of them.

    Vertical steps of a curve stay vertical in the mean, so that its area is the mean of the areas.

    `curves`: positions, (T,), in ascending order from 0 to 1, and heights, (T,), of each curve. The result,
    two of (M,), holds each position twice: with the height before and after it.

    References
    ----------
    .. [fawcett2006] T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27 (2006)
       861-874, doi:10.1016/j.patrec.2005.10.010.
    """
    at = np.unique(np.concatenate([across for across, _ in curves]))
    reached, leaving = np.zeros(len(at)), np.zeros(len(at))
    for across, down in curves:
        first = np.minimum(np.searchsorted(across, at, "left"), len(across) - 1)
        last = np.maximum(np.searchsorted(across, at, "right") - 1, 0)
        between = np.interp(at, across, down)
        at_point = across[first] == at
        reached += np.where(at_point, down[first], between) / len(curves)
        leaving += np.where(at_point, down[last], between) / len(curves)
    return np.repeat(at, 2), np.column_stack([reached, leaving]).ravel()


def log_odds(posterior: FloatArray) -> FloatArray:
    """Compute each class's log odds against all others together, (N, J), to a precision of `_TIE`.

    Log odds also rank posteriors that differ from 1 by less than the floating-point precision.

    Examples
    --------
    >>> log_odds(np.array([[1.0, 1e-20], [1.0, 1e-30], [0.5, 0.5]])).round(1).tolist()
    [[46.1, -46.1], [69.1, -69.1], [0.0, 0.0]]
    """
    others = np.zeros_like(posterior)
    np.cumsum(posterior[:, :-1], axis=1, out=others[:, 1:])
    others[:, :-1] += np.cumsum(posterior[:, :0:-1], axis=1)[:, ::-1]
    odds = np.log(np.maximum(posterior, _TINY)) - np.log(np.maximum(others, _TINY))
    return np.asarray(np.round(odds / _TIE) * _TIE)


def _curve(name: str, score: FloatArray, odds: FloatArray, true: NDArray[np.bool_]) -> ClassCurve:
    order = np.lexsort((-score, -odds))
    ranked = score[order]
    last = np.flatnonzero(np.diff(odds[order], append=-np.inf))  # equal posteriors are kept together
    hits = np.concatenate([[0], running_count(true[order])[last]])
    false = np.concatenate([[0], running_count(~true[order])[last]])
    present = int(true.sum())
    absent = len(true) - present
    both = present > 0 and absent > 0
    sensitivity = hits / present if both else np.full(len(hits), np.nan)
    rate = false / absent if both else np.full(len(hits), np.nan)
    return ClassCurve(
        name=name,
        count=present,
        threshold=np.concatenate([[np.inf], ranked[last]]),
        false_positive_rate=rate,
        sensitivity=sensitivity,
        area=float(np.trapezoid(sensitivity, rate)) if both else math.nan,
        calibration=calibration(score, true, _BINS),
    )


_VOTES = ("majority", "weighted-majority", "weighted-sum", "mean-score")
"""Algorithms without a model of annotators."""

_FEW_VOTES = 3.0
"""Minimum votes on a task for resolving disagreement."""

_FEW_ANNOTATORS = 6
_FEW_VOTES_OF_CLASS = 5.0
"""Minimum votes of an annotator for each class; with fewer, a row of the confusion matrix is mostly chance.
"""

_FEW_JUDGED = 20
"""Minimum number of judged tasks for calibration."""

_TOO_SURE = (0.03, 2.0)
"""Minimum difference of mean probability and accuracy for overconfidence, and the same in standard errors."""

_MODELS = {
    "ibcc": "IBCC",
    "dynibcc": "Dynamic IBCC",
    "gibbs": "Gibbs sampling",
    "ebcc": "EBCC",
    "dawid-skene": "Dawid-Skene",
}
"""Models that assume independent votes on a task, given its class or its subtype."""

_MEASURED = (
    "on ten real crowds IBCC's probabilities were too high by 0.12 on average, the pooled consensus's by 0.02"
)

_CHANCE = 0.05
"""Significance level of the difference between model and vote."""

_CHANGED = (3.0, 0.2)
"""Minimum change of a rate between the halves of an annotator's votes, in standard errors, and minimum share
of such rates.
"""

_RATES = (5, 5)
"""Minimum number of compared rates, and of votes in each half."""

_POOLED = "the pooled consensus, which estimates the prior from the crowd"


def advice(
    labels: Labels,
    fusion: LabelFusion,
    model: Assessment | None = None,
    vote: Assessment | None = None,
    tempering: Tempering | None = None,
    rates: Rates | None = None,
) -> tuple[str, ...]:
    """List reasons against trusting a fusion, with remedies, in sentences.

    The criteria are: votes for each task; the number of annotators; votes of an annotator for each class;
    swapped classes, or annotators who are mostly worse than chance, without known truths; rates of correct
    votes that differ by more than three standard errors between the first and the second half of an
    annotator's votes on a class, if a fifth of all rates do (by chance one in 400 does); dependence of the
    votes on a task; a wide interval of the crowd's accuracy, for the pooled consensus; convergence. Without
    assessments, a model of independent votes is reported as overconfident on real crowds. With them, the
    criteria include whether the majority vote has more tasks right (McNemar's exact test, 5 %), and whether
    the mean probability of the most probable classes is above the accuracy (for the pooled consensus, below
    it too).

    `labels`: input of the fusion, its repeated votes resolved or not.
    `model`, `vote`: assessments of the fusion and of the majority vote, on the same tasks with a known truth
        that was kept from both.
    `tempering`: tempering of a fusion in which votes count in full.
    `rates`: rates of the annotators, if already estimated.
    The result is empty if there are no such reasons, and for methods that are votes themselves.
    """
    if fusion.algorithm in _VOTES or not len(labels):
        return ()
    sentences = []
    if tempering is not None and tempering.dependent:
        sentences.append(
            "Annotators share mistakes: the votes on a task predict each other best if each is weighted"
            f" {tempering.power:g}. This model counts each vote in full and is overconfident. Use the pooled"
            " consensus, or let each vote count in part."
        )
    elif model is None and fusion.algorithm in _MODELS and fusion.power == 1.0:
        sentences.append(
            f"{_MODELS[fusion.algorithm]} may be overconfident: votes alone do not show whether annotators"
            f" err together, and {_MEASURED}. Use the pooled consensus, or import the truth of some tasks to"
            " measure it."
        )
    sentences += [
        *_truth_reasons(model, vote, fusion.algorithm == "pooled"),
        *_little_data_reasons(labels, fusion),
        *([] if rates is None else _accuracy_reasons(labels, fusion, rates)),
    ]
    if fusion.known.max(initial=OPEN) == OPEN:
        sentences += _swap_reasons(labels, fusion, rates)
    if fusion.drift is None:
        sentences += _change_reasons(labels, fusion)
    return tuple(sentences)


_TRUTHS = 50
"""Number of random tasks whose truth the advice asks for if the crowd's accuracy is uncertain."""

_WIDE, _NARROWED = 0.1, 0.75
"""Minimum width of the interval of a crowd's accuracy for a reason, if the decisions are expected to narrow
it to this share or less.
"""


def _accuracy_reasons(labels: Labels, fusion: LabelFusion, rates: Rates) -> list[str]:
    """Name the cause of a wide interval of the crowd's accuracy by the pooled consensus.

    The expected width with 50 known classes was within 30 % of the real one on 18 of 20 crowds.
    """
    crowd = rates.together(np.flatnonzero(rates.given))
    tasks = np.flatnonzero((fusion.votes > 0) & (fusion.known == OPEN))
    now = _width(crowd)
    if fusion.algorithm != "pooled" or len(tasks) < 2 * _TRUTHS or now < _WIDE:
        return []
    votes = class_votes(labels)

    def variance(begin: int, end: int) -> FloatArray:
        vote = votes[tasks[begin:end]] + 1 / len(labels.classes)
        return log_variance(vote / sum_rows(vote, keepdims=True))

    parts = run_parts(variance, parts_of(len(tasks), ROWS_AT_ONCE), no_check)
    information = _TRUTHS * float(np.concatenate(parts).mean())
    remaining = 1 - _TRUTHS / len(tasks)
    expected = replace(
        crowd,
        spread=crowd.spread / math.sqrt(1 + information * crowd.spread**2),
        right_shift=crowd.right_shift * remaining,
        right_doubt=crowd.right_doubt * remaining,
    )
    then = _width(expected)
    if then > _NARROWED * now:
        return []
    return [
        f"The crowd's accuracy is uncertain by \N{PLUS-MINUS SIGN}{now / 2:.2f}, mostly because annotators"
        f" may err together; decisions on {_TRUTHS} random tasks would narrow it to about"
        f" \N{PLUS-MINUS SIGN}{then / 2:.2f}."
    ]


def _width(crowd: Rates) -> float:
    low, high = crowd.accuracy_interval()
    return float(high[0] - low[0])


def _truth_reasons(model: Assessment | None, vote: Assessment | None, pooled: bool) -> list[str]:
    if model is None or vote is None:
        return []
    sentences = []
    ours, vote_wins, chance = compare_accuracy(model, vote)
    remedy = "use the majority vote" if pooled else f"use the majority vote, or try {_POOLED}"
    if vote_wins > ours and chance < _CHANCE:
        sentences.append(
            f"The majority vote is right more often than the model: in {percent(vote.accuracy, 1)} against"
            f" {percent(model.accuracy, 1)} of {model.judged:,} tasks (p = {chance:.2g})."
            f" {remedy.capitalize()}."
        )
    bins = model.calibration
    filled = bins.count > 0
    mean = float(bins.posterior[filled] @ bins.count[filled]) / model.judged
    least, errors = _TOO_SURE
    error = errors * np.sqrt(max(mean * (1 - mean), 1e-4) / model.judged)
    if model.judged >= _FEW_JUDGED and mean - model.accuracy > max(least, error):
        remedy = "hold truths fixed to calibrate it" if pooled else "use the pooled consensus"
        sentences.append(
            f"The model is overconfident: its mean probability is {percent(mean, 1)}, but"
            f" {percent(model.accuracy, 1)} of {model.judged:,} tasks are right; calibration error"
            f" {model.calibration.error:.2f}, log loss {model.log_loss:.2f} (the vote:"
            f" {vote.calibration.error:.2f}, {vote.log_loss:.2f}). Trust its order of tasks more than"
            f" its probabilities, or {remedy}."
        )
    elif pooled and model.judged >= _FEW_JUDGED and model.accuracy - mean > max(least, error):
        sentences.append(
            f"The model is underconfident: its mean probability is {percent(mean, 1)}, but"
            f" {percent(model.accuracy, 1)} of {model.judged:,} tasks are right; calibration error"
            f" {model.calibration.error:.2f}. Hold the known truths fixed to calibrate it."
        )
    return sentences


def _little_data_reasons(labels: Labels, fusion: LabelFusion) -> list[str]:
    votes, votes_given = fusion.votes[fusion.votes > 0], labels.votes_of_annotators()
    votes_given = votes_given[votes_given > 0]
    reasons = []
    typical = float(np.median(votes)) if len(votes) else 0.0
    if typical < _FEW_VOTES:
        reasons.append(f"most tasks have no more than {typical:g} vote{'' if typical == 1 else 's'}")
    if len(votes_given) < _FEW_ANNOTATORS:
        reasons.append(
            "there is one annotator" if len(votes_given) == 1 else f"there are {len(votes_given)} annotators"
        )
    of_class = float(np.median(votes_given)) / len(labels.classes) if len(votes_given) else 0.0
    if of_class < _FEW_VOTES_OF_CLASS:
        most = "1 vote" if of_class == 1 else f"{of_class:.2g} votes"
        reasons.append(f"half of the annotators have at most {most} for each class")
    sentences = []
    if not is_identified(replace(labels, known=fusion.known)):
        sentences.append(
            "Nearly every task has one vote, which does not show how often annotators are right. Confusion"
            " matrices are unknown: their intervals are 0 to 1. Collect second votes, or hold the truth of"
            " some tasks fixed."
        )
    if reasons:
        remedy = "" if fusion.algorithm == "pooled" else f" Try {_POOLED}."
        sentences.append(
            f"The model has little data: {', '.join(reasons)}. Where it differs from the majority vote, the"
            f" vote may be right.{remedy}"
        )
    return sentences


def _swap_reasons(labels: Labels, fusion: LabelFusion, rates: Rates | None) -> list[str]:
    assert labels.meaning is not None
    classes = len(labels.classes)
    if classes < 2:
        return []
    means_class = labels.meaning[:, None] == np.arange(classes)
    class_rates = crowd_confusion(fusion.confusion) @ means_class
    most = np.where(means_class.any(axis=0), class_rates.argmax(axis=1), np.arange(classes))
    swapped = [(j, int(most[j])) for j in range(classes) if most[j] > j and most[most[j]] == j]
    if swapped:
        first, second = (labels.classes[j] for j in swapped[0])
        return [
            f"Most annotators call {second} what the model calls {first}, and the other way round: the model"
            " may have swapped these classes. Import the truth of some tasks, or use the majority vote."
        ]
    votes = labels.votes_of_annotators()
    _, _, high = (rates_of(labels, fusion) if rates is None else rates).accuracies()
    worse = int(((high < 1 / classes) & (votes > 0)).sum())
    if 2 * worse > int((votes > 0).sum()):
        return [
            f"{worse:,} of {int((votes > 0).sum()):,} annotators would be worse than chance: that is more"
            " likely a mistake of the model. Import the truth of some tasks, or use the majority vote."
        ]
    return []


_COMPARED, _MIN_COMPARED = 500_000, 200
"""Number of votes above which changes over time are tested only for some annotators, and minimum number of
these.
"""


def _change_reasons(labels: Labels, fusion: LabelFusion) -> list[str]:
    """Compare the first half of each annotator's votes on each class with the second.

    In large crowds a sample of annotators is compared: only the share of differing rates counts.
    """
    every = min(len(labels) // _COMPARED, len(labels.annotators) // _MIN_COMPARED)
    if every > 1:
        labels = labels.subset(labels.annotator % every == 0)
    assert labels.meaning is not None
    order, classes = labels.in_time(), len(labels.classes)
    annotator = labels.annotator[order].astype(np.int64)
    fused = fusion.label()[labels.task[order]]
    right = labels.meaning[labels.label[order]] == fused
    cell = annotator * classes + fused
    by_cell = np.argsort(cell, kind="stable")
    cells = len(labels.annotators) * classes
    many = np.bincount(cell, minlength=cells)
    start = np.cumsum(many) - many
    late = np.arange(len(cell)) - start[cell[by_cell]] >= many[cell[by_cell]] / 2
    both = cell[by_cell] * 2 + late
    count = np.bincount(both, minlength=2 * cells).reshape(cells, 2)
    hits = np.bincount(both, right[by_cell], minlength=2 * cells).reshape(cells, 2)
    least, votes = _RATES
    tried = count.min(axis=1) >= votes
    count, hits = count[tried], hits[tried]
    share = hits.sum(axis=1) / count.sum(axis=1)
    varying = (share > 0) & (share < 1)
    count, hits, share = count[varying], hits[varying], share[varying]
    error = np.sqrt(share * (1 - share) * (1 / count).sum(axis=1))
    beyond, often = _CHANGED
    changed = np.abs(hits[:, 1] / count[:, 1] - hits[:, 0] / count[:, 0]) > beyond * error
    if len(changed) < least or changed.mean() < often:
        return []
    remedy = "Use the dynamic model"
    if len(labels.classes) == 2 and fusion.known.max(initial=OPEN) == OPEN:
        remedy += " and import the truth of some tasks: with two classes it can fail without them"
    return [
        f"Annotators change: {percent(changed.mean())} of their rates of right votes differ between the first"
        f" and the second half of their votes, far beyond chance, but the model assumes fixed rates."
        f" {remedy}."
    ]
