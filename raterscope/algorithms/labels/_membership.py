"""Mixed-membership model: every vote has an apparent class of its own, drawn from its task's mixture.

References
----------
.. [airoldi2008] E. M. Airoldi, D. M. Blei, S. E. Fienberg and E. P. Xing, "Mixed membership stochastic
   blockmodels", Journal of Machine Learning Research 9 (2008) 1981-2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels._hierarchical import Crowd, Fit, begun, count_votes_of, estimate_priors
from raterscope.algorithms.labels.data import OPEN, FloatArray
from raterscope.algorithms.progress import Watch

__all__ = ["mixed_membership"]

_ROUNDS = 30
_STRENGTH_ROUNDS = (5, 15)
_SWEEPS = 5
"""Over known tasks, to see what their votes alone would give."""


def mixed_membership(
    crowd: Crowd, posterior: FloatArray, mixture: float, watch: Watch
) -> tuple[FloatArray, Fit]:
    """Fit the model, beginning with a posterior.

    Parameters
    ----------
    crowd : Crowd
    posterior : (N, J) float64
    mixture : float
        Prior strength of a task's mixture.
    watch : Watch

    Returns
    -------
    mean : (N, J) float64
        Each task's expected mixture. Of a known task with votes, it is what the votes would give if the class
        were not known.
    fit : Fit
        Rates given the apparent class.
    """
    from raterscope.algorithms.labels._pooled_kernels import membership_sweep

    votes = np.diff(crowd.start)
    fit = begun(crowd, posterior)
    share = np.repeat(posterior, votes, axis=0).astype(np.float32)
    total = posterior.astype(np.float32) * votes[:, None].astype(np.float64)
    words = "fitting mixed membership"
    count_votes_of(crowd, posterior, fit, watch, 0.0, words)
    mean, held = posterior.copy(), crowd.known != OPEN
    prior = mixture * fit.shares
    for turn in range(1, _ROUNDS + 1):
        done = (turn - 1) / _ROUNDS
        estimate_priors(crowd, fit, True, turn, turn in _STRENGTH_ROUNDS, watch, done)
        fit.shares = mean[crowd.active].sum(axis=0) + 1.0
        fit.shares /= fit.shares.sum()
        prior = mixture * fit.shares
        for first, last in crowd.spans:
            watch(done, words)
            membership_sweep(
                first, last, crowd.start, crowd.annotator, crowd.label, crowd.known, fit.base, fit.strength,
                fit.counts, fit.rows, prior, share, total,
            )  # fmt: skip
        mean = (prior + total) / (mixture + votes[:, None])
        mean[held] = posterior[held]
    voted = np.flatnonzero(held & (votes > 0))
    if len(voted):
        mean[voted] = _without_truth(crowd, fit, voted, prior, share, total, watch)
    mean /= mean.sum(axis=1, keepdims=True)
    return mean, fit


def _without_truth(
    crowd: Crowd,
    fit: Fit,
    tasks: NDArray[np.int64],
    prior: FloatArray,
    share: NDArray[np.float32],
    total: NDArray[np.floating],
    watch: Watch,
) -> FloatArray:
    """Estimate the mixtures of known tasks from the votes alone, (M, J); overwrites counts and shares."""
    from raterscope.algorithms.labels._pooled_kernels import membership_sweep

    votes = np.diff(crowd.start)
    at = np.flatnonzero(np.isin(np.repeat(np.arange(len(votes)), votes), tasks))
    usual = (prior / prior.sum()).astype(np.float32)
    change = (usual - share[at]).astype(np.float64)
    np.add.at(fit.counts, (crowd.annotator[at], crowd.label[at]), change)
    np.add.at(fit.rows, crowd.annotator[at], change)
    share[at] = usual
    total[tasks] = votes[tasks, None] * usual.astype(np.float64)
    others = np.zeros(len(votes), dtype=crowd.known.dtype)
    others[tasks] = OPEN
    for _ in range(_SWEEPS):
        for first, last in crowd.spans:
            watch(1.0, "fitting mixed membership")
            membership_sweep(
                first, last, crowd.start, crowd.annotator, crowd.label, others, fit.base, fit.strength,
                fit.counts, fit.rows, prior, share, total,
            )  # fmt: skip
    return np.asarray((prior + total[tasks]) / (prior.sum() + votes[tasks, None]))
