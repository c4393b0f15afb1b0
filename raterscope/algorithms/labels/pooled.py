"""Pooled consensus: hierarchical Dawid-Skene, mixed membership, subtypes of classes and the vote.

A model with independent votes is overconfident, and the vote is underconfident. Five views of the same votes
are therefore combined. Two hierarchical Dawid-Skene models and EBCC are tempered by the design effect of
correlated votes after the fit. In a mixed-membership model every vote has its own apparent class. The fifth
view is the smoothed vote. The pool is the mean of their logarithmic and their linear opinion pool. It is
mixed with the untempered models by the probability that the votes are independent (see `independence`).

For ordered classes the ordinal model (`ordinal`) replaces the Dawid-Skene models and EBCC. The mixed
membership takes its prior from it too.

Votes alone do not reveal errors that the crowd shares. Tasks of known class do, but only for tasks of similar
confidence: decisions on the most disputed tasks carry no information on those that seem certain. The
logarithm of the power is therefore a Gaussian process in the confidence, with mean zero. Three biases are
avoided:

- An expert is wrong at times. The share of wrong classes is estimated with the powers.
- Where known tasks were chosen for their doubt, those that seem clearer now are less often right than others
  as clear (regression to the mean). Known tasks count by their share of the tasks of like confidence.
- A power below one, estimated from doubtful tasks, is not extended to clear ones for the same reason.

If votes on a task share causes (a hard picture, a misleading text), they predict each other best with a
tempered likelihood; independent votes predict each other best without tempering. The gain also depends on the
numbers of votes, annotators and classes. Two models are therefore fitted to the crowd, one with independent
votes and one in which every task is a mixture of classes. Crowds of the same design are simulated from both
and fitted again, and the crowd's gain is compared with theirs.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
.. [paun2018] S. Paun, B. Carpenter, J. Chamberlain, D. Hovy, U. Kruschwitz and M. Poesio, "Comparing
   Bayesian models of annotation", Transactions of the Association for Computational Linguistics 6 (2018)
   571-585, doi:10.1162/tacl_a_00040 (hierarchical Dawid-Skene).
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
.. [li2019] Y. Li, B. I. P. Rubinstein and T. Cohn, "Exploiting worker correlation for label aggregation in
   crowdsourcing", Proceedings of the 36th International Conference on Machine Learning, PMLR 97 (2019)
   3886-3895 (subtypes of classes).
.. [kish1965] L. Kish, "Survey sampling", Wiley (1965) (design effect).
.. [genest1986] C. Genest and J. V. Zidek, "Combining probability distributions: a critique and an annotated
   bibliography", Statistical Science 1 (1986) 114-135, doi:10.1214/ss/1177013825 (opinion pools).
.. [guo2017] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks",
   Proceedings of the 34th International Conference on Machine Learning, PMLR 70 (2017) 1321-1330 (the
   powers where classes are known).
.. [rasmussen2006] C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press
   (2006) (the mode of a latent process by Newton's method).
.. [cox1961] D. R. Cox, "Tests of separate families of hypotheses", Proceedings of the Fourth Berkeley
   Symposium on Mathematical Statistics and Probability 1 (1961) 105-123.
.. [mclachlan1987] G. J. McLachlan, "On bootstrapping the likelihood ratio test statistic for the number of
   components in a normal mixture", Applied Statistics 36 (1987) 318-324, doi:10.2307/2347790 (the
   comparison by simulation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.crowd_votes import Crowd, smoothed_vote, sort_votes
from raterscope.algorithms.labels.data import (
    MOST_ENTRIES,
    OPEN,
    ClassArray,
    Confusion,
    FloatArray,
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    default_prior,
    has_own_matrices,
    run_spans,
    weighted_counts,
)
from raterscope.algorithms.labels.ebcc import tempered_subtypes
from raterscope.algorithms.labels.hierarchical import (
    FLOOR,
    Fit,
    correlation_of,
    dawid_skene,
    predictive_scores,
    tempered_posteriors,
)
from raterscope.algorithms.labels.mixed_membership import mixed_membership
from raterscope.algorithms.labels.ordinal import order_notices
from raterscope.algorithms.labels.result import convergence_notices, count_confusion, make_fusion
from raterscope.algorithms.labels.shared_confusion import (
    crowd_counts,
    fit_shared,
    shared_correlation,
    shared_posterior,
)
from raterscope.algorithms.progress import Cancelled, Watch, part, silent
from raterscope.algorithms.settings import integer, number

_T = TypeVar("_T")

_SECONDS = 0.05
"""Time between two reports while another thread computes."""

_BLOCK = 8192
"""Tasks of a block."""

_SPREAD = 0.25
"""Standard deviation of the logarithm of the power between crowds."""

_LENGTH = 1.0
"""Logits of confidence over which the power changes."""

_PLACES = np.linspace(-3.0, 8.0, 45)
_STEP = float(_PLACES[1] - _PLACES[0])

_MISTAKES = (2.0, 20.0)
"""Beta distribution of the share of known classes that are wrong; its mode is 0.05."""

_BINS = np.linspace(-3.0, 14.0, 171)
_WIDTH = 0.3
"""Logits over which the share of known tasks is smoothed."""

_MOST = 20_000
"""Maximum of known tasks for estimating powers; more are thinned."""

_TURNS = 30
_CHANGE = 1e-3
_LARGEST_STEP = 0.5


def sharpen(
    posterior: FloatArray, known: FloatArray, truth: ClassArray, judged: NDArray[np.int64]
) -> FloatArray:
    """Raise probabilities to powers estimated from known tasks of similar confidence, (N, J).

    Parameters
    ----------
    posterior : (N, J) float64
    known : (M, J) float64
        Of tasks of known class, predicted without it.
    truth : (M,) int16
        Their classes.
    judged : (M,) int64
        Their numbers.
    """
    confidence = _confidence(posterior)
    covered = _coverage(_confidence(known), np.delete(confidence, judged))
    step = slice(None, None, -(-len(known) // _MOST))
    logs = _log_powers(known[step], truth[step], covered)
    log_odds = np.interp(confidence, _PLACES, logs)
    share = np.interp(confidence, _BINS, covered)
    log_odds = np.where(log_odds < 0, log_odds * np.square(share), log_odds)
    return _raise(posterior, np.exp(log_odds)[:, None])


def _coverage(known: FloatArray, others: FloatArray) -> FloatArray:
    """Return the share of known tasks by confidence, relative to that of all tasks and at most 1, by bin."""
    kernel = np.exp(-0.5 * np.square((_BINS[:, None] - _BINS) / _WIDTH))
    edges = np.append(_BINS - (_BINS[1] - _BINS[0]) / 2, np.inf)
    edges[0] = -np.inf
    of_known, of_others = (kernel @ np.histogram(values, edges)[0] for values in (known, others))
    share = len(known) / (len(known) + len(others))
    return np.asarray(np.minimum(of_known / (of_known + of_others + 1e-6) / share, 1.0))


def _log_powers(known: FloatArray, truth: ClassArray, covered: FloatArray) -> FloatArray:
    """Estimate the logarithm of the power at each confidence, and the error rate of truths."""
    confidence = _confidence(known)
    weight = np.interp(confidence, _BINS, covered)
    at = np.clip((confidence - _PLACES[0]) / _STEP, 0.0, len(_PLACES) - 1.001)
    remaining = at.astype(np.int64)
    rows = np.arange(len(truth))
    design = np.zeros((len(truth), len(_PLACES)))
    design[rows, remaining], design[rows, remaining + 1] = 1.0 - (at - remaining), at - remaining
    distance = (_PLACES[:, None] - _PLACES) / _LENGTH
    covariance = np.square(_SPREAD) * np.exp(-0.5 * np.square(distance)) + 1e-6 * np.eye(len(_PLACES))
    precision = np.linalg.inv(covariance)
    logs = np.log(np.maximum(known, 1e-12))
    ones, noughts = _MISTAKES
    powers, mistaken = np.zeros(len(_PLACES)), (ones - 1) / (ones + noughts - 2)
    for _ in range(_TURNS):
        power = np.exp(design @ powers)
        share = _raise(known, power[:, None])
        right = (1 - mistaken) * share[rows, truth]
        likelihood = right + mistaken / known.shape[1]
        mean = (share * logs).sum(axis=1)
        slope = right / likelihood * (logs[rows, truth] - mean) * power
        bend = ((share * np.square(logs)).sum(axis=1) - mean**2) * power**2 * right / likelihood
        gradient = design.T @ (weight * slope) - precision @ powers
        curvature = design.T @ ((weight * bend)[:, None] * design) + precision
        step = np.clip(np.linalg.solve(curvature, gradient), -_LARGEST_STEP, _LARGEST_STEP)
        powers = powers + step
        wrong = float((mistaken / known.shape[1] / likelihood).sum())
        mistaken = (wrong + ones - 1) / (len(truth) + ones + noughts - 2)
        if np.abs(step).max() < _CHANGE:
            break
    return powers


def _confidence(posterior: FloatArray) -> FloatArray:
    """Return the logit of the most probable class."""
    most = np.clip(posterior.max(axis=1, initial=0.0), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(most / (1 - most)))


def _raise(posterior: FloatArray, power: float | FloatArray) -> FloatArray:
    """Raise probabilities to a power, and normalise them."""
    logs = power * np.log(np.maximum(posterior, 1e-12))
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    return np.asarray(values)


PRIOR = 0.2
"""Prior probability of independent annotators: none of ten public crowds had them for certain."""

_SIMULATED = 8
"""Crowds of each kind."""

_FREEDOM = _SIMULATED - 1.0

_TERMS = 100_000
"""Votes times classes above which tasks are thinned."""

_LEAST_TERMS = 20
"""Minimum of votes on tasks with several votes for the comparison."""

_ERROR = 0.1
"""Relative error of a simulated gain beside its scatter; the models are estimates."""

_DEGREES = np.arange(20) / 20
"""Degrees of dependence between the mixture model's (0) and none (1), equally probable."""


