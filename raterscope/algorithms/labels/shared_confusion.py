"""Consensus for very many classes: one accuracy for each annotator, and confusions that all share.

Confusion matrices of 200 annotators with 1,000 classes have 200 million entries, which neither fit into
memory nor can be estimated from the votes. Annotator k is therefore right with probability s_k, and gives a
wrong label l for class j with the probability O_jl of the crowd:

    P(l | j, k) = s_k where l stands for j, else (1 - s_k) O_jl.

This is the hierarchical model of `hierarchical` with infinite strength and without the annotators' own wrong
labels (with O_jl the same for all labels, the one-coin model of [dawid1979]_). Accuracies have a Beta
distribution that is estimated from the crowd. The likelihood is tempered by the design effect of correlated
votes, and the posterior is pooled with the smoothed vote.

References
----------
.. [dawid1979] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the
   EM algorithm", Journal of the Royal Statistical Society C 28 (1979) 20-28, doi:10.2307/2346806.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.crowd_votes import Crowd
from raterscope.algorithms.labels.data import OPEN, FloatArray, Labels, LabelTrace, keep_to_sets
from raterscope.algorithms.labels.hierarchical import FLOOR, skill_distribution
from raterscope.algorithms.progress import Watch, parts_of

_CELLS = 4_000_000
"""Tasks times classes, or votes times classes, in memory at a time."""

_USE_WEIGHT = 5.0
"""Votes of each class that the use of labels counts as beside the crowd's wrong labels."""

_CORRELATIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)

_LEAST_ROUNDS = 5


@dataclass(eq=False)
class SharedConfusion:
    """Fit of the model."""

    # (L, J): logarithms of the shares of wrong labels; of the shares of right ones where an output stands for
    # the class
    logs: FloatArray
    # right, wrong: (V,): logarithms of the probability of each vote's annotator to be right and wrong,
    # without this vote
    right: FloatArray
    wrong: FloatArray
    shares: FloatArray  # (J,): of the classes


def fit_shared(
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
        if turn + 1 >= _LEAST_ROUNDS and mean / max(1, len(active)) < tolerance:
            return fit, LabelTrace(np.empty(0), np.array(changes), converged=True)
    return fit, LabelTrace(np.empty(0), np.array(changes), converged=False)


def crowd_counts(labels: Labels, posterior: FloatArray) -> FloatArray:
    """Count the votes of all annotators together by class and output, (J, L)."""
    from scipy.sparse import csr_array

    shape = len(labels.outputs), len(posterior)
    weights = labels.vote_weights()
    counts = np.ones(len(labels), dtype=posterior.dtype) if weights is None else weights
    return np.asarray((csr_array((counts, (labels.label, labels.task)), shape=shape) @ posterior).T, float)


def shared_correlation(labels: Labels, crowd: Crowd, fit: SharedConfusion, watch: Watch) -> float:
    """Estimate the correlation of the votes on a task, by their prediction from each other."""
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


def shared_posterior(
    labels: Labels, crowd: Crowd, fit: SharedConfusion, correlation: float, posterior: FloatArray
) -> None:
    """Write the classes' probabilities of all tasks with votes, without their known classes, (N, J)."""
    for first, last in parts_of(len(posterior), _CELLS // posterior.shape[1]):
        voted = np.diff(crowd.start)[first:last] > 0
        answer = _expect(labels, crowd, fit, first, last, correlation)
        posterior[first:last][voted] = answer[voted]


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
    together = crowd_counts(labels, posterior).T
    wrong = np.where(crowd.stands, 0.0, together + _USE_WEIGHT * classes * crowd.use[:, None])
    wrong /= np.maximum(wrong.sum(axis=0), FLOOR)
    good = np.where(crowd.stands, together + crowd.use[:, None], 0.0)
    good /= np.maximum(good.sum(axis=0), FLOOR)
    mean, strength = skill
    others = hits[labels.annotator] - given + strength * mean
    weights = labels.vote_weights()
    rest = crowd.votes[labels.annotator] - (1 if weights is None else weights)
    accuracy = np.clip(others / (rest + strength), 0.2 / classes, 0.995)
    shares = crowd.active.astype(posterior.dtype) @ posterior + 1.0
    logs = np.log(np.maximum(np.where(crowd.stands, good, wrong), 1e-12))
    return SharedConfusion(
        logs, np.log(accuracy), np.log1p(-accuracy), np.asarray(shares / shares.sum(), dtype=np.float64)
    )


def _vote_logs(labels: Labels, fit: SharedConfusion, votes: NDArray[np.int64]) -> FloatArray:
    """Return the log-likelihood of some votes by class, (n, J)."""
    logs = fit.logs[labels.label[votes]] + fit.wrong[votes, None]
    meant = _meant(labels)[votes]
    rows = np.flatnonzero(meant >= 0)
    logs[rows, meant[rows]] += fit.right[votes[rows]] - fit.wrong[votes[rows]]
    return np.asarray(logs)


def _expect(
    labels: Labels, crowd: Crowd, fit: SharedConfusion, first: int, last: int, correlation: float = 0.0
) -> FloatArray:
    """Compute the probabilities of some tasks' classes, (last - first, J)."""
    from scipy.sparse import csr_array

    votes = np.flatnonzero((labels.task >= first) & (labels.task < last))
    task, meant = labels.task[votes] - first, _meant(labels)[votes]
    shape = last - first, len(fit.logs)
    counts = np.ones(len(votes)) if labels.weights is None else labels.weights[labels.annotator[votes]]
    # What a wrong vote says of the annotator is the same for all classes, and falls out.
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
