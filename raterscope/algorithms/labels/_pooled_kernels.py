"""Inner loops of the pooled consensus and EBCC: classes, counts, priors, mixed membership, subtypes."""

from __future__ import annotations

import math

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

_TINY = 1e-12
"""Floor of a probability's numerator, against rounding."""

_DOUBT = 0.05
"""Probability that a known class is wrong, where annotators' rates are estimated."""

_FLOOR = 1e-200
"""Floor of a product of likelihoods relative to its largest class."""

_BETWEEN = 8
"""Votes between two rescalings of a product of likelihoods."""


@compiled()
def add_counts(first: int, last: int, votes: Array, posterior: Array, counts: Array) -> None:
    """Add the expected votes on some tasks to the counts.

    Parameters
    ----------
    first, last : int
        Tasks between which to count.
    votes : tuple
        `start` (N + 1,) int64, and the annotator (V,) int32 and the label (V,) int16 of each vote, sorted by
        task: the votes on task i are `start[i]` to `start[i + 1]`.
    posterior : (N, J) float64
    counts : (K, L, J) float64
        Added to.
    """
    start, annotator, label = votes
    for i in range(first, last):
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            for j in range(posterior.shape[1]):
                counts[k, output, j] += posterior[i, j]


@compiled(error_model="numpy")
def normalise(logs: Array) -> float:
    """Turn logarithms into probabilities, in place.

    Parameters
    ----------
    logs : (J,) float64
        Overwritten.

    Returns
    -------
    evidence : float
        Logarithm of their sum.
    """
    most = logs.max()
    total = 0.0
    for j in range(len(logs)):
        logs[j] = math.exp(logs[j] - most)
        total += logs[j]
    for j in range(len(logs)):
        logs[j] /= total
    return float(most + math.log(total))


@compiled(error_model="numpy")
def rate(strength: float, base: float, count: float, row: float, own: float) -> float:
    """Return an annotator's expected rate of an output, given a class, without a vote's own contribution.

    Parameters
    ----------
    strength, base : float
        Votes that the prior counts for, and its mean.
    count, row : float
        Expected votes for the output and for all outputs, given the class.
    own : float
        The vote's share of both.
    """
    return max(strength * base + count - own, _TINY) / (strength + row - own)


@compiled(error_model="numpy")
def expect(
    first: int, last: int, votes: Array, known: Array, model: Array, shares: Array, posterior: Array
) -> tuple[float, float]:
    """Compute the classes' probabilities of some tasks, each vote's own contribution removed from its rates.

    Parameters
    ----------
    first, last : int
    votes : as in `add_counts`
    known : (N,) int16
    model : tuple
        Prior mean of the rates (K, L, J) float32, votes that the prior counts for, expected counts (K, L, J)
        and their sums over outputs (K, J).
    shares : (J,) float64
    posterior : (N, J) float64
        Overwritten for tasks with votes. A known class counts as the vote of an annotator with error rate
        `_DOUBT`: a single mistake must not change the annotators' rates.

    Returns
    -------
    total, largest : float
        Sum of all changes, and the largest one.
    """
    start, annotator, label = votes
    base, strength, counts, rows = model
    classes = len(shares)
    product = shares.copy()
    total = largest = 0.0
    for i in range(first, last):
        if start[i] == start[i + 1]:
            continue
        product[:] = shares
        if known[i] >= 0:
            for j in range(classes):
                if j != known[i]:
                    product[j] *= _DOUBT / (1 - _DOUBT) / (classes - 1)
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            for j in range(classes):
                own = posterior[i, j]
                product[j] *= rate(strength, base[k, output, j], counts[k, output, j], rows[k, j], own)
            if (v - start[i]) % _BETWEEN == _BETWEEN - 1:
                most = product.max()
                for j in range(classes):
                    product[j] = max(product[j] / most, _FLOOR)
        mass = product.sum()
        for j in range(classes):
            value = product[j] / mass
            change = abs(value - posterior[i, j])
            total += change
            largest = max(largest, change)
            posterior[i, j] = value
    return total, largest


