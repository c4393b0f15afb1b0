"""Inner loops of static models: sorting votes, updates of annotators, Gibbs sampling."""

from __future__ import annotations

import math

import numpy as np

from raterscope.algorithms.compiling import AHEAD, Array, compiled, prefetch, small_code

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of a multiplicative hash: 2^64 divided by the golden ratio."""

FAR = 8.0
"""Argument from which Stirling's series of log Gamma and of its derivative are exact to rounding."""

_PLACES, _ORDERS = 32, 10
"""Number of expansion points of Taylor series between two integers, and number of terms."""


@compiled()
def count_votes(task: Array, count: Array) -> None:
    """Add the votes (V,) int32 on each task to a count (N,) int64."""
    for v in range(len(task)):
        count[task[v]] += 1


@compiled()
def count_classes(task: Array, label: Array, meaning: Array, count: Array) -> None:
    """Add the votes on each task to the counts of the classes that they represent.

    `task`: (V,) int32.
    `label`: (V,) int16.
    `meaning`: (L,) int16, class of each output; negative for none.
    `count`: (N, J), added to.
    """
    for v in range(len(task)):
        meant = meaning[label[v]]
        if meant >= 0:
            count[task[v], meant] += 1


@compiled()
def place_votes(task: Array, annotator: Array, label: Array, outputs: int, slot: Array, pair: Array) -> None:
    """Pack votes and sort them by task.

    `task`, `annotator`: (V,) int32.
    `label`: (V,) int16.
    `slot`: (N,) int64, position of the next vote on each task; incremented.
    `pair`: (all votes,) uint32, annotator * outputs + label; filled.
    """
    for v in range(len(task)):
        at = slot[task[v]]
        pair[at] = np.int64(annotator[v]) * outputs + label[v]
        slot[task[v]] = at + 1


@compiled()
def add_hashes(source: Array, by: Array, of_output: Array, label: Array, total: Array, of: Array) -> None:
    """Add hashes of votes to those of their tasks or annotators.

    `source`, `total`: (N,) and (K,) uint64 or the reverse, hashes before, and sums that are added to.
    `by`, `of`: (V,) int32, index of each vote into both.
    `of_output`: (L,) uint64, hash of each output.
    `label`: (V,) int16.
    """
    for v in range(len(label)):
        value = ((source[by[v]] ^ of_output[label[v]]) + np.uint64(1)) * _MULTIPLIER
        total[of[v]] += (value ^ (value >> np.uint64(29))) * _MULTIPLIER


@compiled()
def place_renumbered(
    task: Array,
    annotator: Array,
    label: Array,
    tasks: Array,
    annotators: Array,
    outputs: int,
    slot: Array,
    pair: Array,
) -> None:
    """Pack votes and sort them by task, with new numbers of tasks and annotators.

    `task`, `annotator`, `label`, `outputs`, `pair`: as in `place_votes`.
    `tasks`, `annotators`: (N,) and (K,) int64, new number of each task and annotator.
    `slot`: (N,) int64, position of the next vote on each task by its new number; incremented.
    """
    for v in range(len(task)):
        i = tasks[task[v]]
        at = slot[i]
        pair[at] = annotators[annotator[v]] * outputs + label[v]
        slot[i] = at + 1


@compiled()
def sort_within_tasks(
    first: int,
    last: int,
    start: Array,
    longest: int,
    outputs: int,
    pair: Array,
    task: Array,
    annotator: Array,
    label: Array,
) -> None:
    """Sort the votes on some tasks by annotator and output, and unpack them.

    `first`, `last`: range of tasks.
    `start`: (N + 1,) int64, the votes on task i are `start[i]` to `start[i + 1]`.
    `longest`: tasks with more votes are already sorted.
    `pair`: (V,) uint32, as in `place_votes`; sorted.
    `task`, `annotator`, `label`: (V,) int32, int32 and int16, overwritten.
    """
    small_code()
    divisor = np.uint32(outputs)
    for i in range(first, last):
        low, high = start[i], start[i + 1]
        if high - low <= longest:
            for v in range(low + 1, high):
                own, at = pair[v], v
                while at > low and pair[at - 1] > own:
                    pair[at] = pair[at - 1]
                    at -= 1
                pair[at] = own
        for v in range(low, high):
            task[v] = i
            voter = pair[v] // divisor
            annotator[v] = voter
            label[v] = pair[v] - voter * divisor


@compiled()
def sum_votes(task: Array, annotator: Array, label: Array, weight: Array, total: Array) -> None:
    """Sum a weight of each class over votes.

    `task`, `annotator`: (V,) int32.
    `label`: (V,) int16.
    `weight`: (N, J) float64, weights by task.
    `total`: (K, L, J) float64, added to.
    """
    annotators, outputs, classes = total.shape
    rows, end = total.reshape(annotators * outputs, classes), len(task) - 1
    for v in range(len(task)):
        later = min(v + AHEAD, end)
        prefetch(rows, annotator[later] * outputs + label[later])
        own, row = rows[annotator[v] * outputs + label[v]], weight[task[v]]
        for j in range(classes):
            own[j] += row[j]


