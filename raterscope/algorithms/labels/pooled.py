"""Pooled consensus: hierarchical Dawid-Skene, mixed membership and the smoothed vote, in one opinion pool.

A model of annotators that takes their votes as independent is too sure of its answer, and the vote is not
sure enough. Four views of the same votes are therefore combined by a logarithmic opinion pool: two
hierarchical Dawid-Skene models, whose likelihood is tempered by the design effect of correlated votes after
the fit; a mixed-membership model, in which every vote has an apparent class of its own; and the vote. The
priors of the annotators are estimated from the crowd (empirical Bayes).

References
----------
A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
Journal of the Royal Statistical Society C 28 (1979) 20-28.
S. Paun, B. Carpenter, J. Chamberlain, D. Hovy, U. Kruschwitz and M. Poesio, "Comparing Bayesian models of
annotation", Transactions of the Association for Computational Linguistics 6 (2018) 571-585 (hierarchical
Dawid-Skene).
A. Asuncion, M. Welling, P. Smyth and Y. W. Teh, "On smoothing and inference for topic models", Uncertainty in
Artificial Intelligence (2009) (the collapsed updates, each vote's own contribution removed).
E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic blockmodels", Journal
of Machine Learning Research 9 (2008) 1981-2014.
L. Kish, Survey Sampling (1965) (design effect).
C. Genest and J. V. Zidek, "Combining probability distributions: a critique and an annotated bibliography",
Statistical Science 1 (1986) 114-135 (logarithmic opinion pools).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._start import standing
from raterscope.algorithms.labels._votes import by_task
from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    IndexArray,
    LabelFusion,
    Labels,
    LabelTrace,
    default_prior,
)
from raterscope.algorithms.labels.prior import LabelSettings
from raterscope.algorithms.labels.results import counted, fused, unsettled
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import integer, number

__all__ = ["PooledSettings", "pooled"]

_TERMS = 1_000_000
"""Votes times classes between two reports."""

_LEAST_ROUNDS = 13
_MEMBERSHIP_ROUNDS = 30
_STRENGTH_ROUNDS = (2, 5, 10, 20, 30)
_MEMBERSHIP_STRENGTH_ROUNDS = (5, 15)
_SKILL_ROUNDS = (1, 2, 3, 4, 5, 7, 10, 13, 16, 20, 25, 30, 40, 50)

_USUAL = (8.0, 1.5)
"""Median and standard deviation (of the logarithm) of a strength, before the crowd is seen; in votes."""

_STRENGTHS = 2.0 ** np.arange(-1.0, 10.75, 0.5)
_MEANS = np.linspace(-0.9, 0.9, 7)
"""Mean skills that are compared: distance from the mean share of right votes, in logits."""

_CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0])

_PRIOR_ENTRIES = 200_000
_PRIOR_ANNOTATORS = 4_000
"""Entries and annotators at most from which the crowd's priors are estimated."""

_CORRELATION_TERMS = 2_000_000
"""Votes times classes at most from which the correlation is estimated."""

_CLASS_WEIGHT = 10.0
"""Votes with which a class's accuracy is shrunk to the crowd's."""

_CONFUSION_WEIGHT = 10.0
"""Votes that the crowd's confusions count for beside an annotator's own wrong labels."""

_USE_WEIGHT = 5.0
"""Votes a class that the labels' use counts for beside the crowd's wrong labels."""

_ACCURACIES = (0.2, 0.05, 0.995)
"""Least accuracy times the number of classes; least for two classes; largest."""

_WEIGHTS = (0.2, 0.2, 0.4, 0.2)
"""Of Dawid-Skene with and without class accuracies, mixed membership, and the vote.

These, the least correlation, the mixture's strength and the floor were chosen on ten public crowds with
truths, and measured on sixteen others; votes alone cannot identify them.
"""

_POOL_FLOOR = 1e-4

_MATRIX_STRENGTH = 4.0
"""Votes at most that the crowd's mean rates count for in a reported confusion matrix."""


