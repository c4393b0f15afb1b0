"""Hierarchical Dawid-Skene model: annotators' rates with priors estimated from the crowd.

Row j of annotator k's confusion matrix is Dirichlet distributed with mean B_kj and strength c. The mean
follows from the annotator's skill, the class's accuracy and the crowd's and the annotator's own wrong
labels; the distribution of skills, c and the classes' shares are estimated from the crowd (empirical
Bayes).

References
----------
.. [paun2018] S. Paun, B. Carpenter, J. Chamberlain, D. Hovy, U. Kruschwitz and M. Poesio, "Comparing
   Bayesian models of annotation", Transactions of the Association for Computational Linguistics 6 (2018)
   571-585, doi:10.1162/tacl_a_00040.
.. [asuncion2009] A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, "On smoothing and inference for topic
   models", Proceedings of the 25th Conference on Uncertainty in Artificial Intelligence (2009) 27-34 (the
   collapsed updates, each vote's own contribution removed).
.. [kish1965] L. Kish, "Survey sampling", Wiley (1965) (design effect).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import sum_rows
from raterscope.algorithms.labels.crowd_votes import (
    TERMS,
    Crowd,
    count_each_pair,
    count_votes_of,
    run_by_part,
    task_spans,
)
from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelTrace
from raterscope.algorithms.labels.ordinal import FREE_ROUNDS, OrdinalAnnotators
from raterscope.algorithms.progress import Check, Watch, no_check, part, parts_of, run_parts

_MIN_ITERATIONS_OF_LARGE = 3
"""Minimum number of rounds over all tasks of a large crowd."""

_MIN_ROUNDS = 13
_STRENGTH_ROUNDS = (2, 5, 10, 20, 30)
_GRADE_ROUNDS = (1, 2, 3, 4, 6, 9, 12, 16, 20, 25, 35, 50)
_SKILL_ROUNDS = (1, 2, 3, 4, 5, 7, 10, 13, 16, 20, 25, 30, 40, 50)

_DEPARTURE = 0.4
"""Minimum loss of correct votes for a fit that has departed from the votes, relative to the square of their
share beyond chance.

With few votes, or votes hardly better than chance, a fit drifts to classes by which most votes are wrong,
while its likelihood still grows. Fits to ten public crowds lose less; fits to only two or three votes per
task of these crowds lose more."""

_BETTER = 0.02
"""Minimum gain in log likelihood for a fit to depart from the votes, per task and class; each vote is
predicted from the other votes on its task.

The gain is larger if most annotators give one answer to everything, because careful annotators then agree. It
is smaller in weak crowds, where the fit only adapts the classes to the votes."""

_USUAL = (8.0, 1.5)
"""Prior median of a strength, in votes, and standard deviation of its logarithm."""

_STRENGTHS = 2.0 ** np.arange(-1.0, 10.75, 0.5)
_MEANS = np.linspace(-0.9, 0.9, 7)
"""Grid of mean skills: distance from the mean share of correct votes, in logits."""

_CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0])

_PRIOR_ENTRIES = 200_000
_PRIOR_ANNOTATORS = 4_000
"""Maximum numbers of entries and of annotators for estimating the crowd's priors."""

_CORRELATION_TERMS = 1_000_000
"""Maximum number of votes times classes for estimating the correlation."""

_CLASS_WEIGHT = 10.0
"""Weight of the crowd's accuracy in that of a class, in votes."""

_SHARE_WEIGHT = 20.0
"""Maximum weight of the votes' shares in the shares of the classes, in tasks; at most as many as there are.

Shares and accuracies of the classes confirm each other: with few votes on each task, or votes hardly better
than chance, a fit drifts to a common class that is not there.
"""

_CONFUSION_WEIGHT = 10.0
"""Weight of the crowd's confusions against an annotator's own wrong labels, in votes."""

_USE_WEIGHT = 5.0
"""Weight of the use of labels against the crowd's wrong labels, in votes for each class."""