@compiled()
def _tail(x: float) -> float:
    """Return the remainder of Stirling's formula of log Gamma(x), x at least `FAR`."""
    y = 1.0 / (x * x)
    return (
        1 / 12
        - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360 - y / 156)))))
    ) / x


def _taylor_series() -> Array:
    """Return the Taylor series of log Gamma's derivative, and of log Gamma, at each expansion point.

    A coefficient of order n is a polygamma function over n!, thus a Hurwitz zeta function: the first 32 terms
    of its sum are added; the Euler-Maclaurin formula gives the others.
    """
    places = 1.0 + np.arange((FAR - 1) * _PLACES + 1) / _PLACES
    near, far = places[:, None] + np.arange(32.0), places + 32.0
    y = 1.0 / (far * far)
    psi = np.log(far) - 0.5 / far - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
    slopes = [psi - (1.0 / near).sum(axis=1)]
    for s in range(2, _ORDERS + 1):
        others = s * y * (1 / 12 - (s + 1) * (s + 2) * y * (1 / 720 - (s + 3) * (s + 4) * y / 30240))
        zeta = (near**-s).sum(axis=1) + far ** (1.0 - s) * (1 / (s - 1) + 0.5 / far + others)
        slopes.append((-1) ** s * zeta)
    logs = [math.lgamma(place) for place in places.tolist()]
    return np.stack([*slopes, logs, *(slope / (n + 1) for n, slope in enumerate(slopes))], axis=1)


_SERIES = _taylor_series()


@compiled()
def _gammas(x: float) -> tuple[float, float]:
    """Return the derivative of log Gamma(x), and log Gamma(x) itself; x above 0."""
    if x >= FAR:
        y = 1.0 / (x * x)
        log = np.log(x)
        series = 1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))
        psi = log - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * series)))
        return psi, (x - 0.5) * log - x + 0.9189385332046727418 + _tail(x)  # ln(2 pi) / 2
    psi, value = 0.0, 0.0
    if x < 1.0:  # Gamma(x) = Gamma(x + 1) / x
        psi, value = -1.0 / x, -np.log(x)
        x += 1.0
    row = int((x - 1.0) * _PLACES + 0.5)
    step = x - 1.0 - row / _PLACES
    square = step * step
    even, odd, even_rise, odd_rise = 0.0, 0.0, 0.0, 0.0  # four sums at a time: none waits for another
    for n in range(_ORDERS - 2, -1, -2):
        even, odd = even * square + _SERIES[row, n], odd * square + _SERIES[row, n + 1]
        even_rise = even_rise * square + _SERIES[row, _ORDERS + 1 + n]
        odd_rise = odd_rise * square + _SERIES[row, _ORDERS + 2 + n]
    return psi + (even + step * odd), value + (_SERIES[row, _ORDERS] + step * (even_rise + step * odd_rise))


@compiled()
def log_gammas(prior: Array) -> Array:
    """Return log Gamma of each parameter (J, L), and of each row's sum in a last column: (J, L + 1)."""
    classes, outputs = prior.shape
    logs = np.empty((classes, outputs + 1))
    for j in range(classes):
        for m in range(outputs):
            logs[j, m] = _gammas(prior[j, m])[1]
        logs[j, outputs] = _gammas(prior[j].sum())[1]
    return logs


@compiled()
def _risen(prior: float, at_prior: float, count: float) -> tuple[float, float]:
    """Return the derivative of log Gamma at prior + count, and its rise from `at_prior`, its value at prior.

    With a large prior the two values are almost equal; their difference is therefore computed directly.
    """
    x = prior + count
    psi, value = _gammas(x)
    if prior < FAR:
        return psi, value - at_prior
    rise = (prior - 0.5) * np.log1p(count / prior) + count * (np.log(x) - 1.0)
    return psi, rise + _tail(x) - _tail(prior)


@compiled()
def expect(
    prior: Array, at_prior: Array, counts: Array, present: Array, first: int, last: int, weights: Array
) -> float:
    """Compute the expected logarithms of annotators' rates (eqs. 18, 22, 23) for the outputs that each used.

    The shares of the classes are the rates of one annotator with one class.

    `prior`, `at_prior`: (J, L) and (J, L + 1) float64, the second as `log_gammas` returns them.
    `counts`: (K * L, J) float64.
    `present`: (K * L,) bool, outputs that an annotator used; the logarithms of others are not computed.
    `first`, `last`: range of annotators.
    `weights`: (K * L, J) float64, overwritten where present. The result is the annotators' contribution to
    the lower bound: the sum of ln B(prior + counts) - ln B(prior).
    """
    classes, outputs = prior.shape
    bound = 0.0
    used, totals = np.empty(outputs, dtype=np.int64), prior.sum(axis=1)
    for k in range(first, last):
        row = k * outputs
        many = _list_present(present, row, used)
        for j in range(classes if many else 0):
            total = 0.0
            for n in range(many):
                m = used[n]
                count = counts[row + m, j]
                total += count
                weights[row + m, j], rise = _risen(prior[j, m], at_prior[j, m], count)
                bound += rise
            psi, rise = _risen(totals[j], at_prior[j, outputs], total)
            bound -= rise
            for n in range(many):
                weights[row + used[n], j] -= psi
    return bound


