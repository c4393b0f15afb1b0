"""Pooled consensus of hierarchical Dawid-Skene, mixed membership, EBCC and the majority vote.

A model with independent votes is overconfident, and the share of votes is underconfident. Five models of the
same votes are therefore combined. Two hierarchical Dawid-Skene models and EBCC are tempered by the design
effect of correlated votes after the fit. In a mixed-membership model every vote has its own apparent class.
The fifth model is the smoothed share of votes. The pool is the mean of the logarithmic and the linear opinion
pool. It is mixed with the untempered models by the probability that the votes are independent (see
`independence`). Known tasks then sharpen it (see `sharpening`).

For ordered classes the ordinal model (`ordinal`) replaces the Dawid-Skene models and EBCC. It also gives the
prior of the mixed membership. This pool and that of unordered classes are mixed by their predictions of
held-out votes (`ordinal_weight`).

Confusion matrices of 200 annotators with 1,000 classes have 200 million entries, which neither fit into
memory nor can be estimated from the votes. Annotator k is therefore right with probability s_k, and gives a
wrong label l for class j with the probability O_jl of the crowd:

    P(l | j, k) = s_k if l represents j, else (1 - s_k) O_jl.

This is the hierarchical model of `hierarchical` with infinite strength and without the annotators' own wrong
labels (with O_jl the same for all labels, the one-coin model of [dawid1979]_). The Beta distribution of the
accuracies is estimated from the crowd. The likelihood is tempered by the design effect of correlated votes,
and the posterior is pooled with the smoothed vote.

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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import ROWS_AT_ONCE, max_rows, sum_rows
from raterscope.algorithms.labels.canonical_order import in_canonical_order
from raterscope.algorithms.labels.crowd_votes import Crowd, smoothed_vote, sort_votes, weighted_counts
from raterscope.algorithms.labels.data import (
    MAX_ENTRIES,
    OPEN,
    Confusion,
    FloatArray,
    LabelFusion,
    Labels,
    LabelSettings,
    LabelTrace,
    default_prior,
    has_own_matrices,
    keep_to_sets,
)
from raterscope.algorithms.labels.ebcc import has_few_rates, tempered_subtypes
from raterscope.algorithms.labels.hierarchical import (
    FLOOR,
    Fit,
    correlation_of,
    dawid_skene,
    effective_votes,
    skill_distribution,
    tempered_posteriors,
)
from raterscope.algorithms.labels.independence import independence, mixed_membership, ordinal_weight
from raterscope.algorithms.labels.ordinal import is_ordinal, order_notices
from raterscope.algorithms.labels.result import convergence_notices, count_confusion, make_fusion
from raterscope.algorithms.labels.sharpening import sharpen
from raterscope.algorithms.progress import (
    Background,
    Check,
    Watch,
    no_check,
    part,
    parts_of,
    run_parts,
    silent,
)
from raterscope.algorithms.settings import integer, number

_WEIGHTS = {"by class": 0.17, "by skill": 0.17, "membership": 0.34, "subtypes": 0.15, "vote": 0.17}
"""Weights of Dawid-Skene with and without class accuracies, mixed membership, EBCC and the vote.

These weights, the minimum correlation and the mixture's strength were chosen on ten public crowds with
truths; votes alone cannot identify them, and on these crowds many other weights perform equally well.
"""

_ORDINAL_WEIGHTS = {"ordinal": 0.49, "membership": 0.34, "vote": 0.17}
"""Weights for ordered classes: the ordinal model replaces both Dawid-Skene models and EBCC."""

_MATRIX_STRENGTH = 4.0
"""Maximum weight of the crowd's mean rates in a reported confusion matrix, in votes."""

_CELLS = 4_000_000
"""Number of tasks times classes, or votes times classes, in memory at a time."""

_USE_WEIGHT = 5.0
"""Weight of the use of labels against the crowd's wrong labels, in votes for each class."""

_CORRELATIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)

_MIN_ROUNDS = 5


