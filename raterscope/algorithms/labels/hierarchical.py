"""Hierarchical Dawid-Skene model: annotators' rates whose priors are estimated from the crowd.

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from threading import Event
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    IndexArray,
    Labels,
    LabelTrace,
    Result,
    class_shares,
    default_prior,
    run_spans,
    sort_by_task,
    task_spans,
)
from raterscope.algorithms.progress import Watch

Spans: TypeAlias = tuple[tuple[int, int], ...]

TERMS = 1_000_000
"""Votes times classes between two reports."""

LARGE = 4_000_000
"""Votes times classes from which tasks are divided into parts."""

_LEAST_ROUNDS = 13
_STRENGTH_ROUNDS = (2, 5, 10, 20, 30)
_SKILL_ROUNDS = (1, 2, 3, 4, 5, 7, 10, 13, 16, 20, 25, 30, 40, 50)

_USUAL = (8.0, 1.5)
"""Prior median of a strength, in votes, and standard deviation of its logarithm."""

_STRENGTHS = 2.0 ** np.arange(-1.0, 10.75, 0.5)
_MEANS = np.linspace(-0.9, 0.9, 7)
"""Grid of mean skills: distance from the mean share of right votes, in logits."""

_CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0])

_PRIOR_ENTRIES = 200_000
_PRIOR_ANNOTATORS = 4_000
"""Entries and annotators at most from which the crowd's priors are estimated."""

_CORRELATION_TERMS = 2_000_000
"""Votes times classes at most from which the correlation is estimated."""

_CLASS_WEIGHT = 10.0
"""Votes with which a class's accuracy is shrunk to the crowd's."""

_CONFUSION_WEIGHT = 10.0
"""Votes that the crowd's confusions count as beside an annotator's own wrong labels."""

_USE_WEIGHT = 5.0
"""Votes of each class that the use of labels counts as beside the crowd's wrong labels."""

_ACCURACIES = (0.2, 0.05, 0.995)
"""Least accuracy times the number of classes; least for two classes; largest."""