@compiled()
def _list_present(present: Array, first: int, outputs: Array) -> int:
    """List the present entries of a row that begins at `first`, as long as `outputs`; return their number."""
    count = 0
    for at in range(len(outputs)):
        if present[first + at]:
            outputs[count] = at
            count += 1
    return count


@compiled()
def maximise_row(smoothing: float, counts: Array, logs: Array) -> float:
    """Compute the maximum likelihood rates.

    `smoothing`: added to every count.
    `counts`: (L,) float64.
    `logs`: (L,) float64, logarithms of the present rates; overwritten with those of the new rates. The result
    is the counts' contribution to the expected log likelihood under the old rates.
    """
    total, likelihood = 0.0, 0.0
    for m in range(len(counts)):
        count = counts[m] + smoothing
        total += count
        likelihood += count * logs[m]
    least = np.log(smoothing / total)
    for m in range(len(counts)):
        logs[m] = least if counts[m] == 0.0 else np.log((counts[m] + smoothing) / total)
    return likelihood


@compiled()
def maximise(
    smoothing: float, counts: Array, present: Array, first: int, last: int, outputs: int, weights: Array
) -> float:
    """Compute the maximum likelihood rates of annotators for all outputs; otherwise as `expect`."""
    likelihood = 0.0
    chosen = np.empty(outputs, dtype=np.int64)
    for k in range(first, last):
        columns = slice(k * outputs, (k + 1) * outputs)
        used = chosen[: _list_present(present, columns.start, chosen)]
        if len(used):
            for j in range(counts.shape[1]):
                likelihood += maximise_row(smoothing, counts[columns, j], weights[columns, j])
    return likelihood


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
    labels: Array,
) -> bool:
    """Count, for every vote, the annotator's earlier votes on the task; return whether there are any.

    `first`, `last`: range of tasks, called in order.
    `start`, `annotator`, `label`: as in `place`.
    `seen`: (K,) int64, initially -1; overwritten with the last vote of each annotator.
    `present`: (K, L) int64, initially -1; overwritten with the last vote of each annotator for each output.
    `again`, `labels`: (V,) int32, overwritten with the number of earlier votes, and of those with the same
        output.
    """
    repeated = False
    for i in range(first, last):
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            again[v] = labels[v] = 0
            if seen[k] >= start[i]:
                again[v] = again[seen[k]] + 1
                repeated = True
            if present[k, output] >= start[i]:
                labels[v] = labels[present[k, output]] + 1
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

    `first`, `last`: range of tasks; those with votes have a class.
    `start`: (N + 1,) int64, the votes of task i are `start[i]` to `start[i + 1]`.
    `annotator`, `label`: (V,) int32 and int16.
    `state`: (N,) int16.
    `cells`: (K, L, J) int32, votes of each annotator for each output on tasks of each class; added to.
    `rows`: (K, J) int32, their sums over outputs; added to.
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
    output: Array,
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
    """Draw the classes of some tasks one after the other, each given the classes of all other tasks.

    `first`, `last`: range of positions in `tasks`.
    `tasks`: (M,) int64, tasks with votes and without a known class.
    `start`, `annotator`, `label`: as in `place`.
    `again`, `output`: (V,) or (0,) int32, number of earlier votes of the annotator on the task, and of those
        with the same output; empty without any.
    `prior`: (L, J) float64.
    `prior_rows`: (J,) float64.
    `share`: pseudo-counts of a class's share.
    `uniform`: (last - first,) float64, random numbers, 0 to 1.
    `state`, `cells`, `rows`: as in `place`, updated.
    `shares`: (J,) int64, tasks of each class; updated.
    `chance`: (M, J) float64, overwritten with each task's probabilities given all other tasks' classes.
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
            more_said = output[v] if repeated else 0
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
        remaining = uniform[m - first]
        new = classes - 1
        for j in range(classes - 1):
            remaining -= odds[j]
            if remaining < 0.0:
                new = j
                break
        state[i] = new
        shares[new] += 1
        for v in range(start[i], start[i + 1]):
            cells[annotator[v], label[v], new] += 1
            rows[annotator[v], new] += 1


@compiled()
def mean_of_samples(mean: Array, chance: Array, count: int) -> tuple[float, float]:
    """Add a sample to the running mean of `count` samples; return the sum and the maximum of the changes."""
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
    """Return ln p(t, c | alpha_0, nu_0), eq. 1 with the confusion matrices and shares integrated out."""
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
