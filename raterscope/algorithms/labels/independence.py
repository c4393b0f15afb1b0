"""Probability that annotators err independently, by simulated crowds, and weight of the ordinal model.

If votes on a task share causes (a hard picture, a misleading text), they predict each other best with a
tempered likelihood; independent votes predict each other best without tempering. The gain also depends on the
numbers of votes, annotators and classes. Two models are therefore fitted to the crowd, one with independent
votes and one in which every task is a mixture of classes. Crowds of the same design are simulated from both
and fitted again, and the crowd's gain is compared with theirs.

Hard tasks on which annotators err more often, but not in the same way, produce the same gain as shared
causes, but are harmless: wrong votes do not confirm each other. With more than two classes, the agreement of
wrong votes on a task distinguishes these crowds. It is also compared with that of the simulated crowds.

Classes named by numbers may be codes without an order, and annotators of grades may confuse classes that are
not neighbours. Each vote is therefore predicted from the other votes on its task by both models. If the
models of unordered classes predict significantly better, the order is not used. Otherwise the models are
stacked ([yao2018]_): the weights maximise the likelihood of the mixture of their predictions of each task's
votes.

In mixed membership every vote has an apparent class of its own, drawn from its task's mixture. Rates and
their priors are those of hierarchical Dawid-Skene, given the apparent classes.

References
----------
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
.. [newman2009] D. Newman, A. Asuncion, P. Smyth and M. Welling, "Distributed algorithms for topic models",
   Journal of Machine Learning Research 10 (2009) 1801-1828 (parts of the tasks with counts of their own).
.. [cox1961] D. R. Cox, "Tests of separate families of hypotheses", Proceedings of the Fourth Berkeley
   Symposium on Mathematical Statistics and Probability 1 (1961) 105-123.
.. [mclachlan1987] G. J. McLachlan, "On bootstrapping the likelihood ratio test statistic for the number of
   components in a normal mixture", Applied Statistics 36 (1987) 318-324, doi:10.2307/2347790 (the
   comparison by simulation).
.. [salakhutdinov2003] R. Salakhutdinov and S. Roweis, "Adaptive overrelaxed bound optimization methods",
   Proceedings of the 20th International Conference on Machine Learning (2003) 664-671.
.. [yao2018] Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive
   distributions", Bayesian Analysis 13 (2018) 917-1007, doi:10.1214/17-BA1091.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import sum_rows
from raterscope.algorithms.labels.crowd_votes import (
    TERMS,
    Crowd,
    class_votes,
    count_votes_of,
    run_by_part,
    smoothed_vote,
    sort_votes,
)
from raterscope.algorithms.labels.data import OPEN, FloatArray, Labels, keep_to_sets
from raterscope.algorithms.labels.hierarchical import (
    Fit,
    dawid_skene,
    empty_fit,
    estimate_priors,
    predictive_scores,
    task_scores,
)
from raterscope.algorithms.progress import Watch, part, parts_of, run_parts, silent, watch_until

_ROUNDS = 30
_STRENGTH_ROUNDS = (5, 15)
_MIN_ITERATIONS_OF_LARGE, _STRENGTH_ROUNDS_OF_LARGE = 6, (2, 5)
"""Minimum number of rounds, and number of rounds that estimate the strength, if the model starts from another
fit.
"""

_BEYOND, _NEAR = 0.4, 4.0
"""If the model starts from another fit: over-relaxation of each change of a vote's probabilities
([salakhutdinov2003]_), and change of the tasks, in tolerances, below which rounds use no over-relaxation.
"""

_SWEEPS = 20
"""Number of sweeps over each known task for its prediction from votes alone."""


def mixed_membership(
    crowd: Crowd,
    posterior: FloatArray,
    mixture: float,
    watch: Watch,
    judged: NDArray[np.int64] | None = None,
    left_out: FloatArray | None = None,
    like: Fit | None = None,
    tolerance: float = 0.0,
) -> tuple[FloatArray, Fit]:
    """Fit the model from an initial posterior; return the tasks' expected mixtures and the fit.

    `posterior`: (N, J).
    `mixture`: prior strength of a task's mixture.
    `judged`: (M,), known tasks with votes whose mixture is predicted without their class.
    `left_out`: (M, J), initial probabilities of these tasks.
    `like`: fit of the initial posterior. With `like`, the rounds end by the tolerance.
    `tolerance`: limit of the change of a task's expected mixture, summed over the classes and averaged over
        the tasks. The mixtures, (N, J), of judged tasks are estimated without their own class. The rates of
        the fit are those given the apparent class.
    """
    from raterscope.algorithms.labels._kernels import (
        membership_sweep,
        membership_without_truth,
        merge_parts,
    )
    from raterscope.algorithms.labels._pooled_kernels import weigh_pairs

    text = "fitting mixed membership"
    votes = crowd.votes_of_tasks
    fit = empty_fit(crowd, like)
    single = posterior.astype(np.float32, copy=False)
    share = _shares(crowd, single, partial(watch, 0.0, text))
    total = single * votes[:, None].astype(crowd.dtype)
    del single
    fit.counts = count_votes_of(crowd, posterior, partial(watch, 0.0, text)).sum(axis=0)
    fixed = crowd.known > OPEN
    if crowd.sets is not None:
        posterior = keep_to_sets(posterior.copy(), crowd.known, crowd.sets)
    prior = mixture * fit.shares
    # The sum of the expected mixtures over the active tasks; their matrix is not needed.
    weight = np.where(crowd.active & ~fixed, 1.0 / (mixture + votes), 0.0).astype(crowd.dtype)
    of_known = posterior[fixed].sum(axis=0) + 1.0
    fit.shares = (crowd.active.astype(crowd.dtype) @ posterior).astype(np.float64) + 1.0
    parts = len(crowd.parts)
    above, below = (np.empty((parts, *table.shape)) for table in (fit.counts, fit.rows))
    active = max(1, int((crowd.active & ~fixed).sum()))

    def begin(at: int, _: int) -> None:
        weigh_pairs(crowd.begin, fit.base, fit.strength, fit.counts, fit.rows, above[at], below[at])

    def sweep(prior: FloatArray, beyond: float, at: int, first: int, last: int) -> float:
        model = above[at], below[at]
        return sum(
            membership_sweep(
                low, high, crowd.by_task, crowd.known, model, own * (prior.sum() / own.sum()), share,
                total, crowd.each_class, crowd.weights, beyond,
            )
            for low, high, own in crowd.split(first, last, prior)
        )  # fmt: skip

    def merge(first: int, last: int) -> None:
        merge_parts(first, last, above, fit.base, fit.strength, fit.counts)

    spans = parts_of(len(fit.counts), TERMS // fit.counts.shape[1])
    beyond = 0.0
    for turn in range(1, _ROUNDS + 1):
        done = (turn - 1) / _ROUNDS
        strengthen = turn in (_STRENGTH_ROUNDS if like is None else _STRENGTH_ROUNDS_OF_LARGE)
        estimate_priors(crowd, fit, fit.counts[None], True, turn, strengthen, watch, done)
        if turn > 1:
            fit.shares = (weight @ total).astype(np.float64) + weight.sum() * prior + of_known
        fit.shares /= fit.shares.sum()
        prior = mixture * fit.shares
        # Each part gets the changes of the other parts after the round ([newman2009]_).
        report = partial(watch, done, text)
        run_parts(begin, parts_of(parts, 1), report)
        moved = sum(run_by_part(crowd.parts, partial(sweep, prior, beyond), report))
        run_parts(merge, spans, report)
        fit.rows = below.sum(axis=0) - parts * fit.strength - (parts - 1) * fit.rows
        if (
            like is not None
            and turn >= _MIN_ITERATIONS_OF_LARGE
            and not beyond
            and moved / active < tolerance
        ):
            break
        beyond = 0.0 if like is None or moved / active < _NEAR * tolerance else _BEYOND
    alone = None
    if judged is not None and left_out is not None and len(judged):
        watch(1.0, text)
        alone = np.empty_like(left_out)
        membership_without_truth(
            judged, crowd.by_task, left_out, _SWEEPS, fit.tables(crowd, np.float64), prior, share, total,
            alone, crowd.weights,
        )  # fmt: skip
    mean = total
    mean += prior.astype(crowd.dtype)
    mean /= (mixture + votes[:, None]).astype(crowd.dtype)
    mean[fixed] = posterior[fixed]
    if alone is not None:
        mean[judged] = (prior + alone) / (mixture + votes[judged, None])
    mean /= sum_rows(mean, keepdims=True)
    return keep_to_sets(mean, crowd.known, crowd.sets), fit


def _shares(crowd: Crowd, posterior: NDArray[np.float32], report: Callable[[], None]) -> NDArray[np.float32]:
    """Copy the posterior of each task to its votes, (V, J)."""
    if not crowd.large:
        return np.repeat(posterior, np.diff(crowd.start), axis=0)
    from raterscope.algorithms.labels._kernels import spread

    share = np.empty((len(crowd.pair), posterior.shape[1]), dtype=np.float32)
    run_by_part(
        crowd.parts, lambda _, first, last: spread(first, last, crowd.start, posterior, share), report
    )
    return share


PRIOR = 0.2
"""Prior probability that annotators do not make the same errors; none of ten public crowds certainly had such
annotators. With more than two classes, half of it is the probability of tasks of unequal difficulty.
"""

_SIMULATED = 8
"""Number of simulated crowds of each kind."""

_FREEDOM = _SIMULATED - 1.0

_TERMS = 100_000
"""Votes times classes above which tasks are thinned."""

_MIN_TERMS = 20
"""Minimum number of votes on tasks with several votes for the comparison."""

_ERROR = 0.1
"""Relative error of a simulated statistic in addition to its scatter, because the models are estimates."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