@compiled(error_model="numpy")
def temper(
    first: int,
    last: int,
    votes: Array,
    model: Array,
    shares: Array,
    correlation: float,
    posterior: Array,
    answer: Array,
) -> None:
    """Compute the classes' probabilities of some tasks with the votes' design effect.

    The logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation; see `expect`.

    Parameters
    ----------
    first, last : int
    votes, model, shares : as in `expect`
    correlation : float
    posterior : (N, J) float64
        As fitted.
    answer : (N, J) float64
        Overwritten for tasks with votes.
    """
    start, annotator, label = votes
    base, strength, counts, rows = model
    classes = len(shares)
    logs = shares.copy()
    for i in range(first, last):
        count = start[i + 1] - start[i]
        if count == 0:
            continue
        logs[:] = 0.0
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            for j in range(classes):
                own = posterior[i, j]
                logs[j] += math.log(rate(strength, base[k, output, j], counts[k, output, j], rows[k, j], own))
        effect = 1.0 + (count - 1) * correlation
        for j in range(classes):
            logs[j] = logs[j] / effect + math.log(shares[j])
        normalise(logs)
        answer[i] = logs


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
    most_votes: int,
    scores: Array,
) -> None:
    """Add the log-likelihood of each vote on some tasks, predicted from the other votes on its task.

    Parameters
    ----------
    first, last : int
        Positions in `tasks`.
    tasks : (M,) int64
        Tasks of unknown class with two votes or more.
    votes, model, shares, posterior : as in `temper`
    correlations : (R,) float64
    most_votes : int
        Votes of the task with the most.
    scores : (R,) float64
        Added to.
    """
    start, annotator, label = votes
    base, strength, counts, rows = model
    classes = len(shares)
    rates = shares.repeat(most_votes).reshape(classes, most_votes)
    logs = rates.copy()
    total = shares.copy()
    term = shares.copy()
    for at in range(first, last):
        i = tasks[at]
        count = start[i + 1] - start[i]
        total[:] = 0.0
        for n in range(count):
            k, output = annotator[start[i] + n], label[start[i] + n]
            for j in range(classes):
                own = posterior[i, j]
                rates[j, n] = rate(strength, base[k, output, j], counts[k, output, j], rows[k, j], own)
                logs[j, n] = math.log(rates[j, n])
                total[j] += logs[j, n]
        for r in range(len(correlations)):
            effect = 1.0 + (count - 2) * correlations[r]
            for n in range(count):
                most = -1e300
                for j in range(classes):
                    term[j] = (total[j] - logs[j, n]) / effect + math.log(shares[j])
                    most = max(most, term[j])
                mass = likelihood = 0.0
                for j in range(classes):
                    weight = math.exp(term[j] - most)
                    mass += weight
                    likelihood += weight * rates[j, n]
                scores[r] += math.log(likelihood / mass)


@compiled(error_model="numpy")
def fill_base(
    first: int,
    last: int,
    stands: Array,
    accuracy: Array,
    right: Array,
    wrong: Array,
    own: Array,
    weight: float,
    base: Array,
) -> None:
    """Compute the prior mean of some annotators' rates.

    Parameters
    ----------
    first, last : int
        Annotators.
    stands : (L, J) bool
        True if an output stands for a class.
    accuracy : (K, J) float64
        Probability of the outputs that stand for a class.
    right, wrong : (L, J) float64
        The crowd's shares of the outputs that stand for a class, and of those that do not.
    own : (K, L) float64
        Each annotator's expected wrong votes by output.
    weight : float
        Number of votes that `wrong` counts as.
    base : (K, L, J) float32
        Overwritten.
    """
    outputs, classes = stands.shape
    for k in range(first, last):
        for j in range(classes):
            total = 0.0
            good = 0
            for output in range(outputs):
                if stands[output, j]:
                    good += 1
                else:
                    total += weight * wrong[output, j] + own[k, output]
            hit = 1.0 if good == outputs else (0.0 if good == 0 else accuracy[k, j])
            for output in range(outputs):
                if stands[output, j]:
                    base[k, output, j] = hit * right[output, j]
                else:
                    share = (weight * wrong[output, j] + own[k, output]) / total
                    base[k, output, j] = (1.0 - hit) * share