_ACCURACIES = (0.2, 0.05, 0.995)
"""Minimum accuracy times the number of classes; minimum for two classes; maximum."""

FLOOR = 1e-4
"""Minimum probability, against rounding errors and logarithms of zero."""


@dataclass(eq=False)
class Fit:
    """Rates of a model: prior mean and strength, expected counts, and parameters of the crowd."""

    counts: FloatArray  # (P, J): expected votes of each pair of annotator and output, by class
    rows: FloatArray  # (K, J): their sums over outputs
    base: NDArray[np.float32]  # (P, J): prior mean of the rates
    strength: float  # weight of the prior mean, in votes
    skill: tuple[float, float]  # tuple of two floats: the crowd's mean skill, and its weight in votes
    shares: FloatArray  # (J,)
    accuracy: FloatArray  # (K, J): prior mean of the sum over the outputs of a class
    # right, wrong: (L, J): the crowd's shares of the outputs that represent a class, and of the other outputs
    right: FloatArray
    wrong: FloatArray
    ordinal: OrdinalAnnotators | None = None  # for ordered classes, in place of the accuracies and shares

    def tables(self, crowd: Crowd, dtype: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return numerators (P, J) and denominators (K, J) of the expected rates."""
        from raterscope.algorithms.labels._pooled_kernels import weigh_pairs

        above, below = (np.empty(t.shape, dtype or crowd.dtype) for t in (self.counts, self.rows))
        weigh_pairs(crowd.begin, self.base, self.strength, self.counts, self.rows, above, below)
        return above, below

    def rates(self, crowd: Crowd) -> FloatArray:
        """Return the expected probabilities of all outputs, (K, L, J)."""
        base = np.zeros((len(self.rows), *crowd.means_class.shape))
        if crowd.prior is not None:
            base[:] = (crowd.prior / crowd.prior.sum(axis=1, keepdims=True)).T
        elif self.ordinal is not None:
            base[:] = self.ordinal.rates()
        else:
            own = np.zeros(base.shape[:2])
            own[crowd.owner, crowd.output] = (self.counts * ~crowd.means_class[crowd.output]).sum(axis=1)
            mistakes = np.where(crowd.means_class, 0.0, _CONFUSION_WEIGHT * self.wrong + own[:, :, None])
            mistakes /= np.maximum(mistakes.sum(axis=1, keepdims=True), FLOOR)
            base = np.where(
                crowd.means_class,
                self.right * self.accuracy[:, None],
                mistakes * (1 - self.accuracy[:, None]),
            )
        base *= self.strength
        base[crowd.owner, crowd.output] += self.counts
        return np.asarray(base / base.sum(axis=1, keepdims=True))


def dawid_skene(
    crowd: Crowd,
    posterior: FloatArray,
    by_class: bool,
    iterations: int,
    tolerance: float,
    watch: Watch,
    show: Callable[[FloatArray], object] | None = None,
    like: Fit | None = None,
    *,
    anchored: bool = False,
) -> tuple[Fit, LabelTrace]:
    """Fit the hierarchical model without tempering.

    In a large crowd, a part of the tasks is fitted first, unless the posterior is that of a similar fit.

    `posterior`: (N, J) floating, initial posterior; overwritten.
    `by_class`: estimate an accuracy for each class.
    `tolerance`: limit of the change of a task's probabilities, summed over the classes and averaged over the
        tasks.
    `show`: makes a partial result from a posterior.
    `like`: similar fit; used with a large crowd.
    `anchored`: return to a fit near the votes unless departing from them gains enough likelihood; not needed
    with a prior of the question.
    """
    anchored &= crowd.prior is None
    text = "fitting hierarchical Dawid-Skene" + ("" if by_class else ", one skill an annotator")
    fit = _Rounds(crowd, by_class, text, anchored)
    if not crowd.large:
        counts = count_votes_of(crowd, posterior, partial(watch, 0.0, text))
        return fit.run(posterior, counts, (_MIN_ROUNDS, iterations), tolerance, watch, show)
    if like is not None:
        counts = count_votes_of(crowd, posterior, partial(watch, 0.0, text))
        fit = _Rounds(crowd, by_class, text, anchored, like)
    else:
        step = part(watch, 0.0, 0.3)
        some, tasks = crowd.sample()
        first = posterior[tasks]
        counts = count_votes_of(some, first, partial(step, 0.0, text))
        like, _ = _Rounds(some, by_class, text, anchored).run(
            first, counts, (_MIN_ROUNDS,) * 2, tolerance, step
        )
        posterior[np.diff(crowd.start) > 0] = 0.0  # the others contribute nothing to these rates yet
        posterior[tasks] = first
        fit.expect(like, posterior, counts, part(watch, 0.3, 0.35))
        fit = _Rounds(crowd, by_class, text, anchored, like)
    least = min(_MIN_ITERATIONS_OF_LARGE, iterations)
    return fit.run(posterior, counts, (least, iterations), tolerance, part(watch, 0.35, 1.0), show)


class _Rounds:
    """Rounds of a fit, each over all tasks of a crowd.

    `text`: text of the progress report. `like`: fit to start from.
    """

    def __init__(
        self, crowd: Crowd, by_class: bool, text: str, anchored: bool, like: Fit | None = None
    ) -> None:
        self.crowd, self.by_class, self.text, self.anchored = crowd, by_class, text, anchored
        self.fit = empty_fit(crowd, like)
        self._active = crowd.active.astype(crowd.dtype)
        self._tasks = max(1, int(crowd.active.sum()))
        self._use = crowd.use @ crowd.means_class  # share of each class among the votes

    def run(
        self,
        posterior: FloatArray,
        counts: FloatArray,
        rounds: tuple[int, int],
        tolerance: float,
        watch: Watch,
        show: Callable[[FloatArray], object] | None = None,
    ) -> tuple[Fit, LabelTrace]:
        """Update rates and tasks in turn, with a minimum and a maximum number of rounds.

        An anchored fit that departed from the votes ends with the posterior that agreed best with them,
        unless votes predict each other much worse with it.
        """
        crowd, fit = self.crowd, self.fit
        changes: list[float] = []
        chance, most, agreed = 1 / posterior.shape[1], 0.0, 0.0
        former = np.zeros(counts.shape)  # those of the fit, while others are counted
        nearest = np.empty_like(posterior if self.anchored else posterior[:0])
        draft = None if show is None else lambda: show(posterior)
        converged = False
        for turn in range(1, rounds[1] + 1):
            done = (turn - 1) / rounds[1]
            watch(done, self.text, partial=draft)
            fit.counts = counts[0]
            agreed = estimate_priors(
                crowd, fit, counts, self.by_class, turn, turn in _STRENGTH_ROUNDS, watch, done
            )  # fmt: skip
            if self.anchored and agreed > most:
                most, nearest[:] = agreed, posterior
            self._finish(posterior, counts)
            counts, former = former, counts
            mean, largest = self.expect(fit, posterior, counts, part(watch, done, done))
            changes.append(largest)
            converged = turn >= rounds[0] and mean < tolerance
            if converged:
                break
        if self.anchored and _departed(most, agreed, chance):
            self._compare(nearest, posterior, part(watch, 1.0, 1.0))
        return self.fit, LabelTrace(np.empty(0), np.array(changes), converged=converged)

    def _compare(self, nearest: FloatArray, posterior: FloatArray, watch: Watch) -> None:
        """Keep the fit with this posterior, or restore the fit with the posterior nearest to the votes."""
        crowd, near = self.crowd, _Rounds(self.crowd, self.by_class, self.text, anchored=False)
        gain = predictive_scores(crowd, self.fit, posterior, _CORRELATIONS, watch).max()
        near_counts = count_votes_of(crowd, nearest, partial(watch, 1.0, self.text))
        near.fit.counts = near_counts[0]
        estimate_priors(crowd, near.fit, near_counts, self.by_class, 1, True, watch, 1.0)
        near._finish(nearest, near_counts)
        gain -= predictive_scores(crowd, near.fit, nearest, _CORRELATIONS, watch).max()
        classes = posterior.shape[1]
        if gain <= _BETTER * classes * len(_thinned(crowd, classes)):
            posterior[:], self.fit = nearest, near.fit

    def _finish(self, posterior: FloatArray, counts: FloatArray) -> None:
        """Store the counts and the classes' shares in the fit."""
        self.fit.counts = counts[0]
        self.fit.shares = (self._active @ posterior).astype(np.float64) + 1.0
        self.fit.shares += min(_SHARE_WEIGHT, self._tasks) * self._use
        self.fit.shares /= self.fit.shares.sum()

    def expect(
        self, fit: Fit, posterior: FloatArray, counts: FloatArray, watch: Watch
    ) -> tuple[float, float]:
        """Update the tasks by a fit's rates, and the counts, (S, P, J); return mean and largest change."""
        from raterscope.algorithms.labels._pooled_kernels import expect

        crowd, model = self.crowd, fit.tables(self.crowd)
        if not crowd.by_pair:
            counts[:] = 0.0

        def update(at: int, first: int, last: int) -> list[tuple[float, float]]:
            return [
                expect(
                    low, high, crowd.by_task, crowd.known, model, shares, posterior,
                    None if crowd.by_pair else counts[at], crowd.each_class, crowd.weights,
                )
                for low, high, shares in crowd.split(first, last, fit.shares)
            ]  # fmt: skip

        report = partial(watch, 0.0, self.text)
        spans = run_by_part(crowd.parts, update, report)
        if crowd.by_pair:
            count_each_pair(crowd, posterior, counts[0], report)
        updated = list(chain.from_iterable(spans))
        mean = sum(change for change, _ in updated) / self._tasks
        crowd.weigh(counts)
        return mean, max((change for _, change in updated), default=0.0)


def _departed(most: float, agreed: float, chance: float) -> bool:
    """Return whether many fewer votes are correct by a fit than before; arguments are shares of the votes."""
    return (most - agreed) * (1 - chance) > _DEPARTURE * (most - chance) ** 2 and most > chance


def empty_fit(crowd: Crowd, like: Fit | None = None) -> Fit:
    """Allocate the tables of a model; strength and skill have default values, or those of another model."""
    outputs, classes = crowd.means_class.shape
    rows, by_output = np.zeros((len(crowd.votes), classes)), np.zeros((outputs, classes))
    pairs = len(crowd.owner), classes
    annotators = None if crowd.ordinal is None else OrdinalAnnotators.begin(crowd.ordinal, len(rows))
    return Fit(
        np.zeros(pairs), rows, np.zeros(pairs, dtype=np.float32),
        _USUAL[0] if like is None else like.strength, (0.7, _USUAL[0]) if like is None else like.skill,
        np.full(classes, 1 / classes), rows, by_output, by_output, annotators,
    )  # fmt: skip


def estimate_priors(
    crowd: Crowd,
    fit: Fit,
    counts: FloatArray,
    by_class: bool,
    turn: int,
    strengthen: bool,
    watch: Watch,
    done: float,
) -> float:
    """Estimate the crowd's priors from the counts: skill, class accuracies, confusions, strength.

    `counts` are in parts (S, P, J); their sum is written to the first. Returns the share of correct votes.
    """
    from raterscope.algorithms.labels._pooled_kernels import fill_base, sum_pairs

    outputs, classes = crowd.means_class.shape
    pairs = crowd.begin, crowd.output, crowd.meaning
    right, total = np.empty((2, len(crowd.votes), classes))
    own, together = np.empty(len(crowd.owner)), np.zeros((outputs, classes))
    sum_pairs(0, len(crowd.votes), *pairs, counts, fit.rows, right, own, together)
    agreed = float(right.sum() / max(fit.rows.sum(), FLOOR))
    if crowd.prior is not None:
        shares = crowd.prior / crowd.prior.sum(axis=1, keepdims=True)
        fit.base[:] = shares.T[crowd.output]
        fit.strength = float(crowd.prior.sum(axis=1).mean())
        return agreed
    if fit.ordinal is not None:
        if turn in _GRADE_ROUNDS:
            watch(done, "estimating the annotators' use of the grades")
            fit.ordinal.estimate(crowd.owner, crowd.output, fit.counts, crowd.votes)
            fit.ordinal.fill(crowd.owner, crowd.output, fit.base)
        if strengthen and turn > FREE_ROUNDS:
            fit.strength = _strength(crowd, fit, watch, done)
        return agreed
    hits = sum_rows(right)
    if turn in _SKILL_ROUNDS:
        watch(done, "estimating the crowd's skill")
        fit.skill = skill_distribution(hits, crowd.votes, fit.skill[1])
    mean, strength = fit.skill
    skill = (strength * mean + hits) / (strength + crowd.votes)
    accuracy = np.repeat(skill[:, None], classes, axis=1)
    if by_class:
        weight = fit.rows.sum(axis=0)
        of_class = (right.sum(axis=0) + _CLASS_WEIGHT * mean) / (weight + _CLASS_WEIGHT)
        overall = float(of_class @ weight / weight.sum()) if weight.sum() > 0 else mean
        shift = _logit(of_class) - float(_logit(np.array(overall)))
        accuracy = 1.0 / (1.0 + np.exp(-(_logit(skill)[:, None] + shift)))
    least = _ACCURACIES[1] if classes == 2 else _ACCURACIES[0] / classes
    np.clip(accuracy, least, _ACCURACIES[2], out=accuracy)
    accuracy[:, crowd.means_class.all(axis=0)] = 1.0
    accuracy[:, ~crowd.means_class.any(axis=0)] = 0.0
    wrong = np.where(crowd.means_class, 0.0, together + _USE_WEIGHT * classes * crowd.use[:, None])
    wrong /= np.maximum(wrong.sum(axis=0), FLOOR)
    good = np.where(crowd.means_class, together + crowd.use[:, None], 0.0)
    good /= np.maximum(good.sum(axis=0), FLOOR)
    fit.accuracy, fit.right, fit.wrong = accuracy, good, wrong

    def fill(first: int, last: int) -> None:
        fill_base(
            first, last, *pairs, accuracy, good, wrong, own, _CONFUSION_WEIGHT, total, fit.base
        )  # fmt: skip

    annotators = len(crowd.votes)
    parts = parts_of(annotators, TERMS * annotators // max(fit.base.size, 1))
    run_parts(fill, parts, partial(watch, done, "estimating the crowd's confusions"))
    if strengthen:
        fit.strength = _strength(crowd, fit, watch, done)
    return agreed


def _logit(share: FloatArray) -> FloatArray:
    share = np.clip(share, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(share / (1 - share)))


def _penalty(strengths: FloatArray) -> FloatArray:
    median, deviation = _USUAL
    return np.asarray(-0.5 * np.square(np.log(strengths / median) / deviation))


def skill_distribution(hits: FloatArray, votes: FloatArray, before: float) -> tuple[float, float]:
    """Estimate mean and strength of the Beta distribution of skills by penalised maximum likelihood."""
    from raterscope.algorithms.labels._pooled_kernels import beta_binomial

    voters = np.flatnonzero(votes > 0)
    if not len(voters):
        return 0.7, _USUAL[0]
    voters = voters[:: -(-len(voters) // _PRIOR_ANNOTATORS)]
    right, of = np.clip(hits[voters], 0.0, votes[voters]), votes[voters]
    centre = _logit(np.array((right / of).mean()))
    means = 1.0 / (1.0 + np.exp(-(centre + _MEANS)))
    penalty = _penalty(_STRENGTHS)

    def score(point: tuple[int, ...]) -> float:
        mean, at = point
        return float(beta_binomial(right, of, means[mean], _STRENGTHS[at])) + float(penalty[at])

    begin = (len(means) // 2, _nearest(before))
    mean, at = _peak(score, begin, (len(means), len(_STRENGTHS) - 1))
    return float(means[mean]), float(_STRENGTHS[at])


def _strength(crowd: Crowd, fit: Fit, watch: Watch, done: float) -> float:
    """Estimate the strength of the rates' prior by penalised maximum likelihood, on a grid."""
    from raterscope.algorithms.labels._pooled_kernels import polya

    annotator, of = np.nonzero(fit.rows > 0)
    if not len(annotator):
        return fit.strength
    rows = np.stack([annotator, of], axis=1)
    most = max(1, _PRIOR_ENTRIES // len(crowd.meaning))
    rows = rows[:: -(-len(rows) // most)]
    penalty = _penalty(_STRENGTHS)

    def score(point: tuple[int, ...]) -> float:
        at = point[0]
        return float(polya(rows, crowd.begin, fit.base, fit.counts, _STRENGTHS[at])) + float(penalty[at])

    check = partial(watch, done, "estimating how much annotators differ")
    peak = _peak(score, (_nearest(fit.strength),), (len(_STRENGTHS),), check, apart=crowd.large)
    return float(_STRENGTHS[peak[0]])


def _nearest(strength: float) -> int:
    return int(np.abs(np.log(_STRENGTHS / strength)).argmin())


def _peak(
    score: Callable[[tuple[int, ...]], float],
    begin: tuple[int, ...],
    shape: tuple[int, ...],
    check: Check = no_check,
    *,
    apart: bool = False,
) -> tuple[int, ...]:
    """Find the maximum of a score by steps on a grid; with `apart`, compute scores in several threads.

    After two steps in one direction, longer steps follow while the score rises.
    """
    known: dict[tuple[int, ...], float] = {}

    def evaluate(points: Sequence[tuple[int, ...]]) -> None:
        new = [point for point in points if point not in known]
        parts = parts_of(len(new), 1 if apart else len(new))
        scores = run_parts(lambda first, last: list(map(score, new[first:last])), parts, check)
        known.update(zip(new, chain.from_iterable(scores), strict=True))

    best = tuple(min(at, size - 1) for at, size in zip(begin, shape, strict=True))
    step: tuple[int, ...] = ()
    while True:
        spans = [range(max(0, at - 1), min(at + 2, size)) for at, size in zip(best, shape, strict=True)]
        evaluate(list(product(*spans)))
        top = max(product(*spans), key=known.__getitem__)
        if known[top] <= known[best]:
            return best
        before, step = step, tuple(at - old for at, old in zip(top, best, strict=True))
        best, length = top, 2
        while step == before:
            ahead = tuple(
                min(max(at + length * by, 0), size - 1)
                for at, by, size in zip(best, step, shape, strict=True)
            )
            evaluate([ahead])
            if known[ahead] <= known[best]:
                break
            best, length = ahead, 2 * length


def spread_of_votes(crowd: Crowd, fit: Fit) -> FloatArray:
    """Return the standard deviation, over the classes, of the logarithm of the rates of each pair, (P,).

    It is 0 for annotators who guess: their votes carry no information on the class, and do not correlate with
    other votes.
    """
    above, below = fit.tables(crowd)
    spread = np.empty(len(above))

    def measure(first: int, last: int) -> None:
        logs = np.log(np.maximum(above[first:last] / below[crowd.owner[first:last]], FLOOR))
        logs -= (logs @ fit.shares)[:, None]
        spread[first:last] = np.sqrt(np.square(logs) @ fit.shares)

    run_parts(measure, parts_of(len(above), max(1, TERMS // above.shape[1])), no_check)
    return spread


def effective_votes(crowd: Crowd, fit: Fit) -> FloatArray:
    """Compute the effective number of votes on each task, (sum s)^2 / sum s^2, (N,) ([kish1965]_).

    s is the spread of a vote's rates, see `spread_of_votes`.
    """
    from raterscope.algorithms.labels._pooled_kernels import effective_numbers

    numbers, spread = np.empty(len(crowd.start) - 1), spread_of_votes(crowd, fit)
    effective_numbers(crowd.by_task, spread, crowd.weights, numbers)
    return numbers


def tempered_posteriors(
    crowd: Crowd, fit: Fit, posterior: FloatArray, correlations: Sequence[float], watch: Watch
) -> FloatArray:
    """Compute the class probabilities with the design effects of correlated votes, (R, N, J)."""
    from raterscope.algorithms.labels._pooled_kernels import temper

    answers = np.empty((len(correlations), *posterior.shape), dtype=posterior.dtype)
    without = np.flatnonzero(np.diff(crowd.start) == 0)
    answers[:, without] = posterior[without]
    model, effects = fit.tables(crowd), np.array(correlations)
    spread = spread_of_votes(crowd, fit)

    def weigh(first: int, last: int) -> None:
        for low, high, shares in crowd.split(first, last, fit.shares):
            temper(
                low, high, crowd.by_task, model, shares, effects, posterior, answers, crowd.each_class,
                crowd.weights, spread,
            )  # fmt: skip

    run_parts(weigh, crowd.spans, partial(watch, 0.0, "weighting correlated votes"))
    return answers


def correlation_of(crowd: Crowd, fit: Fit, posterior: FloatArray, watch: Watch) -> float:
    """Estimate the correlation of the votes on a task by predicting each from the others."""
    return float(_CORRELATIONS[predictive_scores(crowd, fit, posterior, _CORRELATIONS, watch).argmax()])


def predictive_scores(
    crowd: Crowd, fit: Fit, posterior: FloatArray, correlations: FloatArray, watch: Watch
) -> FloatArray:
    """Compute the log likelihood, by correlation, of votes predicted from the other votes on their task.

    Known tasks, and tasks with a single vote, do not count; of very many tasks a sample is used.
    """
    from raterscope.algorithms.labels._pooled_kernels import score_correlation

    votes = np.diff(crowd.start)
    tasks = _thinned(crowd, posterior.shape[1])
    if not len(tasks):
        return np.zeros(len(correlations))
    ends = np.concatenate([[0], np.cumsum(votes[tasks])])
    model = fit.tables(crowd)
    most = int(votes[tasks].max())
    spread = spread_of_votes(crowd, fit)

    def score(first: int, last: int) -> FloatArray:
        scores = np.zeros(len(correlations))
        score_correlation(
            first, last, tasks, crowd.by_task, model, fit.shares, posterior, correlations, most, scores,
            crowd.weights, spread,
        )  # fmt: skip
        return scores

    spans = task_spans(ends, TERMS // posterior.shape[1] // len(correlations))
    report = partial(watch, 0.0, "estimating the correlation of votes")
    return np.asarray(np.sum(run_parts(score, spans, report), axis=0))


def task_scores(crowd: Crowd, fit: Fit, posterior: FloatArray, correlation: float) -> FloatArray:
    """Compute the log likelihood of the votes on each task, each predicted from the others.

    Only tasks with several votes and without a known class count.
    """
    from raterscope.algorithms.labels._pooled_kernels import score_correlation

    tasks = _predictable(crowd)
    most = int(np.diff(crowd.start)[tasks].max(initial=0))
    model, used, scores = fit.tables(crowd), np.array([correlation]), np.zeros((len(tasks), 1))
    spread = spread_of_votes(crowd, fit)
    for at in range(len(tasks)):
        score_correlation(
            at, at + 1, tasks, crowd.by_task, model, fit.shares, posterior, used, most, scores[at],
            crowd.weights, spread,
        )  # fmt: skip
    return scores[:, 0]


def _thinned(crowd: Crowd, classes: int) -> NDArray[np.int64]:
    """Return the tasks whose votes `predictive_scores` predicts."""
    tasks = _predictable(crowd)
    terms = int(np.diff(crowd.start)[tasks].sum()) * classes
    return tasks[:: max(1, -(-terms // _CORRELATION_TERMS))]


def _predictable(crowd: Crowd) -> NDArray[np.int64]:
    return np.flatnonzero((np.diff(crowd.start) >= 2) & (crowd.known == OPEN))