_DEGREES = np.arange(20) / 20
"""Degrees of dependence between the mixture model's (0) and none (1), equally probable."""


def independence(
    labels: Labels,
    correlation: float,
    mixture: float,
    iterations: int,
    tolerance: float,
    watch: Watch = silent,
) -> float:
    """Estimate the probability that annotators do not make the same errors.

    Known classes are not used, so that the result does not depend on decisions.

    `labels`: repeated votes resolved.
    `correlation`: correlation of the tempered likelihood.
    `mixture`: prior strength of a task's mixture in the alternative.
    `tolerance`: as in `dawid_skene`.
    The result is `PRIOR` if the votes carry no information.
    """
    labels = thin_tasks(replace(labels, known=None))
    if not len(labels):
        return PRIOR
    labels = _sorted_by_content(labels)

    def fitted(votes: Labels, watch: Watch) -> tuple[FloatArray, Fit, FloatArray]:
        crowd = sort_votes(votes, part(watch, 0.0, 0.05))
        posterior = smoothed_vote(votes, crowd, part(watch, 0.05, 0.1))
        fit, _ = dawid_skene(crowd, posterior, True, iterations, tolerance, part(watch, 0.1, 0.8))
        compared = np.array([0.0, correlation])
        scores = predictive_scores(crowd, fit, posterior, compared, part(watch, 0.8, 1.0))
        statistics = scores[0] - scores[1], _agreement(class_votes(votes), posterior)
        return np.array(statistics), fit, posterior

    measured, fit, posterior = fitted(labels, part(watch, 0.0, 0.1, "simulated crowds: "))
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
    end_if_stopped = watch_until(stopped)

    def fit_again(index: int, _: int) -> FloatArray:
        return fitted(drawn[index], end_if_stopped)[0]

    report = partial(watch, 0.2, "simulated crowds: fitting")
    values = np.array(run_parts(fit_again, parts_of(len(drawn), 1), report, stopped.set))
    gain, agreement = (
        _likelihoods(*of)
        for of in zip(measured.tolist(), values[:_SIMULATED].T, values[_SIMULATED:].T, strict=True)
    )
    return _probability(gain, agreement, len(labels.classes))