def _watch_until(stopped: Event) -> Watch:
    """Return a watch for other threads, which raises `Cancelled` after the event."""

    def watch(
        fraction: float,  # noqa: ARG001
        words: str,  # noqa: ARG001
        *,
        objective: float | None = None,  # noqa: ARG001
        partial: Callable[[], object] | None = None,  # noqa: ARG001
    ) -> None:
        if stopped.is_set():
            raise Cancelled

    return watch


def independence(
    labels: Labels,
    correlation: float,
    mixture: float,
    iterations: int,
    tolerance: float,
    watch: Watch = silent,
) -> float:
    """Estimate the probability that annotators err independently.

    Known classes are not used, so that the result does not depend on decisions.

    Parameters
    ----------
    labels : Labels
        Repeated votes settled.
    correlation : float
        Of the tempered likelihood.
    mixture : float
        Prior strength of a task's mixture in the alternative.
    iterations : int
    tolerance : float
        Of the fits; see `dawid_skene`.
    watch : Watch

    Returns
    -------
    float
        `PRIOR` if the votes carry no information.
    """
    labels = _thin(replace(labels, known=None))
    if not len(labels):
        return PRIOR

    def gain(votes: Labels, watch: Watch) -> tuple[float, Fit, FloatArray]:
        crowd = sort_votes(votes, part(watch, 0.0, 0.05))
        posterior = smoothed_vote(votes, crowd, part(watch, 0.05, 0.1))
        fit, _ = dawid_skene(crowd, posterior, True, iterations, tolerance, part(watch, 0.1, 0.8))
        compared = np.array([0.0, correlation])
        scores = predictive_scores(crowd, fit, posterior, compared, part(watch, 0.8, 1.0))
        return float(scores[0] - scores[1]), fit, posterior

    measured, fit, posterior = gain(labels, part(watch, 0.0, 0.1, "simulated crowds: "))
    step = part(watch, 0.1, 0.2, "simulated crowds: ")
    crowd = sort_votes(labels, silent)
    _, mixed = mixed_membership(crowd, posterior, mixture, step)
    generator = np.random.default_rng(0)
    drawn = [
        _draw(labels, model.shares, rates, strength, generator)
        for model, rates, strength in (
            (fit, fit.rates(crowd), 0.0),
            (mixed, mixed.rates(crowd), mixture),
        )
        for _ in range(_SIMULATED)
    ]
    stopped = Event()

    def report() -> None:
        try:
            watch(0.2, "simulated crowds: fitting")
        except BaseException:
            stopped.set()  # the threads end at their next report
            raise

    end_if_stopped = _watch_until(stopped)
    spans = tuple((index, index + 1) for index in range(len(drawn)))
    gains = run_spans(spans, lambda index, _: gain(drawn[index], end_if_stopped)[0], report)
    return _probability(measured, np.array(gains[:_SIMULATED]), np.array(gains[_SIMULATED:]))