@dataclass(frozen=True)
class PooledSettings(LabelSettings):
    """Settings of `pooled`."""

    correlation: float = number(
        0.2, "Minimum correlation", "Minimum correlation of the votes on a task. A larger correlation is "
        "estimated from the votes, but votes alone do not reveal errors that all annotators share.",
        minimum=0.0, maximum=1.0, advanced=True,
    )  # fmt: skip
    mixture: float = number(
        0.6, "Mixture strength", "Prior strength of a task's mixture of apparent classes. Larger: each vote "
        "depends less on the other votes on its task.",
        unit="votes", minimum=1e-3, maximum=1e3, advanced=True,
    )  # fmt: skip
    iterations: int = integer(
        200, "Iterations", "Maximum number for each model.", minimum=1, maximum=10_000, advanced=True
    )
    tolerance: float = number(
        1e-3, "Tolerance", "The fit ends when the tasks' probabilities change by less, summed over the "
        "classes and averaged over the tasks.",
        minimum=0.0, maximum=0.1, advanced=True,
    )  # fmt: skip


@dataclass(eq=False)
class _Pool:
    """Sums over the models: of weighted logarithms, of weighted probabilities, and of the weights."""

    logs: FloatArray
    shares: FloatArray
    weight: float = 0.0

    def add(self, view: FloatArray, weight: float) -> None:
        def add_block(first: int, last: int) -> None:
            rows = slice(first, last)
            self.logs[rows] += weight * np.log(view[rows] + FLOOR)
            self.shares[rows] += weight * view[rows]

        _by_block(add_block, len(view))
        self.weight += weight

    def answer(self) -> FloatArray:
        """Return the mean of the logarithmic and the linear pool."""
        answer = np.empty(self.logs.shape)

        def answer_block(first: int, last: int) -> None:
            rows = slice(first, last)
            block = _normalise(self.logs[rows].astype(np.float64) / self.weight)
            block += self.shares[rows] / self.weight
            block /= sum_rows(block, keepdims=True)
            answer[rows] = block

        _by_block(answer_block, len(answer))
        return answer


def _by_block(work: Callable[[int, int], None], tasks: int) -> None:
    """Process blocks of tasks in several threads, so that intermediate results take little memory."""
    run_parts(work, parts_of(tasks, ROWS_AT_ONCE), no_check)