@dataclass(frozen=True)
class PooledSettings(LabelSettings):
    """Settings of `pooled`."""

    correlation: float = number(
        0.2, "Least correlation", "Smallest correlation of the votes on a task. Estimated from the votes "
        "where it is larger; votes alone do not reveal errors that all annotators share.",
        minimum=0.0, maximum=1.0, advanced=True,
    )  # fmt: skip
    mixture: float = number(
        0.6, "Mixture strength", "Prior strength of a task's mixture of apparent classes. Larger: each vote "
        "depends less on the other votes on its task.",
        unit="votes", minimum=1e-3, maximum=1e3, advanced=True,
    )  # fmt: skip
    iterations: int = integer(
        60, "Iterations", "At most, for each model.", minimum=1, maximum=10_000, advanced=True
    )
    tolerance: float = number(
        1e-3, "Tolerance", "The fit ends when the tasks' probabilities change by less, summed over the "
        "classes and averaged over the tasks.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Crowd:
    """Votes task by task, and what each output stands for."""

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
    def active(self) -> NDArray[np.bool_]:
        """Tasks with votes or a known class."""
        return np.asarray((np.diff(self.start) > 0) | (self.known != OPEN))


@dataclass(eq=False)
class _Fit:
    """Rates of a model: prior mean and strength, expected counts, and what was estimated of the crowd."""

    counts: FloatArray
    rows: FloatArray
    base: NDArray[np.float32]
    strength: float
    skill: tuple[float, float]
    shares: FloatArray


def pooled(labels: Labels, settings: PooledSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes by four views of the votes, and pool them.

    Row j of annotator k's confusion matrix is Dirichlet distributed with mean B_kj and strength c. The mean
    follows from the annotator's skill, the class's accuracy and the crowd's and the annotator's own wrong
    labels; skill's distribution, c and the classes' shares are estimated from the crowd. A prior that the
    question sets (`Labels.prior`) takes the place of c B. Known tasks are held fixed. The likelihood of n
    votes on a task is raised to 1 / (1 + (n - 1) rho), where rho is the correlation with which votes predict
    each other best, or the least one of the settings.

    Parameters
    ----------
    labels : Labels
    settings : PooledSettings, optional
    watch : Watch

    Returns
    -------
    LabelFusion
        `trace` has the changes of the first Dawid-Skene model, or of the one that did not converge.
        `confusion` has expected counts given the pooled posterior, on top of the crowd's mean rates.

    Raises
    ------
    LabelsError
        When the confusion matrices would not fit into memory.
    """
    settings = PooledSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    crowd = _sorted(labels, part(watch, 0.0, 0.03))
    vote = _smoothed_vote(labels, crowd, part(watch, 0.03, 0.05))

    def show(posterior: FloatArray) -> LabelFusion:
        trace = LabelTrace(np.empty(0), np.empty(0), converged=False)
        return _fusion(labels, posterior.copy(), trace, ())

    answer = np.log(vote + _POOL_FLOOR) * _WEIGHTS[3]
    steps = (part(watch, 0.05, 0.4), part(watch, 0.4, 0.65))
    traces = []
    first: FloatArray | None = None
    for by_class, weight, step in zip((True, False), _WEIGHTS, steps, strict=False):
        posterior = vote.copy()
        fit, trace = _dawid_skene(crowd, posterior, by_class, settings, show, part(step, 0.0, 0.8))
        tempered = _tempered(crowd, fit, posterior, settings.correlation, part(step, 0.8, 1.0))
        answer += weight * np.log(tempered + _POOL_FLOOR)
        traces.append(trace)
        first = posterior if first is None else first
        del fit, posterior, tempered
    assert first is not None
    answer += _WEIGHTS[2] * np.log(_membership(crowd, first, settings, part(watch, 0.65, 0.95)) + _POOL_FLOOR)
    answer = np.exp(answer - answer.max(axis=1, keepdims=True))
    answer /= answer.sum(axis=1, keepdims=True)
    watch(0.95, "counting votes")
    trace = next((one for one in traces if not one.converged), traces[0])
    return _fusion(labels, answer, trace, unsettled(trace))


def _sorted(labels: Labels, watch: Watch) -> _Crowd:
    """Sort the votes by task, and list what each output stands for."""
    assert labels.meaning is not None
    votes = by_task(labels, watch)
    annotator = (votes.pair // votes.outputs).astype(np.int32)
    label = (votes.pair % votes.outputs).astype(np.int16)
    use = np.bincount(label, minlength=votes.outputs) + 1.0
    stands = labels.meaning[:, None] == np.arange(votes.classes)
    given = np.bincount(annotator, minlength=votes.annotators).astype(np.float64)
    spans = _spans(votes.start, max(1, _TERMS // votes.classes))
    return _Crowd(
        votes.start, annotator, label, votes.known, stands, use / use.sum(), given, labels.prior, spans
    )


def _spans(start: NDArray[np.int64], votes: int) -> tuple[tuple[int, int], ...]:
    """Cut tasks, whose votes begin at `start`, into pieces of about so many votes."""
    if len(start) < 2:
        return ()
    ends = (np.flatnonzero(np.diff(start[1:] // votes, append=-1)) + 1).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def _smoothed_vote(labels: Labels, crowd: _Crowd, watch: Watch) -> FloatArray:
    """Compute (votes + 1/J) / (n + 1), known tasks held fixed, (N, J)."""
    tasks, classes = len(labels.tasks), len(labels.classes)
    weight = standing(labels, default_prior(labels))
    vote = np.empty((tasks, classes))
    for j in range(classes):
        watch(j / classes, "counting votes")
        vote[:, j] = np.bincount(labels.task, weight[labels.label, j], minlength=tasks) + 1 / classes
    vote /= vote.sum(axis=1, keepdims=True)
    held = np.flatnonzero(crowd.known != OPEN)
    vote[held] = np.eye(classes)[crowd.known[held]]
    return vote


def _dawid_skene(
    crowd: _Crowd,
    posterior: FloatArray,
    by_class: bool,
    settings: PooledSettings,
    show: Callable[[FloatArray], LabelFusion],
    watch: Watch,
) -> tuple[_Fit, LabelTrace]:
    """Fit the hierarchical model, untempered; `posterior` is where it begins, and is overwritten."""
    from raterscope.algorithms.labels._pooled_kernels import expect

    fit = _begun(crowd, posterior)
    active = max(1, int(crowd.active.sum()))
    changes: list[float] = []
    words = "fitting hierarchical Dawid-Skene" + ("" if by_class else ", one skill an annotator")
    for turn in range(1, settings.iterations + 1):
        done = (turn - 1) / settings.iterations
        watch(done, words, partial=lambda: show(posterior))
        _count(crowd, posterior, fit, watch, done, words)
        _estimate(crowd, fit, by_class, turn, turn in _STRENGTH_ROUNDS, watch, done)
        fit.shares = posterior[crowd.active].sum(axis=0) + 1.0
        fit.shares /= fit.shares.sum()
        total = largest = 0.0
        for first, last in crowd.spans:
            watch(done, words)
            moved, most = expect(
                first, last, crowd.start, crowd.annotator, crowd.label, crowd.known, fit.base, fit.strength,
                fit.counts, fit.rows, fit.shares, posterior,
            )  # fmt: skip
            total, largest = total + moved, max(largest, most)
        changes.append(largest)
        if turn >= _LEAST_ROUNDS and total / active < settings.tolerance:
            return fit, LabelTrace(np.empty(0), np.array(changes), converged=True)
    return fit, LabelTrace(np.empty(0), np.array(changes), converged=False)


def _begun(crowd: _Crowd, posterior: FloatArray) -> _Fit:
    """Make room for the counts of a model."""
    shape = (len(crowd.votes), *crowd.stands.shape)
    classes = posterior.shape[1]
    return _Fit(
        np.zeros(shape), np.zeros((shape[0], classes)), np.zeros(shape, dtype=np.float32), _USUAL[0],
        (0.7, _USUAL[0]), np.full(classes, 1 / classes),
    )  # fmt: skip


def _count(crowd: _Crowd, posterior: FloatArray, fit: _Fit, watch: Watch, done: float, words: str) -> None:
    from raterscope.algorithms.labels._pooled_kernels import add_counts

    fit.counts[:] = 0.0
    for first, last in crowd.spans:
        watch(done, words)
        add_counts(first, last, crowd.start, crowd.annotator, crowd.label, posterior, fit.counts)
    fit.counts.sum(axis=1, out=fit.rows)


def _estimate(
    crowd: _Crowd, fit: _Fit, by_class: bool, turn: int, strengthen: bool, watch: Watch, done: float
) -> None:
    """Estimate the crowd's priors from the counts: skill, class accuracies, confusions, strength."""
    from raterscope.algorithms.labels._pooled_kernels import fill_base

    if crowd.prior is not None:
        whole = crowd.prior.sum(axis=1)
        fit.base[:] = (crowd.prior / whole[:, None]).T
        fit.strength = float(whole.mean())
        return
    outputs, classes = crowd.stands.shape
    right = np.einsum("klj,lj->kj", fit.counts, crowd.stands.astype(np.float64))
    hits = right.sum(axis=1)
    if turn in _SKILL_ROUNDS:
        watch(done, "estimating the crowd's skill")
        fit.skill = _skill(hits, crowd.votes)
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
    wrong /= np.maximum(wrong.sum(axis=0), _POOL_FLOOR)
    good = np.where(crowd.stands, together + crowd.use[:, None], 0.0)
    good /= np.maximum(good.sum(axis=0), _POOL_FLOOR)
    step = max(1, _TERMS // (outputs * classes))
    for first in range(0, len(own), step):
        watch(done, "estimating the crowd's confusions")
        fill_base(
            first, min(first + step, len(own)), crowd.stands, accuracy, good, wrong, np.maximum(own, 0.0),
            _CONFUSION_WEIGHT, fit.base,
        )  # fmt: skip
    if strengthen:
        fit.strength = _strength(fit, watch, done)


def _logit(share: FloatArray) -> FloatArray:
    share = np.clip(share, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(share / (1 - share)))


def _penalty(strengths: FloatArray) -> FloatArray:
    median, deviation = _USUAL
    return np.asarray(-0.5 * np.square(np.log(strengths / median) / deviation))


def _skill(hits: FloatArray, votes: FloatArray) -> tuple[float, float]:
    """Estimate mean and strength of the Beta distribution of skills by penalised maximum likelihood."""
    from raterscope.algorithms.labels._pooled_kernels import beta_binomial

    given = np.flatnonzero(votes > 0)
    if not len(given):
        return 0.7, _USUAL[0]
    given = given[:: -(-len(given) // _PRIOR_ANNOTATORS)]
    right, of = np.clip(hits[given], 0.0, votes[given]), votes[given]
    centre = _logit(np.array((right / of).mean()))
    means = 1.0 / (1.0 + np.exp(-(centre + _MEANS)))
    strengths = _STRENGTHS[:-1]
    scores = np.empty((len(means), len(strengths)))
    beta_binomial(right, of, means, strengths, scores)
    a, b = np.unravel_index((scores + _penalty(strengths)).argmax(), scores.shape)
    return float(means[a]), float(strengths[b])


def _strength(fit: _Fit, watch: Watch, done: float) -> float:
    """Estimate the strength of the rates' prior by penalised maximum likelihood, on a grid."""
    from raterscope.algorithms.labels._pooled_kernels import polya

    annotator, of = np.nonzero(fit.rows > 0)
    if not len(annotator):
        return fit.strength
    rows = np.stack([annotator, of], axis=1)
    most = max(1, _PRIOR_ENTRIES // fit.base.shape[1])
    rows = rows[:: -(-len(rows) // most)]
    scores = np.empty(len(_STRENGTHS))
    for at, strength in enumerate(_STRENGTHS):
        watch(done, "estimating how much annotators differ")
        scores[at] = polya(rows, fit.base, fit.counts, strength)
    return float(_STRENGTHS[(scores + _penalty(_STRENGTHS)).argmax()])


def _tempered(crowd: _Crowd, fit: _Fit, posterior: FloatArray, least: float, watch: Watch) -> FloatArray:
    """Compute the classes' probabilities with the design effect of correlated votes."""
    from raterscope.algorithms.labels._pooled_kernels import temper

    correlation = max(least, _correlation(crowd, fit, posterior, part(watch, 0.0, 0.7)))
    answer = posterior.copy()
    for first, last in crowd.spans:
        watch(0.7 + 0.3 * first / len(posterior), "weighting correlated votes")
        temper(
            first, last, crowd.start, crowd.annotator, crowd.label, fit.base, fit.strength, fit.counts,
            fit.rows, fit.shares, correlation, posterior, answer,
        )  # fmt: skip
    return answer


def _correlation(crowd: _Crowd, fit: _Fit, posterior: FloatArray, watch: Watch) -> float:
    """Estimate the correlation of the votes on a task: that with which they predict each other best."""
    from raterscope.algorithms.labels._pooled_kernels import score_correlation

    votes = np.diff(crowd.start)
    tasks = np.flatnonzero((votes >= 2) & (crowd.known == OPEN))
    if not len(tasks):
        return 0.0
    terms = int(votes[tasks].sum()) * posterior.shape[1]
    tasks = tasks[:: -(-terms // _CORRELATION_TERMS)]
    scores = np.zeros(len(_CORRELATIONS))
    ends = np.concatenate([[0], np.cumsum(votes[tasks])])
    for first, last in _spans(ends, max(1, _TERMS // posterior.shape[1] // len(_CORRELATIONS))):
        watch(first / len(tasks), "estimating the correlation of votes")
        score_correlation(
            first, last, tasks, crowd.start, crowd.annotator, crowd.label, fit.base, fit.strength,
            fit.counts, fit.rows, fit.shares, posterior, _CORRELATIONS, int(votes[tasks].max()), scores,
        )  # fmt: skip
    return float(_CORRELATIONS[scores.argmax()])


def _membership(crowd: _Crowd, posterior: FloatArray, settings: PooledSettings, watch: Watch) -> FloatArray:
    """Fit the mixed-membership model, beginning with a posterior, and give each task's mean mixture."""
    from raterscope.algorithms.labels._pooled_kernels import membership_sweep

    votes = np.diff(crowd.start)
    fit = _begun(crowd, posterior)
    share = np.repeat(posterior, votes, axis=0).astype(np.float32)
    total = posterior.astype(np.float32) * votes[:, None].astype(np.float64)
    words = "fitting mixed membership"
    _count(crowd, posterior, fit, watch, 0.0, words)
    mean = posterior.copy()
    for turn in range(1, _MEMBERSHIP_ROUNDS + 1):
        done = (turn - 1) / _MEMBERSHIP_ROUNDS
        _estimate(crowd, fit, True, turn, turn in _MEMBERSHIP_STRENGTH_ROUNDS, watch, done)
        fit.shares = mean[crowd.active].sum(axis=0) + 1.0
        fit.shares /= fit.shares.sum()
        mixture = settings.mixture * fit.shares
        for first, last in crowd.spans:
            watch(done, words)
            membership_sweep(
                first, last, crowd.start, crowd.annotator, crowd.label, crowd.known, fit.base, fit.strength,
                fit.counts, fit.rows, mixture, share, total,
            )  # fmt: skip
        mean = (mixture + total) / (settings.mixture + votes[:, None])
        held = crowd.known != OPEN
        mean[held] = posterior[held]
    mean /= mean.sum(axis=1, keepdims=True)
    return mean


def _fusion(
    labels: Labels, posterior: FloatArray, trace: LabelTrace, notices: list[str] | tuple[()]
) -> LabelFusion:
    """Count the annotators' votes given the posterior, on top of the crowd's mean rates."""
    prior = labels.prior
    if prior is None:
        counts = np.zeros((len(labels.outputs), len(labels.classes)))
        for j in range(counts.shape[1]):
            counts[:, j] = np.bincount(labels.label, posterior[labels.task, j], minlength=len(labels.outputs))
        mean = counts.T + default_prior(labels)
        prior = _MATRIX_STRENGTH * mean / mean.sum(axis=1, keepdims=True)
    return fused(labels, "pooled", posterior, counted(labels, posterior, prior), trace, notices)
