"""Fusion without a model of the annotators: majority, weighted majority, weighted sum, mean score.

Section 4 of [simpson2013]_ compares the four with its own method.

References
----------
.. [littlestone1994] N. Littlestone and M. K. Warmuth, "The weighted majority algorithm", Information and
   Computation 108 (1994) 212-261, doi:10.1006/inco.1994.1009.
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import (
    OPEN,
    FloatArray,
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    default_prior,
)
from raterscope.algorithms.labels.result import count_confusion, make_fusion
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import choice, number

_VOTES = 1_000_000
"""Number of votes between two progress reports, which limits the memory of a step."""

_ROUNDS = 20
"""Maximum number of rounds; weights may cycle."""

_TIE = 1e-12
"""Maximum difference of shares that count as equal."""


@dataclass(frozen=True)
class WeightedSettings(LabelSettings):
    """Settings of `weighted_majority` and `weighted_sum`."""

    beta: float = number(
        0.99, "Penalty", "Factor of an annotator's weight for every mistake; 1 for no penalty.",
        minimum=1e-6, maximum=1.0,
    )  # fmt: skip
    mistakes: str = choice(
        "number", "Mistakes that count", "The original rule uses their number, which penalises annotators "
        "with many votes.",
        {"number": "all", "share": "mistakes per hundred votes"},
    )  # fmt: skip


def majority(labels: Labels, settings: LabelSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Select the class of most votes (majority vote).

    `posterior` is the share of the votes; outputs that represent no class do not count. In a tie, `label` is
    the first class; a notice counts such tasks.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = majority(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.91
    """
    settings = LabelSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    posterior = shares_of_votes(labels, part(watch, 0.0, 0.9))
    trace = LabelTrace(np.empty(0), np.empty(0), converged=True)
    return _result(labels, "majority", posterior, trace, _ties(labels, posterior))


def weighted_majority(
    labels: Labels, settings: WeightedSettings | None = None, watch: Watch = silent
) -> LabelFusion:
    """Select the class with the most weight; an annotator's weight is beta to the power of mistakes.

    In each round of the original rule, the weights of all annotators who err shrink. If annotators see
    different tasks, the weight is beta to the power of each annotator's mistakes. A vote is a mistake if its
    class is not the known true class or, without known truth, has less weight than another class. This is
    repeated from equal weights until no weight changes.

    `posterior` is the share of the weight; `weight` is each annotator's weight.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = weighted_majority(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.88
    """
    settings = WeightedSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    posterior, log_weight, trace = _weigh(labels, settings, part(watch, 0.0, 0.9))
    notices = _ties(labels, posterior) + _unsettled(trace)
    return _result(labels, "weighted-majority", posterior, trace, notices, np.exp(log_weight))


def weighted_sum(
    labels: Labels, settings: WeightedSettings | None = None, watch: Watch = silent
) -> LabelFusion:
    """Average the scores with the weights of `weighted_majority`.

    `posterior` is as in `mean_score`, `weight` as in `weighted_majority`.
    """
    settings = WeightedSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    _, log_weight, trace = _weigh(labels, settings, part(watch, 0.0, 0.7))
    posterior, notices = _by_score(labels, log_weight, part(watch, 0.7, 0.9))
    notices += _unsettled(trace)
    return _result(labels, "weighted-sum", posterior, trace, notices, np.exp(log_weight))


