"""Inner loops of Gibbs sampling: one sweep over tasks, and the logarithm of the joint probability."""

from __future__ import annotations

import math

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["log_joint", "mean_of_samples", "number_repeats", "place", "sweep"]

_TINY = 1e-100


@compiled()
def number_repeats(
    first: int,
    last: int,
    start: Array,
    annotator: Array,
    label: Array,
    seen: Array,
    present: Array,
    again: Array,
    said: Array,
) -> bool:
    """Count, for every vote on some tasks, the annotator's earlier ones on the same task.

    Parameters
    ----------
    first, last : int
        Tasks between which to count, called in their order.
    start, annotator, label : as in `place`
    seen : (K,) int64
        -1 to begin with. Overwritten: the last vote of each annotator.
    present : (K, L) int64
        -1 to begin with. Overwritten: the last vote of each annotator for each output.
    again, said : (V,) int32
        Overwritten: how many there are, and how many of them say the same.

    Returns
    -------
    bool
        Whether there are any.
    """
    repeated = False
    for i in range(first, last):
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            again[v] = said[v] = 0
            if seen[k] >= start[i]:
                again[v] = again[seen[k]] + 1
                repeated = True
            if present[k, output] >= start[i]:
                said[v] = said[present[k, output]] + 1
            seen[k] = present[k, output] = v
    return repeated


@compiled()
def place(
    first: int,
    last: int,
    start: Array,
    annotator: Array,
    label: Array,
    state: Array,
    cells: Array,
    rows: Array,
) -> None:
    """Count the votes on some tasks.

    Parameters
    ----------
    first, last : int
        Tasks between which to count; those with votes have a class.
    start : (N + 1,) int64
        The votes of task i are `start[i]` to `start[i + 1]`.
    annotator, label : (V,) int32, int16
    state : (N,) int16
    cells : (K, L, J) int32
        Votes of each annotator for each output on tasks of each class. Added to.
    rows : (K, J) int32
        Their sums over outputs. Added to.
    """
    for i in range(first, last):
        for v in range(start[i], start[i + 1]):
            cells[annotator[v], label[v], state[i]] += 1
            rows[annotator[v], state[i]] += 1


@compiled()
def sweep(
    first: int,
    last: int,
    tasks: Array,
    start: Array,
    annotator: Array,
    label: Array,
    again: Array,
    said: Array,
    prior: Array,
    prior_rows: Array,
    share: Array,
    uniform: Array,
    state: Array,
    cells: Array,
    rows: Array,
    shares: Array,
    chance: Array,
) -> None:
    """Draw the classes of some tasks, one after the other, each given all others'.

    Parameters
    ----------
    first, last : int
        Positions in `tasks` between which to draw.
    tasks : (M,) int64
        The tasks whose class is open and which have votes.
    start, annotator, label : as in `place`
    again, said : (V,) or (0,) int32
        How many votes of the same annotator come earlier in the same task, and how many of those say the
        same; empty where there are none at all.
    prior : (L, J) float64
    prior_rows : (J,) float64
    share : float
        Pseudo-counts of a class's share.
    uniform : (last - first,) float64
        Random numbers, 0 to 1.
    state, cells, rows : as in `place`
        Updated.
    shares : (J,) int64
        Tasks of each class. Updated.
    chance : (M, J) float64
        Overwritten with each task's probabilities given all other tasks' classes.
    """
    classes = len(shares)
    repeated = len(again) > 0
    for m in range(first, last):
        i = tasks[m]
        old = state[i]
        shares[old] -= 1
        for v in range(start[i], start[i + 1]):
            cells[annotator[v], label[v], old] -= 1
            rows[annotator[v], old] -= 1
        odds = chance[m]
        for j in range(classes):
            odds[j] = share + shares[j]
        for v in range(start[i], start[i + 1]):
            k, said_now = annotator[v], label[v]
            more_said = said[v] if repeated else 0
            more = again[v] if repeated else 0
            for j in range(classes):
                above = prior[said_now, j] + cells[k, said_now, j] + more_said
                odds[j] *= above / (prior_rows[j] + rows[k, j] + more)
            if (v & 7) == 0:
                most = odds.max()
                if most < _TINY:
                    for j in range(classes):
                        odds[j] /= most
        total = 0.0
        for j in range(classes):
            total += odds[j]
        for j in range(classes):
            odds[j] /= total
        left = uniform[m - first]
        new = classes - 1
        for j in range(classes - 1):
            left -= odds[j]
            if left < 0.0:
                new = j
                break
        state[i] = new
        shares[new] += 1
        for v in range(start[i], start[i + 1]):
            cells[annotator[v], label[v], new] += 1
            rows[annotator[v], new] += 1


@compiled()
def mean_of_samples(mean: Array, chance: Array, count: int) -> tuple[float, float]:
    """Take one more sample into the mean of `count` before it.

    Returns
    -------
    (float, float)
        The sum and the greatest of the changes.
    """
    total, most = 0.0, 0.0
    for m in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            step = (chance[m, j] - mean[m, j]) / (count + 1)
            mean[m, j] += step
            total += abs(step)
            most = max(most, abs(step))
    return total, most


@compiled()
def log_joint(
    prior: Array, prior_rows: Array, share: float, cells: Array, rows: Array, shares: Array
) -> float:
    """Give ln p(t, c | alpha_0, nu_0), eq. 1 with the confusion matrices and shares integrated out."""
    annotators, outputs, classes = cells.shape
    total = math.lgamma(classes * share) - math.lgamma(classes * share + shares.sum())
    for j in range(classes):
        total += math.lgamma(share + shares[j]) - math.lgamma(share)
        row_at_rest = math.lgamma(prior_rows[j])
        for k in range(annotators):
            if rows[k, j]:
                total += row_at_rest - math.lgamma(prior_rows[j] + rows[k, j])
        for output in range(outputs):
            at_rest = math.lgamma(prior[output, j])
            for k in range(annotators):
                if cells[k, output, j]:
                    total += math.lgamma(prior[output, j] + cells[k, output, j]) - at_rest
    return total
