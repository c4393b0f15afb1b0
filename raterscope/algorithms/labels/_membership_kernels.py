"""Inner loops of mixed membership: the apparent class of each vote."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import AHEAD, Array, compiled, prefetch, small_code

_TINY = 1e-12
"""Floor of a probability's numerator, against rounding."""


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
    `beyond`: share of each change by which the new probability goes beyond it.
    The result is the sum of the changes of the tasks' expected mixtures.
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
    """Estimate the mixtures of known tasks from their votes, each without its own known class.

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
