"""Posteriors against the truth: accuracy, log loss, Brier score, ROC curves, calibration, the vote beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.evaluation import Calibration, calibration
from raterscope.algorithms.labels.data import ClassArray, FloatArray

__all__ = ["Assessment", "ClassCurve", "assess", "better_than", "mean_curve", "wilson"]

_BINS = 10
"""Of the calibration curves, of equal width."""

_TIE = 1e-9
"""Posteriors this close to each other are equal."""

_LEAST = 1e-12
"""A posterior below it counts as this in the log loss, which would be infinite at zero."""


@dataclass(frozen=True, eq=False)
class ClassCurve:
    """One class against all others.

    Attributes
    ----------
    name : str
    count : int
        Judged tasks that are of the class.
    threshold : (T,) float64
        Tasks with at least this posterior count as the class; falling, the first is infinite.
    false_positive_rate, sensitivity : (T,) float64
        NaN throughout where no judged task is of another class, or of this one.
    area : float
        Below sensitivity over the false positive rate (AUC); NaN where there is no curve.
    calibration : Calibration
        Of the class's posterior.
    """

    name: str
    count: int
    threshold: FloatArray
    false_positive_rate: FloatArray
    sensitivity: FloatArray
    area: float
    calibration: Calibration


@dataclass(frozen=True, eq=False)
class Assessment:
    """How good posteriors are on the tasks whose class is known.

    Attributes
    ----------
    classes : tuple of J names
    judged : int
        Tasks of which the truth is known.
    accuracy, accuracy_low, accuracy_high : float
        Share of judged tasks whose most probable class is the true one, and its Wilson interval of 95 %.
        Where m classes are equally probable and the true one is among them, the task counts for 1/m.
    log_loss : float
        Mean of -ln posterior of the true class, in nats.
    brier : float
        Mean over tasks of the summed squares of posterior minus truth, 0 to 2.
    area : float
        Mean of the classes' AUC, each class counting alike; NaN without two classes among the truths.
    curves : tuple of J ClassCurve
    confusion : (J, J) int64
        Judged tasks by true class (row) and most probable class (column), of equal ones the first.
    calibration : Calibration
        Of the most probable class's posterior: how often it is right. `error` is the expected calibration
        error.
    right : (judged,) float64
        1 where a judged task's most probable class is right, 0 where it is wrong, 1/m where the true class
        is one of m equally probable ones; in the tasks' order.
    """

    classes: tuple[str, ...]
    judged: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    log_loss: float
    brier: float
    area: float
    curves: tuple[ClassCurve, ...]
    confusion: NDArray[np.int64]
    calibration: Calibration
    right: FloatArray


def assess(posterior: FloatArray, truth: ClassArray, classes: tuple[str, ...]) -> Assessment | None:
    """Judge posteriors by the tasks whose class is known.

    Equally probable classes share the credit of a task, so that the order of the classes does not matter. A
    mean over classes of one-against-the-rest AUC is what the AUC of more than two classes is here; with two
    classes both are the same.

    Parameters
    ----------
    posterior : (N, J) float64
    truth : (N,) int16
        True classes, `OPEN` where not known.
    classes : tuple of J names

    Returns
    -------
    Assessment or None
        None where no truth is known.

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
    curves = tuple(_curve(name, values[:, j], true == j) for j, name in enumerate(classes))
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


def wilson(hits: float, many: int, level: float = 0.95) -> tuple[float, float]:
    """Give the Wilson score interval of a share; NaN of nothing.

    References
    ----------
    .. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
       Journal of the American Statistical Association 22 (1927) 209-212,
       doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    from scipy.special import ndtri

    if not many:
        return math.nan, math.nan
    z = float(ndtri(0.5 + level / 2))
    share = hits / many
    middle = (share + z * z / (2 * many)) / (1 + z * z / many)
    half = z * math.sqrt(share * (1 - share) / many + z * z / (4 * many * many)) / (1 + z * z / many)
    return max(0.0, middle - half), min(1.0, middle + half)


def better_than(first: Assessment, second: Assessment) -> tuple[int, int, float]:
    """Compare two judgements of the same tasks (McNemar's test, exact; a sign test where there are ties).

    Returns
    -------
    (int, int, float)
        Tasks on which the first has more credit, on which the second has more, and the two-sided p-value: how
        often chance alone would part them at least so far.

    Raises
    ------
    ValueError
        When different numbers of tasks were judged.
    """
    from scipy.special import bdtr

    if first.judged != second.judged:
        raise ValueError(f"{first.judged} and {second.judged} tasks are judged; expected the same ones.")
    ours = int(np.count_nonzero(first.right > second.right + _TIE))
    theirs = int(np.count_nonzero(second.right > first.right + _TIE))
    if ours == theirs:
        return ours, theirs, 1.0
    return ours, theirs, min(1.0, 2.0 * float(bdtr(min(ours, theirs), ours + theirs, 0.5)))


def mean_curve(
    curves: Sequence[tuple[NDArray[np.floating], NDArray[np.floating]]],
) -> tuple[FloatArray, FloatArray]:
    """Average curves vertically: at every place of any of them the mean of their heights.

    Where a curve rises or falls without going on, the mean does so too; so the area below it is the mean of
    their areas.

    References
    ----------
    .. [fawcett2006] T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27 (2006)
       861-874, doi:10.1016/j.patrec.2005.10.010.

    Parameters
    ----------
    curves : sequence of ((T,) float64, (T,) float64)
        Places, none less than the one before, from 0 to 1, and heights.

    Returns
    -------
    ((M,) float64, (M,) float64)
        Each place twice: as it is reached, and as it is left.
    """
    at = np.unique(np.concatenate([across for across, _ in curves]))
    reached, left = np.zeros(len(at)), np.zeros(len(at))
    for across, down in curves:
        first = np.minimum(np.searchsorted(across, at, "left"), len(across) - 1)
        last = np.maximum(np.searchsorted(across, at, "right") - 1, 0)
        between = np.interp(at, across, down)
        there = across[first] == at
        reached += np.where(there, down[first], between) / len(curves)
        left += np.where(there, down[last], between) / len(curves)
    return np.repeat(at, 2), np.column_stack([reached, left]).ravel()


def _curve(name: str, score: FloatArray, true: NDArray[np.bool_]) -> ClassCurve:
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    last = np.flatnonzero(np.diff(ranked, append=-np.inf))  # equal posteriors are kept together
    hits = np.concatenate([[0], np.cumsum(true[order])[last]])
    false = np.concatenate([[0], np.cumsum(~true[order])[last]])
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