@in_canonical_order
def pooled(labels: Labels, settings: PooledSettings | None = None, watch: Watch = silent) -> LabelFusion:
    """Estimate the tasks' classes by five models of the votes, and pool them.

    Row j of annotator k's confusion matrix is Dirichlet distributed with mean B_kj and strength c. The mean
    follows from the annotator's skill, the class's accuracy and the crowd's and the annotator's own wrong
    labels; the distribution of skills, c and the classes' shares are estimated from the crowd. If a fit
    departs from the votes, as in weak crowds, the fit with the most correct votes is kept instead, unless
    votes then predict each other much worse. A prior of the question (`Labels.prior`) replaces c B; EBCC,
    which has no such prior, is then omitted, as it is for very large crowds. Known tasks are held fixed. The
    likelihood of n votes on a task is raised to the power 1 / (1 + (n - 1) rho). n is their effective number,
    to which annotators who guess contribute nothing. rho is the correlation with which votes predict each
    other best, or the minimum of the settings. The result is p Q_0 + (1 - p) Q, where p is the probability
    that annotators err independently, Q the pool, and Q_0 that of the two Dawid-Skene models without the
    minimum correlation. With known classes, the result is raised to powers estimated from these tasks, each
    predicted without its class.

    In large crowds (four million votes times classes) the first model is fitted to a part of the tasks, then
    to all tasks. The other models start from it and end by the tolerance, and tables have single precision.
    Probabilities then differ by 0.001 on average from those of fits to all tasks that start from the vote.

    The trace has the changes of the first Dawid-Skene model, or of the model that did not converge.
    `confusion` has the crowd's mean rates plus expected counts given the pooled posterior. Raises
    `LabelsError` if the confusion matrices would not fit into memory.

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
    if not is_ordinal(labels) or not has_own_matrices(labels):
        return _pooled(labels, settings, order_notices(labels), watch)
    limits = (settings.iterations, settings.tolerance)
    weight = ordinal_weight(labels, settings.correlation, *limits, part(watch, 0.0, 0.1, "using the order: "))
    notices, plain = order_notices(labels, weight), replace(labels, ordered=False)
    if weight in (0.0, 1.0):
        return _pooled(labels if weight else plain, settings, notices, part(watch, 0.1, 1.0))
    ordinal = _pooled(labels, settings, (), part(watch, 0.1, 0.5))
    nominal = _pooled(plain, settings, (), part(watch, 0.5, 1.0))
    posterior = weight * ordinal.posterior + (1.0 - weight) * nominal.posterior
    trace = nominal.trace if ordinal.trace.converged else ordinal.trace
    return _fusion(labels, posterior, trace, [*notices, *convergence_notices(trace)])


def _pooled(labels: Labels, settings: PooledSettings, notices: Sequence[str], watch: Watch) -> LabelFusion:
    """Pool the models for ordered, or for unordered classes."""
    crowd = sort_votes(labels, part(watch, 0.0, 0.02))
    vote = smoothed_vote(labels, crowd, part(watch, 0.02, 0.03))
    if not has_own_matrices(labels):
        return _with_shared_confusion(labels, crowd, vote, settings, part(watch, 0.03, 1.0))

    def show(posterior: FloatArray) -> LabelFusion:
        trace = LabelTrace(np.empty(0), np.empty(0), converged=False)
        return _fusion(labels, posterior.copy(), trace, ())

    limits = (settings.iterations, settings.tolerance)
    known = np.flatnonzero(crowd.known > OPEN)
    judged = known[np.diff(crowd.start)[known] > 0]
    weights = _WEIGHTS if crowd.ordinal is None else _ORDINAL_WEIGHTS
    traces: list[LabelTrace] = []
    left_out: FloatArray | None = None
    like: Fit | None = None
    mixture: Callable[[Check], tuple[FloatArray, Fit]] | None = None
    subtypes = None
    begin = vote
    with Background() as beside:
        models = ("ordinal",) if crowd.ordinal is not None else ("by class", "by skill")
        for name, step in zip(models, (part(watch, 0.03, 0.45), part(watch, 0.45, 0.65)), strict=False):
            posterior = begin.copy() if like is None else begin
            fit, trace = dawid_skene(
                crowd, posterior, name != "by skill", *limits, part(step, 0.0, 0.7), show, like, anchored=True
            )  # fmt: skip
            estimated = correlation_of(crowd, fit, posterior, part(step, 0.7, 0.8))
            used = max(settings.correlation, estimated)
            if not traces:
                if len(judged):
                    left_out = tempered_posteriors(crowd, fit, posterior, [0.0], silent)[0][judged]
                chance = beside.start(partial(_independence, labels, settings, beside.watch))
                if not crowd.large:  # half of the time, on one processor
                    alone = crowd, posterior, settings.mixture, beside.watch, judged, left_out
                    mixture = beside.start(partial(mixed_membership, *alone))
                if labels.prior is None and "subtypes" in weights and has_few_rates(labels):
                    effect = used, effective_votes(crowd, fit)
                    subtypes = tempered_subtypes(labels, vote, *effect, *limits, part(step, 0.8, 0.85))
                del vote  # counted again later: most memory is taken by the mixed membership
                mixed = None
                if crowd.large:
                    like, begin = replace(fit), posterior
                    start = crowd, posterior, settings.mixture, part(step, 0.85, 0.9), judged, left_out, like
                    mixed, _ = mixed_membership(*start, settings.tolerance)
                pool, free = _Pool(*np.zeros((2, *begin.shape), begin.dtype)), np.zeros_like(begin)
                votes_alone = replace(crowd, known=np.minimum(crowd.known, OPEN))
                pool.add(smoothed_vote(labels, votes_alone, silent), weights["vote"])
                if mixed is not None:
                    pool.add(mixed, weights["membership"])
                del mixed
            effects = [used] if estimated == used else [used, estimated]
            views = tempered_posteriors(crowd, fit, posterior, effects, part(step, 0.9, 1.0))
            pool.add(views[0], weights[name])
            _by_block(partial(_add_logs, free, views[-1], len(models)), len(free))
            traces.append(trace)
            del fit, views
        del posterior, begin
        if mixture is not None:
            pool.add(mixture(partial(watch, 0.65, "fitting mixed membership"))[0], weights["membership"])
        independent = chance(partial(watch, 0.8, "fitting simulated crowds"))
    if subtypes is not None:
        pool.add(subtypes, weights["subtypes"])
    answer = pool.answer()
    del pool

    def mix(first: int, last: int) -> None:
        answer[first:last] *= 1.0 - independent
        answer[first:last] += independent * _normalise(free[first:last])

    _by_block(mix, len(answer))
    if len(judged):
        answer = sharpen(answer, answer[judged], crowd.known[judged], judged)
    answer[known] = np.eye(answer.shape[1])[crowd.known[known]]
    watch(0.97, "counting votes")
    trace = next((trace for trace in traces if not trace.converged), traces[0])
    return _fusion(labels, answer, trace, [*notices, *convergence_notices(trace)])


def _independence(labels: Labels, settings: PooledSettings, watch: Watch) -> float:
    """Estimate the probability that annotators err independently; 0 if no correlation is set."""
    if settings.correlation == 0:
        return 0.0
    limits = (settings.iterations, settings.tolerance)
    return independence(labels, settings.correlation, settings.mixture, *limits, watch)


def _add_logs(total: FloatArray, view: FloatArray, models: int, first: int, last: int) -> None:
    """Add the mean logarithms of some tasks' probabilities by one of several models."""
    total[first:last] += np.log(view[first:last] + FLOOR) / models