def thin_tasks(labels: Labels, most: int = _TERMS) -> Labels:
    """Keep tasks with several votes (a sample if there are very many) and their annotators."""
    votes = labels.votes_of_tasks()
    tasks = np.flatnonzero(votes >= 2)
    terms = int(votes[tasks].sum()) * len(labels.classes)
    tasks = tasks[:: max(1, -(-terms // most))]
    if votes[tasks].sum() < _MIN_TERMS:
        return labels.subset(np.zeros(len(labels), dtype=bool))
    row = np.full(len(votes), -1, dtype=np.int32)
    row[tasks] = np.arange(len(tasks))
    kept = (row >= 0)[labels.task]
    remaining, annotator = np.unique(labels.annotator[kept], return_inverse=True)
    return replace(
        labels,
        task=row[labels.task[kept]],
        annotator=annotator.astype(np.int32),
        label=labels.label[kept],
        time=None,
        tasks=tuple(labels.tasks[task] for task in tasks.tolist()),
        annotators=tuple(labels.annotators[annotator_row] for annotator_row in remaining.tolist()),
        weights=None if labels.weights is None else labels.weights[remaining],
    )


def _sorted_by_content(labels: Labels) -> Labels:
    """Sort tasks and votes by a hash of their content; simulated crowds do not depend on their order."""
    pair = (labels.annotator.astype(np.int64) * len(labels.outputs) + labels.label).astype(np.uint64)
    mixed = (pair + np.uint64(1)) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MULTIPLIER
    key = np.zeros(len(labels.tasks), dtype=np.uint64)
    np.add.at(key, labels.task, mixed)
    tasks = np.argsort(key, kind="stable")
    place = np.argsort(tasks).astype(labels.task.dtype)[labels.task]
    votes = np.lexsort((pair, place))
    return replace(
        labels, task=place[votes], annotator=labels.annotator[votes], label=labels.label[votes],
        tasks=tuple(labels.tasks[task] for task in tasks.tolist()),
    )  # fmt: skip


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


def _agreement(votes: NDArray[np.integer], posterior: FloatArray) -> float:
    """Count the pairs of equal wrong votes on a task, minus those expected from the crowd's confusions.

    `votes`, `posterior`: (N, J).
    """
    confusions = posterior.T @ votes
    np.fill_diagonal(confusions, 0.0)
    confusions /= np.maximum(confusions.sum(axis=1, keepdims=True), 1e-9)
    total = 0.0
    for true, chance in enumerate(posterior.T):
        wrong = np.delete(votes, true, axis=1)
        count = wrong.sum(axis=1)
        expected = count * (count - 1) * np.square(confusions[true]).sum()
        total += float(chance @ ((wrong * (wrong - 1)).sum(axis=1) - expected)) / 2
    return total


def _likelihoods(measured: float, independent: FloatArray, dependent: FloatArray) -> tuple[float, float]:
    """Return the likelihoods of independence and of shared causes, from a statistic and simulations.

    Statistics of each model are assumed to be t distributed. The mean of a dependent crowd lies anywhere
    between those of the mixture model and of independent annotators.
    """
    means = np.array([independent.mean(), dependent.mean()])
    scatter = np.array([independent.var(ddof=1), dependent.var(ddof=1)])
    spread = np.sqrt(scatter + np.square(_ERROR * means) + 1.0)
    none = float(_density(measured, means[:1], spread[:1])[0])
    centres = means[1] + _DEGREES * (means[0] - means[1])
    spreads = spread[1] + _DEGREES * (spread[0] - spread[1])
    return none, float(_density(measured, centres, spreads).mean())


def _probability(gain: tuple[float, float], agreement: tuple[float, float], classes: int) -> float:
    """Return the probability that annotators do not make the same errors, from `_likelihoods`.

    Tasks of unequal difficulty have the agreement of independent votes, and the gain of dependent votes.
    """
    difficulty = PRIOR / 2 if classes > 2 else 0.0
    alone = agreement[0] * ((PRIOR - difficulty) * gain[0] + difficulty * gain[1])
    return alone / (alone + (1.0 - PRIOR) * gain[1] * agreement[1])


def _density(value: float, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Return Student's t density up to a constant."""
    offset = (value - centre) / spread
    return np.asarray((1.0 + offset * offset / _FREEDOM) ** (-(_FREEDOM + 1.0) / 2.0) / spread)


_SERIES_TERMS = 1_000_000
"""Maximum number of votes times classes; of more, a sample of tasks is used. With fewer votes the simpler
model would be preferred.
"""

_PRIOR_TASKS = 20.0
"""Weight of the order, in tasks, so that a few votes cannot contradict it."""

_SIGNIFICANT = 2.33
"""Minimum difference, in standard errors, by which unordered classes must predict better (1 %, one-sided)."""

_STACKING_ROUNDS = 500
_CHANGE = 1e-5
_NEGLIGIBLE = 0.01


def ordinal_weight(
    labels: Labels, correlation: float, iterations: int, tolerance: float, watch: Watch = silent
) -> float:
    """Estimate the weight of the ordinal model, 0 to 1; 1 if the votes carry no information.

    Known classes are not used, so that the result does not depend on decisions.

    `labels`: labels of ordered classes; repeated votes resolved. `correlation`: correlation of the votes on a
    task, for the predictions. `tolerance`: as in `dawid_skene`.
    """
    labels = thin_tasks(replace(labels, known=None), _SERIES_TERMS)
    if not len(labels):
        return 1.0
    scores = []
    for ordered, step in ((True, part(watch, 0.0, 0.5)), (False, part(watch, 0.5, 1.0))):
        votes = replace(labels, ordered=ordered)
        crowd = sort_votes(votes, silent)
        posterior = smoothed_vote(votes, crowd, silent)
        fit, _ = dawid_skene(crowd, posterior, True, iterations, tolerance, step)
        scores.append(task_scores(crowd, fit, posterior, correlation))
    return _stacked(scores[0] - scores[1])


def _stacked(gain: FloatArray) -> float:
    """Return the stacking weight, by EM, of a model with these gains in log likelihood."""
    if gain.sum() < -_SIGNIFICANT * np.sqrt(np.square(gain).sum()):
        return 0.0
    ratio, weight = np.exp(np.clip(-gain, -50.0, 50.0)), 0.5
    for _ in range(_STACKING_ROUNDS):
        before = weight
        share = weight / (weight + (1.0 - weight) * ratio)
        weight = float(share.sum() + _PRIOR_TASKS) / (len(gain) + _PRIOR_TASKS)
        if abs(weight - before) < _CHANGE:
            break
    return 0.0 if weight < _NEGLIGIBLE else 1.0 if weight > 1 - _NEGLIGIBLE else weight
