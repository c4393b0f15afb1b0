"""Inner loops of the pooled models: hierarchical Dawid-Skene, and EBCC with subtypes of classes."""

from __future__ import annotations

import math

import numpy as np

from raterscope.algorithms.compiling import AHEAD, Array, compiled, prefetch, small_code

_TINY = 1e-12
"""Minimum numerator of a probability, against rounding errors."""

_DOUBT = 0.05
"""Probability that a known class is wrong, in the estimates of annotators' rates."""

_FLOOR = 1e-200
"""Minimum product of likelihoods, relative to the class with the largest."""

_BETWEEN = 8
"""Number of votes between two rescalings of a product of likelihoods."""


@compiled()
def count_pairs(first: int, last: int, votes: Array, posterior: Array, counts: Array) -> None:
    """Add the expected votes on some tasks to the counts.

    `votes`: `start`, (N + 1,) int64, the pair of each vote, (V,) int32, sorted by task, and the annotator of
    each pair, (P,) int32. A pair is an annotator and an output that the annotator used. `posterior`: (N, J)
    float64. `counts`: (P, J) float64, added to.
    """
    start, pair, _ = votes
    end = len(pair) - 1
    for i in range(first, last):
        for v in range(start[i], start[i + 1]):
            prefetch(counts, pair[min(v + AHEAD, end)])
            for j in range(posterior.shape[1]):
                counts[pair[v], j] += posterior[i, j]


@compiled()
def sum_pairs(
    first: int,
    last: int,
    begin: Array,
    output: Array,
    meaning: Array,
    counts: Array,
    rows: Array,
    right: Array,
    own: Array,
    together: Array,
) -> None:
    """Sum the counts of some annotators.

    `first`, `last`: range of annotators.
    `begin`: (K + 1,) int64, the pairs of annotator k are `begin[k]` to `begin[k + 1]`.
    `output`, `meaning`: (P,) int16 and (L,) int16, output of each pair, and the class that each output
    represents; negative for none.
    `counts`: (S, P, J) float64, counts of S parts; their sum is written to the first.
    `rows`: (K, J) float64, overwritten: sums over outputs.
    `right`: (K, J) float64, overwritten: those of the outputs that represent the class.
    `own`: (P,) float64, overwritten: expected wrong votes.
    `together`: (L, J) float64, added to.
    """
    small_code()
    classes = counts.shape[2]
    for k in range(first, last):
        for j in range(classes):
            rows[k, j] = right[k, j] = 0.0
        for p in range(begin[k], begin[k + 1]):
            for part in range(1, counts.shape[0]):
                for j in range(classes):
                    counts[0, p, j] += counts[part, p, j]
            total = 0.0
            for j in range(classes):
                count = counts[0, p, j]
                total += count
                rows[k, j] += count
                together[output[p], j] += count
            stands = meaning[output[p]]
            if stands >= 0:
                right[k, stands] += counts[0, p, stands]
                total -= counts[0, p, stands]
            own[p] = max(total, 0.0)


@compiled(error_model="numpy")
def weigh_pairs(
    begin: Array, base: Array, strength: float, counts: Array, rows: Array, above: Array, below: Array
) -> None:
    """Compute numerators and denominators of the annotators' expected rates.

    `begin`: (K + 1,) int64, as in `sum_pairs`.
    `base`: (P, J) float32, prior mean of the rates.
    `strength`: weight of the prior mean, in votes.
    `counts`: (P, J) float64.
    `rows`: (K, J) float64, their sums over outputs.
    `above`, `below`: (P, J) and (K, J) floating point, overwritten.
    """
    for k in range(len(rows)):
        for j in range(rows.shape[1]):
            below[k, j] = strength + rows[k, j]
        for p in range(begin[k], begin[k + 1]):
            for j in range(rows.shape[1]):
                above[p, j] = strength * base[p, j] + counts[p, j]


