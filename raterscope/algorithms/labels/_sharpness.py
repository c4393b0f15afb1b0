"""Sharpness of a consensus: the power of its probabilities that makes known classes most likely.

Votes alone do not reveal how often a crowd is wrong together. Tasks of known class do, but only for tasks
that look as clear: decisions on the most disputed tasks say nothing of those that seem certain. So the power
depends on the confidence. Where known tasks are few, it is drawn to one, by as much as it varied between
public crowds.

References
----------
.. [guo2017] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks",
   Proceedings of the 34th International Conference on Machine Learning, PMLR 70 (2017) 1321-1330
   (temperature scaling).
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.labels.data import ClassArray, FloatArray

__all__ = ["sharpened"]

_SPREAD = 0.35
"""Standard deviation of the logarithm of the power between ten public crowds."""

_POWERS = np.exp(np.linspace(-4.0, 4.0, 41) * _SPREAD)

_PLACES = np.linspace(-3.0, 5.0, 17)
_WIDTH = 0.5
"""Logits of confidence: where powers are estimated, and how far known tasks tell of others."""

_MISTAKEN = 0.05
"""Share of known classes that may be wrong: a single mistake must not count for much."""


def sharpened(posterior: FloatArray, known: FloatArray, truth: ClassArray) -> FloatArray:
    """Raise probabilities to powers that suit the known tasks of like confidence, (N, J).

    Parameters
    ----------
    posterior : (N, J) float64
    known : (M, J) float64
        Of tasks of known class, as if it were not known.
    truth : (M,) int16
        Their classes.
    """
    distance = (_PLACES[:, None] - _confidence(known)) / _WIDTH
    weight = np.exp(-0.5 * np.square(distance))
    each = np.arange(len(truth))
    logs = np.log(_POWERS)
    score = np.repeat(-0.5 * np.square(logs / _SPREAD)[None], len(_PLACES), axis=0)
    for at, power in enumerate(_POWERS):
        share = _raised(known, power)[each, truth]
        score[:, at] += weight @ np.log((1 - _MISTAKEN) * share + _MISTAKEN / posterior.shape[1])
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    found = chance @ logs / chance.sum(axis=1)
    return _raised(posterior, np.exp(np.interp(_confidence(posterior), _PLACES, found))[:, None])


def _confidence(posterior: FloatArray) -> FloatArray:
    """Give the logit of the most probable class."""
    most = np.clip(posterior.max(axis=1), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(most / (1 - most)))


def _raised(posterior: FloatArray, power: float | FloatArray) -> FloatArray:
    """Raise probabilities to a power, and normalise them."""
    logs = power * np.log(np.maximum(posterior, 1e-12))
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    values /= values.sum(axis=1, keepdims=True)
    return np.asarray(values)
