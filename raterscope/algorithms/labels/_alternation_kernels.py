"""Inner loops of the alternating updates: the tasks' probabilities, and the annotators' counts with them."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import AHEAD, Array, compiled, prefetch


@compiled()
def begin(
    start: Array,
    pair: Array,
    known: Array,
    standing: Array,
    share: float,
    first: int,
    last: int,
    posterior: Array,
    total: Array,
) -> None:
    """Initialise the tasks' probabilities with the votes.

    `start`, `pair`, `known`: as in `TaskVotes`.
    `standing`: (L, J) float64, share of a vote that each output is for each class; (K * L, J) with weights of
        the annotators.
    `share`: added to the votes for every class.
    `first`, `last`: range of tasks.
    `posterior`: (N, J) float64, filled.
    `total`: (J,) float64, sum of the probabilities, over tasks with votes or known; added to.
    """
    outputs, classes = standing.shape
    for i in range(first, last):
        truth = known[i]
        if truth < 0 and start[i] == start[i + 1]:
            continue
        for j in range(classes):
            posterior[i, j] = share
        if truth >= 0:
            posterior[i, :] = 0.0
            posterior[i, truth] = 1.0
        else:
            for v in range(start[i], start[i + 1]):
                output = pair[v] % outputs
                for j in range(classes):
                    posterior[i, j] += standing[output, j]
        norm = posterior[i].sum()
        for j in range(classes):
            posterior[i, j] = posterior[i, j] / norm if norm > 0.0 else 1.0 / classes
            total[j] += posterior[i, j]


@compiled()
def expect_tasks(
    start: Array,
    pair: Array,
    known: Array,
    logs: Array,
    weights: Array,
    first: int,
    last: int,
    posterior: Array,
    total: Array,
    moved: Array,
    each: Array,
) -> tuple[float, float]:
    """Update the tasks' probabilities (eqs. 7, 8).

    `start`, `pair`, `known`, `first`, `last`, `total`: as in `begin`.
    `logs`: (J,) float64, logarithm of the classes' shares, or its expectation.
    `weights`: (K * L, J) float64, logarithm of the annotators' rates, or its expectation.
    `posterior`: (N, J) float64, overwritten.
    `moved`: (N,) float32, overwritten for tasks with votes and unknown class: the largest change of a
        probability.
    `each`: tuple of J numbers, or array (J,); only its length is used. The length of a tuple is known at
        compile time, which makes few classes a quarter to a third faster.
    The result is the sum of the entropies, and the largest change of a probability.
    """
    x = np.empty(len(each))
    weight = weights.reshape(-1)
    entropy, change = 0.0, 0.0
    end = len(pair) - 1
    for i in range(first, last):
        low, high = start[i], start[i + 1]
        for v in range(low, high):
            prefetch(weights, pair[min(v + AHEAD, end)])
        truth = known[i]
        if truth < 0:
            if low == high:
                continue
            for j in range(len(each)):
                x[j] = logs[j]
            for v in range(low, high):
                at = np.uint64(pair[v]) * np.uint64(len(each))
                for j in range(len(each)):
                    x[j] += weight[at + np.uint64(j)]
            highest = x[0]
            for j in range(1, len(each)):
                highest = max(highest, x[j])
            norm, dot = 0.0, 0.0
            for j in range(len(each)):
                away = x[j] - highest
                x[j] = np.exp(away)
                norm += x[j]
                dot += x[j] * away
            entropy += np.log(norm) - dot / norm
            largest = 0.0
            for j in range(len(each)):
                x[j] /= norm
                largest = max(largest, abs(x[j] - posterior[i, j]))
                posterior[i, j] = x[j]
            moved[i] = largest
            change = max(change, largest)
        for j in range(len(each)):
            total[j] += posterior[i, j]
    return entropy, change


@compiled()
def expect_two(
    start: Array,
    pair: Array,
    known: Array,
    logs: Array,
    weights: Array,
    first: int,
    last: int,
    posterior: Array,
    total: Array,
    moved: Array,
    each: Array,  # noqa: ARG001 - as in `expect_tasks`
) -> tuple[float, float]:
    """Update as `expect_tasks` for two classes, by their odds: three times as fast."""
    base = logs[1] - logs[0]
    entropy, change = 0.0, 0.0
    for i in range(first, last):
        low, high = start[i], start[i + 1]
        if known[i] < 0:
            if low == high:
                continue
            x = base
            for v in range(low, high):
                p = pair[v]
                x += weights[p, 1] - weights[p, 0]
            away = abs(x)
            odds = np.exp(-away)
            small = odds / (1.0 + odds)
            entropy += np.log1p(odds) + small * away
            two = small if x < 0.0 else 1.0 / (1.0 + odds)
            first_share = 1.0 / (1.0 + odds) if x < 0.0 else small
            moved[i] = abs(two - posterior[i, 1])
            change = max(change, abs(two - posterior[i, 1]))
            posterior[i, 0], posterior[i, 1] = first_share, two
        total[0] += posterior[i, 0]
        total[1] += posterior[i, 1]
    return entropy, change


@compiled()
def sort_by_pair(start: Array, pair: Array, begin: Array, task: Array) -> None:
    """Sort the votes by pair of annotator and output; those of a pair keep the order of the tasks.

    `start`, `pair`: as in `TaskVotes`.
    `begin`: (K * L + 1,) int64, initially 0; overwritten with the begin of each pair's votes.
    `task`: (V,) uint32, overwritten with the task of each vote.
    """
    for v in range(len(pair)):
        begin[pair[v]] += 1
    end = 0
    for p in range(len(begin)):
        end += begin[p]
        begin[p] = end
    for i in range(len(start) - 2, -1, -1):
        for v in range(start[i], start[i + 1]):
            begin[pair[v]] -= 1
            task[begin[pair[v]]] = i


@compiled()
def count_by_pair(
    begin: Array, task: Array, first: int, last: int, posterior: Array, counts: Array, each: Array
) -> None:
    """Count each annotator's outputs by class of the task (eqs. 9, 10).

    `begin`, `task`: as in `sort_by_pair`.
    `first`, `last`: range of pairs.
    `posterior`: (N, J) float64.
    `counts`: (K * L, J) float64, overwritten; without votes a row stays as it is.
    `each`: as in `expect_tasks`.
    """
    x = np.empty(len(each))
    share = posterior.reshape(-1)
    end = len(task) - 1
    for p in range(first, last):
        low, high = begin[p], begin[p + 1]
        if low == high:
            continue
        for j in range(len(each)):
            x[j] = 0.0
        for v in range(low, high):
            prefetch(posterior, task[min(v + 2 * AHEAD, end)])
            at = np.uint64(task[v]) * np.uint64(len(each))
            for j in range(len(each)):
                x[j] += share[at + np.uint64(j)]
        for j in range(len(each)):
            counts[p, j] = x[j]


@compiled()
def expect_some(
    tasks: Array,
    start: Array,
    pair: Array,
    logs: Array,
    weights: Array,
    outputs: int,
    tolerance: float,
    posterior: Array,
    counts: Array,
    total: Array,
    pending: Array,
) -> int:
    """Update probabilities of some tasks, correct the counts; return the number of tasks that still change.

    `tasks`: (M,) int64, tasks with votes and unknown class. Overwritten: those that still change come first.
    `start`, `pair`, `logs`, `weights`, `posterior`, `total`: as in `expect_tasks`, for all tasks.
    `counts`: as in `count_by_pair`, corrected.
    `tolerance`: change from which a task counts as still changing.
    `pending`: (K,) float64, changes of each annotator's counts; added to.
    """
    classes = len(logs)
    x = np.empty(classes)
    kept = 0
    for n in range(len(tasks)):
        i = tasks[n]
        soon = tasks[min(n + 1, len(tasks) - 1)]
        for v in range(start[soon], start[soon + 1]):
            prefetch(weights, pair[v])
            prefetch(counts, pair[v])
        for j in range(classes):
            x[j] = logs[j]
        for v in range(start[i], start[i + 1]):
            for j in range(classes):
                x[j] += weights[pair[v], j]
        highest, norm, change = x.max(), 0.0, 0.0
        for j in range(classes):
            x[j] = np.exp(x[j] - highest)
            norm += x[j]
        for j in range(classes):
            now = x[j] / norm
            x[j] = now - posterior[i, j]
            posterior[i, j] = now
            total[j] += x[j]
            change = max(change, abs(x[j]))
        for v in range(start[i], start[i + 1]):
            for j in range(classes):
                counts[pair[v], j] += x[j]
            pending[pair[v] // outputs] += change
        if change >= tolerance:
            tasks[kept] = i
            kept += 1
    return kept
