"""Inner loops of STAPLE: EM over patterns, and mean field of a Markov random field over voxels."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled


@compiled()
def pattern_evidence(
    labels: Array, theta: Array, prior: Array, evidence: Array, weights: Array | None
) -> None:
    """Compute log prior_k + sum_p weight_p log theta[p, k, label_p] for each pattern.

    `labels`: (M, P) uint8.
    `theta`: (P, K, K) float64, the probability that a rater gives the last index if the middle one is true.
    `prior`: (K,) float64.
    `evidence`: (M, K) float64.
    `weights`: (P,) float64 or None.
    """
    log_theta, log_prior = np.log(theta), np.log(prior)
    for m in range(labels.shape[0]):
        for k in range(len(prior)):
            total = log_prior[k]
            for p in range(labels.shape[1]):
                if weights is None:
                    total += log_theta[p, k, labels[m, p]]
                else:
                    total += weights[p] * log_theta[p, k, labels[m, p]]
            evidence[m, k] = total


@compiled()
def maximise(labels: Array, total: Array, theta: Array) -> float:
    """Update the raters' rates to their shares under the truth's distribution; return the largest change.

    The rates of a class without weight do not change.

    `labels`: (M, P) uint8.
    `total`: (M, K) float64, expected voxels of each pattern and class.
    `theta`: (P, K, K) float64, overwritten.
    """
    patterns, raters = labels.shape
    classes = total.shape[1]
    sums = np.zeros(classes)
    for m in range(patterns):
        for k in range(classes):
            sums[k] += total[m, k]
    change = 0.0
    share = np.empty((classes, classes))
    for p in range(raters):
        share[:] = 0.0
        for m in range(patterns):
            for k in range(classes):
                share[k, labels[m, p]] += total[m, k]
        for k in range(classes):
            if sums[k] <= 0.0:
                continue
            for label in range(classes):
                rate = share[k, label] / sums[k]
                change = max(change, abs(rate - theta[p, k, label]))
                theta[p, k, label] = rate
    return change


@compiled()
def run_patterns(
    labels: Array,
    settled: Array,
    count: Array,
    prior: Array,
    tolerance: float,
    theta: Array,
    posterior: Array,
    objective: Array,
    weights: Array | None,
) -> tuple[int, bool]:
    """Iterate the E and the M step over patterns.

    `labels`: (M, P) uint8.
    `settled`: (M,) int8, settled class, below 0 if not settled.
    `count`: (M,) float64.
    `prior`: (K,) float64.
    `tolerance`: largest change of a rate at convergence.
    `theta`: (P, K, K) float64, initial rates; overwritten.
    `posterior`: (M, K) float64, filled with that of the last E step.
    `objective`: (T,) float64, filled with the log likelihood before each M step, for at most T iterations.
    `weights`: (P,) float64 or None.
    The results are the number of iterations, and whether the last one changed less than `tolerance`.
    """
    patterns, classes = posterior.shape
    evidence = np.empty((patterns, classes))
    total = np.empty((patterns, classes))
    for turn in range(len(objective)):
        pattern_evidence(labels, theta, prior, evidence, weights)
        likelihood = 0.0
        for m in range(patterns):
            fixed = settled[m]
            if fixed >= 0:
                posterior[m, :] = 0.0
                posterior[m, fixed] = 1.0
                if count[m] > 0.0:
                    likelihood += count[m] * evidence[m, fixed]
            else:
                highest = evidence[m].max()
                if highest == -np.inf:  # no voxel is of this pattern
                    posterior[m, :] = 0.0
                    posterior[m, 0] = 1.0
                else:
                    norm = 0.0
                    for k in range(classes):
                        posterior[m, k] = np.exp(evidence[m, k] - highest)
                        norm += posterior[m, k]
                    for k in range(classes):
                        posterior[m, k] /= norm
                    likelihood += count[m] * (highest + np.log(norm))
            for k in range(classes):
                total[m, k] = count[m] * posterior[m, k]
        objective[turn] = likelihood
        if maximise(labels, total, theta) < tolerance:
            return turn + 1, True
    return len(objective), False


@compiled()
def sweep(
    row: Array,
    evidence: Array,
    settled: Array,
    strength: float,
    parity: int,
    start: int,
    stop: int,
    field: Array,
) -> None:
    """Update every other voxel of lines `start` to `stop` from its neighbours, which do not change.

    `row`: (Z, Y, X) int64, each voxel's row of `evidence` and `settled`.
    `evidence`: (M, K) float64.
    `settled`: (M,) int8, settled class, below 0 if not settled.
    `strength`: increase of the logarithm by a neighbour of the same class.
    `parity`: parity of slice + row + column of the voxels to update.
    `start`, `stop`: lines along the columns, counted from slice to slice.
    `field`: (Z, Y, X, K) float32, the voxels' distributions; overwritten.
    """
    slices, rows, columns, classes = field.shape
    logs = np.empty(classes)
    for line in range(start, stop):
        z, y = line // rows, line % rows
        for x in range((z + y + parity) % 2, columns, 2):
            m = row[z, y, x]
            if settled[m] >= 0:
                continue
            highest = -np.inf
            for k in range(classes):
                around = 0.0
                if z > 0:
                    around += field[z - 1, y, x, k]
                if z + 1 < slices:
                    around += field[z + 1, y, x, k]
                if y > 0:
                    around += field[z, y - 1, x, k]
                if y + 1 < rows:
                    around += field[z, y + 1, x, k]
                if x > 0:
                    around += field[z, y, x - 1, k]
                if x + 1 < columns:
                    around += field[z, y, x + 1, k]
                logs[k] = evidence[m, k] + strength * around
                highest = max(highest, logs[k])
            norm = 0.0
            for k in range(classes):
                logs[k] = np.exp(logs[k] - highest)
                norm += logs[k]
            for k in range(classes):
                field[z, y, x, k] = logs[k] / norm


@compiled()
def field_totals(
    row: Array, evidence: Array, strength: float, start: int, stop: int, field: Array, total: Array
) -> float:
    """Sum the distributions by pattern, and the lower bound, over lines `start` to `stop`.

    `row`, `evidence`, `strength`, `start`, `stop`, `field`: as in `sweep`.
    `total`: (M, K) float64, added to. The result is the lines' contribution to the mean field's lower bound,
    without the field's normalising constant.
    """
    _, rows, columns, classes = field.shape
    bound = 0.0
    for line in range(start, stop):
        z, y = line // rows, line % rows
        for x in range(columns):
            m = row[z, y, x]
            for k in range(classes):
                q = np.float64(field[z, y, x, k])
                if q <= 0.0:
                    continue
                total[m, k] += q
                before = 0.0  # each pair of neighbours is counted once
                if z > 0:
                    before += field[z - 1, y, x, k]
                if y > 0:
                    before += field[z, y - 1, x, k]
                if x > 0:
                    before += field[z, y, x - 1, k]
                bound += q * (evidence[m, k] + strength * before - np.log(q))
    return bound