@compiled(error_model="numpy")
def beta_binomial(right: Array, votes: Array, mean: float, strength: float) -> float:
    """Compute the log-likelihood of annotators' right votes under Beta distributed skills.

    Parameters
    ----------
    right, votes : (K,) float64
    mean, strength : float
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
def polya(rows: Array, base: Array, counts: Array, strength: float) -> float:
    """Compute the log-likelihood of some rows of counts under Dirichlet distributed rates.

    Parameters
    ----------
    rows : (R, 2) int64
        Annotator and class of each row.
    base : (K, L, J) float32
    counts : (K, L, J) float64
    strength : float
    """
    score = 0.0
    for r in range(len(rows)):
        k, j = rows[r, 0], rows[r, 1]
        total = 0.0
        for output in range(base.shape[1]):
            count = counts[k, output, j]
            if count > 1e-6:
                prior = strength * base[k, output, j]
                score += math.lgamma(prior + count) - math.lgamma(prior)
                total += count
        score += math.lgamma(strength) - math.lgamma(strength + total)
    return score


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
) -> None:
    """Update the apparent class of each vote on some tasks, one vote after the other.

    Parameters
    ----------
    first, last : int
    votes, known : as in `expect`
    model : as in `expect`
        The counts are updated with every vote.
    mixture : (J,) float64
        Prior of a task's mixture.
    share : (V, J) float32
        Probability of each vote's apparent class. Overwritten.
    total : (N, J) float64
        Its sum over the votes on a task. Overwritten.
    """
    start, annotator, label = votes
    base, strength, counts, rows = model
    classes = len(mixture)
    term = mixture.copy()
    for i in range(first, last):
        if known[i] >= 0 or start[i + 1] == start[i]:
            continue
        task = total[i]
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            mean, count, row, own = base[k, output], counts[k, output], rows[k], share[v]
            for j in range(classes):  # without a sum, for the processor to compute several at once
                other = task[j] - own[j]
                other = other if other > 0.0 else 0.0
                above = strength * mean[j] + count[j] - own[j]
                above = above if above > _TINY else _TINY
                term[j] = (mixture[j] + other) * (above / (strength + row[j] - own[j]))
            mass = 0.0
            for j in range(classes):
                mass += term[j]
            for j in range(classes):
                before = own[j]
                own[j] = term[j] / mass
                change = own[j] - before
                count[j] += change
                row[j] += change
                task[j] += change


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
) -> None:
    """Estimate the mixtures of known tasks from their votes, each without its own known class.

    Parameters
    ----------
    tasks : (M,) int64
    votes, model, mixture, share, total : as in `membership_sweep`
        Unchanged except for rounding.
    begin : (M, J) float64
        Probabilities of the apparent classes before the first sweep.
    sweeps : int
    answer : (M, J) float64
        Summed probabilities of the votes' apparent classes. Overwritten.
    """
    start, annotator, label = votes
    _, _, counts, rows = model
    classes = len(mixture)
    unknown = np.full(len(start) - 1, -1, dtype=np.int16)
    for m in range(len(tasks)):
        i = tasks[m]
        count = start[i + 1] - start[i]
        before = share[start[i] : start[i + 1]].copy()
        summed = total[i].copy()
        for v in range(start[i], start[i + 1]):
            for j in range(classes):
                change = begin[m, j] - share[v, j]
                counts[annotator[v], label[v], j] += change
                rows[annotator[v], j] += change
                share[v, j] = begin[m, j]
        for j in range(classes):
            total[i, j] = count * begin[m, j]
        for _ in range(sweeps):
            membership_sweep(i, i + 1, votes, unknown, model, mixture, share, total)
        answer[m] = total[i]
        total[i] = summed
        for v in range(start[i], start[i + 1]):
            for j in range(classes):
                change = before[v - start[i], j] - share[v, j]
                counts[annotator[v], label[v], j] += change
                rows[annotator[v], j] += change
                share[v, j] = before[v - start[i], j]


@compiled(error_model="numpy")
def expect_subtypes(
    first: int, last: int, votes: Array, known: Array, subtypes: int, logs: Array, rates: Array, joint: Array
) -> tuple[float, float]:
    """Compute the joint probabilities of class and subtype of some tasks.

    Parameters
    ----------
    first, last : int
        Tasks.
    votes : as in `add_counts`
    known : (N,) int16
        The class of a task where it is known, negative elsewhere.
    subtypes : int
        M.
    logs : (J M,) float64
        Expected logarithms of the classes' shares times those of their subtypes.
    rates : (K, L, J M) float64
        Expected logarithms of the annotators' rates.
    joint : (N, J M) float64
        Overwritten for tasks with votes.

    Returns
    -------
    evidence, change : float
        Sum of the logarithms of the normalisers, and of the absolute changes.
    """
    start, annotator, label = votes
    columns = len(logs)
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
            k, output = annotator[v], label[v]
            for column in range(low, high):
                term[column] += rates[k, output, column]
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
) -> None:
    """Compute the classes' probabilities of some tasks with the votes' design effect.

    Parameters
    ----------
    first, last : int
    votes, subtypes, logs, rates : as in `expect_subtypes`
    correlation : float
        The logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation.
    answer : (N, J) float64
        Overwritten for tasks with votes.
    """
    start, annotator, label = votes
    columns = len(logs)
    term = logs.copy()
    for i in range(first, last):
        count = start[i + 1] - start[i]
        if count == 0:
            continue
        term[:] = 0.0
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            for column in range(columns):
                term[column] += rates[k, output, column]
        effect = 1.0 + (count - 1) * correlation
        for column in range(columns):
            term[column] = term[column] / effect + logs[column]
        normalise(term)
        answer[i, :] = 0.0
        for column in range(columns):
            answer[i, column // subtypes] += term[column]