@compiled(error_model="numpy")
def _multiply(
    first: int,
    last: int,
    votes: Array,
    above: Array,
    below: Array,
    own: Array,
    product: Array,
    each_class: Array,
    weights: Array | None,
) -> None:
    """Multiply the rates of some votes, without each vote's own contribution, up to a common factor.

    `first`, `last`: range of votes.
    `votes`: as in `count_pairs`.
    `above`, `below`: as in `weigh_pairs`.
    `own`: (J,) floating, a vote's share of both.
    `product`: (J,) float64, multiplied.
    `each_class`, `weights`: as in `expect`.
    """
    _, pair, owner = votes
    least = above.dtype.type(_TINY)
    for v in range(first, last):
        top, bottom = above[pair[v]], below[owner[pair[v]]]
        if weights is None:
            for j in range(len(each_class)):  # conditions in a form that computes several classes at once
                rest = top[j] - own[j]
                rest = rest if rest > least else least
                product[j] *= rest / (bottom[j] - own[j])
        else:
            weight = weights[owner[pair[v]]]
            for j in range(len(each_class)):
                rest = max(top[j] - weight * own[j], _TINY)
                product[j] *= (rest / (bottom[j] - weight * own[j])) ** weight
        if (v - first) % _BETWEEN == _BETWEEN - 1:
            most = 0.0
            for j in range(len(each_class)):
                most = max(most, product[j])
            for j in range(len(each_class)):
                product[j] = max(product[j] / most, _FLOOR)


@compiled(error_model="numpy")
def expect(
    first: int,
    last: int,
    votes: Array,
    known: Array,
    model: Array,
    shares: Array,
    posterior: Array,
    counts: Array | None,
    each_class: Array,
    weights: Array | None,
) -> tuple[float, float]:
    """Compute the class probabilities of some tasks; a vote does not count in its own annotator's rates.

    `votes`: as in `count_pairs`.
    `known`: (N,) int16.
    `model`: `above` and `below` of `weigh_pairs`.
    `shares`: (J,) float64.
    `posterior`: (N, J) floating, overwritten for tasks with votes. A known class counts as the vote of an
        annotator with error rate `_DOUBT`: a single mistake must not change the annotators' rates.
    `counts`: (P, J) float64, the expected votes are added, without weights; None to count none.
    `each_class`: tuple of J numbers, or (J,) array. The length of a tuple is known when the kernel is
        compiled, so that loops over few classes are unrolled.
    `weights`: (K,) float64 or None, weights of the annotators. For None the kernel is compiled without them.
    The result is the sum of all changes, and the largest one.
    """
    start, pair, owner = votes
    above, below = model
    classes = len(each_class)
    product, change = shares.copy(), shares.copy()
    own = above[0].copy()
    total = largest = 0.0
    end = len(pair) - 1
    for i in range(first, last):
        if start[i] == start[i + 1]:
            continue
        for v in range(start[i], start[i + 1]):
            later = pair[min(v + AHEAD, end)]
            prefetch(above, later)
            prefetch(below, owner[later])
            if counts is not None:
                prefetch(counts, later)
        product[:] = shares
        own[:] = posterior[i]
        if known[i] >= 0:
            for j in range(classes):
                if j != known[i]:
                    product[j] *= _DOUBT / (1 - _DOUBT) / (classes - 1)
        _multiply(start[i], start[i + 1], votes, above, below, own, product, each_class, weights)
        mass = 0.0
        for j in range(classes):
            mass += product[j]
        row = posterior[i]
        for j in range(classes):
            value = product[j] / mass
            product[j] = value
            change[j] = abs(value - row[j])
            row[j] = value
        for j in range(classes):
            total += change[j]
            largest = change[j] if change[j] > largest else largest
        if counts is not None:
            for v in range(start[i], start[i + 1]):
                count = counts[pair[v]]
                for j in range(classes):
                    count[j] += product[j]
    return total, largest


@compiled(error_model="numpy")
def effective_number(first: int, last: int, votes: Array, spread: Array, weights: Array | None) -> float:
    """Return the effective number of some votes, (sum s)^2 / sum s^2; see `effective_votes`.

    `first`, `last`: range of votes.
    `votes`: as in `count_pairs`.
    `spread`: (P,) float64, s of each annotator's votes for each output; see `spread_of_votes`.
    `weights`: as in `expect`.
    """
    _, pair, owner = votes
    total = squares = 0.0
    for v in range(first, last):
        p = pair[v]
        weighted = spread[p] if weights is None else spread[p] * weights[owner[p]]
        total += weighted
        squares += weighted * spread[p]
    return total * total / max(squares, _TINY)


