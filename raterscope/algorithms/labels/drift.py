"""Drift of confusion matrices: rows over time and their change points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import beta_interval
from raterscope.algorithms.labels.crowd_votes import LastAnswers
from raterscope.algorithms.labels.data import (
    Confusion,
    Drift,
    FloatArray,
    LabelFusion,
    Labels,
)
from raterscope.algorithms.labels.rates import (
    label_doubt,
    power_derivative,
    smoothed_posterior,
)

RIGHT = -1
"""Value in place of a class if the annotator's accuracy changed."""

_EVIDENCE = log(100.0)
"""Minimum log Bayes factor of a change; decisive evidence in the terms of Kass and Raftery."""

_MIN_VOTES = 5.0
"""Minimum expected votes on tasks of the class before and after a change."""

_JEFFREYS = 0.5
"""Pseudo-count of every output in comparisons of the votes before and after a change."""

_NOISE = 2.0
"""Number of standard deviations of a difference that are attributed to chance."""

_SEEN = 1e-3
"""Minimum probability of a class for a vote to count in the class's row."""


@dataclass(frozen=True, eq=False)
class RowsOverTime:
    """One annotator's confusion matrix after each of S votes."""

    # mean, low, high: (S, J, L): expected probabilities, and the ends of their credible intervals
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class ChangePoint:
    """Change point of a row of a confusion matrix, valid until the next one."""

    step: int  # the annotator's first vote of the new row, from 0
    true: int  # the class of the row, or `RIGHT`
    size: float  # total variation distance between the rows before and after, 0 to 1
    evidence: float  # natural logarithm of the Bayes factor for a change
    # before, after: (L,): the rows, by the votes since the previous change point and until the next one
    before: FloatArray
    after: FloatArray

    def in_words(self, outputs: tuple[str, ...]) -> str:
        """Describe what changed the most: "says cat less often, 0.90 before and 0.20 after"."""
        most = int(np.abs(self.after - self.before).argmax())
        direction = "more" if self.after[most] > self.before[most] else "less"
        before, after = self.before[most], self.after[most]
        return f"says {outputs[most]} {direction} often, {before:.2f} before and {after:.2f} after"


def row_over_time(
    drift: Drift, labels: Labels, fusion: LabelFusion, annotator: int, level: float = 0.95
) -> RowsOverTime:
    """Return an annotator's confusion matrix after each vote, with credible intervals.

    An entry of a row has a Beta distribution. Its variance includes the uncertainty of the tasks' classes, as
    in `Rates.interval`, for the number of votes that the model counts at that step. With less than one vote
    for a label the interval begins at 0; with less than one vote for the other labels it ends at 1.

    `fusion`: its probabilities weight the votes. `level`: probability of the interval.
    """
    alpha = drift.alpha[drift.steps(annotator)]
    changed = np.ones(len(alpha), dtype=bool)  # most votes change nothing
    changed[1:] = (alpha[1:] != alpha[:-1]).any(axis=(1, 2))
    segment = np.cumsum(changed) - 1
    alpha = alpha[changed].astype(np.float64)
    total = alpha.sum(axis=2, keepdims=True)
    mean = alpha / total
    counts, doubt, shift = _doubtful_counts(drift, labels, fusion, annotator)
    counted = total - fusion.confusion.prior.sum(axis=1, keepdims=True)
    kept = np.clip(counted / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9), 0.0, 1.0)
    spread = label_doubt(mean, doubt * kept, shift * kept)
    possible = mean * (1 - mean)
    variance = np.minimum(possible / (total + 1) + spread / np.square(total), 0.99 * possible)
    strength = np.divide(possible, variance, out=total + np.ones_like(mean), where=variance > 0) - 1
    low, high = beta_interval(mean * strength, (1 - mean) * strength, level)
    low = np.where(mean * total < 1, 0.0, low)
    high = np.where((1 - mean) * total < 1, 1.0, high)
    return RowsOverTime(mean[segment], low[segment], high[segment])