def mean_score(labels: Labels, settings: LabelSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Average the scores of the votes on every task.

    The score of an output is its number, or its position in the order if an output is not a number. With two
    classes, the probability of the class with higher scores is the position of the mean between the smallest
    and the largest score. Three or more classes have the mean score of their outputs; the two classes next to
    the mean share the probability such that the expected score is the mean. That is valid only for ordered
    classes.
    """
    settings = LabelSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    posterior, notices = _by_score(labels, None, part(watch, 0.0, 0.9))
    trace = LabelTrace(np.empty(0), np.empty(0), converged=True)
    return _result(labels, "mean-score", posterior, trace, notices)


def shares_of_votes(labels: Labels, watch: Watch = silent) -> FloatArray:
    """Return the share of each class among the votes of every task, (N, J).

    A known task has 0 and 1; a task without votes for any class has the mean of the other tasks.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> shares_of_votes(crowd.labels)[0].round(2)
    array([0.67, 0.  , 0.33, 0.  , 0.  ])
    """
    return _shares(labels, _tally(labels, _log_weights(labels), watch))


def scores_of(outputs: tuple[str, ...]) -> tuple[FloatArray, bool]:
    """Read outputs as scores, (L,), and whether all are numbers; if not, scores are their positions."""
    try:
        scores = np.array([float(name) for name in outputs])
    except ValueError:
        scores = np.array([math.nan])
    if np.isfinite(scores).all():
        return scores, True
    return np.arange(len(outputs), dtype=np.float64), False


def _log_weights(labels: Labels, by_mistakes: FloatArray | None = None) -> FloatArray | None:
    """Return each annotator's log weight, (K,), with the weight by mistakes; None if all are equal."""
    if labels.weights is None:
        return by_mistakes
    own = np.log(labels.weights)
    return np.asarray(own if by_mistakes is None else own + by_mistakes)


def _chunks(labels: Labels, watch: Watch, text: str) -> Iterator[slice]:
    for start in range(0, len(labels), _VOTES):
        watch(start / len(labels), text)
        yield slice(start, start + _VOTES)


def _tally(labels: Labels, log_weight: FloatArray | None, watch: Watch) -> FloatArray:
    """Sum the votes or weights of each class on every task, (N, J).

    Weights are relative to the largest on the task, because beta to the power of thousands would be 0.
    """
    assert labels.meaning is not None
    tasks, classes = len(labels.tasks), len(labels.classes)
    total = np.zeros(tasks * classes)
    most = None if log_weight is None else _greatest(labels, log_weight)
    for votes in _chunks(labels, watch, "counting votes"):
        meant = labels.meaning[labels.label[votes]]
        counts = meant != OPEN
        task, annotator = labels.task[votes][counts], labels.annotator[votes][counts]
        weight = 1.0 if log_weight is None or most is None else np.exp(log_weight[annotator] - most[task])
        np.add.at(total, task.astype(np.int64) * classes + meant[counts], weight)
    return total.reshape(tasks, classes)


def _greatest(labels: Labels, log_weight: FloatArray) -> FloatArray:
    most = np.full(len(labels.tasks), -np.inf)
    for start in range(0, len(labels), _VOTES):
        votes = slice(start, start + _VOTES)
        np.maximum.at(most, labels.task[votes], log_weight[labels.annotator[votes]])
    return most


def _shares(labels: Labels, total: FloatArray) -> FloatArray:
    """Convert weights to shares; a task without votes for any class has the mean of the others."""
    row_total = total.sum(axis=1, keepdims=True)
    named = row_total[:, 0] > 0
    shares: FloatArray = np.divide(total, row_total, out=np.zeros_like(total), where=row_total > 0)
    if labels.known is not None:
        fixed = labels.known > OPEN
        shares[fixed] = np.eye(len(labels.classes))[labels.known[fixed]]
        named |= fixed
    common = shares[named].mean(axis=0) if named.any() else np.full(total.shape[1], 1 / total.shape[1])
    shares[~named] = common
    return labels.keep_to_sets(shares)


def _weigh(
    labels: Labels, settings: WeightedSettings, watch: Watch
) -> tuple[FloatArray, FloatArray, LabelTrace]:
    """Return the posterior and each annotator's log weight at the fixed point."""
    votes = labels.votes_of_annotators()
    log_weight = np.zeros(len(votes))
    posterior = shares_of_votes(labels, part(watch, 0.0, 1 / _ROUNDS))
    change: list[float] = []
    settled = False
    while not settled and len(change) < _ROUNDS:
        done = len(change) / _ROUNDS
        mistakes = _mistakes(labels, posterior, part(watch, done, done + 0.5 / _ROUNDS))
        exponent = mistakes if settings.mistakes == "number" else 100.0 * mistakes / np.maximum(votes, 1)
        before, log_weight = log_weight, exponent * math.log(settings.beta)
        settled = bool(np.array_equal(before, log_weight))
        last = posterior
        if not settled:
            tally = _tally(
                labels,
                _log_weights(labels, log_weight),
                part(watch, done + 0.5 / _ROUNDS, done + 1 / _ROUNDS),
            )
            posterior = _shares(labels, tally)
        change.append(float(np.abs(posterior - last).max(initial=0.0)))
    return posterior, log_weight, LabelTrace(np.empty(0), np.array(change), settled)


def _mistakes(labels: Labels, posterior: FloatArray, watch: Watch) -> NDArray[np.float64]:
    assert labels.meaning is not None
    mistakes = np.zeros(len(labels.annotators))
    best = posterior.max(axis=1) - _TIE
    for votes in _chunks(labels, watch, "ranking annotators"):
        meant = labels.meaning[labels.label[votes]]
        task = labels.task[votes]
        wrong = (meant != OPEN) & (posterior[task, meant] < best[task])
        mistakes += np.bincount(labels.annotator[votes], wrong, minlength=len(mistakes))
    return mistakes


def _by_score(
    labels: Labels, log_weight: FloatArray | None, watch: Watch
) -> tuple[FloatArray, tuple[str, ...]]:
    scores, numbers = scores_of(labels.outputs)
    log_weight = _log_weights(labels, log_weight)
    tasks = len(labels.tasks)
    total, weights = np.zeros(tasks), np.zeros(tasks)
    most = None if log_weight is None else _greatest(labels, log_weight)
    for votes in _chunks(labels, watch, "averaging scores"):
        task = labels.task[votes]
        if log_weight is None or most is None:
            weight: FloatArray | float = 1.0
        else:
            weight = np.exp(log_weight[labels.annotator[votes]] - most[task])
        np.add.at(weights, task, weight)
        np.add.at(total, task, weight * scores[labels.label[votes]])
    scored = weights > 0
    mean = np.divide(total, weights, out=np.zeros(tasks), where=scored)
    placed = np.zeros((tasks, len(labels.classes)))
    placed[scored] = _place_scores(labels, scores, mean[scored])
    notices = () if numbers else ("The outputs are not numbers: their order is used as their score.",)
    return _shares(labels, placed), notices


def _place_scores(labels: Labels, scores: FloatArray, mean: FloatArray) -> FloatArray:
    """Distribute the probability over the classes by the position of the mean score, (M, J)."""
    assert labels.meaning is not None
    classes = len(labels.classes)
    means_class: NDArray[np.bool_] = labels.meaning[None, :] == np.arange(classes)[:, None]
    meant = means_class.any(axis=1)
    position = np.where(meant, means_class @ scores / np.maximum(means_class.sum(axis=1), 1), np.nan)
    shares: FloatArray = np.zeros((len(mean), classes))
    if not meant.any():
        shares[:] = 1 / classes
        return shares
    points, at = np.unique(position[meant], return_inverse=True)
    if classes == 2 and len(points) == 2:
        points = np.array([scores.min(), scores.max()])
    columns = np.stack([np.interp(mean, points, row) for row in np.eye(len(points))], axis=1)
    shares[:, meant] = columns[:, at] / np.bincount(at)[at]
    return shares


def _ties(labels: Labels, posterior: FloatArray) -> tuple[str, ...]:
    best = posterior.max(axis=1, keepdims=True, initial=0.0)
    tied = ((posterior >= best - _TIE).sum(axis=1) > 1) & (labels.votes_of_tasks() > 0)
    count = int(tied.sum())
    if not count:
        return ()
    text = "1 task is tied and goes" if count == 1 else f"{count:,} tasks are tied and go"
    return (f"{text} to the class that is listed first.",)


def _unsettled(trace: LabelTrace) -> tuple[str, ...]:
    if trace.converged:
        return ()
    return (f"Did not converge in {_ROUNDS} rounds: shares still changed by up to {trace.change[-1]:.2g}.",)


def _result(
    labels: Labels,
    name: str,
    posterior: FloatArray,
    trace: LabelTrace,
    notices: tuple[str, ...],
    weight: FloatArray | None = None,
) -> LabelFusion:
    confusion = count_confusion(labels, posterior, default_prior(labels))
    return make_fusion(labels, name, posterior, confusion, trace, notices, weight=weight)