def _with_shared_confusion(
    labels: Labels, crowd: Crowd, vote: FloatArray, settings: PooledSettings, watch: Watch
) -> LabelFusion:
    """Estimate one accuracy for each annotator and one confusion matrix for all."""
    posterior = vote.copy()
    fit, trace = _fit_shared(
        labels, crowd, posterior, settings.iterations, settings.tolerance, part(watch, 0.0, 0.7)
    )
    correlation = max(settings.correlation, _shared_correlation(labels, crowd, fit, part(watch, 0.7, 0.8)))
    _shared_posterior(labels, crowd, fit, correlation, posterior)
    known = np.flatnonzero(crowd.known > OPEN)
    judged = known[np.diff(crowd.start)[known] > 0]
    if len(judged):
        votes_alone = replace(crowd, known=np.minimum(crowd.known, OPEN))
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
    mean = _crowd_counts(labels, answer) + default_prior(labels)
    prior = _MATRIX_STRENGTH * mean / mean.sum(axis=1, keepdims=True)
    confusion = count_confusion(labels, answer, prior if labels.prior is None else labels.prior)
    text = (
        f"One accuracy is estimated for each of {len(labels.annotators):,} annotators, and one confusion"
        f" matrix for all: matrices of {len(labels.classes):,} classes for each would have"
        f" {confusion.alpha.size:,} entries; more than {MAX_ENTRIES:,} are not estimated. Communities and "
        f"copied answers are not searched for."
    )
    return make_fusion(labels, "pooled", answer, confusion, trace, [text, *convergence_notices(trace)])


def _normalise(logs: FloatArray) -> FloatArray:
    """Turn logarithms into probabilities."""
    values = np.exp(logs - max_rows(logs, keepdims=True))
    values /= sum_rows(values, keepdims=True)
    return np.asarray(values)


def _fusion(
    labels: Labels, posterior: FloatArray, trace: LabelTrace, notices: list[str] | tuple[()]
) -> LabelFusion:
    """Make the fusion, with the annotators' votes counted by the posterior, plus the crowd's mean rates."""
    alpha, prior = weighted_counts(labels, posterior), labels.prior
    if prior is None:
        mean = alpha.sum(axis=0) + default_prior(labels)
        prior = _MATRIX_STRENGTH * mean / mean.sum(axis=1, keepdims=True)
    alpha += prior
    return make_fusion(labels, "pooled", posterior, Confusion(alpha, prior), trace, notices)