def _doubtful_counts(
    drift: Drift, labels: Labels, fusion: LabelFusion, annotator: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count an annotator's votes by class, with variance and derivative as in `Rates`: three (J, L)."""
    known = replace(labels, known=fusion.known)
    chance = _CHANCE.find(labels, fusion.posterior, lambda: smoothed_posterior(known, fusion.posterior))
    votes = drift.vote[drift.steps(annotator)]
    task, label = labels.task[votes], labels.label[votes]
    given = (label[:, None] == np.arange(len(labels.outputs))).astype(np.float64)
    own = chance[task]
    return fusion.posterior[task].T @ given, (own * (1 - own)).T @ given, power_derivative(own).T @ given


_CHANCE: LastAnswers[FloatArray] = LastAnswers()
"""Cache for the window and the report, which draw several annotators."""


def align_rows(drift: Drift, labels: Labels, fusion: LabelFusion, annotator: int) -> FloatArray:
    """Count an annotator's votes so far by the expected class of the task, (S, J) after each of S votes.

    Rows of several classes are comparable at steps with equal numbers.
    """
    tasks = labels.task[drift.vote[drift.steps(annotator)]]
    return np.asarray(fusion.posterior[tasks].cumsum(axis=0))


def confusion_at(fusion: LabelFusion, share: float) -> Confusion:
    """Return every annotator's confusion matrix at a moment.

    `fusion`: result of a dynamic model.
    `share`: the moment as a share of each annotator's own history, 0 to 1.
    Annotators without votes have the prior. Raises `ValueError` without a drift.
    """
    drift, prior = fusion.drift, fusion.confusion.prior
    if drift is None:
        raise ValueError(f"{fusion.algorithm} has no drift")
    many = np.diff(drift.start)
    step = np.rint(share * np.maximum(many - 1, 0)).astype(np.int64)
    alpha = np.broadcast_to(prior, (len(many), *prior.shape)).copy()
    present = many > 0
    alpha[present] = drift.alpha[(drift.start[:-1] + step)[present]]
    return Confusion(alpha, prior)


def change_points(
    drift: Drift, labels: Labels, fusion: LabelFusion, annotator: int
) -> tuple[ChangePoint, ...]:
    """Find permanent changes of an annotator's rows beyond chance, in the order of the steps.

    A row's votes, weighted by the probability that the task is of the class, are compared before and after
    every step: the Bayes factor is the marginal likelihood of two rows, averaged over the steps, against that
    of one row, both with Jeffreys' Dirichlet prior. With a Bayes factor of at least 100 ([kass1995]_:
    decisive) the row changed at the most probable step, and both parts are searched in the same way (binary
    segmentation: [scott1974]_). Without a change, such a factor occurs at most once in a hundred cases
    (Markov's inequality), for any length. A gradual drift appears as one or several steps.

    `fusion`: its probabilities weight the votes.

    References
    ----------
    .. [kass1995] R. E. Kass and A. E. Raftery, "Bayes factors", Journal of the American Statistical
       Association 90 (1995) 773-795, doi:10.1080/01621459.1995.10476572.
    .. [scott1974] A. J. Scott and M. Knott, "A cluster analysis method for grouping means in the analysis
       of variance", Biometrics 30 (1974) 507-512, doi:10.2307/2529204.
    """
    votes = drift.vote[drift.steps(annotator)]
    posterior = fusion.posterior[labels.task[votes]]
    label = labels.label[votes]
    changes: list[ChangePoint] = []
    for true in range(posterior.shape[1]):
        seen = np.flatnonzero(posterior[:, true] >= _SEEN)
        weights = np.zeros((len(seen), len(labels.outputs)))
        weights[np.arange(len(seen)), label[seen]] = posterior[seen, true]
        changes += _changes(weights, seen, true)
    return tuple(sorted(changes, key=lambda change: (change.step, change.true)))


def _changes(weights: FloatArray, steps: NDArray[np.int64], true: int) -> list[ChangePoint]:
    """Split weighted votes (S, L) at the steps where their distribution changed."""
    counts = np.concatenate([np.zeros((1, weights.shape[1])), weights.cumsum(axis=0)])
    split = sorted(_split(counts, 0, len(weights)))
    bounds = [0, *(step for step, _ in split), len(weights)]
    rows = [_rates(counts[b] - counts[a]) for a, b in pairwise(bounds)]
    return [
        ChangePoint(int(steps[step]), true, float(np.abs(after - before).sum() / 2), evidence, before, after)
        for (step, evidence), (before, after) in zip(split, pairwise(rows), strict=True)
    ]


def _split(counts: FloatArray, first: int, last: int) -> Iterator[tuple[int, float]]:
    """Return the splits of votes `first` to `last`, with evidence; `counts` are sums before each vote."""
    from scipy.special import logsumexp

    waiting = [(first, last)]
    while waiting:
        first, last = waiting.pop()
        total = counts[first : last + 1].sum(axis=1) - counts[first].sum()
        low = first + int(np.searchsorted(total, _MIN_VOTES))
        high = first + int(np.searchsorted(total, total[-1] - _MIN_VOTES, side="right"))
        if low >= high:
            continue
        factor = (
            _marginal(counts[low:high] - counts[first])
            + _marginal(counts[last] - counts[low:high])
            - _marginal(counts[last] - counts[first])
        )
        evidence = float(logsumexp(factor) - log(len(factor)))
        if evidence > _EVIDENCE:
            step = low + int(factor.argmax())
            yield step, evidence
            waiting += [(first, step), (step, last)]


def _marginal(counts: FloatArray) -> FloatArray:
    """Return the logarithm of the marginal likelihood of (..., L) counts under Jeffreys' prior."""
    from scipy.special import gammaln

    outputs = counts.shape[-1]
    counts = np.maximum(counts, 0.0)  # differences of sums
    evidence = gammaln(counts + _JEFFREYS).sum(axis=-1) - outputs * gammaln(_JEFFREYS)
    return np.asarray(
        evidence + gammaln(outputs * _JEFFREYS) - gammaln(counts.sum(axis=-1) + outputs * _JEFFREYS)
    )


def _rates(counts: FloatArray) -> FloatArray:
    counts = np.maximum(counts, 0.0) + _JEFFREYS
    return np.asarray(counts / counts.sum())


def row_movement(drift: Drift, labels: Labels, fusion: LabelFusion) -> FloatArray:
    """Measure the movement of each annotator's rows, for sorting annotators.

    It is the largest total variation distance, over classes, between the row of the first third of the votes
    on the class and that of the last third, minus two standard deviations of each probability.

    The result, (K,), lies from 0 to 1; it is 0 for annotators without movement beyond chance, or with too few
    votes.
    """
    largest = np.zeros(len(labels.annotators))
    for counts in _thirds(drift, labels, fusion):
        rates, overall, many = _compare_thirds(counts)
        chance = np.sqrt(overall * (1 - overall) * (1 / (many[:, :1] + 1) + 1 / (many[:, 2:] + 1)))
        beyond = np.maximum(np.abs(rates[:, 2] - rates[:, 0]) - _NOISE * chance, 0.0)
        largest = np.maximum(largest, beyond.sum(axis=1) / 2)
    return largest


def accuracy_trend(drift: Drift, labels: Labels, fusion: LabelFusion) -> FloatArray:
    """Measure the increase of each annotator's share of correct votes.

    The increase is from the first third of the votes on each class to the last third. Classes are weighted by
    their shares; the order of the tasks does not matter.

    The result, (K,), lies from -1 to 1; it is 0 without votes.
    """
    assert labels.meaning is not None
    grown = np.zeros(len(labels.annotators))
    for true, counts in enumerate(_thirds(drift, labels, fusion)):
        rates, _, _ = _compare_thirds(counts)
        right = labels.meaning == true
        grown += fusion.shares[true] * (rates[:, 2, right] - rates[:, 0, right]).sum(axis=1)
    return grown


def _thirds(drift: Drift, labels: Labels, fusion: LabelFusion) -> Iterator[FloatArray]:
    """Count, for a class, the outputs in each third of the annotators' votes on it: (K, 3, L)."""
    annotators, outputs = len(labels.annotators), len(labels.outputs)
    annotator = np.repeat(np.arange(annotators), np.diff(drift.start))
    task, label = labels.task[drift.vote], labels.label[drift.vote]
    for true in range(len(labels.classes)):
        weight = fusion.posterior[task, true]
        sofar = np.concatenate([[0.0], weight.cumsum()])
        begin, end = sofar[drift.start[:-1]], sofar[drift.start[1:]]
        middle = (sofar[:-1] + sofar[1:]) / 2 - begin[annotator]
        span = np.maximum(end - begin, 1e-12)[annotator]
        third = np.clip((3 * middle / span).astype(np.int64), 0, 2)
        cell = (annotator * 3 + third) * outputs + label
        counts = np.bincount(cell, weight, minlength=annotators * 3 * outputs)
        yield np.asarray(counts, dtype=np.float64).reshape(annotators, 3, outputs)


def _compare_thirds(counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rates by thirds, (K, 3, L), shrunk to the overall rates, (K, L); and votes, (K, 3)."""
    total = counts.sum(axis=1) + _JEFFREYS
    overall = total / total.sum(axis=1, keepdims=True)
    many = counts.sum(axis=2)
    rates = (counts + overall[:, None, :]) / (many[:, :, None] + 1)
    return rates, overall, many


def change_in_words(change: ChangePoint, fusion: LabelFusion) -> str:
    """Describe a change: "right 0.90 before and 0.20 after", or the label of a class that changed most."""
    if change.true == RIGHT:
        return f"right {change.before[0]:.2f} before and {change.after[0]:.2f} after"
    return f"of {fusion.classes[change.true]} {change.in_words(fusion.outputs)}"
