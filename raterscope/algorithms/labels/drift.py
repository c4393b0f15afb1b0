"""Drift of confusion matrices: rows over time, change points, and a test of each annotator's constancy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.statistics import beta_interval
from raterscope.algorithms.array_operations import max_rows, sum_rows
from raterscope.algorithms.labels.crowd_votes import LastAnswers
from raterscope.algorithms.labels.data import (
    IMPOSSIBLE,
    Confusion,
    Drift,
    FloatArray,
    LabelFusion,
    Labels,
)
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.rates import (
    SPREAD,
    estimate_rates,
    label_doubt,
    power_derivative,
    smoothed_posterior,
    sum_of_meant,
)
from raterscope.algorithms.progress import Watch, part, parts_of, silent
from raterscope.text import listed, percent

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


FALSE_ALARMS = 0.05
"""Share of constant annotators who are listed by chance."""

MIN_VOTES = 20
"""Minimum number of votes for testing an annotator."""

_SPLITS = np.arange(0.1, 0.901, 0.02)
"""Shares of the votes before the tested changes."""

_WEIGHTS = np.power(_SPLITS * (1 - _SPLITS), 4) / np.power(_SPLITS * (1 - _SPLITS), 4).sum()
"""Weights of the splits: changes that affect only a few votes count less."""

_FALLS, _FALLS_WEIGHT = 0.65, 8.0
"""Prior probability that a change is a fall, and its weight in changes: annotators tire more often than they
learn.
"""

_NAMED = 10
"""Maximum number of annotators named in a sentence."""

_PART, _MAX_PARTS = 100, 8
"""Votes of a part in which an annotator's accuracy may differ, and maximum number of parts."""

_ROUNDS = 5
"""Number of estimates of the parts' accuracies, each by the classes' probabilities of the one before."""

_MAX_ODDS = 2.0
"""Maximum log odds of a part relative to the annotator's mean."""

_CELLS = 1_000_000
"""Number of votes times classes in memory at a time."""

_SAMPLES = 20_000
"""Number of samples of the statistic of a constant annotator."""


@dataclass(frozen=True, eq=False)
class Constancy:
    """Results of the test for K annotators."""

    p: FloatArray  # (K,): probability of as much change by chance; NaN for annotators who are not tested
    step: NDArray[np.int64]  # (K,): the annotator's first vote after the most probable change, from 0
    # before, after: (K,): share of correct votes before and after the change, by the posterior
    before: FloatArray
    after: FloatArray

    def changed(self) -> NDArray[np.int64]:
        """Return annotators who changed at the level `FALSE_ALARMS`, the largest changes first."""
        named = np.flatnonzero(self.p < FALSE_ALARMS)  # NaN is not
        size = np.abs(self.after - self.before)[named]
        return np.asarray(named[np.lexsort((self.p[named], -size))])