FLOOR = 1e-4
"""Floor of a probability, against rounding and logarithms of zero."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes sorted by task, the pairs of annotator and output that occur, and what outputs stand for.

    Attributes
    ----------
    start : (N + 1,) int64
        The votes on task i are `start[i]` to `start[i + 1]`.
    pair : (V,) int32
        The pair of each vote.
    begin : (K + 1,) int64
        The pairs of annotator k are `begin[k]` to `begin[k + 1]`.
    owner, output : (P,) int32, (P,) int16
        Annotator and output of each pair.
    known : (N,) int16
    meaning : (L,) int16
        The class that each output stands for, `OPEN` for none.
    stands : (L, J) bool
        The same as a table.
    use : (L,) float64
        Share of each output among the votes.
    votes : (K,) float64
    prior : (J, L) float64, optional
    parts : tuple of tuples of (first, last)
        Spans of tasks in parts with counts of their own.
    """

    start: NDArray[np.int64]
    pair: IndexArray
    begin: NDArray[np.int64]
    owner: IndexArray
    output: ClassArray
    known: ClassArray
    meaning: ClassArray
    stands: NDArray[np.bool_]
    use: FloatArray
    votes: FloatArray
    prior: FloatArray | None
    parts: tuple[Spans, ...]

    @property
    def by_task(self) -> tuple[NDArray[np.int64], IndexArray, IndexArray]:
        """Start of the votes on each task, the pair of each vote, and the annotator of each pair."""
        return self.start, self.pair, self.owner

    @property
    def spans(self) -> Spans:
        """Spans of all tasks."""
        return tuple(chain.from_iterable(self.parts))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Tasks with votes or a known class."""
        return np.asarray((np.diff(self.start) > 0) | (self.known != OPEN))


@dataclass(eq=False)
class Fit:
    """Rates of a model: prior mean and strength, expected counts, and parameters of the crowd.

    Attributes
    ----------
    counts : (P, J) float64
        Expected votes of each pair of annotator and output, by class.
    rows : (K, J) float64
        Their sums over outputs.
    base : (P, J) float32
        Prior mean of the rates.
    strength : float
        Votes that it counts as.
    skill : tuple of two floats
        The crowd's mean skill, and the votes that it counts as.
    shares : (J,) float64
    accuracy : (K, J) float64
        Prior mean of the outputs that stand for a class, together.
    right, wrong : (L, J) float64
        The crowd's shares of the outputs that stand for a class, and of those that do not.
    """

    counts: FloatArray
    rows: FloatArray
    base: NDArray[np.float32]
    strength: float
    skill: tuple[float, float]
    shares: FloatArray
    accuracy: FloatArray
    right: FloatArray
    wrong: FloatArray

    @property
    def model(self) -> tuple[NDArray[np.float32], float, FloatArray, FloatArray]:
        """Prior mean and strength, counts and their sums over outputs, for the kernels."""
        return self.base, self.strength, self.counts, self.rows

    def rates(self, crowd: Crowd) -> FloatArray:
        """Return the expected probabilities of all outputs, (K, L, J)."""
        base = np.zeros((len(self.rows), *crowd.stands.shape))
        if crowd.prior is not None:
            base[:] = (crowd.prior / crowd.prior.sum(axis=1, keepdims=True)).T
        else:
            own = np.zeros(base.shape[:2])
            own[crowd.owner, crowd.output] = (self.counts * ~crowd.stands[crowd.output]).sum(axis=1)
            mistakes = np.where(crowd.stands, 0.0, _CONFUSION_WEIGHT * self.wrong + own[:, :, None])
            mistakes /= np.maximum(mistakes.sum(axis=1, keepdims=True), FLOOR)
            base = np.where(
                crowd.stands, self.right * self.accuracy[:, None], mistakes * (1 - self.accuracy[:, None])
            )
        base *= self.strength
        base[crowd.owner, crowd.output] += self.counts
        return np.asarray(base / base.sum(axis=1, keepdims=True))


def sort_votes(labels: Labels, watch: Watch) -> Crowd:
    """Sort the votes by task, and list the pairs of annotator and output."""
    assert labels.meaning is not None
    votes = sort_by_task(labels, watch)
    occurring = np.zeros(votes.annotators * votes.outputs, dtype=np.bool_)
    occurring[votes.pair] = True
    pairs = np.flatnonzero(occurring)
    number = np.cumsum(occurring, dtype=np.int32) - np.int32(1)
    owner, output = (pairs // votes.outputs).astype(np.int32), (pairs % votes.outputs).astype(np.int16)
    use = np.bincount(labels.label, minlength=votes.outputs) + 1.0
    stands = labels.meaning[:, None] == np.arange(votes.classes)
    given = np.bincount(labels.annotator, minlength=votes.annotators).astype(np.float64)
    spans = task_spans(votes.start, TERMS // votes.classes)
    half = -(-len(spans) // 2)
    parts = (spans[:half], spans[half:]) if len(labels) * votes.classes >= LARGE else (spans,)
    return Crowd(
        votes.start, number[votes.pair], np.searchsorted(owner, np.arange(votes.annotators + 1)), owner,
        output, votes.known, labels.meaning, stands, use / use.sum(), given, labels.prior, parts,
    )  # fmt: skip


def smoothed_vote(labels: Labels, crowd: Crowd, watch: Watch) -> FloatArray:
    """Compute (votes + 1/J) / (n + 1), known tasks held fixed, (N, J)."""
    tasks, classes = len(labels.tasks), len(labels.classes)
    weight = class_shares(labels, default_prior(labels))
    vote = np.empty((tasks, classes))
    for j in range(classes):
        watch(j / classes, "counting votes")
        vote[:, j] = np.bincount(labels.task, weight[labels.label, j], minlength=tasks) + 1 / classes
    vote /= vote.sum(axis=1, keepdims=True)
    fixed = np.flatnonzero(crowd.known != OPEN)
    vote[fixed] = np.eye(classes)[crowd.known[fixed]]
    return vote


def dawid_skene(
    crowd: Crowd,
    posterior: FloatArray,
    by_class: bool,
    iterations: int,
    tolerance: float,
    watch: Watch,
    show: Callable[[FloatArray], object] | None = None,
) -> tuple[Fit, LabelTrace]:
    """Fit the hierarchical model without tempering.

    Parameters
    ----------
    crowd : Crowd
    posterior : (N, J) float64
        Initial posterior; overwritten.
    by_class : bool
        Estimate an accuracy for each class.
    iterations : int
    tolerance : float
        Of the change of a task's probabilities, summed over the classes and averaged over the tasks.
    watch : Watch
    show : callable, optional
        Makes a partial result from a posterior.
    """
    from raterscope.algorithms.labels._pooled_kernels import expect

    fit = empty_fit(crowd)
    active_tasks = crowd.active
    active = max(1, int(active_tasks.sum()))
    changes: list[float] = []
    words = "fitting hierarchical Dawid-Skene" + ("" if by_class else ", one skill an annotator")
    draft = None if show is None else lambda: show(posterior)
    counts = count_votes_of(crowd, posterior, partial(watch, 0.0, words))

    def update(following: FloatArray, at: int, first: int, last: int) -> tuple[float, float]:
        return expect(
            first, last, crowd.by_task, crowd.known, fit.model, fit.shares, posterior, following[at]
        )  # fmt: skip

    for turn in range(1, iterations + 1):
        done = (turn - 1) / iterations
        watch(done, words, partial=draft)
        fit.counts = counts[0]
        estimate_priors(crowd, fit, counts, by_class, turn, turn in _STRENGTH_ROUNDS, watch, done)
        fit.shares = posterior[active_tasks].sum(axis=0) + 1.0
        fit.shares /= fit.shares.sum()
        following = np.zeros_like(counts)
        updated = run_parts(crowd.parts, partial(update, following), partial(watch, done, words))
        total = sum(change for change, _ in updated)
        changes.append(max((change for _, change in updated), default=0.0))
        if turn >= _LEAST_ROUNDS and total / active < tolerance:
            return fit, LabelTrace(np.empty(0), np.array(changes), converged=True)
        counts = following
    return fit, LabelTrace(np.empty(0), np.array(changes), converged=False)


def empty_fit(crowd: Crowd) -> Fit:
    """Allocate the tables of a model, without the counts."""
    outputs, classes = crowd.stands.shape
    by_class, by_output = np.zeros((len(crowd.votes), classes)), np.zeros((outputs, classes))
    return Fit(
        np.empty((0, classes)), by_class, np.zeros((len(crowd.owner), classes), dtype=np.float32), _USUAL[0],
        (0.7, _USUAL[0]), np.full(classes, 1 / classes), by_class, by_output, by_output,
    )  # fmt: skip


def run_parts(
    parts: tuple[Spans, ...], run: Callable[[int, int, int], Result], report: Callable[[], None]
) -> list[Result]:
    """Run a kernel on the spans of each part in their order, several parts at a time.

    Parameters
    ----------
    parts : tuple of tuples of (first, last)
    run : callable
        Takes the number of the part, the first task, and the one after the last.
    report : callable
        Called several times a second; it may raise.

    Returns
    -------
    list
        The results of all spans in their order.
    """
    stopped = Event()

    def run_part(at: int, _: int) -> list[Result]:
        return [run(at, *span) for span in parts[at] if not stopped.is_set()]

    def stop() -> None:
        try:
            report()
        except BaseException:
            stopped.set()  # the other parts end with their span
            raise

    if len(parts) == 1:
        results = []
        for span in parts[0]:
            report()
            results.append(run(0, *span))
        return results
    done = run_spans(tuple((at, at + 1) for at in range(len(parts))), run_part, stop)
    return list(chain.from_iterable(done))


def count_votes_of(crowd: Crowd, posterior: FloatArray, report: Callable[[], None]) -> FloatArray:
    """Count votes by pair and class with the posterior as weights, (S, P, J) in the crowd's S parts."""
    from raterscope.algorithms.labels._pooled_kernels import count_pairs

    counts = np.zeros((len(crowd.parts), len(crowd.owner), posterior.shape[1]))

    def count(at: int, first: int, last: int) -> None:
        count_pairs(first, last, crowd.by_task, posterior, counts[at])

    run_parts(crowd.parts, count, report)
    return counts


