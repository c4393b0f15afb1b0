"""Inner loops of alternating updates and of mixed membership."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import AHEAD, Array, compiled, prefetch, small_code


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
    `standing`: (L, J) float64, share of a vote that each output gives to each class; (K * L, J) with weights
    of the annotators.
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
        compile time, which is a quarter to a third faster for few classes. The result is the sum of the
        entropies, and the largest change of a probability.
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
    `begin`: (K * L + 1,) int64, initially 0; overwritten with the start of each pair's votes.
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
    `counts`: (K * L, J) float64, overwritten; rows of pairs without votes are unchanged.
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
    """Update the probabilities of some tasks and the counts; return the number of tasks that still change.

    `tasks`: (M,) int64, tasks with votes and unknown class. Overwritten: tasks that still change come first.
    `start`, `pair`, `logs`, `weights`, `posterior`, `total`: as in `expect_tasks`, for all tasks.
    `counts`: as in `count_by_pair`, corrected.
    `tolerance`: minimum change of a task that still changes.
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


_TINY = 1e-12
"""Minimum numerator of a probability, against rounding errors."""


@compiled()
def spread(first: int, last: int, start: Array, posterior: Array, share: Array) -> None:
    """Copy the posterior of some tasks to their votes.

    `start`: (N + 1,) int64. `posterior`: (N, J) float32. `share`: (V, J) float32, overwritten.
    """
    small_code()
    for i in range(first, last):
        for v in range(start[i], start[i + 1]):
            for j in range(posterior.shape[1]):
                share[v, j] = posterior[i, j]


@compiled(error_model="numpy")
def membership_sweep(
    first: int,
    last: int,
    votes: Array,
    known: Array,
    model: Array,
    mixture: Array,
    share: Array,
    total: Array,
    each_class: Array,
    weights: Array | None,
    beyond: float,
) -> float:
    """Update the apparent class of each vote on some tasks, one vote after the other.

    `votes`, `known`: as in `_pooled_kernels.expect`.
    `model`: `above` and `below` of `_pooled_kernels.weigh_pairs`, updated with every vote.
    `mixture`: (J,) float64, prior of a task's mixture.
    `share`: (V, J) float32, probability of each vote's apparent class; overwritten.
    `total`: (N, J) float64, its sum over the votes on a task; overwritten.
    `each_class`, `weights`: as in `_pooled_kernels.expect`.
    `beyond`: over-relaxation, as a share of each change that is added to it. The result is the sum of the
    changes of the tasks' expected mixtures.
    """
    start, pair, owner = votes
    above, below = model
    classes = len(each_class)
    term = mixture.copy()
    former = mixture.copy()
    prior = moved = 0.0
    for j in range(classes):
        prior += mixture[j]
    end = len(pair) - 1
    for i in range(first, last):
        if known[i] >= 0 or start[i + 1] == start[i]:
            continue
        task = total[i]
        former[:] = task
        for v in range(start[i], start[i + 1]):
            later = pair[min(v + AHEAD, end)]
            prefetch(above, later)
            prefetch(below, owner[later])
            p = pair[v]
            top, bottom, own = above[p], below[owner[p]], share[v]
            if weights is not None:
                weight = weights[owner[p]]
                mass = 0.0
                for j in range(classes):
                    other = max(task[j] - weight * own[j], 0.0)
                    rest = max(top[j] - weight * own[j], _TINY)
                    term[j] = (mixture[j] + other) * (rest / (bottom[j] - weight * own[j]))
                    mass += term[j]
                for j in range(classes):
                    before = own[j]
                    value = term[j] / mass
                    value += beyond * (value - before)
                    own[j] = value if value > 0.0 else 0.0
                    step = weight * (own[j] - before)
                    top[j] += step
                    bottom[j] += step
                    task[j] += step
                continue
            for j in range(classes):  # without a sum, for the processor to compute several at once
                other = task[j] - own[j]
                other = other if other > 0.0 else 0.0
                rest = top[j] - own[j]
                rest = rest if rest > _TINY else _TINY
                term[j] = (mixture[j] + other) * (rest / (bottom[j] - own[j]))
            mass = 0.0
            for j in range(classes):
                mass += term[j]
            scale = 1.0 / mass
            for j in range(classes):
                before = own[j]
                value = term[j] * scale
                value += beyond * (value - before)
                own[j] = value if value > 0.0 else 0.0
                step = own[j] - before
                top[j] += step
                bottom[j] += step
                task[j] += step
        change = 0.0
        for j in range(classes):
            change += abs(task[j] - former[j])
        moved += change / (prior + start[i + 1] - start[i])
    return moved


@compiled()
def merge_parts(first: int, last: int, above: Array, base: Array, strength: float, counts: Array) -> None:
    """Add the changes that each part of the tasks made to the counts of some pairs.

    `first`, `last`: range of pairs.
    `above`: (S, P, J) float64, numerators of `_pooled_kernels.weigh_pairs` in S parts, each updated by its
        own tasks.
    `base`, `strength`: as in `weigh_pairs`.
    `counts`: (P, J) float64, counts before the updates; overwritten.
    """
    parts = len(above)
    for p in range(first, last):
        for j in range(counts.shape[1]):
            total = above[0, p, j]
            for part in range(1, parts):
                total += above[part, p, j]
            total -= base[p, j] * (parts * strength)
            total -= (parts - 1) * counts[p, j]
            counts[p, j] = total if total > 0.0 else 0.0


@compiled(error_model="numpy")
def membership_without_truth(
    tasks: Array,
    votes: Array,
    begin: Array,
    sweeps: int,
    model: Array,
    mixture: Array,
    share: Array,
    total: Array,
    answer: Array,
    weights: Array | None,
) -> None:
    """Estimate the mixtures of known tasks from their votes, without their known classes.

    `tasks`: (M,) int64.
    `votes`, `model`, `mixture`, `share`, `total`: as in `membership_sweep`, unchanged except for rounding.
    `begin`: (M, J) float64, probabilities of the apparent classes before the first sweep.
    `answer`: (M, J) float64, summed probabilities of the votes' apparent classes; overwritten.
    `weights`: as in `membership_sweep`.
    """
    start, pair, owner = votes
    above, below = model
    classes = len(mixture)
    unknown = np.full(len(start) - 1, -1, dtype=np.int16)
    for m in range(len(tasks)):
        i = tasks[m]
        count = 0.0
        before = share[start[i] : start[i + 1]].copy()
        summed = total[i].copy()
        for v in range(start[i], start[i + 1]):
            weight = 1.0
            if weights is not None:
                weight = weights[owner[pair[v]]]
            count += weight
            for j in range(classes):
                change = weight * (begin[m, j] - share[v, j])
                above[pair[v], j] += change
                below[owner[pair[v]], j] += change
                share[v, j] = begin[m, j]
        for j in range(classes):
            total[i, j] = count * begin[m, j]
        for _ in range(sweeps):
            membership_sweep(i, i + 1, votes, unknown, model, mixture, share, total, mixture, weights, 0.0)
        answer[m] = total[i]
        total[i] = summed
        for v in range(start[i], start[i + 1]):
            weight = 1.0
            if weights is not None:
                weight = weights[owner[pair[v]]]
            for j in range(classes):
                change = weight * (before[v - start[i], j] - share[v, j])
                above[pair[v], j] += change
                below[owner[pair[v]], j] += change
                share[v, j] = before[v - start[i], j]