@compiled(error_model="numpy")
def effective_numbers(votes: Array, spread: Array, weights: Array | None, numbers: Array) -> None:
    """Compute the effective number of votes on each task.

    `votes`, `spread`, `weights`: as in `effective_number`.
    `numbers`: (N,) float64, overwritten.
    """
    start = votes[0]
    for i in range(len(numbers)):
        numbers[i] = effective_number(start[i], start[i + 1], votes, spread, weights)


@compiled(error_model="numpy")
def temper(
    first: int,
    last: int,
    votes: Array,
    model: Array,
    shares: Array,
    correlations: Array,
    posterior: Array,
    answers: Array,
    each_class: Array,
    weights: Array | None,
    spread: Array,
) -> None:
    """Compute the class probabilities of some tasks with the votes' design effect.

    The logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation; see `expect`.

    `votes`, `model`, `shares`: as in `expect`.
    `correlations`: (R,) float64.
    `posterior`: (N, J) floating, of the fit.
    `answers`: (R, N, J) floating, overwritten for tasks with votes.
    `each_class`, `weights`: as in `expect`.
    `spread`: as in `effective_number`; this number is n, at least 1.
    """
    start, pair, owner = votes
    above, below = model
    classes = len(each_class)
    product, joint, logs, log_shares = shares.copy(), shares.copy(), shares.copy(), shares.copy()
    for j in range(classes):
        log_shares[j] = math.log(shares[j])
    own = above[0].copy()
    end = len(pair) - 1
    for i in range(first, last):
        count = start[i + 1] - start[i]
        if count == 0:
            continue
        for v in range(start[i], start[i + 1]):
            later = pair[min(v + AHEAD, end)]
            prefetch(above, later)
            prefetch(below, owner[later])
        product[:] = 1.0
        own[:] = posterior[i]
        _multiply(start[i], start[i + 1], votes, above, below, own, product, each_class, weights)
        for j in range(classes):
            joint[j] = product[j] * shares[j]
            product[j] = math.log(product[j])
        number = effective_number(start[i], start[i + 1], votes, spread, weights)
        for r in range(len(correlations)):
            effect = 1.0 + max(number - 1.0, 0.0) * correlations[r]
            if effect == 1.0:  # without exponential functions
                mass = 0.0
                for j in range(classes):
                    mass += joint[j]
                for j in range(classes):
                    answers[r, i, j] = joint[j] / mass
                continue
            for j in range(classes):
                logs[j] = product[j] / effect + log_shares[j]
            normalise(logs)
            for j in range(classes):
                answers[r, i, j] = logs[j]


@compiled(error_model="numpy")
def score_correlation(
    first: int,
    last: int,
    tasks: Array,
    votes: Array,
    model: Array,
    shares: Array,
    posterior: Array,
    correlations: Array,
    max_votes: int,
    scores: Array,
    weights: Array | None,
    spread: Array,
) -> None:
    """Add the log-likelihood of each vote on some tasks, predicted from the other votes on its task.

    `first`, `last`: range of positions in `tasks`.
    `tasks`: (M,) int64, tasks of unknown class with two votes or more.
    `votes`, `model`, `shares`, `posterior`: as in `temper`.
    `correlations`: (R,) float64.
    `max_votes`: largest number of votes on a task.
    `scores`: (R,) float64, added to.
    `weights`: as in `expect`.
    `spread`: as in `temper`; the other votes of n have the share (n - 1) / n of their effective number.
    """
    small_code()
    start, pair, owner = votes
    above, below = model
    classes = len(shares)
    rates, logs = np.empty((classes, max_votes)), np.empty((classes, max_votes))
    total, log_shares, term = shares.copy(), shares.copy(), shares.copy()
    for j in range(classes):
        log_shares[j] = math.log(shares[j])
    for at in range(first, last):
        i = tasks[at]
        count = start[i + 1] - start[i]
        for j in range(classes):
            total[j] = 0.0
        number = 0.0 if weights is not None else float(count)
        for n in range(count):
            p = pair[start[i] + n]
            weight = 1.0
            if weights is not None:
                weight = weights[owner[p]]
                number += weight
            for j in range(classes):
                own = weight * posterior[i, j] if weights is not None else posterior[i, j]
                rates[j, n] = max(above[p, j] - own, _TINY) / (below[owner[p], j] - own)
                logs[j, n] = math.log(rates[j, n])
                if weights is not None:
                    logs[j, n] *= weight
                total[j] += logs[j, n]
        effective = effective_number(start[i], start[i + 1], votes, spread, weights)
        for r in range(len(correlations)):
            for n in range(count):
                weight = 1.0
                if weights is not None:
                    weight = weights[owner[pair[start[i] + n]]]
                others = effective * (number - weight) / max(number, _TINY)
                effect = 1.0 + max(others - 1.0, 0.0) * correlations[r]
                most = -1e300
                for j in range(classes):
                    term[j] = (total[j] - logs[j, n]) / effect + log_shares[j]
                    most = max(most, term[j])
                mass = likelihood = 0.0
                for j in range(classes):
                    share = math.exp(term[j] - most)
                    mass += share
                    likelihood += share * rates[j, n]
                if weights is None:
                    scores[r] += math.log(likelihood / mass)
                else:
                    scores[r] += weight * math.log(likelihood / mass)