def constancy(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> Constancy:
    """Test for each annotator whether the rate of correct votes is constant.

    The residual of a vote is the probability that it is correct minus the annotator's rate for that class. A
    change of the classes of the tasks is therefore not a change of the annotator. Every split of the votes in
    time gives a standardised difference z of the means; the statistic is a weighted mean of exp(z^2 / 2) over
    splits ([andrews1994]_), compared with its distribution for a Brownian bridge. Falls count nearly twice as
    much as rises; they count more if most of the other changes are falls, less if these are rises. An
    annotator's own change does not enter this weight, which keeps the rate of false alarms.

    A model of changing annotators follows each chance series of correct or wrong votes, and its classes then
    confirm a change: in simulated crowds with 3 or 5 votes on a task, for 8 to 15 % of constant annotators.
    The test therefore uses the classes by `ibcc`, as if all annotators were constant, with the same prior and
    known tasks. These become worse where many annotators do, which appears as a change of all others; the
    residuals allow for it (see `_residuals`). In crowds of 40 with 300 votes each, half of which change at
    once between 0.85 and 0.65, 4 to 9 % of the constant annotators are listed, instead of 5 to 12 %; in real
    crowds in random order 4 to 7 %. The shares of correct votes before and after are those of the fusion.

    `labels`: input of the fusion.

    References
    ----------
    .. [andrews1994] D. W. K. Andrews and W. Ploberger, "Optimal tests when a nuisance parameter is present
       only under the alternative", Econometrica 62 (1994) 1383-1414, doi:10.2307/2951753.
    """
    assert labels.meaning is not None
    posterior = _constant_posterior(labels, fusion, part(watch, 0.0, 0.4))
    order = labels.in_time()
    residual = _residuals(replace(labels, known=fusion.known), posterior, order, part(watch, 0.4, 0.5))
    meant = labels.meaning[labels.label[order]]
    right = np.where(meant >= 0, fusion.posterior[labels.task[order], meant], 0.0)
    many = labels.votes_of_annotators()
    start = np.concatenate([[0], np.cumsum(many)])
    annotators = len(many)
    p, step = np.full(annotators, np.nan), np.zeros(annotators, dtype=np.int64)
    before, after = np.full(annotators, np.nan), np.full(annotators, np.nan)
    tested = np.flatnonzero(many >= MIN_VOTES)
    z = np.zeros((len(tested), len(_SPLITS)))
    for at, annotator in enumerate(tested.tolist()):
        if at % 256 == 0:
            watch(0.5 + annotator / annotators / 2, "testing annotators for changes")
        rows = slice(start[annotator], start[annotator + 1])
        z[at], split = _differences(residual[rows])
        own = right[rows]
        step[annotator], before[annotator], after[annotator] = split, own[:split].mean(), own[split:].mean()
    if len(tested):
        p[tested] = _probabilities(z)
    return Constancy(p, step, before, after)


def _constant_posterior(labels: Labels, fusion: LabelFusion, watch: Watch) -> FloatArray:
    """Return the tasks' probabilities if no annotator changes, (N, J)."""
    if fusion.drift is None:
        return fusion.posterior

    def estimate() -> FloatArray:
        return ibcc(replace(labels, known=fusion.known, prior=fusion.confusion.prior), watch=watch).posterior

    return _CONSTANT.find(labels, fusion.posterior, estimate)


_CONSTANT: LastAnswers[FloatArray] = LastAnswers()
"""Cache for the window, files and the report, which test the same annotators."""


def _residuals(labels: Labels, posterior: FloatArray, order: NDArray[np.int64], watch: Watch) -> FloatArray:
    """Return the probability that each vote is correct minus the annotator's rate for the class, (V,).

    Where many annotators change, the probabilities by constant ones are too certain in some periods and too
    uncertain in others. The log odds of a correct vote may therefore differ between parts of an annotator's
    votes, with a variance estimated from all parts; for a vote, only those of the other annotators do.

    `posterior`: (N, J), by constant annotators. `order`: (V,), votes by annotator and time.
    """
    assert labels.meaning is not None
    classes = np.arange(len(labels.classes))
    rates = estimate_rates(labels, posterior).mean
    expected = np.minimum((rates * (labels.meaning[None, :] == classes[:, None])).sum(axis=2), 1.0)
    voter, task, meant = labels.annotator[order], labels.task[order], labels.meaning[labels.label[order]]
    votes = labels.votes_of_annotators()
    parts = np.clip(votes // _PART, 1, _MAX_PARTS)
    owner = np.repeat(np.arange(len(votes)), parts)
    rank = np.arange(len(order)) - (np.cumsum(votes) - votes)[voter]
    piece = (np.cumsum(parts) - parts)[voter] + rank * parts[voter] // votes[voter]
    weight = np.ones(len(votes)) if labels.weights is None else labels.weights
    logs = np.log(posterior, out=np.full(posterior.shape, IMPOSSIBLE), where=posterior > 0)
    odds, residual, information = np.zeros(len(owner)), np.zeros(len(order)), np.zeros(len(order))
    spans = [slice(*span) for span in parts_of(len(order), _CELLS // max(len(classes), 1))]
    for at in range(_ROUNDS):
        watch(at / _ROUNDS, "allowing for changes of the other annotators")
        total = np.log1p(expected[owner] * np.expm1(odds)[:, None])

        def change(rows: slice, odds: FloatArray = odds, total: FloatArray = total) -> FloatArray:
            right = meant[rows, None] == classes
            own = odds[piece[rows], None] * right - total[piece[rows]]
            return np.asarray(weight[voter[rows], None] * own)

        changed = logs.copy()
        for rows in spans if odds.any() else ():
            np.add.at(changed, task[rows], change(rows))
        for rows in spans:
            chance = changed[task[rows]] - change(rows)
            chance = np.exp(chance - max_rows(chance, keepdims=True))
            chance /= sum_rows(chance, keepdims=True)
            rate = expected[voter[rows]]
            right = (chance * (meant[rows, None] == classes)).sum(axis=1)
            residual[rows] = right - (chance * rate).sum(axis=1)
            information[rows] = (chance * rate * (1 - rate)).sum(axis=1) - right * (1 - right)
        odds = _part_odds(piece, owner, residual, information)
        if not odds.any():
            break
    return residual


def _part_odds(
    piece: NDArray[np.int64], owner: NDArray[np.int64], residual: FloatArray, information: FloatArray
) -> FloatArray:
    """Estimate the log odds of correct votes in parts, relative to the annotator's mean, from residuals.

    `piece`: (V,), part of each vote. `owner`: (P,), annotator of each part.
    """
    score: FloatArray = np.bincount(piece, residual, minlength=len(owner)).astype(np.float64)
    known = np.maximum(np.bincount(piece, information, minlength=len(owner)), 1e-9)
    score = score - known * (np.bincount(owner, score) / np.bincount(owner, known))[owner]
    free = 1 - 1 / np.bincount(owner)[owner]
    variance = (np.square(score) - known * free).sum() / max((np.square(known) * free).sum(), 1e-9)
    if variance <= 0:
        return np.zeros(len(owner))
    return np.asarray(np.clip(score / (known + 1 / variance), -_MAX_ODDS, _MAX_ODDS))


def _differences(values: FloatArray) -> tuple[FloatArray, int]:
    """Return the standardised differences of the means at all splits, and the split with the largest."""
    many = len(values)
    splits = np.clip(np.rint(_SPLITS * many), 1, many - 1).astype(np.int64)
    deviation = float(values.std())
    if deviation < 1e-9:
        return np.zeros(len(splits)), int(splits[len(splits) // 2])
    sums = (values - values.mean()).cumsum()[splits - 1]
    z = sums / (deviation * np.sqrt(splits * (many - splits) / many))
    return z, int(splits[np.abs(z).argmax()])


def _probabilities(z: FloatArray) -> FloatArray:
    """Return p values of differences, (n, splits), with the directions of the other annotators' changes."""
    p = _tail(z, _FALLS)
    falling = np.take_along_axis(z, np.abs(z).argmax(axis=1)[:, None], axis=1)[:, 0] > 0
    bridges = _bridges()
    by_chance = bridges[_tail(bridges, _FALLS) < FALSE_ALARMS]
    far = np.abs(by_chance).argmax(axis=1)
    share = float((by_chance[np.arange(len(far)), far] > 0).mean())
    named = p < FALSE_ALARMS
    own = np.stack([named & falling, named & ~falling])
    others = own.sum(axis=1, keepdims=True) - own
    expected = FALSE_ALARMS * len(z) * np.array([[share], [1 - share]])
    changes = np.maximum(others - expected, 0.0)
    falls = (changes[0] + _FALLS * _FALLS_WEIGHT) / (changes.sum(axis=0) + _FALLS_WEIGHT)
    for value in np.unique(np.round(falls, 3)).tolist():
        of_value = np.round(falls, 3) == value
        p[of_value] = _tail(z[of_value], value)
    return p


def _tail(z: FloatArray, falls: float) -> FloatArray:
    """Return p values of differences, (n, splits), for a prior probability that a change is a fall."""
    null = np.sort(_statistic(_bridges(), falls))
    above = len(null) - np.searchsorted(null, _statistic(z, falls), side="left")
    return np.asarray((above + 1) / (len(null) + 1))


def _statistic(z: FloatArray, falls: float) -> FloatArray:
    """Return the logarithm of the weighted mean of exp(z^2 / 2) over splits, (n, splits); z > 0 is a fall."""
    half = np.square(z) / 2
    most = half.max(axis=1, keepdims=True)
    weight = np.where(z > 0, falls, 1 - falls) * _WEIGHTS
    return np.asarray(most[:, 0] + np.log((weight * np.exp(half - most)).sum(axis=1)))


HALVES = 20
"""Minimum number of votes for comparing an annotator's halves."""


def half_change(labels: Labels, fusion: LabelFusion, watch: Watch = silent) -> FloatArray:
    """Estimate the change of each annotator's accuracy between the earlier and later votes, (K, 3).

    The result is the change with its 95 % interval, NaN with fewer than `HALVES` votes. A consensus of
    constant annotators trusts annotators who became worse too much, and counts some of their later mistakes
    as correct. The classes are therefore those of the pooled consensus in which each half is an annotator.
    The variance is the sum of that of [agresti2000]_ and, as in `Rates.interval`, of the uncertainty of the
    tasks: independent errors, and errors common to all votes, which partly cancel in a difference.

    `labels`: input of the fusion. `fusion`: its known tasks are held fixed.

    References
    ----------
    .. [agresti2000] A. Agresti and B. Caffo, "Simple and effective confidence intervals for proportions and
       differences of proportions result from adding two successes and two failures", The American
       Statistician 54 (2000) 280-288, doi:10.1080/00031305.2000.10474560.
    """
    assert labels.meaning is not None
    votes = labels.votes_of_annotators()
    change = np.full((len(votes), 3), np.nan)
    tested = np.flatnonzero(votes >= HALVES)
    if not len(tested):
        return change
    halves = _split_in_halves(replace(labels, known=fusion.known), tested)
    chance = pooled(halves, watch=part(watch, 0.0, 0.9)).posterior
    number = halves.votes_of_annotators().astype(np.float64)
    right = sum_of_meant(halves, chance)
    adjusted = (right + 1) / (number + 2)
    doubt = sum_of_meant(halves, chance * (1 - chance))
    sampled = adjusted * (1 - adjusted) / (number + 2) + doubt / np.square(number + 2)
    # derivatives of the correct votes by the power of the posterior, and by the log odds of each class
    shared: list[FloatArray] = [sum_of_meant(halves, power_derivative(chance))]
    meant = labels.meaning[labels.label]
    own = np.where(meant >= 0, chance[labels.task, meant], 0.0)
    for true in range(len(labels.classes)):
        of_class = own * ((meant == true) - chance[labels.task, true])
        derivative = np.bincount(halves.annotator, of_class, minlength=len(number))
        shared.append(np.asarray(derivative, dtype=np.float64))
    early, late = tested, np.arange(len(votes), len(number))
    variance = sampled[early] + sampled[late]
    for change_of_right in shared:
        change_of_right /= number + 2
        variance += np.square(SPREAD * (change_of_right[late] - change_of_right[early]))
    middle, deviation = adjusted[late] - adjusted[early], 1.96 * np.sqrt(variance)
    share = right / np.maximum(number, 1)
    change[tested] = np.stack([share[late] - share[early], middle - deviation, middle + deviation], axis=1)
    return change


def _split_in_halves(labels: Labels, annotators: NDArray[np.int64]) -> Labels:
    """Assign the later half of the votes of some annotators to additional annotators, in the same order."""
    order = labels.in_time()
    order = order[np.argsort(labels.annotator[order], kind="stable")]
    voter, votes = labels.annotator[order], labels.votes_of_annotators()
    number = np.full(len(votes), -1)
    number[annotators] = len(votes) + np.arange(len(annotators))
    rank = np.arange(len(order)) - (np.cumsum(votes) - votes)[voter]
    is_late = (number[voter] >= 0) & (rank >= votes[voter] // 2)
    annotator = labels.annotator.copy()
    annotator[order[is_late]] = number[voter[is_late]]
    names = tuple(f"{labels.annotators[k]}, later" for k in annotators.tolist())
    weights = labels.weights
    if weights is not None:
        weights = np.concatenate([weights, weights[annotators]])
    return replace(labels, annotator=annotator, annotators=(*labels.annotators, *names), weights=weights)


def main_change(tested: Constancy, labels: Labels, fusion: LabelFusion, annotator: int) -> ChangePoint:
    """Return the main change of an annotator: of a row, with decisive evidence, or of the accuracy."""
    right = np.array([tested.before[annotator], 1 - tested.before[annotator]])
    after = np.array([tested.after[annotator], 1 - tested.after[annotator]])
    overall = ChangePoint(
        int(tested.step[annotator]), RIGHT, float(np.abs(after - right).sum() / 2), 0.0, right, after
    )
    if fusion.drift is None:
        return overall
    rows = change_points(fusion.drift, labels, fusion, annotator)
    return max((overall, *rows), key=lambda change: (change.size, change.true))


def changes_in_words(results: Constancy, labels: Labels, fusion: LabelFusion) -> tuple[str, ...]:
    """Name the annotators who changed, in a sentence; empty without any."""
    named = results.changed()
    if not len(named):
        return ()
    tested = int(np.isfinite(results.p).sum())
    words = [labels.annotators[k] for k in named.tolist()]
    for at, k in enumerate(named[:_NAMED].tolist()):
        change = main_change(results, labels, fusion, k)
        words[at] += f" (vote {change.step + 1:,}: {change_in_words(change, fusion)})"
    return (
        f"{len(named):,} of {tested:,} annotators changed during their votes (p < {FALSE_ALARMS:g} each, so"
        f" that {percent(FALSE_ALARMS)} of those who did not change are listed too):"
        f" {listed(words, _NAMED)}.",
    )


def change_in_words(change: ChangePoint, fusion: LabelFusion) -> str:
    """Describe a change: "right 0.90 before and 0.20 after", or the label of a class that changed most."""
    if change.true == RIGHT:
        return f"right {change.before[0]:.2f} before and {change.after[0]:.2f} after"
    return f"of {fusion.classes[change.true]} {change.in_words(fusion.outputs)}"


@cache
def _bridges() -> FloatArray:
    """Return differences of samples of Brownian bridges, (samples, splits)."""
    rng = np.random.default_rng(0)
    gaps = np.diff(np.concatenate([[0.0], _SPLITS, [1.0]]))
    walk = (rng.standard_normal((_SAMPLES, len(gaps))) * np.sqrt(gaps)).cumsum(axis=1)
    bridge = walk[:, :-1] - walk[:, -1:] * _SPLITS
    return np.asarray(bridge / np.sqrt(_SPLITS * (1 - _SPLITS)))