def _thin(labels: Labels) -> Labels:
    """Keep tasks with several votes, thinned if there are very many, and their annotators."""
    votes = labels.votes_of_tasks()
    tasks = np.flatnonzero(votes >= 2)
    terms = int(votes[tasks].sum()) * len(labels.classes)
    tasks = tasks[:: max(1, -(-terms // _TERMS))]
    if votes[tasks].sum() < _LEAST_TERMS:
        return labels.subset(np.zeros(len(labels), dtype=bool))
    row = np.full(len(votes), -1)
    row[tasks] = np.arange(len(tasks))
    kept = row[labels.task] >= 0
    remaining, annotator = np.unique(labels.annotator[kept], return_inverse=True)
    return replace(
        labels,
        task=row[labels.task[kept]].astype(np.int32),
        annotator=annotator.astype(np.int32),
        label=labels.label[kept],
        time=None,
        tasks=tuple(labels.tasks[task] for task in tasks.tolist()),
        annotators=tuple(labels.annotators[annotator_row] for annotator_row in remaining.tolist()),
    )


def _draw(
    labels: Labels, shares: FloatArray, rates: FloatArray, mixture: float, generator: np.random.Generator
) -> Labels:
    """Draw new labels for the same votes; without a mixture all votes on a task have one class."""
    tasks, classes = len(labels.tasks), len(shares)
    if mixture > 0:
        weight = generator.gamma(mixture * shares, size=(tasks, classes)) + 1e-300
        weight /= weight.sum(axis=1, keepdims=True)
        apparent = _categories(weight[labels.task], generator)
    else:
        drawn = generator.choice(classes, tasks, p=shares)
        apparent = drawn.astype(np.int16)[labels.task]
    return replace(labels, label=_categories(rates[labels.annotator, :, apparent], generator))


def _categories(probability: FloatArray, generator: np.random.Generator) -> NDArray[np.int16]:
    """Draw a category for each row of probabilities."""
    above = generator.random(len(probability))[:, None] > probability.cumsum(axis=1)
    return np.asarray(np.minimum(above.sum(axis=1), probability.shape[1] - 1), dtype=np.int16)


def _probability(measured: float, independent: FloatArray, dependent: FloatArray) -> float:
    """Return the probability of independence, given the crowd's gain and those of simulated crowds.

    Gains of each model are t distributed. The mean gain of a dependent crowd lies anywhere between those of
    the mixture model and of independent annotators.
    """
    means = np.array([independent.mean(), dependent.mean()])
    scatter = np.array([independent.var(ddof=1), dependent.var(ddof=1)])
    spread = np.sqrt(scatter + np.square(_ERROR * means) + 1.0)
    none = float(_density(measured, means[:1], spread[:1])[0])
    centres = means[1] + _DEGREES * (means[0] - means[1])
    spreads = spread[1] + _DEGREES * (spread[0] - spread[1])
    density = float(_density(measured, centres, spreads).mean())
    return PRIOR * none / (PRIOR * none + (1.0 - PRIOR) * density)


def _density(value: float, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Return Student's t density up to a constant."""
    offset = (value - centre) / spread
    return np.asarray((1.0 + offset * offset / _FREEDOM) ** (-(_FREEDOM + 1.0) / 2.0) / spread)


_WEIGHTS = {"by class": 0.17, "by skill": 0.17, "membership": 0.34, "subtypes": 0.15, "vote": 0.17}
"""Of Dawid-Skene with and without class accuracies, mixed membership, EBCC and the vote.

These, the least correlation and the mixture's strength were chosen on ten public crowds with truths; votes
alone cannot identify them, and on these crowds many other weights do as well.
"""

_ORDINAL_WEIGHTS = {"ordinal": 0.49, "membership": 0.34, "vote": 0.17}
"""For ordered classes: the ordinal model in place of the two Dawid-Skene models and EBCC."""

_MATRIX_STRENGTH = 4.0
"""Maximum of votes that the crowd's mean rates count as in a reported confusion matrix."""


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


@dataclass(eq=False)
class _Pool:
    """Sums over the views: of weighted logarithms, of weighted probabilities, and of the weights."""

    logs: FloatArray
    shares: FloatArray
    weight: float = 0.0

    def add(self, view: FloatArray, weight: float) -> None:
        for rows in _blocks(len(view)):
            self.logs[rows] += weight * np.log(view[rows] + FLOOR)
            self.shares[rows] += weight * view[rows]
        self.weight += weight

    def answer(self) -> FloatArray:
        """Return the mean of the logarithmic and the linear pool."""
        answer = np.empty(self.logs.shape)
        for rows in _blocks(len(answer)):
            block = _normalise(self.logs[rows].astype(np.float64) / self.weight)
            block += self.shares[rows] / self.weight
            block /= block.sum(axis=1, keepdims=True)
            answer[rows] = block
        return answer


def _blocks(tasks: int) -> Iterator[slice]:
    """Divide tasks into blocks whose intermediate results take little memory."""
    return (slice(first, first + _BLOCK) for first in range(0, tasks, _BLOCK))


def pooled(labels: Labels, settings: PooledSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes by five models of the votes, and pool them.

    Row j of annotator k's confusion matrix is Dirichlet distributed with mean B_kj and strength c. The mean
    follows from the annotator's skill, the class's accuracy and the crowd's and the annotator's own wrong
    labels; skill's distribution, c and the classes' shares are estimated from the crowd. A prior of the
    question (`Labels.prior`) replaces c B; EBCC, which has no such prior, is then omitted, as it is for very
    large crowds. Known tasks are held fixed. The likelihood of n votes on a task is raised to 1 / (1 + (n -
    1) rho), where rho is the correlation with which votes predict each other best, or the minimum of the
    settings. The result is p Q_0 + (1 - p) Q, where p is the probability that annotators err independently, Q
    the pool, and Q_0 that of the two Dawid-Skene models without the minimum correlation. With known classes
    it is raised to powers estimated from these tasks, each predicted without its class.

    In large crowds (four million votes times classes) the first model is fitted to a part of the tasks, then
    to all of them. The others start from it and end by the tolerance, and tables have single precision.
    Probabilities then differ by 0.001 on average from those of fits to all tasks from the vote.

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

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> fusion = pooled(crowd.labels)
    >>> float(round((fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.92
    """
    settings = PooledSettings() if settings is None else settings
    labels = labels.settled(settings.repeats)
    crowd = sort_votes(labels, part(watch, 0.0, 0.02))
    vote = smoothed_vote(labels, crowd, part(watch, 0.02, 0.03))
    if not has_own_matrices(labels):
        return _with_shared_confusion(labels, crowd, vote, settings, part(watch, 0.03, 1.0))

    def show(posterior: FloatArray) -> LabelFusion:
        trace = LabelTrace(np.empty(0), np.empty(0), converged=False)
        return _fusion(labels, posterior.copy(), trace, ())

    limits = (settings.iterations, settings.tolerance)
    known = np.flatnonzero(crowd.known != OPEN)
    judged = known[np.diff(crowd.start)[known] > 0]
    weights = _WEIGHTS if crowd.ordinal is None else _ORDINAL_WEIGHTS
    pool = _Pool(np.zeros_like(vote), np.zeros_like(vote))
    if len(judged):
        votes_alone = replace(crowd, known=np.full_like(crowd.known, OPEN))
        pool.add(smoothed_vote(labels, votes_alone, silent), weights["vote"])
    else:
        pool.add(vote, weights["vote"])
    free = np.zeros_like(vote)
    traces: list[LabelTrace] = []
    unheld: FloatArray | None = None
    like: Fit | None = None
    correlation = settings.correlation
    posterior = vote
    with _Beside[tuple[FloatArray, Fit]]() as beside:
        models = ("ordinal",) if crowd.ordinal is not None else ("by class", "by skill")
        for name, step in zip(models, (part(watch, 0.03, 0.3), part(watch, 0.3, 0.5)), strict=False):
            posterior = (vote if like is None else posterior).copy()
            fit, trace = dawid_skene(
                crowd, posterior, name != "by skill", *limits, part(step, 0.0, 0.7), show, like
            )  # fmt: skip
            estimated = correlation_of(crowd, fit, posterior, part(step, 0.7, 0.8))
            used = max(settings.correlation, estimated)
            if not traces:
                correlation = used
                if len(judged):
                    unheld = tempered_posteriors(crowd, fit, posterior, [0.0], silent)[0][judged]
                if crowd.large:
                    like = replace(fit)
                    begin = crowd, posterior, settings.mixture, part(step, 0.8, 0.9), judged, unheld, like
                    pool.add(mixed_membership(*begin, settings.tolerance)[0], weights["membership"])
                else:  # half of the time, on one processor
                    alone = crowd, posterior, settings.mixture, beside.watch, judged, unheld
                    beside.start(partial(mixed_membership, *alone))
            effects = [used] if estimated == used else [used, estimated]
            views = tempered_posteriors(crowd, fit, posterior, effects, part(step, 0.9, 1.0))
            pool.add(views[0], weights[name])
            for rows in _blocks(len(free)):
                free[rows] += np.log(views[-1][rows] + FLOOR) / len(models)
            traces.append(trace)
            del fit, views
        del posterior
        subtypes = None
        if labels.prior is None and "subtypes" in weights:
            subtypes = tempered_subtypes(labels, vote, correlation, *limits, part(watch, 0.5, 0.65))
        chance = 0.0
        if settings.correlation > 0:
            step = part(watch, 0.65, 0.8)
            chance = independence(labels, settings.correlation, settings.mixture, *limits, step)
        if not crowd.large:
            mixture, _ = beside.result(lambda: watch(0.8, "fitting mixed membership"))
            pool.add(mixture, weights["membership"])
            del mixture
    if subtypes is not None:
        pool.add(subtypes, weights["subtypes"])
    answer = pool.answer()
    del pool
    if settings.correlation > 0:
        for rows in _blocks(len(answer)):
            answer[rows] *= 1.0 - chance
            answer[rows] += chance * _normalise(free[rows])
    if len(judged):
        answer = sharpen(answer, answer[judged], crowd.known[judged], judged)
    answer[known] = np.eye(answer.shape[1])[crowd.known[known]]
    watch(0.97, "counting votes")
    trace = next((trace for trace in traces if not trace.converged), traces[0])
    notices = [*order_notices(labels), *convergence_notices(trace)]
    return _fusion(labels, answer, trace, notices)


def _with_shared_confusion(
    labels: Labels, crowd: Crowd, vote: FloatArray, settings: PooledSettings, watch: Watch
) -> LabelFusion:
    """Estimate one accuracy for each annotator and one confusion matrix for all; see `shared_confusion`."""
    posterior = vote.copy()
    fit, trace = fit_shared(
        labels, crowd, posterior, settings.iterations, settings.tolerance, part(watch, 0.0, 0.7)
    )
    correlation = max(settings.correlation, shared_correlation(labels, crowd, fit, part(watch, 0.7, 0.8)))
    shared_posterior(labels, crowd, fit, correlation, posterior)
    known = np.flatnonzero(crowd.known != OPEN)
    judged = known[np.diff(crowd.start)[known] > 0]
    if len(judged):
        votes_alone = replace(crowd, known=np.full_like(crowd.known, OPEN))
        vote = smoothed_vote(labels, votes_alone, silent)
    pool = _Pool(np.zeros_like(vote), np.zeros_like(vote))
    pool.add(posterior, 1 - _WEIGHTS["vote"])
    pool.add(vote, _WEIGHTS["vote"])
    del posterior, vote
    answer = pool.answer()
    del pool
    if len(judged):
        answer = sharpen(answer, answer[judged], crowd.known[judged], judged)
    answer[known] = 0.0
    answer[known, crowd.known[known]] = 1.0
    mean = crowd_counts(labels, answer) + default_prior(labels)
    prior = _MATRIX_STRENGTH * mean / mean.sum(axis=1, keepdims=True)
    confusion = count_confusion(labels, answer, prior if labels.prior is None else labels.prior)
    words = (
        f"One accuracy is estimated for each of {len(labels.annotators):,} annotators, and one confusion"
        f" matrix for all: matrices of {len(labels.classes):,} classes for each would have"
        f" {confusion.alpha.size:,} entries; more than {MOST_ENTRIES:,} are not estimated."
        " Communities and copies are not looked for."
    )
    return make_fusion(labels, "pooled", answer, confusion, trace, [words, *convergence_notices(trace)])


class _Beside(Generic[_T]):
    """A thread for one function, which ends early when the block is left."""

    def __init__(self) -> None:
        self._stopped = Event()
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[_T] | None = None
        self.watch = _watch_until(self._stopped)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown()

    def start(self, run: Callable[[], _T]) -> None:
        """Start the function, which must call `watch` often."""
        self._future = self._pool.submit(run)

    def result(self, report: Callable[[], None]) -> _T:
        """Wait for the result; `report` is called several times a second and may raise."""
        assert self._future is not None
        while not self._future.done():
            report()
            wait([self._future], _SECONDS)
        return self._future.result()


def _normalise(logs: FloatArray) -> FloatArray:
    """Turn logarithms into probabilities."""
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    return np.asarray(values)


def _fusion(
    labels: Labels, posterior: FloatArray, trace: LabelTrace, notices: list[str] | tuple[()]
) -> LabelFusion:
    """Count the annotators' votes given the posterior, on top of the crowd's mean rates."""
    alpha, prior = weighted_counts(labels, posterior), labels.prior
    if prior is None:
        mean = alpha.sum(axis=0) + default_prior(labels)
        prior = _MATRIX_STRENGTH * mean / mean.sum(axis=1, keepdims=True)
    alpha += prior
    return make_fusion(labels, "pooled", posterior, Confusion(alpha, prior), trace, notices)
