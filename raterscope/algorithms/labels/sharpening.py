"""Calibration of probabilities by powers estimated from tasks with known class.

Votes alone do not reveal errors that the crowd shares. Tasks with known class do, but only for tasks of
similar confidence: decisions on the most disputed tasks carry no information on tasks that seem certain. The
logarithm of the power is therefore a Gaussian process in the confidence, with mean zero. Three biases are
avoided:

- Experts make mistakes. The share of wrong known classes is estimated with the powers.
- If known tasks were chosen because they were disputed, those that now seem clearer are less often right than
other tasks of the same confidence (regression to the mean). Known tasks therefore count by their share of the
tasks of similar confidence.
- For the same reason, a power below one, estimated from disputed tasks, is not extended to clear tasks.

References
----------
.. [guo2017] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks",
   Proceedings of the 34th International Conference on Machine Learning, PMLR 70 (2017) 1321-1330 (the
   powers where classes are known).
.. [rasmussen2006] C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press
   (2006) (the mode of a latent process by Newton's method).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import ROWS_AT_ONCE, sum_rows
from raterscope.algorithms.labels.data import ClassArray, FloatArray
from raterscope.algorithms.progress import parts_of

_SPREAD = 0.25
"""Standard deviation of the logarithm of the power between crowds."""

_LENGTH = 1.0
"""Length scale of the power in confidence, logits."""

_PLACES = np.linspace(-3.0, 8.0, 45)
_STEP = float(_PLACES[1] - _PLACES[0])

_MISTAKES = (2.0, 20.0)
"""Beta distribution of the share of known classes that are wrong; its mode is 0.05."""

_BINS = np.linspace(-3.0, 14.0, 171)
_WIDTH = 0.3
"""Width of the smoothing of the share of known tasks, logits."""

_MOST = 20_000
"""Maximum number of known tasks for estimating powers; of more, a sample is used."""

_TURNS = 30
_CHANGE = 1e-3
_LARGEST_STEP = 0.5


def sharpen(
    posterior: FloatArray, known: FloatArray, truth: ClassArray, judged: NDArray[np.int64]
) -> FloatArray:
    """Raise probabilities to powers estimated from known tasks of similar confidence, (N, J).

    `posterior`: (N, J).
    `known`: (M, J), probabilities of tasks with known class, predicted without it. `truth`: (M,), their
    classes.
    `judged`: (M,), their indices.
    """
    confidence = _confidence(posterior)
    covered = _coverage(_confidence(known), np.delete(confidence, judged))
    step = slice(None, None, -(-len(known) // _MOST))
    logs = _log_powers(known[step], truth[step], covered)
    log_odds = np.interp(confidence, _PLACES, logs)
    share = np.interp(confidence, _BINS, covered)
    log_odds = np.where(log_odds < 0, log_odds * np.square(share), log_odds)
    return _raise(posterior, np.exp(log_odds)[:, None])


def information_on_power(known: FloatArray, others: FloatArray) -> float:
    """Return the information of known tasks on the logarithm of the power of the other tasks.

    A task's information is the variance of its log probabilities. Known tasks count by the share of the other
    tasks' information that belongs to tasks of similar confidence.

    `known`, `others`: (M, J) and (N, J), probabilities predicted without the known classes.
    """
    covered = _coverage(_confidence(known), _confidence(others))
    of_known, of_others = log_variance(known), log_variance(others)
    alike = np.interp(_confidence(others), _BINS, covered) @ of_others
    return float(of_known.sum() * np.square(alike / max(of_others.sum(), 1e-12)))


def log_variance(posterior: FloatArray) -> FloatArray:
    """Return the variance of each task's log probabilities."""
    variance = np.empty(len(posterior))
    for begin, end in parts_of(len(posterior), ROWS_AT_ONCE):
        share = posterior[begin:end]
        logs = np.log(np.maximum(share, 1e-12))
        mean = sum_rows(share * logs)
        variance[begin:end] = sum_rows(share * np.square(logs)) - np.square(mean)
    return variance


def _coverage(known: FloatArray, others: FloatArray) -> FloatArray:
    """Return the share of known tasks by confidence, relative to that of all tasks and at most 1, by bin."""
    kernel = np.exp(-0.5 * np.square((_BINS[:, None] - _BINS) / _WIDTH))
    edges = np.append(_BINS - (_BINS[1] - _BINS[0]) / 2, np.inf)
    edges[0] = -np.inf
    of_known, of_others = (kernel @ np.histogram(values, edges)[0] for values in (known, others))
    share = len(known) / (len(known) + len(others))
    return np.asarray(np.minimum(of_known / (of_known + of_others + 1e-6) / share, 1.0))


def _log_powers(known: FloatArray, truth: ClassArray, covered: FloatArray) -> FloatArray:
    """Estimate the logarithm of the power at each confidence, and the error rate of truths."""
    confidence = _confidence(known)
    weight = np.interp(confidence, _BINS, covered)
    at = np.clip((confidence - _PLACES[0]) / _STEP, 0.0, len(_PLACES) - 1.001)
    remaining = at.astype(np.int64)
    rows = np.arange(len(truth))
    design = np.zeros((len(truth), len(_PLACES)))
    design[rows, remaining], design[rows, remaining + 1] = 1.0 - (at - remaining), at - remaining
    distance = (_PLACES[:, None] - _PLACES) / _LENGTH
    covariance = np.square(_SPREAD) * np.exp(-0.5 * np.square(distance)) + 1e-6 * np.eye(len(_PLACES))
    precision = np.linalg.inv(covariance)
    logs = np.log(np.maximum(known, 1e-12))
    ones, zeros = _MISTAKES
    powers, mistaken = np.zeros(len(_PLACES)), (ones - 1) / (ones + zeros - 2)
    for _ in range(_TURNS):
        power = np.exp(design @ powers)
        share = _raise(known, power[:, None])
        right = (1 - mistaken) * share[rows, truth]
        likelihood = right + mistaken / known.shape[1]
        mean = (share * logs).sum(axis=1)
        slope = right / likelihood * (logs[rows, truth] - mean) * power
        bend = ((share * np.square(logs)).sum(axis=1) - mean**2) * power**2 * right / likelihood
        gradient = design.T @ (weight * slope) - precision @ powers
        curvature = design.T @ ((weight * bend)[:, None] * design) + precision
        step = np.clip(np.linalg.solve(curvature, gradient), -_LARGEST_STEP, _LARGEST_STEP)
        powers = powers + step
        wrong = float((mistaken / known.shape[1] / likelihood).sum())
        mistaken = (wrong + ones - 1) / (len(truth) + ones + zeros - 2)
        if np.abs(step).max() < _CHANGE:
            break
    return powers


def _confidence(posterior: FloatArray) -> FloatArray:
    """Return the logit of the most probable class."""
    most = np.clip(posterior.max(axis=1, initial=0.0), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(most / (1 - most)))


def _raise(posterior: FloatArray, power: float | FloatArray) -> FloatArray:
    """Raise probabilities to a power, and normalise them."""
    logs = power * np.log(np.maximum(posterior, 1e-12))
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    return np.asarray(values)