@dataclass(eq=False)
class SharedConfusion:
    """Fit of the model with one shared confusion matrix."""

    # (L, J): logarithms of the shares of wrong labels, or of correct labels where an output represents the
    # class
    logs: FloatArray
    # right, wrong: (V,): logarithms of the probability that each vote's annotator is right and wrong,
    # estimated without this vote
    right: FloatArray
    wrong: FloatArray
    shares: FloatArray  # (J,): of the classes


def _meant(labels: Labels) -> NDArray[np.int16]:
    assert labels.meaning is not None
    return labels.meaning[labels.label]


def _update(
    labels: Labels,
    crowd: Crowd,
    posterior: FloatArray,
    given: FloatArray,
    hits: FloatArray,
    skill: tuple[float, float],
) -> SharedConfusion:
    """Estimate shares, confusions and accuracies from a posterior."""
    classes = posterior.shape[1]
    together = _crowd_counts(labels, posterior).T
    wrong = np.where(crowd.means_class, 0.0, together + _USE_WEIGHT * classes * crowd.use[:, None])
    wrong /= np.maximum(wrong.sum(axis=0), FLOOR)
    good = np.where(crowd.means_class, together + crowd.use[:, None], 0.0)
    good /= np.maximum(good.sum(axis=0), FLOOR)
    mean, strength = skill
    others = hits[labels.annotator] - given + strength * mean
    weights = labels.vote_weights()
    rest = crowd.votes[labels.annotator] - (1 if weights is None else weights)
    accuracy = np.clip(others / (rest + strength), 0.2 / classes, 0.995)
    shares = crowd.active.astype(posterior.dtype) @ posterior + 1.0
    logs = np.log(np.maximum(np.where(crowd.means_class, good, wrong), 1e-12))
    return SharedConfusion(
        logs, np.log(accuracy), np.log1p(-accuracy), np.asarray(shares / shares.sum(), dtype=np.float64)
    )


def _vote_logs(labels: Labels, fit: SharedConfusion, votes: NDArray[np.int64]) -> FloatArray:
    """Return the log likelihood of some votes by class, (n, J)."""
    logs = fit.logs[labels.label[votes]] + fit.wrong[votes, None]
    meant = _meant(labels)[votes]
    rows = np.flatnonzero(meant >= 0)
    logs[rows, meant[rows]] += fit.right[votes[rows]] - fit.wrong[votes[rows]]
    return np.asarray(logs)


def _expect(
    labels: Labels, crowd: Crowd, fit: SharedConfusion, first: int, last: int, correlation: float = 0.0
) -> FloatArray:
    """Compute the class probabilities of some tasks, (last - first, J)."""
    from scipy.sparse import csr_array

    votes = np.flatnonzero((labels.task >= first) & (labels.task < last))
    task, meant = labels.task[votes] - first, _meant(labels)[votes]
    shape = last - first, len(fit.logs)
    counts = np.ones(len(votes)) if labels.weights is None else labels.weights[labels.annotator[votes]]
    # The annotator's accuracy enters a wrong vote equally for all classes, and cancels.
    total = csr_array((counts, (task, labels.label[votes])), shape=shape) @ fit.logs
    rows = np.flatnonzero(meant >= 0)
    np.add.at(total, (task[rows], meant[rows]), counts[rows] * (fit.right - fit.wrong)[votes[rows]])
    if correlation:
        count = crowd.votes_of_tasks[first:last]
        total /= 1 + np.maximum(count[:, None] - 1, 0) * correlation
    total += np.log(fit.shares)
    total -= total.max(axis=1, keepdims=True)
    np.exp(total, out=total)
    total /= total.sum(axis=1, keepdims=True)
    return keep_to_sets(np.asarray(total), crowd.known[first:last], crowd.sets)


def _crowd_counts(labels: Labels, posterior: FloatArray) -> FloatArray:
    """Count the votes of all annotators together by class and output, (J, L)."""
    from scipy.sparse import csr_array

    shape = len(labels.outputs), len(posterior)
    weights = labels.vote_weights()
    counts = np.ones(len(labels), dtype=posterior.dtype) if weights is None else weights
    return np.asarray((csr_array((counts, (labels.label, labels.task)), shape=shape) @ posterior).T, float)