@compiled(error_model="numpy")
def fill_base(
    first: int,
    last: int,
    begin: Array,
    output: Array,
    meaning: Array,
    hit: Array,
    right: Array,
    wrong: Array,
    own: Array,
    weight: float,
    total: Array,
    base: Array,
) -> None:
    """Compute the prior mean of some annotators' rates.

    `first`, `last`: range of annotators.
    `begin`, `output`, `meaning`: as in `sum_pairs`.
    `hit`: (K, J) float64, probability of the outputs that represent a class.
    `right`, `wrong`: (L, J) float64, the crowd's shares of the outputs that represent a class, and of those
    that do not.
    `own`: (P,) float64, expected wrong votes.
    `weight`: weight of `wrong`, in votes.
    `total`: (K, J) float64, overwritten: weight and own wrong votes of the outputs that do not represent the
    class.
    `base`: (P, J) float32, overwritten.
    """
    small_code()
    classes = hit.shape[1]
    usual = np.zeros(classes)
    for o in range(len(meaning)):
        for j in range(classes):
            usual[j] += weight * wrong[o, j]
    for k in range(first, last):
        mistakes = 0.0
        for p in range(begin[k], begin[k + 1]):
            mistakes += own[p]
        for j in range(classes):
            total[k, j] = usual[j] + mistakes
        for p in range(begin[k], begin[k + 1]):
            if meaning[output[p]] >= 0:
                total[k, meaning[output[p]]] -= own[p]
        for p in range(begin[k], begin[k + 1]):
            o = output[p]
            for j in range(classes):
                base[p, j] = (1.0 - hit[k, j]) * ((weight * wrong[o, j] + own[p]) / total[k, j])
            if meaning[o] >= 0:
                base[p, meaning[o]] = hit[k, meaning[o]] * right[o, meaning[o]]


@compiled(error_model="numpy")
def beta_binomial(right: Array, votes: Array, mean: float, strength: float) -> float:
    """Compute the log likelihood of annotators' correct votes under Beta distributed skills.

    `right`, `votes`: (K,) float64.
    """
    first, second = mean * strength, (1.0 - mean) * strength
    both = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second)
    score = 0.0
    for k in range(len(right)):
        score += (
            both
            + math.lgamma(first + right[k])
            + math.lgamma(second + votes[k] - right[k])
            - math.lgamma(first + second + votes[k])
        )
    return score


@compiled(error_model="numpy")
def polya(rows: Array, begin: Array, base: Array, counts: Array, strength: float) -> float:
    """Compute the log likelihood of some rows of counts under Dirichlet distributed rates.

    `rows`: (R, 2) int64, annotator and class of each row.
    `begin`: (K + 1,) int64, as in `sum_pairs`.
    `base`: (P, J) float32.
    `counts`: (P, J) float64.
    """
    score, at_rest = 0.0, math.lgamma(strength)
    for r in range(len(rows)):
        k, j = rows[r, 0], rows[r, 1]
        total = 0.0
        for p in range(begin[k], begin[k + 1]):
            count = counts[p, j]
            if count > 1e-6:
                prior = strength * base[p, j]
                score += math.lgamma(prior + count) - math.lgamma(prior)
                total += count
        score += at_rest - math.lgamma(strength + total)
    return score


