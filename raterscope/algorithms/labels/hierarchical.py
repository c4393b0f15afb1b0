"""Hierarchical Dawid-Skene model: annotators' rates whose priors are estimated from the crowd.

Row j of annotator k's confusion matrix is Dirichlet distributed with mean B_kj and strength c. The mean
follows from the annotator's skill, the class's accuracy and the crowd's and the annotator's own wrong
labels; the distribution of skills, c and the classes' shares are estimated from the crowd (empirical
Bayes).

Mixed-membership model: every vote has an apparent class of its own, drawn from its task's mixture.

References
----------
.. [paun2018] S. Paun, B. Carpenter, J. Chamberlain, D. Hovy, U. Kruschwitz and M. Poesio, "Comparing
   Bayesian models of annotation", Transactions of the Association for Computational Linguistics 6 (2018)
   571-585, doi:10.1162/tacl_a_00040.
.. [asuncion2009] A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, "On smoothing and inference for topic
   models", Proceedings of the 25th Conference on Uncertainty in Artificial Intelligence (2009) 27-34 (the
   collapsed updates, each vote's own contribution removed).
.. [kish1965] L. Kish, "Survey sampling", Wiley (1965) (design effect).
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    IndexArray,
    Labels,
    LabelTrace,
    class_shares,
    default_prior,
    run_spans,
    sort_by_task,
    task_spans,
)
from raterscope.algorithms.progress import Watch

TERMS = 1_000_000
"""Votes times classes between two reports."""

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
    """Votes sorted by task, and the class that each output stands for."""

    start: NDArray[np.int64]
    annotator: IndexArray
    label: ClassArray
    known: ClassArray
    stands: NDArray[np.bool_]
    use: FloatArray
    votes: FloatArray
    prior: FloatArray | None
    spans: tuple[tuple[int, int], ...]

    @property
    def by_task(self) -> tuple[NDArray[np.int64], IndexArray, ClassArray]:
        """Start of the votes on each task, and the annotator and label of each vote."""
        return self.start, self.annotator, self.label

    @property
    def active(self) -> NDArray[np.bool_]:
        """Tasks with votes or a known class."""
        return np.asarray((np.diff(self.start) > 0) | (self.known != OPEN))


@dataclass(eq=False)
class Fit:
    """Rates of a model: prior mean and strength, expected counts, and parameters of the crowd."""

    counts: FloatArray
    rows: FloatArray
    base: NDArray[np.float32]
    strength: float
    skill: tuple[float, float]
    shares: FloatArray

    @property
    def model(self) -> tuple[NDArray[np.float32], float, FloatArray, FloatArray]:
        """Prior mean and strength, counts and their sums over outputs, for the kernels."""
        return self.base, self.strength, self.counts, self.rows

    def rates(self) -> FloatArray:
        """Return the expected probabilities of the outputs, (K, L, J)."""
        rates = self.strength * self.base + self.counts
        return np.asarray(rates / rates.sum(axis=1, keepdims=True))


def sort_votes(labels: Labels, watch: Watch) -> Crowd:
    """Sort the votes by task, and list the class that each output stands for."""
    assert labels.meaning is not None
    votes = sort_by_task(labels, watch)
    annotator, label = votes.unpack()
    use = np.bincount(label, minlength=votes.outputs) + 1.0
    stands = labels.meaning[:, None] == np.arange(votes.classes)
    number = np.bincount(annotator, minlength=votes.annotators).astype(np.float64)
    spans = task_spans(votes.start, TERMS // votes.classes)
    return Crowd(
        votes.start, annotator, label, votes.known, stands, use / use.sum(), number, labels.prior, spans
    )


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

    fit = empty_fit(crowd, posterior)
    active = max(1, int(crowd.active.sum()))
    changes: list[float] = []
    words = "fitting hierarchical Dawid-Skene" + ("" if by_class else ", one skill an annotator")
    draft = None if show is None else lambda: show(posterior)
    for turn in range(1, iterations + 1):
        done = (turn - 1) / iterations
        watch(done, words, partial=draft)
        count_votes_of(crowd, posterior, fit, watch, done, words)
        estimate_priors(crowd, fit, by_class, turn, turn in _STRENGTH_ROUNDS, watch, done)
        fit.shares = posterior[crowd.active].sum(axis=0) + 1.0
        fit.shares /= fit.shares.sum()

        def update(first: int, last: int) -> tuple[float, float]:
            return expect(first, last, crowd.by_task, crowd.known, fit.model, fit.shares, posterior)

        updated = run_spans(crowd.spans, update, partial(watch, done, words))
        total = sum(change for change, _ in updated)
        changes.append(max((change for _, change in updated), default=0.0))
        if turn >= _LEAST_ROUNDS and total / active < tolerance:
            return fit, LabelTrace(np.empty(0), np.array(changes), converged=True)
    return fit, LabelTrace(np.empty(0), np.array(changes), converged=False)


def empty_fit(crowd: Crowd, posterior: FloatArray) -> Fit:
    """Allocate the counts of a model."""
    shape = (len(crowd.votes), *crowd.stands.shape)
    classes = posterior.shape[1]
    return Fit(
        np.zeros(shape), np.zeros((shape[0], classes)), np.zeros(shape, dtype=np.float32), _USUAL[0],
        (0.7, _USUAL[0]), np.full(classes, 1 / classes),
    )  # fmt: skip


def count_votes_of(
    crowd: Crowd, posterior: FloatArray, fit: Fit, watch: Watch, done: float, words: str
) -> None:
    """Count votes by annotator, class and label with the posterior as weights, into `fit`."""
    from raterscope.algorithms.labels._pooled_kernels import add_counts

    fit.counts[:] = 0.0
    for first, last in crowd.spans:
        watch(done, words)
        add_counts(first, last, crowd.by_task, posterior, fit.counts)
    fit.counts.sum(axis=1, out=fit.rows)


def estimate_priors(
    crowd: Crowd, fit: Fit, by_class: bool, turn: int, strengthen: bool, watch: Watch, done: float
) -> None:
    """Estimate the crowd's priors from the counts: skill, class accuracies, confusions, strength."""
    from raterscope.algorithms.labels._pooled_kernels import fill_base

    if crowd.prior is not None:
        total = crowd.prior.sum(axis=1)
        fit.base[:] = (crowd.prior / total[:, None]).T
        fit.strength = float(total.mean())
        return
    outputs, classes = crowd.stands.shape
    right = np.einsum("klj,lj->kj", fit.counts, crowd.stands.astype(np.float64))
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
    together = fit.counts.sum(axis=0)
    own = fit.counts.sum(axis=2) - np.einsum("klj,lj->kl", fit.counts, crowd.stands.astype(np.float64))
    wrong = np.where(crowd.stands, 0.0, together + _USE_WEIGHT * classes * crowd.use[:, None])
    wrong /= np.maximum(wrong.sum(axis=0), FLOOR)
    good = np.where(crowd.stands, together + crowd.use[:, None], 0.0)
    good /= np.maximum(good.sum(axis=0), FLOOR)
    np.maximum(own, 0.0, out=own)
    step = max(1, TERMS // (outputs * classes))
    spans = tuple((first, min(first + step, len(own))) for first in range(0, len(own), step))

    def fill(first: int, last: int) -> None:
        fill_base(
            first, last, crowd.stands, accuracy, good, wrong, own, _CONFUSION_WEIGHT, fit.base
        )  # fmt: skip

    run_spans(spans, fill, partial(watch, done, "estimating the crowd's confusions"))
    if strengthen:
        fit.strength = _strength(fit, watch, done)


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


def _strength(fit: Fit, watch: Watch, done: float) -> float:
    """Estimate the strength of the rates' prior by penalised maximum likelihood, on a grid."""
    from raterscope.algorithms.labels._pooled_kernels import polya

    annotator, of = np.nonzero(fit.rows > 0)
    if not len(annotator):
        return fit.strength
    rows = np.stack([annotator, of], axis=1)
    most = max(1, _PRIOR_ENTRIES // fit.base.shape[1])
    rows = rows[:: -(-len(rows) // most)]
    penalty = _penalty(_STRENGTHS)

    def score(point: tuple[int, ...]) -> float:
        watch(done, "estimating how much annotators differ")
        at = point[0]
        return float(polya(rows, fit.base, fit.counts, _STRENGTHS[at])) + float(penalty[at])

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


_ROUNDS = 30
_MEMBERSHIP_STRENGTH_ROUNDS = (5, 15)
_SWEEPS = 20
"""Sweeps over each known task for its prediction from votes alone."""


def mixed_membership(
    crowd: Crowd,
    posterior: FloatArray,
    mixture: float,
    watch: Watch,
    judged: NDArray[np.int64] | None = None,
    unheld: FloatArray | None = None,
) -> tuple[FloatArray, Fit]:
    """Fit the model from an initial posterior.

    Parameters
    ----------
    crowd : Crowd
    posterior : (N, J) float64
    mixture : float
        Prior strength of a task's mixture.
    watch : Watch
    judged : (M,) int64, optional
        Known tasks with votes whose mixture is predicted without their class.
    unheld : (M, J) float64, optional
        Their initial probabilities.

    Returns
    -------
    mean : (N, J) float64
        Each task's expected mixture; for a judged task, the one without its own class.
    fit : Fit
        Rates given the apparent class.
    """
    from raterscope.algorithms.labels._pooled_kernels import membership_sweep, membership_without_truth

    votes = np.diff(crowd.start)
    fit = empty_fit(crowd, posterior)
    share = np.repeat(posterior.astype(np.float32), votes, axis=0)
    total = posterior.astype(np.float32) * votes[:, None].astype(np.float64)
    words = "fitting mixed membership"
    count_votes_of(crowd, posterior, fit, watch, 0.0, words)
    fixed = crowd.known != OPEN
    prior = mixture * fit.shares
    # Each task's expected mixture, summed over the active tasks: a matrix of them is not needed.
    weight = np.where(crowd.active & ~fixed, 1.0 / (mixture + votes), 0.0)
    of_known = posterior[fixed].sum(axis=0) + 1.0
    fit.shares = posterior[crowd.active].sum(axis=0) + 1.0
    for turn in range(1, _ROUNDS + 1):
        done = (turn - 1) / _ROUNDS
        estimate_priors(crowd, fit, True, turn, turn in _MEMBERSHIP_STRENGTH_ROUNDS, watch, done)
        if turn > 1:
            fit.shares = weight @ total + weight.sum() * prior + of_known
        fit.shares /= fit.shares.sum()
        prior = mixture * fit.shares
        for first, last in crowd.spans:
            watch(done, words)
            membership_sweep(first, last, crowd.by_task, crowd.known, fit.model, prior, share, total)
    mean = prior + total
    mean /= mixture + votes[:, None]
    mean[fixed] = posterior[fixed]
    if judged is not None and unheld is not None and len(judged):
        watch(1.0, words)
        answer = np.empty_like(unheld)
        membership_without_truth(
            judged, crowd.by_task, unheld, _SWEEPS, fit.model, prior, share, total, answer
        )  # fmt: skip
        mean[judged] = (prior + answer) / (mixture + votes[judged, None])
    mean /= mean.sum(axis=1, keepdims=True)
    return mean, fit