def _fit_shared(
    labels: Labels, crowd: Crowd, posterior: FloatArray, iterations: int, tolerance: float, watch: Watch
) -> tuple[SharedConfusion, LabelTrace]:
    """Fit the model from an initial posterior, (N, J), which is overwritten."""
    active = np.flatnonzero(crowd.active)
    meant, skill = _meant(labels), (0.7, 8.0)
    known = np.flatnonzero(crowd.known > OPEN)
    changes: list[float] = []
    for turn in range(iterations):
        watch(turn / iterations, "estimating accuracies and shared confusions")
        given = np.where(meant >= 0, posterior[labels.task, np.maximum(meant, 0)], 0.0).astype(np.float64)
        weights = labels.vote_weights()
        given = given if weights is None else given * weights
        hits: FloatArray = np.bincount(labels.annotator, given, len(crowd.votes)).astype(np.float64)
        skill = skill_distribution(hits, crowd.votes, skill[1])
        fit = _update(labels, crowd, posterior, given, hits, skill)
        mean = largest = 0.0
        for first, last in parts_of(len(posterior), _CELLS // posterior.shape[1]):
            answer = _expect(labels, crowd, fit, first, last)
            change = np.abs(answer - posterior[first:last]).sum(axis=1)
            silent = np.diff(crowd.start)[first:last] == 0
            change[silent] = 0.0
            posterior[first:last][~silent] = answer[~silent]
            mean, largest = mean + float(change.sum()), max(largest, float(change.max(initial=0.0)))
        posterior[known] = 0.0
        posterior[known, crowd.known[known]] = 1.0
        changes.append(largest)
        if turn + 1 >= _MIN_ROUNDS and mean / max(1, len(active)) < tolerance:
            return fit, LabelTrace(np.empty(0), np.array(changes), converged=True)
    return fit, LabelTrace(np.empty(0), np.array(changes), converged=False)


def _shared_correlation(labels: Labels, crowd: Crowd, fit: SharedConfusion, watch: Watch) -> float:
    """Estimate the correlation of the votes on a task by predicting each from the others."""
    watch(0.0, "estimating the correlation of votes")
    votes = np.diff(crowd.start)
    tasks = np.flatnonzero((votes >= 2) & (crowd.known == OPEN))
    terms = int(votes[tasks].sum()) * len(fit.shares)
    votes, weights = crowd.votes_of_tasks, labels.vote_weights()
    tasks = tasks[:: max(1, -(-terms // _CELLS))]
    row = np.full(len(votes), -1)
    row[tasks] = np.arange(len(tasks))
    chosen = np.flatnonzero(row[labels.task] >= 0)
    if not len(chosen):
        return 0.0
    task, logs = row[labels.task[chosen]], _vote_logs(labels, fit, chosen)
    own: FloatArray | float = 1.0 if weights is None else weights[chosen]
    others = np.maximum(votes[tasks][task] - own - 1, 0)[:, None]
    weighed = logs if weights is None else logs * weights[chosen, None]
    total = np.zeros((len(tasks), logs.shape[1]))
    np.add.at(total, task, weighed)
    scores = []
    for correlation in _CORRELATIONS:
        rest = (total[task] - weighed) / (1 + others * correlation) + np.log(fit.shares)
        rest = np.exp(rest - rest.max(axis=1, keepdims=True))
        predicted = np.log((rest * np.exp(logs)).sum(axis=1) / rest.sum(axis=1))
        scores.append((own * predicted).sum())
    return _CORRELATIONS[int(np.argmax(scores))]


def _shared_posterior(
    labels: Labels, crowd: Crowd, fit: SharedConfusion, correlation: float, posterior: FloatArray
) -> None:
    """Compute the class probabilities of all tasks with votes, without their known classes, (N, J)."""
    for first, last in parts_of(len(posterior), _CELLS // posterior.shape[1]):
        voted = np.diff(crowd.start)[first:last] > 0
        answer = _expect(labels, crowd, fit, first, last, correlation)
        posterior[first:last][voted] = answer[voted]