def estimate_priors(
    crowd: Crowd,
    fit: Fit,
    counts: FloatArray,
    by_class: bool,
    turn: int,
    strengthen: bool,
    watch: Watch,
    done: float,
) -> None:
    """Estimate the crowd's priors from the counts: skill, class accuracies, confusions, strength.

    `counts` are in parts (S, P, J); their sum is written to the first.
    """
    from raterscope.algorithms.labels._pooled_kernels import fill_base, sum_pairs

    outputs, classes = crowd.stands.shape
    pairs = crowd.begin, crowd.output, crowd.meaning
    right, total = np.empty((2, len(crowd.votes), classes))
    own, together = np.empty(len(crowd.owner)), np.zeros((outputs, classes))
    sum_pairs(0, len(crowd.votes), *pairs, counts, fit.rows, right, own, together)
    if crowd.prior is not None:
        shares = crowd.prior / crowd.prior.sum(axis=1, keepdims=True)
        fit.base[:] = shares.T[crowd.output]
        fit.strength = float(crowd.prior.sum(axis=1).mean())
        return
    hits = right.sum(axis=1)
    if turn in _SKILL_ROUNDS:
        watch(done, "estimating the crowd's skill")
        fit.skill = _skill(hits, crowd.votes, fit.skill[1])
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
    accuracy[:, crowd.stands.all(axis=0)] = 1.0
    accuracy[:, ~crowd.stands.any(axis=0)] = 0.0
    wrong = np.where(crowd.stands, 0.0, together + _USE_WEIGHT * classes * crowd.use[:, None])
    wrong /= np.maximum(wrong.sum(axis=0), FLOOR)
    good = np.where(crowd.stands, together + crowd.use[:, None], 0.0)
    good /= np.maximum(good.sum(axis=0), FLOOR)
    fit.accuracy, fit.right, fit.wrong = accuracy, good, wrong
    watch(done, "estimating the crowd's confusions")
    fill_base(
        0, len(crowd.votes), *pairs, accuracy, good, wrong, own, _CONFUSION_WEIGHT, total, fit.base
    )  # fmt: skip
    if strengthen:
        fit.strength = _strength(crowd, fit, watch, done)


