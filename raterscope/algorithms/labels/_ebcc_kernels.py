"""Inner loops of EBCC: counts, and joint probabilities of classes and subtypes."""

from __future__ import annotations

from raterscope.algorithms.compiling import AHEAD, Array, compiled, prefetch
from raterscope.algorithms.labels._pooled_kernels import normalise


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
    `known`: (N,) int16, the class of a task where it is known, negative elsewhere.
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
    many: Array | None,
) -> None:
    """Compute the classes' probabilities of some tasks with the votes' design effect.

    `votes`, `subtypes`, `logs`, `rates`: as in `expect_subtypes`.
    `correlation`: the logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation.
    `answer`: (N, J) float64, overwritten for tasks with votes.
    `many`: (N,) float64 or None, weighted numbers of votes, if annotators have weights.
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
        if many is None:
            effect = 1.0 + (count - 1) * correlation
        else:
            effect = 1.0 + max(many[i] - 1.0, 0.0) * correlation
        for column in range(columns):
            term[column] = term[column] / effect + logs[column]
        normalise(term)
        answer[i, :] = 0.0
        for column in range(columns):
            answer[i, column // subtypes] += term[column]
