"""Inner loop of EBCC: the joint probabilities of tasks' classes and subtypes."""

from __future__ import annotations

from raterscope.algorithms.compiling import Array, compiled
from raterscope.algorithms.labels._pooled_kernels import normalise

__all__ = ["expect_subtypes", "temper_subtypes"]


@compiled(error_model="numpy")
def expect_subtypes(
    first: int,
    last: int,
    start: Array,
    annotator: Array,
    label: Array,
    known: Array,
    subtypes: int,
    logs: Array,
    rates: Array,
    joint: Array,
) -> tuple[float, float]:
    """Compute the joint probabilities of class and subtype of some tasks.

    Parameters
    ----------
    first, last : int
        Tasks.
    start : (N + 1,) int64
        The votes on task i are `start[i]` to `start[i + 1]`.
    annotator, label : (V,) int32, int16
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
    start: Array,
    annotator: Array,
    label: Array,
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
    start, annotator, label, subtypes, logs, rates : as in `expect_subtypes`
    correlation : float
        The logarithm of the likelihood of n votes is divided by 1 + (n - 1) correlation.
    answer : (N, J) float64
        Overwritten for tasks with votes.
    """
    columns = len(logs)
    term = logs.copy()
    for i in range(first, last):
        votes = start[i + 1] - start[i]
        if votes == 0:
            continue
        term[:] = 0.0
        for v in range(start[i], start[i + 1]):
            k, output = annotator[v], label[v]
            for column in range(columns):
                term[column] += rates[k, output, column]
        effect = 1.0 + (votes - 1) * correlation
        for column in range(columns):
            term[column] = term[column] / effect + logs[column]
        normalise(term)
        answer[i, :] = 0.0
        for column in range(columns):
            answer[i, column // subtypes] += term[column]
