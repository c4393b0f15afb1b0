"""Test of each annotator's constancy: whether the rate of correct votes changes over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import max_rows, sum_rows
from raterscope.algorithms.labels.crowd_votes import LastAnswers
from raterscope.algorithms.labels.data import IMPOSSIBLE, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import RIGHT, ChangePoint, change_in_words, change_points
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.rates import SPREAD, estimate_rates, power_derivative, sum_of_meant
from raterscope.algorithms.progress import Watch, part, parts_of, silent
from raterscope.text import listed, percent

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


@cache
def _bridges() -> FloatArray:
    """Return differences of samples of Brownian bridges, (samples, splits)."""
    rng = np.random.default_rng(0)
    gaps = np.diff(np.concatenate([[0.0], _SPLITS, [1.0]]))
    walk = (rng.standard_normal((_SAMPLES, len(gaps))) * np.sqrt(gaps)).cumsum(axis=1)
    bridge = walk[:, :-1] - walk[:, -1:] * _SPLITS
    return np.asarray(bridge / np.sqrt(_SPLITS * (1 - _SPLITS)))


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
    together = ""
    if 2 * len(named) > tested > 2:
        together = " As most changed, their tasks may have become harder or easier instead."
    return (
        f"{len(named):,} of {tested:,} annotators changed during their votes (p < {FALSE_ALARMS:g} each, so"
        f" that {percent(FALSE_ALARMS)} of those who did not change are listed too):"
        f" {listed(words, _NAMED)}.{together}",
    )