def _logit(share: FloatArray) -> FloatArray:
    share = np.clip(share, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(share / (1 - share)))


def _penalty(strengths: FloatArray) -> FloatArray:
    median, deviation = _USUAL
    return np.asarray(-0.5 * np.square(np.log(strengths / median) / deviation))


def _skill(hits: FloatArray, votes: FloatArray, before: float) -> tuple[float, float]:
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
        watch(done, "estimating how much annotators differ")
        at = point[0]
        return float(polya(rows, crowd.begin, fit.base, fit.counts, _STRENGTHS[at])) + float(penalty[at])

    return float(_STRENGTHS[_peak(score, (_nearest(fit.strength),), (len(_STRENGTHS),))[0]])


def _nearest(strength: float) -> int:
    return int(np.abs(np.log(_STRENGTHS / strength)).argmin())


def _peak(
    score: Callable[[tuple[int, ...]], float], begin: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Climb a grid from a point to the maximum of a score."""
    known: dict[tuple[int, ...], float] = {}
    best = tuple(min(at, size - 1) for at, size in zip(begin, shape, strict=True))
    while True:
        spans = [range(max(0, at - 1), min(at + 2, size)) for at, size in zip(best, shape, strict=True)]
        for point in product(*spans):
            if point not in known:
                known[point] = score(point)
        top = max(product(*spans), key=known.__getitem__)
        if known[top] <= known[best]:
            return best
        best = top


def tempered_posterior(
    crowd: Crowd, fit: Fit, posterior: FloatArray, correlation: float, watch: Watch
) -> FloatArray:
    """Compute the classes' probabilities with the design effect of correlated votes, (N, J)."""
    from raterscope.algorithms.labels._pooled_kernels import temper

    answer = posterior.copy()

    def weigh(first: int, last: int) -> None:
        temper(first, last, crowd.by_task, fit.model, fit.shares, correlation, posterior, answer)

    run_spans(crowd.spans, weigh, partial(watch, 0.0, "weighting correlated votes"))
    return answer


def correlation_of(crowd: Crowd, fit: Fit, posterior: FloatArray, watch: Watch) -> float:
    """Estimate the correlation of the votes on a task, by their prediction from each other."""
    return float(_CORRELATIONS[predictive_scores(crowd, fit, posterior, _CORRELATIONS, watch).argmax()])


def predictive_scores(
    crowd: Crowd, fit: Fit, posterior: FloatArray, correlations: FloatArray, watch: Watch
) -> FloatArray:
    """Compute the log-likelihood of votes, each predicted from the others on its task, by correlation.

    Known tasks and those with a single vote do not count; very many tasks are thinned.
    """
    from raterscope.algorithms.labels._pooled_kernels import score_correlation

    votes = np.diff(crowd.start)
    tasks = np.flatnonzero((votes >= 2) & (crowd.known == OPEN))
    if not len(tasks):
        return np.zeros(len(correlations))
    terms = int(votes[tasks].sum()) * posterior.shape[1]
    tasks = tasks[:: -(-terms // _CORRELATION_TERMS)]
    ends = np.concatenate([[0], np.cumsum(votes[tasks])])
    most = int(votes[tasks].max())

    def score(first: int, last: int) -> FloatArray:
        scores = np.zeros(len(correlations))
        score_correlation(
            first, last, tasks, crowd.by_task, fit.model, fit.shares, posterior, correlations, most, scores
        )  # fmt: skip
        return scores

    spans = task_spans(ends, TERMS // posterior.shape[1] // len(correlations))
    report = partial(watch, 0.0, "estimating the correlation of votes")
    return np.asarray(np.sum(run_spans(spans, score, report), axis=0))