@compiled()
def add_counts(first: int, last: int, votes: Array, posterior: Array, counts: Array) -> None:
    """Add the expected votes on some tasks to the counts.

    `first`, `last`: range of tasks.
    `votes`: `start`, (N + 1,) int64, and annotator, (V,) int32, and label, (V,) int16, of each vote, sorted
        by task. The votes on task i are `start[i]` to `start[i + 1]`.
    `posterior`: (N, J) float64.
    `counts`: (K, L, J) float64, added to.
    """
    start, annotator, label = votes
    outputs, columns = counts.shape[1:]
    rows, end = counts.reshape(-1, columns), len(label) - 1
    for i in range(first, last):
        own = posterior[i]
        for v in range(start[i], start[i + 1]):
            later = min(v + AHEAD, end)
            prefetch(rows, annotator[later] * outputs + label[later])
            row = rows[annotator[v] * outputs + label[v]]
            for j in range(columns):
                row[j] += own[j]


@compiled(error_model="numpy")
def expect_subtypes(
    first: int, last: int, votes: Array, known: Array, subtypes: int, logs: Array, rates: Array, joint: Array
) -> tuple[float, float]:
    """Compute the joint probabilities of class and subtype of some tasks.

    `first`, `last`: range of tasks.
    `votes`: as in `add_counts`.
    `known`: (N,) int16, known class of each task, negative if unknown.
    `subtypes`: M.
    `logs`: (J M,) float64, expected logarithms of the classes' shares times those of their subtypes.
    `rates`: (K, L, J M) float64, expected logarithms of the annotators' rates.
    `joint`: (N, J M) float64, overwritten for tasks with votes.
    The results are the sums of the logarithms of the normalisers, and of the absolute changes.
    """
    start, annotator, label = votes
    outputs, columns, end = rates.shape[1], len(logs), len(label) - 1
    rows = rates.reshape(-1, columns)
    term = logs.copy()
    evidence = change = 0.0
    for i in range(first, last):
        if start[i] == start[i + 1]:
            continue
        low, high = 0, columns
        if known[i] >= 0:
            low, high = known[i] * subtypes, (known[i] + 1) * subtypes
        term[low:high] = logs[low:high]
        for v in range(start[i], start[i + 1]):
            later = min(v + AHEAD, end)
            prefetch(rows, annotator[later] * outputs + label[later])
            row = rows[annotator[v] * outputs + label[v]]
            for column in range(low, high):
                term[column] += row[column]
        evidence += normalise(term[low:high])
        for column in range(columns):
            value = term[column] if low <= column < high else 0.0
            change += abs(value - joint[i, column])
            joint[i, column] = value
    return evidence, change


@compiled(error_model="numpy")
def temper_subtypes(
    first: int,
    last: int,
    votes: Array,
    subtypes: int,
    logs: Array,
    rates: Array,
    correlation: float,
    answer: Array,
    numbers: Array,
) -> None:
    """Compute the class probabilities of some tasks with the votes' design effect.

    `votes`, `subtypes`, `logs`, `rates`: as in `expect_subtypes`.
    `correlation`: the logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation.
    `answer`: (N, J) float64, overwritten for tasks with votes.
    `numbers`: as in `temper`.
    """
    start, annotator, label = votes
    outputs, columns, end = rates.shape[1], len(logs), len(label) - 1
    rows = rates.reshape(-1, columns)
    term = logs.copy()
    for i in range(first, last):
        count = start[i + 1] - start[i]
        if count == 0:
            continue
        term[:] = 0.0
        for v in range(start[i], start[i + 1]):
            later = min(v + AHEAD, end)
            prefetch(rows, annotator[later] * outputs + label[later])
            row = rows[annotator[v] * outputs + label[v]]
            for column in range(columns):
                term[column] += row[column]
        effect = 1.0 + max(numbers[i] - 1.0, 0.0) * correlation
        for column in range(columns):
            term[column] = term[column] / effect + logs[column]
        normalise(term)
        answer[i, :] = 0.0
        for column in range(columns):
            answer[i, column // subtypes] += term[column]


@compiled(error_model="numpy")
def normalise(logs: Array) -> float:
    """Convert log likelihoods to probabilities in place; return the logarithm of their sum.

    `logs`: (J,) float64, overwritten.
    """
    most = logs[0]
    for j in range(1, len(logs)):
        most = max(most, logs[j])
    total = 0.0
    for j in range(len(logs)):
        logs[j] = math.exp(logs[j] - most)
        total += logs[j]
    for j in range(len(logs)):
        logs[j] /= total
    return float(most + math.log(total))
